//! Storage that grows: a handle for each buffer of a function, through which the host gives memory.
//!
//! A buffer's handle lies in the frame of its function: where its memory begins, and how many bytes it has. It keeps its
//! memory from one iteration of a task's part to the next, so that few iterations have to request more.

use aerogel_ir::{Inst, Op, Region, Type, Value, walk};
use aerogel_runtime::abi::offset;
use inkwell::IntPredicate;

use crate::builder::{Opcode, Val, basic, incoming, zero};
use crate::context::FuncCx;

/// Where the handle holds its size, behind the address.
const SIZE: i64 = 8;
/// Memory of a launch's heap comes in multiples of so many bytes, a power of two.
const LEAST: i64 = 256;

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Makes the handles of all buffers of a region, before anything can leave the function.
    pub(crate) fn declare_buffers(&mut self, region: Region) {
        let mut found = Vec::new();
        walk(self.func, region, &mut |func, inst| {
            if let Op::Buffer {} = func[inst] {
                found.push(inst);
            }
        });
        for inst in found {
            let ty = self.b.i64_type().array_type(2);
            let handle = self.in_entry(|f| {
                let handle = f.b.alloca(basic(ty));
                f.b.store(handle.into(), ty.const_zero().into());
                handle
            });
            self.buffers.push((inst, handle));
        }
    }

    /// The handle of a buffer.
    pub(crate) fn buffer(&mut self, inst: Inst) -> Val<'ctx> {
        let mut all = self.buffers.iter();
        let found = all.find(|(of, _)| *of == inst);
        found.expect("all buffers are declared first").1.into()
    }

    /// Where a buffer has room for `count` scalars, and whether there was memory for it.
    pub(crate) fn reserve(&mut self, buffer: Value, count: Value) -> [Val<'ctx>; 2] {
        let count = self.index(count);
        self.reserve_scalars(buffer, count)
    }

    pub(crate) fn reserve_scalars(&mut self, buffer: Value, count: Val<'ctx>) -> [Val<'ctx>; 2] {
        let Type::Buffer(elem) = self.func.ty(buffer) else {
            unreachable!("the verifier checked that it is a buffer")
        };
        let handle = self.value(buffer);
        let ptr = basic(self.b.ptr_type());
        let size = self.b.i64(i64::from(elem.bytes()));
        let wanted = self.b.op(Opcode::Mul, count, size);
        let at_size = self.b.offset(handle, self.b.i64(SIZE));
        let (has, _) = self.b.load(basic(self.b.i64_type()), at_size);
        let [ask, go_on] = ["ask", "reserved"].map(|name| self.b.block(self.llvm, name));
        let (data, _) = self.b.load(ptr, handle);
        let enough = self.b.icmp(IntPredicate::SLE, wanted, has);
        let before = self.b.current();
        self.b.likely_br(enough, go_on, ask);
        self.b.at(ask);
        let answer = if self.cx.target.grid {
            self.take_of_heap(handle, [data, has], wanted)
        } else {
            let answer = self.call_host(offset::HOST_RESERVE, Some(ptr), &[handle, wanted]);
            answer.expect("the function has a result")
        };
        let asked = self.b.current();
        self.b.br(go_on);
        self.b.at(go_on);
        let phi = self.b.phi(ptr);
        incoming(phi, data, before);
        incoming(phi, answer, asked);
        let room = phi.as_basic_value();
        // Nothing is wanted of a buffer without memory, and given.
        let none = self.b.icmp(IntPredicate::SLE, wanted, self.b.i64(0));
        let address = self
            .b
            .cast(Opcode::PtrToInt, room, basic(self.b.i64_type()));
        let given = self.b.not(self.b.is_zero(address));
        let fine = self.b.or(given, none);
        [room, fine]
    }

    /// Takes memory of the launch's heap for a buffer, twice as much as it has at least, and moves it there: its address, or
    /// null if there is no more. What it had before is the heap's again when the task is over.
    fn take_of_heap(
        &mut self,
        handle: Val<'ctx>,
        [data, has]: [Val<'ctx>; 2],
        wanted: Val<'ctx>,
    ) -> Val<'ctx> {
        let b = &self.b;
        let double = b.op(Opcode::Mul, has, b.i64(2));
        let mut size = b.op(Opcode::Add, wanted, b.i64(LEAST - 1));
        for most in [double, b.i64(LEAST)] {
            let less = b.icmp(IntPredicate::SLT, size, most);
            size = b.select(less, most, size);
        }
        let size = b.and(size, b.i64(-LEAST));
        let services = self.context_field(offset::HOST);
        let at = |s: &Self, field: u64| s.b.offset(services, s.b.i64(field as i64));
        let i64_ty = basic(self.b.i64_type());
        let first = self.b.add_shared(at(self, offset::HEAP_TAKEN), size);
        let end = self.b.op(Opcode::Add, first, size);
        let (room, _) = self.b.load(i64_ty, at(self, offset::HEAP_BYTES));
        let fits = self.b.icmp(IntPredicate::ULE, end, room);
        let before = self.b.current();
        let [take, taken] = ["take", "taken"].map(|name| self.b.block(self.llvm, name));
        self.b.cond_br(fits, take, taken);

        self.b.at(take);
        let ptr = basic(self.b.ptr_type());
        let (heap, _) = self.b.load(ptr, at(self, offset::HEAP));
        let place = self.b.offset(heap, first);
        self.b.memcpy(place, data, has, 8);
        self.b.store(handle, place);
        let at_size = self.b.offset(handle, self.b.i64(SIZE));
        self.b.store(at_size, size);
        let took = self.b.current();
        self.b.br(taken);

        self.b.at(taken);
        let phi = self.b.phi(ptr);
        incoming(phi, zero(ptr), before);
        incoming(phi, place, took);
        phi.as_basic_value()
    }

    /// The storage of a scalar of a room.
    pub(crate) fn room_at(&mut self, room: Value, index: Value) -> Val<'ctx> {
        let index = self.index(index);
        self.room_scalar(room, index)
    }

    pub(crate) fn room_scalar(&mut self, room: Value, index: Val<'ctx>) -> Val<'ctx> {
        let Type::Room(elem) = self.func.ty(room) else {
            unreachable!("the verifier checked that it is a room")
        };
        self.element(self.value(room), index, u64::from(elem.bytes()))
    }

    /// Gives the memory of all buffers back.
    pub(crate) fn release_buffers(&mut self) {
        if self.cx.target.grid {
            return;
        }
        for (_, handle) in self.buffers.clone() {
            self.call_host(offset::HOST_RELEASE, None, &[handle.into()]);
        }
    }
}
