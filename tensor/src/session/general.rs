//! Programs that differ only in where they read, and how much: one for all of them.
//!
//! ```text
//! for [n] { t[i0] = mul(x[i32(7), i0], 2) }        for [n] { t[i0] = mul(x[x0, i0], 2) }, where x0 is 7
//! ```
//! A loop of Python's that reads row by row records another program at each turn. Numbers at which inputs are read become
//! variables that the caller sets, once some such programs have come: the first ones are compiled for their numbers. So do
//! extents that are those of no large input, and constants that are such an extent, as the divisor of a mean is.

use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, eval};
use indexmap::{IndexMap, IndexSet};

use super::policy::{LONGEST_SHORT, MANY, MAX_READ};
use crate::ir::{
    Buffer, Dim, DimDef, Expr, ExprDef, Exprs, Outside, Program, Role, Stmt, Var, map_exprs,
};

/// The program without the numbers, and them; nothing if there are none.
pub(super) fn generalised(program: &Program) -> Option<(Program, Vec<Scalar>)> {
    let mut out = program.clone();
    out.exprs = Exprs::default();
    out.dims.clear();
    let mut general = General {
        old: program,
        new: out,
        done: LookupMap::default(),
        numbers: IndexMap::new(),
    };
    let fixed = fixed(program);
    // All extents before any constant.
    let vars: Vec<Option<Var>> = (program.dims.iter().enumerate())
        .map(|(k, def)| match *def {
            DimDef::Const(n) if n > LONGEST_SHORT && !fixed.contains(&Dim::from_u32(k as u32)) => {
                let n = i32::try_from(n).ok()?;
                Some(general.number(Number::Extent(n)))
            }
            _ => None,
        })
        .collect();
    for (def, var) in program.dims.iter().zip(vars) {
        let def = match (def, var) {
            (_, Some(var)) => DimDef::Value(general.new.get(var)),
            (DimDef::Value(e), None) => DimDef::Value(general.expr(*e)),
            (DimDef::Number(e), None) => DimDef::Number(general.expr(*e)),
            (other, None) => other.clone(),
        };
        general.new.dims.insert(def);
    }
    let mut body = std::mem::take(&mut general.new.body);
    map_exprs(&mut body, &mut |e| general.expr(e));
    general.new.body = body;
    let General {
        mut new, numbers, ..
    } = general;
    new.given = numbers.values().copied().collect();
    let values = numbers.keys().map(|n| Scalar::i32(n.value())).collect();
    (!numbers.is_empty() && new.dims.len() == program.dims.len()).then_some((new, values))
}

/// Extents that stay numbers: those of inputs that were not made of parts of others, and all where it matters much that they
/// are known, as in large products of matrices.
fn fixed(program: &Program) -> IndexSet<Dim> {
    let points = |domain: &[Dim]| -> u64 {
        let extents = domain.iter().map(|&d| program.const_dim(d).unwrap_or(1));
        extents.product()
    };
    let is_product = |stmt: &Stmt| match stmt {
        Stmt::For(all) => all.domain.len() > 2 && points(&all.domain) >= MANY,
        _ => false,
    };
    if program.body.iter().any(is_product) {
        return (0..program.dims.len() as u32).map(Dim::from_u32).collect();
    }
    let shapes = program.inputs().map(|b| &program.buffers[b].shape);
    let own = shapes.filter(|shape| points(shape) > MAX_READ as u64);
    own.flatten().copied().collect()
}

/// A number that becomes a variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Number {
    /// Where an axis of a buffer is read.
    Place(Buffer, usize, i32),
    /// An extent.
    Extent(i32),
}

impl Number {
    fn value(self) -> i32 {
        match self {
            Self::Place(_, _, n) | Self::Extent(n) => n,
        }
    }
}

struct General<'p> {
    old: &'p Program,
    new: Program,
    done: LookupMap<Expr, Expr>,
    numbers: IndexMap<Number, Var>,
}

impl General<'_> {
    fn expr(&mut self, e: Expr) -> Expr {
        if let Some(&done) = self.done.get(&e) {
            return done;
        }
        let def = match self.old.exprs[e].clone() {
            ExprDef::Const(value) => {
                let made = self.constant(value);
                self.done.insert(e, made);
                return made;
            }
            ExprDef::Load {
                buffer,
                ty,
                index,
                outside,
            } => {
                let index = index.into_iter().enumerate();
                let index = index.map(|(axis, i)| self.index(buffer, axis, i, outside));
                ExprDef::Load {
                    buffer,
                    ty,
                    index: index.collect(),
                    outside,
                }
            }
            def => def.map_operands(|x| self.expr(x)),
        };
        let made = self.new.exprs.add_as_is(def);
        self.done.insert(e, made);
        made
    }

    fn index(&mut self, buffer: Buffer, axis: usize, e: Expr, outside: Outside) -> Expr {
        let def = &self.old.buffers[buffer];
        let is_long = self
            .old
            .const_dim(def.shape[axis])
            .is_some_and(|n| n > LONGEST_SHORT);
        let is_read_of_input = matches!(def.role, Role::Input(_)) && outside == Outside::Never;
        if !is_long || !is_read_of_input {
            return self.expr(e);
        }
        match self.old.exprs[e] {
            ExprDef::Const(n) => self.place(buffer, axis, n),
            // What is turned round the end.
            ExprDef::Binary(BinaryOp::Mod, from, extent) => {
                let from = self.index(buffer, axis, from, outside);
                let extent = self.expr(extent);
                let around = ExprDef::Binary(BinaryOp::Mod, from, extent);
                self.new.exprs.add_as_is(around)
            }
            ExprDef::Binary(BinaryOp::Add, first, by) => match self.old.exprs.as_const(by) {
                Some(n) => {
                    let first = self.expr(first);
                    let by = self.place(buffer, axis, n);
                    let sum = ExprDef::Binary(BinaryOp::Add, first, by);
                    self.new.exprs.add_as_is(sum)
                }
                None => self.expr(e),
            },
            _ => self.expr(e),
        }
    }

    /// A constant; one that is an extent, as much below zero, or the last index of one, follows from it.
    fn constant(&mut self, value: Scalar) -> Expr {
        let number = match value.ty() {
            ScalarType::I32 => i32::try_from(value.as_i128()).ok(),
            ty if ty.is_float() => {
                let n = value.as_f64();
                (n.fract() == 0.0 && n.abs() < 1e9).then_some(n as i32)
            }
            _ => None,
        };
        let Some(n) = number else {
            return self.new.exprs.constant(value);
        };
        if let Some(&var) = self.numbers.get(&Number::Extent(n))
            && eval::cast(Scalar::i32(n), value.ty()) == value
        {
            let n = self.new.get(var);
            return self.new.exprs.cast(n, value.ty());
        }
        if let Some(&var) = self.numbers.get(&Number::Extent(n.wrapping_neg()))
            && value.ty() == ScalarType::I32
        {
            let n = self.new.get(var);
            let minus = self.new.exprs.i32(-1);
            let below = ExprDef::Binary(BinaryOp::Mul, n, minus);
            return self.new.exprs.add_as_is(below);
        }
        if let Some(&var) = self.numbers.get(&Number::Extent(n.wrapping_add(1)))
            && value.ty() == ScalarType::I32
        {
            let n = self.new.get(var);
            let one = self.new.exprs.i32(-1);
            let last = ExprDef::Binary(BinaryOp::Add, n, one);
            return self.new.exprs.add_as_is(last);
        }
        self.new.exprs.constant(value)
    }

    fn place(&mut self, buffer: Buffer, axis: usize, n: Scalar) -> Expr {
        let var = self.number(Number::Place(buffer, axis, n.as_i128() as i32));
        self.new.get(var)
    }

    fn number(&mut self, number: Number) -> Var {
        let vars = &mut self.new.vars;
        *self
            .numbers
            .entry(number)
            .or_insert_with(|| vars.push(ScalarType::I32))
    }
}

#[cfg(test)]
mod tests {
    use super::super::plans::Structure;
    use super::*;
    use crate::ir::{parse, verify};

    /// A mean of the first `k` numbers from a place on, turned around.
    fn window(k: u64, from: i32) -> Program {
        let (last, divisor) = (k - 1, k as f64);
        let text = format!(
            r#"
            in b0 "x": f64[80]
            tmp b1 "part": f64[{k}]
            tmp b2 "sum": f64[]
            tmp b3 "mean": f64[]
            for [{k}] {{ b1[i0] = b0[add(mul(add(i32({last}), mul(i0, i32(-1))), i32(2)), i32({from}))] }}
            for [{k}] {{ b2[] add init = b1[i0] }}
            for [] {{ b3[] = div(b2[], f64({divisor:?})) }}
            result b3
        "#
        );
        let program = parse(&text).unwrap();
        verify(&program).unwrap();
        program
    }

    #[test]
    fn what_is_turned_by_another_number_is_one() {
        let rolled = |by: i32| {
            let text = format!(
                r#"
                in b0 "x": f64[80]
                tmp b1 "y": f64[80]
                for [80] {{ b1[i0] = add(b0[mod(add(i0, i32({by})), i32(80))], b0[i0]) }}
                result b1
            "#
            );
            generalised(&parse(&text).unwrap()).unwrap()
        };
        let [(a, first), (b, second)] = [3, 77].map(rolled);
        verify(&a).unwrap();
        assert!(Structure::of(&a) == Structure::of(&b), "{a}{b}");
        assert_eq!([first, second], [3, 77].map(|n| vec![Scalar::i32(n)]));
    }

    #[test]
    fn what_differs_in_extents_and_places_is_one() {
        let (a, first) = generalised(&window(7, 3)).unwrap();
        let (b, second) = generalised(&window(19, 8)).unwrap();
        verify(&a).unwrap();
        assert!(Structure::of(&a) == Structure::of(&b), "{a}{b}");
        assert_eq!([first, second].map(|v| v.len()), [2, 2]);
        // What is as long as an input is another program.
        let (c, _) = generalised(&window(80, 8)).unwrap();
        assert!(Structure::of(&a) != Structure::of(&c));
    }
}
