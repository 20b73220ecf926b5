//! The parts of a Markdown text: sentences of prose, lines of code, rows of tables, and the quantities in them.
//!
//! Invariant: linear in the text; no text makes it slower than its length.

use std::collections::HashMap;
use std::sync::LazyLock;

use operators::knowledge::is_east_asian;

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

/// Splits Markdown into sentences, lines of code and tables. Lines of one paragraph are joined, so that a sentence may
/// go over several. Badges, tags, definitions of links and headings are left out.
pub(super) fn parse(body: &str) -> ParsedText {
    let mut parsed = ParsedText::default();
    let (mut fenced, mut lines_of_block, mut after_blank) = (false, 0, true);
    let mut table: Vec<Vec<String>> = Vec::new();
    let mut paragraph = Paragraph::default();
    for line in body.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            paragraph.end(&mut parsed);
            parsed.has_block |= fenced && lines_of_block >= 2;
            fenced = !fenced;
            lines_of_block = 0;
            continue;
        }
        let is_indented =
            after_blank && paragraph.text.is_empty() && (line.starts_with("    ") || line.starts_with('\t'));
        if fenced || (is_indented && !trimmed.is_empty() && !list_item(trimmed).0) {
            if !trimmed.is_empty() {
                lines_of_block += 1;
                parsed.code.push(trimmed.to_owned());
            }
            continue;
        }
        after_blank = trimmed.is_empty();
        if let Some(row) = trimmed.strip_prefix('|') {
            paragraph.end(&mut parsed);
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
        if trimmed.is_empty() || trimmed.starts_with('#') || is_decoration(trimmed) {
            paragraph.end(&mut parsed);
            continue;
        }
        let (item, rest) = list_item(trimmed.trim_start_matches("> "));
        if item {
            paragraph.end(&mut parsed);
            paragraph.is_item = true;
        }
        paragraph.add(rest);
    }
    paragraph.end(&mut parsed);
    if !table.is_empty() {
        parsed.tables.push(table);
    }
    parsed.has_block |= fenced && lines_of_block >= 2;
    parsed
}

/// The lines of a paragraph or of an item so far.
#[derive(Debug, Default)]
struct Paragraph {
    text: String,
    is_item: bool,
}

impl Paragraph {
    fn add(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(line);
    }

    /// Adds the sentences of the paragraph to a text. A stop inside a number or a name ends none.
    fn end(&mut self, parsed: &mut ParsedText) {
        let (rest, mut is_first) = (std::mem::take(&mut self.text), std::mem::take(&mut self.is_item));
        let mut start = 0;
        let ends = rest.char_indices().filter(|(at, character)| {
            let after = &rest[at + character.len_utf8()..];
            matches!(character, '.' | '!' | '?') && (after.is_empty() || after.starts_with([' ', '"', ')', '*']))
                || matches!(character, '。' | '？' | '！')
        });
        for end in ends
            .map(|(at, character)| at + character.len_utf8())
            .chain([rest.len()])
        {
            // What a short word such as `e.g.` ends goes on.
            let text = rest[start..end].trim();
            if end < rest.len() && is_abbreviation(text) {
                continue;
            }
            if text.len() > 1 {
                parsed.sentences.push(sentence(text, is_first, false));
                is_first = false;
            }
            start = end;
        }
    }
}

/// Returns true if a text ends with an abbreviation.
fn is_abbreviation(text: &str) -> bool {
    const ABBREVIATIONS: [&str; 14] = [
        "e.g.", "i.e.", "etc.", "vs.", "cf.", "approx.", "no.", "z.b.", "bzw.", "d.h.", "u.a.", "ca.", "nr.", "inkl.",
    ];
    let last = text.rsplit([' ', '(']).next().unwrap_or_default();
    last.len() <= 7 && ABBREVIATIONS.contains(&last.to_lowercase().as_str())
}

/// Returns true for a badge, a tag of HTML and a definition of a link.
fn is_decoration(line: &str) -> bool {
    let is_definition = line.starts_with('[')
        && line
            .find("]:")
            .is_some_and(|at| !line[..at].contains(' ') || line.contains("://"));
    line.starts_with("[![") || line.starts_with("![") || is_definition || (line.starts_with('<') && line.ends_with('>'))
}

fn sentence(text: &str, is_item: bool, is_row: bool) -> Sentence {
    let lower = text
        .to_lowercase()
        .replace(['*', '`', '|', '"', '“', '”', '(', ')', '[', ']'], " ")
        .replace('→', " → ")
        .replace("->", " → ");
    Sentence {
        lower,
        text: text.to_owned(),
        is_item,
        is_row,
    }
}

/// Returns true for an item of a list, and the text without its mark.
fn list_item(line: &str) -> (bool, &str) {
    if let Some(rest) = line
        .strip_prefix("- ")
        .or_else(|| line.strip_prefix("* "))
        .or_else(|| line.strip_prefix("+ "))
        .or_else(|| line.strip_prefix("• "))
    {
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
    &[
        "ms",
        "msec",
        "millisecond",
        "milliseconds",
        "밀리초",
        "ミリ秒",
        "millisekunden",
    ],
    &["µs", "us", "μs", "microseconds", "마이크로초"],
    &["ns", "nanoseconds"],
    &[
        "s", "sec", "secs", "second", "seconds", "초", "秒", "sekunden", "sekunde",
    ],
    &[
        "min", "mins", "minute", "minutes", "분", "分", "分間", "minuten", "minute",
    ],
    &["h", "hr", "hour", "hours", "시간", "時間", "stunden", "stunde", "std"],
    &["days", "day", "d", "일", "日", "日間", "tage", "tagen"],
    &["weeks", "week", "주", "주일", "週", "週間", "wochen"],
    &["months", "month", "개월", "달", "か月", "ヶ月", "monate", "monaten"],
    &["years", "year", "년", "年", "年間", "jahre", "jahren"],
    &[
        "%",
        "percent",
        "퍼센트",
        "％",
        "パーセント",
        "prozent",
        "points",
        "point",
    ],
    &["b", "bytes", "byte", "바이트", "バイト"],
    &["kb", "kib", "k"],
    &["mb", "mib"],
    &["gb", "gib", "g"],
    &["tb", "tib"],
    &["mbps", "mbit/s", "gbps", "gbit/s", "kbps", "mb/s", "gb/s", "mib/s"],
    &["req/s", "rps", "qps", "tps", "rows/s", "ops/s", "iops"],
    &["requests", "request", "calls", "call", "요청", "リクエスト", "anfragen"],
    &[
        "rows",
        "row",
        "records",
        "record",
        "행",
        "레코드",
        "行",
        "レコード",
        "zeilen",
        "datensätze",
    ],
    &["tokens", "token", "토큰"],
    &[
        "messages",
        "message",
        "messages/s",
        "events",
        "메시지",
        "メッセージ",
        "nachrichten",
    ],
    &[
        "건",
        "件",
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
        "個",
        "dateien",
        "seiten",
        "ページ",
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
        "回",
        "läufe",
        "läufen",
        "mal",
        "times",
        "runs",
        "trials",
        "attempts",
        "retries",
        "repetitions",
    ],
    &[
        "명",
        "人",
        "名",
        "benutzer",
        "people",
        "users",
        "customers",
        "clients",
        "accounts",
    ],
    &[
        "대",
        "台",
        "サーバ",
        "knoten",
        "machines",
        "nodes",
        "hosts",
        "servers",
        "replicas",
        "pods",
        "workers",
        "brokers",
    ],
    &["원", "krw", "ウォン"],
    &["usd", "dollars", "dollar", "달러", "ドル", "cents"],
    &["eur", "euro", "euros", "유로"],
    &["엔", "円", "万円", "yen", "jpy"],
    &["°c", "℃", "도", "degrees"],
    &["배", "倍", "fach", "x", "×", "fold"],
    &[
        "cores",
        "core",
        "vcpu",
        "vcpus",
        "코어",
        "コア",
        "kerne",
        "kernen",
        "スレッド",
        "threads",
        "connections",
    ],
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
    let in_name = before.is_some_and(|c| {
        (c.is_alphanumeric() && !is_east_asian(c)) || matches!(c, '_' | '-' | '/' | '.' | ':' | '#' | '=')
    });
    let value = value_of(&lower[start..end])?;
    let dash = matches!(before, Some('-' | '=' | ':'));
    // A range such as `10-20 ms` has its second number behind a dash, and `retries=3` is a quantity
    // too.
    if in_name && !dash {
        return None;
    }
    let rest = &lower[end..];
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '.' | ';' | ':' | '!' | '?' | '、' | '。');
    let unit = currency
        .or_else(|| unit_of(word(rest, |c| ends(c) || c == '~')?))
        .or_else(|| unit_of(word(rest.strip_prefix(' ')?, ends)?));
    Some(Quantity {
        value,
        unit: unit.unwrap_or(""),
    })
}

/// Returns the value of digits with commas and stops: a comma before three digits groups thousands, another one is a
/// decimal mark.
pub(super) fn value_of(digits: &str) -> Option<f64> {
    let decimal = digits
        .split_once(',')
        .filter(|(_, rest)| rest.len() != 3 && !rest.contains([',', '.']));
    let number: String = match decimal {
        Some((whole, rest)) => format!("{whole}.{rest}"),
        None => digits.chars().filter(|c| *c != ',').collect(),
    };
    number.parse().ok()
}

/// Returns what a text begins with up to a character that ends it, or, in scripts without spaces, its beginning. A word
/// in Latin letters that is too long is no unit.
fn word(text: &str, ends: impl Fn(char) -> bool) -> Option<&str> {
    let first = text
        .char_indices()
        .take_while(|(at, _)| *at <= LONGEST_UNIT)
        .find(|(_, c)| ends(*c));
    match first {
        Some((at, _)) => Some(&text[..at]),
        None if text.len() <= LONGEST_UNIT => Some(text),
        None => {
            let end = text
                .char_indices()
                .map(|(at, _)| at)
                .take_while(|at| *at <= LONGEST_UNIT)
                .last()?;
            text[..end].chars().any(is_east_asian).then_some(&text[..end])
        }
    }
}

/// Returns the name of a unit, which particles may follow.
pub(super) fn unit_of(word: &str) -> Option<&'static str> {
    if word.is_empty() || word.len() > LONGEST_UNIT {
        return None;
    }
    if word.is_ascii() {
        return NAMES.get(word).copied();
    }
    let signs: Vec<(usize, char)> = word.char_indices().collect();
    // The longest unit that the word begins with.
    (1..=signs.len()).rev().find_map(|count| {
        let end = signs.get(count).map_or(word.len(), |(at, _)| *at);
        let after = signs.get(count).map(|(_, c)| *c);
        // Particles of Korean are short; a longer rest makes the beginning a part of another word. Han and Kana have no
        // spaces, so any sign of them may follow.
        let is_particle = signs.len() - count < 5;
        let is_spaceless = after.is_some_and(|c| is_east_asian(c) && !('\u{AC00}'..='\u{D7FF}').contains(&c));
        (is_particle || is_spaceless)
            .then(|| NAMES.get(&word[..end]).copied())
            .flatten()
    })
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
