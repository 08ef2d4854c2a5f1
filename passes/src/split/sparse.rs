//! Loops over sparse trees on a grid, and accesses to them.
//!
//! Each process has a tree of the whole grid's shape, in which its own cells are active and copies of its neighbours'. So the loop is
//! the same on all processes, and leaves out the cells of others:
//!
//! ```text
//! parallel_cells tree0.S2 (i, j) {      parallel_cells tree0.S2 exchange=0 (i, j) {
//!     store x[i, j], y[i + 1, j]   ==>      if i < 32 { store x[i, j], y[i + 1, j] }
//! }                                     }
//! ```

#[cfg(test)]
mod tests;

use aerogel_base::Span;
use aerogel_ir::{BinaryOp, Builder, CompareOp, Function, Op, Region, TreeId, Value};

use super::accesses::{Access, Does, Target};
use super::grid::{Outcome, SparseTree, SplitAxis, mistake};
use super::owners::{Finder, Narrowed};

impl Finder<'_> {
    /// The entry of a sparse tree in the exchange.
    pub(super) fn tree(&mut self, tree: TreeId) -> &mut SparseTree {
        let trees = &mut self.out.exchange.trees;
        let at = trees.iter().position(|one| one.tree == tree);
        let at = at.unwrap_or_else(|| {
            trees.push(SparseTree {
                tree,
                reads: false,
                changes: false,
            });
            trees.len() - 1
        });
        &mut trees[at]
    }

    /// Whether an access to a sparse tree may change which cells are active: it does not if it stores to the active cell that the
    /// iteration is for.
    pub(super) fn may_change_cells(&self, access: &Access) -> bool {
        let Target::Field(field) = access.target else {
            return access.does == Does::Write;
        };
        let is_over_it = match self.func[self.inst] {
            Op::ParallelCells { node, .. } => node == self.split.env.cells_of(field).0,
            _ => false,
        };
        let is_own = |(axis, &index): (usize, &Value)| {
            let offset = self.along(axis, 0).offset(index);
            offset.is_some_and(|it| it.counter == self.counters[axis] && it.exact() == Some(0))
        };
        let is_at_itself = || access.indices(self.func).iter().enumerate().all(is_own);
        access.does != Does::Read && !(is_over_it && is_at_itself())
    }

    /// A loop over active cells whose iterations are for other cells than those that are stored to: the active cells of the halo
    /// are needed.
    pub(super) fn reach_of_iterations(
        &mut self,
        axis: usize,
        owner: (Value, i64),
        span: Span,
    ) -> Outcome<()> {
        let Op::ParallelCells { node, .. } = self.func[self.inst] else {
            return Ok(());
        };
        let width = self.grid.axes[axis].width;
        if owner.0 != self.counters[axis] {
            let message = format!(
                "the index along axis {axis} of a store is not the counter of that axis plus a number"
            );
            let note =
                "in a loop `for i, j in x` over active cells, store to `x[i + 1, j]` and the like";
            return Err(mistake(span, message, note));
        }
        if owner.1.abs() > width {
            let message = format!(
                "a loop over active cells stores to cells {} away along axis {axis}, and the halo is {width} wide",
                owner.1.abs()
            );
            let note = "store to cells near those of the loop, or give the grid a wider halo: ti.mpi.grid(shape, halo=n)";
            return Err(mistake(span, message, note));
        }
        if owner.1 != 0 {
            self.tree(node.tree).reads = true;
        }
        Ok(())
    }

    /// An access to cells of a sparse tree that are larger than those of the loop, or smaller, on the same processes. Returns whether
    /// it is that.
    pub(super) fn of_other_cells(&mut self, access: &Access) -> Outcome<bool> {
        let (here, there) = (self.grid, access.grid.clone());
        let are_nested = |(a, b): (&SplitAxis, &SplitAxis)| {
            let (large, small) = if a.size < b.size { (a, b) } else { (b, a) };
            let n = small.size / large.size;
            [large.size * n, large.lo * n, large.hi * n] == [small.size, small.lo, small.hi]
        };
        let mut axes = here.axes.iter().zip(&there.axes);
        let is_one = here.is_sparse || there.is_sparse;
        if !is_one || here.axes.len() != there.axes.len() || !axes.all(are_nested) {
            return Ok(false);
        }
        for axis in 0..here.axes.len() {
            let Some((counter, shift)) = self.owners[axis] else {
                continue;
            };
            let (index, span) = self.index(access, axis);
            let (size, of) = (here.axes[axis].size, there.axes[axis].size);
            let along = self.along(axis, shift);
            // How far the index lies beyond the cell of the iteration: below and above.
            let beyond = if size == of {
                let offset = along.offset(index).filter(|it| it.counter == counter);
                offset.map(|it| (it, [shift - it.by[0], it.by[1] - shift]))
            } else if size > of {
                let per_cell = size / of;
                let offset = along.divided_offset(index, per_cell);
                let offset = offset.filter(|it| it.counter == counter);
                let cells = |n: i64| (n + per_cell - 1).div_euclid(per_cell);
                offset.map(|it| (it, [cells(shift - it.by[0]), cells(it.by[1] - shift)]))
            } else {
                let per_cell = of / size;
                let offset = along.scaled_offset(index, per_cell);
                let offset = offset.filter(|it| it.counter == counter);
                let first = shift * per_cell;
                offset.map(|it| (it, [first - it.by[0], it.by[1] - first - per_cell + 1]))
            };
            let known = beyond.filter(|(it, _)| it.wrapped.is_none() || there.is_sparse);
            let Some((offset, beyond)) = known else {
                let message = format!(
                    "which cells this index of {} along axis {axis} lies in is not known: they are larger or smaller than the loop's",
                    access.name(self.split)
                );
                let note = "from elements to blocks of n elements an index is `i // n`, from blocks to elements `i * n + k` with a \
                            known range of `k`";
                return Err(mistake(span, message, note));
            };
            if offset.wrapped.is_some() {
                self.expect_periodic(axis, access, span)?;
            }
            let widths = beyond.map(|n| n.max(0));
            if access.does == Does::Write && widths != [0, 0] {
                let message = format!(
                    "a store to cells along axis {axis} that are not those of the iteration"
                );
                let note = "the process that has a cell runs the iteration that stores to it: loop over the cells that are stored to";
                return Err(mistake(span, message, note));
            }
            self.within(axis, access, (widths, span))?;
        }
        Ok(true)
    }
}

/// Leaves out the iterations of a loop over active cells that are for cells of other processes.
pub(super) fn guard(func: &mut Function, body: Region, narrowed: &[Narrowed]) {
    let insts = std::mem::take(&mut func.regions[body].insts);
    let counters = func.regions[body].params.clone();
    let then = func.new_region(&[]);
    func.regions[then].insts = insts;
    let mut b = Builder::new(func, body);
    let mut tests = Vec::new();
    for it in narrowed {
        let counter = counters[it.counter];
        let mut test = |op: CompareOp, limit: i64| {
            let limit = b.i32((limit - it.shift) as i32);
            tests.push(b.compare(op, counter, limit));
        };
        if it.axis.lo > 0 {
            test(CompareOp::Ge, it.axis.lo);
        }
        if it.axis.hi < it.axis.size {
            test(CompareOp::Lt, it.axis.hi);
        }
    }
    let Some(cond) = tests
        .into_iter()
        .reduce(|a, c| b.binary(BinaryOp::And, a, c))
    else {
        func.regions[body].insts = std::mem::take(&mut func.regions[then].insts);
        return;
    };
    let otherwise = b.region(&[], |_, _| {});
    b.effect(Op::If {
        cond,
        then,
        otherwise,
    });
    b.terminate();
}
