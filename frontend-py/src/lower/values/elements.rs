//! Elements and parts of tensors, and slices.

use aerogel_base::ErrorKind;
use aerogel_ir::{Op, Type, Value};

use crate::ast::{Expr, ExprKind};
use crate::lower::values::number::elem;
use crate::lower::values::{Place, SeqKind, Val};
use crate::lower::{Lower, Res};

/// One index of a tensor: a number, or a slice of constants.
pub(crate) enum Index {
    At(Val),
    Slice(Vec<u32>),
}

impl<'a> Lower<'a, '_> {
    pub(crate) fn sliced(&mut self, val: &Val, parts: &[Expr<'a>]) -> Res<Val> {
        if let Some(items) = val.items()
            && let [
                Expr {
                    kind: ExprKind::Slice { .. },
                    ..
                },
            ] = parts
        {
            let chosen = self.slice(&parts[0], items.len() as u32)?;
            let kind = val.kind().unwrap_or(SeqKind::List);
            return Ok(Val::seq(
                chosen
                    .into_iter()
                    .map(|k| items[k as usize].clone())
                    .collect(),
                kind,
            ));
        }
        let Some(ty) = self.numeric_type(val).filter(|ty| ty.is_tensor()) else {
            let what = self.describe(val);
            return self.fail(
                ErrorKind::Syntax,
                "E0212",
                format!("{what} cannot be sliced"),
            );
        };
        let mut indices = Vec::new();
        for (part, extent) in parts.iter().zip(ty.shape()) {
            indices.push(match part.kind {
                ExprKind::Slice { .. } => {
                    let chosen = self.slice(part, extent)?;
                    if chosen.is_empty() {
                        self.range = part.range;
                        let message = "the slice is empty";
                        return self.fail(ErrorKind::Index, "E0404", message);
                    }
                    Index::Slice(chosen)
                }
                _ => Index::At(self.expr(part)?),
            });
        }
        if indices.len() != ty.shape().len() {
            return self.wrong_index_count(ty, parts.len());
        }
        self.index_tensor(val, indices)
    }

    /// The indices that a slice of constants chooses.
    fn slice(&mut self, slice: &Expr<'a>, extent: u32) -> Res<Vec<u32>> {
        let ExprKind::Slice { lo, hi, step } = slice.kind else {
            unreachable!("the caller passes slices only")
        };
        let mut part = |part: Option<&Expr<'a>>| match part {
            None => Ok(None),
            Some(part) => {
                let val = self.expr(part)?;
                if val.is_none() {
                    Ok(None)
                } else {
                    self.static_int(&val, "a bound of a slice").map(Some)
                }
            }
        };
        let (lo, hi, step) = (part(lo)?, part(hi)?, part(step)?.unwrap_or(1));
        let n = i128::from(extent);
        let clamp =
            |at: i128, low: i128, high: i128| (if at < 0 { at + n } else { at }).clamp(low, high);
        let mut chosen = Vec::new();
        if step > 0 {
            let (mut at, end) = (
                lo.map_or(0, |at| clamp(at, 0, n)),
                hi.map_or(n, |at| clamp(at, 0, n)),
            );
            while at < end {
                chosen.push(at as u32);
                at += step;
            }
        } else if step < 0 {
            let (mut at, end) = (
                lo.map_or(n - 1, |at| clamp(at, -1, n - 1)),
                hi.map_or(-1, |at| clamp(at, -1, n - 1)),
            );
            while at > end {
                chosen.push(at as u32);
                at += step;
            }
        }
        Ok(chosen)
    }

    fn wrong_index_count<T>(&mut self, ty: Type, found: usize) -> Res<T> {
        let wanted = match ty.shape().len() {
            1 => "1 index".to_owned(),
            n => format!("{n} indices"),
        };
        self.fail(
            ErrorKind::Index,
            "E0405",
            format!("`{ty}` takes {wanted}, not {found}"),
        )
    }

    /// Elements of a tensor: storage if it has storage.
    pub(crate) fn index_tensor(&mut self, val: &Val, indices: Vec<Index>) -> Res<Val> {
        let ty = self.expect_numeric(val)?;
        let shape = ty.shape();
        if !ty.is_tensor() {
            return self.fail(
                ErrorKind::Type,
                "E0212",
                format!("`{ty}` cannot be indexed"),
            );
        }
        let mut indices = indices;
        if indices.len() == 1 && shape.len() == 2 {
            // One index of a matrix is a row.
            indices.push(Index::Slice((0..shape[1]).collect()));
        }
        if indices.len() != shape.len() {
            return self.wrong_index_count(ty, indices.len());
        }
        for (index, extent) in indices.iter_mut().zip(&shape) {
            if let Index::At(Val::Known(known)) = index
                && let Some(at) = known.as_int()
            {
                // As in Python, what is negative counts from the end.
                let n = i128::from(*extent);
                let wrapped = if at < 0 { at + n } else { at };
                if !(0..n).contains(&wrapped) {
                    return self.fail(
                        ErrorKind::Index,
                        "E0403",
                        format!("index {at} is out of range for `{ty}`"),
                    );
                }
                *index = Index::At(Val::int(wrapped));
            }
        }
        let elem = elem(ty);
        let chosen: Vec<Vec<Val>> = indices
            .iter()
            .map(|index| match index {
                Index::At(val) => vec![val.clone()],
                Index::Slice(at) => at.iter().map(|&k| Val::int(i128::from(k))).collect(),
            })
            .collect();
        let extents: Vec<u32> = indices
            .iter()
            .zip(&chosen)
            .filter(|(index, _)| matches!(index, Index::Slice(_)))
            .map(|(_, chosen)| chosen.len() as u32)
            .collect();
        let result = match extents[..] {
            [] => Type::Scalar(elem),
            [n] => Type::Vec(n, elem),
            [n, m, ..] => Type::Mat(n, m, elem),
        };
        let tuples: Vec<Vec<Val>> = match &chosen[..] {
            [rows] => rows.iter().map(|row| vec![row.clone()]).collect(),
            [rows, columns, ..] => rows
                .iter()
                .flat_map(|row| {
                    columns
                        .iter()
                        .map(|column| vec![row.clone(), column.clone()])
                })
                .collect(),
            [] => unreachable!("a tensor has as many indices as axes, one at least"),
        };
        self.pick(val, ty, &tuples, result)
    }

    /// The elements of `val` at `tuples`, as one value or place of type `result`.
    pub(crate) fn pick(
        &mut self,
        val: &Val,
        ty: Type,
        tuples: &[Vec<Val>],
        result: Type,
    ) -> Res<Val> {
        let elem = elem(ty);
        match val {
            Val::Place(Place::Ref { place, origin }) => {
                let (base, origin) = (*place, *origin);
                let storage = Type::RefScalar(elem);
                let mut refs = Vec::new();
                for tuple in tuples {
                    let index = tuple
                        .iter()
                        .map(|at| self.index_value(at))
                        .collect::<Res<Vec<_>>>()?;
                    refs.push(self.value(Op::ElemRef { base, index }, storage));
                }
                Ok(Val::Place(match result {
                    Type::Scalar(_) => Place::Ref {
                        place: refs[0],
                        origin,
                    },
                    _ => Place::Elements {
                        refs: refs.into(),
                        ty: result,
                        origin,
                    },
                }))
            }
            _ => {
                let flat: Option<Vec<usize>> =
                    tuples.iter().map(|tuple| flat_index(ty, tuple)).collect();
                if let Some(flat) = flat {
                    if let Val::Place(Place::Elements { refs, origin, .. }) = val {
                        let refs: Vec<Value> = flat.iter().map(|&k| refs[k]).collect();
                        return Ok(Val::Place(match result {
                            Type::Scalar(_) => Place::Ref {
                                place: refs[0],
                                origin: *origin,
                            },
                            _ => Place::Elements {
                                refs: refs.into(),
                                ty: result,
                                origin: *origin,
                            },
                        }));
                    }
                    let elements = self.elements(val)?;
                    let chosen: Vec<Val> = flat.iter().map(|&k| elements[k].clone()).collect();
                    return match result {
                        Type::Scalar(_) => Ok(chosen[0].clone()),
                        _ => Ok(Val::Value(self.make(&chosen, result)?)),
                    };
                }
                let tensor = self.load(val)?;
                let mut elems = Vec::new();
                for tuple in tuples {
                    let index = tuple
                        .iter()
                        .map(|at| self.index_value(at))
                        .collect::<Res<Vec<_>>>()?;
                    elems.push(self.value(Op::TensorGet { tensor, index }, elem.into()));
                }
                Ok(Val::Value(match result {
                    Type::Scalar(_) => elems[0],
                    _ => self.value(Op::TensorMake { elems }, result),
                }))
            }
        }
    }
}

/// The position of an element in row order, if its indices are known.
fn flat_index(ty: Type, tuple: &[Val]) -> Option<usize> {
    let at: Option<Vec<usize>> = tuple
        .iter()
        .map(|val| val.known()?.as_int().map(|k| k as usize))
        .collect();
    match (ty, &at?[..]) {
        (Type::Mat(_, m, _), [row, column]) => Some(row * m as usize + column),
        (_, [at]) => Some(*at),
        _ => None,
    }
}
