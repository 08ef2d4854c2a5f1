//! Debug mode: indices, integer divisors and exponents are checked before use.
//!
//! ```text
//! v1 = field_at @x, [i]    ==>    assert 0 <= i < 8, bounds, "index {} is out of ..."
//!                                 v1 = field_at @x, [i]
//! ```

use aerogel_base::Scalar;
use aerogel_ir::{
    AssertKind, BinaryOp, CompareOp, Cursor, Function, Op, Rewrite, Type, Value, rewrite,
};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    rewrite(func, |cursor, inst| {
        match cursor.func[inst].clone() {
            Op::FieldAt { field, indices } => {
                let data = &cx.env.fields[field];
                let offset = |k: usize| i128::from(data.offset.get(k).copied().unwrap_or(0));
                let bounds: Vec<(Bound, Bound)> = cx
                    .env
                    .shape(field)
                    .into_iter()
                    .enumerate()
                    .map(|(k, extent)| {
                        (
                            Bound::Known(offset(k)),
                            Bound::Known(offset(k) + i128::from(extent)),
                        )
                    })
                    .collect();
                check(cursor, &format!("field `{}`", data.name), &indices, &bounds);
            }
            Op::ArrayAt { array, indices } => {
                let name = cursor.func.params[array.as_u32() as usize].name.clone();
                let bounds: Vec<(Bound, Bound)> = (0..indices.len())
                    .map(|axis| {
                        let shape = cursor.insert(
                            Op::ArrayShape {
                                array,
                                axis: axis as u32,
                            },
                            Type::I32,
                        );
                        (Bound::Known(0), Bound::Value(shape))
                    })
                    .collect();
                check(cursor, &format!("array `{name}`"), &indices, &bounds);
            }
            Op::ElemRef { base, index } => {
                let shape = cursor.func.ty(base).pointee().expect("a storage").shape();
                check_tensor(cursor, &index, &shape);
            }
            Op::TensorGet { tensor, index } | Op::TensorSet { tensor, index, .. } => {
                let shape = cursor.func.ty(tensor).shape();
                check_tensor(cursor, &index, &shape);
            }
            Op::Binary { op, lhs, rhs } => check_arithmetic(cursor, op, lhs, rhs),
            _ => {}
        }
        Rewrite::Keep
    })
}

enum Bound {
    Known(i128),
    Value(Value),
}

impl Bound {
    fn value(&self, cursor: &mut Cursor<'_>, like: Value) -> Value {
        let elem = cursor.func.elem(like);
        match *self {
            Bound::Known(v) => cursor.constant(Scalar::int(elem, v)),
            Bound::Value(v) if cursor.func.elem(v) == elem => v,
            Bound::Value(x) => cursor.insert(Op::Cast { x }, elem.into()),
        }
    }
}

fn check_tensor(cursor: &mut Cursor<'_>, index: &[Value], shape: &[u32]) {
    if index.iter().all(|&i| cursor.func.as_const(i).is_some()) {
        return;
    }
    let bounds: Vec<(Bound, Bound)> = shape
        .iter()
        .map(|&e| (Bound::Known(0), Bound::Known(i128::from(e))))
        .collect();
    check(cursor, "tensor", index, &bounds);
}

fn check(cursor: &mut Cursor<'_>, what: &str, indices: &[Value], bounds: &[(Bound, Bound)]) {
    let mut all: Option<Value> = None;
    let mut args = indices.to_vec();
    let mut shape = Vec::new();
    for (&index, (lo, hi)) in indices.iter().zip(bounds) {
        // A bound that the index's type cannot hold is never reached.
        let elem = cursor.func.elem(index);
        let fits =
            |b: &Bound| !matches!(b, Bound::Known(v) if Scalar::int(elem, *v).as_i128() != *v);
        for (bound, op) in [(lo, CompareOp::Ge), (hi, CompareOp::Lt)] {
            if !fits(bound) || elem == aerogel_base::ScalarType::U1 {
                continue;
            }
            let rhs = bound.value(cursor, index);
            let ok = cursor.insert(
                Op::Compare {
                    op,
                    lhs: index,
                    rhs,
                },
                Type::BOOL,
            );
            all = Some(all.map_or(ok, |all| {
                cursor.insert(
                    Op::Binary {
                        op: BinaryOp::And,
                        lhs: all,
                        rhs: ok,
                    },
                    Type::BOOL,
                )
            }));
        }
        shape.push(match (lo, hi) {
            (Bound::Known(0), Bound::Known(hi)) => hi.to_string(),
            (Bound::Known(lo), Bound::Known(hi)) => format!("{lo}..{hi}"),
            (_, hi) => {
                args.push(hi.value(cursor, index));
                "{}".to_owned()
            }
        });
    }
    let Some(cond) = all else { return };
    let holes = vec!["{}"; indices.len()].join(", ");
    let template = format!(
        "index ({holes}) is out of bounds for {what} of shape ({})",
        shape.join(", ")
    );
    cursor.insert_inst(
        Op::Assert {
            cond,
            kind: AssertKind::Bounds,
            template,
            args,
        },
        &[],
    );
}

fn check_arithmetic(cursor: &mut Cursor<'_>, op: BinaryOp, lhs: Value, rhs: Value) {
    let elem = cursor.func.elem(rhs);
    use BinaryOp::*;
    let (kind, compare) = match op {
        Div | Rem | FloorDiv | Mod if elem.is_int() => (AssertKind::DivisionByZero, CompareOp::Ne),
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
        let cond = cursor.insert(
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
        cursor.insert_inst(
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
fn elements(cursor: &mut Cursor<'_>, value: Value) -> Vec<Value> {
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
            cursor.insert(
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
                v1: i32 = const -2
                v2: u1 = ge v0, v1
                v3: i32 = const 6
                v4: u1 = lt v0, v3
                v5: u1 = and v2, v4
                assert v5, bounds, "index ({}) is out of bounds for field `x` of shape (-2..6)", [v0]
                v6: ref<f32> = field_at @x, [v0]
                v7: i32 = array_shape a1, 0
                v8: i32 = const 0
                v9: u1 = ge v0, v8
                v10: u1 = lt v0, v7
                v11: u1 = and v9, v10
                assert v11, bounds, "index ({}) is out of bounds for array `a` of shape ({})", [v0, v7]
                v12: ref<f32> = array_at a1, [v0]
                v13: f32 = load v12
                store v6, v13
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
}
