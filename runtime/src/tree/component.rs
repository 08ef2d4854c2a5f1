//! Single components of elements, plain and quantised.

use aerogel_base::{Scalar, ScalarType};
use aerogel_snode::quant::mask;
use aerogel_snode::{Level, NodeId, NodeKind, QuantType};

use super::TreeMemory;
use crate::buffer::MemoryError;

/// A component of a field's elements, prepared for access to many of them.
pub struct Component<'m> {
    memory: &'m TreeMemory,
    form: Form<'m>,
}

enum Form<'m> {
    Plain(ScalarType),
    Bits(InWord<'m>),
}

/// Where the bits of a quantised component lie in their word.
struct InWord<'m> {
    quant: QuantType,
    word: ScalarType,
    shift: u32,
    /// The level whose elements share the word, if it is a `quant_array`.
    array: Option<&'m Level>,
    /// The components that have one exponent, this one included, with where their fractions begin;
    /// empty if it has its own.
    group: Vec<(QuantType, u32)>,
    exponent_shift: u32,
}

impl Component<'_> {
    /// The component of the element at some indices, which lies at an offset, or in the word there.
    #[inline]
    pub fn read(&self, at: u64, indices: &[i64]) -> Result<Scalar, MemoryError> {
        match &self.form {
            Form::Plain(ty) => self.memory.read_scalar(*ty, at),
            Form::Bits(bits) => {
                let word = self.memory.read_scalar(bits.word, at)?.slot();
                Ok(bits.decode(word, bits.shift_of(indices)))
            }
        }
    }

    /// Writes what `read` reads.
    #[inline]
    pub fn write(&self, at: u64, indices: &[i64], value: Scalar) -> Result<(), MemoryError> {
        match &self.form {
            Form::Plain(_) => self.memory.write_scalar(at, value),
            Form::Bits(bits) => {
                let shift = bits.shift_of(indices);
                let change = |word| bits.encode(word, shift, value);
                let bytes = &self.memory.bytes;
                bytes.change_scalar(bits.word, at as usize, &change)
            }
        }
    }
}

fn put(word: u64, shift: u32, width: u32, bits: u64) -> u64 {
    word & !(mask(width) << shift) | bits << shift
}

impl InWord<'_> {
    fn shift_of(&self, indices: &[i64]) -> u32 {
        let element = self.array.map_or(0, |level| level.linear(indices) as u32);
        self.shift + element * self.quant.width()
    }

    fn decode(&self, word: u64, shift: u32) -> Scalar {
        if self.group.is_empty() {
            return self.quant.decode(word >> shift);
        }
        self.decode_shared(word, self.quant, shift)
    }

    fn decode_shared(&self, word: u64, quant: QuantType, shift: u32) -> Scalar {
        let exponent = word >> self.exponent_shift & mask(quant.exponent_bits());
        quant.decode_shared(exponent, word >> shift)
    }

    /// The word with the component changed.
    fn encode(&self, word: u64, shift: u32, value: Scalar) -> u64 {
        if self.group.is_empty() {
            return put(word, shift, self.quant.width(), self.quant.encode(value));
        }
        let member = |&(quant, at): &(QuantType, u32)| {
            let own = at == shift;
            let number = if own {
                value
            } else {
                self.decode_shared(word, quant, at)
            };
            (quant, number)
        };
        let numbers: Vec<(QuantType, Scalar)> = self.group.iter().map(member).collect();
        let (exponent, fractions) = QuantType::encode_shared(&numbers);
        let mut word = put(
            word,
            self.exponent_shift,
            self.quant.exponent_bits(),
            exponent,
        );
        for (&(quant, at), bits) in self.group.iter().zip(fractions) {
            word = put(word, at, quant.bits, bits);
        }
        word
    }
}

impl TreeMemory {
    /// A component of the element at some indices; nothing if it is inactive.
    pub fn read_component(
        &self,
        place: NodeId,
        indices: &[i64],
    ) -> Result<Option<Scalar>, MemoryError> {
        let at = self.find_element(place, indices)?;
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

    /// A component, prepared for access to many elements.
    pub fn component(&self, place: NodeId) -> Component<'_> {
        let form = match self.tree()[place].kind {
            NodeKind::Bits(quant) => Form::Bits(self.in_word(place, quant)),
            kind => Form::Plain(kind.scalar().expect("the caller passes places")),
        };
        Component { memory: self, form }
    }

    /// A component of the element at some indices, which lies at an offset, or in the word there.
    pub fn component_at(
        &self,
        place: NodeId,
        at: u64,
        indices: &[i64],
    ) -> Result<Scalar, MemoryError> {
        self.component(place).read(at, indices)
    }

    /// Writes a component as `component_at` reads it.
    pub fn set_component_at(
        &self,
        place: NodeId,
        at: u64,
        indices: &[i64],
        value: Scalar,
    ) -> Result<(), MemoryError> {
        self.component(place).write(at, indices, value)
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

    fn in_word(&self, place: NodeId, quant: QuantType) -> InWord<'_> {
        let tree = self.tree();
        let parent = tree[place].parent.expect("bits lie in a word");
        let is_array = matches!(tree[parent].kind, NodeKind::QuantArray(_));
        let member = |id: NodeId| match tree[id].kind {
            NodeKind::Bits(quant) => (quant, tree[id].shift),
            _ => unreachable!("a group is of quantised components"),
        };
        InWord {
            quant,
            word: tree[parent].kind.word().expect("bits lie in a word"),
            shift: tree[place].shift,
            array: self.path(parent).levels.last().filter(|_| is_array),
            group: tree.exponent_group(place).into_iter().map(member).collect(),
            exponent_shift: tree[place].exponent_shift,
        }
    }
}
