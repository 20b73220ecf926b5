//! The submissions that already have a terminal outcome, and the outcomes that no table knows.
//!
//! Invariants:
//! - Within its window, a submission of a generation that was decided is never judged again. The window is bounded:
//!   outside it the table's guard still keeps a merged submission from merging twice.
//! - An outcome that was published a moment ago is not published again: copies that waited together with it in the log
//!   cost nothing.
//! - For recently active datasets the cache holds the highest published version, and thereby those before it, because
//!   versions are published in order.
//! - Within the window a rejection can be published again with the same code and message, and with the same verdicts
//!   where they are among the latest few. The table has the outcomes of merges.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use catalog::{KnownHead, Root};
use parking_lot::{Mutex, MutexGuard};
use types::{ContributionId, DatasetId, Timestamp, Version};

use crate::message::{Outcome, Resolution};

/// Number of decided submissions that are remembered.
const WINDOW: usize = 65_536;
/// Bytes of verdicts that are remembered, of all submissions together.
const VERDICT_BYTES: usize = 8 << 20;

/// Number of datasets whose latest version is remembered at least.
const DATASETS: usize = 32_768;

/// Time for which an outcome is taken to be on its way to the marketplace.
const RECENT: Duration = Duration::from_secs(10);

/// A generation of a contribution.
type SubmissionGeneration = (ContributionId, u32);

/// Remembers the latest decided submissions of a worker.
#[derive(Debug, Default)]
pub(crate) struct OutcomeCache {
    window: Mutex<OutcomeWindow>,
    versions: Mutex<LatestVersions>,
}

#[derive(Debug, Default)]
struct OutcomeWindow {
    known: HashMap<SubmissionGeneration, CachedOutcome>,
    order: VecDeque<SubmissionGeneration>,
    /// Submissions with verdicts and the bytes of these, the oldest first.
    with_verdicts: VecDeque<(SubmissionGeneration, usize)>,
    bytes: usize,
}

#[derive(Debug)]
struct CachedOutcome {
    /// Time of the latest publication.
    at: Timestamp,
    /// The outcome, if it was a rejection.
    rejection: Option<Box<Outcome>>,
}

/// The latest versions: of at most twice [`DATASETS`].
#[derive(Debug, Default)]
struct LatestVersions {
    young: HashMap<DatasetId, LatestVersion>,
    old: HashMap<DatasetId, LatestVersion>,
}

/// The latest version in the outcomes, with its content root if the outcome had one.
#[derive(Clone, Copy, Debug, Default)]
struct LatestVersion {
    version: Version,
    root: Option<Root>,
}

impl OutcomeCache {
    /// Remembers that a submission is decided, and that the log has its outcome `now`. An outcome that is not terminal
    /// decides nothing.
    pub(crate) fn insert(&self, outcome: Outcome, now: Timestamp) {
        let decided = (outcome.contribution, outcome.generation);
        let rejection = match outcome.resolution {
            Resolution::Waiting { .. } => return,
            Resolution::Merged { version, ref root, .. } => {
                self.raise(outcome.dataset, version, root.parse().ok());
                None
            }
            Resolution::Rejected { .. } => Some(Box::new(outcome)),
        };
        let mut window = self.locked();
        if let Some(cached) = window.known.get_mut(&decided) {
            cached.at = now;
            // A batch that is merged after all stays merged: a stalled worker may publish a rejection late.
            cached.rejection = cached.rejection.take().filter(|_| rejection.is_some());
            return;
        }
        let bytes = rejection.as_ref().map_or(0, |outcome| weight(outcome));
        window.known.insert(decided, CachedOutcome { at: now, rejection });
        window.order.push_back(decided);
        if bytes > 0 {
            window.with_verdicts.push_back((decided, bytes));
            window.bytes += bytes;
        }
        window.shrink();
    }

    /// Remembers that the outcomes of a dataset are published up to this version.
    fn raise(&self, dataset: DatasetId, version: Version, root: Option<Root>) {
        let mut versions = self.versions();
        let before = versions.of(dataset);
        // An outcome that is published again must not lower the latest version; only an accepted loss
        // does.
        let latest = if version < before.version {
            before
        } else {
            LatestVersion { version, root }
        };
        versions.insert(dataset, latest);
    }

    /// Forgets the versions of a dataset after this one: their loss was accepted.
    pub(crate) fn lower(&self, dataset: DatasetId, head: KnownHead) {
        let latest = LatestVersion {
            version: head.version,
            root: Some(head.root),
        };
        self.versions().insert(dataset, latest);
    }

    /// Returns true if this generation of the contribution is known to be decided.
    pub(crate) fn contains(&self, contribution: ContributionId, generation: u32) -> bool {
        self.locked().known.contains_key(&(contribution, generation))
    }

    /// Returns true if its outcome was published within the last seconds.
    pub(crate) fn is_recent(&self, contribution: ContributionId, generation: u32, now: Timestamp) -> bool {
        let window = self.locked();
        let cached = window.known.get(&(contribution, generation));
        cached.is_some_and(|cached| now.since(cached.at) < RECENT)
    }

    /// Returns its rejection; `None` where it was merged or is not known.
    pub(crate) fn rejection(&self, contribution: ContributionId, generation: u32) -> Option<Outcome> {
        let window = self.locked();
        let cached = window.known.get(&(contribution, generation))?;
        cached.rejection.as_deref().cloned()
    }

    /// Returns the latest version of a dataset that is known to be published; version 0 where none is.
    pub(crate) fn published(&self, dataset: DatasetId) -> Version {
        self.versions().of(dataset).version
    }

    /// Returns the same with its content root; none for version 0, and where the outcome had no root.
    pub(crate) fn head(&self, dataset: DatasetId) -> Option<KnownHead> {
        let LatestVersion { version, root } = self.versions().of(dataset);
        let root = root.filter(|_| version > Version::EMPTY)?;
        Some(KnownHead { version, root })
    }

    fn versions(&self) -> MutexGuard<'_, LatestVersions> {
        self.versions.lock()
    }

    fn locked(&self) -> MutexGuard<'_, OutcomeWindow> {
        self.window.lock()
    }
}

impl LatestVersions {
    fn of(&self, dataset: DatasetId) -> LatestVersion {
        let known = self.young.get(&dataset).or_else(|| self.old.get(&dataset));
        known.copied().unwrap_or_default()
    }

    fn insert(&mut self, dataset: DatasetId, latest: LatestVersion) {
        self.young.insert(dataset, latest);
        // Two generations bound the memory without a list of uses: a dataset that is used is copied to
        // the young one, and what stays in the old one is forgotten at the next turn.
        if self.young.len() >= DATASETS {
            self.old = std::mem::take(&mut self.young);
        }
    }
}

impl OutcomeWindow {
    fn shrink(&mut self) {
        while self.bytes > VERDICT_BYTES
            && let Some((decided, bytes)) = self.with_verdicts.pop_front()
        {
            self.bytes -= bytes;
            let cached = self.known.get_mut(&decided);
            if let Some(outcome) = cached.and_then(|cached| cached.rejection.as_mut()) {
                // Code and message stay: they are what a second publication must repeat.
                outcome.verdicts = Vec::new();
            }
        }
        if self.order.len() > WINDOW
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
            // What has verdicts is in the same order.
            if self
                .with_verdicts
                .front()
                .is_some_and(|(decided, _)| *decided == oldest)
                && let Some((_, bytes)) = self.with_verdicts.pop_front()
            {
                self.bytes -= bytes;
            }
        }
    }
}

/// The bytes of its verdicts, about; 0 where there are none.
fn weight(outcome: &Outcome) -> usize {
    if outcome.verdicts.is_empty() {
        return 0;
    }
    // Verdicts that cannot be encoded cannot be published either, so they are dropped first.
    serde_json::to_vec(&outcome.verdicts).map_or(VERDICT_BYTES + 1, |json| json.len())
}

#[cfg(test)]
mod tests {
    use operators::{GateName, Reason, RowVerdict, Verdict};
    use types::{DatasetId, Timestamp, Version};

    use super::*;
    use crate::message::BASE_FORMAT;

    fn rejected(words: usize) -> Outcome {
        let at = Timestamp::from_micros(1);
        let reason = Reason {
            gate: GateName::CONTRACT,
            code: "type".to_owned(),
            path: "/a".to_owned(),
            expected: "a number".to_owned(),
            actual: "x".repeat(words),
        };
        let verdict = RowVerdict::of_record(0, Verdict::Refuse { reasons: vec![reason] });
        Outcome {
            format: BASE_FORMAT,
            contribution: ContributionId::new(at),
            generation: 0,
            dataset: DatasetId::new(at),
            at,
            resolution: Resolution::Rejected {
                code: "refused".to_owned(),
                message: "one record was refused".to_owned(),
            },
            rows: 1,
            verdicts: vec![verdict],
            tallies: Vec::new(),
            traceparent: None,
        }
    }

    #[test]
    fn a_rejection_is_told_again_as_it_was_and_the_oldest_with_fewer_words() {
        let cache = OutcomeCache::default();
        let outcomes: Vec<_> = (0..3).map(|_| rejected(VERDICT_BYTES / 3)).collect();
        for outcome in &outcomes {
            cache.insert(outcome.clone(), outcome.at);
        }
        let told = |outcome: &Outcome| cache.rejection(outcome.contribution, 0).unwrap();
        assert_eq!(told(&outcomes[2]), outcomes[2]);
        let short = told(&outcomes[0]);
        assert_eq!(short.resolution, outcomes[0].resolution);
        assert!(short.verdicts.is_empty());
        assert!(cache.contains(outcomes[0].contribution, 0));
        assert!(
            !cache.contains(outcomes[0].contribution, 1),
            "a replay is another matter"
        );
    }

    #[test]
    fn an_outcome_is_recent_for_a_while_each_time_it_is_told() {
        let cache = OutcomeCache::default();
        let outcome = rejected(1);
        let id = outcome.contribution;
        let mut now = outcome.at;
        assert!(!cache.is_recent(id, 0, now));
        for _ in 0..2 {
            cache.insert(outcome.clone(), now);
            now = now.plus(RECENT / 2);
            assert!(cache.is_recent(id, 0, now));
            now = now.plus(RECENT / 2);
            assert!(!cache.is_recent(id, 0, now));
        }
    }

    fn merged(of: &Outcome, version: u64) -> Outcome {
        Outcome {
            resolution: Resolution::Merged {
                version: Version(version),
                accepted: 1,
                record_count: 1,
                root: String::new(),
            },
            verdicts: Vec::new(),
            ..of.clone()
        }
    }

    #[test]
    fn what_is_merged_after_all_is_not_rejected_any_more() {
        let cache = OutcomeCache::default();
        let outcome = rejected(1);
        let told = [outcome.clone(), merged(&outcome, 1), outcome.clone()];
        for outcome in told {
            let at = outcome.at;
            cache.insert(outcome, at);
        }
        assert_eq!(cache.rejection(outcome.contribution, 0), None);
        assert!(cache.contains(outcome.contribution, 0));
        assert_eq!(cache.published(outcome.dataset), Version(1));
    }

    #[test]
    fn the_latest_version_is_known_of_the_datasets_told_of_lately() {
        let cache = OutcomeCache::default();
        let at = Timestamp::from_micros(1);
        let (often, once) = (DatasetId::new(at), DatasetId::new(at));
        assert_eq!(cache.published(once), Version::EMPTY);
        cache.raise(once, Version(8), None);
        cache.raise(once, Version(7), None);
        for version in 1..=2 * DATASETS as u64 {
            cache.raise(often, Version(version), None);
        }
        assert_eq!(cache.published(once), Version(8), "one dataset is not many");
        for _ in 0..2 * DATASETS {
            cache.raise(DatasetId::new(at), Version(1), None);
            cache.raise(often, Version(1), None);
        }
        assert_eq!(cache.published(often), Version(2 * DATASETS as u64));
        assert_eq!(cache.published(once), Version::EMPTY);
        let versions = cache.versions.lock();
        assert!(versions.young.len() + versions.old.len() <= 2 * DATASETS);
    }

    #[test]
    fn the_window_is_bounded() {
        let cache = OutcomeCache::default();
        let first = rejected(10);
        cache.insert(first.clone(), first.at);
        for _ in 0..WINDOW {
            cache.insert(rejected(10), first.at);
        }
        assert!(!cache.contains(first.contribution, 0));
        let window = cache.locked();
        assert_eq!((window.known.len(), window.order.len()), (WINDOW, WINDOW));
        assert_eq!(
            window.bytes,
            window.with_verdicts.iter().map(|(_, bytes)| bytes).sum::<usize>()
        );
        assert!(window.bytes <= VERDICT_BYTES);
    }
}
