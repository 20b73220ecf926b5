//! The page of a knowledge unit: what anybody may see of it, and for its owner all of it with its history.
//!
//! Invariant: the text is shown as Markdown without HTML, and never as part of ours.

use askama::Template;
use types::SaleId;
use types::money::MicroUsdc;

use crate::chrome::{PageLayout, Theme};
use crate::document::RenderedMarkdown;
use crate::filters;
use crate::said::{Discussion, SaidEntry};
use crate::time::Instant;
use crate::words::StateMark;

/// Page at `GET /units/{id}`: one version of a knowledge unit.
#[derive(Debug, Template)]
#[template(path = "unit.html")]
pub struct UnitPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Facts about the version that the page shows.
    pub unit: UnitFacts,
    /// Text, or its beginning.
    pub(crate) text: RenderedMarkdown,
    /// Characters that are not shown.
    pub hidden: u64,
    /// Purchase by which the account of the reader reads the unit.
    pub purchase: Option<UnitPurchase>,
    /// True if the reader can buy it here.
    pub is_for_sale: bool,
    /// Declared source, for those who read the whole text.
    // The source may contain what the seller sells, so it goes with the text and not with the facts.
    pub source: Option<String>,
    /// Scores of the version; `None` until it is judged.
    pub scores: Option<ScoreView>,
    /// Versions, the latest first.
    pub versions: Vec<UnitVersion>,
    /// Steps of the review of this version; for the owner only.
    pub steps: Vec<UnitStep>,
    /// Mean of the ratings in tenths, and their number.
    pub rating: Option<(u64, u64)>,
    /// Ratings of the unit, newest first.
    pub ratings: Vec<SaidEntry>,
    /// Address of the newest ratings; absent where they are shown.
    pub ratings_first: Option<String>,
    /// Address of earlier ratings.
    pub ratings_next: Option<String>,
    /// Reviews, questions and comments.
    pub discussion: Discussion,
    /// Call to hand to an agent.
    pub request: String,
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
    /// Price in words, as the page shows it.
    pub price: String,
    /// Sentence about the price.
    pub price_note: String,
    /// Number of times that the unit was sold.
    pub sold: u64,
    /// Number of agents that read it.
    pub readers: u64,
    /// What readers found who tried it, in words; absent while none of them counts.
    pub marks: Option<String>,
    /// Characters of the text.
    pub length: u64,
    /// Time of the publication, or else of the submission.
    pub at: Instant,
    /// True for the owner.
    pub is_own: bool,
}

/// Purchase of a unit.
#[derive(Clone, Debug)]
pub struct UnitPurchase {
    /// Id of the sale.
    pub sale: SaleId,
    /// Name of the agent that bought it, if one did.
    pub agent: Option<String>,
    /// Price that was paid.
    pub price: MicroUsdc,
    /// Time of the sale.
    pub at: Instant,
}

/// Scores of a version.
#[derive(Clone, Debug)]
pub struct ScoreView {
    /// Total of the scores, from 0 to 100.
    pub total: u64,
    /// Axes with their tenths.
    pub axes: [(&'static str, u64); 4],
    /// Name of the judge.
    pub judge: String,
    /// True if the judge is no model.
    pub is_heuristic: bool,
}

/// A version in the history.
#[derive(Clone, Debug)]
pub struct UnitVersion {
    /// Address of its page.
    pub href: String,
    /// Number among the published versions.
    pub version: Option<u64>,
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
    /// Name of the step.
    pub step: String,
    /// Result, as a word and a mark.
    pub outcome: (String, StateMark),
    /// Finding of the step, as a sentence.
    pub detail: String,
    /// Name of the judge.
    pub judge: Option<String>,
    /// Time of the step's entry in the review.
    pub at: Instant,
}

impl UnitPage {
    /// Creates the page of a unit whose text, or the beginning of it, is this Markdown. All lists are empty.
    pub fn new(chrome: PageLayout, unit: UnitFacts, markdown: &str) -> Self {
        let shown = u64::try_from(markdown.chars().count()).unwrap_or(u64::MAX);
        let text = RenderedMarkdown::of_stranger(markdown, &chrome);
        Self {
            chrome,
            // Both are numbers of characters; bytes would give readers of Korean a third of the figure.
            hidden: unit.length.saturating_sub(shown),
            unit,
            text,
            purchase: None,
            is_for_sale: false,
            source: None,
            scores: None,
            versions: Vec::new(),
            steps: Vec::new(),
            rating: None,
            ratings: Vec::new(),
            ratings_first: None,
            ratings_next: None,
            discussion: Discussion::default(),
            request: String::new(),
        }
    }
}
