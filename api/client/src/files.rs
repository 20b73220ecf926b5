//! Files that are replaced atomically.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crate::Error;

/// Writes `text` durably to a file beside `path`, and renames it to `path`.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = Path::new(&beside);
    let written = || {
        let mut file = File::create(beside)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(beside, path)
    };
    written().map_err(|source| Error::file(path, source))?;
    // The rename is durable only once the folder is.
    sync_folder(folder_of(path))
}

/// Returns the folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Syncs a folder, so that its names are durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|source| Error::file(folder, source))
}

/// Returns the bytes of a file, or `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::file(path, source)),
    }
}

/// Runs work that waits for the disk on a thread that may block.
pub(crate) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(Error::Stopped)?
}
