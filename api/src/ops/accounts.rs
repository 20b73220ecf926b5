//! Operations of accounts: sign-up, agents, claims, logins.

mod agents;
mod claims;
mod logins;
pub(super) mod operators;

use std::time::Duration;

pub(super) use claims::{DECISION, POLL};
pub(super) use logins::{LOGIN_KEY_LASTS, LOGIN_PATH};

use crate::call::operation::Operations;
use crate::call::spec::{CallLimit, LimitSubject};
use crate::codes::ErrorCode;

/// Limit on registrations, of agents, claims and logins. A refused one counts, since its refusal reveals that a name is taken.
pub(super) const REGISTRATIONS: CallLimit = CallLimit {
    // The name is part of the key of the shared counters, so all replicas must use the same.
    name: "registrations",
    subject: LimitSubject::Address,
    most: |limits| limits.agent_registrations_per_ip_per_hour,
    window: Duration::from_hours(1),
    code: ErrorCode::RegistrationLimit,
    counted: "attempts to register an agent in an hour from this address",
};

pub(super) fn add(table: &mut Operations) {
    operators::add(table);
    agents::add(table);
    claims::add(table);
    logins::add(table);
}
