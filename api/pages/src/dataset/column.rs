//! Head of a column: name, type, and the figures of its profile with a drawing.
//!
//! Invariant: a drawing has its finding in words beside it, and a column without a value has neither.

use std::fmt::Write as _;

use operators::profile::{
    ColumnProfile, FrequentValue, Histogram, MEAN_DIGITS, ProfileValue, VALUE_DIGITS, short_number, summary,
};
use types::{Field, FieldType};

use crate::cell::{cut, escaped, instant};
use crate::number::{counted, grouped, grouped_digits};

/// Bytes of a head beside its name, about.
const HEAD_BYTES: usize = 850;
/// Side of a drawing: its width and its height.
const WIDTH: u32 = 100;
const HEIGHT: u32 = 30;
/// Most values that are drawn as pieces of one bar, and most that are drawn as bars.
const MAX_PIECES: usize = 4;
const MAX_BARS: usize = 20;
/// Most characters of a value in a head; a number that has more is rounded.
const MAX_VALUE_CHARS: usize = 14;

/// Order of rows by a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnOrder {
    /// Smallest value first.
    Ascending,
    /// Largest value first.
    Descending,
}

impl ColumnOrder {
    /// Returns the word of the order in an address.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ascending => "asc",
            Self::Descending => "desc",
        }
    }
}

/// Column of a table of records.
#[derive(Clone, Debug)]
pub struct ShownColumn {
    /// Field of the contract.
    pub field: Field,
    /// Figures of the field, where there are some.
    pub profile: Option<ColumnProfile>,
    /// Number of records that the figures are of.
    pub records: u64,
    /// Order, if the rows are ordered by this column.
    pub order: Option<ColumnOrder>,
}

impl ShownColumn {
    pub(crate) fn sorted(&self) -> Option<&'static str> {
        self.order.map(|order| match order {
            ColumnOrder::Ascending => "ascending",
            ColumnOrder::Descending => "descending",
        })
    }

    /// Returns true if rows can be ordered by the column.
    pub(crate) fn can_sort(&self) -> bool {
        self.field.kind != FieldType::Json
    }

    /// Returns the class of the cells that are no texts.
    pub(crate) fn class(&self) -> &'static str {
        match self.field.kind {
            FieldType::Integer | FieldType::Number | FieldType::Decimal(_) => "n",
            FieldType::Json => "j",
            FieldType::String | FieldType::Boolean | FieldType::Timestamp | FieldType::Date => "",
        }
    }

    /// Returns the order that its button asks for. A space stands in no name.
    pub(crate) fn by(&self) -> String {
        let order = match self.order {
            Some(ColumnOrder::Ascending) => ColumnOrder::Descending,
            _ => ColumnOrder::Ascending,
        };
        format!("{} {}", self.field.name, order.word())
    }

    /// Returns the type, with the zone of instants.
    pub(crate) fn kind(&self) -> String {
        kind_words(self.field.kind)
    }

    /// Returns the number of values; the mean of numbers.
    pub(crate) fn distinct(&self) -> String {
        let Some(profile) = &self.profile else {
            return if self.field.required {
                "required"
            } else {
                "may be empty"
            }
            .to_owned();
        };
        if let (FieldType::Number, Some(mean)) = (self.field.kind, profile.mean) {
            return format!("mean {}", separated(&short_number(mean, MEAN_DIGITS)));
        }
        if profile.distinct.exact {
            format!("{} distinct", grouped(profile.distinct.about))
        } else {
            format!("about {}", grouped(profile.distinct.about))
        }
    }

    /// Returns the share of records without a value.
    pub(crate) fn nulls(&self) -> String {
        let Some(profile) = &self.profile else {
            return String::new();
        };
        match (profile.nulls, profile.null_percent) {
            (Some(nulls), _) => format!("{} null", percent(nulls, self.records)),
            (None, Some(percent)) => format!("{percent} % null"),
            (None, None) => String::new(),
        }
    }

    /// Returns the figures in one line.
    pub(crate) fn words(&self) -> String {
        self.profile.as_ref().map(summary).unwrap_or_default()
    }

    /// Returns the words at the left end of the drawing.
    pub(crate) fn low(&self) -> String {
        self.ends().map(|(low, _)| low).unwrap_or_default()
    }

    /// Returns the words at the right end of the drawing.
    pub(crate) fn high(&self) -> String {
        self.ends().map(|(_, high)| high).unwrap_or_default()
    }

    fn ends(&self) -> Option<(String, String)> {
        let profile = self.profile.as_ref()?;
        if let Some(pieces) = pieces(profile) {
            let all: u64 = pieces.iter().map(|(_, count)| count).sum();
            let mut words = pieces
                .iter()
                .map(|(name, count)| format!("{} {}", text_words(name, MAX_VALUE_CHARS), percent(*count, all)));
            return Some((words.next()?, words.next().unwrap_or_default()));
        }
        if let Some([first, .., last]) = barred(profile) {
            let words = |value: &FrequentValue| text_words(&value.value, MAX_VALUE_CHARS);
            return Some((words(first), words(last)));
        }
        if let Some(length) = &profile.length {
            let bins = length
                .histogram
                .as_ref()
                .map(|bins| bins.edges.as_slice())
                .unwrap_or_default();
            let edge = |value: Option<&ProfileValue>| value.map(ToString::to_string);
            let low = length.min.map(|min| min.to_string()).or_else(|| edge(bins.first()))?;
            let high = length.max.map(|max| max.to_string()).or_else(|| edge(bins.last()))?;
            return Some(if low == high {
                (format!("{low} characters"), String::new())
            } else {
                (low, format!("{high} characters"))
            });
        }
        let edges = profile
            .histogram
            .as_ref()
            .map(|bins| bins.edges.as_slice())
            .unwrap_or_default();
        let low = profile
            .min
            .as_ref()
            .or(profile.first.as_ref())
            .or_else(|| edges.first())?;
        let high = profile
            .max
            .as_ref()
            .or(profile.last.as_ref())
            .or_else(|| edges.last())?;
        Some(match self.field.kind {
            FieldType::Timestamp | FieldType::Date => of_times(&low.to_string(), &high.to_string()),
            _ => (number_words(low), number_words(high)),
        })
    }

    /// Returns the path of the drawing, in a square of 100 by 30.
    pub(crate) fn drawing(&self) -> Option<String> {
        let profile = self.profile.as_ref()?;
        if let Some(pieces) = pieces(profile) {
            let counts: Vec<u64> = pieces.iter().map(|(_, count)| *count).collect();
            return Some(bar_of(&counts));
        }
        if let Some(values) = barred(profile) {
            let counts = values.iter().map(|value| value.count);
            let most = counts.clone().max().unwrap_or(0);
            return Some(bars_of(counts.map(|count| height(count, most)).collect()));
        }
        let bins = profile.histogram.as_ref();
        let bins = bins.or_else(|| profile.length.as_ref().and_then(|length| length.histogram.as_ref()));
        bins.filter(|bins| !bins.shares.is_empty()).map(bins_of)
    }

    /// Returns the bytes of the head as HTML, about.
    pub(crate) fn weight(&self) -> usize {
        HEAD_BYTES + 2 * escaped(&self.field.name)
    }
}

/// Returns the words for a type of values.
pub(crate) fn kind_words(kind: FieldType) -> String {
    match kind {
        FieldType::Timestamp => "timestamp, UTC".to_owned(),
        FieldType::Decimal(scale) => format!("decimal, {}", counted(scale.into(), "place", "places")),
        kind => kind.name().to_owned(),
    }
}

/// Returns the counts of a column that has very few values.
fn pieces(profile: &ColumnProfile) -> Option<Vec<(String, u64)>> {
    if let (Some(trues), Some(falses)) = (profile.trues, profile.falses) {
        let pieces = [("true", trues), ("false", falses)];
        let pieces = pieces.into_iter().filter(|(_, count)| *count > 0);
        let pieces: Vec<_> = pieces.map(|(name, count)| (name.to_owned(), count)).collect();
        return (!pieces.is_empty()).then_some(pieces);
    }
    if let Some(trues) = profile.true_percent {
        let falses = 100_u8.saturating_sub(trues);
        let pieces = [("true", trues), ("false", falses)];
        return Some(pieces.map(|(name, share)| (name.to_owned(), share.into())).to_vec());
    }
    let values = whole(profile).filter(|values| values.len() <= MAX_PIECES)?;
    Some(values.iter().map(|value| (value.value.clone(), value.count)).collect())
}

/// Returns the values of a column that are drawn as bars, a bar for each.
fn barred(profile: &ColumnProfile) -> Option<&[FrequentValue]> {
    whole(profile).filter(|values| (MAX_PIECES + 1..=MAX_BARS).contains(&values.len()))
}

/// Returns the counts of all values, if a profile has them.
fn whole(profile: &ColumnProfile) -> Option<&[FrequentValue]> {
    let top = profile.top.as_deref().filter(|top| !top.is_empty())?;
    let is_whole = profile.other.unwrap_or(0) == 0 && top.iter().all(|value| value.exact);
    is_whole.then_some(top)
}

/// Draws counts as pieces of one bar.
fn bar_of(counts: &[u64]) -> String {
    let all = counts.iter().sum::<u64>().max(1);
    let mut path = String::new();
    let mut before = 0_u64;
    for count in counts {
        let at = |sum: u64| u128::from(sum) * u128::from(WIDTH) * 10 / u128::from(all);
        let (from, to) = (at(before), at(before.saturating_add(*count)));
        before = before.saturating_add(*count);
        // Six tenths are the gap between two pieces; a piece that is thinner than that still shows.
        let to = to.saturating_sub(6).max(from + 2);
        write!(path, "M{} 9H{}V30H{}Z", tenths(from), tenths(to), tenths(from)).ok();
    }
    path
}

fn tenths(number: u128) -> String {
    match (number / 10, number % 10) {
        (whole, 0) => whole.to_string(),
        (whole, tenth) => format!("{whole}.{tenth}"),
    }
}

/// Returns the height of a bar; one that stands for anything shows.
fn height(count: u64, most: u64) -> u32 {
    if count == 0 || most == 0 {
        return 0;
    }
    let height = u128::from(count) * u128::from(HEIGHT - 1) / u128::from(most);
    u32::try_from(height).unwrap_or(HEIGHT - 1).max(1)
}

/// Draws bars of these heights, at most one for each unit of the width.
fn bars_of(heights: Vec<u32>) -> String {
    let count = u32::try_from(heights.len()).unwrap_or(WIDTH).max(1);
    let mut path = String::new();
    for (at, height) in (0_u32..).zip(heights).filter(|(_, height)| *height > 0) {
        let (from, to) = (at * WIDTH / count, (at + 1) * WIDTH / count);
        let width = (to.saturating_sub(from)).saturating_sub(1).max(1);
        write!(path, "M{from} 30V{}h{width}V30", HEIGHT - height).ok();
    }
    path
}

/// Draws the bins of a sample.
fn bins_of(bins: &Histogram) -> String {
    let most = bins.shares.iter().copied().fold(0.0, f64::max);
    let heights = bins.shares.iter().map(|share| {
        let is_drawn = share.is_finite() && *share > 0.0 && most > 0.0;
        let height = if is_drawn {
            share / most * f64::from(HEIGHT - 1)
        } else {
            0.0
        };
        // Whole units, so that the text of a drawing stays short.
        (1..HEIGHT)
            .take_while(|unit| f64::from(*unit) <= height.max(1.0))
            .count()
            * usize::from(is_drawn)
    });
    bars_of(heights.map(|height| u32::try_from(height).unwrap_or(0)).collect())
}

/// Returns a share in percent, with one digit below ten and close to all. It is 0 and 100 only if it is none and all.
pub(crate) fn percent(count: u64, all: u64) -> String {
    if all == 0 || count == 0 {
        return "0 %".to_owned();
    }
    if count >= all {
        return "100 %".to_owned();
    }
    let (count, all) = (u128::from(count), u128::from(all));
    match count * 1_000 / all {
        0 => "under 0.1 %".to_owned(),
        _ if count * 1_000 > all * 999 => "over 99.9 %".to_owned(),
        tenths @ (1..100 | 995..) => format!("{}.{} %", tenths / 10, tenths % 10),
        tenths => format!("{} %", (tenths + 5) / 10),
    }
}

/// Returns a number as people read it: the minus of mathematics, and separators before the point. A whole number has all its
/// digits; another one that is long is rounded, so that its size is never cut off.
fn number_words(value: &ProfileValue) -> String {
    let written = value.to_string();
    let rounded = match value {
        ProfileValue::Integer(_) => None,
        ProfileValue::Number(number) => Some(*number),
        ProfileValue::Text(decimal) => decimal.parse().ok(),
    };
    let is_long = written.chars().count() > MAX_VALUE_CHARS;
    match rounded.filter(|_| is_long) {
        Some(number) => separated(&short_number(number, VALUE_DIGITS)),
        None => separated(&written),
    }
}

/// Returns the text of a number with a separator between each three digits before the point.
fn separated(number: &str) -> String {
    let (sign, digits) = match number.strip_prefix(['-', '\u{2212}']) {
        Some(digits) => ("\u{2212}", digits),
        None => ("", number),
    };
    let end = digits
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(digits.len());
    let (whole, rest) = digits.split_at(end);
    format!("{sign}{}{rest}", grouped_digits(whole))
}

/// Returns a text for a sentence or a label, cut after `most` characters. An empty one is named, and one of white space alone
/// is quoted, since neither could be seen there.
pub(crate) fn text_words(text: &str, most: usize) -> String {
    if text.is_empty() {
        "empty text".to_owned()
    } else if text.trim().is_empty() {
        format!("“{}”", cut(text, most))
    } else {
        cut(text, most)
    }
}

/// Returns two instants or days, without their times where the days tell them apart.
fn of_times(low: &str, high: &str) -> (String, String) {
    match (low.get(..10), high.get(..10)) {
        (Some(first), Some(last)) if first != last => (first.to_owned(), last.to_owned()),
        _ => (instant(low), instant(high)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn column(kind: FieldType, figures: &Value) -> ShownColumn {
        let mut all = json!({"name": "a", "type": kind.name(), "nulls": 0, "distinct": {"about": 5, "exact": true}});
        all.as_object_mut()
            .unwrap()
            .extend(figures.as_object().unwrap().clone());
        ShownColumn {
            field: Field::new("a", kind),
            profile: Some(serde_json::from_value(all).unwrap()),
            records: 1_000,
            order: None,
        }
    }

    #[test]
    fn a_number_in_a_head_keeps_its_size() {
        let number = FieldType::Number;
        let decimal = FieldType::Decimal(2);
        for (kind, min, max, low, high) in [
            (
                FieldType::Integer,
                json!(i64::MIN),
                json!(44_102),
                "−9,223,372,036,854,775,808",
                "44,102",
            ),
            (number, json!(1.234_567_890_123e-9), json!(-2.41), "1.23457e-9", "−2.41"),
            (
                number,
                json!(-1_234_567.891_234_5),
                json!(f64::MAX),
                "−1,234,568",
                "1.79769e308",
            ),
            (number, json!(1.0 / 3.0), json!(1234.5), "0.333333", "1,234.5"),
            (
                decimal,
                json!("-123456789012345678.99"),
                json!("1234567890.25"),
                "−1.23457e17",
                "1,234,567,890.25",
            ),
        ] {
            let column = column(kind, &json!({"scale": 2, "min": min, "max": max, "mean": 1.0}));
            assert_eq!((column.low().as_str(), column.high().as_str()), (low, high));
        }
        let mean = |mean: f64| column(number, &json!({"mean": mean})).distinct();
        assert_eq!(mean(-2.0 / 3.0), "mean −0.667");
        assert_eq!(mean(1_234_567.8), "mean 1,234,568");
        assert_eq!(mean(1.234_567_890_123e-9), "mean 1.23e-9");
    }

    #[test]
    fn a_share_is_all_or_none_only_if_it_is() {
        for (count, all, words) in [
            (0, 2_000, "0 %"),
            (1, 2_000, "under 0.1 %"),
            (12, 1_000, "1.2 %"),
            (1, 3, "33 %"),
            (994, 1_000, "99 %"),
            (995, 1_000, "99.5 %"),
            (999, 1_000, "99.9 %"),
            (1_999, 2_000, "over 99.9 %"),
            (u64::MAX - 1, u64::MAX, "over 99.9 %"),
            (2_000, 2_000, "100 %"),
            (0, 0, "0 %"),
        ] {
            assert_eq!(percent(count, all), words, "{count} of {all}");
        }
    }

    #[test]
    fn bars_of_values_have_the_first_and_the_last_value_at_their_ends() {
        let names = ["Aberdeen", "Den Helder", "Hook of Holland", "Lerwick", "Wick"];
        let top = names.map(|name| json!({"value": name, "count": 200, "exact": true}));
        let length =
            json!({"min": 4, "max": 15, "mean": 8.6, "histogram": {"edges": [4, 10, 15], "shares": [0.6, 0.4]}});
        let ends = |other: u64| {
            let figures = json!({"top": top, "other": other, "empty": 0, "length": length});
            let column = column(FieldType::String, &figures);
            let bars = column.drawing().unwrap().matches('M').count();
            (bars, column.low(), column.high())
        };
        assert_eq!(ends(0), (5, "Aberdeen".to_owned(), "Wick".to_owned()));
        // Bars of lengths have lengths.
        assert_eq!(ends(7), (2, "4".to_owned(), "15 characters".to_owned()));
    }

    #[test]
    fn a_value_of_which_nothing_is_seen_has_a_name() {
        let top = json!([{"value": "", "count": 3, "exact": true}, {"value": " ", "count": 1, "exact": true}]);
        let column = column(FieldType::String, &json!({"top": top, "other": 0, "empty": 3}));
        assert_eq!(
            (column.low(), column.high()),
            ("empty text 75 %".to_owned(), "“ ” 25 %".to_owned())
        );
    }
}
