//! Which loops over sparse cells look up their neighbouring blocks once for each block.
//!
//! ```text
//! parallel_cells tree0.S3 (i, j) { .. load x[i + 1, j] .. atomic_add y[i - 1, j], v .. }
//!     ==>   parallel_cells tree0.S3 around=elements writes_around (i, j) { .. }
//! ```
//! This says so; `list_struct_for`, which takes the loop apart, does it. How is the topic of `mod.rs`
//! and `written.rs`.

use aerogel_ir::{Around as Kind, Function, Inst, Op};

use super::{Around, Written};
use crate::PassCx;
use crate::cells::list_struct_for::{Plan, is_left};

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let mut changed = false;
    for inst in func.regions[func.body].insts.clone() {
        let (around, writes_around) = worth(func, cx, inst);
        if let Op::ParallelCells { attrs, .. } = &mut func.insts[inst].op {
            (attrs.around, attrs.writes_around) = (around, writes_around);
            changed |= around.is_some() || writes_around;
        }
    }
    changed
}

/// What is worth looking up around the blocks of a loop, and whether what it writes around them is
/// looked up too.
fn worth(func: &Function, cx: &PassCx<'_>, inst: Inst) -> (Option<Kind>, bool) {
    let Op::ParallelCells { node, attrs, body } = func[inst] else {
        return (None, false);
    };
    if !cx.env.trees[node.tree].is_below_sparse(node.node) {
        return (None, false);
    }
    let params = &func.regions[body].params;
    let plan = Plan::new(func, cx, node, body, params);
    if !plan.in_blocks() {
        return (None, false);
    }
    let around = Around::find(func, cx, node, plan.driver, body, params).map(|a| a.kind());
    let left = attrs.serial && is_left(func, body);
    let written = !left && Written::find(func, cx, node, plan.driver, body, params).is_some();
    (around, written)
}

#[cfg(test)]
mod tests {
    use crate::testing::check_pass;

    #[test]
    fn loops_say_what_they_look_up() {
        check_pass!("look_around", "
            tree0 { pointer i:2 j:2 { dense i:2 j:4 { place x: f32 } dense i:2 j:4 { place y: f32 } } }
            field @x: f32 = tree0 [S3]
            field @y: f32 = tree0 [S5]
            kernel @k() {
                v0: i32 = const 1
                parallel_cells tree0.S4 (v1: i32, v2: i32) {
                    v3: i32 = add v1, v0
                    v4: ref<f32> = field_at @x, [v3, v2]
                    v5: f32 = load v4
                    v6: ref<f32> = field_at @y, [v1, v2]
                    store v6, v5
                    yield []
                }
                parallel_cells tree0.S4 (v7: i32, v8: i32) {
                    v9: ref<f32> = field_at @y, [v7, v8]
                    v10: f32 = load v9
                    v11: ref<f32> = field_at @x, [v7, v8]
                    store v11, v10
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                v0: i32 = const 1
                parallel_cells tree0.S4 around=elements (v1: i32, v2: i32) {
                    v3: i32 = add v1, v0
                    v4: ref<f32> = field_at @x, [v3, v2]
                    v5: f32 = load v4
                    v6: ref<f32> = field_at @y, [v1, v2]
                    store v6, v5
                    yield []
                }
                parallel_cells tree0.S4 (v7: i32, v8: i32) {
                    v9: ref<f32> = field_at @y, [v7, v8]
                    v10: f32 = load v9
                    v11: ref<f32> = field_at @x, [v7, v8]
                    store v11, v10
                    yield []
                }
                yield []
            }
        ");
    }
}
