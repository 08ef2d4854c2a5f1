//! Single components of elements, plain and quantised.

use aerogel_base::{Scalar, ScalarType};
use aerogel_snode::quant::mask;
use aerogel_snode::{NodeId, NodeKind, QuantType};

use super::TreeMemory;
use crate::buffer::MemoryError;

/// Where the bits of a quantised component of one element begin in their word.
#[derive(Clone, Copy)]
struct InWord {
    quant: QuantType,
    word: ScalarType,
    shift: u32,
}

impl TreeMemory {
    /// A component of the element at some indices; nothing if it is inactive.
    pub fn read_component(
        &self,
        place: NodeId,
        indices: &[i64],
    ) -> Result<Option<Scalar>, MemoryError> {
        let at = self.element(place, indices);
        at.map(|at| self.component_at(place, at, indices))
            .transpose()
    }

    /// Writes a component of the element at some indices, and makes it active if it was not.
    pub fn write_component(
        &self,
        place: NodeId,
        indices: &[i64],
        value: Scalar,
    ) -> Result<(), MemoryError> {
        let at = self.obtain_element(place, indices)?;
        self.set_component_at(place, at, indices, value)
    }

    /// A component of the element at some indices, which lies at an offset, or in the word there.
    pub fn component_at(
        &self,
        place: NodeId,
        at: u64,
        indices: &[i64],
    ) -> Result<Scalar, MemoryError> {
        let in_word = match self.tree()[place].kind {
            NodeKind::Bits(quant) => self.in_word(place, quant, indices),
            kind => {
                let ty = kind.scalar().expect("the caller asks for places");
                return self.read_scalar(ty, at);
            }
        };
        let word = self.read_scalar(in_word.word, at)?.slot();
        Ok(self.decode(place, in_word, word))
    }

    /// Writes a component as `component_at` reads it.
    pub fn set_component_at(
        &self,
        place: NodeId,
        at: u64,
        indices: &[i64],
        value: Scalar,
    ) -> Result<(), MemoryError> {
        let NodeKind::Bits(quant) = self.tree()[place].kind else {
            return self.write_scalar(at, value);
        };
        let in_word = self.in_word(place, quant, indices);
        let change = |word| self.encode(place, in_word, word, value);
        self.bytes.change_scalar(in_word.word, at as usize, &change)
    }

    /// The bytes of a component as `component_at` reads it; nothing of a node that is no place.
    pub(super) fn read_bytes(
        &self,
        place: NodeId,
        at: u64,
        indices: &[i64],
        out: &mut [u8],
    ) -> Result<(), MemoryError> {
        if let NodeKind::Bits(_) = self.tree()[place].kind {
            let (bytes, n) = self.component_at(place, at, indices)?.to_bytes();
            out.copy_from_slice(&bytes[..n]);
            return Ok(());
        }
        self.bytes().read(at as usize, out)
    }

    /// Writes a component of which the bytes are given, as `set_component_at` does.
    pub(super) fn write_bytes(
        &self,
        place: NodeId,
        at: u64,
        indices: &[i64],
        bytes: &[u8],
    ) -> Result<(), MemoryError> {
        if let NodeKind::Bits(quant) = self.tree()[place].kind {
            let value = Scalar::from_bytes(quant.compute, bytes);
            return self.set_component_at(place, at, indices, value);
        }
        self.bytes().write(at as usize, bytes)
    }

    fn in_word(&self, place: NodeId, quant: QuantType, indices: &[i64]) -> InWord {
        let tree = self.tree();
        let parent = tree[place].parent.expect("bits lie in a word");
        let word = tree[parent].kind.word().expect("bits lie in a word");
        let mut shift = tree[place].shift;
        if let NodeKind::QuantArray(_) = tree[parent].kind {
            let level = self.path(parent).levels.last().expect("the word's own");
            shift += level.linear(indices) as u32 * quant.width();
        }
        InWord { quant, word, shift }
    }

    fn decode(&self, place: NodeId, in_word: InWord, word: u64) -> Scalar {
        let InWord { quant, shift, .. } = in_word;
        let tree = self.tree();
        if tree.exponent_group(place).is_empty() {
            return quant.decode(word >> shift);
        }
        let exponent = word >> tree[place].exponent_shift & mask(quant.exponent_bits());
        quant.decode_shared(exponent, word >> shift)
    }

    /// The word with one component changed.
    fn encode(&self, place: NodeId, in_word: InWord, word: u64, value: Scalar) -> u64 {
        let put = |word: u64, shift: u32, width: u32, bits: u64| {
            word & !(mask(width) << shift) | bits << shift
        };
        let tree = self.tree();
        let group = tree.exponent_group(place);
        if group.is_empty() {
            let InWord { quant, shift, .. } = in_word;
            return put(word, shift, quant.width(), quant.encode(value));
        }
        let member = |&id: &NodeId| {
            let NodeKind::Bits(quant) = tree[id].kind else {
                unreachable!("a group is of quantised components")
            };
            let shift = tree[id].shift;
            let as_is = InWord {
                quant,
                shift,
                ..in_word
            };
            let number = if id == place {
                value
            } else {
                self.decode(id, as_is, word)
            };
            (quant, number)
        };
        let numbers: Vec<(QuantType, Scalar)> = group.iter().map(member).collect();
        let (exponent, fractions) = QuantType::encode_shared(&numbers);
        let first = tree[place].exponent_shift;
        let mut word = put(word, first, in_word.quant.exponent_bits(), exponent);
        for ((&id, (quant, _)), bits) in group.iter().zip(&numbers).zip(fractions) {
            word = put(word, tree[id].shift, quant.bits, bits);
        }
        word
    }
}
