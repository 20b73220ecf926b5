//! Files of this machine: written whole or not at all.
//!
//! Invariant: after a crash a file has its old bytes or its new ones.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crate::Error;

/// Writes `text` beside `path`, durably, and puts it in its place.
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
    sync_folder(folder_of(path))
}

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|source| Error::file(folder, source))
}

/// The bytes of a file; `None` where there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::file(path, source)),
    }
}

/// Runs what waits for the disk where that holds nobody up.
pub(crate) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(Error::Stopped)?
}
