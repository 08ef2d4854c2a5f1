//! What the threads of a launch have printed: records in memory of the device.
//!
//! ```text
//! record: the number of its site, plus one; then its values, eight bytes each
//! ```
//! A thread takes as many words as it needs, one after the other; records that do not fit are counted. Unwritten words
//! are zero.

use aerogel_runtime::PrintSink;
use aerogel_runtime::code::{Site, SiteKind};

/// Bytes that the records of a launch may take.
pub(crate) const LOG_BYTES: u64 = 1 << 20;

/// Prints records.
pub(crate) fn print(records: &[u64], lost: u64, sites: &[Site], sink: &dyn PrintSink) {
    let mut warned = Vec::new();
    let mut at = 0;
    while let Some(&number) = records.get(at).filter(|&&word| word != 0) {
        let number = number as usize - 1;
        let Some(site) = sites.get(number) else { break };
        let Some(values) = records.get(at + 1..at + 1 + site.n_args()) else {
            break;
        };
        at += 1 + site.n_args();
        if site.kind == SiteKind::Warning {
            if warned.contains(&number) {
                continue;
            }
            warned.push(number);
        }
        sink.print(&site.render(values));
    }
    if lost > 0 {
        let kept = LOG_BYTES >> 10;
        sink.print(&format!(
            "[{lost} more prints are lost: a launch on the device buffers {kept} KiB of them]\n"
        ));
    }
    if at > 0 || lost > 0 {
        sink.flush();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use aerogel_runtime::code::{Part, Site};

    use super::*;

    #[test]
    fn records_up_to_the_first_that_is_not_there() {
        let text = |kind, text: &str| Site {
            kind,
            parts: vec![Part::Text(text.to_owned())],
            span: aerogel_base::Span::NONE,
        };
        let sites = [
            text(SiteKind::Print, "a\n"),
            text(SiteKind::Warning, "careful\n"),
        ];
        let sink = Mutex::new(String::new());
        print(&[1, 2, 2, 1, 0, 1], 0, &sites, &sink);
        assert_eq!(*sink.lock().unwrap(), "a\ncareful\na\n");
        print(&[], 3, &sites, &sink);
        assert!(sink.lock().unwrap().ends_with(
            "[3 more prints are lost: a launch on the device buffers 1024 KiB of them]\n"
        ));
    }
}
