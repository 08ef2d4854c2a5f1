//! What a backward pass must know of the forward run, and so what is computed once more or saved.
//!
//! Every region appears in the backward pass in at most two ways. *Reversed*: its instructions run forwards, as far as
//! they are needed, and are then gone through backwards. *Rerun*: it only runs forwards, because what it makes is needed
//! by the reversal of the region around it. A reversed loop starts each iteration from what the rerun saved: the carried
//! values that the iteration needs.

use aerogel_base::entity::SecondaryMap;
use aerogel_ir::analysis::access::{self, Class};
use aerogel_ir::{
    AssertKind, AtomicOp, CellOp, Derivative, Env, Function, Inst, Op, Region, Value, walk,
};

use super::activity::Activity;
use super::calls::Calls;
use super::emptied;
use super::needs::{Of, Overwritten};
use super::nesting::Nesting;
use super::rules::{Partial, is_scalar_op, partial};
use super::storage::{Memory, StillStored, element_of, memory_of};

/// In which copies of its region something is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Copies {
    pub(crate) reversed: bool,
    pub(crate) rerun: bool,
}

impl Copies {
    const REVERSED: Self = Self {
        reversed: true,
        rerun: false,
    };
    const RERUN: Self = Self {
        reversed: false,
        rerun: true,
    };

    fn or(self, other: Self) -> Self {
        Self {
            reversed: self.reversed || other.reversed,
            rerun: self.rerun || other.rerun,
        }
    }

    pub(crate) fn any(self) -> bool {
        self.reversed || self.rerun
    }

    /// Whether it is needed in the one copy or the other.
    pub(crate) fn is_in(self, reversed: bool) -> bool {
        if reversed { self.reversed } else { self.rerun }
    }
}

/// What is needed, and where.
pub(crate) struct Demand {
    /// Values, in the copies of the region that defines them.
    values: SecondaryMap<Value, Copies>,
    /// Loops and branches that must be rerun, in the copies of the region they stand in.
    reruns: SecondaryMap<Inst, Copies>,
    /// Locals whose contents are needed.
    contents: SecondaryMap<Value, bool>,
    /// Instructions that the backward pass does something about.
    work: SecondaryMap<Inst, bool>,
    /// Writes of replayed memory that happen again.
    executed: SecondaryMap<Inst, Copies>,
    /// What is needed and cannot be computed again, with the instruction that makes it.
    pub(crate) lost: Option<Inst>,
    /// A parallel loop whose writes must happen again as a whole.
    whole: Option<Inst>,
    changed: bool,
}

pub(crate) struct Cx<'a> {
    pub(crate) kind: Derivative,
    /// Whether the derivative will itself be differentiated.
    pub(crate) again: bool,
    pub(crate) func: &'a Function,
    pub(crate) env: &'a Env,
    pub(crate) nesting: &'a Nesting,
    pub(crate) activity: &'a Activity<'a>,
    pub(crate) calls: &'a Calls,
    /// The memory whose writes happen again, so that it is what it was wherever the backward pass reads it.
    pub(crate) replayed: &'a [Class],
    /// Where values are read back that the kernel has stored.
    pub(crate) still_stored: &'a StillStored,
}

impl Cx<'_> {
    pub(crate) fn memory(&self, place: Value) -> Memory {
        memory_of(self.func, self.env, self.kind, place)
    }

    /// Whether a place lies in memory that is replayed.
    pub(crate) fn replays(&self, place: Value) -> bool {
        !self.replayed.is_empty()
            && matches!(self.memory(place), Memory::Field(..) | Memory::Array(..))
            && self.is_in(place, self.replayed)
    }

    fn is_in(&self, place: Value, classes: &[Class]) -> bool {
        let own = access::classes(self.func, self.env, place);
        own.iter().any(|class| classes.contains(class))
    }

    /// The replayed memory that an instruction, or something inside it, writes.
    fn rewrites(&self, inst: Inst) -> Vec<Class> {
        let mut all = Vec::new();
        if self.replayed.is_empty() {
            return all;
        }
        self.each_within(inst, &mut |inst| {
            if let Op::Store { place, .. } | Op::Atomic { place, .. } = self.func[inst]
                && self.replays(place)
            {
                all.extend(access::classes(self.func, self.env, place));
            }
        });
        all
    }

    fn each_within(&self, inst: Inst, f: &mut dyn FnMut(Inst)) {
        f(inst);
        for owned in self.func.owned(inst) {
            walk(self.func, owned, &mut |_, inner| f(inner));
        }
    }

    /// Whether the iterations around a region share a place, and one of them alone has its adjoint.
    pub(crate) fn is_won(&self, region: Region, place: Value) -> bool {
        self.nesting.parallel(region) > 0
            && element_of(self.func, place).is_some_and(|(whole, component)| {
                let mut named_by = component;
                if let Some(op) = self.func.def_op(whole) {
                    op.operands(|v| named_by.push(v));
                }
                let mut regions = named_by.iter().map(|&v| self.nesting.region_of(v));
                regions.all(|region| self.nesting.parallel(region) == 0)
            })
    }

    /// Whether a place has adjoints.
    pub(crate) fn has_adjoint(&self, place: Value) -> bool {
        let is_float = self.func.ty(place).pointee().and_then(|ty| ty.elem());
        is_float.is_some_and(|e| e.is_float())
            && match self.memory(place) {
                Memory::Local(local) | Memory::Buffer(local) => self.activity.is_active(local),
                memory => memory.has_derivatives(),
            }
    }

    /// Whether the backward pass does something about an instruction itself.
    fn works(&self, inst: Inst) -> bool {
        let results = &self.func.insts[inst].results;
        match &self.func[inst] {
            Op::Load { .. } => self.activity.is_active(results[0]),
            Op::Arg { .. } => results.iter().any(|&r| self.activity.is_active(r)),
            // What is overwritten no longer matters, whatever it is overwritten with.
            Op::Store { place, .. } => self.has_adjoint(*place),
            // What loses against a constant no longer matters either.
            Op::Atomic { op, place, value } => {
                let adds = matches!(op, AtomicOp::Add | AtomicOp::Sub);
                self.has_adjoint(*place) && (!adds || self.activity.is_active(*value))
            }
            // Nor does what vanishes with its cell.
            Op::Cell(CellOp::Deactivate { node, .. }) => {
                emptied::matters(self.env, *node, Derivative::Grad)
            }
            Op::Call { .. } => {
                self.calls.writes_active || results.iter().any(|&r| self.activity.is_active(r))
            }
            op if is_scalar_op(self.func, op, results) => self.activity.is_active(results[0]),
            _ => false,
        }
    }
}

impl Demand {
    pub(crate) fn new(cx: &Cx<'_>) -> Self {
        let mut demand = Self::nothing();
        demand.find_work(cx, cx.func.body);
        demand.settle(cx);
        demand
    }

    /// What it takes to compute what a function returns.
    pub(crate) fn of_results(cx: &Cx<'_>) -> Self {
        let mut demand = Self::nothing();
        for &value in cx.func.yielded(cx.func.body).unwrap_or_default() {
            demand.need(cx, value, cx.func.body, Copies::RERUN);
        }
        demand.settle(cx);
        demand
    }

    fn nothing() -> Self {
        Self {
            values: SecondaryMap::new(),
            reruns: SecondaryMap::new(),
            contents: SecondaryMap::new(),
            work: SecondaryMap::new(),
            executed: SecondaryMap::new(),
            lost: None,
            whole: None,
            changed: true,
        }
    }

    /// What is needed needs something else, until nothing is missing.
    fn settle(&mut self, cx: &Cx<'_>) {
        self.changed = true;
        while std::mem::take(&mut self.changed) {
            for &region in cx.nesting.regions.iter().rev() {
                for &inst in cx.func.regions[region].insts.iter().rev() {
                    self.reversal(cx, region, inst);
                    self.results(cx, region, inst);
                    self.construct(cx, region, inst);
                    self.replay(cx, region, inst);
                }
            }
        }
    }

    pub(crate) fn value(&self, value: Value) -> Copies {
        self.values[value]
    }

    pub(crate) fn rerun(&self, inst: Inst) -> Copies {
        self.reruns[inst]
    }

    pub(crate) fn works(&self, inst: Inst) -> bool {
        self.work[inst]
    }

    /// A parallel loop whose writes must happen again as a whole.
    pub(crate) fn whole(&self, func: &Function) -> Option<Overwritten> {
        let span = func.insts[self.whole?].span;
        Some(Overwritten {
            read: span,
            written: span,
            of: Of::Values,
        })
    }

    /// In which copies a write of replayed memory happens again.
    pub(crate) fn executed(&self, inst: Inst) -> Copies {
        self.executed[inst]
    }

    pub(crate) fn needs_contents(&self, local: Value) -> bool {
        self.contents[local]
    }

    fn find_work(&mut self, cx: &Cx<'_>, region: Region) -> bool {
        let mut any = false;
        for &inst in &cx.func.regions[region].insts {
            let mut works = cx.works(inst);
            for owned in cx.func.owned(inst) {
                works |= self.find_work(cx, owned);
            }
            // A branch passes adjoints on though it does nothing itself.
            works |= matches!(
                cx.func[inst],
                Op::If { .. } | Op::For { .. } | Op::While { .. }
            ) && cx.func.insts[inst]
                .results
                .iter()
                .any(|&r| cx.activity.is_active(r));
            self.work[inst] = works;
            any |= works;
        }
        any
    }

    /// A value is needed in some copies of a region.
    fn need(&mut self, cx: &Cx<'_>, value: Value, region: Region, copies: Copies) {
        let home = cx.nesting.region_of(value);
        let (mut at, mut copies) = (region, copies);
        while at != home {
            let Some((owner, around)) = cx.nesting.owner(at) else {
                break;
            };
            let mut outer = Copies::default();
            if copies.reversed {
                outer = outer.or(Copies::REVERSED);
            }
            if copies.rerun {
                outer = outer.or(self.reruns[owner]);
            }
            (at, copies) = (around, outer);
        }
        let all = self.values[value].or(copies);
        if all != self.values[value] {
            self.values[value] = all;
            self.changed = true;
        }
    }

    fn need_rerun(&mut self, inst: Inst, copies: Copies) {
        let all = self.reruns[inst].or(copies);
        if all != self.reruns[inst] {
            self.reruns[inst] = all;
            self.changed = true;
        }
    }

    /// What going backwards over an instruction needs.
    fn reversal(&mut self, cx: &Cx<'_>, region: Region, inst: Inst) {
        let func = cx.func;
        let results = &func.insts[inst].results;
        let here = Copies::REVERSED;
        if let Op::Assert { cond, kind, .. } = &func[inst]
            && *kind == AssertKind::Recursion
        {
            self.need(cx, *cond, region, here.or(Copies::RERUN));
        }
        if !self.work[inst] {
            return;
        }
        match &func[inst] {
            Op::Load { place } => self.need_indices(cx, *place, region, here),
            Op::Store { place, .. } => self.need_indices(cx, *place, region, here),
            Op::Atomic { op, place, value } => {
                self.need_indices(cx, *place, region, here);
                if matches!(op, AtomicOp::Min | AtomicOp::Max) {
                    self.need(cx, *value, region, here);
                    self.need(cx, *place, region, here);
                    if cx.is_won(region, *place) {
                        // A loop before finds the iteration.
                        self.need(cx, *value, region, Copies::RERUN);
                        self.need(cx, *place, region, Copies::RERUN);
                        for around in cx.nesting.between(region, func.body) {
                            self.need_rerun(around, Copies::RERUN);
                        }
                    }
                }
            }
            Op::If { cond, .. } => self.need(cx, *cond, region, here),
            Op::For { lo, hi, step, .. } => {
                for &v in [lo, hi, step] {
                    self.need(cx, v, region, here);
                }
            }
            Op::Cell(CellOp::Deactivate { indices, .. }) => {
                indices.iter().for_each(|&v| self.need(cx, v, region, here));
            }
            Op::Call { args, .. } => args.iter().for_each(|&v| self.need(cx, v, region, here)),
            // Only a rerun tells how many turns there are.
            Op::While { .. } => self.need_rerun(inst, here),
            Op::Parallel { lo, hi, .. } => {
                lo.iter()
                    .chain(hi)
                    .for_each(|&v| self.need(cx, v, region, here));
            }
            op if is_scalar_op(func, op, results) => {
                let mut operands = Vec::new();
                op.operands(|v| operands.push(v));
                for (k, &operand) in operands.iter().enumerate() {
                    if !cx.activity.is_active(operand) {
                        continue;
                    }
                    match partial(func, op, k) {
                        Partial::Factor {
                            operands: made_of,
                            result,
                            ..
                        } => {
                            let wanted = operands.iter().zip(made_of).filter(|(_, w)| *w);
                            wanted.for_each(|(&v, _)| self.need(cx, v, region, here));
                            if result {
                                self.need(cx, results[0], region, here);
                            }
                        }
                        Partial::Chosen(_) => self.need(cx, operands[0], region, here),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// The indices by which a place is named.
    fn need_indices(&mut self, cx: &Cx<'_>, place: Value, region: Region, copies: Copies) {
        match cx.func.def_op(place) {
            Some(Op::ElemRef { base, index }) => {
                index.iter().for_each(|&v| self.need(cx, v, region, copies));
                self.need_indices(cx, *base, region, copies);
            }
            Some(&Op::MemberRef { base, .. }) => self.need_indices(cx, base, region, copies),
            Some(Op::FieldAt { indices, .. } | Op::ArrayAt { indices, .. }) => {
                indices
                    .iter()
                    .for_each(|&v| self.need(cx, v, region, copies));
            }
            _ => {}
        }
    }

    /// What the needed results of an instruction need.
    fn results(&mut self, cx: &Cx<'_>, region: Region, inst: Inst) {
        let func = cx.func;
        for (k, &result) in func.insts[inst].results.iter().enumerate() {
            let copies = self.values[result];
            if !copies.any() {
                continue;
            }
            if let Some(place) = cx.still_stored[result] {
                self.need_indices(cx, place, region, copies);
                continue;
            }
            match &func[inst] {
                Op::If {
                    cond,
                    then,
                    otherwise,
                } => {
                    self.need_rerun(inst, copies);
                    self.need(cx, *cond, region, copies);
                    for branch in [*then, *otherwise] {
                        let Some(&value) = func.yielded(branch).and_then(|v| v.get(k)) else {
                            continue;
                        };
                        // What comes from outside is only wanted where the result is.
                        match cx.nesting.region_of(value) == branch {
                            true => self.need(cx, value, branch, Copies::RERUN),
                            false => self.need(cx, value, region, copies),
                        }
                    }
                }
                Op::For { body, .. } => {
                    self.need_rerun(inst, copies);
                    let param = func.regions[*body].params[k + 1];
                    self.need(cx, param, *body, Copies::RERUN);
                }
                Op::While { body, .. } => {
                    self.need_rerun(inst, copies);
                    let param = func.regions[*body].params[k];
                    self.need(cx, param, *body, Copies::RERUN);
                }
                Op::Load { place } => {
                    self.need(cx, *place, region, copies);
                    if let Memory::Local(local) | Memory::Buffer(local) = cx.memory(*place)
                        && !self.contents[local]
                    {
                        self.contents[local] = true;
                        self.changed = true;
                    }
                }
                Op::Atomic { .. } | Op::Cas { .. } => {
                    self.lost = self.lost.or(Some(inst));
                }
                Op::Cell(op) if op.effect() == aerogel_ir::Effect::Writes => {
                    self.lost = self.lost.or(Some(inst));
                }
                op => {
                    let mut operands = Vec::new();
                    op.operands(|v| operands.push(v));
                    operands
                        .iter()
                        .for_each(|&v| self.need(cx, v, region, copies));
                }
            }
        }
    }

    /// What the copies of a loop or branch need, and the stores to locals that matter.
    fn construct(&mut self, cx: &Cx<'_>, region: Region, inst: Inst) {
        let func = cx.func;
        match &func[inst] {
            Op::Store { place, value } | Op::Atomic { place, value, .. } => {
                if let Memory::Local(local) = cx.memory(*place)
                    && self.contents[local]
                {
                    self.content(cx, local, region, &[*place, *value]);
                }
            }
            Op::For {
                lo,
                hi,
                step,
                init,
                body,
            } => {
                let params = func.regions[*body].params.clone();
                if self.values[params[0]].reversed {
                    for &v in [lo, step] {
                        self.need(cx, v, region, Copies::REVERSED);
                    }
                }
                self.carried(cx, region, inst, *body, &params[1..], init);
                let reruns = self.reruns[inst];
                if reruns.any() {
                    for &v in [lo, hi, step] {
                        self.need(cx, v, region, reruns);
                    }
                }
            }
            Op::While { init, cond, body } => {
                let params = func.regions[*body].params.clone();
                let reruns = self.reruns[inst];
                if reruns.any() {
                    let test = func.yielded(*cond).expect("a condition yields")[0];
                    self.need(cx, test, *cond, Copies::RERUN);
                    // What the test looks at is carried as well.
                    for (&looked_at, &param) in func.regions[*cond].params.iter().zip(&params) {
                        if self.values[looked_at].any() {
                            self.need(cx, param, *body, Copies::RERUN);
                        }
                    }
                }
                self.carried(cx, region, inst, *body, &params, init);
            }
            Op::Parallel { lo, hi, .. } => {
                let reruns = self.reruns[inst];
                if reruns.any() {
                    lo.iter()
                        .chain(hi)
                        .for_each(|&v| self.need(cx, v, region, reruns));
                }
            }
            Op::If { cond, .. } => {
                let reruns = self.reruns[inst];
                if reruns.any() {
                    self.need(cx, *cond, region, reruns);
                }
            }
            _ => {}
        }
    }

    /// Writes of replayed memory: those of a rerun all happen again, since what is inside reads what they leave, and
    /// those that are reversed where something behind them does.
    fn replay(&mut self, cx: &Cx<'_>, region: Region, inst: Inst) {
        let written = cx.rewrites(inst);
        if written.is_empty() {
            return;
        }
        let mut copies = Copies::default();
        let all = &cx.func.regions[region].insts;
        let later = all.iter().skip_while(|&&other| other != inst).skip(1);
        let mut later = later.map(|&other| self.looks_at(cx, other, &written));
        copies.reversed = later.any(|looks| looks);
        let around = cx.nesting.owner(region);
        copies.rerun = around.is_some_and(|(owner, _)| self.reruns[owner].any());
        match &cx.func[inst] {
            Op::Store { place, value } | Op::Atomic { place, value, .. } => {
                let (place, value) = (*place, *value);
                let all = self.executed[inst].or(copies);
                if all != self.executed[inst] {
                    self.executed[inst] = all;
                    self.changed = true;
                }
                if all.any() {
                    self.need(cx, place, region, all);
                    self.need(cx, value, region, all);
                }
            }
            Op::Parallel { .. } | Op::ParallelCells { .. } => {
                if copies.any() || self.reruns[inst].any() {
                    self.whole = self.whole.or(Some(inst));
                }
            }
            op => {
                let is_loop = !matches!(op, Op::If { .. });
                copies.reversed |= is_loop && self.looks_at(cx, inst, &written);
                self.need_rerun(inst, copies);
            }
        }
    }

    /// Whether the backward pass reads some memory in an instruction or inside it.
    fn looks_at(&self, cx: &Cx<'_>, inst: Inst, classes: &[Class]) -> bool {
        let mut found = false;
        cx.each_within(inst, &mut |inst| {
            found |= match cx.func[inst] {
                Op::Load { place } => {
                    self.values[cx.func.insts[inst].results[0]].any() && cx.is_in(place, classes)
                }
                // A change begins with what there was.
                Op::Atomic { place, .. } => cx.is_in(place, classes),
                _ => false,
            };
        });
        found
    }

    /// What carried values need: a rerun that makes them.
    fn carried(
        &mut self,
        cx: &Cx<'_>,
        region: Region,
        inst: Inst,
        body: Region,
        params: &[Value],
        init: &[Value],
    ) {
        let yielded = cx.func.yielded(body).unwrap_or_default();
        for (k, &param) in params.iter().enumerate() {
            let copies = self.values[param];
            if copies.reversed {
                self.need_rerun(inst, Copies::REVERSED);
                self.need(cx, param, body, Copies::RERUN);
            }
            if self.values[param].rerun {
                self.need(cx, yielded[k], body, Copies::RERUN);
                let reruns = self.reruns[inst];
                self.need(cx, init[k], region, reruns);
            }
        }
    }

    /// A store to a local whose contents are needed: it happens again, and so does what is around it.
    fn content(&mut self, cx: &Cx<'_>, local: Value, region: Region, values: &[Value]) {
        let home = cx.nesting.region_of(local);
        let around = cx.nesting.between(region, home);
        let Some((outermost, inner)) = around.split_last() else {
            values.iter().for_each(|&v| {
                self.need(
                    cx,
                    v,
                    region,
                    Copies {
                        reversed: true,
                        rerun: true,
                    },
                )
            });
            return;
        };
        self.need_rerun(
            *outermost,
            Copies {
                reversed: true,
                rerun: true,
            },
        );
        for &inst in inner {
            self.need_rerun(
                inst,
                Copies {
                    reversed: true,
                    rerun: true,
                },
            );
        }
        values.iter().for_each(|&v| {
            self.need(
                cx,
                v,
                region,
                Copies {
                    reversed: true,
                    rerun: true,
                },
            )
        });
    }
}

/// The locals made outside an instruction that something inside it stores to, or loads what is needed in its reversal.
pub(crate) fn locals_touched(cx: &Cx<'_>, demand: &Demand, inst: Inst) -> (Vec<Value>, Vec<Value>) {
    let (mut written, mut read) = (Vec::new(), Vec::new());
    let mut inside = SecondaryMap::<Value, bool>::new();
    for owned in cx.func.owned(inst) {
        access::defined_in(cx.func, owned, &mut inside);
    }
    let note = |list: &mut Vec<Value>, place: Value| {
        if let Memory::Local(local) = cx.memory(place)
            && !inside[local]
            && demand.needs_contents(local)
            && !list.contains(&local)
        {
            list.push(local);
        }
    };
    for owned in cx.func.owned(inst) {
        walk(cx.func, owned, &mut |func, inner| match &func[inner] {
            Op::Store { place, .. } | Op::Atomic { place, .. } => note(&mut written, *place),
            Op::Load { place } if demand.value(func.insts[inner].results[0]).any() => {
                note(&mut read, *place);
            }
            _ => {}
        });
    }
    (written, read)
}
