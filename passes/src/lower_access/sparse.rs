//! Accesses below sparse nodes.
//!
//! A `field_at` only names an element. Where it is loaded, its cell is looked for (`find`); where it
//! is stored, it is made (`obtain`). Cells that were found or made are known for a while: one that
//! was made until something is deactivated, one that was found also until something is activated,
//! since then the ambient cell may no longer stand for it. So accesses share their look-ups, and
//! those to the cell that a loop visits need none.
//!
//! Reading outside gives zero, writing outside is an error, in release builds too: what lies beyond
//! a sparse container is another field's.

use aerogel_base::Scalar;
use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::{LookupMap, LookupSet};
use aerogel_ir::analysis::affine::counted_from;
use aerogel_ir::{
    Builder, CellOp, FieldId, Function, Inst, NodeOp, NodeRef, Op, ScopedMap, TreeId, Type, Value,
    walk,
};
use aerogel_snode::{Level, NodeKind, Path, Tree};

pub(super) use self::inside::or_zero;
use self::inside::{Named, assert_inside};
use super::coordinate;
use crate::PassCx;

mod inside;
mod ops;
pub(super) mod shared;

/// A cell of a node: for each axis that divides it what the index counts from, how far it is from
/// there, and what it is divided by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    node: NodeRef,
    axes: Vec<(u8, Value, i64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    cell: Value,
    since: u32,
    /// Whether it is active; if not known, it may be the ambient cell.
    active: bool,
    /// Whether the indices are inside the tree; none where that is certain.
    inside: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Access {
    Read,
    Write,
}

/// The cells that are known where the walk is.
#[derive(Default)]
pub(super) struct Cells {
    known: ScopedMap<Key, Known>,
    now: u32,
    made: LookupMap<NodeRef, u32>,
    released: LookupMap<NodeRef, u32>,
    /// Nodes to which a loop appends: for a moment a list is longer than it has memory.
    appended: LookupSet<NodeRef>,
    /// Whether a loop calls functions, which may append to any list.
    calls: bool,
    /// Nothing is known from before.
    floor: u32,
    /// The box that the access which is lowered is in, if it shares look-ups (`shared.rs`).
    pub(super) bounds: Option<Vec<(i64, i64)>>,
    /// Values that are at least 0 and less than this.
    below: SecondaryMap<Value, Option<i128>>,
}

/// What an access names.
struct Target<'a> {
    tree: &'a Tree,
    path: Path,
    /// The axis of each index.
    axes: Vec<u8>,
    indices: Vec<Value>,
}

impl<'a> Target<'a> {
    fn new(cx: &'a PassCx<'_>, node: NodeRef, indices: Vec<Value>) -> Self {
        let tree = &cx.env.trees[node.tree];
        Self {
            tree,
            path: tree.path(node.node),
            axes: tree.shape_axes(node.node).iter().map(|a| a.0).collect(),
            indices,
        }
    }

    /// Levels down to a cell of bytes: the elements of a word have no cells of their own.
    fn n_levels(&self) -> usize {
        let last = self.path.levels.last().expect("the root is one");
        let in_word = self.tree[last.node].kind.word().is_some();
        self.path.levels.len() - usize::from(in_word)
    }

    fn key(&self, func: &Function, id: aerogel_ir::TreeId, depth: usize) -> Key {
        let mut axes: Vec<(u8, Value, i64, u64)> = Vec::new();
        for axis in self.path.levels[..=depth].iter().flat_map(|l| &l.axes) {
            let (base, offset) = counted_from(func, self.indices[axis.index]);
            let entry = (self.axes[axis.index], base, offset, axis.divisor);
            match axes.iter_mut().find(|e| e.0 == entry.0) {
                Some(e) => *e = entry,
                None => axes.push(entry),
            }
        }
        axes.sort_by_key(|e| e.0);
        let node = NodeRef {
            tree: id,
            node: self.path.levels[depth].node,
        };
        Key { node, axes }
    }
}

impl Cells {
    pub(super) fn enter(&mut self, func: &Function, inst: Inst, cx: &PassCx<'_>) {
        self.known.enter();
        let is_loop = matches!(
            func[inst],
            Op::For { .. } | Op::While { .. } | Op::Each { .. }
        );
        if let Op::For {
            lo, hi, step, body, ..
        } = func[inst]
        {
            let bound = |v: Value| func.as_const(v).map(Scalar::as_i128);
            let counter = func.regions[body].params[0];
            let up = bound(lo).is_some_and(|lo| lo >= 0) && bound(step).is_some_and(|s| s > 0);
            self.below[counter] = bound(hi).filter(|_| up);
        }
        if is_loop {
            // What a later iteration changes is not known in an earlier one's successor.
            for region in func.owned(inst) {
                self.forget_changes(func, region, cx);
            }
        }
    }

    /// What becomes known is known until [`Self::leave`].
    pub(super) fn enter_branch(&mut self) {
        self.known.enter();
    }

    pub(super) fn leave(&mut self) {
        self.known.leave();
    }

    fn forget_changes(&mut self, func: &Function, region: aerogel_ir::Region, cx: &PassCx<'_>) {
        walk(func, region, &mut |func, inst| match func[inst] {
            Op::Store { place, .. } | Op::Atomic { place, .. } | Op::Cas { place, .. } => {
                if let Some(field) = field_of(func, place) {
                    let data = &cx.env.fields[field];
                    for &node in &data.places {
                        let tree = data.tree;
                        self.makes(NodeRef { tree, node }, cx);
                    }
                }
            }
            Op::Cell(CellOp::Append { node, .. }) => {
                self.appended.insert(node);
                self.makes(node, cx);
            }
            Op::Cell(CellOp::Activate { node, .. }) => self.makes(node, cx),
            Op::Cell(CellOp::Deactivate { node, .. }) => self.releases(node, cx),
            Op::Call { .. } => {
                self.calls = true;
                self.forget_all();
            }
            _ => {}
        });
    }

    fn tick(&mut self) -> u32 {
        self.now += 1;
        self.now
    }

    /// Activates a cell on the path to `node`.
    fn makes(&mut self, node: NodeRef, cx: &PassCx<'_>) {
        let now = self.tick();
        for on_way in cx.env.trees[node.tree].sparse_chain(node.node) {
            let on_way = NodeRef {
                tree: node.tree,
                node: on_way,
            };
            self.made.insert(on_way, now);
        }
    }

    /// Some cell of `node` becomes inactive.
    fn releases(&mut self, node: NodeRef, cx: &PassCx<'_>) {
        let now = self.tick();
        for below in cx.env.trees[node.tree].subtree(node.node) {
            let below = NodeRef {
                tree: node.tree,
                node: below,
            };
            self.released.insert(below, now);
        }
    }

    pub(super) fn forget_all(&mut self) {
        self.floor = self.tick();
    }

    fn get(&self, key: &Key, access: Access, tree: &Tree) -> Option<Known> {
        let known = *self.known.get(key)?;
        let since = |map: &LookupMap<NodeRef, u32>, node: NodeRef| {
            map.get(&node).is_some_and(|&at| at > known.since)
        };
        let mut chain = tree.sparse_chain(key.node.node).into_iter();
        let stale = known.since < self.floor
            || chain.any(|node| {
                let node = NodeRef {
                    tree: key.node.tree,
                    node,
                };
                since(&self.released, node) || !known.active && since(&self.made, node)
            });
        (!stale && (known.active || access == Access::Read)).then_some(known)
    }

    /// Notes what `cell_at` says, and that the cells around are active then. A cell of a list that other
    /// threads make longer may have no memory yet.
    pub(super) fn cell_at(
        &mut self,
        func: &Function,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: Vec<Value>,
        cell: Value,
    ) {
        for (&index, extent) in indices.iter().zip(cx.env.trees[node.tree].shape(node.node)) {
            self.below[index] = Some(extent.into());
        }
        let target = Target::new(cx, node, indices);
        let mut cell = Some(cell);
        for depth in (1..target.n_levels()).rev() {
            let Some(here) = cell else { break };
            let key = target.key(func, node.tree, depth);
            let tree = &cx.env.trees[node.tree];
            let on_way = tree.sparse_chain(key.node.node);
            let is_list = |node| matches!(tree[node].kind, NodeKind::Dynamic { .. });
            let grows = |node| {
                self.calls && is_list(node) || self.appended.contains(&NodeRef { node, ..key.node })
            };
            let known = Known {
                cell: here,
                since: self.now,
                active: !on_way.into_iter().any(grows),
                inside: None,
            };
            self.known.insert(key, known);
            cell = match func.def_op(here) {
                Some(&Op::Node(
                    NodeOp::Lookup { container, .. } | NodeOp::Find { container, .. },
                )) => match func.def_op(container) {
                    Some(&Op::Node(NodeOp::Child { cell, .. })) => Some(cell),
                    _ => None,
                },
                _ => None,
            };
        }
    }

    /// The cell of `node` at indices, of the layout; and whether these are inside, where that is not
    /// certain. Writing outside fails. Indices that have been `checked` are inside.
    #[expect(clippy::too_many_arguments, reason = "the access, and its messages")]
    fn cell(
        &mut self,
        cursor: &mut Builder<'_>,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: &[Value],
        access: Access,
        checked: bool,
        named: Named<'_>,
    ) -> (Value, Option<Value>) {
        let target = Target::new(cx, node, indices.to_vec());
        let n_levels = target.n_levels();
        self.descend(
            cursor, cx, node.tree, &target, n_levels, access, checked, named,
        )
    }

    /// The cell on the path to a target that is the last of `n_levels`, as `cell` returns it.
    #[expect(clippy::too_many_arguments, reason = "the access, and its messages")]
    fn descend(
        &mut self,
        cursor: &mut Builder<'_>,
        cx: &PassCx<'_>,
        id: TreeId,
        target: &Target<'_>,
        n_levels: usize,
        access: Access,
        checked: bool,
        named: Named<'_>,
    ) -> (Value, Option<Value>) {
        let levels = &target.path.levels;
        let in_word = n_levels == target.n_levels() && n_levels < levels.len();
        let at = |d: usize| self.get(&target.key(cursor.func, id, d), access, target.tree);
        if let Some(known) = at(n_levels - 1).filter(|_| n_levels > 1 && !in_word) {
            return (known.cell, known.inside);
        }
        let found = (1..n_levels).rev().find_map(|d| Some((d, at(d)?)));
        // If an index was clamped at this level, the levels below need the clamped one too.
        let certain = |&d: &usize| at(d).is_some_and(|known| known.inside.is_none());
        let certain = (1..n_levels).rev().find(certain);
        let (mut inside, mut clamped) = (None, target.indices.clone());
        if !checked {
            let axes = self.are_inside(cursor, target, certain.unwrap_or(0));
            inside = axes.all(cursor);
            if access == Access::Read {
                clamped = axes.clamp(cursor, &target.indices);
            } else if let Some(cond) = inside.take() {
                assert_inside(cursor, target, cond, named);
            }
        }
        let (mut depth, mut cell, mut active) = match found {
            Some((d, known)) => (d, known.cell, known.active),
            None => {
                let root = cursor.value(NodeOp::Root { tree: id }, Type::Cell(id, Tree::ROOT));
                (0, root, true)
            }
        };
        // What is inside its cell may still be outside the word.
        let whole = !in_word || inside.is_none();
        if let Some((d, shared)) =
            self.shared(cursor, cx, id, target, depth, n_levels, access, named)
        {
            (depth, cell, active) = (d, shared, access == Access::Write);
            if whole {
                let known = Known {
                    cell,
                    since: self.now,
                    active,
                    inside,
                };
                self.known.insert(target.key(cursor.func, id, depth), known);
            }
        }
        while depth + 1 < n_levels {
            depth += 1;
            let kind = target.tree[levels[depth].node].kind;
            (cell, active) = self.step(
                cursor,
                cx,
                id,
                &levels[depth],
                &clamped,
                cell,
                active,
                access,
            );
            if whole && (kind.is_sparse() || depth + 1 == n_levels) {
                let known = Known {
                    cell,
                    since: self.now,
                    active,
                    inside,
                };
                self.known.insert(target.key(cursor.func, id, depth), known);
            }
        }
        (cell, inside)
    }

    /// The cell of the last pointer or hash node on the path to a target, deeper than `from` and among
    /// `n_levels`, as one of the cells of the corners of its box; and its depth.
    #[expect(clippy::too_many_arguments, reason = "a step of `descend`")]
    fn shared(
        &mut self,
        cursor: &mut Builder<'_>,
        cx: &PassCx<'_>,
        id: TreeId,
        target: &Target<'_>,
        from: usize,
        n_levels: usize,
        access: Access,
        named: Named<'_>,
    ) -> Option<(usize, Value)> {
        let bounds = self.bounds.clone()?;
        let levels = &target.path.levels;
        let listed = |&d: &usize| target.tree[levels[d].node].kind.has_list();
        let depth = (from + 1..n_levels).rev().find(listed)?;
        let between = shared::between(cursor, target, depth, &bounds)?;
        let [first, last] = between.corners.map(|corner| {
            let mut indices = target.indices.clone();
            indices[between.index] = corner;
            let corner = Target {
                path: target.path.clone(),
                axes: target.axes.clone(),
                indices,
                ..*target
            };
            self.descend(cursor, cx, id, &corner, depth + 1, access, false, named)
                .0
        });
        let ty = cursor.func.ty(first);
        let op = Op::Select {
            cond: between.in_last,
            on_true: last,
            on_false: first,
        };
        Some((depth, cursor.value(op, ty)))
    }

    /// One level down.
    #[expect(clippy::too_many_arguments, reason = "a step of `cell`")]
    fn step(
        &mut self,
        cursor: &mut Builder<'_>,
        cx: &PassCx<'_>,
        id: aerogel_ir::TreeId,
        level: &Level,
        indices: &[Value],
        cell: Value,
        active: bool,
        access: Access,
    ) -> (Value, bool) {
        let node = NodeRef {
            tree: id,
            node: level.node,
        };
        let (container, index) = slot(cursor, node, level, indices, cell);
        let kind = cx.env.trees[id][level.node].kind;
        let (op, active) = match (kind, access) {
            (kind, _) if !kind.is_sparse() => (
                NodeOp::Lookup {
                    node,
                    container,
                    index,
                },
                active,
            ),
            (NodeKind::Bitmasked, Access::Read) => (
                NodeOp::Lookup {
                    node,
                    container,
                    index,
                },
                false,
            ),
            (_, Access::Read) => (
                NodeOp::Find {
                    node,
                    container,
                    index,
                },
                false,
            ),
            (_, Access::Write) => {
                self.makes(node, cx);
                (
                    NodeOp::Obtain {
                        node,
                        container,
                        index,
                    },
                    true,
                )
            }
        };
        (cursor.value(op, Type::Cell(id, level.node)), active)
    }

    /// The cell that holds a field's component, or its word, at indices of the layout; and whether these
    /// are inside, where that is not certain.
    pub(super) fn holder(
        &mut self,
        cursor: &mut Builder<'_>,
        cx: &PassCx<'_>,
        field: FieldId,
        indices: &[Value],
        k: usize,
        access: Access,
    ) -> (Value, Option<Value>) {
        let data = &cx.env.fields[field];
        let layout = &cx.env.trees[data.tree];
        let holder = NodeRef {
            tree: data.tree,
            node: layout.holder(data.places[k]),
        };
        let what = format!("field `{}`", data.name);
        // Indices of dense fields are the user's to check.
        let checked = cx.options.debug || !layout.is_below_sparse(holder.node);
        self.cell(
            cursor,
            cx,
            holder,
            indices,
            access,
            checked,
            (&what, &data.offset),
        )
    }

    /// The storage of a field's component at indices that include the offset.
    pub(super) fn component(
        &mut self,
        cursor: &mut Builder<'_>,
        cx: &PassCx<'_>,
        field: FieldId,
        indices: &[Value],
        k: usize,
        access: Access,
    ) -> (Value, Option<Value>) {
        let data = &cx.env.fields[field];
        let place = data.places[k];
        let layout = &cx.env.trees[data.tree];
        let (cell, inside) = self.holder(cursor, cx, field, indices, k, access);
        let NodeKind::Place(ty) = layout[place].kind else {
            unreachable!("a field's places are places")
        };
        let node = NodeRef {
            tree: data.tree,
            node: place,
        };
        let ty = Type::Scalar(ty).to_ref().expect("a scalar has a storage");
        (cursor.value(NodeOp::Child { node, cell }, ty), inside)
    }
}

/// The container of a level in a cell, and the number of the cell there that indices lead to.
fn slot(
    cursor: &mut Builder<'_>,
    node: NodeRef,
    level: &Level,
    indices: &[Value],
    cell: Value,
) -> (Value, Value) {
    let ty = Type::Container(node.tree, node.node);
    let container = cursor.value(NodeOp::Child { node, cell }, ty);
    let coords = level
        .axes
        .iter()
        .map(|a| coordinate(cursor, indices[a.index], a))
        .collect();
    let index = cursor.value(NodeOp::Linearize { node, coords }, Type::I64);
    (container, index)
}

/// The field that a storage belongs to, if it is one's.
fn field_of(func: &Function, place: Value) -> Option<FieldId> {
    match func.def_op(place)? {
        Op::FieldAt { field, .. } => Some(*field),
        Op::ElemRef { base, .. } => field_of(func, *base),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
