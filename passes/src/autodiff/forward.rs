//! Forward mode: the kernel itself, with a tangent for each value.
//!
//! ```text
//! v1 = load x[i]            v1 = load x[i]        t1 = load x.dual[i]
//! v2 = sin v1         ==>   v2 = sin v1           t2 = t1 * cos v1
//! store y[i], v2            store y[i], v2        store y.dual[i], t2
//! ```
//! Loops carry tangents, branches yield them, and locals and buffers have others beside them.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Diagnostic, ErrorKind, Scalar};
use aerogel_ir::{
    AtomicOp, BinaryOp, Builder, CellOp, Derivative, Env, FuncId, Function, Inst, Op, Region, Type,
    Value,
};

use super::activity::Activity;
use super::calls::Calls;
use super::emptied;
use super::rules::{Partial, Values, apply, is_float, is_scalar_op, partial};
use super::storage::{Memory, memory_of};

struct Forward<'a, 't> {
    func: &'a Function,
    env: &'a Env,
    activity: &'a Activity<'a>,
    calls: &'a Calls,
    b: Builder<'t>,
    now: SecondaryMap<Value, Option<Value>>,
    /// None for zero.
    tangents: SecondaryMap<Value, Option<Value>>,
    /// The storage of tangents beside a local, a buffer or its room.
    beside: SecondaryMap<Value, Option<Value>>,
    mistake: Option<Box<Diagnostic>>,
}

/// Writes the kernel with its tangents into `target`.
pub(super) fn write(
    func: &Function,
    env: &Env,
    activity: &Activity<'_>,
    calls: &Calls,
    target: &mut Function,
) -> Option<Box<Diagnostic>> {
    let mut pass = Forward::new(func, env, activity, calls, target);
    match func.is_kernel {
        true => pass.line(func.body),
        false => pass.called_body(),
    }
    pass.mistake
}

impl<'a, 't> Forward<'a, 't> {
    fn new(
        func: &'a Function,
        env: &'a Env,
        activity: &'a Activity<'a>,
        calls: &'a Calls,
        target: &'t mut Function,
    ) -> Self {
        let body = target.body;
        Self {
            func,
            env,
            activity,
            calls,
            b: Builder::new(target, body),
            now: SecondaryMap::new(),
            tangents: SecondaryMap::new(),
            beside: SecondaryMap::new(),
            mistake: None,
        }
    }
}

impl Forward<'_, '_> {
    /// The body of a function that is called: behind its parameters come the tangents of its floats, and behind what it
    /// returns those of the floats there.
    fn called_body(&mut self) {
        let (func, body) = (self.func, self.b.region);
        let params = &func.regions[func.body].params;
        for &param in params {
            self.now[param] = Some(self.b.func.add_param(body, func.ty(param)));
        }
        for &param in params.iter().filter(|&&v| is_float(func, v)) {
            self.tangents[param] = Some(self.b.func.add_param(body, func.ty(param)));
        }
        let insts = &func.regions[func.body].insts;
        for &inst in insts.iter().take(insts.len() - 1) {
            self.b.span = func.insts[inst].span;
            self.inst(inst);
        }
        let yielded = func.yielded(func.body).unwrap_or_default();
        let values = self.followed_by_tangents(yielded);
        self.b.func.results = values.iter().map(|&v| self.b.func.ty(v)).collect();
        self.b.yields(values);
    }

    /// Values, and behind them the tangents of all floats among them.
    fn followed_by_tangents(&mut self, values: &[Value]) -> Vec<Value> {
        let mut all: Vec<Value> = values.iter().map(|&v| self.now(v)).collect();
        for &value in values.iter().filter(|&&v| is_float(self.func, v)) {
            all.push(self.tangent(value));
        }
        all
    }

    /// A call becomes one of the function with tangents.
    fn called(&mut self, func: FuncId, args: &[Value], results: &[Value]) {
        let floats = results.iter().filter(|&&v| is_float(self.func, v));
        let floats: Vec<Value> = floats.copied().collect();
        let all = results.iter().chain(&floats);
        let types: Vec<Type> = all.map(|&v| self.func.ty(v)).collect();
        let op = Op::Call {
            func: self.calls.of(func).derivative,
            args: self.followed_by_tangents(args),
        };
        let call = self.b.inst(op, &types);
        let made = self.b.func.insts[call].results.clone();
        let (values, tangents) = made.split_at(results.len());
        for (&result, &value) in results.iter().zip(values) {
            self.now[result] = Some(value);
            self.tangents[result] = None;
        }
        for (&result, &tangent) in floats.iter().zip(tangents) {
            self.tangents[result] = Some(tangent);
        }
    }

    fn line(&mut self, region: Region) {
        for inst in self.func.regions[region].insts.clone() {
            self.b.span = self.func.insts[inst].span;
            self.inst(inst);
        }
    }

    fn now(&self, value: Value) -> Value {
        self.now[value].expect("a value is defined before it is used")
    }

    fn is_active(&self, value: Value) -> bool {
        self.activity.is_active(value) && self.func.ty(value).is_numeric()
    }

    fn tangent(&mut self, value: Value) -> Value {
        match self.tangents[value] {
            Some(tangent) => tangent,
            None => {
                let ty = self.func.elem(value);
                self.b.constant(Scalar::zero(ty))
            }
        }
    }

    /// The values, and behind them the tangents of those that are active by `like`.
    fn with_tangents(&mut self, values: &[Value], like: &[Value]) -> Vec<Value> {
        let mut all: Vec<Value> = values.iter().map(|&v| self.now(v)).collect();
        for (&value, &like) in values.iter().zip(like) {
            if self.is_active(like) {
                all.push(self.tangent(value));
            }
        }
        all
    }

    fn types_with_tangents(&self, like: &[Value]) -> Vec<Type> {
        let active = like.iter().filter(|&&v| self.is_active(v));
        let all = like.iter().chain(active);
        all.map(|&v| self.func.ty(v)).collect()
    }

    fn define(&mut self, like: &[Value], made: &[Value]) {
        let (values, mut tangents) = made.split_at(like.len());
        for (&like, &value) in like.iter().zip(values) {
            self.now[like] = Some(value);
            self.tangents[like] = None;
            if self.is_active(like) {
                let (&tangent, rest) = tangents.split_first().expect("active values have tangents");
                self.tangents[like] = Some(tangent);
                tangents = rest;
            }
        }
    }

    /// Writes a region whose parameters are those of `region` with tangents behind them; `like` says which of the
    /// values that it yields have tangents.
    fn region(&mut self, region: Region, counters: usize, like: &[Value]) -> Region {
        let params = self.func.regions[region].params.clone();
        let (first, carried) = params.split_at(counters);
        let mut types: Vec<Type> = first.iter().map(|&v| self.func.ty(v)).collect();
        types.extend(self.types_with_tangents(carried));
        let copy = self.b.func.new_region(&types);
        let made = self.b.func.regions[copy].params.clone();
        for (&param, &value) in first.iter().zip(&made) {
            self.now[param] = Some(value);
        }
        self.define(carried, &made[counters..]);
        let (outer, span) = (std::mem::replace(&mut self.b.region, copy), self.b.span);
        let (&end, insts) = self.func.regions[region]
            .insts
            .split_last()
            .expect("a region ends in a terminator");
        for &inst in insts {
            self.b.span = self.func.insts[inst].span;
            self.inst(inst);
        }
        match &self.func[end] {
            Op::Yield { values } if like.is_empty() => {
                let values = values.iter().map(|&v| self.now(v)).collect();
                self.b.yields(values);
            }
            Op::Yield { values } => {
                let values = self.with_tangents(values, like);
                self.b.yields(values);
            }
            op => unreachable!("{op:?} leaves a region that has one way out"),
        }
        (self.b.region, self.b.span) = (outer, span);
        copy
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.func;
        let results = &func.insts[inst].results;
        match &func[inst] {
            Op::Local {} | Op::Buffer {} => {
                self.copy(inst);
                if self.activity.is_active(results[0]) {
                    let ty = func.ty(results[0]);
                    self.beside[results[0]] = Some(self.b.value(func[inst].clone(), ty));
                }
            }
            Op::Reserve { buffer, count } => self.reserve(inst, *buffer, *count),
            Op::Load { place } => {
                self.copy(inst);
                if self.is_active(results[0]) {
                    let place = self.tangent_place(*place);
                    self.tangents[results[0]] = Some(self.b.load(place));
                }
            }
            Op::Store { place, value } => {
                self.copy(inst);
                if self.has_tangents(*place) {
                    let place = self.tangent_place(*place);
                    let tangent = self.tangent(*value);
                    self.b.store(place, tangent);
                }
            }
            Op::Atomic { op, place, value } => self.atomic(inst, *op, *place, *value),
            Op::Call { func, args } => self.called(*func, args, results),
            Op::If {
                cond,
                then,
                otherwise,
            } => {
                let [then, otherwise] =
                    [*then, *otherwise].map(|branch| self.region(branch, 0, results));
                let cond = self.now(*cond);
                let op = Op::If {
                    cond,
                    then,
                    otherwise,
                };
                self.extended(op, results);
            }
            Op::For {
                lo,
                hi,
                step,
                init,
                body,
            } => {
                let carried = func.regions[*body].params[1..].to_vec();
                let init = self.with_tangents(init, &carried);
                let body = self.region(*body, 1, &carried);
                let [lo, hi, step] = [*lo, *hi, *step].map(|v| self.now(v));
                let op = Op::For {
                    lo,
                    hi,
                    step,
                    init,
                    body,
                };
                self.carried(op, results, &carried);
            }
            Op::While { init, cond, body } => {
                let carried = func.regions[*body].params.clone();
                let init = self.with_tangents(init, &carried);
                let cond = self.test(*cond, &carried);
                let body = self.region(*body, 0, &carried);
                self.carried(Op::While { init, cond, body }, results, &carried);
            }
            op @ (Op::Parallel { .. } | Op::ParallelCells { .. }) => {
                let body = func.owned(inst)[0];
                let counters = func.regions[body].params.len();
                let copy = self.region(body, counters, &[]);
                let mut op = op.clone();
                op.map_operands(|v| self.now(v));
                op.map_regions(|_| copy);
                self.b.effect(op);
            }
            op if is_scalar_op(func, op, results) => {
                if let &Op::StopGradient { x } = op {
                    self.now[results[0]] = self.now[x];
                    return;
                }
                self.copy(inst);
                if self.is_active(results[0]) {
                    self.scalar(inst, op, results[0]);
                }
            }
            Op::StopGradient { x } => self.now[results[0]] = self.now[*x],
            Op::Cell(CellOp::Deactivate { node, indices }) => {
                self.copy(inst);
                let indices: Vec<Value> = indices.iter().map(|&v| self.now(v)).collect();
                emptied::clear(&mut self.b, self.env, Derivative::Dual, *node, &indices);
            }
            _ => self.copy(inst),
        }
    }

    /// The condition of a loop, whose parameters are as those of the body.
    fn test(&mut self, cond: Region, carried: &[Value]) -> Region {
        let types = self.types_with_tangents(carried);
        let copy = self.b.func.new_region(&types);
        let made = self.b.func.regions[copy].params.clone();
        let params = self.func.regions[cond].params.clone();
        for (&param, &value) in params.iter().zip(&made) {
            self.now[param] = Some(value);
        }
        let outer = std::mem::replace(&mut self.b.region, copy);
        self.line(cond);
        self.b.region = outer;
        copy
    }

    /// Writes an instruction whose results are extended by tangents.
    fn extended(&mut self, op: Op, results: &[Value]) {
        let types = self.types_with_tangents(results);
        let made = self.b.inst(op, &types);
        let made = self.b.func.insts[made].results.clone();
        self.define(results, &made);
    }

    /// Writes a loop: a result has a tangent where the carried value has.
    fn carried(&mut self, op: Op, results: &[Value], carried: &[Value]) {
        let types = self.types_with_tangents(carried);
        let made = self.b.inst(op, &types);
        let made = self.b.func.insts[made].results.clone();
        let (values, mut tangents) = made.split_at(carried.len());
        for (k, &result) in results.iter().enumerate() {
            self.now[result] = Some(values[k]);
            self.tangents[result] = None;
            if self.is_active(carried[k]) {
                let (&tangent, rest) = tangents.split_first().expect("active values have tangents");
                self.tangents[result] = Some(tangent);
                tangents = rest;
            }
        }
    }

    fn copy(&mut self, inst: Inst) {
        let data = &self.func.insts[inst];
        let types: Vec<Type> = data.results.iter().map(|&r| self.func.ty(r)).collect();
        let mut op = data.op.clone();
        op.map_operands(|v| self.now(v));
        let made = self.b.inst(op, &types);
        for (k, &result) in data.results.iter().enumerate() {
            self.now[result] = Some(self.b.func.insts[made].results[k]);
        }
    }

    fn scalar(&mut self, inst: Inst, op: &Op, result: Value) {
        let mut operands = Vec::new();
        op.operands(|v| operands.push(v));
        let known: Vec<Option<Value>> = operands.iter().map(|&v| self.now[v]).collect();
        let mut sum = None;
        for (k, &operand) in operands.iter().enumerate() {
            let Some(tangent) = self.tangents[operand].filter(|_| self.is_active(operand)) else {
                continue;
            };
            let partial = partial(self.func, op, k);
            if let Partial::None(what) = partial {
                self.fail(inst, format!("{what} have no derivative"));
            }
            let converted = self.func.ty(result);
            let values = Values {
                operands: &known,
                result: self.now[result],
            };
            if let Some(d) = apply(&mut self.b, op, k, partial, values, converted, tangent) {
                sum = Some(match sum {
                    None => d,
                    Some(so_far) => self.b.binary(BinaryOp::Add, so_far, d),
                });
            }
        }
        self.tangents[result] = sum;
    }

    fn fail(&mut self, inst: Inst, message: String) {
        if self.mistake.is_none() {
            let span = self.func.insts[inst].span;
            let mistake = Diagnostic::new(ErrorKind::Compilation, "E0601", span, message);
            let note = "write `ti.stop_grad(x)` if no derivative is intended";
            self.mistake = Some(Box::new(mistake.note(note)));
        }
    }

    fn memory(&self, place: Value) -> Memory {
        memory_of(self.func, self.env, Derivative::Dual, place)
    }

    fn has_tangents(&self, place: Value) -> bool {
        let elem = self.func.ty(place).pointee().and_then(Type::elem);
        elem.is_some_and(|e| e.is_float())
            && match self.memory(place) {
                Memory::Local(local) | Memory::Buffer(local) => self.activity.is_active(local),
                memory => memory.has_derivatives(),
            }
    }

    /// The place of the tangents of a place.
    fn tangent_place(&mut self, place: Value) -> Value {
        let ty = self.func.ty(place);
        match self.func.def_op(place).cloned() {
            Some(Op::Local {}) => self.beside[place].expect("active locals have tangents"),
            Some(Op::ElemRef { base, index }) => {
                let base = self.tangent_place(base);
                let index = index.iter().map(|&v| self.now(v)).collect();
                self.b.value(Op::ElemRef { base, index }, ty)
            }
            Some(Op::FieldAt { field, indices }) => {
                let field = self.env.fields[field]
                    .dual
                    .expect("only active fields have duals");
                let indices = indices.iter().map(|&v| self.now(v)).collect();
                self.b.value(Op::FieldAt { field, indices }, ty)
            }
            Some(Op::ArrayAt { indices, .. }) => {
                let Memory::Array(_, Some(array)) = self.memory(place) else {
                    unreachable!("only fields and arrays have duals")
                };
                let indices = indices.iter().map(|&v| self.now(v)).collect();
                self.b.value(Op::ArrayAt { array, indices }, ty)
            }
            Some(Op::RoomAt { room, index }) => {
                let room = self.beside[room].expect("active buffers have tangents");
                let index = self.now(index);
                self.b.value(Op::RoomAt { room, index }, ty)
            }
            op => unreachable!("{op:?} has no tangents"),
        }
    }

    fn reserve(&mut self, inst: Inst, buffer: Value, count: Value) {
        self.copy(inst);
        let Some(buffer) = self.beside[buffer] else {
            return;
        };
        let [room, granted] = self.func.insts[inst].results[..] else {
            unreachable!("it has two results")
        };
        let types = [room, granted].map(|v| self.func.ty(v));
        let count = self.now(count);
        let made = self.b.inst(Op::Reserve { buffer, count }, &types);
        let made = self.b.func.insts[made].results.clone();
        self.beside[room] = Some(made[0]);
        // Both, or none.
        let both = self.b.binary(
            BinaryOp::And,
            self.now[granted].expect("it was copied"),
            made[1],
        );
        self.now[granted] = Some(both);
    }

    fn atomic(&mut self, inst: Inst, op: AtomicOp, place: Value, value: Value) {
        self.copy(inst);
        let old = self.func.insts[inst].results[0];
        self.tangents[old] = None;
        if !self.has_tangents(place) {
            return;
        }
        let at = self.tangent_place(place);
        let tangent = self.tangent(value);
        let ty = self.func.ty(value);
        match op {
            AtomicOp::Add | AtomicOp::Sub | AtomicOp::Exchange => {
                let op = Op::Atomic {
                    op,
                    place: at,
                    value: tangent,
                };
                self.tangents[old] = Some(self.b.value(op, ty));
            }
            AtomicOp::Min
            | AtomicOp::Max
            | AtomicOp::Mul
            | AtomicOp::And
            | AtomicOp::Or
            | AtomicOp::Xor => self.fail(
                inst,
                format!(
                    "results of `{}` that several iterations share have no tangent",
                    op.name()
                ),
            ),
        }
    }
}
