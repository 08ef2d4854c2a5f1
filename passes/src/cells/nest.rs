//! Nests of loops over the cells below a cell, as sparse loops, lists and collections need them.

use aerogel_base::{Scalar, ScalarType, Span};
use aerogel_ir::{
    BinaryOp, Builder, CompareOp, Function, NodeOp, NodeRef, Op, Region, TreeId, Type, UnaryOp,
    Value,
};
use aerogel_snode::tree::MASK_BITS;
use aerogel_snode::{Level, NodeId, NodeKind, Tree};

use crate::PassCx;

/// One loop of a nest; each counts from 0 in steps of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loop {
    /// Along one axis of a dense level.
    Axis { level: usize, axis: usize },
    /// Over all cells of a dense or pointer level, in the order in which they lie.
    Cells { level: usize },
    /// Over the words of a bitmasked level's mask; the set bits are taken one by one.
    Words { level: usize },
    /// Over pieces of a dynamic level; the cells of a piece are taken one by one.
    Pieces { level: usize },
}

/// How a nest walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// Active cells; the cells of a dense level are one loop where their coordinates are bits of
    /// their number.
    Flat,
    /// Active cells, with a loop for each axis of a dense level.
    Axes,
    /// All cells, be they active or not.
    All,
}

/// A place in the loops of a nest.
pub(crate) enum Spot<'a> {
    /// Before the bits of a mask's word are taken: the word's number, and the word.
    Word(Value, Value),
    /// In the innermost loop: the cell and its indices.
    Cell(Value, &'a [Value]),
}

/// Writes what belongs in a spot.
type Body<'a> = &'a mut dyn FnMut(&mut Builder<'_>, Spot<'_>);

/// The way from a driving cell (of the root, or of a node that has a list) down to the cells of a node.
pub(crate) struct Nest<'a> {
    tree: &'a Tree,
    id: TreeId,
    /// Levels below the driving cell.
    levels: Vec<Level>,
    /// Cells of a dynamic container that one iteration walks at most.
    piece: u64,
    /// The number of iterations that process a dynamic container together, each a strided part of its cells.
    pub(crate) together: Option<u64>,
    /// The loops, outermost first.
    pub(crate) loops: Vec<Loop>,
}

/// The driving node of a nest over the cells of `node`: the last node of its path that has a list (possibly
/// `node` itself), or the root.
pub(crate) fn driver(tree: &Tree, node: NodeId) -> NodeId {
    let chain = tree.chain(node);
    let listed = chain.iter().rev().find(|&&id| tree[id].kind.has_list());
    listed.copied().unwrap_or(Tree::ROOT)
}

impl<'a> Nest<'a> {
    /// The nest from a cell of `driver` to the cells of `node`.
    pub(crate) fn new(cx: &'a PassCx<'_>, node: NodeRef, driver: NodeId, walk: Walk) -> Self {
        let tree = &cx.env.trees[node.tree];
        let levels = tree.path(node.node).levels;
        let first = levels.iter().position(|l| l.node == driver);
        let levels = levels[first.expect("the driver is on the path") + 1..].to_vec();
        let mut loops = Vec::new();
        for (k, level) in levels.iter().enumerate() {
            let powers = level.axes.iter().all(|a| a.extent.is_power_of_two());
            match tree[level.node].kind {
                NodeKind::Bitmasked if walk != Walk::All => loops.push(Loop::Words { level: k }),
                NodeKind::Dynamic { .. } => loops.push(Loop::Pieces { level: k }),
                NodeKind::Dense
                    if walk != Walk::All
                        && (level.axes.len() == 1 || !(walk == Walk::Flat && powers)) =>
                {
                    loops.extend((0..level.axes.len()).map(|axis| Loop::Axis { level: k, axis }));
                }
                _ => loops.push(Loop::Cells { level: k }),
            }
        }
        Self {
            tree,
            id: node.tree,
            levels,
            piece: cx.options.thresholds.piece,
            together: None,
            loops,
        }
    }

    /// The type of a loop's counter: 64 bits where the cells of a container cannot be numbered in 32.
    pub(crate) fn counter(&self, looped: Loop) -> Type {
        match looped {
            Loop::Axis { .. } => number_type(self.extent(looped)),
            Loop::Cells { level } | Loop::Words { level } | Loop::Pieces { level } => {
                number_type(self.node(level).n_cells)
            }
        }
    }

    /// How often a loop runs.
    pub(crate) fn extent(&self, looped: Loop) -> u64 {
        match looped {
            Loop::Axis { level, axis } => self.levels[level].axes[axis].extent,
            Loop::Cells { level } => self.node(level).n_cells,
            Loop::Words { level } => self.node(level).mask_words(),
            Loop::Pieces { level } => self
                .together
                .unwrap_or_else(|| self.node(level).n_cells.div_ceil(self.piece)),
        }
    }

    /// How many cells one iteration of a loop stands for at most, besides those of loops inside.
    pub(crate) fn weight(&self, looped: Loop) -> u64 {
        match looped {
            Loop::Axis { .. } | Loop::Cells { .. } => 1,
            Loop::Words { .. } => MASK_BITS,
            Loop::Pieces { level } => self.node(level).n_cells.min(self.piece),
        }
    }

    fn node(&self, level: usize) -> &aerogel_snode::Node {
        &self.tree[self.levels[level].node]
    }

    fn node_ref(&self, level: usize) -> NodeRef {
        NodeRef {
            tree: self.id,
            node: self.levels[level].node,
        }
    }

    /// Writes the loops at the end of the builder's region, and `body` into them. The outermost loops that have a
    /// counter in `given` are not written: the counters stand for them. `cell` is the driving cell, `origin` where it
    /// begins along each axis of the nest's node; none stands for 0.
    pub(crate) fn write(
        &self,
        b: &mut Builder<'_>,
        cell: Value,
        origin: Vec<Option<Value>>,
        given: &[Value],
        body: Body<'_>,
    ) {
        let mut given = given.iter().copied();
        self.level(b, 0, cell, origin, &mut given, body);
        assert!(given.next().is_none(), "every counter stands for a loop");
    }

    fn level(
        &self,
        b: &mut Builder<'_>,
        level: usize,
        cell: Value,
        index: Vec<Option<Value>>,
        given: &mut dyn Iterator<Item = Value>,
        body: Body<'_>,
    ) {
        if level == self.levels.len() {
            let index: Vec<Value> = index
                .into_iter()
                .map(|i| i.unwrap_or_else(|| b.i32(0)))
                .collect();
            return body(b, Spot::Cell(cell, &index));
        }
        let node = self.node_ref(level);
        let data = self.node(level);
        let container = b.value(
            NodeOp::Child { node, cell },
            Type::Container(node.tree, node.node),
        );
        let cell_ty = Type::Cell(node.tree, node.node);
        let lookup = |b: &mut Builder<'_>, index: Value| {
            let op = match data.kind {
                NodeKind::Dense | NodeKind::Bitmasked => NodeOp::Lookup {
                    node,
                    container,
                    index,
                },
                _ => NodeOp::Find {
                    node,
                    container,
                    index,
                },
            };
            b.value(op, cell_ty)
        };
        match data.kind {
            NodeKind::Bitmasked if self.loops.contains(&Loop::Words { level }) => {
                let words = data.mask_words();
                let ty = number_type(data.n_cells);
                counted(b, ty, words, given.next(), &mut |b, word| {
                    let mask = b.value(
                        NodeOp::MaskWord {
                            node,
                            container,
                            word,
                        },
                        Type::Scalar(ScalarType::U32),
                    );
                    body(b, Spot::Word(word, mask));
                    set_bits(b, mask, &mut |b, bit| {
                        let rhs = integer(b, ty, MASK_BITS);
                        let first = b.binary(BinaryOp::Mul, word, rhs);
                        let bit = b.cast(bit, ty);
                        let number = b.binary(BinaryOp::Add, first, bit);
                        let inner = lookup(b, number);
                        let index = self.add_number(b, level, number, &index);
                        self.level(b, level + 1, inner, index, &mut std::iter::empty(), body);
                    });
                });
            }
            NodeKind::Dynamic { .. } => {
                let pieces = self.extent(Loop::Pieces { level });
                let ty = number_type(data.n_cells);
                counted(b, ty, pieces, given.next(), &mut |b, piece| {
                    let length = b.value(NodeOp::ContainerLength { node, container }, Type::I64);
                    let length = b.cast(length, ty);
                    let (lo, hi, step) = match self.together {
                        Some(n) => (piece, length, n),
                        None => {
                            let rhs = integer(b, ty, self.piece);
                            let lo = b.binary(BinaryOp::Mul, piece, rhs);
                            let end = b.binary(BinaryOp::Add, lo, rhs);
                            (lo, b.binary(BinaryOp::Min, end, length), 1)
                        }
                    };
                    let step = integer(b, ty, step);
                    let body = b.region(&[ty], |b, number| {
                        let number = number[0];
                        let inner = lookup(b, number);
                        let index = self.add_number(b, level, number, &index);
                        self.level(b, level + 1, inner, index, &mut std::iter::empty(), body);
                    });
                    b.effect(Op::For {
                        lo,
                        hi,
                        step,
                        init: Vec::new(),
                        body,
                    });
                });
            }
            _ if self.loops.contains(&Loop::Cells { level }) => {
                let n = data.n_cells;
                let next = given.next();
                counted(b, number_type(n), n, next, &mut |b, number| {
                    let inner = lookup(b, number);
                    let index = self.add_number(b, level, number, &index);
                    self.level(b, level + 1, inner, index, given, body);
                });
            }
            _ => self.axes(b, level, container, Vec::new(), index, given, body),
        }
    }

    /// The loops along the axes of a dense level, of which `coords` have been written.
    #[expect(clippy::too_many_arguments, reason = "the state of a recursion")]
    fn axes(
        &self,
        b: &mut Builder<'_>,
        level: usize,
        container: Value,
        coords: Vec<Value>,
        index: Vec<Option<Value>>,
        given: &mut dyn Iterator<Item = Value>,
        body: Body<'_>,
    ) {
        let node = self.node_ref(level);
        let axes = &self.levels[level].axes;
        let Some(axis) = axes.get(coords.len()) else {
            let number = b.value(NodeOp::Linearize { node, coords }, Type::I64);
            let op = NodeOp::Lookup {
                node,
                container,
                index: number,
            };
            let inner = b.value(op, Type::Cell(node.tree, node.node));
            return self.level(b, level + 1, inner, index, given, body);
        };
        let next = given.next();
        counted(
            b,
            number_type(axis.extent),
            axis.extent,
            next,
            &mut |b, coord| {
                let mut coords = coords.clone();
                coords.push(coord);
                let mut index = index.clone();
                let coord = b.cast(coord, Type::I32);
                index[axis.index] = Some(scaled_sum(b, index[axis.index], coord, axis.divisor));
                self.axes(b, level, container, coords, index, given, body);
            },
        );
    }

    fn add_number(
        &self,
        b: &mut Builder<'_>,
        level: usize,
        number: Value,
        index: &[Option<Value>],
    ) -> Vec<Option<Value>> {
        add_number(b, &self.levels[level], number, index.to_vec())
    }
}

/// The type that numbers `n` cells.
pub(crate) fn number_type(n: u64) -> Type {
    match i32::try_from(n) {
        Ok(_) => Type::I32,
        Err(_) => Type::I64,
    }
}

fn integer(b: &mut Builder<'_>, ty: Type, value: u64) -> Value {
    let elem = ty.elem().expect("numbers of cells are scalars");
    b.constant(Scalar::int(elem, i128::from(value)))
}

/// Writes a loop of `extent` iterations, whose counter is of type `ty`, unless it is `given`.
fn counted(
    b: &mut Builder<'_>,
    ty: Type,
    extent: u64,
    given: Option<Value>,
    body: &mut dyn FnMut(&mut Builder<'_>, Value),
) {
    if let Some(counter) = given {
        return body(b, counter);
    }
    let lo = integer(b, ty, 0);
    if extent == 1 {
        return body(b, lo);
    }
    let hi = integer(b, ty, extent);
    b.for_(lo, hi, body);
}

/// The indices with the coordinates of a level's cell added, taken from its number.
pub(crate) fn add_number(
    b: &mut Builder<'_>,
    level: &Level,
    number: Value,
    mut index: Vec<Option<Value>>,
) -> Vec<Option<Value>> {
    let extents: Vec<u64> = level.axes.iter().map(|a| a.extent).collect();
    for (k, axis) in level.axes.iter().enumerate() {
        let coord = coord(b, number, &extents, k);
        let coord = b.cast(coord, Type::I32);
        index[axis.index] = Some(scaled_sum(b, index[axis.index], coord, axis.divisor));
    }
    index
}

/// The coordinate along one axis of what has that number, row by row.
pub(crate) fn coord(b: &mut Builder<'_>, number: Value, extents: &[u64], axis: usize) -> Value {
    let below = extents[axis + 1..].iter().product();
    let coord = divided(b, number, below, BinaryOp::Shr, BinaryOp::Div);
    match axis {
        0 => coord,
        _ => divided(b, coord, extents[axis], BinaryOp::And, BinaryOp::Rem),
    }
}

/// `sum + part * scale`
pub(crate) fn scaled_sum(
    b: &mut Builder<'_>,
    sum: Option<Value>,
    part: Value,
    scale: u64,
) -> Value {
    let part = match scale {
        1 => part,
        _ => {
            let rhs = b.i32(scale as i32);
            b.binary(BinaryOp::Mul, part, rhs)
        }
    };
    sum.map_or(part, |sum| b.binary(BinaryOp::Add, sum, part))
}

/// A quotient or remainder of what is not negative: by a shift or a mask if `by` is a power of two.
fn divided(b: &mut Builder<'_>, x: Value, by: u64, fast: BinaryOp, slow: BinaryOp) -> Value {
    if by == 1 && fast == BinaryOp::Shr {
        return x;
    }
    let (op, rhs) = match (by.is_power_of_two(), fast) {
        (true, BinaryOp::Shr) => (fast, u64::from(by.trailing_zeros())),
        (true, _) => (fast, by - 1),
        (false, _) => (slow, by),
    };
    let rhs = integer(b, b.func.ty(x), rhs);
    b.binary(op, x, rhs)
}

/// Writes a loop over the bits of a word that are set; `body` gets the number of each.
fn set_bits(b: &mut Builder<'_>, word: Value, body: &mut dyn FnMut(&mut Builder<'_>, Value)) {
    let more = |b: &mut Builder<'_>, left: &[Value]| {
        let zero = b.constant(Scalar::int(ScalarType::U32, 0));
        let more = b.compare(CompareOp::Ne, left[0], zero);
        b.yields(vec![more]);
    };
    b.while_(vec![word], more, |b, left| {
        let minus = b.unary(UnaryOp::Neg, left[0]);
        let lowest = b.binary(BinaryOp::And, left[0], minus);
        let rest = b.binary(BinaryOp::Xor, left[0], lowest);
        let leading = b.unary(UnaryOp::Clz, lowest);
        let leading = b.cast(leading, Type::I32);
        let last = b.i32(MASK_BITS as i32 - 1);
        let bit = b.binary(BinaryOp::Sub, last, leading);
        body(b, bit);
        let region = b.region;
        b.terminate();
        carry(b.func, region, rest);
    });
}

/// Emits a loop over the active cells of a hash container in a range. `body` gets the number of each
/// cell and the loop-carried values, of type `i64`; the result is their final values.
pub(crate) fn active_between(
    b: &mut Builder<'_>,
    node: NodeRef,
    container: Value,
    (first, end): (Value, Value),
    init: Value,
    body: &mut dyn FnMut(&mut Builder<'_>, Value, Value) -> Value,
) -> Value {
    let next = |b: &mut Builder<'_>, index: Value| {
        let op = NodeOp::NextActive {
            node,
            container,
            index,
        };
        b.value(op, Type::I64)
    };
    let found = next(b, first);
    let more = |b: &mut Builder<'_>, carried: &[Value]| {
        let more = b.compare(CompareOp::Lt, carried[0], end);
        b.yields(vec![more]);
    };
    let last = b.while_(vec![found, init], more, |b, carried| {
        let made = body(b, carried[0], carried[1]);
        let one = b.constant(Scalar::int(ScalarType::I64, 1));
        let behind = b.binary(BinaryOp::Add, carried[0], one);
        let found = next(b, behind);
        b.yields(vec![found, made]);
    });
    last[1]
}

/// Makes what leads from a loop's body, which carries nothing yet, to the next iteration carry
/// `value` on.
fn carry(func: &mut Function, region: Region, value: Value) {
    let end = func.terminator(region);
    if let Op::Yield { values } = &mut func.insts[end].op {
        values.push(value);
    }
    carry_continue(func, region, value);
}

fn carry_continue(func: &mut Function, region: Region, value: Value) {
    for inst in func.regions[region].insts.clone() {
        match func.insts[inst].op {
            Op::Continue { ref mut values } => values.push(value),
            Op::If {
                then, otherwise, ..
            } => {
                carry_continue(func, then, value);
                carry_continue(func, otherwise, value);
            }
            _ => {}
        }
    }
}

/// Writes loops that release every sparse cell below `cell`: what an arena element or a bitmasked
/// cell holds must go before it does.
pub(crate) fn release_below(
    b: &mut Builder<'_>,
    tree: &Tree,
    id: TreeId,
    node: NodeId,
    cell: Value,
) {
    for &child in &tree[node].children {
        let holds_arena = |&n: &NodeId| tree[n].n_arenas() > 0;
        if !tree.subtree(child).iter().any(holds_arena) {
            continue;
        }
        let data = &tree[child];
        let reference = NodeRef {
            tree: id,
            node: child,
        };
        let container = b.value(
            NodeOp::Child {
                node: reference,
                cell,
            },
            Type::Container(id, child),
        );
        if let NodeKind::Dynamic { .. } = data.kind {
            b.effect(NodeOp::ReleaseAll {
                node: reference,
                container,
            });
            continue;
        }
        if data.kind == NodeKind::Hash {
            let first = b.constant(Scalar::int(ScalarType::I64, 0));
            let end = b.constant(Scalar::int(ScalarType::I64, i128::from(data.n_cells)));
            active_between(
                b,
                reference,
                container,
                (first, end),
                first,
                &mut |b, index, n| {
                    b.effect(NodeOp::Release {
                        node: reference,
                        container,
                        index,
                    });
                    n
                },
            );
            continue;
        }
        let lo = b.constant(Scalar::int(ScalarType::I64, 0));
        let hi = b.constant(Scalar::int(ScalarType::I64, i128::from(data.n_cells)));
        b.for_(lo, hi, |b, index| match data.kind {
            NodeKind::Pointer => {
                b.effect(NodeOp::Release {
                    node: reference,
                    container,
                    index,
                });
            }
            _ => {
                let lookup = NodeOp::Lookup {
                    node: reference,
                    container,
                    index,
                };
                let inner = b.value(lookup, Type::Cell(id, child));
                release_below(b, tree, id, child, inner);
            }
        });
    }
}

/// A builder at the end of `region`.
pub(crate) fn at_end(func: &mut Function, region: Region, span: Span) -> Builder<'_> {
    let mut b = Builder::new(func, region);
    b.span = span;
    b
}
