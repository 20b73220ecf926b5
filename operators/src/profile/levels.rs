//! The figures of a sketch at a level.
//!
//! Invariant: the level `public` says no value of a row: shares are whole percent, ends have two digits or are days, and
//! no bin tells of the hundredth of the values at either end more than that they are there.

use types::contract::FieldTypeName;
use types::{Date, FieldType, Timestamp, decimal};

use super::bins::{self, MICROS_PER_DAY};
use super::column::{ColumnFigures, ColumnSketch, LengthFigures, NumberFigures, TextFigures, UnitFigures};
use super::distinct::DistinctHashes;
use super::figures::{
    ColumnProfile, DistinctCount, FrequentValue, Histogram, LengthProfile, ProfileLevel, ProfileValue, Quantiles,
};
use super::sample::SampledValue;
use super::{MAX_TOP, SketchField, digits, exact};

/// The fewest sampled values of a column whose bins the level `public` shows. With fewer, a hundredth is less than a value,
/// and the ends would be single ones.
const MIN_PUBLIC_VALUES: usize = 100;
/// The last microsecond of the year 9999.
const END_OF_TIME: i128 = 253_402_300_799_999_999;

/// A column of a sketch whose figures are wanted.
#[derive(Debug)]
pub(super) struct LeveledColumn<'a> {
    pub(super) field: &'a SketchField,
    pub(super) column: &'a ColumnSketch,
    /// Rows of the sketch.
    pub(super) records: u64,
    /// Values of the column in the sample.
    pub(super) sample: &'a [&'a SampledValue],
    pub(super) level: ProfileLevel,
}

impl LeveledColumn<'_> {
    /// Returns the figures.
    pub(super) fn profile(&self) -> ColumnProfile {
        let mut profile = self.blank();
        match &self.column.figures {
            ColumnFigures::Units(figures) => self.units(figures, &mut profile),
            ColumnFigures::Numbers(figures) => self.numbers(figures, &mut profile),
            ColumnFigures::Booleans { trues, falses } => self.booleans(*trues, *falses, &mut profile),
            ColumnFigures::Texts(figures) => self.texts(figures, &mut profile),
            ColumnFigures::Jsons(figures) => {
                profile.distinct = self.distinct(&figures.distinct);
                profile.length = self.lengths(figures.lengths);
                profile.kinds = self.is_full().then_some(figures.kinds);
            }
        }
        profile
    }

    fn blank(&self) -> ColumnProfile {
        let nulls = self.column.nulls;
        ColumnProfile {
            name: self.field.name.clone(),
            kind: FieldTypeName::from(self.field.kind),
            scale: match self.field.kind {
                FieldType::Decimal(scale) => Some(scale),
                _ => None,
            },
            nulls: self.is_full().then_some(nulls),
            null_percent: (!self.is_full()).then(|| digits::percent(nulls, self.records)),
            distinct: DistinctCount { about: 0, exact: true },
            min: None,
            max: None,
            first: None,
            last: None,
            mean: None,
            deviation: None,
            negative: None,
            zero: None,
            not_finite: None,
            quantiles: None,
            histogram: None,
            empty: None,
            length: None,
            top: None,
            other: None,
            trues: None,
            falses: None,
            true_percent: None,
            kinds: None,
        }
    }

    fn is_full(&self) -> bool {
        self.level == ProfileLevel::Full
    }

    /// Returns the number of rows with a value.
    fn values(&self) -> u64 {
        self.records.saturating_sub(self.column.nulls)
    }

    fn distinct(&self, hashes: &DistinctHashes) -> DistinctCount {
        let (about, exact) = hashes.count();
        self.distinct_of(about, exact)
    }

    fn distinct_of(&self, about: u64, exact: bool) -> DistinctCount {
        // An estimate can be more than there are.
        let about = about.min(self.values());
        match self.level {
            ProfileLevel::Full => DistinctCount { about, exact },
            ProfileLevel::Public => DistinctCount {
                about: digits::rounded_count(about),
                exact: exact && about < 100,
            },
        }
    }

    fn units(&self, figures: &UnitFigures, profile: &mut ColumnProfile) {
        profile.distinct = self.distinct(&figures.distinct);
        let mut values: Vec<i128> = self.sample.iter().filter_map(|value| value.units()).collect();
        values.sort_unstable();
        profile.histogram = self.unit_histogram(figures.range, &values);
        if !self.is_full() {
            return;
        }
        profile.quantiles = quantiles(&values, |units| self.shown(units));
        let (least, most) = figures
            .range
            .map(|(least, most)| (self.shown(least), self.shown(most)))
            .unzip();
        let Some((unit, moments)) = &figures.moments else {
            (profile.first, profile.last) = (least, most);
            return;
        };
        (profile.min, profile.max) = (least, most);
        profile.mean = moments.mean(*unit, self.values());
        profile.deviation = moments.deviation(*unit, self.values());
        (profile.negative, profile.zero) = (Some(figures.negative), Some(figures.zero));
    }

    /// Returns bins of `values`, which are in ascending order, over the exact range or, at the level `public`, over the
    /// middle 98 % of the sample.
    fn unit_histogram(&self, range: Option<(i128, i128)>, values: &[i128]) -> Option<Histogram> {
        let (low, high) = if self.is_full() {
            range.filter(|_| !values.is_empty())?
        } else {
            middle(values)?
        };
        let per_unit = match self.field.kind {
            FieldType::Timestamp => 1,
            FieldType::Date => MICROS_PER_DAY,
            kind => {
                let edges = if self.is_full() {
                    bins::unit_edges(low, high)
                } else {
                    bins::unit_edges(digits::floor_two_units(low), digits::ceil_two_units(high))
                };
                return Some(self.histogram(cut(edges, high, most_units(kind)), values, |units| self.shown(units)));
            }
        };
        let are_days = per_unit != 1;
        let (low, high) = (low.saturating_mul(per_unit), high.saturating_mul(per_unit));
        let edges = bins::time_edges(low, high, self.level, are_days);
        let edges = cut(edges, high, END_OF_TIME);
        // Edges of days are whole days, also the one at the end of time.
        let edges = edges.into_iter().map(|micros| micros.div_euclid(per_unit)).collect();
        Some(self.histogram(edges, values, |units| self.shown(units)))
    }

    fn histogram<T: Copy + PartialOrd>(
        &self,
        edges: Vec<T>,
        values: &[T],
        shown: impl Fn(T) -> ProfileValue,
    ) -> Histogram {
        let shares = bins::shares(&edges, values, if self.is_full() { 4 } else { 2 });
        Histogram {
            edges: edges.into_iter().map(shown).collect(),
            shares,
        }
    }

    /// Returns units as a record shows them.
    fn shown(&self, units: i128) -> ProfileValue {
        let narrow = i64::try_from(units).unwrap_or(if units < 0 { i64::MIN } else { i64::MAX });
        match self.field.kind {
            FieldType::Decimal(scale) => ProfileValue::Text(decimal::text(units, scale)),
            FieldType::Timestamp => ProfileValue::Text(Timestamp::from_micros(narrow).to_string()),
            FieldType::Date => {
                let days = i32::try_from(narrow).unwrap_or(if units < 0 { i32::MIN } else { i32::MAX });
                ProfileValue::Text(Date::from_days(days).to_string())
            }
            _ => ProfileValue::Integer(narrow),
        }
    }

    fn numbers(&self, figures: &NumberFigures, profile: &mut ColumnProfile) {
        profile.distinct = self.distinct(&figures.distinct);
        let mut values: Vec<f64> = self.sample.iter().filter_map(|value| value.number()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let ends = if self.is_full() {
            figures.range
        } else {
            middle(&values).map(|(low, high)| (digits::floor_two(low), digits::ceil_two(high)))
        };
        let ends = ends.filter(|_| !values.is_empty());
        let edges = ends.map(|(low, high)| bins::number_edges(low, high));
        profile.histogram = edges.map(|edges| self.histogram(edges, &values, ProfileValue::Number));
        if !self.is_full() {
            return;
        }
        let finite = self.values().saturating_sub(figures.not_finite);
        profile.quantiles = quantiles(&values, ProfileValue::Number);
        profile.min = figures.range.map(|(min, _)| ProfileValue::Number(min));
        profile.max = figures.range.map(|(_, max)| ProfileValue::Number(max));
        profile.mean = figures.moments.mean(exact::MomentUnit::Number, finite);
        profile.deviation = figures.moments.deviation(exact::MomentUnit::Number, finite);
        (profile.negative, profile.zero) = (Some(figures.negative), Some(figures.zero));
        profile.not_finite = Some(figures.not_finite).filter(|count| *count > 0);
    }

    fn booleans(&self, trues: u64, falses: u64, profile: &mut ColumnProfile) {
        profile.distinct = self.distinct_of(u64::from(trues > 0) + u64::from(falses > 0), true);
        if self.is_full() {
            (profile.trues, profile.falses) = (Some(trues), Some(falses));
        } else if trues + falses > 0 {
            profile.true_percent = Some(digits::percent(trues, trues + falses));
        }
    }

    fn texts(&self, figures: &TextFigures, profile: &mut ColumnProfile) {
        profile.distinct = self.distinct(&figures.distinct);
        profile.length = self.lengths(figures.lengths);
        if !self.is_full() {
            return;
        }
        profile.empty = Some(figures.empty);
        let (counts, all, exact) = match figures.frequent.counts() {
            Some(counts) => (counts, self.values(), true),
            None if self.field.keeps_texts => {
                let (counts, all) = self.sampled_texts();
                (counts, all, false)
            }
            None => return,
        };
        let (top, other) = frequent(counts, all, exact);
        (profile.top, profile.other) = (Some(top), Some(other));
    }

    /// Returns the texts that several rows of the sample have, with their rows, and the number of rows with any text.
    fn sampled_texts(&self) -> (Vec<(&str, u64)>, u64) {
        let mut texts: Vec<&str> = self.sample.iter().filter_map(|value| value.text()).collect();
        texts.sort_unstable();
        let counts = texts.chunk_by(|left, right| left == right);
        let counts = counts.filter_map(|rows| Some((*rows.first()?, u64::try_from(rows.len()).ok()?)));
        // A text of one row is as frequent as any other.
        let counts = counts.filter(|(_, rows)| *rows > 1).collect();
        let all = self
            .sample
            .iter()
            .filter(|value| **value != &SampledValue::Null)
            .count();
        (counts, u64::try_from(all).unwrap_or(u64::MAX))
    }

    fn lengths(&self, lengths: LengthFigures) -> Option<LengthProfile> {
        let (min, max) = lengths.range?;
        let mut values: Vec<i128> = self.sample.iter().filter_map(|value| value.characters()).collect();
        values.sort_unstable();
        let histogram = self.unit_histogram(Some((min.into(), max.into())), &values);
        let mean = || exact::ratio(lengths.sum, self.values());
        Some(LengthProfile {
            min: self.is_full().then_some(min),
            max: self.is_full().then_some(max),
            mean: self.is_full().then(mean),
            histogram,
        })
    }
}

/// Returns the most frequent texts, and the number of rows that have others. `counts` is in ascending order of the texts.
fn frequent(mut counts: Vec<(&str, u64)>, all: u64, exact: bool) -> (Vec<FrequentValue>, u64) {
    // A stable sort keeps texts of one count in their order.
    counts.sort_by_key(|(_, rows)| std::cmp::Reverse(*rows));
    counts.truncate(MAX_TOP);
    let listed: u64 = counts.iter().map(|(_, rows)| rows).sum();
    let top = counts.into_iter().map(|(text, count)| FrequentValue {
        value: text.to_owned(),
        count,
        exact,
    });
    (top.collect(), all.saturating_sub(listed))
}

/// Returns edges none of which is beyond the end of the type, unless a value is.
fn cut(edges: Vec<i128>, high: i128, end: i128) -> Vec<i128> {
    edges.into_iter().map(|edge| edge.min(end.max(high))).collect()
}

/// Returns the largest value of a type of whole numbers.
fn most_units(kind: FieldType) -> i128 {
    match kind {
        FieldType::Decimal(_) => 10_i128.pow(decimal::MAX_DIGITS.into()) - 1,
        _ => i64::MAX.into(),
    }
}

/// Returns the value of the nearest rank: the first that at least `percent` of the values are not above.
fn quantile<T: Copy>(values: &[T], percent: usize) -> Option<T> {
    let rank = (values.len() * percent).div_ceil(100);
    values.get(rank.saturating_sub(1)).copied()
}

/// Returns the ends of the values without a hundredth at each; none if there are too few values.
fn middle<T: Copy>(values: &[T]) -> Option<(T, T)> {
    let tail = values.len() / 100;
    let middle = values.get(tail..values.len() - tail)?;
    let ends = middle.first().copied().zip(middle.last().copied());
    ends.filter(|_| values.len() >= MIN_PUBLIC_VALUES)
}

fn quantiles<T: Copy>(values: &[T], shown: impl Fn(T) -> ProfileValue) -> Option<Quantiles> {
    let at = |percent| quantile(values, percent).map(&shown);
    Some(Quantiles {
        p1: at(1)?,
        p5: at(5)?,
        p25: at(25)?,
        p50: at(50)?,
        p75: at(75)?,
        p95: at(95)?,
        p99: at(99)?,
    })
}
