//! The rules of a manifest: the right to sign it, and the consistency of its parts with its version.
//!
//! Invariant: [`VerifiedManifest`] is created only here, from a manifest that keeps every rule.

use std::collections::HashSet;

use serde_json::Value;
use types::Version;

use super::{DOCUMENT_NAME, Manifest, Part, Signature, VerifiedManifest, unaddressed};
use crate::json::{object, signed_bytes, typed};
use crate::{Error, Keys, Root};

/// The longest name of a part, in bytes.
const MAX_PART_NAME_BYTES: usize = 200;

impl VerifiedManifest {
    /// Parses a manifest and verifies that a key in `keys` signed it and may do so.
    pub fn parse(text: &[u8], keys: &Keys) -> Result<Self, Error> {
        let received = object(DOCUMENT_NAME, text)?;
        let mut addressed = received.clone();
        let signature = addressed.remove("signature").unwrap_or(Value::Null);
        let signature: Signature = typed(DOCUMENT_NAME, "/signature", signature)?;
        let manifest: Manifest = typed(DOCUMENT_NAME, "", addressed.clone().into())?;
        let bytes = signed_bytes(manifest.format.name(), unaddressed(addressed));
        signature.holds(DOCUMENT_NAME, manifest.issued_at, &bytes, keys)?;
        shape(&manifest)?;
        Ok(Self {
            received,
            manifest,
            key: signature.key_id,
        })
    }
}

/// Checks that the parts are consistent with the version.
pub(super) fn shape(manifest: &Manifest) -> Result<(), Error> {
    let fail = |path: String, problem: &str| {
        Err(Error::Malformed {
            what: DOCUMENT_NAME,
            path,
            problem: problem.to_owned(),
        })
    };
    let (mut head, mut root, mut rows) = (Version::EMPTY, Root::EMPTY, 0_u64);
    let repeated = repeated(&manifest.parts);
    for (index, part) in manifest.parts.iter().enumerate() {
        let at = |member: &str| format!("/parts/{index}/{member}");
        if !is_file_name(&part.path) {
            return fail(at("path"), "is not the plain name of a Parquet file");
        }
        if repeated == Some(index) {
            return fail(at("path"), "is there twice");
        }
        // A version may span several consecutive parts.
        let continues = head != Version::EMPTY && part.first_version == head;
        if !continues && Some(part.first_version.0) != head.0.checked_add(1) {
            return fail(at("firstVersion"), "does not follow the part before it");
        }
        if part.last_version < part.first_version {
            return fail(at("lastVersion"), "is before `firstVersion`");
        }
        // All parts of a version end with the same root.
        if continues && part.last_version == head && part.root != root {
            return fail(at("root"), "is not that of the other parts of its version");
        }
        // Every version adds at least one row.
        if part.rows <= part.last_version.0 - part.first_version.0 {
            return fail(at("rows"), "is less than one for each version");
        }
        rows = rows.saturating_add(part.rows);
        (head, root) = (part.last_version, part.root);
    }
    if head != manifest.version {
        return fail("/version".to_owned(), "is not that of the last part");
    }
    if root != manifest.root {
        return fail("/root".to_owned(), "is not that of the last part");
    }
    if rows != manifest.record_count {
        return fail("/recordCount".to_owned(), "is not the sum of the parts' rows");
    }
    Ok(())
}

/// Returns the first part that has the name of an earlier one, compared without case, as some file systems do.
fn repeated(parts: &[Part]) -> Option<usize> {
    // Names given by the service ascend, which proves that they differ.
    if parts.is_sorted_by(|before, part| lower(before).lt(lower(part))) {
        return None;
    }
    let mut names = HashSet::new();
    parts
        .iter()
        .position(|part| !names.insert(part.path.to_ascii_lowercase()))
}

fn lower(part: &Part) -> impl Iterator<Item = u8> {
    part.path.bytes().map(|byte| byte.to_ascii_lowercase())
}

/// Returns true if a name is that of a Parquet file directly in the folder, on every file system.
fn is_file_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.len() <= MAX_PART_NAME_BYTES
        && name.strip_suffix(".parquet").is_some_and(|stem| !stem.is_empty())
        && !name.starts_with(['.', '-'])
        && name.bytes().all(plain)
}
