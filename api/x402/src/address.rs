//! Addresses, words of 32 bytes, and the hash of the chain.
//!
//! Invariant: an address has one value whatever the case of its letters, and is shown with the checksum of EIP-55.

use std::fmt;
use std::str::FromStr;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use sha3::{Digest as _, Keccak256};

/// Address of an account on a chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub [u8; 20]);

/// Word of 32 bytes: a nonce, a hash, a transaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes32(pub [u8; 32]);

/// Text that is not `0x` and as many hexadecimal digits as needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be `0x` and {digits} hexadecimal digits")]
pub struct NotHex {
    /// Number of digits that are needed.
    pub digits: usize,
}

impl Address {
    /// The zero address, from which nobody can pay.
    pub const ZERO: Self = Self([0; 20]);

    /// Returns the text with capital letters by EIP-55, which is how an address is shown.
    pub fn checksum(&self) -> String {
        let lower = HEXLOWER.encode(&self.0);
        let hash = HEXLOWER.encode(&keccak(&[lower.as_bytes()]).0);
        let pairs = lower.chars().zip(hash.chars());
        let digits = pairs.map(|(digit, nibble)| {
            if matches!(nibble, '8'..='9' | 'a'..='f') {
                digit.to_ascii_uppercase()
            } else {
                digit
            }
        });
        format!("0x{}", digits.collect::<String>())
    }

    /// Returns the address as a word: 12 zero bytes before it.
    pub fn word(&self) -> Bytes32 {
        let mut word = [0; 32];
        word[12..].copy_from_slice(&self.0);
        Bytes32(word)
    }
}

impl Bytes32 {
    /// Returns a number as a word.
    pub fn of_number(number: u64) -> Self {
        let mut word = [0; 32];
        word[24..].copy_from_slice(&number.to_be_bytes());
        Self(word)
    }

    /// Returns the number, if it fits.
    pub fn number(&self) -> Option<u64> {
        let (high, low) = self.0.split_at(24);
        let is_small = high.iter().all(|byte| *byte == 0);
        low.try_into().ok().filter(|_| is_small).map(u64::from_be_bytes)
    }
}

/// Returns the Keccak-256 hash of the parts in a row.
pub fn keccak(parts: &[&[u8]]) -> Bytes32 {
    let mut hash = Keccak256::new();
    for part in parts {
        hash.update(part);
    }
    Bytes32(hash.finalize().into())
}

/// Reads `0x` and hexadecimal digits of any case.
pub(crate) fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?;
    HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()
}

fn exactly<const N: usize>(text: &str) -> Result<[u8; N], NotHex> {
    let bytes = hex(text).and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or(NotHex { digits: 2 * N })
}

impl FromStr for Address {
    type Err = NotHex;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        exactly(text).map(Self)
    }
}

impl FromStr for Bytes32 {
    type Err = NotHex;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        exactly(text).map(Self)
    }
}

/// In lower case, as addresses are stored.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", HEXLOWER.encode(&self.0))
    }
}

impl fmt::Display for Bytes32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Bytes32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_with_its_checksum() {
        // The examples of EIP-55.
        for text in [
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "0xde709f2102306220921060314715629080e2fb77",
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.checksum(), text);
            assert_eq!(address.to_string(), text.to_ascii_lowercase());
        }
        for text in ["", "0x", "0X52908400098527886E0F7030069857D2E4169EE7", "0x5", "0xzz"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_word_is_a_number_if_it_fits() {
        assert_eq!(Bytes32::of_number(u64::MAX).number(), Some(u64::MAX));
        assert_eq!(Bytes32([1; 32]).number(), None);
    }
}
