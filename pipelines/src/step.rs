//! Ends of the steps of a message, and the wait after a failure.

use tokio_util::sync::CancellationToken;
use types::Backoff;
use types::error::with_causes;

/// The worker stopped, or a writer gave its table up, before the work could be brought to its end. Its message stays
/// open with the worker, and comes again without the writer ([`AckHandle`](crate::offsets::AckHandle)).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped;

/// A message that cannot be processed, now or later.
#[derive(Debug)]
pub(crate) struct Poison {
    pub(crate) reason: String,
    /// True if its probe ended badly, so that nobody is to work on it.
    pub(crate) has_failed_probe: bool,
}

/// Reason for which a step of a message did not come to its end.
#[derive(Debug)]
pub(crate) enum Unfinished {
    Poison(Poison),
    /// Its dataset was deleted. The message is acknowledged, and nobody is told: the database knew first.
    Deleted,
    Stopped,
}

/// Result of a step that may find its message to be poison.
pub(crate) type Step<T> = Result<T, Unfinished>;

impl Unfinished {
    /// Returns the end of a message that cannot be processed for this reason.
    pub(crate) fn poison(reason: impl Into<String>) -> Self {
        Self::Poison(Poison {
            reason: reason.into(),
            has_failed_probe: false,
        })
    }

    /// Returns the end of a message at whose table no further try can help.
    pub(crate) fn refused_by_table(error: &catalog::Error) -> Self {
        match error {
            catalog::Error::Deleted { .. } => Self::Deleted,
            error => Self::poison(with_causes(error)),
        }
    }

    /// Returns the end of a message whose probe failed for this reason.
    pub(crate) const fn failed_probe(reason: String) -> Self {
        Self::Poison(Poison {
            reason,
            has_failed_probe: true,
        })
    }
}

impl From<Stopped> for Unfinished {
    fn from(Stopped: Stopped) -> Self {
        Self::Stopped
    }
}

/// Pauses after `failures` failures before this one, unless `stop` comes first.
pub(crate) async fn pause(backoff: Backoff, failures: u32, stop: &CancellationToken) -> Result<(), Stopped> {
    let paused = stop.run_until_cancelled(tokio::time::sleep(backoff.pause(failures)));
    paused.await.ok_or(Stopped)
}
