//! The search: its results and the conditions that narrow them.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::time::Instant;

/// Page at `GET /find`, which searches units and datasets.
#[derive(Debug, Template)]
#[template(path = "find.html")]
pub struct FindPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Text that was searched for; empty shows the newest.
    pub query: String,
    /// Ways of searching that can be chosen.
    pub modes: Vec<FindMode>,
    /// Number of matches, or of candidates.
    pub total: u64,
    /// True if every match is counted.
    // With vectors every document is near to some degree, so the number is that of candidates, and the
    // page does not call it the number of matches.
    pub is_exact: bool,
    /// Name of what compares meanings.
    pub judge: String,
    /// True if there were no vectors, so that words alone made the order.
    pub is_heuristic: bool,
    /// Conditions in force, which the search form sends along, as names and values.
    // A form of GET replaces the whole query of its address, so the conditions travel as hidden fields.
    pub kept: Vec<(String, String)>,
    /// Address of the search without conditions.
    pub clear: String,
    /// Conditions that can be set, with their counts.
    pub facets: Vec<FindFacet>,
    /// Results of this page, best first.
    pub hits: Vec<FindHit>,
    /// Address of the first page, unless this is it.
    pub first: Option<String>,
    /// Address of the next page.
    pub next: Option<String>,
}

/// A way of searching.
#[derive(Clone, Debug)]
pub struct FindMode {
    /// Value of the parameter `mode`.
    pub word: &'static str,
    /// Name of the mode, for people.
    pub label: &'static str,
    /// True if it is in force.
    pub here: bool,
}

/// Values of one condition.
#[derive(Clone, Debug)]
pub struct FindFacet {
    /// Name of the condition.
    pub title: &'static str,
    /// Values, the most frequent first.
    pub values: Vec<FindValue>,
}

/// A value of a condition.
#[derive(Clone, Debug)]
pub struct FindValue {
    /// Name of the value, for people.
    pub label: String,
    /// Number of items that have the value.
    pub count: u64,
    /// Address that sets it, or that lifts it if it is in force.
    pub href: String,
    /// True if it is in force.
    pub here: bool,
}

/// Unit or dataset that a search found.
#[derive(Clone, Debug)]
pub struct FindHit {
    /// Title of the unit or dataset.
    pub title: String,
    /// Address of its page.
    pub href: String,
    /// Words below the title: kind, category or slug, licence.
    pub facts: Vec<String>,
    /// Beginning of the text.
    pub text: String,
    /// Total of the scores of a unit.
    pub score: Option<u64>,
    /// Mean and number of a unit's ratings, in words; `None` for a dataset.
    pub ratings: Option<String>,
    /// Price in words, as the page shows it.
    pub price: String,
    /// True if the seller priced it.
    pub is_locked: bool,
    /// Words below the price.
    pub notes: Vec<String>,
    /// Time of the publication or the last merge.
    pub at: Instant,
}
