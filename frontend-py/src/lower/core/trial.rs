//! Trials: instructions that are lowered and may be removed again.

use aerogel_ir::{ParamData, Region};

use crate::ast::TextRange;
use crate::lower::{Lower, NextLoop, Spent};

/// The state of a lowering before a trial.
pub(crate) struct Before {
    region: Region,
    n_insts: usize,
    spent: Spent,
    n_warnings: usize,
    params: Vec<ParamData>,
    n_captured: usize,
    n_differentiated: usize,
    n_stopped: usize,
    n_making: usize,
    n_traced: usize,
    next_loop: NextLoop,
    in_static: bool,
    shared_bytes: u64,
    range: TextRange,
}

impl Lower<'_, '_> {
    /// The state before a trial that appends to `region`.
    pub(crate) fn before(&self, region: Region) -> Before {
        Before {
            region,
            n_insts: self.state.func.regions[region].insts.len(),
            spent: self.spent.clone(),
            n_warnings: self.reports.n_warnings(),
            params: self.state.func.params.clone(),
            n_captured: self.captured.len(),
            n_differentiated: self.differentiated.len(),
            n_stopped: self.stopped.len(),
            n_making: self.state.making.len(),
            n_traced: self.traced.len(),
            next_loop: self.state.next_loop,
            in_static: self.state.in_static,
            shared_bytes: self.state.shared_bytes,
            range: self.range,
        }
    }

    /// Removes the instructions lowered since then. The budget is not restored if it was exceeded, which is an error.
    pub(crate) fn take_back(&mut self, before: Before) {
        if self.spent.ended().is_none() {
            self.spent = before.spent;
        }
        let insts = &mut self.state.func.regions[before.region].insts;
        insts.truncate(before.n_insts);
        self.reports.forget_warnings(before.n_warnings);
        self.state.func.params = before.params;
        self.captured.truncate(before.n_captured);
        self.differentiated.truncate(before.n_differentiated);
        self.stopped.truncate(before.n_stopped);
        self.state.making.truncate(before.n_making);
        self.end_traced(before.n_traced);
        self.state.next_loop = before.next_loop;
        self.state.in_static = before.in_static;
        self.state.shared_bytes = before.shared_bytes;
        self.range = before.range;
    }
}
