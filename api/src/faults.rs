//! Injected bugs of this package, which the crash tests must detect.
//!
//! Invariant: without the feature `faults` each function does what its argument does, so a release waits for the row.

use store::SubmitOutcome;
#[cfg(feature = "faults")]
use types::fault::{InjectedBug, is_injected};

/// Waits for the transaction of an acknowledgement. Injected bug: answers while it still runs.
pub(crate) async fn may_answer_early<F>(submit: F) -> Result<SubmitOutcome, store::Error>
where
    F: Future<Output = Result<SubmitOutcome, store::Error>> + Send + 'static,
{
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::AckBeforeRow) {
        drop(tokio::spawn(submit));
        return Ok(SubmitOutcome::Submitted);
    }
    submit.await
}
