//! Place of an error in a statement.
//!
//! The engine names the part that is wrong and seldom where it stands, so the part is looked for among the words of the
//! statement.
//!
//! Invariant: a place is within the statement. The search is linear in its length.

use pages::StatementPlace;

/// Longest part that is looked for, in characters. The engine quotes no longer ones.
const MAX_PART_CHARS: usize = 200;
/// Characters of the line that are shown before and behind a place.
const MAX_CONTEXT_CHARS: usize = 60;
/// Longest name that is compared with others, in characters.
const MAX_COMPARED_CHARS: usize = 64;

/// Word, text, number or sign of a statement.
#[derive(Clone, Copy, Debug)]
struct SqlToken<'a> {
    /// Place in bytes.
    at: usize,
    /// Text as it stands, with its quotes.
    written: &'a str,
}

impl<'a> SqlToken<'a> {
    /// Returns the name or the text that the token stands for, as far as it has no quote within.
    fn inner(self) -> &'a str {
        let quote = |letter: char| matches!(letter, '"' | '\'');
        self.written.trim_matches(quote)
    }

    /// Returns true if two tokens are the same but for case and the quotes of a name. A text is never a name.
    fn is_like(self, other: &SqlToken<'_>) -> bool {
        let is_text = |token: &str| token.starts_with('\'');
        is_text(self.written) == is_text(other.written) && self.inner().to_lowercase() == other.inner().to_lowercase()
    }
}

/// Returns the tokens of a statement without blanks and comments.
fn tokens(sql: &str) -> Vec<SqlToken<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(letter) = sql[at..].chars().next() {
        let rest = &sql[at..];
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let length = match letter {
            '"' | '\'' => {
                // A doubled quote ends one text and begins the next, which is as good for a search.
                let inner = rest[1..].find(letter);
                inner.map_or(rest.len(), |end| end + 2)
            }
            '-' if rest.starts_with("--") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            '/' if rest.starts_with("/*") => {
                at += rest[2..].find("*/").map_or(rest.len(), |end| end + 4);
                continue;
            }
            letter if letter.is_whitespace() => {
                at += letter.len_utf8();
                continue;
            }
            letter if is_word(letter) => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
            letter => letter.len_utf8(),
        };
        found.push(SqlToken {
            at,
            written: &rest[..length],
        });
        at += length;
    }
    found
}

/// Returns the place of what a message of the engine is about.
pub(super) fn of(message: &str, sql: &str) -> Option<StatementPlace> {
    let all = tokens(sql);
    if let Some(at) = stated(message, sql) {
        let token = all.iter().find(|token| token.at == at).map(|token| token.written.len());
        // Inside of a token its rest is not worth the search: a letter shows the place.
        let letter = || sql[at..].chars().next().map_or(0, char::len_utf8);
        return Some(around(sql, at, token.unwrap_or_else(letter)));
    }
    let (start, end) = parts(message).find_map(|part| found(&part, &all))?;
    Some(around(sql, start, end - start))
}

/// Returns the place in bytes that the parser states by line and column, both from 1.
fn stated(message: &str, sql: &str) -> Option<usize> {
    if message.ends_with("found: EOF") {
        return Some(sql.trim_end().len());
    }
    let (_, rest) = message.rsplit_once("at Line: ")?;
    let (line, rest) = rest.split_once(", Column: ")?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let (line, column) = (line.parse::<usize>().ok()?, rest[..digits].parse::<usize>().ok()?);
    let lines = line.checked_sub(1)?;
    let rest = sql.split('\n').nth(lines)?;
    let before: usize = sql.split_inclusive('\n').take(lines).map(str::len).sum();
    // The end of the statement is a place too.
    let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.clone().nth(column.checked_sub(1)?).map(|at| before + at)
}

/// Returns what a message quotes, in backticks first, and the function that it begins with. A value of a text may be a name.
fn parts(message: &str) -> impl Iterator<Item = String> {
    let quoted = |quote: char| message.split(quote).skip(1).step_by(2).map(str::to_owned);
    let called = message.split("()").next().filter(|name| name.len() < message.len());
    let called = called.and_then(|name| name.rsplit(|letter: char| letter.is_whitespace()).next());
    let texts = quoted('\'').map(|text| format!("'{text}'"));
    let all = quoted('`')
        .chain(called.map(str::to_owned))
        .chain(texts)
        .chain(quoted('\''));
    all.filter(|part| !part.is_empty() && part.chars().count() <= MAX_PART_CHARS)
}

/// Returns the begin and the end of a part in a statement, in bytes. Letters and blanks may differ, as the engine writes a
/// part anew; so the whole is looked for, then its last word, as of `table.column`, then its first.
fn found(part: &str, all: &[SqlToken<'_>]) -> Option<(usize, usize)> {
    let part = part.trim_end_matches('…');
    let wanted = tokens(part);
    let (first, last) = (wanted.first()?, wanted.last()?);
    let whole = all.windows(wanted.len()).find(|window| {
        let pairs = window.iter().zip(&wanted);
        pairs.into_iter().all(|(token, wanted)| token.is_like(wanted))
    });
    let is_name = |token: &&SqlToken<'_>| token.inner().chars().any(char::is_alphanumeric);
    let single = |token: &SqlToken<'_>| {
        let token = Some(token).filter(is_name)?;
        all.iter().find(|other| other.is_like(token)).map(std::slice::from_ref)
    };
    // A part without blanks is a name with its table; of any other the end says little.
    let by_end = || (!part.contains(char::is_whitespace)).then(|| single(last)).flatten();
    let found = whole.or_else(by_end).or_else(|| single(first))?;
    let end = found.last()?;
    Some((found.first()?.at, end.at + end.written.len()))
}

/// Returns a place with the text around it, on its first line.
fn around(sql: &str, at: usize, length: usize) -> StatementPlace {
    let begin = sql[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = sql[at..].find('\n').map_or(sql.len(), |end| at + end);
    let stop = (at + length).min(end);
    let (before, behind) = (&sql[begin..at], &sql[stop..end]);
    let character = before.chars().count() + 1;
    let skipped = (character - 1).saturating_sub(MAX_CONTEXT_CHARS);
    let mark = if skipped > 0 { "…" } else { "" };
    StatementPlace {
        line: sql[..at].matches('\n').count() + 1,
        character,
        before: format!("{mark}{}", before.chars().skip(skipped).collect::<String>()),
        at: shortened(&sql[at..stop]),
        behind: shortened(behind),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_CONTEXT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the name that a message says is missing, as long as it is about a column.
pub(super) fn missing_column(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("there is no column `")?;
    let (name, _) = rest.split_once('`')?;
    // The name of its table may stand before it.
    Some(name.rsplit('.').next().unwrap_or(name))
}

/// Returns the name that is most like another, if one is.
pub(super) fn like<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |name: &str| name.to_lowercase().chars().collect::<Vec<_>>();
    let wanted = letters(name);
    let most = (wanted.len() / 3).max(1);
    if wanted.len() > MAX_COMPARED_CHARS {
        return None;
    }
    let near = names.filter_map(|name| {
        let other = letters(name);
        let is_comparable = other.len() <= MAX_COMPARED_CHARS && other.len().abs_diff(wanted.len()) <= most;
        is_comparable.then(|| (edits(&wanted, &other), name))
    });
    let nearest = near.min_by_key(|(edits, _)| *edits)?;
    (nearest.0 <= most).then_some(nearest.1)
}

/// Returns the number of letters that are added, left out, replaced or swapped with their neighbour between two names
/// (the distance of Damerau and Levenshtein, each place changed once).
fn edits(left: &[char], right: &[char]) -> usize {
    let mut older = vec![0; right.len() + 1];
    let mut before: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let replaced = before[column] + usize::from(letter != other);
            let mut least = replaced.min(before[column + 1] + 1).min(current[column] + 1);
            let is_swapped = row > 0 && column > 0 && left[row - 1] == *other && right[column - 1] == *letter;
            if is_swapped {
                least = least.min(older[column - 1] + 1);
            }
            current.push(least);
        }
        older = std::mem::replace(&mut before, current);
    }
    before[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn at(message: &str, sql: &str) -> (usize, usize, String) {
        let place = of(message, sql).unwrap();
        (place.line, place.character, place.at)
    }

    #[test]
    fn what_a_message_names_is_found_in_the_statement() {
        let sql = "SELECT 'gague', gague, -- gague\n  sum(Name) AS s /* x */\nFROM records r WHERE r.at >= 5";
        for (message, expected) in [
            (
                "there is no column `gague`; the columns here are gauge",
                (1, 17, "gague"),
            ),
            ("there is no column `records.name`", (2, 7, "Name")),
            ("sum() takes numbers and differences of times, not text", (2, 3, "sum")),
            ("`>=` cannot be used with timestamp and bigint", (3, 27, ">=")),
            ("`r.AT` is refused: some rule", (3, 22, "r.at")),
            ("no word of it, then at Line: 3, Column: 6", (3, 6, "records")),
            ("expected an end at Line: 3, Column: 31", (3, 31, "")),
            ("an expression was wanted, found: EOF", (3, 31, "")),
            ("Error parsing timestamp from 'gague'", (1, 8, "'gague'")),
        ] {
            let (line, character, text) = at(message, sql);
            assert_eq!((line, character, text.as_str()), expected, "{message}");
        }
        // A comment is no part of the statement, and a message may name nothing.
        assert_eq!(of("there is no column `x`", sql), None);
        assert_eq!(of("division by zero", sql), None);
        assert_eq!(of("", ""), None);
        assert_eq!(of("at Line: 9, Column: 1", "SELECT 1"), None);
        assert_eq!(of("at Line: 0, Column: 0", "SELECT 1"), None);
    }

    #[test]
    fn the_line_is_shown_around_the_place() {
        let sql = format!("SELECT 1,\n{}naïve{}\nFROM records", "é".repeat(100), " ".repeat(100));
        let sql = sql.replace("énaïve", "é naïve");
        let place = of("there is no column `naïve`", &sql).unwrap();
        assert_eq!((place.line, place.character, place.at.as_str()), (2, 102, "naïve"));
        assert!(
            place.before.starts_with('…') && place.before.ends_with("é "),
            "{place:?}"
        );
        assert_eq!(place.behind.chars().count(), MAX_CONTEXT_CHARS + 1);
    }

    #[test]
    fn the_nearest_name_is_meant() {
        let names = ["gauge", "at", "metres", "quality"];
        for (wrong, meant) in [
            ("gague", Some("gauge")),
            ("Metre", Some("metres")),
            ("qualty", Some("quality")),
            ("ta", Some("at")),
            ("sensor", None),
        ] {
            assert_eq!(like(wrong, names.into_iter()), meant, "{wrong}");
        }
        assert_eq!(like(&"x".repeat(4_000), names.into_iter()), None);
        assert_eq!(
            missing_column("failed: there is no column `r.gague`; the columns"),
            Some("gague")
        );
        assert_eq!(missing_column("division by zero"), None);
    }

    #[test]
    fn a_statement_without_an_end_is_read_whole() {
        for sql in ["'", "\"", "SELECT 'a", "/*", "--", "/* x", "\u{1f600}", "a\u{301}"] {
            let all = tokens(sql);
            assert!(
                all.iter().all(|token| sql[token.at..].starts_with(token.written)),
                "{sql}"
            );
            assert!(of("`x` is refused: `'` and 'a'", sql).is_none_or(|place| place.line == 1));
        }
    }
}
