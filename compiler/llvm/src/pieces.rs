//! Long loops that run in order are cut into pieces, between which the launch can be interrupted.
//!
//! ```text
//! for i = lo; i < hi { body }   ==>   for piece = lo; piece < hi; piece += n { poll; for i in piece { body } }
//! ```
//! The loop over a piece is as before, so that it becomes vectors.

use aerogel_ir::analysis::cost;
use aerogel_ir::{Function, Region, Value};
use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::PhiValue;

use crate::builder::{Opcode, Val, incoming};
use crate::context::FuncCx;
use crate::control::values_of;

/// Nanoseconds that a piece takes by the compiler's estimate: memory, functions and other programs make it up to a
/// hundred times as long.
const PIECE: f32 = 2e6;
/// The most iterations of a piece.
const LONGEST: i64 = 1 << 22;

/// How many iterations of a loop run between two looks at the request to stop.
pub(crate) fn length(func: &Function, body: Region) -> i64 {
    ((PIECE / cost::region(func, body).max(0.1)) as i64).clamp(1, LONGEST)
}

/// The loop over the pieces of a loop.
pub(crate) struct Pieces<'ctx> {
    head: BasicBlock<'ctx>,
    /// Where the last piece is over.
    done: BasicBlock<'ctx>,
    /// Where a piece begins, and where it ends.
    start: PhiValue<'ctx>,
    pub(crate) end: Val<'ctx>,
    carried: Vec<PhiValue<'ctx>>,
    /// Where all pieces end.
    hi: Val<'ctx>,
    signed: bool,
}

impl<'ctx> Pieces<'ctx> {
    /// Where control goes when a piece is over.
    pub(crate) fn done(&self) -> BasicBlock<'ctx> {
        self.done
    }

    /// The counter and the carried values with which a piece begins.
    pub(crate) fn first(&self) -> (Val<'ctx>, Vec<Val<'ctx>>) {
        (self.start.as_basic_value(), values_of(&self.carried))
    }
}

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Begins a piece of at most `n` iterations of the loop from `lo` to `hi`, whose results are `results`.
    pub(crate) fn begin_pieces(
        &mut self,
        n: i64,
        ([lo, hi], signed): ([Val<'ctx>; 2], bool),
        init: &[Val<'ctx>],
        results: &[Value],
    ) -> Pieces<'ctx> {
        let before = self.b.current();
        let [head, done] = ["pieces", "piece_done"].map(|name| self.b.block(self.llvm, name));
        self.b.br(head);
        self.b.at(head);
        let start = self.b.phi(lo.get_type());
        let carried = self.phis(results);
        incoming(start, lo, before);
        for (&phi, &value) in carried.iter().zip(init) {
            incoming(phi, value, before);
        }
        let b = &self.b;
        let at = start.as_basic_value();
        let n = b.int(lo.get_type(), n);
        let left = b.op(Opcode::Sub, hi, at);
        let many = b.and(b.less(signed, at, hi), b.icmp(IntPredicate::UGT, left, n));
        let end = b.select(many, b.op(Opcode::Add, at, n), hi);
        Pieces {
            head,
            done,
            start,
            end,
            carried,
            hi,
            signed,
        }
    }

    /// Ends a piece with the values that it carries: another one begins, or the loop is left.
    pub(crate) fn end_piece(
        &mut self,
        pieces: &Pieces<'ctx>,
        values: &[Val<'ctx>],
        exit: BasicBlock<'ctx>,
    ) {
        self.b.at(pieces.done);
        let again = self.b.block(self.llvm, "again");
        let more = self.b.less(pieces.signed, pieces.end, pieces.hi);
        self.b.cond_br(more, again, exit);
        self.b.at(again);
        self.poll();
        let from = self.b.current();
        incoming(pieces.start, pieces.end, from);
        for (&phi, &value) in pieces.carried.iter().zip(values) {
            incoming(phi, value, from);
        }
        self.b.br(pieces.head);
    }

    /// Of how many iterations pieces of an innermost loop are, if one thread runs all of its task and it may be long.
    pub(crate) fn piece_of(&self, body: Region, length_of: Option<u64>, bits: u32) -> Option<i64> {
        let alone = self.task.as_ref().is_some_and(|task| task.serial);
        let n = length(self.func, body);
        let is_long = length_of.is_none_or(|all| all > n as u64) && bits >= i32::BITS;
        (alone && is_long && !self.cx.target.grid).then_some(n)
    }
}
