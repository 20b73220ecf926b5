//! Sees that a subscription is fed: whether its positions are in the log, whether what is behind them comes, and whether
//! every partition is somebody's.
//!
//! Invariants:
//! - Only time in which the reader waits counts, and only what the brokers answered.
//! - The thread that polls never waits for an answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use super::client::{Client, Look};
use super::shares::Shares;
use crate::Bounds;

/// How many looks a partition may be behind without a record.
const LOOKS: u32 = 3;
/// The most that this grows by, where a new consumer does not help.
const GROWTH: u32 = 256;

/// The positions of the partitions that a reader has; `None` for the first record.
pub(super) type Positions = BTreeMap<u32, Option<u64>>;

/// Why a consumer is given up.
#[derive(Debug)]
pub(super) enum Lost {
    /// The topic is another one of the same name.
    Anew,
    /// The consumer does not get what the log has, or is where the log has nothing; how far the log goes.
    Track { kept: Vec<Bounds> },
    /// The group leaves partitions to nobody.
    Shares,
}

/// What was asked, and when.
#[derive(Debug)]
struct Asked {
    at: Duration,
    positions: Positions,
    answer: Receiver<Option<Look>>,
}

/// Asks how far the log goes, every now and then.
#[derive(Debug)]
pub(super) struct Watchdog {
    client: Arc<Client>,
    name: String,
    /// `None` for a tail.
    group: Option<String>,
    partitions: u32,
    every: Duration,
    /// How long the reader has waited in all.
    waited: Duration,
    looked: Duration,
    asked: Option<Asked>,
    judge: Judge,
    sharing: Sharing,
}

impl Watchdog {
    /// Of a consumer of the topic `name`, in `group`, which both are as the cluster calls them.
    pub(super) fn new(
        client: Arc<Client>,
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
            looked: Duration::ZERO,
            asked: None,
            judge: Judge {
                patience: LOOKS * every,
                growth: 1,
                behind: BTreeMap::new(),
            },
            sharing: Sharing {
                patience: every,
                growth: 1,
                shares: None,
            },
        }
    }

    /// Takes note that the reader has waited for so long, and is there now.
    pub(super) fn turn(&mut self, waited: Duration, now: impl FnOnce() -> Positions) -> Option<Lost> {
        self.waited += waited;
        let Some(asked) = &self.asked else {
            if self.waited >= self.looked + self.every {
                self.looked = self.waited;
                self.ask(now());
            }
            return None;
        };
        let answer = match asked.answer.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => None,
        };
        let Asked { at, positions, .. } = self.asked.take()?;
        let Some(Look { kept, shares }) = answer else {
            self.judge.behind.clear();
            self.sharing.shares = None;
            return None;
        };
        if let Some(partitions) = self.sharing.look(at, shares, self.partitions) {
            let topic = &self.name;
            tracing::error!(
                topic,
                ?partitions,
                "there are partitions that nobody has; the group is to share anew"
            );
            return Some(Lost::Shares);
        }
        let (partitions, what) = match self.judge.look(at, &positions, &now(), &kept) {
            Found::Well => return None,
            Found::Beyond(partitions) => (
                partitions,
                "positions are beyond the end of the log, which was truncated or made anew",
            ),
            Found::Still(partitions) => (partitions, "there are records which do not come"),
        };
        tracing::error!(topic = self.name, ?partitions, ?positions, ?kept, "{what}");
        Some(Lost::Track { kept })
    }

    /// Begins anew with another consumer.
    pub(super) fn reset(&mut self) {
        self.looked = self.waited;
        self.asked = None;
        self.judge.behind.clear();
        self.sharing.shares = None;
    }

    /// Asks on a thread of its own: librdkafka blocks.
    fn ask(&mut self, positions: Positions) {
        if positions.is_empty() && self.group.is_none() {
            self.judge.behind.clear();
            return;
        }
        let (tell, answer) = sync_channel(1);
        let (client, name, group) = (Arc::clone(&self.client), self.name.clone(), self.group.clone());
        let asking = move || drop(tell.send(client.look(&name, group.as_deref())));
        let thread = std::thread::Builder::new().name("eventlog-watch".to_owned());
        match thread.spawn(asking) {
            Ok(_thread) => {
                self.asked = Some(Asked {
                    at: self.waited,
                    positions,
                    answer,
                });
            }
            Err(error) => tracing::warn!(%error, "the end of the log cannot be asked for"),
        }
    }
}

/// What a look found.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Well,
    /// These partitions end before their positions.
    Beyond(Vec<u32>),
    /// These have records that do not come.
    Still(Vec<u32>),
}

#[derive(Debug)]
struct Judge {
    patience: Duration,
    /// What the patience is multiplied by: where a new consumer did not help, the next one does not soon.
    growth: u32,
    /// The partitions that are behind: where, and since when.
    behind: BTreeMap<u32, (Option<u64>, Duration)>,
}

impl Judge {
    /// `before` are the positions when it was asked at `at`, `now` those of the answer `kept`.
    fn look(&mut self, at: Duration, before: &Positions, now: &Positions, kept: &[Bounds]) -> Found {
        let same = |partition: &u32, position: &Option<u64>| now.get(partition) == Some(position);
        let mut beyond = Vec::new();
        let mut behind = BTreeMap::new();
        for (partition, position) in before.iter().filter(|(partition, position)| same(partition, position)) {
            let Some(kept) = kept.get(*partition as usize) else {
                continue;
            };
            let next = position.unwrap_or(kept.first);
            if next > kept.next {
                beyond.push(*partition);
            } else if next < kept.next {
                let known = self.behind.get(partition).filter(|(since, _)| since == position);
                behind.insert(*partition, known.copied().unwrap_or((*position, at)));
            }
        }
        self.behind = behind;
        if !beyond.is_empty() {
            return Found::Beyond(beyond);
        }
        // Why not without partitions: what it had may be behind when it has it again.
        if self.behind.is_empty() && !before.is_empty() {
            self.growth = 1;
        }
        let patience = self.growth * self.patience;
        let is_still = |since: Duration| at.saturating_sub(since) >= patience;
        let still: Vec<u32> = self
            .behind
            .iter()
            .filter(|(_, (_, since))| is_still(*since))
            .map(|(partition, _)| *partition)
            .collect();
        if still.is_empty() {
            return Found::Well;
        }
        self.growth = (2 * self.growth).min(GROWTH);
        Found::Still(still)
    }
}

/// Whether the group leaves partitions to nobody, other than while it moves them.
#[derive(Debug)]
struct Sharing {
    patience: Duration,
    /// What the patience is multiplied by: where sharing anew did not help, the next time is not soon.
    growth: u32,
    /// Shares that leave some to nobody, and since when they are so.
    shares: Option<(Shares, Duration)>,
}

impl Sharing {
    /// The partitions, of so many, that have been nobody's for long, as the shares are at `at`; `None` for these while they
    /// are not known.
    fn look(&mut self, at: Duration, shares: Option<Shares>, partitions: u32) -> Option<Vec<u32>> {
        let before = self.shares.take();
        let shares = shares?;
        let nobodys = shares.nobodys(partitions);
        if nobodys.is_empty() {
            self.growth = 1;
            return None;
        }
        let since = before
            .filter(|(before, _)| *before == shares)
            .map_or(at, |(_, since)| since);
        if at.saturating_sub(since) < self.growth * self.patience {
            self.shares = Some((shares, since));
            return None;
        }
        self.growth = (2 * self.growth).min(GROWTH);
        Some(nobodys)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    fn judge() -> Judge {
        Judge {
            patience: LOOKS * EVERY,
            growth: 1,
            behind: BTreeMap::new(),
        }
    }

    /// One look at one partition that ends at 10, `number` looks after the first.
    fn look(judge: &mut Judge, number: u32, position: Option<u64>) -> Found {
        let positions = Positions::from([(0, position)]);
        let kept = [Bounds { first: 4, next: 10 }];
        judge.look(number * EVERY, &positions, &positions, &kept)
    }

    #[test]
    fn a_position_beyond_the_end_is_found_at_once() {
        let mut judge = judge();
        assert_eq!(look(&mut judge, 0, Some(10)), Found::Well);
        assert_eq!(look(&mut judge, 1, Some(11)), Found::Beyond(vec![0]));
    }

    #[test]
    fn records_that_do_not_come_are_found_after_a_while() {
        for position in [Some(9), Some(2), None] {
            let mut judge = judge();
            let found: Vec<bool> = (0..4)
                .map(|at| look(&mut judge, at, position) == Found::Still(vec![0]))
                .collect();
            assert_eq!(found, [false, false, false, true], "{position:?}");
        }
    }

    #[test]
    fn one_that_moves_or_has_everything_is_not_still() {
        let mut judge = judge();
        for at in 0..6 {
            assert_eq!(look(&mut judge, at, Some(u64::from(at))), Found::Well);
        }
        let (before, now) = (Positions::from([(0, Some(5))]), Positions::from([(0, Some(6))]));
        let kept = [Bounds { first: 0, next: 10 }];
        for at in 6..12 {
            assert_eq!(
                judge.look(at * EVERY, &before, &now, &kept),
                Found::Well,
                "it moved meanwhile"
            );
            assert_eq!(
                judge.look(at * EVERY, &before, &Positions::new(), &kept),
                Found::Well,
                "it is another's"
            );
        }
        for at in 12..18 {
            assert_eq!(look(&mut judge, at, Some(10)), Found::Well);
        }
    }

    #[test]
    fn where_a_new_consumer_does_not_help_the_next_comes_later() {
        let still = |judge: &mut Judge, looks: Range<u32>| -> Vec<u32> {
            looks.filter(|at| look(judge, *at, Some(9)) != Found::Well).collect()
        };
        let mut judge = judge();
        assert_eq!(still(&mut judge, 0..4), [3]);
        // As with another consumer.
        judge.behind.clear();
        assert_eq!(still(&mut judge, 4..11), [10]);
        // Nor sooner because it has no partitions for a while.
        judge.behind.clear();
        judge.look(11 * EVERY, &Positions::new(), &Positions::new(), &[]);
        assert_eq!(still(&mut judge, 12..25), [24]);
    }

    #[test]
    fn partitions_are_nobodys_when_two_looks_say_so_and_ever_later_where_that_does_not_end() {
        let mut sharing = Sharing {
            patience: EVERY,
            growth: 1,
            shares: None,
        };
        // A member without partitions, and one with all.
        let [none, all] = [&[][..], &[0, 1]].map(|given| Some(Shares::from([(given, &[][..])])));
        let mut look = |number: u32, shares: &Option<Shares>| sharing.look(number * EVERY, shares.clone(), 2).is_some();
        let found: Vec<bool> = (0..5).map(|at| look(at, &none)).collect();
        assert_eq!(found, [false, true, false, false, true]);
        assert!(!look(5, &None), "it shares");
        let found: Vec<bool> = (6..11).map(|at| look(at, &none)).collect();
        assert_eq!(found, [false, false, false, false, true]);
        assert!(!look(11, &all));
        assert_eq!([look(12, &none), look(13, &none)], [false, true]);
    }
}
