//! Figures against plain computations over all rows.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// The figures of a column by name.
fn column<'a>(figures: &'a ProfileFigures, name: &str) -> &'a ColumnProfile {
    figures.columns.iter().find(|column| column.name == name).unwrap()
}

fn distinct_is(found: DistinctCount, values: usize) {
    let values = values as u64;
    if values <= 1_024 {
        assert_eq!(
            found,
            DistinctCount {
                about: values,
                exact: true
            }
        );
    } else {
        assert!(
            !found.exact && found.about.abs_diff(values) * 100 <= values * 12,
            "{found:?} {values}"
        );
    }
}

/// The value of the nearest rank of sorted values.
fn ranked<T: Clone>(values: &[T], percent: usize) -> T {
    let at = (1..=values.len())
        .find(|rank| rank * 100 >= values.len() * percent)
        .unwrap();
    values[at - 1].clone()
}

#[expect(clippy::cast_precision_loss, reason = "a deviation is compared with 6 digits")]
fn deviation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt())
}

fn is_near(left: Option<f64>, right: Option<f64>) {
    let near = match (left, right) {
        (Some(left), Some(right)) => (left - right).abs() <= right.abs() * 1e-5,
        (left, right) => left.is_none() && right.is_none(),
    };
    assert!(near, "{left:?} {right:?}");
}

/// The shares of values in bins, one value at a time.
#[expect(clippy::cast_precision_loss, reason = "few values")]
fn shares_are<T: PartialOrd>(found: Option<&Histogram>, edges: &[T], values: &[T]) {
    let Some(found) = found else {
        assert!(values.is_empty());
        return;
    };
    assert_eq!(found.edges.len(), found.shares.len() + 1);
    for (bin, share) in found.shares.iter().enumerate() {
        let is_last = bin + 1 == found.shares.len();
        let inside = |value: &&T| **value >= edges[bin] && (**value < edges[bin + 1] || is_last);
        let expected = values.iter().filter(inside).count() as f64 / values.len() as f64;
        assert!((share - expected).abs() <= 0.000_051, "{share} {expected}");
    }
}

/// Checks the exact figures, and those of the sample if it has all rows.
fn check(rows: &[Row]) {
    let figures = whole(rows).profile(ProfileLevel::Full);
    assert_eq!(
        (figures.records, figures.sampled),
        (rows.len() as u64, rows.len().min(2_048) as u64)
    );
    let extra = rows.iter().filter(|row| row.extra.is_some()).count() as u64;
    assert_eq!(figures.extra, Some(ExtraProfile { records: extra }));

    integers_are(&figures, rows);
    numbers_are(&figures, rows);
    times_and_prices_are(&figures, rows);
    texts_are(&figures, rows);

    let flag = column(&figures, "flag");
    let count = |value| rows.iter().filter(|row| row.flag == Some(value)).count() as u64;
    assert_eq!((flag.trues, flag.falses), (Some(count(true)), Some(count(false))));

    let json = column(&figures, "json");
    let texts: Vec<&str> = rows.iter().filter_map(|row| row.json.as_deref()).collect();
    let kind = |first: &[char]| texts.iter().filter(|text| text.starts_with(first)).count() as u64;
    let kinds = JsonKinds {
        object: kind(&['{']),
        array: kind(&['[']),
        string: kind(&['"']),
        number: kind(&['-', '1']),
        boolean: kind(&['t', 'f']),
    };
    assert_eq!(json.kinds, Some(kinds));
}

#[expect(clippy::cast_precision_loss, reason = "sums of these rows are exact")]
fn integers_are(figures: &ProfileFigures, rows: &[Row]) {
    let integer = column(figures, "integer");
    let mut values: Vec<i64> = rows.iter().filter_map(|row| row.integer).collect();
    values.sort_unstable();
    assert_eq!(integer.nulls, Some((rows.len() - values.len()) as u64));
    distinct_is(integer.distinct, values.iter().collect::<BTreeSet<_>>().len());
    assert_eq!(integer.min, values.first().map(|value| ProfileValue::Integer(*value)));
    assert_eq!(integer.max, values.last().map(|value| ProfileValue::Integer(*value)));
    let sum: i128 = values.iter().map(|value| i128::from(*value)).sum();
    assert_eq!(
        integer.mean,
        (!values.is_empty()).then(|| sum as f64 / values.len() as f64)
    );
    is_near(
        integer.deviation,
        deviation(&values.iter().map(|value| *value as f64).collect::<Vec<_>>()),
    );
    assert_eq!(
        integer.negative,
        Some(values.iter().filter(|value| **value < 0).count() as u64)
    );
    assert_eq!(
        integer.zero,
        Some(values.iter().filter(|value| **value == 0).count() as u64)
    );
    if rows.len() <= SAMPLED_ROWS && !values.is_empty() {
        let quantiles = integer.quantiles.as_ref().unwrap();
        for (found, percent) in [
            (&quantiles.p1, 1),
            (&quantiles.p25, 25),
            (&quantiles.p50, 50),
            (&quantiles.p99, 99),
        ] {
            assert_eq!(*found, ProfileValue::Integer(ranked(&values, percent)), "{percent}");
        }
        let edges = integer.histogram.as_ref().unwrap().edges.iter().map(|edge| match edge {
            ProfileValue::Integer(edge) => *edge,
            edge => panic!("{edge:?}"),
        });
        shares_are(integer.histogram.as_ref(), &edges.collect::<Vec<_>>(), &values);
    }
}

#[expect(clippy::cast_precision_loss, reason = "sums of these rows are exact")]
fn numbers_are(figures: &ProfileFigures, rows: &[Row]) {
    let number = column(figures, "number");
    let mut values: Vec<f64> = rows.iter().filter_map(|row| row.number).collect();
    values.sort_unstable_by(f64::total_cmp);
    distinct_is(
        number.distinct,
        values
            .iter()
            .map(|value| value.to_bits())
            .collect::<BTreeSet<_>>()
            .len(),
    );
    assert_eq!(number.min, values.first().map(|value| ProfileValue::Number(*value)));
    assert_eq!(number.max, values.last().map(|value| ProfileValue::Number(*value)));
    // Eighths of small numbers, whose sum is a double.
    assert_eq!(
        number.mean,
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    );
    is_near(number.deviation, deviation(&values));
    if rows.len() <= SAMPLED_ROWS && !values.is_empty() {
        assert_eq!(
            number.quantiles.as_ref().unwrap().p5,
            ProfileValue::Number(ranked(&values, 5))
        );
        let edges = number.histogram.as_ref().unwrap().edges.iter().map(|edge| match edge {
            ProfileValue::Number(edge) => *edge,
            edge => panic!("{edge:?}"),
        });
        shares_are(number.histogram.as_ref(), &edges.collect::<Vec<_>>(), &values);
    }
}

#[expect(clippy::cast_precision_loss, reason = "sums of these rows are exact")]
fn times_and_prices_are(figures: &ProfileFigures, rows: &[Row]) {
    let at = column(figures, "at");
    let mut times: Vec<i64> = rows.iter().filter_map(|row| row.at).collect();
    times.sort_unstable();
    distinct_is(at.distinct, times.iter().collect::<BTreeSet<_>>().len());
    let shown = |micros: Option<&i64>| {
        micros.map(|micros| ProfileValue::Text(types::Timestamp::from_micros(*micros).to_string()))
    };
    assert_eq!(
        (at.first.clone(), at.last.clone()),
        (shown(times.first()), shown(times.last()))
    );

    let day = column(figures, "day");
    let days: BTreeSet<i32> = rows.iter().filter_map(|row| row.day).collect();
    distinct_is(day.distinct, days.len());
    let shown = |days: Option<&i32>| days.map(|days| ProfileValue::Text(types::Date::from_days(*days).to_string()));
    assert_eq!(
        (day.first.clone(), day.last.clone()),
        (shown(days.first()), shown(days.last()))
    );

    let price = column(figures, "price");
    let prices: Vec<i128> = rows.iter().filter_map(|row| row.price).collect();
    distinct_is(price.distinct, prices.iter().collect::<BTreeSet<_>>().len());
    let shown = |units: Option<&i128>| units.map(|units| ProfileValue::Text(types::decimal::text(*units, 2)));
    assert_eq!((price.min.clone(), price.scale), (shown(prices.iter().min()), Some(2)));
    let mean = (!prices.is_empty()).then(|| prices.iter().sum::<i128>() as f64 / (100 * prices.len()) as f64);
    assert_eq!(price.mean, mean);
    is_near(
        price.deviation,
        deviation(&prices.iter().map(|units| *units as f64 / 100.0).collect::<Vec<_>>()),
    );
}

fn texts_are(figures: &ProfileFigures, rows: &[Row]) {
    let text = column(figures, "text");
    let texts: Vec<&str> = rows.iter().filter_map(|row| row.text.as_deref()).collect();
    distinct_is(text.distinct, texts.iter().collect::<BTreeSet<_>>().len());
    assert_eq!(
        text.empty,
        Some(texts.iter().filter(|text| text.is_empty()).count() as u64)
    );
    let lengths = || texts.iter().map(|text| text.chars().count() as u64);
    let length = text.length.as_ref();
    assert_eq!(length.and_then(|length| length.min), lengths().min());
    assert_eq!(length.and_then(|length| length.max), lengths().max());
    #[expect(clippy::cast_precision_loss, reason = "few characters")]
    let mean = (!texts.is_empty()).then(|| lengths().sum::<u64>() as f64 / texts.len() as f64);
    assert_eq!(length.and_then(|length| length.mean), mean);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for short in texts.iter().filter(|text| text.len() <= 64) {
        *counts.entry(short).or_default() += 1;
    }
    let exact = counts.len() <= 768;
    if !exact && rows.len() <= SAMPLED_ROWS {
        counts.retain(|_, rows| *rows > 1);
    } else if !exact {
        assert!(
            text.top
                .as_ref()
                .unwrap()
                .iter()
                .all(|top| !top.exact && counts.contains_key(top.value.as_str()))
        );
        return;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(text, rows)| (std::cmp::Reverse(*rows), *text));
    counts.truncate(20);
    let listed: u64 = counts.iter().map(|(_, rows)| rows).sum();
    let top = counts.into_iter().map(|(value, count)| FrequentValue {
        value: value.to_owned(),
        count,
        exact,
    });
    assert_eq!(text.top, Some(top.collect()));
    assert_eq!(text.other, Some(texts.len() as u64 - listed));
}

#[test]
fn figures_are_those_of_plain_computations() {
    let mut tried = 0;
    for seed in 0..200 {
        let mut random = Random(1_000 + seed);
        let count = random.pick(&[0, 1, 2, 20, 300, 1_500, 2_048, 2_049]);
        let mut rows = rows(&mut random, count);
        // Hostile values have a test of their own, since plain sums lose them.
        let is_plain = |row: &Row| {
            row.number
                .is_none_or(|number| number.abs() < 1e13 && number.to_bits() != 1 && (number * 8.0).fract() == 0.0)
                && row.integer.is_none_or(|integer| integer.unsigned_abs() < 1 << 41)
                && row.price.is_none_or(|units| units.abs() < 1 << 41)
        };
        rows.retain(is_plain);
        // A zero with a sign is the same number.
        for row in &mut rows {
            row.number = row.number.map(|number| number + 0.0);
        }
        check(&rows);
        tried += rows.len();
    }
    assert!(tried > 50_000, "{tried}");
}

#[test]
fn quantiles_and_bins_of_many_rows_are_near() {
    let count = 30_000;
    let rows: Vec<Row> = (0..count)
        .map(|at| Row {
            integer: Some(at),
            ..Row::default()
        })
        .collect();
    let figures = whole(&rows).profile(ProfileLevel::Full);
    let integer = column(&figures, "integer");
    let quantiles = integer.quantiles.clone().unwrap();
    for (found, percent) in [(quantiles.p5, 5), (quantiles.p50, 50), (quantiles.p95, 95)] {
        let ProfileValue::Integer(found) = found else {
            panic!("{found:?}")
        };
        // 3 % of rank, as the documentation says.
        assert!(
            (found - count * percent / 100).abs() <= count * 3 / 100,
            "{found} {percent}"
        );
    }
    let shares = &integer.histogram.as_ref().unwrap().shares;
    assert!(
        shares.len() == 20 && shares.iter().all(|share| (share - 0.05).abs() < 0.03),
        "{shares:?}"
    );
    assert!(integer.distinct.about.abs_diff(30_000) < 30_000 / 10);
}
