//! The table of error codes: the words of the member `error` in a refusal, with everything a caller may rely on.
//!
//! Invariant: an answer has no code that is not here, and there is no code here that no answer has; `tidy` compares the
//! table with the source.

use std::fmt::Write as _;

mod table;

pub use table::CODES;

/// Advice to a caller on sending the same call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAdvice {
    /// The same call fails again.
    No,
    /// The call can succeed after the time in `Retry-After`.
    After,
    /// The call can succeed once something else happened, which the meaning names.
    Once,
}

impl RetryAdvice {
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
pub struct ErrorCode {
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
