//! Receipts of queries: signed statements of what a statement in SQL answered over a version.
//!
//! Invariant: a receipt names no caller and does not end, so whoever has it can check it.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use types::{DatasetId, Timestamp, Version, canonical};

use crate::codes::coded;
use crate::statement::Statement;
use crate::{Error, Root, time};

/// The answer to a query as a service signs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueryReceipt {
    /// The version of the format.
    pub format: QueryReceiptFormat,
    /// The id of the dataset.
    #[schemars(with = "String")]
    pub dataset: DatasetId,
    /// The slug of the project.
    pub slug: String,
    /// The version that was queried; 0 before the first merge.
    #[schemars(with = "u64")]
    pub version: Version,
    /// The content root of the version: 64 hexadecimal digits.
    #[schemars(with = "String")]
    pub root: Root,
    /// The statement.
    pub sql: String,
    /// Greatest number of rows of the statement.
    pub limit: u32,
    /// Number of these rows before the first of the answer; absent if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: u32,
    /// Number of these rows before the first that did not fit into the answer; absent if all did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u32>,
    /// Time that `now()` returned in the statement: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub now: Timestamp,
    /// The program that answered: 16 hexadecimal digits of the SHA-256 of its file.
    #[schemars(with = "String")]
    pub build: BuildId,
    /// Number of rows in the answer.
    pub row_count: u64,
    /// The SHA-256 of the canonical JSON of `{columns, rows, truncated}` as answered: 64 hexadecimal digits.
    #[schemars(with = "String")]
    pub answer: AnswerHash,
    /// True if the same program gives the same answer again.
    pub reproducible: bool,
    /// Reasons why not, such as `order`; empty if it does.
    pub why: Vec<String>,
    /// Time of signing: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub issued_at: Timestamp,
}

/// The version of the format of a query receipt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QueryReceiptFormat {
    /// The first version of the format.
    #[default]
    #[serde(rename = "sluice-query-1")]
    V1,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Statement for QueryReceipt {
    const NAME: &'static str = "query receipt";
    const FORMAT: &'static str = "sluice-query-1";

    fn issued_at(&self) -> Timestamp {
        self.issued_at
    }

    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if self.reproducible != self.why.is_empty() {
            return Err(("/reproducible", "does not agree with `why`"));
        }
        let rows = u32::try_from(self.row_count).ok();
        let end = rows.and_then(|rows| self.offset.checked_add(rows));
        if self.next_offset.is_some() && self.next_offset != end {
            return Err(("/nextOffset", "is not `offset` plus `rowCount`"));
        }
        Ok(())
    }
}

/// The first 8 bytes of the SHA-256 of a program's file, as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BuildId([u8; 8]);

coded!(BuildId, data_encoding::HEXLOWER, "16 lower-case hexadecimal digits");

impl BuildId {
    /// Returns the id of the program whose file has this SHA-256.
    pub fn of_sha256(sha256: &[u8; 32]) -> Self {
        let mut id = [0; 8];
        id.copy_from_slice(&sha256[..8]);
        Self(id)
    }
}

/// The SHA-256 of an answer as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AnswerHash([u8; 32]);

coded!(AnswerHash, data_encoding::HEXLOWER, "64 lower-case hexadecimal digits");

impl AnswerHash {
    /// Creates a hash from its bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Hashes the canonical JSON of `{columns, rows, truncated}`.
    ///
    /// # Errors
    /// A row that is not strict JSON.
    pub fn of<'a>(
        columns: &Value,
        rows: impl IntoIterator<Item = &'a RawValue>,
        truncated: bool,
    ) -> Result<Self, Error> {
        let mut hasher = Sha256::new();
        let mut text = Vec::new();
        // The names of the members ascend, so the text is canonical.
        text.extend_from_slice(b"{\"columns\":");
        canonical::write_value(&mut text, columns);
        text.extend_from_slice(b",\"rows\":[");
        for (index, row) in rows.into_iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            let row = types::json::parse(row.get().as_bytes()).map_err(|error| Error::Malformed {
                what: "answer",
                path: row_path(index, &error.path),
                problem: error.problem,
            })?;
            canonical::write_value(&mut text, &row);
            // One row is in memory at a time.
            hasher.update(&text);
            text.clear();
        }
        text.extend_from_slice(b"],\"truncated\":");
        canonical::write_value(&mut text, &Value::Bool(truncated));
        text.push(b'}');
        hasher.update(&text);
        Ok(Self(hasher.finalize().into()))
    }
}

fn row_path(index: usize, within: &str) -> String {
    let mut path = String::from("/rows/");
    // Writing to a text cannot fail.
    write!(path, "{index}{within}").ok();
    path
}

#[cfg(test)]
mod tests;
