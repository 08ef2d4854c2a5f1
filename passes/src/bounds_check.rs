//! Debug mode: indices, integer divisors and exponents are checked before use.
//!
//! ```text
//! v1 = field_at @x, [i]    ==>    assert 0 <= i < 8, bounds, "index {} is out of ..."
//!                                 v1 = field_at @x, [i]
//! ```

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    AssertKind, BinaryOp, Builder, CompareOp, Function, Op, Rewrite, Type, Value, rewrite,
};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    rewrite(func, |cursor, inst| {
        let mut op = cursor.func[inst].clone();
        match &mut op {
            Op::FieldAt { field, indices } => {
                let data = &cx.env.fields[*field];
                let offset = |k: usize| i64::from(data.offset.get(k).copied().unwrap_or(0));
                let shape = cx.env.shape(*field).into_iter().enumerate();
                let bounds: Vec<Bound> = shape
                    .map(|(k, extent)| Bound::Known(offset(k), offset(k) + extent as i64))
                    .collect();
                check(cursor, &format!("field `{}`", data.name), indices, &bounds);
            }
            Op::ArrayAt { array, indices } => {
                let name = cursor.func.params[array.as_u32() as usize].name.clone();
                let bounds: Vec<Bound> = (0..indices.len() as u32)
                    .map(|axis| {
                        let array = *array;
                        let shape = Op::ArrayShape { array, axis };
                        Bound::Extent(cursor.value(shape, Type::I32))
                    })
                    .collect();
                check(cursor, &format!("array `{name}`"), indices, &bounds);
            }
            Op::ElemRef { base, index } => {
                let shape = cursor.func.ty(*base).pointee().expect("a storage").shape();
                check_tensor(cursor, index, &shape);
            }
            Op::TensorGet { tensor, index } | Op::TensorSet { tensor, index, .. } => {
                let shape = cursor.func.ty(*tensor).shape();
                check_tensor(cursor, index, &shape);
            }
            &mut Op::Binary { op, lhs, rhs } => check_arithmetic(cursor, op, lhs, rhs),
            _ => {}
        }
        // What was checked is what is accessed: the widened indices.
        cursor.func.insts[inst].op = op;
        Rewrite::Keep
    })
}

/// What an index must not be less than, and what it must be less than.
enum Bound {
    Known(i64, i64),
    /// From zero up to an `i32` known at run time.
    Extent(Value),
}

fn check_tensor(cursor: &mut Builder<'_>, index: &mut [Value], shape: &[u32]) {
    if index.iter().all(|&i| cursor.func.as_const(i).is_some()) {
        return;
    }
    let bounds: Vec<Bound> = shape
        .iter()
        .map(|&e| Bound::Known(0, i64::from(e)))
        .collect();
    check(cursor, "tensor", index, &bounds);
}

/// Asserts that indices lie inside bounds. They become `i64`, which holds every index and every
/// bound: code that computes addresses then cannot see other indices than those that were checked.
fn check(cursor: &mut Builder<'_>, what: &str, indices: &mut [Value], bounds: &[Bound]) {
    let mut all: Option<Value> = None;
    let mut args = indices.to_vec();
    let mut shape = Vec::new();
    for (index, bound) in indices.iter_mut().zip(bounds) {
        *index = widen(cursor, *index);
        let (lo, hi) = match *bound {
            Bound::Known(lo, hi) => {
                shape.push(Ok((lo, hi)));
                (lo, cursor.constant(Scalar::int(ScalarType::I64, hi.into())))
            }
            Bound::Extent(extent) => {
                shape.push(Err("{}"));
                args.push(extent);
                (0, widen(cursor, extent))
            }
        };
        let lo = cursor.constant(Scalar::int(ScalarType::I64, lo.into()));
        for (op, rhs) in [(CompareOp::Ge, lo), (CompareOp::Lt, hi)] {
            let lhs = *index;
            let ok = cursor.value(Op::Compare { op, lhs, rhs }, Type::BOOL);
            let both = |lhs| Op::Binary {
                op: BinaryOp::And,
                lhs,
                rhs: ok,
            };
            all = Some(all.map_or(ok, |all| cursor.value(both(all), Type::BOOL)));
        }
    }
    let Some(cond) = all else { return };
    let holes = vec!["{}"; indices.len()].join(", ");
    let template = format!(
        "index ({holes}) is out of bounds for {what} {}",
        valid_indices(&shape)
    );
    let assert = Op::Assert {
        cond,
        kind: AssertKind::Bounds,
        template,
        args,
    };
    cursor.inst(assert, &[]);
}

/// The valid indices as text for a message: a shape, or ranges if one of them does not begin at 0. A size that is
/// known only at run time is a placeholder.
pub(crate) fn valid_indices(axes: &[Result<(i64, i64), &str>]) -> String {
    let has_offset = axes
        .iter()
        .any(|axis| matches!(axis, Ok((lo, _)) if *lo != 0));
    let axes: Vec<String> = axes
        .iter()
        .map(|axis| match axis {
            Ok((lo, hi)) if has_offset => format!("{lo} to {}", hi - 1),
            Ok((_, hi)) => hi.to_string(),
            Err(hole) => (*hole).to_owned(),
        })
        .collect();
    let what = if has_offset {
        "with indices"
    } else {
        "of shape"
    };
    format!("{what} ({})", axes.join(", "))
}

fn widen(cursor: &mut Builder<'_>, index: Value) -> Value {
    if let Some(c) = cursor.func.as_const(index) {
        return cursor.constant(Scalar::int(ScalarType::I64, c.as_i128()));
    }
    if cursor.func.ty(index) == Type::I64 {
        return index;
    }
    cursor.value(Op::Cast { x: index }, Type::I64)
}

fn check_arithmetic(cursor: &mut Builder<'_>, op: BinaryOp, lhs: Value, rhs: Value) {
    let elem = cursor.func.elem(rhs);
    use BinaryOp::*;
    let (kind, compare) = match op {
        Div | FloorDiv if elem.is_int() => (AssertKind::DivisionByZero, CompareOp::Ne),
        Rem | Mod if elem.is_int() => (AssertKind::ModuloByZero, CompareOp::Ne),
        Pow if elem.is_signed() => (AssertKind::NegativePower, CompareOp::Ge),
        _ => return,
    };
    for (x, y) in elements(cursor, lhs).into_iter().zip(elements(cursor, rhs)) {
        let good = |c: Scalar| {
            if compare == CompareOp::Ne {
                !c.is_zero()
            } else {
                c.as_i128() >= 0
            }
        };
        if cursor.func.as_const(y).is_some_and(good) {
            continue;
        }
        let zero = cursor.constant(Scalar::zero(elem));
        let cond = cursor.value(
            Op::Compare {
                op: compare,
                lhs: y,
                rhs: zero,
            },
            Type::BOOL,
        );
        let symbol = match op {
            FloorDiv | Div => "//",
            Pow => "**",
            _ => "%",
        };
        let template = match kind {
            AssertKind::NegativePower => {
                format!("negative exponent of an integer power: {{}} {symbol} {{}}")
            }
            _ => format!("integer division by zero: {{}} {symbol} {{}}"),
        };
        cursor.inst(
            Op::Assert {
                cond,
                kind,
                template,
                args: vec![x, y],
            },
            &[],
        );
    }
}

/// The scalars of a value.
fn elements(cursor: &mut Builder<'_>, value: Value) -> Vec<Value> {
    let ty = cursor.func.ty(value);
    if !ty.is_tensor() {
        return vec![value];
    }
    if let Some(Op::TensorMake { elems }) = cursor.func.def_op(value) {
        return elems.clone();
    }
    let elem = Type::Scalar(ty.elem().expect("a tensor has elements"));
    let columns = if let Type::Mat(_, m, _) = ty {
        Some(m)
    } else {
        None
    };
    (0..ty.n_elems())
        .map(|k| {
            let index = columns.map_or(vec![k], |m| vec![k / m, k % m]);
            let index = index
                .into_iter()
                .map(|i| cursor.constant(Scalar::i32(i as i32)))
                .collect();
            cursor.value(
                Op::TensorGet {
                    tensor: value,
                    index,
                },
                elem,
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn fields_and_arrays() {
        check_pass!("bounds_check", "
            tree0 { dense i:8 { place x: f32 } }
            field @x: f32 = tree0 [S2] offset [-2]
            kernel @k(i: i32, a: array<f32, 1>) {
                v0: i32 = arg a0
                v1: ref<f32> = field_at @x, [v0]
                v2: ref<f32> = array_at a1, [v0]
                v3: f32 = load v2
                store v1, v3
                yield []
            }", @r#"
            kernel @k(i: i32, a: array<f32, 1>) {
                v0: i32 = arg a0
                v1: i64 = cast v0
                v2: i64 = const 6
                v3: i64 = const -2
                v4: u1 = ge v1, v3
                v5: u1 = lt v1, v2
                v6: u1 = and v4, v5
                assert v6, bounds, "index ({}) is out of bounds for field `x` with indices (-2 to 5)", [v0]
                v7: ref<f32> = field_at @x, [v1]
                v8: i32 = array_shape a1, 0
                v9: i64 = cast v0
                v10: i64 = cast v8
                v11: i64 = const 0
                v12: u1 = ge v9, v11
                v13: u1 = lt v9, v10
                v14: u1 = and v12, v13
                assert v14, bounds, "index ({}) is out of bounds for array `a` of shape ({})", [v0, v8]
                v15: ref<f32> = array_at a1, [v9]
                v16: f32 = load v15
                store v7, v16
                yield []
            }
            "#);
    }

    #[test]
    fn divisors() {
        check_pass!("bounds_check", "
            func @f(v0: i32, v1: i32) -> i32, i32 {
                v2: i32 = floordiv v0, v1
                v3: i32 = const 3
                v4: i32 = mod v0, v3
                yield [v2, v4]
            }", @r#"
            func @f(v0: i32, v1: i32) -> i32, i32 {
                v2: i32 = const 0
                v3: u1 = ne v1, v2
                assert v3, division_by_zero, "integer division by zero: {} // {}", [v0, v1]
                v4: i32 = floordiv v0, v1
                v5: i32 = const 3
                v6: i32 = mod v0, v5
                yield [v4, v6]
            }
            "#);
    }

    #[test]
    fn indices_that_wrapped_and_bounds_beyond_them() {
        check_pass!("bounds_check", "
            tree0 { dense i:8 { place x: f32 } }
            field @x: f32 = tree0 [S2] offset [-9]
            kernel @k(i: i32) {
                v0: i32 = arg a0
                v1: i32 = const 2147483647
                v2: i32 = add v0, v1
                v3: u32 = cast v2
                v4: ref<f32> = field_at @x, [v2]
                v5: ref<f32> = field_at @x, [v3]
                v6: f32 = load v4
                store v5, v6
                yield []
            }", @r#"
            kernel @k(i: i32) {
                v0: i32 = arg a0
                v1: i32 = const 2147483647
                v2: i32 = add v0, v1
                v3: u32 = cast v2
                v4: i64 = cast v2
                v5: i64 = const -1
                v6: i64 = const -9
                v7: u1 = ge v4, v6
                v8: u1 = lt v4, v5
                v9: u1 = and v7, v8
                assert v9, bounds, "index ({}) is out of bounds for field `x` with indices (-9 to -2)", [v2]
                v10: ref<f32> = field_at @x, [v4]
                v11: i64 = cast v3
                v12: i64 = const -1
                v13: i64 = const -9
                v14: u1 = ge v11, v13
                v15: u1 = lt v11, v12
                v16: u1 = and v14, v15
                assert v16, bounds, "index ({}) is out of bounds for field `x` with indices (-9 to -2)", [v3]
                v17: ref<f32> = field_at @x, [v11]
                v18: f32 = load v10
                store v17, v18
                yield []
            }
            "#);
    }
}
