//! Telling what became of submissions, and the versions of a table in their order.
//!
//! Invariants:
//! - A version is told after all that come before it, whoever merged them and whatever was told of their contributions
//!   before. Who merges tells that before merging again, so each owner of a table that ended or stands still leaves one
//!   version untold at most, and what is untold are the latest few.
//! - What a table has is told to be merged. A worker that stood still may put its commit after it was given up and
//!   another one rejected the same contribution.

use catalog::{Merge, Table};
use futures_util::stream::{self, StreamExt as _};
use types::{Classify as _, DatasetId, Retry, Version};

use crate::conclude::adopted;
use crate::emit::Stopped;
use crate::judge::described;
use crate::lane::Context;
use crate::message::{Address, Outcome, Resolution};

/// How many versions are told again at most: as many owners of one table may end, one after another, before one of them
/// tells anything.
const OWNERS: u64 = 16;

/// How many of them are read at once.
const READS: usize = 8;

/// Tells an outcome, and every version that is not known to be told: those before a merge first, and after a rejection those
/// that others merged meanwhile, for it may be one of them.
pub(crate) async fn tell(context: &Context, table: &Table, outcome: Outcome) -> Result<(), Stopped> {
    let dataset = outcome.dataset;
    if let Resolution::Merged { version, .. } = outcome.resolution {
        catch_up(context, dataset, version).await?;
    }
    context.emitter.outcome(outcome).await?;
    catch_up(context, dataset, table.head().next()).await
}

/// Tells the versions before `end` that are not known to be told.
async fn catch_up(context: &Context, dataset: DatasetId, end: Version) -> Result<(), Stopped> {
    let next = context.finished.told(dataset).next();
    let first = next.0.max(end.0.saturating_sub(OWNERS));
    let mut untold = stream::iter(first..end.0)
        .map(|version| merge_of(context, dataset, Version(version)))
        .buffered(READS);
    while let Some(merge) = untold.next().await {
        let Some(merge) = merge? else { continue };
        tracing::info!(%dataset, version = %merge.version, "a version is told before the next, should nobody have told it");
        // Why of the first generation: a merge holds for every one.
        let address = Address {
            contribution: merge.contribution,
            generation: 0,
            dataset,
        };
        context.emitter.outcome(adopted(address, merge)).await?;
    }
    Ok(())
}

/// The merge that a version is, asked for as long as that can help.
async fn merge_of(context: &Context, dataset: DatasetId, version: Version) -> Result<Option<Merge>, Stopped> {
    let mut failures = 0;
    loop {
        let read = async {
            match context.catalog.snapshot(dataset, Some(version)).await? {
                Some(snapshot) => snapshot.merge().await,
                None => Ok(None),
            }
        };
        match read.await {
            Ok(merge) => return Ok(merge),
            Err(error) if error.retry() == Retry::Never => {
                tracing::error!(%dataset, %version, error = described(&error), "a version cannot be read, and is not told");
                return Ok(None);
            }
            Err(error) => {
                tracing::error!(%dataset, %version, error = described(&error), "a version cannot be read, trying again");
                context.backoff.wait(failures, &context.stop).await?;
                failures += 1;
            }
        }
    }
}
