//! Following of a Delta table: all rows once, then what each new version added.
//!
//! The log is read as the Delta protocol describes it, from its first commit. The catalog's reader checks what only this
//! service writes (hashes, positions, roots), so it refuses the tables of others; the package `deltalake` would triple
//! the time of the first build.
//!
//! Invariants:
//! - A table that needs a reader feature is refused, as is one whose log does not begin with its first commit, or lacks
//!   the place that was read last: rows would be missing without notice.
//! - A place belongs to one table. A table that was made anew has another id and is read from its first commit.
//! - Files that a commit only rearranges (`dataChange` false) give no row again. Rows that a commit removes stay in the
//!   dataset, which only grows.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use crate::RunFailure;
use crate::cursor::Cursor;
use crate::fetch::{FetchedRecords, Fetcher, address, read_file};
use crate::format::{parquet_rows, too_many};
use crate::source::{CollectorSource, MAX_ROWS};

/// Most commits that one run reads; the next run goes on.
const MAX_COMMITS: u64 = 1_000;
/// Version of the protocol that a reader without features knows.
const READER_VERSION: u64 = 1;

/// Returns the rows of the commits after the place that `before` names, or of all commits if that is of another table.
pub(crate) async fn follow(
    fetcher: &Fetcher,
    source: &CollectorSource,
    before: Option<Cursor>,
) -> Result<FetchedRecords, RunFailure> {
    let mut left = source.max_bytes();
    let mut beginning = object(fetcher, source, &commit(0), &mut left).await?;
    let table = beginning.as_ref().and_then(table_id);
    // A place without an id is of a time when ids were not kept. A writer may also have removed the first commit, and
    // the table is then judged by its place alone.
    let is_same = |cursor: &Cursor| cursor.delta_table.is_none() || table.is_none() || cursor.delta_table == table;
    let before = before.filter(is_same).map(|mut cursor| {
        cursor.delta_table = table.clone().or(cursor.delta_table);
        cursor
    });
    let first = before
        .as_ref()
        .and_then(|cursor| cursor.delta_version)
        .map_or(0, |version| version + 1);
    let (mut files, mut last) = (Vec::new(), None);
    for version in first..first.saturating_add(MAX_COMMITS) {
        let commit = match version {
            0 => beginning.take(),
            _ => object(fetcher, source, &commit(version), &mut left).await?,
        };
        // The log has no end marker: the first commit that is missing is the end as of now.
        let Some(commit) = commit else { break };
        files.extend(added(&commit)?);
        last = Some(version);
    }
    let Some(last) = last else {
        if first == 0 {
            return Err(RunFailure::form(
                "there is no Delta table whose log begins with its first commit",
            ));
        }
        check_place(fetcher, source, first, &mut left).await?;
        return Ok(FetchedRecords::Unchanged(before.unwrap_or_default()));
    };
    let mut rows = Vec::new();
    for file in files {
        let gone = || RunFailure::form("a file that the log of the table names is missing");
        let body = object(fetcher, source, &file, &mut left).await?.ok_or_else(gone)?;
        let decoding = tokio::task::spawn_blocking(move || parquet_rows(body));
        // One file at a time, because decoding may take many times the size of a file.
        rows.extend(
            decoding
                .await
                .map_err(|_error| RunFailure::form("a file of the table cannot be decoded"))??,
        );
        if rows.len() > MAX_ROWS {
            return Err(too_many());
        }
    }
    let cursor = Cursor {
        definition: source.fingerprint().to_owned(),
        delta_version: Some(last),
        delta_table: table.or_else(|| before?.delta_table),
        ..Cursor::default()
    };
    Ok(FetchedRecords::Records(rows, cursor))
}

/// Checks that a table without the commit `first` has no news. A writer removes old commits once a checkpoint covers
/// them, and a table that was made anew begins at its first commit again.
async fn check_place(
    fetcher: &Fetcher,
    source: &CollectorSource,
    first: u64,
    left: &mut u64,
) -> Result<(), RunFailure> {
    let lost = || RunFailure::form("the log of the table lacks the place where the source was left");
    let text = object(fetcher, source, "_delta_log/_last_checkpoint", left).await?;
    let checkpoint = text.map(|text| checkpoint(&text).ok_or_else(lost)).transpose()?;
    let last_read = object(fetcher, source, &commit(first.saturating_sub(1)), left).await?;
    let has_place = last_read.is_some() || checkpoint.is_some_and(|version| version.saturating_add(1) >= first);
    if has_place && checkpoint.is_none_or(|version| version < first) {
        Ok(())
    } else {
        Err(lost())
    }
}

/// Returns the version of the latest checkpoint, or `None` if the text is none about a checkpoint.
fn checkpoint(text: &[u8]) -> Option<u64> {
    serde_json::from_slice::<Value>(text).ok()?["version"].as_u64()
}

/// Returns the path of a commit.
fn commit(version: u64) -> String {
    format!("_delta_log/{version:020}.json")
}

/// Returns the id of the table that a commit describes.
fn table_id(commit: &Bytes) -> Option<String> {
    let lines = commit.split(|byte| *byte == b'\n');
    let mut actions = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    actions.find_map(|action| Some(action.pointer("/metaData/id")?.as_str()?.to_owned()))
}

/// Returns the paths of the files whose rows a commit adds.
fn added(commit: &Bytes) -> Result<Vec<String>, RunFailure> {
    let broken = || RunFailure::form("a commit of the table cannot be read");
    let mut files = Vec::new();
    for line in commit
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
    {
        let action: Value = serde_json::from_slice(line).map_err(|_error| broken())?;
        if let Some(protocol) = action.get("protocol") {
            let needed = protocol["minReaderVersion"].as_u64().ok_or_else(broken)?;
            if needed > READER_VERSION {
                return Err(RunFailure::form("the table needs features that are not read here"));
            }
        }
        if action.pointer("/metaData/partitionColumns/0").is_some() {
            return Err(RunFailure::form(
                "the table is partitioned, and its files lack the columns of the partition",
            ));
        }
        // Absent means true in the protocol, so only an explicit false is left out.
        let Some(add) = action.get("add").filter(|add| add["dataChange"] != Value::Bool(false)) else {
            continue;
        };
        let path = add["path"].as_str().ok_or_else(broken)?;
        // The path comes from the table's publisher. With `..` or an absolute path it would read
        // another file of this machine, or fetch from another host.
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
    // Checked again after decoding, since `%2e%2e` is `..` only then.
    let decoded = String::from_utf8(decoded).ok()?;
    let is_plain = decoded.split('/').all(|part| !matches!(part, "" | "." | ".."));
    (is_below && is_plain && !decoded.starts_with('/')).then_some(decoded)
}

/// Reads an object of the table; `None` if there is none.
async fn object(
    fetcher: &Fetcher,
    source: &CollectorSource,
    path: &str,
    left: &mut u64,
) -> Result<Option<Bytes>, RunFailure> {
    let body = if let Some(folder) = source.file() {
        let file = folder.join(path);
        match tokio::fs::try_exists(&file).await {
            Ok(false) => return Ok(None),
            // Only a file that is surely absent ends the log; one that cannot be looked up is an error,
            // because its rows would be missing without notice.
            _ => read_file(&file, *left).await?,
        }
    } else {
        let base = source.text.fetch.url.clone().unwrap_or_default();
        let mut url = address(&base)?;
        let no_path = |()| RunFailure::new("address", "the address of the source is refused");
        url.path_segments_mut()
            .map_err(no_path)?
            .pop_if_empty()
            .extend(path.split('/'));
        match fetcher.page(source, url.as_str(), *left, None).await {
            Ok(Some(page)) => page.body,
            Ok(None) => return Ok(None),
            // Other refusals, such as 403, may hide a commit that exists, so they fail the run.
            Err(failure) if failure.status == Some(StatusCode::NOT_FOUND) => return Ok(None),
            Err(failure) => return Err(failure),
        }
    };
    *left = left.saturating_sub(body.len() as u64);
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::format::tests::parquet_file;
    use crate::scheduler::tests::TIDES;

    /// Returns a source at the folder `table`, and a fetcher.
    fn local(folder: &Path) -> (Fetcher, CollectorSource) {
        let definition = TIDES
            .replace("url = \"https://harbour.example/tides\"", "file = \"table\"")
            .replace("format = \"json\"", "format = \"delta\"");
        let client = outbound::OutboundClient::new(outbound::ClientOptions::new("mailto:ops@example.org")).unwrap();
        let source = CollectorSource::parse(&definition, Some(folder)).unwrap();
        (Fetcher::new(client, Duration::ZERO), source)
    }

    #[tokio::test]
    async fn a_table_that_was_made_anew_is_read_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("table/_delta_log");
        std::fs::create_dir_all(&log).unwrap();
        std::fs::write(folder.path().join("table/a.parquet"), parquet_file()).unwrap();
        let make = |id: &str| {
            let add = r#"{"add":{"path":"a.parquet","dataChange":true}}"#;
            let first = format!("{{\"metaData\":{{\"id\":\"{id}\",\"partitionColumns\":[]}}}}\n{add}");
            std::fs::write(log.join("00000000000000000000.json"), first).unwrap();
        };
        let (fetcher, source) = local(folder.path());
        let read = async |before: Option<&Cursor>| match follow(&fetcher, &source, before.cloned()).await.unwrap() {
            FetchedRecords::Records(rows, cursor) => (rows.len(), cursor),
            FetchedRecords::Unchanged(cursor) => (0, cursor),
        };
        make("one");
        let (rows, one) = read(None).await;
        assert!(rows > 0 && one.delta_table.as_deref() == Some("one"));
        assert_eq!(read(Some(&one)).await, (0, one.clone()));
        let old = Cursor {
            delta_table: None,
            ..one.clone()
        };
        assert_eq!(read(Some(&old)).await, (0, one.clone()), "an old place gets the id");

        make("two");
        // It has a commit more than were read of the table before.
        std::fs::write(log.join("00000000000000000001.json"), r#"{"commitInfo":{}}"#).unwrap();
        let (again, two) = read(Some(&one)).await;
        assert_eq!((again, two.delta_version), (rows, Some(1)));
        assert_eq!(two.delta_table.as_deref(), Some("two"));
        // A writer may remove the first commit, and the place is still known.
        std::fs::remove_file(log.join("00000000000000000000.json")).unwrap();
        assert_eq!(read(Some(&two)).await, (0, two.clone()));
    }

    #[tokio::test]
    async fn a_log_that_lacks_the_place_is_refused_and_not_taken_for_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("table/_delta_log");
        std::fs::create_dir_all(&log).unwrap();
        let commit = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
        std::fs::write(log.join("00000000000000000000.json"), commit).unwrap();
        let (fetcher, source) = local(folder.path());
        let FetchedRecords::Records(_, cursor) = follow(&fetcher, &source, None).await.unwrap() else {
            panic!("the first commit is news");
        };
        for (checkpoint, left_at, is_known) in [
            (None, 0, true),
            // The table was made anew and has fewer commits than before.
            (None, 3, false),
            (Some(r#"{"version":0}"#), 0, true),
            // The commits before the checkpoint were removed.
            (Some(r#"{"version":3}"#), 3, true),
            (Some(r#"{"version":5}"#), 3, false),
            (Some(r#"{"version":5}"#), 0, false),
            (Some("{"), 0, false),
        ] {
            if let Some(text) = checkpoint {
                std::fs::write(log.join("_last_checkpoint"), text).unwrap();
            }
            let place = Cursor {
                delta_version: Some(left_at),
                ..cursor.clone()
            };
            let followed = follow(&fetcher, &source, Some(place.clone())).await;
            match (&followed, is_known) {
                (Ok(FetchedRecords::Unchanged(same)), true) => assert_eq!(*same, place),
                (Err(failure), false) => assert_eq!(failure.code, "form"),
                _ => panic!("{checkpoint:?} after {left_at}: {followed:?}"),
            }
        }
    }

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
