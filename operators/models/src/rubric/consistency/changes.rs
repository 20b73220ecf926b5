//! Changes from one figure to another that their direction or their percentage contradicts.

use super::super::parse::{Quantity, quantities, unit_of};
use super::shown;
use super::statements::{ROUNDED_POINTS, first, plain, starts_with_number};

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
pub(super) fn alike(from: Quantity, to: Quantity) -> Option<(Quantity, Quantity)> {
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
pub(super) fn change(lower: &[&str]) -> Option<String> {
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

pub(super) const PERCENTILES: [&str; 9] = ["p50", "median", "p75", "p90", "p95", "p98", "p99", "p99.9", "p999"];

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
