//! Offline verification of a folder of parts against its manifest.
//!
//! Invariant: a folder that verifies has every part of the version, byte for byte, and no other Parquet file. Its
//! records give the content root of every version at which a part ends.

mod group;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

use crate::{Error, Part, Root, VerifiedManifest};

/// The file name of the manifest in a folder.
pub const MANIFEST_FILE: &str = "manifest.json";
/// The file name of the keys document in a folder.
pub const KEYS_FILE: &str = "keys.json";

/// Verifies the parts in `folder`, several at a time, and calls `verified` with the number of rows of each verified
/// part.
///
/// # Errors
/// The first error in the order of the parts.
pub fn verify(manifest: &VerifiedManifest, folder: &Path, verified: &(dyn Fn(u64) + Sync)) -> Result<(), Error> {
    let manifest = manifest.manifest();
    if let Some(file) = strangers(&manifest.parts, folder)?.into_iter().next() {
        return Err(Error::Stranger { file });
    }
    let groups = groups(&manifest.parts);
    let (next, found) = (AtomicUsize::new(0), Mutex::new(None::<(usize, Error)>));
    // Groups are taken in order, so every group before a failing one is verified too, and the
    // earliest error is found.
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(before, group)) = groups.get(index) else {
                return;
            };
            if let Err(error) = group::verify(&manifest.schema_def, folder, before, group, verified) {
                let mut found = found.lock();
                if found.as_ref().is_none_or(|(earlier, _)| index < *earlier) {
                    *found = Some((index, error));
                }
                // No further group is started after an error.
                next.store(groups.len(), Ordering::Relaxed);
            }
        }
    };
    // Verification is bound by hashing, so more threads than cores gain nothing.
    let threads = thread::available_parallelism().map_or(1, usize::from).min(groups.len());
    thread::scope(|scope| {
        for _ in 1..threads {
            // A thread that cannot start is not needed: this thread takes the groups that are
            // left.
            drop(thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
    let found = found.into_inner();
    found.map_or(Ok(()), |(_, error)| Err(error))
}

/// Returns the Parquet files in `folder` that are not in `parts`, in the order of their names. A reader of `*.parquet`
/// would take them for records of the version.
pub fn strangers(parts: &[Part], folder: &Path) -> Result<Vec<String>, Error> {
    let unreadable = |source| Error::File {
        path: folder.to_owned(),
        source,
    };
    let mut strangers = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
        // Some file systems and readers ignore case.
        if name.to_ascii_lowercase().ends_with(".parquet") {
            strangers.push(name);
        }
    }
    let named: std::collections::HashSet<_> = parts.iter().map(|part| part.path.as_str()).collect();
    strangers.retain(|name| !named.contains(name.as_str()));
    strangers.sort_unstable();
    Ok(strangers)
}

/// Splits parts into runs that share no version, each with the content root before it. A run can be verified on its
/// own.
fn groups(parts: &[Part]) -> Vec<(Root, &[Part])> {
    let mut root = Root::EMPTY;
    parts
        .chunk_by(|part, next| part.last_version == next.first_version)
        .map(|group| {
            let before = root;
            root = group.last().map_or(root, |part| part.root);
            (before, group)
        })
        .collect()
}

#[cfg(test)]
mod tests;
