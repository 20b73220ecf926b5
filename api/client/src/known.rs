//! The services this machine has met: trust on first use.
//!
//! Invariant: a service's first key is kept at the first meeting and never replaced, and of its keys documents the
//! newest is kept, so neither another key nor an older document is taken later.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use proof::{Keys, PublicKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Error, files};

/// A file of the service keys that were met, as indented JSON:
/// `{"format": "sluice-known-keys-1", "servers": {"http://…": {"firstKey": "<Base64>", "keys": {the document}}}}`.
///
/// Who knows a first key beforehand may write it there, without the document.
#[derive(Clone, Debug)]
pub struct KnownKeys {
    path: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Book {
    format: Format,
    servers: BTreeMap<String, Entry>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
enum Format {
    #[default]
    #[serde(rename = "sluice-known-keys-1")]
    V1,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    first_key: PublicKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<Map<String, Value>>,
}

impl KnownKeys {
    /// The file `path`; it need not exist.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Takes the keys that `server` shows now: remembers them at the first meeting, later proves that they are the same
    /// or have grown. Returns whether it is the first meeting.
    pub fn meet(&self, server: &str, keys: &Keys) -> Result<bool, Error> {
        let folder = files::folder_of(&self.path);
        fs::create_dir_all(folder).map_err(|source| Error::file(folder, source))?;
        // Why: two that meet a service at once must not forget each other's.
        let _lock = lock(folder)?;
        let mut book = self.book()?;
        let known = book.servers.get(server);
        if let Some(known) = known {
            let checked = keys.begins_with(&known.first_key);
            let checked = checked.and_then(|()| document(known)?.map_or(Ok(()), |seen| keys.follows(&seen)));
            checked.map_err(|source| Error::Untrusted {
                server: server.to_owned(),
                known_keys: self.path.clone(),
                source: Box::new(source),
            })?;
        }
        let first = known.is_none();
        let entry = Entry {
            first_key: keys.first().public_key,
            keys: serde_json::from_str(&keys.to_json()).ok(),
        };
        book.servers.insert(server.to_owned(), entry);
        // Why: the shapes of this file have text keys and no infinite number, so it can always be written.
        files::replace(&self.path, &serde_json::to_string_pretty(&book).unwrap_or_default())?;
        Ok(first)
    }

    /// The keys documents that were met of services with this first key; `None` where none was met.
    pub fn documents_of(&self, first: &PublicKey) -> Result<Option<Vec<Keys>>, Error> {
        let book = self.book()?;
        let mut entries = book
            .servers
            .values()
            .filter(|entry| entry.first_key == *first)
            .peekable();
        if entries.peek().is_none() {
            return Ok(None);
        }
        let documents = entries.filter_map(|entry| document(entry).transpose());
        Ok(Some(documents.collect::<Result<_, _>>()?))
    }

    fn book(&self) -> Result<Book, Error> {
        match files::read(&self.path)? {
            None => Ok(Book::default()),
            Some(text) => serde_json::from_slice(&text)
                .map_err(|error| Error::place(&self.path, format!("is not a file of known keys: {error}"))),
        }
    }
}

/// The newest keys document of a service; none where only its first key is known.
fn document(entry: &Entry) -> Result<Option<Keys>, proof::Error> {
    let Some(document) = &entry.keys else { return Ok(None) };
    let keys = Keys::parse(Value::Object(document.clone()).to_string().as_bytes())?;
    keys.begins_with(&entry.first_key)?;
    Ok(Some(keys))
}

/// The right to change what is in a folder, until it is dropped.
fn lock(folder: &Path) -> Result<File, Error> {
    let locked = || {
        let folder = File::open(folder)?;
        folder.lock()?;
        Ok(folder)
    };
    locked().map_err(|source| Error::file(folder, source))
}
