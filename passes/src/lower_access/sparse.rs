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

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{
    AssertKind, BinaryOp, CompareOp, Cursor, FieldId, Function, Inst, NodeRef, Op, ScopedMap, Type,
    Value, walk,
};
use aerogel_snode::{Level, LevelAxis, NodeId, NodeKind, Path, Tree};

use super::coordinate;
use crate::PassCx;
use crate::cells;

/// A cell of a node: for each axis that divides it an index, and what that is divided by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    node: NodeRef,
    axes: Vec<(u8, Value, u64)>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Nothing is known from before.
    floor: u32,
    /// Values that are at least 0 and less than this.
    below: SecondaryMap<Value, Option<i128>>,
}

/// For each index whether it is inside; none if that is certain.
struct Inside(Vec<Option<Value>>);

impl Inside {
    fn all(&self, cursor: &mut Cursor<'_>) -> Option<Value> {
        let conditions = self.0.iter().copied().flatten();
        conditions.reduce(|lhs, rhs| and(cursor, lhs, rhs))
    }

    /// The indices, with 0 for those outside.
    fn clamp(&self, cursor: &mut Cursor<'_>, indices: &[Value]) -> Vec<Value> {
        let pairs = indices.iter().zip(&self.0);
        pairs
            .map(|(&index, &inside)| or_zero(cursor, inside, index))
            .collect()
    }
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

    fn key(&self, id: aerogel_ir::TreeId, depth: usize) -> Key {
        let mut axes: Vec<(u8, Value, u64)> = Vec::new();
        for axis in self.path.levels[..=depth].iter().flat_map(|l| &l.axes) {
            let entry = (
                self.axes[axis.index],
                self.indices[axis.index],
                axis.divisor,
            );
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
            Op::Activate { node, .. } | Op::Append { node, .. } => self.makes(node, cx),
            Op::Deactivate { node, .. } => self.releases(node, cx),
            Op::Call { .. } => self.forget_all(),
            _ => {}
        });
    }

    fn tick(&mut self) -> u32 {
        self.now += 1;
        self.now
    }

    /// Some cell on the way to `node` becomes active.
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

    /// Notes what `cell_at` says, and that the cells around are active then.
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
            let known = Known {
                cell: here,
                since: self.now,
                active: true,
                inside: None,
            };
            self.known.insert(target.key(node.tree, depth), known);
            cell = match func.def_op(here) {
                Some(&(Op::Lookup { container, .. } | Op::Find { container, .. })) => {
                    match func.def_op(container) {
                        Some(&Op::Child { cell, .. }) => Some(cell),
                        _ => None,
                    }
                }
                _ => None,
            };
        }
    }

    /// The cell of `node` at indices, of the layout; and whether these are inside, where that is not
    /// certain. Writing outside fails. Indices that have been `checked` are inside.
    #[expect(
        clippy::too_many_arguments,
        reason = "what is asked, and what messages say"
    )]
    fn cell(
        &mut self,
        cursor: &mut Cursor<'_>,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: &[Value],
        access: Access,
        checked: bool,
        what: &str,
    ) -> (Value, Option<Value>) {
        let target = Target::new(cx, node, indices.to_vec());
        let levels = &target.path.levels;
        let n_levels = target.n_levels();
        let in_word = n_levels < levels.len();
        let id = node.tree;
        let at = |d: usize| self.get(&target.key(id, d), access, target.tree);
        if let Some(known) = at(n_levels - 1).filter(|_| n_levels > 1 && !in_word) {
            return (known.cell, known.inside);
        }
        // Where an index was clamped on the way, the levels below need that too.
        let certain = |d: usize| Some((d, at(d).filter(|known| known.inside.is_none())?));
        let found = (1..n_levels).rev().find_map(certain);
        let (mut inside, mut clamped) = (None, target.indices.clone());
        if !checked {
            let axes = self.are_inside(cursor, &target, found.map_or(0, |(d, _)| d));
            inside = axes.all(cursor);
            if access == Access::Read {
                clamped = axes.clamp(cursor, &target.indices);
            } else if let Some(cond) = inside.take() {
                assert_inside(cursor, &target, cond, what);
            }
        }
        let (mut depth, mut cell, mut active) = match found {
            Some((d, known)) => (d, known.cell, known.active),
            None => {
                let root = cursor.insert(Op::Root { tree: id }, Type::Cell(id, Tree::ROOT));
                (0, root, true)
            }
        };
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
            // What is inside its cell may still be outside the word.
            let whole = !in_word || inside.is_none();
            if whole && (kind.is_sparse() || depth + 1 == n_levels) {
                let known = Known {
                    cell,
                    since: self.now,
                    active,
                    inside,
                };
                self.known.insert(target.key(id, depth), known);
            }
        }
        (cell, inside)
    }

    /// Whether each index is inside the tree, where levels deeper than `from` rely on it; none if that
    /// is certain. Only what no level above divides can lead outside.
    fn are_inside(&self, cursor: &mut Cursor<'_>, target: &Target<'_>, from: usize) -> Inside {
        let mut axes = vec![None; target.indices.len()];
        let levels = &target.path.levels;
        let unchecked = levels[from + 1..].iter().flat_map(|l| &l.axes);
        for axis in unchecked.filter(|a| !a.wraps) {
            let index = target.indices[axis.index];
            let extent = i128::from(axis.divisor * axis.extent);
            let (lo, hi) = self.range(cursor.func, index);
            let elem = cursor.func.elem(index);
            let mut bounds = Vec::new();
            if lo < 0 {
                bounds.push((CompareOp::Ge, 0));
            }
            if hi >= extent {
                bounds.push((CompareOp::Lt, extent));
            }
            let mut all = None;
            for (op, bound) in bounds {
                let rhs = cursor.constant(Scalar::int(elem, bound));
                let lhs = index;
                let ok = cursor.insert(Op::Compare { op, lhs, rhs }, Type::BOOL);
                all = Some(all.map_or(ok, |all| and(cursor, all, ok)));
            }
            axes[axis.index] = all;
        }
        Inside(axes)
    }

    /// The least and the greatest that an index can be.
    fn range(&self, func: &Function, index: Value) -> (i128, i128) {
        let (least, most) = if func.elem(index).bits() == 32 {
            (i128::from(i32::MIN), i128::from(i32::MAX))
        } else {
            (i128::from(i64::MIN), i128::from(i64::MAX))
        };
        if let Some(bound) = self.below[index] {
            return (0, bound - 1);
        }
        let (base, constant) = match func.def_op(index) {
            Some(Op::Const { value }) => return (value.as_i128(), value.as_i128()),
            Some(&Op::Binary { op, lhs, rhs }) => {
                let constant = |v: Value| func.as_const(v).map(Scalar::as_i128);
                match (op, constant(lhs), constant(rhs)) {
                    (BinaryOp::Add, Some(c), None) => (rhs, c),
                    (BinaryOp::Add, None, Some(c)) => (lhs, c),
                    (BinaryOp::Sub, None, Some(c)) => (lhs, -c),
                    _ => return (least, most),
                }
            }
            _ => return (least, most),
        };
        let (lo, hi) = self.range(func, base);
        // A sum that may wrap can be anything.
        if lo + constant < least || hi + constant > most {
            return (least, most);
        }
        (lo + constant, hi + constant)
    }

    /// One level down.
    #[expect(clippy::too_many_arguments, reason = "a step of `cell`")]
    fn step(
        &mut self,
        cursor: &mut Cursor<'_>,
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
                Op::Lookup {
                    node,
                    container,
                    index,
                },
                active,
            ),
            (NodeKind::Bitmasked, Access::Read) => (
                Op::Lookup {
                    node,
                    container,
                    index,
                },
                false,
            ),
            (_, Access::Read) => (
                Op::Find {
                    node,
                    container,
                    index,
                },
                false,
            ),
            (_, Access::Write) => {
                self.makes(node, cx);
                (
                    Op::Obtain {
                        node,
                        container,
                        index,
                    },
                    true,
                )
            }
        };
        (cursor.insert(op, Type::Cell(id, level.node)), active)
    }

    /// The cell that holds a field's component, or its word, at indices of the layout; and whether these
    /// are inside, where that is not certain.
    pub(super) fn holder(
        &mut self,
        cursor: &mut Cursor<'_>,
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
        self.cell(cursor, cx, holder, indices, access, checked, &what)
    }

    /// The storage of a field's component at indices that include the offset.
    pub(super) fn component(
        &mut self,
        cursor: &mut Cursor<'_>,
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
        (cursor.insert(Op::Child { node, cell }, ty), inside)
    }

    /// Lowers an instruction over a node; its result, if it has one.
    pub(super) fn node_op(
        &mut self,
        cursor: &mut Cursor<'_>,
        cx: &PassCx<'_>,
        op: Op,
    ) -> Vec<Value> {
        match op {
            Op::Activate { node, indices } => {
                self.cell(
                    cursor,
                    cx,
                    node,
                    &indices,
                    Access::Write,
                    false,
                    &cx.env.describe(node),
                );
                Vec::new()
            }
            Op::Deactivate { node, indices } => {
                self.deactivate(cursor, cx, node, &indices);
                Vec::new()
            }
            Op::FindCell { node, indices } => {
                vec![
                    self.cell(cursor, cx, node, &indices, Access::Read, true, "")
                        .0,
                ]
            }
            Op::IsActive { node, indices } => vec![self.is_active(cursor, cx, node, &indices)],
            Op::Append { node, indices } => vec![self.append(cursor, cx, node, &indices)],
            Op::Length { node, indices } => {
                let (container, inside) = self.container(cursor, cx, node, &indices, Access::Read);
                let length = Op::ContainerLength { node, container };
                let x = cursor.insert(length, Type::I64);
                let length = cursor.insert(Op::Cast { x }, Type::I32);
                vec![or_zero(cursor, inside, length)]
            }
            _ => unreachable!("the caller picks instructions over nodes"),
        }
    }

    /// The container of `node` in the cell of its parent at indices.
    fn container(
        &mut self,
        cursor: &mut Cursor<'_>,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: &[Value],
        access: Access,
    ) -> (Value, Option<Value>) {
        let parent = cx.env.trees[node.tree][node.node].parent;
        let holder = NodeRef {
            tree: node.tree,
            node: parent.expect("the root has no container"),
        };
        let (cell, inside) = self.cell(
            cursor,
            cx,
            holder,
            indices,
            access,
            false,
            &cx.env.describe(node),
        );
        let ty = Type::Container(node.tree, node.node);
        (cursor.insert(Op::Child { node, cell }, ty), inside)
    }

    /// The container and number of a cell of a sparse node, at indices that are inside.
    fn slot_of(
        &mut self,
        cursor: &mut Cursor<'_>,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: &[Value],
    ) -> (Value, Value) {
        let tree = &cx.env.trees[node.tree];
        let parent = tree[node.node].parent.expect("the root is not sparse");
        let coarse = coarser(cursor, tree, node.node, parent, indices);
        let holder = NodeRef {
            tree: node.tree,
            node: parent,
        };
        let (cell, _) = self.cell(cursor, cx, holder, &coarse, Access::Read, true, "");
        let path = tree.path(node.node);
        let level = path.levels.last().expect("a path ends in its node");
        slot(cursor, node, level, indices, cell)
    }

    fn is_active(
        &mut self,
        cursor: &mut Cursor<'_>,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: &[Value],
    ) -> Value {
        let tree = &cx.env.trees[node.tree];
        let target = Target::new(cx, node, indices.to_vec());
        let axes = self.are_inside(cursor, &target, 0);
        let inside = axes.all(cursor);
        // A dense cell is as active as what it lies in.
        let chain = tree.sparse_chain(node.node);
        let Some(&last) = chain.last() else {
            return inside.unwrap_or_else(|| cursor.constant(Scalar::bool(true)));
        };
        let asked = NodeRef {
            tree: node.tree,
            node: last,
        };
        let clamped = axes.clamp(cursor, indices);
        let coarse = coarser(cursor, tree, node.node, last, &clamped);
        let (container, index) = self.slot_of(cursor, cx, asked, &coarse);
        let op = Op::CellIsActive {
            node: asked,
            container,
            index,
        };
        let active = cursor.insert(op, Type::BOOL);
        match inside {
            None => active,
            Some(rhs) => and(cursor, active, rhs),
        }
    }

    fn deactivate(
        &mut self,
        cursor: &mut Cursor<'_>,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: &[Value],
    ) {
        let tree = &cx.env.trees[node.tree];
        if let NodeKind::Dynamic { .. } = tree[node.node].kind {
            let (container, inside) = self.container(cursor, cx, node, indices, Access::Read);
            if let Some(cond) = inside {
                let parent = tree[node.node].parent.expect("a dynamic node has one");
                let holder = NodeRef {
                    tree: node.tree,
                    node: parent,
                };
                let target = Target::new(cx, holder, indices.to_vec());
                assert_inside(cursor, &target, cond, &cx.env.describe(node));
            }
            cursor.insert_inst(Op::ReleaseAll { node, container }, &[]);
        } else {
            let target = Target::new(cx, node, indices.to_vec());
            if let Some(cond) = self.are_inside(cursor, &target, 0).all(cursor) {
                assert_inside(cursor, &target, cond, &cx.env.describe(node));
            }
            let (container, index) = self.slot_of(cursor, cx, node, indices);
            if tree[node.node].kind == NodeKind::Bitmasked {
                let lookup = Op::Lookup {
                    node,
                    container,
                    index,
                };
                let cell = cursor.insert(lookup, Type::Cell(node.tree, node.node));
                cursor.build(|b| cells::release_below(b, tree, node.tree, node.node, cell));
            }
            let release = Op::Release {
                node,
                container,
                index,
            };
            cursor.insert_inst(release, &[]);
        }
        self.releases(node, cx);
    }

    fn append(
        &mut self,
        cursor: &mut Cursor<'_>,
        cx: &PassCx<'_>,
        node: NodeRef,
        indices: &[Value],
    ) -> Value {
        let (container, _) = self.container(cursor, cx, node, indices, Access::Write);
        let number = cursor.insert(Op::Extend { node, container }, Type::I64);
        self.makes(node, cx);
        let zero = cursor.constant(Scalar::int(ScalarType::I64, 0));
        let cond = cursor.insert(
            Op::Compare {
                op: CompareOp::Ge,
                lhs: number,
                rhs: zero,
            },
            Type::BOOL,
        );
        let n = cx.env.trees[node.tree][node.node].n_cells;
        let holes = vec!["{}"; indices.len()].join(", ");
        let assert = Op::Assert {
            cond,
            kind: AssertKind::Bounds,
            template: format!(
                "{} is full: the list at ({holes}) has {n} elements already",
                cx.env.describe(node)
            ),
            args: indices.to_vec(),
        };
        cursor.insert_inst(assert, &[]);
        // What is appended is stored next: there is its cell.
        let find = Op::Find {
            node,
            container,
            index: number,
        };
        let cell = cursor.insert(find, Type::Cell(node.tree, node.node));
        let number = cursor.insert(Op::Cast { x: number }, Type::I32);
        let tree = &cx.env.trees[node.tree];
        let own = tree[node.node].axes[0].axis;
        let axes = tree.shape_axes(node.node);
        let at = axes.iter().position(|a| a.0 == own);
        let mut all = indices.to_vec();
        all.insert(at.expect("a node's axis is among its shape's"), number);
        self.below[number] = Some(n.into());
        let target = Target::new(cx, node, all);
        let known = Known {
            cell,
            since: self.now,
            active: true,
            inside: None,
        };
        let depth = target.path.levels.len() - 1;
        self.known.insert(target.key(node.tree, depth), known);
        number
    }
}

/// The container of a level in a cell, and the number of the cell there that indices lead to.
fn slot(
    cursor: &mut Cursor<'_>,
    node: NodeRef,
    level: &Level,
    indices: &[Value],
    cell: Value,
) -> (Value, Value) {
    let ty = Type::Container(node.tree, node.node);
    let container = cursor.insert(Op::Child { node, cell }, ty);
    let coords = level
        .axes
        .iter()
        .map(|a| coordinate(cursor, indices[a.index], a))
        .collect();
    let index = cursor.insert(Op::Linearize { node, coords }, Type::I64);
    (container, index)
}

/// The indices of the cell of `above` that the cell of `node` at `indices` lies in.
fn coarser(
    cursor: &mut Cursor<'_>,
    tree: &Tree,
    node: NodeId,
    above: NodeId,
    indices: &[Value],
) -> Vec<Value> {
    let axes = tree.shape_axes(node);
    tree.shape_axes(above)
        .iter()
        .map(|&(axis, extent)| {
            let index = axes.iter().position(|a| a.0 == axis);
            let index = index.expect("a node has the axes of those above");
            let axis = LevelAxis {
                index,
                divisor: axes[index].1 / extent,
                extent,
                wraps: false,
            };
            coordinate(cursor, indices[index], &axis)
        })
        .collect()
}

/// The field that a storage belongs to, if it is one's.
fn field_of(func: &Function, place: Value) -> Option<FieldId> {
    match func.def_op(place)? {
        Op::FieldAt { field, .. } => Some(*field),
        Op::ElemRef { base, .. } => field_of(func, *base),
        _ => None,
    }
}

fn and(cursor: &mut Cursor<'_>, lhs: Value, rhs: Value) -> Value {
    let op = BinaryOp::And;
    cursor.insert(Op::Binary { op, lhs, rhs }, Type::BOOL)
}

fn assert_inside(cursor: &mut Cursor<'_>, target: &Target<'_>, cond: Value, what: &str) {
    let node = target.path.levels.last().expect("a path has levels").node;
    let shape: Vec<String> = target.tree.shape(node).iter().map(u64::to_string).collect();
    let holes = vec!["{}"; target.indices.len()].join(", ");
    let assert = Op::Assert {
        cond,
        kind: AssertKind::Bounds,
        template: format!(
            "index ({holes}) is out of bounds for {what} of shape ({})",
            shape.join(", ")
        ),
        args: target.indices.clone(),
    };
    cursor.insert_inst(assert, &[]);
}

/// `value`, or zero where the indices were outside.
pub(super) fn or_zero(cursor: &mut Cursor<'_>, inside: Option<Value>, value: Value) -> Value {
    let Some(cond) = inside else { return value };
    let ty = cursor.func.ty(value);
    let on_false = cursor.constant(Scalar::zero(cursor.func.elem(value)));
    let op = Op::Select {
        cond,
        on_true: value,
        on_false,
    };
    cursor.insert(op, ty)
}

#[cfg(test)]
mod tests {
    use crate::testing::{check_pass, check_passes};

    #[test]
    fn reading_finds_and_writing_obtains() {
        check_pass!("lower_access", "
            tree0 { pointer i:4 { bitmasked i:8 { place x: f32 } } }
            field @x: f32 = tree0 [S3]
            kernel @k() {
                task serial {
                    yield []
                } {
                    v0: i32 = const 9
                    v1: ref<f32> = field_at @x, [v0]
                    v2: f32 = load v1
                    store v1, v2
                    v3: f32 = load v1
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task serial {
                    yield []
                } {
                    v0: i32 = const 9
                    v1: cell<tree0.S0> = root tree0
                    v2: container<tree0.S1> = child tree0.S1, v1
                    v3: i32 = const 3
                    v4: i32 = shr v0, v3
                    v5: i64 = linearize tree0.S1, [v4]
                    v6: cell<tree0.S1> = find tree0.S1, v2, v5
                    v7: container<tree0.S2> = child tree0.S2, v6
                    v8: i32 = const 7
                    v9: i32 = and v0, v8
                    v10: i64 = linearize tree0.S2, [v9]
                    v11: cell<tree0.S2> = lookup tree0.S2, v7, v10
                    v12: ref<f32> = child tree0.S3, v11
                    v13: f32 = load v12
                    v14: cell<tree0.S0> = root tree0
                    v15: container<tree0.S1> = child tree0.S1, v14
                    v16: i32 = const 3
                    v17: i32 = shr v0, v16
                    v18: i64 = linearize tree0.S1, [v17]
                    v19: cell<tree0.S1> = obtain tree0.S1, v15, v18
                    v20: container<tree0.S2> = child tree0.S2, v19
                    v21: i32 = const 7
                    v22: i32 = and v0, v21
                    v23: i64 = linearize tree0.S2, [v22]
                    v24: cell<tree0.S2> = obtain tree0.S2, v20, v23
                    v25: ref<f32> = child tree0.S3, v24
                    store v25, v13
                    v26: ref<f32> = child tree0.S3, v24
                    v27: f32 = load v26
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn outside_reads_zero_and_writing_fails() {
        check_pass!("lower_access", "
            tree0 { pointer i:4 j:4 { dense i:8 { place x: f32 } } }
            field @x: f32 = tree0 [S3] offset [-2, 0]
            kernel @k(v0: i32) {
                task serial {
                    yield []
                } {
                    v0: i32 = arg a0
                    v1: i32 = const 3
                    v2: ref<f32> = field_at @x, [v0, v1]
                    v3: f32 = load v2
                    v4: f32 = atomic_add v2, v3
                    yield []
                }
                yield []
            }", @r#"
            kernel @k(v0: i32) {
                task serial {
                    yield []
                } {
                    v0: i32 = arg a0
                    v1: i32 = const 3
                    v2: i32 = const -2
                    v3: i32 = sub v0, v2
                    v4: i32 = const 0
                    v5: u1 = ge v3, v4
                    v6: i32 = const 32
                    v7: u1 = lt v3, v6
                    v8: u1 = and v5, v7
                    v9: i32 = const 0
                    v10: i32 = select v8, v3, v9
                    v11: cell<tree0.S0> = root tree0
                    v12: container<tree0.S1> = child tree0.S1, v11
                    v13: i32 = const 3
                    v14: i32 = shr v10, v13
                    v15: i64 = linearize tree0.S1, [v14, v1]
                    v16: cell<tree0.S1> = find tree0.S1, v12, v15
                    v17: container<tree0.S2> = child tree0.S2, v16
                    v18: i32 = const 7
                    v19: i32 = and v10, v18
                    v20: i64 = linearize tree0.S2, [v19]
                    v21: cell<tree0.S2> = lookup tree0.S2, v17, v20
                    v22: ref<f32> = child tree0.S3, v21
                    v23: f32 = load v22
                    v24: f32 = const 0.0
                    v25: f32 = select v8, v23, v24
                    v26: i32 = const 0
                    v27: u1 = ge v3, v26
                    v28: i32 = const 32
                    v29: u1 = lt v3, v28
                    v30: u1 = and v27, v29
                    assert v30, bounds, "index ({}, {}) is out of bounds for field `x` of shape (32, 4)", [v3, v1]
                    v31: cell<tree0.S0> = root tree0
                    v32: container<tree0.S1> = child tree0.S1, v31
                    v33: i32 = const 3
                    v34: i32 = shr v3, v33
                    v35: i64 = linearize tree0.S1, [v34, v1]
                    v36: cell<tree0.S1> = obtain tree0.S1, v32, v35
                    v37: container<tree0.S2> = child tree0.S2, v36
                    v38: i32 = const 7
                    v39: i32 = and v3, v38
                    v40: i64 = linearize tree0.S2, [v39]
                    v41: cell<tree0.S2> = lookup tree0.S2, v37, v40
                    v42: ref<f32> = child tree0.S3, v41
                    v43: f32 = atomic_add v42, v25
                    yield []
                }
                yield []
            }
            "#);
    }

    #[test]
    fn neighbours_share_what_was_found() {
        check_passes!(&["lower_access", "cse", "dce"], "
            tree0 { pointer i:4 { dense i:8 { place x: f32, place y: f32 } } }
            field @x: f32 = tree0 [S3]
            field @y: f32 = tree0 [S4]
            field @z: vec<2, f32> = tree0 [S3, S4]
            kernel @k() -> f32 {
                task serial {
                    yield []
                } {
                    v0: i32 = const 9
                    v1: ref<f32> = field_at @x, [v0]
                    v2: ref<f32> = field_at @y, [v0]
                    v3: f32 = load v1
                    v4: f32 = load v2
                    v5: f32 = add v3, v4
                    return [v5]
                }
                yield []
            }", @"
            kernel @k() -> f32 {
                task serial {
                    yield []
                } {
                    v0: i32 = const 9
                    v1: cell<tree0.S0> = root tree0
                    v2: container<tree0.S1> = child tree0.S1, v1
                    v3: i32 = const 3
                    v4: i32 = shr v0, v3
                    v5: i64 = linearize tree0.S1, [v4]
                    v6: cell<tree0.S1> = find tree0.S1, v2, v5
                    v7: container<tree0.S2> = child tree0.S2, v6
                    v8: i32 = const 7
                    v9: i32 = and v0, v8
                    v10: i64 = linearize tree0.S2, [v9]
                    v11: cell<tree0.S2> = lookup tree0.S2, v7, v10
                    v12: ref<f32> = child tree0.S3, v11
                    v13: f32 = load v12
                    v14: ref<f32> = child tree0.S4, v11
                    v15: f32 = load v14
                    v16: f32 = add v13, v15
                    return [v16]
                }
                yield []
            }
            ");
    }

    #[test]
    fn what_was_found_is_forgotten_when_a_loop_may_activate() {
        check_pass!("lower_access", "
            tree0 { pointer i:4 { place x: i32 } }
            field @x: i32 = tree0 [S2]
            kernel @k() {
                task serial {
                    yield []
                } {
                    v0: i32 = const 0
                    v1: i32 = const 4
                    v2: i32 = const 1
                    v3: ref<i32> = field_at @x, [v0]
                    v4: i32 = load v3
                    for v0, v1, v2, [] (v5: i32) {
                        v6: i32 = load v3
                        v7: i32 = add v6, v2
                        v8: ref<i32> = field_at @x, [v5]
                        store v8, v7
                        yield []
                    }
                    v9: i32 = load v3
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task serial {
                    yield []
                } {
                    v0: i32 = const 0
                    v1: i32 = const 4
                    v2: i32 = const 1
                    v3: cell<tree0.S0> = root tree0
                    v4: container<tree0.S1> = child tree0.S1, v3
                    v5: i64 = linearize tree0.S1, [v0]
                    v6: cell<tree0.S1> = find tree0.S1, v4, v5
                    v7: ref<i32> = child tree0.S2, v6
                    v8: i32 = load v7
                    for v0, v1, v2, [] (v9: i32) {
                        v10: cell<tree0.S0> = root tree0
                        v11: container<tree0.S1> = child tree0.S1, v10
                        v12: i64 = linearize tree0.S1, [v0]
                        v13: cell<tree0.S1> = find tree0.S1, v11, v12
                        v14: ref<i32> = child tree0.S2, v13
                        v15: i32 = load v14
                        v16: i32 = add v15, v2
                        v17: cell<tree0.S0> = root tree0
                        v18: container<tree0.S1> = child tree0.S1, v17
                        v19: i64 = linearize tree0.S1, [v9]
                        v20: cell<tree0.S1> = obtain tree0.S1, v18, v19
                        v21: ref<i32> = child tree0.S2, v20
                        store v21, v16
                        yield []
                    }
                    v22: cell<tree0.S0> = root tree0
                    v23: container<tree0.S1> = child tree0.S1, v22
                    v24: i64 = linearize tree0.S1, [v0]
                    v25: cell<tree0.S1> = find tree0.S1, v23, v24
                    v26: ref<i32> = child tree0.S2, v25
                    v27: i32 = load v26
                    yield []
                }
                yield []
            }
            ");
    }

    #[test]
    fn questions_and_lists() {
        check_pass!("lower_access", "
            tree0 { pointer i:4 { dense i:8 { dynamic j:100 chunk=8 { place x: i32 } } } }
            field @x: i32 = tree0 [S4]
            kernel @k() {
                task serial {
                    yield []
                } {
                    v0: i32 = const 9
                    v1: i32 = const 1
                    v2: u1 = is_active tree0.S1, [v1]
                    v3: i32 = append tree0.S3, [v0]
                    v4: ref<i32> = field_at @x, [v0, v3]
                    store v4, v0
                    v5: i32 = length tree0.S3, [v0]
                    deactivate tree0.S3, [v0]
                    activate tree0.S1, [v1]
                    yield []
                }
                yield []
            }", @r#"
            kernel @k() {
                task serial {
                    yield []
                } {
                    v0: i32 = const 9
                    v1: i32 = const 1
                    v2: cell<tree0.S0> = root tree0
                    v3: container<tree0.S1> = child tree0.S1, v2
                    v4: i64 = linearize tree0.S1, [v1]
                    v5: u1 = cell_is_active tree0.S1, v3, v4
                    v6: cell<tree0.S0> = root tree0
                    v7: container<tree0.S1> = child tree0.S1, v6
                    v8: i32 = const 3
                    v9: i32 = shr v0, v8
                    v10: i64 = linearize tree0.S1, [v9]
                    v11: cell<tree0.S1> = obtain tree0.S1, v7, v10
                    v12: container<tree0.S2> = child tree0.S2, v11
                    v13: i32 = const 7
                    v14: i32 = and v0, v13
                    v15: i64 = linearize tree0.S2, [v14]
                    v16: cell<tree0.S2> = lookup tree0.S2, v12, v15
                    v17: container<tree0.S3> = child tree0.S3, v16
                    v18: i64 = extend tree0.S3, v17
                    v19: i64 = const 0
                    v20: u1 = ge v18, v19
                    assert v20, bounds, "the dynamic node S3 of `x` is full: the list at ({}) has 100 elements already", [v0]
                    v21: cell<tree0.S3> = find tree0.S3, v17, v18
                    v22: i32 = cast v18
                    v23: ref<i32> = child tree0.S4, v21
                    store v23, v0
                    v24: container<tree0.S3> = child tree0.S3, v16
                    v25: i64 = container_length tree0.S3, v24
                    v26: i32 = cast v25
                    v27: container<tree0.S3> = child tree0.S3, v16
                    release_all tree0.S3, v27
                    v28: cell<tree0.S0> = root tree0
                    v29: container<tree0.S1> = child tree0.S1, v28
                    v30: i64 = linearize tree0.S1, [v1]
                    v31: cell<tree0.S1> = obtain tree0.S1, v29, v30
                    yield []
                }
                yield []
            }
            "#);
    }

    #[test]
    fn a_masked_cell_gives_back_what_it_holds() {
        check_pass!("lower_access", "
            tree0 { bitmasked i:4 { pointer i:2 { place x: i32 } } }
            field @x: i32 = tree0 [S3]
            kernel @k() {
                task serial {
                    yield []
                } {
                    v0: i32 = const 3
                    v1: ref<i32> = field_at @x, [v0]
                    store v1, v0
                    v2: i32 = const 1
                    deactivate tree0.S1, [v2]
                    yield []
                }
                yield []
            }", @"
            kernel @k() {
                task serial {
                    yield []
                } {
                    v0: i32 = const 3
                    v1: cell<tree0.S0> = root tree0
                    v2: container<tree0.S1> = child tree0.S1, v1
                    v3: i32 = const 1
                    v4: i32 = shr v0, v3
                    v5: i64 = linearize tree0.S1, [v4]
                    v6: cell<tree0.S1> = obtain tree0.S1, v2, v5
                    v7: container<tree0.S2> = child tree0.S2, v6
                    v8: i32 = const 1
                    v9: i32 = and v0, v8
                    v10: i64 = linearize tree0.S2, [v9]
                    v11: cell<tree0.S2> = obtain tree0.S2, v7, v10
                    v12: ref<i32> = child tree0.S3, v11
                    store v12, v0
                    v13: i32 = const 1
                    v14: cell<tree0.S0> = root tree0
                    v15: container<tree0.S1> = child tree0.S1, v14
                    v16: i64 = linearize tree0.S1, [v13]
                    v17: cell<tree0.S1> = lookup tree0.S1, v15, v16
                    v18: container<tree0.S2> = child tree0.S2, v17
                    v19: i64 = const 0
                    v20: i64 = const 2
                    v21: i64 = const 1
                    for v19, v20, v21, [] (v22: i64) {
                        release tree0.S2, v18, v22
                        yield []
                    }
                    release tree0.S1, v15, v16
                    yield []
                }
                yield []
            }
            ");
    }
}
