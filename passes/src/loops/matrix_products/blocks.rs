//! The loop over the blocks of a product, in the place of the nest that made it.

use aerogel_base::hash::LookupMap;
use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::{BinaryOp, Builder, CompareOp, Function, Inst, Op, Type, Value};

use super::{Axis, End, Product, Sums};
use crate::loops::copies::Copies;

/// Rows of a tile: so many sums of two vectors are made at once that none is waited for.
const ROWS: i32 = 12;
/// Bytes of a tile's row: two of the widest vectors.
const TILE_BYTES: i32 = 128;
/// The most rows of a block: so many tiles read a panel of the right factor while it is in the cache. Blocks have fewer rows
/// where there would be fewer blocks than threads.
const BLOCK_ROWS: i32 = 96;
/// More threads than this do not make blocks smaller.
const MOST_THREADS: u32 = 1 << 12;
/// Bytes of a block's row.
const BLOCK_BYTES: i32 = 1024;
/// So many products of each sum are made at a time.
const DEPTH: i32 = 256;
/// Rows are a cache line longer than what they hold, so that they do not share the sets of a cache.
const LINE: i32 = 64;

/// Fewer rows, columns, or products of each sum are as well done by loops.
const LEAST: [i32; 3] = [8, 16, 16];
/// Fewer products altogether are, too.
const LEAST_PRODUCTS: i64 = 24 * 24 * 24;
/// Where sizes are constants, so few products are not worth the time that tiles take to compile.
const LEAST_KNOWN_CARRIED: i64 = 40 * 40 * 40;
const LEAST_KNOWN_IN_MEMORY: i64 = 48 * 48 * 48;
/// Loops compute sums that they carry for so many columns at once, and those of the columns left over one by one. Where none is left
/// over, loops are as fast as tiles up to so many products.
const COLUMNS_AT_ONCE: i32 = 64;
const LEAST_AT_ONCE: i64 = 80 * 80 * 80;

/// Where everything lies in a block's room, in numbers.
struct Layout {
    ty: ScalarType,
    /// Columns of a tile, and of a block.
    tile: i32,
    columns: i32,
    left_row: i32,
    sums_row: i32,
    right: i32,
    sums: i32,
    count: i32,
}

impl Layout {
    fn of(ty: ScalarType) -> Self {
        let bytes = ty.bytes() as i32;
        let columns = BLOCK_BYTES / bytes;
        let left_row = DEPTH + LINE / bytes;
        let sums_row = columns + LINE / bytes;
        let right = BLOCK_ROWS * left_row;
        let sums = right + DEPTH * columns;
        Self {
            ty,
            tile: TILE_BYTES / bytes,
            columns,
            left_row,
            sums_row,
            right,
            sums,
            count: sums + BLOCK_ROWS * sums_row,
        }
    }
}

/// Puts a loop over blocks in the place of a nest, if that is worth it; whether nothing of the nest is left.
pub(super) fn write(
    func: &mut Function,
    inst: Inst,
    product: &Product,
    n_threads: u32,
) -> Option<bool> {
    let extents = [product.row, product.column, product.inner].map(|axis| {
        let [lo, hi] = product.axes[axis].ends.map(|end| end.constant(func));
        Some((hi? - lo?).max(0))
    });
    let is_small = |(n, least): (&Option<i128>, i32)| n.is_some_and(|n| n < i128::from(least));
    if extents.iter().zip(LEAST).any(is_small) {
        return None;
    }
    let known = extents.iter().copied().collect::<Option<Vec<i128>>>();
    let is_known = known.is_some();
    let is_carried = matches!(product.sums, Sums::Carried { .. });
    if let Some(known) = known {
        let least = match is_carried {
            true if known[1] % i128::from(COLUMNS_AT_ONCE) == 0 => LEAST_AT_ONCE,
            true => LEAST_KNOWN_CARRIED,
            false => LEAST_KNOWN_IN_MEMORY,
        };
        if known.iter().product::<i128>() < i128::from(least) {
            return None;
        }
    }
    let layout = Layout::of(product.ty);
    let before = func.new_region(&[]);
    let span = func.insts[inst].span;
    let mut b = Builder::new(func, before);
    b.span = span;
    let mut fixed = Copies::new(&product.inside);
    let ends: Vec<[Value; 2]> = product
        .axes
        .iter()
        .map(|axis| axis.ends.map(|end| value_of(&mut b, &mut fixed, end)))
        .collect();
    let extents =
        [product.row, product.column, product.inner].map(|axis| extent(&mut b, ends[axis]));
    let zero = b.i32(0);
    let block_columns = b.i32(layout.columns);
    let others = n_parts(&mut b, extents[1], block_columns);
    let batch: Vec<usize> = (0..product.axes.len())
        .filter(|&k| ![product.row, product.column, product.inner].contains(&k))
        .collect();
    let mut beside = vec![others];
    beside.extend(batch.iter().map(|&k| extent(&mut b, ends[k])));
    let block_rows = block_rows(&mut b, extents[0], &beside, n_threads);
    let mut blocks = n_parts(&mut b, extents[0], block_rows);
    if !is_known {
        let worth_it = worth_it(&mut b, extents, is_carried);
        blocks = b.select(worth_it, blocks, zero);
        small_only(&mut b, inst, worth_it);
    }
    let mut lo: Vec<Value> = batch.iter().map(|&k| ends[k][0]).collect();
    let mut hi: Vec<Value> = batch.iter().map(|&k| ends[k][1]).collect();
    lo.extend([zero; 2]);
    hi.extend([blocks, others]);
    let params = vec![Type::I32; lo.len()];
    let body = b.region(&params, |b, params| {
        let mut at = LookupMap::default();
        for (&k, &param) in batch.iter().zip(params) {
            at.insert(product.axes[k].counter, param);
        }
        let [row, column] = [params[params.len() - 2], params[params.len() - 1]];
        Block {
            product,
            layout: &layout,
            ends: &ends,
            extents,
            block_rows,
            batch: at,
        }
        .write(b, [row, column]);
    });
    let op = Op::Parallel {
        lo,
        hi,
        attrs: product.attrs,
        body,
    };
    let new = b.effect(op);
    let added = std::mem::take(&mut func.regions[before].insts);
    let top = func.body;
    let insts = &mut func.regions[top].insts;
    let at = insts.iter().position(|&i| i == inst);
    let at = at.expect("the loop stands there");
    if is_known {
        insts.splice(at..=at, added);
    } else {
        // What decides stands before both.
        debug_assert_eq!(added.last(), Some(&new));
        insts.splice(at..at, added);
    }
    Some(is_known)
}

fn value_of(b: &mut Builder<'_>, fixed: &mut Copies<'_>, end: End) -> Value {
    match end {
        End::Value(value) => fixed.value(b, value),
        End::Const(number) => b.i32(number),
    }
}

/// The number of iterations from one end to the other.
fn extent(b: &mut Builder<'_>, [lo, hi]: [Value; 2]) -> Value {
    let is_some = b.compare(CompareOp::Lt, lo, hi);
    let distance = b.binary(BinaryOp::Sub, hi, lo);
    let zero = b.i32(0);
    b.select(is_some, distance, zero)
}

/// Of how many parts of a size something consists, the last of which may be smaller.
fn n_parts(b: &mut Builder<'_>, n: Value, size: Value) -> Value {
    let whole = b.binary(BinaryOp::Div, n, size);
    let rest = b.binary(BinaryOp::Rem, n, size);
    let zero = b.i32(0);
    let one = b.i32(1);
    let is_more = b.compare(CompareOp::Gt, rest, zero);
    let more = b.select(is_more, one, zero);
    b.binary(BinaryOp::Add, whole, more)
}

/// The number of rows of a block, a multiple of a tile's: blocks are of equal size, and there is at least one for each thread.
/// `beside` has the numbers of blocks along the other axes. Each block copies the right factor, so there are no more than
/// needed.
fn block_rows(b: &mut Builder<'_>, rows: Value, beside: &[Value], n_threads: u32) -> Value {
    let [most, tile, one] = [BLOCK_ROWS, ROWS, 1].map(|n| b.i32(n));
    let n_threads = b.i32(n_threads.clamp(1, MOST_THREADS) as i32);
    // More of them than threads matter no more.
    let mut others = one;
    for &n in beside {
        let n = b.binary(BinaryOp::Max, n, one);
        let n = b.binary(BinaryOp::Min, n, n_threads);
        others = b.binary(BinaryOp::Mul, others, n);
        others = b.binary(BinaryOp::Min, others, n_threads);
    }
    let least = n_parts(b, rows, most);
    let parts = n_parts(b, n_threads, others);
    let rounds = n_parts(b, least, parts);
    let blocks = b.binary(BinaryOp::Mul, rounds, parts);
    let blocks = b.binary(BinaryOp::Max, blocks, one);
    let even = n_parts(b, rows, blocks);
    let tiles = n_parts(b, even, tile);
    let tiles = b.binary(BinaryOp::Max, tiles, one);
    b.binary(BinaryOp::Mul, tiles, tile)
}

/// Whether a product is so large that blocks of it are better than loops.
fn worth_it(b: &mut Builder<'_>, extents: [Value; 3], is_carried: bool) -> Value {
    let products = times(b, &extents);
    let mut least = b.constant(Scalar::int(ScalarType::I64, LEAST_PRODUCTS.into()));
    if is_carried {
        let at_once = b.i32(COLUMNS_AT_ONCE);
        let left_over = b.binary(BinaryOp::Rem, extents[1], at_once);
        let zero = b.i32(0);
        let is_whole = b.compare(CompareOp::Eq, left_over, zero);
        let least_at_once = b.constant(Scalar::int(ScalarType::I64, LEAST_AT_ONCE.into()));
        least = b.select(is_whole, least_at_once, least);
    }
    let mut all = b.compare(CompareOp::Ge, products, least);
    for (n, least) in extents.into_iter().zip(LEAST) {
        let least = b.i32(least);
        let enough = b.compare(CompareOp::Ge, n, least);
        all = b.binary(BinaryOp::And, all, enough);
    }
    all
}

/// A product of numbers of rows, columns and products, of which there are fewer than 2^21 each where it matters.
fn times(b: &mut Builder<'_>, numbers: &[Value]) -> Value {
    let most = b.i32(1 << 20);
    let mut product = b.constant(Scalar::int(ScalarType::I64, 1));
    for &n in numbers {
        let n = b.binary(BinaryOp::Min, n, most);
        let n = b.cast(n, Type::I64);
        product = b.binary(BinaryOp::Mul, product, n);
    }
    product
}

/// Makes a loop run only where blocks are not worth it.
fn small_only(b: &mut Builder<'_>, inst: Inst, worth_it: Value) {
    let Op::Parallel {
        lo,
        mut hi,
        attrs,
        body,
    } = b.func[inst].clone()
    else {
        unreachable!("the sizes of fields are known")
    };
    hi[0] = b.select(worth_it, lo[0], hi[0]);
    b.func.insts[inst].op = Op::Parallel {
        lo,
        hi,
        attrs,
        body,
    };
}

/// What is the same in all blocks.
struct Block<'a> {
    product: &'a Product,
    layout: &'a Layout,
    ends: &'a [[Value; 2]],
    /// Numbers of rows, columns and products of each sum.
    extents: [Value; 3],
    block_rows: Value,
    batch: LookupMap<Value, Value>,
}

/// Numbers from a place on.
#[derive(Clone, Copy)]
struct Span {
    first: Value,
    len: Value,
}

impl Block<'_> {
    fn write(&self, b: &mut Builder<'_>, [row, column]: [Value; 2]) {
        let layout = self.layout;
        let width = b.i32(layout.columns);
        let rows = part(b, row, self.block_rows, self.extents[0]);
        let columns = part(b, column, width, self.extents[1]);
        let buffer = b.value(Op::Buffer {}, Type::Buffer(layout.ty));
        let count = b.i32(layout.count);
        let types = [Type::Room(layout.ty), Type::BOOL];
        let made = b.inst(Op::Reserve { buffer, count }, &types);
        let [room, granted] = b.func.insts[made].results[..] else {
            unreachable!("it has two results")
        };
        let in_tiles = |b: &mut Builder<'_>| {
            let zero = b.i32(0);
            let depth = b.i32(DEPTH);
            self.begin(b, room, rows, columns);
            let n = n_parts(b, self.extents[2], depth);
            b.for_(zero, n, |b, k| {
                let inner = part(b, k, depth, self.extents[2]);
                self.copy_left(b, room, rows, inner);
                self.copy_right(b, room, columns, inner);
                self.tiles(b, room, rows, columns, inner);
            });
            self.end(b, room, rows, columns);
        };
        // Without memory there is a way, too.
        b.if_(granted, &[], in_tiles, |b| self.by_loops(b, rows, columns));
    }

    /// The same by loops.
    fn by_loops(&self, b: &mut Builder<'_>, rows: Span, columns: Span) {
        let [lo, hi] = self.ends[self.product.inner];
        self.each_sum(b, rows, columns, |b, mut copies, _| {
            let init = vec![self.first(b, &mut copies)];
            let step = b.i32(1);
            let ty = Type::Scalar(self.layout.ty);
            let mut of_step = copies.clone();
            let body = b.region(&[Type::I32, ty], |b, params| {
                let inner = self.product.axes[self.product.inner].counter;
                of_step.made.insert(inner, params[0]);
                let [x, y] = self.product.factors.map(|f| of_step.value(b, f));
                let product = b.binary(BinaryOp::Mul, x, y);
                let sum = b.binary(BinaryOp::Add, product, params[1]);
                b.yields(vec![sum]);
            });
            let op = Op::For {
                lo,
                hi,
                step,
                init,
                body,
            };
            let sum = b.value(op, ty);
            self.last(b, copies, sum);
        });
    }

    /// A place of the room: `base + x * stride + y`.
    fn place(&self, b: &mut Builder<'_>, room: Value, base: i32, terms: &[(Value, i32)]) -> Value {
        let at = offset(b, base, terms);
        b.value(
            Op::RoomAt { room, index: at },
            Type::RefScalar(self.layout.ty),
        )
    }

    /// The counter of an axis, at a number from the block's first on.
    fn counter(&self, b: &mut Builder<'_>, axis: usize, span: Span, at: Value) -> Value {
        let index = b.binary(BinaryOp::Add, span.first, at);
        match b.func.as_const(self.ends[axis][0]) {
            Some(lo) if lo.is_zero() => index,
            _ => b.binary(BinaryOp::Add, index, self.ends[axis][0]),
        }
    }

    fn copies(&self, at: [(usize, Value); 2]) -> Copies<'_> {
        let mut copies = Copies::new(&self.product.inside);
        copies.made = self.batch.clone();
        for (axis, counter) in at {
            let Axis { counter: old, .. } = self.product.axes[axis];
            copies.made.insert(old, counter);
        }
        copies
    }

    /// For each row and column of the block, their numbers.
    fn each_sum(
        &self,
        b: &mut Builder<'_>,
        rows: Span,
        columns: Span,
        body: impl FnOnce(&mut Builder<'_>, Copies<'_>, [Value; 2]),
    ) {
        let zero = b.i32(0);
        let (row_axis, column_axis) = (self.product.row, self.product.column);
        b.for_(zero, rows.len, |b, r| {
            let row = self.counter(b, row_axis, rows, r);
            b.for_(zero, columns.len, |b, c| {
                let column = self.counter(b, column_axis, columns, c);
                let copies = self.copies([(row_axis, row), (column_axis, column)]);
                body(b, copies, [r, c]);
            });
        });
    }

    /// Where a sum begins.
    fn first(&self, b: &mut Builder<'_>, copies: &mut Copies<'_>) -> Value {
        match self.product.sums {
            Sums::Carried { at, .. } => {
                let Op::For { init, .. } = &b.func[at] else {
                    unreachable!("a loop carries the sums")
                };
                let init = init[0];
                copies.value(b, init)
            }
            Sums::Memory {
                cleared: Some(value),
                ..
            } => b.constant(value),
            Sums::Memory { place, .. } => {
                let from = copies.value(b, place);
                b.load(from)
            }
        }
    }

    /// What the nest makes of a sum.
    fn last(&self, b: &mut Builder<'_>, mut copies: Copies<'_>, sum: Value) {
        match self.product.sums {
            Sums::Memory { place, .. } => {
                let to = copies.value(b, place);
                b.store(to, sum);
            }
            Sums::Carried { region, at } => {
                copies.made.insert(b.func.insts[at].results[0], sum);
                let insts = b.func.regions[region].insts.clone();
                let (_, insts) = insts.split_last().expect("a region ends in a terminator");
                for &inst in insts {
                    let results = &b.func.insts[inst].results;
                    let is_made = results.first().is_some_and(|r| copies.made.contains_key(r));
                    if !is_made {
                        copies.inst(b, inst);
                    }
                }
            }
        }
    }

    fn begin(&self, b: &mut Builder<'_>, room: Value, rows: Span, columns: Span) {
        self.each_sum(b, rows, columns, |b, mut copies, at| {
            let value = self.first(b, &mut copies);
            let place = self.sum(b, room, at);
            b.store(place, value);
        });
    }

    fn end(&self, b: &mut Builder<'_>, room: Value, rows: Span, columns: Span) {
        self.each_sum(b, rows, columns, |b, copies, at| {
            let place = self.sum(b, room, at);
            let sum = b.load(place);
            self.last(b, copies, sum);
        });
    }

    /// The place of a sum of the block.
    fn sum(&self, b: &mut Builder<'_>, room: Value, [r, c]: [Value; 2]) -> Value {
        let terms = [(r, self.layout.sums_row), (c, 1)];
        self.place(b, room, self.layout.sums, &terms)
    }

    /// Copies the left factor row by row.
    fn copy_left(&self, b: &mut Builder<'_>, room: Value, rows: Span, inner: Span) {
        let zero = b.i32(0);
        let product = self.product;
        let copy = |b: &mut Builder<'_>, r: Value, k: Value| {
            let row = self.counter(b, product.row, rows, r);
            let at = self.counter(b, product.inner, inner, k);
            let mut copies = self.copies([(product.row, row), (product.inner, at)]);
            let value = copies.value(b, product.factors[0]);
            let place = self.place(b, room, 0, &[(r, self.layout.left_row), (k, 1)]);
            b.store(place, value);
        };
        if product.along[0] == product.row {
            b.for_(zero, inner.len, |b, k| {
                b.for_(zero, rows.len, |b, r| copy(b, r, k));
            });
        } else {
            b.for_(zero, rows.len, |b, r| {
                b.for_(zero, inner.len, |b, k| copy(b, r, k));
            });
        }
    }

    /// Copies the right factor, panels of as many columns as a tile has after each other.
    fn copy_right(&self, b: &mut Builder<'_>, room: Value, columns: Span, inner: Span) {
        let zero = b.i32(0);
        let (product, layout) = (self.product, self.layout);
        let whole = b.i32(layout.tile);
        let copy = |b: &mut Builder<'_>, panel: Value, k: Value, c: Value| {
            let all = offset(b, 0, &[(panel, layout.tile), (c, 1)]);
            let column = self.counter(b, product.column, columns, all);
            let at = self.counter(b, product.inner, inner, k);
            let mut copies = self.copies([(product.column, column), (product.inner, at)]);
            let value = copies.value(b, product.factors[1]);
            let terms = [(panel, DEPTH * layout.tile), (k, layout.tile), (c, 1)];
            let place = self.place(b, room, layout.right, &terms);
            b.store(place, value);
        };
        let full = b.binary(BinaryOp::Div, columns.len, whole);
        let rest = b.binary(BinaryOp::Rem, columns.len, whole);
        if product.along[1] == product.inner {
            let panels = n_parts(b, columns.len, whole);
            b.for_(zero, panels, |b, panel| {
                let is_full = b.compare(CompareOp::Lt, panel, full);
                let width = b.select(is_full, whole, rest);
                b.for_(zero, width, |b, c| {
                    b.for_(zero, inner.len, |b, k| copy(b, panel, k, c));
                });
            });
        } else {
            b.for_(zero, inner.len, |b, k| {
                b.for_(zero, full, |b, panel| {
                    b.for_(zero, whole, |b, c| copy(b, panel, k, c));
                });
                b.for_(zero, rest, |b, c| copy(b, full, k, c));
            });
        }
    }

    fn tiles(&self, b: &mut Builder<'_>, room: Value, rows: Span, columns: Span, inner: Span) {
        let zero = b.i32(0);
        let layout = self.layout;
        let [width, height] = [layout.tile, ROWS].map(|n| b.i32(n));
        let panels = n_parts(b, columns.len, width);
        let tiles = n_parts(b, rows.len, height);
        b.for_(zero, panels, |b, panel| {
            b.for_(zero, tiles, |b, tile| {
                let left = offset(b, 0, &[(tile, ROWS * layout.left_row)]);
                let right = offset(b, layout.right, &[(panel, DEPTH * layout.tile)]);
                let terms = [(tile, ROWS * layout.sums_row), (panel, layout.tile)];
                let sums = offset(b, layout.sums, &terms);
                b.effect(Op::TileProduct {
                    room,
                    at: vec![left, right, sums],
                    count: inner.len,
                    rows: ROWS as u32,
                    columns: layout.tile as u32,
                    left_row: layout.left_row as u32,
                    sums_row: layout.sums_row as u32,
                    fused: self.product.fused,
                });
            });
        });
    }
}

/// A part of `size` numbers, or fewer, of `n`.
fn part(b: &mut Builder<'_>, number: Value, size: Value, n: Value) -> Span {
    let first = b.binary(BinaryOp::Mul, number, size);
    let left = b.binary(BinaryOp::Sub, n, first);
    let len = b.binary(BinaryOp::Min, left, size);
    Span { first, len }
}

/// `base + x * stride + ..`
fn offset(b: &mut Builder<'_>, base: i32, terms: &[(Value, i32)]) -> Value {
    let mut sum = (base != 0).then(|| b.i32(base));
    for &(x, stride) in terms {
        let term = match stride {
            1 => x,
            _ => {
                let stride = b.i32(stride);
                b.binary(BinaryOp::Mul, x, stride)
            }
        };
        sum = Some(match sum {
            None => term,
            Some(sum) => b.binary(BinaryOp::Add, sum, term),
        });
    }
    sum.unwrap_or_else(|| b.i32(0))
}
