//! Errors, with the instruction that caused them.

use std::fmt;

/// A text that is no PTX, or uses something the machine does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// What a thread did that it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An address that belongs to nothing.
    OutOfBounds,
    /// An address that belonged to memory which was given back.
    Freed,
    /// An address that is no multiple of what is read there.
    Misaligned,
    /// Uninitialised memory is read.
    NeverWritten,
    /// What may only be read is written.
    ReadOnly,
    /// An atomic operation where there are none.
    Atomic,
    /// Two threads access the same memory, one of them writes, and nothing orders them.
    Race,
    /// Some threads wait at a barrier that others will not reach.
    Barrier,
    /// Lanes are to take part that do not.
    Lanes,
    /// `trap`
    Trap,
    /// More instructions than the launch may take.
    Endless,
    /// A launch requests more than there is, or nothing.
    Launch,
    /// Calls are too deep, or local memory is too large.
    Stack,
}

/// The first thing that went wrong in a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What it is.
    pub kind: FaultKind,
    /// What happened, in words.
    pub message: String,
    /// The kernel or function.
    pub function: String,
    /// The line of the text, counted from 1; 0 where it is no instruction's.
    pub line: u32,
    /// That line.
    pub instruction: String,
    /// The number of the thread in its block, along three axes.
    pub thread: [u32; 3],
    /// The number of the block in the grid.
    pub block: [u32; 3],
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if self.line > 0 {
            let ([tx, ty, tz], [bx, by, bz]) = (self.thread, self.block);
            write!(
                f,
                "\n  {}, line {}: {}\n  thread ({tx}, {ty}, {tz}) of block ({bx}, {by}, {bz})",
                self.function, self.line, self.instruction
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
