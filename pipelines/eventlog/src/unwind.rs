//! What is said when a thread of a log ends by a panic.

use std::thread;

/// Does something where the thread that has it panics: whoever waits for the thread would wait for ever.
pub(crate) struct OnPanic<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if thread::panicking() {
            (self.0)();
        }
    }
}
