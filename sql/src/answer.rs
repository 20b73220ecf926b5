//! What a query answers.
//!
//! Invariant: every row has one value per column, in the order of the columns.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The most bytes the rows of an answer have as JSON text.
pub const MAX_ANSWER_BYTES: usize = 8 << 20;

/// The rows of a query, as they are sent on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// The columns, in the order of the SELECT; names may repeat where it takes from several tables.
    pub columns: Vec<Column>,
    /// The rows: each is a JSON array.
    pub rows: Vec<Box<RawValue>>,
    /// Whether the query has more rows than the limit.
    pub truncated: bool,
    /// The size of the rows as JSON text.
    pub bytes: u64,
}

/// A column of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type as Arrow writes it, such as `Int64` or `Timestamp(µs, "UTC")`, texts always as `Utf8`; `Json` for a field
    /// of that type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether a value can be null.
    pub nullable: bool,
}
