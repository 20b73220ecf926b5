//! What the author of a refused copy is told about the unit that it copies.
//!
//! Invariant: of a unit that the author may not read, only facts of its public preview are named or counted. Whoever tries
//! figures until they are said to be in a unit learns nothing of what is sold.

use operators::knowledge::{RARE_FACT_WEIGHT, text_facts, written_facts};
use store::Unit;
use types::unit::{ReviewEntry, SimilarUnit};
use types::vocabulary::StepOutcome;

use super::view::is_locked;
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::rules::entitlement::units::{self, FullRead, ShownStatus};
use crate::rules::previews::preview;

/// The facts that are named in a sentence.
const MAX_NAMED_FACTS: usize = 8;

/// Replaces the sentence of a refusal for common facts by one that names them, as far as the caller may know them.
pub(super) async fn name_copied_facts(cx: &Cx, body: &str, entries: &mut [ReviewEntry]) -> Result<(), ApiError> {
    for entry in entries {
        let is_copy = entry.outcome == StepOutcome::Refused && entry.code == "duplicate_meaning";
        let Some(SimilarUnit { unit_id, .. }) = entry.similar.filter(|_| is_copy) else {
            continue;
        };
        let Some(known) = cx.app.store.knowledge().unit(unit_id).await? else {
            continue;
        };
        if let Some(facts) = shared_sentence(body, &known, reads_unrecorded(cx, &known).await?) {
            entry.detail = format!("{} {facts}", entry.detail);
        }
    }
    Ok(())
}

/// Returns true if the caller may read a unit without a payment, and without a read that would have to be recorded now.
async fn reads_unrecorded(cx: &Cx, unit: &Unit) -> Result<bool, ApiError> {
    let relation = units::relation(cx, unit).await?;
    Ok(match units::full_read(unit, relation) {
        FullRead::Open | FullRead::Permitted => true,
        FullRead::Recorded => relation.has_read || relation.has_bought,
        FullRead::Priced { .. } | FullRead::Hidden => false,
    })
}

/// Returns the sentence about the facts that a text shares with a published unit, or `None` if none may be named.
fn shared_sentence(body: &str, known: &Unit, is_readable: bool) -> Option<String> {
    let is_shown = ShownStatus::of(known) == ShownStatus::Published;
    let shown;
    let readable = if is_readable {
        known.body.as_str()
    } else {
        shown = if is_shown {
            format!(
                "{}\n{}",
                known.title,
                preview(&known.body, is_locked(known.chain.price_micro))
            )
        } else {
            String::new()
        };
        shown.as_str()
    };
    let there = text_facts(readable);
    let is_there = |hash: u32| {
        let at = there.partition_point(|fact| fact.hash < hash);
        there.get(at).is_some_and(|fact| fact.hash == hash)
    };
    let written = written_facts(body);
    let told = written.iter().filter(|(_, fact)| fact.weight >= RARE_FACT_WEIGHT);
    let (same, new): (Vec<_>, Vec<_>) = told.partition(|(_, fact)| is_there(fact.hash));
    let listed = |facts: &[&(String, _)]| {
        let named: Vec<String> = facts
            .iter()
            .take(MAX_NAMED_FACTS)
            .map(|(written, _)| format!("`{}`", written.replace('`', "")))
            .collect();
        named.join(", ")
    };
    if same.is_empty() {
        return None;
    }
    let mut sentence = if is_readable {
        let all = same.len() + new.len();
        format!("{} of {all} are there, such as {}.", same.len(), listed(&same))
    } else {
        format!("Its public part has {}.", listed(&same))
    };
    if is_readable && !new.is_empty() {
        sentence.extend([" New here: ", &listed(&new), "."]);
    }
    Some(sentence)
}
