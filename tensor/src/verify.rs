//! What every program keeps to.

use aerogel_base::ScalarType;

use crate::expr::{Expr, ExprDef};
use crate::program::{Buffer, Call, Dim, DimDef, For, Library, Program, Stmt, Store};

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
/// What is wrong: a bug of whoever wrote the program.
pub fn verify(program: &Program) -> Result<(), String> {
    let check = Check { program };
    for dim in 0..program.dims.len() as u32 {
        if let DimDef::Value(e) = program.dim_def(Dim::from_u32(dim)) {
            check.expr(*e, None)?;
        }
    }
    let outermost = At {
        domain: None,
        in_loop: false,
    };
    check.block(&program.body, outermost)
}

struct Check<'p> {
    program: &'p Program,
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

impl<'p> Check<'p> {
    fn block(&self, body: &'p [Stmt], at: At<'p>) -> Result<(), String> {
        body.iter().try_for_each(|stmt| self.stmt(stmt, at))
    }

    fn typed(&self, e: Expr, ty: ScalarType, at: At<'_>) -> Result<(), String> {
        self.expr(e, at.domain)?;
        let is = self.program.exprs.ty(e);
        ensure(is == ty, || format!("{e} is {is}, not {ty}"))
    }

    fn stmt(&self, stmt: &'p Stmt, at: At<'p>) -> Result<(), String> {
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
        }
    }

    fn all(&self, all: &'p For, at: At<'p>) -> Result<(), String> {
        ensure(at.domain.is_none(), || "a `for` inside a `for`".to_owned())?;
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
        for (k, stmt) in all.body.iter().enumerate() {
            let Stmt::Store(store) = stmt else {
                return Err("`init` beside what is no store".to_owned());
            };
            let mut others = all.body.iter().enumerate().filter(|(at, _)| *at != k);
            let again =
                others.any(|(_, s)| matches!(s, Stmt::Store(s) if s.target == store.target));
            let mut reads = false;
            for stmt in &all.body {
                let mut roots = Vec::new();
                stmt.exprs(|e| roots.push(e));
                let exprs = &self.program.exprs;
                exprs.visit(roots, &mut |e| {
                    reads |= matches!(&exprs[e], ExprDef::Load { buffer, .. } if *buffer == store.target);
                });
            }
            ensure(!store.init || !(again || reads), || {
                format!("{} is touched beside its `init`", store.target)
            })?;
        }
        Ok(())
    }

    fn store(&self, store: &Store, at: At<'_>) -> Result<(), String> {
        ensure(at.domain.is_some(), || "a store outside a `for`".to_owned())?;
        ensure(store.accum.is_some() || !store.init, || {
            "`init` of a plain store".to_owned()
        })?;
        self.element(store.target, &store.index, at)?;
        self.typed(store.value, self.program.buffers[store.target].ty, at)
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
        let axes = |b: &Buffer| self.program.buffers[*b].shape.len();
        let (n_in, n_out) = match call.library {
            Library::MatMul => (2, 1),
            Library::Sort { .. } => (1, 2),
        };
        ensure(
            (call.inputs.len(), call.outputs.len()) == (n_in, n_out),
            || "a library with other operands".to_owned(),
        )?;
        let n = axes(&call.outputs[0]);
        let mut all = call.inputs.iter().chain(&call.outputs);
        let enough = n
            >= if call.library == Library::MatMul {
                2
            } else {
                1
            };
        ensure(enough && all.all(|b| axes(b) == n), || {
            "a library with operands of other numbers of axes".to_owned()
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
                ..
            } => {
                let def = &self.program.buffers[*buffer];
                let i32s = index.iter().all(|&x| ty(x) == ScalarType::I32);
                def.ty == *is && def.shape.len() == index.len() && i32s
            }
            ExprDef::Unary(op, x) => op.takes(ty(*x)),
            ExprDef::Binary(op, a, b) => ty(*a) == ty(*b) && op.takes(ty(*a)),
            ExprDef::Compare(_, a, b) => ty(*a) == ty(*b),
            ExprDef::Select(c, a, b) => ty(*c) == ScalarType::U1 && ty(*a) == ty(*b),
            ExprDef::Cast(..) => true,
            ExprDef::Bitcast(x, to) => ty(*x).bits() == to.bits(),
        };
        ensure(holds, || format!("{e} is {:?}", exprs[e]))
    }
}
