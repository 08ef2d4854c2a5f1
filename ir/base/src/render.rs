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

/// How many calls are shown at each end of a long chain of inlined ones.
const CALLS_SHOWN: usize = 3;

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
    let calls: Vec<_> = std::iter::successors(spans.get(data.inlined_at), |call| {
        spans.get(call.inlined_at)
    })
    .collect();
    let left_out = match calls.len() {
        n if n > 2 * CALLS_SHOWN + 1 => CALLS_SHOWN..n - CALLS_SHOWN,
        _ => 0..0,
    };
    for (k, call) in calls.into_iter().enumerate() {
        if k == left_out.start && !left_out.is_empty() {
            let _ = write!(out, "\n   = note: and so on, {} calls more", left_out.len());
        }
        if left_out.contains(&k) {
            continue;
        }
        let (line, column) = sources[call.source].position(call.start);
        let _ = write!(
            out,
            "\n   = note: inlined at {}:{line}:{column}",
            sources[call.source].path
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, SpanData};

    #[test]
    fn of_many_inlined_calls_the_first_and_last_are_shown() {
        let mut sources = Sources::new();
        let source = sources.push(SourceFile {
            path: "a.py".into(),
            first_line: 1,
            indent: 0,
            text: "f()\n".repeat(100),
        });
        let mut spans = SpanTable::default();
        let mut inlined_at = Span::NONE;
        for k in 0..100 {
            inlined_at = spans.intern(SpanData {
                source,
                start: 4 * k,
                end: 4 * k + 3,
                inlined_at,
            });
        }
        let mut out = String::new();
        render_place(&mut out, inlined_at, None, &spans, &sources);
        let notes: Vec<&str> = out.lines().skip(5).map(str::trim).collect();
        assert_eq!(
            notes,
            [
                "= note: inlined at a.py:99:1",
                "= note: inlined at a.py:98:1",
                "= note: inlined at a.py:97:1",
                "= note: and so on, 93 calls more",
                "= note: inlined at a.py:3:1",
                "= note: inlined at a.py:2:1",
                "= note: inlined at a.py:1:1",
            ]
        );
    }

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
