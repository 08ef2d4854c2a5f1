//! The histories of a run: what loops save for the backward pass.

use super::plan::Running;
use crate::ir::{Buffer, Call, Failure, Library, RunError};

impl Running<'_> {
    /// Puts a copy of a buffer on a history, or takes the last one back.
    pub(super) fn history(
        &mut self,
        call: &Call,
        [value, history]: [Buffer; 2],
    ) -> Result<(), RunError> {
        if let Some((var, number)) = self.segments_of(history) {
            if call.library == Library::Pop {
                self.memory[value] = Some(self.state_before(var, number)?);
            }
            return Ok(());
        }
        let mask = match call.mask() {
            Some(mask) => Some(self.operand(mask)?.to_array()?),
            None => None,
        };
        let mask: Option<Vec<bool>> = mask.map(|m| m.data.iter().map(|x| x.as_bool()).collect());
        let own = match (call.library, &mask) {
            (Library::Push, None) => Some(self.operand(value)?.copied()?),
            (Library::Pop, None) => None,
            _ => Some(self.operand(value)?.clone()),
        };
        let all = self.histories.entry(history).or_default();
        let n_before = all.n_values();
        match (call.library, own, mask) {
            (Library::Push, Some(own), None) => all.push(own),
            (Library::Push, Some(own), Some(mask)) => all.push_lanes(&own, &mask)?,
            (_, Some(own), Some(mask)) => self.memory[value] = Some(all.pop_lanes(&own, &mask)?),
            _ => self.memory[value] = Some(all.pop().expect("as many are taken as were put")),
        }
        let n_values = all.n_values();
        let bytes = self.operand(value)?.buffer.len() as u64;
        self.kept += bytes * n_values.saturating_sub(n_before) as u64;
        self.kept = self
            .kept
            .saturating_sub(bytes * n_before.saturating_sub(n_values) as u64);
        match self.make_room(0) {
            true => Ok(()),
            false => Err(Failure::Kept(value, self.plan.most_kept).into()),
        }
    }
}
