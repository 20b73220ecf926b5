//! The result of reviewing a version of a knowledge unit, as the worker publishes it and as the database keeps it.
//!
//! Invariant: nothing here quotes the text of the unit.

use serde::{Deserialize, Serialize};

use crate::vocabulary::{JudgeKind, Language, ReviewStep, StepOutcome};
use crate::{Timestamp, UnitId};

/// The code of the entry of a hold that belongs to one text: the judge answers others.
pub const UNUSABLE_ANSWER: &str = "unusable_answer";

/// The judge that gave a score or an opinion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Judge {
    /// Kind of the judge.
    pub kind: JudgeKind,
    /// Name of the rules or of the model.
    pub name: String,
}

/// The score of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitScores {
    /// Accuracy in tenths, 0 to 100.
    pub accuracy: u8,
    /// Novelty in tenths, 0 to 100.
    pub novelty: u8,
    /// Reproducibility in tenths, 0 to 100.
    pub reproducibility: u8,
    /// Specificity in tenths, 0 to 100.
    pub specificity: u8,
    /// Total, 0 to 100.
    pub total: u8,
}

/// Result of the review of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
// The tag and the words are in messages and in rows, so a new variant needs a reader that knows it
// first.
#[serde(tag = "status", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum UnitResolution {
    /// The version passed its review and is published.
    Published {
        /// Scores of the four axes and their total.
        scores: UnitScores,
        /// The judge that gave the score.
        judge: Judge,
        /// Language of its text.
        language: Language,
        /// A published version that it is marked as near to: it is ranked below.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        near: Option<UnitId>,
        /// Id of the embedder whose vectors of it are stored beside the platform's table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        embedder: Option<String>,
    },
    /// It is not published.
    Rejected {
        /// Code of the reason.
        code: String,
        /// Sentence for the author.
        message: String,
    },
    /// It cannot be judged now and will be submitted again.
    Waiting {
        /// `budget`, `provider` or `paused`.
        reason: String,
        /// Time to submit it again, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resumes_after: Option<Timestamp>,
    },
}

impl UnitResolution {
    /// Returns true unless the version is to be submitted again.
    pub const fn is_terminal(&self) -> bool {
        !matches!(self, Self::Waiting { .. })
    }
}

/// A unit that is similar to a reviewed one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SimilarUnit {
    /// The unit.
    pub unit_id: UnitId,
    /// Similarity, from 0 to 1.
    pub similarity: f64,
}

/// Returns true if a report ends with a hold that belongs to its text.
pub fn is_held_by_its_text(report: &[ReviewEntry]) -> bool {
    let is_held = |entry: &ReviewEntry| entry.outcome == StepOutcome::Held && entry.code == UNUSABLE_ANSWER;
    // Only the last entry decides: a text that was held before and then judged is not held any more.
    report.last().is_some_and(is_held)
}

/// One step of a review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewEntry {
    /// The step.
    pub step: ReviewStep,
    /// Its result.
    pub outcome: StepOutcome,
    /// Code of the result.
    pub code: String,
    /// Sentence for the author.
    pub detail: String,
    /// Time of the step.
    pub at: Timestamp,
    /// The judge, where a step has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<Judge>,
    /// The score, of the step that gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<UnitScores>,
    /// The most similar unit, where the step found one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similar: Option<SimilarUnit>,
}
