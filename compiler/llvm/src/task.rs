//! Tasks: functions that walk a part of an index space.
//!
//! A task over `[lo0, hi0) x .. x [lo_n, hi_n)` is handed `[lo, hi)` of the linearised space. It
//! takes `lo` apart by division once, and then walks rows:
//!
//! ```text
//! for position = lo; position < hi; position += length {
//!     length = min(end of the row, hi) - position
//!     for i in row { body }        // contiguous; its accesses are marked independent
//!     carry the outer coordinates
//! }
//! ```
//! Around that stands a loop over tiles where it pays (`tiles`).

use aerogel_base::ScalarType;
use aerogel_ir::analysis::trips::iterations_within;
use aerogel_ir::analysis::{Ranges, cost};
use aerogel_ir::{Function, Inst, Op, Region, TaskKind, Value};
use aerogel_runtime::{Bounds, TaskCode};
use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::FunctionValue;

use crate::builder::{Builder, Opcode, Val, basic, incoming};
use crate::changed::Changed;
use crate::context::{FuncCx, Leave, Loop, ModuleCx, Origin, Scope};
use crate::interior::{InParts, Interior};
use crate::lanes::Plan;
use crate::task_state::{TaskState, Version, batch, constant_bounds, order};
use crate::{lanes, pieces, threads, tiles};

/// A function of a task.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// The task's number.
    pub(crate) number: usize,
    pub(crate) task: Inst,
    pub(crate) version: Version,
}

impl Part {
    fn symbol(self, cx: &ModuleCx<'_, '_>) -> String {
        let name = &cx.user.funcs[cx.kernel].name;
        let version = match self.version {
            Version::Shared => "",
            Version::Own => "_own",
        };
        cx.target.symbol(name, &format!("{}{version}", self.number))
    }
}

/// Lowers a function of a task; the first of them tells of the task.
pub(crate) fn lower<'a, 'ctx>(cx: &mut ModuleCx<'a, 'ctx>, part: Part) -> Option<TaskCode> {
    let Part {
        number,
        task,
        version,
    } = part;
    let (user, id) = (cx.user, cx.kernel);
    let kernel = &user.funcs[id];
    let Op::Task {
        kind,
        attrs,
        bounds,
        body,
    } = &kernel[task]
    else {
        unreachable!("the caller picks tasks")
    };
    let symbol = part.symbol(cx);
    let serial = *kind == TaskKind::Serial || attrs.serial;
    let yielded = kernel.yielded(*bounds).unwrap_or_default();
    let llvm = declare(cx, &symbol, 2);
    let scope = Scope {
        origin: Origin::User,
        id,
        region: *body,
        leave: Leave::Task,
        fast_math: attrs.fast_math,
    };
    let mut f = FuncCx::new(cx, llvm, scope);
    f.ranges = Ranges::within(kernel, *body);
    f.ranges.note(kernel, &kernel[task]);
    if f.cx.target.grid {
        f.changed = Some(Changed::of(kernel, &user.env, *body));
        // What is said of smaller blocks makes the assembler spill registers for the sake of more blocks at once.
        if let Some(threads) = attrs.block.filter(|&n| n > ANY_REGISTERS) {
            f.b.text_attribute(llvm, "nvvm.maxntid", &threads.to_string());
        }
    }
    let random = draws(&f, *body);
    f.declare_buffers(*body);
    let params = llvm.get_params();
    if f.cx.target.grid && serial {
        f.first_thread_only();
    }
    let mut sums = Vec::new();
    if f.cx.target.grid {
        if !serial {
            sums = f.begin_sums(*body);
        }
        f.leave_if_failed(!serial && threads::share(kernel, *body));
    }
    let constants = constant_bounds(kernel, task);
    let extended = if f.cx.target.grid && !serial && constants.is_none() {
        f.bounds_at(params[1], yielded.len())
    } else {
        let values = f.region(*bounds).expect("bounds yield");
        extend_all(&f, yielded, &values)
    };
    let batch = match serial {
        true => 1,
        false => batch(kernel, *body),
    };
    let mut part_of_space = [params[1], params[2]];
    if f.cx.target.grid && !serial && constants.is_none() {
        part_of_space = f.whole_space(&extended);
        // Nobody calls a task of a processor that has nothing to do.
        let [none, total] = part_of_space;
        let some = f.b.icmp(IntPredicate::SLT, none, total);
        f.leave_unless(some);
    }
    f.task = Some(TaskState {
        number,
        body: *body,
        serial,
        random,
        stream: stream(kernel, task),
        axes: yielded.to_vec(),
        bounds: extended.chunks_exact(2).map(|b| [b[0], b[1]]).collect(),
        part: part_of_space,
        is_looped: false,
        sums,
        constants: constants.clone().filter(|_| !serial),
        batch,
        version,
    });
    if random {
        let ty = basic(f.b.i64_type());
        let state = f.in_entry(|f| f.b.alloca(ty));
        f.random = Some(state);
        f.linear = Some(f.in_entry(|f| f.b.alloca(ty)));
        if *kind == TaskKind::Serial {
            let first = f.b.i64(0);
            f.seed(first);
        }
    }
    if f.region(*body).is_some() {
        f.leave_with(&[]);
    }
    let batch = f.task.as_ref().map_or(1, |task| task.batch);
    f.finish();
    let images = &cx.images[number];
    if images.versions()[0] != version {
        return None;
    }
    let n_axes = yielded.len() / 2;
    let bounds = match constants {
        // A loop that runs in order is one call over the whole space, which the launcher makes of
        // a part that spans it: see `each`.
        _ if serial => Bounds::Serial,
        Some(constants) => Bounds::Constant(constants),
        None => Bounds::Computed {
            symbol: lower_bounds(cx, kernel, number, *bounds),
            n_axes,
        },
    };
    let own = Part {
        version: Version::Own,
        ..part
    };
    Some(TaskCode {
        symbol,
        bounds,
        batch,
        cost: cost::region(kernel, *body),
        max_threads: attrs.max_threads.map(|n| n as usize),
        block: attrs.block,
        in_blocks: threads::in_blocks(kernel, *body),
        sums: images.code(own.symbol(cx)),
        exchange: attrs.exchange,
        order: order(kernel, task),
    })
}

/// How many numbers, each somewhere else for each iteration, a body may read and still become vectors as long as the machine has:
/// a lane reads and inserts each of them by itself, so that the code is as long as there are lanes, while what is gained shrinks.
const FAR_READS: usize = 64;
/// The lanes of vectors for bodies that read more.
pub(crate) const FEW_LANES: u32 = 8;

/// Twice the number of range tasks before `task`, and one more for a range task itself: how the rest
/// is divided into serial tasks does not matter.
fn stream(kernel: &Function, task: Inst) -> u64 {
    let is_range = |inst: Inst| {
        let range = TaskKind::Range;
        matches!(kernel[inst], Op::Task { kind, attrs, .. } if kind == range && !attrs.aside)
    };
    let tasks = kernel.regions[kernel.body].insts.iter();
    let before = tasks.take_while(|&&inst| inst != task);
    2 * before.filter(|&&inst| is_range(inst)).count() as u64 + u64::from(is_range(task))
}

/// Declares a function that takes the launch context and, for a task, its part.
fn declare<'ctx>(cx: &ModuleCx<'_, 'ctx>, symbol: &str, n_numbers: usize) -> FunctionValue<'ctx> {
    let b = Builder::new(cx.ctx, cx.llvm, cx.target);
    let mut params: Vec<BasicMetadataTypeEnum<'ctx>> = vec![b.ptr_type().into()];
    if n_numbers == 2 {
        params.push(b.i64_type().into());
        params.push(b.i64_type().into());
    } else {
        params.push(b.ptr_type().into());
    }
    let ty = cx.ctx.void_type().fn_type(&params, false);
    let func = cx.llvm.add_function(symbol, ty, None);
    func.set_call_conventions(cx.target.task_convention);
    func
}

/// Lowers the function that tells the launcher a task's bounds.
fn lower_bounds<'a, 'ctx>(
    cx: &mut ModuleCx<'a, 'ctx>,
    kernel: &'a Function,
    number: usize,
    bounds: Region,
) -> String {
    let symbol = cx.target.symbol(&kernel.name, &format!("bounds{number}"));
    let llvm = declare(cx, &symbol, 0);
    let scope = Scope {
        origin: Origin::User,
        id: cx.kernel,
        region: bounds,
        leave: Leave::Task,
        fast_math: None,
    };
    let mut f = FuncCx::new(cx, llvm, scope);
    if f.cx.target.grid {
        f.changed = Some(Changed::of(kernel, &f.module.env, bounds));
    }
    let values = f.region(bounds).expect("bounds yield");
    let yielded = kernel.yielded(bounds).unwrap_or_default();
    let out = llvm.get_params()[1];
    for (k, value) in extend_all(&f, yielded, &values).into_iter().enumerate() {
        let place = f.b.offset(out, f.b.i64(k as i64 * 8));
        f.b.store(place, value);
    }
    f.leave_with(&[]);
    f.finish();
    symbol
}

fn extend_all<'ctx>(
    f: &FuncCx<'_, '_, 'ctx>,
    values: &[Value],
    lowered: &[Val<'ctx>],
) -> Vec<Val<'ctx>> {
    values
        .iter()
        .zip(lowered)
        .map(|(&v, &value)| f.b.extend(f.func.elem(v), value, 64))
        .collect()
}

/// Whether a region, or a function that it calls, draws random numbers. A function is taken to do
/// so if any function of the module does.
fn draws(f: &FuncCx<'_, '_, '_>, region: Region) -> bool {
    let is_random = |op: &Op| matches!(op, Op::Random {} | Op::RandomState { .. });
    let in_functions = f
        .module
        .funcs
        .values()
        .filter(|func| !func.is_kernel)
        .any(|func| func.insts.values().any(|inst| is_random(&inst.op)));
    let mut found = false;
    aerogel_ir::walk(f.func, region, &mut |func, inst| {
        let op = &func[inst];
        found |= is_random(op) || (in_functions && matches!(op, Op::Call { .. }));
    });
    found
}

/// The largest block whose threads may each use the maximum number of registers: a block has 65,536, a thread 255.
const ANY_REGISTERS: u32 = 256;

/// Lanes of the widest vectors of any processor.
const WIDEST: u32 = 16;

/// An iteration whose loops run no longer than this is taken together with others.
const SHORT_BODY: u64 = 64;

/// A row of the index space: neighbours along the last axis.
pub(crate) struct Row<'ctx> {
    pub(crate) body: Region,
    /// The parameter that counts.
    pub(crate) counter: Value,
    pub(crate) lo: Val<'ctx>,
    pub(crate) hi: Val<'ctx>,
    /// What an index counts less than the place in the linearised space, as `i64`.
    before: Val<'ctx>,
    /// The task's number.
    pub(crate) number: usize,
    /// Where the part is left.
    exit: BasicBlock<'ctx>,
}

impl<'ctx> Row<'ctx> {
    /// The row's indices from one on and up to another.
    pub(crate) fn part(&self, lo: Val<'ctx>, hi: Val<'ctx>) -> Self {
        Self { lo, hi, ..*self }
    }

    /// For `continue` inside the body.
    pub(crate) fn loop_to(&self, next: BasicBlock<'ctx>) -> Loop<'ctx> {
        Loop {
            next,
            next_phis: Vec::new(),
            exit: self.exit,
            exit_phis: Vec::new(),
        }
    }
}

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// The loop over this call's part of the index space.
    pub(crate) fn each(&mut self, body: Region) {
        let task = self.task.as_ref().expect("`each` stands in a task");
        if self.cx.target.grid && !task.serial {
            return self.each_on_grid(body);
        }
        let bounds = task.bounds.clone();
        let (serial, number, part) = (task.serial, task.number, task.part);
        let one = self.b.i64(1);
        let zero = self.b.i64(0);
        let extents: Vec<Val<'ctx>> = bounds
            .iter()
            .map(|&[lo, hi]| {
                let extent = self.b.nsw(Opcode::Sub, hi, lo);
                let empty = self.b.icmp(IntPredicate::SLT, extent, zero);
                self.b.select(empty, zero, extent)
            })
            .collect();
        let plan = self.cx.lanes.filter(|_| !serial).and_then(|width| {
            let plan = lanes::plan(self.func, &self.module.env, body, self.reassociates)?;
            Some((plan, width))
        });
        let batch = match (&plan, self.module.env.deterministic) {
            (Some((plan, width)), false) => plan.batch(*width),
            (None, false) => 1,
            // Parts are the same for processors with other vectors.
            (_, true) => lanes::plan(self.func, &self.module.env, body, self.reassociates)
                .filter(|_| !serial)
                .map_or(1, |plan| plan.batch(WIDEST)),
        };
        let inside = match (&plan, serial) {
            (Some((plan, _)), _) if !plan.may_be_inside() => None,
            (_, true) => None,
            _ => self.lanes_inside(body),
        };
        let batch = match &inside {
            Some((_, plan, width)) => batch.max(plan.batch(*width)),
            None => batch,
        };
        let task = self.task.as_mut().expect("`each` stands in a task");
        task.batch = task.batch.max(batch);
        let ends = task.ends();
        let [mut lo, mut hi] = part.map(|end| ends.bound(&self.b, end));
        if serial {
            // Called once, for everything.
            lo = zero;
            hi = extents
                .iter()
                .copied()
                .reduce(|a, e| self.b.nsw(Opcode::Mul, a, e))
                .expect("a range task has an axis");
        }
        // A tile may be narrower than a batch.
        let in_tiles = bounds.len() > 1
            && !serial
            && batch == 1
            && inside.is_none()
            && tiles::are_worth_it(self.func, body);
        let exit = self.b.block(self.llvm, "each_done");
        let walk = self.b.block(self.llvm, "each");
        let some = self.b.icmp(IntPredicate::SLT, lo, hi);
        self.b.cond_br(some, walk, exit);
        self.b.at(walk);

        let (&last_extent, outer_extents) = extents.split_last().expect("a range task has an axis");
        // The coordinates, counted from each axis's lower bound, at which this part begins.
        let mut first = Vec::new();
        let mut rest = lo;
        if !outer_extents.is_empty() {
            for &extent in extents[1..].iter().rev() {
                first.push(self.b.op(Opcode::URem, rest, extent));
                rest = self.b.op(Opcode::UDiv, rest, extent);
            }
        }
        first.push(rest);
        first.reverse();

        let tiles =
            in_tiles.then(|| self.begin_tiles([lo, hi], first[first.len() - 1], last_extent));
        let ends = match in_tiles {
            true => ends.of_tiles(tiles::WIDTH),
            false => ends,
        };
        let rows_done = tiles.as_ref().map_or(exit, |tiles| tiles.next);
        let i64_ty = basic(self.b.i64_type());
        let outer = self.b.block(self.llvm, "rows");
        let before = self.b.current();
        self.b.br(outer);
        self.b.at(outer);
        let position = self.b.phi(i64_ty);
        incoming(position, lo, before);
        let coords: Vec<_> = first
            .iter()
            .map(|&value| {
                let phi = self.b.phi(i64_ty);
                incoming(phi, value, before);
                phi
            })
            .collect();
        let mut start = coords[coords.len() - 1].as_basic_value();
        let mut place = position.as_basic_value();
        if let Some(tiles) = &tiles {
            start = self.b.nsw(Opcode::Add, start, tiles.column);
            place = self.b.nsw(Opcode::Add, place, tiles.column);
        }
        let left = self.b.nsw(Opcode::Sub, hi, position.as_basic_value());
        let mut room = self.b.nsw(Opcode::Sub, last_extent, start);
        if let Some(tiles) = &tiles {
            let narrower = self.b.icmp(IntPredicate::SLT, tiles.width, room);
            room = self.b.select(narrower, tiles.width, room);
        }
        let row_length = match outer_extents.is_empty() {
            true => left,
            false => self.smaller(left, room),
        };
        let length = match serial {
            // A long row is walked in pieces, between which it can be left.
            true => self.smaller(row_length, self.b.i64(pieces::length(self.func, body))),
            false => row_length,
        };
        let length = ends.whole(&self.b, length);
        if serial {
            self.poll();
        }

        // The parameters: outer coordinates for the row, the counter inside it.
        let func = self.func;
        let params = &func.regions[body].params;
        let (&counter_param, outer_params) = params.split_last().expect("one for each axis");
        for ((&param, coord), &[lo, _]) in outer_params.iter().zip(&coords).zip(&bounds) {
            let index = self.b.nsw(Opcode::Add, coord.as_basic_value(), lo);
            self.values[param] = Some(self.narrow(param, index));
        }
        let row_lo = self.b.nsw(Opcode::Add, start, bounds[bounds.len() - 1][0]);
        let row_hi = self.b.nsw(Opcode::Add, row_lo, length);
        let (counter_lo, counter_hi) = (
            self.narrow(counter_param, row_lo),
            self.narrow(counter_param, row_hi),
        );
        if !serial {
            self.b.assume(self.b.icmp(IntPredicate::NE, length, zero));
        }
        let row = Row {
            body,
            counter: counter_param,
            lo: counter_lo,
            hi: counter_hi,
            before: self.b.op(Opcode::Sub, place, row_lo),
            number,
            exit,
        };
        let edges = plan.as_ref().map(|(plan, width)| (plan, *width));
        let row_done = match (inside, edges) {
            (Some((interior, plan, width)), edges) => {
                let inside = Some((&plan, width));
                self.row_in_parts(&row, interior, &InParts { inside, edges })
            }
            (None, Some((plan, width))) => self.row_in_lanes(&row, plan, width),
            (None, None) => self.row(&row, serial),
        };

        self.b.at(row_done);
        if outer_extents.is_empty() && !serial {
            incoming(position, hi, row_done);
            incoming(coords[0], zero, row_done);
            // One row was everything; LLVM drops the loop around it.
            let never = self.b.bool(false);
            self.b.cond_br(never, outer, exit);
        } else {
            let length = match &tiles {
                Some(tiles) => self.b.select(tiles.whole_rows, last_extent, length),
                None => length,
            };
            let walked = self.b.nsw(Opcode::Add, position.as_basic_value(), length);
            incoming(position, walked, row_done);
            let end = self.b.nsw(Opcode::Add, start, length);
            let mut carry = match serial && !outer_extents.is_empty() {
                true => self.b.icmp(IntPredicate::EQ, end, last_extent),
                false => self.b.bool(true),
            };
            let next_start = match outer_extents.is_empty() {
                true => walked,
                false => self.b.select(carry, zero, end),
            };
            incoming(coords[coords.len() - 1], next_start, row_done);
            for (axis, &extent) in outer_extents.iter().enumerate().rev() {
                let coord = coords[axis].as_basic_value();
                let up = self.b.nsw(Opcode::Add, coord, one);
                let full = self.b.icmp(IntPredicate::EQ, up, extent);
                // The slowest axis is never wound back: the part ends there.
                let wound = if axis == 0 {
                    up
                } else {
                    self.b.select(full, zero, up)
                };
                let stepped = self.b.select(carry, wound, coord);
                incoming(coords[axis], stepped, row_done);
                carry = self.b.and(carry, full);
            }
            let more = self.b.icmp(IntPredicate::SLT, walked, hi);
            self.b.cond_br(more, outer, rows_done);
        }
        if let Some(tiles) = tiles {
            self.end_tile(&tiles, last_extent, exit);
        }
        self.b.at(exit);
    }

    fn smaller(&self, a: Val<'ctx>, b: Val<'ctx>) -> Val<'ctx> {
        self.b.select(self.b.icmp(IntPredicate::SLT, a, b), a, b)
    }

    /// Runs the body for each index of a row, one after the other. Gives the block behind it.
    pub(crate) fn row(&mut self, row: &Row<'ctx>, serial: bool) -> BasicBlock<'ctx> {
        let task = self.task.as_ref().filter(|_| !serial);
        let interior = task.and_then(|task| Interior::of(self.func, row.body, &task.axes, false));
        match interior {
            Some(interior) => self.row_in_parts(row, interior, &InParts::default()),
            None => self.stretch(row, serial, false),
        }
    }

    /// The inside of rows in which iterations run through loops together, as they do not at the edges.
    fn lanes_inside(&self, body: Region) -> Option<(Interior, Plan, u32)> {
        let width = self.cx.lanes?;
        let env = &self.module.env;
        // Which indices come one by one there depends on how long vectors are.
        if env.deterministic || iterations_within(self.func, body) == Some(0) {
            return None;
        }
        let task = self.task.as_ref()?;
        let interior = Interior::of(self.func, body, &task.axes, true)?;
        let outcomes = &interior.outcomes;
        let plan = lanes::plan_inside(self.func, env, body, self.reassociates, outcomes)?;
        Some((interior, plan, width))
    }

    /// Runs the body for neighbouring indices, at least one. Gives the block behind it.
    pub(crate) fn stretch(
        &mut self,
        row: &Row<'ctx>,
        serial: bool,
        is_short: bool,
    ) -> BasicBlock<'ctx> {
        let [again, next, done] = ["row", "next", "row_done"].map(|n| self.b.block(self.llvm, n));
        let before = self.b.current();
        self.b.br(again);
        self.b.at(again);
        let counter = self.b.phi(row.lo.get_type());
        incoming(counter, row.lo, before);
        let index = counter.as_basic_value();
        self.values[row.counter] = Some(index);
        self.seed_iteration(row, index);
        if iterations_within(self.func, row.body).is_none_or(|n| n > SHORT_BODY) {
            self.poll();
        }
        if !serial {
            self.group = Some(self.cx.groups[row.number]);
        }
        self.loops.push(row.loop_to(next));
        if self.region(row.body).is_some() {
            self.b.br(next);
        }
        self.loops.pop();
        self.group = None;

        self.b.at(next);
        let signed = self.func.elem(row.counter).is_signed();
        let counted = self.b.count_on(signed, index);
        incoming(counter, counted, next);
        // Not `less`: the number of iterations is a difference then, whatever LLVM can prove of the ends.
        let more = self.b.icmp(IntPredicate::NE, counted, row.hi);
        let back = self.b.cond_br(more, again, done);
        if !serial {
            let many = self.cx.lanes.is_some_and(|lanes| lanes > FEW_LANES);
            let env = &self.module.env;
            let narrow = many && lanes::far_reads(self.func, env, row.body) > FAR_READS;
            let marks = match (is_short, narrow) {
                (true, _) => &self.cx.scalars,
                (false, true) => &self.cx.narrow,
                (false, false) => &self.cx.loops,
            };
            self.b.mark(back, "llvm.loop", marks[row.number]);
        }
        done
    }

    /// Whether a body shall become vectors of few lanes, if any.
    pub(crate) fn is_narrow(&self, body: Region) -> bool {
        let many = self.cx.lanes.is_some_and(|lanes| lanes > FEW_LANES);
        many && lanes::far_reads(self.func, &self.module.env, body) > FAR_READS
    }

    /// Sets the random state with which the iteration of an index begins, if anything draws.
    pub(crate) fn seed_iteration(&mut self, row: &Row<'ctx>, index: Val<'ctx>) {
        if self.task.as_ref().is_some_and(|task| task.random) {
            let wide = self.b.extend(self.func.elem(row.counter), index, 64);
            let linear = self.b.op(Opcode::Add, row.before, wide);
            self.seed(linear);
        }
    }

    /// An `i64` index as the type of a parameter.
    pub(crate) fn narrow(&self, param: Value, index: Val<'ctx>) -> Val<'ctx> {
        self.b
            .extend(ScalarType::I64, index, self.func.elem(param).bits())
    }
}
