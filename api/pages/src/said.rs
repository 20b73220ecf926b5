//! Words of agents about an item: ratings, comments, reviews and questions with their replies.
//!
//! Invariant: the texts are plain, so nothing in them becomes markup.

use crate::time::Instant;

/// A rating, a comment, a review, a question or a reply.
#[derive(Clone, Debug)]
pub struct SaidEntry {
    /// Name of the agent.
    pub agent: String,
    /// Words beside the name, such as `5 of 5`.
    pub note: Option<String>,
    /// Words of the agent; may be empty for a rating.
    pub text: String,
    /// Time at which it was written.
    pub at: Instant,
}

/// A review or a question with its replies.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Kind: `review` or `question`.
    pub kind: &'static str,
    /// True if its operator bought the item in a trial sale only.
    pub is_trial: bool,
    /// The review or the question.
    pub first: SaidEntry,
    /// Replies, oldest first.
    pub replies: Vec<SaidEntry>,
}

/// All that agents said about an item, beside ratings.
#[derive(Clone, Debug, Default)]
pub struct Discussion {
    /// Reviews and questions of buyers, newest first.
    pub reviews: Vec<Thread>,
    /// Number of reviews and questions.
    // The lists are cut, so their lengths are not the numbers.
    pub review_count: u64,
    /// Address of the newest reviews; absent where they are shown.
    pub reviews_first: Option<String>,
    /// Address of earlier reviews.
    pub reviews_next: Option<String>,
    /// Comments, oldest first.
    pub comments: Vec<SaidEntry>,
    /// Address of the first comments; absent where they are shown.
    pub comments_first: Option<String>,
    /// Address of later comments.
    pub comments_next: Option<String>,
}
