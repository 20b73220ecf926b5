//! Pauses between tries of something that may pass.

use std::time::Duration;

/// Doublings after which a pause no longer grows, whatever its bounds.
const MOST_DOUBLINGS: u32 = 20;

/// Pauses that double from the first to the longest, each cut by a random part of up to a half, so that callers that
/// failed together do not try again together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Longest pause after the first failure.
    pub first: Duration,
    /// Longest pause of all.
    pub most: Duration,
}

impl Backoff {
    /// Returns the pause after `failures` failures before this one.
    pub fn pause(self, failures: u32) -> Duration {
        jittered(self.longest(failures))
    }

    /// Returns the longest pause after `failures` failures before this one.
    pub fn longest(self, failures: u32) -> Duration {
        self.first
            // Bounded twice: the power must not overflow before `min` cuts the pause to the longest.
            .saturating_mul(2_u32.saturating_pow(failures.min(MOST_DOUBLINGS)))
            .min(self.most)
    }
}

/// Returns a random duration between half of `pause` and all of it; all of it where the system has no randomness.
pub fn jittered(pause: Duration) -> Duration {
    let mut random = [0; 4];
    // A pause of full length still keeps the caller from trying in a loop.
    if getrandom::fill(&mut random).is_err() {
        return pause;
    }
    // Half of the pause is certain, so that what failed gets time; the other half spreads the callers.
    let half = pause / 2;
    half + half.mul_f64(f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_the_longest_and_is_cut_by_at_most_a_half() {
        let backoff = Backoff {
            first: Duration::from_millis(100),
            most: Duration::from_secs(1),
        };
        for (failures, longest) in [(0, 100), (1, 200), (2, 400), (3, 800), (4, 1_000), (u32::MAX, 1_000)] {
            let longest = Duration::from_millis(longest);
            assert_eq!(backoff.longest(failures), longest);
            for _ in 0..100 {
                let pause = backoff.pause(failures);
                assert!(pause >= longest / 2 && pause <= longest, "{pause:?} of {longest:?}");
            }
        }
    }

    #[test]
    fn callers_that_failed_together_pause_differently() {
        let backoff = Backoff {
            first: Duration::from_mins(1),
            most: Duration::from_mins(1),
        };
        let pauses: std::collections::HashSet<_> = (0..16).map(|_| backoff.pause(0)).collect();
        assert!(pauses.len() > 8, "{pauses:?}");
    }
}
