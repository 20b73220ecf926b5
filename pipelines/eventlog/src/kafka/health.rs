//! The health check of a subscription: positions within the log, arrival of records, no unassigned partitions.
//!
//! Invariants:
//! - Only the time in which the reader waits counts, and only answers of the brokers.
//! - The polling thread never waits for an answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use super::assignment::GroupAssignment;
use super::client::{KafkaClient, Probe};
use crate::Bounds;

/// The number of checks in a row that a partition may be behind without receiving a record.
const STALL_CHECKS: u32 = 3;
/// The largest multiple of the limits, reached when new consumers do not help.
const MAX_BACKOFF: u32 = 256;

/// The positions of a reader's partitions; `None` stands for the first record.
pub(super) type Positions = BTreeMap<u32, Option<u64>>;

/// A reason to replace a consumer.
#[derive(Debug)]
pub(super) enum Anomaly {
    /// The topic was deleted and created again.
    TopicRecreated,
    /// The consumer does not receive records that exist, or its position is past the end; with the bounds of the topic.
    Stalled { bounds: Vec<Bounds> },
    /// The group leaves partitions unassigned.
    Unassigned,
}

/// A probe in progress: its time, the positions at that time, and the answer to come.
#[derive(Debug)]
struct PendingProbe {
    at: Duration,
    positions: Positions,
    answer: Receiver<Option<Probe>>,
}

/// Compares a consumer with the brokers at an interval.
#[derive(Debug)]
pub(super) struct HealthCheck {
    client: Arc<KafkaClient>,
    name: String,
    /// `None` for a tail.
    group: Option<String>,
    partitions: u32,
    every: Duration,
    /// The total time that the reader has waited.
    waited: Duration,
    last_check: Duration,
    pending: Option<PendingProbe>,
    stalls: StallDetector,
    unassigned: UnassignedDetector,
}

impl HealthCheck {
    /// Creates the check of a consumer of the topic `name` in `group`; both are names in the cluster.
    pub(super) fn new(
        client: Arc<KafkaClient>,
        name: String,
        group: Option<String>,
        partitions: u32,
        every: Duration,
    ) -> Self {
        Self {
            client,
            name,
            group,
            partitions,
            every,
            waited: Duration::ZERO,
            last_check: Duration::ZERO,
            pending: None,
            stalls: StallDetector {
                limit: STALL_CHECKS * every,
                backoff: 1,
                behind: BTreeMap::new(),
            },
            unassigned: UnassignedDetector {
                limit: every,
                backoff: 1,
                assignment: None,
            },
        }
    }

    /// Adds `waited` to the waiting time of the reader, sends a probe when one is due, and evaluates its answer. `now`
    /// returns the current positions.
    pub(super) fn tick(&mut self, waited: Duration, now: impl FnOnce() -> Positions) -> Option<Anomaly> {
        // Time in which the reader works does not count: records may legitimately wait then.
        self.waited += waited;
        let Some(pending) = &self.pending else {
            if self.waited >= self.last_check + self.every {
                self.last_check = self.waited;
                self.send_probe(now());
            }
            return None;
        };
        let answer = match pending.answer.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => None,
        };
        let PendingProbe { at, positions, .. } = self.pending.take()?;
        // Without an answer nothing is known, so stalls are measured anew.
        let Some(Probe { bounds, assignment }) = answer else {
            self.stalls.behind.clear();
            self.unassigned.assignment = None;
            return None;
        };
        if let Some(partitions) = self.unassigned.check(at, assignment, self.partitions) {
            let topic = &self.name;
            tracing::error!(
                topic,
                ?partitions,
                "partitions are assigned to no member; restarting the consumer to make the group rebalance"
            );
            return Some(Anomaly::Unassigned);
        }
        let (partitions, what) = match self.stalls.check(at, &positions, &now(), &bounds) {
            ReadProgress::Healthy => return None,
            ReadProgress::BeyondEnd(partitions) => (
                partitions,
                "positions are past the end of the log, which was truncated or recreated; restarting the consumer",
            ),
            ReadProgress::Stalled(partitions) => {
                (partitions, "records in the log do not arrive; restarting the consumer")
            }
        };
        tracing::error!(topic = self.name, ?partitions, ?positions, ?bounds, "{what}");
        Some(Anomaly::Stalled { bounds })
    }

    /// Starts over with another consumer.
    pub(super) fn reset(&mut self) {
        self.last_check = self.waited;
        self.pending = None;
        self.stalls.behind.clear();
        self.unassigned.assignment = None;
    }

    /// Sends a probe from a thread of its own, since librdkafka blocks.
    fn send_probe(&mut self, positions: Positions) {
        if positions.is_empty() && self.group.is_none() {
            self.stalls.behind.clear();
            return;
        }
        let (reply, answer) = sync_channel(1);
        let (client, name, group) = (Arc::clone(&self.client), self.name.clone(), self.group.clone());
        let probing = move || drop(reply.send(client.probe(&name, group.as_deref())));
        let thread = std::thread::Builder::new().name("eventlog-watch".to_owned());
        match thread.spawn(probing) {
            Ok(_thread) => {
                self.pending = Some(PendingProbe {
                    at: self.waited,
                    positions,
                    answer,
                });
            }
            Err(error) => tracing::warn!(%error, "cannot start a thread to check the end of the log"),
        }
    }
}

/// The result of a comparison of positions with bounds.
#[derive(Debug, PartialEq, Eq)]
enum ReadProgress {
    Healthy,
    /// The positions of these partitions are past their end.
    BeyondEnd(Vec<u32>),
    /// These partitions have records that do not arrive.
    Stalled(Vec<u32>),
}

#[derive(Debug)]
struct StallDetector {
    limit: Duration,
    /// The multiple of `limit`. It doubles when a new consumer did not help, so restarts become rarer.
    backoff: u32,
    /// Partitions that are behind: their position, and the time since when.
    behind: BTreeMap<u32, (Option<u64>, Duration)>,
}

impl StallDetector {
    /// Compares positions with bounds. `before` are the positions when the probe was sent at `at`, `now` those when its
    /// answer came.
    fn check(&mut self, at: Duration, before: &Positions, now: &Positions, bounds: &[Bounds]) -> ReadProgress {
        let same = |partition: &u32, position: &Option<u64>| now.get(partition) == Some(position);
        let mut beyond = Vec::new();
        let mut behind = BTreeMap::new();
        for (partition, position) in before.iter().filter(|(partition, position)| same(partition, position)) {
            let Some(bounds) = bounds.get(*partition as usize) else {
                continue;
            };
            let next = position.unwrap_or(bounds.first);
            // The log never shrinks by itself, so one observation is enough.
            if next > bounds.next {
                beyond.push(*partition);
            } else if next < bounds.next {
                let known = self.behind.get(partition).filter(|(since, _)| since == position);
                behind.insert(*partition, known.copied().unwrap_or((*position, at)));
            }
        }
        self.behind = behind;
        if !beyond.is_empty() {
            return ReadProgress::BeyondEnd(beyond);
        }
        // A consumer without partitions proves nothing: the partitions it had may stall again
        // when it gets them back.
        if self.behind.is_empty() && !before.is_empty() {
            self.backoff = 1;
        }
        let limit = self.backoff * self.limit;
        let is_stalled = |since: Duration| at.saturating_sub(since) >= limit;
        let stalled: Vec<u32> = self
            .behind
            .iter()
            .filter(|(_, (_, since))| is_stalled(*since))
            .map(|(partition, _)| *partition)
            .collect();
        if stalled.is_empty() {
            return ReadProgress::Healthy;
        }
        self.backoff = (2 * self.backoff).min(MAX_BACKOFF);
        ReadProgress::Stalled(stalled)
    }
}

/// Detects partitions that stay unassigned after a rebalance.
#[derive(Debug)]
struct UnassignedDetector {
    limit: Duration,
    /// The multiple of `limit`. It doubles when a rebalance did not help.
    backoff: u32,
    /// The last assignment with unassigned partitions, and the time since when it is unchanged.
    assignment: Option<(GroupAssignment, Duration)>,
}

impl UnassignedDetector {
    /// Returns the partitions, of `partitions` in all, that have been unassigned for longer than the limit at time
    /// `at`. Returns `None` if there are none, and while the assignment is not known.
    fn check(&mut self, at: Duration, assignment: Option<GroupAssignment>, partitions: u32) -> Option<Vec<u32>> {
        let before = self.assignment.take();
        let assignment = assignment?;
        let unassigned = assignment.unassigned(partitions);
        if unassigned.is_empty() {
            self.backoff = 1;
            return None;
        }
        let since = before
            .filter(|(before, _)| *before == assignment)
            .map_or(at, |(_, since)| since);
        if at.saturating_sub(since) < self.backoff * self.limit {
            self.assignment = Some((assignment, since));
            return None;
        }
        self.backoff = (2 * self.backoff).min(MAX_BACKOFF);
        Some(unassigned)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    fn stalls() -> StallDetector {
        StallDetector {
            limit: STALL_CHECKS * EVERY,
            backoff: 1,
            behind: BTreeMap::new(),
        }
    }

    /// One look at one partition that ends at 10, `number` looks after the first.
    fn check(stalls: &mut StallDetector, number: u32, position: Option<u64>) -> ReadProgress {
        let positions = Positions::from([(0, position)]);
        let bounds = [Bounds { first: 4, next: 10 }];
        stalls.check(number * EVERY, &positions, &positions, &bounds)
    }

    #[test]
    fn a_position_beyond_the_end_is_found_at_once() {
        let mut stalls = stalls();
        assert_eq!(check(&mut stalls, 0, Some(10)), ReadProgress::Healthy);
        assert_eq!(check(&mut stalls, 1, Some(11)), ReadProgress::BeyondEnd(vec![0]));
    }

    #[test]
    fn records_that_do_not_come_are_found_after_a_while() {
        for position in [Some(9), Some(2), None] {
            let mut stalls = stalls();
            let found: Vec<bool> = (0..4)
                .map(|at| check(&mut stalls, at, position) == ReadProgress::Stalled(vec![0]))
                .collect();
            assert_eq!(found, [false, false, false, true], "{position:?}");
        }
    }

    #[test]
    fn one_that_moves_or_has_everything_is_not_still() {
        let mut stalls = stalls();
        for at in 0..6 {
            assert_eq!(check(&mut stalls, at, Some(u64::from(at))), ReadProgress::Healthy);
        }
        let (before, now) = (Positions::from([(0, Some(5))]), Positions::from([(0, Some(6))]));
        let bounds = [Bounds { first: 0, next: 10 }];
        for at in 6..12 {
            assert_eq!(
                stalls.check(at * EVERY, &before, &now, &bounds),
                ReadProgress::Healthy,
                "it moved meanwhile"
            );
            assert_eq!(
                stalls.check(at * EVERY, &before, &Positions::new(), &bounds),
                ReadProgress::Healthy,
                "it is another's"
            );
        }
        for at in 12..18 {
            assert_eq!(check(&mut stalls, at, Some(10)), ReadProgress::Healthy);
        }
    }

    #[test]
    fn where_a_new_consumer_does_not_help_the_next_comes_later() {
        let stalled = |stalls: &mut StallDetector, looks: Range<u32>| -> Vec<u32> {
            looks
                .filter(|at| check(stalls, *at, Some(9)) != ReadProgress::Healthy)
                .collect()
        };
        let mut stalls = stalls();
        assert_eq!(stalled(&mut stalls, 0..4), [3]);
        // As with another consumer.
        stalls.behind.clear();
        assert_eq!(stalled(&mut stalls, 4..11), [10]);
        // Nor sooner because it has no partitions for a while.
        stalls.behind.clear();
        stalls.check(11 * EVERY, &Positions::new(), &Positions::new(), &[]);
        assert_eq!(stalled(&mut stalls, 12..25), [24]);
    }

    #[test]
    fn partitions_are_revoked_after_two_failed_checks() {
        let mut unassigned = UnassignedDetector {
            limit: EVERY,
            backoff: 1,
            assignment: None,
        };
        // A member without partitions, and one with all.
        let [none, all] = [&[][..], &[0, 1]].map(|given| Some(GroupAssignment::from([(given, &[][..])])));
        let mut check = |number: u32, assignment: &Option<GroupAssignment>| {
            unassigned.check(number * EVERY, assignment.clone(), 2).is_some()
        };
        let found: Vec<bool> = (0..5).map(|at| check(at, &none)).collect();
        assert_eq!(found, [false, true, false, false, true]);
        assert!(!check(5, &None), "the group rebalances");
        let found: Vec<bool> = (6..11).map(|at| check(at, &none)).collect();
        assert_eq!(found, [false, false, false, false, true]);
        assert!(!check(11, &all));
        assert_eq!([check(12, &none), check(13, &none)], [false, true]);
    }
}
