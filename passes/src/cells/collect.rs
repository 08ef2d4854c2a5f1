//! Cells that a loop deactivates are collected after it.
//!
//! ```text
//! parallel ... { deactivate tree0.S1, [i] }
//!     ==>   parallel ... { deactivate tree0.S1, [i] }
//!           v0 = n_recycled S1
//!           parallel over [0, v0) (k) { release what lies below (recycled S1, k)  wipe S1, k }
//!           collect S1
//! ```
//! Nodes come before those below them, which may so get more to collect.

use crate::PassCx;
use crate::cells::nest::{self, at_end};
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::access;
use aerogel_ir::{
    Builder, CellOp, Env, Function, Inst, LoopAttrs, NodeOp, NodeRef, Op, Type, walk,
};

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut changed = false;
    let body = func.body;
    for inst in std::mem::take(&mut func.regions[body].insts) {
        func.regions[body].insts.push(inst);
        let nodes = deactivated(func, cx, inst);
        changed |= !nodes.is_empty();
        let mut b = at_end(func, body, func.insts[inst].span);
        for node in nodes {
            collect(&mut b, cx.env, node);
        }
    }
    changed
}

/// The nodes whose elements an instruction gives back, parents before children.
fn deactivated(func: &Function, cx: &PassCx<'_>, inst: Inst) -> Vec<NodeRef> {
    let mut nodes = Vec::new();
    let mut calls = matches!(func[inst], Op::Call { .. });
    func[inst].regions(|r| calls |= access::calls(func, r));
    let mut note = |func: &Function, inst: Inst| match func[inst] {
        // In functions accesses may have been taken apart already.
        Op::Cell(CellOp::Deactivate { node, .. })
        | Op::Node(NodeOp::Release { node, .. } | NodeOp::ReleaseAll { node, .. }) => {
            let tree = &cx.env.trees[node.tree];
            let below = tree.subtree(node.node).into_iter();
            nodes.extend(below.filter(|&n| tree[n].n_arenas() > 0).map(|n| NodeRef {
                tree: node.tree,
                node: n,
            }));
        }
        _ => {}
    };
    note(func, inst);
    func[inst].regions(|r| walk(func, r, &mut note));
    if calls {
        for callee in cx.funcs.values() {
            walk(callee, callee.body, &mut note);
        }
    }
    // Parents have smaller numbers.
    nodes.sort_by_key(|n| (n.tree.as_u32(), n.node.as_u32()));
    nodes.dedup();
    nodes
}

fn collect(b: &mut Builder<'_>, env: &Env, node: NodeRef) {
    let zero = b.constant(Scalar::int(ScalarType::I64, 0));
    let n = b.value(NodeOp::NRecycled { node }, Type::I64);
    let tree = &env.trees[node.tree];
    let body = b.region(&[Type::I64], |b, params| {
        let at = params[0];
        if tree[node.node].kind.has_list() {
            let op = NodeOp::Recycled { node, at };
            let cell = b.value(op, Type::Cell(node.tree, node.node));
            nest::release_below(b, tree, node.tree, node.node, cell);
        }
        b.effect(NodeOp::Wipe { node, at });
    });
    b.effect(Op::Parallel {
        lo: vec![zero],
        hi: vec![n],
        attrs: LoopAttrs {
            aside: true,
            ..LoopAttrs::default()
        },
        body,
    });
    b.effect(NodeOp::Collect { node });
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn what_lies_below_goes_first() {
        check_pass!("collect", "
            tree0 { pointer i:4 { dense i:2 { pointer i:8 { place x: f32 } } } }
            field @x: f32 = tree0 [S4]
            kernel @k() {
                v0: f32 = const 2.0
                v1: i32 = const 9
                v2: ref<f32> = field_at @x, [v1]
                store v2, v0
                v3: i32 = const 0
                v4: i32 = const 4
                parallel [v3], [v4] (v5: i32) {
                    deactivate tree0.S1, [v5]
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: f32 = const 2.0
                v1: i32 = const 9
                v2: ref<f32> = field_at @x, [v1]
                store v2, v0
                v3: i32 = const 0
                v4: i32 = const 4
                parallel [v3], [v4] (v5: i32) {
                    deactivate tree0.S1, [v5]
                    yield []
                }
                v6: i64 = const 0
                v7: i64 = n_recycled tree0.S1
                parallel [v6], [v7] aside (v8: i64) {
                    v9: cell<tree0.S1> = recycled tree0.S1, v8
                    v10: container<tree0.S2> = child tree0.S2, v9
                    v11: i64 = const 0
                    v12: i64 = const 2
                    v13: i64 = const 1
                    for v11, v12, v13, [] (v14: i64) {
                        v15: cell<tree0.S2> = lookup tree0.S2, v10, v14
                        v16: container<tree0.S3> = child tree0.S3, v15
                        v17: i64 = const 0
                        v18: i64 = const 8
                        v19: i64 = const 1
                        for v17, v18, v19, [] (v20: i64) {
                            release tree0.S3, v16, v20
                            yield []
                        }
                        yield []
                    }
                    wipe tree0.S1, v8
                    yield []
                }
                collect tree0.S1
                v21: i64 = const 0
                v22: i64 = n_recycled tree0.S3
                parallel [v21], [v22] aside (v23: i64) {
                    v24: cell<tree0.S3> = recycled tree0.S3, v23
                    wipe tree0.S3, v23
                    yield []
                }
                collect tree0.S3
                yield []
            }
            ");
    }
}
