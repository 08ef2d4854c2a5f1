//! Where an instruction comes from: a range of the user's source, and the call it was inlined at.

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

crate::entity! {
    /// A source text.
    pub struct SourceId, "source"
}

/// One function's source text, with what is needed to name the user's own lines and columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path as Python knows it.
    pub path: String,
    /// The file's line (from 1) on which `text` begins.
    pub first_line: u32,
    /// How many columns of indentation were taken from every line.
    pub indent: u32,
    /// The source text, without its common indentation.
    pub text: String,
}

impl SourceFile {
    /// Line and column of a byte offset into `text`, both from 1, as the user's editor shows them.
    pub fn position(&self, offset: u32) -> (u32, u32) {
        let before = &self.text[..(offset as usize).min(self.text.len())];
        let line = before.bytes().filter(|&b| b == b'\n').count() as u32;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) as u32;
        (self.first_line + line, self.indent + column + 1)
    }

    /// The text of the line that contains `offset`, and the offset at which that line starts.
    pub fn line_at(&self, offset: u32) -> (&str, u32) {
        let offset = (offset as usize).min(self.text.len());
        let start = self.text[..offset].rfind('\n').map_or(0, |i| i + 1);
        let end = self.text[offset..]
            .find('\n')
            .map_or(self.text.len(), |i| offset + i);
        (&self.text[start..end], start as u32)
    }
}

/// An interned source range; `Span::NONE` where there is none.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct Span(u32);

impl Span {
    /// No source: made by the compiler, or parsed from IR text.
    pub const NONE: Span = Span(0);

    /// The id as a number, for the error records of generated code.
    pub fn index(self) -> u32 {
        self.0
    }

    /// The span with a number that `index` gave.
    pub fn from_index(index: u32) -> Span {
        Span(index)
    }
}

/// The source range of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanData {
    /// The text.
    pub source: SourceId,
    /// First byte of the range in the text.
    pub start: u32,
    /// One past its last byte.
    pub end: u32,
    /// The call that brought this text here, if it was inlined.
    pub inlined_at: Span,
}

/// The spans of a module.
#[derive(Clone, Debug, Default)]
pub struct SpanTable {
    spans: IndexSet<SpanData>,
}

impl SpanTable {
    /// The span for `data`, the same for the same data.
    pub fn intern(&mut self, data: SpanData) -> Span {
        Span(self.spans.insert_full(data).0 as u32 + 1)
    }

    /// The source range of `span`; none for `Span::NONE`.
    pub fn get(&self, span: Span) -> Option<&SpanData> {
        self.spans.get_index((span.0 as usize).checked_sub(1)?)
    }
}
