//! What a commit remembers of the judgement, so that an adopted merge gives the same outcome.

use catalog::Late;
use operators::{Reason, RowVerdict, Tally, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use types::ContributionId;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Notes {
    pub(crate) rows: u32,
    pub(crate) verdicts: Vec<RowVerdict>,
    pub(crate) tallies: Vec<Tally>,
}

impl Notes {
    /// The notes as a commit holds them.
    pub(crate) fn written(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads notes that [`Self::written`] wrote.
    pub(crate) fn read(contribution: ContributionId, written: Value) -> Self {
        // The merge stands whatever its notes are, so unreadable notes cost the report and not the
        // outcome.
        serde_json::from_value(written).unwrap_or_else(|error| {
            tracing::error!(%contribution, %error, "the notes of a commit cannot be read");
            Self {
                rows: 0,
                verdicts: Vec::new(),
                tallies: Vec::new(),
            }
        })
    }

    /// Counts the rows that the commit dropped, and names them where it does: they passed the gates and were merged by
    /// another contribution meanwhile.
    pub(crate) fn with_late(mut self, late: &Late) -> Self {
        let count = match late {
            Late::Count(count) => *count,
            Late::Rows(rows) => rows.len() as u64,
        };
        if let Some(tally) = self.tallies.iter_mut().find(|tally| tally.gate == "dedup") {
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
        self.verdicts.extend(duplicates.iter().map(|&row| RowVerdict {
            row,
            verdict: Verdict::Drop {
                reason: Reason {
                    gate: "dedup".to_owned(),
                    code: "duplicate_in_dataset".to_owned(),
                    path: String::new(),
                    expected: "a record the dataset does not have".to_owned(),
                    actual: "a record merged while this batch was judged".to_owned(),
                },
            },
        }));
        self.verdicts.sort_by_key(|verdict| verdict.row);
    }
}
