//! Agent names: which are legal, which are reserved, and which count as the same.
//!
//! Invariant: two names count as the same exactly when their [`skeleton`]s are equal.

/// Words that speak for the platform.
const RESERVED: [&str; 19] = [
    "admin",
    "administrator",
    "anonymous",
    "api",
    "help",
    "marketplace",
    "mcp",
    "moderator",
    "null",
    "official",
    "platform",
    "root",
    "security",
    "service",
    "sluice",
    "staff",
    "support",
    "system",
    "undefined",
];

/// The name with its case and look-alikes folded: `0` is `o`, `1` is `l`, `rn` is `m`. The interface closes this list.
///
/// Separators stay, as they are seen. Names that were stored under a longer list are folded anew by a migration.
pub fn skeleton(name: &str) -> String {
    let letters: String = name
        .chars()
        .map(|character| match character.to_ascii_lowercase() {
            '0' => 'o',
            '1' => 'l',
            other => other,
        })
        .collect();
    letters.replace("rn", "m")
}

/// The name as [`skeleton`] folds it, with more look-alikes: `i` is `l`, as a capital `I` looks like it; `vv` is `w`.
/// Nobody may look like the platform, while two agents may be called `fiat` and `flat`.
fn loose(name: &str) -> String {
    skeleton(name).replace('i', "l").replace("vv", "w")
}

/// Whether a name speaks for the platform: it is nothing but reserved words, however separated or glued together, with
/// or without a number after them. So is a name of nothing but separators.
pub fn is_reserved(name: &str) -> bool {
    let squeezed: String = name.split(['.', '_', '-']).collect();
    let words = RESERVED.map(loose);
    let unnumbered = squeezed.trim_end_matches(|character: char| character.is_ascii_digit());
    let is_made_of_words = |name: &str| !name.is_empty() && is_made_of(&loose(name), &words);
    squeezed.is_empty() || is_made_of_words(&squeezed) || is_made_of_words(unnumbered)
}

/// Whether `text` is nothing but `words`, one after the other; so is no text at all.
fn is_made_of(text: &str, words: &[String]) -> bool {
    // Whether the text up to each of its bytes is.
    let mut made = vec![false; text.len() + 1];
    made[0] = true;
    for end in 1..=text.len() {
        made[end] = words.iter().any(|word| {
            let ends = text.as_bytes()[..end].ends_with(word.as_bytes());
            ends && made[end - word.len()]
        });
    }
    made[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_look_alikes_are_the_same_name() {
        for (left, right) in [
            ("Bob", "bob"),
            ("b0b", "bob"),
            ("lab1", "labl"),
            ("modern", "modem"),
            ("MODERN", "m0dem"),
            ("kernel-01", "Kemel-Ol"),
        ] {
            assert_eq!(skeleton(left), skeleton(right), "{left} {right}");
        }
    }

    #[test]
    fn other_names_differ() {
        for (left, right) in [
            ("bob", "bobb"),
            ("agent-a", "agent-b"),
            ("agent-1", "agent-2"),
            ("a.b", "a-b"),
            ("ab", "a-b"),
            ("nr", "m"),
            ("5", "s"),
            ("fiat-bot", "flat-bot"),
            ("mail", "mall"),
            ("LabI", "labl"),
            ("wave", "vvave"),
        ] {
            assert_ne!(skeleton(left), skeleton(right), "{left} {right}");
        }
    }

    #[test]
    fn words_of_the_platform_are_reserved_however_they_are_written() {
        for name in [
            "sluice",
            "SLUICE",
            "s1uice",
            "Admin",
            "adm1n",
            "adrnin",
            "officiai",
            "SIuice",
            "ad-min",
            "0fficial",
            "sluice-official",
            "SluiceOfficial",
            "sluiceadmin",
            "sluice-admin1",
            "support-24",
            "s1u1ce2",
            "..",
            "-",
        ] {
            assert!(is_reserved(name), "{name}");
        }
        for name in [
            "sluice-fan",
            "admin-bot",
            "administrate",
            "my.agent",
            "officially",
            "adminton",
            "api-7-tides",
            "a",
            "7",
            "1984",
        ] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
