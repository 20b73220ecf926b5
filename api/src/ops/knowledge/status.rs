//! Operation that returns an own unit.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::view::UnitView;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::rules::entitlement::units;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UnitStatusInput {
    /// Id of the version.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// Seconds to wait for the outcome.
    #[serde(default)]
    #[schemars(range(min = 0, max = 20))]
    wait: u32,
    /// Characters of the text to skip.
    #[serde(default)]
    #[schemars(range(min = 0, max = 50_000))]
    offset: u64,
}

pub(super) async fn status(cx: Cx, input: UnitStatusInput) -> Result<JsonReply<UnitView>, ApiError> {
    let mut unit = units::own(&cx, &input.id).await?;
    // A decided version is answered at once, whatever `wait` is.
    if input.wait > 0 && unit.status.is_open() {
        let wait = Duration::from_secs(input.wait.into());
        if let Some(later) = cx.app.waiters.unit(&cx.app.store, unit.id, wait).await? {
            unit = later;
        }
    }
    Ok(JsonReply::ok(UnitView::of(&cx, unit, input.offset).await?))
}
