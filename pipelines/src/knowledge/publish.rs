//! The one line that publishes units.
//!
//! Invariant: what is committed was compared with every version of the table at the base of its commit.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, CommitOutcome, PreparedVersion, Table, platform};
use messages::{UnitAddress, UnitOutcome, UnitSubmission};
use operators::knowledge::{Embedder, Likeness, UnitPrints};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use types::unit::{ReviewEntry, SimilarUnit, UnitResolution};
use types::vocabulary::{ReviewStep, StepOutcome};
use types::{Backoff, Batch, Classify as _, Clock, Contract, ContributionId, Retry, Timestamp, Version, fault, mutate};

use super::published::{Error, Published};
use super::review::{self, Reviewed, Verdict, described, entry};
use super::row::Candidate;
use crate::step;

/// The wait after a failure.
const BACKOFF: Backoff = Backoff {
    first: Duration::from_millis(100),
    most: Duration::from_secs(30),
};

/// The open table of published units and what is in it.
#[derive(Debug)]
pub(super) struct Publisher {
    table: Table,
    contract: Arc<Contract>,
    published: Arc<Published>,
    head: Version,
    embedder: Option<Arc<str>>,
    /// Time of the last look for prints that were made later.
    looked: Instant,
}

/// Interval at which prints of older versions are looked for, while some have no vectors.
const PRINTS_INTERVAL: Duration = Duration::from_secs(10);

/// A version that is to be a row.
struct PassedUnit {
    submission: UnitSubmission,
    entries: Vec<ReviewEntry>,
    candidate: Box<Candidate>,
}

impl Publisher {
    /// Opens the table and reads what is published.
    pub(super) async fn open(catalog: &Catalog, embedder: Option<&dyn Embedder>) -> Result<Self, Error> {
        let contract = platform::contract()?;
        let table = catalog.table(platform::KNOWLEDGE, &contract).await?;
        let published = Arc::new(Published::default());
        let id = embedder.map(Embedder::id);
        let head = published.extend(catalog, id, &contract, Version::EMPTY).await?;
        tracing::info!(
            units = published.units.read().len(),
            "read the published knowledge units"
        );
        Ok(Self {
            table,
            contract,
            published,
            head,
            embedder: id.map(Arc::from),
            looked: Instant::now(),
        })
    }

    /// Reads what was made later for older versions, if some lack vectors and the last look was a while ago.
    pub(super) async fn read_later_prints(&mut self, catalog: &Catalog) {
        let is_whole = self.published.units.read().count_without_vectors() == 0;
        if is_whole || self.embedder.is_none() || self.looked.elapsed() < PRINTS_INTERVAL {
            return;
        }
        self.looked = Instant::now();
        if let Err(error) = self.published.read_prints(catalog, self.embedder.as_deref()).await {
            // Reviews go on without them.
            tracing::warn!(%error, "the vectors of older units cannot be read, trying again later");
        }
    }

    /// Returns what is published.
    pub(super) const fn published(&self) -> &Arc<Published> {
        &self.published
    }

    /// Publishes what passed, in the order given, in one commit. Returns the outcome of every version, or `None` if the
    /// worker stops.
    pub(super) async fn publish(
        &mut self,
        reviewed: Vec<Reviewed>,
        catalog: &Catalog,
        clock: &dyn Clock,
        stop: &CancellationToken,
    ) -> Result<Option<Vec<UnitOutcome>>, Error> {
        let mut outcomes = Vec::with_capacity(reviewed.len());
        let mut passed = Vec::new();
        for Reviewed {
            submission,
            mut entries,
            verdict,
        } in reviewed
        {
            let resolution = match verdict {
                Verdict::Pass(candidate) => {
                    passed.push(PassedUnit {
                        submission,
                        entries,
                        candidate,
                    });
                    continue;
                }
                Verdict::Told(resolution) => {
                    let detail = "It was published before; the report of that review is lost.";
                    entries.push(published(detail, clock.now()));
                    resolution
                }
                Verdict::Panicked => {
                    outcomes.push(unprocessable(&submission.address(), clock.now()));
                    continue;
                }
                Verdict::Reject { code, message } => UnitResolution::Rejected { code, message },
                Verdict::Hold { reason, resumes_after } => UnitResolution::Waiting { reason, resumes_after },
            };
            outcomes.push(outcome(&submission, resolution, entries, clock.now()));
        }
        let mut failures = 0;
        while !passed.is_empty() {
            let at = clock.now();
            let (taken, refused) = self.check(passed, at);
            outcomes.extend(refused);
            passed = taken;
            if passed.is_empty() {
                break;
            }
            fault::point("publish.checked");
            match self.commit(&passed, catalog, at).await {
                Ok(true) => {
                    for PassedUnit {
                        submission,
                        mut entries,
                        candidate,
                    } in passed
                    {
                        let resolution = candidate.resolution(self.embedder.as_deref());
                        self.published.units.write().add(candidate.published(&submission));
                        self.published
                            .outcomes
                            .write()
                            .insert(submission.unit, resolution.clone());
                        entries.push(published("Compared again with all published units, and published.", at));
                        outcomes.push(outcome(&submission, resolution, entries, at));
                    }
                    fault::point("publish.indexed");
                    break;
                }
                Ok(false) => {}
                Err(error) if is_transient(&error) => {
                    tracing::warn!(%error, "publishing knowledge units failed, trying again");
                    if !pause(failures, stop).await {
                        return Ok(None);
                    }
                    failures += 1;
                    if matches!(error, Error::Unread(_)) {
                        // Only a second reading shows that the row was repaired.
                        self.head = Version::EMPTY;
                    }
                    if let Ok(table) = catalog.table(platform::KNOWLEDGE, &self.contract).await {
                        self.table = table;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Some(outcomes))
    }

    /// Reads what was published after the head that is known.
    async fn catch_up(&mut self, catalog: &Catalog) -> Result<(), Error> {
        let embedder = self.embedder.as_deref();
        self.head = self
            .published
            .extend(catalog, embedder, &self.contract, self.head)
            .await?;
        Ok(())
    }

    /// Compares each version with what is published and with those before it here. Returns those that are still new,
    /// and the outcomes of the others.
    fn check(&self, passed: Vec<PassedUnit>, at: Timestamp) -> (Vec<PassedUnit>, Vec<UnitOutcome>) {
        // A small index of this commit's own versions.
        let mut own = operators::knowledge::PublishedUnits::default();
        let (mut taken, mut refused) = (Vec::with_capacity(passed.len()), Vec::new());
        for one in passed {
            let unit = one.submission.unit;
            // It was published by a commit whose outcome was lost.
            let told = self.published.outcomes.read().get(&unit).cloned();
            mutate!(Bug::UnitTwice => let told = None);
            if let Some(told) = told {
                let mut entries = one.entries;
                entries.push(published("It was published by a commit whose answer was lost.", at));
                refused.push(outcome(&one.submission, told, entries, at));
                continue;
            }
            let found = self.copied(&one, &own);
            if let Some((code, detail, similar)) = found {
                let mut entries = one.entries;
                let mut refusal = entry(ReviewStep::Publish, StepOutcome::Refused, code, detail.clone(), at);
                refusal.similar = Some(similar);
                entries.push(refusal);
                let resolution = UnitResolution::Rejected {
                    code: code.to_owned(),
                    message: detail,
                };
                refused.push(outcome(&one.submission, resolution, entries, at));
                continue;
            }
            own.add(one.candidate.published(&one.submission));
            taken.push(one);
        }
        (taken, refused)
    }

    /// Returns the code, sentence and unit of what a version is a copy of.
    fn copied(
        &self,
        one: &PassedUnit,
        own: &operators::knowledge::PublishedUnits,
    ) -> Option<(&'static str, String, SimilarUnit)> {
        const MEANWHILE: &str = "It was published while yours was being judged.";
        let (chain, candidate) = (one.submission.chain, &one.candidate);
        let units = self.published.units.read();
        let copy = units.find_copy(chain, &candidate.print).copy;
        let copy = copy.or_else(|| own.find_copy(chain, &candidate.print).copy);
        if let Some(copy) = copy {
            let (code, detail, similar) = described(&copy);
            return Some((code, format!("{detail} {MEANWHILE}"), similar));
        }
        let near = units.nearest_since(chain, &candidate.print, &candidate.vectors, candidate.seen);
        let mut near = near
            .into_iter()
            .chain(own.nearest(chain, &candidate.print, &candidate.vectors));
        // What is only near was not published before this one, so it is the one to be marked.
        let nearest = near.find(|nearest| nearest.likeness == Likeness::Copy)?;
        Some((
            "duplicate_meaning",
            format!("{} {MEANWHILE}", review::copied_facts(nearest.unit)),
            SimilarUnit {
                unit_id: nearest.unit,
                similarity: f64::from(nearest.cosine),
            },
        ))
    }

    /// Puts one commit with a row for each version. Returns false if rows were there that this process did not know. They
    /// are read, and everything is to be compared again.
    async fn commit(&mut self, passed: &[PassedUnit], catalog: &Catalog, at: Timestamp) -> Result<bool, Error> {
        let Some(first) = passed.first() else { return Ok(true) };
        let embedder = self.embedder.as_deref();
        // The prints come first: a commit without them could not be compared by shingles after a restart.
        let prints = prints_of(passed, embedder)?;
        catalog.put_prints(first.submission.unit, prints.into()).await?;
        fault::point("publish.part");
        let mut prepared = prepare(&self.contract, first, passed, at, embedder)?;
        let committed = self
            .table
            .commit_after(self.head, &mut prepared, at, |_| Value::Null)
            .await?;
        fault::point("publish.commit");
        match committed {
            Some(CommitOutcome::Committed(merge)) => {
                self.head = merge.version;
                Ok(true)
            }
            // Another process published meanwhile.
            None => self.catch_up(catalog).await.map(|()| false),
            // The first version has a row of an earlier try. Its outcome is known once the row is read.
            Some(CommitOutcome::AlreadyCommitted(_) | CommitOutcome::NothingNew(_)) => {
                self.catch_up(catalog).await?;
                let unit = first.submission.unit;
                if self.published.outcomes.read().contains_key(&unit) {
                    Ok(false)
                } else {
                    Err(Error::Unread(unit))
                }
            }
        }
    }
}

/// Returns the file of prints of versions: a line for each.
fn prints_of(passed: &[PassedUnit], embedder: Option<&str>) -> Result<Vec<u8>, Error> {
    let mut prints = Vec::new();
    for one in passed {
        let candidate = &one.candidate;
        let line = UnitPrints::of(
            one.submission.unit,
            &candidate.print,
            &candidate.vectors,
            embedder,
            candidate.near,
        );
        serde_json::to_writer(&mut prints, &line).map_err(|error| Error::Encode(error.to_string()))?;
        prints.push(b'\n');
    }
    Ok(prints)
}

/// Prepares the commit of versions, of which `first` is the first: a row for each.
fn prepare(
    contract: &Arc<Contract>,
    first: &PassedUnit,
    passed: &[PassedUnit],
    at: Timestamp,
    embedder: Option<&str>,
) -> Result<PreparedVersion, Error> {
    let rows: Vec<_> = passed
        .iter()
        .map(|one| one.candidate.row(&one.submission, at, embedder))
        .collect();
    let batch = Batch::decode(contract, &rows);
    if let Some(defect) = batch.defects().first() {
        return Err(Error::Encode(format!(
            "{}: {} instead of {}",
            defect.path, defect.actual, defect.expected
        )));
    }
    let contribution = ContributionId::from_bytes(*first.submission.unit.as_bytes());
    mutate!(Bug::UnitTwice => let contribution = ContributionId::new(at));
    Ok(PreparedVersion::of_batch(
        contribution,
        first.submission.agent,
        Arc::new(batch),
    ))
}

/// Encodes everything that publishing a version would, and keeps nothing: for a process that tries the version out.
pub(super) fn probe_commit(reviewed: Reviewed, at: Timestamp) -> Result<(), Error> {
    let Reviewed {
        submission,
        entries,
        verdict: Verdict::Pass(candidate),
    } = reviewed
    else {
        return Ok(());
    };
    let contract = platform::contract()?;
    let passed = [PassedUnit {
        submission,
        entries,
        candidate,
    }];
    prints_of(&passed, None)?;
    let [first] = &passed;
    prepare(&contract, first, &passed, at, None)?.dry_run(platform::KNOWLEDGE, at, Value::Null)?;
    let [
        PassedUnit {
            submission,
            entries,
            candidate,
        },
    ] = passed;
    let record = outcome(&submission, candidate.resolution(None), entries, at).record();
    record.map(drop).map_err(|error| Error::Encode(error.to_string()))
}

/// Returns true if trying again can help. No version may be rejected because the table is damaged: it is repaired from a
/// copy, or read by a newer build.
fn is_transient(error: &Error) -> bool {
    match error {
        Error::Table(error) => error.retry() == Retry::Backoff,
        Error::Unread(_) => true,
        _ => false,
    }
}

/// The sentence of a version that cannot be processed.
const UNPROCESSABLE: &str = "the service could not process the unit; it is kept and the operators were told";

/// Returns the outcome of a version that cannot be processed.
pub(super) fn unprocessable(address: &UnitAddress, at: Timestamp) -> UnitOutcome {
    let resolution = UnitResolution::Rejected {
        code: "unprocessable".to_owned(),
        message: UNPROCESSABLE.to_owned(),
    };
    UnitOutcome::new((address.unit, address.chain), address.generation, at, resolution)
}

/// Waits after a failure. Returns false if the worker stops.
pub(super) async fn pause(failures: u32, stop: &CancellationToken) -> bool {
    step::pause(BACKOFF, failures, stop).await.is_ok()
}

/// Builds the outcome of a submission, with the report of its review.
fn outcome(
    submission: &UnitSubmission,
    resolution: UnitResolution,
    report: Vec<ReviewEntry>,
    at: Timestamp,
) -> UnitOutcome {
    let mut outcome = UnitOutcome::new(
        (submission.unit, submission.chain),
        submission.generation,
        at,
        resolution,
    );
    outcome.report = report;
    outcome
}

/// Returns the entry of a version that is published.
fn published(detail: &str, at: Timestamp) -> ReviewEntry {
    entry(
        ReviewStep::Publish,
        StepOutcome::Passed,
        "passed",
        detail.to_owned(),
        at,
    )
}

#[cfg(test)]
mod tests;
