//! Reverse mode: adjoints of read values, computed from adjoints of written values.
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
use aerogel_base::{Diagnostic, ErrorKind, Scalar, ScalarType, Span};
use aerogel_ir::{
    Arg, AtomicOp, BinaryOp, Builder, CellOp, CompareOp, Derivative, FuncId, Function, Inst, Op,
    ParamData, ParamType, Region, Type, UnaryOp, Value, walk,
};

use super::demand::{Cx, Demand};
use super::gather::Group;
use super::rules::{Partial, Values, apply, is_float, is_scalar_op, partial};
use super::saved::Saved;
use super::storage::Memory;
use super::undo::{self, Log};
use super::{Wanted, emptied};

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
    /// What a write of replayed memory has overwritten, where it is reversed.
    pub(super) olds: LookupMap<Inst, Value>,
    /// What loops and branches have overwritten of it.
    pub(super) logs: LookupMap<Inst, Log>,
    /// The replayed memory whose components are named by something that is no constant.
    pub(super) named_at_run_time: Vec<Memory>,
    /// Where what is written now notes it.
    pub(super) log: Option<Log>,
    /// Extrema that a parallel loop shares: where the number of the last iteration whose value is the result is saved.
    pub(super) winners: LookupMap<Inst, Value>,
    /// The number of the iteration that is written.
    pub(super) number: Option<Value>,
    /// Whether what is written is the loop that finds the winners.
    pub(super) finds: bool,
    /// How many parallel loops are around what is written.
    pub(super) parallel: u32,
    /// Whether adjoints of neighbours may be fetched by loops that run beyond the kernel's own iterations.
    may_gather: bool,
    /// Loads whose adjoints are gathered, by another loop.
    pub(super) gathered: Vec<Group>,
    /// While an iteration is reversed only for the adjoints of some loads: these, and where to add them. Nothing
    /// else is changed then.
    pub(super) fetching: Option<Vec<(Inst, Value)>>,
    /// Where the adjoints of arguments are added up, by argument and component.
    arguments: Vec<(Arg, Vec<Option<Value>>)>,
    /// Where is counted how often the root of zero was taken, for each instruction that takes one.
    kinks: Vec<(Inst, Value)>,
    pub(super) mistake: Option<Box<Diagnostic>>,
}

/// Writes the backward pass of `cx.func` into `target`; if the ends are wanted from the adjoints of results, which are
/// further arguments, and to those of arguments, which are the results. If kinks are counted, the counts are the
/// results, and the source locations are returned.
pub(super) fn write(
    cx: Cx<'_>,
    demand: &Demand,
    target: &mut Function,
    wanted: Wanted,
) -> Result<Vec<Span>, Box<Diagnostic>> {
    let mut pass = Reverse::new(cx, demand, target);
    pass.may_gather = wanted.gathers;
    let mut given = Vec::new();
    if wanted.ends {
        pass.declare_arguments();
        given = pass.seeds();
    }
    if wanted.counts_kinks {
        pass.declare_kinks();
    }
    pass.reversed(pass.cx.func.body, &given);
    let mut values = pass.adjoints_of_arguments();
    let kinks = std::mem::take(&mut pass.kinks);
    values.extend(kinks.iter().map(|&(_, place)| pass.b.load(place)));
    pass.b.func.results = values.iter().map(|&v| pass.b.func.ty(v)).collect();
    pass.b.effect(Op::Return { values });
    let spans = kinks.iter().map(|&(inst, _)| pass.cx.func.insts[inst].span);
    let spans = spans.collect();
    pass.mistake.map_or(Ok(spans), Err)
}

/// Writes the backward pass of a function that is called: its floats are followed by the adjoints of those that it
/// returns, and it returns theirs.
pub(super) fn write_called(
    cx: Cx<'_>,
    demand: &Demand,
    target: &mut Function,
) -> Option<Box<Diagnostic>> {
    let func = cx.func;
    let mut pass = Reverse::new(cx, demand, target);
    let body = pass.b.region;
    let params = &func.regions[func.body].params;
    for &param in params {
        pass.now[param] = Some(pass.b.func.add_param(body, func.ty(param)));
    }
    let yielded = func.yielded(func.body).unwrap_or_default();
    let floats = yielded.iter().filter(|&&v| is_float(func, v));
    let given: Vec<(Value, Value)> = floats
        .map(|&v| (v, pass.b.func.add_param(body, func.ty(v))))
        .collect();
    pass.reversed(func.body, &given);
    let floats = params.iter().filter(|&&v| is_float(func, v));
    let values = floats.map(|&v| pass.adjoint(v).unwrap_or_else(|| pass.zero(func.ty(v))));
    let values: Vec<Value> = values.collect();
    pass.b.func.results = values.iter().map(|&v| pass.b.func.ty(v)).collect();
    pass.b.yields(values);
    pass.mistake
}

/// Writes a function that computes what one that is called returns, and does nothing else.
pub(super) fn write_rerun(cx: Cx<'_>, demand: &Demand, target: &mut Function) {
    let func = cx.func;
    let mut pass = Reverse::new(cx, demand, target);
    let body = pass.b.region;
    for &param in &func.regions[func.body].params {
        pass.now[param] = Some(pass.b.func.add_param(body, func.ty(param)));
    }
    pass.forwards(func.body, false);
    let yielded = func.yielded(func.body).unwrap_or_default();
    let values = yielded.iter().map(|&v| pass.now(v)).collect();
    pass.b.func.results.clone_from(&func.results);
    pass.b.yields(values);
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

impl<'a, 't> Reverse<'a, 't> {
    fn new(cx: Cx<'a>, demand: &'a Demand, target: &'t mut Function) -> Self {
        let (crosses, named_at_run_time) = (crossing(&cx), undo::named_at_run_time(&cx));
        let body = target.body;
        Self {
            cx,
            demand,
            b: Builder::new(target, body),
            now: SecondaryMap::new(),
            adjoints: SecondaryMap::new(),
            crosses,
            beside: SecondaryMap::new(),
            saved: LookupMap::default(),
            held: LookupMap::default(),
            olds: LookupMap::default(),
            logs: LookupMap::default(),
            named_at_run_time,
            log: None,
            winners: LookupMap::default(),
            number: None,
            finds: false,
            parallel: 0,
            may_gather: true,
            gathered: Vec::new(),
            fetching: None,
            arguments: Vec::new(),
            kinks: Vec::new(),
            mistake: None,
        }
    }
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

    fn declare_kinks(&mut self) {
        let func = self.cx.func;
        let mut roots = Vec::new();
        walk(func, func.body, &mut |func, inst| {
            if let Op::Unary {
                op: UnaryOp::Sqrt, ..
            } = func[inst]
            {
                roots.push(inst);
            }
        });
        roots.retain(|&root| self.demand.works(root));
        for root in roots {
            let place = self.b.local(Type::Scalar(ScalarType::I64));
            self.kinks.push((root, place));
        }
    }

    /// Counts the adjoint `d` of a square root `result` if the root is zero and the adjoint is not.
    fn count_kink(&mut self, inst: Inst, result: Value, d: Value) {
        let place = self.kinks.iter().find(|(root, _)| *root == inst);
        let (Some(&(_, place)), None) = (place, &self.fetching) else {
            return;
        };
        let root = self.now(result);
        let zero = self.zero(self.cx.func.ty(result));
        let at_zero = self.b.compare(CompareOp::Eq, root, zero);
        let counts = self.b.compare(CompareOp::Ne, d, zero);
        let met = self.b.binary(BinaryOp::And, at_zero, counts);
        let one = self.b.cast(met, Type::Scalar(ScalarType::I64));
        self.add_to_local(place, one, 0);
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
            self.b.span = self.cx.func.insts[inst].span;
            self.undo(inst);
            if self.demand.works(inst) {
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
    pub(super) fn add_to_local(&mut self, place: Value, d: Value, parallel: u32) {
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
    pub(super) fn adjoint(&mut self, value: Value) -> Option<Value> {
        match self.adjoints[value] {
            Adjoint::None => None,
            Adjoint::Sum(d) => Some(d),
            Adjoint::Local(place) => Some(self.b.load(place)),
        }
    }

    pub(super) fn zero(&mut self, ty: Type) -> Value {
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
            Op::Cell(CellOp::Deactivate { node, indices }) => {
                if self.fetching.is_none() {
                    let indices: Vec<Value> = indices.iter().map(|&v| self.now(v)).collect();
                    emptied::clear(&mut self.b, self.cx.env, Derivative::Grad, node, &indices);
                }
            }
            Op::Atomic { op, place, value } => self.changed(inst, op, place, value),
            Op::If {
                cond,
                then,
                otherwise,
            } => self.branch(inst, cond, then, otherwise),
            Op::For { .. } => self.counted(inst),
            Op::While { .. } => self.repeated(inst),
            Op::Parallel { .. } | Op::ParallelCells { .. } => self.in_parallel(inst),
            Op::Call { func, args } => self.called(func, &args, &results),
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
        self.count_kink(inst, result, d);
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
                    "write `ti.stop_grad(x)` if no derivative is intended",
                );
            }
            let converted = self.cx.func.ty(operand);
            let values = Values {
                operands: &known,
                result: self.now[result],
            };
            if let Some(d) = apply(&mut self.b, op, k, partial, values, converted, d) {
                self.contribute(operand, d);
            }
        }
    }

    /// A call becomes one of the function's derivative.
    fn called(&mut self, func: FuncId, args: &[Value], results: &[Value]) {
        let mut given: Vec<Value> = args.iter().map(|&v| self.now(v)).collect();
        for &result in results.iter().filter(|&&v| is_float(self.cx.func, v)) {
            let ty = self.cx.func.ty(result);
            let d = self.adjoint(result);
            given.push(d.unwrap_or_else(|| self.zero(ty)));
        }
        let floats = args.iter().filter(|&&v| is_float(self.cx.func, v));
        let floats: Vec<Value> = floats.copied().collect();
        let types: Vec<Type> = floats.iter().map(|&v| self.cx.func.ty(v)).collect();
        let op = Op::Call {
            func: self.cx.calls.of(func).derivative,
            args: given,
        };
        let call = self.b.inst(op, &types);
        let made = self.b.func.insts[call].results.clone();
        for (&value, d) in floats.iter().zip(made) {
            self.contribute(value, d);
        }
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
        let groups = match self.may_gather {
            true => self.gathers(inst),
            false => Vec::new(),
        };
        for group in &groups {
            self.gather(inst, group);
        }
        self.gathered = groups;
        self.find_winners(&op, body, &types);
        self.parallel += 1;
        let reversed = self.inside(&types, |pass, counters| {
            for (&param, &counter) in params.iter().zip(counters) {
                pass.now[param] = Some(counter);
            }
            pass.number = (!pass.winners.is_empty()).then(|| pass.number_of(&op, counters));
            pass.reversed(body, &[]);
        });
        self.parallel -= 1;
        self.gathered.clear();
        self.winners.clear();
        let reversed = self.parallel_over(op, reversed);
        self.b.effect(reversed);
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
}
