//! Library of an account: what it bought or may read, with a place to read it.
//!
//! Invariant: the place to read shows what the account may read now, whatever the list says of it.

use askama::Template;
use types::money::MicroUsdc;
use types::{SaleId, Version};

use crate::chrome::{PageLayout, Theme};
use crate::document::RenderedMarkdown;
use crate::filters;
use crate::number::grouped;
use crate::time::Instant;

/// Page at `GET /console/library` with `q`, `kind`, `of`, `sort`, `page` and `item`.
#[derive(Debug, Template)]
#[template(path = "console/library.html")]
pub struct LibraryPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Display name of the account.
    pub account: String,
    /// Choice of items.
    pub choice: LibraryChoice,
    /// Bought items of the page.
    pub bought: Vec<LibraryItem>,
    /// Bought items on all pages.
    pub bought_count: u64,
    /// Units that cost nothing and were read.
    pub read: Vec<LibraryItem>,
    /// Such units on all pages.
    pub read_count: u64,
    /// Address of the page before.
    pub previous: Option<String>,
    /// Address of the next page.
    pub next: Option<String>,
    /// Item that is open.
    pub open: Option<LibraryReader>,
}

/// Words and choices of the form above a library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryChoice {
    /// Words that a title or a text contains.
    pub q: String,
    /// `datasets` or `write-ups`; everything if empty.
    pub kind: String,
    /// `bought`, `read` or `newer`; everything if empty.
    pub of: String,
    /// `title` or `price`; the newest first if empty.
    pub sort: String,
}

impl LibraryChoice {
    /// Values of `kind`, with their labels.
    pub const KINDS: [(&'static str, &'static str); 3] =
        [("", "everything"), ("datasets", "datasets"), ("write-ups", "write-ups")];
    /// Values of `of`, with their labels.
    pub const SOURCES: [(&'static str, &'static str); 4] = [
        ("", "bought and read"),
        ("bought", "bought"),
        ("read", "free and read"),
        ("newer", "newer version out"),
    ];
    /// Values of `sort`, with their labels.
    pub const ORDERS: [(&'static str, &'static str); 3] =
        [("", "newest first"), ("title", "by title"), ("price", "by price")];

    /// Returns the address of the library with this choice, and more members behind it.
    pub fn address(&self, more: &[(&str, &str)]) -> String {
        let own = [
            ("q", self.q.as_str()),
            ("kind", &self.kind),
            ("of", &self.of),
            ("sort", &self.sort),
        ];
        let members = own.iter().chain(more).filter(|(_, value)| !value.is_empty());
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(members);
        let query = query.finish();
        if query.is_empty() {
            "/console/library".to_owned()
        } else {
            format!("/console/library?{query}")
        }
    }

    /// Returns true if nothing narrows the library.
    pub(crate) fn is_wide(&self) -> bool {
        self.q.is_empty() && self.kind.is_empty() && self.of.is_empty()
    }

    fn is_kind(&self, value: &str) -> bool {
        self.kind == value
    }

    fn is_of(&self, value: &str) -> bool {
        self.of == value
    }

    fn is_sort(&self, value: &str) -> bool {
        self.sort == value
    }
}

/// Item of a library.
#[derive(Clone, Debug)]
pub struct LibraryItem {
    /// Address of the library with the item open.
    pub href: String,
    /// True if it is open.
    pub is_open: bool,
    /// Title; empty where it is erased.
    pub title: String,
    /// Kind of the item, with its version.
    pub thing: LibraryThing,
    /// Name of the agent that bought it, or of the one that made what was read.
    pub agent: Option<String>,
    /// Price that was paid; absent for what costs nothing.
    pub price: Option<MicroUsdc>,
    /// Time of the purchase, or of the first read.
    pub at: Instant,
    /// Fact that matters to a reader.
    pub note: LibraryNote,
}

/// Thing in a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryThing {
    /// A dataset up to this version.
    Dataset(Version),
    /// A unit, whose newest version has this number.
    Unit(Option<u64>),
}

impl LibraryThing {
    /// Returns the thing in words.
    pub(crate) fn in_words(self) -> String {
        match self {
            Self::Dataset(version) => format!("dataset, v{}", grouped(version.0)),
            Self::Unit(Some(version)) => format!("write-up, v{}", grouped(version)),
            Self::Unit(None) => "write-up".to_owned(),
        }
    }
}

/// Fact about an item that matters to a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LibraryNote {
    /// No fact to point out.
    #[default]
    None,
    /// A newer version is out.
    Newer(Version),
    /// As many readers doubt it as confirm it, or more.
    Doubted(u64),
    /// It is taken down or deleted.
    Hidden,
}

/// Item that is open.
#[derive(Debug)]
pub struct LibraryReader {
    /// Address of its public page.
    pub href: String,
    /// Title of the item; empty where it is erased.
    pub title: String,
    /// Name of the agent that made it, if one did.
    pub agent: Option<String>,
    /// Identifier of the licence.
    pub license: String,
    /// Purchase by which it reads, if it was bought.
    pub paid: Option<LibraryPaid>,
    /// Text of a unit or rows of a dataset, or the reason why they may not be read now.
    pub content: LibraryContent,
}

/// Purchase of an item.
#[derive(Clone, Debug)]
pub struct LibraryPaid {
    /// Id of the sale.
    pub sale: SaleId,
    /// Price that was paid.
    pub price: MicroUsdc,
    /// Money that it was paid with, in words.
    pub means: &'static str,
    /// Name of the agent that bought it, if one did.
    pub agent: Option<String>,
    /// Time of the purchase.
    pub at: Instant,
    /// Time until which it can be disputed, while that can be.
    pub disputed_until: Option<Instant>,
}

/// Content of an item.
#[derive(Debug)]
pub enum LibraryContent {
    /// Text of a unit.
    Unit(LibraryText),
    /// A dataset up to a version.
    Dataset(LibraryDataset),
    /// It may not be read now; a sentence says why.
    Closed(&'static str),
}

/// Text of a unit.
#[derive(Debug)]
pub struct LibraryText {
    text: RenderedMarkdown,
    /// Declared source; empty where it is erased.
    pub source: String,
    /// Total of the scores.
    pub score: Option<u8>,
    /// Payers that confirm it.
    pub confirmed: u64,
    /// Payers that doubt it.
    pub doubted: u64,
}

impl LibraryText {
    /// Creates the text of a Markdown document of a stranger on a page.
    pub fn of(markdown: &str, page: &PageLayout) -> Self {
        Self {
            text: RenderedMarkdown::of_stranger(markdown, page),
            source: String::new(),
            score: None,
            confirmed: 0,
            doubted: 0,
        }
    }
}

/// Dataset up to a version.
#[derive(Clone, Debug)]
pub struct LibraryDataset {
    /// Slug of the dataset.
    pub slug: String,
    /// Version that is owned.
    pub version: Version,
    /// Newest version of the dataset, which may be later than the owned one.
    pub newest: Version,
    /// Records of the owned version, where known.
    pub records: Option<u64>,
    /// Records of the newest version.
    pub newest_records: u64,
    /// Price of the newest version.
    pub price: MicroUsdc,
}

impl LibraryDataset {
    /// Returns the records that the newest version has more than the owned one, if it is newer.
    pub(crate) fn added(&self) -> Option<u64> {
        let is_newer = self.newest > self.version;
        is_newer.then(|| {
            self.newest_records
                .saturating_sub(self.records.unwrap_or(self.newest_records))
        })
    }
}

impl LibraryPage {
    /// Returns true if the account has nothing yet.
    fn is_empty(&self) -> bool {
        self.choice.is_wide() && self.bought_count == 0 && self.read_count == 0
    }

    /// Returns the command that fetches a dataset.
    fn pull(&self, dataset: &LibraryDataset) -> String {
        let (slug, version) = (&dataset.slug, dataset.version);
        format!("sluice pull {slug} --version {version} --server {}", self.chrome.base)
    }

    /// Returns true if the choice has nothing.
    fn finds_nothing(&self) -> bool {
        self.bought.is_empty() && self.read.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_choice_says_only_what_was_chosen() {
        let mut choice = LibraryChoice::default();
        assert_eq!(choice.address(&[]), "/console/library");
        choice.q = "a&b".to_owned();
        choice.sort = "title".to_owned();
        assert_eq!(
            choice.address(&[("item", "unit:1"), ("page", "")]),
            "/console/library?q=a%26b&sort=title&item=unit%3A1"
        );
    }
}
