//! A panic of ours is an answer, not an end: the program under test must not notice it.
//!
//! Rust's default is to print a panic to stderr, which is the program's too. So panics inside a guarded call are
//! caught and handed over as text, and all others are printed as ever.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Calls `work`; if it panics, the panic's words and place.
pub(crate) fn guard<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if GUARDED.get() {
                LAST.set(panic.to_string().replace('\n', " "));
            } else {
                before(panic);
            }
        }));
    });
    GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(false);
    result.map_err(|_| LAST.take())
}

#[cfg(test)]
mod tests {
    use super::guard;

    #[test]
    fn a_panic_becomes_words_and_a_place() {
        assert_eq!(guard(|| 3), Ok(3));
        let words = guard(|| -> u32 { panic!("odd {}", 7) }).unwrap_err();
        assert!(words.contains("odd 7") && words.contains("guard.rs"), "{words}");
    }
}
