//! Which records are no longer needed.
//!
//! A record may go when every group that ever subscribed to its topic has done it and `retain` younger done ones
//! are kept. A topic that no group ever subscribed to keeps everything: nobody has read it yet. Where somebody said how
//! many of its latest records a topic keeps, those are kept, and what a group has not done.
//!
//! Invariant: what a group has not committed, as written to disk, is never removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::Draft;
use super::state::Topic;

/// Fewer records than this are not worth a batch of their own.
const STEP: u64 = 64;

/// What is to be removed.
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

    /// Whether something can be removed now.
    pub(super) fn are_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Looks again at what `topic` can lose: after positions were written, or after a group came.
    pub(super) fn review(&mut self, topic: &Arc<Topic>) {
        for (number, partition) in (0..).zip(&topic.partitions) {
            let floor = topic.floor(number as usize);
            let first = match topic.keeps() {
                None => floor.unwrap_or(0).saturating_sub(self.retain),
                Some(count) => {
                    let latest = partition.next().saturating_sub(count);
                    floor.map_or(latest, |floor| floor.min(latest))
                }
            };
            let place = (topic.id, number);
            if first >= partition.first().saturating_add(STEP) {
                self.due.insert(place, (Arc::clone(topic), first));
            } else {
                self.due.remove(&place);
            }
        }
    }

    /// Puts the removal of at most `limit` records into `draft`.
    pub(super) fn draft(&mut self, draft: &mut Draft<'_>, limit: u64) {
        let mut left = limit;
        while left > 0
            && let Some(entry) = self.due.first_entry()
        {
            let partition = entry.key().1;
            let (topic, target) = entry.get();
            let first = topic.partitions[partition as usize].first();
            let end = (*target).min(first.saturating_add(left));
            draft.trim(topic, partition, end);
            left -= end.saturating_sub(first);
            if end == *target {
                entry.remove();
            }
        }
    }

    /// Removes nothing any more: the log has failed.
    pub(super) fn give_up(&mut self) {
        self.due.clear();
    }
}
