//! The trace of a program's function: what it does step by step, and the recording that the steps build.
//!
//! The function runs once. What a block changes has to be memory before the block begins, and which shape it needs may be
//! known only where it is set:
//!
//! ```text
//! n = const(0)                    n is one number here ...
//! with loop(100):
//!     with if_cond(x > 1):        (x is [m])
//!         n.val += 1              ... and [m] numbers from here on
//! ```
//! So each step is kept, as a function over handles ([`Value`], [`Size`], [`Piece`](super::Piece)). When the function has ended, the steps
//! are replayed with what has been learned, until nothing new is: the shapes of what blocks change are the least that hold
//! everything that is set, as by unification. Facts only grow (more axes, larger extents), so that this ends.

mod blocks;
mod facts;
mod fields;
mod memory;

use std::sync::Arc;

use crate::program::{Buffer, Stmt};

pub use fields::FieldDef;

use super::{Place, RecordError, Recorded, Recording, Size};
use blocks::{Block, BlockId};
use facts::Facts;

/// A value of the function that is traced: what a tensor stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);

/// What is known of a value.
#[derive(Clone, Debug)]
struct Held {
    /// What it is now: other memory, or another value, once it has been set.
    buffer: Buffer,
    /// The innermost block in which it was made.
    block: BlockId,
    /// How often stores may have made cells active by then.
    activations: Vec<u32>,
    is_memory: bool,
    /// The last step that has made it, or what it is made of, larger than it was at first.
    grown_by: usize,
    /// It comes from outside, and nothing may set it.
    is_constant: bool,
}

/// What the steps so far have built.
#[derive(Debug, Default)]
pub struct State {
    /// The recording.
    pub r: Recording,
    values: Vec<Held>,
    open: Vec<Block>,
    /// Where each block began.
    begun: Vec<Place>,
    /// The statements around each block that is open.
    around: Vec<Vec<Stmt>>,
    fields: Vec<(Buffer, Arc<FieldDef>)>,
    facts: Facts,
    /// The number of the step that is done, from 1.
    at: usize,
}

/// A step of the function.
type Step = dyn Fn(&mut State) -> Recorded<()> + Send + Sync;

/// How many handles there are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Counts {
    values: usize,
    sizes: usize,
    pieces: usize,
}

struct Logged {
    step: Box<Step>,
    after: Counts,
    place: Place,
}

/// A function that is traced.
pub struct Trace {
    /// What its steps have built.
    pub state: State,
    steps: Vec<Logged>,
}

/// A step that could not be done again with what later steps have taught.
#[derive(Debug)]
pub struct StepError {
    /// Why.
    pub error: RecordError,
    /// Where the step stands.
    pub place: Place,
}

/// So often, and once for each step, steps are done again at most: each time teaches about one block at least, those deep in
/// others last.
const MOST_ROUNDS: usize = 64;

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
    /// Does a step of the function, and keeps it.
    ///
    /// # Errors
    /// Of the step, which is not kept then.
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
                self.state.r.pieces.truncate(before.pieces);
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

    /// Does the steps again until they teach nothing new.
    ///
    /// # Errors
    /// If a step cannot be done with what later ones have taught.
    pub fn settle(&mut self) -> Result<(), StepError> {
        // Values that teach each other do so one by one.
        for _ in 0..MOST_ROUNDS + self.steps.len() {
            if !self.state.has_learned() {
                // What they hold may hold the program.
                self.steps.clear();
                return Ok(());
            }
            let old = std::mem::take(&mut self.state);
            self.state.facts = old.facts.after(old.r.program);
            if let Err(e) = self.again() {
                // What a step means may depend on what it teaches.
                if !self.state.has_learned() {
                    return Err(e);
                }
            }
        }
        let what = "a value that is set in a block has more axes, or other extents, each time, as by `x.val = x[None] + 1` in a \
                    loop: what is set in a block keeps its extents";
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
                    "a block gives a value more axes than it was made with, and this depends on them: make it with all of them, \
                     as by `const(full(shape, 0))`"
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
            pieces: self.r.pieces.len(),
        }
    }

    /// A handle of what an operation has given.
    pub fn value(&mut self, buffer: Buffer) -> Value {
        self.hold(buffer, self.block(), false)
    }

    /// A handle of what comes from outside and stays as it is.
    pub fn constant(&mut self, buffer: Buffer) -> Value {
        self.hold(buffer, BlockId::FUNCTION, true)
    }

    /// Lets a value be some memory from here on.
    fn is_now(&mut self, value: Value, memory: Buffer) {
        let held = &mut self.values[value.0 as usize];
        (held.buffer, held.is_memory) = (memory, true);
    }

    fn hold(&mut self, buffer: Buffer, block: BlockId, is_constant: bool) -> Value {
        let value = Value(self.values.len() as u32);
        self.values.push(Held {
            buffer,
            block,
            activations: self.r.activations(),
            is_memory: false,
            grown_by: 0,
            is_constant,
        });
        value
    }

    /// What a value is now.
    ///
    /// # Errors
    /// If it was made in a block that has ended.
    pub fn buffer(&self, value: Value) -> Recorded<Buffer> {
        let held = &self.values[value.0 as usize];
        self.expect_open(held.block)?;
        Ok(held.buffer)
    }

    /// What a value is now, for messages and for what every one has, such as its type.
    pub fn seen(&self, value: Value) -> Buffer {
        self.values[value.0 as usize].buffer
    }

    /// What several values are now.
    ///
    /// # Errors
    /// As `buffer`.
    pub fn buffers(&self, values: &[Value]) -> Recorded<Vec<Buffer>> {
        values.iter().map(|&value| self.buffer(value)).collect()
    }

    /// The extents of a value: numbers, and handles of those that only the run knows.
    pub fn shape(&mut self, value: Value) -> Vec<Result<u64, Size>> {
        let shape = self.r.shape(self.seen(value));
        let extents = shape.into_iter();
        extents
            .map(|dim| {
                self.r
                    .program
                    .const_dim(dim)
                    .ok_or_else(|| self.r.size_handle(dim))
            })
            .collect()
    }

    /// Refuses that values have other numbers of axes than those that the function has seen, if a step that comes later has
    /// made them larger.
    ///
    /// # Errors
    /// If one has.
    pub fn expect_ranks(&self, values: &[Value], seen: &[usize]) -> Recorded<()> {
        let mut both = values.iter().zip(seen);
        let grown = both.find(|&(&value, &rank)| {
            self.rank(value) != rank && self.values[value.0 as usize].grown_by > self.at
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
            "this depends on the axes of a tensor, which has {had} here, and to which a block gives the shape {shape}: make it \
             with that, as by `const(full(shape, 0))`"
        )))
    }

    /// What is made of some values has grown with them.
    pub fn grows_with(&mut self, made: Value, of: &[Value]) {
        let all = of.iter().map(|v| self.values[v.0 as usize].grown_by);
        let last = all.max().unwrap_or(0);
        let own = &mut self.values[made.0 as usize].grown_by;
        *own = last.max(*own);
    }

    /// The number of axes of a value.
    pub fn rank(&self, value: Value) -> usize {
        self.r.rank(self.seen(value))
    }

    /// Refuses that a value has other extents than those that the function has seen.
    ///
    /// # Errors
    /// If it has.
    pub fn expect_shape(&self, value: Value, seen: &[Option<u64>]) -> Recorded<()> {
        let shape = self.r.shape(self.seen(value));
        let own = shape.iter().map(|&dim| self.r.program.const_dim(dim));
        if own.clone().count() == seen.len() && own.zip(seen).all(|(n, seen)| n == *seen) {
            return Ok(());
        }
        Err(RecordError::Value(format!(
            "this asks for the shape of a tensor to which a block gives other extents, {}: make it with these, as by \
             `const(full(shape, 0))`",
            self.r.shape_text(&shape)
        )))
    }
}
