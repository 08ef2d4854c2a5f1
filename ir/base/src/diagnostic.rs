//! The user's mistakes: gathered while compiling, rendered once.

use crate::Span;

/// Which of Taichi's exception classes a mistake is raised as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// `TaichiCompilationError`
    Compilation,
    /// `TaichiSyntaxError`
    Syntax,
    /// `TaichiNameError`
    Name,
    /// `TaichiTypeError`
    Type,
    /// `TaichiIndexError`
    Index,
    /// `TaichiRuntimeError`
    Runtime,
    /// `TaichiRuntimeTypeError`
    RuntimeType,
    /// `TaichiAssertionError`
    Assertion,
    /// `AerogelNotSupportedError`
    NotSupported,
}

impl ErrorKind {
    /// The name of the Python class in the package.
    pub fn class_name(self) -> &'static str {
        match self {
            ErrorKind::Compilation => "AerogelCompilationError",
            ErrorKind::Syntax => "AerogelSyntaxError",
            ErrorKind::Name => "AerogelNameError",
            ErrorKind::Type => "AerogelTypeError",
            ErrorKind::Index => "AerogelIndexError",
            ErrorKind::Runtime => "AerogelRuntimeError",
            ErrorKind::RuntimeType => "AerogelRuntimeTypeError",
            ErrorKind::Assertion => "AerogelAssertionError",
            ErrorKind::NotSupported => "AerogelNotSupportedError",
        }
    }
}

/// One mistake, with its place and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The exception class.
    pub kind: ErrorKind,
    /// A stable code such as `E0203`.
    pub code: &'static str,
    /// The message: lower case, no full stop, the user's names in backticks.
    pub message: String,
    /// The expression at fault.
    pub span: Span,
    /// Words to print beside the caret.
    pub label: Option<String>,
    /// Further help: the remedy, or where something was declared.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// A mistake without label or notes.
    pub fn new(
        kind: ErrorKind,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            code,
            message: message.into(),
            span,
            label: None,
            notes: Vec::new(),
        }
    }

    /// Adds a line of help.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Sets the words beside the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
}

/// All mistakes of a kernel, in the order in which they were found.
pub type Diagnostics = Vec<Diagnostic>;
