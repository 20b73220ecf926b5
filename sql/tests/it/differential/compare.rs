//! Rows of both sides, in one form.
//!
//! Invariant: whole numbers, texts and times are compared exactly, other numbers to twelve digits, and rows as often as
//! they come.

use serde_json::value::RawValue;
use sql::QueryAnswer;

/// Rows of cells.
pub(super) type Rows = Vec<Vec<Cell>>;

/// Greatest relative difference of two doubles that count as equal.
const NEAR: f64 = 1e-12;
/// Microseconds of a day.
const DAY: i128 = 86_400_000_000;
/// Units of an interval by the beginning of their names, with their microseconds. A month has 30 days, as where
/// `PostgreSQL` compares intervals.
const UNITS: [(&str, i128); 8] = [
    ("micro", 1),
    ("milli", 1_000),
    ("sec", 1_000_000),
    ("min", 60_000_000),
    ("hour", 3_600_000_000),
    ("day", DAY),
    ("mon", 30 * DAY),
    ("year", 360 * DAY),
];

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Boolean(bool),
    /// An integer or a decimal, by its digits, without zeros at the end of a fraction.
    Exact(String),
    Double(f64),
    Text(String),
    /// A date, or a timestamp with `Z` if it is an instant.
    Time(String),
    /// Length of an interval in microseconds.
    Interval(i128),
    List(Vec<Self>),
}

impl Cell {
    pub(super) fn number(text: &str) -> Self {
        Self::Double(text.parse().expect(text))
    }

    /// A number with all its digits.
    pub(super) fn exact(text: &str) -> Self {
        if text.contains(['e', 'N', 'I']) {
            return Self::number(text);
        }
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            text
        };
        Self::Exact(if text == "-0" { "0" } else { text }.to_owned())
    }

    /// A date or a time, without a fraction that says nothing.
    pub(super) fn time(text: &str) -> Self {
        let text = text.replace(' ', "T");
        let (local, zone) = match text
            .strip_suffix("+00:00")
            .or_else(|| text.strip_suffix("+00"))
            .or_else(|| text.strip_suffix('Z'))
        {
            Some(local) => (local, "Z"),
            None => (&*text, ""),
        };
        let local = if local.contains('.') {
            local.trim_end_matches('0').trim_end_matches('.')
        } else {
            local
        };
        Self::Time(format!("{local}{zone}"))
    }

    /// A time of day, without a fraction that says nothing.
    pub(super) fn clock(text: &str) -> Self {
        let whole = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            text
        };
        Self::Text(whole.to_owned())
    }

    /// An interval as in ISO 8601, or in words and a clock such as `1 days 2.5 secs` and `1 day -02:03:04`.
    pub(super) fn interval(text: &str) -> Self {
        let iso = |text: &str| {
            let mut total = 0;
            let mut of_time = false;
            let mut number = String::new();
            for letter in text.chars() {
                let unit = match letter {
                    'T' => {
                        of_time = true;
                        continue;
                    }
                    'Y' => 360 * DAY,
                    'M' if !of_time => 30 * DAY,
                    'W' => 7 * DAY,
                    'D' => DAY,
                    'H' => 3_600_000_000,
                    'M' => 60_000_000,
                    'S' => 1_000_000,
                    digit => {
                        number.push(digit);
                        continue;
                    }
                };
                total += times(&number, unit);
                number.clear();
            }
            total
        };
        if let Some(negative) = text.strip_prefix("-P") {
            return Self::Interval(-iso(negative));
        }
        if let Some(positive) = text.strip_prefix('P') {
            return Self::Interval(iso(positive));
        }
        let (clocks, words): (Vec<&str>, Vec<&str>) = text.split_whitespace().partition(|word| word.contains(':'));
        let clock = clocks.into_iter().map(|clock| {
            let digits = clock.trim_start_matches(['-', '+']);
            let parts = digits.split(':').zip([3_600_000_000, 60_000_000, 1_000_000]);
            let length: i128 = parts.map(|(number, unit)| times(number, unit)).sum();
            if clock.starts_with('-') { -length } else { length }
        });
        let total = words.chunks(2).map(|pair| {
            let unit = UNITS
                .iter()
                .find(|(name, _)| pair.get(1).is_some_and(|word| word.starts_with(name)));
            times(pair[0], unit.unwrap_or_else(|| panic!("{text} is no interval")).1)
        });
        Self::Interval(total.chain(clock).sum())
    }

    /// A text by which equal cells are next to each other.
    fn key(&self) -> String {
        match self {
            Self::Null => "0".to_owned(),
            Self::Boolean(value) => format!("1{value}"),
            Self::Exact(digits) => format!("2{:+.9e}", digits.parse::<f64>().unwrap() + 0.0),
            Self::Double(value) => format!("2{:+.9e}", value + 0.0),
            Self::Text(text) => format!("3{text}"),
            Self::Time(text) => format!("4{text}"),
            Self::Interval(length) => format!("5{length}"),
            Self::List(cells) => format!("6{:?}", cells.iter().map(Self::key).collect::<Vec<_>>()),
        }
    }

    fn is(&self, other: &Self) -> bool {
        let double = |text: &str| text.parse::<f64>().unwrap();
        match (self, other) {
            (Self::List(one), Self::List(other)) => alike(one, other),
            (Self::Double(one), Self::Double(other)) => near(*one, *other),
            (Self::Double(one), Self::Exact(other)) | (Self::Exact(other), Self::Double(one)) => {
                near(*one, double(other))
            }
            // Digits behind the point end somewhere, and a quotient has more of them on one side.
            (Self::Exact(one), Self::Exact(other)) if one.contains('.') && other.contains('.') => {
                one == other || near(double(one), double(other))
            }
            (one, other) => one == other,
        }
    }
}

/// A decimal number of a unit that has a whole number of microseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "fractions are of seconds"
)]
fn times(number: &str, unit: i128) -> i128 {
    number.parse::<i128>().map_or_else(
        |_| (number.parse::<f64>().expect(number) * unit as f64).round() as i128,
        |number| number * unit,
    )
}

fn near(one: f64, other: f64) -> bool {
    (one.is_nan() && other.is_nan())
        || one.partial_cmp(&other).is_some_and(std::cmp::Ordering::is_eq)
        || (one - other).abs() <= NEAR * one.abs().max(other.abs())
}

fn alike(one: &[Cell], other: &[Cell]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is(other))
}

/// The rows of an answer of the sandbox.
pub(super) fn of_sandbox(answer: &QueryAnswer) -> Rows {
    let kinds: Vec<&str> = answer.columns.iter().map(|column| &*column.kind).collect();
    let row = |row: &RawValue| {
        let cells: Vec<&RawValue> = serde_json::from_str(row.get()).unwrap();
        cells
            .into_iter()
            .zip(&kinds)
            .map(|(cell, kind)| of_kind(cell, kind))
            .collect()
    };
    answer.rows.iter().map(|raw| row(raw)).collect()
}

fn of_kind(raw: &RawValue, kind: &str) -> Cell {
    if raw.get() == "null" {
        return Cell::Null;
    }
    if kind == "Json" {
        return Cell::Text(raw.get().to_owned());
    }
    let text = || serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
    if let Some(kind) = kind.strip_prefix("List(").and_then(|kind| kind.strip_suffix(')')) {
        let cells: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap();
        return Cell::List(cells.into_iter().map(|cell| of_kind(cell, kind)).collect());
    }
    match kind {
        "Boolean" => Cell::Boolean(raw.get() == "true"),
        kind if kind.starts_with("Interval") || kind.starts_with("Duration") => Cell::interval(&text()),
        kind if kind.contains("Int") || kind.starts_with("Decimal") => Cell::exact(&text()),
        kind if kind.starts_with("Float") => Cell::number(&text()),
        kind if kind.starts_with("Timestamp") || kind.starts_with("Date") => Cell::time(&text()),
        kind if kind.starts_with("Time") => Cell::clock(&text()),
        _ => Cell::Text(text()),
    }
}

/// Compares two answers, in their order where that is total.
pub(super) fn same(ours: &Rows, theirs: &Rows, ordered: bool) -> Result<(), String> {
    if ours.len() != theirs.len() {
        let shown = |rows: &Rows| format!("{:?}", rows.iter().take(4).collect::<Vec<_>>());
        let (one, other) = (shown(ours), shown(theirs));
        return Err(format!(
            "{} rows instead of {}: {one} instead of {other}",
            ours.len(),
            theirs.len()
        ));
    }
    let sorted = |rows: &Rows| {
        let mut rows = rows.clone();
        if !ordered {
            rows.sort_by_cached_key(|row| row.iter().map(Cell::key).collect::<Vec<_>>());
        }
        rows
    };
    let (one, other) = (sorted(ours), sorted(theirs));
    let Some((wrong, expected)) = one.iter().zip(&other).find(|(one, other)| !alike(one, other)) else {
        return Ok(());
    };
    let problem = format!("{wrong:?} instead of {expected:?}");
    if ordered {
        return Err(problem);
    }
    // Doubles that are nearly equal may be sorted differently, so each row is looked for.
    let mut left = other.clone();
    for row in &one {
        let Some(found) = left.iter().position(|other| alike(row, other)) else {
            return Err(problem);
        };
        left.swap_remove(found);
    }
    Ok(())
}
