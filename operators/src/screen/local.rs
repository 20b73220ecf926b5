//! The default screener: a documented heuristic that needs no model.
//!
//! Invariant: the same text always gets the same opinion. An objection describes the violation and never quotes the
//! text.
//!
//! It objects to a record that
//! - instructs a model to ignore or reveal its instructions, in one of nine languages, or forges the turn marks of a
//!   chat (`prompt_injection`);
//! - hides text in Unicode tag characters, other than in one of three flags, or reverses text with a direction override
//!   (`hidden_text`);
//! - contains a private key, or a token of a cloud, a code host, a payment service or of this service (`secret`);
//! - is mostly links next to the words of an advertisement, or repeats those words (`link_spam`);
//! - is one character or a few repeated, or dummy text (`filler`).
//!
//! It recognises phrases and forms, not meaning: an injection in other words passes, and a record that quotes one
//! literally is refused. A model behind the same trait does better.

mod filler;
mod phrases;
mod prefilter;
mod secrets;

use async_trait::async_trait;

use super::{Opinion, Screener, Unavailable};
use crate::text::{might_disguise, normalise};

/// A screener that judges by phrases and forms; always available.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalScreener;

#[async_trait]
impl Screener for LocalScreener {
    async fn screen(&self, records: &[&str]) -> Result<Vec<Opinion>, Unavailable> {
        Ok(records.iter().map(|record| judge(record)).collect())
    }
}

/// Returns the first objection to a record.
fn judge(record: &str) -> Opinion {
    let mut folded = String::new();
    // ASCII text cannot hide anything, and needs no plain spelling.
    let mut plain = record;
    if !record.is_ascii() {
        // Checked on the original, since the plain spelling drops invisible characters.
        if hides_text(record) {
            return Opinion::objectionable("hidden_text", "text that shows", "characters that hide or reverse text");
        }
        if might_disguise(record.as_bytes()) {
            normalise(record, &mut folded);
            plain = &folded;
        }
    }
    // One search serves all rules below; each then checks what it needs around a phrase.
    let found = phrases::find(plain);
    if found.injection {
        return Opinion::objectionable(
            "prompt_injection",
            "data, not instructions to a model",
            "instructions to a model",
        );
    }
    if found.secret && secrets::has_secret(plain) {
        return Opinion::objectionable("secret", "no credentials", "a private key or an access token");
    }
    if found.is_spam(plain) {
        return Opinion::objectionable("link_spam", "content of its own", "advertising links");
    }
    if found.dummy || filler::is_filler(plain) {
        return Opinion::objectionable("filler", "content of its own", "repeated or dummy text");
    }
    Opinion::Acceptable
}

/// The flags that are written with tag characters: England, Scotland and Wales, after a black flag (UTS #51, RGI emoji
/// tag sequences).
const FLAGS: [&str; 3] = [
    "\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
];

/// Returns true if the text has tag characters outside a flag, or a direction override.
fn hides_text(text: &str) -> bool {
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            '\u{1F3F4}' => {
                let after = rest.as_str();
                if let Some(after) = FLAGS.iter().find_map(|flag| after.strip_prefix(flag)) {
                    rest = after.chars();
                }
            }
            '\u{E0000}'..='\u{E007F}' | '\u{202D}' | '\u{202E}' => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests;
