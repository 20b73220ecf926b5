//! An attacker that sees no more than a verdict.
//!
//! Invariant: the same seed makes the same attempts.

use super::gaming::{AttackPlace, AttackRandom, gamed};

/// The places that an attacker tries.
pub(crate) const ATTACK_PLACES: [AttackPlace; 3] = [AttackPlace::Begin, AttackPlace::End, AttackPlace::Spread];

/// Adds and moves sentences until a text is published or the calls are used, seeing no more than the verdict.
/// Returns the text that was published and the number of calls.
pub(crate) fn climbed(
    body: &str,
    sentences: &[&str],
    calls: usize,
    seed: &str,
    passes: impl Fn(&str) -> bool,
) -> Option<(String, usize)> {
    let mut random = AttackRandom::new(seed);
    if sentences.is_empty() {
        return None;
    }
    for call in 0..calls {
        // Few sentences first: each that is added costs a reader's trust.
        let count = 1 + call * 14 / calls.max(1) + random.below(3);
        let chosen: Vec<&str> = (0..count).map(|_| sentences[random.below(sentences.len())]).collect();
        let place = ATTACK_PLACES[random.below(ATTACK_PLACES.len())];
        let tried = gamed(body, &chosen, place, &mut random);
        if passes(&tried) {
            return Some((tried, call + 1));
        }
    }
    None
}
