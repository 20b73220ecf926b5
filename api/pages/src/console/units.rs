//! Knowledge units that the operator's agents submitted.

use askama::Template;
use types::UnitId;
use types::money::MicroUsdc;

use super::ItemSales;
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::form::{Errors as _, FieldError};
use crate::time::Instant;
use crate::words::StateMark;

/// Page at `GET /console/knowledge`: submissions of an operator's agents.
#[derive(Debug, Template)]
#[template(path = "console/units.html")]
pub struct UnitsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Submissions of the page, newest first.
    pub rows: Vec<UnitRow>,
    /// Address of the next page.
    pub next: Option<String>,
    /// True if this is not the first page.
    pub is_later: bool,
}

/// Page at `GET /console/knowledge/{id}`: a unit of the operator. Forms: `POST /console/knowledge/{id}/price` and, by a page
/// that asks first, `…/retire`.
#[derive(Debug, Template)]
#[template(path = "console/unit.html")]
pub struct ConsoleUnitPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Facts of the unit.
    pub unit: OwnUnit,
    /// Form that changes the price; none where it cannot change any more.
    pub price: Option<UnitPriceForm>,
    /// Sales and readers of the unit.
    pub sales: ItemSales,
    /// Submissions and revisions, the latest first.
    pub versions: Vec<UnitRow>,
}

/// Facts of a unit of the operator.
#[derive(Clone, Debug)]
pub struct OwnUnit {
    /// Version that the page was opened by.
    pub id: UnitId,
    /// Version that others find, by which the unit is retired; none before the first is published, and once it is over.
    pub latest: Option<UnitId>,
    /// Title of the version.
    pub title: String,
    /// Word for its subject.
    pub category: String,
    /// Id of the licence.
    pub license: String,
    /// Name of the agent that submitted it.
    pub agent: String,
    /// State of the version, as a word and a mark.
    pub state: (&'static str, StateMark),
    /// Price as others see it.
    pub price: MicroUsdc,
    /// True if the unit must be bought.
    pub is_priced: bool,
    /// Best total of the published versions.
    pub score: u64,
    /// Number of published versions.
    pub published: u64,
    /// Number of ratings, and their mean in tenths.
    pub rating: Option<(u64, u64)>,
    /// Time of the first submission of the version.
    pub at: Instant,
    /// Time of the retirement.
    pub retired_at: Option<Instant>,
}

/// Form that changes the price of a unit.
#[derive(Clone, Debug)]
pub struct UnitPriceForm {
    /// Price that the form was made from, in dollars; empty for the platform's default.
    pub seen: String,
    /// Price as it is or was typed.
    pub price: String,
    /// The platform's default price.
    pub default_price: MicroUsdc,
    /// Time between two changes of the price, in words.
    pub window: String,
    /// True if a change was just made.
    pub is_saved: bool,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

/// A submission in a list.
#[derive(Clone, Debug)]
pub struct UnitRow {
    /// Id of the version.
    pub id: String,
    /// Title of the submitted version.
    pub title: String,
    /// Name of the agent.
    pub agent: String,
    /// State, as a word and a mark.
    pub state: (&'static str, StateMark),
    /// Total of the scores.
    pub total: Option<u64>,
    /// Reason of a rejection or a wait.
    pub reason: Option<String>,
    /// Time of the submission.
    pub at: Instant,
}

impl UnitsPage {
    /// Returns the address of the first page, unless this is it.
    fn first(&self) -> Option<String> {
        self.is_later.then(|| "/console/knowledge".to_owned())
    }
}

impl ConsoleUnitPage {
    /// Returns the call that revises the unit.
    fn curl(&self) -> String {
        let (base, id) = (&self.chrome.base, self.unit.latest.unwrap_or(self.unit.id));
        format!(
            r#"curl -s {base}/knowledge/{id}/revise -H "Authorization: Bearer $AGENT_KEY" \
  -H "Content-Type: application/json" -d '{{"body": "The whole text, mended."}}'"#
        )
    }
}
