//! The parts of a Markdown text: sentences of prose, lines of code, rows of tables, and the quantities in them.
//!
//! Invariant: linear in the text; no text makes it slower than its length.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A sentence, an item of a list or a row of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Sentence {
    /// Text in lower case, without the marks of Markdown.
    pub(super) lower: String,
    /// Text as it is.
    pub(super) text: String,
    /// True for an item of a list that has a number or a bullet.
    pub(super) is_item: bool,
    /// True for a row of a table.
    pub(super) is_row: bool,
}

/// A text in its parts.
#[derive(Clone, Debug, Default)]
pub(super) struct ParsedText {
    /// Sentences, items and rows in order.
    pub(super) sentences: Vec<Sentence>,
    /// Lines of fenced code.
    pub(super) code: Vec<String>,
    /// The rows of each table, by cell, its head first.
    pub(super) tables: Vec<Vec<Vec<String>>>,
    /// True if a code block has two lines or more.
    pub(super) has_block: bool,
}

/// Splits Markdown into sentences, lines of code and tables.
pub(super) fn parse(body: &str) -> ParsedText {
    let mut parsed = ParsedText::default();
    let (mut fenced, mut lines_of_block) = (false, 0);
    let mut table: Vec<Vec<String>> = Vec::new();
    for line in body.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            parsed.has_block |= fenced && lines_of_block >= 2;
            fenced = !fenced;
            lines_of_block = 0;
            continue;
        }
        if fenced {
            if !trimmed.is_empty() {
                lines_of_block += 1;
                parsed.code.push(trimmed.to_owned());
            }
            continue;
        }
        if let Some(row) = trimmed.strip_prefix('|') {
            let cells: Vec<String> = row
                .trim_end_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect();
            let is_rule = cells
                .iter()
                .all(|cell| cell.chars().all(|c| matches!(c, '-' | ':' | ' ')));
            if !is_rule {
                parsed.sentences.push(sentence(trimmed, false, true));
                table.push(cells);
            }
            continue;
        }
        if !table.is_empty() {
            parsed.tables.push(std::mem::take(&mut table));
        }
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let (item, rest) = list_item(trimmed);
        // Each sentence of a line; a stop inside a number or a name ends none.
        let mut start = 0;
        let mut first = true;
        let ends = rest.char_indices().filter(|(at, character)| {
            let after = &rest[at + character.len_utf8()..];
            matches!(character, '.' | '!' | '?')
                && (after.is_empty() || after.starts_with([' ', '"', ')', '*']) || matches!(character, '。' | '？'))
        });
        for end in ends
            .map(|(at, character)| at + character.len_utf8())
            .chain([rest.len()])
        {
            if rest[start..end].trim().len() > 1 {
                parsed
                    .sentences
                    .push(sentence(rest[start..end].trim(), item && first, false));
                first = false;
            }
            start = end;
        }
    }
    if !table.is_empty() {
        parsed.tables.push(table);
    }
    parsed.has_block |= fenced && lines_of_block >= 2;
    parsed
}

fn sentence(text: &str, is_item: bool, is_row: bool) -> Sentence {
    let lower = text
        .to_lowercase()
        .replace(['*', '`', '|', '"', '“', '”', '(', ')', '[', ']', '→'], " ");
    Sentence {
        lower,
        text: text.to_owned(),
        is_item,
        is_row,
    }
}

/// Returns true for an item of a list, and the text without its mark.
fn list_item(line: &str) -> (bool, &str) {
    if let Some(rest) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return (true, rest);
    }
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if (1..=3).contains(&digits)
        && let Some(rest) = line[digits..].strip_prefix(['.', ')'])
        && rest.starts_with(' ')
    {
        return (true, rest.trim_start());
    }
    (false, line)
}

/// The words of a sentence: runs between spaces without the punctuation around them.
pub(super) fn words(lower: &str) -> Vec<&str> {
    let outer = |c: char| {
        matches!(
            c,
            ',' | '.' | ':' | ';' | '!' | '?' | '\'' | '。' | '、' | '·' | '<' | '>' | '~' | '/'
        )
    };
    lower
        .split_whitespace()
        .map(|word| word.trim_matches(outer))
        .filter(|word| !word.is_empty())
        .collect()
}

/// A number with its unit; the unit is empty for a bare number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantity {
    pub(super) value: f64,
    pub(super) unit: &'static str,
}

/// The spellings of each unit, the name first.
const MEASURE_WORDS: [&[&str]; 40] = [
    &["ms", "msec", "millisecond", "milliseconds", "밀리초"],
    &["µs", "us", "μs", "microseconds", "마이크로초"],
    &["ns", "nanoseconds"],
    &["s", "sec", "secs", "second", "seconds", "초"],
    &["min", "mins", "minute", "minutes", "분"],
    &["h", "hr", "hour", "hours", "시간"],
    &["days", "day", "d", "일"],
    &["weeks", "week", "주", "주일"],
    &["months", "month", "개월", "달"],
    &["years", "year", "년"],
    &["%", "percent", "퍼센트", "％", "points", "point"],
    &["b", "bytes", "byte", "바이트"],
    &["kb", "kib", "k"],
    &["mb", "mib"],
    &["gb", "gib", "g"],
    &["tb", "tib"],
    &["mbps", "mbit/s", "gbps", "gbit/s", "kbps", "mb/s", "gb/s", "mib/s"],
    &["req/s", "rps", "qps", "tps", "rows/s", "ops/s", "iops"],
    &["requests", "request", "calls", "call", "요청"],
    &["rows", "row", "records", "record", "행", "레코드"],
    &["tokens", "token", "토큰"],
    &["messages", "message", "messages/s", "events", "메시지"],
    &[
        "건",
        "cases",
        "tickets",
        "invoices",
        "orders",
        "payments",
        "incidents",
        "transactions",
        "documents",
        "questions",
    ],
    &[
        "개",
        "files",
        "items",
        "pages",
        "samples",
        "prompts",
        "examples",
        "tables",
        "queries",
        "partitions",
    ],
    &[
        "회",
        "번",
        "times",
        "runs",
        "trials",
        "attempts",
        "retries",
        "repetitions",
    ],
    &["명", "people", "users", "customers", "clients", "accounts"],
    &[
        "대", "machines", "nodes", "hosts", "servers", "replicas", "pods", "workers", "brokers",
    ],
    &["원", "krw"],
    &["usd", "dollars", "dollar", "달러", "cents"],
    &["eur", "euro", "euros", "유로"],
    &["엔", "yen", "jpy"],
    &["°c", "℃", "도", "degrees"],
    &["배", "x", "×", "fold"],
    &["cores", "core", "vcpu", "vcpus", "코어", "threads", "connections"],
    &["hz", "khz", "mhz", "ghz"],
    &["w", "kw", "kwh", "v", "a"],
    &["m", "km", "cm", "mm", "미터"],
    &["bp", "bps"],
    &[
        "만", "만건", "만원", "억", "억원", "천", "million", "billion", "thousand",
    ],
    &[
        "장",
        "줄",
        "lines",
        "곳",
        "종",
        "자",
        "글자",
        "characters",
        "가지",
        "단계",
        "bit",
        "bits",
        "steps",
    ],
];

/// The most bytes of a word that can be a unit with particles.
const LONGEST_UNIT: usize = 24;

/// The name of each unit, by each of its spellings.
static NAMES: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    for spellings in MEASURE_WORDS {
        for spelling in spellings {
            names.entry(*spelling).or_insert(spellings[0]);
        }
    }
    names
});

/// Reads the quantities of a sentence in lower case, in order.
///
/// Invariant: no part of the text is looked at from more than two numbers, and a look behind a number has a bound.
pub(super) fn quantities(lower: &str) -> impl Iterator<Item = Quantity> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = lower.as_bytes();
        while at < bytes.len() {
            if !bytes[at].is_ascii_digit() {
                at += 1;
                continue;
            }
            let start = at;
            while at < bytes.len()
                && (bytes[at].is_ascii_digit()
                    || (matches!(bytes[at], b',' | b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)))
            {
                at += 1;
            }
            if let Some(found) = quantity(lower, start, at) {
                return Some(found);
            }
        }
        None
    })
}

/// Reads the quantity whose digits are at `start..end`.
fn quantity(lower: &str, start: usize, end: usize) -> Option<Quantity> {
    let before = lower[..start].chars().next_back();
    let currency = match before {
        Some('$') => Some("usd"),
        Some('€') => Some("eur"),
        Some('₩') => Some("원"),
        _ => None,
    };
    // Digits within a name or a version are no quantity.
    let in_name = before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ':' | '#' | '='));
    let number: String = lower[start..end].chars().filter(|c| *c != ',').collect();
    let value = number.parse::<f64>().ok()?;
    let dash = matches!(before, Some('-' | '=' | ':'));
    // A range such as `10-20 ms` has its second number behind a dash, and `retries=3` is a quantity
    // too.
    if in_name && !dash {
        return None;
    }
    let rest = &lower[end..];
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '.' | ';' | ':' | '!' | '?');
    let unit = currency
        .or_else(|| unit_of(word(rest, |c| ends(c) || c == '~')?))
        .or_else(|| unit_of(word(rest.strip_prefix(' ')?, ends)?));
    Some(Quantity {
        value,
        unit: unit.unwrap_or(""),
    })
}

/// Returns what a text begins with up to a character that ends it, unless that is too long to be a unit.
fn word(text: &str, ends: impl Fn(char) -> bool) -> Option<&str> {
    let first = text
        .char_indices()
        .take_while(|(at, _)| *at <= LONGEST_UNIT)
        .find(|(_, c)| ends(*c));
    match first {
        Some((at, _)) => Some(&text[..at]),
        None => (text.len() <= LONGEST_UNIT).then_some(text),
    }
}

/// Returns the name of a unit, which Korean particles may follow.
pub(super) fn unit_of(word: &str) -> Option<&'static str> {
    if word.is_empty() || word.len() > LONGEST_UNIT {
        return None;
    }
    if word.is_ascii() {
        return NAMES.get(word).copied();
    }
    // The longest unit that the word begins with; what follows is a particle.
    let ends = word.char_indices().map(|(at, c)| at + c.len_utf8()).collect::<Vec<_>>();
    ends.iter()
        .rev()
        // Particles are short; a longer rest makes the beginning a part of another word.
        .take(5)
        .find_map(|end| NAMES.get(&word[..*end]).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart() {
        let parsed =
            parse("# Head\nOne. Two 2.5 ms!\n\n1. run it\n- also\n| a | b |\n|-|-|\n| 1 | 2 |\n```\nx\ny\n```\n");
        let texts: Vec<_> = parsed.sentences.iter().map(|sentence| sentence.text.as_str()).collect();
        assert_eq!(
            texts,
            ["One.", "Two 2.5 ms!", "run it", "also", "| a | b |", "| 1 | 2 |"]
        );
        assert_eq!(parsed.tables, [[["a", "b"], ["1", "2"]]]);
        assert!(parsed.has_block && parsed.sentences[2].is_item && parsed.sentences[4].is_row);
    }

    #[test]
    fn quantities_have_units() {
        let units = |text: &str| -> Vec<_> { quantities(text).map(|quantity| quantity.unit).collect() };
        assert_eq!(units("12 ms and 5% of 1,200 rows at $3"), ["ms", "%", "rows", "usd"]);
        assert_eq!(units("31건의 200gb, 3시간"), ["건", "gb", "h"]);
        assert_eq!(units("utf8 v1.2 and 7"), [""]);
        let value = quantities("1,500 ms").next().unwrap().value;
        assert!((value - 1_500.0).abs() < 0.1);
    }
}
