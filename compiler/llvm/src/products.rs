//! Products of small matrices, with all sums in registers.
//!
//! ```text
//! s[r][c] = sums[..]
//! loop k { y[c] = right[k][c]  s[r][c] += left[r][k] * y[c] }     ; for all rows r and vectors c of a part of the tile
//! sums[..] = s[r][c]
//! ```
//! A part of a tile has as many sums as the registers of the processor hold, beside a row of the right factor. Each product needs a
//! scalar of the left factor only, which the instruction itself reads, and so many sums are made at once that none is waited
//! for. The part is a function of its own, which is called for each part of each tile. It is written as the code generator wants it, so
//! that LLVM's passes would only spend time on it: `optnone` keeps them away until code is generated.
//! (K. Goto and R. van de Geijn, Anatomy of high-performance matrix multiplication, TOMS 2008.)

use aerogel_base::ScalarType;
use aerogel_ir::{Op, Type, Value};
use inkwell::IntPredicate;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::{Linkage, Module};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{FastMathFlags, FunctionValue};

use crate::alias_metadata::Place;
use crate::builder::{Opcode, Val, basic, incoming};
use crate::context::FuncCx;
use crate::types::stored;

/// The prefix of the names of the functions.
const NAME: &str = "tile_product";

/// A function that adds to a part of a tile: what the registers of the processor hold.
#[derive(Clone, Copy)]
struct Kernel {
    rows: u32,
    vectors: u32,
    lanes: u32,
    /// Scalars from one row to the next.
    left_row: u32,
    right_row: u32,
    sums_row: u32,
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
        let kernel = Kernel {
            rows: divisor(rows, most_rows),
            vectors: divisor(columns / lanes, 2),
            lanes,
            left_row,
            right_row: columns,
            sums_row,
            ty,
            fused: fused && self.b.target.fused,
        };
        let func = self.product_kernel(kernel);
        for row in (0..rows).step_by(kernel.rows as usize) {
            for column in (0..columns).step_by((kernel.vectors * lanes) as usize) {
                let left = self.scalar_at(ty, left, row * left_row);
                let right = self.scalar_at(ty, right, column);
                let sums = self.scalar_at(ty, sums, row * sums_row + column);
                self.b.call(func, &[left, right, sums, count]);
            }
        }
    }

    /// The module's function for these sizes.
    fn product_kernel(&mut self, kernel: Kernel) -> FunctionValue<'ctx> {
        let Kernel {
            rows,
            vectors,
            lanes,
            left_row,
            right_row,
            sums_row,
            ty,
            fused,
        } = kernel;
        let way = if fused { "fused" } else { "apart" };
        let name =
            format!("{NAME}.{ty}.{rows}x{vectors}x{lanes}.{left_row}.{right_row}.{sums_row}.{way}");
        if let Some(made) = self.b.module.get_function(&name) {
            return made;
        }
        let pointer = basic(self.b.ptr_type());
        let params = [pointer, pointer, pointer, basic(self.b.i64_type())].map(Into::into);
        let func_ty = self.b.ctx.void_type().fn_type(&params, false);
        let func = self
            .b
            .module
            .add_function(&name, func_ty, Some(Linkage::Internal));
        for attribute in ["nounwind", "noinline", "optnone"] {
            self.b.attribute(func, attribute);
        }
        if let Some(width) = self.cx.target.vector_width {
            self.b
                .text_attribute(func, "prefer-vector-width", &width.to_string());
        }
        let here = self.b.current();
        self.write_kernel(func, kernel);
        self.b.at(here);
        func
    }

    fn write_kernel(&mut self, func: FunctionValue<'ctx>, kernel: Kernel) {
        let params = func.get_params();
        let (left, right, sums, count) = (params[0], params[1], params[2], params[3]);
        let ty = kernel.ty;
        let number = stored(self.b.ctx, ty);
        let vector = self.b.vector_type(number, kernel.lanes);
        let [entry, begin, step, end, done] =
            ["entry", "begin", "step", "end", "done"].map(|name| self.b.block(func, name));
        self.b.at(entry);
        let some = self.b.icmp(IntPredicate::SGT, count, self.b.i64(0));
        self.b.cond_br(some, begin, done);

        self.b.at(begin);
        let tile = (0..kernel.rows).flat_map(|r| (0..kernel.vectors).map(move |v| (r, v)));
        let places: Vec<Val<'ctx>> = tile
            .map(|(r, v)| self.scalar_at(ty, sums, r * kernel.sums_row + v * kernel.lanes))
            .collect();
        let before: Vec<Val<'ctx>> = places
            .iter()
            .map(|&place| self.room_vector(vector, place))
            .collect();
        self.b.br(step);

        // Both factors are walked by their addresses, which is how the code generator would write it.
        self.b.at(step);
        let phi = |s: &Self, first: Val<'ctx>| {
            let phi = s.b.phi(first.get_type());
            incoming(phi, first, begin);
            phi
        };
        let left_count = phi(self, count);
        let [left, right] = [left, right].map(|first| phi(self, first));
        let carried: Vec<_> = before.iter().map(|&sum| phi(self, sum)).collect();
        let ys: Vec<Val<'ctx>> = (0..kernel.vectors)
            .map(|v| {
                let place = self.scalar_at(ty, right.as_basic_value(), v * kernel.lanes);
                self.room_vector(vector, place)
            })
            .collect();
        let mut after = Vec::new();
        for (r, sums) in (0..kernel.rows).zip(carried.chunks(ys.len())) {
            let place = self.scalar_at(ty, left.as_basic_value(), r * kernel.left_row);
            let x = self.room_vector(number, place);
            let x = self.b.splat(x, kernel.lanes);
            for (&y, &sum) in ys.iter().zip(sums) {
                let next = self.product_step(kernel.fused, x, y, sum.as_basic_value());
                incoming(sum, next, step);
                after.push(next);
            }
        }
        let next_left = self.scalar_at(ty, left.as_basic_value(), 1);
        let next_right = self.scalar_at(ty, right.as_basic_value(), kernel.right_row);
        incoming(left, next_left, step);
        incoming(right, next_right, step);
        let less = self.b.i64(-1);
        let next_count = self.b.nsw(Opcode::Add, left_count.as_basic_value(), less);
        incoming(left_count, next_count, step);
        let more = self.b.icmp(IntPredicate::SGT, next_count, self.b.i64(0));
        self.b.cond_br(more, step, end);

        self.b.at(end);
        for (place, sum) in places.into_iter().zip(after) {
            let store = self.b.store(place, sum);
            self.mark_access(store, &Place::Room);
            store
                .set_alignment(ty.bits() / 8)
                .expect("an alignment is a power of two");
        }
        self.b.br(done);
        self.b.at(done);
        self.b.ret(None);
    }

    /// The place of a scalar, so many of them behind another one.
    fn scalar_at(&self, ty: ScalarType, place: Val<'ctx>, number: u32) -> Val<'ctx> {
        let bytes = i64::from(number) * i64::from(ty.bytes());
        self.b.offset(place, self.b.i64(bytes))
    }

    fn product_step(&self, fused: bool, x: Val<'ctx>, y: Val<'ctx>, sum: Val<'ctx>) -> Val<'ctx> {
        let none = FastMathFlags::empty();
        if fused {
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

/// Lets the code generator optimise the functions that the passes left alone.
pub(crate) fn open(module: &Module<'_>) {
    let optnone = Attribute::get_named_enum_kind_id("optnone");
    let is_kernel =
        |func: &FunctionValue<'_>| func.get_name().to_bytes().starts_with(NAME.as_bytes());
    for func in module.get_functions().filter(is_kernel) {
        func.remove_enum_attribute(AttributeLoc::Function, optnone);
    }
}
