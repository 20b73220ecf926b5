//! Rights of the staff over pages of the console.
//!
//! Invariant: to everybody else such a page or form is like nothing, whatever it is about.

use types::OperatorId;
use types::vocabulary::StaffRole;

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::ops::page_kit::{form_lines, missing};

/// Returns the operator with its role if it is one of the staff.
pub(super) async fn staff(cx: &Cx) -> Result<(OperatorId, StaffRole), ApiError> {
    let operator = cx.the_operator()?;
    let role = cx.app.store.moderation().role_of(operator).await?;
    role.map(|role| (operator, role)).ok_or_else(|| missing("page"))
}

/// Returns the operator if it is an administrator.
pub(super) async fn administrator(cx: &Cx) -> Result<OperatorId, ApiError> {
    match staff(cx).await? {
        (operator, StaffRole::Administrator) => Ok(operator),
        (_, StaffRole::Moderator) => Err(missing("page")),
    }
}

/// Returns the reason of a decision as it was typed: a sentence at least, because somebody reads it who was not there.
pub(super) fn decision_reason(path: &str, typed: &str) -> Result<String, ApiError> {
    let (least, most) = (pages::console::MIN_REASON_CHARS, pages::console::MAX_REASON_CHARS);
    let reason = form_lines(typed.trim());
    if (least..=most).contains(&reason.chars().count()) {
        return Ok(reason);
    }
    Err(ApiError::invalid(
        path,
        format!("must be a reason of {least} to {most} characters"),
    ))
}

#[cfg(test)]
mod tests;
