//! The split fields that a loop accesses, and what it must not do.

use std::sync::Arc;

use aerogel_ir::{
    AtomicOp, CellOp, FieldId, Function, Inst, NodeRef, Op, Region, TreeId, Type, Value, walk,
};

use super::grid::{Outcome, Split, SplitGrid, mistake};

/// An access to a split field, or to the cells of a node of a split tree.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// The `field_at`, or the operation on cells.
    pub(super) at: Inst,
    pub(super) target: Target,
    /// The grid of the elements or cells.
    pub(super) grid: Arc<SplitGrid>,
    pub(super) does: Does,
}

/// What is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Field(FieldId),
    /// Which cells of a node are active.
    Node(NodeRef),
}

impl Access {
    pub(super) fn field(&self) -> Option<FieldId> {
        match self.target {
            Target::Field(field) => Some(field),
            Target::Node(_) => None,
        }
    }

    /// Its indices.
    pub(super) fn indices<'a>(&self, func: &'a Function) -> &'a [Value] {
        match &func[self.at] {
            Op::FieldAt { indices, .. }
            | Op::Cell(
                CellOp::Activate { indices, .. }
                | CellOp::Deactivate { indices, .. }
                | CellOp::IsActive { indices, .. },
            ) => indices,
            _ => unreachable!("an access is one of these"),
        }
    }

    /// The tree whose memory it is.
    pub(super) fn tree(&self, split: &Split<'_>) -> TreeId {
        match self.target {
            Target::Field(field) => split.env.fields[field].tree,
            Target::Node(node) => node.tree,
        }
    }

    /// What it is called in messages.
    pub(super) fn name(&self, split: &Split<'_>) -> String {
        match self.target {
            Target::Field(field) => format!("`{}`", split.name(field)),
            Target::Node(_) => "a node".into(),
        }
    }
}

/// The node whose cells an operation changes or queries.
pub(super) fn node_of(op: &CellOp) -> Option<NodeRef> {
    match *op {
        CellOp::Activate { node, .. }
        | CellOp::Deactivate { node, .. }
        | CellOp::IsActive { node, .. }
        | CellOp::Append { node, .. }
        | CellOp::Length { node, .. } => Some(node),
        CellOp::FindCell { .. } | CellOp::CellAt { .. } => None,
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Read,
    Write,
    /// It adds a number, and nobody looks at the one before.
    Add,
}

/// The accesses of a loop to split fields, in order.
#[derive(Default)]
pub(super) struct Accesses(pub(super) Vec<Access>);

impl Accesses {
    /// Those of a loop.
    ///
    /// # Errors
    /// If the loop has an effect that would differ between processes.
    pub(super) fn of(split: &Split<'_>, func: &Function, inst: Inst) -> Outcome<Self> {
        let mut all = Self::default();
        let mut wrong = None;
        let body = body_of(func, inst);
        let used = func.use_counts();
        walk(func, body, &mut |func, inner| {
            let span = func.insts[inner].span;
            let what = match func[inner] {
                Op::Load { place } => return all.note(split, func, (place, Does::Read)),
                Op::Atomic { op, place, .. } => {
                    let adds = matches!(op, AtomicOp::Add | AtomicOp::Sub);
                    let is_used = used[func.insts[inner].results[0]] > 0;
                    let does = if adds && !is_used {
                        Does::Add
                    } else {
                        Does::Write
                    };
                    return all.note(split, func, (place, does));
                }
                Op::Store { place, .. } => return all.note(split, func, (place, Does::Write)),
                Op::Cas { place, .. } if all.is_split(split, func, place) => {
                    return all.note(split, func, (place, Does::Write));
                }
                Op::Random {} => "draws random numbers, which each process would repeat",
                Op::Cas { .. } => "changes data by `atomic_cas` that all processes have",
                Op::Call { .. } => "calls a real function, whose accesses are not known",
                Op::Cell(CellOp::IsActive { node, .. }) if split.grid(node.tree).is_some() => {
                    return all.note_node(split, inner, (node, Does::Read));
                }
                Op::Cell(CellOp::Activate { node, .. } | CellOp::Deactivate { node, .. })
                    if split.grid(node.tree).is_some() =>
                {
                    return all.note_node(split, inner, (node, Does::Write));
                }
                Op::Cell(_) => "changes or queries which cells are active",
                Op::Return { .. } => "leaves the kernel",
                _ => return,
            };
            let message = format!("a loop over split fields {what}");
            let note = "move that to a loop of its own over data that is not split";
            wrong.get_or_insert_with(|| mistake(span, message, note));
        });
        match wrong {
            Some(wrong) => Err(wrong),
            None => Ok(all),
        }
    }

    fn is_split(&self, split: &Split<'_>, func: &Function, place: Value) -> bool {
        matches!(root(func, place), Root::Field(_, field) if split.grid_of(field).is_some())
    }

    fn note(&mut self, split: &Split<'_>, func: &Function, (place, does): (Value, Does)) {
        let Root::Field(at, field) = root(func, place) else {
            return;
        };
        let data = &split.env.fields[field];
        let (tree, node) = (data.tree, data.places[0]);
        if let Some(grid) = split.grid_of_node(NodeRef { tree, node }) {
            self.0.push(Access {
                at,
                target: Target::Field(field),
                grid,
                does,
            });
        }
    }

    fn note_node(&mut self, split: &Split<'_>, at: Inst, (node, does): (NodeRef, Does)) {
        let grid = split.grid_of_node(node).expect("the caller looked");
        self.0.push(Access {
            at,
            target: Target::Node(node),
            grid,
            does,
        });
    }
}

/// The region of a parallel loop.
pub(super) fn body_of(func: &Function, inst: Inst) -> Region {
    match func[inst] {
        Op::Parallel { body, .. } | Op::ParallelCells { body, .. } => body,
        _ => unreachable!("the caller looked"),
    }
}

/// Where a storage lies.
pub(super) enum Root {
    /// In an element of a field, which this instruction names.
    Field(Inst, FieldId),
    /// In a variable.
    Local(Value),
    /// In an array argument, or somewhere else.
    Other,
}

/// Where a storage lies.
pub(super) fn root(func: &Function, place: Value) -> Root {
    let Some(def) = func.def(place) else {
        return Root::Other;
    };
    match func[def] {
        Op::FieldAt { field, .. } => Root::Field(def, field),
        // Room in a buffer belongs to the iteration that makes it.
        Op::Local {} | Op::RoomAt { .. } => Root::Local(place),
        Op::ElemRef { base, .. } | Op::MemberRef { base, .. } => root(func, base),
        _ => Root::Other,
    }
}

/// The scalar type of a storage.
pub(super) fn scalar(func: &Function, place: Value) -> Option<aerogel_base::ScalarType> {
    func.ty(place).pointee().and_then(Type::elem)
}
