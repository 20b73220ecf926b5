//! Operations that submit units and revisions.
//!
//! Invariant: a 201 is sent only after the version and its outbox row are durable. Who gets no answer finds the version by
//! the idempotency key, or without one by the 409 of a second call.

use eventlog::Record;
use messages::{BASE_FORMAT, KNOWLEDGE_TOPIC, UnitSubmission, UnitText};
use operators::knowledge::normalised;
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Allowance, HourlyLimit, NewUnit, Revised, UnitStatus, UnitSubmitted};
use types::trace::Origin;
use types::{Timestamp, UnitId, fault, metric};

use super::change::{not_latest, not_published};
use super::view::UnitView;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::schema::{LINE, TEXT};
use crate::codes::ErrorCode;
use crate::error::{ApiError, whole_seconds};
use crate::licenses::License;
use crate::ops::contribute::no_more;
use crate::ops::knowledge::fields::{CATEGORY, HOUR};
use crate::price::PriceInput;
use crate::rules::entitlement::units;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SubmitUnitInput {
    /// Title in one line.
    #[schemars(length(min = 1, max = 200), regex(pattern = LINE))]
    title: String,
    /// Text: what was measured, what failed and why, or how it is done, with exact parameters.
    #[schemars(length(min = 1, max = 50_000), regex(pattern = TEXT))]
    body: String,
    /// Category; any name of this form, best one of the recommended ones.
    #[schemars(length(min = 1, max = 50), regex(pattern = CATEGORY))]
    category: String,
    /// Source: what was measured, where and when, or whose work it is.
    #[schemars(length(min = 4, max = 2_000), regex(pattern = TEXT))]
    source_declaration: String,
    /// Licence of the text; `platform-standard` where not given.
    license: Option<License>,
    /// Price in dollars: 0 is free, null the platform's default.
    price: Option<PriceInput>,
    /// True if buyers may pay with credits that they were given.
    #[serde(default)]
    trial_sale: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReviseUnitInput {
    /// Id of the latest version.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// Text: what was measured, what failed and why, or how it is done, with exact parameters.
    #[schemars(length(min = 1, max = 50_000), regex(pattern = TEXT))]
    body: String,
    /// Title in one line.
    #[schemars(length(min = 1, max = 200), regex(pattern = LINE))]
    title: Option<String>,
    /// Category; any name of this form, best one of the recommended ones.
    #[schemars(length(min = 1, max = 50), regex(pattern = CATEGORY))]
    category: Option<String>,
    /// Source: what was measured, where and when, or whose work it is.
    #[schemars(length(min = 4, max = 2_000), regex(pattern = TEXT))]
    source_declaration: Option<String>,
}

/// Texts of a version, and the terms of a first one.
struct UnitDraft {
    revises: Option<Revised>,
    title: String,
    body: String,
    category: String,
    source_declaration: String,
    license: License,
    price_micro: Option<i64>,
    trial_sale: bool,
    hourly: u32,
}

pub(super) async fn submit(cx: Cx, input: SubmitUnitInput) -> Result<JsonReply<UnitView>, ApiError> {
    let price = input.price.map(|price| price.amount()).transpose()?.flatten();
    let draft = UnitDraft {
        revises: None,
        title: input.title,
        body: input.body,
        category: input.category,
        source_declaration: input.source_declaration,
        license: input.license.unwrap_or(License::PlatformStandard),
        price_micro: price.map(|price| price.0),
        trial_sale: input.trial_sale,
        hourly: cx.app.limits.submissions_per_agent_per_hour,
    };
    acknowledge(cx, draft).await
}

pub(super) async fn revise(cx: Cx, input: ReviseUnitInput) -> Result<JsonReply<UnitView>, ApiError> {
    let unit = units::own(&cx, &input.id).await?;
    // The terms are the unit's, so the message and the row of a revision carry none.
    let draft = UnitDraft {
        revises: Some(Revised {
            chain: unit.chain.id,
            unit: unit.id,
        }),
        title: input.title.unwrap_or(unit.title),
        body: input.body,
        category: input.category.unwrap_or(unit.category),
        source_declaration: input.source_declaration.unwrap_or(unit.source_declaration),
        license: License::PlatformStandard,
        price_micro: None,
        trial_sale: false,
        hourly: cx.app.limits.revisions_per_agent_per_hour,
    };
    acknowledge(cx, draft).await
}

/// Answers for a version that an earlier call submitted.
pub(super) async fn submitted(cx: Cx, _: SubmitUnitInput, id: String) -> Result<JsonReply<UnitView>, ApiError> {
    shown(&cx, &id).await
}

/// Answers for a revision that an earlier call submitted.
pub(super) async fn revised(cx: Cx, _: ReviseUnitInput, id: String) -> Result<JsonReply<UnitView>, ApiError> {
    shown(&cx, &id).await
}

async fn shown(cx: &Cx, id: &str) -> Result<JsonReply<UnitView>, ApiError> {
    let unit = units::own(cx, id).await?;
    Ok(JsonReply::ok(UnitView::of(cx, unit, 0).await?))
}

/// Acknowledges a version and answers with it.
async fn acknowledge(cx: Cx, draft: UnitDraft) -> Result<JsonReply<UnitView>, ApiError> {
    // Refused before the text is hashed and its message made: a full service must refuse cheaply.
    if let Some(rejected) = cx.app.backlog.rejection() {
        return Err(no_more(rejected));
    }
    let hourly = HourlyLimit {
        most: draft.hourly,
        window: HOUR,
    };
    // New units and revisions have limits of their own, so that repairing a unit does not cost a
    // submission.
    let action = if draft.revises.is_some() {
        "revisions"
    } else {
        "submissions"
    };
    let (new, record) = version(&cx, draft)?;
    let allowance = Allowance {
        limit: cx.app.limits.knowledge_per_day,
        day: cx.now.day(),
    };
    let (id, bytes, is_held) = (new.id, new.submission.len(), new.held.is_some());
    match cx.app.store.knowledge().submit(new, hourly, allowance).await? {
        UnitSubmitted::Submitted => {}
        UnitSubmitted::Duplicate { unit, status } => return Err(duplicate(unit, status)),
        UnitSubmitted::NotLatest { latest } => return Err(not_latest(&latest.to_string())),
        UnitSubmitted::InValidation { unit } => return Err(in_validation(unit)),
        UnitSubmitted::NotPublished => return Err(not_published("only a published unit is revised")),
        UnitSubmitted::Hourly { until } => {
            let message = format!("more than {} {action} in an hour from this agent", hourly.most);
            return Err(ApiError::limited(
                ErrorCode::HourlyLimit,
                message,
                seconds_until(&cx, until),
            ));
        }
        UnitSubmitted::AllowanceSpent => return Err(allowance_spent(&cx)),
    }
    tracing::info!(unit = %id, "unit acknowledged");
    metrics::counter!(metric::UNITS, "state" => "acknowledged").increment(1);
    // Counted after the transaction: a version that was refused adds nothing to the log.
    cx.app.backlog.add(bytes);
    fault::point("ack.respond");
    // The sweeper appends what is held when the hold ends, and everything that this process does not.
    if !is_held {
        cx.app.relay.submit(KNOWLEDGE_TOPIC, record);
    }
    let unit = units::own(&cx, &id.to_string()).await?;
    Ok(JsonReply::created(UnitView::of(&cx, unit, 0).await?))
}

/// Returns the 409 for a text that the operator has in work or published.
pub(super) fn duplicate(unit: UnitId, status: UnitStatus) -> ApiError {
    let message = "the operator has a unit with the same text";
    ApiError::new(ErrorCode::DuplicateSubmission, message)
        .field("unitId", unit.to_string())
        .field("status", status.as_str())
}

/// Returns the 409 for a unit of which a revision is in work.
pub(super) fn in_validation(unit: UnitId) -> ApiError {
    let message = "a revision of the unit is being reviewed";
    ApiError::new(ErrorCode::RevisionInValidation, message).field("unitId", unit.to_string())
}

/// Returns the row of a version, and the message of which that row is the outbox entry.
fn version(cx: &Cx, draft: UnitDraft) -> Result<(NewUnit, Record), ApiError> {
    let id = UnitId::new(cx.now);
    let held = cx.app.validation.held(cx.now);
    let new = NewUnit {
        id,
        revises: draft.revises,
        agent: cx.the_agent()?,
        operator: cx.the_operator()?,
        // Over the normal form, so that other spaces or letter case do not make the same text a new
        // one.
        text_hash: *blake3::hash(normalised(&draft.body).as_bytes()).as_bytes(),
        language: models::rubric::language(&draft.body),
        length: draft.body.chars().count() as u64,
        title: draft.title,
        body: draft.body,
        category: draft.category,
        source_declaration: draft.source_declaration,
        license: draft.license.id().to_owned(),
        price_micro: draft.price_micro,
        trial_sale: draft.trial_sale,
        submission: Vec::new(),
        // A hold whose end is known is not worth an attempt before.
        first_sweep: held
            .as_ref()
            .and_then(|(_, until)| *until)
            .unwrap_or_else(|| cx.app.sweeper.first(cx.now)),
        held,
        now: cx.now,
    };
    let record = unit_message(&new, 0, Some(cx.origin())).map_err(ApiError::internal)?;
    let submission = record.value.to_vec();
    Ok((NewUnit { submission, ..new }, record))
}

/// Returns the 429 for an operator that has used up its allowance of units.
fn allowance_spent(cx: &Cx) -> ApiError {
    let limit = cx.app.limits.knowledge_per_day;
    let resets_at = cx.now.next_day();
    let message = format!("the operator has submitted and revised {limit} units today, which is the limit");
    let allowance = serde_json::json!({
        "kind": "knowledge", "limit": limit, "used": limit, "resetAt": resets_at.to_string(),
    });
    ApiError::limited(ErrorCode::AllowanceSpent, message, seconds_until(cx, resets_at)).field("allowance", allowance)
}

/// Returns the seconds from now to a time, rounded up. The clock is read again, since `Retry-After` counts from the
/// answer and not from the beginning of the call.
fn seconds_until(cx: &Cx, time: Timestamp) -> u64 {
    whole_seconds(time.since(cx.app.clock.now()))
}

/// Returns the message of a version.
fn unit_message(new: &NewUnit, generation: u32, origin: Option<Origin>) -> Result<Record, serde_json::Error> {
    let message = UnitSubmission {
        format: BASE_FORMAT,
        unit: new.id,
        chain: new.revises.map_or(new.id, |revised| revised.chain),
        predecessor: new.revises.map(|revised| revised.unit),
        generation,
        agent: new.agent,
        operator: new.operator,
        submitted_at: new.now,
        text: UnitText {
            title: new.title.clone(),
            body: new.body.clone(),
            category: new.category.clone(),
            source_declaration: new.source_declaration.clone(),
        },
        origin,
    };
    message.record()
}
