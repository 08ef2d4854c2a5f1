//! Gradients of values of a program.

use super::{Adjoints, reverse};
use crate::ir::{Buffer, targets};
use crate::record::Recorded;
use crate::record::trace::{State, Value};

impl State {
    /// A variable with the elements of a value, by which gradients are taken.
    ///
    /// # Errors
    /// If the value was made in a block that has ended, or is on active cells only.
    pub fn variable(&mut self, of: Value) -> Recorded<Value> {
        let buffer = self.buffer(of)?;
        let copy = self.r.distinct(buffer)?;
        let made = self.value(copy);
        self.resized_with(made, &[of]);
        Ok(made)
    }

    /// A copy of a value on which no gradient depends.
    ///
    /// # Errors
    /// As `variable`.
    pub fn detached(&mut self, of: Value) -> Recorded<Value> {
        let buffer = self.buffer(of)?;
        let copy = self.r.detach(buffer)?;
        let made = self.value(copy);
        self.resized_with(made, &[of]);
        Ok(made)
    }

    /// The gradients of results, each times its seed, by variables; nothing for those on which no result depends.
    ///
    /// # Errors
    /// If a variable was made in another block, or a result depends on one by an operation that has no derivative.
    pub fn gradients(
        &mut self,
        seeds: &[(Value, Value)],
        wanted: &[Value],
    ) -> Recorded<Vec<Option<Value>>> {
        let mut pairs: Vec<(Buffer, Buffer)> = Vec::new();
        for &(result, seed) in seeds {
            pairs.push((self.buffer(result)?, self.buffer(seed)?));
        }
        let variables = self.buffers(wanted)?;
        // Statements before the first variable do not depend on one.
        let makers = variables.iter().map(|&variable| {
            let mut body = self.r.program.body.iter();
            let at = body.position(|stmt| {
                let mut makes = false;
                targets(stmt, &mut |b| makes |= b == variable);
                makes
            });
            at.map_or(0, |at| at + 1)
        });
        let from = makers.min().unwrap_or(0);
        self.expect_here(&self.r.program.body[from..], &variables)?;
        let body = self.r.program.body[from..].to_vec();
        let made = reverse(&mut self.r, &body, &pairs, &variables)?;
        let Adjoints {
            wanted: found,
            body: kept,
        } = made;
        self.r.program.body.splice(from..from + body.len(), kept);
        let found = found.into_iter().zip(wanted);
        Ok(found
            .map(|(buffer, &of)| {
                buffer.map(|buffer| {
                    let made = self.value(buffer);
                    self.resized_with(made, &[of]);
                    made
                })
            })
            .collect())
    }
}
