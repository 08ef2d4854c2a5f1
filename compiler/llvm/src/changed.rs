//! Which memory a task modifies, so that its other loads may be marked invariant.

use aerogel_ir::analysis::access::{Change, Class, change, classes, has_classes};
use aerogel_ir::{Env, Function, NodeOp, NodeRef, Op, Region, TreeId, Value, walk};

/// The memory that a task modifies.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    /// Memory that it writes.
    classes: Vec<Class>,
    /// Trees in which it takes cells away.
    emptied: Vec<TreeId>,
    /// Trees in which it makes cells active, or takes them away.
    grown: Vec<TreeId>,
    /// Nodes whose lists it makes.
    listed: Vec<NodeRef>,
    /// Whether a call may modify any memory.
    anything: bool,
}

impl Changed {
    pub(crate) fn of(func: &Function, env: &Env, body: Region) -> Self {
        let mut all = Self::default();
        walk(func, body, &mut |func, inst| {
            let op = &func[inst];
            if let Op::Node(op) = op {
                all.note(op);
            }
            match change(op) {
                Change::Nothing | Change::Below(_) => {}
                Change::Storages(places) => {
                    for &place in places {
                        match has_classes(func, place) {
                            true => all.classes.extend(classes(func, env, place)),
                            false => all.anything = true,
                        }
                    }
                }
                // What threads do together writes nothing; what the others write, the task does.
                Change::Anything => all.anything |= !matches!(op, Op::Threads { .. }),
            }
        });
        all
    }

    fn note(&mut self, op: &NodeOp) {
        match op {
            NodeOp::Release { node, .. }
            | NodeOp::ReleaseAll { node, .. }
            | NodeOp::Wipe { node, .. }
            | NodeOp::Collect { node } => {
                self.emptied.push(node.tree);
                self.grown.push(node.tree);
            }
            NodeOp::Obtain { node, .. } | NodeOp::Extend { node, .. } => self.grown.push(node.tree),
            NodeOp::ListStale { node }
            | NodeOp::ListCount { node, .. }
            | NodeOp::ListScan { node, .. }
            | NodeOp::ListPut { node, .. } => self.listed.push(*node),
            NodeOp::Ambient { .. }
            | NodeOp::Root { .. }
            | NodeOp::Linearize { .. }
            | NodeOp::Lookup { .. }
            | NodeOp::Child { .. }
            | NodeOp::Find { .. }
            | NodeOp::CellIsActive { .. }
            | NodeOp::MaskWord { .. }
            | NodeOp::NextActive { .. }
            | NodeOp::ActiveEnd { .. }
            | NodeOp::ContainerLength { .. }
            | NodeOp::ListOffset { .. }
            | NodeOp::ListLen { .. }
            | NodeOp::ListEntry { .. }
            | NodeOp::NRecycled { .. }
            | NodeOp::Recycled { .. } => {}
        }
    }

    /// Whether a storage of a tree, an array or a temporary holds the same as long as the task runs.
    pub(crate) fn leaves(&self, func: &Function, env: &Env, place: Value) -> bool {
        let lasts = |class: &Class| match class {
            // Where a cell becomes active there were zeros, and are.
            Class::Place(node) => !self.emptied.contains(&node.tree),
            Class::Array(_) | Class::Arrays | Class::Temp(_) => true,
            Class::Local(_) | Class::Shared(_) => false,
        };
        let same = |class: &Class| lasts(class) && !self.classes.contains(class);
        !self.anything && has_classes(func, place) && classes(func, env, place).iter().all(same)
    }

    /// Whether the same cells of a tree are active as long as the task runs.
    pub(crate) fn leaves_cells(&self, tree: TreeId) -> bool {
        !self.anything && !self.grown.contains(&tree)
    }

    /// Whether a node's list is the same as long as the task runs.
    pub(crate) fn leaves_list(&self, node: NodeRef) -> bool {
        !self.anything && !self.listed.contains(&node)
    }
}
