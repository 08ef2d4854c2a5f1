//! Products of small matrices, with all sums in registers.
//!
//! ```text
//! s[r][c] = sums[..]
//! loop k { y[c] = right[k][c]  s[r][c] += left[r][k] * y[c] }     ; for all rows r and vectors c of a part of the tile
//! sums[..] = s[r][c]
//! ```
//! A part of a tile has as many sums as the registers of the processor hold, beside a row of the right factor. Each product needs a
//! scalar of the left factor only, which the instruction itself reads, and so many sums are made at once that none is waited
//! for. (K. Goto and R. van de Geijn, Anatomy of high-performance matrix multiplication, TOMS 2008.)

use aerogel_base::ScalarType;
use aerogel_ir::{Op, Type, Value};
use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::FastMathFlags;

use crate::builder::{Opcode, Val, basic, incoming};
use crate::context::FuncCx;
use crate::places::Place;
use crate::types::stored;

/// Where a part of a tile lies, and how large it is.
struct Part<'ctx> {
    left: Val<'ctx>,
    right: Val<'ctx>,
    sums: Val<'ctx>,
    count: Val<'ctx>,
    rows: u32,
    vectors: u32,
    /// Numbers from one row to the next.
    left_row: u32,
    right_row: u32,
    sums_row: u32,
    lanes: u32,
    ty: ScalarType,
    fused: bool,
}

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Adds the product of two matrices to a tile of sums.
    pub(crate) fn tile_product(&mut self, op: &Op) {
        let &Op::TileProduct {
            room,
            ref at,
            count,
            rows,
            columns,
            left_row,
            sums_row,
            fused,
        } = op
        else {
            unreachable!("the caller looked")
        };
        let Type::Room(ty) = self.func.ty(room) else {
            unreachable!("the verifier checked that it is a room")
        };
        let count = self.index(count);
        let [left, right, sums] = [at[0], at[1], at[2]].map(|v: Value| self.room_at(room, v));
        let bits = 32 * self.cx.target.lanes.unwrap_or(4);
        let lanes = divisor(columns, bits / ty.bits());
        let most_rows = match self.cx.target.vector_registers() {
            32 => 12,
            _ => 6,
        };
        let part_rows = divisor(rows, most_rows);
        let vectors = divisor(columns / lanes, 2);
        let bytes = i64::from(ty.bytes());
        for row in (0..rows).step_by(part_rows as usize) {
            for column in (0..columns).step_by((vectors * lanes) as usize) {
                let at = |s: &Self, place, number: u32| {
                    s.b.offset(place, s.b.i64(i64::from(number) * bytes))
                };
                let part = Part {
                    left: at(self, left, row * left_row),
                    right: at(self, right, column),
                    sums: at(self, sums, row * sums_row + column),
                    count,
                    rows: part_rows,
                    vectors,
                    left_row,
                    right_row: columns,
                    sums_row,
                    lanes,
                    ty,
                    fused,
                };
                self.part_of_product(&part);
            }
        }
    }

    fn part_of_product(&mut self, part: &Part<'ctx>) {
        let bytes = i64::from(part.ty.bytes());
        let number = stored(self.b.ctx, part.ty);
        let vector = self.b.vector_type(number, part.lanes);
        let at =
            |s: &Self, place, number: u32| s.b.offset(place, s.b.i64(i64::from(number) * bytes));
        let tile = (0..part.rows).flat_map(|r| (0..part.vectors).map(move |v| (r, v)));
        let places: Vec<Val<'ctx>> = tile
            .map(|(r, v)| at(self, part.sums, r * part.sums_row + v * part.lanes))
            .collect();
        let before: Vec<Val<'ctx>> = places
            .iter()
            .map(|&place| self.room_vector(vector, place))
            .collect();
        let [head, inside, done] =
            ["product", "products", "product_done"].map(|name| self.b.block(self.llvm, name));
        let entry = self.b.current();
        self.b.br(head);

        self.b.at(head);
        let k = self.b.phi(basic(self.b.i64_type()));
        incoming(k, self.b.i64(0), entry);
        let sums: Vec<_> = before
            .iter()
            .map(|&sum| {
                let phi = self.b.phi(vector);
                incoming(phi, sum, entry);
                phi
            })
            .collect();
        let at_k = k.as_basic_value();
        let more = self.b.icmp(IntPredicate::SLT, at_k, part.count);
        self.b.cond_br(more, inside, done);

        self.b.at(inside);
        let row = self.b.i64(i64::from(part.right_row) * bytes);
        let right = self
            .b
            .offset(part.right, self.b.nsw(Opcode::Mul, at_k, row));
        let step = self.b.nsw(Opcode::Mul, at_k, self.b.i64(bytes));
        let left = self.b.offset(part.left, step);
        let ys: Vec<Val<'ctx>> = (0..part.vectors)
            .map(|v| {
                let place = at(self, right, v * part.lanes);
                self.room_vector(vector, place)
            })
            .collect();
        for r in 0..part.rows {
            let place = at(self, left, r * part.left_row);
            let x = self.room_vector(number, place);
            let x = self.b.splat(x, part.lanes);
            for (v, &y) in ys.iter().enumerate() {
                let sum = sums[r as usize * ys.len() + v];
                let next = self.product_step(part, x, y, sum.as_basic_value());
                incoming(sum, next, inside);
            }
        }
        let next = self.b.nsw(Opcode::Add, at_k, self.b.i64(1));
        incoming(k, next, inside);
        self.b.br(head);

        self.b.at(done);
        for (&place, sum) in places.iter().zip(&sums) {
            let store = self.b.store(place, sum.as_basic_value());
            self.mark_access(store, &Place::Room);
            store
                .set_alignment(part.ty.bits() / 8)
                .expect("an alignment is a power of two");
        }
    }

    fn product_step(
        &self,
        part: &Part<'ctx>,
        x: Val<'ctx>,
        y: Val<'ctx>,
        sum: Val<'ctx>,
    ) -> Val<'ctx> {
        let none = FastMathFlags::empty();
        if part.fused && self.b.target.fused {
            let ty = sum.get_type();
            return self.b.intrinsic("llvm.fma", &[ty], &[x, y, sum], none);
        }
        let product = self.b.fop(Opcode::FMul, x, y, none);
        self.b.fop(Opcode::FAdd, product, sum, none)
    }

    /// Reads numbers of a room.
    fn room_vector(&mut self, ty: BasicTypeEnum<'ctx>, place: Val<'ctx>) -> Val<'ctx> {
        let (value, load) = self.b.load(ty, place);
        self.mark_access(load, &Place::Room);
        let number = match ty {
            BasicTypeEnum::VectorType(ty) => ty.get_element_type(),
            _ => ty,
        };
        let bytes = if number == basic(self.b.ctx.f64_type()) {
            8
        } else {
            4
        };
        load.set_alignment(bytes)
            .expect("an alignment is a power of two");
        value
    }
}

/// The greatest number up to `most` that divides `n`.
fn divisor(n: u32, most: u32) -> u32 {
    (1..=most.max(1))
        .rev()
        .find(|&d| n.is_multiple_of(d))
        .unwrap_or(1)
}
