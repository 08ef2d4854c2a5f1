//! How much memory the system can still give.
//!
//! Linux promises memory that it does not have and ends a process that touches it. So a large
//! request is compared with what is available before it is made.

use std::fs;

/// Requests below this are made without asking: reading the limits takes tens of microseconds.
const ALWAYS_ASK: usize = 256 << 20;

/// Whether `bytes` more could be touched now. True where the system does not say.
pub fn can_allocate(bytes: usize) -> bool {
    bytes < ALWAYS_ASK || available().is_none_or(|available| bytes as u64 <= available)
}

/// Bytes that the machine, or the control group this process is in, has left.
fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| meminfo(&text));
    let group = group_limit();
    match (machine, group) {
        (Some(machine), Some(group)) => Some(machine.min(group)),
        (one, other) => one.or(other),
    }
}

fn meminfo(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
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
        assert_eq!(meminfo(text), Some(42 * 1024));
        assert_eq!(meminfo("nothing"), None);
    }
}
