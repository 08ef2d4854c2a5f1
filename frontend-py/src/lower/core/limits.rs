//! The limits of lowering: stack, unrolled and inlined code, and time.
//!
//! A kernel that goes beyond is told so once, and the rest of it is not looked at.

use aerogel_base::ErrorKind;

use crate::lower::{Frame, Lower, Reported, Res, Spent};

/// How often a function may be inside itself.
const MAX_RECURSION: usize = 100;
/// Deeper than anybody writes an expression.
const MAX_DEPTH: usize = 400;
/// Items of one loop under `ti.static`.
pub(crate) const MAX_ITEMS: usize = 1 << 16;
/// Iterations of all loops under `ti.static` and comprehensions of a kernel together.
const MAX_TURNS: usize = 1 << 18;
/// Instructions of a kernel: the optimiser takes minutes for as many.
const MAX_INSTRUCTIONS: usize = 1 << 20;
/// Statements and expressions that are looked at.
const MAX_STEPS: usize = 1 << 23;
/// Mistakes that are told at once.
const MAX_MISTAKES: usize = 50;
/// After how many steps interrupts (Ctrl-C) are checked.
const INTERVAL: usize = 256;
/// What must be left of the stack for what happens between two looks at it, calls of Python's functions included.
const STACK: usize = if cfg!(debug_assertions) {
    1 << 20
} else {
    192 << 10
};

impl Spent {
    /// What a mistake was that ended everything.
    pub(crate) fn ended(&self) -> Option<Reported> {
        self.ended
    }
}

impl Lower<'_, '_> {
    /// Before each statement and expression.
    pub(crate) fn step(&mut self) -> Res<()> {
        if let Some(reported) = self.spent.ended {
            return Err(reported);
        }
        self.expect_stack()?;
        self.spent.steps += 1;
        if self.spent.steps.is_multiple_of(INTERVAL) {
            self.look_around().map_err(|reported| self.end(reported))?;
        }
        Ok(())
    }

    fn end(&mut self, reported: Reported) -> Reported {
        self.spent.ended = Some(reported);
        reported
    }

    fn look_around(&mut self) -> Res<()> {
        if self.host.interrupted() {
            return self.fail(ErrorKind::Runtime, "E0120", "interrupted");
        }
        self.reports.fewer_than(MAX_MISTAKES)?;
        let n = self.state.func.insts.len();
        if n > MAX_INSTRUCTIONS || self.spent.steps > MAX_STEPS {
            let message =
                "the kernel becomes too large by its inlined functions and unrolled loops";
            let note = "write loops without `ti.static`, or make functions that are called often `ti.real_func`s";
            return self.fail_noted(ErrorKind::Compilation, "E0129", message, note);
        }
        Ok(())
    }

    /// Called before each unrolled iteration.
    pub(crate) fn turn(&mut self) -> Res<()> {
        self.step()?;
        self.spent.turns += 1;
        if self.spent.turns <= MAX_TURNS {
            return Ok(());
        }
        let message = format!(
            "the loops under `ti.static` and the comprehensions of this kernel have more than {MAX_TURNS} iterations together"
        );
        self.fail_noted(
            ErrorKind::Compilation,
            "E0129",
            message,
            "drop `ti.static` from one of the loops",
        )
        .map_err(|reported| self.end(reported))
    }

    /// Goes into an expression.
    pub(crate) fn deeper<T>(&mut self, body: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        self.step()?;
        if self.spent.depth >= MAX_DEPTH {
            let message = "the expression is nested too deeply";
            let note = "compute parts of it in variables";
            return self.fail_noted(ErrorKind::Syntax, "E0128", message, note);
        }
        self.spent.depth += 1;
        let result = body(self);
        self.spent.depth -= 1;
        result
    }

    /// Enters a function, whose expressions are counted from zero.
    pub(crate) fn within_function<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::take(&mut self.spent.depth);
        let result = body(self);
        self.spent.depth = outer;
        result
    }

    fn expect_stack(&mut self) -> Res<()> {
        if stacker::remaining_stack().is_none_or(|left| left > STACK) {
            return Ok(());
        }
        let n = self.state.frames.len();
        let (message, note) = (
            format!(
                "{n} nested function calls, with the expressions in them, are too many for the compiler's stack"
            ),
            "make one of them a `ti.real_func`, or compute parts of the expressions in variables",
        );
        self.fail_noted(ErrorKind::Compilation, "E0110", message, note)
            .map_err(|reported| self.end(reported))
    }

    /// That a function which is to be inlined does not call itself for ever.
    pub(crate) fn expect_end(&mut self, name: &str, of: impl Fn(&Frame) -> bool) -> Res<()> {
        let n = self.state.frames.iter().filter(|frame| of(frame)).count();
        if n < MAX_RECURSION {
            return Ok(());
        }
        let message = format!("`{name}` calls itself without end");
        let note = "a `ti.func` is inlined into its caller, so its recursion must end at a `ti.static` condition; for recursion at run time use `@ti.real_func`, and annotate its parameters and its result";
        let mistake = self
            .mistake(ErrorKind::Compilation, "E0110", message)
            .note(note);
        let reported = self.report(mistake);
        // A function that calls itself twice would come here once for each of all its calls.
        self.spent.ended = Some(reported);
        Err(reported)
    }
}
