//! Mistakes and warnings at the place that is being lowered.

use aerogel_base::{Diagnostic, ErrorKind};
use aerogel_compiler::caught;
use aerogel_ir::print_function;

use crate::host::HostResult;
use crate::lower::{Lower, Reported, Res};

impl Lower<'_, '_> {
    /// Records a mistake.
    pub(crate) fn report(&mut self, mistake: Diagnostic) -> Reported {
        self.reports.add(&self.module.env.spans, mistake)
    }

    /// A mistake at the present place, which is still to be reported.
    pub(crate) fn mistake(
        &mut self,
        kind: ErrorKind,
        code: &'static str,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::new(kind, code, self.span(), message)
    }

    pub(crate) fn fail<T>(
        &mut self,
        kind: ErrorKind,
        code: &'static str,
        message: impl Into<String>,
    ) -> Res<T> {
        let mistake = self.mistake(kind, code, message);
        Err(self.report(mistake))
    }

    pub(crate) fn fail_noted<T>(
        &mut self,
        kind: ErrorKind,
        code: &'static str,
        message: impl Into<String>,
        note: impl Into<String>,
    ) -> Res<T> {
        let mistake = self.mistake(kind, code, message).note(note);
        Err(self.report(mistake))
    }

    /// A panic, which is a bug of ours, becomes a diagnostic at the place that was being lowered.
    pub(crate) fn broken(&mut self, panic: &str) {
        let message = format!("a bug in the compiler, not in your program: {panic}");
        let mistake = self.mistake(ErrorKind::Runtime, "E0120", message);
        // What is there of the kernel may be half an instruction.
        let text =
            caught(|| print_function(&self.state.func, &self.module.env)).unwrap_or_default();
        self.report(mistake.note(format!("so far the kernel is\n{text}")));
    }

    /// A mistake found by Python becomes a diagnostic here.
    pub(crate) fn hosted<T>(&mut self, result: HostResult<T>) -> Res<T> {
        result.or_else(|error| self.fail(error.kind, "E0120", error.message))
    }

    /// What is written at the present place is allowed, but loses something.
    pub(crate) fn warn(&mut self, message: String) {
        let span = self.span();
        self.reports.warn(&self.module.env.spans, span, message);
    }

    /// Only the type of an expression is needed, and finding it would call Python. The message is never shown:
    /// `silently` discards it.
    pub(crate) fn not_probed<T>(&mut self) -> Res<T> {
        self.fail(
            ErrorKind::Compilation,
            "E0221",
            "a Python function is not called only to find the type of its result",
        )
    }

    /// Runs a step without reporting its errors: it will be repeated, or only its type is needed.
    pub(crate) fn silently<T>(&mut self, ask: impl FnOnce(&mut Self) -> Res<T>) -> Option<T> {
        let mark = self.reports.mark();
        let found = ask(self).ok();
        if self.spent.ended().is_some() {
            // That there is an end is told.
            return found;
        }
        self.reports.forget_since(mark);
        found
    }
}
