//! Data races: two iterations of a parallel loop access one scalar, at least one of them writes it, and not both do so by atomic
//! operations.
//!
//! Generated code notes the accesses (`passes/src/note_accesses.rs`). They are compared by the numbers of their iterations, so
//! what is found does not depend on which iterations really ran at once.

pub use aerogel_base::NoteKind;
use aerogel_base::hash::LookupMap;
use smallvec::SmallVec;

use crate::buffer::Buffer;

/// An access of a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RacingAccess {
    /// Index into `KernelCode::sites`.
    pub site: usize,
    /// How it accesses the scalar.
    pub kind: NoteKind,
    /// The indices of the iteration.
    pub iteration: Vec<i64>,
}

/// Two accesses that are a race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The accesses, that of the earlier iteration first.
    pub accesses: [RacingAccess; 2],
    /// The site whose message names the scalar, and the values of it.
    pub name: (usize, Vec<u64>),
}

/// The accesses of a launch.
#[derive(Default)]
pub struct Races {
    /// Where the arrays begin.
    arrays: Vec<u64>,
    /// The first index and the size of each axis of the loop that is running.
    axes: Vec<[i64; 2]>,
    /// The accesses of the loop to each scalar, which is an object and an index in it.
    scalars: LookupMap<(i64, i64), Seen>,
    found: Option<Box<Race>>,
}

/// Of the accesses to a scalar as many as are needed to find a race with another one: of each kind one, and one of another
/// iteration.
type Seen = SmallVec<[Access; 2]>;

#[derive(Clone, Copy)]
struct Access {
    iteration: i64,
    site: u32,
    kind: NoteKind,
    /// The written value.
    value: u64,
}

impl Access {
    /// Two iterations that write the same value may do so in any order.
    fn races_with(self, other: Self) -> bool {
        let harmless = match (self.kind, other.kind) {
            (NoteKind::Write, NoteKind::Write) => self.value == other.value,
            (one, another) => one == another,
        };
        self.iteration != other.iteration && !harmless
    }
}

impl Races {
    /// No accesses yet, of a launch with these arrays.
    pub fn new(arrays: &[&Buffer]) -> Self {
        let begin = |array: &&Buffer| array.addresses().start as u64;
        Self {
            arrays: arrays.iter().map(begin).collect(),
            ..Self::default()
        }
    }

    /// Takes the note of a site: whether a race has been found.
    pub fn note(&mut self, site: usize, kind: NoteKind, values: &[u64]) -> bool {
        if self.found.is_some() {
            return true;
        }
        if kind == NoteKind::Loop {
            self.scalars.clear();
            let axes = values.chunks_exact(2);
            self.axes = axes.map(|axis| [axis[0] as i64, axis[1] as i64]).collect();
            return false;
        }
        let (&[object, index, iteration, ref value @ ..], name) = values.split_at(kind.n_fixed())
        else {
            unreachable!("a note has an object, an index and an iteration")
        };
        let access = Access {
            iteration: iteration as i64,
            site: site as u32,
            kind,
            value: value.first().copied().unwrap_or_default(),
        };
        if access.iteration < 0 {
            return false;
        }
        let scalar = self.scalar(object as i64, index as i64);
        if let Some(other) = self.compare(scalar, access) {
            let mut accesses = [other, access];
            accesses.sort_by_key(|access| access.iteration);
            self.found = Some(Box::new(Race {
                accesses: accesses.map(|access| self.named(access)),
                name: (site, name.to_vec()),
            }));
        }
        self.found.is_some()
    }

    /// The race that was found.
    pub fn found(&mut self) -> Option<Box<Race>> {
        self.found.take()
    }

    /// Arguments may be the same array, or overlap: their scalars are known by their addresses.
    fn scalar(&self, object: i64, index: i64) -> (i64, i64) {
        let array = usize::try_from(-1 - object).ok();
        match array.and_then(|array| self.arrays.get(array)) {
            Some(&begin) => (-1, begin as i64 + index),
            None => (object, index),
        }
    }

    /// An access to a scalar with which this one is a race; if there is none, this one is remembered.
    fn compare(&mut self, scalar: (i64, i64), access: Access) -> Option<Access> {
        let Some(seen) = self.scalars.get_mut(&scalar) else {
            self.scalars.insert(scalar, SmallVec::from_elem(access, 1));
            return None;
        };
        if let Some(&other) = seen.iter().find(|other| other.races_with(access)) {
            return Some(other);
        }
        let mut same_kind = 0;
        for other in seen.iter_mut().filter(|other| other.kind == access.kind) {
            same_kind += 1;
            if other.iteration == access.iteration {
                // What an iteration leaves is what it writes last.
                other.value = access.value;
                return None;
            }
        }
        if same_kind < 2 {
            seen.push(access);
        }
        None
    }

    fn named(&self, access: Access) -> RacingAccess {
        let mut rest = access.iteration;
        let mut iteration = Vec::new();
        for &[first, size] in self.axes.iter().rev() {
            iteration.push(first + rest % size.max(1));
            rest /= size.max(1);
        }
        iteration.reverse();
        RacingAccess {
            site: access.site as usize,
            kind: access.kind,
            iteration,
        }
    }
}

#[cfg(test)]
mod tests {
    use NoteKind::{Atomic, Read, Write};

    use super::*;

    /// What becomes of accesses to one scalar: the iterations that race, if any do.
    fn race(accesses: &[(NoteKind, u64, u64)]) -> Option<[i64; 2]> {
        let mut races = Races::default();
        races.note(0, NoteKind::Loop, &[10, 100]);
        for &(kind, iteration, value) in accesses {
            let mut values = vec![3, 5, iteration];
            values.extend((kind == Write).then_some(value));
            races.note(1, kind, &values);
        }
        let race = races.found()?;
        Some(race.accesses.map(|access| access.iteration[0] - 10))
    }

    #[test]
    fn pairs() {
        for (one, another, expected) in [
            (Read, Read, None),
            (Atomic, Atomic, None),
            (Read, Write, Some([1, 2])),
            (Write, Read, Some([1, 2])),
            (Write, Write, Some([1, 2])),
            (Atomic, Read, Some([1, 2])),
            (Write, Atomic, Some([1, 2])),
        ] {
            assert_eq!(race(&[(one, 1, 7), (another, 2, 8)]), expected);
            assert_eq!(race(&[(one, 1, 7), (another, 1, 8)]), None);
        }
        assert_eq!(race(&[(Write, 4, 7), (Write, 1, 8)]), Some([1, 4]));
    }

    #[test]
    fn the_same_value() {
        assert_eq!(race(&[(Write, 1, 7), (Write, 2, 7)]), None);
        let later = [(Write, 1, 7), (Write, 2, 7), (Write, 1, 8)];
        assert_eq!(race(&later), Some([1, 2]));
        let last = [(Write, 1, 7), (Write, 1, 8), (Write, 2, 8)];
        assert_eq!(race(&last), None);
        assert_eq!(
            race(&[(Write, 1, 7), (Write, 2, 7), (Read, 2, 0)]),
            Some([1, 2])
        );
    }

    #[test]
    fn what_an_iteration_does_hides_no_other() {
        for kind in [Read, Atomic] {
            assert_eq!(
                race(&[(kind, 1, 0), (kind, 2, 0), (Write, 1, 7)]),
                Some([1, 2])
            );
            assert_eq!(
                race(&[(kind, 2, 0), (kind, 1, 0), (Write, 1, 7)]),
                Some([1, 2])
            );
        }
    }

    #[test]
    fn another_loop_begins_anew() {
        let mut races = Races::default();
        races.note(0, NoteKind::Loop, &[0, 4, 0, 4]);
        assert!(!races.note(1, Write, &[3, 5, 0, 7]));
        races.note(0, NoteKind::Loop, &[2, 4, 1, 4]);
        assert!(!races.note(1, Read, &[3, 5, 6]));
        assert!(races.note(2, Write, &[3, 5, 9, 7, 40]));
        let race = races.found().unwrap();
        assert_eq!(race.name, (2, vec![40]));
        let [read, write] = &race.accesses;
        assert_eq!(
            (read.iteration.as_slice(), write.iteration.as_slice()),
            (&[3, 3][..], &[4, 2][..])
        );
    }

    #[test]
    fn arrays_that_overlap() {
        let buffer = Buffer::zeroed(64).unwrap();
        let mut races = Races::new(&[&buffer, &buffer]);
        races.note(0, NoteKind::Loop, &[0, 8]);
        assert!(!races.note(1, Write, &[-1_i64 as u64, 8, 1, 7]));
        assert!(!races.note(1, Read, &[-2_i64 as u64, 4, 2]));
        assert!(races.note(1, Read, &[-2_i64 as u64, 8, 2]));
    }
}
