//! Programs that differ only in sizes and in the locations that they read share one general program.
//!
//! ```text
//! for [n] { t[i0] = mul(x[i32(7), i0], 2) }        for [n] { t[i0] = mul(x[x0, i0], 2) }, where x0 is 7
//! ```
//! Sizes become variables that the caller sets, and so do numbers computed from them, such as the divisor of a mean. The
//! program knows the class (`Size`) of such a size, by which passes decide, so that results are the same whatever ran
//! before.
//!
//! So do constants in expressions, except those that make code simpler, such as 0 and 1, and exponents.
//! Constant indices of inputs become variables as well, if the caller wishes (`Places::Given`): a Python loop that reads row
//! by row would otherwise record another program in each iteration.

use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, eval};
use indexmap::{IndexMap, IndexSet};

use super::policy::{LARGE_PRODUCT, MANY};
use crate::ir::{
    Buffer, Dim, DimDef, Expr, ExprDef, Exprs, For, LONGEST_SHORT, Outside, Program, Role, Size,
    Stmt, Store, Var, exprs_of, is_round, map_exprs, visit, visit_host,
};

/// How constant indices of inputs are handled.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Places {
    /// They stay numbers.
    Known,
    /// They become variables.
    Given,
}

/// The program without the numbers, and them.
pub(super) fn generalised(program: &Program, places: Places) -> (Program, Vec<Scalar>) {
    let mut out = program.clone();
    out.exprs = Exprs::default();
    out.dims.clear();
    let mut general = General {
        old: program,
        new: out,
        places,
        constants: constants(program),
        done: LookupMap::default(),
        numbers: IndexMap::new(),
        extents: Vec::new(),
    };
    general.dims();
    let mut body = std::mem::take(&mut general.new.body);
    map_exprs(&mut body, &mut |e| general.root(e));
    general.new.body = body;
    let General {
        mut new, numbers, ..
    } = general;
    new.given = numbers.values().copied().collect();
    let values = numbers.keys().map(|n| n.value()).collect();
    debug_assert_eq!(new.dims.len(), program.dims.len());
    (new, values)
}

/// Sizes that stay constants: all in large matrix products; those of sums at indices that are not axes, which `inverse`
/// solves for the points; and with many points, round sizes and divisors of indices.
fn fixed(program: &Program) -> IndexSet<Dim> {
    let points = |domain: &[Dim]| -> u64 {
        let extents = domain.iter().map(|&d| program.const_dim(d).unwrap_or(1));
        extents.fold(1, u64::saturating_mul)
    };
    let mut fixed = IndexSet::default();
    let mut is_large = false;
    visit_host(&program.body, &mut |stmt| {
        let Stmt::For(all) = stmt else {
            return;
        };
        let n = points(&all.domain);
        is_large |= all.domain.len() > 2 && n >= LARGE_PRODUCT;
        if n >= MANY {
            fixed.extend(costly(program, all));
        }
        for store in stores(all).filter(|s| s.accum.is_some() && !is_at_axes(program, s)) {
            fixed.extend(all.domain.iter().copied());
            fixed.extend(program.buffers[store.target].shape.iter().copied());
        }
    });
    match is_large {
        true => (0..program.dims.len() as u32).map(Dim::from_u32).collect(),
        false => fixed,
    }
}

/// Sizes that make code faster if they are constants.
fn costly(program: &Program, all: &For) -> Vec<Dim> {
    let is_round = |dim: &Dim| program.const_dim(*dim).is_some_and(is_round);
    let mut dims: Vec<Dim> = all.domain.iter().copied().filter(is_round).collect();
    let exprs = &program.exprs;
    exprs.visit(exprs_of(&all.body), &mut |e| {
        use BinaryOp::{Add, Div, FloorDiv, Mod, Rem};
        let ExprDef::Binary(Div | FloorDiv | Mod | Rem, x, by) = exprs[e] else {
            return;
        };
        // What is turned round the end of an axis is not divided.
        let is_turned = matches!(exprs[x], ExprDef::Binary(Add, axis, n)
            if matches!(exprs[axis], ExprDef::Axis(_)) && exprs.as_const(n).is_some());
        if let Some(n) = exprs
            .as_const(by)
            .filter(|n| !n.ty().is_float() && !is_turned)
        {
            let dim = DimDef::Const(u64::try_from(n.as_i128()).unwrap_or(0));
            let at = program.dims.get_index_of(&dim);
            dims.extend(at.map(|at| Dim::from_u32(at as u32)));
        }
    });
    dims
}

fn stores(all: &For) -> impl Iterator<Item = &Store> {
    all.body.iter().filter_map(|stmt| match stmt {
        Stmt::Store(store) => Some(store),
        _ => None,
    })
}

/// Whether a store's indices are axes, constants, or read from memory.
fn is_at_axes(program: &Program, store: &Store) -> bool {
    let exprs = &program.exprs;
    store.index.iter().all(|&e| match exprs[e] {
        ExprDef::Axis(_) | ExprDef::Const(_) => true,
        _ => {
            let mut is_read = false;
            exprs.visit([e], &mut |x| {
                is_read |= matches!(exprs[x], ExprDef::Load { .. });
            });
            is_read
        }
    })
}

/// Whether a constant may become a variable: code is no slower, and computes the same, if it is not known.
fn is_plain(value: Scalar) -> bool {
    match value.ty() {
        ScalarType::F32 | ScalarType::F64 => {
            let x = value.as_f64().abs();
            x.is_finite() && ![0.0, 0.5, 1.0, 2.0].contains(&x)
        }
        ScalarType::I32 | ScalarType::I64 => value.as_i128().abs() > 2,
        _ => false,
    }
}

/// The constants of a program that become variables: numbers that are stored as they are, as those beside tensors in an
/// expression of Python's, and then operands of arithmetic alone. What is known of exponents and indices makes other code.
fn constants(program: &Program) -> IndexSet<Expr> {
    let exprs = &program.exprs;
    let load = |e: Expr| match exprs[e] {
        ExprDef::Load { buffer, .. } => Some(buffer),
        _ => None,
    };
    let (mut known, mut stored) = (IndexSet::new(), Vec::new());
    let mut others = IndexSet::new();
    for e in 0..exprs.len() as u32 {
        let def = &exprs[Expr::from_u32(e)];
        if !is_arithmetic(exprs, def) {
            def.operands(|x| known.extend(load(x)));
        }
    }
    visit(&program.body, &mut |stmt| match stmt {
        Stmt::Store(store) => {
            known.extend(load(store.value));
            others.extend(store.index.iter().copied());
            stored.push((store.target, store.value));
        }
        _ => stmt.exprs(|e| {
            others.insert(e);
        }),
    });
    let of_known = stored.iter().filter(|(target, _)| known.contains(target));
    others.extend(of_known.map(|&(_, value)| value));
    let all = stored.into_iter().map(|(_, value)| value);
    all.filter(|e| exprs.as_const(*e).is_some_and(is_plain) && !others.contains(e))
        .collect()
}

/// Whether an operation may as well have a variable for any of its operands.
fn is_arithmetic(exprs: &Exprs, def: &ExprDef) -> bool {
    use BinaryOp::{Add, Div, Max, Min, Mul, Sub};
    match *def {
        ExprDef::Binary(Add | Sub | Mul | Min | Max, ..)
        | ExprDef::Compare(..)
        | ExprDef::Select(..) => true,
        ExprDef::Binary(Div, x, _) => exprs.ty(x).is_float(),
        _ => false,
    }
}

/// A number that becomes a variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Number {
    /// Where an axis of a buffer is read.
    Place(Buffer, usize, i32),
    /// By how much an axis is turned round its end.
    Turn(i32),
    /// A size.
    Extent(i32),
    /// A constant beside tensors.
    Constant(Scalar),
}

impl Number {
    fn value(self) -> Scalar {
        match self {
            Self::Place(_, _, n) | Self::Turn(n) | Self::Extent(n) => Scalar::i32(n),
            Self::Constant(value) => value,
        }
    }
}

struct General<'p> {
    old: &'p Program,
    new: Program,
    places: Places,
    constants: IndexSet<Expr>,
    done: LookupMap<Expr, Expr>,
    numbers: IndexMap<Number, Var>,
    /// The sizes that have become variables.
    extents: Vec<(i32, Dim)>,
}

impl General<'_> {
    /// All sizes, before any constant.
    fn dims(&mut self) {
        let fixed = fixed(self.old);
        for (k, def) in self.old.dims.iter().enumerate() {
            let dim = Dim::from_u32(k as u32);
            let def = match *def {
                DimDef::Const(n) if n > LONGEST_SHORT && !fixed.contains(&dim) => {
                    match i32::try_from(n) {
                        Ok(short) => {
                            let var = self.number(Number::Extent(short));
                            self.new.sizes.insert(dim, Size::of(n));
                            self.extents.push((short, dim));
                            DimDef::Value(self.new.get(var))
                        }
                        Err(_) => DimDef::Const(n),
                    }
                }
                DimDef::Value(e) => DimDef::Value(self.expr(e)),
                DimDef::Number(e) => DimDef::Number(self.expr(e)),
                ref other => other.clone(),
            };
            self.new.dims.insert(def);
        }
    }

    /// An expression of a statement.
    fn root(&mut self, e: Expr) -> Expr {
        match self.old.exprs.as_const(e) {
            Some(value) if self.constants.contains(&e) => {
                self.of_extents(value).unwrap_or_else(|| {
                    let var = self.number(Number::Constant(value));
                    self.new.get(var)
                })
            }
            _ => self.expr(e),
        }
    }

    fn expr(&mut self, e: Expr) -> Expr {
        if let Some(&done) = self.done.get(&e) {
            return done;
        }
        let def = match self.old.exprs[e].clone() {
            ExprDef::Const(value) => {
                let made = self.of_extents(value);
                let made = made.unwrap_or_else(|| self.new.exprs.constant(value));
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
        // What is turned round the end.
        if let ExprDef::Binary(BinaryOp::Mod, moved, extent) = self.old.exprs[e]
            && let ExprDef::Binary(BinaryOp::Add, from, by) = self.old.exprs[moved]
            && let Some(by) = self.old.exprs.as_const(by)
            && let Some(n) = self.old.exprs.as_const(extent)
            && let Some(dim) = self.dim_of(n.as_i128() as i32)
        {
            let from = self.expr(from);
            let by = match self.is_given(buffer, axis, outside) {
                true => self.place(buffer, axis, by),
                false => self.turn(by.as_i128() as i32, n.as_i128() as i32),
            };
            let moved = ExprDef::Binary(BinaryOp::Add, from, by);
            let moved = self.new.exprs.add_as_is(moved);
            let extent = self.new.extent(dim);
            let around = ExprDef::Binary(BinaryOp::Mod, moved, extent);
            return self.new.exprs.add_as_is(around);
        }
        if !self.is_given(buffer, axis, outside) {
            return self.expr(e);
        }
        match self.old.exprs[e] {
            ExprDef::Const(n) => self.place(buffer, axis, n),
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

    /// Whether the places at which an axis is read are variables.
    fn is_given(&self, buffer: Buffer, axis: usize, outside: Outside) -> bool {
        let def = &self.old.buffers[buffer];
        let n = self.old.const_dim(def.shape[axis]);
        self.places == Places::Given
            && n.is_some_and(|n| n > LONGEST_SHORT)
            && matches!(def.role, Role::Input(_))
            && outside == Outside::Never
    }

    /// By how much an axis of `n` elements is turned; by little, in either direction, it is known.
    fn turn(&mut self, by: i32, n: i32) -> Expr {
        let short = LONGEST_SHORT as i32;
        let by = if n - by <= short { by - n } else { by };
        if by.abs() <= short {
            return self.new.exprs.i32(by);
        }
        let var = self.number(Number::Turn(by));
        self.new.get(var)
    }

    /// The size that a number equals, if it has become a variable.
    fn dim_of(&self, n: i32) -> Option<Dim> {
        let mut all = self.extents.iter();
        all.find(|(extent, _)| *extent == n).map(|&(_, dim)| dim)
    }

    /// A constant equal to a size is computed from it; so is an integer that is a negated size, or a size minus a few, such
    /// as the last index along an axis.
    fn of_extents(&mut self, value: Scalar) -> Option<Expr> {
        let n = match value.ty() {
            ScalarType::I32 => i32::try_from(value.as_i128()).ok(),
            ty if ty.is_float() => {
                let n = value.as_f64();
                (n.fract() == 0.0 && n.abs() < 1e9).then_some(n as i32)
            }
            _ => None,
        }?;
        if let Some(dim) = self.dim_of(n)
            && eval::cast(Scalar::i32(n), value.ty()) == value
        {
            let n = self.new.extent(dim);
            return Some(self.new.exprs.cast(n, value.ty()));
        }
        if value.ty() != ScalarType::I32 {
            return None;
        }
        if let Some(dim) = self.dim_of(n.wrapping_neg()) {
            let n = self.new.extent(dim);
            let minus = self.new.exprs.i32(-1);
            let below = ExprDef::Binary(BinaryOp::Mul, n, minus);
            return Some(self.new.exprs.add_as_is(below));
        }
        let few = |&&(extent, _): &&(i32, Dim)| {
            n > LONGEST_SHORT as i32 && u64::from(extent.abs_diff(n)) <= LONGEST_SHORT
        };
        let (extent, dim) = self.extents.iter().find(few).copied()?;
        let less = self.new.exprs.i32(n - extent);
        let extent = self.new.extent(dim);
        let last = ExprDef::Binary(BinaryOp::Add, extent, less);
        Some(self.new.exprs.add_as_is(last))
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
            .or_insert_with(|| vars.push(number.value().ty()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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

    fn rolled(by: i32, n: i32, places: Places) -> (Program, Vec<Scalar>) {
        let text = format!(
            r#"
            in b0 "x": f64[{n}]
            tmp b1 "y": f64[{n}]
            for [{n}] {{ b1[i0] = add(b0[mod(add(i0, i32({by})), i32({n}))], b0[i0]) }}
            result b1
        "#
        );
        let (program, numbers) = generalised(&parse(&text).unwrap(), places);
        verify(&program).unwrap();
        (program, numbers)
    }

    fn are_one(a: &Program, b: &Program) -> bool {
        let structure = |p: &Program| Structure::of(Arc::new(p.clone()));
        structure(a) == structure(b)
    }

    #[test]
    fn what_is_turned_by_another_number_is_one() {
        let [(a, first), (b, second)] = [3, 77].map(|by| rolled(by, 80, Places::Given));
        assert!(are_one(&a, &b), "{a}{b}");
        assert_eq!([first, second], [3, 77].map(|n| [80, n].map(Scalar::i32)));
    }

    #[test]
    fn a_turn_by_little_is_known() {
        let [(a, first), (b, second)] = [80, 90].map(|n| rolled(n - 1, n, Places::Known));
        assert!(are_one(&a, &b), "{a}{b}");
        assert_eq!([first, second], [80, 90].map(|n| vec![Scalar::i32(n)]));
        let [(a, _), (b, _)] = [20, 30].map(|by| rolled(by, 80, Places::Known));
        assert!(are_one(&a, &b), "{a}{b}");
        let [(a, _), (b, _)] = [1, 79].map(|by| rolled(by, 80, Places::Known));
        assert!(!are_one(&a, &b), "{a}{b}");
    }

    #[test]
    fn what_differs_in_extents_and_places_is_one() {
        let [(a, first), (b, second)] =
            [(9, 3), (19, 8)].map(|(k, from)| generalised(&window(k, from), Places::Given));
        verify(&a).unwrap();
        assert!(are_one(&a, &b), "{a}{b}");
        assert_eq!([first, second].map(|v| v.len()), [3, 3]);
        // What is as long as an input is another program, and so is what is of another size.
        for k in [80, 40] {
            let (c, _) = generalised(&window(k, 8), Places::Given);
            assert!(!are_one(&a, &c));
        }
    }

    #[test]
    fn numbers_beside_tensors_are_variables_and_exponents_are_not() {
        let by = |factor: f64, exponent: f64| {
            let text = format!(
                r#"
                in b0 "x": f64[80]
                tmp b1 "factor": f64[]
                tmp b2 "exponent": f64[]
                tmp b3 "y": f64[80]
                for [] {{ b1[] = f64({factor:?}) }}
                for [] {{ b2[] = f64({exponent:?}) }}
                for [80] {{ b3[i0] = pow(mul(b0[i0], b1[]), b2[]) }}
                result b3
            "#
            );
            generalised(&parse(&text).unwrap(), Places::Known)
        };
        let [(a, first), (b, _)] = [3.5, 7.0].map(|factor| by(factor, 3.0));
        verify(&a).unwrap();
        assert!(are_one(&a, &b), "{a}{b}");
        assert_eq!(
            first,
            [Scalar::i32(80), Scalar::float(ScalarType::F64, 3.5)]
        );
        assert!(!are_one(&a, &by(3.5, 4.0).0), "another exponent");
        assert!(!are_one(&a, &by(2.0, 3.0).0), "a factor that is simple");
    }

    #[test]
    fn extents_that_sums_are_solved_for_are_known() {
        let text = r#"
            in b0 "x": f64[6, 40]
            tmp b1 "y": f64[240]
            for [6, 40] { b1[add(mul(i0, i32(40)), i1)] add init = b0[i0, i1] }
            result b1
        "#;
        let (_, numbers) = generalised(&parse(text).unwrap(), Places::Known);
        assert!(numbers.is_empty());
    }
}
