//! Python code that runs while a kernel is compiled, on values that the kernel computes when it runs.
//!
//! `def scaled(a, k): return a * k` is called with `k = 3` and an object that stands for the kernel's value `a`.
//! `a * k` becomes a [`Request`] to the [`Tracer`], which appends the instruction and answers with another such object.

use aerogel_base::Diagnostic;

use crate::ast::{BinaryOp, CompareOp, UnaryOp};
use crate::host::{HostError, Known};

/// What Python code does with a value of the kernel.
#[derive(Clone, Debug)]
pub enum Operation {
    Unary(UnaryOp),
    Binary(BinaryOp),
    Compare(CompareOp),
    Attribute(String),
    /// `operands[0][operands[1]]`
    Index,
    /// `operands[0](*operands[1:], **keywords)`
    Call,
    /// The items of `operands[0]`, in order.
    Items,
}

/// An operation and its operands.
#[derive(Clone, Debug)]
pub struct Request {
    pub operation: Operation,
    pub operands: Vec<Known>,
    pub keywords: Vec<(String, Known)>,
}

/// Who carries out what Python code does with values of the kernel.
pub trait Tracer {
    /// Takes the request that the host holds, and leaves the answer there.
    fn serve(&mut self);
}

/// A call of Python code that is ready to run.
pub trait Call {
    /// Runs it; the host then has its [`Outcome`].
    fn run(self: Box<Self>, tracer: &mut dyn Tracer);
}

/// How a call of Python code ended.
#[derive(Debug)]
pub enum Outcome {
    Returned(Known),
    /// It cannot continue without a number that is known only when the kernel runs; the sentence says for what.
    Needs(String),
    /// By an operation that the kernel language does not have.
    Refused(Diagnostic),
    /// By an exception of its own.
    Raised(HostError),
}
