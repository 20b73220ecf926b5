//! Shutdown of librdkafka clients on a thread of their own.
//!
//! Dropping a client joins its threads, which takes up to 100 ms and, while answers of the brokers are outstanding, may
//! never return (<https://github.com/confluentinc/librdkafka/issues/1640>). It would block a thread of the runtime, and
//! every task that waits for a lock held there.
//!
//! Invariant: a client ends on a thread of its own.

use std::ops::Deref;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// Drops a client on its own thread. The receiver is disconnected when the client has ended.
fn drop_in_background<T: Send + 'static>(client: T) -> Receiver<()> {
    let (ended, until_ended) = sync_channel(1);
    let ending = move || {
        drop(client);
        drop(ended);
    };
    let thread = std::thread::Builder::new().name("eventlog-shutdown".to_owned());
    if let Err(error) = thread.spawn(ending) {
        // `spawn` dropped the closure, and with it the client, on this thread.
        tracing::warn!(%error, "cannot start a thread to shut down a Kafka client; it was shut down on the calling thread");
    }
    until_ended
}

/// Drops a client and waits for its end. Returns false if `limit` passed first.
pub(super) fn drop_within<T: Send + 'static>(client: T, limit: Duration) -> bool {
    use std::sync::mpsc::RecvTimeoutError;
    drop_in_background(client).recv_timeout(limit) != Err(RecvTimeoutError::Timeout)
}

/// A client that is shut down in the background when dropped.
pub(super) struct BackgroundDrop<T: Send + 'static>(Option<T>);

impl<T: Send + 'static> BackgroundDrop<T> {
    pub(super) const fn new(client: T) -> Self {
        Self(Some(client))
    }
}

impl<T: Send + 'static> Deref for BackgroundDrop<T> {
    type Target = T;

    #[expect(clippy::expect_used, reason = "only `drop` takes it")]
    fn deref(&self) -> &T {
        self.0.as_ref().expect("the client is there until it is let go of")
    }
}

impl<T: Send + 'static> Drop for BackgroundDrop<T> {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            drop(drop_in_background(client));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// A client whose end waits for a signal.
    struct Stubborn(Receiver<()>);

    impl Drop for Stubborn {
        fn drop(&mut self) {
            self.0.recv().ok();
        }
    }

    #[test]
    fn a_client_that_does_not_end_is_waited_for_no_longer_than_the_limit() {
        let (end, until_released) = channel();
        assert!(!drop_within(Stubborn(until_released), Duration::from_millis(1)));
        drop(end);
        let (end, until_released) = channel();
        drop(end);
        assert!(drop_within(Stubborn(until_released), Duration::from_mins(1)));
    }

    #[test]
    fn whoever_lets_go_of_a_client_goes_on() {
        let (end, until_released) = channel::<()>();
        drop(BackgroundDrop::new(Stubborn(until_released)));
        drop(end);
    }
}
