//! A warp: 32 lanes that run together where they stand at the same instruction.
//!
//! Lanes that take another way form groups; the group that stands at the lowest instruction goes first, so that those that
//! skip something wait for those that do not, and groups that meet become one. A call is a frame of its own, in which the lanes that
//! called run until they have returned.

use super::grid::{Grid, Shared, along};
use super::undefined::Undefined;
use crate::code::{Function, Instruction, Join, Lanes, Operand, Reg, Slot, Special};
use crate::error::{Fault, FaultKind};
use crate::memory::{Allocation, Bad, Own, Visit};

/// Every so often the group at the highest instruction goes first.
const FAIR: u64 = 256;
/// Calls that are deeper are a fault.
const MOST_FRAMES: usize = 512;
/// Bytes of local memory that a thread may have.
const MOST_LOCAL: u64 = 512 << 10;

/// What went wrong, and in which lane if that is known.
pub(super) type Failed = (Bad, Option<u32>);

/// What lanes wait for.
#[derive(Clone, Debug)]
pub(super) enum Wait {
    /// Other threads of the block.
    Barrier {
        number: u32,
        threads: Option<u32>,
        /// What is found out there: by which operation, for which register, and what each lane says.
        vote: Option<(Option<Join>, Reg, u32)>,
    },
    /// Other lanes of the warp.
    Lanes,
}

/// What a register holds, lane by lane.
pub(super) type Row = [u64; 32];

/// Lanes at the same instruction.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) pc: usize,
    pub(super) lanes: u32,
    wait: Option<Wait>,
}

/// A function that runs.
pub(super) struct Frame<'m> {
    pub(super) func: &'m Function,
    pub(super) registers: Vec<Row>,
    groups: Vec<Group>,
    pub(super) undefined: Undefined,
    /// Parameters, lane by lane.
    pub(super) params: Vec<u8>,
    /// Where its local memory begins.
    pub(super) local: u64,
    /// Where the caller wants the results.
    results: Vec<Slot>,
}

/// How a group continues.
pub(super) enum Next {
    /// With the next instruction.
    On,
    /// Lanes go there, the others on.
    Branch(u32, usize),
    /// Lanes each go their own way.
    Branches(Vec<(u32, usize)>),
    Call(usize, Vec<Slot>, Vec<Slot>),
    /// Lanes leave the function.
    Return(u32),
    /// Lanes end.
    Exit(u32),
    Wait(Wait),
    /// Some lanes wait for others, the rest continues.
    Stay(u32),
}

/// A warp of a block.
pub(super) struct Warp<'m> {
    pub(super) grid: &'m Grid<'m>,
    block: [u32; 3],
    block_number: u64,
    number: u32,
    pub(super) frames: Vec<Frame<'m>>,
    /// Lanes that have not ended, and those there were.
    alive: u32,
    pub(super) local: Vec<Own>,
    /// How often lanes have waited for each other.
    pub(super) phase: u64,
    steps: u64,
    picks: u64,
    /// Operands that are no registers, lane by lane.
    pub(super) spare: [Row; 4],
    /// The memory that was accessed last.
    pub(super) last: Option<&'m Allocation>,
}

impl<'m> Warp<'m> {
    pub(super) fn new(grid: &'m Grid<'m>, block: [u32; 3], block_number: u64, number: u32) -> Self {
        let rest = grid.n_threads() - u64::from(number) * 32;
        let alive = match rest {
            32.. => u32::MAX,
            n => (1 << n) - 1,
        };
        let func = &grid.code.functions[grid.func];
        let mut warp = Self {
            grid,
            block,
            block_number,
            number,
            frames: Vec::new(),
            alive,
            local: vec![Own::of_thread(); 32],
            phase: 0,
            steps: 0,
            picks: 0,
            spare: [[0; 32]; 4],
            last: None,
        };
        let mut frame = warp.frame(func, alive, 0);
        for params in frame.params.chunks_exact_mut(grid.params.len().max(1)) {
            params.copy_from_slice(&grid.params);
        }
        warp.grow_local(func.local_bytes);
        warp.frames.push(frame);
        warp
    }

    fn frame(&self, func: &'m Function, lanes: u32, local: u64) -> Frame<'m> {
        Frame {
            func,
            registers: vec![[0; 32]; func.n_registers as usize],
            groups: vec![Group {
                pc: 0,
                lanes,
                wait: None,
            }],
            undefined: Undefined::default(),
            params: vec![0; 32 * func.param_bytes as usize],
            local,
            results: Vec::new(),
        }
    }

    fn grow_local(&mut self, bytes: u64) {
        for own in &mut self.local {
            own.resize(bytes);
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.frames.is_empty()
    }

    /// The function that runs.
    pub(super) fn top(&mut self) -> &mut Frame<'m> {
        self.frames.last_mut().expect("the warp is not done")
    }

    /// Runs up to so many instructions; how many it were. Fewer are run where all wait, or are done.
    pub(super) fn run(&mut self, own: &mut Shared, most: u64) -> Result<u64, Box<Fault>> {
        let mut ran = 0;
        while ran < most && !self.is_done() {
            self.picks += 1;
            let last = self.picks.is_multiple_of(FAIR);
            let Some(at) = self.runnable(last) else { break };
            ran += self.run_group(own, at, most - ran)?;
        }
        own.counts.instructions += ran;
        Ok(ran)
    }

    /// The group that goes first; or the last one, so that lanes which wait in a loop for others do not keep them from going on.
    fn runnable(&mut self, last: bool) -> Option<usize> {
        let groups = &self.frames.last()?.groups;
        let ready = groups.iter().enumerate().filter(|(_, g)| g.wait.is_none());
        let first = |pc: usize| if last { usize::MAX - pc } else { pc };
        ready.min_by_key(|(_, g)| first(g.pc)).map(|(at, _)| at)
    }

    /// Runs a group until another one goes first.
    fn run_group(&mut self, own: &mut Shared, at: usize, most: u64) -> Result<u64, Box<Fault>> {
        let mut ran = 0;
        loop {
            let frame = self.frames.last().expect("the warp is not done");
            let (func, group) = (frame.func, &frame.groups[at]);
            let (pc, lanes) = (group.pc, group.lanes);
            let inst = &func.code[pc];
            let active = match inst.guard {
                None => lanes,
                Some((reg, not)) => lanes & self.said(Operand::Reg(reg), not),
            };
            ran += 1;
            self.steps += 1;
            own.counts.lanes += u64::from(active.count_ones());
            let next = self
                .followed(own, inst, active, lanes)
                .map_err(|(bad, lane)| {
                    self.fault_of(&bad, func, pc, lane.unwrap_or(active.trailing_zeros()))
                })?;
            let alone = frame_is_alone(self.frames.last());
            match next {
                Next::On => {
                    let groups = &mut self.top().groups;
                    groups[at].pc = pc + 1;
                    if alone && ran < most {
                        continue;
                    }
                    self.merge();
                }
                other => self.go(own, at, other)?,
            }
            return Ok(ran);
        }
    }

    /// Runs an instruction in the lanes in which its guard is true, and says which bits of what it gives are undefined.
    fn followed(
        &mut self,
        own: &mut Shared,
        inst: &Instruction,
        active: u32,
        lanes: u32,
    ) -> Result<Next, Failed> {
        let is_followed = !self.top().undefined.is_empty();
        if let (true, Some((reg, _))) = (is_followed, inst.guard) {
            self.expect_known(reg, lanes)?;
        }
        if active == 0 {
            return Ok(Next::On);
        }
        if is_followed {
            for (reg, bits) in self.follow(&inst.op, active)? {
                for lane in each(active) {
                    self.set_undefined(reg, lane, bits[lane]);
                }
            }
        }
        self.step(own, &inst.op, active, lanes)
    }

    fn go(&mut self, own: &mut Shared, at: usize, next: Next) -> Result<(), Box<Fault>> {
        let group = self.top().groups[at].clone();
        let (pc, lanes) = (group.pc, group.lanes);
        match next {
            Next::On => unreachable!("the caller continues"),
            Next::Branch(taken, to) => {
                own.counts.divergent += u64::from(taken != lanes);
                self.split(at, &[(taken, to), (lanes & !taken, pc + 1)]);
            }
            Next::Branches(ways) => {
                own.counts.divergent += u64::from(ways.len() > 1);
                self.split(at, &ways);
            }
            Next::Call(func, args, results) => {
                self.top().groups[at].pc = pc + 1;
                self.call(func, lanes, pc, &args, results)?;
            }
            Next::Return(gone) => {
                self.split(at, &[(lanes & !gone, pc + 1)]);
                self.unwind();
            }
            Next::Exit(gone) => {
                self.alive &= !gone;
                let depth = self.frames.len() - 1;
                for frame in &mut self.frames[..depth] {
                    for group in &mut frame.groups {
                        group.lanes &= !gone;
                    }
                    frame.groups.retain(|g| g.lanes != 0);
                }
                self.split(at, &[(lanes & !gone, pc + 1)]);
                self.unwind();
            }
            Next::Stay(stay) => self.split(at, &[(stay, pc), (lanes & !stay, pc + 1)]),
            Next::Wait(wait) => self.top().groups[at].wait = Some(wait),
        }
        Ok(())
    }

    /// A group becomes several.
    fn split(&mut self, at: usize, ways: &[(u32, usize)]) {
        let groups = &mut self.top().groups;
        groups.swap_remove(at);
        let ways = ways.iter().filter(|(lanes, _)| *lanes != 0);
        groups.extend(ways.map(|&(lanes, pc)| Group {
            pc,
            lanes,
            wait: None,
        }));
        self.merge();
    }

    /// Groups at the same instruction become one, unless they wait for the block.
    fn merge(&mut self) {
        let groups = &mut self.top().groups;
        let waits = |g: &Group| matches!(g.wait, Some(Wait::Barrier { .. }));
        let mut k = 0;
        while k < groups.len() {
            let mut other = k + 1;
            while other < groups.len() {
                let same = groups[k].pc == groups[other].pc;
                if same && !waits(&groups[k]) && !waits(&groups[other]) {
                    let gone = groups.swap_remove(other);
                    groups[k].lanes |= gone.lanes;
                    groups[k].wait = None;
                } else {
                    other += 1;
                }
            }
            k += 1;
        }
    }

    fn call(
        &mut self,
        func: usize,
        lanes: u32,
        pc: usize,
        args: &[Slot],
        results: Vec<Slot>,
    ) -> Result<(), Box<Fault>> {
        let code = self.grid.code;
        let callee = &code.functions[func];
        let caller = self.frames.last().expect("something calls");
        let (here, lane) = (caller.func, lanes.trailing_zeros());
        let fail = |warp: &Self, message: &str| {
            let bad = Bad::new(FaultKind::Stack, message);
            Err(warp.fault_of(&bad, here, pc, lane))
        };
        if !callee.is_defined {
            return fail(self, &format!("`{}` has no body", callee.name));
        }
        let local = (caller.local + here.local_bytes).next_multiple_of(16);
        if self.frames.len() >= MOST_FRAMES || local + callee.local_bytes > MOST_LOCAL {
            return fail(self, "calls are too deep");
        }
        let mut frame = self.frame(callee, lanes, local);
        let caller = self.frames.last().expect("something calls");
        for lane in each(lanes) {
            for (from, to) in args.iter().zip(&callee.params) {
                let bytes = from.bytes.min(to.bytes) as usize;
                let from = lane * here.param_bytes as usize + from.offset as usize;
                let to = lane * callee.param_bytes as usize + to.offset as usize;
                frame.params[to..to + bytes].copy_from_slice(&caller.params[from..from + bytes]);
            }
        }
        frame.results = results;
        self.grow_local(local + callee.local_bytes);
        for lane in each(lanes) {
            self.local[lane].forget(local);
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Leaves functions in which no lane is any more. What lanes that returned have left as results their caller has
    /// since then.
    fn unwind(&mut self) {
        while let Some(frame) = self.frames.last()
            && frame.groups.is_empty()
        {
            self.frames.pop();
        }
    }

    /// Hands the results of a function to its caller.
    pub(super) fn give_back(&mut self, lanes: u32) {
        let depth = self.frames.len();
        if depth < 2 {
            return;
        }
        let (callers, callee) = self.frames.split_at_mut(depth - 1);
        let (caller, callee) = (&mut callers[depth - 2], &callee[0]);
        for lane in each(lanes) {
            for (from, to) in callee.func.results.iter().zip(&callee.results) {
                let bytes = from.bytes.min(to.bytes) as usize;
                let from = lane * callee.func.param_bytes as usize + from.offset as usize;
                let to = lane * caller.func.param_bytes as usize + to.offset as usize;
                caller.params[to..to + bytes].copy_from_slice(&callee.params[from..from + bytes]);
            }
        }
    }

    /// The lanes of the warp that have not ended.
    pub(super) fn alive(&self) -> u32 {
        self.alive
    }

    /// What a lane reads.
    pub(super) fn value(&self, operand: Operand, lane: usize) -> u64 {
        let frame = self.frames.last().expect("something runs");
        match operand {
            Operand::Reg(reg) => frame.registers[reg.0 as usize][lane],
            Operand::Number(value) => value,
            Operand::Special(special) => self.special(special, lane),
            Operand::Variable(number) => self.grid.code.variables[number].at,
            Operand::Local(offset) => frame.local + offset,
        }
    }

    /// What all lanes read.
    pub(super) fn row(&self, operand: Operand) -> Row {
        match operand {
            Operand::Reg(reg) => {
                let frame = self.frames.last().expect("something runs");
                frame.registers[reg.0 as usize]
            }
            Operand::Special(_) => std::array::from_fn(|lane| self.value(operand, lane)),
            _ => [self.value(operand, 0); 32],
        }
    }

    /// The lanes in which a predicate is true, or is not.
    pub(super) fn said(&self, operand: Operand, not: bool) -> u32 {
        let frame = self.frames.last().expect("something runs");
        let row = match operand {
            Operand::Reg(reg) => &frame.registers[reg.0 as usize],
            _ => &self.row(operand),
        };
        let yes = (0..32).fold(0, |lanes, lane| lanes | (row[lane] as u32 & 1) << lane);
        if not { !yes } else { yes }
    }

    pub(super) fn set(&mut self, reg: Reg, lane: usize, value: u64) {
        self.top().registers[reg.0 as usize][lane] = value;
    }

    fn special(&self, special: Special, lane: usize) -> u64 {
        let grid = self.grid;
        let here = 1_u64 << lane;
        match special {
            Special::Thread(axis) => u64::from(self.thread(lane)[axis]),
            Special::Threads(axis) => u64::from(grid.threads[axis]),
            Special::Block(axis) => u64::from(self.block[axis]),
            Special::Blocks(axis) => u64::from(grid.blocks[axis]),
            Special::Lane => lane as u64,
            Special::Warp => u64::from(self.number),
            Special::Warps => grid.n_threads().div_ceil(32),
            Special::LaneMask(lanes) => match lanes {
                Lanes::Equal => here,
                Lanes::Less => here - 1,
                Lanes::LessEqual => here | (here - 1),
                Lanes::Greater => !(here | (here - 1)) & 0xffff_ffff,
                Lanes::GreaterEqual => !(here - 1) & 0xffff_ffff,
            },
            Special::Clock => self.steps,
            Special::DynamicShared => grid.dynamic_shared,
            Special::Grid => grid.epoch,
        }
    }

    /// The number of a lane's thread in its block.
    fn thread(&self, lane: usize) -> [u32; 3] {
        along(self.grid.threads, u64::from(self.number) * 32 + lane as u64)
    }

    /// A lane's access, for races.
    pub(super) fn visit(&self, own: &Shared, lane: usize, ordered: bool) -> Visit {
        let block = self.grid.n_threads();
        Visit {
            thread: self.block_number * block + u64::from(self.number) * 32 + lane as u64,
            block,
            phase: own.phase,
            warp_phase: self.phase,
            epoch: self.grid.epoch,
            ordered,
            constant: false,
        }
    }

    fn fault_of(&self, bad: &Bad, func: &Function, pc: usize, lane: u32) -> Box<Fault> {
        let line = func.code[pc].line;
        Box::new(Fault {
            kind: bad.kind,
            message: bad.message.clone(),
            function: func.name.clone(),
            line,
            instruction: self.grid.code.line(line).to_owned(),
            thread: self.thread(lane as usize % 32),
            block: self.block,
        })
    }

    /// A fault of the first lane that runs.
    pub(super) fn fault(&self, kind: FaultKind, message: &str) -> Box<Fault> {
        let pc = self
            .frames
            .last()
            .and_then(|f| f.groups.first())
            .map_or(0, |g| g.pc);
        self.fault_at(pc, kind, message)
    }

    pub(super) fn fault_at(&self, pc: usize, kind: FaultKind, message: &str) -> Box<Fault> {
        let frame = self
            .frames
            .last()
            .expect("a fault is of something that runs");
        let lane = frame.groups.first().map_or(0, |g| g.lanes.trailing_zeros());
        self.fault_of(&Bad::new(kind, message), frame.func, pc, lane)
    }

    /// The fault of lanes that wait for others which do not come.
    pub(super) fn stuck(&self) -> Box<Fault> {
        let waiting = self
            .frames
            .last()
            .and_then(|f| f.groups.iter().find(|g| g.wait.is_some()));
        let pc = waiting.map_or(0, |g| g.pc);
        self.fault_at(
            pc,
            FaultKind::Lanes,
            "lanes are to take part that do not come here",
        )
    }

    /// What a group waits for, and where, if nothing can run.
    pub(super) fn first_wait(&self) -> Option<(usize, Wait)> {
        let groups = &self.frames.last()?.groups;
        let waits = groups.iter().filter_map(|g| Some((g.pc, g.wait.clone()?)));
        waits.min_by_key(|(_, wait)| matches!(wait, Wait::Lanes))
    }

    fn groups_at(&self, number: u32) -> impl Iterator<Item = &Group> {
        let frames = self.frames.last().into_iter();
        frames
            .flat_map(|f| &f.groups)
            .filter(move |g| matches!(g.wait, Some(Wait::Barrier { number: n, .. }) if n == number))
    }

    /// How many threads wait at a barrier.
    pub(super) fn waiting_at(&self, number: u32) -> u32 {
        self.groups_at(number).map(|g| g.lanes.count_ones()).sum()
    }

    /// Another place at which threads wait at a barrier.
    pub(super) fn other_place(&self, number: u32, pc: usize) -> Option<usize> {
        self.groups_at(number).map(|g| g.pc).find(|&at| at != pc)
    }

    /// What they say there, thread by thread.
    pub(super) fn votes_at(&self, number: u32) -> Vec<bool> {
        let all = self.groups_at(number).flat_map(|g| {
            let said = match g.wait {
                Some(Wait::Barrier {
                    vote: Some((_, _, said)),
                    ..
                }) => said,
                _ => 0,
            };
            each(g.lanes).map(move |lane| said >> lane & 1 == 1)
        });
        all.collect()
    }

    /// Resumes the lanes that wait at a barrier, with the barrier's result.
    pub(super) fn release(&mut self, number: u32, found: &dyn Fn(Option<Join>) -> u64) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        for group in &mut frame.groups {
            let Some(Wait::Barrier {
                number: n, vote, ..
            }) = &group.wait
            else {
                continue;
            };
            if *n != number {
                continue;
            }
            if let Some((op, to, _)) = *vote {
                for lane in each(group.lanes) {
                    frame.registers[to.0 as usize][lane] = found(op);
                }
            }
            group.wait = None;
            group.pc += 1;
        }
        self.merge();
    }
}

fn frame_is_alone(frame: Option<&Frame<'_>>) -> bool {
    frame.is_some_and(|frame| frame.groups.len() == 1)
}

/// The lanes of a mask.
pub(super) fn each(lanes: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| lanes >> lane & 1 == 1)
}

pub(super) fn failed(kind: FaultKind, message: &str) -> Failed {
    (Bad::new(kind, message), None)
}
