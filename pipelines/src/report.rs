//! The judge's report, as a commit keeps it, and the outcomes that are made of it.
//!
//! Invariant: an outcome of a merge is the same at every delivery, because the commit has all of it.

use catalog::{LateDuplicates, Merge};
use operators::{Decision, GateName, Reason, RowVerdict, Tally, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use types::{ContributionId, Timestamp};

use crate::message::{Address, BASE_FORMAT, Outcome, Resolution};

/// Verdicts and counts of the judge.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) rows: u32,
    pub(crate) verdicts: Vec<RowVerdict>,
    pub(crate) tallies: Vec<Tally>,
}

impl Report {
    /// Returns the report as a commit holds it.
    pub(crate) fn written(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads a report that [`Self::written`] wrote.
    pub(crate) fn read(contribution: ContributionId, written: Value) -> Self {
        // The merge stands whatever its report is, so an unreadable one costs the verdicts and not the
        // outcome.
        serde_json::from_value(written).unwrap_or_else(|error| {
            tracing::error!(%contribution, %error, "the notes of a commit cannot be read");
            Self::default()
        })
    }

    /// Returns the report as a commit holds it that drops these rows.
    pub(crate) fn written_with(&self, late: &LateDuplicates) -> Value {
        match late {
            // The commit has the indexes of these rows itself.
            LateDuplicates::Rows(_) => self.written(),
            LateDuplicates::Count(_) => self.clone().with_late(late).written(),
        }
    }

    /// Counts the rows that the commit dropped, and names them where it does: they passed the gates and were merged by
    /// another contribution meanwhile.
    pub(crate) fn with_late(mut self, late: &LateDuplicates) -> Self {
        let count = match late {
            LateDuplicates::Count(count) => *count,
            LateDuplicates::Rows(rows) => rows.len() as u64,
        };
        if let Some(tally) = self.tallies.iter_mut().find(|tally| tally.gate == GateName::DEDUP) {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            tally.dropped += count;
            tally.passed = tally.passed.saturating_sub(count);
        }
        if !late.named().is_empty() {
            self.name(late.named());
        }
        self
    }

    fn name(&mut self, duplicates: &[u32]) {
        let duplicate = |&row: &u32| {
            let reason = Reason {
                gate: GateName::DEDUP,
                code: "duplicate_in_dataset".to_owned(),
                path: String::new(),
                expected: "a record the dataset does not have".to_owned(),
                actual: "a record merged while this batch was judged".to_owned(),
            };
            RowVerdict::of_record(row, Verdict::Drop { reason })
        };
        self.verdicts.extend(duplicates.iter().map(duplicate));
        self.verdicts.sort_by_key(|verdict| verdict.row);
    }
}

/// Returns the resolution of what is decided not to be merged.
pub(crate) fn not_merged(decision: Decision) -> Resolution {
    match decision {
        Decision::Reject { code, message } => Resolution::Rejected { code, message },
        Decision::Hold { reason, resumes_after } => Resolution::Waiting { reason, resumes_after },
        Decision::Merge => nothing_new(&[]),
    }
}

/// Returns the resolution of what has nothing new.
pub(crate) fn nothing_new(tallies: &[Tally]) -> Resolution {
    Resolution::Rejected {
        code: "duplicates".to_owned(),
        message: operators::nothing_new(tallies),
    }
}

/// Builds the outcome of what is no version.
pub(crate) fn outcome(address: Address, at: Timestamp, resolution: Resolution, report: Report) -> Outcome {
    Outcome {
        format: BASE_FORMAT,
        contribution: address.contribution,
        generation: address.generation,
        dataset: address.dataset,
        at,
        resolution,
        rows: report.rows,
        verdicts: report.verdicts,
        tallies: report.tallies,
        traceparent: None,
    }
}

/// Builds the outcome of a merge from its commit, so that it is the same at every delivery.
pub(crate) fn adopted(address: Address, mut merge: Merge) -> Outcome {
    let report = Report::read(address.contribution, std::mem::take(&mut merge.notes));
    let resolution = Resolution::Merged {
        version: merge.version,
        accepted: merge.accepted,
        record_count: merge.record_count,
        root: merge.root,
    };
    // The time is that of the commit, not of now, so that a second publication is the same outcome.
    outcome(
        address,
        merge.at,
        resolution,
        report.with_late(&LateDuplicates::Rows(merge.duplicates)),
    )
}
