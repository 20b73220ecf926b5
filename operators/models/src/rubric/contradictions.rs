//! Contradictions of a text with itself that arithmetic can show.
//!
//! Invariants:
//! - A text without numbers has none. A rule counts only what cannot be read in another way.
//! - Linear in the text: what is held against everything else, and the columns of a table, have bounds.

use super::parse::{ParsedText, Quantity, Sentence, quantities, words};

/// The statements of a text that are held against all of it; a text makes few, and the first ones count.
const MAX_COMPARED_STATEMENTS: usize = 16;
/// The columns of a table that are looked at, and those of them that are percentiles; a table to read has fewer.
const MAX_COLUMNS: usize = 32;
const MAX_RANKED_COLUMNS: usize = 12;
/// The most bytes of a sentence that makes a claim about a row.
const CLAIM_BYTES: usize = 1_000;

/// The units of time, the shortest first.
const TIME_MEASURES: [&str; 7] = ["ns", "µs", "ms", "s", "min", "h", "days"];

/// Returns the number of contradictions.
pub(super) fn contradictions(parsed: &ParsedText) -> usize {
    let prose = || parsed.sentences.iter().filter(|sentence| !sentence.is_row);
    let in_sentences: usize = parsed.sentences.iter().map(ratio).sum();
    let in_prose: usize = prose()
        .map(|sentence| change(sentence) + total(sentence) + order_of_times(sentence) + percentiles(sentence))
        .sum();
    in_sentences + in_prose + denied(parsed) + tables(parsed)
}

/// Returns the first quantity of a text.
fn first(text: &str) -> Option<Quantity> {
    quantities(text).next()
}

/// Returns the value of a word that is a number.
fn plain(word: &str) -> Option<f64> {
    let digits = word.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '.'));
    digits.then(|| word.replace(',', "").parse().ok())?
}

/// Counts `N of M` with N above M, or with a percentage in brackets after it that does not fit.
fn ratio(sentence: &Sentence) -> usize {
    let lower = words(&sentence.lower);
    let mut count = 0;
    for (index, window) in lower.windows(3).enumerate() {
        let pair = match window {
            [part, "of", whole] => plain(part).zip(plain(whole)),
            [whole, "중", part] => first(part)
                .zip(first(whole))
                .map(|(part, whole)| (part.value, whole.value)),
            _ => None,
        };
        let Some((part, whole)) = pair.filter(|(_, whole)| *whole > 0.0) else {
            continue;
        };
        if part > whole {
            count += 1;
            continue;
        }
        // `22 of 400 (5.5 %)`: only what is in brackets right after is surely of these two.
        let stated = lower
            .get(index + 3)
            .zip(lower.get(index + 4))
            .filter(|(_, unit)| **unit == "%");
        let stated = stated.and_then(|(value, _)| plain(value)).or_else(|| {
            let word = lower.get(index + 3)?;
            first(word)
                .filter(|quantity| quantity.unit == "%")
                .map(|quantity| quantity.value)
        });
        let bracketed = sentence.text.contains('(');
        count += usize::from(bracketed && stated.is_some_and(|stated| (part / whole * 100.0 - stated).abs() > 2.0));
    }
    count
}

/// Counts `from A to B` and `A에서 B로` with one percentage after it that fits neither the change nor the ratio.
fn change(sentence: &Sentence) -> usize {
    let lower = words(&sentence.lower);
    let mut count = 0;
    for (index, word) in lower.iter().enumerate() {
        let pair = if *word == "from" {
            after_from(&lower[index + 1..])
        } else {
            between_korean(&lower[index..])
        };
        let Some((from, to, rest)) = pair else { continue };
        let after: Vec<&str> = lower.iter().skip(index + rest).take(6).copied().collect();
        // `4 GB to 8 GB cut the p99 by 61 %` tells of something else.
        let is_of_another = |word: &&str| {
            PERCENTILES.contains(word)
                || (!word.is_ascii() && !starts_with_number(word) && word.ends_with(['은', '는', '이', '가']))
        };
        let percent_at = after
            .iter()
            .position(|word| starts_with_number(word))
            .unwrap_or(after.len());
        if after[..percent_at].iter().any(is_of_another)
            || after[..percent_at]
                .iter()
                .any(|word| PERCENTILES.iter().any(|name| word.starts_with(name)))
        {
            continue;
        }
        let text = after.join(" ");
        let stated: Vec<f64> = quantities(&text).filter(|q| q.unit == "%").map(|q| q.value).collect();
        if let [stated, ..] = stated.as_slice()
            && from > 0.0
            && to > 0.0
        {
            let fits = [(to - from) / from, (to - from) / to, to / from, from / to];
            let fits = fits
                .iter()
                .map(|fit| (fit * 100.0).abs())
                .any(|fit| (fit - stated).abs() <= (fit * 0.06).max(2.0));
            count += usize::from(!fits);
        }
    }
    count
}

/// Reads `A [unit] to B [unit]` at the start of words. Returns both values and the number of words.
fn after_from(lower: &[&str]) -> Option<(f64, f64, usize)> {
    let to = lower.iter().take(4).position(|word| *word == "to")?;
    let from = first(&lower[..to].join(" ")).filter(|_| starts_with_number(lower[0]))?;
    let next = lower.get(to + 1).filter(|word| starts_with_number(word))?;
    let end = (to + 3).min(lower.len());
    let target = first(&lower[to + 1..end].join(" ")).or_else(|| first(next))?;
    let alike = from.unit == target.unit || from.unit.is_empty();
    (alike && !matches!(target.unit, "%" | "")).then_some((from.value, target.value, to + 3))
}

/// Reads `A에서 B로` at the start of words.
fn between_korean(lower: &[&str]) -> Option<(f64, f64, usize)> {
    let mut words = lower.iter().take(5).enumerate();
    starts_with_number(lower.first()?).then_some(())?;
    let (at, _) = words.find(|(at, word)| *at < 2 && word.ends_with("에서"))?;
    let (end, _) = words.find(|(end, word)| *end <= at + 2 && (word.ends_with("로") || word.ends_with("까지")))?;
    let from = first(&lower[..=at].join(" "))?;
    let to = first(&lower[at + 1..=end].join(" ")).filter(|_| starts_with_number(lower[at + 1]))?;
    (from.unit == to.unit && !matches!(to.unit, "%" | "")).then_some((from.value, to.value, end + 1))
}

fn starts_with_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Counts a sum that is below one of its parts in the same sentence.
fn total(sentence: &Sentence) -> usize {
    let Some((before, after)) = ["합계 ", "합쳐 ", "for a total of ", "in total "]
        .iter()
        .find_map(|mark| sentence.lower.split_once(mark))
    else {
        return 0;
    };
    let Some(total) = first(after).filter(|total| !matches!(total.unit, "" | "%")) else {
        return 0;
    };
    let of_unit: Vec<f64> = quantities(before)
        .filter(|part| part.unit == total.unit)
        .map(|part| part.value)
        .collect();
    usize::from(of_unit.len() >= 2 && of_unit.iter().any(|part| *part > total.value))
}

/// Counts an event that ended before it began.
fn order_of_times(sentence: &Sentence) -> usize {
    const BEGAN: [&str; 6] = ["began", "started", "begin", "start", "시작", "발생"];
    const ENDED: [&str; 10] = [
        "ended",
        "gone",
        "recovered",
        "resolved",
        "restored",
        "over",
        "복구",
        "종료",
        "해소",
        "해결",
    ];
    let mut began = None;
    let mut ended = None;
    for clause in sentence.lower.split([',', ';']).flat_map(|part| part.split(" and ")) {
        let Some(time) = clock(clause) else { continue };
        let has = |listed: &[&str]| listed.iter().any(|word| clause.contains(word));
        match (has(&BEGAN), has(&ENDED)) {
            (true, false) => began = Some(time),
            (false, true) => ended = Some(time),
            _ => {}
        }
    }
    // Over midnight the clock starts again.
    usize::from(
        began
            .zip(ended)
            .is_some_and(|(began, ended)| began > ended && began < ended + 720),
    )
}

/// Returns the minutes of the first `hh:mm`.
fn clock(text: &str) -> Option<u32> {
    let at = text.find(':').filter(|at| *at >= 1)?;
    let hours = text[..at].rsplit(|c: char| !c.is_ascii_digit()).next()?;
    let minutes = text[at + 1..].split(|c: char| !c.is_ascii_digit()).next()?;
    (minutes.len() == 2).then_some(())?;
    let (hours, minutes) = (hours.parse::<u32>().ok()?, minutes.parse::<u32>().ok()?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}

/// Counts the first statements `No X was Y` where another place tells of a number of Y.
fn denied(parsed: &ParsedText) -> usize {
    let denials = parsed
        .sentences
        .iter()
        .enumerate()
        .filter(|(_, sentence)| !sentence.is_row);
    let denials: Vec<(usize, String)> = denials
        .filter_map(|(at, sentence)| Some((at, denial(sentence)?)))
        .take(MAX_COMPARED_STATEMENTS)
        .collect();
    if denials.is_empty() {
        return 0;
    }
    let told = |sentence: &Sentence| quantities(&sentence.lower).any(|quantity| quantity.value > 0.0);
    let telling: Vec<(usize, &str)> = parsed
        .sentences
        .iter()
        .enumerate()
        .filter(|(_, sentence)| told(sentence))
        .map(|(at, sentence)| (at, sentence.lower.as_str()))
        .collect();
    let is_told = |(at, denied): &&(usize, String)| {
        telling
            .iter()
            .any(|(other, lower)| other != at && lower.contains(denied.as_str()))
    };
    denials.iter().filter(is_told).count()
}

/// Returns the words after the verb of `No X was Y`.
fn denial(sentence: &Sentence) -> Option<String> {
    let lower = words(&sentence.lower);
    let verb = lower.iter().take(5).position(|word| matches!(*word, "was" | "were"))?;
    if lower.first() != Some(&"no") {
        return None;
    }
    let denied: Vec<&str> = lower[verb + 1..].iter().take(3).copied().collect();
    // A single word is too common to be of the same thing.
    (denied.len() > 1).then(|| denied.join(" "))
}

const PERCENTILES: [&str; 6] = ["p50", "p90", "p95", "p99", "p99.9", "max"];

/// Counts a lower percentile above a higher one in a sentence that has two.
fn percentiles(sentence: &Sentence) -> usize {
    let lower = words(&sentence.lower);
    let mut values: Vec<(usize, Quantity)> = Vec::new();
    for (index, word) in lower.iter().enumerate() {
        let Some(rank) = PERCENTILES.iter().position(|name| name == word) else {
            continue;
        };
        let rest = &lower[index + 1..(index + 4).min(lower.len())];
        if let Some(value) = first(&rest.join(" ")) {
            values.push((rank, value));
        }
    }
    match values.as_slice() {
        [(low, one), (high, other)] if one.unit == other.unit => {
            usize::from((low < high && one.value > other.value) || (low > high && one.value < other.value))
        }
        _ => 0,
    }
}

/// The cells of a column as numbers with a unit.
struct QuantityColumn {
    /// Head in lower case.
    head: String,
    /// Value of each row.
    values: Vec<Option<Quantity>>,
}

impl QuantityColumn {
    /// Returns true if the value of a row is the least, or the most.
    fn is_extreme(&self, row: usize, most: bool) -> Option<bool> {
        let of_row = self.values.get(row)?.as_ref()?.value;
        let mut all = self.values.iter().flatten().map(|quantity| quantity.value);
        Some(all.all(|value| if most { value <= of_row } else { value >= of_row }))
    }

    fn is_numeric(&self) -> bool {
        self.values.len() >= 2 && self.values.iter().all(Option::is_some)
    }

    fn is_of(&self, units: &[&str], heads: &[&str]) -> bool {
        let of_unit = self
            .values
            .iter()
            .flatten()
            .any(|quantity| units.contains(&quantity.unit));
        of_unit || heads.iter().any(|head| self.head.contains(head))
    }
}

/// Counts rows and columns that contradict each other, or a statement about them.
fn tables(parsed: &ParsedText) -> usize {
    let mut count = 0;
    if parsed.tables.is_empty() {
        return 0;
    }
    let claims: Vec<ClaimingSentence> = parsed
        .sentences
        .iter()
        .filter_map(ClaimingSentence::of)
        .take(MAX_COMPARED_STATEMENTS)
        .collect();
    for table in &parsed.tables {
        let Some((head, rows)) = table.split_first() else {
            continue;
        };
        let column = |index: usize| QuantityColumn {
            head: head[index].to_lowercase(),
            values: rows
                .iter()
                .map(|row| row.get(index).and_then(|cell| first(&cell.to_lowercase())))
                .collect(),
        };
        let columns: Vec<QuantityColumn> = (0..head.len().min(MAX_COLUMNS)).map(column).collect();
        count += usize::from(percentile_columns(&columns)) + shares(&columns) + sums(&columns, rows);
        if claims.is_empty() {
            continue;
        }
        let names: Vec<Option<RowName>> = rows.iter().map(|row| RowName::of(head, row)).collect();
        let is_false = |claimed: &&ClaimingSentence| claimed.is_false(&names, &columns);
        count += claims.iter().filter(is_false).count();
    }
    count
}

/// Returns true if a row has a lower percentile above a higher one.
fn percentile_columns(columns: &[QuantityColumn]) -> bool {
    let rank = |column: &QuantityColumn| PERCENTILES.iter().rposition(|name| column.head.contains(name));
    let ranked: Vec<(usize, &QuantityColumn)> = columns
        .iter()
        .filter_map(|column| Some((rank(column)?, column)))
        .take(MAX_RANKED_COLUMNS)
        .collect();
    ranked.iter().any(|(low, one)| {
        ranked.iter().filter(|(high, _)| low < high).any(|(_, other)| {
            let pairs = one.values.iter().zip(&other.values);
            pairs
                .filter_map(|(one, other)| one.as_ref().zip(other.as_ref()))
                .any(|(one, other)| one.unit == other.unit && one.value > other.value)
        })
    })
}

/// Counts columns of shares whose sum is above the whole.
fn shares(columns: &[QuantityColumn]) -> usize {
    let of_shares = columns.iter().filter(|column| {
        ["share", "비율", "비중", "점유", "구성"]
            .iter()
            .any(|name| column.head.contains(name))
            && column.is_numeric()
    });
    let above = of_shares.filter(|column| {
        let values: Vec<f64> = column.values.iter().flatten().map(|quantity| quantity.value).collect();
        let has_total = values.iter().any(|value| *value >= 99.5);
        // Shares of different wholes can exceed it, so only a sum that is near counts.
        let sum: f64 = values.iter().sum();
        !has_total && sum > 101.5 && sum < 130.0 && values.len() >= 3
    });
    above.count()
}

/// Counts totals in a last row that are not the sum of their column.
fn sums(columns: &[QuantityColumn], rows: &[Vec<String>]) -> usize {
    let Some(last) = rows.last().and_then(|row| row.first()) else {
        return 0;
    };
    let last = last.to_lowercase();
    if !["total", "sum", "합계", "총계", "전체"]
        .iter()
        .any(|name| last.contains(name))
        || rows.len() < 3
    {
        return 0;
    }
    let wrong = columns.iter().skip(1).filter(|column| {
        let values: Vec<f64> = column.values.iter().flatten().map(|quantity| quantity.value).collect();
        let Some((total, parts)) = values.split_last() else {
            return false;
        };
        if parts.len() + 1 != rows.len() || !column.is_numeric() {
            return false;
        }
        let (sum, most) = (parts.iter().sum::<f64>(), parts.iter().copied().fold(0.0, f64::max));
        // A mean in the row of totals is within the column.
        *total > most && (sum - total).abs() > sum.max(*total) * 0.015
    });
    wrong.count()
}

/// Statement that a row is the first or the last in something.
struct ExtremeClaim {
    /// Words that make the claim.
    marks: &'static [&'static str],
    /// Units and heads of the columns that decide it; every column does if both are empty.
    units: &'static [&'static str],
    heads: &'static [&'static str],
    /// True if the most is claimed.
    most: bool,
}

const MONEY_WORDS: [&str; 5] = ["usd", "eur", "원", "엔", "만"];
const OF_TIME: [&str; 5] = ["time", "latency", "duration", "시간", "지연"];
const EXTREME_CLAIMS: [ExtremeClaim; 4] = [
    ExtremeClaim {
        marks: &["fastest", "quickest", "가장 빠", "제일 빠"],
        units: &TIME_MEASURES,
        heads: &OF_TIME,
        most: false,
    },
    ExtremeClaim {
        marks: &["slowest", "가장 느"],
        units: &TIME_MEASURES,
        heads: &OF_TIME,
        most: true,
    },
    ExtremeClaim {
        marks: &["cheapest", "가장 저렴", "가장 싸", "가장 싼"],
        units: &MONEY_WORDS,
        heads: &["cost", "price", "비용", "가격", "요금"],
        most: false,
    },
    ExtremeClaim {
        marks: &["fewest", "the lowest", "the least", "가장 적", "가장 낮"],
        units: &[],
        heads: &[],
        most: false,
    },
];

/// Sentence that makes claims.
struct ClaimingSentence {
    /// Its words, parted by one space, with a space at both ends.
    text: String,
    claims: Vec<&'static ExtremeClaim>,
}

impl ClaimingSentence {
    fn of(sentence: &Sentence) -> Option<Self> {
        // A longer one says more than one thing, and would be searched for every row.
        if sentence.is_row || sentence.lower.len() > CLAIM_BYTES {
            return None;
        }
        let text = format!(" {} ", words(&sentence.lower).join(" "));
        let is_made = |claim: &&ExtremeClaim| claim.marks.iter().any(|mark| text.contains(mark));
        let claims: Vec<_> = EXTREME_CLAIMS.iter().filter(is_made).collect();
        (!claims.is_empty()).then_some(Self { text, claims })
    }

    /// Returns true if the sentence names one row, and the columns of a claim tell otherwise.
    fn is_false(&self, names: &[Option<RowName>], columns: &[QuantityColumn]) -> bool {
        let mut named = names
            .iter()
            .enumerate()
            .filter(|(_, name)| name.as_ref().is_some_and(|name| name.is_in(&self.text)));
        let (Some((row, _)), None) = (named.next(), named.next()) else {
            return false;
        };
        self.claims.iter().any(|claim| {
            let ExtremeClaim { units, heads, most, .. } = claim;
            let decides = |column: &&QuantityColumn| {
                column.is_numeric() && (units.is_empty() && heads.is_empty() || column.is_of(units, heads))
            };
            let deciding: Vec<bool> = columns
                .iter()
                .skip(1)
                .filter(decides)
                .filter_map(|column| column.is_extreme(row, *most))
                .collect();
            !deciding.is_empty() && deciding.iter().all(|is_extreme| !is_extreme)
        })
    }
}

/// Spellings by which a sentence names a row.
struct RowName {
    /// The beginning of the first cell, alone: as any part of the text.
    short: Option<String>,
    /// As whole words: with the head of the column before it, and a number after `at`.
    whole: [Option<String>; 2],
}

impl RowName {
    fn of(head: &[String], row: &[String]) -> Option<Self> {
        let name = row.first()?.to_lowercase().replace(['`', '*'], "");
        let short = name.split(',').next()?.trim();
        if short.is_empty() {
            return None;
        }
        // A number alone may be of anything else, unless the claim follows it.
        let is_number = short.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ','));
        Some(Self {
            whole: [
                head.first().map(|head| format!(" {} {short} ", head.to_lowercase())),
                is_number.then(|| format!(" at {short} ")),
            ],
            short: (!is_number && short.chars().nth(1).is_some()).then(|| short.to_owned()),
        })
    }

    fn is_in(&self, text: &str) -> bool {
        let spellings = self.whole.iter().chain([&self.short]);
        spellings.flatten().any(|spelling| text.contains(spelling.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    #[test]
    fn what_contradicts_itself_is_counted() {
        for text in [
            "It fell from 9.8 KB to 7.9 KB, a saving of 58 %.",
            "지연이 90ms에서 130ms로 바뀌어 20% 개선되었다.",
            "Errors: 68 of 400 (34 %) had one.",
            "We found 240 of 121 summaries.",
            "The p50 was 90 ms and the p99 was 40 ms.",
            "It began at 14:35 and was gone at 14:10.",
            "입력 800만 토큰, 출력 200만 토큰으로 합계 100만 토큰이었다.",
            "| Group | Count |\n|-|-|\n| booked too high | 120 |\n\nNo account was booked too high.",
            "| Level | p50 | p95 |\n|-|-|-|\n| 1 | 3 ms | 2 ms |",
            "| Level | Time |\n|-|-|\n| 1 | 3 ms |\n| 9 | 7 ms |\n\nLevel 9 is the fastest.",
            "| Kind | Count |\n|-|-|\n| a | 30 |\n| b | 40 |\n| total | 90 |",
        ] {
            assert_eq!(contradictions(&parse(text)), 1, "{text}");
        }
    }

    #[test]
    fn what_fits_is_not_counted() {
        for text in [
            "It fell from 10 KB to 8 KB, a saving of 20 %.",
            "지연이 100ms에서 80ms로 20% 줄었다.",
            "Errors: 68 of 400 (17 %) had one.",
            "The p50 was 40 ms and the p99 was 90 ms.",
            "It began at 23:50 and was gone at 00:10.",
            "| Level | p50 | p95 |\n|-|-|-|\n| 1 | 2 ms | 3 ms |",
            "| Level | Time |\n|-|-|\n| 1 | 3 ms |\n| 9 | 7 ms |\n\nLevel 1 is the fastest.",
            "| Kind | Count | Mean |\n|-|-|-|\n| a | 30 | 4 |\n| b | 40 | 6 |\n| total | 70 | 5 |",
            "No account was lost.",
            "4 GB에서 8 GB로 늘리면 p99는 61 % 줄었다.",
            "Going from 4 GB to 8 GB cut the p99 by 61 %.",
        ] {
            assert_eq!(contradictions(&parse(text)), 0, "{text}");
        }
    }
}
