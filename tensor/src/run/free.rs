//! Memory of temporaries between uses, which plans share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aerogel_runtime::buffer::Buffer as Bytes;

static FREE: Mutex<Free> = Mutex::new(Free {
    stamp: 0,
    all: Vec::new(),
    bytes: 0,
});

/// The oldest first.
pub(crate) struct Free {
    /// Identifies the program's device that used the memory: it may have a mirror there.
    stamp: u64,
    all: Vec<Arc<Bytes>>,
    bytes: usize,
}

/// Sizes differ from run to run: beyond this many bytes, or buffers, the oldest buffers are given back. It bounds memory that no
/// tensor holds.
const MAX_FREE_BYTES: usize = 256 << 20;
/// `take` searches all of them.
const MAX_FREE: usize = 256;

impl Free {
    /// The free memory.
    pub(crate) fn lock() -> MutexGuard<'static, Self> {
        FREE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps what a temporary has left.
    pub(crate) fn give(&mut self, stamp: u64, buffers: impl Iterator<Item = Arc<Bytes>>) {
        if self.stamp != stamp {
            *self = Self {
                stamp,
                all: Vec::new(),
                bytes: 0,
            };
        }
        for buffer in buffers {
            self.bytes += buffer.len();
            self.all.push(buffer);
        }
        while self.bytes > MAX_FREE_BYTES || self.all.len() > MAX_FREE {
            self.bytes -= self.all.remove(0).len();
        }
    }

    /// Memory of this size, if there is some.
    pub(crate) fn take(&mut self, stamp: u64, bytes: usize) -> Option<Arc<Bytes>> {
        if self.stamp != stamp {
            return None;
        }
        let at = self.all.iter().rposition(|b| b.len() == bytes)?;
        self.bytes -= bytes;
        Some(self.all.remove(at))
    }
}
