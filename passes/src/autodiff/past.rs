//! Activity queries read a snapshot: another tree of the same layout, whose active cells are those of the forward
//! run.
//!
//! ```text
//! parallel_cells tree0.S1 (i: i32) {              parallel_cells tree0.S1 (i: i32) {
//!     body                               ==>          v1 = is_active tree1.S1 [i]
//! }                                                   if v1 { body }
//!                                                 }
//! ```
//! Loops go over the cells that are active now, which are those of then and more.

use aerogel_base::hash::LookupMap;
use aerogel_ir::{CellOp, Function, Inst, Module, Op, Region, TreeId};

use super::asked::trees_asked;
use super::serial;

/// Rewrites all functions of a module. The results are the trees that it has got others beside, in the order of those.
pub(super) fn run(module: &mut Module) -> Vec<TreeId> {
    let mut past = Past::default();
    for id in module.funcs.keys().collect::<Vec<_>>() {
        for node in trees_asked(&module.funcs[id], &module.env) {
            if !past.of.contains_key(&node.tree) {
                let tree = module.env.trees[node.tree].clone();
                past.of.insert(node.tree, module.env.trees.push(tree));
                past.trees.push(node.tree);
            }
        }
        let func = &mut module.funcs[id];
        past.rewrite(func, func.body);
    }
    past.trees
}

#[derive(Default)]
struct Past {
    trees: Vec<TreeId>,
    of: LookupMap<TreeId, TreeId>,
}

impl Past {
    fn rewrite(&self, func: &mut Function, region: Region) {
        for inst in func.regions[region].insts.clone() {
            for owned in func.owned(inst) {
                self.rewrite(func, owned);
            }
            self.rewrite_inst(func, inst);
        }
    }

    fn rewrite_inst(&self, func: &mut Function, inst: Inst) {
        match &mut func.insts[inst].op {
            Op::Cell(CellOp::IsActive { node, .. } | CellOp::Length { node, .. }) => {
                if let Some(&tree) = self.of.get(&node.tree) {
                    node.tree = tree;
                }
            }
            &mut Op::ParallelCells { mut node, body, .. } => {
                if let Some(&tree) = self.of.get(&node.tree) {
                    node.tree = tree;
                    serial::ask_each(func, body, node);
                }
            }
            _ => {}
        }
    }
}
