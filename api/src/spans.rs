//! Lengths of time in words.
//!
//! Invariant: words name a length exactly, so what they tell is what the configuration says.

const DAY: u64 = 86_400;
const HOUR: u64 = 3_600;

/// Returns a time in the greatest unit that divides it.
pub(crate) fn span(seconds: u64) -> String {
    let units = [("day", DAY), ("hour", HOUR), ("minute", 60), ("second", 1)];
    let unit = units
        .into_iter()
        .find(|(_, length)| seconds >= *length && seconds.is_multiple_of(*length));
    let (name, count) = unit.map_or(("second", seconds), |(name, length)| (name, seconds / length));
    // A day is a count of hours to whoever plans calls.
    match (name, count) {
        ("day", 1) => "24 hours".to_owned(),
        (name, 1) => format!("1 {name}"),
        (name, count) => format!("{count} {name}s"),
    }
}

/// Returns whole hours in the greatest unit that divides them.
pub(crate) fn hours(count: u32) -> String {
    span(u64::from(count) * HOUR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_whole_units() {
        for (seconds, told) in [
            (20, "20 seconds"),
            (60, "1 minute"),
            (900, "15 minutes"),
            (6 * HOUR, "6 hours"),
            (DAY, "24 hours"),
            (30 * DAY, "30 days"),
            (0, "0 seconds"),
        ] {
            assert_eq!(span(seconds), told);
        }
    }
}
