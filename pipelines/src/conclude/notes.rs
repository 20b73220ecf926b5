//! What a commit remembers of the judgement, so that an adopted merge gives the same outcome.

use operators::{Reason, RowVerdict, Tally, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use types::ContributionId;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Notes {
    pub(super) rows: u32,
    pub(super) verdicts: Vec<RowVerdict>,
    pub(super) tallies: Vec<Tally>,
}

impl Notes {
    /// The notes as a commit holds them.
    pub(super) fn written(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads notes that [`Self::written`] wrote.
    pub(super) fn read(contribution: ContributionId, written: Value) -> Self {
        serde_json::from_value(written).unwrap_or_else(|error| {
            tracing::error!(%contribution, %error, "the notes of a commit cannot be read");
            Self {
                rows: 0,
                verdicts: Vec::new(),
                tallies: Vec::new(),
            }
        })
    }

    /// Adds the rows that the critical section dropped: they passed the gates and were merged by another batch
    /// meanwhile.
    pub(super) fn with_duplicates(mut self, duplicates: &[u32]) -> Self {
        let (false, Ok(count)) = (duplicates.is_empty(), u32::try_from(duplicates.len())) else {
            return self;
        };
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
        if let Some(tally) = self.tallies.iter_mut().find(|tally| tally.gate == "dedup") {
            tally.dropped += count;
            tally.passed = tally.passed.saturating_sub(count);
        }
        self
    }
}
