//! Start offsets of partitions.
//!
//! Invariant: every start offset is set explicitly; librdkafka never chooses one (`auto.offset.reset=error`).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rdkafka::error::KafkaResult;
use rdkafka::{Offset, TopicPartitionList};

use super::client::native;
use crate::Bounds;

/// A partition and its start offset; `None` stands for the first record.
pub(super) type StartOffset = (u32, Option<u64>);

/// Builds a list of partitions with start offsets for librdkafka.
pub(super) fn list(name: &str, starts: &[StartOffset]) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::with_capacity(starts.len());
    for (partition, start) in starts {
        let offset = match start {
            Some(offset) => Offset::Offset(i64::try_from(*offset).unwrap_or(i64::MAX)),
            None => Offset::Beginning,
        };
        list.add_partition_offset(name, native(*partition), offset)?;
    }
    Ok(list)
}

/// Returns the partition numbers of a list.
pub(super) fn numbers(list: &TopicPartitionList) -> Vec<u32> {
    let partitions = list.elements();
    partitions
        .iter()
        .filter_map(|at| u32::try_from(at.partition()).ok())
        .collect()
}

/// The time after which every member of a group has learned that a topic was recreated. Clients refresh their metadata
/// every half minute.
const METADATA_PROPAGATION: Duration = Duration::from_mins(1);

/// The partitions of a recreated topic that must start at their first record. Their committed offsets are ignored,
/// since these may belong to the deleted topic.
#[derive(Debug, Default)]
pub(super) struct FirstRecord {
    partitions: BTreeSet<u32>,
    /// The time from which committed offsets belong to the new topic.
    until: Option<Instant>,
}

impl FirstRecord {
    /// Covers all partitions from 0 to `partitions`.
    pub(super) fn of(partitions: u32) -> Self {
        Self {
            partitions: (0..partitions).collect(),
            until: None,
        }
    }

    /// Splits `given` into partitions that must start at their first record now, and the others.
    pub(super) fn split(&mut self, given: &[u32], now: Instant) -> (Vec<u32>, Vec<u32>) {
        if now > *self.until.get_or_insert(now + METADATA_PROPAGATION) {
            self.partitions.clear();
        }
        given.iter().partition(|at| self.partitions.remove(at))
    }
}

/// New start offsets for a consumer that lost its position in some partitions.
pub(super) struct Reset {
    /// The partitions whose position is outside the log.
    pub(super) out_of_range: Vec<u32>,
    /// The start offset of every partition.
    pub(super) starts: Vec<StartOffset>,
}

/// Computes new start offsets: a position outside the bounds is replaced by the first record. Every partition is
/// restarted, also one whose position is valid now: librdkafka does not report which one it stopped reading, and a
/// recreated topic may have grown past the old position since.
pub(super) fn reset_offsets(known: &[StartOffset], bounds: &[Bounds]) -> Reset {
    let is_out_of_range = |(at, position): &StartOffset| {
        let bounds = bounds.get(*at as usize);
        position.is_some_and(|next| bounds.is_none_or(|bounds| next < bounds.first || next > bounds.next))
    };
    let out_of_range: Vec<u32> = known
        .iter()
        .filter(|start| is_out_of_range(start))
        .map(|(at, _)| *at)
        .collect();
    let start = |(at, position): &StartOffset| (*at, position.filter(|_| !out_of_range.contains(at)));
    Reset {
        starts: known.iter().map(start).collect(),
        out_of_range,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_restarts_and_one_that_is_out_of_range_at_its_first_record() {
        let bounds = [(0, 10), (5, 10), (0, 10), (0, 60), (0, 10)].map(|(first, next)| Bounds { first, next });
        // The fourth was past the end when librdkafka stopped reading it.
        let known = [(0, Some(66)), (1, Some(4)), (2, Some(10)), (3, Some(44)), (4, None)];
        let Reset { out_of_range, starts } = reset_offsets(&known, &bounds);
        assert_eq!(out_of_range, [0, 1]);
        assert_eq!(starts, [(0, None), (1, None), (2, Some(10)), (3, Some(44)), (4, None)]);
    }

    #[test]
    fn a_partition_starts_once_at_its_first_record_and_only_soon_after_the_topic_was_recreated() {
        let mut first = FirstRecord::of(4);
        let begun = Instant::now();
        assert_eq!(first.split(&[0, 1], begun), (vec![0, 1], vec![]));
        assert_eq!(first.split(&[1, 2], begun + METADATA_PROPAGATION), (vec![2], vec![1]));
        assert_eq!(
            first.split(&[2, 3], begun + 2 * METADATA_PROPAGATION),
            (vec![], vec![2, 3])
        );
        assert_eq!(FirstRecord::default().split(&[0], begun), (vec![], vec![0]));
    }
}
