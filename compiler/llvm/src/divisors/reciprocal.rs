//! Correctly rounded quotients by a constant, as two products.
//!
//! A reciprocal `1 / c` is stored as the sum of two floats of one sign, `high + low`. Then `fma(x, high, x * low)` is `x / c` but for
//! a relative error of at most `12 * 2^(-2p)` before its only rounding, where floats have `p` digits. It rounds as `x / c` does
//! unless that lies so close to the middle between two floats; for each constant only a few `x` do, which are found and tried.
//! After Brisebarre, Muller and Raina, "Accelerating correctly rounded floating-point division when the divisor is known in advance" (IEEE Transactions on Computers, 2004).
//!
//! As `high` and `low` have one sign, zeros, infinities and NaN need no care, and an overflow is one by the only rounding. Only
//! products `x * low` that are no normal numbers lose digits: hence the least magnitude.

use aerogel_base::ScalarType;

/// A divisor's reciprocal in two parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reciprocal {
    pub(super) high: f64,
    pub(super) low: f64,
    /// Quotients of smaller numbers, but zeros, are not correct.
    pub(super) least: f64,
}

/// The two formats, for what they differ in.
struct Format {
    digits: u32,
    /// The magnitudes of divisors, as exponents of two.
    divisors: i32,
    /// How much smaller than the divisor the smallest number may be.
    least: i32,
    rounded: fn(f64) -> f64,
    fma: fn(f64, f64, f64) -> f64,
    /// The float so many floats from a positive one.
    stepped: fn(f64, i64) -> f64,
}

const F32: Format = Format {
    digits: 24,
    divisors: 40,
    least: -70,
    rounded: |x| f64::from(x as f32),
    fma: |x, y, z| f64::from((x as f32).mul_add(y as f32, z as f32)),
    stepped: |x, n| {
        f64::from(f32::from_bits(
            (x as f32).to_bits().saturating_add_signed(n as i32),
        ))
    },
};
const F64: Format = Format {
    digits: 53,
    divisors: 100,
    least: -850,
    rounded: |x| x,
    fma: f64::mul_add,
    stepped: |x, n| f64::from_bits(x.to_bits().saturating_add_signed(n)),
};

/// The largest distance from a middle, in units of the equation below, at which rounding may go wrong.
const NEAR: i128 = 25;
/// Floats from the nearest one that are tried for the lower part of a reciprocal: for another, other `x` are rounded wrongly.
const TRIED: [i64; 5] = [0, 1, -1, 2, -2];

/// The reciprocal of a constant, if quotients by it are correct for all numbers from the least one on.
pub(super) fn reciprocal(ty: ScalarType, divisor: f64) -> Option<Reciprocal> {
    let format = match ty {
        ScalarType::F32 => F32,
        ScalarType::F64 => F64,
        _ => return None,
    };
    let fraction_bits = (1u64 << 52) - 1;
    let exponent = ((divisor.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let is_power_of_two = divisor.to_bits() & fraction_bits == 0;
    if !divisor.is_normal() || is_power_of_two || exponent.abs() > format.divisors {
        return None;
    }
    // Of a divisor from 1 to 2: the rest is a power of two, which changes no digit.
    let mantissa = f64::from_bits(divisor.to_bits() & fraction_bits | 1f64.to_bits());
    let [high, nearest] = parts(&format, mantissa);
    let hard = hard(&format, mantissa);
    let is_correct = |low: f64| {
        hard.iter().all(|&x| {
            let quotient = (format.fma)(x, high, (format.rounded)(x * low));
            quotient == (format.rounded)(x / mantissa)
        })
    };
    let tried = TRIED.map(|n| (format.stepped)(nearest, n));
    let low = tried
        .into_iter()
        .find(|&low| low > 0.0 && is_correct(low))?;
    let scale = f64::powi(2.0, -exponent).copysign(divisor);
    Some(Reciprocal {
        high: high * scale,
        low: low * scale,
        least: divisor.abs() * f64::powi(2.0, format.least),
    })
}

/// The reciprocal of a number from 1 to 2, as the float below it and what is left.
fn parts(format: &Format, divisor: f64) -> [f64; 2] {
    let nearest = (format.rounded)(1.0 / divisor);
    let left = |high: f64| high.mul_add(-divisor, 1.0);
    let high = match left(nearest) < 0.0 {
        // Floats from 1/2 to 1 are this far apart.
        true => nearest - f64::powi(2.0, -(format.digits as i32)),
        false => nearest,
    };
    [high, (format.rounded)(left(high) / divisor)]
}

/// The numbers from 1 to 2 whose quotients by a number from 1 to 2 lie closest to the middle between two floats.
///
/// With the digits as integers, `x` and `c` of `p` digits and `m` odd of `p + 1`, `x / c` is that close to a middle if
/// `x * 2^s - m * c = j` for a small `j`, where `s` is `p`, or `p + 1` for `x < c`: each `j` says what `m` is modulo a power of two.
fn hard(format: &Format, divisor: f64) -> Vec<f64> {
    let digits = format.digits;
    let unit = f64::powi(2.0, digits as i32 - 1);
    let c = (divisor * unit) as i128;
    let zeros = c.trailing_zeros();
    let odd = c >> zeros;
    let inverse = (0..7).fold(1i128, |inverse, _| {
        inverse.wrapping_mul(2i128.wrapping_sub(odd.wrapping_mul(inverse)))
    });
    let mut found = Vec::new();
    for shift in [digits, digits + 1] {
        let period = 1i128 << (shift - zeros);
        for j in (-NEAR..=NEAR).filter(|j| *j != 0 && j.trailing_zeros() >= zeros) {
            let mut m = (-(j >> zeros)).wrapping_mul(inverse) & (period - 1);
            m += ((1i128 << digits) - m).max(0) / period * period;
            while m < 1i128 << (digits + 1) {
                let x = (m * c + j) >> shift;
                if m & 1 == 1 && m >> digits == 1 && x >> (digits - 1) == 1 {
                    found.push(x as f64 / unit);
                }
                m += period;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIVISORS: [f64; 14] = [
        3.0,
        6.0,
        -7.0,
        0.6,
        0.02,
        18.0,
        1.1,
        9.81,
        1e-6,
        0.3,
        1.999_999_880_790_710_4,
        1.000_000_119_209_289_6,
        -1e3,
        12.0,
    ];

    #[test]
    fn every_f32_is_divided_correctly() {
        let mut n_found = 0;
        for divisor in DIVISORS.map(|d| d as f32) {
            let Some(found) = reciprocal(ScalarType::F32, f64::from(divisor)) else {
                continue;
            };
            n_found += 1;
            let (high, low) = (found.high as f32, found.low as f32);
            for digits in 0..1 << 23 {
                let x = f32::from_bits(1f32.to_bits() | digits);
                let quotient = x.mul_add(high, x * low);
                assert_eq!(
                    quotient.to_bits(),
                    (x / divisor).to_bits(),
                    "{x} / {divisor}"
                );
            }
        }
        assert!(n_found >= 10, "{n_found} of {}", DIVISORS.len());
    }

    #[test]
    fn most_constants_have_a_reciprocal() {
        let mut seed = 1u64;
        let mut random = || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            f64::from_bits(1f64.to_bits() | seed >> 12)
        };
        for ty in [ScalarType::F32, ScalarType::F64] {
            let rounded = |x: f64| {
                if ty == ScalarType::F32 {
                    f64::from(x as f32)
                } else {
                    x
                }
            };
            let found = (0..1000)
                .filter(|_| reciprocal(ty, rounded(random())).is_some())
                .count();
            assert!(found > 900, "{ty}: {found} of 1000");
        }
    }

    #[test]
    fn ends_of_the_exponents() {
        for divisor in DIVISORS.map(|d| d as f32) {
            let Some(found) = reciprocal(ScalarType::F32, f64::from(divisor)) else {
                continue;
            };
            let (high, low) = (found.high as f32, found.low as f32);
            let mut seed = 1u32;
            let mut xs = vec![
                0.0,
                -0.0,
                f32::INFINITY,
                -f32::INFINITY,
                f32::NAN,
                f32::MAX,
                f32::MIN,
            ];
            xs.extend((0..100_000).map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f32::from_bits(seed)
            }));
            for x in xs {
                let quotient = x.mul_add(high, x * low);
                let is_divided = x != 0.0 && x.abs() < found.least as f32;
                let right = x / divisor;
                let is_right =
                    quotient.to_bits() == right.to_bits() || right.is_nan() && quotient.is_nan();
                assert!(
                    is_right || is_divided,
                    "{x:e} / {divisor}: {quotient:e}, not {right:e}"
                );
            }
        }
    }

    #[test]
    fn f64s_are_divided_correctly() {
        let mut seed = 1u64;
        let mut random = || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            f64::from_bits(1f64.to_bits() | seed >> 12)
        };
        let mut n_found = 0;
        let divisors: Vec<f64> = DIVISORS
            .into_iter()
            .chain((0..2000).map(|_| random()))
            .collect();
        for divisor in divisors {
            let Some(found) = reciprocal(ScalarType::F64, divisor) else {
                continue;
            };
            n_found += 1;
            let near = hard(
                &F64,
                divisor.abs() / f64::powi(2.0, divisor.abs().log2().floor() as i32),
            );
            for x in (0..500)
                .map(|_| random())
                .collect::<Vec<_>>()
                .into_iter()
                .chain(near)
            {
                let quotient = x.mul_add(found.high, x * found.low);
                assert_eq!(quotient, x / divisor, "{x} / {divisor}");
            }
        }
        assert!(n_found > 1500, "{n_found}");
    }

    #[test]
    fn hard_numbers_are_the_closest_to_a_middle() {
        // By search among all quotients by a constant: none that is as close is missing.
        let (divisor, digits) = (1.7f32, 24);
        let c = i128::from(divisor.to_bits() & 0x7f_ffff | 0x80_0000);
        let mut near: Vec<i128> = Vec::new();
        for x in 1i128 << 23..1 << 24 {
            for shift in [digits, digits + 1] {
                let m = (x << shift) / c;
                for m in [m, m + 1] {
                    let in_range = m >> digits == 1 && m & 1 == 1;
                    if in_range && ((x << shift) - m * c).abs() <= NEAR {
                        near.push(x);
                    }
                }
            }
        }
        let unit = f64::from(1 << 23);
        let mut found: Vec<i128> = hard(&F32, f64::from(divisor))
            .iter()
            .map(|x| (x * unit) as i128)
            .collect();
        found.sort_unstable();
        near.sort_unstable();
        assert!(!near.is_empty());
        assert_eq!(found, near);
    }

    #[test]
    fn what_is_no_constant_of_this_kind() {
        for divisor in [
            0.0,
            -0.0,
            1.0,
            -4.0,
            0.125,
            1e-300,
            1e300,
            f64::INFINITY,
            f64::NAN,
        ] {
            assert!(reciprocal(ScalarType::F64, divisor).is_none(), "{divisor}");
            assert!(reciprocal(ScalarType::F32, divisor).is_none(), "{divisor}");
        }
        assert!(reciprocal(ScalarType::F16, 3.0).is_none());
    }
}
