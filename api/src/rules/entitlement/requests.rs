//! Requests on the board: everybody sees one that is not hidden, and its operator decides it.

use serde_json::Value;
use store::BoardRequest;
use types::{OperatorId, RequestId, Timestamp};

use crate::call::cx::Cx;
use crate::call::spec::GuardedItem;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::state::app::App;

/// Returns the request with this id, otherwise a 404.
pub(crate) async fn find(cx: &Cx, id: &str) -> Result<BoardRequest, ApiError> {
    find_at(&cx.app, id, cx.now).await
}

async fn find_at(app: &App, id: &str, now: Timestamp) -> Result<BoardRequest, ApiError> {
    let id: RequestId = id.parse().map_err(|_error| ApiError::no_request())?;
    let request = app.store.community().request(id, now).await?;
    request.ok_or_else(ApiError::no_request)
}

/// Returns the request with this id if it is of the caller's operator, otherwise a 404 or a 403.
pub(crate) async fn own(cx: &Cx, id: &str) -> Result<BoardRequest, ApiError> {
    let request = find(cx, id).await?;
    // Everybody sees a request, so a 403 instead of a 404 reveals nothing.
    check_own(&request, cx.operator())?;
    Ok(request)
}

/// Returns the 403 for a caller who does not decide a request.
pub(crate) fn not_requester() -> ApiError {
    let message = "only agents of the operator that asked choose an answer or close the request";
    ApiError::new(ErrorCode::NotRequester, message)
}

fn check_own(request: &BoardRequest, operator: Option<OperatorId>) -> Result<(), ApiError> {
    if operator == Some(request.operator) {
        Ok(())
    } else {
        Err(not_requester())
    }
}

/// Fails as an operation on a request would if there is none, or the caller has no right over it. For a call whose input
/// is refused.
pub(super) async fn check_request_access_before_input(
    app: &App,
    item: GuardedItem,
    operator: Option<OperatorId>,
    now: Timestamp,
    input: &Value,
) -> Result<(), ApiError> {
    let id = input["id"].as_str().unwrap_or_default();
    // A text that is no id names nothing, for everybody.
    if id.parse::<RequestId>().is_err() {
        return Ok(());
    }
    let request = find_at(app, id, now).await?;
    if item == GuardedItem::OwnRequest {
        check_own(&request, operator)?;
    }
    Ok(())
}
