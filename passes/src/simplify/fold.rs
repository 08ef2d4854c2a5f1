//! Constant folding.
//!
//! `v2 = add v0, v1` with `v0 = const 2`, `v1 = const 3` becomes `v2 = const 5`; an `if` whose
//! condition is known becomes the branch taken. The values are those of `aerogel_ir::eval`, which
//! the interpreter uses too, so that folding and running agree. Functions that the targets compute
//! by polynomials are left alone: their polynomials fold once they are inlined.

use aerogel_ir::{Function, Op, Rewrite, Type, eval, rewrite};

use crate::PassCx;

pub(crate) fn run(func: &mut Function, _: &PassCx<'_>) -> bool {
    rewrite(func, |cursor, inst| {
        let func = &*cursor.func;
        let c = |v| func.as_const(v);
        match &func[inst] {
            Op::Select {
                cond,
                on_true,
                on_false,
            } => match c(*cond) {
                Some(k) => Rewrite::Replace(vec![if k.as_bool() { *on_true } else { *on_false }]),
                None => Rewrite::Keep,
            },
            Op::If {
                cond,
                then,
                otherwise,
            } => {
                let taken = c(*cond).map(|k| if k.as_bool() { *then } else { *otherwise });
                match taken {
                    Some(region) if func.yielded(region).is_some() => Rewrite::Splice(region),
                    _ => Rewrite::Keep,
                }
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
                if empty {
                    Rewrite::Replace(init.clone())
                } else {
                    Rewrite::Keep
                }
            }
            op if op.is_elementwise() && is_exact(func, op) => {
                let mut operands = Some(Vec::new());
                op.operands(|v| match (func.as_const(v), &mut operands) {
                    (Some(c), Some(all)) => all.push(c),
                    _ => operands = None,
                });
                let to = func.insts[inst].results.first().map(|&r| func.ty(r));
                let folded = operands
                    .zip(to.and_then(Type::scalar))
                    .and_then(|(operands, to)| eval::pure(op, &operands, to));
                match folded {
                    Some(value) => Rewrite::Replace(vec![cursor.constant(value)]),
                    None => Rewrite::Keep,
                }
            }
            _ => Rewrite::Keep,
        }
    })
}

/// Whether every target computes exactly what `eval` does.
fn is_exact(func: &Function, op: &Op) -> bool {
    match *op {
        Op::Unary { op, .. } => op.is_exact(),
        Op::Binary { op, lhs, .. } => op.is_exact(func.elem(lhs)),
        _ => true,
    }
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
