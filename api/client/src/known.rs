//! The services that this machine has met: trust on first use.
//!
//! Invariant: a service's first key is stored at the first meeting and never replaced. Of its keys documents the newest
//! is stored. So neither another first key nor an older document is accepted later.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use proof::{KeyId, Keys, PublicKey};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Error, files};

/// A file of known service keys, as indented JSON: `{"format": "sluice-known-keys-1", "servers": {"http://…":
/// {"firstKey": "<Base64>", "keys": {the document}}}}`.
///
/// A first key that is known beforehand may be written there without the document.
#[derive(Clone, Debug)]
pub struct KnownKeys {
    path: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyBook {
    format: KnownFormat,
    servers: BTreeMap<String, KnownEntry>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
enum KnownFormat {
    #[default]
    #[serde(rename = "sluice-known-keys-1")]
    V1,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KnownEntry {
    first_key: PublicKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<Map<String, Value>>,
}

impl KnownKeys {
    /// Returns the handle of the file `path`, which need not exist.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Stores the keys of `server` at the first meeting. Later it verifies that they begin with the same key and follow
    /// the stored document. Returns true at the first meeting.
    ///
    /// # Errors
    /// [`Error::Untrusted`] if the keys contradict the stored ones.
    pub fn meet(&self, server: &str, keys: &Keys) -> Result<bool, Error> {
        let folder = files::folder_of(&self.path);
        fs::create_dir_all(folder).map_err(|source| Error::file(folder, source))?;
        // Two processes that meet services at once must not overwrite each other's entries.
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
        let entry = KnownEntry {
            first_key: keys.first().public_key,
            // A document that was parsed before can be parsed again, so this always stores it.
            keys: serde_json::from_str(&keys.to_json()).ok(),
        };
        book.servers.insert(server.to_owned(), entry);
        // The types of this file have text keys and finite numbers, so serialization cannot fail.
        files::replace(&self.path, &serde_json::to_string_pretty(&book).unwrap_or_default())?;
        Ok(first)
    }

    /// Returns the stored keys documents of services with this first key, or `None` if no such service was met.
    pub fn documents_of(&self, first: &PublicKey) -> Result<Option<Vec<Keys>>, Error> {
        let book = self.book()?;
        let mut entries = book
            .servers
            .values()
            .filter(|entry| entry.first_key == *first)
            .peekable();
        // `None` means never met. An empty list means that only the first key is stored.
        if entries.peek().is_none() {
            return Ok(None);
        }
        let documents = entries.filter_map(|entry| document(entry).transpose());
        Ok(Some(documents.collect::<Result<_, _>>()?))
    }

    /// Returns the newest stored keys document that has a key, or `None` if no service with it was met.
    pub(crate) fn document_with(&self, key: KeyId) -> Result<Option<Keys>, Error> {
        let book = self.book()?;
        let mut found: Option<Keys> = None;
        for entry in book.servers.values() {
            let Some(keys) = document(entry)?.filter(|keys| keys.get(key).is_some()) else {
                continue;
            };
            // One service can have several addresses.
            let sequence = keys.document().sequence;
            if found.as_ref().is_none_or(|found| found.document().sequence < sequence) {
                found = Some(keys);
            }
        }
        Ok(found)
    }

    /// Returns the addresses of the services that were met with a key, in order.
    ///
    /// # Errors
    /// A file of known keys that cannot be read.
    pub fn servers_with(&self, key: KeyId) -> Result<Vec<String>, Error> {
        let book = self.book()?;
        let mut found = Vec::new();
        for (server, entry) in &book.servers {
            if document(entry)?.is_some_and(|keys| keys.get(key).is_some()) {
                found.push(server.clone());
            }
        }
        Ok(found)
    }

    fn book(&self) -> Result<KeyBook, Error> {
        match files::read(&self.path)? {
            None => Ok(KeyBook::default()),
            Some(text) => serde_json::from_slice(&text)
                .map_err(|error| Error::place(&self.path, format!("is not a file of known keys: {error}"))),
        }
    }
}

/// Returns the stored keys document of a service, or `None` if only its first key is stored.
fn document(entry: &KnownEntry) -> Result<Option<Keys>, proof::Error> {
    let Some(document) = &entry.keys else { return Ok(None) };
    let keys = Keys::parse(Value::Object(document.clone()).to_string().as_bytes())?;
    // A person may have edited the file, so its two parts are compared.
    keys.begins_with(&entry.first_key)?;
    Ok(Some(keys))
}

/// Locks a folder until the handle is dropped. Waits for the holder.
fn lock(folder: &Path) -> Result<File, Error> {
    let locked = || {
        let folder = File::open(folder)?;
        folder.lock()?;
        Ok(folder)
    };
    locked().map_err(|source| Error::file(folder, source))
}
