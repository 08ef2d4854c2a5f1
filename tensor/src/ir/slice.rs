//! The statements that some buffers are made by, as a program of their own in a form that is the same for the same statements.

use aerogel_base::entity::SecondaryMap;
use aerogel_base::hash::{LookupMap, LookupSet};

use smallvec::SmallVec;

use super::expr::{Expr, ExprDef, Outside};
use super::ids::{Buffer, Dim, Site, Var};
use super::program::{BufferDef, DimDef, Program, Role, Stmt};
use super::rewrite::{exprs_of, visit_mut};
use super::site::SiteDef;

/// Which statements change each buffer, and which buffers each statement reads, found as the program grows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Makers {
    of: SecondaryMap<Buffer, SmallVec<[u32; 2]>>,
    /// Which buffers statements read.
    read: SecondaryMap<Buffer, bool>,
    /// The same by statement: those of one end where those of the next begin.
    reads: Vec<Buffer>,
    ends: Vec<u32>,
}

impl Makers {
    /// Looks at the statements that are new.
    pub(crate) fn update(&mut self, program: &Program) {
        for at in self.ends.len()..program.body.len() {
            targets(&program.body[at], &mut |b| {
                if self.of[b].last() != Some(&(at as u32)) {
                    self.of[b].push(at as u32);
                }
            });
            reads(program, &program.body[at], &mut |b| {
                self.read[b] = true;
                self.reads.push(b);
            });
            self.ends.push(self.reads.len() as u32);
        }
    }

    /// The buffers that a statement reads.
    pub(crate) fn reads(&self, at: u32) -> &[Buffer] {
        let at = at as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.reads[start as usize..self.ends[at] as usize]
    }

    /// The first statement that changes a buffer.
    pub(crate) fn first(&self, buffer: Buffer) -> Option<usize> {
        self.of[buffer].first().map(|&at| at as usize)
    }

    /// Whether a statement reads a buffer.
    pub(crate) fn is_read(&self, buffer: Buffer) -> bool {
        self.read[buffer]
    }
}

pub(crate) fn targets(stmt: &Stmt, f: &mut impl FnMut(Buffer)) {
    match stmt {
        Stmt::Store(store) => f(store.target),
        Stmt::Call(call) => call.outputs.iter().for_each(|&b| f(b)),
        _ => {
            for inside in stmt.inside() {
                inside.iter().for_each(|s| targets(s, f));
            }
        }
    }
}

/// Calls `f` with the buffers that a statement reads.
pub(crate) fn reads(program: &Program, stmt: &Stmt, f: &mut impl FnMut(Buffer)) {
    let roots = exprs_of(std::slice::from_ref(stmt));
    program.exprs.visit(roots, &mut |e| {
        if let ExprDef::Load { buffer, .. } = program.exprs[e] {
            f(buffer);
        }
    });
    if let Stmt::Call(call) = stmt {
        call.inputs.iter().for_each(|&b| f(b));
    }
}

/// A program of its own.
#[derive(Clone, Debug)]
pub(crate) struct Slice {
    /// The program; its results are the requested buffers.
    pub(crate) program: Program,
    /// The buffers of the source program that its inputs stand for.
    pub(crate) inputs: Vec<Buffer>,
    /// The buffers that it makes, there and here.
    pub(crate) made: Vec<(Buffer, Buffer)>,
    /// The translation of the source program's expressions.
    pub(crate) exprs: LookupMap<Expr, Expr>,
    /// The same of sites.
    pub(crate) sites: LookupMap<Site, Site>,
}

/// The statements that compute `roots`, from buffers that exist already, to be run or (`keeps_functions`) recorded further.
/// All sizes are constants.
pub(crate) fn slice(
    program: &Program,
    makers: &Makers,
    is_there: impl Fn(Buffer) -> bool,
    roots: &[Buffer],
    keeps_functions: bool,
) -> Slice {
    let needed = order(program, makers, &is_there, roots);
    let mut copier = Copier::new(program, Program::default(), is_there);
    copier.keeps_functions = keeps_functions;
    for at in needed {
        let stmt = copier.stmt(&program.body[at as usize]);
        copier.to.body.push(stmt);
    }
    for &root in roots {
        let result = copier.buffer(root);
        copier.to.results.push(result);
    }
    Slice {
        program: copier.to,
        inputs: copier.inputs,
        made: copier.made,
        exprs: copier.exprs,
        sites: copier.sites,
    }
}

/// The statements, each after those that it needs, in an order that depends on nothing but them: whatever came first.
pub(crate) fn order(
    program: &Program,
    makers: &Makers,
    is_there: &impl Fn(Buffer) -> bool,
    roots: &[Buffer],
) -> Vec<u32> {
    let mut out = Vec::new();
    let mut seen: LookupSet<u32> = LookupSet::default();
    let mut stack: Vec<(u32, bool)> = Vec::new();
    let mut needed: Vec<u32> = Vec::new();
    let wants = |needed: &mut Vec<u32>, b: Buffer| {
        if !is_there(b) {
            needed.extend(&makers.of[b]);
        }
    };
    roots.iter().for_each(|&b| wants(&mut needed, b));
    stack.extend(needed.drain(..).rev().map(|at| (at, false)));
    while let Some((at, ready)) = stack.pop() {
        if ready {
            out.push(at);
        } else if seen.insert(at) {
            stack.push((at, true));
            let stmt = &program.body[at as usize];
            // What was stored to the same buffers before comes before.
            targets(stmt, &mut |b| {
                let earlier = makers.of[b].iter().filter(|&&m| m < at);
                needed.extend(earlier);
            });
            let reads = makers.reads(at).iter();
            reads.for_each(|&b| wants(&mut needed, b));
            stack.extend(needed.drain(..).rev().map(|at| (at, false)));
        }
    }
    out
}

/// Copies statements from one program to another.
pub(crate) struct Copier<'p, F> {
    from: &'p Program,
    pub(crate) to: Program,
    is_there: F,
    /// The translation of buffers to the other program.
    pub(crate) buffers: LookupMap<Buffer, Buffer>,
    vars: LookupMap<Var, Var>,
    exprs: LookupMap<Expr, Expr>,
    sites: LookupMap<Site, Site>,
    inputs: Vec<Buffer>,
    /// The buffers that it makes, there and here.
    pub(crate) made: Vec<(Buffer, Buffer)>,
    /// Whether derivatives of the copied statements may be needed.
    keeps_functions: bool,
}

impl<'p, F: Fn(Buffer) -> bool> Copier<'p, F> {
    /// From a program to another one, where those that are there are inputs.
    pub(crate) fn new(from: &'p Program, to: Program, is_there: F) -> Self {
        Self {
            from,
            to,
            is_there,
            buffers: LookupMap::default(),
            vars: LookupMap::default(),
            exprs: LookupMap::default(),
            sites: LookupMap::default(),
            inputs: Vec::new(),
            made: Vec::new(),
            keeps_functions: false,
        }
    }

    fn buffer(&mut self, old: Buffer) -> Buffer {
        if let Some(&new) = self.buffers.get(&old) {
            return new;
        }
        let def = &self.from.buffers[old];
        let shape: Vec<Dim> = def.shape.iter().map(|&d| self.dim(d)).collect();
        let is_input = (self.is_there)(old);
        let new = self.to.buffers.push(BufferDef {
            name: format!("t{}", self.to.buffers.len()),
            ty: def.ty,
            shape,
            role: match is_input {
                true => Role::Input(self.inputs.len() as u32),
                false => Role::Temporary,
            },
        });
        match is_input {
            true => self.inputs.push(old),
            false => self.made.push((old, new)),
        }
        self.buffers.insert(old, new);
        new
    }

    fn dim(&mut self, dim: Dim) -> Dim {
        match *self.from.dim_def(dim) {
            DimDef::Const(n) => self.to.size(n),
            DimDef::Input(buffer, axis) => {
                let buffer = self.buffer(buffer);
                self.to.dim(DimDef::Input(buffer, axis))
            }
            DimDef::Value(e) => {
                let e = self.expr(e);
                self.to.dim(DimDef::Value(e))
            }
            DimDef::Number(e) => {
                let e = self.expr(e);
                self.to.dim(DimDef::Number(e))
            }
        }
    }

    fn var(&mut self, old: Var) -> Var {
        if let Some(&new) = self.vars.get(&old) {
            return new;
        }
        let new = self.to.var(self.from.vars[old]);
        self.vars.insert(old, new);
        new
    }

    /// Sites are numbered in the order of their first use, so that the same statements have the same numbers.
    fn outside(&mut self, outside: Outside, buffer: Buffer) -> Outside {
        let Outside::Error(old) = outside else {
            return outside;
        };
        if let Some(&new) = self.sites.get(&old) {
            return Outside::Error(new);
        }
        let new = self.to.sites.push(SiteDef {
            buffer,
            ..self.from.sites[old].clone()
        });
        self.sites.insert(old, new);
        Outside::Error(new)
    }

    fn expr(&mut self, old: Expr) -> Expr {
        if let Some(&new) = self.exprs.get(&old) {
            return new;
        }
        let from = self.from;
        let def = from.exprs[old].map_operands(|x| self.expr(x));
        let def = match def {
            ExprDef::Extent(dim) => ExprDef::Extent(self.dim(dim)),
            ExprDef::Var(var, ty) => ExprDef::Var(self.var(var), ty),
            ExprDef::Load {
                buffer,
                ty,
                index,
                outside,
            } => {
                let buffer = self.buffer(buffer);
                ExprDef::Load {
                    buffer,
                    ty,
                    index,
                    outside: self.outside(outside, buffer),
                }
            }
            other => other,
        };
        let new = self.to.exprs.add_as_is(def);
        self.exprs.insert(old, new);
        if self.keeps_functions
            && let Some((function, operands)) = from.exprs.function(old)
        {
            let operands = operands.iter().map(|&x| self.expr(x)).collect();
            self.to.exprs.note_function(new, *function, operands);
        }
        new
    }

    pub(crate) fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        let mut new = stmt.clone();
        visit_mut(std::slice::from_mut(&mut new), &mut |stmt| match stmt {
            Stmt::For(all) => {
                all.domain.iter_mut().for_each(|d| *d = self.dim(*d));
                all.cells = all.cells.map(|b| self.buffer(b));
            }
            Stmt::Store(store) => {
                store.index.iter_mut().for_each(|e| *e = self.expr(*e));
                store.value = self.expr(store.value);
                store.target = self.buffer(store.target);
                store.outside = self.outside(store.outside, store.target);
            }
            Stmt::Set(var, e) => {
                *e = self.expr(*e);
                *var = self.var(*var);
            }
            Stmt::Loop { var, lo, hi, .. } => {
                [lo, hi].into_iter().for_each(|e| *e = self.expr(*e));
                *var = self.var(*var);
            }
            Stmt::If(cond, ..) => *cond = self.expr(*cond),
            Stmt::Call(call) => {
                let buffers = call.inputs.iter_mut().chain(&mut call.outputs);
                buffers.for_each(|b| *b = self.buffer(*b));
            }
            Stmt::Break | Stmt::Continue => {}
            Stmt::Run(_) => unreachable!("kernels of the user's are statements of programs"),
            Stmt::Clear(_) => unreachable!("passes make it"),
        });
        new
    }
}
