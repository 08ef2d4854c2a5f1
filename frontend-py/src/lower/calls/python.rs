//! Calls of Python's own functions, which Python runs while the kernel is compiled.
//!
//! `scaled(x, 3)` of an undecorated `def scaled(a, k): return a * k` runs with 3 for `k`, and for `a` an object that
//! stands for the value of `x`: what Python does with it comes back here as requests, and becomes instructions
//! (decision 0049). A function that needs the value itself, in an `if` or as the bound of a loop, is lowered from its
//! source like a `ti.func`.

use aerogel_base::ErrorKind;

use super::Args;
use crate::host::Known;
use crate::lower::values::{SeqKind, Val};
use crate::lower::{Lower, Res};
use crate::traced::{Operation, Outcome, Request, Tracer};

/// Integers that fit no type of the kernel: another reading of the function would wrap them around silently.
const OUT_OF_RANGE: &str = "E0204";

impl Tracer for Lower<'_, '_> {
    fn serve(&mut self) {
        let mark = self.reports.mark();
        let request = self.host.request();
        let done = self
            .hosted(request)
            .and_then(|request| self.requested(request))
            .map(|val| self.for_python(&val));
        let answer = done.map_err(|_| {
            let told_before = self.mistake(
                ErrorKind::Compilation,
                "E0221",
                "this is not possible with a value that is computed when the kernel runs",
            );
            self.reports.take_since(mark).unwrap_or(told_before)
        });
        self.host.answer(answer);
    }
}

impl Lower<'_, '_> {
    /// A Python function, called now. One of the user's that needs numbers that are not known yet is lowered.
    pub(crate) fn call_python(&mut self, callee: &Known, args: &Args) -> Res<Val> {
        self.expect_callable(callee, args)?;
        let vals = args.keywords.iter().map(|(_, val)| val);
        let all_known = args
            .positional
            .iter()
            .chain(vals)
            .all(|val| val.known().is_some());
        let unsteady = match all_known {
            true => self.host.unsteady(callee),
            false => None,
        };
        if self.probing > 0 && unsteady.is_some() {
            return self.not_probed();
        }
        let before = self.before(self.state.region);
        let outcome = self.run_python(callee, args, !all_known)?;
        let outcome = match outcome {
            Outcome::Returned(returned) => {
                // `ti.static` already states that this is known while compiling.
                if let (false, Some(name), false) =
                    (self.state.in_static, unsteady, is_traced(&returned))
                {
                    self.warn(format!(
                        "`{name}` is a Python function: it is called once, while the kernel is compiled, and its result \
                         is a constant here"
                    ));
                }
                let returned = self.val(returned)?;
                return self.settle(returned);
            }
            outcome => outcome,
        };
        self.take_back(before);
        match outcome {
            Outcome::Raised(error) if all_known => self.hosted(Err(error)),
            Outcome::Refused(mistake) if mistake.code == OUT_OF_RANGE => Err(self.report(mistake)),
            outcome => self.lower_python(callee, args, outcome),
        }
    }

    /// Refuses functions that cannot be called in a kernel.
    fn expect_callable(&mut self, callee: &Known, args: &Args) -> Res<()> {
        if let Ok(Some(instead)) = self.host.attr(callee, "__aerogel_outside_kernels__") {
            let name = match self.host.attr(callee, "__qualname__") {
                Ok(Some(Known::Str(name))) => name.to_string(),
                _ => "this".into(),
            };
            return self.fail_noted(
                ErrorKind::Compilation,
                "E0234",
                format!("`{name}` cannot be called in a kernel"),
                match &instead {
                    Known::Str(instead) => instead,
                    _ => "call it before the kernel, and use its result here",
                },
            );
        }
        let poisoned = args.positional.iter().find_map(|val| match val {
            Val::Poison(reported) => Some(*reported),
            _ => None,
        });
        if let Some(reported) = poisoned {
            return Err(reported);
        }
        if let Ok(Some(_)) = self.host.attr(callee, "__aerogel_absent__") {
            let result = self.host.call(callee, &[], &[]);
            self.hosted(result)?;
        }
        Ok(())
    }

    /// Runs a Python function.
    fn run_python(&mut self, callee: &Known, args: &Args, guarded: bool) -> Res<Outcome> {
        let positional: Vec<Known> = args
            .positional
            .iter()
            .map(|val| self.for_python(val))
            .collect();
        let keywords: Vec<(String, Known)> = args
            .keywords
            .iter()
            .map(|(name, val)| (name.clone(), self.for_python(val)))
            .collect();
        if guarded && matches!(callee, Known::Builtin(_)) {
            // The lowering has handled the builtins that kernels support. Passing an `Expr` to another one would only
            // return here.
            return Ok(Outcome::Needs("a value that a builtin works with".into()));
        }
        let call = self.host.begin(callee, &positional, &keywords, guarded);
        if let Some(call) = self.hosted(call)? {
            // `ti.static` covers the call itself, not the body of the function that is called.
            let outer = std::mem::replace(&mut self.state.in_static, false);
            call.run(self);
            self.state.in_static = outer;
            return Ok(self.host.outcome());
        }
        if guarded {
            return Ok(Outcome::Needs("of its arguments".into()));
        }
        let result = self.host.call(callee, &positional, &keywords);
        self.hosted(result).map(Outcome::Returned)
    }

    /// Lowers a function of the user's that Python could not run, from its source.
    fn lower_python(&mut self, callee: &Known, args: &Args, outcome: Outcome) -> Res<Val> {
        if let Some(func) = self.host.function(callee) {
            let mark = self.reports.mark();
            let name = &func.name;
            self.warn(format!(
                "`{name}` is a Python function: it is compiled into the kernel as if it were decorated with `@ti.func`"
            ));
            let receiver = func.receiver.clone().map(Val::Known);
            let lowered = self.invoke(&func, receiver, args.clone());
            let Outcome::Raised(error) = outcome else {
                return lowered;
            };
            if lowered.is_ok() {
                return lowered;
            }
            // Python's own exception comes first.
            self.reports.forget_since(mark);
            return self.hosted(Err(error));
        }
        let name = match callee {
            Known::Builtin(name) => Some(Known::str(name)),
            _ => self.host.attr(callee, "__name__").ok().flatten(),
        };
        let name = match &name {
            Some(Known::Str(name)) => name.to_string(),
            _ => "this function".into(),
        };
        let message = format!(
            "the Python function `{name}` cannot take a value that is computed when the kernel runs"
        );
        let note = self.instead_of(callee, &name);
        self.fail_noted(ErrorKind::Type, "E0221", message, note)
    }

    /// Performs a request of Python code.
    fn requested(&mut self, request: Request) -> Res<Val> {
        let mut operands = Vec::new();
        for operand in request.operands {
            operands.push(self.val(operand)?);
        }
        let mut operands = operands.into_iter();
        let mut next = || operands.next().unwrap_or(Val::none());
        let first = next();
        match request.operation {
            Operation::Unary(op) => self.unary(op, first),
            Operation::Binary(op) => {
                let (lhs, rhs) = (self.settle(first)?, self.settle(next())?);
                self.binary(op, &lhs, &rhs)
            }
            Operation::Compare(op) => {
                let (lhs, rhs) = (self.settle(first)?, self.settle(next())?);
                self.compare(op, &lhs, &rhs)
            }
            Operation::Attribute(name) => self.attribute(first, &name, None),
            Operation::Index => {
                let key = next();
                let is_tuple = matches!(key.kind(), Some(SeqKind::Tuple));
                let indices = match is_tuple {
                    true => key.items().unwrap_or_default(),
                    false => vec![key],
                };
                let item = self.index(first, indices, is_tuple)?;
                self.settle(item)
            }
            Operation::Call => {
                let mut args = Args::positional(operands.collect());
                for (name, known) in request.keywords {
                    args.keywords.push((name, self.val(known)?));
                }
                self.call_value(&first, args)
            }
            Operation::Items => {
                let items = self.iterate_static(&first)?;
                Ok(Val::seq(items, SeqKind::Tuple))
            }
        }
    }

    /// A value for Python code: known values unchanged, others as an `Expr`.
    fn for_python(&mut self, val: &Val) -> Known {
        match (val, val.items()) {
            (Val::Known(known), _) => known.clone(),
            (Val::Seq(_, kind), Some(items)) => {
                let items: Vec<Known> = items.iter().map(|item| self.for_python(item)).collect();
                match kind {
                    SeqKind::Tuple => Known::Tuple(items.into()),
                    SeqKind::List => Known::List(items.into()),
                }
            }
            _ => {
                self.traced.push(Some(val.clone()));
                Known::Traced(self.traced.len() as u32 - 1)
            }
        }
    }

    /// A value from Python code, which may contain values of the kernel.
    pub(crate) fn val(&mut self, known: Known) -> Res<Val> {
        match &known {
            Known::Traced(at) => match self.traced.get(*at as usize) {
                Some(Some(val)) => Ok(val.clone()),
                _ => self.fail_noted(
                    ErrorKind::Compilation,
                    "E0221",
                    "this value belongs to a branch or a loop that has ended",
                    "a Python function can use values of a kernel only in the branch or loop where it received them",
                ),
            },
            Known::Tuple(items) | Known::List(items) if is_traced(&known) => {
                let kind = match &known {
                    Known::Tuple(_) => SeqKind::Tuple,
                    _ => SeqKind::List,
                };
                let items: Res<Vec<Val>> = items.iter().map(|item| self.val(item.clone())).collect();
                Ok(Val::seq(items?, kind))
            }
            _ => Ok(Val::Known(known)),
        }
    }

    /// Invalidates the `Expr`s from the `n`-th on.
    pub(crate) fn end_traced(&mut self, n: usize) {
        self.traced[n..].fill(None);
    }
}

/// Whether this is or contains a value of the kernel.
fn is_traced(known: &Known) -> bool {
    match known {
        Known::Traced(_) => true,
        known => known
            .items()
            .is_some_and(|items| items.iter().any(is_traced)),
    }
}
