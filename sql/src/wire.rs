//! Messages between the caller and a child, over their socket.
//!
//! Invariant: after a [`ChildQuery`] the caller sends the file descriptors of the parts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use types::{Contract, Proof, Timestamp};

use crate::{MAX_ANSWER_BYTES, QueryAnswer, Refusal};

/// Version of the protocol. Both sides must be of the same build.
pub(crate) const PROTOCOL: &str = concat!("sluice-sql-1 ", env!("CARGO_PKG_VERSION"));
/// Maximum length of a frame from a child in bytes: the rows of an answer, and its columns.
pub(crate) const MAX_FRAME_BYTES: usize = MAX_ANSWER_BYTES + (4 << 20);

/// The query, sent to a ready child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ChildQuery {
    pub(crate) contract: Arc<Contract>,
    pub(crate) sql: String,
    pub(crate) limit: u32,
    /// True if each run must give the rows in the same order.
    pub(crate) is_steady: bool,
    /// True if the answer must have the reasons why it may be another one the next time.
    pub(crate) wants_reasons: bool,
    /// True if the table has [`types::contract::PLACE_COLUMNS`].
    pub(crate) has_places: bool,
    /// Time that `now()` returns in the statement.
    pub(crate) now: Timestamp,
    /// Row count and proof of each part, in the order of their descriptors.
    pub(crate) parts: Vec<(u64, Arc<Proof>)>,
}

/// Message from a child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ChildReply {
    /// The rows of the result.
    Answer(QueryAnswer),
    Refused {
        what: String,
        rule: String,
    },
    Failed(String),
    /// A part could not be read.
    Unreadable(String),
    /// A part differs from its proof.
    Damaged(String),
    TooLarge,
    OutOfMemory,
}

impl From<Refusal> for ChildReply {
    fn from(refusal: Refusal) -> Self {
        Self::Refused {
            what: refusal.what,
            rule: refusal.rule,
        }
    }
}
