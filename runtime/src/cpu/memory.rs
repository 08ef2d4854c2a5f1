//! How much memory the system can still give.
//!
//! Linux promises memory that it does not have and ends a process that touches it. So a large
//! request is compared with what is available before it is made.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Requests below this are made without asking: reading the limits takes tens of microseconds.
const ALWAYS_ASK: usize = 256 << 20;

/// Whether `bytes` more could be touched now. True where the system does not say.
pub fn can_allocate(bytes: usize) -> bool {
    bytes < ALWAYS_ASK || available().is_none_or(|available| bytes as u64 <= available)
}

/// What grows in steps asks once for so many bytes.
const ASK_EVERY: usize = 64 << 20;

/// Bytes by which things have grown since the system was last asked.
static GROWN: AtomicUsize = AtomicUsize::new(0);

/// Whether what grows in steps may grow by `bytes`. Always asking would be slow, so what is granted
/// leaves enough for the steps until it is asked again.
pub fn can_grow(bytes: usize) -> bool {
    let grown = GROWN.fetch_add(bytes, Ordering::Relaxed);
    if grown.saturating_add(bytes) < ASK_EVERY {
        return true;
    }
    let enough = (bytes as u64).saturating_add(ASK_EVERY as u64);
    if available().is_some_and(|available| available < enough) {
        // The next one asks too.
        GROWN.store(ASK_EVERY, Ordering::Relaxed);
        return false;
    }
    GROWN.store(0, Ordering::Relaxed);
    true
}

/// Bytes of physical memory; none where the system does not say.
pub fn physical() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    entry_bytes(&text, "MemTotal:")
}

/// Bytes that the machine, or the control group this process is in, has left.
fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| entry_bytes(&text, "MemAvailable:"));
    let group = group_limit();
    match (machine, group) {
        (Some(machine), Some(group)) => Some(machine.min(group)),
        (one, other) => one.or(other),
    }
}

/// The bytes of an entry of `/proc/meminfo`.
fn entry_bytes(text: &str, entry: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(entry))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

fn group_limit() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let number = |file: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("/sys/fs/cgroup{path}/{file}")).ok()?;
        text.trim().parse().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_meminfo() {
        let text = "MemTotal:  100 kB\nMemAvailable:     42 kB\n";
        assert_eq!(entry_bytes(text, "MemAvailable:"), Some(42 * 1024));
        assert_eq!(entry_bytes("nothing", "MemAvailable:"), None);
    }
}
