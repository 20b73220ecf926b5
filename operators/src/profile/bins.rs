//! Edges of bins, and the shares of values in them.
//!
//! Invariant: edges depend on the two ends alone, and are in ascending order. Bins of whole numbers, days and months have
//! whole widths.

use types::Timestamp;

use super::{ProfileLevel, digits};

/// The most bins of a histogram.
const MAX_BINS: u16 = 20;
/// Digits of an edge below the width of a bin.
const EDGE_DIGITS: i32 = 3;
/// Steps of a grain that a span has at least.
const MIN_GRAINS: i128 = 40;

pub(super) const MICROS_PER_DAY: i128 = 86_400_000_000;
/// Lengths of grains of time that are shorter than a month, in microseconds.
const GRAIN_MICROS: [i128; 6] = [MICROS_PER_DAY, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1];
const MAX_MONTH_DAYS: i128 = 31;
/// The longest span that the level `public` shows by days.
const TWO_YEARS: i128 = 731 * MICROS_PER_DAY;

/// Returns the edges of bins of one whole width from `low` on that have `high` too. Of a single value there is one bin.
pub(super) fn unit_edges(low: i128, high: i128) -> Vec<i128> {
    let values = high.wrapping_sub(low).cast_unsigned().saturating_add(1);
    let width = values.div_ceil(MAX_BINS.into());
    let bins = values.div_ceil(width);
    (0..=bins)
        .map(|bin| low.saturating_add_unsigned(width.saturating_mul(bin)))
        .collect()
}

/// Returns the edges of bins of one width between two finite numbers, but for the rounding of edges. Of a single value
/// there is one bin, and fewer than 20 where there are no doubles between.
pub(super) fn number_edges(low: f64, high: f64) -> Vec<f64> {
    let bins = f64::from(MAX_BINS);
    let mut edges = vec![low];
    if low < high {
        // The difference of the ends may be larger than a double.
        let place = digits::exponent(high / bins - low / bins) - EDGE_DIGITS;
        for bin in 1..MAX_BINS {
            let share = f64::from(bin) / bins;
            let edge = digits::rounded_at(low * (1.0 - share) + high * share, place);
            if edges.last().is_some_and(|last| *last < edge) && edge < high {
                edges.push(edge);
            }
        }
    }
    edges.push(high);
    edges
}

/// A step of time from whose starts bins begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeGrain {
    /// Microseconds.
    Micros(i128),
    /// Months of the UTC calendar.
    Months,
}

impl TimeGrain {
    fn of(span: i128, level: ProfileLevel, are_days: bool) -> Self {
        let is_long = match level {
            ProfileLevel::Public => span > TWO_YEARS,
            ProfileLevel::Full => span >= MIN_GRAINS * MAX_MONTH_DAYS * MICROS_PER_DAY,
        };
        if is_long {
            return Self::Months;
        }
        if are_days || level == ProfileLevel::Public {
            return Self::Micros(MICROS_PER_DAY);
        }
        let mut fine = GRAIN_MICROS.into_iter().filter(|micros| span >= MIN_GRAINS * micros);
        Self::Micros(fine.next().unwrap_or(1))
    }

    /// Returns the number of the step that an instant is in.
    fn step(self, micros: i128) -> i128 {
        match self {
            Self::Micros(length) => micros.div_euclid(length),
            Self::Months => {
                let day = i64::try_from(micros.div_euclid(MICROS_PER_DAY)).unwrap_or(0);
                Timestamp::of_day(day).month().into()
            }
        }
    }

    /// Returns the first instant of a step.
    const fn start(self, step: i128) -> i128 {
        match self {
            Self::Micros(length) => step.saturating_mul(length),
            Self::Months => first_day(step).saturating_mul(MICROS_PER_DAY),
        }
    }
}

/// Returns the first day of a month counted from January 1970, counted from 1970-01-01.
///
/// Howard Hinnant's `days_from_civil` (<https://howardhinnant.github.io/date_algorithms.html>).
const fn first_day(month: i128) -> i128 {
    // Years begin in March, so that the leap day is their last.
    let shifted = month + 1_970 * 12 - 2;
    let (year, month) = (shifted.div_euclid(12), shifted.rem_euclid(12));
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns the edges of bins from `low` to `high`, in microseconds since the epoch, that begin with a microsecond, second,
/// hour, day or month as the span allows; at the level `public` with a day, over two years with a month.
pub(super) fn time_edges(low: i128, high: i128, level: ProfileLevel, are_days: bool) -> Vec<i128> {
    let grain = TimeGrain::of(high.saturating_sub(low), level, are_days);
    let steps = unit_edges(grain.step(low), grain.step(high));
    steps.into_iter().map(|step| grain.start(step)).collect()
}

/// Returns the share of each bin in `values`, which are in ascending order, rounded to this many digits after the point.
/// Values outside count in the bin at their end.
pub(super) fn shares<T: PartialOrd>(edges: &[T], values: &[T], digits: u32) -> Vec<f64> {
    let count = |below: usize| u64::try_from(below).unwrap_or(u64::MAX);
    let inner = edges.get(1..edges.len().saturating_sub(1)).unwrap_or_default();
    let below = inner.iter().map(|edge| values.partition_point(|value| value < edge));
    let all = count(values.len()).max(1);
    let unit = 10_u64.pow(digits);
    let mut last = 0;
    let bins = below.chain([values.len()]).map(|below| {
        let rows = count(below - last);
        last = below;
        let units = (2 * rows * unit + all) / (2 * all);
        f64::from(u32::try_from(units).unwrap_or(u32::MAX)) / f64::from(u32::try_from(unit).unwrap_or(u32::MAX))
    });
    bins.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn micros(text: &str) -> i128 {
        text.parse::<Timestamp>().unwrap().micros().into()
    }

    fn texts(edges: &[i128]) -> Vec<String> {
        let text = |edge: &i128| Timestamp::from_micros(i64::try_from(*edge).unwrap()).to_string();
        edges.iter().map(text).collect()
    }

    #[test]
    fn bins_of_whole_numbers_have_whole_widths() {
        assert_eq!(unit_edges(7, 7), [7, 8]);
        assert_eq!(unit_edges(0, 1), [0, 1, 2]);
        assert_eq!(unit_edges(-1, 18).len(), 21);
        assert_eq!(unit_edges(0, 20), [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]);
        let all = unit_edges(i64::MIN.into(), i64::MAX.into());
        assert_eq!((all.len(), all[0]), (21, i64::MIN.into()));
        assert!(all[20] > i64::MAX.into());
        assert_eq!(unit_edges(i128::MIN, i128::MAX).last(), Some(&i128::MAX));
    }

    #[test]
    fn bins_of_doubles_have_short_edges() {
        assert_eq!(Some(number_edges(2.5, 2.5)), Some(vec![2.5, 2.5]));
        let edges = number_edges(-2.41, 5.87);
        assert_eq!(
            (edges.len(), edges[0].to_string(), edges[20].to_string()),
            (21, "-2.41".into(), "5.87".into())
        );
        assert_eq!(edges[1].to_string(), "-1.996");
        assert_eq!(number_edges(f64::MIN, f64::MAX).len(), 21);
        assert_eq!(number_edges(0.0, 5e-324).len(), 2);
        assert_eq!(number_edges(1.0, 1.0 + 2.0 * f64::EPSILON).len(), 3);
    }

    #[test]
    fn bins_of_times_begin_with_a_day_or_a_month() {
        let (low, high) = (micros("2024-01-31T10:11:12.5Z"), micros("2026-11-25T16:20:00Z"));
        let days = texts(&time_edges(low, high, ProfileLevel::Full, false));
        assert_eq!(
            (days[0].as_str(), days[1].as_str()),
            ("2024-01-31T00:00:00Z", "2024-03-23T00:00:00Z")
        );
        let months = texts(&time_edges(low, high, ProfileLevel::Public, false));
        assert_eq!(
            (months[0].as_str(), months[1].as_str()),
            ("2024-01-01T00:00:00Z", "2024-03-01T00:00:00Z")
        );
        assert_eq!(months.last().unwrap(), "2027-01-01T00:00:00Z");
        let short = texts(&time_edges(low, low + 1_000_000, ProfileLevel::Full, false));
        assert_eq!(short[..2], ["2024-01-31T10:11:12.5Z", "2024-01-31T10:11:12.551Z"]);
        let one = texts(&time_edges(low, low, ProfileLevel::Public, false));
        assert_eq!(one, ["2024-01-31T00:00:00Z", "2024-02-01T00:00:00Z"]);
    }

    #[test]
    fn tails_are_in_the_bins_at_the_ends() {
        assert_eq!(
            Some(shares(&[10, 20, 30], &[-5, 10, 19, 20, 29, 30, 99, 100], 2)),
            Some(vec![0.38, 0.63])
        );
        assert_eq!(Some(shares(&[1, 2], &[1, 1], 4)), Some(vec![1.0]));
        assert_eq!(Some(shares(&[0, 1, 2], &[], 4)), Some(vec![0.0, 0.0]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn months_begin_where_the_calendar_says(month in -23_000_i64..96_000) {
            let day = i64::try_from(first_day(month.into())).unwrap();
            prop_assert_eq!(Timestamp::of_day(day).month(), month);
            prop_assert_eq!(Timestamp::of_day(day - 1).month(), month - 1);
        }

        #[test]
        fn edges_ascend_and_hold_both_ends(bits in any::<[u64; 2]>(), units in any::<[i64; 2]>()) {
            let [left, right] = bits.map(f64::from_bits);
            if left.is_finite() && right.is_finite() {
                let (low, high) = (left.min(right), left.max(right));
                let edges = number_edges(low, high);
                prop_assert!(edges.len() <= 21 && edges.is_sorted_by(|left, right| left < right || low >= high));
                prop_assert_eq!((edges.first(), edges.last()), (Some(&low), Some(&high)));
            }
            let (low, high) = (i128::from(units[0].min(units[1])), i128::from(units[0].max(units[1])));
            for edges in [
                unit_edges(low, high),
                time_edges(low, high, ProfileLevel::Full, false),
                time_edges(low, high, ProfileLevel::Public, true),
            ] {
                prop_assert!(edges.len() <= 21 && edges.is_sorted_by(|left, right| left < right));
                prop_assert!(edges[0] <= low && edges[edges.len() - 1] > high);
            }
        }
    }
}
