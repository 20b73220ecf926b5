//! Messages that nobody judges: poison, and what was decided before.
//!
//! Invariant: the table is asked first, so that what was merged is never told to be rejected. Whatever comes again is told
//! again as it was, unless that was done a moment ago, so an outcome that a log lost is told for as long as the marketplace
//! lacks it.

use catalog::{Merge, Table};
use types::metric;

use crate::conclude::adopted;
use crate::emit::Stopped;
use crate::judge::{Work, described};
use crate::lane::Context;
use crate::message::{Address, Outcome, Resolution};

/// Tells again what became of a submission that comes again. The marketplace appends what it has no outcome of: mostly the
/// outcome is on its way, but a log may lose one that it took, and then nobody else would ever tell it.
pub(crate) async fn tell_again(context: &Context, table: &Table, address: Address) -> Result<(), Stopped> {
    if is_on_its_way(context, address) {
        return Ok(());
    }
    let merge = found(context, table, address).await?;
    repeat(context, address, merge).await
}

/// Tells an outcome, and what others merged meanwhile: before a merge, whose version comes after theirs, and after a
/// rejection, which may be of what they merged.
pub(crate) async fn tell(context: &Context, table: &mut Table, outcome: Outcome) -> Result<(), Stopped> {
    let is_merged = matches!(outcome.resolution, Resolution::Merged { .. });
    if is_merged {
        amend(context, table).await?;
    }
    context.emitter.outcome(outcome).await?;
    if !is_merged {
        amend(context, table).await?;
    }
    Ok(())
}

/// Tells the merge of what was told to be rejected, where others put commits meanwhile: a worker that stood still may have
/// put its own after it was given up and another one decided otherwise, and what a table has is merged.
async fn amend(context: &Context, table: &mut Table) -> Result<(), Stopped> {
    if !table.has_news() {
        return Ok(());
    }
    for address in context.finished.rejected(table.dataset()) {
        if let Some(merge) = found(context, table, address).await? {
            tracing::error!(contribution = %address.contribution, version = %merge.version,
                "the table has what was rejected; it is merged");
            context.emitter.outcome(adopted(address, merge)).await?;
        }
    }
    Ok(())
}

/// Asks the table for a contribution, for as long as it takes.
async fn found(context: &Context, table: &Table, address: Address) -> Result<Option<Merge>, Stopped> {
    let mut failures = 0;
    loop {
        match table.find(address.contribution).await {
            Ok(merge) => return Ok(merge),
            Err(error) => unasked(context, address, &error, &mut failures).await?,
        }
    }
}

/// Whether its outcome was told a moment ago: then what comes again was appended before the marketplace could know.
fn is_on_its_way(context: &Context, address: Address) -> bool {
    let Address {
        contribution,
        generation,
        ..
    } = address;
    context
        .finished
        .is_on_its_way(contribution, generation, context.clock.now())
}

/// Tells the outcome of a decided submission, whose merge this is, if it was merged.
async fn repeat(context: &Context, address: Address, merge: Option<Merge>) -> Result<(), Stopped> {
    if is_on_its_way(context, address) {
        return Ok(());
    }
    let outcome = match merge {
        Some(merge) => Some(adopted(address, merge)),
        None => context.finished.rejection(address.contribution, address.generation),
    };
    // Why there may be none: it is said to be merged, and its table knows nothing of it. That is for the checker to find.
    let Some(outcome) = outcome else { return Ok(()) };
    tracing::info!(contribution = %address.contribution, "decided before, and told again");
    context.emitter.outcome(outcome).await
}

/// Ends a message that cannot be processed: with the outcome that its contribution has, should an earlier delivery have
/// been merged, else among the dead letters.
pub(crate) async fn bury(context: &Context, work: &Work, poison: &str) -> Result<(), Stopped> {
    let address = Address::read(&work.record.value);
    let is_decided = address.is_some_and(|address| context.finished.contains(address.contribution, address.generation));
    let merge = match address {
        Some(address) => merged_before(context, address).await?,
        None => None,
    };
    if let Some(address) = address
        && (merge.is_some() || (is_decided && work.condemned.is_some()))
    {
        tracing::warn!(contribution = %address.contribution, poison, "a message of a decided contribution is poison");
        // Why no letter: it was merged, or another delivery of it was condemned as well, and is there.
        return repeat(context, address, merge).await;
    }
    if work.condemned.is_some() {
        tracing::error!(contribution = ?address.map(|address| address.contribution),
            "a submission ended its worker's process again and again; nobody works on it any more");
        metrics::counter!(metric::QUARANTINED).increment(1);
    }
    context.emitter.dead_letter(work, address, poison).await?;
    match address.filter(|_| is_decided) {
        Some(address) => repeat(context, address, None).await,
        None => Ok(()),
    }
}

/// The merge of a contribution, asked of its own table as it is now, whatever lane its message is in.
async fn merged_before(context: &Context, address: Address) -> Result<Option<Merge>, Stopped> {
    let mut failures = 0;
    loop {
        match guard(context, address).await {
            Ok(merge) => return Ok(merge),
            Err(error) => unasked(context, address, &error, &mut failures).await?,
        }
    }
}

/// Waits after a table could not be asked.
async fn unasked(
    context: &Context,
    address: Address,
    error: &catalog::Error,
    failures: &mut u32,
) -> Result<(), Stopped> {
    tracing::error!(dataset = %address.dataset, error = described(error), "the table cannot be asked");
    context.backoff.wait(*failures, &context.stop).await?;
    *failures += 1;
    Ok(())
}

async fn guard(context: &Context, address: Address) -> Result<Option<Merge>, catalog::Error> {
    let Some(snapshot) = context.catalog.snapshot(address.dataset, None).await? else {
        return Ok(None);
    };
    let Some(contract) = snapshot.contract() else {
        return Ok(None);
    };
    let table = context.catalog.table(address.dataset, contract).await?;
    table.find(address.contribution).await
}
