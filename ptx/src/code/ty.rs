//! Types of numbers, and conversions of results.

/// What a register or a number in memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bits without a meaning.
    Bits,
    /// Unsigned.
    Unsigned,
    /// Two's complement.
    Signed,
    /// IEEE 754: 16, 32 or 64 bits.
    Float,
    /// The upper half of an `f32`.
    BFloat,
    /// Two `f16`.
    FloatPair,
    /// Two `bf16`.
    BFloatPair,
    /// One bit.
    Predicate,
}

/// The type of an instruction: what its operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ty {
    pub(crate) kind: Kind,
    /// 1 for predicates.
    pub(crate) bits: u32,
}

impl Ty {
    pub(crate) const PREDICATE: Self = Self {
        kind: Kind::Predicate,
        bits: 1,
    };

    pub(crate) const B32: Self = Self::of(Kind::Bits, 32);
    pub(crate) const B64: Self = Self::of(Kind::Bits, 64);
    pub(crate) const U32: Self = Self::of(Kind::Unsigned, 32);
    pub(crate) const U64: Self = Self::of(Kind::Unsigned, 64);
    pub(crate) const S32: Self = Self::of(Kind::Signed, 32);
    pub(crate) const S64: Self = Self::of(Kind::Signed, 64);
    pub(crate) const F32: Self = Self::of(Kind::Float, 32);
    pub(crate) const F64: Self = Self::of(Kind::Float, 64);

    const fn of(kind: Kind, bits: u32) -> Self {
        Self { kind, bits }
    }

    /// The type of integers of as many bits without a sign, for what does the same to both.
    pub(crate) fn without_sign(self) -> Self {
        match self.kind {
            Kind::Signed => Self::of(Kind::Unsigned, self.bits),
            _ => self,
        }
    }

    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.bits.div_ceil(8))
    }

    pub(crate) fn is_signed(self) -> bool {
        self.kind == Kind::Signed
    }

    /// Whether arithmetic on it is that of floats.
    pub(crate) fn is_float(self) -> bool {
        matches!(
            self.kind,
            Kind::Float | Kind::BFloat | Kind::FloatPair | Kind::BFloatPair
        )
    }

    /// The bits of a register that belong to it.
    pub(crate) fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }
}

/// How results are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To the nearest, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
    /// Downwards.
    Down,
    /// Upwards.
    Up,
}

/// What happens to a float besides being rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    /// To a float, or if `to_integer` is set to a float without a fraction.
    pub(crate) rounding: Rounding,
    pub(crate) to_integer: bool,
    /// Subnormal numbers count as zero.
    pub(crate) flush: bool,
    /// Clamped: floats to 0..1, integers to their range.
    pub(crate) saturate: bool,
}

impl Mode {
    /// As IEEE 754 has it.
    pub(crate) const PLAIN: Self = Self {
        rounding: Rounding::Nearest,
        to_integer: false,
        flush: false,
        saturate: false,
    };
}
