//! What the threads of a launch have printed, and the accesses that they have noted: records in memory of the device.
//!
//! ```text
//! record: the number of its site, plus one; then its values, eight bytes each
//! ```
//! A thread takes as many words as it needs, one after the other; records that do not fit are counted. Unwritten words
//! are zero.

use aerogel_runtime::code::{Site, SiteKind};
use aerogel_runtime::races::{NoteKind, Races};
use aerogel_runtime::{Buffer, KernelFailure, PrintSink};

/// Bytes that the records of a launch may take.
pub(crate) const LOG_BYTES: u64 = 1 << 20;
/// The same if it notes its accesses.
pub(crate) const NOTES_BYTES: u64 = 256 << 20;

/// Prints records, and looks for data races among the accesses that they note.
pub(crate) fn print(
    records: &[u64],
    lost: u64,
    (sites, arrays): (&[Site], &[&Buffer]),
    sink: &dyn PrintSink,
) -> Result<(), KernelFailure> {
    let mut warned = Vec::new();
    let mut notes = Notes::new(arrays);
    let mut at = 0;
    while let Some(&number) = records.get(at).filter(|&&word| word != 0) {
        let number = number as usize - 1;
        let Some(site) = sites.get(number) else { break };
        let Some(values) = records.get(at + 1..at + 1 + site.n_args()) else {
            break;
        };
        at += 1 + site.n_args();
        if let SiteKind::Note(kind) = site.kind {
            notes.push(number, kind, values);
            continue;
        }
        if site.kind == SiteKind::Warning {
            if warned.contains(&number) {
                continue;
            }
            warned.push(number);
        }
        sink.print(&site.render(values));
    }
    let notes_accesses = sites.iter().any(|s| matches!(s.kind, SiteKind::Note(_)));
    if at > 0 || notes_accesses {
        sink.flush();
    }
    if notes_accesses {
        notes.compare();
        if let Some(race) = notes.races.found() {
            return Err(KernelFailure::Race(race));
        }
        if lost > 0 {
            return Err(KernelFailure::Device(format!(
                "debug_races notes the accesses of a launch in {} MiB, and {lost} more were made: use fewer iterations, or arch=ti.cpu",
                NOTES_BYTES >> 20
            )));
        }
    } else if lost > 0 {
        let kept = LOG_BYTES >> 10;
        sink.print(&format!(
            "[{lost} more prints are lost: a launch on the device buffers {kept} KiB of them]\n"
        ));
        sink.flush();
    }
    Ok(())
}

/// The accesses of a loop, in the order in which its threads came to note them.
struct Notes<'a> {
    races: Races,
    accesses: Vec<(usize, NoteKind, &'a [u64])>,
}

impl<'a> Notes<'a> {
    fn new(arrays: &[&Buffer]) -> Self {
        Self {
            races: Races::new(arrays),
            accesses: Vec::new(),
        }
    }

    fn push(&mut self, site: usize, kind: NoteKind, values: &'a [u64]) {
        match kind {
            NoteKind::Loop => {
                self.compare();
                self.races.note(site, kind, values);
            }
            _ => self.accesses.push((site, kind, values)),
        }
    }

    /// Compares the accesses in the order of the iterations, so that the same race is found each time.
    fn compare(&mut self) {
        self.accesses
            .sort_by_key(|(_, _, values)| values.get(2).map(|&iteration| iteration as i64));
        for (site, kind, values) in self.accesses.drain(..) {
            self.races.note(site, kind, values);
        }
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
        print(&[1, 2, 2, 1, 0, 1], 0, (&sites, &[]), &sink).unwrap();
        assert_eq!(*sink.lock().unwrap(), "a\ncareful\na\n");
        print(&[], 3, (&sites, &[]), &sink).unwrap();
        assert!(sink.lock().unwrap().ends_with(
            "[3 more prints are lost: a launch on the device buffers 1024 KiB of them]\n"
        ));
    }

    #[test]
    fn notes_are_compared_in_the_order_of_iterations() {
        let site = |kind, n_values: usize| Site {
            kind: SiteKind::Note(kind),
            parts: vec![
                Part::Value {
                    ty: aerogel_base::ScalarType::I64,
                    format: String::new(),
                };
                n_values
            ],
            span: aerogel_base::Span::NONE,
        };
        let sites = [site(NoteKind::Loop, 2), site(NoteKind::Write, 0)];
        let sink = Mutex::new(String::new());
        let begin = vec![1, 0, 4];
        let write = |iteration, value| vec![2, 7, 0, iteration, value];
        let clean = [begin.clone(), write(3, 1), begin.clone(), write(1, 2)].concat();
        assert_eq!(print(&clean, 0, (&sites, &[]), &sink), Ok(()));
        let racing = [begin, write(3, 1), write(1, 2), write(0, 2)].concat();
        let Err(KernelFailure::Race(race)) = print(&racing, 0, (&sites, &[]), &sink) else {
            panic!("no race")
        };
        assert_eq!(race.accesses.map(|access| access.iteration), [[0], [3]]);
        let lost = print(&clean, 2, (&sites, &[]), &sink);
        assert!(matches!(lost, Err(KernelFailure::Device(why)) if why.contains("2 more")));
    }
}
