//! Intervals of integers, with ends that are numbers or that a launch makes known.
//!
//! `[0, 9] + [1, 2]` is `[1, 11]`, and `[0, n - 1] * -2` is `[-2 n + 2, 0]`. What an operation makes of numbers of two
//! intervals lies in the interval that [`Interval::binary`] makes of these, unless it wraps.

use aerogel_base::ScalarType;

use crate::BinaryOp;

/// An end of an interval.
pub trait End: Clone + PartialEq {
    /// A number; none if it does not fit.
    fn number(value: i128) -> Option<Self>;

    /// The number, if it is known already.
    fn known(&self) -> Option<i128>;

    /// The result of an operation on two bounds; none if it is not known to fit.
    fn binary(op: BinaryOp, a: &Self, b: &Self) -> Option<Self>;
}

impl End for i128 {
    fn number(value: i128) -> Option<Self> {
        Some(value)
    }

    fn known(&self) -> Option<i128> {
        Some(*self)
    }

    fn binary(op: BinaryOp, a: &Self, b: &Self) -> Option<Self> {
        combine(op, *a, *b)
    }
}

/// Arithmetic of ends: that of the language, except that nothing wraps.
pub(super) fn combine(op: BinaryOp, a: i128, b: i128) -> Option<i128> {
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
        BinaryOp::FloorDiv | BinaryOp::Mod | BinaryOp::Div | BinaryOp::Rem if b == 0 => Some(0),
        BinaryOp::Div => a.checked_div(b),
        BinaryOp::Rem => a.checked_rem(b),
        BinaryOp::FloorDiv | BinaryOp::Mod => {
            let rest = a.checked_rem(b)?;
            let below = rest != 0 && (rest < 0) != (b < 0);
            match op {
                BinaryOp::Mod => Some(if below { rest + b } else { rest }),
                _ => Some(a.checked_div(b)? - i128::from(below)),
            }
        }
        _ => None,
    }
}

/// The numbers from `lo` to `hi`, both of them included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval<T = i128> {
    /// The least.
    pub lo: T,
    /// The greatest.
    pub hi: T,
}

impl<T: End> Interval<T> {
    /// One number.
    pub fn point(at: T) -> Self {
        Self {
            lo: at.clone(),
            hi: at,
        }
    }

    /// Whether it is one number.
    pub fn is_point(&self) -> bool {
        self.lo == self.hi
    }

    /// The least interval with all numbers of both.
    pub fn joined(&self, other: &Self) -> Option<Self> {
        Some(Self {
            lo: T::binary(BinaryOp::Min, &self.lo, &other.lo)?,
            hi: T::binary(BinaryOp::Max, &self.hi, &other.hi)?,
        })
    }

    /// The interval of an operation on numbers of two intervals; none if it is unknown.
    pub fn binary(op: BinaryOp, a: &Self, b: &Self) -> Option<Self> {
        use BinaryOp::{Add, Div, FloorDiv, Max, Min, Mod, Mul, Rem, Sub};
        let exact = matches!(op, Add | Sub | Mul | Div | Rem | FloorDiv | Mod | Min | Max);
        if exact && a.is_point() && b.is_point() {
            return Some(Self::point(T::binary(op, &a.lo, &b.lo)?));
        }
        let ends = |lo, hi| {
            Some(Self {
                lo: T::binary(op, &a.lo, lo)?,
                hi: T::binary(op, &a.hi, hi)?,
            })
        };
        let constant = b.lo.known().filter(|_| b.is_point());
        match (op, constant) {
            (Add | Min | Max, _) => ends(&b.lo, &b.hi),
            (Sub, _) => ends(&b.hi, &b.lo),
            (Mul, Some(factor)) => {
                let scaled = ends(&b.lo, &b.lo)?;
                Some(if factor < 0 {
                    scaled.reversed()
                } else {
                    scaled
                })
            }
            (Mul, None) if a.is_point() && a.lo.known().is_some() => Self::binary(op, b, a),
            (FloorDiv | Div, Some(1..)) => ends(&b.lo, &b.lo),
            (Mod, Some(divisor @ 1..)) => Self::below(divisor),
            _ => None,
        }
    }

    /// The numbers from 0 that are below another one.
    pub fn below(end: i128) -> Option<Self> {
        Some(Self {
            lo: T::number(0)?,
            hi: T::number(end - 1)?,
        })
    }

    fn reversed(self) -> Self {
        Self {
            lo: self.hi,
            hi: self.lo,
        }
    }
}

impl Interval {
    /// Every number there is.
    pub const ALL: Self = Self {
        lo: i128::MIN,
        hi: i128::MAX,
    };

    /// All numbers of an integer type.
    pub fn of_type(ty: ScalarType) -> Self {
        let n = 1_i128 << ty.bits();
        let lo = if ty.is_signed() { -n / 2 } else { 0 };
        Self { lo, hi: lo + n - 1 }
    }

    /// Whether another one has all numbers of this one.
    pub fn is_within(&self, other: &Self) -> bool {
        other.lo <= self.lo && self.hi <= other.hi
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::BinaryOp::{Add, Div, FloorDiv, Max, Min, Mod, Mul, Rem, Sub};

    fn interval(lo: i128, hi: i128) -> Interval {
        Interval { lo, hi }
    }

    #[test]
    fn ends_of_operations() {
        let (a, b) = (interval(-3, 9), interval(1, 2));
        let of = |op, b| Interval::binary(op, &a, &b);
        assert_eq!(of(Add, b), Some(interval(-2, 11)));
        assert_eq!(of(Sub, b), Some(interval(-5, 8)));
        assert_eq!(of(Mul, Interval::point(-2)), Some(interval(-18, 6)));
        assert_eq!(of(FloorDiv, Interval::point(2)), Some(interval(-2, 4)));
        assert_eq!(of(Div, Interval::point(2)), Some(interval(-1, 4)));
        assert_eq!(of(Mod, Interval::point(5)), Some(interval(0, 4)));
        assert_eq!(of(Min, b), Some(interval(-3, 2)));
        assert_eq!(of(Max, b), Some(interval(1, 9)));
        assert_eq!(of(Mul, b), None);
        assert_eq!(of(FloorDiv, Interval::point(0)), None);
        assert_eq!(a.joined(&interval(20, 30)), Some(interval(-3, 30)));
        let greatest = Interval::point(i128::MAX);
        assert_eq!(Interval::binary(Add, &greatest, &b), None);
    }

    #[test]
    fn numbers_of_types() {
        assert_eq!(Interval::of_type(ScalarType::U8), interval(0, 255));
        assert_eq!(
            Interval::of_type(ScalarType::I32),
            interval(i32::MIN.into(), i32::MAX.into())
        );
        let all = Interval::of_type(ScalarType::I64);
        assert_eq!(all, interval(i64::MIN.into(), i64::MAX.into()));
        assert!(all.is_within(&Interval::ALL) && !Interval::ALL.is_within(&all));
    }

    /// An interval, and a number of it.
    fn some() -> impl Strategy<Value = (Interval, i128)> {
        (-20_i128..20, 0_i128..6)
            .prop_flat_map(|(lo, more)| (Just(interval(lo, lo + more)), lo..=lo + more))
    }

    proptest! {
        #[test]
        fn operations_stay_inside(
            (a, x) in some(),
            (b, y) in some(),
            op in prop::sample::select(vec![Add, Sub, Mul, Div, FloorDiv, Mod, Rem, Min, Max]),
        ) {
            let made = combine(op, x, y).expect("nothing is too large");
            if let Some(all) = Interval::binary(op, &a, &b) {
                prop_assert!(Interval::point(made).is_within(&all), "{op} {x} {y}: {made} not in {all:?}");
            }
            let both = a.joined(&b).expect("they are numbers");
            prop_assert!(a.is_within(&both) && b.is_within(&both));
        }
    }
}
