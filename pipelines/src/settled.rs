//! Messages that nobody judges: poison, and what was decided before.
//!
//! Invariant: the table is asked first, so that what was merged is never told to be rejected. Whatever comes again is
//! told again as it was, unless that was done a moment ago, so an outcome that a log lost is told for as long as the
//! marketplace lacks it.

use catalog::{Merge, Table};
use types::metric;

use crate::conclude::adopted;
use crate::emit::Stopped;
use crate::judge::Work;
use crate::lane::Context;
use crate::message::Address;
use crate::telling::tell;

/// Publishes the outcome of a redelivered submission again. The marketplace redelivers submissions without an outcome:
/// mostly the outcome is on its way, but a log may lose one that it accepted, and nothing else would publish it again.
pub(crate) async fn tell_again(context: &Context, table: &Table, address: Address) -> Result<(), Stopped> {
    if is_on_its_way(context, address) {
        return Ok(());
    }
    let found = context.ask(address.dataset, || table.find(address.contribution));
    match found.await? {
        Some(merge) => tell_merged_again(context, table, address, merge).await,
        None => reject_again(context, address).await,
    }
}

/// Returns true if its outcome was published within the last seconds: a submission that comes again was then appended
/// before the marketplace could know.
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

/// Tells the merge of a decided submission.
async fn tell_merged_again(context: &Context, table: &Table, address: Address, merge: Merge) -> Result<(), Stopped> {
    if is_on_its_way(context, address) {
        return Ok(());
    }
    tracing::info!(contribution = %address.contribution, "merged before, and told again");
    tell(context, table, adopted(address, merge)).await
}

/// Tells the rejection of a decided submission that its table does not have.
async fn reject_again(context: &Context, address: Address) -> Result<(), Stopped> {
    if is_on_its_way(context, address) {
        return Ok(());
    }
    // There is none if the submission counts as merged and its table does not have it, which `sluice check` reports.
    let Some(outcome) = context.finished.rejection(address.contribution, address.generation) else {
        return Ok(());
    };
    tracing::info!(contribution = %address.contribution, "rejected before, and told again");
    context.emitter.outcome(outcome).await
}

/// Publishes the outcome of a decided submission again, for which no table is open.
pub(crate) async fn tell_decided(context: &Context, address: Address) -> Result<(), Stopped> {
    if is_on_its_way(context, address) {
        return Ok(());
    }
    let merged = context.ask(address.dataset, || merged_before(context, address));
    match merged.await? {
        Some((table, merge)) => tell_merged_again(context, &table, address, merge).await,
        None => reject_again(context, address).await,
    }
}

/// Ends a message that cannot be processed: with the outcome that its contribution has, should an earlier delivery have
/// been merged, else among the dead letters.
pub(crate) async fn bury(context: &Context, work: &Work, poison: &str) -> Result<(), Stopped> {
    let address = Address::read(&work.record.value);
    let is_decided = address.is_some_and(|address| context.finished.contains(address.contribution, address.generation));
    let merged = match address {
        Some(address) => {
            let merged = context.ask(address.dataset, || merged_before(context, address));
            merged.await?.map(|merged| (address, merged))
        }
        None => None,
    };
    // No dead letter if it was merged,
    if let Some((address, (table, merge))) = merged {
        tracing::warn!(contribution = %address.contribution, poison, "a message of a merged contribution is poison");
        return tell_merged_again(context, &table, address, merge).await;
    }
    // or another delivery of it was condemned as well, and is there.
    if let Some(address) = address.filter(|_| is_decided && work.condemned) {
        tracing::warn!(contribution = %address.contribution, poison, "a message of a rejected contribution is poison");
        return reject_again(context, address).await;
    }
    if work.condemned {
        tracing::error!(contribution = ?address.map(|address| address.contribution),
            "a submission ended the processes that tried it out; nobody works on it any more");
        metrics::counter!(metric::QUARANTINED).increment(1);
    }
    context.emitter.dead_letter(work, address, poison).await?;
    match address.filter(|_| is_decided) {
        Some(address) => reject_again(context, address).await,
        None => Ok(()),
    }
}

/// The merge of a contribution with its table, asked of that as it is now, whatever lane its message is in.
async fn merged_before(context: &Context, address: Address) -> Result<Option<(Table, Merge)>, catalog::Error> {
    let Some(snapshot) = context.catalog.snapshot(address.dataset, None).await? else {
        return Ok(None);
    };
    let Some(contract) = snapshot.contract() else {
        return Ok(None);
    };
    // The table of the message's dataset, not the lane's: a message with a wrong key is in a lane of
    // another dataset, or of none.
    let table = context.catalog.table(address.dataset, contract).await?;
    let merge = table.find(address.contribution).await?;
    Ok(merge.map(|merge| (table, merge)))
}
