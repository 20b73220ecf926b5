//! Time zones: names of the tz database, abbreviations, and offsets.
//!
//! Invariant: a local time that a clock skips is read with the offset before the change, and one that comes twice is
//! the later of the two.

use chrono::{DateTime, Datelike as _, LocalResult, NaiveDate, NaiveDateTime, Offset as _, TimeDelta, TimeZone as _};
use chrono_tz::{TZ_VARIANTS, Tz};

/// Year from which the tz database here has no changes of the clock written out.
const WRITTEN_UNTIL: i32 = 2_090;

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeZone {
    /// Seconds east of Greenwich.
    Fixed(i32),
    Named(Tz),
}

/// Offsets of the abbreviations that are the same at all times, in seconds east of Greenwich, sorted by name.
const ABBREVIATIONS: [(&str, i32); 145] = [
    ("acdt", 37800),
    ("acsst", 37800),
    ("acst", 34200),
    ("act", -18000),
    ("acwst", 31500),
    ("adt", -10800),
    ("aedt", 39600),
    ("aesst", 39600),
    ("aest", 36000),
    ("aft", 16200),
    ("akdt", -28800),
    ("akst", -32400),
    ("almst", 25200),
    ("almt", 21600),
    ("amt", -14400),
    ("ast", -14400),
    ("awsst", 32400),
    ("awst", 28800),
    ("azost", 0),
    ("azot", -3600),
    ("bdst", 7200),
    ("bdt", 21600),
    ("bnt", 28800),
    ("bort", 28800),
    ("bot", -14400),
    ("bra", -10800),
    ("brst", -7200),
    ("brt", -10800),
    ("bst", 3600),
    ("btt", 21600),
    ("cadt", 37800),
    ("cast", 34200),
    ("cct", 28800),
    ("cdt", -18000),
    ("cest", 7200),
    ("cet", 3600),
    ("cetdst", 7200),
    ("chadt", 49500),
    ("chast", 45900),
    ("chut", 36000),
    ("clst", -10800),
    ("cot", -18000),
    ("cst", -21600),
    ("cxt", 25200),
    ("ddut", 36000),
    ("eat", 10800),
    ("edt", -14400),
    ("eest", 10800),
    ("eet", 7200),
    ("eetdst", 10800),
    ("egst", 0),
    ("egt", -3600),
    ("est", -18000),
    ("fet", 10800),
    ("fjst", 46800),
    ("fjt", 43200),
    ("fnst", -3600),
    ("fnt", -7200),
    ("galt", -21600),
    ("gamt", -32400),
    ("gft", -10800),
    ("gilt", 43200),
    ("gmt", 0),
    ("hkt", 28800),
    ("hst", -36000),
    ("ict", 25200),
    ("idt", 10800),
    ("irt", 12600),
    ("ist", 7200),
    ("jayt", 32400),
    ("jst", 32400),
    ("kdt", 36000),
    ("kgst", 21600),
    ("kst", 32400),
    ("lhst", 37800),
    ("ligt", 36000),
    ("mart", -34200),
    ("mdt", -21600),
    ("mest", 7200),
    ("mesz", 7200),
    ("met", 3600),
    ("metdst", 7200),
    ("mez", 3600),
    ("mht", 43200),
    ("mmt", 23400),
    ("mpt", 36000),
    ("msd", 14400),
    ("mst", -25200),
    ("must", 18000),
    ("mut", 14400),
    ("mvt", 18000),
    ("myt", 28800),
    ("ndt", -9000),
    ("nft", -12600),
    ("npt", 20700),
    ("nst", -12600),
    ("nzdt", 46800),
    ("nzst", 43200),
    ("nzt", 43200),
    ("pdt", -25200),
    ("pet", -18000),
    ("pgt", 36000),
    ("pht", 28800),
    ("pkst", 21600),
    ("pkt", 18000),
    ("pmdt", -7200),
    ("pmst", -10800),
    ("pont", 39600),
    ("pst", -28800),
    ("pwt", 32400),
    ("pyst", -10800),
    ("ret", 14400),
    ("sadt", 37800),
    ("sast", 7200),
    ("sct", 14400),
    ("taht", -36000),
    ("tft", 18000),
    ("tjt", 18000),
    ("tot", 46800),
    ("trut", 36000),
    ("tvt", 43200),
    ("uct", 0),
    ("ulast", 32400),
    ("ut", 0),
    ("utc", 0),
    ("uyst", -7200),
    ("uyt", -10800),
    ("uzst", 21600),
    ("uzt", 18000),
    ("vut", 39600),
    ("wadt", 28800),
    ("wakt", 43200),
    ("wast", 25200),
    ("wat", 3600),
    ("wdt", 32400),
    ("wet", 0),
    ("wetdst", 3600),
    ("wft", 43200),
    ("wgst", -7200),
    ("wgt", -10800),
    ("xjt", 21600),
    ("yapt", 36000),
    ("yekst", 21600),
    ("z", 0),
    ("zulu", 0),
];

impl TimeZone {
    /// Finds the zone that `AT TIME ZONE` names: an abbreviation, a name, or an offset in the form of POSIX, which
    /// counts to the west. Case does not matter.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::written(name).or_else(|| posix(name).map(Self::Fixed))
    }

    /// Finds the zone that a timestamp names: an abbreviation or a name.
    pub(crate) fn written(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        if let Ok(index) = ABBREVIATIONS.binary_search_by_key(&&*lower, |(abbreviation, _)| abbreviation) {
            return Some(Self::Fixed(ABBREVIATIONS[index].1));
        }
        let named = TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name));
        named.copied().map(Self::Named)
    }

    /// Returns the local time of an instant, both in microseconds since the beginning of 1970.
    pub(crate) fn local(self, instant: i64) -> Option<i64> {
        instant.checked_add(self.offset(instant)?)
    }

    /// Returns the offset at an instant in microseconds.
    pub(crate) fn offset(self, instant: i64) -> Option<i64> {
        let seconds = match self {
            Self::Fixed(seconds) => seconds,
            Self::Named(zone) => {
                let instant = DateTime::from_timestamp_micros(instant)?.naive_utc();
                zone.offset_from_utc_datetime(&alike(instant)?).fix().local_minus_utc()
            }
        };
        Some(i64::from(seconds) * 1_000_000)
    }

    /// Returns the instant of a local time.
    pub(crate) fn instant(self, local: i64) -> Option<i64> {
        let seconds = match self {
            Self::Fixed(seconds) => seconds,
            Self::Named(zone) => {
                let local = alike(DateTime::from_timestamp_micros(local)?.naive_utc())?;
                let offset = match zone.offset_from_local_datetime(&local) {
                    LocalResult::Single(offset) | LocalResult::Ambiguous(_, offset) => offset,
                    LocalResult::None => before(zone, local)?,
                };
                offset.fix().local_minus_utc()
            }
        };
        local.checked_sub(i64::from(seconds) * 1_000_000)
    }
}

/// Returns the offset before the change of the clock that skips a local time.
fn before(zone: Tz, local: NaiveDateTime) -> Option<<Tz as chrono::TimeZone>::Offset> {
    // A clock has skipped as much as a day.
    (1..=30).find_map(|hours| {
        let earlier = local.checked_sub_signed(TimeDelta::hours(hours))?;
        zone.offset_from_local_datetime(&earlier).latest()
    })
}

/// Returns a time with the same offset of which the database knows the changes: the rules of the last year go on, and a
/// year begins with the same weekday every 28 years.
fn alike(time: NaiveDateTime) -> Option<NaiveDateTime> {
    if time.year() < WRITTEN_UNTIL {
        return Some(time);
    }
    let first = |year| NaiveDate::from_ymd_opt(year, 1, 1);
    let wanted = first(time.year())?;
    let year = (WRITTEN_UNTIL - 28..WRITTEN_UNTIL).find(|year| {
        first(*year).is_some_and(|day| day.weekday() == wanted.weekday() && day.leap_year() == wanted.leap_year())
    })?;
    time.with_year(year)
}

/// Reads `+02`, `-05:30` or `UTC+3`, and returns seconds east of Greenwich: POSIX counts to the west.
fn posix(name: &str) -> Option<i32> {
    let letters = name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(name.len());
    let offset = &name[letters..];
    let unsigned = offset.strip_prefix(['+', '-']).unwrap_or(offset);
    let mut parts = unsigned.split(':');
    let mut next = |limit: i32| -> Option<i32> {
        let Some(part) = parts.next() else { return Some(0) };
        let digits = matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse().ok().filter(|part| digits && *part < limit)
    };
    let seconds = next(25)? * 3_600 + next(60)? * 60 + next(60)?;
    let east = if offset.starts_with('-') { seconds } else { -seconds };
    (parts.next().is_none() && (letters == 0 || letters >= 3)).then_some(east)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> i64 {
        let time = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap();
        time.and_utc().timestamp_micros()
    }

    #[test]
    fn a_zone_is_found_by_any_of_its_names() {
        for (name, hours) in [
            ("EST", -5.0),
            ("utc", 0.0),
            ("CET", 1.0),
            ("+02", -2.0),
            ("-05:30", 5.5),
            ("ABC+3", -3.0),
        ] {
            let Some(TimeZone::Fixed(seconds)) = TimeZone::parse(name) else {
                panic!("{name}")
            };
            assert!((f64::from(seconds) / 3600.0 - hours).abs() < 1e-9, "{name}");
        }
        assert_eq!(
            TimeZone::parse("europe/PARIS"),
            Some(TimeZone::Named(Tz::Europe__Paris))
        );
        for unknown in ["Mars/Olympus", "", "+99", "+1:2:3:4", "5x", "é"] {
            assert_eq!(TimeZone::parse(unknown), None, "{unknown}");
        }
        assert!(ABBREVIATIONS.is_sorted());
    }

    #[test]
    fn a_changed_clock_is_read_as_postgres_reads_it() {
        for (zone, local, instant) in [
            ("America/New_York", "2024-03-10 02:30", "2024-03-10 07:30"),
            ("America/New_York", "2024-11-03 01:30", "2024-11-03 06:30"),
            ("Europe/Berlin", "2024-03-31 02:30", "2024-03-31 01:30"),
            ("Europe/Berlin", "2024-10-27 02:30", "2024-10-27 01:30"),
            ("Pacific/Apia", "2011-12-30 12:00", "2011-12-30 22:00"),
            ("Europe/Berlin", "2500-07-01 12:00", "2500-07-01 10:00"),
            ("Europe/Berlin", "2500-01-01 12:00", "2500-01-01 11:00"),
        ] {
            let zone = TimeZone::parse(zone).unwrap();
            assert_eq!(zone.instant(at(local)), Some(at(instant)), "{zone:?} {local}");
        }
        let berlin = TimeZone::parse("Europe/Berlin").unwrap();
        assert_eq!(berlin.local(at("2301-07-01 10:00")), Some(at("2301-07-01 12:00")));
    }
}
