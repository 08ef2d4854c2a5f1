//! Adjoints through kernels of the user's that a program calls.
//!
//! ```text
//! kernel(a, b)              A' = copy of A, B' = copy of B
//!                           gradient of kernel(a, b, A', B')       a and b as they were before the kernel ran
//! ```
//! The gradient of the kernel is another kernel: it adds to the adjoints of what the kernel reads, and changes those of
//! what it overwrites.

use super::{Reverse, refused};
use crate::ir::{Buffer, RegionDef, Run};
use crate::record::Recorded;

impl Reverse<'_> {
    pub(super) fn run(&mut self, run: &Run) -> Recorded<()> {
        let def = self.program().regions[run.region].clone();
        let name = &def.name;
        let gradient = match &def.runner {
            Some(runner) => runner.gradient(),
            None => Err("it was read from text".to_owned()),
        };
        let gradient = match gradient {
            Ok(gradient) => gradient,
            Err(why) => return refused(&format!("it goes through kernel `{name}`: {why}")),
        };
        let arrays: Vec<Buffer> = run.arrays.iter().map(|&b| self.before(b)).collect();
        let is_float = |b: &Buffer| self.program().buffers[*b].ty.is_float();
        let floats: Vec<Buffer> = run.arrays.iter().copied().filter(is_float).collect();
        let numbers: Vec<Buffer> = run.results.iter().copied().filter(is_float).collect();
        let adjoints = self.copies_of_adjoints(&floats)?;
        let seeds = self.copies_of_adjoints(&numbers)?;
        let n = [arrays.len(), adjoints.len(), seeds.len()];
        let writes = [false, true, false].iter().zip(n);
        let region = RegionDef {
            name: format!("gradient of {name}"),
            writes: writes.flat_map(|(&w, n)| vec![w; n]).collect(),
            trees: Vec::new(),
            runner: Some(gradient),
        };
        let all = [&arrays[..], &adjoints, &seeds].concat();
        self.recording.run(region, all, &[]);
        for (buffer, adjoint) in floats.into_iter().zip(adjoints) {
            self.adjoints.insert(buffer, vec![adjoint]);
        }
        Ok(())
    }

    /// The adjoints of buffers in memory of their own, zeros where there is none.
    fn copies_of_adjoints(&mut self, buffers: &[Buffer]) -> Recorded<Vec<Buffer>> {
        let mut out = Vec::new();
        for &buffer in buffers {
            let adjoint = match self.adjoint(buffer)? {
                Some(adjoint) => adjoint,
                None => {
                    let r = &mut *self.recording;
                    let zero = r.number(r.ty(buffer), 0.0);
                    r.map(&r.shape(buffer), zero)
                }
            };
            let own = self.recording.distinct(adjoint)?;
            self.recording.note_memory(own);
            out.push(own);
        }
        Ok(out)
    }
}
