//! Changes of a unit by its operator: the price and the retirement.

use std::time::Duration;

use types::vocabulary::{AppealStatus, ItemKind, TakedownReason, UnitStatus};
use types::{Timestamp, UnitId};

use super::outbox::remove;
use super::{Chain, Knowledge, appeals, lock};
use crate::Error;
use crate::query::{sql, tx};
use crate::row::Columns;
use crate::writer::Change;
use crate::{money, service_state};

/// The result of [`Knowledge::price`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum PriceChanged {
    /// The chain after the change, or as it was if that is its price.
    Changed(Box<Chain>),
    /// The price changed less than a window ago; nothing changed.
    TooSoon {
        /// Time until the price may change again; more than zero.
        retry_after: Duration,
    },
    /// The unit is retired or taken down, or no version of it is published or in work; nothing changed.
    NotPublished,
    /// The price is another than the caller saw, here as it is; nothing changed.
    Stale(Box<Chain>),
}

/// The result of [`Knowledge::retire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum UnitRetired {
    /// The unit is retired.
    Retired,
    /// Another version is the latest; nothing changed.
    NotLatest {
        /// The latest published version.
        latest: UnitId,
    },
    /// The version is not published; nothing changed.
    NotPublished,
}

impl Knowledge<'_> {
    /// Sets the price of a unit. The same price is no change, and neither is the price at the submission.
    ///
    /// # Errors
    /// [`Error::Missing`] if the chain does not exist.
    pub async fn price(
        &self,
        chain: UnitId,
        price_micro: Option<i64>,
        now: Timestamp,
        window: Duration,
    ) -> Result<PriceChanged, Error> {
        self.change_price(chain, None, price_micro, now, window).await
    }

    /// Sets the price of a unit as [`price`](Self::price) does, if it is `seen` until then.
    ///
    /// # Errors
    /// [`Error::Missing`] if the chain does not exist.
    pub async fn price_from(
        &self,
        chain: UnitId,
        seen: Option<i64>,
        price_micro: Option<i64>,
        now: Timestamp,
        window: Duration,
    ) -> Result<PriceChanged, Error> {
        self.change_price(chain, Some(seen), price_micro, now, window).await
    }

    #[expect(
        clippy::option_option,
        reason = "no condition, the default and an amount are three things"
    )]
    async fn change_price(
        &self,
        chain: UnitId,
        seen: Option<Option<i64>>,
        price_micro: Option<i64>,
        now: Timestamp,
        window: Duration,
    ) -> Result<PriceChanged, Error> {
        self.0
            .write(tx!(async move |cx| {
                let old = lock(cx, chain).await?.ok_or_else(|| missing(chain))?;
                let open = sql!(
                    "SELECT id FROM units WHERE chain_id = $1 AND status IN ('queued', 'waiting')",
                    chain
                )
                .row_if_any(cx)
                .await?;
                let is_over = old.retired_at.is_some() || old.taken_down.is_some();
                if is_over || (old.latest.is_none() && open.is_none()) {
                    return Ok(Change::Undo(PriceChanged::NotPublished));
                }
                // Before the window is looked at: repeating a call that succeeded must not be
                // refused as too soon.
                if old.price_micro == price_micro {
                    return Ok(Change::Undo(PriceChanged::Changed(Box::new(old))));
                }
                if seen.is_some_and(|seen| seen != old.price_micro) {
                    return Ok(Change::Undo(PriceChanged::Stale(Box::new(old))));
                }
                let allowed_at = old.price_changed_at.map(|changed_at| changed_at.plus(window));
                if let Some(allowed_at) = allowed_at.filter(|allowed_at| *allowed_at > now) {
                    return Ok(Change::Undo(PriceChanged::TooSoon {
                        retry_after: allowed_at.since(now),
                    }));
                }
                sql!(
                    "UPDATE chains SET price_micro = $2, price_changed_at = $3 WHERE id = $1",
                    chain,
                    price_micro,
                    now
                )
                .run(cx)
                .await?;
                money::price_set(cx, ItemKind::Unit, &chain.to_string(), price_micro, now).await?;
                service_state::search_changed(cx, ItemKind::Unit, &chain.to_string(), now).await?;
                Ok(Change::Keep(PriceChanged::Changed(Box::new(Chain {
                    price_micro,
                    price_changed_at: Some(now),
                    ..old
                }))))
            }))
            .await
    }

    /// Retires a unit by its latest version. A revision in work is rejected, so that no later outcome publishes it.
    ///
    /// # Errors
    /// [`Error::Missing`] if the chain does not exist.
    pub async fn retire(&self, chain: UnitId, unit: UnitId, now: Timestamp) -> Result<UnitRetired, Error> {
        self.0
            .write(tx!(async move |cx| {
                let old = lock(cx, chain).await?.ok_or_else(|| missing(chain))?;
                let row = sql!("SELECT status FROM units WHERE id = $1 AND chain_id = $2", unit, chain)
                    .row_if_any(cx)
                    .await?
                    .ok_or_else(|| missing(unit))?;
                let status: UnitStatus = row.get("status")?;
                if old.retired_at.is_some() || old.taken_down.is_some() {
                    return Ok(Change::Undo(UnitRetired::NotPublished));
                }
                // Retiring the latest version retires the unit. A request for an older version is answered with the
                // id of the latest.
                match (status, old.latest) {
                    (UnitStatus::Published, _) => {}
                    (UnitStatus::Superseded, Some(latest)) => {
                        return Ok(Change::Undo(UnitRetired::NotLatest { latest }));
                    }
                    _ => return Ok(Change::Undo(UnitRetired::NotPublished)),
                }
                sql!("UPDATE chains SET retired_at = $2 WHERE id = $1", chain, now)
                    .run(cx)
                    .await?;
                close_open(
                    cx,
                    chain,
                    "chain_retired",
                    "The unit was retired while the revision was being judged.",
                    now,
                )
                .await?;
                service_state::search_changed(cx, ItemKind::Unit, &chain.to_string(), now).await?;
                Ok(Change::Keep(UnitRetired::Retired))
            }))
            .await
    }
}

impl Knowledge<'_> {
    /// Hides a unit for a reason, or shows it again. Returns false if it was so before, or the unit does not exist or is
    /// erased.
    pub async fn take_down(
        &self,
        chain: UnitId,
        reason: Option<TakedownReason>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.0
            .write(tx!(async move |cx| {
                Ok(if hide(cx, chain, reason, now).await? {
                    Change::Keep(true)
                } else {
                    Change::Undo(false)
                })
            }))
            .await
    }
}

/// Hides a unit for a reason, or shows it again. Returns false if it was so before, or the unit does not exist or is
/// erased. The last step of a transaction, since it makes other changes of the search wait.
pub(crate) async fn hide(
    cx: &mut sqlx::AnyConnection,
    chain: UnitId,
    reason: Option<TakedownReason>,
    now: Timestamp,
) -> Result<bool, Error> {
    let Some(old) = lock(cx, chain).await? else {
        return Ok(false);
    };
    if old.erased_at.is_some() || old.taken_down.map(|(_, reason)| reason) == reason {
        return Ok(false);
    }
    // Another reason does not change when the unit was hidden.
    let at = reason.map(|_| old.taken_down.map_or(now, |(at, _)| at));
    sql!(
        "UPDATE chains SET taken_down_at = $2, taken_down_reason = $3 WHERE id = $1",
        chain,
        at,
        reason.map(TakedownReason::as_str)
    )
    .run(cx)
    .await?;
    service_state::search_changed(cx, ItemKind::Unit, &chain.to_string(), now).await?;
    Ok(true)
}

/// Rejects the version in work of a chain, if there is one.
pub(super) async fn close_open(
    cx: &mut sqlx::AnyConnection,
    chain: UnitId,
    code: &'static str,
    message: &'static str,
    now: Timestamp,
) -> Result<(), Error> {
    let closed = sql!(
        "UPDATE units
         SET status = 'rejected', decided_at = $2, reject_code = $3, reject_message = $4, waiting_reason = NULL,
             resumes_after = NULL
         WHERE chain_id = $1 AND status IN ('queued', 'waiting') RETURNING id",
        chain,
        now,
        code,
        message
    )
    .row_if_any(cx)
    .await?;
    if let Some(row) = closed {
        let id: UnitId = row.get("id")?;
        remove(cx, &id.to_string()).await?;
        appeals::close(cx, id, AppealStatus::Denied, message, None, now).await?;
    }
    Ok(())
}

pub(super) fn missing(id: UnitId) -> Error {
    Error::Missing {
        what: "unit",
        id: id.to_string(),
    }
}
