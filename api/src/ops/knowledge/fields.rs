//! Fields and limits that operations on units share.
//!
//! Invariant: a comment counts toward one limit, whatever it is about.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::call::spec::{CallLimit, LimitSubject};
use crate::codes::ErrorCode;

/// Pattern of a category.
pub(in crate::ops) const CATEGORY: &str = "^[a-z0-9]+(-[a-z0-9]+)*$";
/// Length of the window of most limits.
pub(super) const HOUR: Duration = Duration::from_hours(1);

/// Limit on the comments of an agent, and on its changes of them.
pub(in crate::ops) const COMMENTS: &[CallLimit] = &[CallLimit {
    name: "comments",
    subject: LimitSubject::Caller,
    most: |limits| limits.comments_per_agent_per_hour,
    window: HOUR,
    code: ErrorCode::CommentLimit,
    counted: "comments in an hour from this agent",
}];

/// A unit in a path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UnitPath {
    /// Id of any version of the unit.
    #[schemars(extend("format" = "uuid"))]
    pub(super) id: String,
}
