//! Values at the active cells of fields, and stores to fields.
//!
//! ```text
//! psi[i, j] = phi[i + 1, j] at the cells of phi     for cells phi [n, m] { psi[i0, i1] = phi[add(i0, i32(1)), i1] zero }
//! ```
//! The indices of a field's cells are values at its cells, and so is what is made of such values point by point. Which cells
//! these are is settled when the indices are made: where a store may have made others active since, the values are not to be
//! used any more.

use std::sync::Arc;

use aerogel_base::ScalarType;
use aerogel_base::hash::LookupMap;
use aerogel_ir::TreeId;
use aerogel_snode::{NodeId, Tree};
use indexmap::{IndexMap, IndexSet};

use super::{Made, RecordError, Recorded, Recording};
use crate::ir::{Accum, Buffer, Dim, Expr, ExprDef, For, Outside, RegionDef, Run, Stmt, Store};

/// The state of fields and of sparse values on their cells.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    /// The first index of each field, along each axis.
    offsets: LookupMap<Buffer, Vec<i32>>,
    /// The field at whose cells a value is, and how often its cells had changed when it was made.
    pub(super) at: LookupMap<Buffer, (Buffer, u32)>,
    /// The scalar sparse values of a sparse value with components, in row-major order of the component axes.
    pub(super) parts: LookupMap<Buffer, Vec<Buffer>>,
    /// Which of them are the cells' indices: along which axis.
    axes: LookupMap<Buffer, usize>,
    changes: Changes,
    blocks: Vec<Block>,
    /// Whether values are used as they are though cells may have become active since, and whether one has been: the first
    /// time that a function is traced it is not known which values are at cells.
    pub(super) excuses: bool,
    pub(super) has_excused: bool,
}

/// How often cells of sparse nodes may have become active.
type Changes = IndexMap<(TreeId, NodeId), u32>;

/// A block of the host that is being recorded.
#[derive(Clone, Debug)]
struct Block {
    /// How many buffers there were before it.
    n_buffers: u32,
    changes: Changes,
    /// The fields at whose cells a value from before it is used.
    used: IndexSet<Buffer>,
}

/// The field at whose cells a statement is done, and the index of its cell in the statement's axes.
pub(super) type Over = (Buffer, Vec<Expr>);

impl Recording {
    /// A place of a tree as a buffer. Its first index along each axis is `offset`'s, or 0.
    ///
    /// # Errors
    /// If numbers share bits, so that a store to one changes others.
    pub fn field(
        &mut self,
        name: &str,
        tree: &Arc<Tree>,
        place: NodeId,
        offset: &[i32],
    ) -> Recorded {
        if !tree.exponent_group(place).is_empty() {
            return Err(RecordError::Value(format!(
                "`{name}` shares its exponent with other fields, and a store to it changes theirs: tensors do not support it"
            )));
        }
        let id = self.tree(tree);
        let field = self.program.field(name, id, place);
        self.cells.offsets.insert(field, offset.to_vec());
        Ok(field)
    }

    /// The index of each active cell of a field along each of its axes.
    ///
    /// # Errors
    /// If it has no axes.
    pub fn cell_indices(&mut self, field: Buffer) -> Recorded<Vec<Buffer>> {
        let shape = self.shape(field);
        if shape.is_empty() {
            let name = &self.program.buffers[field].name;
            return Err(RecordError::Value(format!(
                "`{name}` has one element, and no axis to iterate over"
            )));
        }
        let axes = self.program.axes(shape.len());
        let offset = self.offset(field);
        let mut out = Vec::new();
        for (k, &axis) in axes.iter().enumerate() {
            let first = self.program.exprs.i32(offset[k]);
            let value = self.add(axis, first);
            let over = Some((field, axes.clone()));
            let index = self.make_over(Made::map(shape.clone(), axes.clone(), value), over);
            self.cells.axes.insert(index, k);
            out.push(index);
        }
        Ok(out)
    }

    fn offset(&self, field: Buffer) -> Vec<i32> {
        let n = self.program.buffers[field].shape.len();
        let given = self.cells.offsets.get(&field).cloned().unwrap_or_default();
        if given.is_empty() { vec![0; n] } else { given }
    }

    /// How often cells of a field may have become active.
    fn changes(&self, field: Buffer, changes: &Changes) -> u32 {
        let nodes = self.program.sparse_nodes(field);
        nodes.iter().filter_map(|node| changes.get(node)).sum()
    }

    /// Whether a value is one at the cells of a field.
    pub fn is_at_cells(&self, x: Buffer) -> bool {
        self.cells.at.contains_key(&x)
    }

    /// The field at whose cells a value is, if it is at some.
    pub fn field_at(&self, x: Buffer) -> Option<Buffer> {
        self.cells.at.get(&x).map(|&(field, _)| field)
    }

    /// Whether both values are at cells, and at the same.
    pub fn are_at_same_cells(&self, x: Buffer, y: Buffer) -> bool {
        let [x, y] = [x, y].map(|b| self.cells.at.get(&b));
        let both = x.zip(y);
        both.is_some_and(|((x, _), (y, _))| self.program.holder(*x) == self.program.holder(*y))
    }

    /// Whether a value is one at cells of which some may be inactive.
    pub fn is_sparse(&self, x: Buffer) -> bool {
        let field = self.cells.at.get(&x).map(|&(field, _)| field);
        field.is_some_and(|field| !self.program.sparse_nodes(field).is_empty())
    }

    /// How often cells of each sparse node may have become active.
    pub fn activations(&self) -> Vec<u32> {
        self.cells.changes.values().copied().collect()
    }

    /// Whether cells of a field may have become active since that was so.
    pub fn has_activated(&self, field: Buffer, before: &[u32]) -> bool {
        let nodes = self.cells.changes.iter().enumerate();
        let mut changed = nodes.filter(|(k, (_, n))| before.get(*k) != Some(*n));
        let own = self.program.sparse_nodes(field);
        changed.any(|(_, (node, _))| own.contains(node))
    }

    /// Notes that a buffer has values at the active cells of a field alone.
    pub fn note_at_cells(&mut self, x: Buffer, field: Buffer) {
        let changes = self.changes(field, &self.cells.changes);
        self.cells.at.insert(x, (field, changes));
    }

    /// The field at whose cells operands are, if some are.
    ///
    /// # Errors
    /// If they are at the cells of several fields, or at cells that may not be the active ones any more.
    pub fn cells_of(&mut self, op: &str, operands: &[Buffer]) -> Recorded<Option<Buffer>> {
        let mut found: Option<Buffer> = None;
        for &x in operands {
            let Some(&(field, then)) = self.cells.at.get(&x) else {
                continue;
            };
            let name = |b: Buffer| &self.program.buffers[b].name;
            let has_changed = then != self.changes(field, &self.cells.changes);
            self.cells.has_excused |= has_changed && self.cells.excuses;
            if has_changed && !self.cells.excuses {
                return Err(RecordError::Value(format!(
                    "`{op}`: a store has activated cells of `{}` since its indices were read: call `indices` again",
                    name(field)
                )));
            }
            for block in &mut self.cells.blocks {
                if x.as_u32() < block.n_buffers {
                    block.used.insert(field);
                }
            }
            match found {
                Some(first) if self.program.holder(first) != self.program.holder(field) => {
                    return Err(RecordError::Value(format!(
                        "`{op}`: values on the cells of `{}` and on those of `{}` do not match: read one of the fields at the \
                         indices of the other's cells, or take `dense` of a value",
                        name(first),
                        name(field)
                    )));
                }
                _ => found = found.or(Some(field)),
            }
        }
        Ok(found)
    }

    /// Checks that a domain that operands broadcast to has the operands' cells, with few components.
    pub(super) fn stays_at_cells(
        &mut self,
        op: &str,
        operands: &[Buffer],
        domain: &[Dim],
    ) -> Recorded<()> {
        let Some(field) = self.cells_of(op, operands)? else {
            return Ok(());
        };
        let own = self.shape(field);
        let mut at_cells = operands.iter().filter(|x| self.is_at_cells(**x));
        let first = domain.starts_with(&own) && at_cells.all(|&x| self.rank(x) == domain.len());
        match first && (domain == own || self.are_few(&domain[own.len()..])) {
            true => Ok(()),
            false => {
                let shape = self.shape_text(domain);
                Err(RecordError::Value(format!(
                    "`{op}`: a value on the cells of `{}` does not broadcast to {shape}: take `dense` of it",
                    self.program.buffers[field].name
                )))
            }
        }
    }

    /// Checks that operands are no sparse values, for operations that need all elements of a tensor.
    ///
    /// # Errors
    /// If one is.
    pub fn expect_everywhere(&self, operands: &[Buffer]) -> Recorded<()> {
        match operands.iter().find_map(|x| self.cells.at.get(x)) {
            Some((field, _)) => Err(RecordError::Value(format!(
                "this needs all elements of a tensor, and a value on the cells of `{}` has those of active cells only: take \
                 `dense` of it, which is zero elsewhere",
                self.program.buffers[*field].name
            ))),
            None => Ok(()),
        }
    }

    /// The cells at which expressions read values that are at cells.
    pub(super) fn over(&self, roots: &[Expr]) -> Option<Over> {
        if self.cells.at.is_empty() {
            return None;
        }
        let mut over = None;
        let exprs = &self.program.exprs;
        exprs.visit(roots.iter().copied(), &mut |e| {
            if let ExprDef::Load { buffer, index, .. } = &exprs[e]
                && let Some((field, _)) = self.cells.at.get(buffer)
            {
                let n = self.program.buffers[*field].shape.len();
                over = Some((*field, index[..n].to_vec()));
            }
        });
        over
    }

    /// A tensor with the values of one at cells, and zero elsewhere.
    ///
    /// # Errors
    /// As `cells_of`.
    pub fn dense(&mut self, x: Buffer) -> Recorded {
        let Some(field) = self.cells_of("dense", &[x])? else {
            return Ok(x);
        };
        let shape = self.shape(x);
        let (ty, index) = (self.ty(x), self.program.axes(shape.len()));
        let target = self.program.temporary(ty, &shape);
        let zero = self.number(ty, 0.0);
        let value = self.element(x, index.clone());
        for (value, cells) in [(zero, None), (value, Some(field))] {
            let index = index.clone();
            let store = plain(target, index, value, Outside::Never);
            self.for_cells(shape.clone(), cells, vec![Stmt::Store(store)]);
        }
        Ok(target)
    }

    pub(super) fn for_cells(&mut self, domain: Vec<Dim>, cells: Option<Buffer>, body: Vec<Stmt>) {
        let span = self.span;
        let (domain, body) = match cells {
            Some(field) => self.written_out(field, domain, body),
            None => (domain, body),
        };
        self.program.body.push(Stmt::For(For {
            domain,
            cells,
            body,
            span,
        }));
    }

    /// The indices of a field's elements, and whether they are those of the cells that they are at.
    fn field_index(
        &mut self,
        field: Buffer,
        index: &[Buffer],
        cells: Option<Buffer>,
        elements: &[Expr],
    ) -> (Vec<Expr>, bool) {
        let offset = self.offset(field);
        let mut own = cells.is_some();
        let mut out = Vec::new();
        for (k, (&x, &e)) in index.iter().zip(elements).enumerate() {
            let axis = self.cells.axes.get(&x).copied();
            let other = cells.filter(|_| axis.is_some()).map(|c| self.offset(c));
            let at = match (axis, other) {
                (Some(axis), Some(other)) => {
                    own &= axis == k && other[axis] == offset[k];
                    let at = self.program.exprs.axis(axis as u32);
                    let more = self.program.exprs.i32(other[axis].wrapping_sub(offset[k]));
                    self.add(at, more)
                }
                _ => {
                    own = false;
                    let first = self.program.exprs.i32(offset[k]);
                    let e = self.as_index(e);
                    self.sub(e, first)
                }
            };
            out.push(at);
        }
        own &= cells.is_some_and(|c| self.shape(c) == self.shape(field));
        (out, own)
    }

    fn expect_indices(&self, field: Buffer, n: usize) -> Recorded<()> {
        let rank = self.rank(field);
        if n == rank {
            return Ok(());
        }
        let name = &self.program.buffers[field].name;
        let (many, axes) = (
            if n == 1 { "index" } else { "indices" },
            if rank == 1 { "axis" } else { "axes" },
        );
        Err(RecordError::Index(format!(
            "{n} {many} for `{name}`, which has {rank} {axes}"
        )))
    }

    /// The elements of a field at computed indices: zero where a cell is inactive, and outside.
    ///
    /// # Errors
    /// If there is not an index for each axis, or their shapes do not agree.
    pub fn load_field(&mut self, field: Buffer, index: &[Buffer]) -> Recorded {
        self.expect_indices(field, index.len())?;
        self.index_types("a field's element", index)?;
        let cells = self.cells_of("a field's element", index)?;
        let (domain, elements) = self.stretched("a field's element", index)?;
        let (at, own) = self.field_index(field, index, cells, &elements);
        let outside = if own { Outside::Never } else { Outside::Zero };
        let value = self.program.load(field, at, outside);
        let axes = self.program.axes(domain.len());
        let over = cells.map(|c| (c, axes[..self.rank(c)].to_vec()));
        Ok(self.make_over(Made::map(domain, axes, value), over))
    }

    /// Stores values to elements of fields at computed indices, a value for each field, or puts them to what is there, where
    /// `mask` is true: it makes their cells active. Outside of the fields nothing is stored.
    ///
    /// # Errors
    /// As `store_at`.
    pub fn store_fields(
        &mut self,
        fields: &[Buffer],
        index: &[Buffer],
        values: &[Buffer],
        accum: Option<Accum>,
        mask: Option<Buffer>,
    ) -> Recorded<()> {
        self.index_types("a store to a field", index)?;
        let mut operands = [index, values].concat();
        operands.extend(mask);
        let cells = self.cells_of("x[key] = value", &operands)?;
        let mut stores = Vec::new();
        let mut changed = IndexSet::new();
        for (&field, &value) in fields.iter().zip(values) {
            self.expect_indices(field, index.len())?;
            if self.ty(value) != self.ty(field) {
                return self.types_error(
                    "x[key] = value",
                    &[field, value],
                    "values of the field's type",
                );
            }
            if let Some(accum) = accum.filter(|a| !a.binary().takes(self.ty(field))) {
                let what = format!("values that `{accum}` takes");
                return self.types_error("x[key] = value", &[field, value], &what);
            }
            let mut operands = index.to_vec();
            operands.push(value);
            operands.extend(mask);
            let stretched = self.stretched("x[key] = value", &operands);
            let (domain, elements) = stretched.map_err(|e| e.of_store(index.len()))?;
            let rank = self.rank(field);
            let (at, own) = self.field_index(field, index, cells, &elements);
            let holder = |r: &Self, b: Buffer| r.program.holder(b);
            let stays = own && cells.is_some_and(|c| holder(self, c) == holder(self, field));
            if !stays {
                changed.extend(self.program.sparse_nodes(field));
            }
            let outside = if own { Outside::Never } else { Outside::Zero };
            let store = Store {
                accum,
                ..plain(field, at, elements[rank], outside)
            };
            stores.push((domain, store, mask.map(|_| elements[rank + 1])));
        }
        let walked = cells.map(|c| self.program.sparse_nodes(c));
        let meets = walked.is_some_and(|walked| changed.iter().any(|node| walked.contains(node)));
        // What goes over cells makes no others of theirs active: all points are gone over then.
        let apart = match cells.filter(|_| meets) {
            Some(cells) => Some((cells, self.mask_of(cells)?)),
            None => None,
        };
        self.forget();
        for (mut domain, store, mut wanted) in stores {
            if let Some((field, is_cell)) = apart {
                let axes = self.program.axes(self.rank(field));
                let here = self.at(is_cell, &axes);
                wanted = Some(match wanted {
                    Some(wanted) => {
                        let no = self.number(ScalarType::U1, 0.0);
                        self.program.exprs.select(here, wanted, no)
                    }
                    None => here,
                });
            }
            let mut body = match wanted {
                None => vec![Stmt::Store(store)],
                Some(wanted) => vec![Stmt::If(wanted, vec![Stmt::Store(store)], Vec::new())],
            };
            if let Some((field, _)) = apart {
                (domain, body) = self.written_out(field, domain, body);
            }
            self.for_cells(domain, cells.filter(|_| apart.is_none()), body);
        }
        for node in changed {
            *self.cells.changes.entry(node).or_default() += 1;
        }
        self.forget();
        Ok(())
    }

    /// Where a field's cells are active.
    fn mask_of(&mut self, field: Buffer) -> Recorded {
        let shape = self.shape(field);
        let (yes, axes) = (
            self.number(ScalarType::U1, 1.0),
            self.program.axes(shape.len()),
        );
        let over = Some((field, axes.clone()));
        let at_cells = self.make_over(Made::map(shape, axes, yes), over);
        self.dense(at_cells)
    }

    /// Runs a kernel of the user's on arrays: a number for each type that it returns.
    pub fn run(
        &mut self,
        def: RegionDef,
        arrays: Vec<Buffer>,
        returned: &[ScalarType],
    ) -> Vec<Buffer> {
        for &tree in &def.trees {
            let nodes = self.program.trees[tree].nodes();
            let sparse = nodes.filter(|(_, node)| node.kind.is_sparse());
            for (node, _) in sparse {
                *self.cells.changes.entry((tree, node)).or_default() += 1;
            }
        }
        // What is only read keeps the number that it is.
        let written = arrays.iter().zip(&def.writes);
        for (array, _) in written.filter(|&(_, &is_written)| is_written) {
            self.numbers.remove(array);
        }
        self.forget();
        let results = returned.iter().map(|&ty| self.program.temporary(ty, &[]));
        let results: Vec<Buffer> = results.collect();
        let (region, span) = (self.program.regions.push(def), self.span);
        self.program.body.push(Stmt::Run(Run {
            region,
            arrays,
            results: results.clone(),
            span,
        }));
        results
    }

    /// A tree, which may be known already.
    pub fn tree(&mut self, tree: &Arc<Tree>) -> TreeId {
        let mut known = self.program.trees.iter();
        let known = known.find(|(_, t)| Arc::ptr_eq(t, tree)).map(|(id, _)| id);
        known.unwrap_or_else(|| self.program.tree(tree.clone()))
    }

    /// A block of the host begins.
    pub fn begin_block(&mut self) {
        self.cells.blocks.push(Block {
            n_buffers: self.program.buffers.len() as u32,
            changes: self.cells.changes.clone(),
            used: IndexSet::new(),
        });
    }

    /// The block that began last ends.
    ///
    /// # Errors
    /// If it is a loop whose turns make cells active, and goes over those that were active before it.
    pub fn end_block(&mut self, is_loop: bool) -> Recorded<()> {
        let Some(block) = self.cells.blocks.pop() else {
            return Ok(());
        };
        let mut used = block.used.iter();
        let changed = |field: &&Buffer| {
            self.changes(**field, &self.cells.changes) != self.changes(**field, &block.changes)
        };
        match used.find(changed) {
            Some(_) if is_loop => Err(RecordError::Value(
                "a loop makes cells of a field active and uses indices of its cells from before the loop: call `indices` in the \
                 loop"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

fn plain(target: Buffer, index: Vec<Expr>, value: Expr, outside: Outside) -> Store {
    Store {
        target,
        index,
        value,
        accum: None,
        init: false,
        outside,
    }
}
