//! Source locations of recorded operations in the user's program.
//!
//! The caller reports, after each of the user's statements, its source location: a number for which the caller knows the line.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::LookupMap;
use aerogel_ir::BinaryOp;

use crate::ir::{Buffer, Dim, Expr, ExprDef, Place, Program, Site, SiteDef, Stmt, Store};

use super::Recording;

/// Source locations of buffers, sizes and agreements; sites have their own.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    buffers: SecondaryMap<Buffer, Place>,
    n_buffers: usize,
    dims: Vec<Place>,
    agreements: Vec<Place>,
    n_sites: usize,
    /// The last place that was noted.
    last: Place,
}

impl Lines {
    /// Where a buffer was made. What came behind all notes belongs to the end of the program.
    pub fn of_buffer(&self, buffer: Buffer) -> Option<Place> {
        self.buffers[buffer].known().or(self.last.known())
    }

    /// The source location where a size was first named.
    pub fn of_dim(&self, dim: Dim) -> Option<Place> {
        let place = self.dims.get(dim.as_u32() as usize);
        place.unwrap_or(&self.last).known()
    }

    /// Where two sizes were required to be equal, by the agreement's number.
    pub fn of_agreement(&self, number: usize) -> Option<Place> {
        self.agreements.get(number).unwrap_or(&self.last).known()
    }

    /// Notes the source location of a buffer.
    pub fn set(&mut self, buffer: Buffer, place: Place) {
        self.buffers[buffer] = place;
    }

    /// Gives a buffer the source location of another one.
    pub(crate) fn follow(&mut self, buffer: Buffer, other: Buffer) {
        self.buffers[buffer] = self.buffers[other];
    }

    /// The source location of a buffer, if it has one.
    pub fn get(&self, buffer: Buffer) -> Place {
        self.buffers[buffer]
    }

    /// Where an access was written.
    pub fn of_site(&self, site: &SiteDef) -> Option<Place> {
        site.place.known().or(self.last.known())
    }

    /// Where integers are divided by a divisor that may be zero, by one of some operations.
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

impl Recording {
    /// Whether anything has come since the last note.
    pub fn is_noted(&self) -> bool {
        let (program, lines) = (&self.program, &self.lines);
        lines.n_buffers >= program.buffers.len()
            && lines.dims.len() >= program.dims.len()
            && lines.agreements.len() >= program.agreements.len()
            && lines.n_sites >= program.sites.len()
    }

    /// Notes where all was made that has come since the last note.
    pub fn note(&mut self, place: Place) {
        let (program, lines) = (&mut self.program, &mut self.lines);
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
        for k in lines.n_sites..program.sites.len() {
            let own = &mut program.sites[Site::from_u32(k as u32)].place;
            if *own == Place::NONE {
                *own = place;
            }
        }
        lines.n_sites = program.sites.len();
        lines.last = place;
    }
}
