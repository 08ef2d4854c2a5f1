//! Which buffers of a function vary over the batch axis, and which of its values may be computed where they are not needed.

use indexmap::{IndexMap, IndexSet};

use crate::ir::{Accum, Buffer, Expr, ExprDef, Program, Stmt, Touched, exprs_of, visit};

/// Which buffers of a function vary over the batch axis.
pub(super) struct Varying {
    pub(super) buffers: IndexSet<Buffer>,
    /// Values that may be made where they need not be: that cannot fail, and nobody looks at them outside of their block.
    pub(super) free: IndexSet<Buffer>,
}

/// A statement over points, or a call, or what a block depends on.
#[derive(Default)]
struct Unit {
    /// The blocks that it is in, from the outermost on.
    path: Vec<usize>,
    reads: IndexSet<Buffer>,
    writes: IndexSet<Buffer>,
    /// The conditions under which it runs.
    on: IndexSet<Buffer>,
    /// It makes one value, and cannot fail.
    is_value: bool,
}

impl Varying {
    pub(super) fn of(
        program: &Program,
        body: &[Stmt],
        ones: &[Buffer],
        results: &[Buffer],
    ) -> Self {
        let mut units = Units {
            program,
            all: Vec::new(),
            path: Vec::new(),
            n_blocks: 0,
        };
        units.block(body, &IndexSet::new());
        let free = units.free(results);
        let mut touching: IndexMap<Buffer, Vec<usize>> = IndexMap::new();
        for (k, unit) in units.all.iter().enumerate() {
            let decide = Some(&unit.on).filter(|_| !unit.writes.is_subset(&free));
            let all = unit.reads.iter().chain(&unit.writes);
            for &buffer in all.chain(decide.into_iter().flatten()) {
                touching.entry(buffer).or_default().push(k);
            }
        }
        let mut buffers: IndexSet<Buffer> = ones.iter().copied().collect();
        let mut next = 0;
        while let Some(&buffer) = buffers.get_index(next) {
            for &k in touching.get(&buffer).into_iter().flatten() {
                buffers.extend(&units.all[k].writes);
            }
            next += 1;
        }
        Self { buffers, free }
    }
}

/// The buffers that statements make vary over the batch axis.
pub(crate) fn varying(program: &Program, body: &[Stmt], ones: &[Buffer]) -> IndexSet<Buffer> {
    Varying::of(program, body, ones, &[]).buffers
}

pub(super) fn loads(program: &Program, roots: &[Expr]) -> IndexSet<Buffer> {
    let mut out = IndexSet::new();
    program.exprs.visit(roots.iter().copied(), &mut |e| {
        if let ExprDef::Load { buffer, .. } = program.exprs[e] {
            out.insert(buffer);
        }
    });
    out
}

/// Buffers that statements at points store to, all by the same accumulation or all by none, and that nothing reads.
pub(super) fn only_stored(program: &Program, body: &[Stmt]) -> IndexSet<Buffer> {
    let mut found: IndexMap<Buffer, Option<Accum>> = IndexMap::new();
    let mut others = loads(program, &exprs_of(body));
    visit(body, &mut |stmt| match stmt {
        Stmt::Store(store) => {
            let same = *found.entry(store.target).or_insert(store.accum) == store.accum;
            if !same || store.init {
                others.insert(store.target);
            }
        }
        Stmt::Call(_) | Stmt::Run(_) | Stmt::Clear(_) => {
            let touched = Touched::by(program, std::slice::from_ref(stmt));
            others.extend(touched.reads.iter().chain(&touched.writes));
        }
        _ => {}
    });
    found.into_keys().filter(|b| !others.contains(b)).collect()
}

/// The statements over points of a function.
struct Units<'p> {
    program: &'p Program,
    all: Vec<Unit>,
    path: Vec<usize>,
    n_blocks: usize,
}

impl Units<'_> {
    fn block(&mut self, body: &[Stmt], on: &IndexSet<Buffer>) {
        for stmt in body {
            self.stmt(stmt, on);
        }
    }

    fn inside(&mut self, body: &[Stmt], on: &IndexSet<Buffer>) {
        self.n_blocks += 1;
        self.path.push(self.n_blocks);
        self.block(body, on);
        self.path.pop();
    }

    fn push(&mut self, unit: Unit) {
        let path = self.path.clone();
        self.all.push(Unit { path, ..unit });
    }

    fn stmt(&mut self, stmt: &Stmt, on: &IndexSet<Buffer>) {
        match stmt {
            Stmt::For(_) | Stmt::Call(_) | Stmt::Run(_) => {
                let touched = Touched::by(self.program, std::slice::from_ref(stmt));
                self.push(Unit {
                    reads: touched.reads,
                    writes: touched.writes,
                    on: on.clone(),
                    is_value: self.is_value(stmt),
                    ..Unit::default()
                });
            }
            Stmt::If(cond, then, otherwise) => {
                let on = on | &self.decides(&[*cond]);
                self.inside(then, &on);
                self.inside(otherwise, &on);
            }
            Stmt::Loop { lo, hi, body, .. } => {
                let mut on = on | &self.decides(&[*lo, *hi]);
                leaving(self.program, body, &IndexSet::new(), &mut |conditions| {
                    on.extend(conditions);
                });
                self.inside(body, &on);
            }
            Stmt::Store(_) | Stmt::Set(..) | Stmt::Break | Stmt::Continue | Stmt::Clear(_) => {}
        }
    }

    fn decides(&mut self, roots: &[Expr]) -> IndexSet<Buffer> {
        let reads = loads(self.program, roots);
        self.push(Unit {
            reads: reads.clone(),
            ..Unit::default()
        });
        reads
    }

    fn is_value(&self, stmt: &Stmt) -> bool {
        let Stmt::For(all) = stmt else {
            return false;
        };
        let [Stmt::Store(store)] = &all.body[..] else {
            return false;
        };
        let exprs = &self.program.exprs;
        let mut fails = store.outside.is_checked();
        let roots = store.index.iter().copied().chain([store.value]);
        exprs.visit(roots, &mut |e| {
            fails |= matches!(&exprs[e], ExprDef::Load { outside, .. } if outside.is_checked());
        });
        !fails
    }

    fn free(&self, results: &[Buffer]) -> IndexSet<Buffer> {
        let mut writers: IndexMap<Buffer, (&Unit, usize)> = IndexMap::new();
        for unit in &self.all {
            for &buffer in &unit.writes {
                writers.entry(buffer).or_insert((unit, 0)).1 += 1;
            }
        }
        let alone = writers
            .iter()
            .filter(|(_, (unit, n))| *n == 1 && unit.is_value);
        let mut free: IndexSet<Buffer> = alone.map(|(&b, _)| b).collect();
        let outside = Unit {
            reads: results.iter().copied().collect(),
            ..Unit::default()
        };
        for reader in self.all.iter().chain([&outside]) {
            for buffer in &reader.reads {
                let writer = writers.get(buffer).map(|w| &w.0.path);
                if writer.is_some_and(|path| !reader.path.starts_with(path)) {
                    free.swap_remove(buffer);
                }
            }
        }
        free
    }
}

/// Calls `f` with the conditions of each `break` and `continue` of the enclosing loop.
pub(super) fn leaving(
    program: &Program,
    body: &[Stmt],
    on: &IndexSet<Buffer>,
    f: &mut impl FnMut(&IndexSet<Buffer>),
) {
    for stmt in body {
        match stmt {
            Stmt::Break | Stmt::Continue => f(on),
            Stmt::If(cond, then, otherwise) => {
                let on = on | &loads(program, &[*cond]);
                leaving(program, then, &on, f);
                leaving(program, otherwise, &on, f);
            }
            _ => {}
        }
    }
}
