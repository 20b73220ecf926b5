//! The answer to a query.
//!
//! Invariant: every row has one value per column, in the order of the columns.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Maximum size of an answer's rows as JSON text, in bytes.
pub const MAX_ANSWER_BYTES: usize = 8 << 20;

/// Rows of a query's result, rendered as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct QueryAnswer {
    /// Columns in the order of the SELECT. Names may repeat if several tables are joined.
    pub columns: Vec<Column>,
    /// Rows, each a JSON array.
    pub rows: Vec<Box<RawValue>>,
    /// True if the query has more rows than the limit.
    pub truncated: bool,
    /// Size of the rows as JSON text, in bytes.
    pub bytes: u64,
}

/// Description of a column of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// Arrow type, such as `Int64` or `Timestamp(µs, "UTC")`. All text types are `Utf8`. `Json` for a field of that
    /// type.
    #[serde(rename = "type")]
    pub kind: String,
    /// True if values of the column can be null.
    pub nullable: bool,
}
