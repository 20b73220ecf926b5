//! The search: its results, the conditions that narrow them, and what it suggests while somebody types.

use askama::Template;
use types::vocabulary::ItemKind;
use url::form_urlencoded::byte_serialize;

use crate::board::AskedRequest;
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::mark::MarkedText;
use crate::number::counted;
use crate::score::MiniScore;
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
    /// Kinds of items that can be chosen; the first is all of them.
    pub kinds: Vec<FindMode>,
    /// Orders that can be chosen; the first is that of the best.
    pub orders: Vec<FindMode>,
    /// Number of matches, or of candidates.
    pub total: u64,
    /// True if every match is counted.
    // With vectors every document is near to some degree, so the number is that of candidates, and the
    // page does not call it the number of matches.
    pub is_exact: bool,
    /// Numbers of units and of datasets, where both are among the results.
    pub split: Option<(u64, u64)>,
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
    /// Request that could be made on the board instead.
    pub ask: AskedRequest,
    /// Words of the search that find something alone, with the numbers of their results; only where nothing was found.
    pub tries: Vec<(String, u64)>,
    /// Open requests with words of the search, as addresses, titles and budgets; only where nothing was found.
    pub asked: Vec<(String, String, Option<String>)>,
}

/// Choice of a search: a way of searching, a kind or an order.
#[derive(Clone, Debug)]
pub struct FindMode {
    /// Value of the parameter.
    pub word: &'static str,
    /// Name of the choice, for people.
    pub label: &'static str,
    /// Address of the search with it.
    pub href: String,
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

/// Unit or dataset in a list.
#[derive(Clone, Debug)]
pub struct FindHit {
    /// Kind of the item.
    pub kind: ItemKind,
    /// Title of the unit or dataset.
    pub title: MarkedText,
    /// Address of its page.
    pub href: String,
    /// Category of a unit.
    pub category: Option<String>,
    /// Slug of a dataset.
    pub slug: Option<String>,
    /// Id of the licence.
    pub license: String,
    /// Name of the agent that wrote a unit.
    pub agent: Option<String>,
    /// Beginning of the text.
    pub text: MarkedText,
    /// Total of the scores of a unit, and what each axis was given.
    pub score: Option<(u64, MiniScore)>,
    /// Mean and number of a unit's ratings, in words; `None` for a dataset.
    pub ratings: Option<String>,
    /// Tags of a dataset.
    pub tags: Vec<String>,
    /// Price in words, as the page shows it.
    pub price: String,
    /// True if the seller priced it.
    pub is_locked: bool,
    /// Numbers of records and of the newest version of a dataset.
    pub size: Option<(u64, u64)>,
    /// Words below the price.
    pub notes: Vec<String>,
    /// Event at the time below: `updated`, `published` or `confirmed`.
    pub happened: &'static str,
    /// Time of the publication or the last merge, or of the latest confirmation.
    pub at: Instant,
}

/// Returns the address of the search with one condition.
pub(crate) fn search_by(name: &str, value: &str) -> String {
    let value: String = byte_serialize(value.as_bytes()).collect();
    format!("/find?{name}={value}")
}

impl FindHit {
    pub(crate) fn kind_words(&self) -> &'static str {
        match self.kind {
            ItemKind::Unit => "Knowledge",
            ItemKind::Dataset => "Dataset",
        }
    }
}

impl FindPage {
    /// Returns what was found, in words.
    fn found(&self) -> String {
        if let Some((units, datasets)) = self.split {
            let units = counted(units, "write-up", "write-ups");
            format!("results: {units}, {}", counted(datasets, "dataset", "datasets"))
        } else if self.total == 1 {
            "result".to_owned()
        } else {
            "results".to_owned()
        }
    }

    /// Returns true if a condition leaves results out.
    fn is_narrowed(&self) -> bool {
        !self.kept.is_empty() || self.kinds.iter().skip(1).any(|kind| kind.here)
    }

    /// Returns true if nothing was asked for: the page is a list of the newest.
    fn is_list(&self) -> bool {
        self.query.is_empty()
    }
}

/// Answer at `GET /find/suggest`: a list of options that a script shows below the field of a search.
#[derive(Debug, Template)]
#[template(path = "suggest.html")]
pub struct SuggestPage {
    /// Text that is typed.
    pub query: String,
    /// Number of its results.
    pub total: u64,
    /// Items whose pages can be gone to, the best first.
    pub items: Vec<SuggestedItem>,
}

/// Item that is suggested.
#[derive(Clone, Debug)]
pub struct SuggestedItem {
    /// Title of the item, with what is typed marked.
    pub title: MarkedText,
    /// Address of its page.
    pub href: String,
    /// Words beside the title: the kind and the price.
    pub facts: String,
}

#[cfg(test)]
mod tests {
    use super::{SuggestPage, SuggestedItem, search_by};
    use crate::mark::MarkedText;
    use crate::{Page as _, testing};

    #[test]
    fn a_suggestion_keeps_hostile_text_as_text() {
        let text = testing::hostile_text();
        let page = SuggestPage {
            query: text.clone(),
            total: 2,
            items: vec![SuggestedItem {
                title: MarkedText::new(&text, &["script".to_owned()]),
                href: "/projects/tide-levels".to_owned(),
                facts: "dataset · $0.10".to_owned(),
            }],
        };
        let html = page.html().unwrap();
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
        assert!(html.contains("<mark>script</mark>"));
        assert_eq!(html.matches("role=\"option\"").count(), 2);
    }

    #[test]
    fn addresses_of_words_are_escaped() {
        assert_eq!(search_by("tag", "sea & tide"), "/find?tag=sea+%26+tide");
    }
}
