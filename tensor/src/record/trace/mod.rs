//! Tracing a program: the steps of its function, and the recording that they build.
//!
//! The function runs once. A value that a block changes must be memory before the block begins, but its shape may be known
//! only where it is set:
//!
//! ```text
//! n = const(0)                    n is one number here ...
//! with loop(100):
//!     with if_cond(x > 1):        (x is [m])
//!         n.val += 1              ... and [m] numbers from here on
//! ```
//! So the trace keeps each step as a closure over handles ([`Value`], [`Size`]). When the function has
//! returned, the steps are replayed with the constraints that the last replay inferred, until there are no new ones. The
//! inferred shapes are the smallest that hold every value that is set. They only grow, so the replays end.

mod blocks;
mod constraints;
mod fields;
mod memory;

use std::sync::Arc;

use crate::ir::{Buffer, Place, Stmt};

pub use fields::FieldDef;
pub use memory::Naming;

use super::{RecordError, Recorded, Recording, Size};
use blocks::{Block, BlockId};
use constraints::Constraints;

/// A handle of a tensor in the function that is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);

/// The state of one value.
#[derive(Clone, Debug)]
struct ValueInfo {
    /// The buffer that has its elements now; setting the value may replace it.
    buffer: Buffer,
    /// The innermost block in which it was made.
    block: BlockId,
    /// The activation counters of sparse nodes when it was made.
    activations: Vec<u32>,
    is_memory: bool,
    /// The number of the last step that enlarged it, or a value that it depends on.
    resized_by: usize,
    /// Whether it comes from outside the program, which cannot set it.
    is_constant: bool,
}

/// The result of the steps so far.
#[derive(Debug, Default)]
pub struct State {
    /// The recording.
    pub r: Recording,
    values: Vec<ValueInfo>,
    open: Vec<Block>,
    /// Where each block began.
    begun: Vec<Place>,
    /// The statements around each block that is open.
    around: Vec<Vec<Stmt>>,
    fields: Vec<(Buffer, Arc<FieldDef>)>,
    constraints: Constraints,
    /// The number of the current step, from 1.
    at: usize,
}

/// A step of the function.
type Step = dyn Fn(&mut State) -> Recorded<()> + Send + Sync;

/// The number of handles of each kind.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Counts {
    values: usize,
    sizes: usize,
}

struct Logged {
    step: Box<Step>,
    after: Counts,
    place: Place,
}

/// A function that is traced.
pub struct Trace {
    /// The result of its steps.
    pub state: State,
    steps: Vec<Logged>,
}

/// A step that failed when it was replayed with the constraints of later steps.
#[derive(Debug)]
pub struct StepError {
    /// Why.
    pub error: RecordError,
    /// The source location of the step.
    pub place: Place,
}

/// The limit of replays, besides one for each step. Each replay infers constraints of one block at least, outer blocks first.
const MOST_REPLAYS: usize = 64;

impl Default for Trace {
    fn default() -> Self {
        let mut state = State::default();
        state.r.cells.excuses = true;
        Self {
            state,
            steps: Vec::new(),
        }
    }
}

impl Trace {
    /// Runs a step of the function and stores it for replays.
    ///
    /// # Errors
    /// Those of the step, which is not stored then.
    pub fn step<R>(
        &mut self,
        place: Place,
        step: impl Fn(&mut State) -> Recorded<R> + Send + Sync + 'static,
    ) -> Recorded<R> {
        let before = self.state.counts();
        self.state.at = self.steps.len() + 1;
        let out = match step(&mut self.state) {
            Ok(out) => out,
            Err(e) => {
                self.state.values.truncate(before.values);
                self.state.r.sizes.truncate(before.sizes);
                return Err(e);
            }
        };
        self.state.r.note(place);
        self.steps.push(Logged {
            step: Box::new(move |state| step(state).map(drop)),
            after: self.state.counts(),
            place,
        });
        Ok(out)
    }

    /// Replays the steps until they infer no new constraints.
    ///
    /// # Errors
    /// If a step fails with the constraints of later steps.
    pub fn settle(&mut self) -> Result<(), StepError> {
        // A chain of values that depend on each other settles one value in each replay.
        for _ in 0..MOST_REPLAYS + self.steps.len() {
            if !self.state.has_inferred() {
                // Closures may refer to Python objects that refer to the program.
                self.steps.clear();
                return Ok(());
            }
            let old = std::mem::take(&mut self.state);
            self.state.constraints = old.constraints.after(old.r.program);
            if let Err(e) = self.again() {
                // The step may succeed with the constraints that it has inferred.
                if !self.state.has_inferred() {
                    return Err(e);
                }
            }
        }
        let what = "a value that is set in a block gets another shape in each replay, as by `x.val = x[None] + 1` in a loop: a block \
                    must keep the shape of a value that it sets";
        Err(StepError {
            error: RecordError::Value(what.to_owned()),
            place: Place::NONE,
        })
    }

    fn again(&mut self) -> Result<(), StepError> {
        for (number, logged) in self.steps.iter().enumerate() {
            let place = logged.place;
            self.state.at = number + 1;
            (logged.step)(&mut self.state).map_err(|error| StepError { error, place })?;
            self.state.r.note(place);
            if self.state.counts() != logged.after {
                let error = RecordError::Value(
                    "this operation depends on the number of axes of a tensor, and a block adds axes to that: create the tensor with \
                     its final shape, as in `const(full(shape, 0))`"
                        .to_owned(),
                );
                return Err(StepError { error, place });
            }
        }
        Ok(())
    }
}

impl State {
    fn counts(&self) -> Counts {
        Counts {
            values: self.values.len(),
            sizes: self.r.sizes.len(),
        }
    }

    /// A handle of the result of an operation.
    pub fn value(&mut self, buffer: Buffer) -> Value {
        self.hold(buffer, self.block(), false)
    }

    /// A handle of a tensor from outside the program, which cannot be set.
    pub fn constant(&mut self, buffer: Buffer) -> Value {
        self.hold(buffer, BlockId::FUNCTION, true)
    }

    /// Makes a buffer the memory of a value.
    fn becomes(&mut self, value: Value, memory: Buffer) {
        let held = &mut self.values[value.0 as usize];
        (held.buffer, held.is_memory) = (memory, true);
    }

    fn hold(&mut self, buffer: Buffer, block: BlockId, is_constant: bool) -> Value {
        let value = Value(self.values.len() as u32);
        self.values.push(ValueInfo {
            buffer,
            block,
            activations: self.r.activations(),
            is_memory: false,
            resized_by: 0,
            is_constant,
        });
        value
    }

    /// The buffer of a value.
    ///
    /// # Errors
    /// If the value was made in a block that has ended.
    pub fn buffer(&self, value: Value) -> Recorded<Buffer> {
        let held = &self.values[value.0 as usize];
        self.expect_open(held.block)?;
        Ok(held.buffer)
    }

    /// The buffer of a value from any block, for its dtype, its shape and error messages.
    pub fn seen(&self, value: Value) -> Buffer {
        self.values[value.0 as usize].buffer
    }

    /// The buffers of several values.
    ///
    /// # Errors
    /// As `buffer`.
    pub fn buffers(&self, values: &[Value]) -> Recorded<Vec<Buffer>> {
        values.iter().map(|&value| self.buffer(value)).collect()
    }

    /// The shape of a value: numbers, and handles of sizes that are known at run time only.
    pub fn shape(&mut self, value: Value) -> Vec<Result<u64, Size>> {
        let shape = self.r.shape(self.seen(value));
        shape
            .into_iter()
            .map(|dim| {
                self.r
                    .program
                    .const_dim(dim)
                    .ok_or_else(|| self.r.size_handle(dim))
            })
            .collect()
    }

    /// Checks that no later step adds axes to values whose number of axes the function has read.
    ///
    /// # Errors
    /// If one does.
    pub fn expect_ranks(&self, values: &[Value], seen: &[usize]) -> Recorded<()> {
        let mut both = values.iter().zip(seen);
        let grown = both.find(|&(&value, &rank)| {
            self.rank(value) != rank && self.values[value.0 as usize].resized_by > self.at
        });
        let Some((&value, &rank)) = grown else {
            return Ok(());
        };
        let shape = self.r.shape_text(&self.r.shape(self.seen(value)));
        let had = match rank {
            0 => "one number".to_owned(),
            1 => "one axis".to_owned(),
            n => format!("{n} axes"),
        };
        Err(RecordError::Value(format!(
            "this operation depends on the axes of a tensor, which has {had} here, and a later block sets it to the shape \
             {shape}: create the tensor with that shape, as in `const(full(shape, 0))`"
        )))
    }

    /// Notes that a value depends on others: a step that enlarges those enlarges it.
    pub fn resized_with(&mut self, made: Value, of: &[Value]) {
        let all = of.iter().map(|v| self.values[v.0 as usize].resized_by);
        let last = all.max().unwrap_or(0);
        let own = &mut self.values[made.0 as usize].resized_by;
        *own = last.max(*own);
    }

    /// The number of axes of a value.
    pub fn rank(&self, value: Value) -> usize {
        self.r.rank(self.seen(value))
    }

    /// Checks that a value has the shape that the function has read.
    ///
    /// # Errors
    /// If it has not.
    pub fn expect_shape(&self, value: Value, seen: &[Option<u64>]) -> Recorded<()> {
        let shape = self.r.shape(self.seen(value));
        let own = shape.iter().map(|&dim| self.r.program.const_dim(dim));
        if own.clone().count() == seen.len() && own.zip(seen).all(|(n, seen)| n == *seen) {
            return Ok(());
        }
        Err(RecordError::Value(format!(
            "this reads the shape of a tensor that a block sets to another shape, {}: create the tensor with that shape, as in \
             `const(full(shape, 0))`",
            self.r.shape_text(&shape)
        )))
    }
}
