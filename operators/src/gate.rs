//! The traits of operators.
//!
//! Invariant: an operator answers for every row it receives and changes none of them.

use std::borrow::Cow;
use std::fmt::{self, Debug};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use types::Batch;

use crate::Verdicts;

/// The name of an operator in reasons, tallies and whatever is made of them. A message of another build may have a name
/// that is none of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GateName(Cow<'static, str>);

impl GateName {
    /// Asks if a line of an upload is a record at all. It comes before the chain, and a batch does not pass it.
    pub const DECODE: Self = Self::new("decode");
    /// The first of the chain.
    pub const CONTRACT: Self = Self::new("contract");
    /// The gate of duplicates.
    pub const DEDUP: Self = Self::new("dedup");
    /// The gate of personal data.
    pub const PERSONAL_DATA: Self = Self::new("personal-data");
    /// The last of the chain, where a model is asked.
    pub const SCREEN: Self = Self::new("screen");

    /// Names an operator that is not of the standard chain.
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Returns the word on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An operator that needs only the rows: synchronous, infallible, deterministic, without I/O.
pub trait Gate: Debug + Send {
    /// Returns the name in reasons and tallies.
    fn name(&self) -> GateName;

    /// Returns one verdict per row of `rows`. The answer depends on the rows only, never on batches judged before.
    // Mutable for buffers only. State from batch to batch would make a verdict depend on the order in
    // which batches arrive, and a redelivery would get another one.
    fn judge(&mut self, rows: &Batch) -> Verdicts;
}

/// An operator that needs I/O, such as a model. If it cannot get an answer it holds the rows; it never fails.
#[async_trait]
pub trait Stage: Debug + Send + Sync {
    /// Returns the name in reasons and tallies.
    fn name(&self) -> GateName;

    /// Returns one verdict per row of `rows`.
    async fn judge(&self, rows: &Batch) -> Verdicts;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_has_its_word_on_the_wire_and_any_other_is_read_back() {
        let gates = [
            (GateName::DECODE, r#""decode""#),
            (GateName::CONTRACT, r#""contract""#),
            (GateName::DEDUP, r#""dedup""#),
            (GateName::PERSONAL_DATA, r#""personal-data""#),
            (GateName::SCREEN, r#""screen""#),
            (GateName::new("of a later build"), r#""of a later build""#),
        ];
        for (gate, word) in gates {
            assert_eq!(serde_json::to_string(&gate).unwrap(), word);
            assert_eq!(serde_json::from_str::<GateName>(word).unwrap(), gate);
        }
        let schema = GateName::json_schema(&mut schemars::generate::SchemaGenerator::default());
        assert_eq!(schema.get("type"), Some(&serde_json::json!("string")));
    }
}
