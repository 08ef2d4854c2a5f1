//! Checkpointed loops: they save some states and recompute the others when the backward pass reaches them.
//!
//! All loops share the memory that `ti.init(ad_memory=...)` allows: if another loop needs some, the one whose states take most
//! of it loses every second one.

use std::sync::PoisonError;

use aerogel_base::{Scalar, entity::SecondaryMap};
use aerogel_runtime::interrupt;

use super::free::Free;
use super::plan::{Plan, Running, Step};
use super::schedule::{advance, times};
use super::segments::Saving;
use crate::ir::{Buffer, Failure, Operand, Role, RunError, Var};

/// Rather than running an iteration more often again, a run fails: it would seem to hang.
const MOST_TIMES: u64 = 16;

/// What a run chose for a loop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chosen {
    /// The number of its iterations.
    pub(super) iterations: u64,
    /// The most states at a time.
    pub(super) states: u64,
    /// How many iterations ran again.
    pub(super) again: u64,
}

/// A loop that saves few of its states.
pub(super) struct Segments<'p> {
    saving: &'p Saving,
    body: &'p [Step],
    /// The counter of the first iteration, and its step.
    counter: [i128; 2],
    /// How many iterations there are, if that is known.
    end: Option<u64>,
    /// The states that are saved, the last one last.
    states: Vec<State>,
    /// The bytes of one of them.
    bytes: u64,
    /// The maximum number of states.
    most: u64,
    /// The next iteration that saves its state.
    next: u64,
    /// The distance of such iterations, if the end is unknown.
    stride: u64,
    /// The iterations that have begun, and that the backward pass has not reached.
    left: u64,
    /// The values of the iteration that it has reached, where it has not taken them yet.
    ready: Vec<Option<Operand>>,
}

/// What an iteration finds.
struct State {
    iteration: u64,
    values: Vec<Operand>,
    vars: Vec<Option<Scalar>>,
}

impl Plan {
    /// What the last run chose for loops whose states take more memory than the gradient may save, a line for each.
    pub fn chosen(&self) -> String {
        let chosen = self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = chosen.iter().map(|(var, own)| {
            format!(
                "last run: the loop that saves {} had {} iterations, saved {} states at a time, and ran {} iterations again\n",
                self.savings[var].names(&self.program), own.iterations, own.states, own.again
            )
        });
        lines.collect()
    }
}

impl Segments<'_> {
    /// Drops every second state but for the first, or those that are no multiple of the stride.
    fn thin(&mut self) -> u64 {
        let before = self.states.len();
        match self.end {
            None => {
                self.stride *= 2;
                let stride = self.stride;
                self.states.retain(|state| state.iteration % stride == 0);
            }
            Some(_) => {
                let mut number = 0;
                self.states.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
            }
        }
        (before - self.states.len()) as u64 * self.bytes
    }

    /// Chooses the next iteration that saves its state, after the last one that has. Returns what that drops.
    fn choose_next(&mut self, iteration: u64) -> u64 {
        let n = self.states.len() as u64;
        let Some(end) = self.end else {
            let mut dropped = 0;
            // As many states again as lie between two of them, or half of all, are for the backward pass.
            while self.states.len() as u64 + self.stride.min(self.most / 2) > self.most {
                let fewer = self.thin();
                dropped += fewer;
                if fewer == 0 {
                    break;
                }
            }
            self.next = (iteration / self.stride + 1) * self.stride;
            return dropped;
        };
        self.next = match self.most.saturating_sub(n) {
            0 => u64::MAX,
            free => iteration + advance(end - iteration, free + 1),
        };
        0
    }
}

impl<'p> Running<'p> {
    /// Whether a loop that begins saves few of its states: if all of them may take more memory than there is.
    pub(super) fn begin_segments(
        &mut self,
        var: Var,
        [lo, hi]: [i128; 2],
        step: i32,
        body: &'p [Step],
    ) -> Result<bool, RunError> {
        let plan = self.plan;
        let Some(saving) = plan.savings.get(&var).filter(|_| !self.is_again) else {
            return Ok(false);
        };
        // What an earlier run of the loop has chosen is no longer valid, whether this one saves all of its states or not.
        if let Some(ended) = self.segments.swap_remove(&var) {
            self.kept -= ended.states.len() as u64 * ended.bytes;
        }
        let distance = if step > 0 { hi - lo } else { lo - hi };
        let n = u64::try_from(distance.max(0)).unwrap_or(u64::MAX);
        let n = n.div_ceil(u64::from(step.unsigned_abs()));
        let pushed = saving.pushed.len();
        let [all, bytes] = [&saving.state[..pushed], &saving.state[..]].map(|of| of.to_vec());
        let [all, bytes] = [self.bytes_of(&all)?, self.bytes_of(&bytes)?];
        let room = plan.most_kept.saturating_sub(self.kept);
        let shares = if plan.savings.len() > 1 { 2 } else { 1 };
        if n.saturating_mul(all) <= room / shares || bytes == 0 {
            return Ok(false);
        }
        let of_others = self
            .segments
            .values()
            .map(|s| s.states.len() as u64 * s.bytes);
        let fair = room.max((room + of_others.sum::<u64>()) / 2);
        let most = fair / if saving.is_around { 2 } else { 1 } / bytes;
        let end = saving.is_counted.then_some(n);
        if most < 2 || end.is_some_and(|n| times(n, most) > MOST_TIMES) {
            return Err(Failure::Kept(saving.pushed[0][0], plan.most_kept).into());
        }
        let segments = Segments {
            saving,
            body,
            counter: [lo, i128::from(step)],
            end,
            states: Vec::new(),
            bytes,
            most,
            next: 0,
            stride: 1,
            left: 0,
            ready: vec![None; pushed],
        };
        self.segments.insert(var, segments);
        Ok(true)
    }

    fn bytes_of(&mut self, buffers: &[Buffer]) -> Result<u64, RunError> {
        let bytes = buffers
            .iter()
            .map(|&b| Ok(self.operand(b)?.buffer.len() as u64));
        bytes.sum()
    }

    /// The loop that saves the states with a history's values, if it saves few; and which of its values that is.
    pub(super) fn segments_of(&self, history: Buffer) -> Option<(Var, usize)> {
        let mut all = self.segments.iter();
        all.find_map(|(&var, own)| Some((var, own.saving.number_of(history)?)))
    }

    /// Drops states until so many bytes more may be saved. Returns whether they may.
    pub(super) fn make_room(&mut self, bytes: u64) -> bool {
        while self.kept + bytes > self.plan.most_kept {
            let thinnable = self.segments.values_mut().filter(|s| s.states.len() > 1);
            let Some(largest) = thinnable.max_by_key(|s| s.states.len() as u64 * s.bytes) else {
                return false;
            };
            self.kept -= largest.thin();
        }
        true
    }

    /// An iteration begins, which may save its state.
    pub(super) fn begin_iteration(&mut self, var: Var) -> Result<(), RunError> {
        let own = &mut self.segments[&var];
        let iteration = own.left;
        own.left += 1;
        self.chosen.entry(var).or_default().iterations += 1;
        if iteration < own.next {
            return Ok(());
        }
        if own.end.is_none() && times(own.left, own.most) > MOST_TIMES {
            return Err(Failure::Kept(own.saving.pushed[0][0], self.plan.most_kept).into());
        }
        let bytes = own.bytes;
        if !self.make_room(bytes) {
            let value = self.segments[&var].saving.pushed[0][0];
            return Err(Failure::Kept(value, self.plan.most_kept).into());
        }
        let state = self.state(var, iteration)?;
        let own = &mut self.segments[&var];
        own.states.push(state);
        let chosen = self.chosen.entry(var).or_default();
        chosen.states = chosen.states.max(own.states.len() as u64);
        self.kept += bytes;
        self.kept -= own.choose_next(iteration);
        Ok(())
    }

    /// A copy of what an iteration finds.
    fn state(&mut self, var: Var, iteration: u64) -> Result<State, RunError> {
        let saving = self.segments[&var].saving;
        let mut values = Vec::new();
        for &buffer in &saving.state {
            values.push(self.operand(buffer)?.copied()?);
        }
        let vars = saving.sets.iter().map(|&var| self.vars[var]).collect();
        Ok(State {
            iteration,
            values,
            vars,
        })
    }

    /// A value of the iteration before those that the backward pass has reached. It takes each once.
    pub(super) fn state_before(&mut self, var: Var, number: usize) -> Result<Operand, RunError> {
        let own = &mut self.segments[&var];
        if own.ready[number].is_none() {
            own.left -= 1;
            let (iteration, pushed) = (own.left, own.saving.pushed.len());
            let last = own.states.last().expect("the first state stays");
            let mut values = if last.iteration == iteration {
                self.kept -= own.bytes;
                own.states.pop().expect("there is one").values
            } else {
                self.again(var, iteration)?
            };
            values.truncate(pushed);
            self.segments[&var].ready = values.into_iter().map(Some).collect();
        }
        let ready = self.segments[&var].ready[number].take();
        Ok(ready.expect("each value is taken once for each iteration"))
    }

    /// Runs the iterations from the last state to another iteration, with memory of their own: what that finds.
    fn again(&mut self, var: Var, to: u64) -> Result<Vec<Operand>, RunError> {
        let saving = self.segments[&var].saving;
        let around: Vec<(Buffer, Option<Operand>)> = saving
            .written
            .iter()
            .map(|&b| (b, self.memory[b].take()))
            .collect();
        let vars: SecondaryMap<Var, Option<Scalar>> = self.vars.clone();
        self.is_again = true;
        self.iterations_again(var, to)?;
        self.is_again = false;
        self.vars = vars;
        let mut values = Vec::new();
        for &[value, _] in &saving.pushed {
            self.operand(value)?;
            values.extend(self.memory[value].take());
        }
        let mut free = Vec::new();
        for (buffer, before) in around {
            let own = std::mem::replace(&mut self.memory[buffer], before);
            let is_own = self.plan.program.buffers[buffer].role == Role::Temporary;
            free.extend(own.filter(|_| is_own).map(|own| own.buffer));
        }
        Free::lock().give(self.plan.stamp, free.into_iter());
        Ok(values)
    }

    fn iterations_again(&mut self, var: Var, to: u64) -> Result<(), RunError> {
        let own = &self.segments[&var];
        let (saving, body, [lo, step]) = (own.saving, own.body, own.counter);
        let last = own.states.last().expect("the first state stays");
        let mut at = last.iteration;
        for (&buffer, value) in saving.state.iter().zip(&last.values) {
            self.memory[buffer] = Some(value.copied()?);
        }
        for (&var, &value) in saving.sets.iter().zip(&last.vars) {
            self.vars[var] = value;
        }
        let mut next = self.next_again(var, at, to);
        while at < to {
            if interrupt::requested() {
                return Err(RunError::Interrupted);
            }
            self.vars[var] = Some(Scalar::i32((lo + i128::from(at) * step) as i32));
            self.block(body)?;
            at += 1;
            self.chosen.entry(var).or_default().again += 1;
            if at == next && at < to {
                let state = self.state(var, at)?;
                let own = &mut self.segments[&var];
                own.states.push(state);
                let chosen = self.chosen.entry(var).or_default();
                chosen.states = chosen.states.max(own.states.len() as u64);
                self.kept += own.bytes;
                next = self.next_again(var, at, to);
            }
        }
        Ok(())
    }

    /// The next iteration that saves its state, of those that run again up to one.
    fn next_again(&self, var: Var, at: u64, to: u64) -> u64 {
        let own = &self.segments[&var];
        let room = self.plan.most_kept.saturating_sub(self.kept) / own.bytes;
        match room.min(own.most.saturating_sub(own.states.len() as u64)) {
            0 => to,
            // The state at `to` needs no memory: the backward pass takes it.
            free => at + advance(to + 1 - at, free + 1),
        }
    }

    /// Notes for explanations what has been chosen.
    pub(super) fn note_chosen(&self) {
        let mut chosen = self
            .plan
            .chosen
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        chosen.clone_from(&self.chosen);
    }
}
