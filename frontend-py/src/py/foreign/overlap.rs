//! Whether two arrays share memory, whatever their strides.
//!
//! An address of an array is `start + Σ stride * index`, with an index below the size of each axis, and one of its
//! bytes. Two arrays share one if `Σ step * n = distance` has a solution with each `n` between zero and its limit.
//! The search takes the largest step first and drops a branch that is out of reach or not divisible.

/// The bytes that the elements of an array take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// The lowest address.
    first: usize,
    /// Steps and how often each is taken at most; bytes of an element are steps of one.
    steps: Vec<(u128, u128)>,
    is_empty: bool,
}

/// How many steps may be spent on the search, which is hard for some arrays.
const MAX_WORK: u32 = 100_000;

impl Footprint {
    pub(crate) fn new(start: usize, itemsize: usize, shape: &[usize], strides: &[isize]) -> Self {
        let mut first = start;
        let mut steps = Vec::with_capacity(shape.len() + 1);
        for (&extent, &stride) in shape.iter().zip(strides) {
            let last = extent.saturating_sub(1);
            if stride < 0 {
                first = first.wrapping_sub(stride.unsigned_abs().wrapping_mul(last));
            }
            steps.push((stride.unsigned_abs() as u128, last as u128));
        }
        steps.push((1, itemsize.saturating_sub(1) as u128));
        Self {
            first,
            steps,
            is_empty: itemsize == 0 || shape.contains(&0),
        }
    }

    /// All bytes of a range.
    pub(crate) fn whole(range: std::ops::Range<usize>) -> Self {
        Self::new(range.start, range.len(), &[], &[])
    }

    /// The addresses from the first byte to the last.
    pub(crate) fn range(&self) -> std::ops::Range<usize> {
        let reach: u128 = self.steps.iter().map(|(step, n)| step * n).sum();
        let bytes = if self.is_empty { 0 } else { reach + 1 };
        self.first..self.first.saturating_add(bytes as usize)
    }

    /// Whether there is a byte of both; also where that is too hard to find out.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        if self.is_empty || other.is_empty {
            return false;
        }
        // The steps of the other one are taken backwards from its last byte.
        let reach: u128 = other.steps.iter().map(|(step, n)| step * n).sum();
        let distance = other.first as i128 + reach as i128 - self.first as i128;
        let Ok(distance) = u128::try_from(distance) else {
            return false;
        };
        let mut steps: Vec<(u128, u128)> = Vec::new();
        let mut all = [&self.steps[..], &other.steps].concat();
        all.sort_unstable_by_key(|&(step, _)| std::cmp::Reverse(step));
        for (step, n) in all {
            match steps.last_mut() {
                _ if step == 0 || n == 0 => {}
                Some((last, limit)) if *last == step => *limit += n,
                _ => steps.push((step, n)),
            }
        }
        let mut work = MAX_WORK;
        search(&steps, distance, &mut work).unwrap_or(true)
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether steps add up to a distance; nothing if that takes too long.
fn search(steps: &[(u128, u128)], distance: u128, work: &mut u32) -> Option<bool> {
    let Some((&(step, limit), smaller)) = steps.split_first() else {
        return Some(distance == 0);
    };
    let divisor = steps.iter().fold(0, |divisor, s| gcd(s.0, divisor));
    if !distance.is_multiple_of(divisor) {
        return Some(false);
    }
    let reach: u128 = smaller.iter().map(|(step, n)| step * n).sum();
    let least = distance.saturating_sub(reach).div_ceil(step);
    for n in least..=limit.min(distance / step) {
        *work = work.checked_sub(1)?;
        if search(smaller, distance - n * step, work)? {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(start: usize, itemsize: usize, shape: &[usize], strides: &[isize]) -> Footprint {
        Footprint::new(start, itemsize, shape, strides)
    }

    #[test]
    fn columns_and_rows() {
        let column = |k: usize| of(4 * k, 4, &[1000], &[12]);
        assert!(!column(0).meets(&column(1)));
        assert!(column(1).meets(&column(1)));
        let backwards = of(12 * 999, 4, &[1000], &[-12]);
        assert!(column(0).meets(&backwards) && !column(2).meets(&backwards));
        assert!(column(2).meets(&Footprint::whole(8..9)));
        assert!(!column(2).meets(&Footprint::whole(12..20)));
        assert!(!column(2).meets(&Footprint::whole(12..12)));
        // Elements that begin in the middle of others.
        assert!(column(0).meets(&of(2, 4, &[3], &[12])));
        assert!(!column(0).meets(&of(4, 8, &[3], &[12])));
    }

    #[test]
    fn every_pair_of_small_arrays() {
        let bytes = |start: usize, itemsize: usize, shape: [usize; 2], strides: [isize; 2]| {
            let mut all = std::collections::BTreeSet::new();
            for i in 0..shape[0] as isize {
                for j in 0..shape[1] as isize {
                    let at = start as isize + i * strides[0] + j * strides[1];
                    all.extend((0..itemsize as isize).map(|b| at + b));
                }
            }
            all
        };
        let mut state = 1u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 33) % n
        };
        for _ in 0..5000 {
            let mut one = || {
                let itemsize = 1 << next(3);
                let shape = [next(4) as usize, next(4) as usize];
                let strides = [next(25) as isize - 12, next(25) as isize - 12];
                (200 + next(30) as usize, itemsize, shape, strides)
            };
            let (a, b) = (one(), one());
            let shared = !bytes(a.0, a.1, a.2, a.3).is_disjoint(&bytes(b.0, b.1, b.2, b.3));
            let (x, y) = (of(a.0, a.1, &a.2, &a.3), of(b.0, b.1, &b.2, &b.3));
            assert_eq!(x.meets(&y), shared, "{a:?} {b:?}");
            assert_eq!(y.meets(&x), shared, "{a:?} {b:?}");
        }
    }
}
