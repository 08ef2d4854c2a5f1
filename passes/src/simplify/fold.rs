//! Constant folding.
//!
//! `v2 = add v0, v1` with `v0 = const 2`, `v1 = const 3` becomes `v2 = const 5`; an `if` whose
//! condition is known becomes the branch taken. The values are those of `aerogel_ir::eval`, which
//! the interpreter uses too, so that folding and running agree. Functions that the targets compute
//! by polynomials are left alone: their polynomials fold once they are inlined.

use aerogel_base::Scalar;
use aerogel_ir::{Function, Op, Rewrite, UnaryOp, eval, rewrite};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, _: &PassCx<'_>) -> bool {
    rewrite(func, |cursor, inst| {
        let func = &*cursor.func;
        let c = |v| func.as_const(v);
        let result_elem = || {
            func.insts[inst]
                .results
                .first()
                .and_then(|&r| func.ty(r).scalar())
        };
        let folded: Option<Scalar> = match &func[inst] {
            Op::Unary { op, x } if is_exact(*op) => c(*x).map(|x| eval::unary(*op, x)),
            Op::Binary { op, lhs, rhs } if is_exact_binary(*op) || func.elem(*lhs).is_int() => {
                c(*lhs).zip(c(*rhs)).map(|(l, r)| eval::binary(*op, l, r))
            }
            Op::Compare { op, lhs, rhs } => c(*lhs)
                .zip(c(*rhs))
                .map(|(l, r)| Scalar::bool(eval::compare(*op, l, r))),
            Op::Fma { a, b, c: d } => c(*a)
                .zip(c(*b))
                .zip(c(*d))
                .map(|((a, b), d)| eval::fma(a, b, d)),
            Op::Cast { x } => c(*x).zip(result_elem()).map(|(x, to)| eval::cast(x, to)),
            Op::Bitcast { x } => c(*x).zip(result_elem()).map(|(x, to)| eval::bitcast(x, to)),
            Op::Select {
                cond,
                on_true,
                on_false,
            } => {
                return match c(*cond) {
                    Some(k) => {
                        Rewrite::Replace(vec![if k.as_bool() { *on_true } else { *on_false }])
                    }
                    None => Rewrite::Keep,
                };
            }
            Op::If {
                cond,
                then,
                otherwise,
            } => {
                let taken = c(*cond).map(|k| if k.as_bool() { *then } else { *otherwise });
                return match taken {
                    Some(region) if func.yielded(region).is_some() => Rewrite::Splice(region),
                    _ => Rewrite::Keep,
                };
            }
            Op::For {
                lo, hi, step, init, ..
            } => {
                let empty = c(*lo)
                    .zip(c(*hi))
                    .zip(c(*step))
                    .is_some_and(|((lo, hi), step)| {
                        if step.as_i128() > 0 {
                            lo.as_i128() >= hi.as_i128()
                        } else {
                            lo.as_i128() <= hi.as_i128()
                        }
                    });
                return if empty {
                    Rewrite::Replace(init.clone())
                } else {
                    Rewrite::Keep
                };
            }
            _ => None,
        };
        match folded {
            Some(value) => Rewrite::Replace(vec![cursor.constant(value)]),
            None => Rewrite::Keep,
        }
    })
}

/// Whether every target computes exactly what `eval` does.
fn is_exact(op: UnaryOp) -> bool {
    use UnaryOp::*;
    match op {
        Neg | Not | Abs | Sign | Sqrt | Floor | Ceil | Round | Trunc | Popcnt | Clz => true,
        Rsqrt | Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Tanh | Exp | Exp2 | Log
        | Log2 => false,
    }
}

fn is_exact_binary(op: aerogel_ir::BinaryOp) -> bool {
    !matches!(op, aerogel_ir::BinaryOp::Pow | aerogel_ir::BinaryOp::Atan2)
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn arithmetic() {
        check_pass!("fold", "
            func @f() -> i32, u1, u8 {
                v0: i32 = const 2
                v1: i32 = const -3
                v2: i32 = floordiv v1, v0
                v3: u1 = lt v2, v1
                v4: f32 = const 300.7
                v5: u8 = cast v4
                yield [v2, v3, v5]
            }", @"
            func @f() -> i32, u1, u8 {
                v0: i32 = const 2
                v1: i32 = const -3
                v2: i32 = const -2
                v3: u1 = const 0
                v4: f32 = const 300.7
                v5: u8 = const 44
                yield [v2, v3, v5]
            }
            ");
    }

    #[test]
    fn known_branches() {
        check_pass!("fold", "
            func @f(v0: i32) -> i32 {
                v1: u1 = const 1
                v2: i32 = if v1 {
                    v3: i32 = add v0, v0
                    yield [v3]
                } {
                    yield [v0]
                }
                v4: i32 = mul v2, v2
                yield [v4]
            }", @"
            func @f(v0: i32) -> i32 {
                v1: u1 = const 1
                v2: i32 = add v0, v0
                v3: i32 = mul v2, v2
                yield [v3]
            }
            ");
    }
}
