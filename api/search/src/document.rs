//! Documents of the search, and the facts by which they are filtered.

use types::Timestamp;
use types::vocabulary::{ItemKind, Language};

/// The name of a document: the chain of a unit, or the id of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentKey {
    /// Kind of the item.
    pub kind: ItemKind,
    /// Id of the item.
    pub id: String,
}

impl DocumentKey {
    /// Returns the key as one term.
    pub(crate) fn term(&self) -> String {
        format!("{}:{}", self.kind.as_str(), self.id)
    }
}

/// The price of an item, as far as searches tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Price {
    /// Item that anybody reads for nothing.
    Free,
    /// Free with a key.
    WithKey,
    /// Item that must be bought.
    Priced,
}

impl Price {
    /// Returns `free`, `key` or `priced`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::WithKey => "key",
            Self::Priced => "priced",
        }
    }
}

/// The standing of an item with its readers, by which it ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Nothing speaks against it.
    #[default]
    Trusted,
    /// Its seller is new: too few readers have confirmed what it sells.
    NewSeller,
    /// Its text is near to that of a unit that was published before.
    Near,
    /// At least as many readers flag it as confirm it.
    Doubted,
}

impl Standing {
    const ALL: [Self; 4] = [Self::Trusted, Self::NewSeller, Self::Near, Self::Doubted];

    /// Returns the word that an index keeps.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::NewSeller => "new_seller",
            Self::Near => "near",
            Self::Doubted => "doubted",
        }
    }

    /// Returns the standing of a word, if it is one.
    pub(crate) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standing| standing.as_str() == word)
    }

    /// Returns the factor of the score of a hit, more than 0 and at most 1.
    // Of reciprocal ranks from 61 on, the first comes behind 15, 40 and 61 others of its like: below them, and still above
    // what fits the query less.
    pub(crate) const fn weight(self) -> f32 {
        match self {
            Self::Trusted => 1.0,
            Self::NewSeller => 0.8,
            Self::Near => 0.6,
            Self::Doubted => 0.5,
        }
    }
}

/// Facts about an item, by which it is filtered and ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentFacts {
    /// Category of a unit.
    pub category: Option<String>,
    /// Identifier of the licence.
    pub license: String,
    /// Language of a unit.
    pub language: Option<Language>,
    /// Tags of a dataset.
    pub tags: Vec<String>,
    /// Price class, by which searches are filtered.
    pub price: Price,
    /// Price in micro-USDC, by which searches can be ordered; 0 is free.
    pub price_micro: i64,
    /// True if it is sold for given credits too.
    pub trial_sale: bool,
    /// Time of the publication of a unit, or of the last merge of a dataset.
    pub published_at: Timestamp,
    /// Total of the scores of a unit, else 0.
    pub score: u32,
    /// Standing of a unit with its readers.
    pub standing: Standing,
}

/// An item with the texts that are searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Name of the document, unique in an index.
    pub key: DocumentKey,
    /// Title of the unit or dataset.
    pub title: String,
    /// Category, tags, slug and names of columns.
    pub terms: Vec<String>,
    /// Body of a unit, or readme of a dataset.
    pub body: String,
    /// Declared source of a unit.
    pub source: String,
    /// Facts by which the document is filtered and ordered.
    pub facts: DocumentFacts,
}
