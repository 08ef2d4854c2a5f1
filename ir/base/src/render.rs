//! Diagnostics as text.
//!
//! ```text
//! AerogelTypeError[E0203]: cannot add `vec3` to an `f32` field
//!   --> sph.py:41:9
//!    |
//! 41 |         density[i] += mass * r
//!    |                       ^^^^^^^^ this is `vec3`
//!    = note: inlined at sph.py:88:5
//! ```

use std::fmt::Write;

use crate::entity::PrimaryMap;
use crate::{Diagnostic, SourceFile, SourceId, Span, SpanTable};

/// The texts that spans point into.
pub type Sources = PrimaryMap<SourceId, SourceFile>;

/// Renders one diagnostic; ends without a line break.
pub fn render(diagnostic: &Diagnostic, spans: &SpanTable, sources: &Sources) -> String {
    let mut out = format!(
        "{}[{}]: {}",
        diagnostic.kind.class_name(),
        diagnostic.code,
        diagnostic.message
    );
    render_place(
        &mut out,
        diagnostic.span,
        diagnostic.label.as_deref(),
        spans,
        sources,
    );
    for note in &diagnostic.notes {
        let _ = write!(out, "\n   = note: {note}");
    }
    out
}

/// Renders all diagnostics of a kernel, an empty line between two of them.
pub fn render_all(diagnostics: &[Diagnostic], spans: &SpanTable, sources: &Sources) -> String {
    diagnostics
        .iter()
        .map(|d| render(d, spans, sources))
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// Appends file, line, caret and the chain of inlined calls to `out`.
pub fn render_place(
    out: &mut String,
    span: Span,
    label: Option<&str>,
    spans: &SpanTable,
    sources: &Sources,
) {
    let Some(data) = spans.get(span) else { return };
    let source = &sources[data.source];
    let (line, column) = source.position(data.start);
    let (text, line_start) = source.line_at(data.start);
    let indent = " ".repeat(source.indent as usize);
    let gutter = " ".repeat(line.to_string().len());
    let before = text[..(data.start - line_start) as usize].chars().count();
    let end = (data.end.saturating_sub(line_start) as usize).min(text.len());
    let width = text
        .get((data.start - line_start) as usize..end)
        .map_or(1, |t| t.trim_end().chars().count())
        .max(1);
    let _ = write!(
        out,
        "\n  --> {}:{line}:{column}\n{gutter} |\n{line} | {indent}{text}\n{gutter} | {indent}",
        source.path
    );
    let _ = write!(out, "{}{}", " ".repeat(before), "^".repeat(width));
    if let Some(label) = label {
        let _ = write!(out, " {label}");
    }
    let mut at = data.inlined_at;
    while let Some(call) = spans.get(at) {
        let (line, column) = sources[call.source].position(call.start);
        let _ = write!(
            out,
            "\n   = note: inlined at {}:{line}:{column}",
            sources[call.source].path
        );
        at = call.inlined_at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, SpanData};

    #[test]
    fn caret_and_inlining() {
        let mut sources = Sources::new();
        let text = "def f(x):\n    return x + y\n";
        let source = sources.push(SourceFile {
            path: "a.py".into(),
            first_line: 10,
            indent: 4,
            text: text.into(),
        });
        let mut spans = SpanTable::default();
        let call = spans.intern(SpanData {
            source,
            start: 0,
            end: 3,
            inlined_at: Span::NONE,
        });
        let start = text.find("y").unwrap() as u32;
        let span = spans.intern(SpanData {
            source,
            start,
            end: start + 1,
            inlined_at: call,
        });
        let d = Diagnostic::new(ErrorKind::Name, "E0101", span, "`y` is not defined")
            .label("here")
            .note("define it");
        assert_eq!(
            render(&d, &spans, &sources),
            "AerogelNameError[E0101]: `y` is not defined\n  --> a.py:11:20\n   |\n11 |         return x + y\n   |                    ^ here\n   = note: inlined at a.py:10:5\n   = note: define it"
        );
    }
}
