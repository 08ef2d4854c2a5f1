//! The functions of lowered IR as LLVM IR, instruction by instruction.

use aerogel_base::{ScalarType, Span};
use aerogel_ir::{BinaryOp, Function, Inst, Op, Value};
use aerogel_runtime::abi::offset;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{FastMathFlags, FunctionValue};

use crate::builder::{Builder, Opcode, Val, basic, undef};
use crate::context::{FuncCx, ModuleCx, Origin};
use crate::elementwise::Elementwise;
use crate::math::{Arith, SUM};

impl<'c, 'a, 'ctx> FuncCx<'c, 'a, 'ctx> {
    /// Lowers one instruction, but for those that end a region.
    pub(crate) fn inst(&mut self, inst: Inst) {
        let func = self.func;
        let data = &func.insts[inst];
        self.locate(data.span);
        let result = data.results.first().copied();
        let made = match &data.op {
            Op::Const { value } => Some(self.b.constant(*value)),
            Op::Undef {} => result.map(|r| undef(self.llvm_ty(r))),
            Op::Arg { arg } => {
                // A tensor argument has been taken apart: it gives one result for each scalar.
                let first = self.first_slot(*arg);
                for (k, &scalar) in data.results.iter().enumerate() {
                    let ty = func.ty(scalar).scalar();
                    let ty = ty.expect("tensor arguments are taken apart before");
                    self.values[scalar] = Some(self.slot(first + k, Some(ty)));
                }
                None
            }
            Op::ArrayShape { array, axis } => {
                let extent = self.array_extent(*array, *axis);
                // In the entry block, so that every use sees one value.
                let ty = basic(self.b.ctx.i32_type());
                Some(self.in_entry(|s| s.b.cast(Opcode::Trunc, extent, ty)))
            }
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Compare { .. }
            | Op::Select { .. }
            | Op::Fma { .. }
            | Op::MulAdd { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. } => {
                let known = result.and_then(|result| self.outcomes.get(&result));
                if let Some(&outcome) = known {
                    self.values[result.expect("it has an outcome")] = Some(self.outcome(outcome));
                    return;
                }
                let flags = self.flags_of(inst, self.flags);
                let allowed = std::mem::replace(&mut self.flags, flags);
                let made = self.elementwise(inst);
                self.flags = allowed;
                Some(made)
            }
            Op::Local {} => Some(self.local(result.expect("a local has a result"))),
            Op::Shared {} => Some(self.shared(result.expect("a storage is a result"))),
            Op::Threads { op, args } => self.threads(*op, args),
            Op::Buffer {} => Some(self.buffer(inst)),
            Op::Reserve { buffer, count } => {
                let made = self.reserve(*buffer, *count);
                self.define(&data.results, &made);
                None
            }
            Op::RoomAt { room, index } => Some(self.room_at(*room, *index)),
            Op::TileProduct { .. } => {
                self.tile_product(&data.op);
                None
            }
            Op::ElemRef { base, index } => Some(self.elem_ref(*base, index)),
            Op::ArrayAt { array, indices } => Some(self.array_at(*array, indices)),
            Op::TempAt { offset: at } => {
                let temps = self.context_field(offset::TEMPS);
                Some(self.b.offset(temps, self.b.i64(i64::from(*at))))
            }
            Op::Load { place } => {
                let loaded = self.load(*place);
                let result = self.func.insts[inst].results[0];
                Some(self.add_up(result, loaded))
            }
            Op::Prefetch { place } => {
                self.b.prefetch(self.value(*place));
                None
            }
            Op::AwaitTurn {} => {
                self.call_host(offset::HOST_TURN, None, &[]);
                None
            }
            Op::Store { place, value } => {
                self.store(*place, *value);
                None
            }
            Op::Atomic { op, place, value } => {
                let flags = self.flags_of(inst, self.flags);
                let allowed = std::mem::replace(&mut self.flags, flags);
                let made = self.atomic(*op, *place, *value);
                self.flags = allowed;
                Some(made)
            }
            Op::AtomicAdds { places, values } => {
                self.atomic_adds(places, values);
                None
            }
            Op::Cas {
                place,
                expected,
                value,
            } => Some(self.cas(*place, *expected, *value)),
            Op::Update { place, body } => Some(self.update(*place, *body)),
            Op::Print { args, .. } | Op::Warn { args, .. } => {
                self.tell(offset::HOST_PRINT, inst, args);
                None
            }
            Op::Note { args, .. } => {
                self.tell(offset::HOST_NOTE, inst, args);
                None
            }
            Op::Assert { cond, args, .. } => {
                self.assert(inst, *cond, args);
                None
            }
            Op::RandomState { stream, iteration } => {
                Some(self.random_state(*stream, iteration.first().copied()))
            }
            Op::Random {} => {
                let result = result.expect("a random number is a result");
                Some(self.draw(func.elem(result)))
            }
            Op::If {
                cond,
                then,
                otherwise,
            } => return self.branch(inst, *cond, *then, *otherwise),
            Op::For {
                lo,
                hi,
                step,
                init,
                body,
            } => return self.counted_loop(inst, [*lo, *hi, *step], init, *body),
            Op::While { init, cond, body } => return self.while_loop(inst, init, *cond, *body),
            Op::Each { body } => return self.each(*body),
            Op::Call { func: callee, args } => return self.call(inst, *callee, args),
            Op::Yield { .. } | Op::Break { .. } | Op::Continue { .. } | Op::Return { .. } => {
                unreachable!("terminators end their region")
            }
            Op::Node(op) => return self.node_op(inst, op),
            Op::Clear {
                tree,
                address,
                bytes,
            } => {
                let [tree, address, bytes] = [tree, address, bytes].map(|&v| self.value(v));
                self.clear(tree, address, bytes);
                None
            }
            Op::PlaceAt { address } => {
                let ty = basic(self.b.ptr_type());
                Some(self.b.cast(Opcode::IntToPtr, self.value(*address), ty))
            }
            Op::Grow {
                tree,
                control,
                element,
            } => Some(self.grow([*tree, *control, *element])),
            Op::TensorMake { .. }
            | Op::TensorGet { .. }
            | Op::TensorSet { .. }
            | Op::MatMul { .. }
            | Op::StructMake { .. }
            | Op::StructGet { .. }
            | Op::StructSet { .. }
            | Op::MemberRef { .. }
            | Op::FieldAt { .. }
            | Op::Cell(_)
            | Op::Parallel { .. }
            | Op::ParallelCells { .. }
            | Op::StopGradient { .. }
            | Op::Task { .. } => unreachable!("not legal inside a task at stage Lowered"),
        };
        if let (Some(result), Some(made)) = (result, made) {
            self.values[result] = Some(made);
        }
    }

    pub(crate) fn define(&mut self, results: &[Value], values: &[Val<'ctx>]) {
        for (&result, &value) in results.iter().zip(values) {
            self.values[result] = Some(value);
        }
    }

    /// What LLVM may do with an instruction, where `allowed` holds for all.
    /// What is built from here on comes from this place of the user's source.
    pub(crate) fn locate(&self, span: Span) {
        // Code of the device's own functions takes the location of their calls.
        if let Some(lines) = self
            .cx
            .lines
            .as_ref()
            .filter(|_| self.origin == Origin::User)
        {
            self.b.locate(lines.location(self.cx.ctx, span));
        }
    }

    pub(crate) fn flags_of(&self, inst: Inst, allowed: FastMathFlags) -> FastMathFlags {
        if self.exact[inst] {
            return FastMathFlags::empty();
        }
        let mut flags = allowed;
        if self.accumulations.regroup[inst] {
            flags |= SUM;
        }
        if self.accumulations.fuse[inst] {
            flags |= FastMathFlags::AllowContract;
        }
        flags
    }
}

impl<'a, 'ctx> Elementwise<'a, 'ctx> for FuncCx<'_, 'a, 'ctx> {
    fn func(&self) -> &'a Function {
        self.func
    }

    fn builder(&self) -> &Builder<'a, 'ctx> {
        &self.b
    }

    fn operand(&self, value: Value) -> Val<'ctx> {
        self.value(value)
    }

    fn type_of(&self, value: Value) -> BasicTypeEnum<'ctx> {
        self.llvm_ty(value)
    }

    fn arith(&self, ty: ScalarType) -> Arith<'_, 'a, 'ctx> {
        self.arith(ty)
    }

    fn device_math(&mut self, name: &str, ty: ScalarType, args: &[Val<'ctx>]) -> Option<Val<'ctx>> {
        self.device_math(name, ty, args)
    }

    fn binary(&mut self, op: BinaryOp, lhs: Value, rhs: Value) -> Val<'ctx> {
        let ty = self.func.elem(lhs);
        let (x, y) = (self.value(lhs), self.value(rhs));
        if op == BinaryOp::Pow && ty.is_int() {
            let func = self.cx.power(ty);
            return self.b.call(func, &[x, y]).expect("a power is a value");
        }
        if let Some(result) = self.device_math(op.name(), ty, &[x, y]) {
            return result;
        }
        self.arith(ty).binary(op, x, y)
    }
}

impl<'ctx> ModuleCx<'_, 'ctx> {
    /// The function that raises integers of a type to a power.
    fn power(&mut self, ty: ScalarType) -> FunctionValue<'ctx> {
        let name = format!("pow_{ty}");
        if let Some(made) = self.llvm.get_function(&name) {
            return made;
        }
        crate::power::lower(self, &name, ty)
    }
}
