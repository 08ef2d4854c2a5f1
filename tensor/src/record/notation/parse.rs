//! The text of a statement: its tensors' axes, in rows.
//!
//! ```text
//! b|i; 2*o=+k->c    [b, i]   [2*o + k with zeros around, c]
//! ```

use super::super::{RecordError, Recorded};

/// An axis as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// A sum of labels and numbers.
    Index(Index),
    /// An axis of several, one after the other.
    Joined(Vec<Segment>),
    /// All axes of a row that are not named, by a name.
    Dots(String),
}

/// A segment of a concatenated axis: a label, or a size under a name of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) label: String,
    pub(super) extent: Option<i64>,
}

/// The padding of the windows along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Padding {
    /// As the call specifies.
    AsCalled,
    /// Zeros around.
    Same,
    /// They end where the axis does.
    Exact,
}

/// An index along an axis: the factor of each label, and what is added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) terms: Vec<(String, i64)>,
    pub(super) offset: i64,
    pub(super) padding: Padding,
}

impl Index {
    pub(super) fn of_label(label: String) -> Self {
        Self {
            terms: vec![(label, 1)],
            offset: 0,
            padding: Padding::AsCalled,
        }
    }

    /// The label that it is, if it is one.
    pub(super) fn label(&self) -> Option<&str> {
        match (&self.terms[..], self.offset) {
            ([(label, 1)], 0) => Some(label),
            _ => None,
        }
    }
}

/// A text as Python shows it.
pub(super) fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            '\r' => out += "\\r",
            c if c == quote => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

pub(super) fn refused<T>(message: String) -> Recorded<T> {
    Err(RecordError::Value(format!("`accum`: {message}")))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_letter(c: char) -> bool {
    is_word(c) && !c.is_numeric()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

fn is_name(text: &str, begins: impl Fn(char) -> bool) -> bool {
    text.starts_with(begins) && text.chars().all(is_word)
}

/// The texts of a statement's tensors and of its result.
pub(super) fn sides(spec: &str) -> Recorded<(Vec<&str>, &str)> {
    match spec.split_once("=>") {
        Some((inputs, result)) => Ok((inputs.split(';').collect(), result)),
        None => refused(format!(
            "{} names no result: write `... => ...`",
            quoted(spec)
        )),
    }
}

/// The axes of a tensor in the order in which they lie: batch, output, input.
pub(super) fn axes(text: &str, spec: &str) -> Recorded<Vec<Axis>> {
    let (batch, rest) = text.rsplit_once('|').unwrap_or(("", text));
    let (source, target) = rest.rsplit_once("->").unwrap_or(("", rest));
    if batch.contains('|') || batch.contains("->") || source.contains("->") {
        return refused(format!(
            "{} of {} does not describe a tensor: write `batch|input->output`",
            quoted(text.trim()),
            quoted(spec)
        ));
    }
    let mut out: Vec<Axis> = Vec::new();
    for (name, row) in [("batch", batch), ("output", target), ("input", source)] {
        for item in items(row, spec)? {
            let axis = if let Some(dots) = dots(&item) {
                Axis::Dots(if dots.is_empty() { name } else { dots }.to_owned())
            } else if item == "_" {
                // An axis without a name is that of no other one.
                Axis::Index(Index::of_label(format!(
                    "_{} of {}",
                    out.len(),
                    text.trim()
                )))
            } else if item.contains('^') {
                Axis::Joined(joined(&item, spec)?)
            } else {
                Axis::Index(index(&item, spec)?)
            };
            if matches!(axis, Axis::Dots(_)) && out.contains(&axis) {
                let text = quoted(text.trim());
                return refused(format!("`..` stands twice in a row of {text}"));
            }
            out.push(axis);
        }
    }
    Ok(out)
}

/// The name between the dots of an item that stands for several axes.
fn dots(item: &str) -> Option<&str> {
    let rest = item.strip_prefix("..")?;
    if rest == "." {
        return Some("");
    }
    let name = rest.strip_suffix("..").unwrap_or(rest);
    name.chars().all(is_word).then_some(name)
}

/// The items of a row: between commas, or letter by letter where there are none.
fn items(row: &str, spec: &str) -> Recorded<Vec<String>> {
    let row = row.trim();
    let has_signs = row.contains(|c: char| c == '*' || c == '+' || c.is_whitespace());
    if spec.contains(',') || has_signs && !row.contains('^') {
        let items = row.split(',').map(str::trim);
        return Ok(items.filter(|i| !i.is_empty()).map(str::to_owned).collect());
    }
    let parts: Vec<&str> = row.split('^').map(str::trim).collect();
    let row = parts.join("^");
    let mut out = Vec::new();
    let mut rest = &row[..];
    while !rest.is_empty() {
        let Some(n) = item_length(rest) else {
            return refused(format!(
                "{} of {} is not a list of indices: write letters and `..`, or items between commas",
                quoted(&row),
                quoted(spec)
            ));
        };
        out.push(rest[..n].to_owned());
        rest = &rest[n..];
    }
    Ok(out)
}

/// How long the first item of a row without commas is.
fn item_length(row: &str) -> Option<usize> {
    let words = |text: &str| text.find(|c| !is_word(c)).unwrap_or(text.len());
    if let Some(rest) = row.strip_prefix("..") {
        let name = words(rest);
        if name > 0 && rest[name..].starts_with("..") {
            return Some(name + 4);
        }
        return Some(if rest.starts_with('.') { 3 } else { 2 });
    }
    // A part of an axis of several: a number or a letter.
    let part = |text: &str| {
        let digits = text.find(|c: char| !c.is_ascii_digit());
        match digits.unwrap_or(text.len()) {
            0 => text
                .chars()
                .next()
                .filter(|&c| is_letter(c))
                .map(char::len_utf8),
            n => Some(n),
        }
    };
    let mut length = part(row);
    let mut is_joined = false;
    while let Some(n) = length {
        let next = row[n..].strip_prefix('^').and_then(part);
        let Some(more) = next else { break };
        length = Some(n + 1 + more);
        is_joined = true;
    }
    if is_joined {
        return length;
    }
    row.chars()
        .next()
        .filter(|&c| is_word(c))
        .map(char::len_utf8)
}

fn index(item: &str, spec: &str) -> Recorded<Index> {
    let compact = item.replace(' ', "");
    let padding = match () {
        () if compact.contains("=+") => Padding::Same,
        () if compact.contains("<+") => Padding::Exact,
        () => Padding::AsCalled,
    };
    let mut out = Index {
        terms: Vec::new(),
        offset: 0,
        padding,
    };
    let parts: Vec<&str> = compact.split('+').collect();
    for (k, &part) in parts.iter().enumerate() {
        let part = match k + 1 < parts.len() {
            true => part.strip_suffix(['=', '<']).unwrap_or(part),
            false => part,
        };
        match term(part) {
            Some((None, n)) => out.offset += n,
            Some((Some(_), 0)) => {
                let (item, spec) = (quoted(item), quoted(spec));
                return refused(format!("a factor of 0 in {item} of {spec}"));
            }
            Some((Some(label), factor)) => {
                match out.terms.iter_mut().find(|(own, _)| own == label) {
                    Some((_, own)) => *own = own.saturating_add(factor),
                    None => out.terms.push((label.to_owned(), factor)),
                }
            }
            None => {
                let (item, spec) = (quoted(item), quoted(spec));
                return refused(format!(
                    "{item} of {spec} is not an index: indices are labels, numbers, `2*o+k`, `..`"
                ));
            }
        }
    }
    Ok(out)
}

/// A number, or a label with its factor.
fn term(text: &str) -> Option<(Option<&str>, i64)> {
    let number = |text: &str| {
        let n = is_number(text).then(|| text.parse::<i32>().ok())??;
        Some(i64::from(n))
    };
    if let Some(n) = number(text) {
        return Some((None, n));
    }
    let factors: Vec<&str> = text.split('*').collect();
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    let (before, label, behind) = match factors[..] {
        [label] => (1, label, 1),
        [a, b] if is_name(a, begins) => (1, a, number(b)?),
        [a, b] => (number(a)?, b, 1),
        [a, b, c] => (number(a)?, b, number(c)?),
        _ => return None,
    };
    is_name(label, begins).then_some((Some(label), before * behind))
}

/// The parts of an axis of several; those that are numbers have no label yet.
fn joined(item: &str, spec: &str) -> Recorded<Vec<Segment>> {
    let parts = item.split('^').map(str::trim).map(|part| {
        let extent = match is_number(part) {
            true => Some(part.parse::<u32>().ok()?.into()),
            false if is_name(part, |c| c.is_ascii_alphabetic()) => None,
            false => return None,
        };
        let label = part.to_owned();
        Some(Segment { label, extent })
    });
    let parts: Option<Vec<Segment>> = parts.collect();
    parts.map_or_else(
        || {
            let (item, spec) = (quoted(item), quoted(spec));
            refused(format!(
                "{item} of {spec} is not an axis: `^` joins labels and sizes"
            ))
        },
        Ok,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, spec: &str) -> Vec<String> {
        let all = axes(text, spec).unwrap_or_else(|e| panic!("{e}"));
        let one = |axis: &Axis| match axis {
            Axis::Index(i) => {
                let terms = i.terms.iter().map(|(label, f)| format!("{f}{label}"));
                let terms: Vec<String> = terms.chain([i.offset.to_string()]).collect();
                terms.join("+")
            }
            Axis::Joined(parts) => {
                let parts = parts.iter().map(|p| &p.label[..]);
                parts.collect::<Vec<_>>().join("^")
            }
            Axis::Dots(name) => format!("..{name}"),
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn rows_of_letters_and_of_items() {
        assert_eq!(shown("b|i->o", "b|i->o"), ["1b+0", "1o+0", "1i+0"]);
        assert_eq!(shown("2*o+k", ""), ["2o+1k+0"]);
        assert_eq!(shown("row, 2*c+1", ","), ["1row+0", "2c+1"]);
        assert_eq!(shown("..ab..i", ""), ["..ab", "1i+0"]);
        assert_eq!(shown("...i", ""), ["..output", "1i+0"]);
        assert_eq!(shown("2^a^bc3", ""), ["2^a^b", "1c+0", "3"]);
    }

    #[test]
    fn texts_as_python_shows_them() {
        assert_eq!(quoted("a'b"), "\"a'b\"");
        assert_eq!(quoted("a'\"\\"), "'a\\'\"\\\\'");
    }
}
