//! Regions of pure arithmetic for several iterations at once, one in each lane of vectors.
//!
//! ```text
//! v3 = while [v1] (v4) { yield [v4 < 9] } (v5) { yield [v5 * v5] }
//! ```
//! becomes, for all lanes:
//! ```text
//! loop:  carried = phi v1, v3
//!        run = carried < 9
//!        v3 = run ? carried * carried : carried
//!        if a lane runs: loop
//! ```
//! A lane that has left a loop keeps its values until all have left. Both sides of a branch are
//! computed; arithmetic has no traps, so what a lane computes that is not there does no harm.
//!
//! A mask states which lanes are active: the sign of an integer for each. (LLVM stores booleans between
//! blocks as bytes, which are costly to widen on targets without mask registers.)

use aerogel_base::ScalarType;
use aerogel_base::entity::SecondaryMap;
use aerogel_ir::{BinaryOp, Function, Inst, Op, Region, Value};
use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::FastMathFlags;

use super::plan::Plan;
use super::saves::{Alike, falls};
use super::strides::{Shared, Ways};
use super::{reads, strides};
use crate::builder::{Builder, Opcode, Val, incoming, undef};
use crate::context::FuncCx;
use crate::device_code;
use crate::elementwise::Elementwise;
use crate::math::Arith;
use crate::types::scalar;

/// The lanes of one function's values.
pub(crate) struct Lanes<'s, 'c, 'a, 'ctx> {
    pub(super) f: &'s mut FuncCx<'c, 'a, 'ctx>,
    pub(super) func: &'a Function,
    pub(super) flags: FastMathFlags,
    pub(super) width: u32,
    pub(super) values: SecondaryMap<Value, Option<Val<'ctx>>>,
    pub(super) loops: Vec<Leaving<'ctx>>,
    /// Where the random states of all lanes are.
    pub(super) random: Option<Val<'ctx>>,
    pub(super) shared: Option<&'s Shared>,
    pub(super) alike: Option<&'s Alike>,
    /// Whether lanes read memory, and what is the same in all of them is computed once.
    pub(super) reads: bool,
    /// A mask of lanes of which at least one is there.
    pub(super) present: Mask<'ctx>,
}

/// Which lanes are there; nothing if all are.
pub(crate) type Mask<'ctx> = Option<Val<'ctx>>;

/// The innermost loop during an iteration.
pub(super) struct Leaving<'ctx> {
    /// The counter's next value, which comes before what the body yields.
    pub(super) counted: Option<Val<'ctx>>,
    /// The carried values of lanes that have left the iteration; for other lanes those at its beginning.
    pub(super) carried: Vec<Val<'ctx>>,
    /// The lanes that continue with the next iteration.
    pub(super) again: Val<'ctx>,
}

impl<'s, 'c, 'a, 'ctx> Lanes<'s, 'c, 'a, 'ctx> {
    pub(crate) fn new(
        f: &'s mut FuncCx<'c, 'a, 'ctx>,
        width: u32,
        random: Option<Val<'ctx>>,
        plan: &'s Plan,
    ) -> Self {
        Self {
            func: f.func,
            flags: f.flags,
            f,
            width,
            values: SecondaryMap::new(),
            loops: Vec::new(),
            random,
            shared: plan.shared.as_ref(),
            alike: plan.alike.as_ref(),
            reads: plan.reads,
            present: None,
        }
    }

    pub(super) fn b(&self) -> &Builder<'a, 'ctx> {
        &self.f.b
    }

    /// Gives a value of the function around for each lane.
    pub(crate) fn define(&mut self, value: Value, lanes: Val<'ctx>) {
        self.values[value] = Some(lanes);
    }

    pub(super) fn define_all(&mut self, values: &[Value], lanes: &[Val<'ctx>]) {
        for (&value, &lanes) in values.iter().zip(lanes) {
            self.define(value, lanes);
        }
    }

    /// A value in all lanes; one that was not defined here is the first lane's.
    pub(crate) fn value(&self, value: Value) -> Val<'ctx> {
        if let Some(all) = self.values[value] {
            return all;
        }
        let first = self.b().splat(self.f.value(value), self.width);
        match self.shared.map_or(0, |shared| shared.strides[value]) {
            0 => first,
            stride => {
                let bits = self.func.elem(value).bits();
                let numbers = self.b().lane_numbers(self.width);
                let numbers = self.b().extend(ScalarType::U32, numbers, bits);
                let stride = self.b().int(numbers.get_type(), stride);
                let distance = self.b().op(Opcode::Mul, numbers, stride);
                self.b().op(Opcode::Add, first, distance)
            }
        }
    }

    /// Whether lanes have a number each.
    pub(super) fn has(&self, value: Value) -> bool {
        self.values[value].is_some()
    }

    pub(super) fn all(&self, values: &[Value]) -> Vec<Val<'ctx>> {
        values.iter().map(|&v| self.value(v)).collect()
    }

    pub(super) fn scalar(&self, ty: ScalarType) -> BasicTypeEnum<'ctx> {
        self.b().vector_type(scalar(self.b().ctx, ty), self.width)
    }

    fn ty(&self, value: Value) -> BasicTypeEnum<'ctx> {
        self.scalar(self.func.elem(value))
    }

    fn mask_of(&self, truth: Val<'ctx>) -> Val<'ctx> {
        self.b()
            .cast(Opcode::SExt, truth, self.scalar(ScalarType::I32))
    }

    pub(super) fn no_lane(&self) -> Val<'ctx> {
        self.scalar(ScalarType::I32).const_zero()
    }

    /// The lanes of a mask where `truth` holds.
    pub(super) fn narrow(&self, mask: Mask<'ctx>, truth: Val<'ctx>) -> Val<'ctx> {
        let truth = self.mask_of(truth);
        mask.map_or(truth, |mask| self.b().and(mask, truth))
    }

    fn truth_of(&self, mask: Val<'ctx>) -> Val<'ctx> {
        self.b().icmp(IntPredicate::SLT, mask, self.no_lane())
    }

    /// `value` in the lanes of a mask, `old` in the others.
    pub(super) fn merge(&self, mask: Mask<'ctx>, value: Val<'ctx>, old: Val<'ctx>) -> Val<'ctx> {
        mask.map_or(value, |mask| {
            self.b().select(self.truth_of(mask), value, old)
        })
    }

    /// Computes a region for the lanes of `mask`. Gives what it yields, and the lanes that get
    /// there; nothing if none does.
    pub(super) fn region(
        &mut self,
        region: Region,
        mask: Mask<'ctx>,
    ) -> Option<(Vec<Val<'ctx>>, Mask<'ctx>)> {
        let func = self.func;
        let insts = &func.regions[region].insts;
        let (&last, rest) = insts.split_last().expect("a region ends in a terminator");
        let mut mask = mask;
        for &inst in rest {
            mask = self.inst(inst, mask);
        }
        match &func[last] {
            Op::Yield { values } | Op::Return { values } => {
                return Some((self.all(values), mask));
            }
            Op::Break { values } => {
                let values = self.all(values);
                self.leave(&values, mask, false);
            }
            Op::Continue { values } => {
                let values = self.all(values);
                self.leave(&values, mask, true);
            }
            _ => unreachable!("`can` was checked"),
        }
        None
    }

    /// Ends an iteration of the innermost loop for the lanes of `mask`.
    pub(super) fn leave(&mut self, values: &[Val<'ctx>], mask: Mask<'ctx>, again: bool) {
        let mut leaving = self.loops.pop().expect("loops are left from inside");
        let values = leaving.counted.iter().chain(values);
        for (carried, &value) in leaving.carried.iter_mut().zip(values) {
            *carried = self.merge(mask, value, *carried);
        }
        if again {
            let mask = mask.expect("the body of a loop has a mask");
            leaving.again = self.b().or(leaving.again, mask);
        }
        self.loops.push(leaving);
    }

    /// Computes an instruction; returns the lanes that continue after it.
    pub(crate) fn inst(&mut self, inst: Inst, mask: Mask<'ctx>) -> Mask<'ctx> {
        let func = self.func;
        let data = &func.insts[inst];
        if self.shared.is_some_and(|shared| shared.once[inst]) {
            self.f.inst(inst);
            return mask;
        }
        if self.alike.is_some_and(|alike| alike.once(func, inst)) {
            self.f.inst(inst);
            return mask;
        }
        if self.once(inst) || self.is_address(inst) {
            return mask;
        }
        self.f.locate(data.span);
        let result = data.results.first().copied();
        let made = match &data.op {
            Op::Const { value } => {
                let value = self.b().constant(*value);
                if self.alike.is_some() {
                    self.f.values[data.results[0]] = Some(value);
                }
                self.b().splat(value, self.width)
            }
            Op::Undef {} => {
                let ty = self.ty(result.expect("it is a value"));
                self.b().freeze(undef(ty))
            }
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Compare { .. }
            | Op::Select { .. }
            | Op::Fma { .. }
            | Op::MulAdd { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. } => {
                let flags = self.f.flags_of(inst, self.flags);
                let allowed = std::mem::replace(&mut self.flags, flags);
                let made = self.elementwise(inst);
                self.flags = allowed;
                made
            }
            Op::Random {} => self.draw(func.elem(result.expect("it is a value")), mask),
            Op::If {
                cond,
                then,
                otherwise,
            } => return self.branch(inst, *cond, [*then, *otherwise], mask),
            Op::Load { place } if self.reads => {
                self.read(inst, *place, mask);
                return mask;
            }
            Op::Load { place } => self.f.load_lanes(*place, self.width),
            Op::For {
                lo, hi, init, body, ..
            } if self.shared.is_some_and(|shared| shared.loops[inst]) => {
                self.shared_loop(inst, [*lo, *hi], init, *body);
                return mask;
            }
            Op::For {
                lo, hi, init, body, ..
            } if self.alike.is_some() && falls(func, inst) => {
                self.falling_loop(inst, [*lo, *hi], init, *body, mask);
                return mask;
            }
            Op::For {
                lo, hi, init, body, ..
            } => {
                self.counted_loop(inst, [*lo, *hi], init, *body, mask);
                return mask;
            }
            Op::While { init, cond, body } => {
                self.while_loop(inst, init, *cond, *body, mask);
                return mask;
            }
            Op::Reserve { buffer, .. } => {
                self.reserve(inst, *buffer, mask);
                return mask;
            }
            Op::RoomAt { room, index } => {
                self.room_at(inst, *room, *index);
                return mask;
            }
            Op::Local {} => {
                self.local(inst);
                return mask;
            }
            Op::ElemRef { base, index } => {
                self.elem_ref(inst, *base, index[0]);
                return mask;
            }
            Op::Store { place, value } => {
                self.store(*place, *value, mask);
                return mask;
            }
            Op::Assert { .. } => {
                self.assert_room(inst, mask);
                return mask;
            }
            Op::Arg { .. }
            | Op::Buffer {}
            | Op::TileProduct { .. }
            | Op::RandomState { .. }
            | Op::StopGradient { .. }
            | Op::ArrayShape { .. }
            | Op::TensorMake { .. }
            | Op::TensorGet { .. }
            | Op::TensorSet { .. }
            | Op::MatMul { .. }
            | Op::StructMake { .. }
            | Op::StructGet { .. }
            | Op::StructSet { .. }
            | Op::MemberRef { .. }
            | Op::FieldAt { .. }
            | Op::ArrayAt { .. }
            | Op::TempAt { .. }
            | Op::PlaceAt { .. }
            | Op::Prefetch { .. }
            | Op::AwaitTurn {}
            | Op::Atomic { .. }
            | Op::AtomicAdds { .. }
            | Op::Cas { .. }
            | Op::Update { .. }
            | Op::Yield { .. }
            | Op::Break { .. }
            | Op::Continue { .. }
            | Op::Return { .. }
            | Op::Parallel { .. }
            | Op::ParallelCells { .. }
            | Op::Task { .. }
            | Op::Each { .. }
            | Op::Cell(_)
            | Op::Node(_)
            | Op::Grow { .. }
            | Op::Clear { .. }
            | Op::Print { .. }
            | Op::Warn { .. }
            | Op::Note { .. }
            | Op::Shared {}
            | Op::Threads { .. }
            | Op::Call { .. } => unreachable!("`can` was checked"),
        };
        self.define(result.expect("arithmetic has a result"), made);
        mask
    }

    fn branch(
        &mut self,
        inst: Inst,
        cond: Value,
        [then, otherwise]: [Region; 2],
        mask: Mask<'ctx>,
    ) -> Mask<'ctx> {
        let shared = self.shared.and_then(|shared| shared.branches[inst]);
        let leaves = |inst| strides::leaves(self.func, inst);
        let ways = shared.or_else(|| (self.is_same(cond) && !leaves(inst)).then_some(Ways::Both));
        if let Some(ways) = ways {
            self.same_way(inst, cond, [then, otherwise], ways, mask);
            return mask;
        }
        let cond = self.value(cond);
        let on = self.narrow(mask, cond);
        let off = self.narrow(mask, self.b().not(cond));
        let then = self.side(then, on);
        let otherwise = self.side(otherwise, off);
        let results = &self.func.insts[inst].results;
        match (then, otherwise) {
            (Some((x, on_left)), Some((y, off_left))) => {
                for ((&result, x), y) in results.iter().zip(x).zip(y) {
                    let chosen = self.b().select(cond, x, y);
                    self.define(result, chosen);
                }
                if (on_left, off_left) == (Some(on), Some(off)) {
                    return mask;
                }
                Some(self.b().or(on_left?, off_left?))
            }
            (Some((values, left)), None) | (None, Some((values, left))) => {
                self.define_all(results, &values);
                left
            }
            (None, None) => {
                for &result in results {
                    let any = self.b().freeze(undef(self.ty(result)));
                    self.define(result, any);
                }
                Some(self.no_lane())
            }
        }
    }

    /// A branch that goes the same way in all lanes.
    fn same_way(
        &mut self,
        inst: Inst,
        cond: Value,
        [then, otherwise]: [Region; 2],
        ways: Ways,
        mask: Mask<'ctx>,
    ) {
        let results = &self.func.insts[inst].results;
        if let Ways::Only(truth) = ways {
            let side = if truth { then } else { otherwise };
            let (values, _) = self.region(side, mask).expect("nothing leaves");
            self.define_all(results, &values);
            return;
        }
        let cond = self.f.value(cond);
        let [on, off, joined] =
            ["same_then", "same_else", "same_way"].map(|name| self.b().block(self.f.llvm, name));
        self.b().cond_br(cond, on, off);
        let sides = [(on, then), (off, otherwise)].map(|(block, side)| {
            self.b().at(block);
            let (values, _) = self.region(side, mask).expect("nothing leaves");
            let last = self.b().current();
            self.b().br(joined);
            (values, last)
        });
        self.b().at(joined);
        for (at, &result) in results.iter().enumerate() {
            let phi = self.b().phi(sides[0].0[at].get_type());
            for (values, last) in &sides {
                incoming(phi, values[at], *last);
            }
            self.define(result, phi.as_basic_value());
        }
    }

    /// One side of a branch, for the lanes of `mask`. What takes long is jumped over where there are none.
    fn side(&mut self, region: Region, mask: Val<'ctx>) -> Option<(Vec<Val<'ctx>>, Mask<'ctx>)> {
        if !(takes_long(self.func, region) || self.reads && reads::is_long(self.func, region)) {
            return self.region(region, Some(mask));
        }
        let before = self.b().current();
        let [inside, exit] = ["side", "joined"].map(|name| self.b().block(self.f.llvm, name));
        let any = self.any(mask);
        self.b().likely_br(self.b().not(any), exit, inside);
        self.b().at(inside);
        let present = self.present.replace(mask);
        let (values, _) = self.region(region, Some(mask)).expect("it only computes");
        self.present = present;
        let last = self.b().current();
        self.b().br(exit);
        self.b().at(exit);
        let joined = values.iter().map(|&value| {
            let phi = self.b().phi(value.get_type());
            incoming(phi, value.get_type().const_zero(), before);
            incoming(phi, value, last);
            phi.as_basic_value()
        });
        Some((joined.collect(), Some(mask)))
    }

    pub(super) fn all_lanes(&self) -> Val<'ctx> {
        self.b().int(self.scalar(ScalarType::I32), -1)
    }

    /// Whether any lane of a mask is there.
    pub(super) fn any(&self, mask: Val<'ctx>) -> Val<'ctx> {
        let none = FastMathFlags::empty();
        let truth = self.truth_of(mask);
        let ty = truth.get_type();
        self.b()
            .intrinsic("llvm.vector.reduce.or", &[ty], &[truth], none)
    }

    /// A random value; the states of lanes outside `mask` stay.
    fn draw(&mut self, ty: ScalarType, mask: Mask<'ctx>) -> Val<'ctx> {
        let place = self.random.expect("the task has states");
        let (state, _) = self.b().load(self.scalar(ScalarType::U64), place);
        let (next, random) = self.f.random_step(state);
        let kept = self.merge(mask, next, state);
        self.b().store(place, kept);
        self.f.random_value(ty, random)
    }
}

/// Whether a region computes the exact remainder of floats, for which each lane calls a function, and does nothing else
/// but arithmetic.
fn takes_long(func: &Function, region: Region) -> bool {
    let insts = &func.regions[region].insts;
    let is_remainder = |inst: &Inst| matches!(func[*inst], Op::Binary { op: BinaryOp::Rem, lhs, .. } if func.elem(lhs).is_float());
    insts.iter().any(is_remainder)
        && insts.iter().all(|&inst| {
            func[inst].is_elementwise() || matches!(func[inst], Op::Const { .. } | Op::Yield { .. })
        })
}

impl<'a, 'ctx> Elementwise<'a, 'ctx> for Lanes<'_, '_, 'a, 'ctx> {
    fn func(&self) -> &'a Function {
        self.func
    }

    fn builder(&self) -> &Builder<'a, 'ctx> {
        self.b()
    }

    fn operand(&self, value: Value) -> Val<'ctx> {
        self.value(value)
    }

    fn type_of(&self, value: Value) -> BasicTypeEnum<'ctx> {
        self.ty(value)
    }

    fn arith(&self, ty: ScalarType) -> Arith<'_, 'a, 'ctx> {
        Arith {
            b: self.b(),
            ty,
            lanes: Some(self.width),
            flags: self.flags,
        }
    }

    fn device_math(&mut self, name: &str, ty: ScalarType, args: &[Val<'ctx>]) -> Option<Val<'ctx>> {
        let (id, wide) = self.f.device_function(name, ty)?;
        let func = &device_code::module().funcs[id];
        let mut lanes = Lanes {
            f: &mut *self.f,
            func,
            flags: FastMathFlags::empty(),
            width: self.width,
            values: SecondaryMap::new(),
            loops: Vec::new(),
            random: None,
            shared: None,
            alike: None,
            reads: false,
            present: None,
        };
        lanes.define_all(&func.regions[func.body].params, args);
        let (results, _) = lanes.region(func.body, None)?;
        let lanes = Some(self.width);
        Some(self.f.guarded(id, wide, lanes, args[0], results[0]))
    }

    fn binary(&mut self, op: BinaryOp, lhs: Value, rhs: Value) -> Val<'ctx> {
        let (ty, x, y) = (self.func.elem(lhs), self.value(lhs), self.value(rhs));
        match self.device_math(op.name(), ty, &[x, y]) {
            Some(made) => made,
            None => self.arith(ty).binary(op, x, y),
        }
    }
}
