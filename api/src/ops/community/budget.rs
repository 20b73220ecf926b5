//! Budget of a request: dollars and cents as text or a number.
//!
//! Invariant: an accepted budget is a whole number of cents, at least 0.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use types::money::MicroUsdc;

use crate::error::ApiError;
use crate::price::{BUDGET_PATTERN, MOST_BUDGET, amount_text, broken_rule};

/// Greatest number of digits of dollars.
const MOST_DIGITS: usize = 13;

/// A budget in a request, not yet checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub(super) struct RequestBudget(Value);

impl RequestBudget {
    /// Returns the amount in micro-USDC.
    pub(super) fn amount(&self) -> Result<MicroUsdc, ApiError> {
        let text = amount_text(&self.0, "/budget")?;
        MicroUsdc::parse(&text, MOST_DIGITS)
            .map_err(|_error| ApiError::invalid("/budget", broken_rule(&text, MOST_BUDGET)))
    }
}

impl JsonSchema for RequestBudget {
    fn schema_name() -> Cow<'static, str> {
        "Budget".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number", "null"],
            "pattern": BUDGET_PATTERN,
            "maxLength": 16,
            "minimum": 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn budgets_are_whole_cents() {
        for (value, expected) in [
            (json!("0"), Some(0)),
            (json!("2.50"), Some(2_500_000)),
            (json!("2.5"), Some(2_500_000)),
            (json!(0.29), Some(290_000)),
            (json!(3.0), Some(3_000_000)),
            (json!("1234567890123.45"), Some(1_234_567_890_123_450_000)),
            (json!("9223372036855"), None),
            (json!("9999999999999.99"), None),
            (json!("12345678901234"), None),
            (json!(0.001), None),
            (json!("1."), None),
            (json!(".5"), None),
            (json!("-1"), None),
            (json!("1e3"), None),
            (json!("$5"), None),
            (json!(""), None),
            (json!(1e15), None),
            (json!([1]), None),
        ] {
            let amount = RequestBudget(value.clone()).amount().ok();
            assert_eq!(amount, expected.map(MicroUsdc), "{value}");
        }
    }
}
