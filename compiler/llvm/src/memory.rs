//! Storages: addresses, loads, stores and atomics.

use aerogel_base::ScalarType;
use aerogel_ir::analysis::Interval;
use aerogel_ir::analysis::affine::scaled;
use aerogel_ir::{Arg, AtomicOp, BinaryOp, NodeRef, Op, Region, Value};
use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::FastMathFlags;

use crate::alias_metadata::Place;
use crate::builder::{Opcode, RmwOp, Val, basic, incoming, undef, zero};
use crate::context::{Flat, FuncCx};
use crate::math::SUM;
use crate::types::{bits, scalar, stored};

/// How far back the operands of an index are followed.
const DEEPEST_INDEX: u32 = 6;

/// Axes are taken to end this far below 2^31: what lies between wraps for constants such as 1 only.
const BELOW_THE_END: i128 = 1 << 16;

/// Whether of the numbers in a span none but `n` itself is `n` modulo 2^32, for each `n` that may be an index.
fn names_one_element(span: Interval) -> bool {
    span.lo >= i128::from(i32::MIN) - BELOW_THE_END && span.hi < 1 << 32
}

/// Bytes that every GPU can exchange in one step.
const WORD: u32 = 4;

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Zeroed storage; the space is the function's, the zeros are written each time.
    pub(crate) fn local(&mut self, result: Value) -> Val<'ctx> {
        let ty = self
            .func
            .ty(result)
            .pointee()
            .expect("a local is a storage");
        let elem = stored(self.b.ctx, ty.elem().expect("locals hold numbers"));
        if ty.is_tensor() {
            let n = ty.n_elems();
            let array = basic(inkwell::types::BasicType::array_type(&elem, n));
            let place: Val<'ctx> = self.in_entry(|s| s.b.alloca(array)).into();
            let size = ty.elem().expect("checked above").bytes();
            let bytes = self.b.i64(i64::from(n) * i64::from(size));
            self.b.memset_zero(place, bytes, size);
            return place;
        }
        let place: Val<'ctx> = self.in_entry(|s| s.b.alloca(elem)).into();
        self.b.store(place, zero(elem));
        place
    }

    pub(crate) fn elem_ref(&mut self, base: Value, index: &[Value]) -> Val<'ctx> {
        let ty = self.func.ty(base).pointee().expect("a storage has a type");
        let extents: Vec<Val<'ctx>> = ty
            .shape()
            .iter()
            .map(|&n| self.b.i64(i64::from(n)))
            .collect();
        let linear = self.row_major(index, &extents);
        let elem = ty.elem().expect("a tensor has elements");
        self.element(self.value(base), linear, u64::from(elem.bytes()))
    }

    pub(crate) fn array_at(&mut self, array: Arg, indices: &[Value]) -> Val<'ctx> {
        let aerogel_ir::ParamType::Array { elem, .. } =
            self.func.params[array.as_u32() as usize].ty
        else {
            unreachable!("{array} is an array")
        };
        let extents: Vec<Val<'ctx>> = (0..indices.len() as u32)
            .map(|axis| {
                if axis == 0 {
                    self.b.i64(0)
                } else {
                    self.array_extent(array, axis)
                }
            })
            .collect();
        let address = self.array_address(array);
        let linear = self.row_major(indices, &extents);
        let bytes = elem.n_elems() * elem.elem().expect("arrays hold numbers").bytes();
        self.element(address, linear, u64::from(bytes))
    }

    pub(crate) fn linearize(&mut self, node: NodeRef, coords: &[Value]) -> Val<'ctx> {
        let extents: Vec<Val<'ctx>> = self.module.env.trees[node.tree][node.node]
            .axes
            .iter()
            .map(|axis| self.b.i64(i64::from(axis.extent)))
            .collect();
        self.row_major(coords, &extents)
    }

    pub(crate) fn lookup(&mut self, node: NodeRef, container: Value, index: Value) -> Val<'ctx> {
        let size = self.module.env.trees[node.tree][node.node].cell_size;
        let index = self.index(index);
        self.element(self.value(container), index, size)
    }

    pub(crate) fn child(&mut self, node: NodeRef, cell: Value) -> Val<'ctx> {
        let at = self.module.env.trees[node.tree][node.node].offset_in_cell;
        self.b.offset(self.value(cell), self.b.i64(at as i64))
    }

    pub(crate) fn element(&self, base: Val<'ctx>, index: Val<'ctx>, size: u64) -> Val<'ctx> {
        let size = self.b.i64(size as i64);
        let bytes = self.b.nsw(Opcode::Mul, index, size);
        self.b.offset(base, bytes)
    }

    /// The flat index of an element, the last axis fastest. The first axis's size does not matter.
    fn row_major(&mut self, coords: &[Value], extents: &[Val<'ctx>]) -> Val<'ctx> {
        let mut linear: Option<Val<'ctx>> = None;
        for (&coord, &extent) in coords.iter().zip(extents) {
            let index = self.index(coord);
            linear = Some(match linear {
                None => index,
                Some(before) => {
                    let scaled = self.b.nsw(Opcode::Mul, before, extent);
                    self.b.nsw(Opcode::Add, scaled, index)
                }
            });
        }
        linear.unwrap_or_else(|| self.b.i64(0))
    }

    /// An index as `i64`. Sums, differences and multiples of `i32` are extended before they are computed, so
    /// that `x[i]` and `x[i + 1]` have one base, and LLVM sees that they are neighbours.
    ///
    /// The `i32` is the exact number modulo 2^32. If that lies in a span where no other number of the
    /// same residue is an index, both name the same element, or none.
    pub(crate) fn index(&mut self, value: Value) -> Val<'ctx> {
        let ty = self.func.elem(value);
        if ty.bits() == 64 {
            return self.value(value);
        }
        if ty == ScalarType::I32 {
            for depth in [DEEPEST_INDEX, 1] {
                if names_one_element(self.exact(value, depth)) {
                    return self.widened(value, depth);
                }
            }
        }
        self.b.extend(ty, self.value(value), 64)
    }

    /// Between which numbers an `i32` lies, or what it stands for modulo 2^32 if its operands are followed `depth` steps.
    fn exact(&self, value: Value, depth: u32) -> Interval {
        let known = self.ranges.of(self.func, value);
        if let Some(range) = known {
            return range;
        }
        let func = self.func;
        if depth > 0 {
            let of = |value| self.exact(value, depth - 1);
            let combined = |op, a, b| Interval::binary(op, &a, &b).unwrap_or(Interval::ALL);
            if let Some((x, factor)) = scaled(func, value) {
                return combined(BinaryOp::Mul, of(x), Interval::point(factor));
            }
            if let Some(&Op::Binary {
                op: op @ (BinaryOp::Add | BinaryOp::Sub),
                lhs,
                rhs,
            }) = func.def_op(value)
            {
                return combined(op, of(lhs), of(rhs));
            }
        }
        Interval::of_type(ScalarType::I32)
    }

    /// The number whose span `exact` gives.
    fn widened(&mut self, value: Value, depth: u32) -> Val<'ctx> {
        let func = self.func;
        if depth > 0 {
            if let Some((x, factor)) = scaled(func, value) {
                let (x, factor) = (self.widened(x, depth - 1), self.b.i64(factor as i64));
                return self.b.nsw(Opcode::Mul, x, factor);
            }
            let opcode = match func.def_op(value) {
                Some(Op::Binary {
                    op: BinaryOp::Add, ..
                }) => Some(Opcode::Add),
                Some(Op::Binary {
                    op: BinaryOp::Sub, ..
                }) => Some(Opcode::Sub),
                _ => None,
            };
            if let (Some(opcode), Some(&Op::Binary { lhs, rhs, .. })) = (opcode, func.def_op(value))
            {
                let (x, y) = (self.widened(lhs, depth - 1), self.widened(rhs, depth - 1));
                return self.b.nsw(opcode, x, y);
            }
        }
        self.b.extend(ScalarType::I32, self.value(value), 64)
    }

    pub(crate) fn load(&mut self, place: Value) -> Val<'ctx> {
        let kind = self.place(place);
        self.load_from(place, &kind)
    }

    fn load_from(&mut self, place: Value, kind: &Place<'ctx>) -> Val<'ctx> {
        let ty = self.pointee(place);
        let mut address = self.value(place);
        if let Some(Flat {
            here: Some(here),
            anything,
        }) = self.flat
        {
            address = self.b.select(here, address, anything);
        }
        let (value, inst) = self.b.load(stored(self.b.ctx, ty), address);
        self.mark_access(inst, kind);
        self.mark_on_grid(inst, place);
        self.b.of_stored(ty, value)
    }

    /// Numbers of neighbouring iterations, which lie side by side, the first of them at `place`.
    pub(crate) fn load_lanes(&mut self, place: Value, width: u32) -> Val<'ctx> {
        let kind = self.place(place);
        let ty = self.pointee(place);
        let all = self.b.vector_type(stored(self.b.ctx, ty), width);
        let (value, inst) = self.b.load(all, self.value(place));
        inst.set_alignment(ty.bytes())
            .expect("the alignment of a number is a power of two");
        self.mark_access(inst, &kind);
        self.b.of_stored(ty, value)
    }

    pub(crate) fn store_lanes(&mut self, place: Value, values: Val<'ctx>) {
        let kind = self.place(place);
        let ty = self.pointee(place);
        let values = self.b.to_stored(ty, values);
        let inst = self.b.store(self.value(place), values);
        inst.set_alignment(ty.bytes())
            .expect("the alignment of a number is a power of two");
        self.mark_access(inst, &kind);
    }

    pub(crate) fn store(&mut self, place: Value, value: Value) {
        let kind = self.place(place);
        let value = self.value(value);
        self.store_to(place, &kind, value);
    }

    fn store_to(&mut self, place: Value, kind: &Place<'ctx>, value: Val<'ctx>) {
        let value = self.b.to_stored(self.pointee(place), value);
        let inst = self.b.store(self.value(place), value);
        self.mark_access(inst, kind);
        self.align(inst, place);
    }

    pub(crate) fn atomic(&mut self, op: AtomicOp, place: Value, value: Value) -> Val<'ctx> {
        let ty = self.pointee(place);
        if self.own_sums(op, &[place], &[value]) {
            // Nobody uses the old value; the result still needs one.
            return undef(scalar(self.b.ctx, ty));
        }
        let kind = self.place(place);
        let operand = self.value(value);
        let Some(adds) = self.adds(value).filter(|_| !self.is_own(&kind)) else {
            return self.by_owner(
                place,
                &kind,
                |s| s.plain_update(op, place, &kind, operand),
                |s| s.update_shared(op, place, &kind, operand),
            );
        };
        let [add, done] = ["add_up", "added"].map(|name| self.b.block(self.llvm, name));
        self.b.cond_br(adds, add, done);
        self.b.at(add);
        self.update_shared(op, place, &kind, operand);
        self.b.br(done);
        self.b.at(done);
        undef(scalar(self.b.ctx, ty))
    }

    /// Changes what other threads change too; what was there.
    fn update_shared(
        &mut self,
        op: AtomicOp,
        place: Value,
        kind: &Place<'ctx>,
        operand: Val<'ctx>,
    ) -> Val<'ctx> {
        let ty = self.pointee(place);
        // GPUs can add floats, and would repeat a compare-and-swap to take one away.
        let (op, operand) = match op {
            AtomicOp::Sub if ty.is_float() && ty != ScalarType::BF16 && self.cx.target.grid => {
                (AtomicOp::Add, self.b.fneg(operand, FastMathFlags::empty()))
            }
            _ => (op, operand),
        };
        // What LLVM makes of these for GPUs begins with a read that other threads' atomic operations race with.
        let is_swapped = self.cx.target.grid
            && (ty.is_float() && matches!(op, AtomicOp::Min | AtomicOp::Max)
                || !ty.is_float() && ty.bytes() < WORD);
        let Some(rmw) = native(op, ty).filter(|_| !is_swapped) else {
            return self.update_by_cas(op, place, operand);
        };
        let operand = self.b.to_stored(ty, operand);
        let old = self.b.rmw(rmw, self.value(place), operand);
        if let Place::Tagged(tag) = *kind
            && let Some(inst) = inkwell::values::BasicValue::as_instruction_value(&old)
        {
            self.b.mark(inst, "tbaa", tag);
        }
        self.b.of_stored(ty, old)
    }

    /// Whether a storage is known to be no other thread's.
    fn is_own(&self, kind: &Place<'ctx>) -> bool {
        matches!(kind, Place::Local { .. }) || self.runs_alone()
    }

    /// Modifies a storage, thread-local or shared; returns the old value. A GPU has no atomic operations on thread-local
    /// memory, so the address space of a storage parameter is tested at run time.
    fn by_owner(
        &mut self,
        place: Value,
        kind: &Place<'ctx>,
        own: impl FnOnce(&mut Self) -> Val<'ctx>,
        shared: impl FnOnce(&mut Self) -> Val<'ctx>,
    ) -> Val<'ctx> {
        if self.is_own(kind) {
            return own(self);
        }
        if !self.cx.target.grid || !matches!(kind, Place::Unknown) {
            return shared(self);
        }
        let address = self.value(place);
        let none = FastMathFlags::empty();
        let is_own = self
            .b
            .intrinsic("llvm.nvvm.isspacep.local", &[], &[address], none);
        let blocks = ["own", "shared", "changed"].map(|name| self.b.block(self.llvm, name));
        let [at_own, at_shared, done] = blocks;
        self.b.cond_br(is_own, at_own, at_shared);
        let mut olds = Vec::new();
        self.b.at(at_own);
        olds.push((own(self), self.b.current()));
        self.b.br(done);
        self.b.at(at_shared);
        olds.push((shared(self), self.b.current()));
        self.b.br(done);
        self.b.at(done);
        let old = self.b.phi(olds[0].0.get_type());
        olds.into_iter()
            .for_each(|(value, from)| incoming(old, value, from));
        old.as_basic_value()
    }

    /// Whether no other thread runs the same task.
    fn runs_alone(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.serial)
    }

    fn plain_update(
        &mut self,
        op: AtomicOp,
        place: Value,
        kind: &Place<'ctx>,
        operand: Val<'ctx>,
    ) -> Val<'ctx> {
        let ty = self.pointee(place);
        let old = self.load_from(place, kind);
        let new = match op.binary() {
            None => operand,
            Some(op) => {
                let mut arith = self.arith(ty);
                if matches!(kind, Place::Local { accumulates: true }) && self.regroups_sums() {
                    // A sum that stands for an atomic one has no order to keep.
                    arith.flags |= SUM;
                }
                arith.binary(op, old, operand)
            }
        };
        self.store_to(place, kind, new);
        old
    }

    /// Changes a storage to what a region makes of its value.
    pub(crate) fn update(&mut self, place: Value, body: Region) -> Val<'ctx> {
        let func = self.func;
        let ty = self.pointee(place);
        let param = func.regions[body].params[0];
        let kind = self.place(place);
        self.by_owner(
            place,
            &kind,
            |s| {
                let old = s.load_from(place, &kind);
                let new = s.made_of(body, param, old);
                s.store_to(place, &kind, new);
                old
            },
            |s| s.update_by_region(place, ty, (body, param)),
        )
    }

    /// What a compare-and-swap expects at first. A GPU tells a read that others' atomic operations may meet; elsewhere it may be any read.
    fn seen_first(&self, word: BasicTypeEnum<'ctx>, address: Val<'ctx>) -> Val<'ctx> {
        match self.cx.target.grid {
            true => self.b.load_shared(word, address),
            false => self.b.load(word, address).0,
        }
    }

    fn update_by_region(
        &mut self,
        place: Value,
        ty: ScalarType,
        (body, param): (Region, Value),
    ) -> Val<'ctx> {
        let word = bits(self.b.ctx, ty);
        let address = self.value(place);
        let before = self.b.current();
        let [retry, done] = ["retry", "updated"].map(|name| self.b.block(self.llvm, name));
        let first = self.seen_first(word, address);
        self.b.br(retry);
        self.b.at(retry);
        let seen = self.b.phi(word);
        incoming(seen, first, before);
        let old = self.of_word(ty, seen.as_basic_value());
        let new = self.made_of(body, param, old);
        let new = self.to_word(ty, new);
        let (found, stored) = self.swap(address, seen.as_basic_value(), new, false);
        incoming(seen, found, self.b.current());
        self.b.cond_br(stored, done, retry);
        self.b.at(done);
        old
    }

    /// A compare-and-swap. GPUs have none of one byte, and what LLVM makes of one begins with a read that other threads' atomic
    /// operations race with: it is one of the word that the number lies in, again and again while only its neighbours change.
    fn swap(
        &mut self,
        address: Val<'ctx>,
        expected: Val<'ctx>,
        new: Val<'ctx>,
        publish: bool,
    ) -> (Val<'ctx>, Val<'ctx>) {
        let narrow = expected.get_type();
        let bits = narrow.into_int_type().get_bit_width();
        if !self.cx.target.grid || bits >= 8 * WORD {
            return self.b.cmpxchg(address, expected, new, publish);
        }
        let word = basic(self.b.ctx.i32_type());
        let [retry, differs, swaps, done] =
            ["look", "differs", "swap", "swapped"].map(|name| self.b.block(self.llvm, name));
        let b = &self.b;
        let number = b.cast(Opcode::PtrToInt, address, basic(b.i64_type()));
        let inside = b.and(number, b.i64(i64::from(WORD) - 1));
        let start = b.offset(address, b.op(Opcode::Sub, b.i64(0), inside));
        let inside = b.cast(Opcode::Trunc, inside, word);
        let shift = b.op(Opcode::Shl, inside, b.int(word, 3));
        let mask = b.op(Opcode::Shl, b.int(word, (1 << bits) - 1), shift);
        let others = b.not(mask);
        let wide = b.cast(Opcode::ZExt, new, word);
        let placed = b.op(Opcode::Shl, wide, shift);
        let first = b.load_shared(word, start);
        let before = b.current();
        b.br(retry);
        b.at(retry);
        let seen = b.phi(word);
        incoming(seen, first, before);
        let all = seen.as_basic_value();
        let found = b.cast(Opcode::Trunc, b.op(Opcode::LShr, all, shift), narrow);
        let is_expected = b.icmp(IntPredicate::EQ, found, expected);
        b.cond_br(is_expected, swaps, differs);
        b.at(differs);
        b.br(done);
        b.at(swaps);
        let next = b.or(b.and(all, others), placed);
        let (now, stored) = b.cmpxchg(start, all, next, publish);
        incoming(seen, now, swaps);
        b.cond_br(stored, done, retry);
        b.at(done);
        let is_stored = b.phi(basic(b.ctx.bool_type()));
        incoming(is_stored, b.bool(false), differs);
        incoming(is_stored, b.bool(true), swaps);
        (found, is_stored.as_basic_value())
    }

    fn made_of(&mut self, body: Region, param: Value, old: Val<'ctx>) -> Val<'ctx> {
        self.values[param] = Some(old);
        let made = self.region(body).expect("an update yields");
        made[0]
    }

    fn update_by_cas(&mut self, op: AtomicOp, place: Value, operand: Val<'ctx>) -> Val<'ctx> {
        let ty = self.pointee(place);
        let word = bits(self.b.ctx, ty);
        let address = self.value(place);
        let before = self.b.current();
        let [retry, done] = ["retry", "updated"].map(|name| self.b.block(self.llvm, name));
        let first = self.seen_first(word, address);
        self.b.br(retry);
        self.b.at(retry);
        let seen = self.b.phi(word);
        incoming(seen, first, before);
        let old = self.of_word(ty, seen.as_basic_value());
        let new = match op.binary() {
            Some(op) => self.arith(ty).binary(op, old, operand),
            None => operand,
        };
        let new = self.to_word(ty, new);
        // An exchange may be a lock.
        let (found, stored) = self.swap(address, seen.as_basic_value(), new, op.binary().is_none());
        incoming(seen, found, self.b.current());
        self.b.cond_br(stored, done, retry);
        self.b.at(done);
        old
    }

    /// Adds to neighbouring floats, as many as the machine can in one compare-and-swap: an even
    /// number begins at a multiple of its size, of an odd number one does so with the next.
    pub(crate) fn atomic_adds(&mut self, places: &[Value], values: &[Value]) {
        let ty = self.pointee(places[0]);
        if self.own_sums(AtomicOp::Add, places, values) {
            return;
        }
        let bytes = places.len() as u64 * u64::from(ty.bytes());
        let widest = self.cx.target.widest_swap;
        let odd = places.len() % 2 == 1;
        // GPUs add to each number in one instruction, and repeat a compare-and-swap for each thread that came between.
        let grid = self.cx.target.grid;
        if self.runs_alone()
            || grid
            || places.len() == 1
            || odd && widest < 2 * u64::from(ty.bytes())
        {
            for (&place, &value) in places.iter().zip(values) {
                self.atomic(AtomicOp::Add, place, value);
            }
            return;
        }
        if odd {
            return self.odd_adds(places, values);
        }
        if bytes > widest {
            let half = places.len() / 2;
            self.atomic_adds(&places[..half], &values[..half]);
            return self.atomic_adds(&places[half..], &values[half..]);
        }
        let (address, values) = (self.value(places[0]), self.values(values));
        self.add_by_swap(ty, address, &values);
    }

    /// Adds to an odd number of floats, in pairs and one alone: if they begin in the middle of a
    /// word, the first is alone, else the last.
    fn odd_adds(&mut self, places: &[Value], values: &[Value]) {
        let ty = self.pointee(places[0]);
        let (first, values) = (self.value(places[0]), self.values(values));
        let size = i64::from(ty.bytes());
        let address = self
            .b
            .cast(Opcode::PtrToInt, first, basic(self.b.i64_type()));
        let skipped = self.b.and(address, self.b.i64(size));
        let begins_inside = self.b.not(self.b.is_zero(skipped));
        let words = self.b.offset(first, skipped);
        for (k, three) in values.windows(3).step_by(2).enumerate() {
            let x = self.b.select(begins_inside, three[1], three[0]);
            let y = self.b.select(begins_inside, three[2], three[1]);
            let at = self.b.offset(words, self.b.i64(2 * size * k as i64));
            self.add_by_swap(ty, at, &[x, y]);
        }
        let last = values.len() - 1;
        let alone = self.b.select(begins_inside, values[0], values[last]);
        let last_at = self.b.i64(size * last as i64);
        let at = self.b.select(begins_inside, self.b.i64(0), last_at);
        let add = native(AtomicOp::Add, ty).expect("there is an instruction for sums");
        self.b.rmw(add, self.b.offset(first, at), alone);
    }

    /// Adds to floats that fill an aligned word in one compare-and-swap.
    fn add_by_swap(&mut self, ty: ScalarType, address: Val<'ctx>, values: &[Val<'ctx>]) {
        let word = basic(match values.len() as u32 * ty.bytes() {
            16 => self.b.ctx.i128_type(),
            _ => self.b.ctx.i64_type(),
        });
        let all = self
            .b
            .vector_type(scalar(self.b.ctx, ty), values.len() as u32);
        let mut operand = undef(all);
        for (k, &value) in values.iter().enumerate() {
            operand = self.b.insert(operand, value, k as u32);
        }
        let before = self.b.current();
        let [retry, done] = ["retry", "updated"].map(|name| self.b.block(self.llvm, name));
        let (first, _) = self.b.load(word, address);
        self.b.br(retry);
        self.b.at(retry);
        let seen = self.b.phi(word);
        incoming(seen, first, before);
        let old = self.b.cast(Opcode::BitCast, seen.as_basic_value(), all);
        let sum = self.b.fop(Opcode::FAdd, old, operand, self.flags);
        let new = self.b.cast(Opcode::BitCast, sum, word);
        let (found, stored) = self.b.cmpxchg(address, seen.as_basic_value(), new, false);
        incoming(seen, found, retry);
        self.b.cond_br(stored, done, retry);
        self.b.at(done);
    }

    pub(crate) fn cas(&mut self, place: Value, expected: Value, value: Value) -> Val<'ctx> {
        let ty = self.pointee(place);
        let expected = self.to_word(ty, self.value(expected));
        let new = self.to_word(ty, self.value(value));
        let kind = self.place(place);
        self.by_owner(
            place,
            &kind,
            |s| {
                let old = s.load_from(place, &kind);
                let word = s.to_word(ty, old);
                let is_expected = s.b.icmp(IntPredicate::EQ, word, expected);
                let next = s.b.select(is_expected, new, word);
                let next = s.of_word(ty, next);
                s.store_to(place, &kind, next);
                old
            },
            |s| {
                let (old, _) = s.swap(s.value(place), expected, new, true);
                s.of_word(ty, old)
            },
        )
    }

    /// A value as the integer that its bytes in memory are.
    fn to_word(&self, ty: ScalarType, value: Val<'ctx>) -> Val<'ctx> {
        let value = self.b.to_stored(ty, value);
        if ty.is_float() {
            self.b.cast(Opcode::BitCast, value, bits(self.b.ctx, ty))
        } else {
            value
        }
    }

    fn of_word(&self, ty: ScalarType, word: Val<'ctx>) -> Val<'ctx> {
        if ty.is_float() {
            self.b.cast(Opcode::BitCast, word, scalar(self.b.ctx, ty))
        } else {
            self.b.of_stored(ty, word)
        }
    }
}

/// LLVM's own atomic for an operation, if it has one.
pub(crate) fn native(op: AtomicOp, ty: ScalarType) -> Option<RmwOp> {
    use AtomicOp::*;
    let float = ty.is_float();
    Some(match op {
        // LLVM makes calls of C's functions of these.
        Min | Max if ty == ScalarType::F16 => return None,
        Add | Sub | Min | Max if ty == ScalarType::BF16 => return None,
        Add if float => RmwOp::LLVMAtomicRMWBinOpFAdd,
        Sub if float => RmwOp::LLVMAtomicRMWBinOpFSub,
        Min if float => RmwOp::LLVMAtomicRMWBinOpFMin,
        Max if float => RmwOp::LLVMAtomicRMWBinOpFMax,
        // A boolean is the low bit of a byte, so sums do not wrap by themselves.
        Add | Sub if ty == ScalarType::U1 => RmwOp::LLVMAtomicRMWBinOpXor,
        Add => RmwOp::LLVMAtomicRMWBinOpAdd,
        Sub => RmwOp::LLVMAtomicRMWBinOpSub,
        Min if ty.is_signed() => RmwOp::LLVMAtomicRMWBinOpMin,
        Max if ty.is_signed() => RmwOp::LLVMAtomicRMWBinOpMax,
        Min => RmwOp::LLVMAtomicRMWBinOpUMin,
        Max => RmwOp::LLVMAtomicRMWBinOpUMax,
        And => RmwOp::LLVMAtomicRMWBinOpAnd,
        Or => RmwOp::LLVMAtomicRMWBinOpOr,
        Xor => RmwOp::LLVMAtomicRMWBinOpXor,
        Exchange => RmwOp::LLVMAtomicRMWBinOpXchg,
        Mul => return None,
    })
}
