//! Messages that nobody judges: poison, and what was decided before.
//!
//! Invariant: the table is asked first, so that what was merged is never published as rejected. The outcome of a
//! redelivery is published again as it was, unless that was done a moment ago, so an outcome that a log lost is published
//! for as long as the marketplace lacks it. Of a table that was deleted nothing is published.

use catalog::{Merge, Table};
use types::metric;

use crate::context::Context;
use crate::dead_letter::dead_letter;
use crate::delivery::Delivery;
use crate::message::Address;
use crate::publish::{publish, publish_outcome};
use crate::report::adopted;
use crate::step::{Poison, Stopped};

/// Publishes the outcome of a redelivered submission again. The marketplace redelivers submissions without an outcome:
/// mostly the outcome is on its way, but a log may lose one that it accepted, and nothing else would publish it again.
pub(crate) async fn republish(context: &Context, table: &Table, address: Address) -> Result<(), Stopped> {
    if is_recent(context, address) {
        return Ok(());
    }
    let found = context.ask(address.dataset, || table.find(address.contribution));
    match found.await? {
        Some(Some(merge)) => republish_merge(context, table, address, merge).await,
        Some(None) => republish_rejection(context, address).await,
        None => Ok(()),
    }
}

/// Returns true if its outcome was published within the last seconds: a submission that comes again was then appended
/// before the marketplace could know.
fn is_recent(context: &Context, address: Address) -> bool {
    let Address {
        contribution,
        generation,
        ..
    } = address;
    context
        .outcomes
        .is_recent(contribution, generation, context.clock.now())
}

/// Publishes the merge of a decided submission again.
async fn republish_merge(context: &Context, table: &Table, address: Address, merge: Merge) -> Result<(), Stopped> {
    if is_recent(context, address) {
        return Ok(());
    }
    tracing::info!(contribution = %address.contribution, "merged before, and told again");
    publish(context, table, adopted(address, merge)).await
}

/// Publishes the rejection of a decided submission again, which its table does not have.
async fn republish_rejection(context: &Context, address: Address) -> Result<(), Stopped> {
    if is_recent(context, address) {
        return Ok(());
    }
    // There is none if the submission counts as merged and its table does not have it, which `sluice check` reports.
    let Some(outcome) = context.outcomes.rejection(address.contribution, address.generation) else {
        return Ok(());
    };
    tracing::info!(contribution = %address.contribution, "rejected before, and told again");
    publish_outcome(context, outcome).await
}

/// Publishes the outcome of a decided submission again, for which no table is open.
pub(crate) async fn republish_decided(context: &Context, address: Address) -> Result<(), Stopped> {
    if is_recent(context, address) {
        return Ok(());
    }
    let merged = context.ask(address.dataset, || merged_before(context, address));
    match merged.await? {
        Some(Some((table, merge))) => republish_merge(context, &table, address, merge).await,
        Some(None) => republish_rejection(context, address).await,
        None => Ok(()),
    }
}

/// Ends a message that cannot be processed: with the outcome that its contribution has, should an earlier delivery have
/// been merged, else among the dead letters.
pub(crate) async fn end_poison(context: &Context, delivery: &Delivery, poison: &Poison) -> Result<(), Stopped> {
    let address = Address::read(&delivery.record.value);
    let is_decided = address.is_some_and(|address| context.outcomes.contains(address.contribution, address.generation));
    let merged = match address {
        Some(address) => {
            let merged = context.ask(address.dataset, || merged_before(context, address));
            // A message of a dataset that is gone is kept nowhere.
            let Some(merged) = merged.await? else { return Ok(()) };
            merged.map(|merged| (address, merged))
        }
        None => None,
    };
    // No dead letter if it was merged,
    if let Some((address, (table, merge))) = merged {
        tracing::warn!(contribution = %address.contribution, poison = poison.reason, "a message of a merged contribution is poison");
        return republish_merge(context, &table, address, merge).await;
    }
    // or another delivery of it was condemned as well, and is there.
    if let Some(address) = address.filter(|_| is_decided && poison.has_failed_probe) {
        tracing::warn!(contribution = %address.contribution, poison = poison.reason, "a message of a rejected contribution is poison");
        return republish_rejection(context, address).await;
    }
    if poison.has_failed_probe {
        tracing::error!(contribution = ?address.map(|address| address.contribution),
            "a submission ended the processes that tried it out; nobody works on it any more");
        metrics::counter!(metric::QUARANTINED).increment(1);
    }
    dead_letter(context, delivery, address, &poison.reason).await?;
    match address.filter(|_| is_decided) {
        Some(address) => republish_rejection(context, address).await,
        None => Ok(()),
    }
}

/// Returns the merge of a contribution with its table, as that is now, whatever writer has its message.
async fn merged_before(context: &Context, address: Address) -> Result<Option<(Table, Merge)>, catalog::Error> {
    let Some(snapshot) = context.catalog.snapshot(address.dataset, None).await? else {
        return Ok(None);
    };
    let Some(contract) = snapshot.contract() else {
        return Ok(None);
    };
    // The table of the message's dataset, not the writer's: a message with a wrong key is at a writer of
    // another dataset, or of none.
    let table = context.catalog.table(address.dataset, contract).await?;
    let merge = table.find(address.contribution).await?;
    Ok(merge.map(|merge| (table, merge)))
}
