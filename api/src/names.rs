//! Names of agents and apps: reserved words, and names that look alike.
//!
//! Invariant: two names of agents count as the same exactly when their [`skeleton`]s are equal.

mod letters;

/// Words that would speak for the platform.
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

/// Returns the skeleton of a name (the term of UTS #39): case and look-alikes folded, `0` to `o`, `1` to `l`, `rn` to
/// `m`. The interface fixes this list.
///
/// Separators stay, since they are visible. A migration folds names again that were stored under a longer list.
pub fn skeleton(name: &str) -> String {
    let letters: String = name
        .chars()
        .map(|character| match character.to_ascii_lowercase() {
            '0' => 'o',
            '1' => 'l',
            other => other,
        })
        .collect();
    // After the digits are replaced: `r` and `n` side by side look like `m` in most fonts.
    letters.replace("rn", "m")
}

/// Returns the skeleton with more look-alikes folded: `i` to `l`, since a capital `I` looks like it, and `vv` to `w`.
/// It protects the platform's words only; two agents may be called `fiat` and `flat`.
fn loose(name: &str) -> String {
    skeleton(name).replace('i', "l").replace("vv", "w")
}

/// Returns true if a name speaks for the platform: it consists of reserved words, however separated or joined, with or
/// without a number at the end. A name of separators only is reserved too.
pub fn is_reserved(name: &str) -> bool {
    // Separators do not make a reserved word another name, as in `ad-min`.
    let squeezed: String = name.split(['.', '_', '-']).collect();
    let words = RESERVED.map(loose);
    // A number at the end does not make a reserved word another name, as in `admin2`.
    let unnumbered = squeezed.trim_end_matches(|character: char| character.is_ascii_digit());
    let is_made_of_words = |name: &str| !name.is_empty() && is_made_of(&loose(name), &words);
    squeezed.is_empty() || is_made_of_words(&squeezed) || is_made_of_words(unnumbered)
}

/// Returns true if the name of an app speaks for the platform, as the name of an agent would. A person reads it beside a
/// question, so letters of other scripts and signs that look like a letter count as that letter.
pub(crate) fn is_reserved_for_apps(name: &str) -> bool {
    let is_word = |plain: String| !plain.is_empty() && is_reserved(&plain);
    // A sign can be a letter, as in `|ogin`, or stand between words, as in `help!`.
    is_word(letters::plain(name, true)) || is_word(letters::plain(name, false))
}

/// Returns true if `text` is a sequence of `words`. The empty text is one.
fn is_made_of(text: &str, words: &[String]) -> bool {
    // `made[end]` is true if the first `end` bytes are a sequence of words.
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
    fn a_name_takes_time_that_is_linear_in_its_text() {
        growth::is_linear("a name", 1_000, |name| {
            is_reserved(name);
        });
    }

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
    fn an_app_is_not_called_like_the_platform_in_any_letters() {
        for name in [
            "Sluice",
            "S l u i c e",
            "SLUICE\u{ae} ",
            "Sluice (official)",
            "Sluice \u{b7} Support",
            "\u{405}luice",
            "S\u{4cf}u\u{456}\u{441}\u{435}",
            "\u{ff33}\u{ff4c}\u{ff55}\u{ff49}\u{ff43}\u{ff45}",
            "\u{1d5e6}\u{1d5f9}\u{1d602}\u{1d5f6}\u{1d5f0}\u{1d5f2}",
            "Slu\u{ed}ce",
            "S|u!ce",
            "\u{a731}\u{29f}\u{1d1c}\u{26a}\u{1d04}\u{1d07}",
            "\u{391}dmin",
            "\u{410}\u{501}m\u{456}n",
            "@dmin",
            "Help!",
            "\u{39c}\u{421}\u{3a1}",
            "Sluice 2",
        ] {
            assert!(is_reserved_for_apps(name), "{name}");
        }
        for name in [
            "Tide desk",
            "Sluice fan",
            "MCP Inspector",
            "\u{41f}\u{440}\u{438}\u{43b}\u{438}\u{432}",
            "\u{c870}\u{c218}",
            "\u{1f30a}",
            "1984",
            "Caf\u{e9}",
        ] {
            assert!(!is_reserved_for_apps(name), "{name}");
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
