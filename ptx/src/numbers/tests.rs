use super::*;

const fn ty(kind: Kind, bits: u32) -> Ty {
    Ty { kind, bits }
}

const MODE: Mode = Mode::PLAIN;

/// What integers of all types do, by arithmetic that has room for everything.
#[test]
fn integers_are_those_of_mathematics() {
    let of = |ty: Ty, bits: u64| match bits & ty.mask() {
        bits if ty.is_signed() && bits >> (ty.bits - 1) == 1 => i128::from(bits) - (1 << ty.bits),
        bits => i128::from(bits),
    };
    let edges = [
        0,
        1,
        2,
        3,
        7,
        15,
        16,
        17,
        31,
        32,
        33,
        63,
        64,
        65,
        255,
        1 << 31,
        1 << 63,
    ];
    let edges = edges.map(|e: u64| [e, e.wrapping_neg(), e.wrapping_sub(1), !e]);
    for kind in [Kind::Signed, Kind::Unsigned] {
        for ty in [16, 32, 64].map(|bits| ty(kind, bits)) {
            for (&x, &y) in edges
                .iter()
                .flatten()
                .flat_map(|x| edges.iter().flatten().map(move |y| (x, y)))
            {
                let (a, b) = (of(ty, x), of(ty, y));
                let by = (y as u32).min(127);
                let cases = [
                    (Binary::Add, a + b),
                    (Binary::Sub, a - b),
                    (Binary::Mul, a.wrapping_mul(b)),
                    (Binary::Div, a.checked_div(b).unwrap_or(-1)),
                    (Binary::Rem, a.checked_rem(b).unwrap_or(a)),
                    (Binary::Min, a.min(b)),
                    (Binary::Max, a.max(b)),
                    (Binary::ShiftLeft, a.checked_shl(by).unwrap_or(0)),
                    (Binary::ShiftRight, a >> by),
                ];
                for (op, want) in cases {
                    let got = binary(op, ty, MODE, x, y);
                    assert_eq!(got, want as u64 & ty.mask(), "{op:?} {ty:?} {x:#x} {y:#x}");
                }
                if ty.bits < 64 {
                    let high = binary(Binary::MulHigh, ty, MODE, x, y);
                    assert_eq!(
                        high,
                        ((a * b) >> ty.bits) as u64 & ty.mask(),
                        "{ty:?} {x:#x} {y:#x}"
                    );
                }
                let orders = [
                    (Compare::Less, a < b),
                    (Compare::LessEqual, a <= b),
                    (Compare::Greater, a > b),
                    (Compare::GreaterEqual, a >= b),
                    (Compare::Equal, a == b),
                ];
                for (op, want) in orders {
                    assert_eq!(
                        compare(op, ty, false, x, y),
                        want,
                        "{op:?} {ty:?} {x:#x} {y:#x}"
                    );
                }
            }
        }
    }
}

#[test]
fn integers_wrap_and_have_signs() {
    let (s32, u32, s64) = (
        ty(Kind::Signed, 32),
        ty(Kind::Unsigned, 32),
        ty(Kind::Signed, 64),
    );
    let minus = |n: i64| n as u64 & 0xffff_ffff;
    assert_eq!(binary(Binary::Add, s32, MODE, 0x7fff_ffff, 1), 0x8000_0000);
    assert_eq!(binary(Binary::Div, s32, MODE, minus(-7), 2), minus(-3));
    assert_eq!(binary(Binary::Rem, s32, MODE, minus(-7), 2), minus(-1));
    assert_eq!(
        binary(Binary::MulHigh, u32, MODE, 0xffff_ffff, 0xffff_ffff),
        0xffff_fffe
    );
    assert_eq!(
        binary(Binary::MulWide, s32, MODE, minus(-1), 5),
        (-5_i64) as u64
    );
    assert_eq!(
        binary(
            Binary::MulHigh,
            ty(Kind::Unsigned, 64),
            MODE,
            u64::MAX,
            u64::MAX
        ),
        u64::MAX - 1
    );
    assert_eq!(
        binary(Binary::ShiftRight, s64, MODE, (-8_i64) as u64, 1),
        (-4_i64) as u64
    );
    assert_eq!(binary(Binary::ShiftLeft, u32, MODE, 1, 40), 0);
    assert_eq!(unary(Unary::CountZeros, u32, MODE, 1), 31);
    assert_eq!(
        unary(Unary::FindHighest(false), s32, MODE, minus(-1)),
        0xffff_ffff
    );
    assert_eq!(field(s32, 0xf0, 4, 4), minus(-1));
    assert_eq!(insert(u32, 0xf, 0, 8, 4), 0xf00);
    assert_eq!(
        ternary(
            Ternary::Permute,
            u32,
            MODE,
            [0x4433_2211, 0x8877_6655, 0x0123]
        ),
        0x1122_3344
    );
    assert_eq!(ternary(Ternary::Lookup(0x96), u32, MODE, [1, 3, 4]), 6);
    assert_eq!(
        ternary(Ternary::FunnelLeft(false), u32, MODE, [0x8000_0000, 1, 1]),
        3
    );
}

#[test]
fn directions_of_rounding() {
    let f32 = ty(Kind::Float, 32);
    let f64 = ty(Kind::Float, 64);
    let with = |rounding| Mode { rounding, ..MODE };
    let third = |rounding| {
        let one = u64::from(1_f32.to_bits());
        f32::from_bits(binary(
            Binary::Div,
            f32,
            with(rounding),
            one,
            u64::from(3_f32.to_bits()),
        ) as u32)
    };
    assert!(third(Rounding::Down) < third(Rounding::Up));
    assert_eq!(third(Rounding::Down).next_up(), third(Rounding::Up));
    let tiny = 1e-30_f64.to_bits();
    let above = binary(Binary::Add, f64, with(Rounding::Up), 1_f64.to_bits(), tiny);
    assert_eq!(f64::from_bits(above), 1_f64.next_up());
    let single = binary(
        Binary::Add,
        f32,
        with(Rounding::Down),
        u64::from(1_f32.to_bits()),
        u64::from((-1e-30_f32).to_bits()),
    );
    assert_eq!(f32::from_bits(single as u32), 1_f32.next_down());
    assert_eq!(
        convert(f32, ty(Kind::Signed, 32), with(Rounding::Zero), 16_777_217),
        u64::from(16_777_216_f32.to_bits())
    );
    assert_eq!(
        convert(f32, ty(Kind::Signed, 32), with(Rounding::Up), 16_777_217),
        u64::from(16_777_218_f32.to_bits())
    );
}

#[test]
fn conversions_clamp() {
    let (s8, u8, s32) = (
        ty(Kind::Signed, 8),
        ty(Kind::Unsigned, 8),
        ty(Kind::Signed, 32),
    );
    let f32 = ty(Kind::Float, 32);
    let of = |v: f32| u64::from(v.to_bits());
    let zero = Mode {
        rounding: Rounding::Zero,
        to_integer: true,
        ..MODE
    };
    assert_eq!(convert(s32, f32, zero, of(1e20)), 0x7fff_ffff);
    assert_eq!(convert(s32, f32, zero, of(f32::NAN)), 0);
    assert_eq!(convert(u8, f32, zero, of(-1.5)), 0);
    let saturated = Mode {
        saturate: true,
        ..MODE
    };
    assert_eq!(convert(s8, s32, saturated, 300), 127);
    assert_eq!(convert(s8, s32, MODE, 300), 44);
    let nearest = Mode {
        to_integer: true,
        ..MODE
    };
    assert_eq!(convert(f32, f32, nearest, of(2.5)), of(2.0));
    assert_eq!(convert(f32, f32, saturated, of(-3.0)), of(0.0));
}

#[test]
fn extrema_and_comparisons_of_nan() {
    let f32 = ty(Kind::Float, 32);
    let of = |v: f32| u64::from(v.to_bits());
    assert_eq!(
        binary(Binary::Min, f32, MODE, of(f32::NAN), of(1.0)),
        of(1.0)
    );
    assert_eq!(
        binary(Binary::MinNan, f32, MODE, of(f32::NAN), of(1.0)),
        0x7fff_ffff
    );
    assert_eq!(binary(Binary::Min, f32, MODE, of(0.0), of(-0.0)), of(-0.0));
    assert_eq!(binary(Binary::Max, f32, MODE, of(-0.0), of(0.0)), of(0.0));
    assert!(!compare(
        Compare::NotEqual,
        f32,
        false,
        of(f32::NAN),
        of(1.0)
    ));
    assert!(compare(
        Compare::Unordered(Ordered::NotEqual),
        f32,
        false,
        of(f32::NAN),
        of(1.0)
    ));
}

#[test]
fn pairs_are_compared_half_by_half() {
    let two = |a: f32, b: f32| {
        u64::from(f16::from_f32(a).to_bits()) | u64::from(f16::from_f32(b).to_bits()) << 16
    };
    let below = |ty: Ty, x: u64, y: u64| compare_twice(Compare::Less, ty, false, x, y);
    let pair = ty(Kind::FloatPair, 32);
    assert_eq!(below(pair, two(1.0, 3.0), two(2.0, 2.0)), (true, false));
    assert_eq!(below(pair, two(1.0, -3.0), two(2.0, 2.0)), (true, true));
    assert_eq!(
        below(pair, two(f32::NAN, 1.0), two(2.0, 2.0)),
        (false, true)
    );
    // A single comparison has an opposite.
    let single = ty(Kind::Float, 16);
    assert_eq!(below(single, two(1.0, 0.0), two(2.0, 0.0)), (true, false));
}

#[test]
fn halves_in_pairs() {
    let pair = ty(Kind::FloatPair, 32);
    let two = |a: f32, b: f32| {
        u64::from(f16::from_f32(a).to_bits()) | u64::from(f16::from_f32(b).to_bits()) << 16
    };
    assert_eq!(
        binary(Binary::Mul, pair, MODE, two(1.5, -2.0), two(2.0, 4.0)),
        two(3.0, -8.0)
    );
    let fused = ternary(
        Ternary::Fused,
        pair,
        MODE,
        [two(1.5, 2.0), two(2.0, 3.0), two(0.25, 1.0)],
    );
    assert_eq!(fused, two(3.25, 7.0));
    assert_eq!(
        convert_pair(
            pair,
            MODE,
            u64::from(2_f32.to_bits()),
            u64::from(1_f32.to_bits())
        ),
        two(1.0, 2.0)
    );
}
