//! Random numbers: counter-based, so that they depend on the iteration and not on the thread.

use aerogel_base::ScalarType;
use aerogel_ir::Value;
use aerogel_runtime::abi::offset;
use inkwell::types::BasicTypeEnum;
use inkwell::values::FastMathFlags;

use crate::builder::{Opcode, Val, basic};
use crate::context::FuncCx;
use crate::math::Arith;
use crate::types::scalar;

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Sets the random state with which iteration `linear` begins.
    pub(crate) fn seed(&mut self, linear: Val<'ctx>) {
        let stream = self.task.as_ref().expect("tasks draw").stream;
        let state = self.first_state(stream, linear);
        let place: Val<'ctx> = self.random.expect("the task has a state").into();
        self.b.store(place, state);
        if let Some(place) = self.linear {
            self.b.store(place.into(), linear);
        }
    }

    /// The state with which this iteration begins in a loop with another number.
    pub(crate) fn random_state(&mut self, stream: u32, iteration: Option<Value>) -> Val<'ctx> {
        let linear = match iteration {
            Some(iteration) => self.index(iteration),
            None => {
                let place: Val<'ctx> = self.linear.expect("the task keeps its index").into();
                self.b.load(basic(self.b.i64_type()), place).0
            }
        };
        self.first_state(u64::from(stream), linear)
    }

    /// `aerogel_ir::eval::random_state`.
    fn first_state(&mut self, stream: u64, linear: Val<'ctx>) -> Val<'ctx> {
        let seed = self.context_field(offset::SEED);
        let salt = self
            .b
            .i64((stream + 1).wrapping_mul(0xd1b5_4a32_d192_ed03) as i64);
        let key = self.b.op(Opcode::Xor, seed, salt);
        let spread = self.b.i64(0x8cb9_2ba7_2f3d_8dd7_u64 as i64);
        let spread = self.b.op(Opcode::Mul, linear, spread);
        let mixed = self.b.op(Opcode::Xor, key, spread);
        self.random_step(mixed).1
    }

    /// The next state, and 64 random bits: `aerogel_ir::eval::random_step`.
    pub(crate) fn random_step(&self, state: Val<'ctx>) -> (Val<'ctx>, Val<'ctx>) {
        let b = &self.b;
        let number = |v: u64| b.int(state.get_type(), v as i64);
        let state = b.op(Opcode::Add, state, number(0x9e37_79b9_7f4a_7c15));
        let fold = |z, shift: u64| b.op(Opcode::Xor, z, b.op(Opcode::LShr, z, number(shift)));
        let z = b.op(Opcode::Mul, fold(state, 30), number(0xbf58_476d_1ce4_e5b9));
        let z = b.op(Opcode::Mul, fold(z, 27), number(0x94d0_49bb_1331_11eb));
        (state, fold(z, 31))
    }

    /// A random value: `aerogel_ir::eval::random_value`.
    pub(crate) fn draw(&mut self, ty: ScalarType) -> Val<'ctx> {
        let place: Val<'ctx> = self.random.expect("the task has a state").into();
        let (state, _) = self.b.load(basic(self.b.i64_type()), place);
        let (state, random) = self.random_step(state);
        self.b.store(place, state);
        self.random_value(ty, random)
    }

    /// A value of type `ty` from 64 random bits, in one lane or several.
    pub(crate) fn random_value(&self, ty: ScalarType, random: Val<'ctx>) -> Val<'ctx> {
        let b = &self.b;
        let shape = random.get_type();
        let of = |ty| b.shaped(shape, scalar(b.ctx, ty));
        let lanes = match shape {
            BasicTypeEnum::VectorType(vector) => Some(vector.get_size()),
            _ => None,
        };
        let none = FastMathFlags::empty();
        let high = |shift: i64| b.op(Opcode::LShr, random, b.int(shape, shift));
        let unit = |shift: i64, scale: f64| {
            let wide = of(ScalarType::F64);
            let number = b.cast(Opcode::UIToFP, high(shift), wide);
            b.fop(Opcode::FMul, number, b.float(wide, scale.recip()), none)
        };
        match ty {
            ScalarType::U1 => b.cast(Opcode::Trunc, high(63), of(ty)),
            ScalarType::F16 | ScalarType::BF16 => {
                let wide = Arith {
                    b,
                    ty: ScalarType::F64,
                    lanes,
                    flags: self.flags,
                };
                let number = if ty == ScalarType::F16 {
                    unit(53, 2048.0)
                } else {
                    unit(56, 256.0)
                };
                wide.cast(number, ty)
            }
            ScalarType::F32 => {
                // 24 bits fit an i32, whose conversion every machine has.
                let bits = b.cast(Opcode::Trunc, high(40), of(ScalarType::I32));
                let number = b.cast(Opcode::SIToFP, bits, of(ty));
                let scale = b.float(of(ty), 1.0 / 16_777_216.0);
                b.fop(Opcode::FMul, number, scale, none)
            }
            ScalarType::F64 => unit(11, 9_007_199_254_740_992.0),
            _ => b.extend(ty, random, ty.bits()),
        }
    }
}
