//! Following of a Delta table: all rows once, then what each new version added.
//!
//! The log is read as the Delta protocol describes it, from its first commit. The catalog's reader checks what only this
//! service writes (hashes, positions, roots), so it refuses the tables of others; the package `deltalake` would triple
//! the time of the first build.
//!
//! Invariants:
//! - A table that needs a reader feature is refused, as is one whose log does not begin with its first commit: rows
//!   would be missing without notice.
//! - Files that a commit only rearranges (`dataChange` false) give no row again. Rows that a commit removes stay in the
//!   dataset, which only grows.

use bytes::Bytes;
use serde_json::Value;

use crate::Failure;
use crate::cursor::Cursor;
use crate::fetch::{Fetched, Fetcher, address, read_file};
use crate::format::{parquet_rows, too_many};
use crate::source::{MAX_ROWS, Source};

/// Most commits that one run reads; the next run goes on.
const MAX_COMMITS: u64 = 1_000;
/// Version of the protocol that a reader without features knows.
const READER_VERSION: u64 = 1;

/// Returns the rows of the commits after the place that `before` names.
pub(crate) async fn follow(fetcher: &Fetcher, source: &Source, before: Option<Cursor>) -> Result<Fetched, Failure> {
    let first = before
        .as_ref()
        .and_then(|cursor| cursor.delta_version)
        .map_or(0, |version| version + 1);
    let mut left = source.max_bytes();
    let (mut files, mut last) = (Vec::new(), None);
    for version in first..first.saturating_add(MAX_COMMITS) {
        let path = format!("_delta_log/{version:020}.json");
        let Some(commit) = object(fetcher, source, &path, &mut left).await? else {
            break;
        };
        files.extend(added(&commit)?);
        last = Some(version);
    }
    let Some(last) = last else {
        if first == 0 {
            return Err(Failure::form(
                "there is no Delta table whose log begins with its first commit",
            ));
        }
        return Ok(Fetched::Unchanged(before.unwrap_or_default()));
    };
    let mut rows = Vec::new();
    for file in files {
        let gone = || Failure::form("a file that the log of the table names is missing");
        let body = object(fetcher, source, &file, &mut left).await?.ok_or_else(gone)?;
        let decoding = tokio::task::spawn_blocking(move || parquet_rows(body));
        rows.extend(
            decoding
                .await
                .map_err(|_error| Failure::form("a file of the table cannot be decoded"))??,
        );
        if rows.len() > MAX_ROWS {
            return Err(too_many());
        }
    }
    let cursor = Cursor {
        definition: source.fingerprint().to_owned(),
        delta_version: Some(last),
        ..Cursor::default()
    };
    Ok(Fetched::Records(rows, cursor))
}

/// Returns the paths of the files whose rows a commit adds.
fn added(commit: &Bytes) -> Result<Vec<String>, Failure> {
    let broken = || Failure::form("a commit of the table cannot be read");
    let mut files = Vec::new();
    for line in commit
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
    {
        let action: Value = serde_json::from_slice(line).map_err(|_error| broken())?;
        if let Some(protocol) = action.get("protocol") {
            let needed = protocol["minReaderVersion"].as_u64().ok_or_else(broken)?;
            if needed > READER_VERSION {
                return Err(Failure::form("the table needs features that are not read here"));
            }
        }
        if action.pointer("/metaData/partitionColumns/0").is_some() {
            return Err(Failure::form(
                "the table is partitioned, and its files lack the columns of the partition",
            ));
        }
        let Some(add) = action.get("add").filter(|add| add["dataChange"] != Value::Bool(false)) else {
            continue;
        };
        let path = add["path"].as_str().ok_or_else(broken)?;
        files.push(relative(path).ok_or_else(broken)?);
    }
    Ok(files)
}

/// Decodes the path of a file, which must be below the table.
fn relative(path: &str) -> Option<String> {
    let is_below = !path.starts_with('/') && !path.contains("://") && !path.contains('\\');
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let digits = path.get(at + 1..at + 3)?;
            decoded.push(u8::from_str_radix(digits, 16).ok()?);
            at += 3;
        } else {
            decoded.push(bytes[at]);
            at += 1;
        }
    }
    let decoded = String::from_utf8(decoded).ok()?;
    let is_plain = decoded.split('/').all(|part| !matches!(part, "" | "." | ".."));
    (is_below && is_plain && !decoded.starts_with('/')).then_some(decoded)
}

/// Reads an object of the table; `None` if there is none.
async fn object(fetcher: &Fetcher, source: &Source, path: &str, left: &mut u64) -> Result<Option<Bytes>, Failure> {
    let body = if let Some(folder) = source.file() {
        let file = folder.join(path);
        match tokio::fs::try_exists(&file).await {
            Ok(false) => return Ok(None),
            _ => read_file(&file, *left).await?,
        }
    } else {
        let base = source.text.fetch.url.clone().unwrap_or_default();
        let mut url = address(&base)?;
        let no_path = |()| Failure::new("address", "the address of the source is refused");
        url.path_segments_mut()
            .map_err(no_path)?
            .pop_if_empty()
            .extend(path.split('/'));
        match fetcher.page(source, url.as_str(), *left, None).await {
            Ok(Some(page)) => page.body,
            Ok(None) => return Ok(None),
            Err(failure) if failure.code == "status" && failure.message.ends_with("404") => return Ok(None),
            Err(failure) => return Err(failure),
        }
    };
    *left = left.saturating_sub(body.len() as u64);
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_outside_of_the_table_is_refused() {
        assert_eq!(relative("part-1%20x.parquet").as_deref(), Some("part-1 x.parquet"));
        for path in [
            "/etc/passwd",
            "../x",
            "a/%2e%2e/x",
            "https://h/x",
            "a\\b",
            "%zz",
            "%2fetc",
        ] {
            assert_eq!(relative(path), None, "{path}");
        }
    }

    #[test]
    fn a_commit_gives_the_files_that_change_data() {
        let commit = br#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"metaData":{"partitionColumns":[]}}
{"add":{"path":"a.parquet","dataChange":true}}
{"add":{"path":"b.parquet","dataChange":false}}
{"remove":{"path":"c.parquet","dataChange":true}}
"#;
        assert_eq!(added(&Bytes::from_static(commit)).unwrap(), ["a.parquet"]);
        for refused in [
            &br#"{"protocol":{"minReaderVersion":3}}"#[..],
            br#"{"metaData":{"partitionColumns":["day"]}}"#,
            br#"{"add":{"path":"../../x","dataChange":true}}"#,
            br#"{"add":{"pa"#,
        ] {
            assert!(added(&Bytes::from_static(refused)).is_err());
        }
    }
}
