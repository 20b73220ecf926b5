//! Counters of the log on Kafka.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a log since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KafkaStats {
    /// Calls of [`EventLog::append`](crate::EventLog::append) that were answered with positions.
    pub appends: u64,
    /// Records acknowledged by these calls.
    pub records: u64,
    /// Calls of it that failed: the brokers refused, or did not answer in time.
    pub failed_appends: u64,
    /// Producers that were replaced after a failure they cannot recover from.
    pub producers_renewed: u64,
    /// Consumers that were replaced: their topic was recreated, they stalled, or their group left partitions
    /// unassigned.
    pub consumers_restarted: u64,
    /// Partitions assigned to readers.
    pub assigned: u64,
    /// Partitions revoked from readers.
    pub revoked: u64,
    /// Partitions whose position was outside the log; reading continued at the first record left.
    pub out_of_range: u64,
    /// Commits of positions that failed.
    pub failed_commits: u64,
}

/// The live form of [`KafkaStats`].
#[derive(Debug, Default)]
pub(super) struct KafkaCounters {
    pub(super) appends: AtomicU64,
    pub(super) records: AtomicU64,
    pub(super) failed_appends: AtomicU64,
    pub(super) producers_renewed: AtomicU64,
    pub(super) consumers_restarted: AtomicU64,
    pub(super) assigned: AtomicU64,
    pub(super) revoked: AtomicU64,
    pub(super) out_of_range: AtomicU64,
    pub(super) failed_commits: AtomicU64,
}

impl KafkaCounters {
    pub(super) fn stats(&self) -> KafkaStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        KafkaStats {
            appends: read(&self.appends),
            records: read(&self.records),
            failed_appends: read(&self.failed_appends),
            producers_renewed: read(&self.producers_renewed),
            consumers_restarted: read(&self.consumers_restarted),
            assigned: read(&self.assigned),
            revoked: read(&self.revoked),
            out_of_range: read(&self.out_of_range),
            failed_commits: read(&self.failed_commits),
        }
    }
}

/// Adds to a counter.
pub(super) fn count(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}
