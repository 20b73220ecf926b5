//! Contradictions within one sentence.

use types::Timestamp;

use super::super::parse::{Quantity, Sentence, quantities, unit_of, value_of, words};
use super::super::reasons::quoted;
use super::shown;

/// The most bytes of a sentence that is looked at; a longer one is no sentence.
const SENTENCE_BYTES: usize = 1_000;
/// The difference in points that rounding explains.
const ROUNDED_POINTS: f64 = 2.0;
/// The days that a date may be ahead of the submission, by time zone.
const DAYS_AHEAD: i64 = 2;

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
fn plain(word: &str) -> Option<f64> {
    let digits = word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '.'));
    // `2.1.0` is a version.
    (digits && word.matches('.').count() < 2)
        .then(|| value_of(word))
        .flatten()
}

fn first(text: &str) -> Option<Quantity> {
    quantities(text).next()
}

fn starts_with_number(word: &str) -> bool {
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

/// The most words behind a change that are looked at.
const WORDS_BEHIND: usize = 8;

/// A change from one quantity to another of the same unit.
struct ToldChange<'a> {
    from: Quantity,
    to: Quantity,
    before: &'a [&'a str],
    after: Vec<String>,
}

/// Reads the changes of a sentence: `from A to B`, `von A auf B`, `A → B`, `A에서 B로`, `AからBに`.
fn told_changes<'a>(lower: &'a [&'a str]) -> impl Iterator<Item = ToldChange<'a>> {
    let owned = |words: &[&str]| words.iter().take(WORDS_BEHIND).map(|word| (*word).to_owned()).collect();
    let found = move |start: usize, (from, to, count): (Quantity, Quantity, usize)| ToldChange {
        from,
        to,
        before: &lower[..start],
        after: owned(lower.get(start + count..).unwrap_or_default()),
    };
    lower.iter().enumerate().filter_map(move |(at, word)| match *word {
        "from" => spaced(&lower[at + 1..], "to").map(|(a, b, n)| found(at, (a, b, n + 1))),
        "von" => spaced(&lower[at + 1..], "auf").map(|(a, b, n)| found(at, (a, b, n + 1))),
        _ if starts_with_number(word) => spaced(&lower[at..], "→").map(|read| found(at, read)).or_else(|| {
            let (from, to, after) = joined(&lower[at..])?;
            let before = &lower[..at];
            Some(ToldChange {
                from,
                to,
                before,
                after,
            })
        }),
        // In Japanese a figure stands behind other signs.
        _ if word.contains("から") => {
            let (from, to, after) = joined(&lower[at..])?;
            let before = &lower[..at];
            Some(ToldChange {
                from,
                to,
                before,
                after,
            })
        }
        _ => None,
    })
}

/// Reads `A [unit] to B [unit]`. Returns both and the number of words.
fn spaced(lower: &[&str], between: &str) -> Option<(Quantity, Quantity, usize)> {
    let at = lower.iter().take(4).position(|word| *word == between)?;
    let from = first(&lower[..at].join(" ")).filter(|_| lower.first().is_some_and(|word| starts_with_number(word)))?;
    let rest = lower.get(at + 1..)?;
    starts_with_number(rest.first()?).then_some(())?;
    let has_unit_apart = rest.get(1).is_some_and(|word| unit_of(word).is_some());
    let count = if first(rest[0])?.unit.is_empty() && has_unit_apart {
        2
    } else {
        1
    };
    let to = first(&rest[..count].join(" "))?;
    alike(from, to).map(|(from, to)| (from, to, at + 1 + count))
}

/// Reads `A에서 B로` and `AからBに`. Returns the words behind too.
fn joined(lower: &[&str]) -> Option<(Quantity, Quantity, Vec<String>)> {
    let text = lower.iter().take(WORDS_BEHIND).copied().collect::<Vec<_>>().join(" ");
    let (mark, between) = ["에서", "から"]
        .iter()
        .find_map(|mark| Some((text.find(mark)?, mark)))?;
    let (before, rest) = (&text[..mark], text[mark + between.len()..].trim_start());
    let from = quantities(before).last().filter(|from| !from.unit.is_empty())?;
    starts_with_number(rest).then_some(())?;
    let to = first(rest)?;
    let (end, particle) = rest
        .char_indices()
        .find(|(_, c)| matches!(c, '로' | 'に' | 'へ' | 'ま' | '까'))?;
    // The second figure ends right before its particle.
    (rest[..end].chars().count() <= 10 && quantities(&rest[..end]).count() == 1).then_some(())?;
    let after = rest[end + particle.len_utf8()..]
        .split_whitespace()
        .map(ToOwned::to_owned)
        .collect();
    alike(from, to).map(|(from, to)| (from, to, after))
}

/// Returns two quantities in one unit, if they have one of the same kind.
fn alike(from: Quantity, to: Quantity) -> Option<(Quantity, Quantity)> {
    const SCALES: [(&str, &str, f64); 10] = [
        ("ns", "s", 1e-9),
        ("µs", "s", 1e-6),
        ("ms", "s", 1e-3),
        ("s", "s", 1.0),
        ("min", "s", 60.0),
        ("h", "s", 3600.0),
        ("kb", "b", 1e3),
        ("mb", "b", 1e6),
        ("gb", "b", 1e9),
        ("tb", "b", 1e12),
    ];
    if from.unit == to.unit || from.unit.is_empty() {
        // Units that stand for several are of no scale.
        let is_measured = !matches!(to.unit, "" | "%" | "만" | "mbps" | "hz" | "w" | "m" | "x" | "배");
        return is_measured.then_some((from, to));
    }
    let scale = |unit: &str| {
        SCALES
            .iter()
            .find(|(name, ..)| *name == unit)
            .map(|(_, kind, scale)| (*kind, *scale))
    };
    let ((kind, one), (other_kind, other)) = (scale(from.unit)?, scale(to.unit)?);
    let in_unit_of_first = Quantity {
        value: to.value * other / one,
        unit: from.unit,
    };
    (kind == other_kind).then_some((from, in_unit_of_first))
}

const FALLING: [&str; 9] = [
    "fell",
    "dropped",
    "decreased",
    "shrank",
    "declined",
    "fallen",
    "sank",
    "sinkt",
    "fällt",
];
const RISING: [&str; 7] = ["rose", "grew", "increased", "climbed", "risen", "grown", "steigt"];
/// Words behind a change in German, Korean and Japanese.
const FALLS: [&str; 13] = [
    "gesunken",
    "gefallen",
    "reduziert",
    "verkürzt",
    "줄",
    "감소",
    "낮아",
    "내려",
    "짧아",
    "減",
    "下が",
    "短縮",
    "低下",
];
const RISES: [&str; 10] = [
    "gestiegen",
    "erhöht",
    "늘",
    "증가",
    "높아",
    "올라",
    "길어",
    "増",
    "上が",
    "延び",
];

/// Words of a time that is better when it is shorter, and words that say that something got better.
const DELAYS: [&str; 9] = [
    "latency",
    "delay",
    "duration",
    "latenz",
    "antwortzeit",
    "지연",
    "응답",
    "遅延",
    "応答",
];
const BETTER: [&str; 6] = ["improvement", "improved", "faster", "verbess", "개선", "改善"];

/// Finds a change whose direction or percentage does not fit its figures.
fn change(lower: &[&str]) -> Option<String> {
    told_changes(lower).find_map(|told| misfit(&told))
}

fn misfit(told: &ToldChange<'_>) -> Option<String> {
    let ToldChange {
        from,
        to,
        before,
        after,
    } = told;
    if from.value <= 0.0 || to.value <= 0.0 || from.value.to_bits() == to.value.to_bits() {
        return None;
    }
    let unit = if from.unit.is_empty() { to.unit } else { from.unit };
    let figures = format!("{} {unit} to {} {unit}", shown(from.value), shown(to.value));
    let after: Vec<&str> = after.iter().map(String::as_str).collect();
    let is_near = |listed: &[&str]| before.iter().rev().take(2).any(|word| listed.contains(word));
    let behind = after.iter().take(2).copied().collect::<Vec<_>>().join(" ");
    let begins = |listed: &[&str]| listed.iter().any(|form| behind.starts_with(form));
    let falls = is_near(&FALLING) || begins(&FALLS);
    let rises = is_near(&RISING) || begins(&RISES);
    if falls && !rises && to.value > from.value {
        return Some(format!("{figures} is more, the text says it fell"));
    }
    if rises && !falls && to.value < from.value {
        return Some(format!("{figures} is less, the text says it rose"));
    }
    let is_time = matches!(unit, "ns" | "µs" | "ms" | "s" | "min" | "h");
    let is_delay = before.iter().any(|word| DELAYS.iter().any(|form| word.contains(form)));
    let improves = after
        .iter()
        .take(4)
        .any(|word| BETTER.iter().any(|form| word.starts_with(form)));
    if is_time && is_delay && improves && to.value > from.value {
        return Some(format!("{figures} is more, the text says it improved"));
    }
    let stated = stated_percent(&after).or_else(|| percent_before(before))?;
    let (one, other) = (from.value, to.value);
    let fits = [(other - one) / one, (other - one) / other, other / one, one / other];
    let is_fitting = fits
        .iter()
        .map(|fit| (fit * 100.0).abs())
        .any(|fit| (fit - stated).abs() <= (fit * 0.06).max(ROUNDED_POINTS));
    let percent = ((other - one) / one * 100.0).abs();
    (!is_fitting).then(|| format!("{figures} is {} %, the text says {} %", shown(percent), shown(stated)))
}

const PERCENTILES: [&str; 9] = ["p50", "median", "p75", "p90", "p95", "p98", "p99", "p99.9", "p999"];

/// Words after which a percentage is of something else: `4 GB to 8 GB cut the p99 by 61 %`, `…, while errors fell by 3 %`.
const OF_ANOTHER: [&str; 26] = [
    "and", "while", "with", "but", "whereas", "which", "at", "the", "for", "if", "when", "und", "während", "mit",
    "bei", "die", "der", "das", "of", "on", "its", "their", "after", "before", "then", "until",
];

/// Words that tie a percentage to the change before it.
const LINKING: [&str; 29] = [
    "a",
    "an",
    "by",
    "of",
    "saving",
    "reduction",
    "drop",
    "decrease",
    "increase",
    "improvement",
    "gain",
    "cut",
    "fall",
    "rise",
    "about",
    "around",
    "roughly",
    "or",
    "i.e",
    "down",
    "up",
    "um",
    "also",
    "etwa",
    "which",
    "is",
    "that",
    "so",
    "thus",
];

/// Returns the percentage of `fell by 50 %` right before a change.
fn percent_before(before: &[&str]) -> Option<f64> {
    let at = before.iter().rposition(|word| matches!(*word, "by" | "um"))?;
    let rest = before.get(at + 1..)?;
    let is_percent = match rest {
        [number, "%" | "percent" | "prozent"] => plain(number),
        [number] => first(number)
            .filter(|quantity| quantity.unit == "%")
            .map(|quantity| quantity.value),
        _ => None,
    };
    let verb = at.checked_sub(1).and_then(|at| before.get(at))?;
    is_percent.filter(|_| FALLING.contains(verb) || RISING.contains(verb) || matches!(*verb, "reduced" | "cut"))
}

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

/// Returns the percentage right behind a change, if nothing else is named before it.
fn stated_percent(after: &[&str]) -> Option<f64> {
    let near: Vec<&str> = after.iter().take(6).copied().collect();
    let at = near.iter().position(|word| starts_with_number(word))?;
    let is_of_another = |word: &&str| {
        OF_ANOTHER.contains(word)
            || PERCENTILES.iter().any(|name| word.starts_with(name))
            || (!word.is_ascii() && word.ends_with(['은', '는', '이', '가', '도', 'は', 'が', 'も']))
            || (word.is_ascii() && word.ends_with('s') && word.len() > 3)
    };
    let between = &near[..at];
    let is_linked = between.iter().all(|word| LINKING.contains(word)) || !between.iter().any(is_of_another);
    if !is_linked {
        return None;
    }
    let quantity = first(&near[at..].join(" ")).filter(|quantity| quantity.unit == "%")?;
    // `61 % of the requests` is a share of something else, and points are no percentage.
    let behind: Vec<&str> = near[at + 1..]
        .iter()
        .filter(|word| **word != "%")
        .take(2)
        .copied()
        .collect();
    let is_share = behind
        .iter()
        .any(|word| matches!(*word, "of" | "von" | "points" | "point" | "의" | "の"));
    (!is_share).then_some(quantity.value)
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

/// Finds an event that ended before it began.
fn order_of_times(lower: &str) -> Option<String> {
    const BEGAN: [&str; 7] = ["began", "started", "begann", "시작", "발생", "開始", "発生"];
    const ENDED: [&str; 10] = [
        "ended",
        "gone",
        "recovered",
        "resolved",
        "restored",
        "endete",
        "behoben",
        "복구",
        "해소",
        "復旧",
    ];
    const OTHER_DAY: [&str; 12] = [
        "next day",
        "day after",
        "following",
        "tomorrow",
        "next morning",
        "다음 날",
        "이튿날",
        "翌",
        "folgetag",
        "previous",
        "utc+",
        "monday",
    ];
    if OTHER_DAY.iter().any(|mark| lower.contains(mark)) || lower.matches(':').count() > 4 {
        return None;
    }
    let (mut began, mut ended) = (None, None);
    for clause in lower.split([',', ';', '、']).flat_map(|part| part.split(" and ")) {
        let Some(time) = clock(clause) else { continue };
        let has = |listed: &[&str]| {
            clause.split_whitespace().any(|word| {
                let word = word.trim_matches(|c: char| !c.is_alphanumeric());
                listed.iter().any(|form| {
                    if form.is_ascii() {
                        word == *form
                    } else {
                        word.contains(form)
                    }
                })
            })
        };
        match (has(&BEGAN), has(&ENDED)) {
            (true, false) => began = Some(time),
            (false, true) => ended = Some(time),
            _ => {}
        }
    }
    // Over midnight the clock starts again.
    let (began, ended) = began
        .zip(ended)
        .filter(|(began, ended)| began > ended && *began < ended + 720)?;
    let spelled = |minutes: u32| format!("{:02}:{:02}", minutes / 60, minutes % 60);
    Some(format!(
        "it ended at {} and began at {}",
        spelled(ended),
        spelled(began)
    ))
}

/// Returns the minutes of the first `hh:mm`.
fn clock(text: &str) -> Option<u32> {
    let at = text.find(':').filter(|at| *at >= 1)?;
    let hours = text[..at].rsplit(|c: char| !c.is_ascii_digit()).next()?;
    let minutes = text[at + 1..].split(|c: char| !c.is_ascii_digit()).next()?;
    (minutes.len() == 2 && !hours.is_empty()).then_some(())?;
    let (hours, minutes) = (hours.parse::<u32>().ok()?, minutes.parse::<u32>().ok()?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}

/// Finds a past action on a day after the submission.
fn later_date(lower: &str, submitted_at: Timestamp) -> Option<String> {
    const PAST: [&str; 16] = [
        "measured",
        "ran",
        "tested",
        "recorded",
        "observed",
        "reproduced",
        "benchmarked",
        "measurement of",
        "gemessen",
        "getestet",
        "측정했",
        "측정한",
        "실행했",
        "계측",
        "測定した",
        "計測した",
    ];
    const NOT_YET: [&str; 8] = ["will", "until", "expires", "planned", "bis", "예정", "まで", "valid"];
    let tokens = || lower.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    if !PAST.iter().any(|form| {
        if form.is_ascii() && !form.contains(' ') {
            tokens().any(|word| word == *form)
        } else {
            lower.contains(form)
        }
    }) || NOT_YET.iter().any(|form| lower.contains(form))
    {
        return None;
    }
    let submitted = days_of(submitted_at);
    tokens().find_map(|word| {
        let mut parts = word.split('-').map(|part| part.parse::<i64>().ok());
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        let is_date = (2000..2200).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && parts.next().is_none();
        (is_date && days_of_date(year, month, day) > submitted + DAYS_AHEAD)
            .then(|| format!("{word} is after the submission on {}", date_of(submitted)))
    })
}

fn days_of(at: Timestamp) -> i64 {
    at.micros().div_euclid(86_400_000_000)
}

/// Returns the days since 1970 of a date in the Gregorian calendar.
fn days_of_date(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns the date of days since 1970 as `2026-11-26`.
fn date_of(days: i64) -> String {
    let mut year = 1970 + days / 366;
    while days_of_date(year + 1, 1, 1) <= days {
        year += 1;
    }
    let mut month = 12;
    while month > 1 && days_of_date(year, month, 1) > days {
        month -= 1;
    }
    format!("{year}-{month:02}-{:02}", days - days_of_date(year, month, 1) + 1)
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
