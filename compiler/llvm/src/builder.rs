//! Convenient constructors of LLVM instructions: inkwell's results are unwrapped only here, since the verifier has
//! already checked the types.
#![expect(unsafe_code, reason = "address arithmetic and atomics on floats")]

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder as LlvmBuilder, BuilderError};
use inkwell::context::Context;
use inkwell::debug_info::DILocation;
use inkwell::intrinsics::Intrinsic;
use inkwell::llvm_sys::core::{LLVMBuildAtomicCmpXchg, LLVMBuildAtomicRMW, LLVMBuildFreeze};
use inkwell::llvm_sys::{LLVMAtomicOrdering, LLVMAtomicRMWBinOp};
use inkwell::module::Module;
use inkwell::types::{BasicType, BasicTypeEnum, FunctionType, IntType, PointerType, VectorType};
use inkwell::values::{
    AsValueRef, BasicMetadataValueEnum, BasicValue, BasicValueEnum, FastMathFlags, FunctionValue,
    InstructionValue, MetadataValue, PhiValue, PointerValue,
};
use inkwell::{AddressSpace, AtomicOrdering, FloatPredicate, IntPredicate};

pub(crate) use inkwell::llvm_sys::LLVMAtomicRMWBinOp as RmwOp;
pub(crate) use inkwell::values::InstructionOpcode as Opcode;

use crate::target::Target;

/// An LLVM value of any type.
pub(crate) type Val<'ctx> = BasicValueEnum<'ctx>;

/// Writes instructions at one place of one function.
pub(crate) struct Builder<'a, 'ctx> {
    pub(crate) ctx: &'ctx Context,
    pub(crate) module: &'a Module<'ctx>,
    pub(crate) target: &'a Target,
    builder: LlvmBuilder<'ctx>,
}

fn ok<T>(result: Result<T, BuilderError>) -> T {
    result.expect("the verifier has checked the types of operands")
}

impl<'a, 'ctx> Builder<'a, 'ctx> {
    pub(crate) fn new(ctx: &'ctx Context, module: &'a Module<'ctx>, target: &'a Target) -> Self {
        Self {
            ctx,
            module,
            target,
            builder: ctx.create_builder(),
        }
    }

    /// What is built from here on has this location.
    pub(crate) fn locate(&self, location: DILocation<'ctx>) {
        self.builder.set_current_debug_location(location);
    }

    // Types and constants.

    pub(crate) fn i64_type(&self) -> IntType<'ctx> {
        self.ctx.i64_type()
    }

    pub(crate) fn ptr_type(&self) -> PointerType<'ctx> {
        self.ctx.ptr_type(AddressSpace::default())
    }

    pub(crate) fn i64(&self, value: i64) -> Val<'ctx> {
        self.i64_type().const_int(value as u64, true).into()
    }

    pub(crate) fn bool(&self, value: bool) -> Val<'ctx> {
        self.ctx
            .bool_type()
            .const_int(u64::from(value), false)
            .into()
    }

    /// A constant of an integer type, or a vector of it.
    pub(crate) fn int(&self, ty: BasicTypeEnum<'ctx>, value: i64) -> Val<'ctx> {
        match ty {
            BasicTypeEnum::VectorType(ty) => {
                let elem = self.int(ty.get_element_type(), value).into_int_value();
                VectorType::const_vector(&vec![elem; ty.get_size() as usize]).into()
            }
            ty => ty.into_int_type().const_int(value as u64, true).into(),
        }
    }

    /// A constant of a floating-point type, or a vector of it.
    pub(crate) fn float(&self, ty: BasicTypeEnum<'ctx>, value: f64) -> Val<'ctx> {
        match ty {
            BasicTypeEnum::VectorType(ty) => {
                let elem = self.float(ty.get_element_type(), value).into_float_value();
                VectorType::const_vector(&vec![elem; ty.get_size() as usize]).into()
            }
            ty => ty.into_float_type().const_float(value).into(),
        }
    }

    /// `elem`, or a vector of it with as many lanes as `shape`.
    pub(crate) fn shaped(
        &self,
        shape: BasicTypeEnum<'ctx>,
        elem: BasicTypeEnum<'ctx>,
    ) -> BasicTypeEnum<'ctx> {
        match shape {
            BasicTypeEnum::VectorType(vector) => self.vector_type(elem, vector.get_size()),
            _ => elem,
        }
    }

    /// A vector of numbers.
    pub(crate) fn vector_type(&self, elem: BasicTypeEnum<'ctx>, lanes: u32) -> BasicTypeEnum<'ctx> {
        match elem {
            BasicTypeEnum::IntType(ty) => basic(ty.vec_type(lanes)),
            BasicTypeEnum::FloatType(ty) => basic(ty.vec_type(lanes)),
            _ => unreachable!("lanes hold numbers"),
        }
    }

    /// A vector with the same number in all lanes.
    pub(crate) fn splat(&self, value: Val<'ctx>, lanes: u32) -> Val<'ctx> {
        let ty = self.vector_type(value.get_type(), lanes).into_vector_type();
        let first = self.ctx.i32_type().const_zero();
        let one = ok(self
            .builder
            .build_insert_element(ty.get_poison(), value, first, ""));
        let all = self.ctx.i32_type().vec_type(lanes).const_zero();
        ok(self
            .builder
            .build_shuffle_vector(one, ty.get_poison(), all, ""))
        .into()
    }

    /// `0, 1, 2, ..` as `i32`.
    pub(crate) fn lane_numbers(&self, lanes: u32) -> Val<'ctx> {
        let ty = self.ctx.i32_type();
        let numbers: Vec<_> = (0..lanes).map(|k| ty.const_int(k.into(), false)).collect();
        VectorType::const_vector(&numbers).into()
    }

    /// Some value, where `value` may be none.
    pub(crate) fn freeze(&self, value: Val<'ctx>) -> Val<'ctx> {
        // SAFETY: the builder stands in a block, and the value is live.
        unsafe {
            Val::new(LLVMBuildFreeze(
                self.builder.as_mut_ptr(),
                value.as_value_ref(),
                c"".as_ptr(),
            ))
        }
    }

    // Places.

    pub(crate) fn block(&self, func: FunctionValue<'ctx>, name: &str) -> BasicBlock<'ctx> {
        self.ctx.append_basic_block(func, name)
    }

    pub(crate) fn at(&self, block: BasicBlock<'ctx>) {
        self.builder.position_at_end(block);
    }

    /// Before an instruction.
    pub(crate) fn before(&self, inst: InstructionValue<'ctx>) {
        self.builder.position_before(&inst);
    }

    /// Before the first instruction of a block.
    pub(crate) fn at_begin(&self, block: BasicBlock<'ctx>) {
        match block.get_first_instruction() {
            Some(first) => self.builder.position_before(&first),
            None => self.at(block),
        }
    }

    pub(crate) fn current(&self) -> BasicBlock<'ctx> {
        self.builder
            .get_insert_block()
            .expect("the builder stands in a block")
    }

    // Control.

    pub(crate) fn br(&self, to: BasicBlock<'ctx>) -> InstructionValue<'ctx> {
        ok(self.builder.build_unconditional_branch(to))
    }

    pub(crate) fn cond_br(
        &self,
        cond: Val<'ctx>,
        then: BasicBlock<'ctx>,
        otherwise: BasicBlock<'ctx>,
    ) -> InstructionValue<'ctx> {
        let cond = cond.into_int_value();
        ok(self.builder.build_conditional_branch(cond, then, otherwise))
    }

    /// A branch of which `then` is nearly always taken.
    pub(crate) fn likely_br(
        &self,
        cond: Val<'ctx>,
        then: BasicBlock<'ctx>,
        otherwise: BasicBlock<'ctx>,
    ) {
        let branch = self.cond_br(cond, then, otherwise);
        let weight = |n: u64| self.ctx.i32_type().const_int(n, false);
        let weights = self.node(&[
            self.string("branch_weights").into(),
            weight(1 << 20).into(),
            weight(1).into(),
        ]);
        self.mark(branch, "prof", weights);
    }

    pub(crate) fn ret(&self, value: Option<&dyn BasicValue<'ctx>>) {
        ok(self.builder.build_return(value));
    }

    pub(crate) fn phi(&self, ty: BasicTypeEnum<'ctx>) -> PhiValue<'ctx> {
        ok(self.builder.build_phi(ty, ""))
    }

    // Arithmetic.

    /// The vector with one element replaced.
    pub(crate) fn insert(&self, vector: Val<'ctx>, value: Val<'ctx>, at: u32) -> Val<'ctx> {
        let at = self.ctx.i32_type().const_int(u64::from(at), false);
        let vector = vector.into_vector_value();
        ok(self.builder.build_insert_element(vector, value, at, "")).into()
    }

    /// The number in a lane of a vector.
    pub(crate) fn extract(&self, vector: Val<'ctx>, at: u32) -> Val<'ctx> {
        let at = self.ctx.i32_type().const_int(u64::from(at), false);
        let vector = vector.into_vector_value();
        ok(self.builder.build_extract_element(vector, at, ""))
    }

    pub(crate) fn op(&self, op: Opcode, a: Val<'ctx>, b: Val<'ctx>) -> Val<'ctx> {
        ok(self.builder.build_binop(op, a, b, ""))
    }

    /// Arithmetic on signed integers that does not overflow.
    pub(crate) fn nsw(&self, op: Opcode, a: Val<'ctx>, b: Val<'ctx>) -> Val<'ctx> {
        let result = self.op(op, a, b);
        if let Some(inst) = result.as_instruction_value() {
            // Constants fold, and then there is no instruction to mark.
            let _ = inst.set_no_signed_wrap_flag(true);
        }
        result
    }

    /// A sum of unsigned integers that does not overflow.
    pub(crate) fn nuw_add(&self, a: Val<'ctx>, b: Val<'ctx>) -> Val<'ctx> {
        let (a, b) = (a.into_int_value(), b.into_int_value());
        ok(self.builder.build_int_nuw_add(a, b, "")).into()
    }

    /// Whether a counter has not come to its end.
    pub(crate) fn less(&self, signed: bool, counter: Val<'ctx>, end: Val<'ctx>) -> Val<'ctx> {
        let less = if signed {
            IntPredicate::SLT
        } else {
            IntPredicate::ULT
        };
        self.icmp(less, counter, end)
    }

    /// The next value of a counter that is less than its end, so that it does not overflow.
    pub(crate) fn count_on(&self, signed: bool, counter: Val<'ctx>) -> Val<'ctx> {
        let one = self.int(counter.get_type(), 1);
        if signed {
            self.nsw(Opcode::Add, counter, one)
        } else {
            self.nuw_add(counter, one)
        }
    }

    /// Floating-point arithmetic.
    pub(crate) fn fop(
        &self,
        op: Opcode,
        a: Val<'ctx>,
        b: Val<'ctx>,
        flags: FastMathFlags,
    ) -> Val<'ctx> {
        with_flags(self.op(op, a, b), flags)
    }

    pub(crate) fn fneg(&self, a: Val<'ctx>, flags: FastMathFlags) -> Val<'ctx> {
        let result = match a {
            Val::VectorValue(a) => ok(self.builder.build_float_neg(a, "")).into(),
            a => ok(self.builder.build_float_neg(a.into_float_value(), "")).into(),
        };
        with_flags(result, flags)
    }

    pub(crate) fn cast(&self, op: Opcode, a: Val<'ctx>, to: BasicTypeEnum<'ctx>) -> Val<'ctx> {
        ok(self.builder.build_cast(op, a, to, ""))
    }

    pub(crate) fn icmp(&self, op: IntPredicate, a: Val<'ctx>, b: Val<'ctx>) -> Val<'ctx> {
        match (a, b) {
            (Val::VectorValue(a), Val::VectorValue(b)) => {
                ok(self.builder.build_int_compare(op, a, b, "")).into()
            }
            (a, b) => {
                let (a, b) = (a.into_int_value(), b.into_int_value());
                ok(self.builder.build_int_compare(op, a, b, "")).into()
            }
        }
    }

    pub(crate) fn fcmp(&self, op: FloatPredicate, a: Val<'ctx>, b: Val<'ctx>) -> Val<'ctx> {
        match (a, b) {
            (Val::VectorValue(a), Val::VectorValue(b)) => {
                ok(self.builder.build_float_compare(op, a, b, "")).into()
            }
            (a, b) => {
                let (a, b) = (a.into_float_value(), b.into_float_value());
                ok(self.builder.build_float_compare(op, a, b, "")).into()
            }
        }
    }

    pub(crate) fn select(&self, cond: Val<'ctx>, a: Val<'ctx>, b: Val<'ctx>) -> Val<'ctx> {
        match cond {
            Val::VectorValue(cond) => ok(self.builder.build_select(cond, a, b, "")),
            cond => ok(self.builder.build_select(cond.into_int_value(), a, b, "")),
        }
    }

    pub(crate) fn not(&self, a: Val<'ctx>) -> Val<'ctx> {
        self.op(Opcode::Xor, a, self.int(a.get_type(), -1))
    }

    pub(crate) fn is_zero(&self, a: Val<'ctx>) -> Val<'ctx> {
        self.icmp(IntPredicate::EQ, a, zero(a.get_type()))
    }

    pub(crate) fn and(&self, a: Val<'ctx>, b: Val<'ctx>) -> Val<'ctx> {
        self.op(Opcode::And, a, b)
    }

    pub(crate) fn xor(&self, a: Val<'ctx>, b: Val<'ctx>) -> Val<'ctx> {
        self.op(Opcode::Xor, a, b)
    }

    pub(crate) fn or(&self, a: Val<'ctx>, b: Val<'ctx>) -> Val<'ctx> {
        self.op(Opcode::Or, a, b)
    }

    /// An intrinsic overloaded on `types`.
    ///
    /// # Panics
    /// If the target cannot select it: LLVM would end the process.
    pub(crate) fn intrinsic(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'ctx>],
        args: &[Val<'ctx>],
        flags: FastMathFlags,
    ) -> Val<'ctx> {
        assert!(
            self.target.allows(name),
            "{} has no `{name}`",
            self.target.triple
        );
        let result = self.call(self.declared(name, types), args);
        with_flags(result.expect("the intrinsic has a result"), flags)
    }

    /// As `intrinsic`, of one without a result.
    pub(crate) fn effect_intrinsic(&self, name: &str, args: &[Val<'ctx>]) {
        assert!(
            self.target.allows(name),
            "{} has no `{name}`",
            self.target.triple
        );
        self.call(self.declared(name, &[]), args);
    }

    fn declared(&self, name: &str, types: &[BasicTypeEnum<'ctx>]) -> FunctionValue<'ctx> {
        let intrinsic = Intrinsic::find(name).expect("LLVM has the intrinsic");
        intrinsic
            .get_declaration(self.module, types)
            .expect("the intrinsic is overloaded on these types")
    }

    /// Tells LLVM that something is true.
    pub(crate) fn assume(&self, truth: Val<'ctx>) {
        self.call(self.declared("llvm.assume", &[]), &[truth]);
    }

    pub(crate) fn call(&self, func: FunctionValue<'ctx>, args: &[Val<'ctx>]) -> Option<Val<'ctx>> {
        let args: Vec<BasicMetadataValueEnum<'ctx>> = args.iter().map(|&a| a.into()).collect();
        ok(self.builder.build_call(func, &args, ""))
            .try_as_basic_value()
            .basic()
    }

    pub(crate) fn call_pointer(
        &self,
        ty: FunctionType<'ctx>,
        func: Val<'ctx>,
        args: &[Val<'ctx>],
    ) -> Option<Val<'ctx>> {
        let args: Vec<BasicMetadataValueEnum<'ctx>> = args.iter().map(|&a| a.into()).collect();
        let func = func.into_pointer_value();
        ok(self.builder.build_indirect_call(ty, func, &args, ""))
            .try_as_basic_value()
            .basic()
    }

    pub(crate) fn member(&self, aggregate: Val<'ctx>, index: u32) -> Val<'ctx> {
        let aggregate = aggregate.into_struct_value();
        ok(self.builder.build_extract_value(aggregate, index, ""))
    }

    pub(crate) fn with_member(
        &self,
        aggregate: Val<'ctx>,
        index: u32,
        value: Val<'ctx>,
    ) -> Val<'ctx> {
        let aggregate = aggregate.into_struct_value();
        ok(self.builder.build_insert_value(aggregate, value, index, "")).as_basic_value_enum()
    }

    // Memory.

    pub(crate) fn alloca(&self, ty: BasicTypeEnum<'ctx>) -> PointerValue<'ctx> {
        ok(self.builder.build_alloca(ty, ""))
    }

    pub(crate) fn load(
        &self,
        ty: BasicTypeEnum<'ctx>,
        place: Val<'ctx>,
    ) -> (Val<'ctx>, InstructionValue<'ctx>) {
        let value = ok(self.builder.build_load(ty, place.into_pointer_value(), ""));
        let inst = value
            .as_instruction_value()
            .expect("a load is an instruction");
        (value, inst)
    }

    /// Reads a number that other threads may change, in memory each time.
    pub(crate) fn load_shared(&self, ty: BasicTypeEnum<'ctx>, place: Val<'ctx>) -> Val<'ctx> {
        let (value, inst) = self.load(ty, place);
        inst.set_atomic_ordering(AtomicOrdering::Monotonic)
            .expect("loads may be atomic");
        value
    }

    /// Reads a number that other threads may change in one piece; LLVM may use what it read before.
    pub(crate) fn load_unordered(
        &self,
        ty: BasicTypeEnum<'ctx>,
        place: Val<'ctx>,
    ) -> (Val<'ctx>, InstructionValue<'ctx>) {
        let (value, inst) = self.load(ty, place);
        inst.set_atomic_ordering(AtomicOrdering::Unordered)
            .expect("loads may be atomic");
        (value, inst)
    }

    pub(crate) fn store(&self, place: Val<'ctx>, value: Val<'ctx>) -> InstructionValue<'ctx> {
        ok(self.builder.build_store(place.into_pointer_value(), value))
    }

    /// Hints that the cache line of `place` will be read; GPUs hide latencies themselves.
    pub(crate) fn prefetch(&self, place: Val<'ctx>) {
        if self.target.grid {
            return;
        }
        let intrinsic = Intrinsic::find("llvm.prefetch").expect("LLVM has the intrinsic");
        let func = intrinsic
            .get_declaration(self.module, &[place.get_type()])
            .expect("the intrinsic is overloaded on the pointer");
        // A read, with high locality (all cache levels), of the data cache.
        let hints = [0, 3, 1].map(|k| self.int(basic(self.ctx.i32_type()), k));
        self.call(func, &[place, hints[0], hints[1], hints[2]]);
    }

    pub(crate) fn memset_zero(&self, place: Val<'ctx>, bytes: Val<'ctx>, align: u32) {
        let zero = self.ctx.i8_type().const_zero();
        let bytes = bytes.into_int_value();
        ok(self
            .builder
            .build_memset(place.into_pointer_value(), align, zero, bytes));
    }

    pub(crate) fn memcpy(&self, to: Val<'ctx>, from: Val<'ctx>, bytes: Val<'ctx>, align: u32) {
        let [to, from] = [to, from].map(|place| place.into_pointer_value());
        let bytes = bytes.into_int_value();
        ok(self.builder.build_memcpy(to, align, from, align, bytes));
    }

    /// The address `bytes` behind `base`, in the same object.
    pub(crate) fn offset(&self, base: Val<'ctx>, bytes: Val<'ctx>) -> Val<'ctx> {
        let (base, bytes) = (base.into_pointer_value(), bytes.into_int_value());
        let ty = self.ctx.i8_type();
        // SAFETY: building an instruction touches no memory; that the address lies in the object
        // is what indices within bounds mean.
        ok(unsafe { self.builder.build_in_bounds_gep(ty, base, &[bytes], "") }).into()
    }

    /// The address `bytes` behind `base`, in another object.
    pub(crate) fn elsewhere(&self, base: Val<'ctx>, bytes: Val<'ctx>) -> Val<'ctx> {
        let (base, bytes) = (base.into_pointer_value(), bytes.into_int_value());
        let ty = self.ctx.i8_type();
        // SAFETY: building an instruction touches no memory; nothing is claimed of the address.
        ok(unsafe { self.builder.build_gep(ty, base, &[bytes], "") }).into()
    }

    /// An atomic read-modify-write; the result is the old value. What is exchanged may be a lock, so
    /// that orders what other threads see.
    pub(crate) fn rmw(
        &self,
        op: LLVMAtomicRMWBinOp,
        place: Val<'ctx>,
        value: Val<'ctx>,
    ) -> Val<'ctx> {
        let ordering = match op {
            LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpXchg => {
                LLVMAtomicOrdering::LLVMAtomicOrderingAcquireRelease
            }
            _ => LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic,
        };
        // SAFETY: the builder stands in a block; place and value are live and fit the operation.
        unsafe {
            Val::new(LLVMBuildAtomicRMW(
                self.builder.as_mut_ptr(),
                op,
                place.as_value_ref(),
                value.as_value_ref(),
                ordering,
                0,
            ))
        }
    }

    /// Adds to a number that all threads change; the result is the old one.
    pub(crate) fn add_shared(&self, place: Val<'ctx>, value: Val<'ctx>) -> Val<'ctx> {
        self.rmw(LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAdd, place, value)
    }

    /// Stores `new` if `place` holds `expected`, both integers; the result is the old value and
    /// whether it was stored. `publish` orders it with what other threads see.
    pub(crate) fn cmpxchg(
        &self,
        place: Val<'ctx>,
        expected: Val<'ctx>,
        new: Val<'ctx>,
        publish: bool,
    ) -> (Val<'ctx>, Val<'ctx>) {
        let success = if publish {
            LLVMAtomicOrdering::LLVMAtomicOrderingAcquireRelease
        } else {
            LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic
        };
        // SAFETY: as in `rmw`.
        let pair = unsafe {
            Val::new(LLVMBuildAtomicCmpXchg(
                self.builder.as_mut_ptr(),
                place.as_value_ref(),
                expected.as_value_ref(),
                new.as_value_ref(),
                success,
                LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic,
                0,
            ))
        };
        (self.member(pair, 0), self.member(pair, 1))
    }

    // Marks.

    pub(crate) fn mark(&self, inst: InstructionValue<'ctx>, kind: &str, node: MetadataValue<'ctx>) {
        inst.set_metadata(node, self.ctx.get_kind_id(kind))
            .expect("the metadata is a node");
    }

    pub(crate) fn node(&self, parts: &[BasicMetadataValueEnum<'ctx>]) -> MetadataValue<'ctx> {
        self.ctx.metadata_node(parts)
    }

    pub(crate) fn string(&self, text: &str) -> MetadataValue<'ctx> {
        self.ctx.metadata_string(text)
    }

    pub(crate) fn attribute(&self, func: FunctionValue<'ctx>, name: &str) {
        let kind = Attribute::get_named_enum_kind_id(name);
        let attribute = self.ctx.create_enum_attribute(kind, 0);
        func.add_attribute(AttributeLoc::Function, attribute);
    }

    pub(crate) fn text_attribute(&self, func: FunctionValue<'ctx>, name: &str, value: &str) {
        let attribute = self.ctx.create_string_attribute(name, value);
        func.add_attribute(AttributeLoc::Function, attribute);
    }
}

fn with_flags<'ctx>(value: Val<'ctx>, flags: FastMathFlags) -> Val<'ctx> {
    if !flags.is_empty()
        && let Some(inst) = value.as_instruction_value()
    {
        // Only floating-point instructions take flags.
        let _ = inst.set_fast_math_flags(flags);
    }
    value
}

/// Adds a phi's value from a block.
pub(crate) fn incoming<'ctx>(phi: PhiValue<'ctx>, value: Val<'ctx>, from: BasicBlock<'ctx>) {
    phi.add_incoming(&[(&value, from)]);
}

/// The zero of a type.
pub(crate) fn zero<'ctx>(ty: BasicTypeEnum<'ctx>) -> Val<'ctx> {
    ty.const_zero()
}

/// Any value of a type.
pub(crate) fn undef<'ctx>(ty: BasicTypeEnum<'ctx>) -> Val<'ctx> {
    match ty {
        BasicTypeEnum::IntType(t) => t.get_undef().into(),
        BasicTypeEnum::FloatType(t) => t.get_undef().into(),
        BasicTypeEnum::PointerType(t) => t.get_undef().into(),
        BasicTypeEnum::StructType(t) => t.get_undef().into(),
        BasicTypeEnum::ArrayType(t) => t.get_undef().into(),
        BasicTypeEnum::VectorType(t) => t.get_undef().into(),
        BasicTypeEnum::ScalableVectorType(t) => t.get_undef().into(),
    }
}

/// `ty` as a basic type.
pub(crate) fn basic<'ctx>(ty: impl BasicType<'ctx>) -> BasicTypeEnum<'ctx> {
    ty.as_basic_type_enum()
}
