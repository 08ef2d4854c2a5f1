//! The items of loops under `ti.static`, of comprehensions and of unpacking, known while compiling.

use std::rc::Rc;

use aerogel_base::{ErrorKind, ScalarType};
use aerogel_ir::Type;

use crate::fold;
use crate::host::{Known, TensorConst, TensorShape};
use crate::lower::core::limits::MAX_ITEMS;
use crate::lower::values::{Iter, Val};
use crate::lower::{Lower, Res};

impl Lower<'_, '_> {
    /// The items of something known while compiling, in order.
    pub(crate) fn iterate_static(&mut self, val: &Val) -> Res<Vec<Val>> {
        if let Some(items) = val.items() {
            return Ok(items);
        }
        match val {
            Val::Iter(iter) => match &**iter {
                Iter::Range { lo, hi, step } => {
                    let what = "a bound of a range that is unrolled";
                    let (lo, hi, step) = (
                        self.static_int(lo, what)?,
                        self.static_int(hi, what)?,
                        self.static_int(step, what)?,
                    );
                    if step == 0 {
                        return self.fail(
                            ErrorKind::Compilation,
                            "E0123",
                            "the step of a range is zero",
                        );
                    }
                    self.unrollable(((hi - lo) / step).max(0))?;
                    let mut items = Vec::new();
                    let mut at = lo;
                    while (step > 0 && at < hi) || (step < 0 && at > hi) {
                        items.push(Val::int(at));
                        at += step;
                    }
                    Ok(items)
                }
                Iter::NdRange(axes, order) => {
                    let all = self.static_box(axes)?.into_iter();
                    Ok(all
                        .map(|at| Val::Known(Known::tuple(super::in_order(&at, order))))
                        .collect())
                }
                Iter::Grouped(inner) => {
                    let items = self.iterate_static(inner)?;
                    Ok(items
                        .into_iter()
                        .map(|item| {
                            match item
                                .known()
                                .and_then(|known| known.items().map(<[Known]>::to_vec))
                            {
                                Some(elements) => Val::Known(Known::Tensor(Rc::new(TensorConst {
                                    shape: TensorShape::Vector(elements.len() as u32),
                                    elements,
                                    elem: Some(ScalarType::I32),
                                    handle: None,
                                }))),
                                None => item,
                            }
                        })
                        .collect())
                }
            },
            Val::Dict(entries) => {
                let keys = entries.iter().map(|(key, _)| Val::Known(key.clone()));
                Ok(keys.collect())
            }
            Val::Known(Known::Tensor(tensor)) => {
                let TensorShape::Matrix(_, m) = tensor.shape else {
                    return self.elements(val);
                };
                let rows = tensor.elements.chunks(m as usize).map(|row| {
                    Val::Known(Known::Tensor(Rc::new(TensorConst {
                        shape: TensorShape::Vector(m),
                        elements: row.to_vec(),
                        elem: tensor.elem,
                        handle: None,
                    })))
                });
                Ok(rows.collect())
            }
            Val::Known(known) => {
                let items = fold::iterate(self.host, known, MAX_ITEMS);
                let items = self.hosted(items)?.into_iter();
                items.map(|item| self.val(item)).collect()
            }
            Val::Poison(reported) => Err(*reported),
            _ => {
                match self.numeric_type(val) {
                    Some(Type::Vec(..)) => return self.elements(val),
                    Some(Type::Mat(rows, ..)) => {
                        let row = |k| self.index(val.clone(), vec![Val::int(k)], false);
                        return (0..i128::from(rows)).map(row).collect();
                    }
                    _ => {}
                }
                let what = self.describe(val);
                self.fail(
                    ErrorKind::Type,
                    "E0219",
                    format!("{what} cannot be iterated over while compiling"),
                )
            }
        }
    }

    fn static_box(&mut self, axes: &[(Val, Val)]) -> Res<Vec<Vec<Known>>> {
        let mut all = vec![Vec::new()];
        for (lo, hi) in axes {
            let what = "a bound of a range that is unrolled";
            let (lo, hi) = (self.static_int(lo, what)?, self.static_int(hi, what)?);
            self.unrollable((hi - lo).max(0).saturating_mul(all.len() as i128))?;
            all = all
                .into_iter()
                .flat_map(|at| {
                    (lo..hi).map(move |k| {
                        at.iter()
                            .cloned()
                            .chain([Known::Int(k)])
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
        }
        Ok(all)
    }

    /// Refuses loops that no compiler should unroll.
    fn unrollable(&mut self, n: i128) -> Res<()> {
        if n <= MAX_ITEMS as i128 {
            return Ok(());
        }
        self.fail_noted(
            ErrorKind::Compilation,
            "E0129",
            format!("a loop under `ti.static` has {n} iterations"),
            "drop `ti.static` from the loop",
        )
    }
}
