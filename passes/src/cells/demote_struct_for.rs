//! Loops over the cells of a dense field become nests over its layout's own axes.
//!
//! ```text
//! parallel_cells tree0.S2 (i, j) { body }     ; dense j:8 over i:4
//!     ==>   parallel [0, 0], [8, 4] (v0, v1) { i = v1  j = v0  body }
//! ```
//! The axes stand in the order in which the cells lie in memory, so that the innermost loop walks
//! over neighbours. Axes that several levels divide become one loop for each level: in blocks of 4
//! along `i`, `i = v0 * 4 + v1`. Loops over merged nodes follow blocks
//! only if they are serial.

use aerogel_base::Scalar;
use aerogel_ir::{BinaryOp, Function, Inst, LoopAttrs, Op, Type, Value, replace_values};

use aerogel_snode::LevelAxis;

use crate::PassCx;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    those(func, cx, &|_| true)
}

/// The same for loops that are wanted.
pub(crate) fn those(
    func: &mut Function,
    cx: &PassCx<'_>,
    wanted: &dyn Fn(LoopAttrs) -> bool,
) -> bool {
    let mut changed = false;
    let mut out = Vec::new();
    let body = func.body;
    for inst in std::mem::take(&mut func.regions[body].insts) {
        if let Op::ParallelCells { node, attrs, .. } = func[inst]
            && wanted(attrs)
            && !cx.env.trees[node.tree].is_below_sparse(node.node)
        {
            demote(func, cx, inst, &mut out);
            changed = true;
        }
        out.push(inst);
    }
    func.regions[body].insts = out;
    changed
}

/// The same for one loop, of whatever field: over all cells that there may be.
pub(crate) fn one(func: &mut Function, cx: &PassCx<'_>, inst: Inst) {
    let mut out = Vec::new();
    let body = func.body;
    for other in std::mem::take(&mut func.regions[body].insts) {
        if other == inst {
            demote(func, cx, inst, &mut out);
        }
        out.push(other);
    }
    func.regions[body].insts = out;
}

/// Turns `inst` into a nest; its bounds go to `out`.
fn demote(func: &mut Function, cx: &PassCx<'_>, inst: Inst, out: &mut Vec<Inst>) {
    let Op::ParallelCells { node, attrs, body } = func[inst] else {
        unreachable!("the caller looked")
    };
    let span = func.insts[inst].span;
    let constant = |func: &mut Function, list: &mut Vec<Inst>, value: i32| {
        let inst = func.new_inst(
            Op::Const {
                value: Scalar::i32(value),
            },
            &[Type::I32],
            span,
        );
        list.push(inst);
        func.insts[inst].results[0]
    };
    let axes = cx.env.trees[node.tree].loop_axes(node.node, attrs.serial);

    let indices = std::mem::take(&mut func.regions[body].params);
    let (mut lo, mut hi) = (Vec::new(), Vec::new());
    let mut sums: Vec<Option<Value>> = vec![None; indices.len()];
    let mut head = Vec::new();
    for LevelAxis {
        index,
        divisor,
        extent,
        ..
    } in axes
    {
        lo.push(constant(func, out, 0));
        hi.push(constant(
            func,
            out,
            i32::try_from(extent).expect("the verifier checked that indices fit an i32"),
        ));
        let mut part = func.add_param(body, Type::I32);
        if divisor != 1 {
            let rhs = constant(func, &mut head, divisor as i32);
            part = binary(func, &mut head, BinaryOp::Mul, part, rhs);
        }
        sums[index] = Some(match sums[index] {
            None => part,
            Some(sum) => binary(func, &mut head, BinaryOp::Add, sum, part),
        });
    }
    // A field without axes has one cell, which is visited once.
    if lo.is_empty() {
        lo.push(constant(func, out, 0));
        hi.push(constant(func, out, 1));
        func.add_param(body, Type::I32);
    }
    func.insts[inst].op = Op::Parallel {
        lo,
        hi,
        attrs,
        body,
    };
    let pairs = indices.into_iter().zip(sums);
    let pairs: Vec<_> = pairs.filter_map(|(old, sum)| Some((old, sum?))).collect();
    replace_values(func, body, &pairs);
    head.append(&mut func.regions[body].insts);
    func.regions[body].insts = head;
}

fn binary(
    func: &mut Function,
    list: &mut Vec<Inst>,
    op: BinaryOp,
    lhs: Value,
    rhs: Value,
) -> Value {
    let inst = func.new_inst(
        Op::Binary { op, lhs, rhs },
        &[Type::I32],
        aerogel_base::Span::NONE,
    );
    list.push(inst);
    func.insts[inst].results[0]
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn own_axes_in_memory_order() {
        check_pass!("demote_struct_for", "
            tree0 { dense j:8 { dense i:4 { place x: i32 } } }
            field @x: i32 = tree0 [S3] offset [-1, 0]
            kernel @k() {
                parallel_cells tree0.S2 (v0: i32, v1: i32) {
                    v2: ref<i32> = field_at @x, [v0, v1]
                    store v2, v0
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 8
                v2: i32 = const 0
                v3: i32 = const 4
                parallel [v0, v2], [v1, v3] (v4: i32, v5: i32) {
                    v6: ref<i32> = field_at @x, [v5, v4]
                    store v6, v5
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn blocks() {
        check_pass!("demote_struct_for", "
            tree0 { dense i:2 j:2 { dense i:4 j:4 { place x: i32 } } }
            field @x: i32 = tree0 [S3]
            kernel @k() {
                parallel_cells tree0.S2 serial (v0: i32, v1: i32) {
                    v2: ref<i32> = field_at @x, [v0, v1]
                    store v2, v1
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 0
                v1: i32 = const 2
                v2: i32 = const 0
                v3: i32 = const 2
                v4: i32 = const 0
                v5: i32 = const 4
                v6: i32 = const 0
                v7: i32 = const 4
                parallel [v0, v2, v4, v6], [v1, v3, v5, v7] serial (v8: i32, v9: i32, v10: i32, v11: i32) {
                    v12: i32 = const 4
                    v13: i32 = mul v8, v12
                    v14: i32 = const 4
                    v15: i32 = mul v9, v14
                    v16: i32 = add v13, v10
                    v17: i32 = add v15, v11
                    v18: ref<i32> = field_at @x, [v16, v17]
                    store v18, v17
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn merge_blocks() {
        check_pass!("demote_struct_for", "
            tree0 { dense i:2 j:2 merged { dense i:4 j:4 { place x: i32 } } }
            field @x: i32 = tree0 [S3]
            kernel @k() {
                parallel_cells tree0.S2 (v0: i32, v1: i32) {
                    v2: ref<i32> = field_at @x, [v0, v1]
                    store v2, v1
                    yield []
                }
                parallel_cells tree0.S1 (v0: i32, v1: i32) {
                    v2: ref<i32> = field_at @x, [v0, v1]
                    store v2, v1
                    yield []
                }
                parallel_cells tree0.S2 serial (v0: i32, v1: i32) {
                    v2: ref<i32> = field_at @x, [v0, v1]
                    store v2, v1
                    yield []
                }
                yield []
            }", @"
        kernel @k() {
            v0: i32 = const 0
            v1: i32 = const 8
            v2: i32 = const 0
            v3: i32 = const 8
            parallel [v0, v2], [v1, v3] (v4: i32, v5: i32) {
                v6: ref<i32> = field_at @x, [v4, v5]
                store v6, v5
                yield []
            }
            v7: i32 = const 0
            v8: i32 = const 2
            v9: i32 = const 0
            v10: i32 = const 2
            parallel [v7, v9], [v8, v10] (v11: i32, v12: i32) {
                v13: ref<i32> = field_at @x, [v11, v12]
                store v13, v12
                yield []
            }
            v14: i32 = const 0
            v15: i32 = const 2
            v16: i32 = const 0
            v17: i32 = const 2
            v18: i32 = const 0
            v19: i32 = const 4
            v20: i32 = const 0
            v21: i32 = const 4
            parallel [v14, v16, v18, v20], [v15, v17, v19, v21] serial (v22: i32, v23: i32, v24: i32, v25: i32) {
                v26: i32 = const 4
                v27: i32 = mul v22, v26
                v28: i32 = const 4
                v29: i32 = mul v23, v28
                v30: i32 = add v27, v24
                v31: i32 = add v29, v25
                v32: ref<i32> = field_at @x, [v30, v31]
                store v32, v31
                yield []
            }
            yield []
        }
        ");
    }
}
