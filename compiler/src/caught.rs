//! Panics as values: a bug in the compiler must not end the user's process, nor print a panic to the terminal.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// How many calls of `caught` this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// What the latest panic said, and where.
    static LATEST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What `body` gives, or what the panic that ended it said and where.
///
/// Panics elsewhere in the process are still printed.
pub fn caught<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if DEPTH.get() == 0 {
                return others(info);
            }
            let said = info.payload_as_str().unwrap_or("a panic without a message");
            let at = info
                .location()
                .map_or_else(String::new, |at| format!(" ({at})"));
            LATEST.set(Some(format!("{said}{at}")));
        }));
    });
    DEPTH.set(DEPTH.get() + 1);
    let outcome = panic::catch_unwind(AssertUnwindSafe(body));
    DEPTH.set(DEPTH.get() - 1);
    outcome.map_err(|_| {
        let said = LATEST.take();
        said.unwrap_or_else(|| "a panic of unknown cause".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_panic_says_is_told_with_its_place() {
        assert_eq!(caught(|| 3), Ok(3));
        let said = caught(|| [1, 2][std::hint::black_box(5)]).unwrap_err();
        assert!(said.starts_with("index out of bounds: the len is 2 but the index is 5"));
        assert!(said.contains("caught.rs:"), "{said}");
        let inner = caught(|| caught(|| panic!("inner")).unwrap_err());
        assert!(inner.unwrap().starts_with("inner ("));
    }
}
