//! The interface from back ends to devices: object code and the data needed to launch it.

use aerogel_base::{AssertKind, NoteKind, ScalarType, Span};
use serde::{Deserialize, Serialize};

/// A compiled kernel, not yet loaded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct KernelCode {
    /// The object files (or PTX texts) with every task's function.
    pub objects: Vec<Vec<u8>>,
    /// The same in the device's native code, if it was assembled (`Device::assemble`).
    pub binaries: Vec<Vec<u8>>,
    /// The tasks, in the order in which they run.
    pub tasks: Vec<TaskCode>,
    /// Bytes of temporaries that values crossing tasks need.
    pub temp_bytes: usize,
    /// The content of each argument slot.
    pub args: Vec<ArgSlot>,
    /// Which array arguments the code takes to share no memory with any other: those it writes,
    /// if it was compiled so; else empty.
    pub apart: Vec<bool>,
    /// Which trees it may change.
    pub changes: Vec<bool>,
    /// In which trees it may make cells active.
    pub activates: Vec<bool>,
    /// Which array arguments it writes to.
    pub written: Vec<bool>,
    /// Whether its tasks have growing storages.
    pub grows: bool,
    /// How many result slots it writes.
    pub n_results: usize,
    /// The size of each SNode tree of the module, in bytes.
    pub root_bytes: Vec<usize>,
    /// The targets of its atomic operations.
    pub atomics: Atomics,
    /// Messages that generated code refers to by index.
    pub sites: Vec<Site>,
    /// Whether results must depend neither on threads nor on times.
    pub deterministic: bool,
}

impl KernelCode {
    /// Whether accesses are noted, to find data races.
    pub fn notes_accesses(&self) -> bool {
        let mut sites = self.sites.iter();
        sites.any(|site| matches!(site.kind, SiteKind::Note(_)))
    }

    /// Whether functions call themselves, and so need all the stack that they are promised.
    pub fn is_recursive(&self) -> bool {
        self.sites
            .iter()
            .any(|site| site.kind == SiteKind::Check(AssertKind::Recursion))
    }
}

/// The targets of a kernel's atomic operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Atomics {
    /// The trees in which it does so to places.
    pub trees: Vec<bool>,
    /// Whether it does so with elements of arrays.
    pub arrays: bool,
}

/// The content of an argument slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ArgSlot {
    /// A scalar's bits.
    Value,
    /// An array's address.
    Pointer,
    /// An array's size along one axis.
    Extent,
}

/// One task of a kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskCode {
    /// The name of its function.
    pub symbol: String,
    /// The iteration space.
    pub bounds: Bounds,
    /// Parts of a row begin at multiples of this, counted from where the row begins: generated code takes so many
    /// iterations at once, and what is left over may add its numbers in another order.
    pub batch: i64,
    /// Estimated time of one iteration in nanoseconds; a guess that the launcher corrects by
    /// measurement.
    pub cost: f32,
    /// At most this many threads, where the user says so.
    pub max_threads: Option<usize>,
    /// Threads of a block on a GPU, where the user says so.
    pub block: Option<u32>,
    /// Whether so many iterations one behind the other make up a block, each with a thread of its own: they share memory,
    /// or wait for each other.
    pub in_blocks: bool,
    /// Its other function, if it only adds to some places.
    pub sums: Option<SumsCode>,
    /// The exchange between processes around it, by its number; tasks of one number are parts of one loop.
    pub exchange: Option<u32>,
    /// How its parts follow each other.
    pub order: Order,
}

/// How the parts of a task follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// At the same time, in any order.
    #[default]
    Any,
    /// At the same time, but what each does at its end waits for the end of all earlier ones.
    Turns,
    /// One after the other; groups of them at the same time, if each group adds to copies.
    Groups,
}

/// A function that does what a task's does, but adds to memory that is the thread's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SumsCode {
    /// The name of the function.
    pub symbol: String,
    /// How often an iteration adds, roughly.
    pub per_iteration: f32,
    /// The targets of its sums, in the order of `LaunchContext::apart`.
    pub images: Vec<Image>,
    /// It is the task's only function, since copies always pay.
    pub always: bool,
}

/// Nanoseconds that a sum takes less if it is not atomic.
const GAIN: f32 = 4.0;
/// Nanoseconds for adding a byte of a copy and zeroing it.
const COST: f32 = 0.03;
/// As `COST`, of copies that no cache holds.
const COST_FAR: f32 = 0.3;
/// The largest copies that caches hold.
const NEAR: u64 = 8 << 20;
/// At most so many ranges of iterations have copies, where which ones do must not depend on the machine.
const MOST_GROUPS: usize = 8;
/// The most bytes that their copies take.
const MOST_GROUP_BYTES: u64 = 256 << 20;

impl SumsCode {
    /// How much less time an iteration takes than one whose sums are atomic.
    pub fn gain(&self) -> f32 {
        self.per_iteration * GAIN
    }

    /// For how many threads so many iterations are worth copies of so many bytes. Decision 0024 has the numbers.
    pub fn threads_that_pay(&self, n_iterations: i64, bytes: u64) -> usize {
        let cost = if bytes <= NEAR { COST } else { COST_FAR };
        let copies = n_iterations as f32 * self.gain() / (bytes as f32 * cost);
        1_usize.saturating_add(copies as usize)
    }

    /// Into how many ranges, of which all but the first have copies of so many bytes, so many iterations are divided on any
    /// machine.
    pub fn groups(&self, n_iterations: i64, bytes: u64) -> usize {
        let fit = 1 + (MOST_GROUP_BYTES / bytes.max(1)) as usize;
        self.threads_that_pay(n_iterations, bytes)
            .min(fit)
            .min(MOST_GROUPS)
    }
}

/// Bytes in which numbers lie that a task adds to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// Where they are.
    pub memory: ImageMemory,
    /// How many there are; of an array, in one element.
    pub bytes: u64,
    /// The numbers; of an array, in one element. What lies between them is none of the task's sums.
    pub runs: Vec<Run>,
}

/// Where an image lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageMemory {
    /// In a tree.
    Tree {
        /// Its number among `LaunchContext::roots`.
        number: usize,
        /// The image's first byte.
        offset: u64,
    },
    /// It is an array.
    Array {
        /// Its number among the arrays.
        number: usize,
        /// The slot of its first size.
        slot: usize,
        /// Its number of axes.
        ndim: usize,
    },
}

impl Image {
    /// How many elements the array has that it is; 1 if it is none.
    pub fn elements(&self, slots: &[u64]) -> u64 {
        match self.memory {
            ImageMemory::Tree { .. } => 1,
            ImageMemory::Array { slot, ndim, .. } => slots[slot..slot + ndim].iter().product(),
        }
    }
}

/// An operation whose order does not matter. A number in a copy is stored XOR-ed with the identity element, so that
/// zeroed memory is the identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sum {
    /// The sum of both.
    Add,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// The bits of both.
    And,
    /// The bits of either.
    Or,
    /// The bits of one.
    Xor,
}

/// Numbers of one type in an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Their type: an integer of at least a byte, `f32` or `f64`.
    pub ty: ScalarType,
    /// The operation that combines numbers.
    pub sum: Sum,
    /// The first byte in the image.
    pub offset: u64,
    /// The number of contiguous elements.
    pub numbers: u64,
    /// Such rows: bytes from one to the next and how many there are, the outermost loop first.
    pub loops: Vec<[u64; 2]>,
}

impl Run {
    /// The bytes of numbers that lie side by side.
    pub fn row_bytes(&self) -> u64 {
        self.numbers * u64::from(self.ty.bytes())
    }

    /// The byte behind the last number.
    pub fn end(&self) -> u64 {
        let last = self.loops.iter().map(|[step, n]| step * (n - 1));
        self.offset + last.sum::<u64>() + self.row_bytes()
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.loops.iter().map(|l| l[1]).product()
    }

    /// Where a row begins in the image.
    pub fn row(&self, number: u64) -> u64 {
        let (mut at, mut rest) = (self.offset, number);
        for [step, n] in self.loops.iter().rev() {
            at += rest % n * step;
            rest /= n;
        }
        at
    }

    /// Makes rows as long as they are.
    pub fn simplify(&mut self) {
        while let Some(&[step, n]) = self.loops.last()
            && step == self.row_bytes()
        {
            self.loops.pop();
            self.numbers *= n;
        }
    }
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
    /// The kind of the site.
    pub kind: SiteKind,
    /// The message.
    pub parts: Vec<Part>,
    /// The user's expression.
    pub span: Span,
}

/// The kind of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SiteKind {
    /// Text for standard output.
    Print,
    /// As `Print`, once a launch.
    Warning,
    /// A check that does not hold.
    Check(AssertKind),
    /// Something is noted to find data races; the message names a scalar.
    Note(NoteKind),
    /// There is no memory for a cell.
    NoCell {
        /// The number of the tree among the kernel's.
        tree: u32,
        /// The number of the node in it.
        node: u32,
    },
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

    /// How many argument slots it takes: those of the message, after those that a note has besides.
    pub fn n_args(&self) -> usize {
        let of_message = self.parts.iter();
        let of_message = of_message.filter(|part| matches!(part, Part::Value { .. }));
        let fixed = match self.kind {
            SiteKind::Note(kind) => kind.n_fixed(),
            _ => 0,
        };
        fixed + of_message.count()
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
    fn rows_of_numbers() {
        let run = |numbers, loops: &[[u64; 2]]| {
            let mut run = Run {
                ty: ScalarType::F32,
                sum: Sum::Add,
                offset: 8,
                numbers,
                loops: loops.to_vec(),
            };
            run.simplify();
            run
        };
        // Blocks of vectors of three, one behind the other.
        let whole = run(3, &[[768, 10], [12, 64]]);
        assert_eq!((whole.numbers, whole.rows(), whole.end()), (1920, 1, 7688));
        // Two numbers of each cell of 16 bytes.
        let parts = run(2, &[[64, 5], [16, 4]]);
        assert_eq!((parts.row_bytes(), parts.rows(), parts.end()), (8, 20, 320));
        assert_eq!([0, 1, 5, 19].map(|k| parts.row(k)), [8, 24, 88, 312]);
    }

    #[test]
    fn templates() {
        let types = [ScalarType::I32, ScalarType::F32];
        let site = Site::from_template(SiteKind::Print, "a {} {{x}} {:.3f}!", &types, Span::NONE);
        assert_eq!(site.n_args(), 2);
        let args = [5, u64::from(1.5_f32.to_bits())];
        assert_eq!(site.render(&args), "a 5 {x} 1.500!");
    }
}
