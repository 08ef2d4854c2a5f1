//! Mistakes and warnings, and the proof that a mistake has been recorded.
//!
//! What a mistake leaves undone is `Err(Reported)`, and only this file makes a `Reported`, where it records the
//! mistake: nothing can be skipped silently.

use aerogel_base::{Diagnostic, Diagnostics, SourceId, Span, SpanTable};
use indexmap::IndexMap;

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
    pub(crate) fn add(&mut self, spans: &SpanTable, mistake: Diagnostic) -> Reported {
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

    /// Takes back what has been met since then.
    pub(crate) fn forget_since(&mut self, mark: Mark) {
        self.mistakes.truncate(mark.n_mistakes);
        self.n_met = mark.n_met;
    }

    /// Takes back what has been met since then, and gives the first mistake that was not told before.
    pub(crate) fn take_since(&mut self, mark: Mark) -> Option<Diagnostic> {
        let first = self.mistakes.get(mark.n_mistakes).cloned();
        self.forget_since(mark);
        first
    }

    /// Records a warning; the same one in the same text is told once.
    pub(crate) fn warn(&mut self, spans: &SpanTable, span: Span, message: String) {
        let key = (text_of(spans, span), message);
        self.warnings.entry(key).or_insert(span);
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

    /// Whether lowering continues, since there are not too many errors.
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
