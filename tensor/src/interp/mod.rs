//! The reference interpreter: the meaning of a program, without attention to speed.
//!
//! Points of a `for` are visited row by row. Sums of floats are made in that order.

mod cells;

use aerogel_base::Scalar;
use aerogel_base::entity::SecondaryMap;

use aerogel_ir::eval;
use indexmap::IndexMap;

pub use cells::Fields;

use crate::ir::{
    Array, Buffer, Call, Expr, Failure, For, History, Library, Operand, Outside, Program, Role,
    Run, RunError, Scope, Stmt, Store, Var, agreements, check_inputs, counted, eval_in, extent,
    place, point,
};
use crate::library::reference::library;

/// How a list of statements ended.
#[derive(PartialEq)]
enum Flow {
    On,
    Break,
    Continue,
}

struct Interp<'p> {
    program: &'p Program,
    memory: SecondaryMap<Buffer, Option<Array>>,
    /// The fields, and which cells of their trees are active.
    fields: &'p mut Fields,
    /// The same of temporaries in trees.
    scratch: Fields,
    vars: SecondaryMap<Var, Option<Scalar>>,
    /// The point at which statements run.
    point: Vec<i32>,
    /// The contents of the histories.
    histories: IndexMap<Buffer, History<Array>>,
}

/// Runs a program: `inputs` in their order, changed by it; the result arrays.
///
/// # Errors
/// Why it ended early; inputs are then as far as it got.
pub fn run(program: &Program, inputs: &mut [Array]) -> Result<Vec<Array>, RunError> {
    run_over(program, inputs, &mut Fields::of(program))
}

/// The same of a program with fields, changed by it.
///
/// # Errors
/// Why it ended early; inputs and fields are then as far as it got.
pub fn run_over(
    program: &Program,
    inputs: &mut [Array],
    fields: &mut Fields,
) -> Result<Vec<Array>, RunError> {
    let mut memory: SecondaryMap<Buffer, Option<Array>> = SecondaryMap::new();
    let given: Vec<Buffer> = program.inputs().collect();
    let shapes: Vec<_> = inputs.iter().map(|a| (a.ty, &a.shape[..])).collect();
    check_inputs(program, &shapes)?;
    for (&buffer, array) in given.iter().zip(inputs.iter_mut()) {
        memory[buffer] = Some(std::mem::replace(array, Array::zeros(array.ty, &[0])));
    }
    let mut interp = Interp {
        program,
        memory,
        fields,
        scratch: Fields::scratch(program),
        vars: SecondaryMap::new(),
        point: Vec::new(),
        histories: IndexMap::new(),
    };
    let outcome = agreements(program, &mut interp).and_then(|()| interp.block(&program.body));
    let results = outcome.and_then(|_| {
        let results = program.results.iter();
        results
            .map(|&b| interp.array(b).map(|a| a.clone()))
            .collect()
    });
    for (&buffer, array) in given.iter().zip(inputs) {
        *array = interp.memory[buffer].take().expect("inputs stay");
    }
    results
}

impl Scope for Interp<'_> {
    type Error = RunError;

    fn axis(&self, k: u32) -> Scalar {
        Scalar::i32(self.point[k as usize])
    }

    fn var(&self, var: Var) -> Option<Scalar> {
        self.vars[var]
    }

    fn shape(&mut self, buffer: Buffer) -> Result<&[usize], RunError> {
        Ok(&self.array(buffer)?.shape)
    }

    fn element(&mut self, buffer: Buffer, at: usize) -> Result<Scalar, RunError> {
        Ok(self.array(buffer)?.data[at])
    }
}

impl Interp<'_> {
    /// The buffers in the same tree as a buffer.
    fn among(&mut self, buffer: Buffer) -> Option<&mut Fields> {
        match self.program.buffers[buffer].role {
            Role::Field(..) => Some(self.fields),
            Role::Scratch(..) => Some(&mut self.scratch),
            Role::Input(_) | Role::Temporary => None,
        }
    }

    /// A buffer's array, made if it is not there yet.
    fn array(&mut self, buffer: Buffer) -> Result<&mut Array, RunError> {
        if self.program.holder(buffer).is_some() {
            let all = self.among(buffer).expect("it lies in a tree");
            return Ok(all.array(buffer));
        }
        if self.memory[buffer].is_none() {
            let def = &self.program.buffers[buffer];
            debug_assert_eq!(def.role, Role::Temporary);
            let shape = def.shape.iter().map(|&d| extent(self.program, self, d));
            let shape: Vec<usize> = shape
                .map(|n| n.map(|n| n as usize))
                .collect::<Result<_, _>>()?;
            let made = Array::try_zeros(def.ty, &shape);
            self.memory[buffer] = Some(made.map_err(|error| RunError::NoRoom {
                buffer,
                shape,
                error,
            })?);
        }
        Ok(self.memory[buffer].as_mut().expect("made above"))
    }

    fn block(&mut self, body: &[Stmt]) -> Result<Flow, RunError> {
        for stmt in body {
            let flow = self.stmt(stmt)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Flow, RunError> {
        match stmt {
            Stmt::For(all) => self.all(all)?,
            Stmt::Store(store) => self.store(store)?,
            Stmt::Set(var, e) => self.vars[*var] = Some(self.eval(*e)?),
            Stmt::Loop {
                var,
                lo,
                hi,
                step,
                body,
            } => {
                let [lo, hi] = [self.eval(*lo)?, self.eval(*hi)?].map(|e| e.as_i128());
                for at in counted(lo, hi, *step) {
                    self.vars[*var] = Some(at);
                    if self.block(body)? == Flow::Break {
                        break;
                    }
                }
            }
            Stmt::If(cond, then, otherwise) => {
                let taken = if self.eval(*cond)?.as_bool() {
                    then
                } else {
                    otherwise
                };
                return self.block(taken);
            }
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
            Stmt::Call(call) => self.call(call)?,
            Stmt::Run(run) => self.run(run)?,
            Stmt::Clear(buffer) => self.scratch.clear(self.program, *buffer),
        }
        Ok(Flow::On)
    }

    fn all(&mut self, all: &For) -> Result<(), RunError> {
        for stmt in &all.body {
            if let Stmt::Store(Store {
                target,
                init: true,
                accum: Some(accum),
                ..
            }) = stmt
            {
                let array = self.array(*target)?;
                array.data.fill(accum.neutral(array.ty));
            }
        }
        let extents = all.domain.iter().map(|&d| extent(self.program, self, d));
        let extents: Vec<u64> = extents.collect::<Result<_, _>>()?;
        let n = match extents.contains(&0) {
            true => 0,
            false => extents.iter().fold(1, |n: u64, &e| n.saturating_mul(e)),
        };
        let points = (0..n).map(|linear| point(linear, &extents));
        let points: Box<dyn Iterator<Item = Vec<i32>>> = match all.cells {
            None => Box::new(points),
            Some(field) => {
                let program = self.program;
                let among = self.among(field).expect("it has cells");
                // Before the first store, which may make others active.
                let active = points.filter(|point| among.is_active(program, field, point));
                Box::new(active.collect::<Vec<_>>().into_iter())
            }
        };
        for point in points {
            self.point = point;
            self.block(&all.body)?;
        }
        self.point.clear();
        Ok(())
    }

    fn place(
        &mut self,
        buffer: Buffer,
        index: &[Expr],
        outside: Outside,
    ) -> Result<Option<usize>, RunError> {
        let mut at = Vec::new();
        for &e in index {
            at.push(self.eval(e)?.as_i128() as i64);
        }
        Ok(place(buffer, &at, &self.array(buffer)?.shape, outside)?)
    }

    fn store(&mut self, store: &Store) -> Result<(), RunError> {
        let value = self.eval(store.value)?;
        if let Some(at) = self.place(store.target, &store.index, store.outside)? {
            let array = self.array(store.target)?;
            array.data[at] = match store.accum {
                None => value,
                Some(accum) => eval::binary(accum.binary(), array.data[at], value),
            };
            let program = self.program;
            if let Some(among) = self.among(store.target) {
                among.stored(program, store.target, at);
            }
        }
        Ok(())
    }

    fn eval(&mut self, e: Expr) -> Result<Scalar, RunError> {
        eval_in(self.program, self, e)
    }

    fn run(&mut self, run: &Run) -> Result<(), RunError> {
        let mut operands = Vec::new();
        for &buffer in &run.arrays {
            let array = self.array(buffer)?;
            operands.push(Operand::of(array)?);
        }
        let region = &self.program.regions[run.region];
        let (operands, results) = region.run(operands)?;
        let all = run.arrays.iter().zip(&region.writes).zip(operands);
        for ((&buffer, _), operand) in all.filter(|((_, written), _)| **written) {
            let array = operand.to_array()?;
            self.memory[buffer] = Some(array);
        }
        for (&buffer, value) in run.results.iter().zip(results) {
            self.array(buffer)?.data[0] = value;
        }
        Ok(())
    }

    /// Puts a copy of a buffer on a history, or takes the last one back.
    fn history(&mut self, call: &Call, [value, history]: [Buffer; 2]) -> Result<(), RunError> {
        let own = self.array(value)?.clone();
        let mask = match call.mask() {
            Some(mask) => Some(self.array(mask)?.data.iter().map(|x| x.as_bool()).collect()),
            None => None,
        };
        let mask: Option<Vec<bool>> = mask;
        let all = self.histories.entry(history).or_default();
        let taken = match (call.library, mask) {
            (Library::Push, None) => {
                all.push(own);
                return Ok(());
            }
            (Library::Push, Some(mask)) => all.push_lanes(&own, &mask).map(|()| None),
            (_, None) => all.pop(&own).map(Some),
            (_, Some(mask)) => all.pop_lanes(&own, &mask).map(Some),
        };
        if let Some(taken) = taken.map_err(|e| Failure::Library(value, e))? {
            self.memory[value] = Some(taken);
        }
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<(), RunError> {
        if let Some(kept) = call.kept() {
            return self.history(call, kept);
        }
        let inputs = call
            .inputs
            .iter()
            .map(|&b| self.array(b).map(|a| a.clone()));
        let inputs: Vec<Array> = inputs.collect::<Result<_, _>>()?;
        for &output in &call.outputs {
            self.array(output)?;
        }
        let mut outputs: Vec<Array> = Vec::new();
        for &output in &call.outputs {
            outputs.push(self.array(output)?.clone());
        }
        library(call.library, &inputs, &mut outputs)
            .map_err(|e| Failure::Library(call.outputs[0], e))?;
        for (&output, array) in call.outputs.iter().zip(outputs) {
            self.memory[output] = Some(array);
        }
        Ok(())
    }
}
