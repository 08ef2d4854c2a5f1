//! Gradients of values of a program.

use super::{Adjoints, reverse};
use crate::ir::{Buffer, Touched, targets};
use crate::record::trace::{State, Value};
use crate::record::{RecordError, Recorded, varying};

impl State {
    /// A variable with the elements of a value, by which gradients are taken.
    ///
    /// # Errors
    /// If the value was made in a block that has ended, or is on active cells only.
    pub fn variable(&mut self, of: Value) -> Recorded<Value> {
        let buffer = self.buffer(of)?;
        let copy = self.r.distinct(buffer)?;
        Ok(self.value_of(copy, of))
    }

    /// A copy of a value on which no gradient depends.
    ///
    /// # Errors
    /// As `variable`.
    pub fn detached(&mut self, of: Value) -> Recorded<Value> {
        let buffer = self.buffer(of)?;
        let copy = self.r.detach(buffer)?;
        Ok(self.value_of(copy, of))
    }

    /// A value that a step which enlarges another one enlarges.
    fn value_of(&mut self, buffer: Buffer, of: Value) -> Value {
        let made = self.value(buffer);
        self.resized_with(made, &[of]);
        made
    }

    /// Whether results depend on variables in another way than through some values.
    ///
    /// # Errors
    /// If a value is of a block that has ended.
    pub fn depends_beyond(
        &mut self,
        results: &[Value],
        values: &[Value],
        variables: &[Value],
    ) -> Recorded<bool> {
        let results = self.buffers(results)?;
        let stops = self.buffers(values)?;
        let mut variables = self.buffers(variables)?;
        variables.retain(|b| !stops.contains(b));
        let (mut body, _) = self.visible();
        body.retain(|stmt| {
            let mut is_other = true;
            targets(stmt, &mut |b| is_other &= !stops.contains(&b));
            is_other
        });
        let found = varying(&self.r.program, &body, &variables);
        Ok(results.iter().any(|b| found.contains(b)))
    }

    /// The gradients of results, each times its seed, by variables; zeros for those on which no result depends.
    ///
    /// # Errors
    /// If a variable was made in another block, or a result depends on one by an operation that has no derivative.
    pub fn gradients(
        &mut self,
        seeds: &[(Value, Value)],
        wanted: &[Value],
    ) -> Recorded<Vec<Value>> {
        let mut pairs: Vec<(Buffer, Buffer)> = Vec::new();
        for &(result, seed) in seeds {
            pairs.push((self.buffer(result)?, self.buffer(seed)?));
        }
        let variables = self.buffers(wanted)?;
        let (body, around) = self.visible();
        // Statements before the first variable do not depend on one.
        let makers = variables.iter().map(|&variable| {
            let at = body.iter().position(|stmt| {
                let mut makes = false;
                targets(stmt, &mut |b| makes |= b == variable);
                makes
            });
            at.map_or(0, |at| at + 1)
        });
        let (first, body) = body.split_at(makers.min().unwrap_or(0));
        let before = [&around[..], first].concat();
        let outer = varying(&self.r.program, &around, &variables);
        let mut reads = Touched::by(&self.r.program, body).reads;
        reads.extend(pairs.iter().map(|p| p.0));
        if reads
            .iter()
            .any(|b| outer.contains(b) && !variables.contains(b))
        {
            return Err(RecordError::Value(
                "a gradient through values from outside the block must be taken outside the block"
                    .to_owned(),
            ));
        }
        let n_own = self.r.program.body.len();
        let n_first = first.len();
        let made = reverse(&mut self.r, &before, body, &pairs, &variables)?;
        let Adjoints {
            wanted: found,
            body: kept,
        } = made;
        self.edit_visible(n_first, kept, n_own);
        // As many values in each replay, whether or not a block is known to change something.
        let mut out = Vec::new();
        for ((found, &of), variable) in found.into_iter().zip(wanted).zip(variables) {
            let buffer = match found {
                Some(buffer) => buffer,
                None => {
                    let (ty, shape) = (self.r.ty(variable), self.r.shape(variable));
                    let zero = self.r.number(ty, 0.0);
                    self.r.map(&shape, zero)
                }
            };
            out.push(self.value_of(buffer, of));
        }
        Ok(out)
    }
}
