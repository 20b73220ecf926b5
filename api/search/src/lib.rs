//! The search over published units and public datasets: an index of words and of their parts, and one of vectors.
//!
//! Invariant: the index holds no truth. It is built from documents that the caller reads elsewhere, and the caller
//! checks each hit there before it shows it. A document that is removed is in no later answer. An index on disk is one
//! that can be thrown away.

mod document;
mod facets;
mod folder;
mod index;
mod kept_facts;
mod parts;
mod query;
mod ranking;
mod schema;

pub use document::{Document, DocumentFacts, DocumentKey, Price, Standing};
pub use facets::{Facet, FacetCount, MaxAge, SearchFilter};
pub use index::{Index, MissingVector, SearchResult};
pub use query::{SearchMode, SearchOrder, SearchQuery};

/// The id of the order of hits that words and their parts give, without vectors.
pub const LEXICAL_RANKING_ID: &str = "words-1";

/// Failure of the index or of one of its threads.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The index of words failed.
    #[error("the index of words failed")]
    Words(#[from] tantivy::TantivyError),
    /// The folder of the index cannot be written or read.
    #[error("the folder of the index cannot be used")]
    Folder(#[from] std::io::Error),
    /// The folder holds an index that cannot be used, so it must be built anew.
    #[error("the index on disk cannot be used: {0}")]
    Unusable(&'static str),
    /// A thread of the index ended early.
    #[error("a thread of the index ended early")]
    Stopped,
}

impl types::Classify for Error {
    fn kind(&self) -> types::Kind {
        types::Kind::Internal
    }

    fn retry(&self) -> types::Retry {
        types::Retry::Never
    }
}
