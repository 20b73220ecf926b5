//! Contradictions within a table, and between a table and a sentence.

use super::super::parse::{ParsedText, Quantity, Sentence, quantities, words};
use super::super::reasons::quoted;
use super::shown;

/// The statements of a text that are held against all of it; a text makes few, and the first ones count.
const MAX_COMPARED_STATEMENTS: usize = 16;
/// The columns of a table that are looked at, and those of them that are percentiles; a table to read has fewer.
const MAX_COLUMNS: usize = 32;
const MAX_RANKED_COLUMNS: usize = 12;
/// The numeric columns among which a quotient is looked for.
const MAX_RELATED_COLUMNS: usize = 6;
/// The most bytes of a sentence that makes a claim about a row.
const CLAIM_BYTES: usize = 1_000;

/// The units of time, the shortest first.
const TIME_MEASURES: [&str; 7] = ["ns", "µs", "ms", "s", "min", "h", "days"];

const PERCENTILES: [&str; 6] = ["p50", "p90", "p95", "p99", "p99.9", "max"];

/// Adds the contradictions of the tables of a text.
pub(super) fn add(parsed: &ParsedText, found: &mut Vec<String>) {
    if parsed.tables.is_empty() {
        return;
    }
    let claims: Vec<ClaimingSentence<'_>> = parsed
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
            head: head.get(index).map(|head| head.to_lowercase()).unwrap_or_default(),
            values: rows
                .iter()
                .map(|row| row.get(index).and_then(|cell| only(&cell.to_lowercase())))
                .collect(),
        };
        let columns: Vec<QuantityColumn> = (0..head.len().min(MAX_COLUMNS)).map(column).collect();
        let told = [
            percentile_columns(&columns),
            shares(&columns),
            sums(&columns, rows),
            f1_outside(&columns),
            quotient(&columns),
        ];
        found.extend(told.into_iter().flatten().map(|told| format!("In a table, {told}.")));
        if claims.is_empty() {
            continue;
        }
        let names: Vec<Option<RowName>> = rows.iter().map(|row| RowName::of(head, row)).collect();
        let told = claims.iter().find_map(|claim| claim.contradicted(&names, &columns));
        found.extend(told);
    }
}

/// Returns the quantity of a cell that has no other.
fn only(cell: &str) -> Option<Quantity> {
    let mut all = quantities(cell);
    let one = all.next()?;
    (all.next().is_none()
        && !cell.contains(['~', '<', '>', '±', '/'])
        && !cell.trim_start().starts_with(['-', '+', '−']))
    .then_some(one)
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

/// Finds a row that has a lower percentile above a higher one.
fn percentile_columns(columns: &[QuantityColumn]) -> Option<String> {
    let rank = |column: &QuantityColumn| {
        let mut names = column.head.split(|c: char| !(c.is_alphanumeric() || c == '.'));
        names.find_map(|name| {
            PERCENTILES
                .iter()
                .position(|listed| *listed == if name == "median" { "p50" } else { name })
        })
    };
    let ranked: Vec<(usize, &QuantityColumn)> = columns
        .iter()
        .filter_map(|column| Some((rank(column)?, column)))
        .take(MAX_RANKED_COLUMNS)
        .collect();
    // Two columns of one percentile are of different things.
    if ranked
        .iter()
        .enumerate()
        .any(|(at, (rank, _))| ranked[at + 1..].iter().any(|(other, _)| rank == other))
    {
        return None;
    }
    ranked.iter().find_map(|(low, one)| {
        ranked.iter().filter(|(high, _)| low < high).find_map(|(_, other)| {
            let mut pairs = one
                .values
                .iter()
                .zip(&other.values)
                .filter_map(|(one, other)| one.as_ref().zip(other.as_ref()));
            let (above, below) = pairs.find(|(one, other)| one.unit == other.unit && one.value > other.value)?;
            let (low, high) = (&one.head, &other.head);
            Some(format!(
                "{low} {} is above {high} {}",
                shown(above.value),
                shown(below.value)
            ))
        })
    })
}

/// Finds a column of shares whose sum is above the whole.
fn shares(columns: &[QuantityColumn]) -> Option<String> {
    let mut of_shares = columns.iter().filter(|column| {
        ["share", "비율", "비중", "점유", "구성", "anteil", "割合", "構成比"]
            .iter()
            .any(|name| column.head.contains(name))
            && column.is_numeric()
            && column
                .values
                .iter()
                .flatten()
                .all(|quantity| matches!(quantity.unit, "%" | ""))
    });
    of_shares.find_map(|column| {
        let values: Vec<f64> = column.values.iter().flatten().map(|quantity| quantity.value).collect();
        let has_total = values.iter().any(|value| *value >= 99.5);
        // Shares of different wholes can exceed it, so only a sum that is near counts.
        let sum: f64 = values.iter().sum();
        (!has_total && sum > 101.5 && sum < 130.0 && values.len() >= 3).then(|| {
            format!(
                "the column «{}» sums to {} %, 100 % is the whole",
                column.head,
                shown(sum)
            )
        })
    })
}

/// Finds a total in a last row that is not the sum of its column.
fn sums(columns: &[QuantityColumn], rows: &[Vec<String>]) -> Option<String> {
    let last = rows.last().and_then(|row| row.first())?.to_lowercase();
    let last = last.trim_matches(|c: char| !c.is_alphabetic());
    if !["total", "sum", "합계", "총계", "전체", "합", "summe", "gesamt", "合計"].contains(&last) || rows.len() < 3
    {
        return None;
    }
    columns.iter().skip(1).find_map(|column| {
        let values: Vec<f64> = column.values.iter().flatten().map(|quantity| quantity.value).collect();
        let (total, parts) = values.split_last()?;
        let unit = column.values.last()?.as_ref()?.unit;
        let is_summed = ![
            "mean", "average", "median", "p50", "p95", "p99", "rate", "ratio", "min", "max", "평균", "per ",
        ]
        .iter()
        .any(|name| column.head.contains(name));
        if parts.len() + 1 != rows.len() || !column.is_numeric() || !is_summed || unit == "%" {
            return None;
        }
        let (sum, most) = (parts.iter().sum::<f64>(), parts.iter().copied().fold(0.0, f64::max));
        // A mean in the row of totals is within the column, and parts that run at once take less than their sum.
        let is_time = TIME_MEASURES.contains(&unit);
        let is_wrong = *total > most && (sum - total).abs() > sum.max(*total) * 0.015 && !(is_time && *total < sum);
        is_wrong.then(|| {
            format!(
                "the column «{}» sums to {}, its total says {}",
                column.head,
                shown(sum),
                shown(*total)
            )
        })
    })
}

/// Finds an F1 outside of the precision and the recall of its row.
fn f1_outside(columns: &[QuantityColumn]) -> Option<String> {
    let of = |names: &[&str]| columns.iter().find(|column| names.contains(&column.head.trim()));
    let precision = of(&["precision", "정밀도", "präzision", "適合率"])?;
    let recall = of(&["recall", "재현율", "再現率"])?;
    let f1 = of(&["f1", "f1-score", "f1 score", "f-score", "f1 점수"])?;
    let rows = precision.values.iter().zip(&recall.values).zip(&f1.values);
    rows.filter_map(|((precision, recall), f1)| Some((precision.as_ref()?, recall.as_ref()?, f1.as_ref()?)))
        .find_map(|(precision, recall, f1)| {
            let (low, high) = (precision.value.min(recall.value), precision.value.max(recall.value));
            // Rounding of the last of two digits.
            let slack = if high > 1.5 { 1.0 } else { 0.01 };
            (f1.value > high + slack || f1.value < low - slack).then(|| {
                let (f1, precision, recall) = (shown(f1.value), shown(precision.value), shown(recall.value));
                format!("an F1 of {f1} is not between precision {precision} and recall {recall}")
            })
        })
}

/// Finds the one row whose percentage is not the quotient of two columns, where that of all others is.
fn quotient(columns: &[QuantityColumn]) -> Option<String> {
    let numeric: Vec<&QuantityColumn> = columns
        .iter()
        .skip(1)
        .filter(|column| column.is_numeric())
        .take(MAX_RELATED_COLUMNS)
        .collect();
    let is_percent = |column: &&&QuantityColumn| {
        column.values.iter().flatten().all(|quantity| quantity.unit == "%") || column.head.contains('%')
    };
    for percent in numeric.iter().filter(is_percent) {
        for part in numeric.iter().filter(|column| !is_percent(column)) {
            for whole in numeric
                .iter()
                .filter(|column| !is_percent(column) && column.head != part.head)
            {
                let rows = part.values.iter().zip(&whole.values).zip(&percent.values);
                let rows: Vec<(f64, f64, f64)> = rows
                    .filter_map(|((part, whole), percent)| {
                        Some((part.as_ref()?.value, whole.as_ref()?.value, percent.as_ref()?.value))
                    })
                    .filter(|(_, whole, _)| *whole > 0.0)
                    .collect();
                let fits = |(part, whole, percent): &&(f64, f64, f64)| {
                    (part / whole * 100.0 - percent).abs() <= (percent * 0.05).max(0.6)
                };
                let wrong: Vec<_> = rows.iter().filter(|row| !fits(row)).collect();
                if let [(part, whole, percent)] = wrong.as_slice()
                    && rows.len() >= 3
                {
                    let actual = shown(part / whole * 100.0);
                    let (part, whole, percent) = (shown(*part), shown(*whole), shown(*percent));
                    return Some(format!("{part} of {whole} is {actual} %, the row says {percent} %"));
                }
            }
        }
    }
    None
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
struct ClaimingSentence<'a> {
    sentence: &'a Sentence,
    /// Its words, parted by one space, with a space at both ends.
    text: String,
    claims: Vec<&'static ExtremeClaim>,
}

impl<'a> ClaimingSentence<'a> {
    fn of(sentence: &'a Sentence) -> Option<Self> {
        // A longer one says more than one thing, and would be searched for every row.
        if sentence.is_row || sentence.lower.len() > CLAIM_BYTES {
            return None;
        }
        let text = format!(" {} ", words(&sentence.lower).join(" "));
        let is_made = |claim: &&ExtremeClaim| claim.marks.iter().any(|mark| text.contains(mark));
        let claims: Vec<_> = EXTREME_CLAIMS.iter().filter(is_made).collect();
        (!claims.is_empty()).then_some(Self { sentence, text, claims })
    }

    /// Returns what the columns of a claim tell otherwise, if the sentence names one row.
    fn contradicted(&self, names: &[Option<RowName>], columns: &[QuantityColumn]) -> Option<String> {
        let mut named = names
            .iter()
            .enumerate()
            .filter(|(_, name)| name.as_ref().is_some_and(|name| name.is_in(&self.text)));
        let (Some((row, _)), None) = (named.next(), named.next()) else {
            return None;
        };
        self.claims.iter().find_map(|claim| {
            let ExtremeClaim { units, heads, most, .. } = claim;
            let decides = |column: &&QuantityColumn| {
                column.is_numeric() && (units.is_empty() && heads.is_empty() || column.is_of(units, heads))
            };
            let deciding: Vec<&QuantityColumn> = columns.iter().skip(1).filter(decides).collect();
            let is_denied = !deciding.is_empty()
                && deciding
                    .iter()
                    .all(|column| column.is_extreme(row, *most) == Some(false));
            let column = deciding.first().filter(|_| is_denied)?;
            let own = column.values.get(row)?.as_ref()?.value;
            let others = column.values.iter().flatten().map(|quantity| quantity.value);
            let extreme = others.fold(own, if *most { f64::max } else { f64::min });
            Some(format!(
                "The table has {} in that row and {} in another one under «{}»: {}.",
                shown(own),
                shown(extreme),
                column.head,
                quoted(&self.sentence.text)
            ))
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
