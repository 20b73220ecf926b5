//! Injected bugs of this package, which the crash tests must detect.
//!
//! Invariant: without the feature `faults` each function does what its argument does or returns what it was given,
//! so a release waits for the row.

use store::SubmitOutcome;
#[cfg(feature = "faults")]
use types::fault::{InjectedBug, is_injected};
use x402::Word;

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

/// Returns the nonce of an attempt of a payout. Injected bug: each attempt has its own.
pub(crate) fn may_change_nonce(nonce: Word, attempts: i64) -> Word {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::PayoutNonces) {
        let Word(mut bytes) = nonce;
        bytes[0] = bytes[0].wrapping_add(attempts.to_le_bytes()[0]);
        return Word(bytes);
    }
    #[cfg(not(feature = "faults"))]
    let _ = attempts;
    nonce
}

/// Returns true if whoever sends an authorization again may have its answer. Injected bug: anybody may.
pub(crate) fn may_replay_to_anybody(is_first_sender: bool) -> bool {
    #[cfg(feature = "faults")]
    if is_injected(InjectedBug::ReplayToAnybody) {
        return true;
    }
    is_first_sender
}
