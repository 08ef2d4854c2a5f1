//! The backward pass queries the activity of sparse cells again.
//!
//! Loops over cells, `is_active` and `length` read the activity of a node: that of the lowest sparse one around it. What
//! makes cells active or inactive writes it. Where a kernel writes it only before its queries, the backward pass queries the
//! cells that the kernel leaves; where only afterwards, for those that it found, which a tape remembers (`past.rs`).

use aerogel_base::Span;
use aerogel_ir::analysis::access::{Change, change};
use aerogel_ir::analysis::affine::counted_from_narrow;
use aerogel_ir::{CellOp, Env, Function, Inst, NodeRef, Op, Region, Value, walk};

use super::needs::Moment;
use super::storage::indices;

/// A node whose activity the backward pass queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The lowest sparse node around it, or itself.
    pub node: NodeRef,
    /// Whether the cells that were active when the kernel began are meant, or those that are when it is over.
    pub at: Moment,
}

/// The activity queries of a function, and its changes of activity, in no order.
#[derive(Default)]
pub(super) struct OfCalled {
    pub(super) asked: Vec<(NodeRef, Span)>,
    pub(super) changed: Vec<(Vec<NodeRef>, Span)>,
}

/// An instruction that queries or changes activity, and the regions around it.
pub(super) struct Access {
    pub(super) inst: Inst,
    pub(super) nodes: Vec<NodeRef>,
    /// The regions around it with the instructions in them that lead to it, outermost first.
    path: Vec<(Region, Inst)>,
}

/// Whether the activity may change before the query, or after it; or in other iterations, in any order.
#[derive(Clone, Copy, Default)]
pub(super) struct Changes {
    pub(super) before: bool,
    pub(super) after: bool,
    pub(super) races: bool,
}

/// The activity queries in the work of a kernel itself, or of a function that it calls.
pub fn asked_by(func: &Function, env: &Env) -> Vec<Asked> {
    let (asked, changed) = accesses(func, env);
    let made_inactive = |ask: &Access, change: &Access| {
        matches!(func[change.inst], Op::Cell(CellOp::Deactivate { .. }))
            && change.nodes.contains(&ask.nodes[0])
            && changes(func, ask, change).before
    };
    let asked = asked.iter().map(|ask| Asked {
        node: ask.nodes[0],
        at: match changed.iter().any(|change| made_inactive(ask, change)) {
            true => Moment::End,
            false => Moment::Start,
        },
    });
    asked.collect()
}

impl OfCalled {
    /// Adds a function.
    pub(super) fn note(&mut self, func: &Function, env: &Env) {
        let (asked, changed) = accesses(func, env);
        let span = |access: &Access| func.insts[access.inst].span;
        self.asked
            .extend(asked.iter().map(|a| (a.nodes[0], span(a))));
        self.changed.extend(changed.into_iter().map(|c| {
            let span = span(&c);
            (c.nodes, span)
        }));
    }
}

/// The activity queries, and the instructions that change activity.
pub(super) fn accesses(func: &Function, env: &Env) -> (Vec<Access>, Vec<Access>) {
    let mut all = (Vec::new(), Vec::new());
    within(func, env, func.body, &mut Vec::new(), &mut all);
    all
}

fn within(
    func: &Function,
    env: &Env,
    region: Region,
    path: &mut Vec<(Region, Inst)>,
    found: &mut (Vec<Access>, Vec<Access>),
) {
    for &inst in &func.regions[region].insts {
        path.push((region, inst));
        let access = |nodes| Access {
            inst,
            nodes,
            path: path.clone(),
        };
        if let Some(node) = asked(func, env, inst) {
            found.0.push(access(vec![node]));
        }
        let nodes = changed(func, env, inst, path);
        if !nodes.is_empty() {
            found.1.push(access(nodes));
        }
        for owned in func.owned(inst) {
            within(func, env, owned, path, found);
        }
        path.pop();
    }
}

/// The node whose activity an instruction queries; none if its cells are always active.
fn asked(func: &Function, env: &Env, inst: Inst) -> Option<NodeRef> {
    let node = match func[inst] {
        Op::ParallelCells { node, .. }
        | Op::Cell(CellOp::IsActive { node, .. } | CellOp::Length { node, .. }) => node,
        _ => return None,
    };
    let lowest = env.trees[node.tree].sparse_chain(node.node);
    Some(NodeRef {
        node: *lowest.last()?,
        ..node
    })
}

/// The nodes of which an instruction may make cells active or inactive.
fn changed(func: &Function, env: &Env, inst: Inst, path: &[(Region, Inst)]) -> Vec<NodeRef> {
    let above = |node: NodeRef| {
        let chain = env.trees[node.tree].sparse_chain(node.node);
        let all = chain.into_iter().map(|id| NodeRef { node: id, ..node });
        all.collect::<Vec<_>>()
    };
    match &func[inst] {
        Op::Cell(CellOp::Activate { node, .. } | CellOp::Append { node, .. }) => above(*node),
        Op::Cell(CellOp::Deactivate { node, .. }) => {
            let tree = &env.trees[node.tree];
            let below = tree.subtree(node.node).into_iter();
            let sparse = below.filter(|&id| tree[id].kind.is_sparse());
            sparse.map(|id| NodeRef { node: id, ..*node }).collect()
        }
        op => {
            let Change::Storages(places) = change(op) else {
                return Vec::new();
            };
            let written = places
                .iter()
                .flat_map(|&place| of_write(func, env, place, path));
            written.flat_map(above).collect()
        }
    }
}

/// The nodes that hold what is written, where its cells may be inactive and nothing around says that this one is active.
fn of_write(func: &Function, env: &Env, place: Value, path: &[(Region, Inst)]) -> Vec<NodeRef> {
    let field = match func.def_op(place) {
        Some(Op::ElemRef { base, .. } | Op::MemberRef { base, .. }) => {
            return of_write(func, env, *base, path);
        }
        Some(Op::FieldAt { field, .. }) => *field,
        _ => return Vec::new(),
    };
    let data = &env.fields[field];
    let tree = &env.trees[data.tree];
    // Components may lie under nodes of their own.
    let holders = data.places.iter().map(|&place| tree.holder(place));
    let mut sparse: Vec<NodeRef> = holders
        .filter(|&node| tree.is_below_sparse(node))
        .map(|node| NodeRef {
            tree: data.tree,
            node,
        })
        .collect();
    sparse.dedup();
    let names = |holder: NodeRef, node: NodeRef, named: &[Value]| {
        is_cell(func, env, (place, holder, &data.offset), (node, named))
    };
    let is_known = |holder: NodeRef, inst: Inst| match &func[inst] {
        Op::ParallelCells { node, body, .. } => names(holder, *node, &func.regions[*body].params),
        Op::If { cond, then, .. } => match func.def_op(*cond) {
            Some(Op::Cell(CellOp::IsActive { node, indices })) => {
                path.iter().any(|(inner, _)| inner == then) && names(holder, *node, indices)
            }
            _ => false,
        },
        _ => false,
    };
    sparse.retain(|&holder| !path.iter().any(|&(_, inst)| is_known(holder, inst)));
    sparse
}

/// Whether a place lies in a cell, or one in it, that others name.
fn is_cell(
    func: &Function,
    env: &Env,
    (place, holder, offset): (Value, NodeRef, &[i32]),
    (node, named): (NodeRef, &[Value]),
) -> bool {
    let tree = &env.trees[holder.tree];
    let Some(&lowest) = tree.sparse_chain(holder.node).last() else {
        return true;
    };
    if node.tree != holder.tree || !tree.chain(node.node).contains(&lowest) {
        return false;
    }
    let (own, other) = (tree.shape_axes(holder.node), tree.shape_axes(node.node));
    let indices = indices(func, place);
    tree.shape_axes(lowest).iter().all(|(axis, _)| {
        let mine = own.iter().position(|(a, _)| a == axis);
        let theirs = other.iter().position(|(a, _)| a == axis);
        let (Some(mine), Some(theirs)) = (mine, theirs) else {
            return false;
        };
        let first = offset.get(mine).copied().map_or(0, i64::from);
        let (Some(&index), Some(&name)) = (indices.get(mine), named.get(theirs)) else {
            return false;
        };
        let (index, by) = counted_from_narrow(func, index);
        let (name, more) = counted_from_narrow(func, name);
        own[mine].1 == other[theirs].1 && index == name && by == more + first
    })
}

/// Whether one instruction changes the activity that another one queries, before that or after it.
pub(super) fn changes(func: &Function, ask: &Access, change: &Access) -> Changes {
    const ANY_TIME: Changes = Changes {
        before: true,
        after: true,
        races: false,
    };
    let mut pairs = ask.path.iter().zip(&change.path);
    let in_common = pairs.by_ref().take_while(|(a, c)| a == c).count();
    for (_, inst) in &ask.path[..in_common] {
        match &func[*inst] {
            Op::ParallelCells { .. } if *inst == ask.inst => {
                // A list that grows while it is gone over.
                let races = matches!(func[change.inst], Op::Cell(CellOp::Append { .. }));
                return Changes {
                    before: false,
                    after: true,
                    races,
                };
            }
            Op::Parallel { .. } | Op::ParallelCells { .. } => {
                return Changes {
                    races: true,
                    ..ANY_TIME
                };
            }
            Op::For { .. } | Op::While { .. } => return ANY_TIME,
            _ => {}
        }
    }
    let (Some((region, a)), Some((other, c))) =
        (ask.path.get(in_common), change.path.get(in_common))
    else {
        return ANY_TIME;
    };
    if region != other {
        // The two branches of an `if`.
        return Changes::default();
    }
    let insts = &func.regions[*region].insts;
    let at = |inst: &Inst| insts.iter().position(|i| i == inst);
    Changes {
        before: at(c) < at(a),
        after: at(c) > at(a),
        races: false,
    }
}

/// The trees whose activity a module queries.
pub(super) fn trees_asked(func: &Function, env: &Env) -> Vec<NodeRef> {
    let mut all = Vec::new();
    walk(func, func.body, &mut |func, inst| {
        all.extend(asked(func, env, inst));
    });
    all
}
