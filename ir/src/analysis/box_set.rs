//! Sets of boxes of indices: which elements of a field or an array have been read, or saved.
//!
//! Boxes that are a box together become one, so that the slices of a field that steps read one after the other are one box:
//!
//! ```text
//! add [0, 1) x [0, 9)      [0, 1) x [0, 9)
//! add [1, 2) x [0, 9)      [0, 2) x [0, 9)
//! remove [0, 1) x [3, 4)   [0, 1) x [0, 3)   [0, 1) x [4, 9)   [1, 2) x [0, 9)
//! ```

use std::collections::BTreeSet;

/// Indices along each axis: the first, and the one after the last. Offsets of fields are no part of them.
pub type IndexBox = Vec<(u64, u64)>;

/// Whether one box lies in another of the same memory.
pub fn holds(outer: &[(u64, u64)], inner: &[(u64, u64)]) -> bool {
    let mut axes = outer.iter().zip(inner);
    outer.len() == inner.len()
        && axes.all(|(outer, inner)| outer.0 <= inner.0 && inner.1 <= outer.1)
}

/// The intersection of two boxes.
pub fn intersection(a: &[(u64, u64)], b: &[(u64, u64)]) -> Option<IndexBox> {
    let axes = a.iter().zip(b).map(|(a, b)| (a.0.max(b.0), a.1.min(b.1)));
    let common: IndexBox = axes.collect();
    common.iter().all(|(lo, hi)| lo < hi).then_some(common)
}

/// The two boxes as one, if they are a box together.
fn union(a: &[(u64, u64)], b: &[(u64, u64)]) -> Option<IndexBox> {
    if holds(a, b) {
        return Some(a.to_vec());
    }
    if holds(b, a) {
        return Some(b.to_vec());
    }
    let mut differ = (0..a.len()).filter(|&k| a[k] != b[k]);
    let (Some(k), None) = (differ.next(), differ.next()) else {
        return None;
    };
    let touch = a[k].0 <= b[k].1 && b[k].0 <= a[k].1;
    touch.then(|| {
        let mut both = a.to_vec();
        both[k] = (a[k].0.min(b[k].0), a[k].1.max(b[k].1));
        both
    })
}

/// A set of boxes of one memory.
///
/// They are sorted by their size along one axis, as a power of two, and by where they begin on it: boxes that overlap
/// another one are found without a look at all others.
#[derive(Clone, Debug, Default)]
pub struct BoxSet {
    axis: usize,
    sorted: BTreeSet<(u32, u64, IndexBox)>,
}

impl BoxSet {
    /// The boxes.
    pub fn iter(&self) -> impl Iterator<Item = &IndexBox> {
        self.sorted.iter().map(|(_, _, ranges)| ranges)
    }

    /// Adds a box; whether none of the boxes holds it.
    pub fn add(&mut self, new: &[(u64, u64)]) -> bool {
        if self.near(new).iter().any(|old| holds(old, new)) {
            return false;
        }
        let mut new = new.to_vec();
        // A larger box may close a gap to another one.
        while let Some((old, both)) = self.near(&new).into_iter().find_map(|old| {
            let both = union(old, &new)?;
            Some((old.clone(), both))
        }) {
            self.sorted.remove(&self.entry(old));
            new = both;
        }
        if let (1, Some((_, _, other))) = (self.sorted.len(), self.sorted.first()) {
            let is_apart = |k: &usize| other[*k].1 < new[*k].0 || new[*k].1 < other[*k].0;
            self.axis = (0..new.len()).find(is_apart).unwrap_or(0);
            let other = other.clone();
            self.sorted = BTreeSet::from([self.entry(other)]);
        }
        let entry = self.entry(new);
        self.sorted.insert(entry);
        true
    }

    /// Takes the elements of a box away.
    pub fn remove(&mut self, gone: &[(u64, u64)]) {
        let overlapping = |old: &&IndexBox| intersection(old, gone).is_some();
        let near = self.near(gone).into_iter();
        let cut: Vec<IndexBox> = near.filter(overlapping).cloned().collect();
        for mut old in cut {
            self.sorted.remove(&self.entry(old.clone()));
            // What lies before and behind along an axis; along the later ones only what lies beside it there.
            for (k, &(lo, hi)) in gone.iter().enumerate() {
                let (first, end) = old[k];
                for (from, to) in [(first, lo), (hi, end)] {
                    if from < to {
                        let mut rest = old.clone();
                        rest[k] = (from, to);
                        let entry = self.entry(rest);
                        self.sorted.insert(entry);
                    }
                }
                old[k] = (first.max(lo), end.min(hi));
            }
        }
    }

    /// Keeps those boxes of which `wanted` is true.
    pub fn retain(&mut self, wanted: impl Fn(&IndexBox) -> bool) {
        self.sorted.retain(|(_, _, ranges)| wanted(ranges));
    }

    /// The intersections of the boxes with another one.
    pub fn common(&self, with: &[(u64, u64)]) -> Vec<IndexBox> {
        let near = self.near(with).into_iter();
        near.filter_map(|old| intersection(old, with)).collect()
    }

    /// The boxes that overlap another one or touch it along the axis that they are sorted by.
    fn near(&self, ranges: &[(u64, u64)]) -> Vec<&IndexBox> {
        let (lo, hi) = self.along(ranges);
        let mut found = Vec::new();
        let mut size = 0;
        // An empty box stands before all others of its size and beginning.
        while let Some(&(next, ..)) = self.sorted.range((size, 0, Vec::new())..).next() {
            let longest = 1u64.checked_shl(next).unwrap_or(u64::MAX);
            let from = (next, lo.saturating_sub(longest), Vec::new());
            let behind = (next, hi.saturating_add(1), Vec::new());
            let all = self.sorted.range(from..behind).map(|(_, _, ranges)| ranges);
            found.extend(all.filter(|ranges| self.along(ranges).1 >= lo));
            size = next + 1;
        }
        found
    }

    fn along(&self, ranges: &[(u64, u64)]) -> (u64, u64) {
        ranges.get(self.axis).copied().unwrap_or((0, 1))
    }

    fn entry(&self, ranges: IndexBox) -> (u32, u64, IndexBox) {
        let (lo, hi) = self.along(&ranges);
        (u64::BITS - (hi - lo).leading_zeros(), lo, ranges)
    }
}

impl IntoIterator for BoxSet {
    type Item = IndexBox;
    type IntoIter = std::vec::IntoIter<IndexBox>;

    fn into_iter(self) -> Self::IntoIter {
        let boxes = self.sorted.into_iter().map(|(_, _, ranges)| ranges);
        boxes.collect::<Vec<_>>().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::random_step;

    fn boxes(set: &BoxSet) -> Vec<IndexBox> {
        let mut all: Vec<IndexBox> = set.iter().cloned().collect();
        all.sort();
        all
    }

    #[test]
    fn slices_join() {
        let mut set = BoxSet::default();
        for t in [0, 2, 4, 1, 3] {
            assert!(set.add(&[(t, t + 1), (0, 9)]));
        }
        assert!(!set.add(&[(1, 3), (4, 5)]));
        assert_eq!(boxes(&set), [vec![(0, 5), (0, 9)]]);
    }

    #[test]
    fn what_is_cut_out_leaves_the_rest() {
        let mut set = BoxSet::default();
        set.add(&[(0, 9), (0, 9)]);
        set.remove(&[(3, 4), (5, 12)]);
        let rest = [
            vec![(0, 3), (0, 9)],
            vec![(3, 4), (0, 5)],
            vec![(4, 9), (0, 9)],
        ];
        assert_eq!(boxes(&set), rest);
        assert_eq!(set.common(&[(3, 5), (5, 9)]), [vec![(4, 5), (5, 9)]]);
    }

    #[test]
    fn a_field_without_axes() {
        let mut set = BoxSet::default();
        assert!(set.add(&[]));
        assert!(!set.add(&[]));
        assert_eq!(set.common(&[]), [vec![]]);
        set.remove(&[]);
        assert!(boxes(&set).is_empty());
    }

    #[test]
    fn slices_that_do_not_touch_are_found_along_any_axis() {
        let mut set = BoxSet::default();
        for t in 0..1000 {
            set.add(&[(0, 9), (2 * t, 2 * t + 1)]);
        }
        assert_eq!(set.iter().count(), 1000);
        assert_eq!(set.near(&[(0, 9), (100, 101)]).len(), 1);
    }

    /// The elements that a set holds, compared with a table of booleans while boxes come and go.
    #[test]
    fn elements_are_those_added_and_not_removed() {
        const N: u64 = 7;
        for seed in 0..200 {
            let mut state = seed;
            let mut draw = |below: u64| {
                let (next, bits) = random_step(state);
                state = next;
                bits % below
            };
            let (mut set, mut table) = (BoxSet::default(), [[false; N as usize]; N as usize]);
            for _ in 0..30 {
                let [a, b] = [(); 2].map(|()| {
                    let lo = draw(N);
                    (lo, lo + 1 + draw(N - lo))
                });
                let is_added = draw(3) > 0;
                match is_added {
                    true => _ = set.add(&[a, b]),
                    false => set.remove(&[a, b]),
                }
                for i in 0..N {
                    for j in 0..N {
                        let inside = a.0 <= i && i < a.1 && b.0 <= j && j < b.1;
                        let cell = &mut table[i as usize][j as usize];
                        *cell = if inside { is_added } else { *cell };
                        let found = set.common(&[(i, i + 1), (j, j + 1)]);
                        assert_eq!(!found.is_empty(), *cell, "seed {seed}: ({i}, {j})");
                    }
                }
            }
        }
    }
}
