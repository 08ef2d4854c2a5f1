//! The scalar types of the language and their values.

use std::fmt;

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ScalarType {
    /// A boolean, one byte in memory.
    U1,
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 8-bit unsigned integer.
    U8,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// IEEE half precision.
    F16,
    /// The high half of an `f32`: its range, and 8 bits of precision.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

use ScalarType::*;

impl ScalarType {
    /// Every scalar type.
    pub const ALL: [ScalarType; 13] = [
        U1, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64,
    ];

    /// The name in IR text and in Python.
    pub fn name(self) -> &'static str {
        match self {
            U1 => "u1",
            I8 => "i8",
            I16 => "i16",
            I32 => "i32",
            I64 => "i64",
            U8 => "u8",
            U16 => "u16",
            U32 => "u32",
            U64 => "u64",
            F16 => "f16",
            BF16 => "bf16",
            F32 => "f32",
            F64 => "f64",
        }
    }

    /// The type with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Width in bits; 1 for `u1`.
    pub fn bits(self) -> u32 {
        match self {
            U1 => 1,
            I8 | U8 => 8,
            I16 | U16 | F16 | BF16 => 16,
            I32 | U32 | F32 => 32,
            I64 | U64 | F64 => 64,
        }
    }

    /// Size and alignment in memory, in bytes.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether this is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, F16 | BF16 | F32 | F64)
    }

    /// Whether this is a floating-point type of 16 bits: such numbers are stored in 16 bits, and computed with in more.
    pub fn is_half(self) -> bool {
        matches!(self, F16 | BF16)
    }

    /// The type in which sums and products of many numbers of this type are taken: `f32` for halves, otherwise the type.
    pub fn accumulator(self) -> Self {
        if self.is_half() { F32 } else { self }
    }

    /// Whether this is an integer type, `u1` included.
    pub fn is_int(self) -> bool {
        !self.is_float()
    }

    /// Whether this is a signed integer type.
    pub fn is_signed(self) -> bool {
        matches!(self, I8 | I16 | I32 | I64)
    }

    /// The type two operands of arithmetic meet at: real beats integer; among reals and among
    /// integers more bits; at equal bits unsigned wins, and the two halves meet at `f32`.
    pub fn promote(self, other: Self) -> Self {
        match (self.is_float(), other.is_float()) {
            (true, false) => self,
            (false, true) => other,
            _ if self.bits() != other.bits() => {
                if self.bits() > other.bits() {
                    self
                } else {
                    other
                }
            }
            (true, true) if self != other => F32,
            (true, true) => self,
            (false, false) => {
                if self.is_signed() {
                    other
                } else {
                    self
                }
            }
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A scalar value: type and payload. Integers are stored extended to 64 bits by their own sign,
/// floats as their IEEE bits, so equal values of a type have equal payloads (NaNs aside).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scalar {
    ty: ScalarType,
    bits: u64,
}

impl Scalar {
    /// An integer value, wrapped to the type's width. `u1` takes the lowest bit.
    pub fn int(ty: ScalarType, value: i128) -> Self {
        debug_assert!(ty.is_int());
        let shift = 128 - ty.bits();
        let wrapped = if ty.is_signed() {
            (value << shift) >> shift
        } else {
            ((value as u128) << shift >> shift) as i128
        };
        Self {
            ty,
            bits: wrapped as u64,
        }
    }

    /// A floating-point value, rounded to the type.
    pub fn float(ty: ScalarType, value: f64) -> Self {
        let bits = match ty {
            F16 => u64::from(f16::from_f32(to_odd_f32(value)).to_bits()),
            BF16 => u64::from(bf16::from_f32(to_odd_f32(value)).to_bits()),
            F32 => u64::from((value as f32).to_bits()),
            F64 => value.to_bits(),
            _ => unreachable!("{ty} is not a floating-point type"),
        };
        Self { ty, bits }
    }

    /// A single-precision value.
    pub fn f32(value: f32) -> Self {
        Self {
            ty: F32,
            bits: u64::from(value.to_bits()),
        }
    }

    /// A boolean.
    pub fn bool(value: bool) -> Self {
        Self {
            ty: U1,
            bits: u64::from(value),
        }
    }

    /// A 32-bit integer.
    pub fn i32(value: i32) -> Self {
        Self::int(I32, i128::from(value))
    }

    /// The value of type `ty` with this payload (in the form `slot` gives).
    pub fn from_slot(ty: ScalarType, slot: u64) -> Self {
        if ty.is_int() {
            Self::int(ty, i128::from(slot))
        } else {
            Self {
                ty,
                bits: slot & (u64::MAX >> (64 - ty.bits())),
            }
        }
    }

    /// The 8-byte slot in which arguments and results travel: integers extended by their sign,
    /// floats as their bits.
    pub fn slot(self) -> u64 {
        self.bits
    }

    /// `-0.0` included.
    pub fn is_zero(self) -> bool {
        if self.ty.is_float() {
            self.as_f64() == 0.0
        } else {
            self.bits == 0
        }
    }

    /// Whether this is the number one.
    pub fn is_one(self) -> bool {
        if self.ty.is_float() {
            self.as_f64() == 1.0
        } else {
            self.as_i128() == 1
        }
    }

    /// The zero of a type.
    pub fn zero(ty: ScalarType) -> Self {
        Self { ty, bits: 0 }
    }

    /// The one of a type.
    pub fn one(ty: ScalarType) -> Self {
        if ty.is_float() {
            Self::float(ty, 1.0)
        } else {
            Self::int(ty, 1)
        }
    }

    /// The type.
    pub fn ty(self) -> ScalarType {
        self.ty
    }

    /// An integer's value.
    pub fn as_i128(self) -> i128 {
        debug_assert!(self.ty.is_int());
        if self.ty.is_signed() {
            i128::from(self.bits as i64)
        } else {
            i128::from(self.bits)
        }
    }

    /// A float's value, exact.
    pub fn as_f64(self) -> f64 {
        match self.ty {
            F16 => f16::from_bits(self.bits as u16).to_f64(),
            BF16 => bf16::from_bits(self.bits as u16).to_f64(),
            F32 => f64::from(f32::from_bits(self.bits as u32)),
            F64 => f64::from_bits(self.bits),
            _ => unreachable!("{} is not a floating-point type", self.ty),
        }
    }

    /// A boolean; any nonzero integer is true.
    pub fn as_bool(self) -> bool {
        self.bits != 0
    }

    /// The number as the nearest `f64`, for integers too.
    pub fn to_f64(self) -> f64 {
        if self.ty.is_float() {
            self.as_f64()
        } else {
            self.as_i128() as f64
        }
    }

    /// Little-endian bytes as they lie in memory.
    pub fn to_bytes(self) -> ([u8; 8], usize) {
        (self.bits.to_le_bytes(), self.ty.bytes() as usize)
    }

    /// Reads a value as it lies in memory; `bytes` has the type's size.
    pub fn from_bytes(ty: ScalarType, bytes: &[u8]) -> Self {
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        Self::from_slot(ty, u64::from_le_bytes(all))
    }

    /// Parses the text that `Display` writes.
    pub fn parse(ty: ScalarType, text: &str) -> Option<Self> {
        if ty.is_int() {
            return text.parse::<i128>().ok().map(|v| Self::int(ty, v));
        }
        if let Some(hex) = text.strip_prefix("bits:") {
            return u64::from_str_radix(hex, 16)
                .ok()
                .map(|b| Self::from_slot(ty, b));
        }
        match ty {
            F32 => text.parse::<f32>().ok().map(Self::f32),
            _ => text.parse::<f64>().ok().map(|v| Self::float(ty, v)),
        }
    }
}

/// An `f64` as an `f32`, rounded to odd: an inexact result gets an odd last bit, so that rounding
/// once more, to a half, gives what rounding once would have given. (`f16::from_f64` rounds twice
/// where the processor converts.)
fn to_odd_f32(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    if back == value || value.is_nan() {
        return near;
    }
    let towards_zero = near.to_bits() - u32::from(back.abs() > value.abs());
    f32::from_bits(towards_zero | 1)
}

impl fmt::Display for Scalar {
    /// Text that `parse` reads back to the same bits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ty {
            F16 | BF16 | F64 if self.as_f64().is_finite() => write!(f, "{:?}", self.as_f64()),
            F32 if self.as_f64().is_finite() => write!(f, "{:?}", f32::from_bits(self.bits as u32)),
            F16 | BF16 | F32 | F64 if self.as_f64() == f64::INFINITY => f.write_str("inf"),
            F16 | BF16 | F32 | F64 if self.as_f64() == f64::NEG_INFINITY => f.write_str("-inf"),
            F16 | BF16 | F32 | F64 => write!(f, "bits:{:x}", self.bits),
            _ => write!(f, "{}", self.as_i128()),
        }
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}{}", self.ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_follows_the_lattice() {
        for (a, b, r) in [
            (I8, U8, U8),
            (I32, U32, U32),
            (U32, I64, I64),
            (I64, U64, U64),
            (I64, F16, F16),
            (F16, F32, F32),
            (F16, BF16, F32),
            (BF16, F32, F32),
            (BF16, I64, BF16),
            (BF16, BF16, BF16),
            (U64, F32, F32),
            (U1, U1, U1),
            (U1, I32, I32),
            (I64, F32, F32),
        ] {
            assert_eq!(a.promote(b), r, "{a} {b}");
            assert_eq!(b.promote(a), r, "{b} {a}");
        }
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(Scalar::int(U8, 300).as_i128(), 44);
        assert_eq!(Scalar::int(I8, 200).as_i128(), -56);
        assert_eq!(Scalar::int(U64, -1).as_i128(), i128::from(u64::MAX));
        assert_eq!(Scalar::int(U1, 3).as_i128(), 1);
    }

    #[test]
    fn f16_is_rounded_once() {
        let just_above_a_tie = 1.000_488_281_250_001;
        assert_eq!(
            Scalar::float(F16, just_above_a_tie).as_f64(),
            1.000_976_562_5
        );
        assert_eq!(Scalar::float(F16, 1.000_488_281_25).as_f64(), 1.0);
        assert_eq!(Scalar::float(F16, 1e300).as_f64(), f64::INFINITY);
    }

    #[test]
    fn bf16_is_rounded_once() {
        assert_eq!(Scalar::float(BF16, 1.003_906_25).as_f64(), 1.0);
        assert_eq!(
            Scalar::float(BF16, 1.003_906_250_000_001).as_f64(),
            1.007_812_5
        );
        assert_eq!(Scalar::float(BF16, 1.011_718_75).as_f64(), 1.015_625);
        assert_eq!(Scalar::float(BF16, 3.4e38).as_f64(), f64::INFINITY);
        assert_eq!(Scalar::float(BF16, 1e-40).as_f64(), 2_f64.powi(-133));
    }

    #[test]
    fn text_round_trips() {
        for v in [
            Scalar::float(F16, 0.1),
            Scalar::float(BF16, 0.1),
            Scalar::f32(0.1),
            Scalar::float(F64, 1e-300),
            Scalar::f32(f32::NAN),
            Scalar::f32(-0.0),
            Scalar::float(F64, f64::NEG_INFINITY),
            Scalar::int(I64, i128::from(i64::MIN)),
        ] {
            assert_eq!(Scalar::parse(v.ty(), &v.to_string()), Some(v));
        }
    }
}
