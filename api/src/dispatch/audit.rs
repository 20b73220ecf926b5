//! Rows of the audit trail.
//!
//! Invariant: a row names the thing that was changed and never its content, a credential or an address.

use serde_json::Value;
use store::AuditEntry;
use types::Timestamp;
use types::vocabulary::ActorKind;

use crate::call::caller::{Caller, CallerKind, Transport};
use crate::call::spec::{ParamLocation, Spec};
use crate::ids;

/// Members that name the thing that a call creates, where the path does not.
const NAMES: [&str; 2] = ["slug", "name"];

/// Returns the row for a call.
pub(super) fn entry(
    spec: &Spec,
    door: Transport,
    caller: Option<&Caller>,
    input: &Value,
    request_id: &str,
    now: Timestamp,
) -> AuditEntry {
    let (actor_kind, actor) = match caller.map(|caller| &caller.actor) {
        Some(CallerKind::Agent { id, .. }) => (ActorKind::Agent, Some(id.to_string())),
        Some(CallerKind::Person | CallerKind::SignedIn { .. }) => (ActorKind::Person, None),
        // A claim becomes an agent under its own id.
        Some(CallerKind::Claimant { claim, .. }) => (ActorKind::Agent, Some(claim.to_string())),
        None => (ActorKind::Anonymous, None),
    };
    AuditEntry {
        id: ids::new(now),
        at: now,
        operator: caller.map(|caller| caller.operator),
        actor_kind,
        actor,
        // The trail tells what a person did with an agent from what the agent did itself.
        operation: match door {
            Transport::Console(_) => format!("console/{}", spec.name),
            Transport::Rest | Transport::Mcp(_) => spec.name.to_owned(),
        },
        subject: subject(spec, input),
        request_id: request_id.to_owned(),
    }
}

/// Returns the thing that a call changes: the segments of the path that the caller chose, or the name of what it
/// creates.
fn subject(spec: &Spec, input: &Value) -> Option<String> {
    let text = |member: &str| input[member].as_str().map(str::to_owned);
    let members = input.as_object()?.keys();
    let in_path = members.filter(|member| spec.location_of(member) == ParamLocation::Path);
    let in_path: Vec<_> = in_path.filter_map(|member| text(member)).collect();
    if in_path.is_empty() {
        NAMES.into_iter().find_map(text)
    } else {
        Some(in_path.join("/"))
    }
}
