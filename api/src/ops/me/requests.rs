//! The requests of the caller's operator on the board.

use types::RequestId;

use super::{ListQuery, OwnListQuery};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::ops::community::ListedRequest;
use crate::ops::paging::take_page;

pub(super) async fn list(cx: Cx, input: ListQuery) -> Result<JsonReply<OwnListQuery<ListedRequest>>, ApiError> {
    let (before, limit) = input.read::<RequestId>()?;
    let community = cx.app.store.community();
    let mut found = community
        .requests_of(cx.the_operator()?, before, cx.now, limit + 1)
        .await?;
    let next_cursor = take_page(&mut found, limit).map(|last| last.id.to_string());
    Ok(JsonReply::ok(OwnListQuery {
        items: found.iter().map(|request| ListedRequest::of(&cx, request)).collect(),
        next_cursor,
    }))
}
