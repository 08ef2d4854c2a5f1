//! The histories of a run: what loops save for the backward pass.

use super::plan::Running;
use crate::ir::{Buffer, Call, Failure, Library, LibraryError, RunError};

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
            (Library::Push, None) => self.operand(value)?.copied()?,
            _ => self.operand(value)?.clone(),
        };
        let all = self.histories.entry(history).or_default();
        let n_before = all.n_values();
        let taken = match (call.library, mask) {
            (Library::Push, None) => {
                all.push(own);
                Ok(None)
            }
            (Library::Push, Some(mask)) => all.push_lanes(&own, &mask).map(|()| None),
            (_, None) => all.pop(&own).map(Some),
            (_, Some(mask)) => all.pop_lanes(&own, &mask).map(Some),
        };
        let taken = taken.map_err(|e| match e {
            LibraryError::Memory(e) => RunError::Memory(e),
            other => Failure::Library(value, other).into(),
        })?;
        if let Some(taken) = taken {
            self.memory[value] = Some(taken);
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
