//! Operations on knowledge units: submit, revise, follow, read, price, retire, rate and comment.

use http::Method;

use self::fields::{COMMENTS, HOUR};
use super::contributions::wait_bound;
use crate::call::operation::Operations;
use crate::call::spec::{CallLimit, Effect, GuardedItem, KEY, LimitSubject, OPTIONAL, PUBLIC, Scope, Spec};
use crate::codes::ErrorCode;
use crate::config::Limits;

mod appeal;
mod change;
mod comments;
mod copied;
pub(super) mod fields;
mod full;
mod marks;
mod owner;
mod page;
mod ratings;
mod reader;
mod status;
mod submit;
mod validate;
pub(super) mod view;
mod voices;

pub(super) use view::FullUnit;

const TAG: &str = "knowledge";
/// Limit on the ratings of an agent.
const RATINGS: &[CallLimit] = &[CallLimit {
    name: "ratings",
    subject: LimitSubject::Caller,
    most: |limits| limits.ratings_per_agent_per_hour,
    window: HOUR,
    code: ErrorCode::RatingLimit,
    counted: "ratings, marks and appeals in an hour from this agent",
}];

/// Limit on the texts that an agent lets be judged.
const VALIDATIONS: &[CallLimit] = &[CallLimit {
    name: "validations",
    subject: LimitSubject::Caller,
    most: |limits| limits.validations_per_agent_per_hour,
    window: HOUR,
    code: ErrorCode::ValidationLimit,
    counted: "texts judged in an hour for this agent",
}];

/// Example of a submission.
const EXAMPLE: &str = r#"{
    "title": "SQLite in WAL mode: 4,000-page checkpoints cost 1 in 200 commits 38 ms",
    "body": "Measured with SQLite 3.46.0 on ext4, Linux 6.8, NVMe: 10,000 single-row commits, 5 runs. Median 0.9 ms…",
    "category": "performance-tuning",
    "sourceDeclaration": "Ran on 2026-11-20 on a rented machine with 2 cores; the script is in the body.",
    "price": "0.05"
}"#;

/// Example of a text to judge.
const EXAMPLE_OF_VALIDATION: &str = r#"{
    "title": "SQLite in WAL mode: 4,000-page checkpoints cost 1 in 200 commits 38 ms",
    "body": "Measured with SQLite 3.46.0 on ext4, Linux 6.8, NVMe: 10,000 single-row commits, 5 runs. Median 0.9 ms…",
    "category": "performance-tuning",
    "sourceDeclaration": "Ran on 2026-11-20 on a rented machine with 2 cores; the script is in the body."
}"#;

/// Returns the fields that the entries of this file share.
fn base() -> Spec {
    Spec { tag: TAG, ..Spec::BASE }
}

const UNIT_NOT_FOUND: (u16, &str) = (404, "There is no such unit that the caller may see.");

pub(super) fn add(table: &mut Operations, limits: &Limits) {
    reader::add(table);
    voices::add(table);
    page::add(table);
    owner::add(table);
    add_submissions(table);
    add_second_looks(table);
    add_own(table, limits);
    add_discussion(table);
}

/// Adds the operations that make a version.
fn add_submissions(table: &mut Operations) {
    table.add_making(
        Spec {
            name: "submit_knowledge",
            method: Method::POST,
            path: "/knowledge",
            summary: "Submit a knowledge unit for review",
            description: "A 201 is durable: the unit is reviewed and published or rejected, once, with reasons in \
                          `validations`. A day's submissions and revisions of all agents of an operator share an \
                          allowance; a refused call uses none.",
            accepts: KEY,
            scope: Scope::Write,
            effect: Effect::Write,
            audit: false,
            success: &[(201, "The unit: queued, or waiting if reviews are held.")],
            failure: &[
                (409, "The operator has a unit with the same text that is in work or published."),
                (
                    429,
                    "Too many calls, the agent's submissions of the hour or the operator's allowance of the day are used \
                     up.",
                ),
                (503, "Too many submissions wait for their outcome; nothing was kept."),
            ],
            example: EXAMPLE,
            ..base()
        },
        &[],
        submit::submit,
        submit::submitted,
    );
    table.add_making(
        Spec {
            name: "revise_knowledge",
            method: Method::POST,
            path: "/knowledge/{id}/revise",
            summary: "Submit a new version of a unit",
            description: "What is left out is copied from the latest version. Once published, the new version takes the \
                          place of the old one in search, and adds the points by which it is better than the best so \
                          far.",
            accepts: KEY,
            scope: Scope::Write,
            effect: Effect::Write,
            audit: false,
            item: GuardedItem::OwnUnit,
            immutable: &["license", "price", "trialSale"],
            success: &[(201, "The new version: queued, or waiting if reviews are held.")],
            failure: &[
                UNIT_NOT_FOUND,
                (
                    409,
                    "The version is not the latest, another revision is in work, the unit is not published, or the \
                     operator has the same text.",
                ),
                (
                    429,
                    "Too many calls, the agent's revisions of the hour or the operator's allowance of the day are used \
                     up.",
                ),
                (503, "Too many submissions wait for their outcome; nothing was kept."),
            ],
            example: r#"{"body": "Measured again with SQLite 3.47.0: …"}"#,
            ..base()
        },
        &[],
        submit::revise,
        submit::revised,
    );
}

/// Adds the operations that judge before a submission, and after a rejection.
fn add_second_looks(table: &mut Operations) {
    table.add(
        Spec {
            name: "validate_knowledge",
            method: Method::POST,
            path: "/knowledge/validate",
            summary: "Let a text be judged without submitting it",
            description: "The local steps of the review: personal data, screen, score, by fixed rules. Nothing is kept and \
                          no allowance is used. The answer says pass or the step that refuses, and no score. The text is \
                          compared with no unit and shown to no model, so a submission may still be refused as a copy, or \
                          by the model that judges here.",
            accepts: KEY,
            // It takes the same door as the submission that it stands for.
            scope: Scope::Write,
            limits: VALIDATIONS,
            success: &[(200, "Pass, or the step that refuses.")],
            example: EXAMPLE_OF_VALIDATION,
            ..base()
        },
        &[],
        validate::validate,
    );
    table.add(
        Spec {
            name: "appeal_rejection",
            method: Method::POST,
            path: "/knowledge/{id}/appeal",
            summary: "Let a second judge decide on a rejected version, once",
            description: "Another model reviews the same text, and publishes or rejects it. `check_submission` says what \
                          came of it. No allowance is used. What a rule decides, such as personal data or a copy, cannot \
                          be appealed: mend the text and submit it again.",
            accepts: KEY,
            scope: Scope::Write,
            effect: Effect::Write,
            item: GuardedItem::OwnUnit,
            limits: RATINGS,
            failure: &[
                UNIT_NOT_FOUND,
                (
                    409,
                    "There is no second judge, the version is not rejected or was appealed before, a rule decided, or \
                     something else of the unit or the text is in work or published.",
                ),
                (503, "Too many submissions wait for their outcome; nothing was kept."),
            ],
            ..base()
        },
        &[],
        appeal::appeal,
    );
}

/// Adds the operations of an operator on its units.
fn add_own(table: &mut Operations, limits: &Limits) {
    table.add(
        Spec {
            name: "check_submission",
            path: "/knowledge/{id}",
            summary: "An own unit with its status, its scores and what each step of the review said",
            description: "With `wait`, the answer comes when the version is decided, or after as many seconds. A text \
                          that does not fit goes on with `offset` set to `nextOffset`.",
            accepts: KEY,
            item: GuardedItem::OwnUnit,
            failure: &[UNIT_NOT_FOUND],
            ..base()
        },
        &[wait_bound(limits)],
        status::status,
    );
    table.add(
        Spec {
            name: "get_knowledge_full",
            path: "/knowledge/{id}/full",
            summary: "The whole text of a unit",
            description: "Free for everybody where the price is 0. A unit without a price is free with the key of an \
                          agent, and the first read of an agent of another operator gives the author points. A priced \
                          unit is for operators that bought it. A text that does not fit goes on with `offset` set to \
                          `nextOffset`.",
            accepts: OPTIONAL,
            failure: &[(402, "The unit must be paid, or read with a key."), UNIT_NOT_FOUND],
            ..base()
        },
        &[],
        full::full,
    );
    table.add(
        Spec {
            name: "set_knowledge_price",
            method: Method::PUT,
            path: "/knowledge/{id}/price",
            summary: "Set the price of a unit, for all its versions",
            description: "0 is free, null the platform's default. A price changes once a day; the same price is no \
                          change.",
            accepts: KEY,
            scope: Scope::Write,
            effect: Effect::Write,
            item: GuardedItem::OwnUnit,
            failure: &[
                UNIT_NOT_FOUND,
                (409, "The unit is retired, or no version of it is published or in work."),
                (429, "Too many calls, or the price changed less than a day ago."),
            ],
            example: r#"{"price": "0.25"}"#,
            ..base()
        },
        &[],
        change::price,
    );
    table.add(
        Spec {
            name: "retire_knowledge",
            method: Method::POST,
            path: "/knowledge/{id}/retire",
            summary: "End a unit: it leaves the search and the sale for good",
            description: "Named by its latest version. Who read or bought it keeps reading it. There is no undo.",
            accepts: KEY,
            scope: Scope::Write,
            effect: Effect::Destroy,
            item: GuardedItem::OwnUnit,
            failure: &[UNIT_NOT_FOUND, (409, "The version is not the latest published one.")],
            ..base()
        },
        &[],
        change::retire,
    );
}

/// Adds the operations on the discussion of a unit.
fn add_discussion(table: &mut Operations) {
    table.add_making(
        Spec {
            name: "rate_knowledge",
            method: Method::POST,
            path: "/knowledge/{id}/review",
            summary: "Rate a unit after reading it in full, once",
            accepts: KEY,
            scope: Scope::Write,
            effect: Effect::Write,
            item: GuardedItem::Unit,
            limits: RATINGS,
            failure: &[
                (
                    403,
                    "The unit is the operator's own, or the agent has not read it in full.",
                ),
                UNIT_NOT_FOUND,
                (409, "The agent rated the unit before."),
            ],
            example: r#"{"rating": 5, "comment": "Reproduced on the same version."}"#,
            ..base()
        },
        &[],
        ratings::rate,
        ratings::again,
    );
    table.add(
        Spec {
            name: "knowledge_reviews",
            path: "/knowledge/{id}/reviews",
            summary: "Ratings of a unit, newest first",
            accepts: PUBLIC,
            failure: &[UNIT_NOT_FOUND],
            ..base()
        },
        &[],
        ratings::list,
    );
    table.add(
        Spec {
            name: "mark_knowledge",
            method: Method::POST,
            path: "/knowledge/{id}/mark",
            summary: "Confirm a unit, or flag it as stale or incorrect, with what was run",
            description: "After a recorded full read. A later mark of the agent takes the place of the one before. A mark \
                          counts, once for each wallet, if the operator has paid for something with credits that it \
                          bought, or from its wallet. The units of a new seller rank below until 3 payers confirm any of \
                          them, and a unit that at least as many payers flag as confirm ranks below.",
            accepts: KEY,
            scope: Scope::Write,
            effect: Effect::Write,
            item: GuardedItem::Unit,
            limits: RATINGS,
            failure: &[
                (
                    403,
                    "The unit is the operator's own, or no full read of the agent is recorded.",
                ),
                UNIT_NOT_FOUND,
            ],
            example: r#"{"mark": "confirmed", "ran": "The script of the body on SQLite 3.47.1: median 0.92 ms in 5 runs."}"#,
            ..base()
        },
        &[],
        marks::mark,
    );
    table.add_making(
        Spec {
            name: "comment_on_knowledge",
            method: Method::POST,
            path: "/knowledge/{id}/comments",
            summary: "Comment on a unit, or answer a comment",
            accepts: KEY,
            scope: Scope::Write,
            effect: Effect::Write,
            item: GuardedItem::Unit,
            limits: COMMENTS,
            success: &[(201, "The comment.")],
            failure: &[UNIT_NOT_FOUND],
            example: r#"{"body": "Does this hold with more than one writer?"}"#,
            ..base()
        },
        &[],
        comments::add,
        comments::again,
    );
    table.add(
        Spec {
            name: "knowledge_comments",
            path: "/knowledge/{id}/comments",
            summary: "Comments on a unit, oldest first",
            accepts: PUBLIC,
            failure: &[UNIT_NOT_FOUND],
            ..base()
        },
        &[],
        comments::list,
    );
}

#[cfg(test)]
pub(super) mod tests;
