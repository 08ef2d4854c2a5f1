//! Reverse mode: the adjoints of what is read from the adjoints of what is written.
//!
//! ```text
//! parallel [0], [n] (i: i32) {              parallel [0], [n] (i: i32) {
//!     v1 = load x[i]                            v1 = load x[i]            ; forwards, as far as needed
//!     v2 = sin v1                     ==>       d2 = load y.grad[i]       ; then backwards
//!     store y[i], v2                            store y.grad[i], 0
//! }                                             atomic_add x.grad[i], d2 * cos v1
//!                                           }
//! ```
//! A region is reversed by running it forwards once more, as far as [`Demand`] says, and then going through its
//! instructions from the last to the first. Adjoints are values where all uses stand in the same region, and else locals,
//! which become values later.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_base::{Diagnostic, ErrorKind, Scalar, ScalarType};
use aerogel_ir::{
    Arg, AssertKind, AtomicOp, BinaryOp, Builder, CellOp, CompareOp, FieldId, Function, Inst, Op,
    ParamData, ParamType, Region, Type, UnaryOp, Value, walk,
};

use super::activity::{Memory, is_scalar_op};
use super::demand::{Cx, Demand};
use super::gather::Group;
use super::rules::{Partial, Values, apply, partial};
use super::saved::Saved;

/// The adjoint of a value while its region is reversed.
#[derive(Clone, Copy, Default)]
pub(super) enum Adjoint {
    /// Nothing has contributed yet.
    #[default]
    None,
    /// The sum so far.
    Sum(Value),
    /// The sum so far is in a local.
    Local(Value),
}

/// The backward pass as it is written.
pub(super) struct Reverse<'a, 't> {
    pub(super) cx: Cx<'a>,
    pub(super) demand: &'a Demand,
    pub(super) b: Builder<'t>,
    /// The values of the copy of a region that was written last.
    pub(super) now: SecondaryMap<Value, Option<Value>>,
    adjoints: SecondaryMap<Value, Adjoint>,
    /// Values that nested regions use.
    crosses: SecondaryMap<Value, bool>,
    /// The local of adjoints beside each local.
    pub(super) beside: SecondaryMap<Value, Option<Value>>,
    /// What the rerun of a loop has saved.
    pub(super) saved: LookupMap<Inst, Saved>,
    /// What locals held before a loop or branch.
    pub(super) held: LookupMap<Inst, Vec<(Value, Value)>>,
    /// How many parallel loops are around what is written.
    pub(super) parallel: u32,
    /// Whether what is written is the loop that scales adjoints by the factors of products.
    pub(super) scales: bool,
    /// Loads whose adjoints are gathered, by another loop.
    gathered: Vec<Group>,
    /// While an iteration is reversed only for the adjoints of some loads: these, and where to add them. Nothing
    /// else is changed then.
    pub(super) fetching: Option<Vec<(Inst, Value)>>,
    /// Where the adjoints of arguments are added up, by argument and component.
    arguments: Vec<(Arg, Vec<Option<Value>>)>,
    pub(super) mistake: Option<Box<Diagnostic>>,
}

/// Writes the backward pass of `cx.func` into `target`, if `ends` is set from the adjoints of results, which are further
/// arguments, and to those of arguments, which are the results.
pub(super) fn write(
    cx: Cx<'_>,
    demand: &Demand,
    target: &mut Function,
    ends: bool,
) -> Option<Box<Diagnostic>> {
    let crosses = crossing(&cx);
    let body = target.body;
    let mut pass = Reverse {
        cx,
        demand,
        b: Builder::new(target, body),
        now: SecondaryMap::new(),
        adjoints: SecondaryMap::new(),
        crosses,
        beside: SecondaryMap::new(),
        saved: LookupMap::default(),
        held: LookupMap::default(),
        parallel: 0,
        scales: false,
        gathered: Vec::new(),
        fetching: None,
        arguments: Vec::new(),
        mistake: None,
    };
    let mut given = Vec::new();
    if ends {
        pass.declare_arguments();
        given = pass.seeds();
    }
    pass.reversed(pass.cx.func.body, &given);
    let values = pass.adjoints_of_arguments();
    pass.b.func.results = values.iter().map(|&v| pass.b.func.ty(v)).collect();
    pass.b.effect(Op::Return { values });
    pass.mistake
}

/// The values that are used in regions inside their own.
fn crossing(cx: &Cx<'_>) -> SecondaryMap<Value, bool> {
    let mut crosses = SecondaryMap::new();
    for &region in &cx.nesting.regions {
        for &inst in &cx.func.regions[region].insts {
            cx.func[inst].operands(|v| crosses[v] |= cx.nesting.region_of(v) != region);
        }
    }
    crosses
}

impl Reverse<'_, '_> {
    fn declare_arguments(&mut self) {
        for (k, param) in self.cx.func.params.iter().enumerate() {
            let ParamType::Value(ty) = param.ty else {
                continue;
            };
            let scalars = self.cx.env.scalars(ty);
            let places = scalars.into_iter().map(|ty| {
                let place = || self.b.local(Type::Scalar(ty));
                ty.is_float().then(place)
            });
            let places = places.collect();
            self.arguments.push((Arg::from_u32(k as u32), places));
        }
    }

    /// The adjoints of what the kernel returns: an argument each.
    fn seeds(&mut self) -> Vec<(Value, Value)> {
        let func = self.cx.func;
        let Op::Return { values } = &func[func.terminator(func.body)] else {
            return Vec::new();
        };
        let mut given = Vec::new();
        for (k, &value) in values.iter().enumerate() {
            let ty = func.ty(value);
            let arg = Arg::from_u32(self.b.func.params.len() as u32);
            self.b.func.params.push(ParamData {
                name: format!("seed{k}"),
                ty: ParamType::Value(ty),
                of: None,
            });
            let seed = self.b.value(Op::Arg { arg }, ty);
            given.push((value, seed));
        }
        given
    }

    fn adjoints_of_arguments(&mut self) -> Vec<Value> {
        let all = std::mem::take(&mut self.arguments);
        let places = all.into_iter().flat_map(|(_, places)| places).flatten();
        places.map(|place| self.b.load(place)).collect()
    }

    /// Writes into a region of its own.
    pub(super) fn inside(
        &mut self,
        params: &[Type],
        write: impl FnOnce(&mut Self, &[Value]),
    ) -> Region {
        let region = self.b.func.new_region(params);
        let params = self.b.func.regions[region].params.clone();
        let (outer, span) = (std::mem::replace(&mut self.b.region, region), self.b.span);
        write(self, &params);
        self.b.terminate();
        (self.b.region, self.b.span) = (outer, span);
        region
    }

    pub(super) fn now(&self, value: Value) -> Value {
        self.now[value].unwrap_or_else(|| panic!("{value} is needed, but was not said to be"))
    }

    pub(super) fn fail(
        &mut self,
        inst: Inst,
        code: &'static str,
        message: impl Into<String>,
        note: &str,
    ) {
        if self.mistake.is_none() {
            let span = self.cx.func.insts[inst].span;
            let mistake = Diagnostic::new(ErrorKind::Compilation, code, span, message);
            self.mistake = Some(Box::new(mistake.note(note)));
        }
    }

    /// Reverses a region whose parameters are at hand, given the adjoints of some values.
    pub(super) fn reversed(&mut self, region: Region, given: &[(Value, Value)]) {
        self.open(region);
        self.forwards(region, true);
        for &(value, d) in given {
            self.contribute(value, d);
        }
        for &inst in self.cx.func.regions[region].insts.iter().rev() {
            if self.demand.works(inst) {
                self.b.span = self.cx.func.insts[inst].span;
                self.backwards(inst);
            }
        }
    }

    /// Makes room for the adjoints of values that nested regions contribute to.
    fn open(&mut self, region: Region) {
        let data = &self.cx.func.regions[region];
        let results = data
            .insts
            .iter()
            .flat_map(|&i| &self.cx.func.insts[i].results);
        for &value in data.params.iter().chain(results) {
            self.adjoints[value] = match self.crosses[value] && self.cx.activity.is_active(value) {
                true if self.cx.func.ty(value).is_numeric() => {
                    Adjoint::Local(self.b.local(self.cx.func.ty(value)))
                }
                _ => Adjoint::None,
            };
        }
    }

    /// Adds to the adjoint of a value.
    pub(super) fn contribute(&mut self, value: Value, d: Value) {
        if !self.cx.activity.is_active(value) {
            return;
        }
        match self.adjoints[value] {
            Adjoint::None => self.adjoints[value] = Adjoint::Sum(d),
            Adjoint::Sum(so_far) => {
                let sum = self.b.binary(BinaryOp::Add, so_far, d);
                self.adjoints[value] = Adjoint::Sum(sum);
            }
            Adjoint::Local(place) => {
                let home = self.cx.nesting.parallel(self.cx.nesting.region_of(value));
                if self.fetching.is_none() || home == self.parallel {
                    self.add_to_local(place, d, home);
                }
            }
        }
    }

    /// Adds to a local that was made inside so many parallel loops.
    fn add_to_local(&mut self, place: Value, d: Value, parallel: u32) {
        if self.parallel > parallel {
            self.atomic_add(place, d);
        } else {
            let so_far = self.b.load(place);
            let sum = self.b.binary(BinaryOp::Add, so_far, d);
            self.b.store(place, sum);
        }
    }

    pub(super) fn atomic_add(&mut self, place: Value, d: Value) {
        let ty = self.b.func.ty(d);
        let op = Op::Atomic {
            op: AtomicOp::Add,
            place,
            value: d,
        };
        self.b.value(op, ty);
    }

    /// The adjoint of a value; nothing if it is zero.
    fn adjoint(&mut self, value: Value) -> Option<Value> {
        match self.adjoints[value] {
            Adjoint::None => None,
            Adjoint::Sum(d) => Some(d),
            Adjoint::Local(place) => Some(self.b.load(place)),
        }
    }

    fn zero(&mut self, ty: Type) -> Value {
        self.b
            .constant(Scalar::zero(ty.scalar().expect("a scalar")))
    }

    fn backwards(&mut self, inst: Inst) {
        let results = self.cx.func.insts[inst].results.clone();
        match self.cx.func[inst].clone() {
            Op::Load { place } => {
                if let Some(d) = self.adjoint(results[0]) {
                    self.read(inst, place, d);
                }
            }
            Op::Arg { arg } => self.argument(arg, &results),
            Op::Store { place, value } => self.overwritten(place, value),
            Op::Atomic { op, place, value } => self.changed(inst, op, place, value),
            Op::If {
                cond,
                then,
                otherwise,
            } => self.branch(inst, cond, then, otherwise),
            Op::For { .. } => self.counted(inst),
            Op::While { .. } => self.repeated(inst),
            Op::Parallel { .. } | Op::ParallelCells { .. } => self.in_parallel(inst),
            op if is_scalar_op(self.cx.func, &op, &results) => self.scalar(inst, &op, results[0]),
            op => unreachable!("{op:?} has no adjoints"),
        }
    }

    fn argument(&mut self, arg: Arg, results: &[Value]) {
        let mut all = self.arguments.iter();
        let found = all.find(|(other, _)| *other == arg);
        let places = found.map(|(_, places)| places.clone()).unwrap_or_default();
        for (&result, place) in results.iter().zip(places) {
            if let (Some(place), Some(d)) = (place, self.adjoint(result)) {
                self.add_to_local(place, d, 0);
            }
        }
    }

    /// An operation on scalars passes its adjoint on to its operands.
    fn scalar(&mut self, inst: Inst, op: &Op, result: Value) {
        let Some(d) = self.adjoint(result) else {
            return;
        };
        let mut operands = Vec::new();
        op.operands(|v| operands.push(v));
        let known: Vec<Option<Value>> = operands.iter().map(|&v| self.now[v]).collect();
        for (k, &operand) in operands.iter().enumerate() {
            if !self.cx.activity.is_active(operand) {
                continue;
            }
            let partial = partial(self.cx.func, op, k);
            if let Partial::None(what) = partial {
                let message = format!("{what} have no derivative");
                self.fail(
                    inst,
                    "E0601",
                    message,
                    "say `ti.stop_grad(x)` if no derivative is meant",
                );
            }
            let values = Values {
                operands: &known,
                result: self.now[result],
                converted: self.cx.func.ty(operand),
            };
            if let Some(d) = apply(&mut self.b, op, k, partial, values, d) {
                self.contribute(operand, d);
            }
        }
    }

    /// The place of the adjoints of a place.
    fn adjoint_place(&mut self, place: Value) -> Value {
        let func = self.cx.func;
        let ty = func.ty(place);
        match func.def_op(place).cloned() {
            Some(Op::Local {}) => {
                self.beside[place].expect("active locals have adjoints beside them")
            }
            Some(Op::ElemRef { base, index }) => {
                let base = self.adjoint_place(base);
                let index = index.iter().map(|&v| self.now(v)).collect();
                self.b.value(Op::ElemRef { base, index }, ty)
            }
            Some(Op::FieldAt { field, indices }) => {
                let field = self.cx.env.fields[field].grad.expect("the caller asked");
                let indices = indices.iter().map(|&v| self.now(v)).collect();
                self.b.value(Op::FieldAt { field, indices }, ty)
            }
            Some(Op::ArrayAt { indices, .. }) => {
                let Memory::Array(_, Some(array)) = self.cx.memory(place) else {
                    unreachable!("the caller asked")
                };
                let indices = indices.iter().map(|&v| self.now(v)).collect();
                self.b.value(Op::ArrayAt { array, indices }, ty)
            }
            op => unreachable!("{op:?} has no adjoints"),
        }
    }

    /// What was read has an adjoint.
    fn read(&mut self, inst: Inst, place: Value, d: Value) {
        if matches!(self.cx.memory(place), Memory::Local(_)) {
            return self.add_to_adjoint(place, d);
        }
        match &self.fetching {
            Some(wanted) => {
                let mut wanted = wanted.iter();
                if let Some(&(_, sum)) = wanted.find(|(load, _)| *load == inst) {
                    let so_far = self.b.load(sum);
                    let sum_now = self.b.binary(BinaryOp::Add, so_far, d);
                    self.b.store(sum, sum_now);
                }
            }
            None if self.gathered.iter().any(|group| group.holds(inst)) => {}
            None => self.add_to_adjoint(place, d),
        }
    }

    /// Adds to the adjoint of what a place holds.
    fn add_to_adjoint(&mut self, place: Value, d: Value) {
        match self.cx.memory(place) {
            Memory::Local(local) => {
                let home = self.cx.nesting.parallel(self.cx.nesting.region_of(local));
                if self.fetching.is_none() || home == self.parallel {
                    let at = self.adjoint_place(place);
                    self.add_to_local(at, d, home);
                }
            }
            memory => self.where_active(place, memory, |pass| {
                let at = pass.adjoint_place(place);
                pass.atomic_add(at, d);
            }),
        }
    }

    /// Does something with the adjoints of a place where there are any: going backwards makes no cell active.
    fn where_active(&mut self, place: Value, memory: Memory, write: impl FnOnce(&mut Self)) {
        let Memory::Field(_, Some(field)) = memory else {
            return write(self);
        };
        let Some((node, indices)) = self.sparse_cell(place, field) else {
            return write(self);
        };
        let indices = indices.into_iter().map(|v| self.now(v)).collect::<Vec<_>>();
        let (_, offset) = self.cx.env.cells_of(field);
        let mut shifted = Vec::new();
        for (k, &index) in indices.iter().enumerate() {
            let by = offset.get(k).copied().unwrap_or(0);
            shifted.push(if by == 0 {
                index
            } else {
                let ty = self.b.func.elem(index);
                let by = self.b.constant(Scalar::int(ty, i128::from(by)));
                self.b.binary(BinaryOp::Sub, index, by)
            });
        }
        let op = Op::Cell(CellOp::IsActive {
            node,
            indices: shifted,
        });
        let cond = self.b.value(op, Type::BOOL);
        let then = self.inside(&[], |pass, _| write(pass));
        let otherwise = self.b.region(&[], |_, _| ());
        self.b.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    }

    /// The cell that must be active for a field of adjoints to have an element; none where all are.
    fn sparse_cell(
        &self,
        place: Value,
        field: FieldId,
    ) -> Option<(aerogel_ir::NodeRef, Vec<Value>)> {
        let data = &self.cx.env.fields[field];
        if !self.cx.env.trees[data.tree].is_below_sparse(data.places[0]) {
            return None;
        }
        let mut at = place;
        loop {
            match self.cx.func.def_op(at)? {
                Op::ElemRef { base, .. } | Op::MemberRef { base, .. } => at = *base,
                Op::FieldAt { indices, .. } => {
                    return Some((self.cx.env.cells_of(field).0, indices.clone()));
                }
                _ => return None,
            }
        }
    }

    /// A store: the adjoint of what is stored is that of the place, and what was there before no longer matters.
    fn overwritten(&mut self, place: Value, value: Value) {
        let memory = self.cx.memory(place);
        let ty = self.cx.func.ty(value);
        let active = self.cx.activity.is_active(value);
        let taken = active.then(|| self.b.local(ty));
        self.where_active(place, memory, |pass| {
            let at = pass.adjoint_place(place);
            if let Some(taken) = taken {
                let d = pass.b.load(at);
                pass.b.store(taken, d);
            }
            if pass.fetching.is_none() || matches!(memory, Memory::Local(_)) {
                let zero = pass.zero(ty);
                pass.b.store(at, zero);
            }
        });
        if let Some(taken) = taken {
            let d = self.b.load(taken);
            self.contribute(value, d);
        }
    }

    /// An atomic change of a place.
    fn changed(&mut self, inst: Inst, op: AtomicOp, place: Value, value: Value) {
        let memory = self.cx.memory(place);
        let ty = self.cx.func.ty(value);
        let taken = self.b.local(ty);
        match op {
            AtomicOp::Add | AtomicOp::Sub => {
                self.where_active(place, memory, |pass| {
                    let at = pass.adjoint_place(place);
                    let d = pass.b.load(at);
                    pass.b.store(taken, d);
                });
                let d = self.b.load(taken);
                let d = match op {
                    AtomicOp::Sub => self.b.unary(UnaryOp::Neg, d),
                    _ => d,
                };
                self.contribute(value, d);
            }
            AtomicOp::Min | AtomicOp::Max => {
                // Who has what is there at the end was the winner, and takes the adjoint: what was there before
                // has it otherwise.
                let (mine, there) = (self.now(value), self.now(place));
                let there = self.b.load(there);
                let won = self.b.compare(CompareOp::Eq, mine, there);
                let then = self.inside(&[], |pass, _| {
                    pass.where_active(place, memory, |pass| {
                        let at = pass.adjoint_place(place);
                        let zero = pass.zero(ty);
                        let op = Op::Atomic {
                            op: AtomicOp::Exchange,
                            place: at,
                            value: zero,
                        };
                        let d = pass.b.value(op, ty);
                        pass.b.store(taken, d);
                    });
                });
                let otherwise = self.b.region(&[], |_, _| ());
                self.b.effect(Op::If {
                    cond: won,
                    then,
                    otherwise,
                });
                let d = self.b.load(taken);
                self.contribute(value, d);
            }
            AtomicOp::Mul if self.parallel > 0 && !matches!(memory, Memory::Local(_)) => {
                self.factor(place, memory, value);
            }
            AtomicOp::Mul | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exchange => {
                let message = format!("`{}` of a shared number has no gradient", op.name());
                self.fail(inst, "E0601", message, "write to an element of its own in each iteration, or give the kernel's gradient by hand: `ti.ad.grad_for`");
            }
        }
    }

    /// A factor of a product that all iterations make: its adjoint is that of the product times all other factors.
    fn factor(&mut self, place: Value, memory: Memory, value: Value) {
        let ty = self.cx.func.ty(value);
        let (mine, there) = (self.now(value), self.now(place));
        let taken = self.b.local(ty);
        self.where_active(place, memory, |pass| {
            let at = pass.adjoint_place(place);
            let d = pass.b.load(at);
            pass.b.store(taken, d);
        });
        let d = self.b.load(taken);
        let zero = self.zero(ty);
        let divides = self.b.compare(CompareOp::Ne, mine, zero);
        let idle = self.b.compare(CompareOp::Eq, d, zero);
        let cond = self.b.binary(BinaryOp::Or, divides, idle);
        self.b.effect(Op::Assert {
            cond,
            kind: AssertKind::Assertion,
            template: "the gradient of a product that several iterations make is not known where a factor is zero"
                .to_owned(),
            args: Vec::new(),
        });
        let product = self.b.load(there);
        let others = self.b.binary(BinaryOp::Div, product, mine);
        let scaled = self.b.binary(BinaryOp::Mul, d, others);
        let scaled = self.b.select(idle, zero, scaled);
        self.contribute(value, scaled);
    }

    /// What was in a product before has the adjoint times all factors.
    pub(super) fn scale(&mut self, place: Value, value: Value) {
        let memory = self.cx.memory(place);
        self.where_active(place, memory, |pass| {
            let at = pass.adjoint_place(place);
            let value = pass.now(value);
            let ty = pass.b.func.ty(value);
            let op = Op::Atomic {
                op: AtomicOp::Mul,
                place: at,
                value,
            };
            pass.b.value(op, ty);
        });
    }

    fn branch(&mut self, inst: Inst, cond: Value, then: Region, otherwise: Region) {
        let results = self.cx.func.insts[inst].results.clone();
        let adjoints: Vec<Option<Value>> = results.iter().map(|&r| self.adjoint(r)).collect();
        self.restore(inst);
        let cond = self.now(cond);
        let [then, otherwise] = [then, otherwise].map(|branch| {
            let yielded = self.cx.func.yielded(branch).unwrap_or_default().to_vec();
            let given: Vec<(Value, Value)> = yielded
                .into_iter()
                .zip(&adjoints)
                .filter_map(|(v, d)| Some((v, (*d)?)))
                .collect();
            self.inside(&[], |pass, _| pass.reversed(branch, &given))
        });
        self.b.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    }

    fn in_parallel(&mut self, inst: Inst) {
        self.restore(inst);
        let op = self.cx.func[inst].clone();
        let body = self.cx.func.owned(inst)[0];
        let params = self.cx.func.regions[body].params.clone();
        let types: Vec<Type> = params.iter().map(|&p| self.cx.func.ty(p)).collect();
        let groups = self.gathers(inst);
        for group in &groups {
            self.gather(inst, group);
        }
        self.gathered = groups;
        self.parallel += 1;
        let reversed = self.inside(&types, |pass, counters| {
            for (&param, &counter) in params.iter().zip(counters) {
                pass.now[param] = Some(counter);
            }
            pass.reversed(body, &[]);
        });
        self.parallel -= 1;
        self.gathered.clear();
        let reversed = self.parallel_over(op.clone(), reversed);
        self.b.effect(reversed);
        if self.multiplies(body) {
            let scaling = self.inside(&types, |pass, counters| {
                pass.set(&params, counters);
                pass.scales = true;
                pass.forwards(body, false);
                pass.scales = false;
            });
            let scaling = self.parallel_over(op, scaling);
            self.b.effect(scaling);
        }
    }

    /// Whether a region multiplies something that has adjoints.
    fn multiplies(&self, region: Region) -> bool {
        let mut found = false;
        walk(self.cx.func, region, &mut |func, inst| {
            found |= self.is_factor(&func[inst]).is_some();
        });
        found
    }

    /// The place and the factor of a product with an adjoint.
    pub(super) fn is_factor(&self, op: &Op) -> Option<(Value, Value)> {
        match *op {
            Op::Atomic {
                op: AtomicOp::Mul,
                place,
                value,
            } if self.cx.has_adjoint(place)
                && !matches!(self.cx.memory(place), Memory::Local(_)) =>
            {
                Some((place, value))
            }
            _ => None,
        }
    }

    /// The same parallel loop with another body.
    pub(super) fn parallel_over(&self, op: Op, body: Region) -> Op {
        match op {
            Op::Parallel { lo, hi, attrs, .. } => Op::Parallel {
                lo: lo.iter().map(|&v| self.now(v)).collect(),
                hi: hi.iter().map(|&v| self.now(v)).collect(),
                attrs,
                body,
            },
            Op::ParallelCells { node, attrs, .. } => Op::ParallelCells { node, attrs, body },
            op => unreachable!("{op:?} is no parallel loop"),
        }
    }

    /// The locals in which the adjoints of carried values go round, and the adjoints of what a turn yields.
    fn carried(&mut self, results: &[Value], params: &[Value]) -> Vec<Option<Value>> {
        let mut carried = Vec::new();
        for (&result, &param) in results.iter().zip(params) {
            let active = self.cx.activity.is_active(param) || self.cx.activity.is_active(result);
            carried.push(active.then(|| {
                let ty = self.cx.func.ty(param);
                let place = self.b.local(ty);
                if let Some(d) = self.adjoint(result) {
                    self.b.store(place, d);
                }
                place
            }));
        }
        carried
    }

    /// One turn backwards; the values that it starts with are at hand.
    fn turn(&mut self, body: Region, params: &[Value], carried: &[Option<Value>]) {
        let yielded = self.cx.func.yielded(body).unwrap_or_default().to_vec();
        let mut given = Vec::new();
        for (&value, place) in yielded.iter().zip(carried) {
            if let Some(place) = place {
                given.push((value, self.b.load(*place)));
            }
        }
        self.reversed(body, &given);
        for (&param, place) in params.iter().zip(carried) {
            if let Some(place) = *place {
                let d = self.adjoint(param);
                let ty = self.cx.func.ty(param);
                let d = d.unwrap_or_else(|| self.zero(ty));
                self.b.store(place, d);
            }
        }
    }

    fn counted(&mut self, inst: Inst) {
        let Op::For {
            lo,
            hi,
            step,
            init,
            body,
        } = self.cx.func[inst].clone()
        else {
            unreachable!("the caller looked")
        };
        let params = self.cx.func.regions[body].params.clone();
        let results = self.cx.func.insts[inst].results.clone();
        let carried = self.carried(&results, &params[1..]);
        self.restore(inst);
        let saved = self.saved.remove(&inst).unwrap_or_default();
        let turns = match saved.turns {
            Some(turns) => turns,
            None => self.turns(lo, hi, step),
        };
        let [first, by] = [lo, step].map(|v| {
            let v = self.now(v);
            self.b.cast(v, Type::I64)
        });
        let counter_ty = self.cx.func.ty(params[0]);
        self.backwards_through(turns, |pass, k| {
            let distance = pass.b.binary(BinaryOp::Mul, k, by);
            let at = pass.b.binary(BinaryOp::Add, first, distance);
            pass.now[params[0]] = Some(pass.b.cast(at, counter_ty));
            pass.take_saved(&saved, k);
            pass.turn(body, &params[1..], &carried);
        });
        self.finish(&init, &carried);
    }

    fn repeated(&mut self, inst: Inst) {
        let Op::While { init, body, .. } = self.cx.func[inst].clone() else {
            unreachable!("the caller looked")
        };
        let params = self.cx.func.regions[body].params.clone();
        let results = self.cx.func.insts[inst].results.clone();
        let carried = self.carried(&results, &params);
        self.restore(inst);
        let saved = self
            .saved
            .remove(&inst)
            .expect("the rerun counted the turns");
        let turns = saved.turns.expect("the rerun counted the turns");
        self.backwards_through(turns, |pass, k| {
            pass.take_saved(&saved, k);
            pass.turn(body, &params, &carried);
        });
        self.finish(&init, &carried);
    }

    /// What was carried into the first turn has what the last one backwards left.
    fn finish(&mut self, init: &[Value], carried: &[Option<Value>]) {
        for (&value, place) in init.iter().zip(carried) {
            if let Some(place) = *place {
                let d = self.b.load(place);
                self.contribute(value, d);
            }
        }
    }

    /// A loop from the last turn to the first.
    fn backwards_through(&mut self, turns: Value, write: impl FnOnce(&mut Self, Value)) {
        let minus_one = self.b.constant(Scalar::int(ScalarType::I64, -1));
        let last = self.b.binary(BinaryOp::Add, turns, minus_one);
        let body = self.inside(&[Type::I64], |pass, params| write(pass, params[0]));
        self.b.effect(Op::For {
            lo: last,
            hi: minus_one,
            step: minus_one,
            init: Vec::new(),
            body,
        });
    }

    /// How many turns a counted loop has.
    pub(super) fn turns(&mut self, lo: Value, hi: Value, step: Value) -> Value {
        let constant = self.cx.func.as_const(step).map(|c| c.as_i128());
        let [lo, hi, step] = [lo, hi, step].map(|v| {
            let v = self.now(v);
            self.b.cast(v, Type::I64)
        });
        let b = &mut self.b;
        let zero = b.constant(Scalar::zero(ScalarType::I64));
        let one = b.constant(Scalar::int(ScalarType::I64, 1));
        if constant == Some(1) {
            let distance = b.binary(BinaryOp::Sub, hi, lo);
            return b.binary(BinaryOp::Max, distance, zero);
        }
        let upwards = b.compare(CompareOp::Gt, step, zero);
        let (up, down) = (
            b.binary(BinaryOp::Sub, hi, lo),
            b.binary(BinaryOp::Sub, lo, hi),
        );
        let distance = b.select(upwards, up, down);
        let distance = b.binary(BinaryOp::Max, distance, zero);
        let size = b.unary(UnaryOp::Abs, step);
        let less = b.binary(BinaryOp::Sub, size, one);
        let sum = b.binary(BinaryOp::Add, distance, less);
        b.binary(BinaryOp::Div, sum, size)
    }
}
