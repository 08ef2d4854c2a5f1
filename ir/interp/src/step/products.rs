//! Products of matrices in a room.

use aerogel_base::ScalarType;
use aerogel_ir::{BinaryOp, Inst, Op, Type, eval};

use super::Machine;
use crate::value::Slot;

impl Machine<'_> {
    /// Adds the product of two matrices to a tile of sums.
    pub(super) fn tile_product(&mut self, inst: Inst) {
        let func = self.func();
        let &Op::TileProduct {
            room,
            ref at,
            count,
            rows,
            columns,
            left_row,
            sums_row,
            ..
        } = &func[inst]
        else {
            unreachable!("the caller looked")
        };
        let Type::Room(ty) = func.ty(room) else {
            unreachable!("the verifier checked that it is a room")
        };
        let [left, right, sums] = [at[0], at[1], at[2]].map(|v| self.int(v));
        let (number, count) = (self.int(room) as usize, self.int(count));
        let place = |at: i64| -> (Slot, ScalarType) {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            (Slot::Room(number, at), ty)
        };
        for row in 0..i64::from(rows) {
            for column in 0..i64::from(columns) {
                let to = place(sums + row * i64::from(sums_row) + column);
                let mut sum = self.memory.read(to);
                for k in 0..count {
                    let x = place(left + row * i64::from(left_row) + k);
                    let y = place(right + k * i64::from(columns) + column);
                    let [x, y] = [x, y].map(|place| self.memory.read(place));
                    let product = eval::binary(BinaryOp::Mul, x, y);
                    sum = eval::binary(BinaryOp::Add, product, sum);
                }
                let written = self.memory.write(to, sum);
                debug_assert!(written.is_ok(), "a room is there");
            }
        }
    }
}
