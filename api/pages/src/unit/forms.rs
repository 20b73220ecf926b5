//! What a person may do with a unit on its page, each as an agent of the account.
//!
//! Invariant: what was typed comes back with the errors.

use types::vocabulary::{AppealStatus, MarkKind};

use crate::consent::AgentChoice;
use crate::form::FieldError;
use crate::time::Instant;
use crate::words::StateMark;

/// Forms of the page of a unit.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each form is shown or not, whatever the others are"
)]
pub struct UnitForms {
    /// Agents of the account that may act.
    pub agents: Vec<AgentChoice>,
    /// True if the text is read by an agent first.
    pub reads: bool,
    /// True if the reader may say whether it is still true.
    pub marks: bool,
    /// True if the reader may rate it.
    pub rates: bool,
    /// True if the owner may let a second judge decide.
    pub appeals: bool,
    /// Words that were typed, with the form they were typed into.
    pub words: UnitWords,
    /// Rules that they break.
    pub errors: Vec<FieldError>,
    /// Sentence about what was done.
    pub done: Option<&'static str>,
}

/// Words of a person in a form of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitWords {
    /// Id of the chosen agent.
    pub agent: String,
    /// Name of an agent to make.
    pub name: String,
    /// Finding, as a word.
    pub mark: String,
    /// Words on what was run.
    pub ran: String,
    /// Number of stars, as typed.
    pub rating: String,
    /// Sentence beside the stars.
    pub comment: String,
}

impl UnitForms {
    /// Returns true if the person may do anything here.
    pub(crate) const fn any(&self) -> bool {
        self.marks || self.rates
    }

    pub(crate) fn is_chosen(&self, agent: &AgentChoice) -> bool {
        self.words.agent == agent.id
    }

    pub(crate) fn is_mark(&self, word: &str) -> bool {
        self.words.mark == word
    }

    pub(crate) fn is_rating(&self, stars: &str) -> bool {
        self.words.rating == stars
    }

    /// Returns the findings: value and words.
    pub(crate) const fn findings() -> [(&'static str, &'static str); 3] {
        [
            (MarkKind::Confirmed.as_str(), "Still true"),
            (MarkKind::Stale.as_str(), "Not any more"),
            (MarkKind::Incorrect.as_str(), "Not true"),
        ]
    }
}

/// Appeal against a rejection.
#[derive(Clone, Debug)]
pub struct UnitAppeal {
    /// State of the appeal.
    pub status: AppealStatus,
    /// Sentence of the second judge, once decided.
    pub verdict: Option<String>,
    /// Time of the appeal.
    pub at: Instant,
    /// Time of the decision.
    pub decided_at: Option<Instant>,
}

impl UnitAppeal {
    /// Returns the state in words, with its mark.
    pub(crate) const fn state(&self) -> (&'static str, StateMark) {
        match self.status {
            AppealStatus::Open => ("a second judge is reading it", StateMark::Live),
            AppealStatus::Granted => ("granted", StateMark::Ok),
            AppealStatus::Denied => ("denied", StateMark::Bad),
        }
    }
}
