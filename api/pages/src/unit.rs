//! The page of a knowledge unit: what anybody may see of it, and for who may read it all of it.
//!
//! Invariants:
//! - The text is shown as Markdown without HTML, and never as part of ours.
//! - Of a text that is closed the page holds the beginning and an outline, and nothing else.

mod facts;
mod forms;

use askama::Template;
use serde_json::{Value, json};
use types::money::MicroUsdc;
use types::{OperatorId, SaleId};

pub use self::facts::{NearItem, ScoreView, UnitFacts, UnitMark, UnitPrice, UnitStep, UnitVersion};
pub use self::forms::{UnitAppeal, UnitForms, UnitWords};
use crate::chrome::{PageLayout, Theme};
use crate::document::{RenderedMarkdown, heading_id};
use crate::filters;
use crate::form::Errors as _;
use crate::head::LinkedData;
use crate::number::counted;
use crate::outline::OpenBeginning;
use crate::said::{Discussion, SaidEntry};
use crate::time::Instant;

/// Headings from which a text has a table of contents.
const FEWEST_HEADINGS: usize = 3;
/// The most headings of a table of contents.
const MOST_HEADINGS: usize = 30;

/// Way in which the reader gets the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitReading {
    /// It is on the page.
    Whole,
    /// It is sold.
    ForSale,
    /// It is free with an account; this address signs a person in.
    WithAccount(String),
    /// It is free, and an agent of the account reads it when the person says so.
    ByAgent,
    /// It is hidden.
    Closed,
}

/// Page at `GET /units/{id}`: one version of a knowledge unit. Its forms go to `/units/{id}/read`, `/mark`, `/rate` and
/// `/appeal`.
#[derive(Debug, Template)]
#[template(path = "unit.html")]
pub struct UnitPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Facts about the version that the page shows.
    pub unit: UnitFacts,
    /// Text, or its beginning.
    pub(crate) text: RenderedMarkdown,
    /// Beginning and outline of a text that is closed.
    pub(crate) beginning: OpenBeginning,
    /// Headings of the whole text, with their ids.
    pub(crate) contents: Vec<(String, String)>,
    /// Characters that are not shown.
    pub hidden: u64,
    /// Way to the whole text.
    pub reading: UnitReading,
    /// Purchase by which the account of the reader reads the unit.
    pub purchase: Option<UnitPurchase>,
    /// Declared source; empty where it is erased.
    pub source: String,
    /// Scores of the version; `None` until it is judged.
    pub scores: Option<ScoreView>,
    /// Versions, the latest first.
    pub versions: Vec<UnitVersion>,
    /// Steps of the review of this version.
    pub steps: Vec<UnitStep>,
    /// Latest marks of readers, newest first.
    pub marks: Vec<UnitMark>,
    /// Mean of the ratings in tenths, and their number.
    pub rating: Option<(u64, u64)>,
    /// Numbers of ratings with one star to five.
    pub histogram: [u64; 5],
    /// Ratings of the unit, newest first.
    pub ratings: Vec<SaidEntry>,
    /// Address of the newest ratings; absent where they are shown.
    pub ratings_first: Option<String>,
    /// Address of earlier ratings.
    pub ratings_next: Option<String>,
    /// Reviews, questions and comments.
    pub discussion: Discussion,
    /// Published items that are about the same.
    pub near: Vec<NearItem>,
    /// Appeal against the rejection of the version, for its owner.
    pub appeal: Option<UnitAppeal>,
    /// Forms by which the person acts as an agent of the account, with the words typed into them.
    pub forms: UnitForms,
    /// Call to hand to an agent.
    pub request: String,
    /// Account that publishes it, with the name that it shows.
    pub account: Option<(OperatorId, String)>,
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

impl UnitPage {
    /// Creates the page for who may read the whole text. All lists are empty.
    pub fn open(chrome: PageLayout, unit: UnitFacts, markdown: &str) -> Self {
        let (text, headings) = RenderedMarkdown::of_stranger_with_headings(markdown, &chrome);
        let named = (1..).map(heading_id).zip(headings);
        let contents: Vec<_> = named.filter(|(_, heading)| !heading.trim().is_empty()).collect();
        let has_contents = (FEWEST_HEADINGS..=MOST_HEADINGS).contains(&contents.len());
        let contents = if has_contents { contents } else { Vec::new() };
        Self::with(chrome, unit, text, OpenBeginning::default(), contents)
    }

    /// Creates the page for who may read at most `most` characters of the text. All lists are empty.
    pub fn closed(chrome: PageLayout, unit: UnitFacts, markdown: &str, most: usize) -> Self {
        let beginning = OpenBeginning::of(markdown, most);
        let text = RenderedMarkdown::of_stranger(&beginning.markdown, &chrome);
        let mut page = Self::with(chrome, unit, text, beginning, Vec::new());
        // Both are numbers of characters; bytes would give readers of Korean a third of the figure.
        let words = page.beginning.words.as_deref().unwrap_or_default();
        let shown = page.beginning.markdown.chars().count() + words.chars().count();
        page.hidden = page
            .unit
            .length
            .saturating_sub(u64::try_from(shown).unwrap_or(u64::MAX));
        page.reading = UnitReading::ForSale;
        page
    }

    /// Creates the page of a text that is hidden, from its owner too. All lists are empty.
    pub fn hidden(chrome: PageLayout, unit: UnitFacts) -> Self {
        let text = RenderedMarkdown::of_stranger("", &chrome);
        let mut page = Self::with(chrome, unit, text, OpenBeginning::default(), Vec::new());
        page.reading = UnitReading::Closed;
        page
    }

    fn with(
        chrome: PageLayout,
        unit: UnitFacts,
        text: RenderedMarkdown,
        beginning: OpenBeginning,
        contents: Vec<(String, String)>,
    ) -> Self {
        Self {
            chrome,
            unit,
            text,
            beginning,
            contents,
            hidden: 0,
            reading: UnitReading::Whole,
            purchase: None,
            source: String::new(),
            scores: None,
            versions: Vec::new(),
            steps: Vec::new(),
            marks: Vec::new(),
            rating: None,
            histogram: [0; 5],
            ratings: Vec::new(),
            ratings_first: None,
            ratings_next: None,
            discussion: Discussion::default(),
            near: Vec::new(),
            appeal: None,
            forms: UnitForms::default(),
            request: String::new(),
            account: None,
        }
    }

    /// Returns true for a text that its review did not publish.
    fn is_rejected(&self) -> bool {
        self.unit.state.0 == "rejected"
    }

    /// Returns true if a buyer has rated something that is about the same.
    fn is_near_rated(&self) -> bool {
        self.near.iter().any(|item| item.rating.is_some())
    }

    /// Returns the minutes that the text takes to read.
    fn minutes(&self) -> u64 {
        // 200 words of six letters a minute.
        (self.unit.length / 1_200).max(1)
    }

    /// Returns the ratings with each number of stars, five first: stars, number, and part of the most frequent in
    /// hundredths.
    fn bars(&self) -> Vec<(u64, u64, u64)> {
        let most = self.histogram.iter().copied().max().unwrap_or(0).max(1);
        let stars = (1..).zip(self.histogram);
        let mut bars: Vec<_> = stars
            .map(|(stars, count)| (stars, count, count.saturating_mul(100) / most))
            .collect();
        bars.reverse();
        bars
    }

    /// Returns the histogram in words.
    fn bars_in_words(&self) -> String {
        let bars = self.bars().into_iter().filter(|(_, count, _)| *count > 0);
        let words: Vec<_> = bars.map(|(stars, count, _)| format!("{count} with {stars}")).collect();
        words.join(", ")
    }

    /// Returns the marks that count and are shown, oldest first.
    fn gates(&self) -> Vec<&UnitMark> {
        self.marks.iter().rev().filter(|mark| mark.counts).collect()
    }

    /// Returns the marks as the drawing shows them, in words.
    fn gates_in_words(&self) -> String {
        let words: Vec<_> = self.gates().iter().map(|mark| mark.says().0).collect();
        format!(
            "{}, oldest first: {}",
            counted(count(&words), "answer", "answers"),
            words.join(", ")
        )
    }

    /// Returns what readers say who tried the unit, in words.
    fn verdict(&self) -> String {
        let says = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let facts = &self.unit;
        match (facts.confirmed, facts.doubted) {
            (0, 0) if self.marks.is_empty() => "nobody has said so yet".to_owned(),
            (0, 0) => "nobody yet whose word counts".to_owned(),
            (yes, 0) => says(yes, "says yes", "say yes"),
            (0, no) => says(no, "has doubts", "have doubts"),
            (yes, no) => format!(
                "{}, {}",
                says(yes, "says yes", "say yes"),
                says(no, "has doubts", "have doubts")
            ),
        }
    }

    /// Returns one sentence about the unit for who sees a link to it.
    pub fn description(&self) -> String {
        let score = self.scores.as_ref().map_or_else(String::new, |scores| {
            format!("Score of the text {} of 100. ", scores.scores.total)
        });
        let confirmed = match self.unit.confirmed {
            0 => String::new(),
            1 => "Still true, says 1 reader. ".to_owned(),
            many => format!("Still true, say {many} readers. "),
        };
        format!(
            "A write-up about {}. {score}{confirmed}{}.",
            self.unit.category,
            self.unit.price.in_words()
        )
    }

    /// Returns the unit as linked data: an `Article` of schema.org.
    pub fn linked_data(&self) -> LinkedData {
        let facts = &self.unit;
        let offers = match facts.price {
            UnitPrice::Priced(price) | UnitPrice::WithAccount(price) => json!({
                "@type": "Offer",
                "price": price.to_string(),
                "priceCurrency": "USD",
                "description": "Paid in test USDC on a test network",
            }),
            UnitPrice::Free => Value::Null,
        };
        let rating = self.rating.map(|(tenths, ratings)| {
            json!({
                "@type": "AggregateRating",
                "ratingValue": format!("{}.{}", tenths / 10, tenths % 10),
                "ratingCount": ratings,
                "bestRating": 5,
            })
        });
        LinkedData::new(
            "Article",
            [
                ("headline", json!(facts.title)),
                ("description", json!(self.description())),
                ("url", json!(format!("{}/units/{}", self.chrome.base, facts.id))),
                ("isAccessibleForFree", json!(facts.price == UnitPrice::Free)),
                ("author", json!({"@type": "SoftwareApplication", "name": facts.agent})),
                ("articleSection", json!(facts.category)),
                ("datePublished", json!(facts.at.machine())),
                ("offers", offers),
                ("aggregateRating", json!(rating)),
            ],
        )
    }
}

fn count<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}
