//! Cooperation of the threads of a block on a GPU: shared storage, barriers, votes and shuffles.

use aerogel_base::ScalarType;
use aerogel_ir::{Function, Op, Region, ThreadOp, Value, walk};
use inkwell::module::Linkage;
use inkwell::types::BasicType;
use inkwell::values::FastMathFlags;

use crate::builder::{Opcode, Val, basic};
use crate::context::FuncCx;
use crate::types::{bits, stored};

/// The address space of memory that the threads of a block share.
pub(crate) const SHARED: u16 = 3;

/// Whether the iterations of a task's loop make up blocks: each has a thread of its own then. What stands before and behind
/// the loop runs once in each thread anyway.
pub(crate) fn in_blocks(kernel: &Function, body: Region) -> bool {
    let insts = kernel.regions[body].insts.iter();
    let each = insts.filter_map(|&inst| match kernel[inst] {
        Op::Each { body } => Some(body),
        _ => None,
    });
    let mut found = false;
    for body in each {
        walk(kernel, body, &mut |func, inst| {
            found |= matches!(func[inst], Op::Shared {} | Op::Threads { .. });
        });
    }
    found
}

/// Whether the threads of a block share storage in a task.
pub(crate) fn share(kernel: &Function, body: Region) -> bool {
    let mut found = false;
    walk(kernel, body, &mut |func, inst| {
        found |= matches!(func[inst], Op::Shared {});
    });
    found
}

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Storage that the threads of a block share.
    pub(crate) fn shared(&mut self, result: Value) -> Val<'ctx> {
        let ty = self.func.ty(result).pointee().expect("it is a storage");
        let elem = stored(self.b.ctx, ty.elem().expect("it holds numbers"));
        let n = if ty.is_tensor() { ty.n_elems() } else { 1 };
        let array = elem.array_type(n);
        let space = inkwell::AddressSpace::from(SHARED);
        let global = self.cx.llvm.add_global(array, Some(space), "shared");
        global.set_linkage(Linkage::Internal);
        global.set_initializer(&array.get_undef());
        global.set_alignment(16);
        let place = global.as_pointer_value().into();
        self.b
            .cast(Opcode::AddrSpaceCast, place, basic(self.b.ptr_type()))
    }

    /// What threads do together; nothing where there is no result.
    pub(crate) fn threads(&mut self, op: ThreadOp, args: &[Value]) -> Option<Val<'ctx>> {
        let none = FastMathFlags::empty();
        let i32_ty = basic(self.b.ctx.i32_type());
        let number = |n: i64| self.b.int(i32_ty, n);
        let arg = |k: usize| self.value(args[k]);
        let ask = |name: &str, args: &[Val<'ctx>]| self.b.intrinsic(name, &[], args, none);
        let act = |name: &str, args: &[Val<'ctx>]| {
            self.b.effect_intrinsic(name, args);
            None
        };
        let name = match op {
            ThreadOp::BlockSync => {
                return act("llvm.nvvm.barrier.cta.sync.aligned.all", &[number(0)]);
            }
            ThreadOp::WarpSync => return act("llvm.nvvm.bar.warp.sync", &[arg(0)]),
            ThreadOp::BlockFence => return act("llvm.nvvm.membar.cta", &[]),
            ThreadOp::GridFence => return act("llvm.nvvm.membar.gl", &[]),
            ThreadOp::ThreadInBlock => {
                return Some(ask("llvm.nvvm.read.ptx.sreg.tid.x", &[]));
            }
            ThreadOp::BlockSize => return Some(ask("llvm.nvvm.read.ptx.sreg.ntid.x", &[])),
            ThreadOp::ThreadInGrid => {
                let read = |name: &str| ask(&format!("llvm.nvvm.read.ptx.sreg.{name}.x"), &[]);
                let before = self.b.op(Opcode::Mul, read("ctaid"), read("ntid"));
                return Some(self.b.op(Opcode::Add, before, read("tid")));
            }
            ThreadOp::ActiveMask => return Some(ask("llvm.nvvm.activemask", &[])),
            ThreadOp::BlockAll => "llvm.nvvm.barrier.cta.red.and.aligned.all",
            ThreadOp::BlockAny => "llvm.nvvm.barrier.cta.red.or.aligned.all",
            ThreadOp::BlockCount => "llvm.nvvm.barrier.cta.red.popc.aligned.all",
            ThreadOp::Ballot => "llvm.nvvm.vote.ballot.sync",
            ThreadOp::VoteAll => "llvm.nvvm.vote.all.sync",
            ThreadOp::VoteAny => "llvm.nvvm.vote.any.sync",
            ThreadOp::VoteUniform => "llvm.nvvm.vote.uni.sync",
            ThreadOp::MatchAny | ThreadOp::MatchAll => return Some(self.matching(op, args)),
            ThreadOp::Shuffle => return Some(self.shuffled("idx", args, 31)),
            // A lane before the first of them is none.
            ThreadOp::ShuffleUp => return Some(self.shuffled("up", args, 0)),
            ThreadOp::ShuffleDown => return Some(self.shuffled("down", args, 31)),
            ThreadOp::ShuffleXor => return Some(self.shuffled("bfly", args, 31)),
        };
        let first = match op {
            ThreadOp::BlockAll | ThreadOp::BlockAny | ThreadOp::BlockCount => {
                return Some(ask(name, &[number(0), arg(0)]));
            }
            _ => arg(0),
        };
        Some(ask(name, &[first, arg(1)]))
    }

    /// The lanes that have one number.
    fn matching(&mut self, op: ThreadOp, args: &[Value]) -> Val<'ctx> {
        let none = FastMathFlags::empty();
        let ty = self.func.elem(args[1]);
        let number = self.value(args[1]);
        let is_wide = ty.bytes() == 8;
        let number = match is_wide {
            true => self
                .b
                .cast(Opcode::BitCast, number, basic(self.b.i64_type())),
            false => self.in_word(ty, number),
        };
        let width = if is_wide { 64 } else { 32 };
        let args = [self.value(args[0]), number];
        if op == ThreadOp::MatchAny {
            let name = format!("llvm.nvvm.match.any.sync.i{width}");
            return self.b.intrinsic(&name, &[], &args, none);
        }
        let name = format!("llvm.nvvm.match.all.sync.i{width}p");
        let both = self.b.intrinsic(&name, &[], &args, none);
        self.b.member(both, 0)
    }

    /// The number of another lane: the operands are the mask, the own number, and which lane.
    fn shuffled(&mut self, kind: &str, args: &[Value], last: i64) -> Val<'ctx> {
        let ty = self.func.elem(args[1]);
        let [mask, own, lane] = [args[0], args[1], args[2]].map(|v| self.value(v));
        self.of_other_lane(
            kind,
            ty,
            mask,
            own,
            [lane, self.b.int(basic(self.b.ctx.i32_type()), last)],
        )
    }

    /// A number of no more than 32 bits as a word.
    fn in_word(&mut self, ty: ScalarType, number: Val<'ctx>) -> Val<'ctx> {
        let i32_ty = basic(self.b.ctx.i32_type());
        let word_ty = match ty {
            ScalarType::U1 => number.get_type(),
            ty => bits(self.b.ctx, ty),
        };
        let word = self.b.cast(Opcode::BitCast, number, word_ty);
        match ty.bytes() {
            4 => word,
            _ => self.b.cast(Opcode::ZExt, word, i32_ty),
        }
    }

    /// The number of another lane, in pieces of 32 bits: `which` says which lane, and how far lanes go.
    pub(crate) fn of_other_lane(
        &mut self,
        kind: &str,
        ty: ScalarType,
        mask: Val<'ctx>,
        own: Val<'ctx>,
        which: [Val<'ctx>; 2],
    ) -> Val<'ctx> {
        let i32_ty = basic(self.b.ctx.i32_type());
        let name = format!("llvm.nvvm.shfl.sync.{kind}.i32");
        let shuffle = |s: &Self, word: Val<'ctx>| {
            let args = [mask, word, which[0], which[1]];
            s.b.intrinsic(&name, &[], &args, FastMathFlags::empty())
        };
        if ty.bytes() == 8 {
            let wide = basic(self.b.i64_type());
            let word = self.b.cast(Opcode::BitCast, own, wide);
            let low = self.b.cast(Opcode::Trunc, word, i32_ty);
            let high = self.b.op(Opcode::LShr, word, self.b.i64(32));
            let high = self.b.cast(Opcode::Trunc, high, i32_ty);
            let [low, high] =
                [low, high].map(|half| self.b.cast(Opcode::ZExt, shuffle(self, half), wide));
            let high = self.b.op(Opcode::Shl, high, self.b.i64(32));
            let both = self.b.or(low, high);
            return self.b.cast(Opcode::BitCast, both, own.get_type());
        }
        let word = self.in_word(ty, own);
        let other = shuffle(self, word);
        let word_ty = match ty {
            ScalarType::U1 => own.get_type(),
            ty => bits(self.b.ctx, ty),
        };
        let other = match ty.bytes() {
            4 => other,
            _ => self.b.cast(Opcode::Trunc, other, word_ty),
        };
        self.b.cast(Opcode::BitCast, other, own.get_type())
    }
}
