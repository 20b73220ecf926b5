//! Operations that change a unit: its price, and its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Chain, PriceChanged, Unit, UnitRetired};

use super::view::{UnitView, is_locked};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::wire::WireInstant;
use crate::codes::ErrorCode;
use crate::error::{ApiError, whole_seconds};
use crate::ops::knowledge::fields::UnitPath;
use crate::price::PriceInput;
use crate::rules::entitlement::units;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetPrice {
    /// Id of any version of the unit.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// Price in dollars: 0 is free, null the platform's default.
    price: PriceInput,
}

/// The price of a unit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Priced")]
#[serde(rename_all = "camelCase")]
pub(super) struct PricedUnit {
    /// Id of the version that was named.
    id: String,
    /// Id of the unit.
    chain_id: String,
    /// Price in dollars; null is the platform's default.
    price: Option<String>,
    /// Price in micro-USDC; 0 is free.
    price_micro: i64,
    /// True if the unit must be bought.
    locked: bool,
    /// Time of the last change.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_at: Option<WireInstant>,
}

pub(super) async fn price(cx: Cx, input: SetPrice) -> Result<JsonReply<PricedUnit>, ApiError> {
    let unit = units::own(&cx, &input.id).await?;
    let price = input.price.amount()?.map(|price| price.0);
    let window = cx.app.limits.price_change_window.0;
    let knowledge = cx.app.store.knowledge();
    let (Priced::Done(chain) | Priced::Stale(chain)) =
        priced(knowledge.price(unit.chain.id, price, cx.now, window).await?)?;
    let shown = units::price_of(chain.price_micro);
    Ok(JsonReply::ok(PricedUnit {
        id: unit.id.to_string(),
        chain_id: chain.id.to_string(),
        price: chain.price_micro.map(|_| shown.to_string()),
        price_micro: shown.0,
        locked: is_locked(chain.price_micro),
        changed_at: chain.price_changed_at.map(Into::into),
    }))
}

/// Outcome of a change of the price of a unit. A form changes it only if the price that was seen is still in force.
pub(super) enum Priced {
    /// The unit has the price.
    Done(Box<Chain>),
    /// It has another price by now, here as it is; nothing changed.
    Stale(Box<Chain>),
}

/// Sets the price of a unit of the caller's operator whose price was `seen`.
pub(super) async fn price_from(
    cx: &Cx,
    unit: &Unit,
    seen: Option<i64>,
    price: Option<i64>,
) -> Result<Priced, ApiError> {
    let window = cx.app.limits.price_change_window.0;
    let knowledge = cx.app.store.knowledge();
    priced(knowledge.price_from(unit.chain.id, seen, price, cx.now, window).await?)
}

fn priced(changed: PriceChanged) -> Result<Priced, ApiError> {
    match changed {
        PriceChanged::Changed(chain) => Ok(Priced::Done(chain)),
        PriceChanged::Stale(chain) => Ok(Priced::Stale(chain)),
        PriceChanged::TooSoon { retry_after } => {
            let seconds = whole_seconds(retry_after);
            let message = "the price of a unit changes once a day";
            Err(ApiError::limited(ErrorCode::PriceChanged, message, seconds))
        }
        PriceChanged::NotPublished => Err(not_published(
            "the unit is retired or taken down, or nothing of it is published or in work",
        )),
    }
}

pub(super) async fn retire(cx: Cx, input: UnitPath) -> Result<JsonReply<UnitView>, ApiError> {
    let unit = units::own(&cx, &input.id).await?;
    retire_unit(&cx, &unit).await?;
    // Read again, since the answer has the time of the retirement.
    let unit = units::own(&cx, &input.id).await?;
    Ok(JsonReply::ok(UnitView::of(&cx, unit, 0).await?))
}

/// Retires a unit of the caller's operator by its latest version.
pub(super) async fn retire_unit(cx: &Cx, unit: &Unit) -> Result<(), ApiError> {
    let retired = cx.app.store.knowledge().retire(unit.chain.id, unit.id, cx.now).await?;
    match retired {
        UnitRetired::Retired => Ok(()),
        UnitRetired::NotLatest { latest } => Err(not_latest(&latest.to_string())),
        UnitRetired::NotPublished => Err(not_published("the version is not published")),
    }
}

/// Returns the 409 for a version that is not the latest.
pub(super) fn not_latest(latest: &str) -> ApiError {
    ApiError::new(ErrorCode::NotLatest, "another version of the unit is the latest").field("latest", latest)
}

/// Returns the 409 for a unit without a published version.
pub(super) fn not_published(message: &str) -> ApiError {
    ApiError::new(ErrorCode::NotPublished, message)
}
