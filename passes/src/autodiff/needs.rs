//! What the backward pass needs from memory, and the error messages if it was overwritten (`overwritten.rs`,
//! `asks.rs` and `races.rs` find that).

use aerogel_base::{Diagnostic, ErrorKind, Span};
use aerogel_ir::analysis::boxes::Storage;
use aerogel_ir::{Arg, Env, Value};

/// The memory as the backward pass must find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// As it was when the kernel began.
    Start,
    /// As the kernel leaves it.
    End,
}

/// Something that the backward pass reads.
#[derive(Clone, Copy, Debug)]
pub struct Needed {
    /// The place, a value of the prepared kernel.
    pub place: Value,
    /// When it must be read.
    pub at: Moment,
}

/// A read value that is overwritten.
#[derive(Clone, Copy, Debug)]
pub struct Overwritten {
    /// Where it is read.
    pub read: Span,
    /// Where it is written.
    pub written: Span,
    /// What is.
    pub of: Of,
}

/// What is read and overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A value.
    Values,
    /// Which cells of a sparse field are active.
    Cells,
}

/// Two indices, each an argument and what is added to it, that must differ in a launch: then what the gradient reads
/// along that axis is not what the kernel writes.
#[derive(Clone, Copy, Debug)]
pub struct ToldApart {
    /// Of what is read, and of what is written.
    pub indices: [(Arg, i64); 2],
    /// What would be overwritten otherwise.
    pub what: Overwritten,
}

/// A value that nothing can bring back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    pub(super) what: Overwritten,
    pub(super) why: Why,
}

/// Why nothing can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Iterations race for it.
    Order,
    /// It is rounded where it is stored, becomes zero with its cell, or goes by two names.
    Undone,
    /// A function that calls itself reads or writes it.
    Called,
    /// It is needed as it was at the start, and as it is at the end.
    Both,
}

impl Lost {
    pub(super) fn of(what: Option<Overwritten>, why: Why) -> Option<Self> {
        what.map(|what| Self { what, why })
    }

    /// What to say where nothing brings it back.
    pub(super) fn mistake(&self, env: &Env) -> Diagnostic {
        let why = match self.why {
            Why::Order => "their order is not known",
            Why::Undone => {
                "it cannot be restored: it is quantised, belongs to a cell that is deactivated, or is stored to under two names"
            }
            Why::Called => {
                "a function that calls itself reads or writes it, at a time that is not known relative to the rest of the kernel"
            }
            Why::Both => {
                "both the value at the start and the one at the end of the kernel are needed"
            }
        };
        let remedy = match self.what.of {
            Of::Values => ", or write it to elements of its own, y[t + 1, i] from y[t, i]",
            Of::Cells => "",
        };
        let note = format!("{why}: make each step a kernel of its own, under ti.ad.Tape(){remedy}");
        self.what.gone(env).note(note)
    }
}

/// Fields and arrays without derivatives that a kernel writes from what has some, and those that it reads for what has
/// some. Of functions that are called, fields alone: the numbers of their arrays are their own.
#[derive(Clone, Debug, Default)]
pub struct Untracked {
    /// Those that it writes.
    pub written: Vec<Storage>,
    /// Those that it reads.
    pub read: Vec<Storage>,
    /// Those that it reads, each with one that it writes from that: what has a derivative may have been written before.
    pub passed: Vec<[Storage; 2]>,
}

impl Untracked {
    pub(super) fn add(&mut self, other: Self) {
        self.written.extend(other.written);
        self.read.extend(other.read);
        self.passed.extend(other.passed);
    }

    /// Forgets the arrays.
    pub(super) fn of_fields(mut self) -> Self {
        let is_field = |storage: &Storage| matches!(storage, Storage::Field(_));
        self.written.retain(is_field);
        self.read.retain(is_field);
        self.passed.retain(|both| both.iter().all(is_field));
        self
    }
}

impl Overwritten {
    /// What to say where the value that was read cannot be put back.
    pub fn mistake(&self, env: &Env) -> Diagnostic {
        self.gone(env).note(match self.of {
            Of::Values => {
                "write to another field, or run the kernel under ti.ad.Tape(), which saves it"
            }
            Of::Cells => "run the kernel under ti.ad.Tape(), which saves them",
        })
    }

    /// The error for a launch whose arguments overlap where one is read and the other is written.
    pub fn mistake_of_launch(&self, env: &Env) -> Diagnostic {
        self.gone(env).note(
            "in this launch both are the same elements: the arguments that name them are equal; write to elements of their \
             own, or to another field",
        )
    }

    /// What to say where the loops cannot run in order.
    pub(super) fn in_steps(self, env: &Env) -> Diagnostic {
        let lost = Lost {
            what: self,
            why: Why::Order,
        };
        lost.mistake(env)
    }

    /// What to say of a value that another iteration of a parallel loop writes.
    pub(super) fn mistake_of_race(&self, env: &Env) -> Diagnostic {
        let message = "other iterations of the same parallel loop write the value that is read here: their order is not known, so there is no gradient";
        let written = place(env, self.written);
        Diagnostic::new(ErrorKind::Compilation, "E0605", self.read, message)
            .note(format!("it is written {written}"))
            .note("write to another field, or let the loop run in order: `ti.loop_config(serialize=True)`")
    }

    fn gone(&self, env: &Env) -> Diagnostic {
        let (message, what) = match self.of {
            Of::Values => (
                "the gradient needs the value that is read here, and the kernel overwrites it",
                "it is overwritten",
            ),
            Of::Cells => (
                "the gradient needs to know which cells are active here, and the kernel changes that",
                "it may change",
            ),
        };
        let written = place(env, self.written);
        Diagnostic::new(ErrorKind::Compilation, "E0603", self.read, message)
            .note(format!("{what} {written}"))
    }

    /// What to say of a value that has a derivative and goes through memory that has none.
    pub(super) fn untracked(&self, env: &Env) -> Diagnostic {
        let message = "the value that is read here depends on data with a gradient, but is stored in a field or array without one: it counts as a constant";
        let written = place(env, self.written);
        Diagnostic::new(ErrorKind::Compilation, "E0604", self.read, message)
            .note(format!("it is written {written}"))
            .note(
                "make the field with needs_grad=True, or read it as ti.stop_grad(x[i]) if no gradient should pass",
            )
    }
}

/// Where something happens, as text.
fn place(env: &Env, span: Span) -> String {
    let Some(range) = env.spans.get(span) else {
        return "in the same kernel".to_owned();
    };
    let file = &env.sources[range.source];
    let (line, text) = (file.position(range.start).0, file.line_at(range.start).0);
    format!("in line {line}: `{}`", text.trim())
}
