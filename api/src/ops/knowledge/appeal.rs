//! The operation that appeals against a rejection.
//!
//! Invariant: the second judge gets the text that was rejected, as it was submitted.

use messages::{APPEAL_FORMAT, KNOWLEDGE_TOPIC, UnitSubmission, UnitText};
use store::{Appealed, NewAppeal, Unit};
use types::{OperatorId, fault};

use super::change::{not_latest, not_published};
use super::fields::UnitPath;
use super::submit::{duplicate, in_validation};
use super::view::UnitView;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::contribute::no_more;
use crate::rules::entitlement::units;

pub(super) async fn appeal(cx: Cx, input: UnitPath) -> Result<JsonReply<UnitView>, ApiError> {
    let unit = units::own(&cx, &input.id).await?;
    if !cx.app.config.has_second_judge {
        let message = "this service has no second judge; mend the text and submit it again";
        return Err(ApiError::new(ErrorCode::NoSecondJudge, message));
    }
    if let Some(rejected) = cx.app.backlog.rejection() {
        return Err(no_more(rejected));
    }
    let (id, generation) = (unit.id, unit.generation);
    let record = submission(unit, cx.the_operator()?, &cx)
        .record()
        .map_err(ApiError::internal)?;
    let held = cx.app.validation.held(cx.now);
    let is_held = held.is_some();
    let new = NewAppeal {
        unit: id,
        generation,
        submission: record.value.to_vec(),
        // A hold whose end is known is not worth an attempt before.
        first_sweep: held
            .as_ref()
            .and_then(|(_, until)| *until)
            .unwrap_or_else(|| cx.app.sweeper.first(cx.now)),
        held,
        now: cx.now,
    };
    let bytes = new.submission.len();
    match cx.app.store.knowledge().appeal(new).await? {
        Appealed::Open => {}
        other => return Err(refusal(other)),
    }
    tracing::info!(unit = %id, "rejection of a unit appealed");
    cx.app.backlog.add(bytes);
    fault::point("ack.respond");
    if !is_held {
        cx.app.relay.submit(KNOWLEDGE_TOPIC, record);
    }
    let unit = units::own(&cx, &input.id).await?;
    Ok(JsonReply::ok(UnitView::of(&cx, unit, 0).await?))
}

/// Returns the submission of a rejected version to the second judge.
fn submission(unit: Unit, operator: OperatorId, cx: &Cx) -> UnitSubmission {
    UnitSubmission {
        format: APPEAL_FORMAT,
        unit: unit.id,
        chain: unit.chain.id,
        predecessor: unit.predecessor,
        generation: unit.generation + 1,
        agent: unit.agent,
        operator,
        submitted_at: unit.submitted_at,
        text: UnitText {
            title: unit.title,
            body: unit.body,
            category: unit.category,
            source_declaration: unit.source_declaration,
        },
        origin: Some(cx.origin()),
    }
}

/// Returns the error for an appeal that did not open.
fn refusal(appealed: Appealed) -> ApiError {
    match appealed {
        // An appeal that opened is no refusal; the caller answers it.
        Appealed::Open => ApiError::internal("an appeal that opened was refused"),
        Appealed::Before { status } => {
            let message = "a rejection is appealed once; mend the text and submit it again";
            ApiError::new(ErrorCode::AlreadyAppealed, message).field("status", status.as_str())
        }
        Appealed::NotRejected { status } => {
            let message = "only a rejected version is appealed";
            ApiError::new(ErrorCode::NotRejected, message).field("status", status.as_str())
        }
        Appealed::Final { code } => {
            let message = "a rule decided that finds the same again; mend the text and submit it again";
            ApiError::new(ErrorCode::NotAppealable, message).field("code", code)
        }
        Appealed::Ended => not_published("the unit is retired or taken down"),
        Appealed::NotLatest { latest } => not_latest(&latest.to_string()),
        Appealed::InValidation { unit } => in_validation(unit),
        Appealed::Duplicate { unit, status } => duplicate(unit, status),
    }
}
