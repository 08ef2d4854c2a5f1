//! Where in the user's program things were made.
//!
//! Whoever records says, after each statement of the user's, where that stands; a place is a number that it knows the line of.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::BinaryOp;

use crate::ir::{Buffer, Dim, Expr, ExprDef, Outside, Program, Stmt, Store};

use super::Recording;

/// A line of the user's program, and more of it: what the number stands for, whoever records knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Place(u32);

impl Place {
    /// Nobody knows.
    pub const NONE: Self = Self(0);

    /// The place with a number.
    pub fn new(number: u32) -> Self {
        Self(number + 1)
    }

    /// Its number, if it is known.
    pub fn number(self) -> Option<u32> {
        self.0.checked_sub(1)
    }

    fn known(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

/// Where buffers, extents and agreements were made, and where stores to indices that are looked at were written.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    buffers: SecondaryMap<Buffer, Place>,
    n_buffers: usize,
    dims: Vec<Place>,
    agreements: Vec<Place>,
    stores: Vec<(Buffer, Place)>,
    n_stores: usize,
    /// The last place that was noted.
    last: Place,
}

/// An element that is looked at: which statement does so, and where that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What the statement makes; for a store to memory, the memory.
    pub target: Buffer,
    /// Where it was written.
    pub place: Place,
    /// Whether an index below zero counts from the end.
    pub from_end: bool,
}

impl Lines {
    /// Where a buffer was made. What came behind all notes belongs to the end of the program.
    pub fn of_buffer(&self, buffer: Buffer) -> Option<Place> {
        self.buffers[buffer].known().or(self.last.known())
    }

    /// Where an extent was first named.
    pub fn of_dim(&self, dim: Dim) -> Option<Place> {
        let place = self.dims.get(dim.as_u32() as usize);
        place.unwrap_or(&self.last).known()
    }

    /// Where two extents were asked to be equal, by the agreement's number.
    pub fn of_agreement(&self, number: usize) -> Option<Place> {
        self.agreements.get(number).unwrap_or(&self.last).known()
    }

    /// Says where a buffer was made.
    pub fn set(&mut self, buffer: Buffer, place: Place) {
        self.buffers[buffer] = place;
    }

    /// Says that a buffer is made, and stored to, by what was said of another one.
    pub(super) fn follow(&mut self, buffer: Buffer, other: Buffer) {
        self.buffers[buffer] = self.buffers[other];
        let stores = self.stores.iter().filter(|(b, _)| *b == other);
        let stores: Vec<(Buffer, Place)> = stores.map(|(_, place)| (buffer, *place)).collect();
        self.stores.extend(stores);
    }

    /// What is said of a buffer, if anything is.
    pub fn get(&self, buffer: Buffer) -> Place {
        self.buffers[buffer]
    }

    /// What looks at indices along an axis of a buffer: stores to it, or what reads its elements.
    pub fn of_accesses(
        &self,
        program: &Program,
        buffer: Buffer,
        axis: usize,
        stores: bool,
    ) -> Vec<Access> {
        let mut found = Vec::new();
        if stores {
            let noted = self.stores.iter().filter(|(b, _)| *b == buffer);
            found.extend(noted.filter_map(|(target, place)| {
                Some(Access {
                    target: *target,
                    place: place.known()?,
                    from_end: false,
                })
            }));
        }
        each_store(&program.body, &mut |store| {
            let from_end = match stores {
                true if found.is_empty() => {
                    let looks = store.target == buffer && store.outside == Outside::Error;
                    let index = store.index.get(axis).filter(|_| looks);
                    index.map(|&e| counts_from_end(program, e))
                }
                true => None,
                false => read_in(program, store, buffer, axis),
            };
            if let (Some(from_end), Some(place)) = (from_end, self.of_buffer(store.target)) {
                let target = store.target;
                found.push(Access {
                    target,
                    place,
                    from_end,
                });
            }
        });
        let mut seen: LookupMap<Place, ()> = LookupMap::default();
        found.retain(|access| seen.insert(access.place, ()).is_none());
        found
    }

    /// Where whole numbers are divided by what may be zero, by one of some operations.
    pub fn of_divisions(&self, program: &Program, by_one_of: [BinaryOp; 2]) -> Vec<Place> {
        let mut found = Vec::new();
        let mut constants: LookupMap<Buffer, bool> = LookupMap::default();
        each_store(&program.body, &mut |store| {
            let value = program.exprs.as_const(store.value);
            let is_new = !constants.contains_key(&store.target);
            constants.insert(store.target, is_new && value.is_some_and(|v| !v.is_zero()));
        });
        let is_known = |by: Expr| match &program.exprs[by] {
            ExprDef::Load { buffer, .. } => constants.get(buffer) == Some(&true),
            _ => program.exprs.as_const(by).is_some_and(|by| !by.is_zero()),
        };
        each_store(&program.body, &mut |store| {
            let mut divides = false;
            program.exprs.visit([store.value], &mut |e| {
                if let ExprDef::Binary(op, a, by) = program.exprs[e] {
                    let is_whole = program.exprs.ty(a).is_int();
                    divides |= by_one_of.contains(&op) && is_whole && !is_known(by);
                }
            });
            let place = self.of_buffer(store.target).filter(|_| divides);
            found.extend(place.filter(|place| !found.contains(place)));
        });
        found
    }
}

fn each_store(body: &[Stmt], f: &mut impl FnMut(&Store)) {
    for stmt in body {
        if let Stmt::Store(store) = stmt {
            f(store);
        }
        for inside in stmt.inside() {
            each_store(inside, f);
        }
    }
}

/// Whether a store reads elements of a buffer at indices that are looked at, and if so, whether they count from the end.
fn read_in(program: &Program, store: &Store, wanted: Buffer, axis: usize) -> Option<bool> {
    let mut roots = store.index.clone();
    roots.push(store.value);
    let mut found = None;
    program.exprs.visit(roots, &mut |e| {
        if let ExprDef::Load {
            buffer,
            index,
            outside: Outside::Error,
            ..
        } = &program.exprs[e]
            && *buffer == wanted
        {
            let index = index.get(axis);
            found = index.map(|&e| counts_from_end(program, e));
        }
    });
    found
}

/// Whether this is `i < 0 ? i + extent : i`.
fn counts_from_end(program: &Program, e: Expr) -> bool {
    let exprs = &program.exprs;
    let ExprDef::Select(cond, _, i) = exprs[e] else {
        return false;
    };
    let zero = |e: Expr| exprs.as_const(e).is_some_and(|c| c.as_i128() == 0);
    matches!(exprs[cond], ExprDef::Compare(aerogel_ir::CompareOp::Lt, a, b) if a == i && zero(b))
}

impl Recording {
    /// Whether anything has come since the last note.
    pub fn is_noted(&self) -> bool {
        let (program, lines) = (&self.program, &self.lines);
        lines.n_buffers >= program.buffers.len()
            && lines.dims.len() >= program.dims.len()
            && lines.agreements.len() >= program.agreements.len()
            && lines.n_stores >= lines.stores.len()
    }

    /// Notes where all was made that has come since the last note.
    pub fn note(&mut self, place: Place) {
        let (program, lines) = (&self.program, &mut self.lines);
        for k in lines.n_buffers..program.buffers.len() {
            let own = &mut lines.buffers[Buffer::from_u32(k as u32)];
            if *own == Place::NONE {
                *own = place;
            }
        }
        lines.n_buffers = program.buffers.len();
        let n_dims = program.dims.len().max(lines.dims.len());
        lines.dims.resize(n_dims, place);
        let n_agreements = program.agreements.len().max(lines.agreements.len());
        lines.agreements.resize(n_agreements, place);
        let new = lines.stores[lines.n_stores..].iter_mut();
        for (_, own) in new.filter(|(_, own)| *own == Place::NONE) {
            *own = place;
        }
        lines.n_stores = lines.stores.len();
        lines.last = place;
    }

    /// A store to memory at indices that are looked at has come.
    pub(super) fn note_store(&mut self, target: Buffer, outside: Outside) {
        if outside == Outside::Error {
            self.lines.stores.push((target, Place::NONE));
        }
    }
}
