//! Statements, and where control goes after them.

use aerogel_base::ErrorKind;
use aerogel_ir::{AssertKind, Op};

use crate::ast::{Expr, ExprKind, Returns, Stmt, StmtKind};
use crate::fold;
use crate::host::Known;
use crate::lower::values::Val;
use crate::lower::{Control, Lower, Reported, Res};
use crate::scope::BindingKind;

/// What comes after a statement.
#[derive(Debug)]
pub(crate) enum Flow {
    Next,
    /// The region has its terminator already.
    Ended,
    /// `break` or `continue` of an unrolled loop.
    StaticBreak,
    StaticContinue,
    /// The function being inlined has returned.
    Return(Option<Val>),
    /// It has returned by its flag; the region still needs its terminator.
    Exited,
    /// The kernel or real function has been left; the region has its terminator.
    Left,
}

/// What a mistake in a statement was has been told; those that follow are read for theirs.
fn going_on(_: Reported) -> Flow {
    Flow::Next
}

impl<'a> Lower<'a, '_> {
    /// Lowers statements up to the first after which control does not reach the next.
    pub(crate) fn block(&mut self, stmts: &[Stmt<'a>]) -> Flow {
        let outer = self.state.statement;
        let flow = self.statements(stmts);
        self.refuse_waiting_level("no loop follows it in its block");
        self.state.statement = outer;
        flow
    }

    fn statements(&mut self, stmts: &[Stmt<'a>]) -> Flow {
        for (k, stmt) in stmts.iter().enumerate() {
            self.range = stmt.range;
            let region = self.state.region;
            let n_insts = self.state.func.regions[region].insts.len();
            self.state.statement = (region, n_insts, self.scopes().depth());
            if self.step().is_err() {
                return Flow::Next;
            }
            if !self.keeps_level(stmt) {
                self.refuse_waiting_level("the next statement is not a `for` loop");
            }
            let n_returns = self.frame().exit.n_returns();
            let flow = match stmt.kind {
                StmtKind::If { test, body, orelse }
                    if stmt.returns != Returns::Never
                        && self.joins_arms()
                        && !self.is_static_call(test) =>
                {
                    return self
                        .returning_if(test, body, orelse, &stmts[k + 1..])
                        .unwrap_or_else(going_on);
                }
                _ => self.stmt(stmt).unwrap_or_else(going_on),
            };
            // `ti.block_local(x)`, a docstring and `pass` do nothing by themselves.
            if !matches!(flow, Flow::Next)
                || self.state.region != region
                || self.state.func.regions[region].insts.len() != n_insts
            {
                self.refuse_waiting_level("the next statement is not a `for` loop");
            }
            if !matches!(flow, Flow::Next) {
                return flow;
            }
            if self.frame().exit.n_returns() > n_returns {
                return self.after_return(n_returns, |lower| lower.block(&stmts[k + 1..]));
            }
        }
        Flow::Next
    }

    /// Whether `fast_math` of `ti.loop_config` before a statement may be for a loop in it or after it.
    fn keeps_level(&mut self, stmt: &Stmt<'a>) -> bool {
        match stmt.kind {
            StmtKind::For { .. } | StmtKind::Expr(_) | StmtKind::Pass => true,
            StmtKind::If { test, .. } => self.is_static_call(test),
            _ => false,
        }
    }

    fn stmt(&mut self, stmt: &Stmt<'a>) -> Res<Flow> {
        let result = match stmt.kind {
            StmtKind::Assign { targets, value } => self.assign(targets, value),
            StmtKind::AugAssign { target, op, value } => self.assign_augmented(target, op, value),
            StmtKind::AnnAssign {
                target,
                annotation,
                value,
            } => self.assign_annotated(target, annotation, value),
            StmtKind::Expr(expr) => {
                if matches!(expr.kind, ExprKind::Str(_)) {
                    return Ok(Flow::Next);
                }
                self.expr(expr).map(|_| ())
            }
            StmtKind::Pass => Ok(()),
            StmtKind::Break => return self.leave(stmt, true),
            StmtKind::Continue => return self.leave(stmt, false),
            StmtKind::If { test, body, orelse } => return self.if_stmt(test, body, orelse),
            StmtKind::For {
                target,
                iter,
                body,
                has_else,
            } => {
                if has_else {
                    return self.fail(
                        ErrorKind::Syntax,
                        "E0102",
                        "`else` of a loop is not supported in kernels",
                    );
                }
                return self.for_stmt(target, iter, body);
            }
            StmtKind::While {
                test,
                body,
                has_else,
            } => {
                if has_else {
                    return self.fail(
                        ErrorKind::Syntax,
                        "E0102",
                        "`else` of a loop is not supported in kernels",
                    );
                }
                return self.while_stmt(test, body);
            }
            StmtKind::Return(value) => return self.return_stmt(value),
            StmtKind::Assert { test, message } => self.assert_stmt(test, message),
            StmtKind::Unsupported(what) => self.unsupported(what),
        };
        if let Err(reported) = result {
            self.poison_targets(stmt, reported);
        }
        result.map(|()| Flow::Next)
    }

    /// Names that a failed statement would have made are known, so that their uses are no further mistakes.
    fn poison_targets(&mut self, stmt: &Stmt<'a>, reported: Reported) {
        let targets = match stmt.kind {
            StmtKind::Assign { targets, .. } => targets,
            StmtKind::AnnAssign { target, .. } => std::slice::from_ref(target),
            _ => return,
        };
        for target in targets {
            self.poison(target, reported);
        }
    }

    pub(crate) fn poison(&mut self, target: &Expr<'a>, reported: Reported) {
        match target.kind {
            ExprKind::Name(name) if self.scopes().get(name).is_none() => {
                self.scopes()
                    .bind(name, BindingKind::Variable, Val::Poison(reported));
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                for target in targets {
                    self.poison(target, reported);
                }
            }
            _ => {}
        }
    }

    fn leave(&mut self, stmt: &Stmt<'a>, is_break: bool) -> Res<Flow> {
        self.range = stmt.range;
        let word = if is_break { "break" } else { "continue" };
        let base = self.frame().control_base;
        let mut under_if = false;
        for control in self.state.control[base..]
            .iter()
            .rev()
            .copied()
            .collect::<Vec<_>>()
        {
            match control {
                Control::If => under_if = true,
                Control::Guard => {}
                Control::Static if under_if => {
                    return self.fail_noted(
                        ErrorKind::Syntax,
                        "E0109",
                        format!(
                            "`{word}` of a loop under `ti.static` cannot depend on a run-time value"
                        ),
                        "use `if ti.static(...)`, or a loop without `ti.static`",
                    );
                }
                Control::Static => {
                    return Ok(if is_break {
                        Flow::StaticBreak
                    } else {
                        Flow::StaticContinue
                    });
                }
                Control::Parallel { breakable: false } if is_break => {
                    return self.fail_noted(
                        ErrorKind::Syntax,
                        "E0111",
                        "`break` cannot leave a parallel loop",
                        "write `ti.loop_config(serialize=True)` before the loop to run it in order",
                    );
                }
                Control::Parallel { .. } | Control::Loop => {
                    let values = Vec::new();
                    self.effect(if is_break {
                        Op::Break { values }
                    } else {
                        Op::Continue { values }
                    });
                    return Ok(Flow::Ended);
                }
            }
        }
        self.fail(
            ErrorKind::Syntax,
            "E0101",
            format!("`{word}` is not inside a loop"),
        )
    }

    /// Lowers statements into the current region as a scope of their own and ends the region.
    pub(crate) fn body(&mut self, stmts: &[Stmt<'a>]) -> Flow {
        self.scopes().enter();
        let flow = self.block(stmts);
        self.scopes().leave();
        if !matches!(flow, Flow::Ended | Flow::Left) {
            self.builder().yields(Vec::new());
        }
        flow
    }

    fn if_stmt(&mut self, test: &Expr<'a>, body: &[Stmt<'a>], orelse: &[Stmt<'a>]) -> Res<Flow> {
        let is_static = self.is_static_call(test);
        let cond = self.expr(test);
        if is_static {
            let Val::Known(known) = cond? else {
                self.range = test.range;
                return self.fail(
                    ErrorKind::Syntax,
                    "E0113",
                    "the argument of `ti.static` is not known while compiling",
                );
            };
            let truth = fold::truth(self.host, &known);
            // No scope of its own: what a static `if` makes stays visible.
            let arm = if self.hosted(truth)? { body } else { orelse };
            if arm.is_empty() {
                // The loop that the settings are for is not compiled.
                self.state.next_loop.forget_level();
            }
            return Ok(self.block(arm));
        }
        self.range = test.range;
        let cond = cond.and_then(|cond| self.condition(&cond));
        let then = self.state.func.new_region(&[]);
        let otherwise = self.state.func.new_region(&[]);
        self.state.control.push(Control::If);
        let one = self.within(then, |lower| lower.body(body));
        let other = self.within(otherwise, |lower| lower.body(orelse));
        self.state.control.pop();
        self.range = test.range;
        let cond = cond?;
        self.effect(Op::If {
            cond,
            then,
            otherwise,
        });
        Ok(match (one, other) {
            (Flow::Left, Flow::Left) => {
                self.unreachable();
                Flow::Left
            }
            (Flow::Exited, Flow::Exited) => Flow::Exited,
            _ => Flow::Next,
        })
    }

    fn while_stmt(&mut self, test: &Expr<'a>, body: &[Stmt<'a>]) -> Res<Flow> {
        let cond = self.state.func.new_region(&[]);
        let region = self.state.func.new_region(&[]);
        self.state.control.push(Control::Loop);
        let tested = self.within(cond, |lower| {
            let val = lower.expr(test)?;
            lower.range = test.range;
            let value = lower.condition(&val)?;
            lower.builder().yields(vec![value]);
            Ok(())
        });
        self.within(region, |lower| lower.body(body));
        self.state.control.pop();
        tested?;
        self.effect(Op::While {
            init: Vec::new(),
            cond,
            body: region,
        });
        Ok(Flow::Next)
    }

    fn assert_stmt(&mut self, test: &Expr<'a>, message: Option<&Expr<'a>>) -> Res<()> {
        if !self.config.debug {
            // What it does is done all the same.
            if test.any(&mut |e| matches!(e.kind, ExprKind::Call { .. } | ExprKind::Walrus { .. }))
            {
                self.expr(test)?;
            }
            return Ok(());
        }
        let val = self.expr(test)?;
        self.range = test.range;
        let cond = self.condition(&val)?;
        let (mut template, mut args) = (String::new(), Vec::new());
        if let Some(message) = message {
            self.template(message, &mut template, &mut args)?;
        }
        self.range = test.range;
        self.effect(Op::Assert {
            cond,
            kind: AssertKind::Assertion,
            template,
            args,
        });
        Ok(())
    }

    /// Whether an expression is a call of `ti.static`.
    pub(crate) fn is_static_call(&mut self, expr: &Expr<'a>) -> bool {
        let ExprKind::Call { func, .. } = expr.kind else {
            return false;
        };
        if !matches!(
            func.kind,
            ExprKind::Attribute { attr: "static", .. } | ExprKind::Name(_)
        ) {
            return false;
        }
        let found = self.silently(|lower| lower.expr(func));
        matches!(found, Some(Val::Known(Known::Builtin(name))) if &*name == "static")
    }
}
