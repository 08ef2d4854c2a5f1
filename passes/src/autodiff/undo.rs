//! Replayed memory: what the kernel overwrites and the backward pass needs is written again and put back.
//!
//! ```text
//! for s { .. x[i] = f(x[i]) .. }            for s { marks[s] = n; .. log[n++] = i, x[i]; x[i] = f(x[i]) .. }
//!                                           for s, backwards {
//!                                   ==>         while n > marks[s] { i, x[i] = log[--n] }
//!                                               v1 = x[i]; x[i] = f(v1)             ; the turn again
//!                                               x[i] = v1; x.grad[i] = x.grad[i] * f'(v1)
//!                                           }
//! ```
//! Wherever a region is reversed, memory is at first as it was before the region, and is so again when it is reversed.
//! A write that is reversed keeps what it overwrites as a value; a loop or branch that reruns notes it in a log, by
//! element, and each iteration notes how long the log was.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::trips;
use aerogel_ir::{BinaryOp, Inst, Op, Region, Type, Value, walk};

use super::demand::Cx;
use super::reverse::Reverse;
use super::saved::{Saved, Store};
use super::storage::{Memory, element_of};

/// What a loop or branch has overwritten.
pub(super) struct Log {
    streams: Vec<Stream>,
}

/// What has been overwritten of one field or array, or of one component of it.
struct Stream {
    /// A place of it.
    place: Value,
    /// A local: how many entries there are.
    count: Value,
    /// What names the elements, axis by axis, and their components if that is not known.
    indices: Vec<Store>,
    old: Store,
}

impl Reverse<'_, '_> {
    /// Writes replayed memory again.
    pub(super) fn execute(&mut self, inst: Inst, place: Value, reversed: bool) {
        let at = self.now(place);
        let old = self.b.load(at);
        if reversed {
            self.olds.insert(inst, old);
        } else if let Some(log) = self.log.take() {
            self.enter(&log, place, old);
            self.log = Some(log);
        }
        self.copy(inst);
    }

    /// Writes a loop or branch again, with a log of its own where it will be reversed.
    pub(super) fn logged(&mut self, inst: Inst, reversed: bool, write: impl FnOnce(&mut Self)) {
        if !reversed {
            return write(self);
        }
        let log = self.log_of(inst);
        let outer = std::mem::replace(&mut self.log, log);
        write(self);
        if let Some(log) = std::mem::replace(&mut self.log, outer) {
            self.logs.insert(inst, log);
        }
    }

    /// An empty log for what an instruction overwrites; none if that is nothing.
    fn log_of(&mut self, inst: Inst) -> Option<Log> {
        let func = self.cx.func;
        let mut found = Vec::new();
        for owned in func.owned(inst) {
            let turns = turns_of(func, inst);
            self.overwriting(owned, turns, &mut found);
        }
        let mut streams = Vec::new();
        for (place, most) in found {
            let n_axes = self.named(place).len();
            let elem = func.ty(place).pointee().and_then(Type::elem);
            let elem = elem.expect("numbers are replayed");
            let count = self.b.local(Type::I64);
            let zero = self.b.constant(Scalar::zero(ScalarType::I64));
            self.b.store(count, zero);
            let axes = (0..n_axes).map(|_| self.store(ScalarType::I32, 1, None, most));
            let indices = axes.collect();
            let old = self.store(elem, 1, None, most);
            streams.push(Stream {
                place,
                count,
                indices,
                old,
            });
        }
        (!streams.is_empty()).then_some(Log { streams })
    }

    /// What names an element, and then a component of it if that is not known.
    fn named(&self, place: Value) -> Vec<Value> {
        let func = self.cx.func;
        let (whole, component) = element_of(func, place).expect("it can be replayed");
        let indices = match func.def_op(whole) {
            Some(Op::FieldAt { indices, .. } | Op::ArrayAt { indices, .. }) => indices,
            op => unreachable!("{op:?} is no element"),
        };
        match self.is_named_at_run_time(place) {
            true => [&indices[..], &component].concat(),
            false => indices.clone(),
        }
    }

    /// Whether components of the memory of a place are named by something that is no constant.
    fn is_named_at_run_time(&self, place: Value) -> bool {
        self.named_at_run_time.contains(&self.cx.memory(place))
    }

    fn is_of_stream(&self, place: Value, other: Value) -> bool {
        let fixed = |place: Value| {
            let component = element_of(self.cx.func, place).map(|(_, component)| component);
            let component = component.unwrap_or_default().into_iter();
            component
                .map(|v| self.cx.func.as_const(v))
                .collect::<Vec<_>>()
        };
        self.cx.memory(place) == self.cx.memory(other)
            && (self.is_named_at_run_time(place) || fixed(place) == fixed(other))
    }

    /// What a rerun of a region overwrites: a place of each memory, and how often at most.
    fn overwriting(
        &self,
        region: Region,
        times: Option<u64>,
        found: &mut Vec<(Value, Option<u64>)>,
    ) {
        let func = self.cx.func;
        for &inst in &func.regions[region].insts {
            if let Op::Store { place, .. } | Op::Atomic { place, .. } = func[inst]
                && self.demand.executed(inst).rerun
            {
                let mut all = found.iter_mut();
                match all.find(|(of, _)| self.is_of_stream(*of, place)) {
                    Some((_, most)) => {
                        *most = most.zip(times).map(|(a, b)| a.saturating_add(b));
                    }
                    None => found.push((place, times)),
                }
            }
            let turns = turns_of(func, inst);
            let inner = times.zip(turns).map(|(a, b)| a.saturating_mul(b));
            for owned in func.owned(inst) {
                self.overwriting(owned, inner, found);
            }
        }
    }

    fn enter(&mut self, log: &Log, place: Value, old: Value) {
        let mut streams = log.streams.iter();
        let stream = streams.find(|stream| self.is_of_stream(stream.place, place));
        let stream = stream.expect("all that is overwritten has a stream");
        let at = self.b.load(stream.count);
        let named = self.named(place);
        for (&store, index) in stream.indices.iter().zip(named) {
            let index = self.now(index);
            let index = self.b.cast(index, Type::Scalar(ScalarType::I32));
            self.push(store, at, index);
        }
        self.push(stream.old, at, old);
        let next = self.following(at);
        self.b.store(stream.count, next);
    }

    fn push(&mut self, store: Store, at: Value, value: Value) {
        let store = self.grown(store, at, 1);
        let slot = self.slot(store, at);
        self.b.store(slot, value);
    }

    /// How many streams what is written now has.
    pub(super) fn n_streams(&self) -> usize {
        self.log.as_ref().map_or(0, |log| log.streams.len())
    }

    /// How much a stream holds.
    pub(super) fn mark(&mut self, stream: usize) -> Value {
        let log = self.log.as_ref().expect("marks are of logs");
        let count = log.streams[stream].count;
        self.b.load(count)
    }

    /// Puts back what an instruction has overwritten; loops that are reversed do so turn by turn.
    pub(super) fn undo(&mut self, inst: Inst) {
        if let Op::Store { place, .. } | Op::Atomic { place, .. } = self.cx.func[inst]
            && let Some(old) = self.olds.remove(&inst)
        {
            let at = self.now(place);
            self.b.store(at, old);
        }
        let is_branch = matches!(self.cx.func[inst], Op::If { .. });
        if (is_branch || !self.demand.works(inst))
            && let Some(log) = self.logs.remove(&inst)
        {
            let zero = self.b.constant(Scalar::zero(ScalarType::I64));
            for stream in &log.streams {
                self.take_back(stream, zero);
            }
        }
    }

    /// Puts back what a turn of a loop has overwritten.
    pub(super) fn undo_turn(&mut self, inst: Inst, saved: &Saved, turn: Value) {
        let Some(log) = self.logs.remove(&inst) else {
            return;
        };
        for (stream, &mark) in log.streams.iter().zip(&saved.marks) {
            let slot = self.slot(mark, turn);
            let mark = self.b.load(slot);
            self.take_back(stream, mark);
        }
        self.logs.insert(inst, log);
    }

    /// Puts back what a stream holds behind its first entries, the last one first.
    fn take_back(&mut self, stream: &Stream, first: Value) {
        let count = self.b.load(stream.count);
        let minus_one = self.b.constant(Scalar::int(ScalarType::I64, -1));
        let [last, end] = [count, first].map(|v| self.b.binary(BinaryOp::Add, v, minus_one));
        let mut stores = stream.indices.clone();
        stores.push(stream.old);
        let stores: Vec<Store> = stores.iter().map(|&s| self.filled(s, count)).collect();
        let body = self.inside(&[Type::I64], |pass, params| {
            let mut values = Vec::new();
            for &store in &stores {
                let slot = pass.slot(store, params[0]);
                values.push(pass.b.load(slot));
            }
            let old = values.pop().expect("the old value is the last");
            let place = pass.element_at(stream.place, values);
            pass.b.store(place, old);
        });
        self.b.effect(Op::For {
            lo: last,
            hi: end,
            step: minus_one,
            init: Vec::new(),
            body,
        });
        self.b.store(stream.count, first);
    }

    /// Where a growing store has what was noted in it.
    fn filled(&mut self, store: Store, count: Value) -> Store {
        match store {
            Store::Buffer(buffer, None) => Store::Buffer(buffer, Some(self.reserve(buffer, count))),
            store => store,
        }
    }

    /// The place beside another one that these indices, and components if those are not known, name.
    fn element_at(&mut self, like: Value, mut indices: Vec<Value>) -> Value {
        let func = self.cx.func;
        let (whole, component) = element_of(func, like).expect("it can be replayed");
        let component = match self.is_named_at_run_time(like) {
            true => indices.split_off(indices.len() - component.len()),
            false => {
                let fixed = component.iter().filter_map(|&v| func.as_const(v));
                fixed.map(|c| self.b.constant(c)).collect()
            }
        };
        let op = match func.def_op(whole) {
            Some(&Op::FieldAt { field, .. }) => Op::FieldAt { field, indices },
            Some(&Op::ArrayAt { array, .. }) => Op::ArrayAt { array, indices },
            op => unreachable!("{op:?} is no element"),
        };
        let base = self.b.value(op, func.ty(whole));
        if component.is_empty() {
            return base;
        }
        let op = Op::ElemRef {
            base,
            index: component,
        };
        self.b.value(op, func.ty(like))
    }
}

/// The memory of which components that are not known are overwritten.
pub(super) fn named_at_run_time(cx: &Cx<'_>) -> Vec<Memory> {
    let mut found = Vec::new();
    walk(cx.func, cx.func.body, &mut |func, inst| {
        let (Op::Store { place, .. } | Op::Atomic { place, .. }) = func[inst] else {
            return;
        };
        if let Some((_, component)) = element_of(func, place)
            && component.iter().any(|&v| func.as_const(v).is_none())
        {
            found.push(cx.memory(place));
        }
    });
    found
}

/// How often what an instruction owns runs at most.
fn turns_of(func: &aerogel_ir::Function, inst: Inst) -> Option<u64> {
    match &func[inst] {
        Op::If { .. } => Some(1),
        op => trips::length(func, op),
    }
}
