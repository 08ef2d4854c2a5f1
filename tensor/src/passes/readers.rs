//! How often a value is computed if it is computed where it is read.

use indexmap::{IndexMap, IndexSet};

use super::reductions::sums;
use crate::ir::{Buffer, Dim, For, Program, Role, Touched, is_whole, only_store};

/// Axes of a domain in an order.
pub(super) type Order = Vec<u32>;

/// The places of some axes in an order of them.
fn composed(places: &[u32], order: &Order) -> Order {
    places.iter().map(|&k| order[k as usize]).collect()
}

/// Which statements read each buffer at the points with its elements' indices, in which order of their axes.
#[derive(Default)]
pub(super) struct Readers {
    of: IndexMap<Buffer, Vec<(usize, Order)>>,
    /// How many axes each statement has.
    ranks: Vec<u32>,
    /// The buffers that each statement alone stores as a whole, point by point.
    makes: Vec<Option<Buffer>>,
    /// The statement in whose loop each is done: sums over the same axes share one, and what they read is computed once.
    leaders: Vec<usize>,
    /// The latest leader over each domain, and the axes that stay.
    latest: IndexMap<(Vec<Dim>, Vec<u32>), usize>,
    /// The last statement so far that has changed each buffer.
    written: IndexMap<Buffer, usize>,
}

/// More statements than these are not distinguished.
const MOST_READERS: usize = 4;

impl Readers {
    pub(super) fn add(&mut self, program: &Program, all: &For, own: IndexSet<(Buffer, Order)>) {
        let number = self.makes.len();
        let leader = self.leader(program, all).unwrap_or(number);
        self.leaders.push(leader);
        self.ranks.push(all.domain.len() as u32);
        for (buffer, order) in own {
            self.of.entry(buffer).or_default().push((number, order));
        }
        let makes = only_store(all).filter(|s| s.accum.is_none() && is_whole(program, all, s));
        let target = makes.map(|s| s.target);
        self.makes
            .push(target.filter(|&b| program.buffers[b].role == Role::Temporary));
    }

    /// The next statement is in another block of the host.
    pub(super) fn enter(&mut self) {
        self.latest.clear();
    }

    /// The statement in whose loop a sum is done that comes next, if there is one: nothing that it reads is made since then.
    fn leader(&mut self, program: &Program, all: &For) -> Option<usize> {
        let number = self.makes.len();
        let touched = Touched::at_points(program, all);
        let made = touched.reads.iter().filter_map(|b| self.written.get(b));
        let made = made.copied().max();
        self.wrote(touched.writes);
        let key = (all.domain.clone(), sums(program, all)?.kept);
        let leader = self.latest.get(&key).copied();
        let leader = leader.filter(|&leader| made.is_none_or(|at| at < leader));
        if leader.is_none() {
            self.latest.insert(key, number);
        }
        leader
    }

    /// The statement that comes next changes buffers.
    pub(super) fn wrote(&mut self, buffers: impl IntoIterator<Item = Buffer>) {
        let number = self.makes.len();
        self.written
            .extend(buffers.into_iter().map(|b| (b, number)));
    }

    /// How many statements compute each buffer where it is read: what reads it may itself be computed where that is
    /// read, and one loop computes a value once, however many ways lead there, unless axes are in another order.
    pub(super) fn counted(
        &self,
        program: &Program,
        stores: &IndexMap<Buffer, u32>,
    ) -> Vec<(Buffer, u32)> {
        let ranks = self.ranks.iter().enumerate();
        let mut ends: Vec<Vec<(usize, Order)>> = ranks
            .map(|(k, &n)| vec![(self.leaders[k], (0..n).collect())])
            .collect();
        let through = |ends: &[Vec<(usize, Order)>], readers: &[(usize, Order)]| {
            let mut all: IndexSet<(usize, Order)> = IndexSet::new();
            for (reader, places) in readers {
                let at = ends[*reader].iter();
                all.extend(at.map(|(end, order)| (*end, composed(places, order))));
            }
            all
        };
        for k in (0..self.makes.len()).rev() {
            let inlined =
                self.makes[k].filter(|b| !program.results.contains(b) && stores.get(b) == Some(&1));
            if let Some(readers) = inlined.and_then(|b| self.of.get(&b)) {
                let all = through(&ends, readers);
                if readers.iter().all(|&(r, _)| r > k) && all.len() <= MOST_READERS {
                    ends[k] = all.into_iter().collect();
                }
            }
        }
        let counts = self.of.iter();
        counts
            .map(|(&b, readers)| (b, through(&ends, readers).len().min(readers.len()) as u32))
            .collect()
    }
}
