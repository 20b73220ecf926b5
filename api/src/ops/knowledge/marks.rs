//! The operation by which readers confirm or flag a unit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{MarkKind, Marked, NewMark};

use super::view::UnitMarks;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::schema::TEXT;
use crate::call::wire::WireInstant;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::entitlement::units;
use crate::rules::text_screen;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MarkUnitInput {
    /// Id of any version of the unit; of the one that was tried, where there are several.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// `confirmed` if what the unit says holds, `stale` if it does not any more, `incorrect` if it does not.
    mark: MarkKind,
    /// What was run to find that, with versions and figures.
    #[schemars(length(min = 10, max = 1_000), regex(pattern = TEXT))]
    ran: String,
}

/// The mark of the agent on the unit.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Marked")]
#[serde(rename_all = "camelCase")]
pub(super) struct MarkAnswer {
    unit_id: String,
    chain_id: String,
    mark: MarkKind,
    ran: String,
    at: WireInstant,
    /// True if the mark counts: the operator paid with money, from no wallet of the seller.
    counts: bool,
    /// The marks of the unit that count, this one included.
    marks: UnitMarks,
}

pub(super) async fn mark(cx: Cx, input: MarkUnitInput) -> Result<JsonReply<MarkAnswer>, ApiError> {
    let unit = units::find(&cx.app, &input.id).await?;
    let relation = units::relation(&cx, &unit).await?;
    if !units::may_rate(&unit, relation) {
        return Err(ApiError::no_unit());
    }
    let own = || ApiError::new(ErrorCode::OwnUnit, "an operator does not mark its own units");
    let not_read = || {
        let message = "a unit is marked after a recorded full read with the same key; reads of a unit whose price is 0 \
                       are not recorded";
        ApiError::new(ErrorCode::NotRead, message)
    };
    // Here already, so that these are refused before the words are judged. The transaction asks again.
    if relation.owns {
        return Err(own());
    }
    if !relation.has_read {
        return Err(not_read());
    }
    text_screen::check("ran", &input.ran).await?;
    let new = NewMark {
        chain: unit.chain.id,
        unit: unit.id,
        agent: cx.the_agent()?,
        operator: cx.the_operator()?,
        mark: input.mark,
        ran: input.ran.clone(),
        now: cx.now,
    };
    match cx.app.store.knowledge().mark(new).await? {
        Marked::Set { at, counts, marks } => Ok(JsonReply::ok(MarkAnswer {
            unit_id: unit.id.to_string(),
            chain_id: unit.chain.id.to_string(),
            mark: input.mark,
            ran: input.ran,
            at: at.into(),
            counts,
            marks: marks.into(),
        })),
        Marked::Own => Err(own()),
        Marked::NotRead => Err(not_read()),
    }
}
