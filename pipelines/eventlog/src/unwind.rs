//! A guard that reports the panic of a thread.

use std::thread;

/// Calls the closure if the thread that owns the guard panics. Without it a caller that waits for that thread would
/// wait for ever.
pub(crate) struct OnPanic<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if thread::panicking() {
            (self.0)();
        }
    }
}
