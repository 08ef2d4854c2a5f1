//! Which process runs which iterations, and what it reads of others.

use std::sync::Arc;

use aerogel_base::{Scalar, Span};
use aerogel_ir::analysis::Ranges;
use aerogel_ir::{BinaryOp, Builder, Function, Inst, Op, Rewrite, Type, Value, rewrite};

use super::accesses::{Access, Accesses, Does, body_of};
use super::grid::{Exchange, Outcome, Split, SplitAxis, SplitGrid, mistake};
use super::offsets::{Along, Offset};

/// The bounds of a counter: the process runs iterations for which the counter plus `shift` is one of its cells.
pub(super) struct Narrowed {
    pub(super) counter: usize,
    pub(super) shift: i64,
    pub(super) axis: SplitAxis,
}

/// An index that needs no modulo, since memory has a halo: of which instruction and along which axis.
pub(super) type Unwrapped = (Inst, usize, (Value, i64));

/// What is found out about a loop.
pub(super) struct Owners {
    pub(super) narrowed: Vec<Narrowed>,
    pub(super) unwrapped: Vec<Unwrapped>,
    pub(super) exchange: Exchange,
}

/// A loop, and what is found out about it.
pub(super) struct Finder<'a> {
    pub(super) split: &'a Split<'a>,
    pub(super) func: &'a Function,
    pub(super) inst: Inst,
    ranges: &'a Ranges,
    pub(super) counters: &'a [Value],
    pub(super) grid: &'a SplitGrid,
    over: Option<&'a Arc<SplitGrid>>,
    /// For each axis that is divided: the cell of an iteration is this counter plus a number.
    pub(super) owners: Vec<Option<(Value, i64)>>,
    pub(super) out: Owners,
}

impl Owners {
    /// Those of a loop; `over` is the grid that it goes over by cells.
    ///
    /// # Errors
    /// If an index has no known distance from the loop's counters.
    pub(super) fn find(
        split: &Split<'_>,
        (func, ranges): (&Function, &Ranges),
        (inst, over): (Inst, Option<&Arc<SplitGrid>>),
        accesses: &Accesses,
    ) -> Outcome<Self> {
        // The process that has the cell which is stored to runs the iteration.
        let elements = accesses.0.iter().filter(|access| access.field().is_some());
        let stored = elements.clone().filter(|access| access.does == Does::Write);
        let all = stored.chain(elements).chain(&accesses.0);
        let first = over.or_else(|| all.map(|access| &access.grid).next());
        let first = first.expect("the loop accesses a split field, or goes over one");
        let alike = |access: &Access| {
            let grid = &access.grid;
            let axes = grid.axes.iter().zip(&first.axes);
            grid.axes.len() == first.axes.len() && axes.into_iter().all(|(a, b)| a.is_same_box(b))
        };
        let (own, others): (Vec<Access>, Vec<Access>) = accesses.0.iter().cloned().partition(alike);
        let mut finder = Finder {
            split,
            func,
            inst,
            ranges,
            counters: &func.regions[body_of(func, inst)].params,
            grid: first,
            over,
            owners: Vec::new(),
            out: Self {
                narrowed: Vec::new(),
                unwrapped: Vec::new(),
                exchange: Exchange::default(),
            },
        };
        let own = Accesses(own);
        for axis in 0..first.axes.len() {
            finder.axis(axis, &own, func.insts[inst].span)?;
        }
        for access in others {
            if !finder.of_other_cells(&access)? {
                finder.of_another_grid(&access)?;
            }
        }
        let writing = accesses.0.iter().filter(|access| access.does != Does::Read);
        for field in writing.filter_map(Access::field) {
            let writes = &mut finder.out.exchange.writes;
            if !writes.contains(&field) {
                writes.push(field);
            }
        }
        for access in accesses.0.iter().filter(|access| access.grid.is_sparse) {
            let changes = finder.may_change_cells(access);
            finder.tree(access.tree(split)).changes |= changes;
        }
        finder.apart()?;
        Ok(finder.out)
    }
}

impl<'a> Finder<'a> {
    /// The indices along an axis, of iterations for the cell that is a counter plus `base`.
    pub(super) fn along(&self, axis: usize, base: i64) -> Along<'a> {
        Along {
            func: self.func,
            ranges: self.ranges,
            counters: self.counters,
            size: self.grid.axes[axis].size,
            base,
        }
    }

    /// What is added to a counter to make the cell of an iteration, unless a store says otherwise.
    fn base(&self, axis: usize) -> i64 {
        self.over.map_or(0, |grid| grid.first(axis))
    }

    pub(super) fn index(&self, access: &Access, axis: usize) -> (Value, Span) {
        let indices = access.indices(self.func);
        let whole = self.func.insts[access.at].span;
        let of_index = self.func.def(indices[axis]);
        let span = of_index.map_or(Span::NONE, |def| self.func.insts[def].span);
        // A bare counter comes from the loop's own line.
        let spans = &self.split.env.spans;
        let is_part = match (spans.get(span), spans.get(whole)) {
            (Some(part), Some(whole)) => {
                part.source == whole.source && (whole.start..whole.end).contains(&part.start)
            }
            _ => false,
        };
        (indices[axis], if is_part { span } else { whole })
    }

    /// An access to cells of another grid than the loop's, such as those around a particle: they are trusted to lie in the own box
    /// of that grid and its halo.
    fn of_another_grid(&mut self, access: &Access) -> Outcome<()> {
        let grid = access.grid.clone();
        if access.does == Does::Write || !grid.is_trusted || grid.is_sparse {
            let message = "a loop accesses split fields of two grids";
            let note = match access.does {
                Does::Write => {
                    "each process has other cells of the one than of the other: a loop may read fields of another grid \
                     and add to them, and store to those of one grid"
                }
                Does::Read | Does::Add if grid.is_sparse => {
                    "each process has other cells of the one than of the other: use the same grid, whose cells are the blocks of the \
                     sparse tree"
                }
                Does::Read | Does::Add => {
                    "each process has other cells of the one than of the other: use fields of one grid, or say that cells \
                     of the other one lie in the own box or within n cells of it, ti.mpi.grid(shape, halo=n)"
                }
            };
            return Err(mistake(self.func.insts[access.at].span, message, note));
        }
        for (axis, own) in grid.axes.iter().enumerate() {
            self.needs(axis, access, [own.width; 2]);
        }
        Ok(())
    }

    /// One axis of all accesses.
    fn axis(&mut self, axis: usize, accesses: &Accesses, span: Span) -> Outcome<()> {
        if !self.grid.axes[axis].is_divided() {
            self.owners.push(None);
            return accesses
                .0
                .iter()
                .try_for_each(|access| self.undivided(axis, access));
        }
        let along = self.along(axis, self.base(axis));
        let mut owner: Option<(Value, i64)> = None;
        for access in accesses
            .0
            .iter()
            .filter(|access| access.does == Does::Write)
        {
            let (index, span) = self.index(access, axis);
            let offset = along.offset(index);
            let exact = offset.and_then(|offset| Some((offset.counter, offset.exact()?)));
            let Some(found) = exact else {
                return Err(self.unbounded_store(axis, span));
            };
            if *owner.get_or_insert(found) != found {
                let message = format!(
                    "a loop stores to cells at several distances along axis {axis} of a split grid"
                );
                let note = "the process that has a cell runs the iteration that stores to it: store to one cell, and read its \
                            neighbours";
                return Err(mistake(span, message, note));
            }
        }
        let owner = owner.or_else(|| self.owner_of_others(axis, accesses));
        let Some((counter, shift)) = owner else {
            let message =
                format!("no index says which cells along axis {axis} the iterations are for");
            return Err(mistake(span, message, BOUNDED));
        };
        self.owners.push(Some((counter, shift)));
        let is_inside = self.inside(axis, accesses, ((counter, shift), span))?;
        self.reach_of_iterations(axis, (counter, shift), span)?;
        for access in accesses
            .0
            .iter()
            .filter(|access| access.does != Does::Write)
        {
            self.reach(axis, access, (counter, shift))?;
            if access.does == Does::Add && !is_inside {
                // Iterations beyond the last cell may add to any cell of its halo.
                let own = access.grid.axes[axis];
                self.needs(axis, access, [own.width; 2]);
            }
        }
        let at = self.counters.iter().position(|&c| c == counter);
        self.out.narrowed.push(Narrowed {
            counter: at.expect("a counter of the loop"),
            shift,
            axis: self.grid.axes[axis],
        });
        Ok(())
    }

    /// Along a periodic axis, iterations beyond the grid would be for cells that another process has. They are refused where the
    /// bounds are known, and where an index that wraps around makes sense of them; otherwise they are out of bounds. In a
    /// derivative each iteration tests whether it is inside. Returns whether all are inside.
    fn inside(
        &self,
        axis: usize,
        accesses: &Accesses,
        ((counter, shift), span): ((Value, i64), Span),
    ) -> Outcome<bool> {
        let along = self.along(axis, shift);
        let is_periodic = |access: &Access| access.grid.axes[axis].is_periodic;
        let wraps = |access: &Access| {
            let offset = along.offset(self.index(access, axis).0);
            offset.is_some_and(|offset| offset.wrapped.is_some())
        };
        let mut accesses = accesses.0.iter();
        // Active cells are inside.
        if let Op::ParallelCells { .. } = self.func[self.inst] {
            return Ok(true);
        }
        if !accesses.clone().any(is_periodic) || along.is_inside(counter, shift) {
            return Ok(true);
        }
        let is_known = self.has_known_bounds(counter) && !self.split.is_derivative;
        if !(is_known || accesses.any(wraps)) {
            return Ok(false);
        }
        let message = format!(
            "iterations of this loop may be for cells beyond the grid along axis {axis}, which is periodic"
        );
        let note = "loop over the cells of the grid: `for i, j in f`, or ti.ndrange with bounds that are known when the kernel is \
                    compiled";
        Err(mistake(span, message, note))
    }

    fn has_known_bounds(&self, counter: Value) -> bool {
        let at = self.counters.iter().position(|&c| c == counter);
        let Op::Parallel { lo, hi, .. } = &self.func[self.inst] else {
            return false;
        };
        at.is_some_and(|at| {
            [lo[at], hi[at]]
                .iter()
                .all(|&v| self.func.as_const(v).is_some())
        })
    }

    /// The counter of an axis, and what is added to it, where nothing is stored: so that all that is added to and read lies as near
    /// as possible.
    fn owner_of_others(&self, axis: usize, accesses: &Accesses) -> Option<(Value, i64)> {
        let base = self.base(axis);
        let along = self.along(axis, base);
        let of = |access: &Access| along.offset(self.index(access, axis).0);
        let (adds, reads): (Vec<_>, Vec<_>) = accesses
            .0
            .iter()
            .partition(|access| access.does == Does::Add);
        let offsets: Vec<Offset> = adds.iter().chain(&reads).copied().filter_map(of).collect();
        let over = self.over.and_then(|_| self.counters.get(axis).copied());
        let counter = over.or_else(|| offsets.first().map(|offset| offset.counter))?;
        if adds.is_empty() {
            return Some((counter, base));
        }
        let here = offsets.iter().filter(|offset| offset.counter == counter);
        let reach = |shift: i64| {
            let far = |offset: &Offset| (shift - offset.by[0]).max(offset.by[1] - shift);
            here.clone().map(far).max().unwrap_or(0)
        };
        let shifts = here.clone().filter_map(Offset::exact).chain([base]);
        // Iterations are for cells of the grid, if they can be.
        let best = shifts.min_by_key(|&shift| (!along.is_inside(counter, shift), reach(shift)));
        best.map(|shift| (counter, shift))
    }

    /// A read, or an addition, along a divided axis.
    fn reach(&mut self, axis: usize, access: &Access, owner: (Value, i64)) -> Outcome<()> {
        let (index, span) = self.index(access, axis);
        let here = &access.grid;
        // Outside of the halo a sparse tree has cells, too: they would be lost.
        let (own, is_trusted) = (here.axes[axis], here.is_trusted && !here.is_sparse);
        let offset = self.along(axis, owner.1).offset(index);
        let Some(offset) = offset.filter(|offset| offset.counter == owner.0) else {
            if !is_trusted {
                return Err(self.unbounded_read(axis, access, span));
            }
            self.needs(axis, access, [own.width; 2]);
            return Ok(());
        };
        let Offset { by, wrapped, .. } = offset;
        if let Some(wrapped) = wrapped {
            self.expect_periodic(axis, access, span)?;
            if !here.is_sparse {
                self.out.unwrapped.push((access.at, axis, wrapped));
            }
        }
        let widths = [(owner.1 - by[0]).max(0), (by[1] - owner.1).max(0)];
        self.within(axis, access, (widths, span))
    }

    /// Refuses an index that wraps around along an axis that is not periodic.
    pub(super) fn expect_periodic(&self, axis: usize, access: &Access, span: Span) -> Outcome<()> {
        if access.grid.axes[axis].is_periodic {
            return Ok(());
        }
        let message = format!(
            "an index of {} wraps around along axis {axis}, which is not periodic",
            access.name(self.split)
        );
        let note = "make the grid periodic: ti.mpi.grid(shape, periodic=True)";
        Err(mistake(span, message, note))
    }

    /// An access along an axis all of whose cells the process has.
    fn undivided(&mut self, axis: usize, access: &Access) -> Outcome<()> {
        let own = access.grid.axes[axis];
        if own.width == 0 {
            return Ok(());
        }
        let (index, span) = self.index(access, axis);
        let along = self.along(axis, self.base(axis));
        // A loop whose bounds only a launch knows is taken to go over cells of the grid.
        let range = along.range(index);
        let range = range.or_else(|| along_counter(&along, index));
        let Some([lo, hi]) = range else {
            if access.does == Does::Write {
                return Err(self.unbounded_store(axis, span));
            }
            self.needs(axis, access, [own.width; 2]);
            return Ok(());
        };
        let widths = [(-lo).max(0), (hi - own.size + 1).max(0)];
        if access.does == Does::Write && widths != [0, 0] {
            let message = format!("a store beyond the edge of axis {axis}, which is periodic");
            return Err(mistake(
                span,
                message,
                "take the index modulo the axis' size",
            ));
        }
        self.within(axis, access, (widths, span))
    }

    /// Notes how much of a halo is needed.
    pub(super) fn within(
        &mut self,
        axis: usize,
        access: &Access,
        (widths, span): ([i64; 2], Span),
    ) -> Outcome<()> {
        let own = access.grid.axes[axis];
        let needed = widths[0].max(widths[1]);
        if needed > own.width {
            let message = format!(
                "{} is {} {needed} cells away along axis {axis} of its grid, whose halo is {} wide",
                access.name(self.split),
                if access.does == Does::Add {
                    "added to"
                } else {
                    "read"
                },
                own.width
            );
            // The width of a grid counts its cells, which are blocks of a sparse tree's.
            let grid = self.split.grid(access.tree(self.split));
            let per_cell = grid.map_or(1, |grid| own.size / grid.axes[axis].size);
            let wider = (needed + per_cell - 1) / per_cell;
            let note = format!("give the grid a wider one: ti.mpi.grid(shape, halo={wider})");
            return Err(mistake(span, message, &note));
        }
        self.needs(axis, access, widths);
        Ok(())
    }

    fn needs(&mut self, axis: usize, access: &Access, widths: [i64; 2]) {
        if widths == [0, 0] {
            return;
        }
        if access.grid.is_sparse {
            let tree = access.tree(self.split);
            self.tree(tree).reads = true;
        }
        let Some(field) = access.field() else {
            return;
        };
        let list = match access.does {
            Does::Add => &mut self.out.exchange.adds,
            Does::Read | Does::Write => &mut self.out.exchange.reads,
        };
        let at = list.iter().position(|one| one.0 == field);
        let at = at.unwrap_or_else(|| {
            list.push((field, vec![[0, 0]; access.grid.axes.len()]));
            list.len() - 1
        });
        let all = &mut list[at].1[axis];
        *all = [all[0].max(widths[0]), all[1].max(widths[1])];
    }

    /// Whether no halo has both cells of neighbours and what is added to them.
    fn apart(&self) -> Outcome<()> {
        let places = |field| {
            let data = &self.split.env.fields[field];
            (data.tree, &data.places)
        };
        let meet = |a, b| {
            let ((tree, a), (other, b)) = (places(a), places(b));
            tree == other && a.iter().any(|place| b.contains(place))
        };
        let Exchange { adds, reads, .. } = &self.out.exchange;
        let both = adds
            .iter()
            .find(|added| reads.iter().any(|read| meet(added.0, read.0)));
        match both {
            None => Ok(()),
            Some((field, _)) => {
                let message = format!(
                    "a loop adds to neighbours' cells of `{}`, and reads neighbours' cells of it",
                    self.split.name(*field)
                );
                let note = "the sums are known after the loop: read them in a later loop";
                Err(mistake(self.func.insts[self.inst].span, message, note))
            }
        }
    }

    fn unbounded_read(
        &self,
        axis: usize,
        access: &Access,
        span: Span,
    ) -> Box<aerogel_base::Diagnostic> {
        let message = format!(
            "how far this index of {} along axis {axis} lies from the loop's own cell is not known",
            access.name(self.split)
        );
        let note = match access.grid.is_sparse {
            true => {
                "an index is a counter of the parallel loop plus a constant, or that modulo the size of a periodic axis"
            }
            false => BOUNDED,
        };
        mistake(span, message, note)
    }

    fn unbounded_store(&self, axis: usize, span: Span) -> Box<aerogel_base::Diagnostic> {
        let message = format!(
            "the index of a store along axis {axis} of a split grid is not a counter of the parallel loop plus a constant"
        );
        let note = "the process that has a cell runs the iteration that stores to it: loop over all divided axes, \
                    `for i, j in f`, and store to `f[i, j]`";
        mistake(span, message, note)
    }
}

/// The remedy for an index without bounds.
const BOUNDED: &str = "an index is a counter of the parallel loop plus a constant, or that modulo the size of a periodic axis; \
                       if other indices stay within n cells, declare that: ti.mpi.grid(shape, halo=n)";

/// The range of an index that is a counter of cells plus something.
fn along_counter(along: &Along<'_>, index: Value) -> Option<[i64; 2]> {
    let (offset, last) = (along.offset(index)?, along.size - 1);
    let [lo, hi] = offset.by.map(|by| by - along.base);
    match offset.wrapped {
        Some(_) => Some([0, last]),
        None => Some([lo, last + hi]),
    }
}

/// Narrows the bounds of a loop to the process' own cells. Processes at the edge of the grid also run the iterations beyond it.
pub(super) fn narrow(
    func: &mut Function,
    inst: Inst,
    narrowed: &[Narrowed],
    before: &mut Vec<Inst>,
) {
    let Op::Parallel {
        mut lo,
        mut hi,
        attrs,
        body,
    } = func[inst].clone()
    else {
        unreachable!("loops over cells have become loops over numbers")
    };
    let span = func.insts[inst].span;
    for Narrowed {
        counter,
        shift,
        axis,
    } in narrowed
    {
        let (lo, hi) = (&mut lo[*counter], &mut hi[*counter]);
        if axis.lo > 0 {
            *lo = limited(func, (*lo, axis.lo - shift), BinaryOp::Max, (before, span));
        }
        if axis.hi < axis.size {
            *hi = limited(func, (*hi, axis.hi - shift), BinaryOp::Min, (before, span));
        }
    }
    func.insts[inst].op = Op::Parallel {
        lo,
        hi,
        attrs,
        body,
    };
}

/// A bound that is no less, or no more, than a limit.
fn limited(
    func: &mut Function,
    (bound, limit): (Value, i64),
    op: BinaryOp,
    (before, span): (&mut Vec<Inst>, Span),
) -> Value {
    let ty = func.ty(bound);
    let elem = func.elem(bound);
    let mut emit = |func: &mut Function, op: Op, ty: Type| {
        let inst = func.new_inst(op, &[ty], span);
        before.push(inst);
        func.insts[inst].results[0]
    };
    let known = func.as_const(bound).map(Scalar::as_i128);
    let value = match (known, op) {
        (Some(bound), BinaryOp::Max) => bound.max(limit.into()),
        (Some(bound), _) => bound.min(limit.into()),
        (None, _) => limit.into(),
    };
    let value = Scalar::int(elem, value);
    let rhs = emit(func, Op::Const { value }, ty);
    match known {
        Some(_) => rhs,
        None => {
            let lhs = bound;
            emit(func, Op::Binary { op, lhs, rhs }, ty)
        }
    }
}

/// Indices that lie in a halo need no modulo.
pub(super) fn unwrap(func: &mut Function, unwrapped: Vec<Unwrapped>) {
    rewrite(func, |b: &mut Builder<'_>, inst| {
        for &(_, axis, (of, turns)) in unwrapped.iter().filter(|it| it.0 == inst) {
            let elem = b.func.elem(of);
            let index = match turns {
                0 => of,
                _ => {
                    let turns = b.constant(Scalar::int(elem, turns.into()));
                    b.binary(BinaryOp::Sub, of, turns)
                }
            };
            if let Op::FieldAt { indices, .. } = &mut b.func.insts[inst].op {
                indices[axis] = index;
            }
        }
        Rewrite::Keep
    });
}
