//! Which neighbours of a bitmasked cell are active is read from words of the mask.
//!
//! ```text
//! for row in 0..32 {                      for row in 0..32 {
//!     bits = mask_word own, row               bits = mask_word own, row
//!     while bits {                            there = if bits {
//!         bit = ..                 ==>            first = mask_word (row - 1 < 0 ? corner : left), ..
//!         is_active [i - 1, j - 1]                second = mask_word (row - 1 < 0 ? above : own), ..
//!     }                                           yield first >> 31 | second << 1  }
//! }                                           while bits { bit = ..  there >> bit & 1 }
//!                                         }
//! ```
//! A word is a row of cells, or a part of one, so the activity of the cells' neighbours at one distance is one
//! word, combined from two. Inactive blocks, and cells outside of the tree, have no bits.

use aerogel_base::{Scalar, ScalarType};
use aerogel_ir::analysis::access::{Class, classes};
use aerogel_ir::analysis::affine::distance;
use aerogel_ir::{
    BinaryOp, Builder, CellOp, CompareOp, Function, Inst, NodeOp, NodeRef, Op, Region, Type, Value,
    walk,
};
use aerogel_snode::{NodeId, NodeKind, Tree, tree::MASK_BITS};

use super::in_place::{Moved, container};
use super::neighbours::{block_around, block_extents, neighbour, own_index, parts, reaches};
use crate::PassCx;
use crate::cells::nest;

/// Bits of a word, as a distance.
const WORD: i64 = MASK_BITS as i64;

/// The activity queries of a loop over bitmasked cells about neighbours at constant distances.
pub(crate) struct Activity {
    node: NodeRef,
    /// The shape of a block.
    extents: Vec<i64>,
    /// The questions, and how far off the iteration's own cell each one is.
    asked: Vec<(Inst, Vec<i64>)>,
    /// The different distances.
    distances: Vec<Vec<i64>>,
    /// The mask's containers in the blocks around, once they are looked up.
    containers: Vec<(Vec<i64>, Value)>,
    /// For each distance the word whose bits are the answers, once it is made.
    words: Vec<Value>,
}

impl Activity {
    /// The activity queries of a loop over the cells of `node`, in blocks that are cells of `block`, if
    /// nothing in the loop changes activity.
    pub(super) fn find(
        func: &Function,
        cx: &PassCx<'_>,
        node: NodeRef,
        block: NodeId,
        body: Region,
        params: &[Value],
    ) -> Option<Self> {
        let tree = &cx.env.trees[node.tree];
        let extents = block_extents(tree, block, node.node, NodeKind::Bitmasked)?;
        if extents[extents.len() - 1] % WORD != 0 || changes_activity(func, cx, node, body, params)
        {
            return None;
        }
        let near = |off: &[i64]| off.iter().zip(&extents).all(|(d, e)| d.abs() <= *e);
        let mut asked = Vec::new();
        walk(func, body, &mut |func, inst| {
            let Op::Cell(CellOp::IsActive { node: of, indices }) = &func[inst] else {
                return;
            };
            if *of != node {
                return;
            }
            let off = indices.iter().zip(params);
            let off: Option<Vec<i64>> = off.map(|(&i, &p)| distance(func, p, i)).collect();
            if let Some(off) = off.filter(|off| near(off)) {
                asked.push((inst, off));
            }
        });
        let mut distances: Vec<Vec<i64>> = asked.iter().map(|a| a.1.clone()).collect();
        distances.sort();
        distances.dedup();
        (!asked.is_empty()).then_some(Self {
            node,
            extents,
            asked,
            distances,
            containers: Vec::new(),
            words: Vec::new(),
        })
    }

    /// Writes the look-ups of the blocks around `cell`, which is at `indices`.
    pub(super) fn prologue(
        &mut self,
        b: &mut Builder<'_>,
        tree: &Tree,
        block: NodeRef,
        cell: Value,
        indices: &[Value],
    ) {
        let shape = tree.shape(block.node);
        for part in parts(self.extents.len()) {
            if self.distances.iter().any(|off| reaches(off, &part)) {
                let cell = block_around(b, &shape, block, Some(cell), indices, &part);
                let node = self.node;
                let ty = Type::Container(node.tree, node.node);
                let container = b.value(NodeOp::Child { node, cell }, ty);
                self.containers.push((part, container));
            }
        }
    }

    /// Makes the words of answers for the cells of the mask's word of number `word`, which is `mask`.
    pub(super) fn word(&mut self, b: &mut Builder<'_>, word: Value, mask: Value) {
        let none = b.constant(Scalar::int(ScalarType::U32, 0));
        let cond = b.compare(CompareOp::Ne, mask, none);
        let then = b.region(&[], |b, _| {
            let coords = self.coords(b, word);
            let words = self.distances.iter();
            let words = words.map(|off| self.answers(b, &coords, off)).collect();
            b.yields(words);
        });
        let n = self.distances.len();
        let otherwise = b.region(&[], |b, _| b.yields(vec![none; n]));
        let op = Op::If {
            cond,
            then,
            otherwise,
        };
        let inst = b.inst(op, &vec![Type::Scalar(ScalarType::U32); n]);
        self.words = b.func.insts[inst].results.to_vec();
    }

    /// The coordinates in its block of a word's first cell.
    fn coords(&self, b: &mut Builder<'_>, word: Value) -> Vec<Value> {
        let bits = b.constant(Scalar::int(b.func.elem(word), WORD.into()));
        let number = b.binary(BinaryOp::Mul, word, bits);
        let extents: Vec<u64> = self.extents.iter().map(|&e| e as u64).collect();
        let axes = 0..extents.len();
        axes.map(|axis| nest::coord(b, number, &extents, axis))
            .collect()
    }

    /// The word whose bits say which cells at distance `off` from those of a word are active.
    fn answers(&self, b: &mut Builder<'_>, coords: &[Value], off: &[i64]) -> Value {
        let (&d, rows) = off.split_last().expect("a node has an axis");
        let (words, bits) = (d.div_euclid(WORD), d.rem_euclid(WORD));
        let mask_word = |b: &mut Builder<'_>, words: i64| {
            let off = [rows, &[words * WORD]].concat();
            self.mask_word(b, coords, &off)
        };
        let first = mask_word(b, words);
        if bits == 0 {
            return first;
        }
        let second = mask_word(b, words + 1);
        let shift = |b: &mut Builder<'_>, op, word, by: i64| {
            let by = b.constant(Scalar::int(ScalarType::U32, by.into()));
            b.binary(op, word, by)
        };
        let low = shift(b, BinaryOp::Shr, first, bits);
        let high = shift(b, BinaryOp::Shl, second, WORD - bits);
        b.binary(BinaryOp::Or, low, high)
    }

    /// The mask's word whose first cell is `off` from that at `coords`.
    fn mask_word(&self, b: &mut Builder<'_>, coords: &[Value], off: &[i64]) -> Value {
        let axes = coords.iter().zip(off).zip(&self.extents);
        let moved: Vec<Moved> = axes
            .map(|((&coord, &d), &extent)| Moved::new(b, coord, d, extent))
            .collect();
        let container = container(b, &self.containers, &moved, vec![], &[]);
        let coords = moved.iter().map(|axis| axis.wrapped(b)).collect();
        let node = self.node;
        let number = b.value(NodeOp::Linearize { node, coords }, Type::I64);
        let bits = b.constant(Scalar::int(ScalarType::I64, WORD.trailing_zeros().into()));
        let word = b.binary(BinaryOp::Shr, number, bits);
        let op = NodeOp::MaskWord {
            node,
            container,
            word,
        };
        b.value(op, Type::Scalar(ScalarType::U32))
    }

    /// Makes the body read the words; `cell` is the iteration's own cell.
    pub(super) fn redirect(&self, b: &mut Builder<'_>, cell: Value) {
        let number = own_index(b.func, cell);
        let number = b.cast(number, Type::Scalar(ScalarType::U32));
        let last = b.constant(Scalar::int(ScalarType::U32, (WORD - 1).into()));
        let bit = b.binary(BinaryOp::And, number, last);
        let one = b.constant(Scalar::int(ScalarType::U32, 1));
        let rhs = b.constant(Scalar::int(ScalarType::U32, 0));
        for (inst, off) in &self.asked {
            let at = self.distances.binary_search(off);
            let word = self.words[at.expect("all distances are listed")];
            let shifted = b.binary(BinaryOp::Shr, word, bit);
            let lhs = b.binary(BinaryOp::And, shifted, one);
            b.func.insts[*inst].op = Op::Compare {
                op: CompareOp::Ne,
                lhs,
                rhs,
            };
        }
    }
}

/// Whether a loop over the cells of `node` may make others of them active, or some inactive.
fn changes_activity(
    func: &Function,
    cx: &PassCx<'_>,
    node: NodeRef,
    body: Region,
    params: &[Value],
) -> bool {
    let tree = &cx.env.trees[node.tree];
    let below = tree.subtree(node.node);
    let inside = |class: &Class| match class {
        Class::Place(place) => place.tree == node.tree && below.contains(&place.node),
        _ => false,
    };
    let mut changes = false;
    walk(func, body, &mut |func, inst| match &func[inst] {
        Op::Store { place, .. }
        | Op::Atomic { place, .. }
        | Op::Cas { place, .. }
        | Op::Update { place, .. } => {
            // The iteration's own cell is active already.
            let own = neighbour(func, cx, params, *place).is_some_and(|(place, off)| {
                tree[place.node].parent == Some(node.node) && off.iter().all(|&d| d == 0)
            });
            changes |= !own && classes(func, cx.env, *place).iter().any(inside);
        }
        Op::Cell(
            CellOp::Activate { node: of, .. }
            | CellOp::Deactivate { node: of, .. }
            | CellOp::Append { node: of, .. },
        ) => changes |= of.tree == node.tree,
        Op::Call { .. } => changes = true,
        _ => {}
    });
    changes
}

#[cfg(test)]
mod tests;
