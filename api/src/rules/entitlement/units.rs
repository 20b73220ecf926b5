//! Entitlement to knowledge units: what a caller may know of a version, and on what terms it reads the whole text.
//!
//! Invariant: every read of a unit asks this module. A unit that a caller may not know of is answered like a missing
//! one, byte for byte.

use serde_json::Value;
use store::{Standing, Unit, UnitStatus};
use types::money::MicroUsdc;
use types::vocabulary::ItemKind;
use types::{OperatorId, Timestamp, UnitId};

use super::{refusal, unit_quote};
use crate::call::caller::Caller;
use crate::call::cx::Cx;
use crate::call::spec::GuardedItem;
use crate::error::ApiError;
use crate::rules::auth;
use crate::state::app::App;

/// Status of a version as callers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShownStatus {
    Queued,
    Waiting,
    Rejected,
    Published,
    Superseded,
    Retired,
    TakenDown,
}

impl ShownStatus {
    /// Returns the status of a version as callers see it: the end of its unit outranks the stored one.
    pub(crate) fn of(unit: &Unit) -> Self {
        match unit.status {
            UnitStatus::Queued => Self::Queued,
            UnitStatus::Waiting => Self::Waiting,
            UnitStatus::Rejected => Self::Rejected,
            // A takedown is stronger than a retirement: it hides the text from its readers too.
            _ if unit.chain.taken_down.is_some() => Self::TakenDown,
            _ if unit.chain.retired_at.is_some() => Self::Retired,
            UnitStatus::Published => Self::Published,
            UnitStatus::Superseded => Self::Superseded,
        }
    }

    /// Returns the word in answers.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Waiting => "waiting",
            Self::Rejected => "rejected",
            Self::Published => "published",
            Self::Superseded => "superseded",
            Self::Retired => "retired",
            Self::TakenDown => "taken_down",
        }
    }
}

/// Facts about a caller and a unit that decide what it may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and none follows from the others"
)]
pub(crate) struct UnitRelation {
    /// True if the caller has the key of an agent. A person counts as nobody.
    pub(crate) has_key: bool,
    /// True if the unit is of the caller's operator.
    pub(crate) owns: bool,
    /// True if a full read of the agent is recorded.
    pub(crate) has_read: bool,
    /// True if the caller's operator has bought the unit.
    pub(crate) has_bought: bool,
}

/// Terms on which a caller reads the whole text of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FullRead {
    /// It reads, and nothing is kept of that.
    Open,
    /// It reads, and may rate the unit for a while.
    Permitted,
    /// It reads, and the read is recorded.
    Recorded,
    /// It reads after paying this price, or, if `key_reads`, with the key of an agent.
    Priced { price: MicroUsdc, key_reads: bool },
    /// The caller may not know that it exists.
    Hidden,
}

/// Returns the price of a unit: its own, or the platform's default.
pub(crate) fn price_of(micro: Option<i64>) -> MicroUsdc {
    micro.map_or(pay::UNIT_DEFAULT, MicroUsdc)
}

/// Decides the terms of a full read; the only place that does.
pub(crate) fn full_read(unit: &Unit, caller: UnitRelation) -> FullRead {
    let chain = &unit.chain;
    match ShownStatus::of(unit) {
        // The owner, too: its answer is read in the console, and the item comes back with a restoration. An erased text
        // has nothing to read.
        ShownStatus::TakenDown => {
            let is_kept = chain.taken_down.is_some_and(|(_, reason)| reason.is_kept());
            if caller.has_bought && is_kept && chain.erased_at.is_none() {
                FullRead::Open
            } else {
                FullRead::Hidden
            }
        }
        // Before every rule that counts: an own read gives no points and needs no purchase.
        _ if caller.owns => FullRead::Open,
        // A buyer may read it for the first time now, and rate it after that.
        ShownStatus::Retired if caller.has_bought => FullRead::Recorded,
        ShownStatus::Retired if caller.has_read => FullRead::Open,
        // To everybody else a retired unit is as if it had never been.
        ShownStatus::Queued | ShownStatus::Waiting | ShownStatus::Rejected | ShownStatus::Retired => FullRead::Hidden,
        ShownStatus::Published | ShownStatus::Superseded => match chain.price_micro {
            // Free for everybody, so no read is recorded, but a key must be able to rate what it read.
            Some(0) if caller.has_key => FullRead::Permitted,
            Some(0) => FullRead::Open,
            // Without a price of its own, a unit is read with a key for nothing; the record is what
            // gives points.
            None if caller.has_key => FullRead::Recorded,
            Some(_) if caller.has_bought => FullRead::Recorded,
            price => FullRead::Priced {
                price: price_of(price),
                key_reads: price.is_none(),
            },
        },
    }
}

/// Returns true if everybody may read the discussion of a version: ratings and comments.
pub(crate) fn is_discussed(unit: &Unit) -> bool {
    matches!(
        ShownStatus::of(unit),
        ShownStatus::Published | ShownStatus::Superseded | ShownStatus::Retired
    )
}

/// Returns true if a caller may comment on a version.
pub(crate) fn may_comment(unit: &Unit, caller: UnitRelation) -> bool {
    match ShownStatus::of(unit) {
        ShownStatus::Published | ShownStatus::Superseded => true,
        ShownStatus::Retired => caller.owns || caller.has_read || caller.has_bought,
        // Comments belong to published units, so the owner finds none to comment on, either.
        ShownStatus::Queued | ShownStatus::Waiting | ShownStatus::Rejected | ShownStatus::TakenDown => false,
    }
}

/// Returns true if a caller may know that a version can be rated. Of the own operator's units it knows anyway. A takedown
/// closes that for everybody.
pub(crate) fn may_rate(unit: &Unit, caller: UnitRelation) -> bool {
    match ShownStatus::of(unit) {
        ShownStatus::Published | ShownStatus::Superseded => true,
        ShownStatus::Retired => caller.owns || full_read(unit, caller) != FullRead::Hidden,
        ShownStatus::Queued | ShownStatus::Waiting | ShownStatus::Rejected => caller.owns,
        ShownStatus::TakenDown => false,
    }
}

/// Returns true if a caller may know that a unit can be reviewed on the board. A takedown closes that for everybody.
pub(crate) fn may_review(unit: &Unit, caller: UnitRelation) -> bool {
    match ShownStatus::of(unit) {
        ShownStatus::Published | ShownStatus::Superseded => true,
        ShownStatus::Retired => caller.owns || caller.has_read || caller.has_bought,
        ShownStatus::Queued | ShownStatus::Waiting | ShownStatus::Rejected => caller.owns,
        ShownStatus::TakenDown => false,
    }
}

/// Returns the version with this id, whoever may see it.
pub(crate) async fn find(app: &App, id: &str) -> Result<Unit, ApiError> {
    // A text that is no id names nothing. The schema refuses it before; this is for callers beside the table.
    let id: UnitId = id.parse().map_err(|_error| ApiError::no_unit())?;
    app.store.knowledge().unit(id).await?.ok_or_else(ApiError::no_unit)
}

/// Returns the version with this id if it is of the caller's operator, otherwise a 404.
pub(crate) async fn own(cx: &Cx, id: &str) -> Result<Unit, ApiError> {
    own_of(&cx.app, cx.operator(), id).await
}

async fn own_of(app: &App, operator: Option<OperatorId>, id: &str) -> Result<Unit, ApiError> {
    let unit = find(app, id).await?;
    if operator == Some(unit.chain.operator) {
        Ok(unit)
    } else {
        Err(ApiError::no_unit())
    }
}

/// Returns what the caller is to a unit.
pub(crate) async fn relation(cx: &Cx, unit: &Unit) -> Result<UnitRelation, ApiError> {
    relation_of(&cx.app, cx.caller.as_ref(), cx.now, unit).await
}

/// Returns what a caller is to a unit. Only an agent has read or bought anything.
async fn relation_of(
    app: &App,
    caller: Option<&Caller>,
    now: Timestamp,
    unit: &Unit,
) -> Result<UnitRelation, ApiError> {
    let Some((agent, operator)) = caller.and_then(|caller| Some((caller.agent()?, caller.operator))) else {
        // A person without an agent is a stranger here: reads, ratings and points are those of agents.
        return Ok(UnitRelation::default());
    };
    if operator == unit.chain.operator {
        return Ok(UnitRelation {
            has_key: true,
            owns: true,
            ..UnitRelation::default()
        });
    }
    let knowledge = app.store.knowledge();
    let Standing { has_read, .. } = knowledge.standing(unit.chain.id, agent, now).await?;
    Ok(UnitRelation {
        has_key: true,
        owns: false,
        has_read,
        has_bought: has_bought(app, operator, unit.chain.id).await?,
    })
}

/// Returns what the account of a person is to a unit: the person reads what the agents of the account may read. What an
/// agent of it has read, they all have.
pub(crate) async fn account_relation(
    app: &App,
    operator: Option<OperatorId>,
    unit: &Unit,
    has_bought: bool,
) -> Result<UnitRelation, ApiError> {
    let Some(operator) = operator else {
        return Ok(UnitRelation::default());
    };
    let owns = operator == unit.chain.operator;
    let has_read = !owns && app.store.knowledge().is_read_by(operator, unit.chain.id).await?;
    Ok(UnitRelation {
        has_key: true,
        owns,
        has_read,
        has_bought,
    })
}

/// Returns true if a text is shown to a person at once: nothing has to be paid, and no read has to be recorded first.
pub(crate) fn is_open_to_person(terms: FullRead, relation: UnitRelation) -> bool {
    match terms {
        FullRead::Open | FullRead::Permitted => true,
        FullRead::Recorded => relation.has_read || relation.has_bought,
        FullRead::Priced { .. } | FullRead::Hidden => false,
    }
}

/// Fails as an operation on a unit would if the caller may not know of it. For a call whose input is refused.
pub(super) async fn check_unit_access_before_input(
    app: &App,
    item: GuardedItem,
    caller: Option<&Caller>,
    now: Timestamp,
    input: &Value,
) -> Result<(), ApiError> {
    let id = input["id"].as_str().unwrap_or_default();
    // A text that is no id names nothing, for everybody.
    if id.parse::<UnitId>().is_err() {
        return Ok(());
    }
    if item == GuardedItem::OwnUnit {
        return own_of(app, caller.map(|caller| caller.operator), id).await.map(drop);
    }
    let unit = find(app, id).await?;
    let relation = relation_of(app, caller, now, &unit).await?;
    // Bad input about a unit that the caller may not know of is answered like a missing unit, so that
    // the refusal tells nothing.
    if may_comment(&unit, relation) || may_rate(&unit, relation) {
        Ok(())
    } else {
        Err(ApiError::no_unit())
    }
}

/// Returns true if an operator has bought a unit.
pub(crate) async fn has_bought(app: &App, operator: OperatorId, chain: UnitId) -> Result<bool, ApiError> {
    let (entitlements, chain, now) = (&app.process.entitlements, chain.to_string(), app.clock.now());
    // A unit has one version here, which means every version.
    Ok(entitlements
        .owns(&app.store, operator, ItemKind::Unit, &chain, 1, now)
        .await?)
}

/// Returns the answer to a full read that must be paid.
pub(crate) fn unpaid(cx: &Cx, unit: &Unit, price: MicroUsdc, key_reads: bool) -> ApiError {
    let message = if key_reads {
        format!("the unit costs ${price} in test USDC without a key; the key of an agent reads it free")
    } else {
        format!("the unit costs ${price} in test USDC and the operator has not bought it")
    };
    let quote = pay::Quote {
        message,
        ..unit_quote(cx, &unit.chain.id.to_string(), price)
    };
    let error = refusal(&quote);
    if key_reads {
        error
            .field("getKey", auth::get_key(&cx.app, "keys"))
            .field("hint", "an agent reads a unit without a price free with its key")
    } else {
        error
    }
}

#[cfg(test)]
mod tests;
