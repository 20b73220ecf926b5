//! Limits on what agents and apps spend, and the counters of it.
//!
//! Invariants:
//! - A counter moves in the transaction that charges, under its own lock, so charges at once never pass a cap together.
//! - Each charge leaves a row for each of its owners: what the counters were after it, beside the limits that it was held
//!   against. Nothing lowers a counter.

use std::fmt;

use oauth::ConnectionId;
use sqlx::AnyConnection;
use types::money::MicroUsdc;
use types::vocabulary::{SpendKind, SpendOf, SpendPeriod};
use types::{AgentId, ApprovalId, LedgerEventId, OperatorId, Timestamp, mutate};

use super::Money;
use crate::Error;
use crate::apps;
use crate::query::{sql, text, tx};
use crate::row::{Columns, Row as _, row};
use crate::writer::Change;

/// Owner of limits and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpendOwner {
    /// An agent: everything that is done as it, by its keys, by apps and by its person.
    Agent(AgentId),
    /// The connection of an app.
    App(ConnectionId),
}

impl SpendOwner {
    /// Returns the word of the kind of owner.
    pub const fn of(self) -> SpendOf {
        match self {
            Self::Agent(_) => SpendOf::Agent,
            Self::App(_) => SpendOf::App,
        }
    }
}

/// The text under which the owner is stored.
impl fmt::Display for SpendOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(agent) => write!(f, "ag:{agent}"),
            Self::App(connection) => write!(f, "con:{connection}"),
        }
    }
}

/// Agent that spends, and the app through which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spender {
    /// Agent that spends.
    pub agent: AgentId,
    /// Connection of the app; `None` for the agent's own key, and for its person.
    pub app: Option<ConnectionId>,
}

impl Spender {
    /// Returns the owners whose limits hold and whose counters move: the agent before the app.
    fn owners(self) -> impl Iterator<Item = SpendOwner> {
        let app = self.app.map(SpendOwner::App);
        mutate!(Bug::AppUncapped => let app = None);
        std::iter::once(SpendOwner::Agent(self.agent)).chain(app)
    }
}

row! {
    /// Limits of an owner, in micro-USDC. None is no limit; 0 lets nothing pass.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SpendLimits {
        /// Greatest price of a purchase.
        pub per_purchase: Option<MicroUsdc>,
        /// Most that is spent on a UTC day.
        pub per_day: Option<MicroUsdc>,
        /// Most that is spent in a UTC month.
        pub per_month: Option<MicroUsdc>,
        /// Price above which a purchase waits for a person; 0 asks always.
        pub approve_above: Option<MicroUsdc>,
    }
}

/// Limits of an owner, and what it has spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// Limits now.
    pub limits: SpendLimits,
    /// Spent on the UTC day.
    pub on_day: MicroUsdc,
    /// Spent in the UTC month.
    pub in_month: MicroUsdc,
}

/// Cap that a charge does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendCapped {
    /// Owner of the cap.
    pub of: SpendOf,
    /// Period that the cap is for.
    pub period: SpendPeriod,
    /// The cap.
    pub cap: MicroUsdc,
    /// Spent in the period so far; 0 for a purchase.
    pub used: MicroUsdc,
    /// Charge that does not fit.
    pub price: MicroUsdc,
    /// Beginning of the next period; `None` for a purchase.
    pub resets_at: Option<Timestamp>,
    /// True if something that was spent in the period was refunded, which gives nothing back to the cap.
    pub has_refund: bool,
}

impl Money<'_> {
    /// Sets the limits of an agent or an app of an operator. Returns false if the operator has no such agent, or the app
    /// is not connected at `now`.
    ///
    /// # Errors
    /// [`Error::Refused`] for a negative amount.
    pub async fn limits_set(
        &self,
        operator: OperatorId,
        owner: SpendOwner,
        limits: SpendLimits,
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.0
            .write_aside(tx!(async move |cx| {
                let is_its_own = match owner {
                    SpendOwner::Agent(agent) => !apps::is_removed(cx, operator, agent).await?,
                    SpendOwner::App(app) => apps::is_connected(cx, operator, app, now).await?,
                };
                if !is_its_own {
                    return Ok(Change::Undo(false));
                }
                set(cx, operator, owner, limits, now).await?;
                Ok(Change::Keep(true))
            }))
            .await
    }

    /// Returns the limits of owners, and what each has spent in the day and month of `now`, in the order of `owners`.
    pub async fn spendings(&self, owners: &[SpendOwner], now: Timestamp) -> Result<Vec<Spending>, Error> {
        let mut spendings = Vec::with_capacity(owners.len());
        for owner in owners {
            let spending = self.0.read(async {
                let mut readers = self.0.readers();
                let limits = sql!(LIMITS, owner.to_string(), "")
                    .row_if_any(&mut readers)
                    .await?
                    .map_or_else(|| Ok(SpendLimits::default()), |row| SpendLimits::of(&row))?;
                let mut spending = Spending {
                    limits,
                    ..Spending::default()
                };
                let (day, month) = (day_of(now), month_of(now));
                for row in sql!(USED, owner.to_string(), "", day.as_str(), month.as_str())
                    .rows(&mut readers)
                    .await?
                {
                    let used = row.get("used")?;
                    if row.value::<&str>("period")? == day {
                        spending.on_day = used;
                    } else {
                        spending.in_month = used;
                    }
                }
                Ok(spending)
            });
            spendings.push(spending.await?);
        }
        Ok(spendings)
    }
}

/// Limits of two owners.
const LIMITS: &str = text!(
    "SELECT owner, ",
    SpendLimits::COLUMNS,
    " FROM spend_limits WHERE owner IN ($1, $2)"
);

/// Sums that two owners have spent on a day and in a month.
const USED: &str = "SELECT owner, period, used FROM spend_used WHERE owner IN ($1, $2) AND period IN ($3, $4)";

/// Returns the UTC day of an instant, such as `2026-11-28`.
fn day_of(at: Timestamp) -> String {
    date_of(at, "2026-11-28".len())
}

/// Returns the UTC month of an instant, such as `2026-11`.
fn month_of(at: Timestamp) -> String {
    date_of(at, "2026-11".len())
}

fn date_of(at: Timestamp, length: usize) -> String {
    let text = at.to_string();
    text.get(..length).unwrap_or(&text).to_owned()
}

/// Writes the limits of an owner, in the transaction of a change.
pub(crate) async fn set(
    cx: &mut AnyConnection,
    operator: OperatorId,
    owner: SpendOwner,
    limits: SpendLimits,
    now: Timestamp,
) -> Result<(), Error> {
    sql!(
        "INSERT INTO spend_limits (owner, operator_id, per_purchase, per_day, per_month, approve_above, set_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (owner) DO UPDATE SET
             per_purchase = excluded.per_purchase, per_day = excluded.per_day, per_month = excluded.per_month,
             approve_above = excluded.approve_above, set_at = excluded.set_at",
        owner.to_string(),
        operator,
        limits.per_purchase.map(|limit| limit.0),
        limits.per_day.map(|limit| limit.0),
        limits.per_month.map(|limit| limit.0),
        limits.approve_above.map(|limit| limit.0),
        now
    )
    .run(cx)
    .await?;
    Ok(())
}

/// Charge to hold against limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpendCharge {
    pub(super) kind: SpendKind,
    pub(super) amount: MicroUsdc,
    pub(super) now: Timestamp,
}

/// Owners of a charge with their limits, as its transaction read them.
#[derive(Clone, Debug)]
pub(super) struct HeldLimits(Vec<(SpendOwner, SpendLimits)>);

/// Counters of an owner after a charge.
#[derive(Clone, Debug)]
struct CountedOwner {
    owner: SpendOwner,
    limits: SpendLimits,
    on_day: MicroUsdc,
    in_month: MicroUsdc,
}

/// A charge that was counted, and fits every cap.
#[derive(Clone, Debug)]
#[must_use]
pub(super) struct CountedCharge {
    charge: SpendCharge,
    owners: Vec<CountedOwner>,
}

impl HeldLimits {
    /// Reads the limits of a spender. Nobody's are none, and nothing is counted for it.
    pub(super) async fn of(cx: &mut AnyConnection, spender: Option<Spender>) -> Result<Self, Error> {
        let owners: Vec<SpendOwner> = spender.into_iter().flat_map(Spender::owners).collect();
        let Some(first) = owners.first() else {
            return Ok(Self(Vec::new()));
        };
        let second = owners.get(1).map(ToString::to_string).unwrap_or_default();
        let rows = sql!(LIMITS, first.to_string(), second).rows(cx).await?;
        let mut held: Vec<_> = owners.iter().map(|owner| (*owner, SpendLimits::default())).collect();
        for row in &rows {
            let stored: &str = row.value("owner")?;
            for (owner, limits) in &mut held {
                if owner.to_string() == stored {
                    *limits = SpendLimits::of(row)?;
                }
            }
        }
        Ok(Self(held))
    }

    /// Returns true if a purchase at this price waits for a person: it is above the lower of the lines.
    pub(super) fn asks_for(&self, price: MicroUsdc) -> bool {
        let lines = self.0.iter().filter_map(|(_, limits)| limits.approve_above);
        lines.min().is_some_and(|line| price > line)
    }

    /// Returns the first cap that a charge would not fit, by the counters as they are. Others may move them at once.
    pub(super) async fn look(&self, cx: &mut AnyConnection, charge: SpendCharge) -> Result<Option<SpendCapped>, Error> {
        let (day, month) = (day_of(charge.now), month_of(charge.now));
        for (owner, limits) in &self.0 {
            let rows = sql!(USED, owner.to_string(), "", day.as_str(), month.as_str())
                .rows(cx)
                .await?;
            let (mut on_day, mut in_month) = (charge.amount, charge.amount);
            for row in &rows {
                let used: MicroUsdc = row.get("used")?;
                let sum = if row.value::<&str>("period")? == day {
                    &mut on_day
                } else {
                    &mut in_month
                };
                sum.0 = sum.0.saturating_add(used.0);
            }
            if let Some(capped) = capped(cx, *owner, limits, charge, (on_day, in_month)).await? {
                return Ok(Some(capped));
            }
        }
        Ok(None)
    }
}

/// Counts a charge of a spender: the agent before the app, the day before the month. After a cap that it does not fit, the
/// change must be undone.
pub(super) async fn count(
    cx: &mut AnyConnection,
    spender: Option<Spender>,
    charge: SpendCharge,
) -> Result<Result<CountedCharge, SpendCapped>, Error> {
    let (day, month) = (day_of(charge.now), month_of(charge.now));
    let mut sums = Vec::with_capacity(2);
    for owner in spender.into_iter().flat_map(Spender::owners) {
        mutate!(Bug::StaleCounter => super::faults::write_stale_counter(cx, &owner.to_string()).await?);
        // One statement adds and returns, and the rows stay locked until the transaction ends: of two charges at once the
        // second sees the sum of both.
        let rows = sql!(
            "INSERT INTO spend_used (owner, period, used) VALUES ($1, $2, $4), ($1, $3, $4)
             ON CONFLICT (owner, period) DO UPDATE SET used = spend_used.used + excluded.used
             RETURNING period, used",
            owner.to_string(),
            day.as_str(),
            month.as_str(),
            charge.amount.0
        )
        .rows(cx)
        .await?;
        let (mut on_day, mut in_month) = (charge.amount, charge.amount);
        for row in &rows {
            let used = row.get("used")?;
            if row.value::<&str>("period")? == day {
                on_day = used;
            } else {
                in_month = used;
            }
        }
        sums.push((on_day, in_month));
    }
    // Read once the counters are locked, so that a limit holds from the moment at which it is set.
    let held = HeldLimits::of(cx, spender).await?;
    let mut owners = Vec::with_capacity(sums.len());
    for ((owner, limits), (on_day, in_month)) in held.0.into_iter().zip(sums) {
        if let Some(capped) = capped(cx, owner, &limits, charge, (on_day, in_month)).await? {
            return Ok(Err(capped));
        }
        owners.push(CountedOwner {
            owner,
            limits,
            on_day,
            in_month,
        });
    }
    Ok(Ok(CountedCharge { charge, owners }))
}

impl CountedCharge {
    /// Writes the row of each owner, once the event is posted.
    pub(super) async fn note(
        self,
        cx: &mut AnyConnection,
        event: LedgerEventId,
        approval: Option<ApprovalId>,
    ) -> Result<(), Error> {
        // Without its event a row has nothing to refer to.
        mutate!(Bug::SaleUnpaid => return Ok(()));
        let SpendCharge { kind, amount, now } = self.charge;
        for CountedOwner {
            owner,
            limits,
            on_day,
            in_month,
        } in self.owners
        {
            sql!(
                "INSERT INTO spends
                     (event_id, owner, kind, amount, day, day_after, month, month_after, per_purchase, per_day,
                      per_month, approve_above, approval_id)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
                event,
                owner.to_string(),
                kind,
                amount.0,
                day_of(now),
                on_day.0,
                month_of(now),
                in_month.0,
                limits.per_purchase.map(|limit| limit.0),
                limits.per_day.map(|limit| limit.0),
                limits.per_month.map(|limit| limit.0),
                limits.approve_above.map(|limit| limit.0),
                approval
            )
            .run(cx)
            .await?;
        }
        Ok(())
    }
}

/// Returns the first cap of an owner that the sums of day and month with a charge are above.
async fn capped(
    cx: &mut AnyConnection,
    owner: SpendOwner,
    limits: &SpendLimits,
    charge: SpendCharge,
    (on_day, in_month): (MicroUsdc, MicroUsdc),
) -> Result<Option<SpendCapped>, Error> {
    let SpendCharge { kind, amount, now } = charge;
    // Usage is in blocks of one size and has no price to compare.
    let per_purchase = limits.per_purchase.filter(|_| kind == SpendKind::Purchase);
    let caps = [
        (SpendPeriod::Purchase, per_purchase, amount),
        (SpendPeriod::Day, limits.per_day, on_day),
        (SpendPeriod::Month, limits.per_month, in_month),
    ];
    for (period, cap, sum) in caps {
        let Some(cap) = cap.filter(|cap| sum > *cap) else {
            continue;
        };
        let (resets_at, has_refund) = match period {
            SpendPeriod::Purchase => (None, false),
            SpendPeriod::Day => (Some(now.next_day()), is_refunded(cx, owner, period, now).await?),
            SpendPeriod::Month => (Some(now.next_month()), is_refunded(cx, owner, period, now).await?),
        };
        return Ok(Some(SpendCapped {
            of: owner.of(),
            period,
            cap,
            used: MicroUsdc(sum.0.saturating_sub(amount.0)),
            price: amount,
            resets_at,
            has_refund,
        }));
    }
    Ok(None)
}

/// Returns true if a purchase that an owner's counter of the period has was refunded.
async fn is_refunded(
    cx: &mut AnyConnection,
    owner: SpendOwner,
    period: SpendPeriod,
    now: Timestamp,
) -> Result<bool, Error> {
    let (begin, day) = if period == SpendPeriod::Day {
        (Timestamp::of_day(now.day()), day_of(now))
    } else {
        (Timestamp::of_month(now.month()), String::new())
    };
    // Few sales are refunded, and an owner may have many charges: the statement begins with the refunds, in this order on
    // every engine that keeps the order of a cross join.
    let found = sql!(
        "SELECT spends.event_id FROM disputes
         CROSS JOIN ledger_events
         CROSS JOIN spends
         WHERE disputes.state = 'refunded' AND disputes.opened_at >= $4
           AND ledger_events.kind IN ('sale', 'trial_sale') AND ledger_events.key = disputes.sale_id
           AND spends.event_id = ledger_events.id
           AND spends.owner = $1 AND spends.month = $2 AND ($3 = '' OR spends.day = $3) LIMIT 1",
        owner.to_string(),
        month_of(now),
        day,
        begin
    )
    .row_if_any(cx)
    .await?;
    Ok(found.is_some())
}
