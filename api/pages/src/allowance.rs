//! What is used of what is allowed, as a level.
//!
//! Invariant: a level never leaves its bar, and says both figures.

use crate::number::{grouped, size};

/// Hundredths from which a level warns.
const NEARLY_USED: u64 = 80;

/// Amount that is used, and the amount that is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Used so far.
    pub used: u64,
    /// Most that may be used.
    pub allowed: u64,
}

impl Allowance {
    /// Returns the hundredths that are used, at most 100.
    pub(crate) fn share(&self) -> u64 {
        let share = u128::from(self.used) * 100 / u128::from(self.allowed.max(1));
        u64::try_from(share.min(100)).unwrap_or(100)
    }

    /// Returns true if little is left.
    pub fn is_nearly_used(&self) -> bool {
        self.share() >= NEARLY_USED
    }

    /// Returns the class of the level.
    pub(crate) fn class(&self) -> &'static str {
        match self.share() {
            100 => "l-bad",
            NEARLY_USED.. => "l-warn",
            _ => "l-on",
        }
    }

    /// Returns both figures as bytes.
    pub(crate) fn bytes(&self) -> String {
        format!("{} of {}", size(self.used), size(self.allowed))
    }

    /// Returns both figures as numbers.
    pub(crate) fn count(&self) -> String {
        format!("{} of {}", grouped(self.used), grouped(self.allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_never_leaves_its_bar() {
        for (used, allowed, share, class) in [
            (0, 0, 0, "l-on"),
            (79, 100, 79, "l-on"),
            (80, 100, 80, "l-warn"),
            (300, 100, 100, "l-bad"),
            (u64::MAX, u64::MAX, 100, "l-bad"),
            (1, 0, 100, "l-bad"),
        ] {
            let level = Allowance { used, allowed };
            assert_eq!((level.share(), level.class()), (share, class), "{used} of {allowed}");
        }
    }
}
