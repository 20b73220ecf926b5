//! Signatures on secp256k1: the address that made one, and keys that make them.
//!
//! Invariant: of the two signatures that are equivalent, only the one with the lower `s` is taken (EIP-2).

use std::fmt;

use k256::ecdsa::{RecoveryId, Signature as Ecdsa, SigningKey, VerifyingKey};

use super::address::{hex, keccak};
use super::{Address, Bytes32};

/// Signature with the parity that tells the key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WalletSignature {
    ecdsa: Ecdsa,
    is_odd: bool,
}

/// Reason for which a text is no signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureError {
    /// The text is not `0x` and whole bytes.
    NotHex,
    /// The length is not that of a key's signature: contracts sign otherwise, which cannot be checked here.
    Contract,
    /// The parity is unknown, a number is out of range, or `s` is in the upper half.
    Invalid,
}

impl WalletSignature {
    /// Reads 65 bytes with a parity of 0, 1, 27 or 28, or 64 bytes (EIP-2098).
    ///
    /// # Errors
    /// [`SignatureError`] for text that is not hexadecimal, another length, or numbers that no signature has.
    pub fn read(text: &str) -> Result<Self, SignatureError> {
        let bytes = hex(text).ok_or(SignatureError::NotHex)?;
        let mut compact: [u8; 64];
        let is_odd = match bytes.len() {
            65 => {
                compact = bytes[..64].try_into().map_err(|_length| SignatureError::Invalid)?;
                match bytes[64] {
                    0 | 27 => false,
                    1 | 28 => true,
                    _ => return Err(SignatureError::Invalid),
                }
            }
            64 => {
                compact = bytes.try_into().map_err(|_length| SignatureError::Invalid)?;
                // EIP-2098 keeps the parity in the top bit of `s`, which is free because the lower `s`
                // is below half of the order.
                let is_odd = compact[32] & 0x80 != 0;
                compact[32] &= 0x7f;
                is_odd
            }
            // Another length may be the signature of a contract wallet (EIP-1271), which only a call to
            // the chain can check. It is told apart, since the payer's signature may well be good.
            _ => return Err(SignatureError::Contract),
        };
        // Zero and numbers from the order of the curve on are refused here.
        let ecdsa = Ecdsa::from_slice(&compact).map_err(|_error| SignatureError::Invalid)?;
        // With the upper `s` accepted, anybody could turn a known signature into a second one of the
        // same payment.
        if ecdsa.normalize_s() != ecdsa {
            return Err(SignatureError::Invalid);
        }
        Ok(Self { ecdsa, is_odd })
    }

    /// Returns the address whose key signed the digest.
    pub fn signer(&self, digest: Bytes32) -> Option<Address> {
        let id = RecoveryId::new(self.is_odd, false);
        let key = VerifyingKey::recover_from_prehash(&digest.0, &self.ecdsa, id).ok()?;
        Some(address_of(&key))
    }
}

/// The 65 bytes, the parity as 27 or 28.
impl fmt::Display for WalletSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.ecdsa.to_bytes().to_vec();
        bytes.push(27 + u8::from(self.is_odd));
        write!(f, "0x{}", data_encoding::HEXLOWER.encode(&bytes))
    }
}

/// Shows nothing of the signature.
impl fmt::Debug for WalletSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature")
    }
}

/// Key of a wallet.
#[derive(Clone)]
pub struct WalletKey(SigningKey);

impl WalletKey {
    /// Takes 32 bytes as a key. `None` for zero and for numbers from the order of the curve on.
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        SigningKey::from_slice(bytes).ok().map(Self)
    }

    /// Returns 32 random bytes that are a key.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn random() -> Result<[u8; 32], getrandom::Error> {
        loop {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes)?;
            // One of 2^128 is none.
            if Self::from_bytes(&bytes).is_some() {
                return Ok(bytes);
            }
        }
    }

    /// Returns the address of the key.
    pub fn address(&self) -> Address {
        address_of(self.0.verifying_key())
    }

    /// Signs a digest. The same key and digest make the same signature (RFC 6979).
    pub fn sign(&self, digest: Bytes32) -> WalletSignature {
        let (ecdsa, id) = self.0.sign_prehash_recoverable(&digest.0);
        let lower = ecdsa.normalize_s();
        WalletSignature {
            // Negating `s` mirrors the point, so its parity turns round.
            is_odd: id.is_y_odd() ^ (lower != ecdsa),
            ecdsa: lower,
        }
    }
}

/// Shows the address, never the key.
impl fmt::Debug for WalletKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.address()).finish()
    }
}

fn address_of(key: &VerifyingKey) -> Address {
    let point = key.to_sec1_point(false);
    // The first byte says that the point is not compressed.
    let hash = keccak(&[&point.as_bytes()[1..]]);
    let mut address = [0; 20];
    address.copy_from_slice(&hash.0[12..]);
    Address(address)
}
