//! A kernel becomes a list of tasks.
//!
//! ```text
//! v0 = local                      task serial { store (temp_at 0), 0 }
//! parallel ... { .. v0 .. }  ==>  task range { bounds } { each (i) { .. temp_at 0 .. } }
//! print (load v0)                 task serial { print (load (temp_at 0)) }
//! ```
//! Tasks see nothing of each other. What is cheap and needs no memory (constants, arguments and
//! arithmetic on them) is computed again where it is needed; any other value that crosses from one
//! task to another, and every local that several tasks use, gets a global temporary.

mod returns;

use aerogel_base::entity::SecondaryMap;
use aerogel_base::{Scalar, Span};
use aerogel_ir::{
    Builder, Effect, Env, Function, Inst, LoopAttrs, Op, Region, TaskKind, Type, Value, walk,
};

use crate::PassCx;
use returns::collects;

pub(crate) fn run(func: &mut Function, cx: &PassCx<'_>) -> bool {
    let insts = std::mem::take(&mut func.regions[func.body].insts);
    let mut pass = Offload {
        env: cx.env,
        outer: SecondaryMap::new(),
        anywhere: SecondaryMap::new(),
        segment: SecondaryMap::new(),
        user: SecondaryMap::new(),
        noted: SecondaryMap::new(),
        temp: SecondaryMap::new(),
        temp_bytes: 0,
        returned: None,
        is_guarded: false,
    };
    pass.classify(func, &insts);
    let segments = pass.split(func, &insts);
    let may_return = segments.iter().position(|s| s.may_return(func));
    if may_return.is_some_and(|at| at + 1 < segments.len()) {
        pass.returned = Some(pass.new_temp(1, 1));
    }
    let mut tasks: Vec<Inst> = segments.into_iter().map(|s| pass.task(func, s)).collect();
    tasks.push(func.new_inst(Op::Yield { values: Vec::new() }, &[], Span::NONE));
    let body = func.body;
    func.regions[body].insts = tasks;
    true
}

/// What becomes one task: a parallel loop, or what stands between two of them.
enum Segment {
    Serial(Vec<Inst>),
    Parallel(Inst),
}

/// Who uses a local of the outermost scope.
#[derive(Clone, Copy, Default, PartialEq)]
enum User {
    #[default]
    Nobody,
    /// One serial segment.
    One(u32),
    /// A parallel loop, or more than one segment.
    Shared,
}

struct Offload<'a> {
    env: &'a Env,
    /// Instructions of the outermost scope.
    outer: SecondaryMap<Inst, bool>,
    /// Those that any task can compute for itself.
    anywhere: SecondaryMap<Inst, bool>,
    /// The segment of every other one: even numbers are serial, odd ones parallel loops.
    segment: SecondaryMap<Inst, u32>,
    user: SecondaryMap<Value, User>,
    /// The last segment, plus one, for which the operands of a value were noted.
    noted: SecondaryMap<Value, u32>,
    /// Byte offsets of global temporaries.
    temp: SecondaryMap<Value, Option<u32>>,
    temp_bytes: u32,
    /// The temporary that says whether a task has left the kernel, if one may and others follow.
    returned: Option<u32>,
    /// Whether a task before the present one may have.
    is_guarded: bool,
}

impl Offload<'_> {
    fn classify(&mut self, func: &Function, insts: &[Inst]) {
        let mut segment = 0;
        for &inst in insts {
            self.outer[inst] = true;
            let op = &func[inst];
            if let Op::Parallel { .. } = op {
                self.segment[inst] = segment + 1;
                segment += 2;
            } else {
                self.segment[inst] = segment;
                self.anywhere[inst] = op.effect() == Effect::Pure && {
                    // A storage cannot travel, but the indices that name it can.
                    let mut all = true;
                    op.operands(|v| all &= func.def(v).is_some_and(|d| self.anywhere[d]));
                    all || func.insts[inst]
                        .results
                        .iter()
                        .all(|&r| func.ty(r).pointee().is_some())
                };
            }
        }
        for &inst in insts {
            if !self.anywhere[inst] && !matches!(func[inst], Op::Local {}) {
                let segment = self.segment[inst];
                let mut note = |func: &Function, i: Inst| {
                    func[i].operands(|v| self.note_use(func, segment, v))
                };
                note(func, inst);
                func[inst].regions(|r| walk(func, r, &mut note));
            }
        }
    }

    fn note_use(&mut self, func: &Function, segment: u32, v: Value) {
        let Some(def) = func.def(v).filter(|&d| self.outer[d]) else {
            return;
        };
        if let Op::Local {} = func[def] {
            let parallel = segment % 2 == 1;
            self.user[v] = match self.user[v] {
                User::Nobody if !parallel => User::One(segment),
                User::One(s) if s == segment => User::One(s),
                _ => User::Shared,
            };
            if self.user[v] == User::Shared {
                self.need_temp(func, v);
            }
        } else if self.anywhere[def] {
            // Once for each segment: chains share their beginnings.
            if std::mem::replace(&mut self.noted[v], segment + 1) != segment + 1 {
                func[def].operands(|o| self.note_use(func, segment, o));
            }
        } else if self.segment[def] != segment {
            self.need_temp(func, v);
        }
    }

    fn need_temp(&mut self, func: &Function, v: Value) {
        if self.temp[v].is_some() {
            return;
        }
        let ty = func.ty(v).pointee().unwrap_or(func.ty(v));
        let scalars = self.env.scalars(ty);
        let align = scalars.iter().map(|s| s.bytes()).max().unwrap_or(1);
        let bytes = scalars.iter().map(|s| s.bytes()).sum();
        self.temp[v] = Some(self.new_temp(align, bytes));
    }

    /// The byte offset of a new temporary.
    fn new_temp(&mut self, align: u32, bytes: u32) -> u32 {
        let offset = self.temp_bytes.next_multiple_of(align);
        self.temp_bytes = offset + bytes;
        offset
    }

    fn split(&self, func: &Function, insts: &[Inst]) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        for &inst in insts {
            let skipped = match func[inst] {
                // A local of one task is made there; a temporary is zeroed where it was made.
                Op::Local {} => self.temp[func.insts[inst].results[0]].is_none(),
                Op::Yield { .. } => true,
                Op::Return { ref values } => values.is_empty(),
                _ => self.anywhere[inst],
            };
            match segments.last_mut() {
                _ if skipped => {}
                _ if matches!(func[inst], Op::Parallel { .. }) => {
                    segments.push(Segment::Parallel(inst))
                }
                Some(Segment::Serial(list)) => list.push(inst),
                _ => segments.push(Segment::Serial(vec![inst])),
            }
        }
        segments
    }

    fn task(&mut self, func: &mut Function, segment: Segment) -> Inst {
        let may_return = self.returned.is_some() && segment.may_return(func);
        let bounds = func.new_region(&[]);
        let body = func.new_region(&[]);
        let (kind, attrs, span) = match segment {
            Segment::Serial(list) => {
                let span = func.insts[list[0]].span;
                Builder::new(func, bounds).yields(Vec::new());
                if may_return {
                    list.iter().for_each(|&inst| self.note_returns(func, inst));
                }
                self.serial(func, body, list, may_return);
                (TaskKind::Serial, LoopAttrs::default(), span)
            }
            Segment::Parallel(inst) => {
                let Op::Parallel {
                    lo,
                    hi,
                    attrs,
                    body: inner,
                } = func[inst].clone()
                else {
                    unreachable!("split by kind")
                };
                let span = func.insts[inst].span;
                if may_return {
                    self.note_returns(func, inst);
                }
                let mut scope = Scope::new(bounds, self.segment[inst]);
                let mut values: Vec<Value> = lo
                    .iter()
                    .zip(&hi)
                    .flat_map(|(&lo, &hi)| [lo, hi])
                    .map(|v| self.localize(func, &mut scope, v))
                    .collect();
                if self.is_guarded && !collects(func, inst) {
                    // Nothing to do where the kernel has been left.
                    let cond = self.has_returned(func, &mut scope);
                    values[1] = scope.end(func).select(cond, values[0], values[1]);
                }
                scope.end(func).yields(values);
                let mut scope = Scope::new(body, self.segment[inst]);
                if may_return && !self.is_guarded {
                    self.set_returned(func, &mut scope, false);
                }
                self.localize_region(func, &mut scope, inner);
                let mut b = scope.end(func);
                b.span = span;
                b.effect(Op::Each { body: inner });
                b.span = Span::NONE;
                b.yields(Vec::new());
                (TaskKind::Range, attrs, span)
            }
        };
        self.is_guarded |= may_return;
        func.new_inst(
            Op::Task {
                kind,
                attrs,
                bounds,
                body,
            },
            &[],
            span,
        )
    }

    /// What stands between parallel loops: nothing of it runs where the kernel has been left, but for what collects.
    fn serial(&mut self, func: &mut Function, body: Region, list: Vec<Inst>, may_return: bool) {
        let mut scope = Scope::new(body, self.segment[list[0]]);
        if !self.is_guarded {
            if may_return {
                self.set_returned(func, &mut scope, false);
            }
            return self.line(func, scope, list);
        }
        let first = list.iter().position(|&i| !collects(func, i));
        let last = list.iter().rposition(|&i| !collects(func, i));
        let (Some(first), Some(last)) = (first, last) else {
            return self.line(func, scope, list);
        };
        let cond = self.has_returned(func, &mut scope);
        func.regions[body].insts.extend(&list[..first]);
        let [then, otherwise] = [(); 2].map(|()| func.new_region(&[]));
        Builder::new(func, then).yields(Vec::new());
        let inner = Scope::new(otherwise, scope.segment);
        self.line(func, inner, list[first..=last].to_vec());
        let guard = Op::If {
            cond,
            then,
            otherwise,
        };
        scope.end(func).effect(guard);
        self.line(func, scope, list[last + 1..].to_vec());
    }

    /// Ends a region with instructions of the outermost scope.
    fn line(&mut self, func: &mut Function, mut scope: Scope, list: Vec<Inst>) {
        for inst in list {
            if let Op::Local {} = func[inst] {
                self.zero(func, &mut scope, func.insts[inst].results[0]);
                continue;
            }
            self.localize_operands(func, &mut scope, inst);
            for owned in func.owned(inst) {
                self.localize_region(func, &mut scope, owned);
            }
            scope.end(func).append(inst);
            for r in func.insts[inst].results.clone() {
                if let Some(offset) = self.temp[r] {
                    let ty = func.ty(r).to_ref().expect("what travels is a value");
                    let mut b = scope.end(func);
                    let place = b.value(Op::TempAt { offset }, ty);
                    b.store(place, r);
                }
            }
        }
        scope.end(func).terminate();
    }

    /// Zeroes a temporary that stands for a local.
    fn zero(&mut self, func: &mut Function, scope: &mut Scope, local: Value) {
        let base = self.localize(func, scope, local);
        let ty = func.ty(local).pointee().expect("a storage");
        let elem = ty.elem().expect("structs have fallen apart");
        let mut b = scope.end(func);
        let value = b.constant(Scalar::zero(elem));
        let elem_ref = Type::Scalar(elem).to_ref().expect("a scalar has a storage");
        for k in 0..ty.n_elems() {
            let place = match ty {
                Type::Vec(..) | Type::Mat(..) => {
                    let index = if let Type::Mat(_, m, _) = ty {
                        vec![k / m, k % m]
                    } else {
                        vec![k]
                    };
                    let index = index.into_iter().map(|i| b.i32(i as i32)).collect();
                    b.value(Op::ElemRef { base, index }, elem_ref)
                }
                _ => base,
            };
            b.store(place, value);
        }
    }

    fn localize_operands(&mut self, func: &mut Function, scope: &mut Scope, inst: Inst) {
        let mut op = func[inst].clone();
        op.map_operands(|v| self.localize(func, scope, v));
        func.insts[inst].op = op;
    }

    /// Brings what the instructions of `region` use from outside the task into scope, before it.
    fn localize_region(&mut self, func: &mut Function, scope: &mut Scope, region: Region) {
        for inst in func.regions[region].insts.clone() {
            self.localize_operands(func, scope, inst);
            for owned in func.owned(inst) {
                self.localize_region(func, scope, owned);
            }
        }
    }

    /// The value that stands for `v` in the task of `scope`.
    fn localize(&mut self, func: &mut Function, scope: &mut Scope, v: Value) -> Value {
        let Some(def) = func.def(v).filter(|&d| self.outer[d]) else {
            return v;
        };
        if let Some(local) = scope.map[v] {
            return local;
        }
        let is_local = matches!(func[def], Op::Local {});
        let local = match self.temp[v] {
            Some(offset) if is_local => {
                let ty = func.ty(v);
                scope.end(func).value(Op::TempAt { offset }, ty)
            }
            Some(offset) if self.segment[def] != scope.segment => {
                let ty = func.ty(v);
                let place = ty.to_ref().expect("what travels is a value");
                let mut b = scope.end(func);
                let place = b.value(Op::TempAt { offset }, place);
                b.load(place)
            }
            _ if is_local => {
                scope.end(func).append(def);
                v
            }
            _ if self.anywhere[def] => {
                let mut op = func[def].clone();
                op.map_operands(|o| self.localize(func, scope, o));
                let results = func.insts[def].results.clone();
                let types: Vec<Type> = results.iter().map(|&r| func.ty(r)).collect();
                let span = func.insts[def].span;
                let mut b = scope.end(func);
                b.span = span;
                let copy = b.inst(op, &types);
                for (old, new) in results.into_iter().zip(func.insts[copy].results.clone()) {
                    scope.map[old] = Some(new);
                }
                return scope.map[v].expect("just mapped");
            }
            _ => v,
        };
        scope.map[v] = Some(local);
        local
    }
}

/// The straight line of a task that is being filled.
struct Scope {
    /// What stands for the values of the kernel's outermost scope.
    map: SecondaryMap<Value, Option<Value>>,
    region: Region,
    segment: u32,
}

impl Scope {
    fn new(region: Region, segment: u32) -> Self {
        Self {
            map: SecondaryMap::new(),
            region,
            segment,
        }
    }

    /// A builder at its end.
    fn end<'a>(&self, func: &'a mut Function) -> Builder<'a> {
        Builder::new(func, self.region)
    }
}

#[cfg(test)]
mod tests;
