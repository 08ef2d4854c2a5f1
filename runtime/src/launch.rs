//! The interface of all devices: the arguments of a launch, and its errors.

use std::sync::{Arc, Mutex};

use smallvec::SmallVec;

use crate::buffer::{Buffer, MemoryError};
use crate::code::{ArgSlot, KernelCode};
use crate::races::Race;
use crate::trace::TaskTrace;
use crate::tree::TreeMemory;

/// Where a kernel's `print` goes.
pub trait PrintSink: Sync {
    /// Takes the text of one `print`, line end included. Threads of one launch may call at once.
    fn print(&self, text: &str);

    /// Called after a launch that printed.
    fn flush(&self) {}
}

/// A sink that keeps the text.
impl PrintSink for Mutex<String> {
    fn print(&self, text: &str) {
        self.lock()
            .unwrap_or_else(|e| e.into_inner())
            .push_str(text);
    }
}

/// Exchanges between processes around the loops of a launch.
pub trait Exchanges: Sync {
    /// Called before the first task of an exchange's loop, and after the last one. An error ends the launch.
    fn run(&self, number: u32, moment: Moment) -> Result<(), Refused>;
}

/// When an exchange happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the loop.
    Before,
    /// After it.
    After,
}

/// The exchange failed; the `Exchanges` that ran it holds the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// Argument slots. Arrays are borrowed, so that they outlive the launch.
#[derive(Default)]
pub struct Args<'a> {
    values: SmallVec<[u64; 8]>,
    kinds: SmallVec<[ArgSlot; 16]>,
    arrays: Vec<&'a Buffer>,
    exchanges: Option<&'a dyn Exchanges>,
}

impl<'a> Args<'a> {
    /// No arguments yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a scalar component, as `Scalar::slot` gives it.
    pub fn scalar(&mut self, slot: u64) {
        self.values.push(slot);
        self.kinds.push(ArgSlot::Value);
    }

    /// Adds an array of cells of `cell_bytes` bytes, row-major.
    pub fn array(
        &mut self,
        buffer: &'a Buffer,
        shape: &[usize],
        cell_bytes: usize,
    ) -> Result<(), MemoryError> {
        let bytes = shape
            .iter()
            .try_fold(cell_bytes, |bytes, &extent| bytes.checked_mul(extent))
            .unwrap_or(usize::MAX);
        if bytes > buffer.len() {
            return Err(MemoryError::OutOfRange {
                offset: 0,
                bytes,
                len: buffer.len(),
            });
        }
        self.values.push(buffer.addresses().start as u64);
        self.kinds.push(ArgSlot::Pointer);
        self.arrays.push(buffer);
        for &extent in shape {
            self.values.push(extent as u64);
            self.kinds.push(ArgSlot::Extent);
        }
        Ok(())
    }

    /// Sets what is called around loops with an exchange.
    pub fn set_exchanges(&mut self, exchanges: &'a dyn Exchanges) {
        self.exchanges = Some(exchanges);
    }

    /// The callback around loops with an exchange.
    pub fn exchanges(&self) -> Option<&'a dyn Exchanges> {
        self.exchanges
    }

    /// The slots.
    pub fn slots(&self) -> &[u64] {
        &self.values
    }

    /// The content of each slot.
    pub fn kinds(&self) -> &[ArgSlot] {
        &self.kinds
    }

    /// The arrays, in the order of their pointers.
    pub fn arrays(&self) -> &[&'a Buffer] {
        &self.arrays
    }
}

impl End {
    /// The end of a failed launch without further information.
    pub fn failed(failure: KernelFailure) -> Self {
        Self {
            outcome: Err(failure),
            printed: String::new(),
            trace: TaskTrace::default(),
        }
    }
}

/// Everything one launch needs.
pub struct Launch<'a> {
    /// The arguments.
    pub args: &'a Args<'a>,
    /// The storage of each SNode tree of the module.
    pub roots: &'a [&'a TreeMemory],
    /// Receives the return value's components.
    pub results: &'a mut [u64],
    /// Receives what the kernel prints.
    pub sink: &'a dyn PrintSink,
    /// Seeds the kernel's random numbers.
    pub seed: u64,
    /// The most bytes that the growing storages of its tasks may take together.
    pub most_reserved: u64,
    /// Receives when the tasks ran, if somebody wants to know.
    pub trace: Option<&'a TaskTrace>,
    /// A device may return before the launch has ended, if it has no results: this is told what would have been received
    /// above.
    pub later: Option<&'a Arc<dyn Later>>,
}

/// The receiver of the outcome of a launch that had returned before it ended.
pub trait Later: Send + Sync {
    /// It is over. The thread may be any, and holds what belongs to the device.
    fn over(&self, end: End);
}

/// How a launch ended that has returned before.
#[derive(Debug)]
pub struct End {
    /// Whether it succeeded.
    pub outcome: Result<(), KernelFailure>,
    /// Its output.
    pub printed: String,
    /// When its tasks ran, if `Launch::trace` was set.
    pub trace: TaskTrace,
}

/// A launch that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelFailure {
    /// A check in the kernel failed.
    Check {
        /// Index into `KernelCode::sites`.
        site: usize,
        /// The values of its message.
        args: Vec<u64>,
    },
    /// Two iterations of a parallel loop access one scalar.
    Race(Box<Race>),
    /// It was interrupted by Ctrl-C.
    Interrupted,
    /// No memory for temporaries.
    Memory(MemoryError),
    /// No memory for a tree on the device.
    Tree {
        /// Which of the launch's roots it is.
        root: usize,
        /// Why.
        error: MemoryError,
    },
    /// Array arguments share memory that the code takes to be apart (`KernelCode::apart`).
    Overlap,
    /// The arguments are not the kernel's.
    Mismatch(&'static str),
    /// The device cannot run the kernel, or was lost.
    Device(String),
    /// An exchange between processes did not happen.
    Exchange,
}

/// The signature of a kernel.
#[derive(Clone, Debug)]
pub struct Signature {
    args: Vec<ArgSlot>,
    apart: Vec<bool>,
    n_results: usize,
    root_bytes: Vec<usize>,
}

impl Signature {
    /// That of a kernel.
    pub fn of(code: &KernelCode) -> Self {
        Self {
            args: code.args.clone(),
            apart: code.apart.clone(),
            n_results: code.n_results,
            root_bytes: code.root_bytes.clone(),
        }
    }

    /// Checks that a launch passes the arguments of the kernel's signature.
    pub fn check(&self, launch: &Launch<'_>) -> Result<(), KernelFailure> {
        if launch.args.kinds() != &self.args[..] {
            return Err(KernelFailure::Mismatch("other arguments than the kernel's"));
        }
        if !are_apart(launch.args.arrays(), &self.apart) {
            return Err(KernelFailure::Overlap);
        }
        if launch.results.len() < self.n_results {
            return Err(KernelFailure::Mismatch("too few result slots"));
        }
        let fits = |(root, &bytes): (&&TreeMemory, &usize)| root.bytes().len() >= bytes;
        if launch.roots.len() < self.root_bytes.len()
            || !launch.roots.iter().zip(&self.root_bytes).all(fits)
        {
            return Err(KernelFailure::Mismatch("other trees than the kernel's"));
        }
        Ok(())
    }
}

/// Whether the marked arrays share no memory with any other.
fn are_apart(arrays: &[&Buffer], marked: &[bool]) -> bool {
    let marks = arrays.iter().zip(marked).enumerate();
    marks
        .filter(|(_, (_, marked))| **marked)
        .all(|(k, (one, _))| {
            let one = one.addresses();
            let others = arrays.iter().enumerate().filter(|&(other, _)| other != k);
            others.map(|(_, other)| other.addresses()).all(|other| {
                one.end <= other.start
                    || other.end <= one.start
                    || one.is_empty()
                    || other.is_empty()
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_share_memory() {
        let (a, b) = (Buffer::zeroed(8).unwrap(), Buffer::zeroed(8).unwrap());
        assert!(are_apart(&[&a, &b], &[true, true]));
        assert!(!are_apart(&[&a, &a], &[true, false]));
        assert!(!are_apart(&[&a, &b, &a], &[false, false, true]));
        assert!(are_apart(&[&a, &a], &[false, false]));
        assert!(are_apart(&[&a, &a], &[]));
    }
}
