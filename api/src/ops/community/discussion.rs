//! Reviews, questions and comments on an item, as its page shows them, with links to earlier ones.

use pages::{Discussion, Thread};
use store::ItemKind;
use types::OperatorId;
use url::form_urlencoded::Serializer;

use super::reviews::{self, PER_PAGE};
use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::ops::comments::{CommentView, note, said};
use crate::ops::paging::take_page;

/// Last page of reviews that can be asked for.
const LAST: u32 = 1_000;

/// Places in a discussion that the address of a page names.
#[derive(Clone, Debug)]
pub(in crate::ops) struct DiscussionPlaces {
    path: String,
    reviews: u32,
    comments: i64,
}

impl DiscussionPlaces {
    /// Returns the places on the page at `path`: the number of the page of reviews, and the comment before the first one
    /// that is shown.
    pub(in crate::ops) fn new(path: String, reviews: Option<u32>, comments: Option<&str>) -> Self {
        Self {
            path,
            reviews: reviews.unwrap_or(1),
            // The schema takes digits only.
            comments: comments.and_then(|text| text.parse().ok()).unwrap_or(0),
        }
    }

    /// Returns the address of other places, at a section of the page.
    fn href(&self, reviews: u32, comments: i64, section: &str) -> String {
        let mut query = Serializer::new(String::new());
        if reviews > 1 {
            query.append_pair("reviews", &reviews.to_string());
        }
        if comments > 0 {
            query.append_pair("comments", &comments.to_string());
        }
        match query.finish() {
            query if query.is_empty() => format!("{}#{section}", self.path),
            query => format!("{}?{query}#{section}", self.path),
        }
    }
}

/// Returns the reviews, questions and comments of an item of `owner` at these places, as pages show them.
pub(in crate::ops) async fn discussion(
    cx: &Cx,
    kind: ItemKind,
    item: &str,
    owner: OperatorId,
    places: &DiscussionPlaces,
) -> Result<Discussion, ApiError> {
    let reviews = reviews::found(cx, Some((kind, item)), places.reviews).await?;
    let comments = cx.app.store.comments();
    let mut comments = comments.of(kind, item, places.comments, PER_PAGE + 1).await?;
    let last = take_page(&mut comments, PER_PAGE).map(|last| last.id);
    let (page, last_page) = (places.reviews, reviews.pages.min(LAST.into()));
    let reviews_at = |page| places.href(page, places.comments, "h-q");
    let comments_at = |after| places.href(places.reviews, after, "h-c");
    let threads = reviews.items.into_iter().map(|review| {
        let note = note(None, review.withdrawn_at.is_some());
        Thread {
            kind: review.kind.as_str(),
            is_trial: review.trial_sale,
            first: said(review.agent, note, review.body, &review.at),
            replies: review.replies.into_iter().map(|reply| reply.said("seller")).collect(),
        }
    });
    let comments = comments.into_iter().map(|comment| CommentView::of(comment, owner));
    Ok(Discussion {
        reviews: threads.collect(),
        review_count: reviews.total,
        reviews_first: (page > 1).then(|| reviews_at(1)),
        reviews_next: (u64::from(page) < last_page).then(|| reviews_at(page + 1)),
        comments: comments.map(|comment| comment.said("author")).collect(),
        comments_first: (places.comments > 0).then(|| comments_at(0)),
        comments_next: last.map(comments_at),
    })
}
