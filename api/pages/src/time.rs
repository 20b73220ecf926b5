//! Time as people read it: relative up to a week, then dates. Always in UTC.
//!
//! Invariant: a rendered time carries its full value in `datetime`.

use std::borrow::Borrow;
use std::fmt;

use askama::filters::HtmlSafe;
use jiff::Timestamp;
use jiff::tz::TimeZone;

const SECOND_MICROS: i64 = 1_000_000;
const MINUTE_MICROS: i64 = 60 * SECOND_MICROS;
const HOUR_MICROS: i64 = 60 * MINUTE_MICROS;
const DAY_MICROS: i64 = 24 * HOUR_MICROS;

/// Instant in microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(pub i64);

impl From<i64> for Instant {
    fn from(micros: i64) -> Self {
        Self(micros)
    }
}

/// Form in which an instant is shown.
#[derive(Clone, Copy)]
enum Form {
    /// “12 min ago”, “in 3 h”, and a date from a week on.
    Relative,
    /// The same as a figure, with a small “ago”.
    Figure,
    /// “23 November 2026, 12:00 UTC”.
    Full,
    /// “23 Nov 2026”.
    Date,
    /// “23 Nov 2026, 12:00”.
    Minute,
    /// Time until the instant, which a script counts down.
    Until,
}

/// Element `time` of an instant.
pub(crate) struct ShownTime {
    at: Instant,
    now: Instant,
    form: Form,
}

// The text consists of digits and of words of this file.
impl HtmlSafe for ShownTime {}

impl Instant {
    /// Returns the instant in UTC by a pattern of `strftime`.
    pub(crate) fn text(self, pattern: &str) -> String {
        // An instant out of range is that of a broken row: the page is shown without it.
        let Ok(timestamp) = Timestamp::from_microsecond(self.0) else {
            return "?".to_owned();
        };
        timestamp.to_zoned(TimeZone::UTC).strftime(pattern).to_string()
    }

    /// Returns the instant as RFC 3339 with seconds.
    pub(crate) fn machine(self) -> String {
        self.text("%Y-%m-%dT%H:%M:%SZ")
    }

    /// Returns the day and the month, such as `23 Nov`.
    pub(crate) fn day(self) -> String {
        self.text("%-d %b")
    }

    /// Returns the full time, such as `23 November 2026, 12:00 UTC`.
    pub(crate) fn plain(self) -> String {
        self.text("%-d %B %Y, %H:%M UTC")
    }

    pub(crate) fn relative(self, now: impl Borrow<Self>) -> ShownTime {
        self.shown(*now.borrow(), Form::Relative)
    }

    pub(crate) fn figure(self, now: impl Borrow<Self>) -> ShownTime {
        self.shown(*now.borrow(), Form::Figure)
    }

    pub(crate) fn full(self) -> ShownTime {
        self.shown(self, Form::Full)
    }

    pub(crate) fn date(self) -> ShownTime {
        self.shown(self, Form::Date)
    }

    pub(crate) fn minute(self) -> ShownTime {
        self.shown(self, Form::Minute)
    }

    pub(crate) fn until(self, now: impl Borrow<Self>) -> ShownTime {
        self.shown(*now.borrow(), Form::Until)
    }

    fn shown(self, now: Self, form: Form) -> ShownTime {
        ShownTime { at: self, now, form }
    }

    /// Returns the words for the distance to `now`.
    fn words(self, now: Self) -> String {
        // Saturating, because the times of rows may be of a clock that was wrong by any amount.
        let distance = self.0.saturating_sub(now.0);
        let size = distance.saturating_abs();
        let amount = match size {
            ..MINUTE_MICROS => {
                return if distance > 0 {
                    "in less than a minute"
                } else {
                    "just now"
                }
                .to_owned();
            }
            MINUTE_MICROS..HOUR_MICROS => format!("{} min", size / MINUTE_MICROS),
            HOUR_MICROS..DAY_MICROS => format!("{} h", size / HOUR_MICROS),
            _ => match size / DAY_MICROS {
                1 => "1 day".to_owned(),
                days if size < 7 * DAY_MICROS => format!("{days} days"),
                // From a week on the distance says less than the date.
                _ => return self.text("%-d %b %Y"),
            },
        };
        if distance > 0 {
            format!("in {amount}")
        } else {
            format!("{amount} ago")
        }
    }

    /// Returns the minutes and seconds until the instant, hours and minutes above an hour.
    fn countdown(self, now: Self) -> String {
        let left = self.0.saturating_sub(now.0);
        if left <= 0 {
            return "expired".to_owned();
        }
        match left {
            // The same form as the script's, which replaces the text once a second.
            ..HOUR_MICROS => format!(
                "{:02}:{:02}",
                left / MINUTE_MICROS,
                left % MINUTE_MICROS / SECOND_MICROS
            ),
            _ => format!("{} h {:02} min", left / HOUR_MICROS, left % HOUR_MICROS / MINUTE_MICROS),
        }
    }
}

impl fmt::Display for ShownTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, now, form } = *self;
        let machine = at.machine();
        match form {
            Form::Relative => {
                let (title, words) = (at.plain(), at.words(now));
                // The full time is in the title, as a page may be read hours after it was rendered.
                write!(f, "<time datetime=\"{machine}\" title=\"{title}\">{words}</time>")
            }
            Form::Figure => {
                let (title, words) = (at.plain(), at.words(now));
                let (amount, ago) = match words.strip_suffix(" ago") {
                    Some(amount) => (amount, " <small>ago</small>"),
                    None => (words.as_str(), ""),
                };
                write!(f, "<time datetime=\"{machine}\" title=\"{title}\">{amount}{ago}</time>")
            }
            Form::Full => write!(f, "<time datetime=\"{machine}\">{}</time>", at.plain()),
            Form::Date => write!(f, "<time datetime=\"{machine}\">{}</time>", at.text("%-d %b %Y")),
            Form::Minute => write!(f, "<time datetime=\"{machine}\">{}</time>", at.text("%-d %b %Y, %H:%M")),
            Form::Until => {
                let words = at.countdown(now);
                write!(
                    f,
                    "<time datetime=\"{machine}\" data-until=\"{machine}\">{words}</time>"
                )
            }
        }
    }
}
