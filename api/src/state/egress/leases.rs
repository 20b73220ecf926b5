//! Leases of egress: bytes that this process may send for an operator.
//!
//! Invariant: bytes are taken from a lease before they are sent, and a lease is within the free bytes or paid, so
//! nobody goes into debt. A process takes 16 MiB at a time, so most answers write nothing to the database.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use store::{SpendOwner, Spender, Store};
use types::{OperatorId, Timestamp};

/// Time without an answer after which what is left of a lease goes back.
const IDLE: Duration = Duration::from_mins(1);

/// Reader of an answer: the operator that it counts for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EgressReader {
    /// Operator of the credential.
    pub(crate) operator: OperatorId,
    /// Agent that reads, with its app; `None` for a credential without one.
    pub(crate) spender: Option<Spender>,
    /// True if credits of the operator may pay for blocks.
    pub(crate) may_spend: bool,
}

impl EgressReader {
    /// Returns the app that reads, else the agent; `None` for a person, and for an address that was handed out.
    pub(crate) fn owner(&self) -> Option<SpendOwner> {
        let spender = self.spender?;
        Some(spender.app.map_or(SpendOwner::Agent(spender.agent), SpendOwner::App))
    }
}

/// Bytes that remain of a lease, with the time of their latest use.
#[derive(Clone, Copy, Debug)]
struct LeaseRest {
    bytes: u64,
    used_at: Timestamp,
}

/// Leases by operator and month.
#[derive(Debug, Default)]
pub(crate) struct EgressLeases {
    left: Mutex<HashMap<(OperatorId, i64), LeaseRest>>,
}

impl EgressLeases {
    /// Takes up to `bytes` of what is left, and returns what was taken.
    pub(crate) fn take(&self, operator: OperatorId, bytes: u64, now: Timestamp) -> u64 {
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
    pub(crate) fn put(&self, operator: OperatorId, bytes: u64, now: Timestamp) {
        let mut left = self.left.lock();
        let lease = left
            .entry((operator, now.month()))
            .or_insert(LeaseRest { bytes: 0, used_at: now });
        lease.bytes = lease.bytes.saturating_add(bytes);
        lease.used_at = now;
    }

    /// Gives back what is left of leases that are idle at `now`, or of all.
    pub(crate) async fn give_back(&self, store: &Store, now: Timestamp, all: bool) -> Result<(), store::Error> {
        // The leases are taken out under the lock and given back after it. An answer in between finds
        // none and takes a new one.
        let idle: Vec<_> = {
            let mut left = self.left.lock();
            let is_over = |lease: &LeaseRest| all || now.since(lease.used_at) >= IDLE;
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
}

/// Bytes that were admitted for a body of known size. What was not sent when it is dropped goes back to the lease.
#[derive(Debug)]
pub(crate) struct AdmittedBytes {
    leases: Arc<EgressLeases>,
    operator: OperatorId,
    at: Timestamp,
    bytes: u64,
}

impl AdmittedBytes {
    pub(crate) const fn new(leases: Arc<EgressLeases>, operator: OperatorId, at: Timestamp, bytes: u64) -> Self {
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

impl Drop for AdmittedBytes {
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
