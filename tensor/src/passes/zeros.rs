//! Buffers that a block stores are zero if the block has not run.
//!
//! ```text
//! if c { for [n] { t[i0] = a } }                  for [n] { t[i0] = 0 }; if c { for [n] { t[i0] = a } }
//! for [n] { y[i0] = t[i0] }                       for [n] { y[i0] = t[i0] }
//! ```
//! It is done for temporaries that a branch or a loop stores to first, and that are read where no statement has stored all of
//! them for certain: behind it, in another branch, in a later turn, or where a part of them is stored.

use aerogel_base::{Scalar, Span};
use indexmap::{IndexMap, IndexSet};

use super::Options;
use crate::ir::{Buffer, For, Outside, Program, Role, Stmt, Store, Touched, is_at_own_place};

/// Makes zeros before the statements of the host in which such temporaries are stored to first.
pub(super) fn run(program: &mut Program, _: Options) -> bool {
    let mut homes = IndexMap::new();
    for (k, stmt) in program.body.iter().enumerate() {
        look(program, stmt, k, false, &mut homes);
    }
    homes.retain(|&b, home| home.in_block && program.buffers[b].role == Role::Temporary);
    if homes.is_empty() {
        return false;
    }
    let mut reads = Reads {
        program,
        homes: &homes,
        stored: IndexSet::new(),
        unsure: IndexSet::new(),
    };
    reads.block(&program.body);
    reads.read(program.results.iter().copied());
    let unsure = reads.unsure;
    let mut first: IndexMap<usize, Vec<(Buffer, Option<Buffer>)>> = IndexMap::new();
    for buffer in unsure {
        let home = &homes[&buffer];
        first.entry(home.at).or_default().push((buffer, home.cells));
    }
    let body = std::mem::take(&mut program.body);
    for (k, stmt) in body.into_iter().enumerate() {
        for &(buffer, cells) in first.get(&k).into_iter().flatten() {
            let zeros = zeros(program, buffer, cells);
            program.body.push(zeros);
        }
        program.body.push(stmt);
    }
    !first.is_empty()
}

/// Where a buffer is stored to.
struct Home {
    /// In which of the outermost statements first.
    at: usize,
    /// Whether a block is around that.
    in_block: bool,
    /// The cells at which alone it is, each element at its own, if there are such.
    cells: Option<Buffer>,
}

fn look(
    program: &Program,
    stmt: &Stmt,
    at: usize,
    in_block: bool,
    homes: &mut IndexMap<Buffer, Home>,
) {
    if matches!(stmt, Stmt::Loop { .. } | Stmt::If(..)) {
        for inside in stmt.inside().into_iter().flatten() {
            look(program, inside, at, true, homes);
        }
        return;
    }
    let mut cells = None;
    let mut elsewhere = IndexSet::new();
    if let Stmt::For(all) = stmt {
        cells = all.cells;
        for stmt in all.body.iter().filter(|_| cells.is_some()) {
            if !matches!(stmt, Stmt::Store(store) if is_at_own_place(program, all, store)) {
                elsewhere.extend(Touched::by(program, std::slice::from_ref(stmt)).writes);
            }
        }
    }
    for buffer in Touched::by(program, std::slice::from_ref(stmt)).writes {
        let cells = cells.filter(|_| !elsewhere.contains(&buffer));
        let home = homes.entry(buffer).or_insert(Home {
            at,
            in_block,
            cells,
        });
        home.cells = home.cells.filter(|_| home.cells == cells);
    }
}

/// Buffers that are read where they may not have been stored.
struct Reads<'p> {
    program: &'p Program,
    homes: &'p IndexMap<Buffer, Home>,
    /// Buffers that are stored as a whole whenever the later statements run.
    stored: IndexSet<Buffer>,
    unsure: IndexSet<Buffer>,
}

impl Reads<'_> {
    fn block(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Loop { body, .. } => {
                    self.exprs(stmt);
                    let before = self.stored.len();
                    self.block(body);
                    self.stored.truncate(before);
                }
                Stmt::If(_, then, otherwise) => {
                    self.exprs(stmt);
                    let before = self.stored.len();
                    let [then, otherwise] = [then, otherwise].map(|body| {
                        self.block(body);
                        self.stored.split_off(before)
                    });
                    let both = then.into_iter().filter(|b| otherwise.contains(b));
                    self.stored.extend(both);
                }
                Stmt::For(all) => {
                    self.exprs(stmt);
                    for stmt in &all.body {
                        self.read(Touched::by(self.program, std::slice::from_ref(stmt)).reads);
                        if let Stmt::Store(store) = stmt
                            && self.is_whole(all, store)
                        {
                            self.stored.insert(store.target);
                        }
                    }
                }
                _ => {
                    let touched = Touched::by(self.program, std::slice::from_ref(stmt));
                    self.read(touched.reads);
                    match stmt {
                        Stmt::Call(call) => self.stored.extend(&call.outputs),
                        Stmt::Run(run) => self.stored.extend(&run.results),
                        Stmt::Clear(buffer) => {
                            self.stored.insert(*buffer);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// Whether a store makes all that there is of its target, whatever was there.
    fn is_whole(&self, all: &For, store: &Store) -> bool {
        let cells = self.homes.get(&store.target).and_then(|home| home.cells);
        let each = store.accum.is_none() && is_at_own_place(self.program, all, store);
        store.init || each && all.cells == cells
    }

    fn exprs(&mut self, stmt: &Stmt) {
        self.read(Touched::of_itself(self.program, stmt).reads);
    }

    fn read(&mut self, buffers: impl IntoIterator<Item = Buffer>) {
        let (homes, stored) = (self.homes, &self.stored);
        let unsure = |b: &Buffer| homes.contains_key(b) && !stored.contains(b);
        self.unsure.extend(buffers.into_iter().filter(unsure));
    }
}

fn zeros(program: &mut Program, buffer: Buffer, cells: Option<Buffer>) -> Stmt {
    let def = &program.buffers[buffer];
    let (zero, domain) = (Scalar::zero(def.ty), def.shape.clone());
    let store = Store {
        target: buffer,
        index: program.axes(domain.len()),
        value: program.exprs.constant(zero),
        accum: None,
        init: false,
        outside: Outside::Never,
    };
    Stmt::For(For {
        domain,
        cells,
        body: vec![Stmt::Store(store)],
        span: Span::NONE,
    })
}
