//! Nonces of payouts.

use sha3::{Digest as _, Keccak256};

/// Returns the nonce of a payout or refund, the same for every attempt, so that the chain pays it once.
pub fn payout_nonce(id: &str) -> String {
    let mut hash = Keccak256::new();
    // The text keeps these nonces apart from those that wallets draw, and its number lets the rule
    // change.
    hash.update(b"sluice-payout-1");
    hash.update(id.as_bytes());
    let mut text = String::with_capacity(66);
    text.push_str("0x");
    for byte in hash.finalize() {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(digit.into(), 16).unwrap_or('0'));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_32_bytes_of_its_id_alone() {
        let nonce = payout_nonce("a");
        assert_eq!((nonce.len(), nonce.clone()), (66, payout_nonce("a")));
        assert_ne!(nonce, payout_nonce("b"));
    }
}
