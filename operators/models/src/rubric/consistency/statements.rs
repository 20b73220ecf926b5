//! Contradictions within one sentence.

use types::Timestamp;

use super::super::parse::{Quantity, Sentence, quantities, unit_of, value_of, words};
use super::super::reasons::quoted;
use super::changes::{PERCENTILES, alike, change};
use super::shown;
use super::times::{later_date, order_of_times};

/// The most bytes of a sentence that is looked at; a longer one is no sentence.
const SENTENCE_BYTES: usize = 1_000;
/// The difference in points that rounding explains.
pub(super) const ROUNDED_POINTS: f64 = 2.0;

/// Adds the contradictions of a sentence.
pub(super) fn add(sentence: &Sentence, submitted_at: Timestamp, found: &mut Vec<String>) {
    if sentence.lower.len() > SENTENCE_BYTES {
        return;
    }
    let lower = words(&sentence.lower);
    let quote = || quoted(&sentence.text);
    found.extend(ratio(&lower, &sentence.text).map(|told| format!("{told}: {}.", quote())));
    if sentence.is_row {
        return;
    }
    let rules = [
        change(&lower),
        total(&sentence.lower),
        percentiles(&lower),
        rate_above_whole(&lower),
        throughput(&lower),
        order_of_times(&sentence.lower),
        later_date(&sentence.lower, submitted_at),
        shares(&sentence.lower),
        complement(&lower),
        part_of_named(&lower),
        f1_outside(&lower),
    ];
    found.extend(rules.into_iter().flatten().map(|told| format!("{told}: {}.", quote())));
}

/// Returns the value of a word that is a number.
pub(super) fn plain(word: &str) -> Option<f64> {
    let digits = word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '.'));
    // `2.1.0` is a version.
    (digits && word.matches('.').count() < 2)
        .then(|| value_of(word))
        .flatten()
}

pub(super) fn first(text: &str) -> Option<Quantity> {
    quantities(text).next()
}

pub(super) fn starts_with_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Finds `N of M` with N above M, or with a percentage in brackets right after it that does not fit.
fn ratio(lower: &[&str], text: &str) -> Option<String> {
    for (index, window) in lower.windows(3).enumerate() {
        let pair = match window {
            [part, "of" | "von" | "out", whole] => plain(part).zip(plain(whole)),
            [whole, "중", part] => first(part)
                .zip(first(whole))
                .map(|(part, whole)| (part.value, whole.value)),
            _ => None,
        };
        let Some((part, whole)) = pair.filter(|(_, whole)| *whole > 0.0) else {
            continue;
        };
        let before = index
            .checked_sub(1)
            .and_then(|at| lower.get(at))
            .copied()
            .unwrap_or_default();
        let after = lower.get(index + 3).copied().unwrap_or_default();
        if part > whole {
            // `section 7 of 5`, `100 of 10 MB each`: only a count of what is counted as a whole is meant.
            let is_counted = after.chars().count() > 3
                && after.chars().all(char::is_alphabetic)
                && unit_of(after).is_none_or(|unit| !NOT_COUNTED.contains(&unit));
            if is_counted && !BEFORE_NUMBERS.contains(&before) && whole.fract() == 0.0 && part.fract() == 0.0 {
                return Some(format!("{} of {} is more than the whole", shown(part), shown(whole)));
            }
            continue;
        }
        // `22 of 400 (5.5 %)`: only what is in brackets right after is surely of these two.
        let bracketed = [format!("{} (", window[2]), format!("{}(", window[2])];
        if !bracketed.iter().any(|mark| text.to_lowercase().contains(mark)) {
            continue;
        }
        let stated = match lower.get(index + 4) {
            Some(&"%") => plain(after),
            _ => first(after)
                .filter(|quantity| quantity.unit == "%" && starts_with_number(after))
                .map(|q| q.value),
        };
        let percent = part / whole * 100.0;
        if let Some(stated) = stated
            && (percent - stated).abs() > ROUNDED_POINTS
            && (100.0 - percent - stated).abs() > ROUNDED_POINTS
        {
            let (part, whole, percent, stated) = (shown(part), shown(whole), shown(percent), shown(stated));
            return Some(format!("{part} of {whole} is {percent} %, the text says {stated} %"));
        }
    }
    None
}

/// Words after which a number is a place and no count.
const BEFORE_NUMBERS: [&str; 14] = [
    "section", "chapter", "page", "part", "step", "version", "figure", "level", "item", "line", "rfc", "article",
    "table", "row",
];
/// Units of size and time, which are not counted.
const NOT_COUNTED: [&str; 12] = ["ms", "µs", "ns", "s", "min", "h", "b", "kb", "mb", "gb", "tb", "%"];

/// Finds `Of N things, M failed` with M above N.
fn part_of_named(lower: &[&str]) -> Option<String> {
    let ["of", whole, named, rest @ ..] = lower else {
        return None;
    };
    let (whole, part) = (
        plain(whole)?,
        rest.iter().take(3).position(|word| starts_with_number(word))?,
    );
    let is_named =
        named.chars().all(char::is_alphabetic) && unit_of(named).is_none_or(|unit| !NOT_COUNTED.contains(&unit));
    let verb = rest.get(part + 1)?;
    let is_told = verb.ends_with("ed") || matches!(*verb, "were" | "had" | "was" | "did" | "took");
    let part = plain(rest[part])?;
    (is_named && is_told && part > whole && part.fract() == 0.0 && whole.fract() == 0.0)
        .then(|| format!("{} of {} is more than the whole", shown(part), shown(whole)))
}

/// Finds an F1 that is not between the precision and the recall of the same sentence.
fn f1_outside(lower: &[&str]) -> Option<String> {
    let of = |name: &str| {
        let mut places = lower
            .iter()
            .enumerate()
            .filter(|(_, word)| **word == name)
            .map(|(at, _)| at);
        let at = places.next().filter(|_| places.next().is_none())?;
        let rest = lower.get(at + 1..(at + 3).min(lower.len()))?;
        let number = rest.iter().position(|word| starts_with_number(word))?;
        plain(rest[number]).filter(|_| {
            rest[..number]
                .iter()
                .all(|word| matches!(*word, "of" | "was" | "is" | "="))
        })
    };
    let (precision, recall, f1) = (of("precision")?, of("recall")?, of("f1")?);
    let (low, high) = (precision.min(recall), precision.max(recall));
    let slack = if high > 1.5 { 1.0 } else { 0.01 };
    (f1 > high + slack || f1 < low - slack).then(|| {
        let (f1, precision, recall) = (shown(f1), shown(precision), shown(recall));
        format!("an F1 of {f1} is not between precision {precision} and recall {recall}")
    })
}

/// Finds a sum that is below one of its parts in the same sentence.
fn total(lower: &str) -> Option<String> {
    let (before, after) = ["합계 ", "합쳐 ", "for a total of ", "in total ", "insgesamt ", "合計"]
        .iter()
        .find_map(|mark| lower.split_once(mark))?;
    let after = after.trim_start();
    starts_with_number(after).then_some(())?;
    let total = first(after).filter(|total| !matches!(total.unit, "" | "%"))?;
    let parts: Vec<f64> = quantities(before)
        .filter(|part| part.unit == total.unit)
        .map(|part| part.value)
        .collect();
    let largest = parts.iter().copied().fold(0.0, f64::max);
    (parts.len() >= 2 && largest > total.value).then(|| {
        format!(
            "the total of {} is below its part of {}",
            shown(total.value),
            shown(largest)
        )
    })
}

/// Finds a lower percentile above a higher one.
fn percentiles(lower: &[&str]) -> Option<String> {
    // `p50 by 9 ms and p99 by 3 ms` are differences, and `from … to …` has two values of one.
    const OF_CHANGES: [&str; 14] = [
        "by",
        "from",
        "to",
        "→",
        "than",
        "versus",
        "vs",
        "um",
        "von",
        "auf",
        "delta",
        "difference",
        "improved",
        "faster",
    ];
    if lower
        .iter()
        .any(|word| OF_CHANGES.contains(word) || word.starts_with(['+', '-']))
    {
        return None;
    }
    let mut values: Vec<(usize, &str, Quantity)> = Vec::new();
    for (index, word) in lower.iter().enumerate() {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii());
        let name = match *word {
            "median" | "중앙값은" | "중앙값" | "中央値" => "median",
            _ => bare,
        };
        let Some(rank) = PERCENTILES.iter().position(|listed| *listed == name) else {
            continue;
        };
        // The median is the fiftieth.
        let rank = rank.max(1);
        let rest = &lower[index + 1..(index + 4).min(lower.len())];
        let named = rest
            .iter()
            .position(|word| PERCENTILES.contains(word))
            .unwrap_or(rest.len());
        if let Some(value) = first(&rest[..named].join(" ")).filter(|value| !value.unit.is_empty()) {
            values.push((rank, name, value));
        }
    }
    for (at, (rank, ..)) in values.iter().enumerate() {
        if values.iter().skip(at + 1).any(|(other, ..)| other == rank) {
            return None;
        }
    }
    values.windows(2).find_map(|pair| {
        let [(low, low_name, one), (high, high_name, other)] = pair else {
            return None;
        };
        let (one, other) = alike(one.clone(), other.clone())?;
        ((low < high) == (one.value > other.value) && one.value.to_bits() != other.value.to_bits()).then(|| {
            let ((low, above), (high, below)) = if one.value > other.value {
                ((low_name, &one), (high_name, &other))
            } else {
                ((high_name, &other), (low_name, &one))
            };
            let unit = one.unit;
            format!(
                "the {low} of {} {unit} is above the {high} of {} {unit}",
                shown(above.value),
                shown(below.value)
            )
        })
    })
}

/// Finds a rate of a whole that is above it.
fn rate_above_whole(lower: &[&str]) -> Option<String> {
    const RATES: [&str; 16] = [
        "availability",
        "uptime",
        "accuracy",
        "recall",
        "precision",
        "적중률은",
        "오류율은",
        "성공률은",
        "정확도는",
        "가용성은",
        "정확도",
        "성공률",
        "genauigkeit",
        "verfügbarkeit",
        "trefferquote",
        "fehlerrate",
    ];
    const RATED: [&str; 7] = ["hit", "error", "success", "failure", "loss", "miss", "conversion"];
    for (at, word) in lower.iter().enumerate() {
        let is_rate = RATES.contains(word) || (*word == "rate" && at > 0 && RATED.contains(&lower[at - 1]));
        if !is_rate {
            continue;
        }
        let rest = lower.get(at + 1..(at + 5).min(lower.len()))?;
        let number = rest
            .iter()
            .position(|word| starts_with_number(word))
            .unwrap_or(rest.len());
        let is_linked = rest[..number].iter().all(|word| {
            matches!(
                *word,
                "of" | "was" | "is" | "=" | "at" | "were" | "war" | "von" | "lag" | "bei"
            )
        });
        let value = first(&rest[number..].join(" ")).filter(|value| value.unit == "%" && is_linked);
        if let Some(value) = value.filter(|value| value.value > 100.0) {
            let behind = lower.get(at + 1 + number + 1..).unwrap_or_default();
            // `120 % higher`, `110 % of the baseline`.
            let is_relative = behind.iter().take(3).any(|word| {
                matches!(
                    *word,
                    "higher" | "more" | "of" | "better" | "above" | "increase" | "improvement" | "greater"
                )
            });
            if !is_relative {
                return Some(format!("{word} cannot be {} %, 100 % is the whole", shown(value.value)));
            }
        }
    }
    None
}

/// Finds `N requests in T, R requests/s` of which the rate is another.
fn throughput(lower: &[&str]) -> Option<String> {
    const COUNTED: [&str; 6] = ["requests", "rows", "messages", "개", "건", "tokens"];
    let joined = lower.join(" ");
    let per_second = [" per second", "/s", " a second", " je sekunde", " pro sekunde"];
    if joined.matches("/s").count()
        + per_second
            .iter()
            .map(|mark| joined.matches(mark).count())
            .sum::<usize>()
        > 2
    {
        return None;
    }
    let spans: Vec<(usize, Quantity)> = lower
        .iter()
        .enumerate()
        .filter(|(_, word)| starts_with_number(word))
        .filter_map(|(at, _)| Some((at, first(&lower[at..(at + 2).min(lower.len())].join(" "))?)))
        .collect();
    let [(at, count), (of_time, time), (of_rate, rate)] = spans.as_slice() else {
        return None;
    };
    let between = lower.get(at + 1..*of_time)?;
    let is_span = between.len() <= 2
        && between
            .last()
            .is_some_and(|word| matches!(*word, "in" | "took" | "within" | "over"));
    let seconds = match time.unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    } * time.value;
    let is_rate = lower.get(of_rate + 1..)?.join(" ");
    let unit_of_rate = lower.get(*of_rate)?;
    let is_per_second = unit_of_rate.ends_with("/s")
        || is_rate
            .split(' ')
            .take(1)
            .any(|word| word.ends_with("/s") || matches!(word, "rps" | "qps" | "tps"))
        || is_rate.starts_with("per second")
        || is_rate
            .split_once(' ')
            .is_some_and(|(_, rest)| rest.starts_with("per second") || rest.starts_with("a second"));
    let is_linked = lower[of_time + 1..*of_rate].iter().all(|word| {
        matches!(
            *word,
            "or" | "that"
                | "is"
                | "i.e"
                | "="
                | "about"
                | "which"
                | "so"
                | "s"
                | "seconds"
                | "ms"
                | "min"
                | "minutes"
                | "h"
                | "hours"
                | "second"
                | "hour"
                | "minute"
                | "a"
                | "rate"
                | "of"
                | "at"
                | "are"
        )
    });
    if !(is_span && is_per_second && is_linked && COUNTED.contains(&count.unit)) || seconds <= 0.0 || rate.value <= 0.0
    {
        return None;
    }
    let actual = count.value / seconds;
    let apart = (actual / rate.value).max(rate.value / actual);
    (apart > 1.5).then(|| {
        let (count, time, unit) = (shown(count.value), shown(time.value), time.unit);
        format!(
            "{count} in {time} {unit} is {} a second, the text says {}",
            shown(actual),
            shown(rate.value)
        )
    })
}

/// Finds `X % were … and Y % were not`, which are not the whole together.
fn complement(lower: &[&str]) -> Option<String> {
    let percents: Vec<(usize, f64)> = (0..lower.len())
        .filter(|at| starts_with_number(lower[*at]))
        .filter_map(|at| Some((at, first(&lower[at..(at + 2).min(lower.len())].join(" "))?)))
        .filter(|(_, quantity)| quantity.unit == "%")
        .map(|(at, quantity)| (at, quantity.value))
        .collect();
    let [(_, one), (at, other)] = percents.as_slice() else {
        return None;
    };
    let and = at.checked_sub(1).and_then(|at| lower.get(at))?;
    let rest: Vec<&str> = lower[at + 1..].iter().filter(|word| **word != "%").copied().collect();
    let is_denied = matches!(
        rest.as_slice(),
        ["were" | "was" | "are" | "is" | "did" | "do" | "does", "not"]
    );
    (matches!(*and, "and" | "but") && is_denied && (one + other - 100.0).abs() > ROUNDED_POINTS).then(|| {
        format!(
            "{} % and {} % are {} % together, 100 % is the whole",
            shown(*one),
            shown(*other),
            shown(one + other)
        )
    })
}

/// Finds shares of one whole whose sum is above it.
fn shares(lower: &str) -> Option<String> {
    const SPLIT: [&str; 10] = [
        "breakdown",
        "made up of",
        "consists of",
        "consisted of",
        "is split",
        "was split",
        "were split",
        "setzt sich",
        "내역은",
        "内訳",
    ];
    let mark = SPLIT.iter().find_map(|mark| Some(lower.find(mark)? + mark.len()))?;
    let parts: Vec<Quantity> = quantities(&lower[mark..]).collect();
    let sum: f64 = parts.iter().map(|part| part.value).sum();
    // Shares of different wholes can exceed it, so only a sum that is near counts.
    (parts.len() >= 2 && parts.iter().all(|part| part.unit == "%") && sum > 101.5 && sum < 160.0).then(|| {
        let listed: Vec<String> = parts.iter().map(|part| shown(part.value)).collect();
        format!(
            "{} % are {} % together, 100 % is the whole",
            listed.join(" + "),
            shown(sum)
        )
    })
}
