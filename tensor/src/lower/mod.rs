//! A `for` as a kernel.
//!
//! Axes become a parallel nest, or a loop over active cells; buffers become array arguments, in the order of their first
//! use; buffers in trees become fields of the module; variables that the host set and sizes become scalar arguments. A
//! buffer without axes is an array of one element.

mod places;

use aerogel_base::ScalarType;
use aerogel_base::hash::LookupMap;
use aerogel_ir::{
    Arg, BinaryOp, Builder, FastMath, FieldData, Function, LoopAttrs, Module, NodeRef, Op,
    ParamData, ParamType, TreeId, Type, Value,
};
use indexmap::{IndexMap, IndexSet};

use crate::ir::{
    Buffer, Dim, Expr, ExprDef, For, Outside, Program, Role, Site, Stmt, Store, Var, exprs_of,
    visit,
};

/// A kernel, and what to hand to it: first the buffers, then the scalars.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The module, at stage `Structured`.
    pub module: Module,
    /// The buffers whose arrays it takes.
    pub buffers: Vec<Buffer>,
    /// The scalars that it takes.
    pub scalars: Vec<Parameter>,
    /// The trees of the program that the module's are.
    pub trees: Vec<TreeId>,
    /// The accesses whose indices it checks. A failed check (`AssertKind::TensorBounds`) names one by its number here: kernels
    /// of different programs are the same code.
    pub sites: Vec<Site>,
}

/// A scalar that a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parameter {
    /// The size of an axis, as `i32`.
    Extent(Dim),
    /// The value that the host set a variable to.
    Var(Var),
}

impl Parameter {
    /// Its type.
    fn ty(self, program: &Program) -> ScalarType {
        match self {
            Self::Extent(_) => ScalarType::I32,
            Self::Var(var) => program.vars[var],
        }
    }
}

/// The names in a `for`.
#[derive(Default)]
struct Names {
    /// Its buffers, and whether they are written; what lies in trees apart.
    buffers: IndexMap<Buffer, bool>,
    fields: IndexSet<Buffer>,
    /// The trees that it goes over, or in which something lies.
    trees: IndexSet<TreeId>,
    scalars: IndexSet<Parameter>,
    /// The variables that are each point's own.
    own: IndexSet<Var>,
}

impl Names {
    fn block(&mut self, body: &[Stmt]) {
        visit(body, &mut |stmt| match stmt {
            Stmt::Store(store) => {
                self.buffers.insert(store.target, true);
            }
            Stmt::Set(var, _) | Stmt::Loop { var, .. } => {
                self.own.insert(*var);
            }
            _ => {}
        });
    }

    fn exprs(&mut self, program: &Program, body: &[Stmt]) {
        program
            .exprs
            .visit(exprs_of(body), &mut |e| match &program.exprs[e] {
                ExprDef::Load { buffer, .. } => {
                    self.buffers.entry(*buffer).or_insert(false);
                }
                ExprDef::Extent(dim) => {
                    self.scalars.insert(Parameter::Extent(*dim));
                }
                ExprDef::Var(var, _) if !self.own.contains(var) => {
                    self.scalars.insert(Parameter::Var(*var));
                }
                _ => {}
            });
    }
}

impl Names {
    /// Takes what lies in trees out of the buffers.
    fn fields(&mut self, program: &Program, cells: Option<Buffer>) {
        let trees = &mut self.trees;
        let fields = &mut self.fields;
        self.buffers.retain(|&buffer, _| {
            let Some((tree, _)) = program.holder(buffer) else {
                return true;
            };
            trees.insert(tree);
            fields.insert(buffer);
            false
        });
        let walked = cells.and_then(|field| program.holder(field));
        trees.extend(walked.map(|(tree, _)| tree));
    }

    /// The number that a tree has in the module.
    fn tree(&self, tree: TreeId) -> TreeId {
        let number = self.trees.get_index_of(&tree).expect("it is named");
        TreeId::from_u32(number as u32)
    }

    /// Names trees and fields in a module.
    fn declare(&self, program: &Program, module: &mut Module) {
        for &tree in &self.trees {
            module.env.trees.push(program.trees[tree].clone());
        }
        for (k, &buffer) in self.fields.iter().enumerate() {
            let (tree, place) = program.place(buffer).expect("it lies in a tree");
            module.env.fields.push(FieldData {
                name: format!("f{k}"),
                elem: program.buffers[buffer].ty.into(),
                tree: self.tree(tree),
                places: vec![place],
                offset: Vec::new(),
                grad: None,
                dual: None,
            });
        }
    }
}

/// The kernel that a `for` is. Stores with `init` are not for it: the passes have taken them apart.
pub fn lower(program: &Program, all: &For, name: &str, fast_math: FastMath) -> Kernel {
    let mut names = Names::default();
    names.block(&all.body);
    names.exprs(program, &all.body);
    names.fields(program, all.cells);
    for &dim in &all.domain {
        if program.const_dim(dim).is_none() {
            names.scalars.insert(Parameter::Extent(dim));
        }
    }
    let mut func = Function::new(name, true);
    for (&buffer, &written) in &names.buffers {
        let def = &program.buffers[buffer];
        // What the user has named keeps its name in messages; other names would tell equal kernels apart.
        let is_given = matches!(def.role, Role::Input(_)) && !is_numbered(&def.name);
        let name = match is_given {
            true => def.name.clone(),
            false => format!("t{}", func.params.len()),
        };
        func.params.push(ParamData {
            name,
            ty: ParamType::Array {
                elem: def.ty.into(),
                ndim: def.shape.len().max(1) as u32,
                read_only: !written,
            },
            of: None,
        });
    }
    for &scalar in &names.scalars {
        let ty = scalar.ty(program);
        func.params.push(ParamData {
            name: format!("s{}", func.params.len()),
            ty: ParamType::Value(ty.into()),
            of: None,
        });
    }
    let mut module = Module::default();
    module.env.fast_math = fast_math;
    names.declare(program, &mut module);
    let body = func.body;
    let mut lower = Lower {
        program,
        names: &names,
        b: Builder::new(&mut func, body),
        scalars: LookupMap::default(),
        vars: LookupMap::default(),
        axes: Vec::new(),
        domain: &all.domain,
        guarded: LookupMap::default(),
        sites: IndexSet::new(),
        scopes: vec![LookupMap::default()],
    };
    lower.all(all);
    let sites = lower.sites.into_iter().collect();
    module.funcs.push(func);
    Kernel {
        module,
        buffers: names.buffers.keys().copied().collect(),
        scalars: names.scalars.iter().copied().collect(),
        trees: names.trees.iter().copied().collect(),
        sites,
    }
}

/// Whether a name is one that buffers without a name have.
fn is_numbered(name: &str) -> bool {
    let number = name.strip_prefix('t');
    number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}

struct Lower<'p, 'f> {
    program: &'p Program,
    names: &'p Names,
    b: Builder<'f>,
    scalars: LookupMap<Parameter, Value>,
    /// The storage of each variable that is the point's own.
    vars: LookupMap<Var, Value>,
    axes: Vec<Value>,
    domain: &'p [Dim],
    /// Whether expressions have loads that choices protect.
    guarded: LookupMap<Expr, bool>,
    /// The accesses whose indices are checked.
    sites: IndexSet<Site>,
    /// Expressions that have a value: of the statement at hand, and of the branches around.
    scopes: Vec<LookupMap<Expr, Value>>,
}

impl Lower<'_, '_> {
    fn all(&mut self, all: &For) {
        let n_buffers = self.names.buffers.len();
        for (k, &scalar) in self.names.scalars.iter().enumerate() {
            let arg = Arg::from_u32((n_buffers + k) as u32);
            let ty = scalar.ty(self.program);
            let value = self.b.value(Op::Arg { arg }, ty.into());
            self.scalars.insert(scalar, value);
        }
        if all.domain.is_empty() {
            self.point(&all.body);
        } else {
            self.points(all);
        }
        self.b.effect(Op::Return { values: Vec::new() });
    }

    fn points(&mut self, all: &For) {
        let hi: Vec<Value> = all.domain.iter().map(|&d| self.extent(d)).collect();
        let zero = self.b.i32(0);
        let lo = vec![zero; hi.len()];
        let body = self.b.func.new_region(&vec![Type::I32; hi.len()]);
        self.axes = self.b.func.regions[body].params.clone();
        let outer = std::mem::replace(&mut self.b.region, body);
        self.point(&all.body);
        self.b.terminate();
        self.b.region = outer;
        let attrs = LoopAttrs::default();
        let cells = all.cells.and_then(|field| self.program.holder(field));
        self.b.effect(match cells {
            Some((tree, node)) => {
                let tree = self.names.tree(tree);
                let node = NodeRef { tree, node };
                Op::ParallelCells { node, attrs, body }
            }
            None => Op::Parallel {
                lo,
                hi,
                attrs,
                body,
            },
        });
    }

    fn point(&mut self, body: &[Stmt]) {
        for &var in &self.names.own {
            let place = self.b.local(self.program.vars[var].into());
            self.vars.insert(var, place);
        }
        self.block(body);
    }

    fn extent(&mut self, dim: Dim) -> Value {
        match self.program.const_dim(dim) {
            Some(n) => self.b.i32(n as i32),
            None => *self
                .scalars
                .get(&Parameter::Extent(dim))
                .expect("it is named"),
        }
    }

    /// Statements of one region. An expression's value holds for one statement: what it loads may change.
    fn block(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.scopes = vec![LookupMap::default()];
            self.stmt(stmt);
            if matches!(stmt, Stmt::Break | Stmt::Continue) {
                return;
            }
        }
    }

    fn region(&mut self, params: &[Type], body: &[Stmt], var: Option<Var>) -> aerogel_ir::Region {
        let region = self.b.func.new_region(params);
        let outer = std::mem::replace(&mut self.b.region, region);
        if let Some(var) = var {
            let counter = self.b.func.regions[region].params[0];
            let place = *self.vars.get(&var).expect("it is the point's own");
            self.b.store(place, counter);
        }
        self.block(body);
        self.b.terminate();
        self.b.region = outer;
        region
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Store(store) => self.store(store),
            Stmt::Set(var, e) => {
                let value = self.expr(*e);
                let place = *self.vars.get(var).expect("it is the point's own");
                self.b.store(place, value);
            }
            Stmt::Loop {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let [lo, hi] = [self.expr(*lo), self.expr(*hi)];
                let step = self.b.i32(*step);
                let body = self.region(&[Type::I32], body, Some(*var));
                let init = Vec::new();
                self.b.effect(Op::For {
                    lo,
                    hi,
                    step,
                    init,
                    body,
                });
            }
            Stmt::If(cond, then, otherwise) => {
                let cond = self.expr(*cond);
                let then = self.region(&[], then, None);
                let otherwise = self.region(&[], otherwise, None);
                self.b.effect(Op::If {
                    cond,
                    then,
                    otherwise,
                });
            }
            Stmt::Break => {
                let values = Vec::new();
                self.b.effect(Op::Break { values });
            }
            Stmt::Continue => {
                let values = Vec::new();
                self.b.effect(Op::Continue { values });
            }
            Stmt::For(_) | Stmt::Call(_) | Stmt::Run(_) | Stmt::Clear(_) => {
                unreachable!("the verifier keeps them out of a `for`")
            }
        }
    }

    fn store(&mut self, store: &Store) {
        let value = self.expr(store.value);
        let (at, inside) = self.place(store.target, &store.index, store.outside);
        let accum = store.accum;
        let write = |b: &mut Builder<'_>| {
            let ty = b.func.ty(value);
            let place = b.value(at, ty.to_ref().expect("a scalar"));
            match accum {
                None => b.store(place, value),
                Some(accum) => {
                    let op = accum.atomic();
                    b.value(Op::Atomic { op, place, value }, ty);
                }
            }
        };
        match inside {
            None => write(&mut self.b),
            Some(inside) => {
                self.b.if_(inside, &[], write, |_| {});
            }
        }
    }

    /// Values of branches are computed inside them: a scope that ends with the branch.
    fn known(&self, e: Expr) -> Option<Value> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(&e).copied())
    }

    fn expr(&mut self, e: Expr) -> Value {
        if let Some(known) = self.known(e) {
            return known;
        }
        let ty: Type = self.program.exprs.ty(e).into();
        let value = match self.program.exprs[e].clone() {
            ExprDef::Const(value) => self.b.constant(value),
            ExprDef::Axis(k) => self.axes[k as usize],
            ExprDef::Var(var, _) => match self.vars.get(&var) {
                Some(&place) => self.b.load(place),
                None => *self.scalars.get(&Parameter::Var(var)).expect("it is named"),
            },
            ExprDef::Extent(dim) => self.extent(dim),
            ExprDef::Load {
                buffer,
                index,
                outside,
                ..
            } => {
                let (at, inside) = self.place(buffer, &index, outside);
                let place = self.b.value(at, ty.to_ref().expect("a scalar"));
                let value = self.b.load(place);
                match inside {
                    None => value,
                    Some(inside) => {
                        let zero = aerogel_base::Scalar::zero(self.program.exprs.ty(e));
                        let zero = self.b.constant(zero);
                        self.b.select(inside, value, zero)
                    }
                }
            }
            ExprDef::Unary(op, x) => {
                let x = self.expr(x);
                self.b.unary(op, x)
            }
            ExprDef::Binary(op, lhs, rhs) => {
                let dim = (op == BinaryOp::Mod).then(|| self.dim_of(rhs)).flatten();
                let turned = dim.and_then(|dim| self.turned(lhs, dim));
                turned.unwrap_or_else(|| {
                    let [lhs, rhs] = [self.expr(lhs), self.expr(rhs)];
                    self.b.binary(op, lhs, rhs)
                })
            }
            ExprDef::Compare(op, lhs, rhs) => {
                let [lhs, rhs] = [self.expr(lhs), self.expr(rhs)];
                self.b.compare(op, lhs, rhs)
            }
            ExprDef::Select(cond, on_true, on_false) => self.choice(cond, on_true, on_false),
            ExprDef::Cast(x, _) => {
                let x = self.expr(x);
                self.b.cast(x, ty)
            }
            ExprDef::Bitcast(x, _) => {
                let x = self.expr(x);
                self.b.value(Op::Bitcast { x }, ty)
            }
        };
        self.scopes.last_mut().expect("a scope").insert(e, value);
        value
    }

    /// One of two values. A branch that reads memory at indices that may be outside runs only where it is chosen.
    fn choice(&mut self, cond: Expr, on_true: Expr, on_false: Expr) -> Value {
        let cond = self.expr(cond);
        if !self.is_guarded(on_true) && !self.is_guarded(on_false) {
            let [on_true, on_false] = [self.expr(on_true), self.expr(on_false)];
            return self.b.select(cond, on_true, on_false);
        }
        // What both compute is computed once, or a chain of choices would double at each.
        let (ours, theirs) = (self.certain(on_true), self.certain(on_false));
        for &shared in ours.iter().filter(|e| theirs.contains(*e)) {
            self.expr(shared);
        }
        let ty: Type = self.program.exprs.ty(on_true).into();
        let mut regions = [on_true, on_false].map(|e| {
            let region = self.b.func.new_region(&[]);
            let outer = std::mem::replace(&mut self.b.region, region);
            self.scopes.push(LookupMap::default());
            let value = self.expr(e);
            self.scopes.pop();
            self.b.yields(vec![value]);
            self.b.region = outer;
            region
        });
        let [then, otherwise] = regions.each_mut().map(|r| *r);
        let op = Op::If {
            cond,
            then,
            otherwise,
        };
        self.b.value(op, ty)
    }

    /// Whether an expression has loads that a choice protects: whose indices may be outside where it is not chosen.
    fn is_guarded(&mut self, e: Expr) -> bool {
        if let Some(&known) = self.guarded.get(&e) {
            return known;
        }
        let def = &self.program.exprs[e];
        let mut operands = Vec::new();
        def.operands(|x| operands.push(x));
        let own = match def {
            ExprDef::Load {
                buffer,
                index,
                outside: Outside::Never | Outside::Error(_),
                ..
            } => {
                let mut all = index.iter().enumerate();
                !all.all(|(axis, &i)| self.is_inside(*buffer, axis, i))
            }
            _ => false,
        };
        let guarded = operands
            .into_iter()
            .fold(own, |any, x| self.is_guarded(x) || any);
        self.guarded.insert(e, guarded);
        guarded
    }

    /// The subexpressions that are always computed, operands first: all but those guarded by `select`.
    fn certain(&mut self, root: Expr) -> IndexSet<Expr> {
        let mut found = IndexSet::new();
        let mut stack = vec![(root, false)];
        let mut seen = IndexSet::new();
        while let Some((e, ready)) = stack.pop() {
            if ready {
                found.insert(e);
            } else if self.known(e).is_none() && seen.insert(e) {
                stack.push((e, true));
                match self.program.exprs[e] {
                    ExprDef::Select(cond, a, b) if self.is_guarded(a) || self.is_guarded(b) => {
                        stack.push((cond, false));
                    }
                    ref def => def.operands(|x| stack.push((x, false))),
                }
            }
        }
        found
    }
}
