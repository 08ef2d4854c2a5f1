//! The verifier: invariants of every program.

use std::cell::Cell;

use aerogel_base::ScalarType;
use indexmap::{IndexMap, IndexSet};

use super::expr::{Expr, ExprDef, Outside};
use super::ids::{Buffer, Dim, Var};
use super::library::{Call, Library};
use super::program::{DimDef, For, Program, Role, Stmt, Store};
use super::region::Run;
use super::rewrite::visit;
use super::spots::Spot;
use super::stage::Stage;

/// Where a statement stands.
#[derive(Clone, Copy)]
struct At<'p> {
    /// The domain of the `for` around, if there is one.
    domain: Option<&'p [Dim]>,
    /// Whether a loop of the same level is around.
    in_loop: bool,
}

/// Whether a program is one: types, numbers of axes, and where statements stand.
///
/// # Errors
/// The violated invariant: a bug of the author of the program.
pub fn verify(program: &Program) -> Result<(), String> {
    verify_spots(program).map_err(|(what, _)| what)
}

/// The same with the part of the program that breaks the rule.
pub(crate) fn verify_spots(program: &Program) -> Result<(), (String, Spot)> {
    let check = Check {
        program,
        spot: Cell::new(Spot::Stmt(0)),
        n_stmts: Cell::new(0),
    };
    check.whole().map_err(|what| (what, check.spot.get()))
}

/// Whether a program is one, and holds only what a stage has.
///
/// # Errors
/// The violated invariant: a bug of the last pass.
pub fn verify_at(program: &Program, stage: Stage) -> Result<(), String> {
    verify(program)?;
    let mut roles = program.buffers.iter();
    let in_tree = roles.find(|(_, def)| matches!(def.role, Role::Scratch(..)));
    if let Some((buffer, _)) = in_tree.filter(|_| stage < Stage::Placed) {
        return Err(format!("{buffer} lies in a tree of its own at {stage:?}"));
    }
    let mut outcome = Ok(());
    visit(&program.body, &mut |stmt| {
        if let Stmt::Store(store) = stmt
            && store.init
            && stage >= Stage::Reduced
        {
            outcome = Err(format!("`init` of {} at {stage:?}", store.target));
        }
    });
    outcome
}

struct Check<'p> {
    program: &'p Program,
    /// The part that is looked at.
    spot: Cell<Spot>,
    /// How many statements have been looked at.
    n_stmts: Cell<usize>,
}

/// The variables that the host sets, and those that points do.
fn sets_of(body: &[Stmt], in_for: bool, sets: &mut [IndexSet<Var>; 2]) {
    for stmt in body {
        if let Stmt::Set(var, _) | Stmt::Loop { var, .. } = stmt {
            sets[usize::from(in_for)].insert(*var);
        }
        let in_for = in_for || matches!(stmt, Stmt::For(_));
        for inside in stmt.inside() {
            sets_of(inside, in_for, sets);
        }
    }
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

impl<'p> Check<'p> {
    fn whole(&self) -> Result<(), String> {
        for dim in (0..self.program.dims.len() as u32).map(Dim::from_u32) {
            self.spot.set(Spot::Dim(dim));
            self.dim(dim)?;
        }
        self.apart()?;
        self.fields()?;
        let outermost = At {
            domain: None,
            in_loop: false,
        };
        self.block(&self.program.body, outermost)
    }

    /// Sizes are numbers, sizes of inputs, or arithmetic on them, so that each has one value while a program runs.
    fn dim(&self, dim: Dim) -> Result<(), String> {
        let program = self.program;
        match program.dim_def(dim) {
            DimDef::Const(_) => Ok(()),
            DimDef::Input(buffer, axis) => {
                let def = &program.buffers[*buffer];
                let is_input =
                    matches!(def.role, Role::Input(_)) && (*axis as usize) < def.shape.len();
                ensure(is_input, || {
                    format!("{dim} is not the size of an axis of an input")
                })
            }
            DimDef::Value(e) | DimDef::Number(e) => {
                self.expr(*e, None)?;
                let mut fixed = program.exprs.ty(*e) == ScalarType::I32;
                program.exprs.visit([*e], &mut |x| {
                    fixed &= match &program.exprs[x] {
                        ExprDef::Load { .. } => false,
                        ExprDef::Var(var, _) => program.given.contains(var),
                        _ => true,
                    };
                });
                ensure(fixed, || {
                    format!("{dim} is not computed from sizes of inputs and given numbers only")
                })
            }
        }
    }

    /// A variable is the host's or the points', not both.
    fn apart(&self) -> Result<(), String> {
        let mut sets = [IndexSet::new(), IndexSet::new()];
        sets_of(&self.program.body, false, &mut sets);
        let both = sets[0].iter().find(|var| sets[1].contains(*var));
        match both {
            Some(&var) => {
                self.spot.set(Spot::Var(var));
                Err(format!("{var} is set by the host and at points"))
            }
            None => Ok(()),
        }
    }

    /// What lies in trees are places, each named once, and a temporary is alone in its tree; of quantised ones, none shares
    /// an exponent, which a store to one would change for the others.
    fn fields(&self) -> Result<(), String> {
        let program = self.program;
        let mut seen = IndexSet::new();
        let n_given = program.n_given_trees();
        for (buffer, def) in program.buffers.iter() {
            let Some((tree, place)) = program.place(buffer) else {
                continue;
            };
            self.spot.set(Spot::Buffer(buffer));
            let is_given = (tree.as_u32() as usize) < n_given;
            ensure(is_given == matches!(def.role, Role::Field(..)), || {
                format!("{buffer} is in a tree of the other kind: those of fields come first")
            })?;
            let tree_there = (tree.as_u32() as usize) < program.trees.len();
            ensure(tree_there, || format!("{buffer} is in no tree"))?;
            let tree = &program.trees[tree];
            ensure((place.as_u32() as usize) < tree.nodes().count(), || {
                format!("{buffer} is no node")
            })?;
            let is_place = tree[place].kind.scalar() == Some(def.ty);
            ensure(is_place, || format!("{buffer} is no place of {}", def.ty))?;
            let extents = def.shape.iter().map(|&d| program.const_dim(d));
            let same = extents.eq(tree.shape(place).into_iter().map(Some));
            ensure(same, || format!("{buffer} and its place differ in shape"))?;
            ensure(tree.exponent_group(place).is_empty(), || {
                format!("{buffer} shares an exponent")
            })?;
            ensure(is_given || tree.places().count() == 1, || {
                format!("{buffer} is not alone in its tree")
            })?;
            ensure(seen.insert(def.role), || format!("{buffer} is named twice"))?;
        }
        let is_field = |b: &&Buffer| program.holder(**b).is_some();
        match program.results.iter().find(is_field) {
            Some(field) => Err(format!("{field} is a result, and lies in a tree")),
            None => Ok(()),
        }
    }

    /// Stores of a `for` over active cells make no others of their tree active.
    fn stays(&self, cells: Buffer, body: &[Stmt]) -> Result<(), String> {
        let walked = self.program.sparse_nodes(cells);
        for stmt in body {
            if let Stmt::Store(store) = stmt {
                let changed = self.program.activates(Some(cells), store);
                let apart = changed.iter().all(|node| !walked.contains(node));
                ensure(apart, || {
                    format!(
                        "a store to {} among the cells of {cells} may make others active",
                        store.target
                    )
                })?;
            }
            for inside in stmt.inside() {
                self.stays(cells, inside)?;
            }
        }
        Ok(())
    }

    fn block(&self, body: &'p [Stmt], at: At<'p>) -> Result<(), String> {
        body.iter().try_for_each(|stmt| self.stmt(stmt, at))
    }

    fn typed(&self, e: Expr, ty: ScalarType, at: At<'_>) -> Result<(), String> {
        self.expr(e, at.domain)?;
        let is = self.program.exprs.ty(e);
        ensure(is == ty, || format!("{e} is {is}, not {ty}"))
    }

    fn stmt(&self, stmt: &'p Stmt, at: At<'p>) -> Result<(), String> {
        self.spot.set(Spot::Stmt(self.n_stmts.get()));
        self.n_stmts.set(self.n_stmts.get() + 1);
        match stmt {
            Stmt::For(all) => self.all(all, at),
            Stmt::Store(store) => self.store(store, at),
            Stmt::Set(var, e) => self.typed(*e, self.program.vars[*var], at),
            Stmt::Loop {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let ty = self.program.vars[*var];
                ensure(ty == ScalarType::I32, || format!("{var} counts as {ty}"))?;
                ensure(*step != 0, || "a loop that does not get on".to_owned())?;
                self.typed(*lo, ScalarType::I32, at)?;
                self.typed(*hi, ScalarType::I32, at)?;
                let inside = At {
                    in_loop: true,
                    ..at
                };
                self.block(body, inside)
            }
            Stmt::If(cond, then, otherwise) => {
                self.typed(*cond, ScalarType::U1, at)?;
                self.block(then, at)?;
                self.block(otherwise, at)
            }
            Stmt::Break | Stmt::Continue => ensure(at.in_loop, || "no loop to leave".to_owned()),
            Stmt::Call(call) => self.call(call, at),
            Stmt::Run(run) => self.run(run, at),
            Stmt::Clear(buffer) => {
                let own = matches!(self.program.buffers[*buffer].role, Role::Scratch(..));
                ensure(own && at.domain.is_none(), || {
                    format!("{buffer} is no temporary in a tree that the host clears")
                })
            }
        }
    }

    fn all(&self, all: &'p For, at: At<'p>) -> Result<(), String> {
        ensure(at.domain.is_none(), || "a `for` inside a `for`".to_owned())?;
        if let Some(cells) = all.cells {
            let def = &self.program.buffers[cells];
            let in_tree = self.program.holder(cells).is_some() && !all.domain.is_empty();
            ensure(in_tree && def.shape == all.domain, || {
                format!("{cells} has no cells over this space")
            })?;
            self.stays(cells, &all.body)?;
        }
        let init = |s: &Stmt| matches!(s, Stmt::Store(store) if store.init);
        if all.body.iter().any(init) {
            self.inits(all)?;
        }
        let inside = At {
            domain: Some(&all.domain),
            in_loop: false,
        };
        self.block(&all.body, inside)
    }

    /// A `for` with `init` has stores alone, and each target of one is its own.
    fn inits(&self, all: &For) -> Result<(), String> {
        let mut targets: IndexMap<Buffer, (usize, bool)> = IndexMap::new();
        let mut roots = Vec::new();
        for stmt in &all.body {
            let Stmt::Store(store) = stmt else {
                return Err("`init` beside what is no store".to_owned());
            };
            let (n, init) = targets.entry(store.target).or_default();
            *n += 1;
            *init |= store.init;
            stmt.exprs(|e| roots.push(e));
        }
        let mut reads = IndexSet::new();
        let exprs = &self.program.exprs;
        exprs.visit(roots, &mut |e| {
            if let ExprDef::Load { buffer, .. } = &exprs[e] {
                reads.insert(*buffer);
            }
        });
        let mut all = targets.iter();
        let beside = all.find(|(b, (n, init))| *init && (*n > 1 || reads.contains(*b)));
        match beside {
            Some((buffer, _)) => Err(format!("{buffer} is touched beside its `init`")),
            None => Ok(()),
        }
    }

    fn store(&self, store: &Store, at: At<'_>) -> Result<(), String> {
        ensure(at.domain.is_some(), || "a store outside a `for`".to_owned())?;
        ensure(store.accum.is_some() || !store.init, || {
            "`init` of a plain store".to_owned()
        })?;
        let is_field = self.program.holder(store.target).is_some();
        ensure(!is_field || !store.init, || "`init` of a field".to_owned())?;
        let ty = self.program.buffers[store.target].ty;
        let takes = store.accum.is_none_or(|a| a.binary().takes(ty));
        ensure(takes, || format!("{:?} of {ty}", store.accum))?;
        ensure(self.is_known(store.outside), || {
            format!("a store to {} has no site", store.target)
        })?;
        self.element(store.target, &store.index, at)?;
        self.typed(store.value, self.program.buffers[store.target].ty, at)
    }

    fn is_known(&self, outside: Outside) -> bool {
        match outside {
            Outside::Error(site) => (site.as_u32() as usize) < self.program.sites.len(),
            _ => true,
        }
    }

    fn element(&self, buffer: Buffer, index: &[Expr], at: At<'_>) -> Result<(), String> {
        let n = self.program.buffers[buffer].shape.len();
        ensure(index.len() == n, || {
            format!("{} indices for {buffer}", index.len())
        })?;
        index
            .iter()
            .try_for_each(|&e| self.typed(e, ScalarType::I32, at))
    }

    fn call(&self, call: &Call, at: At<'_>) -> Result<(), String> {
        ensure(at.domain.is_none(), || "a call inside a `for`".to_owned())?;
        let mut all = call.inputs.iter().chain(&call.outputs);
        ensure(all.all(|b| self.program.holder(*b).is_none()), || {
            "a library with a field".to_owned()
        })?;
        let axes = |b: &Buffer| self.program.buffers[*b].shape.len();
        let (n_in, n_out) = match call.library {
            Library::MatMul => (2, 1),
            Library::MatMulRows => (3, 1),
            // The places are left out where they are not needed.
            Library::Sort { .. } if call.outputs.len() == 1 => (1, 1),
            Library::Sort { .. } => (1, 2),
            Library::Algebra(op) => match op.is_complex(call.inputs.len()) {
                Some(is_complex) => (call.inputs.len(), op.axes(is_complex).len()),
                None => (op.takes(), 0),
            },
            Library::Transform(op) => op.operands(),
            Library::Push => (2 + usize::from(call.mask().is_some()), 1),
            Library::Pop => (1 + usize::from(call.mask().is_some()), 2),
        };
        ensure(
            (call.inputs.len(), call.outputs.len()) == (n_in, n_out),
            || "a library with other operands".to_owned(),
        )?;
        let ty = |b: &Buffer| self.program.buffers[*b].ty;
        let types = match call.library {
            Library::MatMul | Library::MatMulRows => {
                let factors = &call.inputs[..2];
                factors.iter().all(|b| ty(b) == ty(&call.outputs[0]))
                    && call.inputs[2..].iter().all(|b| ty(b) == ScalarType::I32)
            }
            Library::Sort { .. } => {
                let mut places = call.outputs[1..].iter();
                ty(&call.inputs[0]) == ty(&call.outputs[0]) && places.all(|b| ty(b).is_int())
            }
            Library::Push | Library::Pop => {
                let mask = call.mask();
                let numbers = call.inputs.iter().filter(|b| Some(**b) != mask);
                let mut all = numbers.chain(&call.outputs);
                all.all(|b| ty(b) == ty(&call.outputs[0]))
                    && mask.is_none_or(|m| ty(&m) == ScalarType::U1)
            }
            Library::Algebra(_) | Library::Transform(_) => {
                let first = ty(&call.inputs[0]);
                let mut all = call.inputs.iter().chain(&call.outputs);
                matches!(first, ScalarType::F32 | ScalarType::F64) && all.all(|b| ty(b) == first)
            }
        };
        ensure(types, || {
            "a library with operands of other types".to_owned()
        })?;
        if let Library::Algebra(op) = call.library {
            let of_outputs = op.axes(n_in > op.takes());
            let batch = axes(&call.inputs[0]).checked_sub(2);
            let inputs = call.inputs.iter().map(|b| (b, 2));
            let mut all = inputs.chain(call.outputs.iter().zip(of_outputs));
            return ensure(
                all.all(|(b, own)| axes(b).checked_sub(own) == batch),
                || "matrices with another number of axes".to_owned(),
            );
        }
        if matches!(call.library, Library::Push | Library::Pop) {
            let history = call.outputs.last();
            return ensure(call.inputs.last() == history, || {
                "two histories at once".to_owned()
            });
        }
        let n = axes(&call.outputs[0]);
        let is_product = matches!(call.library, Library::MatMul | Library::MatMulRows);
        let (same, numbers) = match is_product {
            true => call.inputs.split_at(2),
            false => (&call.inputs[..], &[][..]),
        };
        let enough = n >= if is_product { 2 } else { 1 };
        let mut same = same.iter().chain(&call.outputs);
        let all = same.all(|b| axes(b) == n) && numbers.iter().all(|b| axes(b) == 0);
        ensure(enough && all, || {
            "a library with operands of other numbers of axes".to_owned()
        })
    }

    fn run(&self, run: &Run, at: At<'_>) -> Result<(), String> {
        ensure(at.domain.is_none(), || "a run inside a `for`".to_owned())?;
        let there = (run.region.as_u32() as usize) < self.program.regions.len();
        ensure(there, || format!("{} is not there", run.region))?;
        let n = self.program.regions[run.region].writes.len();
        ensure(n == run.arrays.len(), || {
            format!("{} takes {n} arrays", run.region)
        })?;
        let mut arrays = run.arrays.iter();
        ensure(arrays.all(|b| self.program.holder(*b).is_none()), || {
            "a field as an array".to_owned()
        })?;
        let own = |b: &Buffer| self.program.buffers[*b].role == Role::Temporary;
        let writes = &self.program.regions[run.region].writes;
        let mut written = run.arrays.iter().zip(writes).filter(|(_, w)| **w);
        ensure(written.all(|(b, _)| own(b)), || {
            "a run that writes to an input".to_owned()
        })?;
        let number = |b: &Buffer| {
            let def = &self.program.buffers[*b];
            def.role == Role::Temporary && def.shape.is_empty()
        };
        ensure(run.results.iter().all(number), || {
            "what is returned is a number".to_owned()
        })
    }

    fn expr(&self, root: Expr, domain: Option<&[Dim]>) -> Result<(), String> {
        let exprs = &self.program.exprs;
        let mut outcome = Ok(());
        exprs.visit([root], &mut |e| {
            if outcome.is_ok() {
                outcome = self.def(e, domain);
            }
        });
        outcome
    }

    fn def(&self, e: Expr, domain: Option<&[Dim]>) -> Result<(), String> {
        let exprs = &self.program.exprs;
        let ty = |x: Expr| exprs.ty(x);
        let holds = match &exprs[e] {
            ExprDef::Const(_) | ExprDef::Extent(_) => true,
            ExprDef::Axis(k) => domain.is_some_and(|d| (*k as usize) < d.len()),
            ExprDef::Var(var, is) => self.program.vars[*var] == *is,
            ExprDef::Load {
                buffer,
                ty: is,
                index,
                outside,
            } => {
                let def = &self.program.buffers[*buffer];
                let i32s = index.iter().all(|&x| ty(x) == ScalarType::I32);
                // The host has no way into trees.
                let is_near = domain.is_some() || self.program.holder(*buffer).is_none();
                def.ty == *is
                    && def.shape.len() == index.len()
                    && i32s
                    && is_near
                    && self.is_known(*outside)
            }
            ExprDef::Unary(op, x) => op.takes(ty(*x)),
            ExprDef::Binary(op, a, b) => ty(*a) == ty(*b) && op.takes(ty(*a)),
            ExprDef::Compare(_, a, b) => ty(*a) == ty(*b),
            ExprDef::Select(c, a, b) => ty(*c) == ScalarType::U1 && ty(*a) == ty(*b),
            ExprDef::Cast(..) => true,
            ExprDef::Bitcast(x, to) => ty(*x).bits() == to.bits(),
        };
        ensure(holds, || self.wrong(e))
    }

    /// What is wrong with an expression.
    fn wrong(&self, e: Expr) -> String {
        let exprs = &self.program.exprs;
        let mut types = Vec::new();
        exprs[e].operands(|x| types.push(exprs.ty(x).name()));
        let types = types.join(", ");
        match &exprs[e] {
            ExprDef::Axis(k) => format!("`i{k}` is an index along an axis that does not exist"),
            ExprDef::Unary(op, _) => format!("`{op}` does not take `{types}`"),
            ExprDef::Binary(op, ..) => format!("`{op}` does not take `{types}`"),
            ExprDef::Compare(op, ..) => format!("`{op}` does not take `{types}`"),
            ExprDef::Select(..) => format!("`select` does not take `{types}`"),
            ExprDef::Bitcast(_, to) => format!("`bitcast.{to}` does not take `{types}`"),
            ExprDef::Load { buffer, .. } => {
                let n = self.program.buffers[*buffer].shape.len();
                format!("{buffer} has {n} axes, and its indices are `{types}`")
            }
            other => format!("{e} is {other:?}"),
        }
    }
}
