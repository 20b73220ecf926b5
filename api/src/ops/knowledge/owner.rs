//! The page of an own unit in the console: its sales, its price, and its end.
//!
//! Invariants:
//! - A unit of another operator is answered like a missing one.
//! - A price is changed from the one that the form was made from; if somebody else changed it meanwhile, nothing is changed.

use pages::console::{ConsoleUnitPage, OwnUnit, UnitPriceForm, UnitRow};
use pages::{ConfirmPage, FieldError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use store::{ItemKind, ItemOfSeller, Unit};
use types::money::MicroUsdc;

use super::change::{self, Priced};
use super::page::{LIST, state, version_state};
use super::view::is_locked;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{Effect, Spec};
use crate::call::view::PageResponse;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::console::sales_of_item;
use crate::ops::page_kit::{form, form_page, instant, page, page_layout, repairable, sentence};
use crate::price::{PriceInput, typed_price};
use crate::rules::entitlement::units::{self, ShownStatus};
use crate::spans::hours;

/// Versions on the page.
const SHOWN: u32 = 50;

pub(super) fn add(table: &mut Operations) {
    table.add(
        page("own_unit_page", "/console/knowledge/{id}", "An own unit"),
        &[],
        show,
    );
    table.add(
        form(
            "unit_price_form",
            "/console/knowledge/{id}/price",
            "Change the price of an own unit",
        ),
        &[],
        set_price,
    );
    let path = "/console/knowledge/{id}/retire";
    table.add(
        page("retire_unit_page", path, "Asks before a unit is retired"),
        &[],
        ask_to_retire,
    );
    let retire_form = Spec {
        effect: Effect::Destroy,
        ..form("retire_unit_form", path, "Retire an own unit for good")
    };
    table.add(retire_form, &[], retire);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OwnUnitQuery {
    /// Id of any version of the unit.
    #[schemars(length(max = 64))]
    id: String,
    /// True after a change was saved.
    #[serde(default)]
    saved: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OwnUnitPath {
    /// Id of any version of the unit.
    #[schemars(length(max = 64))]
    id: String,
}

async fn show(cx: Cx, input: OwnUnitQuery) -> Result<PageResponse, ApiError> {
    let unit = units::own(&cx, &input.id).await?;
    let mut page = unit_page(&cx, unit).await?;
    if let Some(form) = &mut page.price {
        form.is_saved = input.saved;
    }
    PageResponse::page(&page)
}

/// Returns the page of an own unit as it is now.
async fn unit_page(cx: &Cx, unit: Unit) -> Result<ConsoleUnitPage, ApiError> {
    let chain = unit.chain.id.to_string();
    let sold = ItemOfSeller {
        kind: ItemKind::Unit,
        item: &chain,
        seller: unit.chain.operator,
    };
    let sales = sales_of_item(cx, sold, is_locked(unit.chain.price_micro), unit.chain.readers).await?;
    let versions = cx.app.store.knowledge().versions(unit.chain.id, SHOWN).await?;
    let versions = versions.into_iter().map(|line| UnitRow {
        id: line.id.to_string(),
        title: String::new(),
        agent: String::new(),
        state: version_state(line.status),
        total: line.total.map(Into::into),
        reason: None,
        at: instant(line.submitted_at),
    });
    let latest = retirable(&unit);
    let is_in_work = matches!(ShownStatus::of(&unit), ShownStatus::Queued | ShownStatus::Waiting);
    let count = unit.chain.rating_count;
    Ok(ConsoleUnitPage {
        chrome: page_layout(cx).await?,
        price: (!is_over(&unit) && (unit.chain.latest.is_some() || is_in_work)).then(|| UnitPriceForm {
            seen: typed_price(unit.chain.price_micro),
            price: typed_price(unit.chain.price_micro),
            default_price: units::price_of(None),
            window: hours(cx.app.limits.price_change_window.hours()),
            is_saved: false,
            errors: Vec::new(),
        }),
        sales,
        versions: versions.collect(),
        unit: OwnUnit {
            id: unit.id,
            latest,
            state: state(ShownStatus::of(&unit)),
            price: units::price_of(unit.chain.price_micro),
            is_priced: unit.chain.price_micro.is_some(),
            score: unit.chain.best_score.into(),
            published: unit.chain.versions.into(),
            rating: (count > 0).then(|| (count, unit.chain.rating_sum * 10 / count)),
            at: instant(unit.submitted_at),
            retired_at: unit.chain.retired_at.map(instant),
            title: unit.title,
            category: unit.category,
            license: unit.chain.license,
            agent: unit.agent_name,
        },
    })
}

/// Returns the version by which a unit is retired; `None` for one that cannot be.
fn retirable(unit: &Unit) -> Option<types::UnitId> {
    unit.chain.latest.filter(|_| !is_over(unit))
}

/// Returns true for a unit that is retired or taken down.
const fn is_over(unit: &Unit) -> bool {
    unit.chain.retired_at.is_some() || unit.chain.taken_down.is_some()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UnitPriceInput {
    /// Id of any version of the unit.
    #[schemars(length(max = 64))]
    id: String,
    /// Price that the form was made from.
    #[serde(default)]
    #[schemars(length(max = 40))]
    seen: String,
    /// Price in dollars; empty for the platform's default.
    #[serde(default)]
    #[schemars(length(max = 40))]
    price: String,
}

/// Returns the amount of a text in dollars; `None` for an empty one.
fn amount(text: &str) -> Result<Option<i64>, ApiError> {
    let text = text.trim();
    // People write the sign, too.
    let text = text.strip_prefix('$').unwrap_or(text);
    let value = if text.is_empty() {
        Value::Null
    } else {
        Value::from(text)
    };
    let price: PriceInput = serde_json::from_value(value).map_err(ApiError::internal)?;
    Ok(price.amount()?.map(|price| price.0))
}

async fn set_price(cx: Cx, input: UnitPriceInput) -> Result<PageResponse, ApiError> {
    let unit = units::own(&cx, &input.id).await?;
    // What nobody typed is of the form itself.
    let seen = amount(&input.seen).unwrap_or(unit.chain.price_micro);
    let changed = match amount(&input.price) {
        Ok(price) => change::price_from(&cx, &unit, seen, price).await,
        Err(error) => Err(error),
    };
    let (seen, errors) = match changed {
        Ok(Priced::Done(_)) => return PageResponse::see(&format!("{LIST}/{}?saved=true#edit", unit.id)),
        Ok(Priced::Stale(now)) => {
            let price = match now.price_micro {
                Some(micro) => format!("${}", MicroUsdc(micro)),
                None => "the default".to_owned(),
            };
            let message = format!(
                "The price was changed in another window or by an agent: it is {price} now. Save again to change it."
            );
            (typed_price(now.price_micro), vec![FieldError::new("price", message)])
        }
        // A page of its own would lose what was typed.
        Err(error) if error.code() == ErrorCode::PriceChanged => {
            (input.seen, vec![FieldError::new("price", sentence(error.message()))])
        }
        Err(error) => (input.seen, repairable(error)?),
    };
    let mut page = unit_page(&cx, unit).await?;
    // Without a form the unit ended meanwhile, and the page says so.
    if let Some(form) = &mut page.price {
        (form.seen, form.price, form.errors) = (seen, input.price, errors);
    }
    form_page(&page, true)
}

async fn ask_to_retire(cx: Cx, input: OwnUnitPath) -> Result<PageResponse, ApiError> {
    let unit = units::own(&cx, &input.id).await?;
    let back = format!("{LIST}/{}", unit.id);
    if retirable(&unit).is_none() {
        return PageResponse::see(&back);
    }
    PageResponse::page(&ConfirmPage {
        chrome: page_layout(&cx).await?,
        title: "Retire this write-up?".to_owned(),
        explanation: format!(
            "{} is neither found nor sold any more. Who read or bought it keeps reading it. A revision in review ends, too. \
             There is no undo.",
            pages::isolate(&unit.title)
        ),
        action: format!("{LIST}/{}/retire", unit.id),
        fields: Vec::new(),
        label: "Retire it for good".to_owned(),
        danger: true,
        back,
    })
}

async fn retire(cx: Cx, input: OwnUnitPath) -> Result<PageResponse, ApiError> {
    let unit = units::own(&cx, &input.id).await?;
    // A form that is sent twice finds it retired.
    if let Some(latest) = retirable(&unit) {
        let latest = units::own(&cx, &latest.to_string()).await?;
        change::retire_unit(&cx, &latest).await?;
    }
    PageResponse::see(&format!("{LIST}/{}", unit.id))
}

#[cfg(test)]
mod tests;
