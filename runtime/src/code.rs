//! What a back end hands to a device: object code and all that is needed to launch it.

use aerogel_base::{AssertKind, ScalarType, Span};
use serde::{Deserialize, Serialize};

/// A compiled kernel, not yet loaded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KernelCode {
    /// The object files (or PTX texts) with every task's function.
    pub objects: Vec<Vec<u8>>,
    /// The tasks, in the order in which they run.
    pub tasks: Vec<TaskCode>,
    /// Bytes of temporaries that values crossing tasks need.
    pub temp_bytes: usize,
    /// What each argument slot holds.
    pub args: Vec<ArgSlot>,
    /// Which array arguments the code takes to share no memory with any other: those it writes,
    /// if it was compiled so; else empty.
    pub apart: Vec<bool>,
    /// How many result slots it writes.
    pub n_results: usize,
    /// The size of each SNode tree of the module, in bytes.
    pub root_bytes: Vec<usize>,
    /// Messages that generated code refers to by index.
    pub sites: Vec<Site>,
}

impl KernelCode {
    /// Whether functions call themselves, and so need all the stack that they are promised.
    pub fn is_recursive(&self) -> bool {
        self.sites
            .iter()
            .any(|site| site.kind == SiteKind::Check(AssertKind::Recursion))
    }
}

/// What an argument slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ArgSlot {
    /// A scalar's bits.
    Value,
    /// An array's address.
    Pointer,
    /// An array's extent along one axis.
    Extent,
}

/// One task of a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskCode {
    /// The name of its function.
    pub symbol: String,
    /// The iteration space.
    pub bounds: Bounds,
    /// Parts of the iteration space begin and end at multiples of this, which divides every row's length.
    pub step: i64,
    /// Estimated time of one iteration in nanoseconds; a guess that the launcher corrects by
    /// measurement.
    pub cost: f32,
    /// At most this many threads, where the user says so.
    pub max_threads: Option<usize>,
}

/// The iteration space of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Bounds {
    /// Runs once, on one thread.
    Serial,
    /// `[lo, hi)` of each axis, known when compiling.
    Constant(Vec<[i64; 2]>),
    /// A function that writes `[lo, hi)` of each axis.
    Computed {
        /// The name of the function.
        symbol: String,
        /// How many axes it writes.
        n_axes: usize,
    },
}

/// A place in a kernel that says something: a `print`, or a check that may fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// What happens here.
    pub kind: SiteKind,
    /// The message.
    pub parts: Vec<Part>,
    /// The user's expression.
    pub span: Span,
}

/// What happens at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SiteKind {
    /// Text for standard output.
    Print,
    /// As `Print`, once a launch.
    Warning,
    /// A check that does not hold.
    Check(AssertKind),
}

/// A piece of a site's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// Literal text.
    Text(String),
    /// The next argument slot, as a value of this type. `format` is the inside of a C conversion
    /// (`.3f`, `05d`, `x`); empty for the default of the type.
    Value {
        /// The argument's type.
        ty: ScalarType,
        /// The conversion, or nothing.
        format: String,
    },
}

impl Site {
    /// A site whose message is a template: each `{}` or `{:spec}` stands for the next value, of
    /// the next of `types`; `{{` and `}}` stand for braces.
    pub fn from_template(kind: SiteKind, template: &str, types: &[ScalarType], span: Span) -> Self {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut types = types.iter();
        let mut rest = template.chars().peekable();
        while let Some(c) = rest.next() {
            if (c == '{' || c == '}') && rest.peek() == Some(&c) {
                text.push(c);
                rest.next();
            } else if c == '{' {
                let spec: String = rest.by_ref().take_while(|&c| c != '}').collect();
                let format = spec.split_once(':').map_or("", |(_, f)| f).to_owned();
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                }
                if let Some(&ty) = types.next() {
                    parts.push(Part::Value { ty, format });
                }
            } else {
                text.push(c);
            }
        }
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Self { kind, parts, span }
    }

    /// How many argument slots the message takes.
    pub fn n_args(&self) -> usize {
        self.parts
            .iter()
            .filter(|part| matches!(part, Part::Value { .. }))
            .count()
    }

    /// The message with its values filled in.
    pub fn render(&self, args: &[u64]) -> String {
        let mut args = args.iter();
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Value { ty, format } => match args.next() {
                    Some(&slot) => crate::format::value(&mut out, *ty, format, slot),
                    None => out.push_str("..."),
                },
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates() {
        let types = [ScalarType::I32, ScalarType::F32];
        let site = Site::from_template(SiteKind::Print, "a {} {{x}} {:.3f}!", &types, Span::NONE);
        assert_eq!(site.n_args(), 2);
        let args = [5, u64::from(1.5_f32.to_bits())];
        assert_eq!(site.render(&args), "a 5 {x} 1.500!");
    }
}
