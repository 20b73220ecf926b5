//! Letting go of clients of librdkafka.
//!
//! Why not just drop them: a client ends when its threads have, which takes up to a tenth of a second and, while answers of
//! the brokers are still to come, may never happen (<https://github.com/confluentinc/librdkafka/issues/1640>). A thread of
//! the runtime would stand still with it, and so would all that waits for what that thread holds.
//!
//! Invariant: a client ends on a thread of its own.

use std::ops::Deref;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// Drops a client on a thread of its own; hears of the end by being disconnected.
fn part<T: Send + 'static>(client: T) -> Receiver<()> {
    let (ended, until_ended) = sync_channel(1);
    let ending = move || {
        drop(client);
        drop(ended);
    };
    let thread = std::thread::Builder::new().name("eventlog-parting".to_owned());
    if let Err(error) = thread.spawn(ending) {
        // The client ended here, with the closure.
        tracing::warn!(%error, "no thread to end a client on");
    }
    until_ended
}

/// Drops a client and waits for its end; whether that came in time.
pub(super) fn part_within<T: Send + 'static>(client: T, limit: Duration) -> bool {
    use std::sync::mpsc::RecvTimeoutError;
    part(client).recv_timeout(limit) != Err(RecvTimeoutError::Timeout)
}

/// A client whose end nobody waits for.
pub(super) struct Apart<T: Send + 'static>(Option<T>);

impl<T: Send + 'static> Apart<T> {
    pub(super) const fn new(client: T) -> Self {
        Self(Some(client))
    }
}

impl<T: Send + 'static> Deref for Apart<T> {
    type Target = T;

    #[expect(clippy::expect_used, reason = "only `drop` takes it")]
    fn deref(&self) -> &T {
        self.0.as_ref().expect("the client is there until it is let go of")
    }
}

impl<T: Send + 'static> Drop for Apart<T> {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(part(client));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// Ends when it is told to.
    struct Stubborn(Receiver<()>);

    impl Drop for Stubborn {
        fn drop(&mut self) {
            self.0.recv().ok();
        }
    }

    #[test]
    fn a_client_that_does_not_end_is_waited_for_no_longer_than_the_limit() {
        let (end, until_told) = channel();
        assert!(!part_within(Stubborn(until_told), Duration::from_millis(1)));
        drop(end);
        let (end, until_told) = channel();
        drop(end);
        assert!(part_within(Stubborn(until_told), Duration::from_mins(1)));
    }

    #[test]
    fn whoever_lets_go_of_a_client_goes_on() {
        let (end, until_told) = channel::<()>();
        drop(Apart::new(Stubborn(until_told)));
        drop(end);
    }
}
