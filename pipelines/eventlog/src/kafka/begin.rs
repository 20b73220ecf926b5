//! Where partitions begin.
//!
//! Invariant: it is said explicitly; librdkafka never chooses (`auto.offset.reset=error`).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rdkafka::error::KafkaResult;
use rdkafka::{Offset, TopicPartitionList};

use super::client::native;
use crate::Bounds;

/// A partition and the offset at which it begins; `None` for the first record.
pub(super) type Begin = (u32, Option<u64>);

/// Partitions with the offsets at which they begin.
pub(super) fn list(name: &str, begins: &[Begin]) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::with_capacity(begins.len());
    for (partition, begin) in begins {
        let offset = match begin {
            Some(offset) => Offset::Offset(i64::try_from(*offset).unwrap_or(i64::MAX)),
            None => Offset::Beginning,
        };
        list.add_partition_offset(name, native(*partition), offset)?;
    }
    Ok(list)
}

/// The partitions of a list.
pub(super) fn numbers(list: &TopicPartitionList) -> Vec<u32> {
    let partitions = list.elements();
    partitions
        .iter()
        .filter_map(|at| u32::try_from(at.partition()).ok())
        .collect()
}

/// How long another member of the group may not have learned that a topic was made anew: clients look every half minute.
const LEARNING: Duration = Duration::from_mins(1);

/// The partitions of a topic that was made anew which are still to begin at their first record, whatever is committed: that
/// may be of the topic before.
#[derive(Debug, Default)]
pub(super) struct First {
    partitions: BTreeSet<u32>,
    /// When nothing of the topic before is committed any more.
    until: Option<Instant>,
}

impl First {
    /// All of so many partitions.
    pub(super) fn of(partitions: u32) -> Self {
        Self {
            partitions: (0..partitions).collect(),
            until: None,
        }
    }

    /// Those of `given` that begin at their first record now, and the others.
    pub(super) fn split(&mut self, given: &[u32], now: Instant) -> (Vec<u32>, Vec<u32>) {
        if now > *self.until.get_or_insert(now + LEARNING) {
            self.partitions.clear();
        }
        given.iter().partition(|at| self.partitions.remove(at))
    }
}

/// How partitions are given anew to a consumer that has lost its way in some of them.
pub(super) struct Again {
    /// Those whose position is not kept.
    pub(super) out: Vec<u32>,
    /// Where every one of them begins.
    pub(super) begins: Vec<Begin>,
}

/// Which positions are kept. Every partition begins again, those too whose position is kept by now: librdkafka does not say
/// which one it stopped reading, and a topic that was made anew may have grown past the position since.
pub(super) fn again(known: &[Begin], kept: &[Bounds]) -> Again {
    let is_out = |(at, position): &Begin| {
        let bounds = kept.get(*at as usize);
        position.is_some_and(|next| bounds.is_none_or(|kept| next < kept.first || next > kept.next))
    };
    let out: Vec<u32> = known.iter().filter(|begin| is_out(begin)).map(|(at, _)| *at).collect();
    let begin = |(at, position): &Begin| (*at, position.filter(|_| !out.contains(at)));
    Again {
        begins: known.iter().map(begin).collect(),
        out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_begins_again_and_what_is_not_kept_at_its_first_record() {
        let kept = [(0, 10), (5, 10), (0, 10), (0, 60), (0, 10)].map(|(first, next)| Bounds { first, next });
        // The fourth was past the end when librdkafka stopped reading it.
        let known = [(0, Some(66)), (1, Some(4)), (2, Some(10)), (3, Some(44)), (4, None)];
        let Again { out, begins } = again(&known, &kept);
        assert_eq!(out, [0, 1]);
        assert_eq!(begins, [(0, None), (1, None), (2, Some(10)), (3, Some(44)), (4, None)]);
    }

    #[test]
    fn a_partition_begins_once_at_its_first_record_and_only_soon_after_the_topic_was_made_anew() {
        let mut first = First::of(4);
        let begun = Instant::now();
        assert_eq!(first.split(&[0, 1], begun), (vec![0, 1], vec![]));
        assert_eq!(first.split(&[1, 2], begun + LEARNING), (vec![2], vec![1]));
        assert_eq!(first.split(&[2, 3], begun + 2 * LEARNING), (vec![], vec![2, 3]));
        assert_eq!(First::default().split(&[0], begun), (vec![], vec![0]));
    }
}
