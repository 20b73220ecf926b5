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
    /// Reasons why the answer may be another one the next time; empty if it cannot, or if nobody asked
    /// ([`Sandbox::query_at`](crate::Sandbox::query_at)).
    pub unrepeatable: Vec<Unrepeatable>,
}

/// Reason why a statement may give another answer over the same records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Unrepeatable {
    /// It leaves the order of rows open, and the answer depends on it.
    Order,
    /// It adds doubles up, and a sum of them depends on the order of its terms.
    Double,
    /// It estimates.
    Approx,
    /// It calls a function of the system's library of mathematics.
    Library,
}

impl Unrepeatable {
    /// Returns the word for the reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Order => "order",
            Self::Double => "double",
            Self::Approx => "approx",
            Self::Library => "library",
        }
    }
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
