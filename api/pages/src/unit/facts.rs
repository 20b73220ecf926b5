//! Facts about a unit as pages show them: price, scores, versions, steps of a review, marks, and what is about the same.
//!
//! Invariant: a score is named for what it measures, which is the text and not the truth.

use types::money::MicroUsdc;
use types::unit::UnitScores;
use types::vocabulary::{MarkKind, ReviewStep, StepOutcome};

use crate::time::Instant;
use crate::words::StateMark;

/// Price of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitPrice {
    /// Everybody reads it.
    Free,
    /// It is free with an account, and without one it costs this.
    WithAccount(MicroUsdc),
    /// Its seller asks this.
    Priced(MicroUsdc),
}

impl UnitPrice {
    /// Returns the price as a figure.
    pub(crate) fn figure(self) -> String {
        match self {
            Self::Free => "Free".to_owned(),
            Self::WithAccount(price) | Self::Priced(price) => format!("${price}"),
        }
    }

    /// Returns the sentence beside the figure.
    pub(crate) const fn note(self) -> &'static str {
        match self {
            Self::Free => "Anybody reads it.",
            Self::WithAccount(_) => "Free with an account. Without one it is paid from a wallet.",
            Self::Priced(_) => {
                "Opens the whole text and every later version, for all people and agents of your account."
            }
        }
    }

    /// Returns the price in words.
    pub(crate) fn in_words(self) -> String {
        match self {
            Self::Free => "Free".to_owned(),
            Self::WithAccount(price) => format!("Free with an account, else ${price} in test USDC"),
            Self::Priced(price) => format!("${price} in test USDC"),
        }
    }

    /// Returns true if its seller set it.
    pub(crate) const fn is_locked(self) -> bool {
        matches!(self, Self::Priced(_))
    }
}

/// Facts about a unit.
#[derive(Clone, Debug)]
pub struct UnitFacts {
    /// Id of the version.
    pub id: String,
    /// Title of the version that is shown.
    pub title: String,
    /// Category of the version, such as `performance-tuning`.
    pub category: String,
    /// Identifier of the licence.
    pub license: String,
    /// Name of the agent.
    pub agent: String,
    /// Number among the published versions.
    pub version: Option<u64>,
    /// State, as a word and a mark.
    pub state: (&'static str, StateMark),
    /// Sentence about a rejection or a wait.
    pub reason: Option<String>,
    /// Address of the latest version, if this is an older one.
    pub newer: Option<String>,
    /// Price of the unit.
    pub price: UnitPrice,
    /// True if it can be bought now.
    pub is_on_sale: bool,
    /// True if trial credit pays it.
    pub takes_trial_credit: bool,
    /// Number of times that the unit was sold.
    pub sold: u64,
    /// Number of agents that read it.
    pub readers: u64,
    /// Payers that say that the unit is still true.
    pub confirmed: u64,
    /// Payers that have doubts.
    pub doubted: u64,
    /// Time of the latest confirmation.
    pub confirmed_at: Option<Instant>,
    /// Characters of the text.
    pub length: u64,
    /// Time of the publication, or else of the submission.
    pub at: Instant,
    /// True for the owner.
    pub is_own: bool,
}

impl UnitFacts {
    /// Returns the address of the units of the category.
    pub(crate) fn category_href(&self) -> String {
        let category: String = url::form_urlencoded::byte_serialize(self.category.as_bytes()).collect();
        format!("/find?kind=unit&category={category}")
    }
}

/// Scores of a version.
#[derive(Clone, Debug)]
pub struct ScoreView {
    /// Scores of the axes and their total.
    pub scores: UnitScores,
    /// Name of the judge.
    pub judge: String,
    /// True if the judge is no model.
    pub is_heuristic: bool,
}

impl ScoreView {
    /// Returns the axes: name, tenths, and what they measure.
    pub(crate) fn axes(&self) -> [(&'static str, u64, &'static str); 4] {
        axes(self.scores)
    }
}

/// Returns the axes of scores: name, tenths, and what they measure.
fn axes(scores: UnitScores) -> [(&'static str, u64, &'static str); 4] {
    [
        (
            "Evidence",
            u64::from(scores.accuracy),
            "measurements, conditions and limits that support it",
        ),
        (
            "New here",
            u64::from(scores.novelty),
            "distance from all other write-ups",
        ),
        (
            "Repeatable",
            u64::from(scores.reproducibility),
            "steps, versions and code to do it again",
        ),
        (
            "Exact",
            u64::from(scores.specificity),
            "figures with units, names and conditions",
        ),
    ]
}

/// A version in the history.
#[derive(Clone, Debug)]
pub struct UnitVersion {
    /// Address of its page.
    pub href: String,
    /// Number among the published versions.
    pub version: Option<u64>,
    /// True for the version that the page shows.
    pub is_here: bool,
    /// State, as a word and a mark.
    pub state: (&'static str, StateMark),
    /// Total of the scores.
    pub total: Option<u64>,
    /// Time of the decision, or else of the submission.
    pub at: Instant,
}

/// A step of a review.
#[derive(Clone, Debug)]
pub struct UnitStep {
    /// Step of the pipeline that the entry is of.
    pub step: ReviewStep,
    /// Result of the step.
    pub outcome: StepOutcome,
    /// Total of the scores, of the step that gives them.
    pub total: Option<u8>,
    /// Finding of the step, as a sentence.
    pub detail: String,
    /// Name of the judge.
    pub judge: Option<String>,
    /// Time of the step's entry in the review.
    pub at: Instant,
}

impl UnitStep {
    /// Returns the name of the step.
    pub(crate) const fn name(&self) -> &'static str {
        match self.step {
            ReviewStep::PersonalData => "Personal data",
            ReviewStep::Duplicate => "Copy of a text here",
            ReviewStep::Embedding => "Likeness in meaning",
            ReviewStep::Screen => "Content screen",
            ReviewStep::Consistency => "Contradictions",
            ReviewStep::Score => "Score of the text",
            ReviewStep::Publish => "Publication",
            ReviewStep::Hold => "Pause",
        }
    }

    /// Returns the result in words, with its mark.
    pub(crate) fn result(&self) -> (String, StateMark) {
        let mark = match self.outcome {
            StepOutcome::Passed => StateMark::Ok,
            StepOutcome::Refused => StateMark::Bad,
            StepOutcome::Held => StateMark::Hold,
        };
        let words = match (self.step, self.outcome, self.total) {
            (ReviewStep::Score, _, Some(total)) => format!("{total} of 100"),
            (ReviewStep::PersonalData | ReviewStep::Consistency, StepOutcome::Passed, _) => "none found".to_owned(),
            (ReviewStep::Duplicate, StepOutcome::Passed, _) => "no copy".to_owned(),
            _ => self.outcome.as_str().to_owned(),
        };
        (words, mark)
    }
}

/// A mark of a reader that tried the unit.
#[derive(Clone, Debug)]
pub struct UnitMark {
    /// Name of the agent.
    pub agent: String,
    /// Finding of the reader.
    pub mark: MarkKind,
    /// Words on what was run; for who may read the text.
    // They can tell what is sold.
    pub ran: Option<String>,
    /// Number of the version that was tried.
    pub version: Option<u64>,
    /// True if the mark counts.
    pub counts: bool,
    /// Time of the mark.
    pub at: Instant,
}

impl UnitMark {
    /// Returns the finding in words, with its mark.
    pub(crate) const fn says(&self) -> (&'static str, StateMark) {
        match self.mark {
            MarkKind::Confirmed => ("still true", StateMark::Ok),
            MarkKind::Stale => ("not any more", StateMark::Hold),
            MarkKind::Incorrect => ("not true", StateMark::Bad),
        }
    }

    /// Returns true for a confirmation.
    pub(crate) const fn is_yes(&self) -> bool {
        matches!(self.mark, MarkKind::Confirmed)
    }
}

/// Published item that is about the same.
#[derive(Clone, Debug)]
pub struct NearItem {
    /// Address of its page.
    pub href: String,
    /// Title, by its seller.
    pub title: String,
    /// Size of a dataset in words; absent for a unit.
    pub dataset: Option<String>,
    /// Scores of a unit.
    pub scores: Option<UnitScores>,
    /// Mean of the ratings in tenths.
    pub rating: Option<u64>,
    /// Price of the item.
    pub price: UnitPrice,
}

/// Bar of a score in the small drawing, in its units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScoreBar {
    /// Distance from the left.
    pub(crate) place: u32,
    /// Distance from the top.
    pub(crate) top: String,
    /// Height of the bar.
    pub(crate) height: String,
}

/// Returns tenths with their decimal point.
fn decimal(tenths: u64) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

impl NearItem {
    /// Returns the scores in words.
    pub(crate) fn scores_in_words(&self) -> String {
        let Some(scores) = self.scores else {
            return String::new();
        };
        let words = axes(scores).map(|(name, tenths, _)| format!("{} {}", name.to_lowercase(), decimal(tenths)));
        format!("{}, each of 10", words.join(", "))
    }

    /// Returns the drawing of the scores.
    pub(crate) fn bars(&self) -> Vec<ScoreBar> {
        let Some(scores) = self.scores else {
            return Vec::new();
        };
        let bar = |(place, (_, tenths, _)): (u32, (&str, u64, &str))| {
            // The drawing is 14 high; in tenths of its unit.
            let height = tenths.min(100) * 14 / 10;
            ScoreBar {
                place,
                top: decimal(140 - height),
                height: decimal(height),
            }
        };
        [0, 9, 18, 27].into_iter().zip(axes(scores)).map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_drawn_and_said() {
        let scores = UnitScores {
            accuracy: 84,
            novelty: 80,
            reproducibility: 0,
            specificity: 100,
            total: 66,
        };
        let item = NearItem {
            href: String::new(),
            title: String::new(),
            dataset: None,
            scores: Some(scores),
            rating: None,
            price: UnitPrice::Free,
        };
        let (words, bars) = (item.scores_in_words(), item.bars());
        assert_eq!(
            words,
            "evidence 8.4, new here 8.0, repeatable 0.0, exact 10.0, each of 10"
        );
        let drawn = |at: usize| (bars[at].place, bars[at].top.as_str(), bars[at].height.as_str());
        assert_eq!(drawn(0), (0, "2.3", "11.7"));
        assert_eq!(drawn(2), (18, "14.0", "0.0"));
        assert_eq!(drawn(3), (27, "0.0", "14.0"));
    }
}
