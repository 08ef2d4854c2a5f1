//! Memory of a block, or of a thread.

use super::{Access, Bad, Visit, aligned, race};
use crate::error::FaultKind;

/// Memory that belongs to a block or a thread alone, so that one worker uses it.
#[derive(Clone, Default)]
pub(crate) struct Own {
    /// Whether a word may be read of which something is written: LLVM changes a byte atomically in the word around it.
    by_words: bool,
    bytes: Vec<u8>,
    written: Vec<bool>,
    /// For each byte its last writer, and its readers; empty if races are not checked.
    touched: Vec<[u64; 2]>,
}

impl Own {
    pub(crate) fn new(bytes: u64, track: bool) -> Self {
        let n = bytes as usize;
        Self {
            by_words: false,
            bytes: vec![0; n],
            written: vec![false; n],
            touched: vec![[0; 2]; if track { n } else { 0 }],
        }
    }

    /// The memory of a thread, which has none yet.
    pub(crate) fn of_thread() -> Self {
        Self {
            by_words: true,
            ..Self::default()
        }
    }

    /// Makes it so long, up to whole words.
    pub(crate) fn resize(&mut self, bytes: u64) {
        let n = bytes.next_multiple_of(8) as usize;
        self.bytes.resize(n, 0);
        self.written.resize(n, false);
    }

    /// What is behind an offset holds nothing any more.
    pub(crate) fn forget(&mut self, from: u64) {
        let from = (from as usize).min(self.written.len());
        self.written[from..].fill(false);
    }

    fn range(&self, offset: u64, bytes: u64, what: &str) -> Result<std::ops::Range<usize>, Bad> {
        aligned(offset, bytes)?;
        let end = offset.checked_add(bytes);
        match end.filter(|&end| end <= self.bytes.len() as u64) {
            Some(end) => Ok(offset as usize..end as usize),
            None => Err(Bad::new(
                FaultKind::OutOfBounds,
                format!(
                    "{bytes} bytes at {offset:#x} of {what} memory, which has {}",
                    self.bytes.len()
                ),
            )),
        }
    }

    pub(crate) fn load(
        &mut self,
        offset: u64,
        bytes: u64,
        what: &str,
        visit: Option<Visit>,
    ) -> Result<u64, Bad> {
        let range = self.range(offset, bytes, what)?;
        let mut written = self.written[range.clone()].iter();
        let is_written = match self.by_words {
            true => written.any(|&w| w),
            false => written.all(|&w| w),
        };
        if !is_written {
            return Err(Bad::new(
                FaultKind::NeverWritten,
                format!("{bytes} uninitialised bytes at {offset:#x} of {what} memory are read"),
            ));
        }
        self.note(offset, bytes, visit, Access::Read)?;
        let mut value = [0; 8];
        value[..bytes as usize].copy_from_slice(&self.bytes[range]);
        Ok(u64::from_le_bytes(value))
    }

    /// As `load`, of a thread's memory: the value, and which of its bits are undefined. A partially written word counts as
    /// defined.
    pub(crate) fn read(&self, offset: u64, bytes: u64) -> Result<(u64, u64), Bad> {
        let range = self.range(offset, bytes, "local")?;
        let (mut value, mut missing) = ([0; 8], [0; 8]);
        value[..bytes as usize].copy_from_slice(&self.bytes[range.clone()]);
        if !self.written[range].contains(&true) {
            missing[..bytes as usize].fill(u8::MAX);
        }
        Ok((u64::from_le_bytes(value), u64::from_le_bytes(missing)))
    }

    /// Bytes of which some bits are undefined hold nothing.
    pub(crate) fn unwrite(&mut self, offset: u64, bytes: u64, undefined: u64) {
        for (k, bits) in undefined.to_le_bytes()[..bytes as usize].iter().enumerate() {
            if *bits != 0 {
                self.written[offset as usize + k] = false;
            }
        }
    }

    pub(crate) fn store(
        &mut self,
        offset: u64,
        bytes: u64,
        value: u64,
        what: &str,
        visit: Option<Visit>,
    ) -> Result<(), Bad> {
        let range = self.range(offset, bytes, what)?;
        let value = &value.to_le_bytes()[..bytes as usize];
        let same = &self.bytes[range.clone()] == value && self.written[range.start];
        let access = if same {
            Access::SameAgain
        } else {
            Access::Write
        };
        self.note(offset, bytes, visit, access)?;
        self.bytes[range.clone()].copy_from_slice(value);
        self.written[range].fill(true);
        Ok(())
    }

    fn note(
        &mut self,
        offset: u64,
        bytes: u64,
        visit: Option<Visit>,
        access: Access,
    ) -> Result<(), Bad> {
        let Some(visit) = visit.filter(|_| !self.touched.is_empty()) else {
            return Ok(());
        };
        let first = offset as usize;
        for slots in &mut self.touched[first..first + bytes as usize] {
            if let Some(other) = visit.conflict(*slots, access) {
                return Err(race(offset, other, visit, access));
            }
            slots[usize::from(access == Access::Read)] = visit.pack();
        }
        Ok(())
    }
}
