//! Limits on what an agent or an app spends, as a form.

use askama::Template;

use crate::chrome::{PageLayout, Theme};
use crate::form::{Errors as _, FieldError};
use crate::spend::{SpendLine, SpendOwnerName};

/// Limits as they are typed, in dollars; an empty text is none.
#[derive(Clone, Debug, Default)]
pub struct LimitsForm {
    /// Greatest price of a purchase.
    pub per_purchase: String,
    /// Most of a day.
    pub per_day: String,
    /// Most of a month.
    pub per_month: String,
    /// Price above which the person is asked.
    pub approve_above: String,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

impl LimitsForm {
    /// Returns the form with the limits as they are.
    pub fn of(line: &SpendLine) -> Self {
        let text = |limit: Option<types::money::MicroUsdc>| limit.map(|limit| limit.to_string()).unwrap_or_default();
        Self {
            per_purchase: text(line.per_purchase),
            per_day: text(line.per_day),
            per_month: text(line.per_month),
            approve_above: text(line.approve_above),
            errors: Vec::new(),
        }
    }
}

/// Page at `GET /console/agents/{id}/limits` and `GET /console/apps/{id}/limits`, with a form to `POST` at the same address:
/// `per_purchase`, `per_day`, `per_month`, `approve_above`.
#[derive(Debug, Template)]
#[template(path = "console/limits.html")]
pub struct LimitsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Owner of the limits.
    pub owner: SpendOwnerName,
    /// Limits now, and what was spent.
    pub line: SpendLine,
    /// The form.
    pub form: LimitsForm,
}
