//! The checksum of a commit, over its own bytes.
//!
//! Invariant: a commit that begins with a checksum is read only if the checksum is right. An older commit begins with
//! other bytes, more than one bit away. So every single wrong bit in a commit with a checksum is found.
//!
//! ```text
//! {"commitInfo":{"checksum":"32 hexadecimal digits","timestamp":…}}…
//! ```
//!
//! The digits are the first 16 bytes of the BLAKE3 of everything after them. Other readers of the log
//! ignore the checksum, as `commitInfo` may have any members (Delta protocol, *Commit Provenance Information*).

use data_encoding::HEXLOWER;
use types::mutate;

/// First bytes of a commit with a checksum.
const CHECKSUM_PREFIX: &[u8] = br#"{"commitInfo":{"checksum":""#;
/// The first bytes of an older commit, which has no checksum.
const UNCHECKED_PREFIX: &[u8] = br#"{"commitInfo":{"timestamp":"#;
/// Length of the checksum in hexadecimal digits.
const CHECKSUM_DIGITS: usize = 32;
/// The placeholder of a checksum that is not computed yet.
pub(crate) const CHECKSUM_PLACEHOLDER: &str = "00000000000000000000000000000000";

fn checksum(rest: &[u8]) -> String {
    HEXLOWER.encode(&blake3::hash(rest).as_bytes()[..CHECKSUM_DIGITS / 2])
}

/// Puts the checksum in the place of [`CHECKSUM_PLACEHOLDER`].
pub(super) fn seal(commit: &mut [u8]) {
    debug_assert!(commit.starts_with(CHECKSUM_PREFIX), "a commit begins with its checksum");
    if let Some((digits, rest)) = commit
        .get_mut(CHECKSUM_PREFIX.len()..)
        .and_then(|rest| rest.split_at_mut_checked(CHECKSUM_DIGITS))
    {
        digits.copy_from_slice(checksum(rest).as_bytes());
    }
}

/// Compares a commit with its checksum; an older commit has none and passes.
pub(super) fn check(commit: &[u8]) -> Result<(), String> {
    mutate!(Bug::BlindReads => return Ok(()));
    let Some(rest) = commit.strip_prefix(CHECKSUM_PREFIX) else {
        // A commit of an older build has no checksum. One whose beginning was damaged must not pass as one of those.
        let begins = commit.starts_with(UNCHECKED_PREFIX);
        return begins
            .then_some(())
            .ok_or_else(|| "it does not begin as a commit".to_owned());
    };
    let same = rest
        .split_at_checked(CHECKSUM_DIGITS)
        .is_some_and(|(digits, rest)| digits == checksum(rest).as_bytes());
    same.then_some(())
        .ok_or_else(|| "its checksum is not that of its bytes".to_owned())
}

/// A commit that was changed, with the checksum of what it is now.
#[cfg(test)]
pub(crate) fn sealed(commit: &str) -> Vec<u8> {
    let mut bytes = commit.as_bytes().to_vec();
    if bytes.starts_with(CHECKSUM_PREFIX) {
        seal(&mut bytes);
    }
    bytes
}
