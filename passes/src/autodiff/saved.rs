//! The forward half of a backward pass: what is run once more, and what it saves.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::trips;
use aerogel_ir::{AssertKind, BinaryOp, Inst, Op, Region, Type, Value};

use super::demand::locals_touched;
use super::reverse::Reverse;
use super::storage::Memory;

/// Up to so many numbers are saved in a vector of the frame; more in a buffer.
const MOST_IN_FRAME: u64 = 64;
/// Locals of more elements are copied by a loop.
const MOST_UNROLLED: u32 = 16;

/// The values that a rerun has saved for each iteration of a loop.
#[derive(Default)]
pub(super) struct Saved {
    /// How many turns there were, as `i64`.
    pub(super) turns: Option<Value>,
    /// A carried value, and where it was saved.
    values: Vec<(Value, Store)>,
    /// A local, the copy it has now, and where its contents were saved.
    locals: Vec<(Value, Store)>,
    /// How much the logs of replayed memory held.
    pub(super) marks: Vec<Store>,
}

/// Where a value is saved for each iteration.
#[derive(Clone, Copy)]
pub(super) enum Store {
    /// In a vector of the frame.
    Frame(Value),
    /// In a buffer; its room where that is known already.
    Buffer(Value, Option<Value>),
}

impl Reverse<'_, '_> {
    /// Runs a region forwards, as far as it is needed: where it is reversed, or only rerun.
    pub(super) fn forwards(&mut self, region: Region, reversed: bool) {
        for inst in self.cx.func.regions[region].insts.clone() {
            self.b.span = self.cx.func.insts[inst].span;
            self.forward(inst, reversed);
        }
    }

    fn is_needed(&self, value: Value, reversed: bool) -> bool {
        self.demand.value(value).is_in(reversed)
    }

    fn forward(&mut self, inst: Inst, reversed: bool) {
        let func = self.cx.func;
        let results = func.insts[inst].results.clone();
        match func[inst].clone() {
            Op::Local {} => {
                let (local, ty) = (results[0], func.ty(results[0]));
                if self.demand.needs_contents(local) {
                    self.now[local] = Some(self.b.value(Op::Local {}, ty));
                }
                if reversed && self.cx.activity.is_active(local) && holds_floats(ty) {
                    self.beside[local] = Some(self.b.value(Op::Local {}, ty));
                }
            }
            Op::Store { place, .. } | Op::Atomic { place, .. } => {
                if self.finds {
                    self.find(inst);
                }
                if self.demand.executed(inst).is_in(reversed) {
                    self.execute(inst, place, reversed);
                }
                if let Memory::Local(local) = self.cx.memory(place)
                    && self.demand.needs_contents(local)
                {
                    self.copy(inst);
                }
            }
            Op::If {
                cond,
                then,
                otherwise,
            } => {
                if reversed && self.demand.works(inst) {
                    self.hold(inst);
                }
                if self.reruns(inst, reversed) {
                    self.logged(inst, reversed, |pass| {
                        pass.rerun_branch(inst, cond, then, otherwise, reversed)
                    });
                }
            }
            Op::For { .. } => {
                if reversed && self.demand.works(inst) {
                    self.hold(inst);
                }
                if self.reruns(inst, reversed) {
                    self.logged(inst, reversed, |pass| pass.rerun_counted(inst, reversed));
                }
            }
            Op::While { .. } => {
                if reversed && self.demand.works(inst) {
                    self.hold(inst);
                }
                if self.reruns(inst, reversed) {
                    self.logged(inst, reversed, |pass| pass.rerun_repeated(inst, reversed));
                }
            }
            op @ (Op::Parallel { .. } | Op::ParallelCells { .. }) => {
                if reversed && self.demand.works(inst) {
                    self.hold(inst);
                }
                if self.reruns(inst, reversed) {
                    let body = func.owned(inst)[0];
                    let params = func.regions[body].params.clone();
                    let types: Vec<Type> = params.iter().map(|&p| func.ty(p)).collect();
                    let copy = self.inside(&types, |pass, counters| {
                        pass.set(&params, counters);
                        pass.forwards(body, false);
                    });
                    let op = self.parallel_over(op, copy);
                    self.b.effect(op);
                }
            }
            // Derivatives need more of the stack.
            Op::Assert {
                kind: AssertKind::Recursion,
                ..
            } => self.copy(inst),
            // What else has an effect has had it.
            _ if results.is_empty() => {}
            _ if results.iter().any(|&r| self.is_needed(r, reversed)) => {
                match self.cx.still_stored[results[0]] {
                    Some(place) => self.read_back(results[0], place),
                    None => self.copy(inst),
                }
            }
            _ => {}
        }
    }

    fn reruns(&self, inst: Inst, reversed: bool) -> bool {
        self.demand.rerun(inst).is_in(reversed)
    }

    pub(super) fn set(&mut self, values: &[Value], to: &[Value]) {
        for (&value, &to) in values.iter().zip(to) {
            self.now[value] = Some(to);
        }
    }

    /// Writes an instruction without regions once more.
    pub(super) fn copy(&mut self, inst: Inst) {
        let data = &self.cx.func.insts[inst];
        let types: Vec<Type> = data.results.iter().map(|&r| self.cx.func.ty(r)).collect();
        let mut op = data.op.clone();
        if let Op::StopGradient { x } = op
            && !self.cx.again
        {
            self.now[data.results[0]] = self.now[x];
            return;
        }
        if let Op::Call { func, .. } = &mut op {
            *func = self.cx.calls.of(*func).rerun;
        }
        op.map_operands(|v| self.now(v));
        let copy = self.b.inst(op, &types);
        let made = self.b.func.insts[copy].results.clone();
        let results = data.results.clone();
        self.set(&results, &made);
    }

    fn rerun_branch(
        &mut self,
        inst: Inst,
        cond: Value,
        then: Region,
        otherwise: Region,
        reversed: bool,
    ) {
        let func = self.cx.func;
        let results = &func.insts[inst].results;
        let kept: Vec<usize> = (0..results.len())
            .filter(|&k| self.is_needed(results[k], reversed))
            .collect();
        let cond = self.now(cond);
        let [then, otherwise] = [then, otherwise].map(|branch| {
            self.inside(&[], |pass, _| {
                pass.forwards(branch, false);
                let yielded = func.yielded(branch).unwrap_or_default();
                let values = kept.iter().map(|&k| pass.now(yielded[k])).collect();
                pass.b.yields(values);
            })
        });
        let types: Vec<Type> = kept.iter().map(|&k| func.ty(results[k])).collect();
        let op = Op::If {
            cond,
            then,
            otherwise,
        };
        let made = self.b.inst(op, &types);
        for (at, &k) in kept.iter().enumerate() {
            self.now[results[k]] = Some(self.b.func.insts[made].results[at]);
        }
    }

    /// The carried values that a rerun makes.
    fn kept(&self, params: &[Value]) -> Vec<usize> {
        (0..params.len())
            .filter(|&k| self.demand.value(params[k]).rerun)
            .collect()
    }

    fn rerun_counted(&mut self, inst: Inst, reversed: bool) {
        let func = self.cx.func;
        let Op::For {
            lo,
            hi,
            step,
            init,
            body,
        } = func[inst].clone()
        else {
            unreachable!("the caller looked")
        };
        let params = func.regions[body].params.clone();
        let kept = self.kept(&params[1..]);
        let saves = reversed && self.demand.works(inst);
        let mut saved = Saved::default();
        if saves {
            let turns = self.turns(lo, hi, step);
            saved.turns = Some(turns);
            self.prepare(
                &mut saved,
                inst,
                &params[1..],
                Some(turns),
                trips::length(func, &func[inst]),
            );
        }
        let counts = !saved.is_empty();
        let mut init: Vec<Value> = kept.iter().map(|&k| self.now(init[k])).collect();
        let mut types: Vec<Type> = kept.iter().map(|&k| func.ty(params[k + 1])).collect();
        if counts {
            init.push(self.b.constant(Scalar::zero(ScalarType::I64)));
            types.push(Type::I64);
        }
        let mut param_types = vec![func.ty(params[0])];
        param_types.extend(&types);
        let copy = self.inside(&param_types, |pass, values| {
            pass.now[params[0]] = Some(values[0]);
            for (at, &k) in kept.iter().enumerate() {
                pass.now[params[k + 1]] = Some(values[at + 1]);
            }
            let turn = values[values.len() - 1];
            if counts {
                pass.save(&saved, turn);
            }
            pass.forwards(body, false);
            let yielded = func.yielded(body).unwrap_or_default();
            let mut next: Vec<Value> = kept.iter().map(|&k| pass.now(yielded[k])).collect();
            if counts {
                next.push(pass.following(turn));
            }
            pass.b.yields(next);
        });
        let [lo, hi, step] = [lo, hi, step].map(|v| self.now(v));
        let op = Op::For {
            lo,
            hi,
            step,
            init,
            body: copy,
        };
        let made = self.b.inst(op, &types);
        self.results(inst, &kept, made);
        if saves {
            self.saved.insert(inst, saved);
        }
    }

    pub(super) fn following(&mut self, turn: Value) -> Value {
        let one = self.b.constant(Scalar::int(ScalarType::I64, 1));
        self.b.binary(BinaryOp::Add, turn, one)
    }

    fn results(&mut self, inst: Inst, kept: &[usize], made: Inst) {
        let results = &self.cx.func.insts[inst].results;
        for (at, &k) in kept.iter().enumerate() {
            self.now[results[k]] = Some(self.b.func.insts[made].results[at]);
        }
    }

    fn rerun_repeated(&mut self, inst: Inst, reversed: bool) {
        let func = self.cx.func;
        let Op::While { init, cond, body } = func[inst].clone() else {
            unreachable!("the caller looked")
        };
        let (params, tested) = (
            func.regions[body].params.clone(),
            func.regions[cond].params.clone(),
        );
        let kept = self.kept(&params);
        let saves = reversed && self.demand.works(inst);
        let mut saved = Saved::default();
        if saves {
            self.prepare(&mut saved, inst, &params, None, None);
        }
        let mut init: Vec<Value> = kept.iter().map(|&k| self.now(init[k])).collect();
        let mut types: Vec<Type> = kept.iter().map(|&k| func.ty(params[k])).collect();
        init.push(self.b.constant(Scalar::zero(ScalarType::I64)));
        types.push(Type::I64);
        let test = self.inside(&types, |pass, values| {
            for (at, &k) in kept.iter().enumerate() {
                pass.now[tested[k]] = Some(values[at]);
            }
            pass.forwards(cond, false);
            let goes_on = func.yielded(cond).expect("a condition yields")[0];
            let goes_on = pass.now(goes_on);
            pass.b.yields(vec![goes_on]);
        });
        let copy = self.inside(&types, |pass, values| {
            for (at, &k) in kept.iter().enumerate() {
                pass.now[params[k]] = Some(values[at]);
            }
            let turn = values[values.len() - 1];
            pass.save(&saved, turn);
            pass.forwards(body, false);
            let yielded = func.yielded(body).unwrap_or_default();
            let mut next: Vec<Value> = kept.iter().map(|&k| pass.now(yielded[k])).collect();
            next.push(pass.following(turn));
            pass.b.yields(next);
        });
        let op = Op::While {
            init,
            cond: test,
            body: copy,
        };
        let made = self.b.inst(op, &types);
        self.results(inst, &kept, made);
        if saves {
            let turns = self.b.func.insts[made].results[kept.len()];
            saved.turns = Some(turns);
            saved.reserve_again(self, turns);
            self.saved.insert(inst, saved);
        }
    }

    /// Decides where a loop's rerun saves the values that its reversal starts each iteration with.
    fn prepare(
        &mut self,
        saved: &mut Saved,
        inst: Inst,
        params: &[Value],
        turns: Option<Value>,
        most: Option<u64>,
    ) {
        for &param in params {
            if self.demand.value(param).reversed {
                let ty = self
                    .cx
                    .func
                    .ty(param)
                    .scalar()
                    .expect("scalars are carried");
                let store = self.store(ty, 1, turns, most);
                saved.values.push((param, store));
            }
        }
        let (written, read) = locals_touched(&self.cx, self.demand, inst);
        for local in written.into_iter().filter(|local| read.contains(local)) {
            let ty = self
                .cx
                .func
                .ty(local)
                .pointee()
                .expect("a local is a storage");
            let elem = ty.elem().expect("locals hold numbers");
            let store = self.store(elem, ty.n_elems(), turns, most);
            saved.locals.push((local, store));
        }
        for _ in 0..self.n_streams() {
            saved
                .marks
                .push(self.store(ScalarType::I64, 1, turns, most));
        }
    }

    pub(super) fn store(
        &mut self,
        elem: ScalarType,
        n: u32,
        turns: Option<Value>,
        most: Option<u64>,
    ) -> Store {
        let total = most.map(|most| most.saturating_mul(u64::from(n)));
        if let Some(total) = total.filter(|&total| total <= MOST_IN_FRAME) {
            let ty = Type::Vec((total as u32).max(1), elem);
            return Store::Frame(self.b.local(ty));
        }
        let buffer = self.b.value(Op::Buffer {}, Type::Buffer(elem));
        let room = turns.map(|turns| {
            let count = self.times(turns, n);
            self.reserve(buffer, count)
        });
        Store::Buffer(buffer, room)
    }

    fn times(&mut self, turns: Value, n: u32) -> Value {
        if n == 1 {
            return turns;
        }
        let n = self.b.constant(Scalar::int(ScalarType::I64, i128::from(n)));
        self.b.binary(BinaryOp::Mul, turns, n)
    }

    pub(super) fn reserve(&mut self, buffer: Value, count: Value) -> Value {
        let Type::Buffer(elem) = self.b.func.ty(buffer) else {
            unreachable!("it was made as one")
        };
        let made = self.b.inst(
            Op::Reserve { buffer, count },
            &[Type::Room(elem), Type::BOOL],
        );
        let [room, granted] = self.b.func.insts[made].results[..] else {
            unreachable!("it has two results")
        };
        self.b.effect(Op::Assert {
            cond: granted,
            kind: AssertKind::Memory,
            template: "no memory for what the gradient saves of a loop: {} numbers in one thread (ti.init(ad_memory=...) says how much there may be)".to_owned(),
            args: vec![count],
        });
        room
    }

    /// The place of number `at` of what is saved.
    pub(super) fn slot(&mut self, store: Store, at: Value) -> Value {
        match store {
            Store::Frame(base) => {
                let elem = self.b.func.ty(base).pointee().and_then(Type::elem);
                let ty = Type::RefScalar(elem.expect("a vector has elements"));
                let index = vec![at];
                self.b.value(Op::ElemRef { base, index }, ty)
            }
            Store::Buffer(buffer, room) => {
                let Type::Buffer(elem) = self.b.func.ty(buffer) else {
                    unreachable!("it was made as one")
                };
                let room = room.expect("there is room before anything is saved");
                self.b
                    .value(Op::RoomAt { room, index: at }, Type::RefScalar(elem))
            }
        }
    }

    /// Room for one more iteration, where the number of iterations is not known before.
    pub(super) fn grown(&mut self, store: Store, turn: Value, n: u32) -> Store {
        match store {
            Store::Buffer(buffer, None) => {
                let count = self.following(turn);
                let count = self.times(count, n);
                let room = self.reserve(buffer, count);
                Store::Buffer(buffer, Some(room))
            }
            store => store,
        }
    }

    /// Saves what a turn starts with.
    fn save(&mut self, saved: &Saved, turn: Value) {
        for (k, &store) in saved.marks.iter().enumerate() {
            let store = self.grown(store, turn, 1);
            let place = self.slot(store, turn);
            let mark = self.mark(k);
            self.b.store(place, mark);
        }
        for &(param, store) in &saved.values {
            let store = self.grown(store, turn, 1);
            let place = self.slot(store, turn);
            let value = self.now(param);
            self.b.store(place, value);
        }
        for &(local, store) in &saved.locals {
            let n = self.n_elems(local);
            let store = self.grown(store, turn, n);
            self.each_element(local, turn, |pass, element, at| {
                let to = pass.slot(store, at);
                let value = pass.b.load(element);
                pass.b.store(to, value);
            });
        }
    }

    /// Puts back what a turn started with.
    pub(super) fn take_saved(&mut self, saved: &Saved, turn: Value) {
        for &(param, store) in &saved.values {
            let place = self.slot(store, turn);
            self.now[param] = Some(self.b.load(place));
        }
        for &(local, store) in &saved.locals {
            self.each_element(local, turn, |pass, element, at| {
                let from = pass.slot(store, at);
                let value = pass.b.load(from);
                pass.b.store(element, value);
            });
        }
    }

    fn n_elems(&self, local: Value) -> u32 {
        let ty = self.cx.func.ty(local).pointee();
        ty.expect("a local is a storage").n_elems()
    }

    /// Does something with each element of a local, and its number behind those of `turn` others of the same size.
    fn each_element(
        &mut self,
        local: Value,
        turn: Value,
        mut f: impl FnMut(&mut Self, Value, Value),
    ) {
        let ty = self
            .cx
            .func
            .ty(local)
            .pointee()
            .expect("a local is a storage");
        let here = self.now(local);
        let n = ty.n_elems();
        let first = self.times(turn, n);
        if !ty.is_tensor() {
            return f(self, here, first);
        }
        let extents = ty.shape();
        let elem = Type::RefScalar(ty.elem().expect("a tensor has elements"));
        let at_number = |pass: &mut Self, k: Value| {
            let index = pass.coordinates(k, &extents);
            pass.b.value(Op::ElemRef { base: here, index }, elem)
        };
        if n <= MOST_UNROLLED {
            for k in 0..n {
                let k = self.b.constant(Scalar::int(ScalarType::I64, i128::from(k)));
                let element = at_number(self, k);
                let at = self.b.binary(BinaryOp::Add, first, k);
                f(self, element, at);
            }
            return;
        }
        let [lo, hi, one] =
            [0, i128::from(n), 1].map(|v| self.b.constant(Scalar::int(ScalarType::I64, v)));
        let body = self.inside(&[Type::I64], |pass, params| {
            let element = at_number(pass, params[0]);
            let at = pass.b.binary(BinaryOp::Add, first, params[0]);
            f(pass, element, at);
        });
        self.b.effect(Op::For {
            lo,
            hi,
            step: one,
            init: Vec::new(),
            body,
        });
    }

    /// The indices of element number `k`, row by row.
    fn coordinates(&mut self, k: Value, extents: &[u32]) -> Vec<Value> {
        let [_, columns] = extents else {
            return vec![k];
        };
        let columns = self
            .b
            .constant(Scalar::int(ScalarType::I64, i128::from(*columns)));
        let row = self.b.binary(BinaryOp::Div, k, columns);
        vec![row, self.b.binary(BinaryOp::Rem, k, columns)]
    }

    /// Keeps what locals hold before an instruction that is reversed later, when they may hold something else.
    fn hold(&mut self, inst: Inst) {
        let (written, read) = locals_touched(&self.cx, self.demand, inst);
        let is_loop = !matches!(self.cx.func[inst], Op::If { .. });
        // A loop that changes them saves them for each iteration.
        let by_turns = |local: &Value| {
            is_loop
                && written.contains(local)
                && matches!(self.cx.func[inst], Op::For { .. } | Op::While { .. })
        };
        let held: Vec<Value> = read
            .iter()
            .copied()
            .filter(|local| !by_turns(local))
            .collect();
        let mut copies = Vec::new();
        for local in held {
            let ty = self.cx.func.ty(local);
            let copy = self.b.value(Op::Local {}, ty);
            self.transfer(local, copy, true);
            copies.push((local, copy));
        }
        self.held.insert(inst, copies);
    }

    /// Puts back what locals held before an instruction.
    pub(super) fn restore(&mut self, inst: Inst) {
        for (local, copy) in self.held.remove(&inst).unwrap_or_default() {
            self.transfer(local, copy, false);
        }
    }

    fn transfer(&mut self, local: Value, copy: Value, out: bool) {
        let zero = self.b.constant(Scalar::zero(ScalarType::I64));
        let ty = self
            .cx
            .func
            .ty(local)
            .pointee()
            .expect("a local is a storage");
        let extents = ty.shape();
        let elem = ty.elem().map(Type::RefScalar).expect("locals hold numbers");
        self.each_element(local, zero, |pass, element, at| {
            let other = match ty.is_tensor() {
                true => {
                    let index = pass.coordinates(at, &extents);
                    pass.b.value(Op::ElemRef { base: copy, index }, elem)
                }
                false => copy,
            };
            let (from, to) = if out {
                (element, other)
            } else {
                (other, element)
            };
            let value = pass.b.load(from);
            pass.b.store(to, value);
        });
    }
}

impl Saved {
    fn is_empty(&self) -> bool {
        self.values.is_empty() && self.locals.is_empty() && self.marks.is_empty()
    }

    /// The rooms of a loop whose turns were counted, behind it.
    fn reserve_again(&mut self, pass: &mut Reverse<'_, '_>, turns: Value) {
        let locals = self
            .locals
            .iter_mut()
            .map(|(local, store)| (Some(*local), store));
        let values = self.values.iter_mut().map(|(_, store)| (None, store));
        let marks = self.marks.iter_mut().map(|store| (None, store));
        for (local, store) in values.chain(locals).chain(marks) {
            if let Store::Buffer(buffer, None) = *store {
                let n = local.map_or(1, |local| pass.n_elems(local));
                let count = pass.times(turns, n);
                let room = pass.reserve(buffer, count);
                *store = Store::Buffer(buffer, Some(room));
            }
        }
    }
}

fn holds_floats(ty: Type) -> bool {
    let elem = ty.pointee().and_then(Type::elem);
    elem.is_some_and(|elem| elem.is_float())
}
