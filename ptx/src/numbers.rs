//! Arithmetic on the bits of registers.
//!
//! Approximate instructions are computed exactly and rounded: a GPU may differ by the error that the PTX manual states.

use half::{bf16, f16};

use crate::code::{Binary, Compare, Kind, Mode, Ordered, Rounding, Ternary, Ty, Unary};

/// An integer of some bits, with its sign if it has one.
fn integer(ty: Ty, bits: u64) -> i128 {
    let bits = bits & ty.mask();
    match ty.is_signed() && bits >> (ty.bits - 1) & 1 == 1 {
        true => i128::from(bits) - (1 << ty.bits),
        false => i128::from(bits),
    }
}

/// A float as a double; all of them are exact there.
#[inline]
fn float(ty: Ty, bits: u64) -> f64 {
    match (ty.kind, ty.bits) {
        (Kind::BFloat, _) => bf16::from_bits(bits as u16).to_f64(),
        (_, 16) => f16::from_bits(bits as u16).to_f64(),
        (_, 32) => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// The bits of a double as a float of a type, rounded.
#[inline]
fn float_bits(ty: Ty, value: f64, rounding: Rounding) -> u64 {
    let nearest = nearest_bits(ty, value);
    if rounding == Rounding::Nearest || value.is_nan() || ty.bits == 64 {
        return nearest;
    }
    let back = float(ty, nearest);
    let up = match rounding {
        Rounding::Up => true,
        Rounding::Down => false,
        _ => value < 0.0,
    };
    match () {
        () if back < value && up => next(ty, nearest, true),
        () if back > value && !up => next(ty, nearest, false),
        () => nearest,
    }
}

#[inline]
fn nearest_bits(ty: Ty, value: f64) -> u64 {
    match (ty.kind, ty.bits) {
        (Kind::BFloat, _) => u64::from(bf16::from_f64(value).to_bits()),
        (_, 16) => u64::from(f16::from_f64(value).to_bits()),
        (_, 32) => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    }
}

/// The float beside another one.
fn next(ty: Ty, bits: u64, up: bool) -> u64 {
    let sign = 1 << (ty.bits - 1);
    let negative = bits & sign != 0;
    match (bits & !sign, negative == up) {
        (0, _) if up => 1,
        (0, _) => sign | 1,
        (_, true) => bits - 1,
        (_, false) => bits + 1,
    }
}

#[inline]
fn flushed(ty: Ty, bits: u64, mode: Mode) -> u64 {
    if !mode.flush || ty.bits != 32 {
        return bits;
    }
    match f32::from_bits(bits as u32).is_subnormal() {
        true => bits & 0x8000_0000,
        false => bits,
    }
}

#[inline]
fn finished(ty: Ty, bits: u64, mode: Mode) -> u64 {
    let bits = flushed(ty, bits, mode);
    if !mode.saturate {
        return bits;
    }
    let value = float(ty, bits);
    match value {
        v if v.is_nan() => 0,
        v => nearest_bits(ty, v.clamp(0.0, 1.0) + 0.0),
    }
}

/// Both halves of a pair.
#[inline]
fn halves(ty: Ty) -> Option<Ty> {
    let kind = match ty.kind {
        Kind::FloatPair => Kind::Float,
        Kind::BFloatPair => Kind::BFloat,
        _ => return None,
    };
    Some(Ty { kind, bits: 16 })
}

fn in_halves(half: Ty, f: impl Fn(Ty, u32) -> u64) -> u64 {
    f(half, 0) & 0xffff | (f(half, 16) & 0xffff) << 16
}

pub(crate) fn unary(op: Unary, ty: Ty, mode: Mode, x: u64) -> u64 {
    if let Some(half) = halves(ty) {
        return in_halves(half, |ty, at| unary(op, ty, mode, x >> at & 0xffff));
    }
    let sign = 1 << (ty.bits - 1);
    match op {
        Unary::Move => x & ty.mask(),
        Unary::Not => !x & ty.mask(),
        Unary::Negate if ty.is_float() => flushed(ty, x, mode) ^ sign,
        Unary::Absolute if ty.is_float() => flushed(ty, x, mode) & !sign & ty.mask(),
        Unary::Negate => x.wrapping_neg() & ty.mask(),
        Unary::Absolute => integer(ty, x).unsigned_abs() as u64 & ty.mask(),
        Unary::CountZeros => u64::from((x & ty.mask()).leading_zeros() - (64 - ty.bits)),
        Unary::CountOnes => u64::from((x & ty.mask()).count_ones()),
        Unary::FindHighest(shift) => highest(ty, x, shift),
        Unary::Reverse => (x & ty.mask()).reverse_bits() >> (64 - ty.bits),
        _ => function(op, ty, mode, flushed(ty, x, mode)),
    }
}

fn highest(ty: Ty, x: u64, shift: bool) -> u64 {
    let negative = ty.is_signed() && integer(ty, x) < 0;
    let bits = if negative { !x } else { x } & ty.mask();
    match bits.checked_ilog2() {
        None => 0xffff_ffff,
        Some(at) if shift => u64::from(ty.bits - 1 - at),
        Some(at) => u64::from(at),
    }
}

fn function(op: Unary, ty: Ty, mode: Mode, bits: u64) -> u64 {
    let x = float(ty, bits);
    let test = |yes: bool| u64::from(yes);
    let subnormal = |bits: u64| match ty.bits {
        32 => f32::from_bits(bits as u32).is_subnormal(),
        64 => x.is_subnormal(),
        _ => x != 0.0 && x.abs() < f64::from(f16::MIN_POSITIVE),
    };
    let value = match op {
        Unary::Sqrt => return finished(ty, root(ty, x, mode), mode),
        Unary::Reciprocal => return finished(ty, quotient(ty, 1.0, x, mode), mode),
        Unary::ReciprocalSqrt => 1.0 / x.sqrt(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Exp2 => x.exp2(),
        Unary::Log2 => x.log2(),
        Unary::Tanh => x.tanh(),
        Unary::IsFinite => return test(x.is_finite()),
        Unary::IsInfinite => return test(x.is_infinite()),
        Unary::IsNumber => return test(!x.is_nan()),
        Unary::IsNan => return test(x.is_nan()),
        Unary::IsNormal => return test(x.is_finite() && x != 0.0 && !subnormal(bits)),
        Unary::IsSubnormal => return test(subnormal(bits)),
        _ => unreachable!("the caller did the others"),
    };
    finished(ty, float_bits(ty, value, mode.rounding), mode)
}

/// A double that was rounded to the nearest, rounded otherwise: `rest` has the sign of what was lost.
#[inline]
fn directed(value: f64, rest: f64, rounding: Rounding) -> f64 {
    let up = match rounding {
        Rounding::Nearest => return value,
        Rounding::Up => true,
        Rounding::Down => false,
        Rounding::Zero => value < 0.0,
    };
    match () {
        () if rest > 0.0 && up => value.next_up(),
        () if rest < 0.0 && !up => value.next_down(),
        () => value,
    }
}

fn root(ty: Ty, x: f64, mode: Mode) -> u64 {
    let value = x.sqrt();
    if ty.bits == 64 {
        let rest = (-value).mul_add(value, x);
        return directed(value, rest, mode.rounding).to_bits();
    }
    float_bits(ty, value, mode.rounding)
}

fn quotient(ty: Ty, x: f64, y: f64, mode: Mode) -> u64 {
    let value = x / y;
    if ty.bits == 64 {
        let rest = (-value).mul_add(y, x) * y.signum();
        return directed(value, rest, mode.rounding).to_bits();
    }
    float_bits(ty, value, mode.rounding)
}

#[inline]
pub(crate) fn binary(op: Binary, ty: Ty, mode: Mode, x: u64, y: u64) -> u64 {
    if let Some(half) = halves(ty) {
        return in_halves(half, |ty, at| {
            binary(op, ty, mode, x >> at & 0xffff, y >> at & 0xffff)
        });
    }
    match op {
        Binary::And => x & y & ty.mask(),
        Binary::Or => (x | y) & ty.mask(),
        Binary::Xor => (x ^ y) & ty.mask(),
        Binary::CopySign => {
            let sign = 1 << (ty.bits - 1);
            x & sign | y & !sign & ty.mask()
        }
        _ if ty.is_float() => of_floats(op, ty, mode, flushed(ty, x, mode), flushed(ty, y, mode)),
        _ => of_integers(op, ty, mode, x, y),
    }
}

#[inline]
fn of_integers(op: Binary, ty: Ty, mode: Mode, x: u64, y: u64) -> u64 {
    // The distance of a shift is a number of 32 bits, whatever is shifted.
    let distance = y as u32;
    let (x, y, mask) = (extended(ty, x), extended(ty, y), ty.mask());
    let signed = ty.is_signed();
    let value = match op {
        Binary::Add if mode.saturate => clamped_sum(x as i64, y as i64),
        Binary::Sub if mode.saturate => clamped_sum(x as i64, -(y as i64)),
        Binary::Add => x.wrapping_add(y),
        Binary::Sub => x.wrapping_sub(y),
        Binary::Mul => x.wrapping_mul(y),
        Binary::MulHigh if signed => {
            ((i128::from(x as i64) * i128::from(y as i64)) >> ty.bits) as u64
        }
        Binary::MulHigh => ((u128::from(x) * u128::from(y)) >> ty.bits) as u64,
        Binary::MulWide => return x.wrapping_mul(y) & (u64::MAX >> (64 - 2 * ty.bits.min(32))),
        // The manual does not specify the result in this case; GPUs return this.
        Binary::Div if y == 0 => u64::MAX,
        Binary::Rem if y == 0 => x,
        Binary::Div if signed => (x as i64).wrapping_div(y as i64) as u64,
        Binary::Rem if signed => (x as i64).wrapping_rem(y as i64) as u64,
        Binary::Div => x / y,
        Binary::Rem => x % y,
        Binary::Min | Binary::MinNan => match less(signed, y, x) {
            true => y,
            false => x,
        },
        Binary::Max | Binary::MaxNan => match less(signed, x, y) {
            true => y,
            false => x,
        },
        Binary::ShiftLeft => x.checked_shl(distance).unwrap_or(0),
        Binary::ShiftRight if signed => ((x as i64) >> distance.min(63)) as u64,
        Binary::ShiftRight => x.checked_shr(distance).unwrap_or(0),
        Binary::FieldMask => field_mask(x, y),
        Binary::And | Binary::Or | Binary::Xor | Binary::CopySign => {
            unreachable!("the caller did these")
        }
    };
    value & mask
}

/// Of numbers that fill a register.
#[inline]
fn less(signed: bool, x: u64, y: u64) -> bool {
    match signed {
        true => (x as i64) < y as i64,
        false => x < y,
    }
}

/// `add.sat` is of `s32` alone.
fn clamped_sum(x: i64, y: i64) -> u64 {
    (x + y).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u64
}

fn field_mask(from: u64, length: u64) -> u64 {
    let (from, length) = (from & 0xff, length & 0xff);
    let bits = (0..32).filter(|k| *k >= from && *k < from + length);
    bits.fold(0, |mask, k| mask | 1 << k)
}

#[inline]
fn of_floats(op: Binary, ty: Ty, mode: Mode, x: u64, y: u64) -> u64 {
    let (a, b) = (float(ty, x), float(ty, y));
    let bits = match op {
        Binary::Add => sum(ty, a, b, mode.rounding),
        Binary::Sub => sum(ty, a, -b, mode.rounding),
        Binary::Mul => {
            let value = a * b;
            match ty.bits {
                64 => directed(value, a.mul_add(b, -value), mode.rounding).to_bits(),
                _ => float_bits(ty, value, mode.rounding),
            }
        }
        Binary::Div => quotient(ty, a, b, mode),
        Binary::Min | Binary::Max | Binary::MinNan | Binary::MaxNan => {
            return finished(ty, extremum(op, ty, [x, y], [a, b]), mode);
        }
        _ => unreachable!("floats have no such operation"),
    };
    finished(ty, bits, mode)
}

#[inline]
fn sum(ty: Ty, a: f64, b: f64, rounding: Rounding) -> u64 {
    let value = a + b;
    // What rounding has lost (Knuth's two-sum).
    let bb = value - a;
    let rest = (a - (value - bb)) + (b - bb);
    match ty.bits {
        64 => directed(value, rest, rounding).to_bits(),
        32 if rounding == Rounding::Nearest => u64::from((a as f32 + b as f32).to_bits()),
        // The double nearest to the sum lies on the same side of all floats, but for what it lost.
        _ => {
            let value = match rounding {
                Rounding::Nearest => value,
                _ if rest > 0.0 => value.next_up(),
                _ if rest < 0.0 => value.next_down(),
                _ => value,
            };
            float_bits(ty, value, rounding)
        }
    }
}

fn extremum(op: Binary, ty: Ty, bits: [u64; 2], [a, b]: [f64; 2]) -> u64 {
    let nan = match (ty.kind, ty.bits) {
        (_, 32) => 0x7fff_ffff,
        (_, 64) => f64::NAN.to_bits(),
        _ => 0x7fff,
    };
    let smaller = matches!(op, Binary::Min | Binary::MinNan);
    match (a.is_nan(), b.is_nan()) {
        (true, true) => nan,
        (true, _) | (_, true) if matches!(op, Binary::MinNan | Binary::MaxNan) => nan,
        (true, false) => bits[1],
        (false, true) => bits[0],
        // Of zeros the negative one is smaller.
        _ => {
            let first = a < b || a == b && a.is_sign_negative();
            bits[usize::from(first != smaller)]
        }
    }
}

#[inline]
pub(crate) fn ternary(op: Ternary, ty: Ty, mode: Mode, [x, y, z]: [u64; 3]) -> u64 {
    if let Some(half) = halves(ty) {
        let at = |v: u64, at: u32| v >> at & 0xffff;
        return in_halves(half, |ty, k| {
            ternary(op, ty, mode, [at(x, k), at(y, k), at(z, k)])
        });
    }
    match op {
        Ternary::MulAdd => x.wrapping_mul(y).wrapping_add(z) & ty.mask(),
        Ternary::MulHighAdd => {
            of_integers(Binary::MulHigh, ty, mode, x, y).wrapping_add(z) & ty.mask()
        }
        Ternary::MulWideAdd => {
            let wide = of_integers(Binary::MulWide, ty, mode, x, y).wrapping_add(z);
            wide & (u64::MAX >> (64 - 2 * ty.bits.min(32)))
        }
        Ternary::Fused => fused(ty, mode, [x, y, z].map(|v| flushed(ty, v, mode))),
        Ternary::FieldExtract => field(ty, x, y, z),
        Ternary::Lookup(table) => (0..32).fold(0, |all, k| {
            let bit = |v: u64| v >> k & 1;
            let index = bit(x) << 2 | bit(y) << 1 | bit(z);
            all | (u64::from(table) >> index & 1) << k
        }),
        Ternary::FunnelLeft(clamp) => {
            let by = distance(z, clamp);
            ((y & 0xffff_ffff) << 32 | x & 0xffff_ffff)
                .checked_shl(by)
                .unwrap_or(0)
                >> 32
        }
        Ternary::FunnelRight(clamp) => {
            let by = distance(z, clamp);
            ((y & 0xffff_ffff) << 32 | x & 0xffff_ffff) >> by & 0xffff_ffff
        }
        Ternary::Permute => (0..4).fold(0, |all, k| {
            let select = z >> (4 * k) & 0xf;
            let pair = y << 32 | x & 0xffff_ffff;
            let byte = pair >> (8 * (select & 7)) & 0xff;
            let byte = if select & 8 == 0 {
                byte
            } else {
                0xff * (byte >> 7)
            };
            all | byte << (8 * k)
        }),
        Ternary::AbsoluteDifference => {
            let apart = (integer(ty, x) - integer(ty, y)).unsigned_abs();
            (apart as u64).wrapping_add(z) & ty.mask()
        }
    }
}

fn distance(by: u64, clamp: bool) -> u32 {
    let by = by & 0xffff_ffff;
    (if clamp { by.min(32) } else { by & 31 }) as u32
}

#[inline]
fn fused(ty: Ty, mode: Mode, bits: [u64; 3]) -> u64 {
    let bits = match (ty.kind, ty.bits) {
        (Kind::Float, 32) => {
            let [x, y, z] = bits.map(|v| f32::from_bits(v as u32));
            u64::from(x.mul_add(y, z).to_bits())
        }
        (Kind::Float, 64) => {
            let [x, y, z] = bits.map(f64::from_bits);
            x.mul_add(y, z).to_bits()
        }
        // The product is exact in a double; the sum is rounded to odd, so that the second rounding is right.
        _ => {
            let [x, y, z] = bits.map(|v| float(ty, v));
            let (product, value) = (x * y, x.mul_add(y, z));
            let bb = value - product;
            let rest = (product - (value - bb)) + (z - bb);
            let odd = rest != 0.0 && value.to_bits() & 1 == 0;
            let value = match (odd, rest > 0.0) {
                (false, _) => value,
                (true, true) => value.next_up(),
                (true, false) => value.next_down(),
            };
            float_bits(ty, value, Rounding::Nearest)
        }
    };
    finished(ty, bits, mode)
}

fn field(ty: Ty, x: u64, from: u64, length: u64) -> u64 {
    let (from, length) = (from & 0xff, length & 0xff);
    let bits = u64::from(ty.bits);
    let sign_at = (from + length).saturating_sub(1).min(bits - 1);
    let sign = ty.is_signed() && length > 0 && x >> sign_at & 1 == 1;
    (0..bits).fold(0, |all, k| {
        let inside = k < length && from + k < bits;
        let bit = if inside {
            x >> (from + k) & 1
        } else {
            u64::from(sign)
        };
        all | bit << k
    })
}

/// `bfi`
pub(crate) fn insert(ty: Ty, x: u64, into: u64, at: u64, length: u64) -> u64 {
    let (at, length) = (at & 0xff, length & 0xff);
    (0..u64::from(ty.bits)).fold(0, |all, k| {
        let bit = match k >= at && k < at + length {
            true => x >> (k - at) & 1,
            false => into >> k & 1,
        };
        all | bit << k
    })
}

/// What the two predicates of a comparison become: its outcome and the opposite, or that of the low and of the high half
/// of pairs.
pub(crate) fn compare_twice(op: Compare, ty: Ty, flush: bool, x: u64, y: u64) -> (bool, bool) {
    if let Some(half) = halves(ty) {
        let of = |at: u32| compare(op, half, flush, x >> at & 0xffff, y >> at & 0xffff);
        return (of(0), of(16));
    }
    let found = compare(op, ty, flush, x, y);
    (found, !found)
}

pub(crate) fn compare(op: Compare, ty: Ty, flush: bool, x: u64, y: u64) -> bool {
    if !ty.is_float() {
        let (a, b, signed) = (extended(ty, x), extended(ty, y), ty.is_signed());
        return match op {
            Compare::Equal => a == b,
            Compare::NotEqual => a != b,
            Compare::Less => less(signed, a, b),
            Compare::LessEqual => !less(signed, b, a),
            Compare::Greater => less(signed, b, a),
            Compare::GreaterEqual => !less(signed, a, b),
            Compare::Unordered(_) | Compare::Number | Compare::Nan => {
                unreachable!("integers are ordered")
            }
        };
    }
    let mode = Mode {
        flush,
        ..Mode::PLAIN
    };
    let (a, b) = (
        float(ty, flushed(ty, x, mode)),
        float(ty, flushed(ty, y, mode)),
    );
    let nan = a.is_nan() || b.is_nan();
    match op {
        Compare::Equal => a == b,
        Compare::NotEqual => !nan && a != b,
        Compare::Less => a < b,
        Compare::LessEqual => a <= b,
        Compare::Greater => a > b,
        Compare::GreaterEqual => a >= b,
        Compare::Number => !nan,
        Compare::Nan => nan,
        Compare::Unordered(op) => {
            nan || match op {
                Ordered::Equal => a == b,
                Ordered::NotEqual => a != b,
                Ordered::Less => a < b,
                Ordered::LessEqual => a <= b,
                Ordered::Greater => a > b,
                Ordered::GreaterEqual => a >= b,
            }
        }
    }
}

pub(crate) fn convert(to: Ty, from: Ty, mode: Mode, x: u64) -> u64 {
    match (from.is_float(), to.is_float()) {
        (false, false) if mode.saturate => clamped(to, integer(from, x)) as u64 & to.mask(),
        (false, false) => extended(from, x) & to.mask(),
        (false, true) => from_integer(to, integer(from, x), mode.rounding),
        (true, false) => to_integer(to, float(from, flushed(from, x, mode)), mode),
        (true, true) => {
            let x = flushed(from, x, mode);
            let mut value = float(from, x);
            if mode.to_integer {
                value = whole(value, mode.rounding);
            }
            let bits = match to == from && !mode.to_integer {
                true => x,
                false => float_bits(to, value, mode.rounding),
            };
            finished(to, bits, mode)
        }
    }
}

/// A number in a register that is wider: with its sign, if it has one.
#[inline]
pub(crate) fn extended(ty: Ty, bits: u64) -> u64 {
    let unused = 64 - ty.bits;
    match ty.is_signed() {
        true => ((bits << unused) as i64 >> unused) as u64,
        false => bits & ty.mask(),
    }
}

/// Two numbers as a pair.
pub(crate) fn convert_pair(to: Ty, mode: Mode, high: u64, low: u64) -> u64 {
    let half = halves(to).expect("the parser took pairs only");
    let from = Ty {
        kind: Kind::Float,
        bits: 32,
    };
    convert(half, from, mode, high) << 16 | convert(half, from, mode, low)
}

fn whole(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

fn bounds(ty: Ty) -> (i128, i128) {
    match ty.is_signed() {
        true => (-(1 << (ty.bits - 1)), (1 << (ty.bits - 1)) - 1),
        false => (0, (1 << ty.bits) - 1),
    }
}

fn clamped(ty: Ty, value: i128) -> i128 {
    let (least, most) = bounds(ty);
    value.clamp(least, most)
}

fn from_integer(to: Ty, value: i128, rounding: Rounding) -> u64 {
    let nearest = match to.bits {
        64 => (value as f64).to_bits(),
        32 => u64::from((value as f32).to_bits()),
        // Sixteen bits hold so little that a double in between changes nothing: it is odd or exact.
        _ => float_bits(to, odd(value), Rounding::Nearest),
    };
    let back = float(to, nearest);
    let (up, exact) = match rounding {
        Rounding::Nearest => return nearest,
        Rounding::Up => (true, back as i128),
        Rounding::Down => (false, back as i128),
        Rounding::Zero => (value < 0, back as i128),
    };
    match () {
        () if exact < value && up => next(to, nearest, true),
        () if exact > value && !up => next(to, nearest, false),
        () => nearest,
    }
}

/// The double beside an integer whose last bit says that something was lost.
fn odd(value: i128) -> f64 {
    let near = value as f64;
    match near as i128 == value || near.to_bits() & 1 == 1 {
        true => near,
        false if near as i128 > value => near.next_down(),
        false => near.next_up(),
    }
}

fn to_integer(to: Ty, value: f64, mode: Mode) -> u64 {
    // Numbers that do not fit are clamped; NaN is zero, and of 64 bits the highest bit alone.
    if value.is_nan() {
        return if to.bits == 64 { 1 << 63 } else { 0 };
    }
    let rounding = match mode.to_integer {
        true => mode.rounding,
        false => Rounding::Zero,
    };
    clamped(to, whole(value, rounding) as i128) as u64 & to.mask()
}

/// What an atomic operation leaves where `old` is.
pub(crate) fn atomic(op: crate::code::Atomic, ty: Ty, old: u64, x: u64, y: u64) -> Option<u64> {
    use crate::code::Atomic;
    let mode = Mode::PLAIN;
    Some(match op {
        Atomic::Add => binary(Binary::Add, ty, mode, old, x),
        Atomic::Min => binary(Binary::Min, ty, mode, old, x),
        Atomic::Max => binary(Binary::Max, ty, mode, old, x),
        Atomic::And => old & x,
        Atomic::Or => old | x,
        Atomic::Xor => old ^ x,
        Atomic::Exchange => x,
        Atomic::Swap => return (old == x).then_some(y),
        Atomic::Increment => {
            if old >= x {
                0
            } else {
                old + 1
            }
        }
        Atomic::Decrement => {
            if old == 0 || old > x {
                x
            } else {
                old - 1
            }
        }
    })
}

#[cfg(test)]
mod tests;
