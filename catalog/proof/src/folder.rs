//! A folder of parts against its manifest, offline.
//!
//! Invariant: a folder that verifies has every part of the version, byte for byte, no other Parquet file, and its
//! records give the content root of every version at which a part ends.

mod group;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::{Error, Part, Root, VerifiedManifest};

/// The manifest's name in a folder.
pub const MANIFEST: &str = "manifest.json";
/// The name of the keys document in a folder.
pub const KEYS: &str = "keys.json";

/// Verifies the parts in `folder`, several at once, and calls `verified` with the rows of each that is.
///
/// # Errors
/// The first thing that is wrong, in the order of the parts.
pub fn verify(manifest: &VerifiedManifest, folder: &Path, verified: &(dyn Fn(u64) + Sync)) -> Result<(), Error> {
    let manifest = manifest.manifest();
    if let Some(file) = strangers(&manifest.parts, folder)?.into_iter().next() {
        return Err(Error::Stranger { file });
    }
    let groups = groups(&manifest.parts);
    let (next, found) = (AtomicUsize::new(0), Mutex::new(None::<(usize, Error)>));
    // Why: groups are taken in order, so whoever finds an error leaves none before it untaken.
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(before, group)) = groups.get(index) else {
                return;
            };
            if let Err(error) = group::verify(&manifest.schema_def, folder, before, group, verified) {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                if found.as_ref().is_none_or(|(earlier, _)| index < *earlier) {
                    *found = Some((index, error));
                }
                next.store(groups.len(), Ordering::Relaxed);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(groups.len());
    thread::scope(|scope| {
        for _ in 1..threads {
            // Why ignored: whatever no other thread takes, this one does.
            drop(thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.map_or(Ok(()), |(_, error)| Err(error))
}

/// The Parquet files in `folder` that are none of `parts`, in the order of their names. Whoever reads `*.parquet`
/// would take them for records of the version.
pub fn strangers(parts: &[Part], folder: &Path) -> Result<Vec<String>, Error> {
    let unreadable = |source| Error::File {
        path: folder.to_owned(),
        source,
    };
    let mut strangers = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
        if name.to_ascii_lowercase().ends_with(".parquet") {
            strangers.push(name);
        }
    }
    let named: std::collections::HashSet<_> = parts.iter().map(|part| part.path.as_str()).collect();
    strangers.retain(|name| !named.contains(name.as_str()));
    strangers.sort_unstable();
    Ok(strangers)
}

/// Runs of parts that share versions, each with the content root before it: what can be verified on its own.
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
