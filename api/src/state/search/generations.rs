//! Indexes of the search on disk: a folder for each time that one was built.
//!
//! Invariant: a folder is used only if the change of its last commit is in the database as it was then. So an index of
//! another database, or of a state that a restored backup does not have, is thrown away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use search::Index;
use store::{SearchChange, Store};

use super::Error;

/// The folder of the indexes of this process. The lock of its data directory keeps others out.
#[derive(Clone, Debug)]
pub(super) struct IndexGenerations {
    folder: PathBuf,
    /// Number of the newest folder that this process made. It is never given again: what ends late in the background of
    /// an index must not write into the folder of another.
    newest: Arc<AtomicU64>,
}

impl IndexGenerations {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            newest: Arc::default(),
        }
    }

    /// Opens the newest index that can be used, and returns it with the place of the last change that it has.
    pub(super) async fn open(&self, store: &Store, dimensions: Option<usize>) -> Result<Option<(Index, i64)>, Error> {
        let folder = self.folder.clone();
        let opened = tokio::task::spawn_blocking(move || newest(&folder, dimensions)).await?;
        let Some((index, note)) = opened else {
            return Ok(None);
        };
        let Some(seq) = note.split(' ').next().and_then(|seq| seq.parse::<i64>().ok()) else {
            return Ok(None);
        };
        let is_same = note_of(store, seq).await? == Some(note);
        Ok(is_same.then_some((index, seq)))
    }

    /// Creates an empty index in a folder of its own, or in memory if that cannot be written.
    pub(super) fn create(&self, dimensions: Option<usize>) -> Result<(Index, Option<u64>), search::Error> {
        let on_disk = generations(&self.folder).last().copied().unwrap_or(0);
        let before = self.newest.fetch_max(on_disk, Ordering::Relaxed).max(on_disk);
        let number = before.saturating_add(1);
        self.newest.store(number, Ordering::Relaxed);
        match Index::create(&self.folder.join(number.to_string()), dimensions) {
            Ok(index) => Ok((index, Some(number))),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the index of the search cannot be kept on disk; the next start builds it anew"
                );
                Ok((Index::with_model(dimensions)?, None))
            }
        }
    }

    /// Deletes all indexes but one.
    pub(super) fn keep_only(&self, kept: Option<u64>) {
        for other in generations(&self.folder)
            .into_iter()
            .filter(|number| Some(*number) != kept)
        {
            // One that stays is deleted after the next build.
            fs::remove_dir_all(self.folder.join(other.to_string())).ok();
        }
    }
}

/// Returns the note of a commit up to a change, or `None` if the database does not have that change.
pub(super) async fn note_of(store: &Store, seq: i64) -> Result<Option<String>, Error> {
    let found = store.searching().changes_after(seq.saturating_sub(1), 1).await?;
    Ok(found.first().filter(|change| change.seq == seq).map(note))
}

/// Returns the note of a commit whose last change is this one.
pub(super) fn note(change: &SearchChange) -> String {
    let SearchChange { seq, kind, item, at } = change;
    format!("{seq} {} {item} {}", kind.as_str(), at.micros())
}

/// Returns the newest index that opens, with the note of its last commit.
fn newest(folder: &Path, dimensions: Option<usize>) -> Option<(Index, String)> {
    for number in generations(folder).into_iter().rev() {
        match Index::open(&folder.join(number.to_string()), dimensions) {
            Ok(opened) => return Some(opened),
            Err(error) => tracing::warn!(
                generation = number,
                error = &error as &dyn std::error::Error,
                "an index of the search on disk cannot be used; it is built anew"
            ),
        }
    }
    None
}

/// Returns the numbers of the folders, the lowest first.
fn generations(folder: &Path) -> Vec<u64> {
    let names = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    let mut numbers: Vec<u64> = fs::read_dir(folder).into_iter().flatten().filter_map(names).collect();
    numbers.sort_unstable();
    numbers
}
