//! The life of a connection: refresh tokens that follow one another.
//!
//! Invariants:
//! - One refresh token is current. Its use makes the next one current.
//! - The token before the current one can be used again for [`ROTATION_GRACE`] after its rotation, because its answer may be lost.
//!   It gives the same successor again and moves nothing.
//! - Every other use of an old token ends the family: one of two holders is a thief.
//! - A family ends [`FAMILY_LIFE`] after its begin, whatever is refreshed meanwhile.

use std::time::Duration;

use types::Timestamp;

use crate::secret::RANDOM_BYTES;

/// Time after a rotation in which the token before can be used again.
pub const ROTATION_GRACE: Duration = Duration::from_secs(30);
/// Time from the begin of a family to its end.
pub const FAMILY_LIFE: Duration = Duration::from_hours(30 * 24);

/// State of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    /// Instant of the first token.
    pub began_at: Timestamp,
    /// Number of the current token; the first is 0.
    pub current: u32,
    /// The latest rotation; `None` before the first.
    pub rotated: Option<RotatedFamily>,
    /// Instant of the end, if somebody or a reuse has ended the family.
    pub ended_at: Option<Timestamp>,
}

/// A rotation of a family, which made its current token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RotatedFamily {
    /// Instant of the rotation.
    pub at: Timestamp,
    /// Salt of the successor, without which it cannot be computed from its predecessor.
    pub salt: [u8; RANDOM_BYTES],
}

/// Consequence of the use of a refresh token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefreshUse {
    /// The token is current: it is rotated.
    Rotate,
    /// The token was rotated a moment ago: the same successor is answered again, made with this salt.
    Repeat([u8; RANDOM_BYTES]),
    /// The token is an old one: the family ends.
    Reused,
    /// The family has ended before.
    Ended,
}

impl Family {
    /// Creates a family with its first token.
    pub const fn new(now: Timestamp) -> Self {
        Self {
            began_at: now,
            current: 0,
            rotated: None,
            ended_at: None,
        }
    }

    /// Returns the instant at which the family ends by itself.
    pub fn expires_at(&self) -> Timestamp {
        self.began_at.plus(FAMILY_LIFE)
    }

    /// Returns true if the tokens of the family can be used.
    pub fn is_alive(&self, now: Timestamp) -> bool {
        self.ended_at.is_none() && now < self.expires_at()
    }

    /// Decides about the use of the token with this number.
    pub fn present(&self, number: u32, now: Timestamp) -> RefreshUse {
        if !self.is_alive(now) {
            return RefreshUse::Ended;
        }
        // A number above the current one cannot be stored, and counts as a reuse like every other.
        match &self.rotated {
            _ if number == self.current => RefreshUse::Rotate,
            Some(rotated) if number.checked_add(1) == Some(self.current) && now < rotated.at.plus(ROTATION_GRACE) => {
                RefreshUse::Repeat(rotated.salt)
            }
            _ => RefreshUse::Reused,
        }
    }

    /// Returns the state after a rotation.
    #[must_use]
    pub const fn rotate(&self, salt: [u8; RANDOM_BYTES], now: Timestamp) -> Self {
        Self {
            began_at: self.began_at,
            // A family ends long before the count does; at the end it stops and does not begin anew.
            current: self.current.saturating_add(1),
            rotated: Some(RotatedFamily { at: now, salt }),
            ended_at: self.ended_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(1_795_000_000_000_000 + seconds * 1_000_000)
    }

    #[test]
    fn the_current_token_rotates_and_the_one_before_repeats_for_thirty_seconds() {
        let first = Family::new(at(0));
        assert_eq!(first.present(0, at(10)), RefreshUse::Rotate);
        assert_eq!(
            first.present(1, at(10)),
            RefreshUse::Reused,
            "a token of the future is none of ours"
        );
        let second = first.rotate([1; 32], at(10));
        assert_eq!(second.present(0, at(10)), RefreshUse::Repeat([1; 32]));
        assert_eq!(second.present(0, at(39)), RefreshUse::Repeat([1; 32]));
        assert_eq!(second.present(0, at(40)), RefreshUse::Reused);
        assert_eq!(second.present(1, at(40)), RefreshUse::Rotate);
        // Once the successor was used, its answer was not lost, and the grace is over at once.
        let third = second.rotate([2; 32], at(11));
        assert_eq!(third.present(0, at(12)), RefreshUse::Reused);
        assert_eq!(third.present(1, at(12)), RefreshUse::Repeat([2; 32]));
        assert_eq!(third.present(2, at(12)), RefreshUse::Rotate);
    }

    #[test]
    fn a_family_ends_after_thirty_days_or_when_it_is_ended() {
        let day = 24 * 3_600;
        let rotated = Family::new(at(0)).rotate([1; 32], at(30 * day - 5));
        assert_eq!(rotated.present(1, at(30 * day - 1)), RefreshUse::Rotate);
        for number in [0, 1, 2] {
            assert_eq!(rotated.present(number, at(30 * day)), RefreshUse::Ended);
        }
        let ended = Family {
            ended_at: Some(at(5)),
            ..Family::new(at(0))
        };
        assert_eq!(ended.present(0, at(6)), RefreshUse::Ended);
        assert!(!ended.is_alive(at(6)));
    }
}
