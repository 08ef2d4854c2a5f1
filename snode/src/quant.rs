//! Quantised types: numbers stored in fewer bits than they are computed with.
//!
//! A quantised number is some bits of a *word*: the cell of a `bit_struct` node, whose fields lie side
//! by side in it, or the container of a `quant_array` node, whose elements do. Nothing in memory is
//! smaller than a word.

use std::fmt;

use aerogel_base::{Scalar, ScalarType};

/// How a number becomes bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// An integer, of which the low bits are stored.
    Int,
    /// A multiple of the scale (an `f64`): the factor is stored like an integer.
    Fixed {
        /// The value of the lowest bit.
        scale: Scalar,
    },
    /// A binary floating-point number: fraction, sign, and an exponent of so many bits.
    Float {
        /// Bits of the exponent.
        exponent: u32,
    },
}

/// A quantised type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuantType {
    /// The type in which it is read, written and computed with.
    pub compute: ScalarType,
    /// How a number becomes bits.
    pub form: Form,
    /// Bits of the integer, the factor, or the fraction; with the sign.
    pub bits: u32,
    /// Whether there are negative numbers.
    pub signed: bool,
}

/// Why there is no such quantised type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantError {
    /// No bits, or more than the compute type has.
    Bits {
        /// How many.
        bits: u32,
        /// How many are possible.
        most: u32,
    },
    /// No bits, or more than 8.
    ExponentBits {
        /// How many.
        bits: u32,
    },
    /// An integer type for fractions, or the reverse.
    Compute {
        /// The type.
        compute: ScalarType,
        /// The required type.
        wanted: &'static str,
    },
    /// A scale that is no positive number.
    Scale,
    /// Text that names no type.
    Text(String),
}

impl fmt::Display for QuantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bits { bits, most } => {
                write!(f, "the type has from 1 to {most} bits, not {bits}")
            }
            Self::ExponentBits { bits } => {
                write!(f, "the exponent has from 1 to 8 bits, not {bits}")
            }
            Self::Compute { compute, wanted } => {
                write!(f, "it is computed with {wanted}, not {compute}")
            }
            Self::Scale => write!(f, "the scale must be positive and finite"),
            Self::Text(text) => write!(f, "`{text}` is not a quantised type"),
        }
    }
}

impl std::error::Error for QuantError {}

/// The exponent of 1 in an `f32`, and the bits of its fraction.
const BIAS: u32 = 127;
const FRACTION: u32 = 23;
/// The least `f32` that is no finite number, without the sign.
const INFINITY: u32 = 0x7f80_0000;
/// The value that replaces a NaN.
pub const NAN: u32 = 0x7fc0_0000;

/// The bits of an `f32`; one and the same for all that are no numbers.
fn bits_of(x: Scalar) -> u32 {
    let x = x.as_f64() as f32;
    if x.is_nan() { NAN } else { x.to_bits() }
}

impl QuantType {
    /// An integer type.
    pub fn int(bits: u32, signed: bool, compute: ScalarType) -> Result<Self, QuantError> {
        if compute.is_float() || compute == ScalarType::U1 {
            let wanted = "an integer type";
            return Err(QuantError::Compute { compute, wanted });
        }
        let most = compute.bits();
        in_range(bits, most)?;
        Ok(Self {
            compute,
            form: Form::Int,
            bits,
            signed,
        })
    }

    /// A fixed-point type.
    pub fn fixed(
        bits: u32,
        signed: bool,
        scale: f64,
        compute: ScalarType,
    ) -> Result<Self, QuantError> {
        if !matches!(compute, ScalarType::F32 | ScalarType::F64) {
            let wanted = "f32 or f64";
            return Err(QuantError::Compute { compute, wanted });
        }
        in_range(bits, 32)?;
        let (scale, inverse) = (
            Scalar::float(ScalarType::F64, scale),
            Scalar::float(compute, 1.0 / scale),
        );
        let usable = |x: f64| x > 0.0 && x.is_finite();
        let in_compute = Scalar::float(compute, scale.as_f64());
        if !usable(in_compute.as_f64()) || !usable(inverse.as_f64()) {
            return Err(QuantError::Scale);
        }
        Ok(Self {
            compute,
            form: Form::Fixed { scale },
            bits,
            signed,
        })
    }

    /// A floating-point type; `bits` are those of the fraction, with the sign.
    pub fn float(
        exponent: u32,
        bits: u32,
        signed: bool,
        compute: ScalarType,
    ) -> Result<Self, QuantError> {
        if compute != ScalarType::F32 {
            let wanted = "f32";
            return Err(QuantError::Compute { compute, wanted });
        }
        if !(1..=8).contains(&exponent) {
            return Err(QuantError::ExponentBits { bits: exponent });
        }
        let sign = u32::from(signed);
        if !(1 + sign..=FRACTION + sign).contains(&bits) {
            let most = FRACTION + sign;
            return Err(QuantError::Bits { bits, most });
        }
        Ok(Self {
            compute,
            form: Form::Float { exponent },
            bits,
            signed,
        })
    }

    /// Bits of its exponent; 0 if it has none.
    pub fn exponent_bits(&self) -> u32 {
        match self.form {
            Form::Float { exponent } => exponent,
            Form::Int | Form::Fixed { .. } => 0,
        }
    }

    /// Bits that a component takes which shares nothing: of a floating-point type, from the lowest on,
    /// the fraction without its leading one, the exponent, and the sign.
    pub fn width(&self) -> u32 {
        self.bits + self.exponent_bits()
    }

    /// Bits of a floating-point type's fraction without the sign.
    pub fn digits(&self) -> u32 {
        self.bits - u32::from(self.signed)
    }

    /// The number subtracted from the exponent of an `f32` to get a floating-point type's; that is 1 at
    /// least, and 0 stands for the number 0.
    pub fn exponent_offset(&self) -> u32 {
        BIAS + 1 - (1 << (self.exponent_bits().max(1) - 1))
    }

    /// The multiplier of a fixed-point number's factor, in the compute type.
    pub fn scale(&self) -> Scalar {
        match self.form {
            Form::Fixed { scale } => Scalar::float(self.compute, scale.as_f64()),
            Form::Int | Form::Float { .. } => Scalar::one(self.compute),
        }
    }

    /// The multiplier that turns a number into a fixed-point factor, in the compute type.
    pub fn inverse_scale(&self) -> Scalar {
        match self.form {
            Form::Fixed { scale } => Scalar::float(self.compute, 1.0 / scale.as_f64()),
            Form::Int | Form::Float { .. } => Scalar::one(self.compute),
        }
    }

    /// The bits for a number of the compute type. Integers and factors that are too large keep their low
    /// bits; factors are rounded half away from zero. Floating-point numbers are rounded to the nearest,
    /// half away from zero, at most to the largest there is; too small ones become 0.
    pub fn encode(&self, value: Scalar) -> u64 {
        let bits = match self.form {
            Form::Int => value.as_i128() as u64,
            Form::Fixed { .. } => self.factor(value) as u64,
            Form::Float { .. } => u64::from(self.encode_float(bits_of(value))),
        };
        bits & mask(self.width())
    }

    /// The number of the compute type that bits stand for.
    pub fn decode(&self, bits: u64) -> Scalar {
        match self.form {
            Form::Int => Scalar::int(self.compute, self.integer(bits).into()),
            Form::Fixed { .. } => {
                let (factor, scale) = (self.integer(bits), self.scale().as_f64());
                match self.compute {
                    ScalarType::F32 => Scalar::f32(factor as f32 * scale as f32),
                    _ => Scalar::float(self.compute, factor as f64 * scale),
                }
            }
            Form::Float { .. } => Scalar::f32(self.decode_float(bits as u32)),
        }
    }

    /// The integer that the low bits are, by its sign.
    fn integer(&self, bits: u64) -> i64 {
        let rest = 64 - self.bits;
        if self.signed {
            (bits << rest) as i64 >> rest
        } else {
            (bits << rest >> rest) as i64
        }
    }

    /// Values that do not fit the intermediate integers become the least of them, of which no bits are stored.
    fn factor(&self, value: Scalar) -> i64 {
        let (x, by) = (value.as_f64(), self.inverse_scale().as_f64());
        let prepared = match self.compute {
            ScalarType::F32 => {
                let x = x as f32 * by as f32;
                f64::from(x + 0.5_f32.copysign(x))
            }
            _ => x * by + 0.5_f64.copysign(x * by),
        };
        let (least, most) = if self.signed {
            (i64::from(i32::MIN), i64::from(i32::MAX))
        } else {
            (i64::MIN, i64::MAX)
        };
        let whole = prepared.trunc();
        // The greatest integer may not be a float, but the next power of two is.
        if whole >= least as f64 && whole < most as f64 + 1.0 {
            whole as i64
        } else {
            least
        }
    }

    fn encode_float(&self, bits: u32) -> u32 {
        let (digits, exponent) = (self.digits(), self.exponent_bits());
        let magnitude = bits & !(1 << 31);
        let dropped = FRACTION - digits;
        let half = (1 << dropped) >> 1;
        // Rounding carries into the exponent, but makes no other number of what is none.
        let rounded = if magnitude >= INFINITY {
            magnitude
        } else {
            magnitude + half
        };
        let kept = rounded >> dropped;
        let offset = self.exponent_offset() << digits;
        if kept < offset + (1 << digits) {
            return 0;
        }
        let number = (kept - offset).min((1 << (exponent + digits)) - 1);
        if self.signed {
            number | bits >> 31 << (exponent + digits)
        } else {
            number
        }
    }

    fn decode_float(&self, bits: u32) -> f32 {
        let (digits, exponent) = (self.digits(), self.exponent_bits());
        let number = bits & mask(exponent + digits) as u32;
        if number < 1 << digits {
            return 0.0;
        }
        let magnitude = (number << (FRACTION - digits)) + (self.exponent_offset() << FRACTION);
        let sign = if self.signed {
            bits >> (exponent + digits) << 31
        } else {
            0
        };
        f32::from_bits(magnitude | sign)
    }

    /// The common exponent of numbers that share one, and each one's fraction with its leading one, the
    /// sign above it. All have as many bits of exponent.
    pub fn encode_shared(numbers: &[(QuantType, Scalar)]) -> (u64, Vec<u64>) {
        let Some((first, _)) = numbers.first() else {
            return (0, Vec::new());
        };
        let magnitude = |x: Scalar| (bits_of(x) & !(1 << 31)).min(INFINITY - 1);
        let offset = first.exponent_offset();
        let greatest = (offset + (1 << first.exponent_bits()) - 1).min(2 * BIAS);
        let exponents = numbers.iter().map(|&(_, x)| magnitude(x) >> FRACTION);
        let exponent = exponents.max().unwrap_or(0).min(greatest);
        if exponent <= offset {
            return (0, vec![0; numbers.len()]);
        }
        let fraction = |&(quant, x): &(QuantType, Scalar)| {
            let (m, digits) = (magnitude(x), quant.digits());
            let own = m >> FRACTION;
            let leading = u32::from(own > 0) << FRACTION;
            let whole = if own > 0 {
                m & (leading - 1) | leading
            } else {
                0
            };
            let top = (1 << digits) - 1;
            let number = if own > exponent {
                top
            } else {
                let dropped = (exponent - own + FRACTION + 1 - digits).min(31);
                ((whole + (1 << (dropped - 1))) >> dropped).min(top)
            };
            let negative = quant.signed && number > 0 && bits_of(x) >> 31 == 1;
            u64::from(number | u32::from(negative) << digits)
        };
        let fractions = numbers.iter().map(fraction).collect();
        ((exponent - offset).into(), fractions)
    }

    /// The number that a fraction stands for whose exponent is shared.
    pub fn decode_shared(&self, exponent: u64, fraction: u64) -> Scalar {
        if exponent == 0 {
            return Scalar::f32(0.0);
        }
        let digits = self.digits();
        let power = f32::from_bits((exponent as u32 + self.exponent_offset()) << FRACTION);
        let unit = f32::from_bits((BIAS + 1 - digits) << FRACTION);
        let number = (fraction & mask(digits)) as f32 * unit * power;
        let negative = self.signed && fraction >> digits & 1 == 1;
        Scalar::f32(if negative { -number } else { number })
    }

    /// Reads what `Display` writes.
    pub fn parse(text: &str) -> Result<Self, QuantError> {
        let unknown = || QuantError::Text(text.to_owned());
        let number = |text: &str| text.parse::<u32>().map_err(|_| unknown());
        let (kind, compute) = text.split_once('/').ok_or_else(unknown)?;
        let compute = ScalarType::from_name(compute).ok_or_else(unknown)?;
        let (signed, rest) = match (kind.strip_prefix("qi"), kind.strip_prefix("qu")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(unknown()),
        };
        if let Some((bits, scale)) = rest.split_once('*') {
            let scale = scale.parse().map_err(|_| unknown())?;
            Self::fixed(number(bits)?, signed, scale, compute)
        } else if let Some((bits, exponent)) = rest.split_once('^') {
            Self::float(number(exponent)?, number(bits)?, signed, compute)
        } else {
            Self::int(number(rest)?, signed, compute)
        }
    }
}

/// The lowest `n` bits.
pub fn mask(n: u32) -> u64 {
    match n {
        0 => 0,
        _ => u64::MAX >> (64 - n),
    }
}

fn in_range(bits: u32, most: u32) -> Result<(), QuantError> {
    if (1..=most).contains(&bits) {
        Ok(())
    } else {
        Err(QuantError::Bits { bits, most })
    }
}

impl fmt::Display for QuantType {
    /// `qi5/i32`, `qu8*0.25/f32` and `qi10^5/f32`: bits, scale or bits of the exponent, and compute type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "q{}{}", if self.signed { 'i' } else { 'u' }, self.bits)?;
        match self.form {
            Form::Int => {}
            Form::Fixed { scale } => write!(f, "*{scale}")?,
            Form::Float { exponent } => write!(f, "^{exponent}")?,
        }
        write!(f, "/{}", self.compute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScalarType::{F32, I32};

    fn f32s(quant: QuantType, numbers: &[f32]) -> Vec<f32> {
        let there_and_back = |&x: &f32| quant.decode(quant.encode(Scalar::f32(x)));
        let numbers = numbers.iter().map(there_and_back);
        numbers.map(|x| x.as_f64() as f32).collect()
    }

    #[test]
    fn integers_keep_their_low_bits() {
        let kept = |signed, x| {
            let quant = QuantType::int(5, signed, I32).unwrap();
            quant.decode(quant.encode(Scalar::i32(x))).as_i128()
        };
        for (x, signed, unsigned) in [(15, 15, 15), (16, -16, 16), (-17, 15, 15), (100, 4, 4)] {
            assert_eq!((kept(true, x), kept(false, x)), (signed, unsigned));
        }
    }

    #[test]
    fn factors_are_rounded_and_wrap() {
        let fixed = |signed| QuantType::fixed(4, signed, 0.25, F32).unwrap();
        assert_eq!(
            f32s(
                fixed(true),
                &[0.124, 0.125, 0.37, 1.8, 1.9, 5.0, -0.124, -0.125, -3.0]
            ),
            [0.0, 0.25, 0.25, 1.75, -2.0, 1.0, 0.0, -0.25, 1.0]
        );
        assert_eq!(
            f32s(fixed(false), &[3.8, 4.0, -0.25, 1e30, f32::NAN]),
            [3.75, 0.0, 3.75, 0.0, 0.0]
        );
    }

    #[test]
    fn floats_of_fifteen_bits() {
        let quant = QuantType::float(5, 10, true, F32).unwrap();
        let numbers = [
            1.0,
            -0.1,
            3.2,
            65504.0,
            6.2e-5,
            6e-5,
            -1e-8,
            1e6,
            f32::NEG_INFINITY,
        ];
        let expected = [
            1.0,
            -0.099_975_586,
            3.199_218_8,
            65536.0,
            6.198_883e-5,
            0.0,
            0.0,
            130_944.0,
            -130_944.0,
        ];
        assert_eq!(f32s(quant, &numbers), expected);
        let unsigned = QuantType::float(6, 10, false, F32).unwrap();
        assert_eq!(f32s(unsigned, &[-0.1, 1e6]), [0.099_975_586, 999_936.0]);
    }

    #[test]
    fn eight_bits_of_exponent_are_those_of_a_float() {
        let quant = QuantType::float(8, 10, true, F32).unwrap();
        let numbers = [
            f32::INFINITY,
            -f32::INFINITY,
            1.2e-38,
            1e-40,
            3.4e38,
            f32::MAX,
        ];
        let expected = [
            f32::INFINITY,
            -f32::INFINITY,
            1.200_749_1e-38,
            0.0,
            3.399_500_6e38,
            f32::INFINITY,
        ];
        assert_eq!(f32s(quant, &numbers), expected);
        let nan = quant.decode(quant.encode(Scalar::f32(f32::NAN)));
        assert!(nan.as_f64().is_nan());
    }

    #[test]
    fn the_greatest_number_sets_a_shared_exponent() {
        let quant = QuantType::float(5, 10, true, F32).unwrap();
        let through = |numbers: &[f32]| -> Vec<f32> {
            let pairs: Vec<_> = numbers.iter().map(|&x| (quant, Scalar::f32(x))).collect();
            let (exponent, fractions) = QuantType::encode_shared(&pairs);
            let back = fractions.iter().map(|&f| quant.decode_shared(exponent, f));
            back.map(|x| x.as_f64() as f32).collect()
        };
        assert_eq!(through(&[1.0, 1000.0, 0.1]), [2.0, 1000.0, 0.0]);
        assert_eq!(
            through(&[0.1, 0.2, 0.3]),
            [0.099_609_375, 0.200_195_31, 0.299_804_7]
        );
        assert_eq!(through(&[-1.0, 0.5, -0.25]), [-1.0, 0.5, -0.25]);
        assert_eq!(through(&[1.9999]), [1.996_093_8]);
        assert_eq!(through(&[65504.0]), [65408.0]);
        assert_eq!(through(&[1e-4, 1e-5, 1e-6])[2], 9.536_743e-7);
        assert_eq!(through(&[1e-5, -0.0]), [0.0, 0.0]);
        assert_eq!(through(&[1e9, -1.0]), [130_816.0, 0.0]);
    }

    #[test]
    fn text_round_trips() {
        for text in ["qi5/i32", "qu33/i64", "qi8*0.25/f32", "qu10^5/f32"] {
            let quant = QuantType::parse(text).unwrap();
            assert_eq!(quant.to_string(), text);
        }
        for text in [
            "qi33/i32",
            "qi5/f32",
            "qi8*0.0/f32",
            "qi10^9/f32",
            "qi10^5/f64",
            "i5",
        ] {
            assert!(QuantType::parse(text).is_err(), "{text}");
        }
    }
}
