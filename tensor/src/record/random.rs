//! Random numbers by counting: a number is a function of a seed and an index, whoever computes it.

use aerogel_base::ScalarType;
use aerogel_ir::BinaryOp;

use crate::ir::{Buffer, Dim, Expr};

use super::{Recorded, Recording};

/// How far Threefry-2x32 turns in each of its rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
const TURNS: [u32; 8] = [13, 15, 26, 6, 17, 29, 16, 24];
const ROUNDS: usize = 20;

impl Recording {
    /// 32 random bits for each element. `seed` holds two `u32`.
    ///
    /// # Errors
    /// If it does not.
    pub fn random_bits(&mut self, seed: Buffer, shape: &[Dim]) -> Recorded {
        if self.ty(seed) != ScalarType::U32 || self.rank(seed) != 1 {
            return self.types_error("random", &[seed], "a seed of two `u32`");
        }
        let (length, two) = (self.shape(seed)[0], self.program.size(2));
        let message = "a seed of {} elements, where {} are needed";
        if !self.agree(length, two, message) {
            return self.types_error("random", &[seed], "a seed of two `u32`");
        }
        let key = [0, 1].map(|k| {
            let at = self.program.exprs.i32(k);
            self.element(seed, vec![at])
        });
        let axes = self.program.axes(shape.len());
        let n = self.product(shape);
        let few = self.program.const_dim(n).is_some_and(|n| n <= 1 << 32);
        let counter = match few {
            // What goes beyond an `i32` is a `u32` with the same bits.
            true => {
                let linear = self.linear(shape, &axes);
                [
                    self.program.exprs.cast(linear, ScalarType::U32),
                    self.word(0),
                ]
            }
            false => {
                let linear = self.linear_in(ScalarType::U64, shape, &axes);
                let shift = self.program.exprs.int(ScalarType::U64, 32);
                let high = self.program.exprs.binary(BinaryOp::UShr, linear, shift);
                [linear, high].map(|e| self.program.exprs.cast(e, ScalarType::U32))
            }
        };
        let value = self.threefry(key, counter);
        Ok(self.map(shape, value))
    }

    fn word(&mut self, n: u32) -> Expr {
        self.program.exprs.int(ScalarType::U32, i128::from(n))
    }

    /// The first word of Threefry-2x32 of a counter, its low word first.
    fn threefry(&mut self, key: [Expr; 2], counter: [Expr; 2]) -> Expr {
        let parity = self.word(0x1bd1_1bda);
        let mixed = self.program.exprs.binary(BinaryOp::Xor, key[0], key[1]);
        let mixed = self.program.exprs.binary(BinaryOp::Xor, mixed, parity);
        let keys = [key[0], key[1], mixed];
        let mut x = [0, 1].map(|k| self.add(counter[k], keys[k]));
        for round in 0..ROUNDS {
            x[0] = self.add(x[0], x[1]);
            let [left, right] = [TURNS[round % 8], 32 - TURNS[round % 8]].map(|n| self.word(n));
            let high = self.program.exprs.binary(BinaryOp::Shl, x[1], left);
            let low = self.program.exprs.binary(BinaryOp::UShr, x[1], right);
            let turned = self.program.exprs.binary(BinaryOp::Or, high, low);
            x[1] = self.program.exprs.binary(BinaryOp::Xor, turned, x[0]);
            if round % 4 == 3 {
                let n = round / 4 + 1;
                let count = self.word(n as u32);
                x[0] = self.add(x[0], keys[n % 3]);
                let second = self.add(keys[(n + 1) % 3], count);
                x[1] = self.add(x[1], second);
            }
        }
        x[0]
    }

    /// Random bits as floats from 0 (inclusive) to 1 (exclusive), equally far apart.
    ///
    /// # Errors
    /// If they are not `u32`, or `ty` is not a float.
    pub fn uniform(&mut self, bits: Buffer, ty: ScalarType) -> Recorded {
        if self.ty(bits) != ScalarType::U32 || ty.is_int() {
            return self.types_error("uniform", &[bits], "random `u32`");
        }
        let shape = self.shape(bits);
        let bits = self.at_point(bits, shape.len());
        let digits = match ty {
            ScalarType::F16 => 11,
            ScalarType::BF16 => 8,
            ScalarType::F32 => 24,
            _ => 32,
        };
        let dropped = self.word(32 - digits);
        let kept = self.program.exprs.binary(BinaryOp::UShr, bits, dropped);
        let number = self.program.exprs.cast(kept, ty.accumulator());
        let scale = self.number(self.program.exprs.ty(number), 0.5_f64.powi(digits as i32));
        let number = self.mul(number, scale);
        let number = self.program.exprs.cast(number, ty);
        Ok(self.map(&shape, number))
    }
}
