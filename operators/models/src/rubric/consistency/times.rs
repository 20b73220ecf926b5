//! Times that are in the wrong order.

use types::Timestamp;

/// The days that a date may be ahead of the submission, by time zone.
const DAYS_AHEAD: i64 = 2;

/// Finds an event that ended before it began.
pub(super) fn order_of_times(lower: &str) -> Option<String> {
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
pub(super) fn later_date(lower: &str, submitted_at: Timestamp) -> Option<String> {
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
