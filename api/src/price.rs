//! Prices in requests: text or a number in dollars, or null for the platform's default.
//!
//! Invariant: an accepted price is a whole number of cents, at least 0. 0 means free.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;
use types::money::MicroUsdc;

use crate::error::ApiError;

/// Pattern of a price as text: a whole number of cents, below a billion dollars.
pub const PATTERN: &str = r"^(0|[1-9][0-9]{0,8})(\.[0-9]{1,2})?$";
/// Greatest price in dollars.
pub(crate) const MOST_PRICE: &str = "999999999.99";
/// Pattern of a budget as text, which has at most 16 characters.
pub(crate) const BUDGET_PATTERN: &str = r"^(0|[1-9][0-9]{0,12})(\.[0-9]{1,2})?$";
/// Greatest budget in dollars, as 64 bits of micro-USDC hold it.
pub(crate) const MOST_BUDGET: &str = "9223372036854.77";

/// A price in a request, not yet checked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct PriceInput(Value);

impl PriceInput {
    /// Returns the amount; `None` for null, the platform's default.
    pub fn amount(&self) -> Result<Option<MicroUsdc>, ApiError> {
        self.amount_at("/price")
    }

    /// Returns the amount of a member with another name, whose JSON pointer is `field`; `None` for null.
    pub(crate) fn amount_at(&self, field: &'static str) -> Result<Option<MicroUsdc>, ApiError> {
        if self.0.is_null() {
            return Ok(None);
        }
        let text = amount_text(&self.0, field)?;
        // Computed from the text, so the amount is not rounded as a double would be.
        let amount: MicroUsdc = text
            .parse()
            .map_err(|_error| ApiError::invalid(field, broken_rule(&text, MOST_PRICE)))?;
        Ok(Some(amount))
    }
}

/// Returns the rule that a text breaks which is no amount, or one above `most`.
pub(crate) fn broken_rule(text: &str, most: &str) -> String {
    let (dollars, cents) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_plain = dollars == "0" || !dollars.starts_with('0');
    if digits(dollars) && digits(cents) && cents.len() <= 2 && is_plain {
        format!("must be at most {most} dollars")
    } else {
        "must be dollars from 0 on with at most two decimals, such as \"0.10\"".to_owned()
    }
}

/// Returns the text of an amount in dollars. A number is taken as it is written: 0.29 has two decimals there, and more as
/// a double.
///
/// # Errors
/// A value that is neither text nor a number; `field` is its JSON pointer.
pub(crate) fn amount_text<'a>(value: &'a Value, field: &'static str) -> Result<Cow<'a, str>, ApiError> {
    match value {
        Value::String(text) => Ok(text.as_str().into()),
        Value::Number(number) => {
            // A number such as `2.0` means whole dollars; its text is brought into the form of the
            // pattern.
            let text = number.to_string();
            Ok(text.strip_suffix(".0").map(str::to_owned).unwrap_or(text).into())
        }
        _ => Err(ApiError::invalid(field, "must be a string, a number or null")),
    }
}

impl JsonSchema for PriceInput {
    fn schema_name() -> Cow<'static, str> {
        "Price".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number", "null"],
            "pattern": PATTERN,
            "minimum": 0,
            "maximum": 999_999_999.99,
        })
    }
}

/// Returns a price as a form has it: empty for the platform's default.
pub(crate) fn typed_price(micro: Option<i64>) -> String {
    micro.map(|micro| MicroUsdc(micro).to_string()).unwrap_or_default()
}

/// Returns the price of a version of a paid project: its own, or the platform's default.
pub(crate) fn dataset_price(micro: Option<i64>) -> MicroUsdc {
    micro.map_or(pay::DEFAULT_DATASET_PRICE, MicroUsdc)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn amount(value: Value) -> Result<Option<i64>, ()> {
        let amount = PriceInput(value).amount().map_err(drop)?;
        Ok(amount.map(|amount| amount.0))
    }

    #[test]
    fn text_numbers_and_null_are_prices() {
        for (value, expected) in [
            (json!(null), None),
            (json!("0.10"), Some(100_000)),
            (json!("12"), Some(12_000_000)),
            (json!(0.29), Some(290_000)),
            (json!(3), Some(3_000_000)),
            (json!(3.0), Some(3_000_000)),
            (json!(0.01), Some(10_000)),
            (json!(0), Some(0)),
            (json!("0.00"), Some(0)),
        ] {
            assert_eq!(amount(value.clone()), Ok(expected), "{value}");
        }
    }

    #[test]
    fn the_rule_that_is_broken_is_named() {
        let form = "must be dollars from 0 on with at most two decimals, such as \"0.10\"";
        for text in [
            "",
            "1.",
            ".5",
            "007",
            "1.234",
            "-1",
            "1e3",
            "$5",
            "1,000",
            "12345678901234.567",
        ] {
            assert_eq!(broken_rule(text, MOST_PRICE), form, "{text}");
        }
        for text in ["1000000000", "1000000000.5", "99999999999999999999.99"] {
            assert_eq!(
                broken_rule(text, MOST_PRICE),
                "must be at most 999999999.99 dollars",
                "{text}"
            );
        }
    }

    #[test]
    fn the_greatest_amounts_are_amounts() {
        assert_eq!(amount(json!(MOST_PRICE)), Ok(Some(999_999_999_990_000)));
        let (above, budget) = ("9223372036854.78", MicroUsdc::parse(MOST_BUDGET, 13));
        assert_eq!((budget.is_ok(), MicroUsdc::parse(above, 13).is_ok()), (true, false));
    }

    #[test]
    fn less_than_a_cent_and_parts_of_cents_are_refused() {
        for value in [
            json!(-1),
            json!("-1"),
            json!(0.009),
            json!("0.001"),
            json!(0.1 + 0.2),
            json!(1e300),
            json!("1e2"),
            json!("free"),
            json!(""),
            json!(true),
            json!([1]),
        ] {
            assert!(amount(value.clone()).is_err(), "{value}");
        }
    }
}
