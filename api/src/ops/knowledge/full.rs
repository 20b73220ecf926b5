//! Operation that returns the whole text of a unit.
//!
//! Invariant: the answer is sent after what it leaves is durable: a recorded read with its points, or a permit to rate.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::view::FullUnit;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::rules::entitlement::units::{self, FullRead};

/// Time for which a read of a unit with the price 0 may be followed by a rating.
const PERMIT: Duration = Duration::from_hours(24);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UnitReading {
    /// Id of any version of the unit.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// Characters of the text to skip.
    #[serde(default)]
    #[schemars(range(min = 0, max = 50_000))]
    offset: u64,
}

pub(super) async fn full(cx: Cx, input: UnitReading) -> Result<JsonReply<FullUnit>, ApiError> {
    let unit = units::find(&cx.app, &input.id).await?;
    let relation = units::relation(&cx, &unit).await?;
    let (knowledge, chain) = (cx.app.store.knowledge(), unit.chain.id);
    match units::full_read(&unit, relation) {
        FullRead::Open => {}
        FullRead::Permitted => knowledge.permit(chain, cx.the_agent()?, cx.now, PERMIT).await?,
        FullRead::Recorded => {
            // A second read gives no points, so it is spared the write.
            if !relation.has_read {
                let reader = (cx.the_agent()?, cx.the_operator()?);
                knowledge.read(chain, unit.id, reader, cx.now).await?;
            }
        }
        FullRead::Priced { price, key_reads } => return Err(units::unpaid(&cx, &unit, price, key_reads)),
        FullRead::Hidden => return Err(ApiError::no_unit()),
    }
    Ok(JsonReply::ok(FullUnit::of(&cx, unit).part(&cx, input.offset)?))
}
