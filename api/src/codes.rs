//! The table of error codes: the words of the member `error` in a refusal, with everything a caller may rely on.
//!
//! Invariant: an answer has no code that is not here, and its kind and status are those of the code unless a case has
//! another.

use std::fmt::Write as _;

use http::StatusCode;
use types::Kind;

mod table;

pub(crate) use table::{CODES, ErrorCode};

/// Advice to a caller on sending the same call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryAdvice {
    /// The same call fails again.
    No,
    /// The call can succeed after the time in `Retry-After`.
    After,
    /// The call can succeed once something else happened, which the meaning names.
    Once,
}

impl RetryAdvice {
    /// Returns the advice as words.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::After => "after `Retry-After`",
            Self::Once => "once that changed",
        }
    }
}

/// Row of one error code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorCodeRow {
    /// The code itself, the member `error` of the body.
    pub word: &'static str,
    /// Status of the answer.
    pub status: u16,
    /// Members of the body beside `error` and `message`.
    pub fields: &'static [&'static str],
    /// Sentence for people.
    pub meaning: &'static str,
    /// Advice on sending the same call again.
    pub again: RetryAdvice,
}

impl ErrorCode {
    const fn row(self) -> &'static ErrorCodeRow {
        &CODES[self as usize]
    }

    /// Returns the word on the wire, such as `not_found`.
    pub(crate) const fn word(self) -> &'static str {
        self.row().word
    }

    /// Returns the status of the answer.
    pub(crate) fn status(self) -> StatusCode {
        // A test asks it of every code.
        StatusCode::from_u16(self.row().status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns the kind of error, which follows from the status.
    pub(crate) const fn kind(self) -> Kind {
        if matches!(self, Self::TableDamaged) {
            return Kind::Damaged;
        }
        match self.row().status {
            401 => Kind::Unauthenticated,
            402 => Kind::PaymentRequired,
            403 => Kind::Forbidden,
            404 => Kind::NotFound,
            409 | 410 | 423 => Kind::Conflict,
            413 => Kind::TooLarge,
            422 => Kind::Unprocessable,
            429 => Kind::Limited,
            503 => Kind::Unavailable,
            500 => Kind::Internal,
            _ => Kind::Invalid,
        }
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
