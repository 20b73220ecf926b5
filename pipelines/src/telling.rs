//! Telling what became of submissions, and the versions of a table in their order.
//!
//! Invariants:
//! - A version is told after all that come before it, whoever merged them and whatever was told of their contributions
//!   before: what a table has is merged, though a worker that stood still may have put its commit after it was given up
//!   and another one rejected the same contribution.
//! - Who merges tells that before merging again, so each owner of a table that ended or stands still leaves one version
//!   untold at most, and what is untold are the latest few.
//! - What a log took and lost counts as told, and what is damaged as told long ago. Either is told, or asked for, when
//!   its submission comes again.

use catalog::{Merge, Table};
use tracing::Instrument as _;
use types::{Classify as _, DatasetId, Kind, Version};

use crate::conclude::adopted;
use crate::emit::Stopped;
use crate::judge::described;
use crate::lane::Context;
use crate::message::{Address, Outcome, Resolution};
use crate::trace;

/// Maximum number of versions that are published again: as many owners of one table may end, one after another, before
/// one of them publishes anything. The rest is published when its submission comes again, as it does while it has no
/// outcome.
const OWNERS: u64 = 4;

/// Tells an outcome, and every version known here that is not known to be told: before a merge those before it, and the
/// others then. After a rejection, too, for one of them may be of what is rejected.
pub(crate) async fn tell(context: &Context, table: &Table, outcome: Outcome) -> Result<(), Stopped> {
    let dataset = outcome.dataset;
    if let Resolution::Merged { version, .. } = outcome.resolution {
        catch_up(context, dataset, version).await?;
    }
    context.emitter.outcome(outcome).await?;
    // Once more up to the head: another owner may have committed versions after this one and ended before it
    // published them.
    catch_up(context, dataset, table.head().next()).await
}

/// Tells the versions before `end` that are not known to be told.
async fn catch_up(context: &Context, dataset: DatasetId, end: Version) -> Result<(), Stopped> {
    let next = context.finished.told(dataset).next();
    for version in next.0.max(end.0.saturating_sub(OWNERS))..end.0 {
        let merge = context.ask(dataset, || merge_of(context, dataset, Version(version)));
        let Some(merge) = merge.await? else { continue };
        tracing::info!(%dataset, version, "a version is told before the next, should nobody have told it");
        // The generation does not matter: a merge holds for every one.
        let address = Address {
            contribution: merge.contribution,
            generation: 0,
            dataset,
        };
        let publishing = context.emitter.outcome(adopted(address, merge));
        publishing.instrument(trace::republished(address)).await?;
    }
    Ok(())
}

/// The merge that a version is; none where its commit is damaged.
async fn merge_of(context: &Context, dataset: DatasetId, version: Version) -> Result<Option<Merge>, catalog::Error> {
    let Some(snapshot) = context.catalog.snapshot(dataset, Some(version)).await? else {
        return Ok(None);
    };
    match snapshot.merge().await {
        // Not waited for: it was published long ago, or its submission comes again and waits.
        Err(error) if matches!(error.kind(), Kind::Internal | Kind::Damaged) => {
            tracing::error!(%dataset, %version, error = described(&error), "a version is damaged, and is not told");
            Ok(None)
        }
        merge => merge,
    }
}
