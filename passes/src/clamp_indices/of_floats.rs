//! Which integers depend on floats.

use std::cell::RefCell;

use aerogel_base::ScalarType;
use aerogel_base::entity::{PrimaryMap, SecondaryMap};
use aerogel_base::hash::LookupSet;
use aerogel_ir::{Effect, FuncId, Function, Inst, Op, Region, Type, Value, walk};

/// What a function of a module is given by those that call it, and gives them.
#[derive(Clone, Debug, Default)]
struct Outside {
    params: Vec<bool>,
    results: Vec<bool>,
}

/// What the functions of a module exchange, once the first of them has been looked at.
#[derive(Default)]
pub struct Exchanged(RefCell<Option<SecondaryMap<FuncId, Outside>>>);

/// What functions exchange; `func` is the one whose place is empty.
fn exchange(
    func: &Function,
    here: Option<FuncId>,
    funcs: &PrimaryMap<FuncId, Function>,
) -> SecondaryMap<FuncId, Outside> {
    let mut outside = SecondaryMap::new();
    let mut ids: Vec<FuncId> = funcs.keys().collect();
    loop {
        let mut changed = false;
        for &id in &ids {
            let one = if Some(id) == here { func } else { &funcs[id] };
            changed |= OfFloats::within(one, Some(id), &mut outside).1;
        }
        if !changed {
            return outside;
        }
        // Callers come first, mostly: parameters are passed on in one direction, results in the other.
        ids.reverse();
    }
}

/// Which integers floats have part in.
pub(super) struct OfFloats {
    of_floats: SecondaryMap<Value, bool>,
    /// Between which values the counters of loops lie that floats have part in: from the first, and below the second.
    counters: SecondaryMap<Value, Option<(Value, Value)>>,
    /// Temporaries between tasks that hold some.
    temps: LookupSet<u32>,
    /// Whether rooms hold some.
    in_rooms: bool,
    any: bool,
    changed: bool,
}

/// Where a function's own marks are, and what is around an instruction.
#[derive(Clone, Copy, Default)]
struct Around {
    owner: Option<Inst>,
    a_loop: Option<Inst>,
}

impl OfFloats {
    /// Of a function that calls others of a module, and is called by them; it is itself not among them, but its place is.
    pub(super) fn of(
        func: &Function,
        funcs: &PrimaryMap<FuncId, Function>,
        exchanged: &Exchanged,
    ) -> Self {
        let here = funcs.keys().find(|&id| funcs[id].name.is_empty());
        let mut calls = false;
        walk(func, func.body, &mut |func, inst| {
            calls |= matches!(func[inst], Op::Call { .. });
        });
        if func.is_kernel && !calls {
            return Self::within(func, None, &mut SecondaryMap::new()).0;
        }
        let mut all = exchanged.0.borrow_mut();
        let all = all.get_or_insert_with(|| exchange(func, here, funcs));
        Self::within(func, here, all).0
    }

    /// Of one function; whether others learn from it.
    fn within(
        func: &Function,
        id: Option<FuncId>,
        outside: &mut SecondaryMap<FuncId, Outside>,
    ) -> (Self, bool) {
        let mut this = Self {
            of_floats: SecondaryMap::new(),
            counters: SecondaryMap::new(),
            temps: LookupSet::default(),
            in_rooms: false,
            any: false,
            changed: true,
        };
        let given = id.map(|id| outside[id].params.clone()).unwrap_or_default();
        let params = &func.regions[func.body].params;
        for (k, &param) in params.iter().enumerate() {
            if at(&given, k, params.len()) {
                this.mark_integer(func, param);
            }
        }
        let mut some = this.any;
        walk(func, func.body, &mut |func, inst| {
            some |= match func[inst] {
                Op::Cast { x } | Op::Bitcast { x } => is_float(func, x),
                Op::Call { func, .. } => outside[func].results.contains(&true),
                _ => false,
            };
        });
        let mut told = false;
        // What loops carry is seen where they yield it, and used before.
        while some && std::mem::take(&mut this.changed) {
            told |= this.region(func, func.body, Around::default(), id, outside);
        }
        (this, told)
    }

    /// Whether there are any.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    /// Whether floats have part in an integer.
    pub(super) fn contains(&self, value: Value) -> bool {
        self.of_floats[value]
    }

    /// The values from which on and below which the counter of a loop lies, if floats have part in it.
    pub(super) fn bounds(&self, counter: Value) -> Option<(Value, Value)> {
        self.counters[counter]
    }

    fn region(
        &mut self,
        func: &Function,
        region: Region,
        around: Around,
        id: Option<FuncId>,
        outside: &mut SecondaryMap<FuncId, Outside>,
    ) -> bool {
        let mut told = false;
        for &inst in &func.regions[region].insts {
            let op = &func[inst];
            let results = &func.insts[inst].results;
            match op {
                &Op::For {
                    lo,
                    hi,
                    step,
                    ref init,
                    body,
                } => {
                    self.carry(func, Some(inst), init);
                    let counter = func.regions[body].params[0];
                    if self.count(func, counter, &[lo, hi, step])
                        && func.as_const(step).is_some_and(|step| step.as_i128() > 0)
                    {
                        self.counters[counter] = Some((lo, hi));
                    }
                }
                Op::While { init, .. } => self.carry(func, Some(inst), init),
                Op::Parallel { lo, hi, body, .. } => {
                    let params = &func.regions[*body].params;
                    for ((&counter, &lo), &hi) in params.iter().zip(lo).zip(hi) {
                        self.count(func, counter, &[lo, hi]);
                    }
                }
                Op::Task { bounds, body, .. } => self.task(func, *bounds, *body),
                Op::Yield { values } if around.owner.is_some() => {
                    self.carry(func, around.owner, values);
                }
                Op::Yield { values } | Op::Return { values } => {
                    if let Some(id) = id {
                        told |= self.tell(values, &mut outside[id].results);
                    }
                }
                Op::Break { values } | Op::Continue { values } => {
                    self.carry(func, around.a_loop, values);
                }
                Op::Call { func: callee, args } => {
                    told |= self.tell(args, &mut outside[*callee].params);
                    for (k, &result) in results.iter().enumerate() {
                        if at(&outside[*callee].results, k, results.len()) {
                            self.mark_integer(func, result);
                        }
                    }
                }
                Op::Cast { x } | Op::Bitcast { x } if is_float(func, *x) => {
                    self.results(func, inst);
                }
                Op::TempAt { offset } if self.temps.contains(offset) => self.mark(results[0]),
                Op::RoomAt { .. } if self.in_rooms => self.mark(results[0]),
                &Op::Load { place } if self.of_floats[root(func, place)] => {
                    self.results(func, inst);
                }
                &Op::Store { place, value } if self.of_floats[value] => self.store(func, place),
                &(Op::Atomic { place, value, .. } | Op::Cas { place, value, .. }) => {
                    if self.of_floats[value] {
                        self.store(func, place);
                    }
                    if self.of_floats[root(func, place)] {
                        self.results(func, inst);
                    }
                }
                op if op.effect() == Effect::Pure => {
                    let mut found = false;
                    op.operands(|v| found |= self.of_floats[v]);
                    if found {
                        self.results(func, inst);
                    }
                }
                _ => {}
            }
            let inside = Around {
                owner: Some(inst),
                a_loop: match op {
                    Op::For { .. } | Op::While { .. } => Some(inst),
                    _ => around.a_loop,
                },
            };
            for owned in func.owned(inst) {
                told |= self.region(func, owned, inside, id, outside);
            }
        }
        told
    }

    /// The indices of a task lie between what its bounds yield: `lo` and `hi` of each axis.
    fn task(&mut self, func: &Function, bounds: Region, body: Region) {
        let mut insts = func.regions[body].insts.iter();
        let each = insts.find_map(|&inst| match func[inst] {
            Op::Each { body } => Some(body),
            _ => None,
        });
        let (Some(each), Some(bounds)) = (each, func.yielded(bounds)) else {
            return;
        };
        for (&counter, pair) in func.regions[each].params.iter().zip(bounds.chunks(2)) {
            if let &[lo, hi] = pair
                && self.count(func, counter, pair)
            {
                self.counters[counter] = Some((lo, hi));
            }
        }
    }

    /// Whether floats have part in a counter: if they have in what it counts between.
    fn count(&mut self, func: &Function, counter: Value, bounds: &[Value]) -> bool {
        let found = bounds.iter().any(|&v| self.of_floats[v]);
        if found {
            self.mark_integer(func, counter);
        }
        found
    }

    /// Storage that is the function's own holds one now.
    fn store(&mut self, func: &Function, place: Value) {
        let place = root(func, place);
        match func.def_op(place) {
            Some(Op::Local {}) => self.mark(place),
            Some(Op::TempAt { offset }) => self.changed |= self.temps.insert(*offset),
            Some(Op::RoomAt { .. }) => {
                self.changed |= !self.in_rooms;
                self.in_rooms = true;
            }
            _ => {}
        }
    }

    /// What an instruction with regions is given by them, one after the other.
    fn carry(&mut self, func: &Function, owner: Option<Inst>, values: &[Value]) {
        let Some(owner) = owner else { return };
        for (k, &value) in values.iter().enumerate() {
            if !self.of_floats[value] {
                continue;
            }
            if let Some(&result) = func.insts[owner].results.get(k) {
                self.mark_integer(func, result);
            }
            match func[owner] {
                Op::For { body, .. } => {
                    self.mark_integer(func, func.regions[body].params[k + 1]);
                }
                Op::While { cond, body, .. } => {
                    for region in [cond, body] {
                        if let Some(&param) = func.regions[region].params.get(k) {
                            self.mark_integer(func, param);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Notes which values that go to another function are some, one after the other; whether that is new.
    fn tell(&self, values: &[Value], known: &mut Vec<bool>) -> bool {
        let mut told = false;
        // The caller and the called may be at different stages: where there are more of them, tensors have fallen apart.
        let n = known.len().max(values.len());
        let known_all = known.len() != n && known.contains(&true);
        known.resize(n, known_all);
        let found = |&v: &Value| self.of_floats[v];
        let all = values.len() != n && values.iter().any(found);
        for (k, known) in known.iter_mut().enumerate() {
            let found = all || values.len() == n && found(&values[k]);
            told |= found && !*known;
            *known |= found;
        }
        told
    }

    fn results(&mut self, func: &Function, inst: Inst) {
        for &result in &func.insts[inst].results {
            self.mark_integer(func, result);
        }
    }

    fn mark_integer(&mut self, func: &Function, value: Value) {
        let ty = func.ty(value);
        let is_integer = |elem: ScalarType| elem.is_int() && elem != ScalarType::U1;
        if ty.elem().map_or(matches!(ty, Type::Struct(_)), is_integer) {
            self.mark(value);
        }
    }

    fn mark(&mut self, value: Value) {
        self.changed |= !self.of_floats[value];
        self.any = true;
        self.of_floats[value] = true;
    }
}

/// What is known of one of `n`: of all of them together if they are fewer or more on the other side.
fn at(known: &[bool], k: usize, n: usize) -> bool {
    if known.len() == n {
        known[k]
    } else {
        known.contains(&true)
    }
}

fn is_float(func: &Function, value: Value) -> bool {
    func.ty(value).elem().is_some_and(ScalarType::is_float)
}

/// The storage that a place is part of.
fn root(func: &Function, place: Value) -> Value {
    match func.def_op(place) {
        Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => root(func, base),
        _ => place,
    }
}
