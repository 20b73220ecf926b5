//! Retention: the choice of records to remove.
//!
//! A record may be removed when every group that ever subscribed to its topic has committed it and `retain` younger
//! committed ones are kept. A topic without groups keeps everything, because its records may still be needed. After
//! [`EventLog::keep`](crate::EventLog::keep) a topic keeps that many of its latest records, and those that a group has
//! not committed.
//!
//! Invariant: a record is never removed before every group's position past it is written to disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::batch::PendingBatch;
use super::state::Topic;

/// The least number of records that is removed at a time. Fewer are not worth a batch of their own.
const MIN_TRIM: u64 = 64;

/// Records to remove from the start of partitions.
pub(super) struct Trims {
    retain: u64,
    /// The new first offset, by topic id and partition.
    due: BTreeMap<(u32, u32), (Arc<Topic>, u64)>,
}

impl Trims {
    pub(super) fn new(retain: u64) -> Self {
        Self {
            retain,
            due: BTreeMap::new(),
        }
    }

    /// Returns true if records can be removed now.
    pub(super) fn are_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Plans the removals of `topic` again. Called after positions were written and after a group was created.
    pub(super) fn review(&mut self, topic: &Arc<Topic>) {
        for (number, partition) in (0..).zip(&topic.partitions) {
            let watermark = topic.low_watermark(number as usize);
            // Without groups nothing is removed, unless the topic is limited to its latest
            // records.
            let first = match topic.keeps() {
                None => watermark.unwrap_or(0).saturating_sub(self.retain),
                Some(count) => {
                    let latest = partition.next().saturating_sub(count);
                    watermark.map_or(latest, |watermark| watermark.min(latest))
                }
            };
            let key = (topic.id, number);
            if first >= partition.first().saturating_add(MIN_TRIM) {
                self.due.insert(key, (Arc::clone(topic), first));
            } else {
                self.due.remove(&key);
            }
        }
    }

    /// Adds the removal of at most `limit` records to `batch`.
    pub(super) fn add_to(&mut self, batch: &mut PendingBatch<'_>, limit: u64) {
        let mut left = limit;
        while left > 0
            && let Some(entry) = self.due.first_entry()
        {
            let partition = entry.key().1;
            let (topic, target) = entry.get();
            let first = topic.partitions[partition as usize].first();
            // A large removal is spread over several batches, each within its limit.
            let end = (*target).min(first.saturating_add(left));
            batch.trim(topic, partition, end);
            left -= end.saturating_sub(first);
            if end == *target {
                entry.remove();
            }
        }
    }

    /// Drops every planned removal, because the log has failed.
    pub(super) fn clear(&mut self) {
        self.due.clear();
    }
}
