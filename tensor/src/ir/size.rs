//! Size classes of axes: passes decide by the class of a size, so all sizes of a class are compiled alike.

/// The range in which a size lies. Passes that depend on the size of an axis use this range even if the size is known. So a
/// program that is compiled for all sizes of a class does the same arithmetic in the same order as one that is compiled for
/// a constant size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    /// It is no shorter.
    pub least: u64,
    /// The number that stands for all.
    pub about: u64,
    /// It is no longer.
    pub most: u64,
}

/// Each size up to this one is a class of its own: along axes as short as this, constant indices name components, which the
/// pass `components` splits.
pub(crate) const LONGEST_SHORT: u64 = 4;

impl Size {
    /// The class of a size. After the short ones, classes end at the odd powers of two: 8, 32, 128, 512, and so on.
    pub fn of(n: u64) -> Self {
        if n <= LONGEST_SHORT {
            return Self {
                least: n,
                about: n,
                most: n,
            };
        }
        let middle = (n - 1).ilog2().div_ceil(2);
        let most = 2 << (2 * middle);
        match middle {
            // So short that the middle would be below all of them.
            1 => Self {
                least: LONGEST_SHORT + 1,
                about: most,
                most,
            },
            _ => Self {
                least: most / 4 + 1,
                about: most / 2,
                most,
            },
        }
    }

    /// The class of the number of points along two axes together.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_mul(other.least),
            about: self.about.saturating_mul(other.about),
            most: self.most.saturating_mul(other.most),
        }
    }
}

/// Whether code over much data is compiled for exactly this size. Networks and grids have such sizes, and there are few of
/// them: about fifty below a thousand, so that arrays of every length need few programs.
pub(crate) fn is_round(n: u64) -> bool {
    /// Loops as short as this are unrolled.
    const SHORT: u64 = 16;
    /// Numbers of at most three significant bits.
    const ODD: u64 = 7;
    if n <= SHORT {
        return true;
    }
    let one_digit = 10_u64.pow(n.ilog10());
    n >> n.trailing_zeros() <= ODD || n.is_multiple_of(one_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sizes_are_round() {
        let round = [1, 9, 16, 20, 28, 32, 56, 96, 128, 200, 224, 768, 1000, 4096];
        assert!(round.into_iter().all(is_round));
        assert!(
            ![17, 25, 100 + 1, 1 << 20 | 1, 999]
                .into_iter()
                .any(is_round)
        );
        assert_eq!((1..1000).filter(|&n| is_round(n)).count(), 53);
    }

    #[test]
    fn each_extent_is_in_one_class() {
        for n in 0..5000 {
            let size = Size::of(n);
            assert!((size.least..=size.most).contains(&n), "{n}: {size:?}");
            assert!((size.least..=size.most).contains(&size.about), "{n}");
            assert!(Size::of(size.least) == size && Size::of(size.most) == size);
        }
        let most = i32::MAX as u64;
        assert_eq!(Size::of(most).most, most + 1);
        assert_eq!(
            [5, 9, 512, 513].map(|n| Size::of(n).about),
            [8, 16, 256, 1024]
        );
    }
}
