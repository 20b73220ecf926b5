//! Idempotency keys of operations that make something.
//!
//! Invariant: a key has one effect. Whoever repeats a call with it gets the answer for what the first one made, as that is
//! now, and a call with another input gets a 422.

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use store::{CallKey, KeyUsed};
use types::canonical;

use crate::call::answer::OperationOutput;
use crate::call::caller::Caller;
use crate::call::cx::Cx;
use crate::call::operation::Operation;
use crate::call::repeats::MEMBER;
use crate::call::spec::ParamLocation;
use crate::error::ApiError;
use crate::rules::entitlement;
use crate::state::app::App;

/// Takes the key out of the input of a call, and returns it with the hash of what is left; `None` without one.
pub(super) fn key(
    operation: &Operation,
    app: &App,
    caller: Option<&Caller>,
    input: &mut Value,
) -> Result<Option<CallKey>, ApiError> {
    if !operation.takes_key() {
        return Ok(None);
    }
    let Some(Value::String(key)) = input.as_object_mut().and_then(|input| input.remove(MEMBER)) else {
        return Ok(None);
    };
    let caller = caller.ok_or_else(|| ApiError::internal("an operation without caller takes a key"))?;
    let spec = &operation.spec;
    // The same key at another thing of the path is another key, as with contributions to two projects.
    let is_in_path = |name: &&String| spec.location_of(name) == ParamLocation::Path;
    let members = input.as_object().into_iter().flatten();
    let in_path = members
        .filter(|(name, _)| is_in_path(name))
        .filter_map(|(_, value)| value.as_str());
    let named = std::iter::once(spec.name).chain(in_path).collect::<Vec<_>>().join(" ");
    let mut text = Vec::new();
    canonical::write_value(&mut text, input);
    Ok(Some(CallKey {
        caller: caller
            .agent()
            .map_or_else(|| caller.operator.to_string(), |agent| agent.to_string()),
        operation: named,
        key,
        body_hash: Sha256::digest(&text).into(),
        window: app.limits.idempotency_window.0,
        now: app.clock.now(),
    }))
}

/// Performs a call with a key, or answers for what an earlier one made.
pub(super) async fn once(
    operation: &Operation,
    cx: Cx,
    input: Value,
    key: &CallKey,
) -> Result<OperationOutput, ApiError> {
    // Before the function, whose checks are about something new: what was made stays made when its item has changed.
    if let Some(used) = cx.app.store.call_key_used(key).await? {
        return replayed(operation, cx, input, used).await;
    }
    let again = (cx.clone(), input.clone());
    match (operation.call)(cx, input).await {
        // Another call with the key won the race for it.
        Err(error) if error.is_key_reused() => {
            let (cx, input) = again;
            match cx.app.store.call_key_used(key).await? {
                Some(used) => replayed(operation, cx, input, used).await,
                None => Err(error),
            }
        }
        ended => ended,
    }
}

async fn replayed(operation: &Operation, cx: Cx, input: Value, used: KeyUsed) -> Result<OperationOutput, ApiError> {
    // A caller that may not see the item any more gets the refusal of a new call, and nothing of the item.
    entitlement::check_access_before_input(&cx.app, operation.spec.item, cx.caller.as_ref(), cx.now, &input).await?;
    match (used, &operation.replay) {
        (KeyUsed::Same { made }, Some(replay)) => replay(cx, input, made).await,
        _ => Err(ApiError::key_reused()),
    }
}
