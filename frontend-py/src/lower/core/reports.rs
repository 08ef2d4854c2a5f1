//! Mistakes and warnings, and the proof that a mistake has been recorded.
//!
//! What a mistake leaves undone is `Err(Reported)`, and only this file makes a `Reported`, where it records the
//! mistake: nothing can be skipped without a word.

use aerogel_base::{Diagnostic, Diagnostics, ErrorKind, SourceId, Span, SpanTable};
use aerogel_compiler::caught;
use aerogel_ir::print_function;
use indexmap::IndexMap;

use crate::host::HostResult;
use crate::lower::Lower;

/// A mistake that has been recorded; what depends on it is skipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported(());

pub(crate) type Res<T> = Result<T, Reported>;

/// A part of a source text: its first byte and one past its last.
type TextOf = (SourceId, u32, u32);

/// The text of a span, be it reached by calls from several places.
fn text_of(spans: &SpanTable, span: Span) -> Option<TextOf> {
    let at = spans.get(span)?;
    Some((at.source, at.start, at.end))
}

/// What has been found in a kernel.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    mistakes: Diagnostics,
    /// How often a mistake was met, one that was told before included.
    n_met: usize,
    /// Where each is said first.
    warnings: IndexMap<(Option<TextOf>, String), Span>,
}

/// How much had been found at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    n_mistakes: usize,
    n_met: usize,
}

impl Reports {
    /// Records a mistake; the same one in the same text, inlined or unrolled again, is told once.
    fn add(&mut self, spans: &SpanTable, mistake: Diagnostic) -> Reported {
        let text = text_of(spans, mistake.span);
        let same =
            |old: &Diagnostic| old.message == mistake.message && text_of(spans, old.span) == text;
        if !self.mistakes.iter().any(same) {
            self.mistakes.push(mistake);
        }
        self.n_met += 1;
        Reported(())
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            n_mistakes: self.mistakes.len(),
            n_met: self.n_met,
        }
    }

    /// Whether a mistake was met since then.
    pub(crate) fn since(&self, mark: Mark) -> Result<(), Reported> {
        match self.n_met > mark.n_met {
            true => Err(Reported(())),
            false => Ok(()),
        }
    }

    /// Whether there is any mistake.
    pub(crate) fn any(&self) -> Result<(), Reported> {
        match self.n_met > 0 {
            true => Err(Reported(())),
            false => Ok(()),
        }
    }

    /// Whether there are not too many mistakes to go on.
    pub(crate) fn fewer_than(&self, n: usize) -> Result<(), Reported> {
        match self.mistakes.len() < n {
            true => Ok(()),
            false => Err(Reported(())),
        }
    }

    /// How many warnings there are.
    pub(crate) fn n_warnings(&self) -> usize {
        self.warnings.len()
    }

    /// Takes back the warnings but for the first.
    pub(crate) fn forget_warnings(&mut self, n: usize) {
        self.warnings.truncate(n);
    }

    /// All mistakes, or, if there are none, the warnings.
    pub(crate) fn finish(self) -> Result<Vec<(Span, String)>, Diagnostics> {
        if !self.mistakes.is_empty() {
            return Err(self.mistakes);
        }
        let warnings = self.warnings.into_iter();
        Ok(warnings
            .map(|((_, message), span)| (span, message))
            .collect())
    }
}

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
        let key = (text_of(&self.module.env.spans, span), message);
        self.reports.warnings.entry(key).or_insert(span);
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

    /// Does something whose mistakes do not count: it will be done again, or is only asked for.
    pub(crate) fn silently<T>(&mut self, ask: impl FnOnce(&mut Self) -> Res<T>) -> Option<T> {
        let mark = self.reports.mark();
        let found = ask(self).ok();
        if self.spent.ended().is_some() {
            // That there is an end is told.
            return found;
        }
        self.reports.mistakes.truncate(mark.n_mistakes);
        self.reports.n_met = mark.n_met;
        found
    }
}
