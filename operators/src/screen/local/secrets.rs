//! The forms of credentials.
//!
//! Invariant: a form that identifiers share (`km_per_hour…`) counts only if its body looks random. Keys that vendors
//! print in their documentation do not count.

use std::sync::LazyLock;

use regex::Regex;

/// Returns true if `text` contains a credential.
pub(super) fn has_secret(text: &str) -> bool {
    // The patterns are constants, so compiling cannot fail; a test compiles them.
    let foreign = FOREIGN.as_ref().is_some_and(|pattern| pattern.is_match(text));
    // `AKIAIOSFODNN7EXAMPLE` and the like are printed in documentation.
    let drawn = |body: &str| is_random(body) && !body.ends_with("EXAMPLE");
    foreign
        || MIXED
            .as_ref()
            .is_some_and(|pattern| pattern.captures_iter(text).any(|found| drawn(&found[1])))
}

/// Returns true if a token's body looks random: a long stretch with letters and digits.
fn is_random(body: &str) -> bool {
    const STRETCH: usize = 12;
    body.split(['_', '-']).any(|stretch| {
        let count = |test: fn(&u8) -> bool| stretch.bytes().filter(test).count();
        stretch.len() >= STRETCH && count(u8::is_ascii_digit) >= 2 && count(u8::is_ascii_alphabetic) >= 2
    })
}

/// Forms that are credentials whatever follows.
static FOREIGN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        -----BEGIN\ (?:[A-Z0-9]+\ ){0,3}PRIVATE\ KEY(?:\ BLOCK)?-----
        | \b(?:
            (?:gh[pousr]_ | github_pat_) [A-Za-z0-9_]{36,}
          | glpat-[A-Za-z0-9_-]{20,}
          | xox[abps]-[0-9]{6,}-[A-Za-z0-9-]{10,} | xapp-[0-9]-[A-Z0-9]{8,}-[0-9]{6,}-[a-f0-9]{16,}
          | AIza[A-Za-z0-9_-]{35}
          | [sr]k_live_[A-Za-z0-9]{20,}
          | sk-(?:ant|proj)-[A-Za-z0-9_-]{24,}
          | npm_[A-Za-z0-9]{36} | pypi-AgE[A-Za-z0-9_-]{40,}
        )
        ",
    )
    .ok()
});

/// Forms that ordinary words share: access keys of a cloud, and this service's own keys and tokens.
static MIXED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b(?:(?:AKIA|ASIA)|(?:km|wto|wtc)_)([A-Za-z0-9_-]{16,})").ok());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_compile() {
        assert!(FOREIGN.is_some() && MIXED.is_some());
    }
}
