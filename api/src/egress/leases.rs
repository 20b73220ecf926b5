//! Leases of egress: bytes that this process may send for an operator.
//!
//! Invariant: bytes are taken from a lease before they are sent, and a lease is within the free bytes or paid, so
//! nobody goes into debt. A process takes 16 MiB at a time, so most answers write nothing to the database.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use store::{EgressLease, EgressLeased, Store};
use types::money::MicroUsdc;
use types::{AgentId, Kind, LedgerEventId, OperatorId, Timestamp, mutate};

use crate::app::App;
use crate::error::ApiError;

/// Bytes of a lease, unless an answer is larger.
const LEASE: u64 = 16 << 20;
/// Time without an answer after which what is left of a lease goes back.
const IDLE: Duration = Duration::from_mins(1);

/// Reader of an answer: the operator that it counts for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// Operator of the credential.
    pub(crate) operator: OperatorId,
    /// Agent that reads; `None` for a credential without one.
    pub(crate) agent: Option<AgentId>,
    /// True if credits of the operator may pay for blocks.
    pub(crate) may_spend: bool,
}

/// Bytes that remain of a lease, with the time of their latest use.
#[derive(Clone, Copy, Debug)]
struct Left {
    bytes: u64,
    used_at: Timestamp,
}

/// Leases by operator and month.
#[derive(Debug, Default)]
pub(super) struct Leases {
    left: Mutex<HashMap<(OperatorId, i64), Left>>,
}

impl Leases {
    /// Takes up to `bytes` of what is left, and returns what was taken.
    fn take(&self, operator: OperatorId, bytes: u64, now: Timestamp) -> u64 {
        let mut left = self.left.lock();
        let Some(lease) = left.get_mut(&(operator, now.month())) else {
            return 0;
        };
        let taken = lease.bytes.min(bytes);
        lease.bytes -= taken;
        lease.used_at = now;
        taken
    }

    /// Adds bytes to what is left.
    fn put(&self, operator: OperatorId, bytes: u64, now: Timestamp) {
        let mut left = self.left.lock();
        let lease = left
            .entry((operator, now.month()))
            .or_insert(Left { bytes: 0, used_at: now });
        lease.bytes = lease.bytes.saturating_add(bytes);
        lease.used_at = now;
    }

    /// Gives back what is left of leases that are idle at `now`, or of all.
    pub(super) async fn give_back(&self, store: &Store, now: Timestamp, all: bool) -> Result<(), store::Error> {
        // The leases are taken out under the lock and given back after it. An answer in between finds
        // none and takes a new one.
        let idle: Vec<_> = {
            let mut left = self.left.lock();
            let is_over = |lease: &Left| all || now.since(lease.used_at) >= IDLE;
            let keys: Vec<_> = left
                .iter()
                .filter(|(_, lease)| is_over(lease))
                .map(|(key, _)| *key)
                .collect();
            keys.into_iter()
                .filter_map(|key| left.remove(&key).map(|lease| (key, lease.bytes)))
                .collect()
        };
        for ((operator, month), bytes) in idle {
            if bytes > 0 {
                // After an error the rest is not given back. Its bytes count as used until the month
                // ends, so the bound still holds.
                store.money().egress_return(&account(operator), month, bytes).await?;
            }
        }
        Ok(())
    }

    /// Makes sure that `bytes` may be sent to a reader: takes them from its lease, or leases more.
    pub(super) async fn admit(&self, app: &App, reader: Reader, bytes: u64, now: Timestamp) -> Result<(), ApiError> {
        let taken = self.take(reader.operator, bytes, now);
        let missing = bytes - taken;
        mutate!(Bug::SendsUnleased => let missing = 0);
        if missing == 0 {
            return Ok(());
        }
        // A credential without the permission to spend gets what is free and no more.
        let payer = reader.may_spend.then_some(reader.operator);
        // An answer that is larger than a lease is leased whole before its first byte: half of it is of
        // no use.
        let whole = missing.max(LEASE);
        // A whole lease for nothing, then just these bytes for nothing, then the same for credits.
        let tries = [(whole, None), (missing, None), (whole, payer), (missing, payer)];
        let mut refused = None;
        for (number, (size, payer)) in tries.into_iter().enumerate() {
            // For a large answer, or without a payer, tries are equal and their result is known.
            let repeats = tries[..number].contains(&(size, payer));
            if repeats {
                continue;
            }
            match lease(app, reader, size, payer, now).await {
                Ok(EgressLeased::Leased) => {
                    self.put(reader.operator, size - missing, now);
                    return Ok(());
                }
                Ok(other) => refused = Some(other),
                Err(error) => {
                    self.put(reader.operator, taken, now);
                    return Err(error);
                }
            }
        }
        // The bytes that were taken from the lease were not sent.
        self.put(reader.operator, taken, now);
        match refused {
            Some(EgressLeased::Short { need, balance }) => {
                Err(exceeded(app, reader.operator, need, balance, now).await?)
            }
            _ => Err(platform_full(now)),
        }
    }
}

/// Bytes that were admitted for a body of known size. What was not sent when it is dropped goes back to the lease.
#[derive(Debug)]
pub(crate) struct Admitted {
    leases: Arc<Leases>,
    operator: OperatorId,
    at: Timestamp,
    bytes: u64,
}

impl Admitted {
    pub(super) const fn new(leases: Arc<Leases>, operator: OperatorId, at: Timestamp, bytes: u64) -> Self {
        Self {
            leases,
            operator,
            at,
            bytes,
        }
    }

    /// Notes that bytes were sent.
    pub(crate) const fn sent(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.leases.put(self.operator, self.bytes, self.at);
        }
    }
}

/// Returns the name of an operator in the counts of leases.
pub(crate) fn account(operator: OperatorId) -> String {
    format!("op:{operator}")
}

async fn lease(
    app: &App,
    reader: Reader,
    bytes: u64,
    payer: Option<OperatorId>,
    now: Timestamp,
) -> Result<EgressLeased, ApiError> {
    let tariff = &app.pay;
    let lease = EgressLease {
        account: account(reader.operator),
        month: now.month(),
        bytes,
        free: tariff.free_egress_bytes,
        platform: tariff.platform_egress_bytes,
        payer,
        asset: tariff.asset.clone(),
        block: tariff.egress_block,
        event: LedgerEventId::new(now),
        actor: reader.agent.map(|agent| agent.to_string()).unwrap_or_default(),
        now,
    };
    Ok(app.store.money().egress_lease(lease).await?)
}

/// Returns the error for a reader whose egress is used up.
async fn exceeded(
    app: &App,
    operator: OperatorId,
    need: MicroUsdc,
    balance: MicroUsdc,
    now: Timestamp,
) -> Result<ApiError, ApiError> {
    let used = app.store.egress(operator, now.month()).await?;
    let (_, blocks) = app.store.money().egress_month(&account(operator), now.month()).await?;
    let allowed = app
        .pay
        .free_egress_bytes
        .saturating_add(blocks.saturating_mul(pay::BLOCK_BYTES));
    let message = format!("the egress of the month is used up, and credits do not pay ${need} for more");
    Ok(ApiError::new(Kind::PaymentRequired, "egress_quota", message)
        .field(
            "quota",
            json!({"egress": {"used": used, "allowed": allowed, "resetsAt": now.next_month().to_string()}}),
        )
        .field(
            "credits",
            json!({
                "needMicro": need.0,
                "balanceMicro": balance.0,
                "topUp": app.config.top_up(operator),
            }),
        ))
}

/// Returns the error for a month in which the service sends no more.
fn platform_full(now: Timestamp) -> ApiError {
    let (reset, message) = (now.next_month(), "the service sends no more this month");
    ApiError::limited("platform_capacity", message, reset.since(now).as_secs()).field("resetAt", reset.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Service;

    #[tokio::test]
    async fn an_answer_that_fails_takes_nothing_of_the_lease() {
        let service = Service::start().await;
        let (leases, now) = (Leases::default(), service.app.clock.now());
        let reader = Reader {
            operator: OperatorId::new(now),
            agent: None,
            may_spend: false,
        };
        leases.put(reader.operator, 10, now);
        service.app.store.close().await;
        assert!(leases.admit(&service.app, reader, 20, now).await.is_err());
        assert_eq!(leases.take(reader.operator, 20, now), 10);
    }
}
