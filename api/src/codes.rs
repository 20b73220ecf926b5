//! The table of error codes: the words of the member `error` in a refusal, with everything a caller may rely on.
//!
//! Invariant: an answer has no code that is not here, and there is no code here that no answer has; `tidy` compares the
//! table with the source.

use std::fmt::Write as _;

/// Advice to a caller on sending the same call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The same call fails again.
    No,
    /// The call can succeed after the time in `Retry-After`.
    After,
    /// The call can succeed once something else happened, which the meaning names.
    Once,
}

impl Again {
    const fn advice(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::After => "after `Retry-After`",
            Self::Once => "once that changed",
        }
    }
}

/// One error code.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// The code itself, the member `error` of the body.
    pub word: &'static str,
    /// Status of the answer.
    pub status: u16,
    /// Members of the body beside `error` and `message`.
    pub fields: &'static [&'static str],
    /// Sentence for people.
    pub meaning: &'static str,
    /// Advice on sending the same call again.
    pub again: Again,
}

/// Every code, by status and then by word.
pub const CODES: &[Code] = &[
    of(
        400,
        "claim_code_unknown",
        &["details"],
        "There is no such claim code, or its second part is wrong.",
        Again::No,
    ),
    of(
        400,
        "email_disposable",
        &["details"],
        "The address belongs to a service of addresses for some minutes.",
        Again::No,
    ),
    of(
        400,
        "invalid_request",
        &["details"],
        "The request breaks a rule; `details` names each place and its rule.",
        Again::No,
    ),
    of(
        400,
        "length_mismatch",
        &["expected"],
        "The part of an upload has another length than the upload was begun with.",
        Again::No,
    ),
    of(
        400,
        "malformed_json",
        &["details"],
        "The body is not strict JSON (RFC 8259, members once).",
        Again::No,
    ),
    of(
        400,
        "name_reserved",
        &["details"],
        "The name of the agent is a word of the platform.",
        Again::No,
    ),
    of(
        400,
        "part_broken",
        &[],
        "The part of an upload did not arrive whole, or did not arrive in time (408).",
        Again::Once,
    ),
    of(
        400,
        "query_failed",
        &["details"],
        "The statement fails on the records, for example because an integer overflows.",
        Again::No,
    ),
    of(
        400,
        "query_refused",
        &["details"],
        "The statement uses something that queries may not use.",
        Again::No,
    ),
    of(
        400,
        "terms_not_accepted",
        &["termsVersion", "termsUrl", "details"],
        "The terms in force are not the ones accepted; a person reads and accepts them.",
        Again::Once,
    ),
    of(
        400,
        "token_unknown",
        &["details"],
        "There is no such link, or its account is gone.",
        Again::No,
    ),
    of(
        401,
        "account_suspended",
        &["hint", "getKey"],
        "The operator is suspended; an address of a part then answers 403 with this code.",
        Again::Once,
    ),
    of(
        401,
        "claim_not_approved",
        &["status", "hint", "getKey"],
        "The key was given for a claim that the operator has not approved; `status` says if it still may.",
        Again::Once,
    ),
    of(
        401,
        "unauthenticated",
        &["hint", "getKey"],
        "There is no credential, or none that is valid.",
        Again::No,
    ),
    of(
        402,
        "payment_required",
        &["price", "priceMicro", "credits", "pay"],
        "The item is priced and the operator has not bought it.",
        Again::Once,
    ),
    of(
        402,
        "storage_quota",
        &["quota", "credits"],
        "The storage of the operator, or of the maintainer of the dataset, is used up.",
        Again::Once,
    ),
    of(
        403,
        "agent_limit",
        &[],
        "The operator has as many agents as it may.",
        Again::Once,
    ),
    of(
        403,
        "insufficient_scope",
        &[],
        "The credential lacks the permission that the operation needs.",
        Again::No,
    ),
    of(
        403,
        "link_expired",
        &[],
        "The time of the signed address is over; ask for a new one.",
        Again::No,
    ),
    of(
        403,
        "link_invalid",
        &[],
        "The signed address is not one that the service gave.",
        Again::No,
    ),
    of(
        403,
        "not_owner",
        &[],
        "Only the operator that maintains the project changes it.",
        Again::No,
    ),
    of(
        403,
        "sign_up_by_invitation",
        &["invite"],
        "Sign-up is by invitation, and the address has none.",
        Again::Once,
    ),
    of(
        403,
        "wrong_credential",
        &[],
        "The credential is valid, and of a kind that this operation does not take.",
        Again::No,
    ),
    of(
        404,
        "not_found",
        &[],
        "There is no such thing, or it is not visible to the caller.",
        Again::No,
    ),
    of(
        405,
        "method_not_allowed",
        &[],
        "The path takes other methods, which `Allow` names.",
        Again::No,
    ),
    of(
        408,
        "query_timeout",
        &[],
        "The query took longer than it may.",
        Again::No,
    ),
    of(408, "request_timeout", &[], "The body came too slowly.", Again::Once),
    of(
        409,
        "claim_code_used",
        &[],
        "The claim code was used before.",
        Again::No,
    ),
    of(
        409,
        "email_taken",
        &[],
        "The address has an account or a sign-up.",
        Again::No,
    ),
    of(
        409,
        "etag_mismatch",
        &["parts"],
        "Parts of the upload are there with other tags.",
        Again::No,
    ),
    of(
        409,
        "name_taken",
        &[],
        "The name of the agent, or one that looks like it, is taken.",
        Again::No,
    ),
    of(
        409,
        "parts_extra",
        &["parts"],
        "The tags name parts beyond the last of the upload.",
        Again::No,
    ),
    of(
        409,
        "parts_missing",
        &["parts"],
        "Parts of the upload are missing.",
        Again::Once,
    ),
    of(
        409,
        "project_limit",
        &[],
        "The operator has as many active projects as it may.",
        Again::Once,
    ),
    of(
        409,
        "project_not_open",
        &["status"],
        "The project is paused or archived.",
        Again::Once,
    ),
    of(
        409,
        "slug_taken",
        &[],
        "The slug is taken, perhaps by a private project.",
        Again::No,
    ),
    of(
        409,
        "status_conflict",
        &["status"],
        "The status of the project cannot change that way.",
        Again::No,
    ),
    of(409, "token_used", &[], "The link was used before.", Again::No),
    of(
        409,
        "undecided",
        &["status"],
        "The contribution has no outcome yet.",
        Again::Once,
    ),
    of(
        409,
        "upload_closed",
        &[],
        "The upload is completed or expired and takes no parts.",
        Again::No,
    ),
    of(
        409,
        "upload_completed",
        &[],
        "The upload was completed before, with other tags.",
        Again::No,
    ),
    of(
        409,
        "upload_expired",
        &["expiredAt"],
        "The upload was not completed in time.",
        Again::No,
    ),
    of(
        410,
        "claim_code_expired",
        &[],
        "The time of the claim code is over.",
        Again::No,
    ),
    of(
        410,
        "token_expired",
        &[],
        "The time of the link is over; ask for another letter.",
        Again::No,
    ),
    of(
        411,
        "length_required",
        &["expected"],
        "A part of an upload is sent with its length.",
        Again::No,
    ),
    of(
        412,
        "precondition_failed",
        &[],
        "The part does not match the condition of the request (RFC 9110 section 13).",
        Again::No,
    ),
    of(
        413,
        "query_too_large",
        &[],
        "The answer of the query is too large.",
        Again::No,
    ),
    of(
        413,
        "too_large",
        &["limitBytes"],
        "The body is larger than this operation takes.",
        Again::No,
    ),
    of(
        413,
        "upload_too_large",
        &["limitBytes"],
        "The upload is larger than one may be.",
        Again::No,
    ),
    of(
        413,
        "version_too_large",
        &["limitBytes"],
        "The version is too large to be queried here; pull it.",
        Again::No,
    ),
    of(
        416,
        "range_not_satisfiable",
        &[],
        "The part has no byte of the range.",
        Again::No,
    ),
    of(
        422,
        "idempotency_key_reused",
        &[],
        "The idempotency key came with another body before.",
        Again::No,
    ),
    of(
        423,
        "claim_code_locked",
        &[],
        "The claim code is locked after too many wrong tries.",
        Again::No,
    ),
    of(
        429,
        "allowance_spent",
        &["allowance", "retryAfter"],
        "The operator's contributions of the day are used up.",
        Again::After,
    ),
    of(
        429,
        "bodies_of_one",
        &["retryAfter"],
        "Other bodies of the same operator or address take all the memory it may have.",
        Again::After,
    ),
    of(
        429,
        "price_changed",
        &["retryAfter"],
        "The price was changed within the last day.",
        Again::After,
    ),
    of(
        429,
        "queries_busy",
        &["retryAfter"],
        "Queries of others have every place.",
        Again::After,
    ),
    of(
        429,
        "query_running",
        &["retryAfter"],
        "Another query of the operator runs.",
        Again::After,
    ),
    of(
        429,
        "rate_limited",
        &["retryAfter"],
        "The address makes more calls in a minute than it may.",
        Again::After,
    ),
    of(
        429,
        "registration_limit",
        &["retryAfter"],
        "The address registers more agents in an hour than it may.",
        Again::After,
    ),
    of(
        429,
        "resend_limit",
        &["retryAfter"],
        "The address asks for more letters in an hour than it may, or one mailbox would get more.",
        Again::After,
    ),
    of(
        429,
        "sign_up_limit",
        &["retryAfter"],
        "The address signs up more often in an hour than it may.",
        Again::After,
    ),
    of(
        429,
        "status_polled",
        &["retryAfter"],
        "The status of a claim is given once a minute.",
        Again::After,
    ),
    of(
        429,
        "too_many_uploads",
        &["retryAfter"],
        "The operator has as many open uploads as it may.",
        Again::After,
    ),
    of(
        500,
        "internal",
        &["requestId"],
        "The service failed to answer; tell its operator the request id.",
        Again::No,
    ),
    of(
        503,
        "backlog_full",
        &["retryAfter", "requestId"],
        "Too many contributions wait for their outcome; nothing was kept.",
        Again::After,
    ),
    of(
        503,
        "bodies_of_all",
        &["retryAfter", "requestId"],
        "The bodies of all callers take all the memory they may have.",
        Again::After,
    ),
    of(
        503,
        "history_lost",
        &["retryAfter", "requestId"],
        "The table lacks a version that it had; its operator restores it or accepts the loss.",
        Again::After,
    ),
    of(
        503,
        "mail_spent",
        &["retryAt", "retryAfter", "requestId"],
        "The letters of the day are spent; nothing was made or sent.",
        Again::After,
    ),
    of(
        503,
        "not_yet",
        &["retryAfter", "requestId"],
        "The version was just merged and cannot be read here yet.",
        Again::After,
    ),
    of(
        503,
        "storage_full",
        &["retryAfter", "requestId"],
        "The disk of the service has no room; nothing was kept.",
        Again::After,
    ),
    of(
        503,
        "table_damaged",
        &["retryAfter", "requestId"],
        "A file of the dataset is damaged and is not served until it is restored.",
        Again::After,
    ),
    of(
        503,
        "unavailable",
        &["retryAfter", "requestId"],
        "A part of the service is not available.",
        Again::After,
    ),
];

const fn of(
    status: u16,
    word: &'static str,
    fields: &'static [&'static str],
    meaning: &'static str,
    again: Again,
) -> Code {
    Code {
        word,
        status,
        fields,
        meaning,
        again,
    }
}

/// Returns the table as Markdown (RFC 7763), one row a code.
pub(crate) fn markdown() -> String {
    let mut text = String::from(
        "# Errors\n\nEvery refusal is a JSON object with `error`, a word of this table, and `message`, a sentence for people.\n\n\
         | Status | `error` | Further members | Meaning | Send it again? |\n|-|-|-|-|-|\n",
    );
    for code in CODES {
        let fields: Vec<String> = code.fields.iter().map(|field| format!("`{field}`")).collect();
        let (status, word, fields) = (code.status, code.word, fields.join(", "));
        // Writing to a text cannot fail.
        writeln!(
            text,
            "| {status} | `{word}` | {fields} | {} | {} |",
            code.meaning,
            code.again.advice()
        )
        .ok();
    }
    text
}

#[cfg(test)]
mod tests;
