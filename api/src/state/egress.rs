//! Counts of the bytes sent for each operator and month, and leases of those that may be sent.
//!
//! Invariant: counting never delays an answer. Sums are kept in memory and stored once a second, so a crash loses at
//! most a second of them. Bytes are leased before they are sent.

mod leases;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use store::{SpendOwner, Store};
use tokio_util::sync::CancellationToken;
use types::{Clock, ContributionId, OperatorId, Timestamp, metric};

use crate::periodic::PeriodicTimer;

pub(crate) use leases::{AdmittedBytes, EgressLeases, EgressReader, account};

/// Interval at which sums are stored.
const STORE_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes by operator, month and the agent or app that read.
type Sums = HashMap<(OperatorId, i64, Option<SpendOwner>), u64>;

/// Bytes sent that are not stored yet. Clones share their sums.
#[derive(Clone, Debug, Default)]
pub struct EgressMeter {
    sums: Arc<Mutex<Sums>>,
    /// Sums that are being stored, with the id under which the database recognises a repeated attempt.
    storing: Arc<tokio::sync::Mutex<Option<(String, Sums)>>>,
    leases: Arc<EgressLeases>,
}

impl EgressMeter {
    /// Counts bytes sent for an operator at a time, to nobody who is known.
    pub fn add(&self, operator: OperatorId, at: Timestamp, bytes: u64) {
        self.count(operator, None, at, bytes);
    }

    /// Counts bytes sent to a reader at a time.
    pub(crate) fn sent(&self, reader: &EgressReader, at: Timestamp, bytes: u64) {
        self.count(reader.operator, reader.owner(), at, bytes);
    }

    fn count(&self, operator: OperatorId, reader: Option<SpendOwner>, at: Timestamp, bytes: u64) {
        let mut sums = self.sums.lock();
        let sum = sums.entry((operator, at.month(), reader)).or_default();
        *sum = sum.saturating_add(bytes);
        drop(sums);
        metrics::counter!(metric::EGRESS_BYTES).increment(bytes);
    }

    /// Returns the leases of this process.
    pub(crate) const fn leases(&self) -> &Arc<EgressLeases> {
        &self.leases
    }

    /// Stores the sums. If an earlier attempt had an unknown result, its sums are stored first, under the same id, so
    /// that they count once.
    pub async fn store(&self, store: &Store, now: Timestamp) -> Result<(), store::Error> {
        // The lock is held until the sums are stored, so that two calls never store the same sums.
        let mut storing = self.storing.lock().await;
        add(&mut storing, store, now).await?;
        // The sums are taken once. A loop until they are empty would never end under load.
        let sums = std::mem::take(&mut *self.sums.lock());
        if !sums.is_empty() {
            *storing = Some((ContributionId::new(now).to_string(), sums));
        }
        add(&mut storing, store, now).await
    }

    /// Stores the sums once a second until `stop`, and then once more.
    pub async fn run(self, store: Store, clock: Arc<dyn Clock>, stop: CancellationToken) {
        let mut rounds = PeriodicTimer::every(STORE_INTERVAL, &stop);
        loop {
            // The sums are stored once more after the stop, so that a shutdown loses none.
            let is_last = !rounds.next().await;
            if let Err(error) = self.store(&store, clock.now()).await {
                tracing::warn!(%error, "cannot store the egress counts in the database; trying again in a second");
            }
            // A lease that cannot be given back ends with its month.
            if let Err(error) = self.leases.give_back(&store, clock.now(), is_last).await {
                tracing::debug!(%error, "cannot give a lease of egress back");
            }
            if is_last {
                return;
            }
        }
    }
}

/// Adds the pending sums, if there are any, to the database and clears them.
async fn add(storing: &mut Option<(String, Sums)>, store: &Store, now: Timestamp) -> Result<(), store::Error> {
    let Some((id, sums)) = &*storing else {
        return Ok(());
    };
    let sent = sums.iter().map(|(&(operator, month, reader), &bytes)| store::Egress {
        operator,
        month,
        reader,
        bytes,
    });
    store.egress_add(id.clone(), sent.collect(), now).await?;
    *storing = None;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::testing::{Service, config, limits};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn storing_ends_although_more_is_counted_meanwhile() {
        let service = Service::with(config(), limits()).await;
        let (egress, store, now) = (EgressMeter::default(), &service.app.store, service.app.clock.now());
        let operator = OperatorId::new(now);
        let (ended, counting) = (Arc::new(AtomicBool::new(false)), egress.clone());
        let until = Arc::clone(&ended);
        let reading = std::thread::spawn(move || {
            let mut counted = 0;
            while !until.load(Ordering::Relaxed) {
                counting.add(operator, now, 1);
                counted += 1;
            }
            counted
        });
        let stored = tokio::time::timeout(STORE_INTERVAL * 20, egress.store(store, now)).await;
        ended.store(true, Ordering::Relaxed);
        let counted = reading.join().unwrap();
        stored.expect("it ends").unwrap();
        egress.store(store, now).await.unwrap();
        assert_eq!(store.egress(operator, now.month()).await.unwrap(), counted);
    }
}
