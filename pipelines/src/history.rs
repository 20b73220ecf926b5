//! Compares a table with the versions that this worker and the marketplace know of.
//!
//! Invariant: of a table that lost history nothing is merged and nothing rejected. What comes for it waits, with the
//! reason published, until the files are restored or an administrator accepts the loss.

use std::time::Duration;

use catalog::{Agreement, Error, KnownHead, Table};

use crate::context::Context;
use crate::message::{Address, HISTORY_LOST, Resolution};
use crate::publish::publish_outcome;
use crate::report::{Report, outcome};
use crate::step::Stopped;

/// The wait before a submission is judged again if its table lost history.
const AGAIN: Duration = Duration::from_secs(15);

/// Fails where the table lacks a version that the marketplace knew of when it acknowledged the submission, or one that
/// this worker published or read of, unless the loss was accepted.
///
/// # Errors
/// [`Error::HistoryLost`].
pub(crate) async fn check(
    context: &Context,
    table: &Table,
    address: Address,
    acknowledged: Option<KnownHead>,
) -> Result<(), Error> {
    let lost = |head: KnownHead| Error::HistoryLost {
        dataset: address.dataset,
        path: format!("version {} with root {}", head.version, head.root),
    };
    if let Some(head) = acknowledged
        && table.compare(head).await? == Agreement::Lost
    {
        return Err(lost(head));
    }
    // A submission that was acknowledged before the last merge names an older version. The outcomes
    // that this worker knows of cover the versions since.
    if let Some(head) = context.outcomes.head(address.dataset) {
        match table.compare(head).await? {
            Agreement::Kept => {}
            // An administrator accepted the loss while this worker remembered a lost version. Without
            // the lower mark it would go on to call every later version lost.
            Agreement::Accepted => context.outcomes.lower(address.dataset, table.known_head()),
            Agreement::Lost => return Err(lost(head)),
        }
    }
    Ok(())
}

/// Says that a submission waits because its table lost history.
pub(crate) async fn put_off(context: &Context, address: Address, error: &Error) -> Result<(), Stopped> {
    tracing::error!(dataset = %address.dataset, contribution = %address.contribution, %error,
        "a submission waits: restore the table, or accept the loss with `sluice admin table accept-loss`");
    let resolution = Resolution::Waiting {
        reason: HISTORY_LOST.to_owned(),
        resumes_after: Some(context.clock.now().plus(AGAIN)),
    };
    publish_outcome(
        context,
        outcome(address, context.clock.now(), resolution, Report::default()),
    )
    .await
}
