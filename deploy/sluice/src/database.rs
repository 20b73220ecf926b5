//! Connection to the metadata database: the configured one, or the file in the data directory.
//!
//! Invariant: a database that is missing beside existing tables is never created anew, because the tables' records
//! would then belong to nothing.

use std::path::Path;

use anyhow::{Context, bail};
use store::{Schema, Store};

use crate::config::Config;
use crate::layout::DataLayout;
use crate::objects;

/// Connects to the configured database, or to the one in the data directory, and brings its schema to the state
/// `schema`.
///
/// # Errors
/// Also if there are tables while the database is missing or has neither a project nor a unit.
pub async fn connect(config: &Config, schema: Schema) -> anyhow::Result<Store> {
    if !knows_items(config).await? && has_tables(config).await? {
        let database = if config.database.url.is_empty() {
            format!(
                "the database `{}`",
                DataLayout::new(&config.data.dir).database().display()
            )
        } else {
            "the database of `database.url`".to_owned()
        };
        bail!(
            "{database} is missing or knows no project and no unit, and there are tables; restore the database from a backup (see \
             `deploy/OPERATIONS.md`, \"The database is missing\"). To start with nothing on purpose, name another \
             folder with --data, or move `tables`, `log`, `uploads` and `index` out of this one; with tables in a \
             bucket, name another `objects.prefix`"
        );
    }
    open(config, schema).await
}

/// Returns true if the database exists and has a project or a knowledge unit. Creates nothing.
async fn knows_items(config: &Config) -> anyhow::Result<bool> {
    // Opening an empty file would write to it.
    let file = std::fs::metadata(DataLayout::new(&config.data.dir).database());
    if config.database.url.is_empty() && file.map_or(0, |file| file.len()) == 0 {
        return Ok(false);
    }
    let store = match open(config, Schema::Current).await {
        Ok(store) => store,
        Err(error) => {
            return match error.downcast_ref::<store::Error>() {
                Some(store::Error::Absent) => Ok(false),
                // The caller then migrates the schema or reports the reason. Until then it cannot be queried.
                Some(store::Error::Outdated) => Ok(true),
                _ => Err(error),
            };
        }
    };
    let knows = store.has_items().await;
    store.close().await;
    Ok(knows?)
}

/// Returns true if a table exists.
async fn has_tables(config: &Config) -> anyhow::Result<bool> {
    let objects = objects::open_to_read(config, &DataLayout::new(&config.data.dir))?;
    Ok(!objects::tables(objects.as_ref()).await?.is_empty())
}

/// Connects without the check for tables.
async fn open(config: &Config, schema: Schema) -> anyhow::Result<Store> {
    let database = &config.database;
    let options = store::Options {
        schema,
        readers: database.readers.get(),
        writers: database.writers.get(),
        timeout: database.timeout.0,
        // A wait for a lock must end within the time-out of the call, so that the call can still report it.
        busy_timeout: database.timeout.0 / 2,
        ..store::Options::default()
    };
    if !database.url.is_empty() {
        // The error does not name the URL, which contains the password.
        let connected = Store::connect(&database.url, options).await;
        return connected.context("the database of `database.url` cannot be opened");
    }
    let layout = DataLayout::new(&config.data.dir);
    let file = layout.database();
    // This message names the folder, which the database's own error does not.
    if schema == Schema::Current && !file.exists() {
        bail!(
            "there is no service in `{}`; name its folder with --data",
            config.data.dir.display()
        );
    }
    let path = std::path::absolute(&file).with_context(|| format!("`{}` is not a path", file.display()))?;
    let url = format!("sqlite://{}", percent_encoded(&path));
    Store::connect(&url, options)
        .await
        .with_context(|| format!("the database `{}` cannot be opened", file.display()))
}

/// Percent-encodes a path for a URL (RFC 3986 section 3.3).
fn percent_encoded(path: &Path) -> String {
    let encode = |&byte: &u8| match byte {
        b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    path.as_os_str().as_encoded_bytes().iter().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_odd_characters_is_one_path_in_a_url() {
        assert_eq!(
            percent_encoded(Path::new("/tmp/a b?c#d%é")),
            "/tmp/a%20b%3Fc%23d%25%C3%A9"
        );
    }
}
