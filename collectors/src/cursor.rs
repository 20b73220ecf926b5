//! Place in a source, as it is stored between runs.
//!
//! Invariant: a cursor belongs to one definition. After a change of the definition the source is read anew.

use serde::{Deserialize, Serialize};

/// Place in a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cursor {
    /// Fingerprint of the definition.
    pub(crate) definition: String,
    /// Entity tag of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    /// `Last-Modified` of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_modified: Option<String>,
    /// SHA-256 of the content of all pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) content_sha256: Option<String>,
    /// Latest version of a Delta table that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delta_version: Option<u64>,
    /// Id of that table, as its first commit has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delta_table: Option<String>,
}

impl Cursor {
    /// Parses a stored cursor of this definition; `None` for that of another, and for what cannot be read.
    pub(crate) fn parse(text: Option<&str>, definition: &str) -> Option<Self> {
        let cursor: Self = serde_json::from_str(text?).ok()?;
        // With another mapping or address the same answer gives other records, so an unchanged source
        // must not be taken for a finished one.
        (cursor.definition == definition).then_some(cursor)
    }

    /// Returns the text to store.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
