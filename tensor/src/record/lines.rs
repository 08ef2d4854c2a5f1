//! Where in the user's program things were made.

use crate::expr::{ExprDef, Outside};
use crate::program::{Buffer, Dim, Program, Stmt};

use super::Recording;

/// The lines of a program, in the order in which they were recorded.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    all: Vec<Line>,
}

/// A line, and how much there was when it had been recorded.
#[derive(Clone, Debug)]
struct Line {
    place: String,
    n_buffers: usize,
    n_dims: usize,
    n_agreements: usize,
}

impl Lines {
    fn first(&self, made: impl Fn(&Line) -> bool) -> Option<&str> {
        let at = self.all.partition_point(|line| !made(line));
        // What was made behind all notes belongs to the end of the program.
        let line = self.all.get(at).or(self.all.last());
        line.map(|line| &*line.place)
    }

    /// Where a buffer was made.
    pub fn of_buffer(&self, buffer: Buffer) -> Option<&str> {
        self.first(|line| buffer.as_u32() < line.n_buffers as u32)
    }

    /// Where an extent was first named.
    pub fn of_dim(&self, dim: Dim) -> Option<&str> {
        self.first(|line| dim.as_u32() < line.n_dims as u32)
    }

    /// Where two extents were asked to be equal, by the agreement's number.
    pub fn of_agreement(&self, number: usize) -> Option<&str> {
        self.first(|line| number < line.n_agreements)
    }

    /// Where elements of a buffer are read at indices that are looked at: what the statements make that do so.
    pub fn of_indices(&self, program: &Program, buffer: Buffer) -> Vec<&str> {
        let mut places = Vec::new();
        self.indexing(program, &program.body, buffer, &mut places);
        places.dedup();
        places
    }

    fn indexing<'l>(
        &'l self,
        program: &Program,
        body: &[Stmt],
        wanted: Buffer,
        places: &mut Vec<&'l str>,
    ) {
        for stmt in body {
            let mut roots = Vec::new();
            stmt.exprs(|e| roots.push(e));
            let mut looks = false;
            program.exprs.visit(roots, &mut |e| {
                looks |= matches!(
                    &program.exprs[e],
                    ExprDef::Load { buffer, outside, .. } if *buffer == wanted && *outside == Outside::Error
                );
            });
            if let Stmt::Store(store) = stmt
                && looks
            {
                places.extend(self.of_buffer(store.target));
            }
            for inside in stmt.inside() {
                self.indexing(program, inside, wanted, places);
            }
        }
    }
}

impl Recording {
    /// Notes where all was made that has come since the last note.
    pub fn note(&mut self, place: &str) {
        let program = &self.program;
        let (n_buffers, n_dims) = (program.buffers.len(), program.dims.len());
        let n_agreements = program.agreements.len();
        if let Some(last) = self.lines.all.last_mut()
            && last.place == place
        {
            (last.n_buffers, last.n_dims, last.n_agreements) = (n_buffers, n_dims, n_agreements);
            return;
        }
        self.lines.all.push(Line {
            place: place.to_owned(),
            n_buffers,
            n_dims,
            n_agreements,
        });
    }
}
