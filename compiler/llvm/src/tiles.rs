//! Parts of a parallel loop over several axes are walked in tiles where one access goes along rows and another across.
//!
//! ```text
//! for i, j: b[i, j] = a[j, i]     ==>     for tile of j:  for i:  for j in tile:  b[i, j] = a[j, i]
//! ```
//! Along a row of `b`, every element of `a` lies on a different cache line. The next row needs the same lines, but a long row has
//! evicted them from the cache. A tile is narrow enough for its lines to stay cached.
//! (Wolf and Lam, *A data locality optimizing algorithm*, PLDI 1991.)

use aerogel_ir::{BinaryOp, Function, NodeOp, Op, Region, Value, walk};
use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::PhiValue;

use crate::builder::{Opcode, Val, basic, incoming};
use crate::context::FuncCx;

/// Columns of a tile: those of one cache line of `f32`. A power of two. Rows whose length in bytes is a power of two share few
/// sets of a cache, so more lines would not stay.
pub(crate) const WIDTH: i64 = 16;

/// Whether iterations of a loop over several axes access memory along rows and across, and may run in any order.
pub(crate) fn are_worth_it(func: &Function, body: Region) -> bool {
    let Some((&counter, outer)) = func.regions[body].params.split_last() else {
        return false;
    };
    let mut across = false;
    let mut any_order = true;
    walk(func, body, &mut |func, inst| {
        let indices = match &func[inst] {
            Op::Node(NodeOp::Linearize { coords, .. }) => coords,
            Op::ArrayAt { indices, .. } => indices,
            // The order of sums is that of the loop, as long as it is.
            Op::Atomic { .. } => return any_order = false,
            &Op::Store { place, .. } => return any_order &= !is_local(func, place),
            _ => return,
        };
        if let Some((&last, others)) = indices.split_last() {
            across |= outer.contains(&base(func, last))
                && others.iter().any(|&other| base(func, other) == counter);
        }
    });
    across && any_order
}

/// The value to which an index adds a constant.
fn base(func: &Function, index: Value) -> Value {
    match func.def_op(index) {
        Some(&Op::Cast { x }) => base(func, x),
        Some(&Op::Binary {
            op: BinaryOp::Add | BinaryOp::Sub,
            lhs,
            rhs,
        }) if func.as_const(rhs).is_some() => base(func, lhs),
        Some(&Op::Binary {
            op: BinaryOp::Add,
            lhs,
            rhs,
        }) if func.as_const(lhs).is_some() => base(func, rhs),
        _ => index,
    }
}

fn is_local(func: &Function, place: Value) -> bool {
    match func.def_op(place) {
        Some(&Op::ElemRef { base, .. } | &Op::MemberRef { base, .. }) => is_local(func, base),
        Some(Op::Local {}) => true,
        _ => false,
    }
}

/// The loop over the tiles of a part.
pub(crate) struct Tiles<'ctx> {
    /// Whether the part consists of whole rows.
    pub(crate) whole_rows: Val<'ctx>,
    pub(crate) width: Val<'ctx>,
    /// The first column of the tile.
    pub(crate) column: Val<'ctx>,
    counter: PhiValue<'ctx>,
    again: BasicBlock<'ctx>,
    pub(crate) next: BasicBlock<'ctx>,
}

impl<'ctx> FuncCx<'_, '_, 'ctx> {
    /// Begins the loop over the tiles of a part. A part that does not consist of whole rows has one tile, as wide as a row.
    pub(crate) fn begin_tiles(
        &mut self,
        [lo, hi]: [Val<'ctx>; 2],
        start: Val<'ctx>,
        row_length: Val<'ctx>,
    ) -> Tiles<'ctx> {
        let length = self.b.nsw(Opcode::Sub, hi, lo);
        let rest = self.b.op(Opcode::URem, length, row_length);
        let ragged = self.b.op(Opcode::Or, rest, start);
        let whole_rows = self.b.is_zero(ragged);
        let width = self.b.select(whole_rows, self.b.i64(WIDTH), row_length);
        let [again, next] = ["tile", "tile_done"].map(|n| self.b.block(self.llvm, n));
        let before = self.b.current();
        self.b.br(again);
        self.b.at(again);
        let column = self.b.phi(basic(self.b.i64_type()));
        incoming(column, self.b.i64(0), before);
        Tiles {
            whole_rows,
            width,
            column: column.as_basic_value(),
            counter: column,
            again,
            next,
        }
    }

    /// Ends a tile; control continues at `exit` after the last one.
    pub(crate) fn end_tile(
        &mut self,
        tiles: &Tiles<'ctx>,
        row_length: Val<'ctx>,
        exit: BasicBlock<'ctx>,
    ) {
        self.b.at(tiles.next);
        let column = self.b.nsw(Opcode::Add, tiles.column, tiles.width);
        incoming(tiles.counter, column, tiles.next);
        let more = self.b.icmp(IntPredicate::SLT, column, row_length);
        self.b.cond_br(more, tiles.again, exit);
    }
}
