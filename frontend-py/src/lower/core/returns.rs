//! `return`: of a kernel or a real function it is an instruction; a `ti.func` is part of its caller, so there it is
//! control flow.
//!
//! ```text
//! for i in range(n):              for ..:
//!     if x[i] == v: return i          if x[i] == v: result = i; returned = true; break
//! return -1                ==>    if not returned: result = -1
//! ```
//! Where every `return` ends an arm of nested `if`s the arms yield the result, without a flag.

use aerogel_base::{ErrorKind, Scalar, ScalarType};
use aerogel_ir::{Op, Region, Type, Value};

use crate::ast::{Expr, ExprKind, FuncDef, Returns, Stmt, StmtKind};
use crate::lower::core::stmt::Flow;
use crate::lower::values::structs::struct_type;
use crate::lower::values::{Origin, Place, Val};
use crate::lower::{Control, Exit, Lower, Res};

impl Exit {
    pub(crate) fn new(entry: (Region, usize), def: &FuncDef<'_>) -> Self {
        Self {
            entry,
            returned: None,
            result: None,
            depths: Vec::new(),
            flagged: !joins(def.body),
        }
    }

    /// How many statements that return have been lowered.
    pub(crate) fn n_returns(&self) -> usize {
        self.depths.len()
    }
}

impl<'a> Lower<'a, '_> {
    /// Whether the function being lowered is the kernel, or a real function, itself.
    pub(crate) fn is_outermost(&self) -> bool {
        self.state.frames.len() == 1
    }

    /// Whether an `if` that returns is lowered by `returning_if`.
    pub(crate) fn joins_arms(&mut self) -> bool {
        !self.is_outermost() && !self.frame().exit.flagged
    }

    pub(crate) fn return_stmt(&mut self, value: Option<&Expr<'a>>) -> Res<Flow> {
        let base = self.frame().control_base;
        let inner: Vec<Control> = self.state.control[base..].to_vec();
        if inner.contains(&Control::Parallel { breakable: false }) {
            return self.fail_noted(
                ErrorKind::Syntax,
                "E0114",
                "`return` inside a parallel loop is not supported",
                "its iterations run at the same time: keep the result in a variable and return it at the end, or write \
                 `ti.loop_config(serialize=True)` before the loop",
            );
        }
        let here = self.range;
        let val = match value {
            Some(value) => {
                let val = self.expr(value)?;
                self.settle(val)?
            }
            None => Val::none(),
        };
        self.range = here;
        let val = if val.is_none() { None } else { Some(val) };
        if self.is_outermost() {
            self.leave_function(val)?;
            return Ok(Flow::Left);
        }
        let is_plain = |control: &Control| *control == Control::Static;
        if !self.frame().exit.flagged || inner.iter().all(is_plain) {
            return Ok(Flow::Return(val));
        }
        self.store_result(val)?;
        match inner.iter().rev().find(|c| c.is_loop()) {
            Some(_) => {
                self.effect(Op::Break { values: Vec::new() });
                Ok(Flow::Ended)
            }
            None => Ok(Flow::Exited),
        }
    }

    /// Leaves the kernel or the real function with its result.
    fn leave_function(&mut self, val: Option<Val>) -> Res<()> {
        let mut values = match (self.state.result.clone(), val) {
            (None, None) => Vec::new(),
            (None, Some(_)) => {
                let what = self.what_it_is();
                return self.fail_noted(
                    ErrorKind::Syntax,
                    "E0117",
                    format!("the {what} returns a value but its result has no type"),
                    format!("annotate it: `def {what}(...) -> ti.f32:`"),
                );
            }
            (Some(_), None) => {
                let what = self.what_it_is();
                return self.fail(
                    ErrorKind::Syntax,
                    "E0118",
                    format!("the {what} has a result type but this `return` has no value"),
                );
            }
            (Some(ty), Some(val)) => {
                let mut values = Vec::new();
                self.results(&ty, &val, &mut values)?;
                values
            }
        };
        for place in self.state.references.clone() {
            values.push(self.builder().load(place));
        }
        // A function whose last act this is can be inlined.
        let is_last = self.state.region == self.state.func.body && !self.state.func.is_kernel;
        self.effect(match is_last {
            true => Op::Yield { values },
            false => Op::Return { values },
        });
        Ok(())
    }

    fn what_it_is(&self) -> &'static str {
        if self.state.func.is_kernel {
            "kernel"
        } else {
            "function"
        }
    }

    /// Ends the body of the kernel or the real function.
    pub(crate) fn finish_function(&mut self, def: &FuncDef<'a>, flow: &Flow) -> Res<()> {
        if matches!(flow, Flow::Left) {
            return Ok(());
        }
        if self.state.result.is_none() {
            return self.leave_function(None);
        }
        self.reports.any()?;
        if !completes(def.body) {
            self.unreachable();
            return Ok(());
        }
        let what = self.what_it_is();
        let message = if returns(def.body) {
            format!("the {what} has a result type but does not return on every path")
        } else {
            format!("the {what} has a result type but does not return")
        };
        self.fail(ErrorKind::Syntax, "E0118", message)
    }

    /// Ends a region whose end is not reached.
    pub(crate) fn unreachable(&mut self) {
        let values = self.state.func.results.clone();
        let values = values
            .into_iter()
            .map(|ty| self.value(Op::Undef {}, ty))
            .collect();
        self.effect(Op::Return { values });
    }

    /// Stores what an inlined function returns, and that it has returned.
    fn store_result(&mut self, val: Option<Val>) -> Res<()> {
        let exit = self.frame().exit.clone();
        let result = match (&val, &exit.result) {
            (Some(val), None) if exit.depths.is_empty() => {
                Some(self.storage_like(exit.entry, val)?)
            }
            (Some(val), Some(result)) => {
                let val = match struct_type(result) {
                    Some(ty) => self.coerce(val, Some(&crate::host::Known::StructType(ty)))?,
                    None => val.clone(),
                };
                // The first `return` says what type the result has.
                if let Some(ty) = self.numeric_type(result) {
                    self.warn_of_loss("`return`", ty, &val);
                }
                self.store_val(result, &val)?;
                Some(result.clone())
            }
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return self.fail(
                    ErrorKind::Syntax,
                    "E0116",
                    "only some of the `return`s of this function have a value",
                );
            }
        };
        if let (Some(val), Some(result), None) = (&val, &result, &exit.result) {
            self.store_val(result, val)?;
        }
        let returned = match exit.returned {
            Some(flag) => flag,
            None => self.storage(exit.entry, Type::BOOL),
        };
        let yes = self.builder().constant(Scalar::bool(true));
        self.builder().store(returned, yes);
        let depth = self.n_loops();
        let exit = &mut self.frame().exit;
        exit.returned = Some(returned);
        exit.result = result;
        exit.depths.push(depth);
        Ok(())
    }

    /// How many loops of the function that is being inlined are around.
    fn n_loops(&mut self) -> usize {
        let base = self.frame().control_base;
        self.state.control[base..]
            .iter()
            .filter(|c| c.is_loop())
            .count()
    }

    /// Zeroed storage that is made at a place that has been passed.
    fn storage(&mut self, (region, at): (Region, usize), ty: Type) -> Value {
        let span = self.span();
        let ty = ty.to_ref().expect("a value's type");
        let inst = self.state.func.new_inst(Op::Local {}, &[ty], span);
        self.state.func.regions[region].insts.insert(at, inst);
        self.state.func.insts[inst].results[0]
    }

    /// Storage for values like this one, made at a place that has been passed.
    pub(crate) fn storage_like(&mut self, at: (Region, usize), val: &Val) -> Res<Val> {
        if let Some((ty, members)) = self.struct_parts(val)? {
            let members = members
                .iter()
                .map(|member| self.storage_like(at, member))
                .collect::<Res<Vec<_>>>()?;
            return Ok(Val::Struct(ty, members.into()));
        }
        if let (Some(kind), Some(items)) = (val.kind(), val.items()) {
            let items = items
                .iter()
                .map(|item| self.storage_like(at, item))
                .collect::<Res<Vec<_>>>()?;
            return Ok(Val::Seq(items.into(), kind));
        }
        let ty = self.expect_numeric(val)?;
        let place = self.storage(at, ty);
        let in_parallel = self.in_parallel();
        let origin = Origin::Local { in_parallel };
        Ok(Val::Place(Place::Ref { place, origin }))
    }

    /// What the function that has been inlined returns.
    pub(crate) fn returned_value(&mut self, def: FuncDef<'a>, flow: Flow) -> Res<Val> {
        if let Flow::Return(val) = flow {
            return Ok(val.unwrap_or(Val::none()));
        }
        let Some(result) = self.frame().exit.result.clone() else {
            return Ok(Val::none());
        };
        if self.reports.any().is_ok() && !matches!(flow, Flow::Exited) && completes(def.body) {
            self.range = def.range;
            return self.fail(
                ErrorKind::Syntax,
                "E0116",
                format!("`{}` does not return a value on every path", def.name),
            );
        }
        self.settle(result)
    }

    /// Continues only if the inlined function has not returned, after a statement in which it may have: returns whether
    /// control is inside an arm, which `rest` is then lowered into.
    pub(crate) fn after_return(
        &mut self,
        n_before: usize,
        rest: impl FnOnce(&mut Self) -> Flow,
    ) -> Flow {
        let depth = self.n_loops();
        let in_loop = depth > 0;
        let exit = &self.frame().exit;
        // What returned in this very loop has left it.
        let may_go_on = |&other: &usize| !in_loop || other > depth;
        let may_have = exit.depths[n_before..].iter().any(may_go_on);
        let Some(flag) = exit.returned.filter(|_| may_have) else {
            return rest(self);
        };
        let cond = self.builder().load(flag);
        let then = self.state.func.new_region(&[]);
        let otherwise = self.state.func.new_region(&[]);
        let flow = if in_loop {
            self.within(then, |lower| {
                lower.effect(Op::Break { values: Vec::new() });
            });
            Flow::Next
        } else {
            self.within(then, |lower| lower.builder().yields(Vec::new()));
            self.state.control.push(Control::Guard);
            self.scopes().enter();
            let flow = self.within(otherwise, rest_of(rest));
            self.scopes().leave();
            self.state.control.pop();
            self.end_if(cond, then, otherwise);
            return flow;
        };
        self.within(otherwise, |lower| lower.builder().yields(Vec::new()));
        self.end_if(cond, then, otherwise);
        match flow {
            Flow::Next => rest(self),
            flow => flow,
        }
    }

    fn end_if(&mut self, cond: Value, then: Region, otherwise: Region) {
        self.effect(Op::If {
            cond,
            then,
            otherwise,
        });
    }

    /// An `if` with a `return` in an arm: the statements after it become part of the arm that continues.
    pub(crate) fn returning_if(
        &mut self,
        test: &Expr<'a>,
        body: &[Stmt<'a>],
        orelse: &[Stmt<'a>],
        rest: &[Stmt<'a>],
    ) -> Res<Flow> {
        let cond = self.expr(test).and_then(|val| {
            self.range = test.range;
            self.condition(&val)
        });
        let mut side = |first: &[Stmt<'a>]| {
            self.arm(|lower| {
                let flow = match lower.block(first) {
                    Flow::Next => lower.block(rest),
                    flow => flow,
                };
                Ok(match flow {
                    Flow::Return(val) => val,
                    _ => None,
                })
            })
        };
        let then = side(body);
        let otherwise = side(orelse);
        let ((then, a), (otherwise, b), cond) = (then?, otherwise?, cond?);
        self.range = test.range;
        let (a, b) = match (a, b) {
            (Some(a), Some(b)) => (a, b),
            (None, None) => {
                self.finish_if(cond, (then, vec![]), (otherwise, vec![]));
                return Ok(Flow::Return(None));
            }
            _ => {
                self.reports.any()?;
                return self.fail(
                    ErrorKind::Syntax,
                    "E0116",
                    "only one arm of this `if` returns a value",
                );
            }
        };
        let val = self.join(cond, (then, &a), (otherwise, &b))?;
        Ok(Flow::Return(Some(val)))
    }
}

/// Ends the arm after what it does.
fn rest_of<'a, 'h>(
    rest: impl FnOnce(&mut Lower<'a, 'h>) -> Flow,
) -> impl FnOnce(&mut Lower<'a, 'h>) -> Flow {
    |lower| {
        let flow = rest(lower);
        if !matches!(flow, Flow::Ended | Flow::Left) {
            lower.builder().yields(Vec::new());
        }
        flow
    }
}

/// Whether there is a `return` in these statements.
pub(crate) fn returns(stmts: &[Stmt<'_>]) -> bool {
    Returns::of(stmts) != Returns::Never
}

fn ends_in_return(stmts: &[Stmt<'_>]) -> bool {
    Returns::of(stmts) == Returns::Always
}

/// Whether each arm of an `if` returns on all its paths or on none, so that what follows the `if` belongs to one arm.
fn joins(stmts: &[Stmt<'_>]) -> bool {
    let arm = |stmts: &[Stmt<'_>]| !returns(stmts) || ends_in_return(stmts) && joins(stmts);
    for stmt in stmts {
        match stmt.kind {
            StmtKind::Return(_) => return true,
            StmtKind::If { body, orelse, .. } if !arm(body) || !arm(orelse) => return false,
            StmtKind::For { body, .. } | StmtKind::While { body, .. } if returns(body) => {
                return false;
            }
            _ => {}
        }
    }
    true
}

/// Whether control may reach the end of these statements.
fn completes(stmts: &[Stmt<'_>]) -> bool {
    stmts.iter().all(|stmt| match stmt.kind {
        StmtKind::Return(_) | StmtKind::Break | StmtKind::Continue => false,
        StmtKind::If { body, orelse, .. } => completes(body) || completes(orelse),
        StmtKind::While { test, body, .. } => !is_true(test) || breaks(body),
        _ => true,
    })
}

fn is_true(test: &Expr<'_>) -> bool {
    matches!(
        test.kind,
        ExprKind::Bool(true) | ExprKind::Int(1..=i128::MAX)
    )
}

/// Whether a `break` in these statements leaves the loop around them.
pub(crate) fn breaks(stmts: &[Stmt<'_>]) -> bool {
    stmts.iter().any(|stmt| match stmt.kind {
        StmtKind::Break => true,
        StmtKind::If { body, orelse, .. } => breaks(body) || breaks(orelse),
        _ => false,
    })
}

/// An `i32` constant that is decided later.
pub(crate) fn set_constant(func: &mut aerogel_ir::Function, constant: Value, value: i32) {
    let inst = func
        .def(constant)
        .expect("a constant is made by an instruction");
    debug_assert_eq!(func.elem(constant), ScalarType::I32);
    func.insts[inst].op = Op::Const {
        value: Scalar::i32(value),
    };
}
