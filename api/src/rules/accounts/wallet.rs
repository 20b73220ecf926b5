//! Addresses of wallets that people are paid at.
//!
//! Invariant: an address with capital letters has the checksum that they make (EIP-55), so a typing error in it is
//! found before money is sent.

use data_encoding::HEXLOWER;
use sha3::{Digest as _, Keccak256};

use crate::error::ApiError;

/// Checks an address of an Ethereum wallet. `path` is the place of the input that has it.
///
/// # Errors
/// 400 for a text that is no address, the zero address, or a wrong checksum.
pub(crate) fn check(path: &str, address: &str) -> Result<(), ApiError> {
    let digits = address.strip_prefix("0x").unwrap_or_default();
    if digits.len() != 40 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ApiError::invalid(path, "must be `0x` and 40 hexadecimal digits"));
    }
    if digits.bytes().all(|byte| byte == b'0') {
        // Money that is sent there is lost.
        return Err(ApiError::invalid(path, "must not be the zero address"));
    }
    // Digits of one case have no checksum (EIP-55), so there is nothing to check.
    let is_mixed =
        digits.bytes().any(|byte| byte.is_ascii_uppercase()) && digits.bytes().any(|byte| byte.is_ascii_lowercase());
    if is_mixed && checksummed(digits) != digits {
        let problem = "has capital letters that do not match its digits; copy it again from the wallet";
        return Err(ApiError::invalid(path, problem));
    }
    Ok(())
}

/// Returns 40 digits with the capital letters of EIP-55.
fn checksummed(digits: &str) -> String {
    let lower = digits.to_ascii_lowercase();
    let hash = HEXLOWER.encode(&Keccak256::digest(lower.as_bytes()));
    let pairs = lower.chars().zip(hash.chars());
    pairs
        .map(|(digit, nibble)| match nibble {
            '8'..='9' | 'a'..='f' => digit.to_ascii_uppercase(),
            _ => digit,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_in_an_address_is_found() {
        // The examples of EIP-55.
        for address in [
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "0xde709f2102306220921060314715629080e2fb77",
        ] {
            check("/address", address).unwrap();
        }
        for address in [
            "",
            "0x",
            "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeg",
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD",
            "0x0000000000000000000000000000000000000000",
        ] {
            let error = check("/address", address).unwrap_err();
            assert_eq!(error.details()[0].path, "/address", "{address}");
        }
    }
}
