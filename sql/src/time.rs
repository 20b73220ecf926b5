//! Times as `PostgreSQL` has them: intervals, time zones, and their texts.
//!
//! Invariant: everything here is pure. No file is read: the time zones are compiled in.

pub(crate) mod interval;
pub(crate) mod moment;
pub(crate) mod zone;

/// Microseconds of a day.
pub(crate) const DAY_MICROS: i64 = 86_400_000_000;
