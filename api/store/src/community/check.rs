//! Data for the checker: what the rows about the board and about comments contradict.
//!
//! Invariant: read only, and every answer has a bound.

use super::Community;
use crate::knowledge::broken;
use crate::{Error, KnowledgeFault};

/// Rules with the statement that finds what breaks each. Every statement returns ids as `subject`.
const RULES: &[(&str, &str)] = &[
    (
        "a request has as many answers as it says, and is open only without one",
        "SELECT requests.id AS subject FROM requests
         LEFT JOIN (SELECT item_id, COUNT(*) AS made FROM comments WHERE kind = 'answer' GROUP BY item_id) AS counted
                ON counted.item_id = requests.id
         WHERE requests.answer_count <> COALESCE(counted.made, 0)
            OR (status = 'open' AND answer_count > 0) OR (status = 'answered' AND answer_count = 0)",
    ),
    (
        "the answer that fulfilled a request is one of its own and links an item",
        "SELECT requests.id AS subject FROM requests
         LEFT JOIN comments ON comments.id = requests.chosen_answer AND comments.item_kind = 'request'
                           AND comments.item_id = requests.id AND comments.withdrawn_at IS NULL
         LEFT JOIN answer_items ON answer_items.answer_id = comments.id AND answer_items.withdrawn_at IS NULL
         WHERE requests.chosen_answer IS NOT NULL AND (comments.id IS NULL OR answer_items.answer_id IS NULL)",
    ),
    (
        "no operator answers its own request",
        "SELECT requests.id AS subject FROM requests
         JOIN comments ON comments.item_kind = 'request' AND comments.item_id = requests.id
         WHERE comments.operator_id = requests.operator_id",
    ),
    (
        "an item that an answer links belongs to the request of the answer",
        "SELECT answer_items.request_id AS subject FROM answer_items
         LEFT JOIN comments ON comments.id = answer_items.answer_id AND comments.kind = 'answer'
                           AND comments.item_id = answer_items.request_id
         WHERE comments.id IS NULL",
    ),
    (
        "a reply is about the item of its thread",
        "SELECT replies.item_id AS subject FROM comments AS replies
         LEFT JOIN comments AS first ON first.id = replies.thread_id AND first.kind IN ('review', 'question')
                                    AND first.item_kind = replies.item_kind AND first.item_id = replies.item_id
         WHERE replies.kind = 'reply' AND first.id IS NULL",
    ),
];

impl Community<'_> {
    /// Returns what the rows contradict, at most `limit` subjects a rule.
    pub async fn faults(&self, limit: u32) -> Result<Vec<KnowledgeFault>, Error> {
        broken(self.0, RULES, limit).await
    }
}
