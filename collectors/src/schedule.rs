//! Cron expressions in UTC.
//!
//! Invariant: a schedule has a next instant after every instant, and six to 24 hours lie between two.

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use types::Timestamp;

/// Days that are searched for the next instant; a leap day is at most eight years away.
const MAX_DAYS: usize = 8 * 366;
/// Shortest and longest time between two runs, in minutes.
const GAP_MINUTES: (i64, i64) = (6 * 60, 24 * 60);
const MINUTE_MICROS: i64 = 60_000_000;
/// The months 1 to 12.
const ALL_MONTHS: u64 = 0b1_1111_1111_1110;

/// A cron expression of five fields: minute, hour, day of the month, month, day of the week (0 and 7 are Sunday).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// True if a day must be in both lists of days; otherwise one of two restricted lists is enough, as in cron(8).
    both_days: bool,
}

impl Schedule {
    /// Parses an expression.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err("must have five fields: minute, hour, day of the month, month, day of the week".to_owned());
        };
        let mut weekdays = bits(weekday, 0, 7, "day of the week")?;
        // Sunday has two numbers.
        if weekdays & (1 << 7) != 0 {
            weekdays |= 1;
        }
        let schedule = Self {
            minutes: bits(minute, 0, 59, "minute")?,
            hours: bits(hour, 0, 23, "hour")?,
            days: bits(day, 1, 31, "day of the month")?,
            months: bits(month, 1, 12, "month")?,
            weekdays: weekdays & 0x7f,
            both_days: day.starts_with('*') || weekday.starts_with('*'),
        };
        schedule.check_gaps()?;
        Ok(schedule)
    }

    /// Checks that runs are six to 24 hours apart.
    fn check_gaps(&self) -> Result<(), String> {
        let rule = || "must run every 6 to 24 hours".to_owned();
        // 250 runs are at least two months, which contain every distance unless months differ; 1,600 are at least a year.
        let runs = if self.months == ALL_MONTHS { 250 } else { 1_600 };
        // A fixed start, so that the same expression is accepted or refused on every day.
        let mut last = Timestamp::from_micros(1_767_225_600_000_000);
        last = self.next(last).ok_or_else(rule)?;
        for _ in 0..runs {
            let next = self.next(last).ok_or_else(rule)?;
            let minutes = (next.micros() - last.micros()) / MINUTE_MICROS;
            if minutes < GAP_MINUTES.0 || minutes > GAP_MINUTES.1 {
                return Err(rule());
            }
            last = next;
        }
        Ok(())
    }

    /// Returns the first instant of the schedule after `now`.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let start = jiff::Timestamp::from_microsecond(now.micros()).ok()?;
        let start = start.to_zoned(TimeZone::UTC).datetime();
        let after_minutes = i64::from(start.hour()) * 60 + i64::from(start.minute());
        let mut day = start.date();
        for passed in 0..MAX_DAYS {
            if self.has_day(day) {
                let from = if passed == 0 { after_minutes + 1 } else { 0 };
                if let Some(minute) = self.minute_from(from) {
                    let midnight = days_since_epoch(day) * 24 * 60;
                    return Some(Timestamp::from_micros((midnight + minute) * MINUTE_MICROS));
                }
            }
            day = day.tomorrow().ok()?;
        }
        None
    }

    fn has_day(&self, day: Date) -> bool {
        let has = |bits: u64, number: i8| bits & (1 << u32::from(number.unsigned_abs())) != 0;
        let in_month = has(self.days, day.day());
        let in_week = has(self.weekdays, day.weekday().to_sunday_zero_offset());
        let is_day = if self.both_days {
            in_month && in_week
        } else {
            in_month || in_week
        };
        has(self.months, day.month()) && is_day
    }

    /// Returns the first minute of a day from this one on.
    fn minute_from(&self, from: i64) -> Option<i64> {
        (from..24 * 60)
            .find(|minute| self.hours & (1 << (minute / 60)) != 0 && self.minutes & (1 << (minute % 60)) != 0)
    }
}

fn days_since_epoch(day: Date) -> i64 {
    let span = day.since((jiff::Unit::Day, date(1970, 1, 1)));
    span.map_or(0, |span| i64::from(span.get_days()))
}

/// Parses one field: numbers, ranges and steps, separated by commas.
fn bits(text: &str, least: u32, most: u32, name: &str) -> Result<u64, String> {
    let wrong = || format!("has a {name} that is no number, range or step from {least} to {most}");
    let number = |text: &str| {
        text.parse::<u32>()
            .ok()
            .filter(|number| (least..=most).contains(number))
    };
    let mut bits = 0;
    for part in text.split(',') {
        let (range, step) = part
            .split_once('/')
            .map_or((part, None), |(range, step)| (range, Some(step)));
        let step = match step {
            None => 1,
            Some(step) => step.parse().ok().filter(|step: &u32| *step > 0).ok_or_else(wrong)?,
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (least, most),
            Some((from, to)) => (number(from).ok_or_else(wrong)?, number(to).ok_or_else(wrong)?),
            // `5/10` begins at 5, as in cron(8) of most systems.
            None if step > 1 => (number(range).ok_or_else(wrong)?, most),
            None => {
                let only = number(range).ok_or_else(wrong)?;
                (only, only)
            }
        };
        if from > to {
            return Err(wrong());
        }
        for value in (from..=to).step_by(step as usize) {
            bits |= 1 << value;
        }
    }
    Ok(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, now: &str) -> String {
        let schedule = Schedule::parse(schedule).unwrap();
        schedule.next(now.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn the_next_instant_follows_the_fields() {
        for (schedule, now, expected) in [
            ("17 */6 * * *", "2026-11-24T06:17:00Z", "2026-11-24T12:17:00Z"),
            ("17 */6 * * *", "2026-11-24T06:16:59.9Z", "2026-11-24T06:17:00Z"),
            ("0 6 * * *", "2026-12-31T07:00:00Z", "2027-01-01T06:00:00Z"),
            ("30 3,15 * * *", "2028-02-28T16:00:00Z", "2028-02-29T03:30:00Z"),
            ("0 0 * * 0-6", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"),
            ("5 2/8 * * 7,1-6", "2026-11-24T10:05:00Z", "2026-11-24T18:05:00Z"),
        ] {
            assert_eq!(next(schedule, now), expected, "{schedule} after {now}");
        }
    }

    #[test]
    fn an_expression_that_breaks_a_rule_is_refused() {
        for schedule in [
            "",
            "* * * *",
            "60 0 * * *",
            "0 24 * * *",
            "0 0 0 * *",
            "0 0 * 13 *",
            "0 0 * * 8",
            "0 5-3 * * *",
            "0 */0 * * *",
            "0 x * * *",
            // Too often, too seldom, never.
            "* * * * *",
            "0 */5 * * *",
            "0 0,1 * * *",
            "0 0 * * 1",
            "0 0 1 * *",
            "0 0 31 2 *",
            "0 0 * 1-11 *",
        ] {
            assert!(Schedule::parse(schedule).is_err(), "{schedule}");
        }
    }
}
