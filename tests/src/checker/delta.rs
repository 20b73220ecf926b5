//! The checker's own reading of a Delta table: commit files line by line, parts with the Parquet reader.
//!
//! Invariant: what is read here is judged against the Delta protocol and the layout that the README documents, not by
//! the code that wrote it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampMicrosecondType};
use data_encoding::HEXLOWER;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::Violation;
use super::record::{Record, normal};

/// One row of a part.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The stored key.
    pub key: Vec<u8>,
    /// The contribution it came with.
    pub contribution: String,
    /// The agent that contributed it.
    pub agent: String,
    /// The version it is new in.
    pub version: u64,
    /// Its index in that version.
    pub ordinal: u64,
    /// Its members.
    pub record: Record,
}

/// One version.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The dataset version.
    pub version: u64,
    /// The contribution named by the commit.
    pub contribution: String,
    /// The agent named by the commit.
    pub agent: String,
    /// How many rows the commit says it adds.
    pub accepted: u64,
    /// How many rows the commit says the version has.
    pub record_count: u64,
    /// The content root the commit states.
    pub root: String,
    /// The rows of its parts, in order.
    pub rows: Vec<Row>,
}

/// A table as its files show it.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The versions in the order of the log.
    pub commits: Vec<Commit>,
}

/// Every folder below `root` that holds a Delta log.
pub fn tables_below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.path().is_dir() {
                continue;
            }
            if entry.file_name() == "_delta_log" {
                found.push(folder.clone());
            } else {
                pending.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// Reads a table, reporting what breaks the format.
pub fn read(folder: &Path, types: &BTreeMap<String, String>, violations: &mut Vec<Violation>) -> Table {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut report = |rule, detail: String| violations.push(Violation::new(rule, format!("table {name}: {detail}")));
    let mut table = Table::default();
    let mut parts = Vec::new();
    // What a reader of the latest commit reads, with the rows.
    let mut live: Vec<(String, Vec<Row>)> = Vec::new();
    for (index, (number, path)) in commit_files(folder).into_iter().enumerate() {
        if number != index as u64 {
            report("log-gap", format!("commit {index} is missing, {number} is there"));
            break;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let actions: Option<Vec<Value>> = text.lines().map(|line| serde_json::from_str(line).ok()).collect();
        let Some(actions) = actions.filter(|actions| !actions.is_empty()) else {
            report("torn-commit", format!("commit {number} is empty or not JSON lines"));
            continue;
        };
        let action = |name: &str| actions.iter().find_map(|action| action.get(name));
        if index == 0 {
            check_creation(action("protocol"), action("metaData"), &mut report);
        } else if action("protocol").is_some() || action("metaData").is_some() {
            report("schema-change", format!("commit {number} changes protocol or schema"));
        }
        if action("remove").is_some() {
            if let Err(problem) = compact(folder, &actions, types, &mut live, &mut parts) {
                report("compaction", format!("commit {number}: {problem}"));
            }
            continue;
        }
        let adds: Vec<_> = actions.iter().filter_map(|action| action.get("add")).collect();
        if adds.is_empty() {
            if index > 0 {
                report("empty-commit", format!("commit {number} adds nothing"));
            }
            continue;
        }
        let info = action("commitInfo")
            .and_then(|info| info.get("sluice"))
            .cloned()
            .unwrap_or_default();
        let number_of = |name: &str| info[name].as_u64().unwrap_or(u64::MAX);
        let text_of = |name: &str| info[name].as_str().unwrap_or_default().to_owned();
        let transaction = action("txn").and_then(|txn| txn["version"].as_u64());
        if transaction != Some(number_of("version")) {
            report(
                "txn",
                format!("commit {number}: txn {transaction:?}, version {}", info["version"]),
            );
        }
        let mut rows = Vec::new();
        for add in adds {
            let path = add["path"].as_str().unwrap_or_default().to_owned();
            if parts.contains(&path) {
                report("part-twice", format!("{path} is added twice"));
            }
            if add["dataChange"] != true {
                report("data-change", format!("{path} is a merge's and changes no data"));
            }
            let read = read_part(folder, &path, add, types).unwrap_or_else(|problem| {
                report("part", format!("{path}: {problem}"));
                Vec::new()
            });
            live.push((path.clone(), read.clone()));
            rows.extend(read);
            parts.push(path);
        }
        table.commits.push(Commit {
            version: number_of("version"),
            contribution: text_of("contribution"),
            agent: text_of("agent"),
            accepted: number_of("accepted"),
            record_count: number_of("recordCount"),
            root: text_of("root"),
            rows,
        });
    }
    table
}

/// A commit that removes parts is a compaction: it changes no data and no version, what it removes stands in the table
/// in this order without a gap, its files are still there, and what it adds has the very same rows.
fn compact(
    folder: &Path,
    actions: &[Value],
    types: &BTreeMap<String, String>,
    live: &mut Vec<(String, Vec<Row>)>,
    parts: &mut Vec<String>,
) -> Result<(), String> {
    let of = |name: &'static str| actions.iter().filter_map(move |action| action.get(name));
    if let Some(other) = ["txn", "protocol", "metaData"]
        .into_iter()
        .find(|name| of(name).next().is_some())
    {
        return Err(format!("it has a {other}"));
    }
    if of("commitInfo").any(|info| !info["sluice"].is_null()) {
        return Err("it names a contribution".to_owned());
    }
    let removes: Vec<&str> = of("remove").filter_map(|remove| remove["path"].as_str()).collect();
    let adds: Vec<_> = of("add").collect();
    let [add] = adds[..] else {
        return Err(format!("it adds {} parts", adds.len()));
    };
    if of("remove").chain([add]).any(|action| action["dataChange"] != false) {
        return Err("it changes data".to_owned());
    }
    let start = live
        .iter()
        .position(|(path, _)| Some(&path.as_str()) == removes.first());
    let start = start.ok_or_else(|| format!("{removes:?} are not in the table"))?;
    let replaced = live.get(start..start + removes.len()).unwrap_or_default();
    if !replaced
        .iter()
        .map(|(path, _)| path.as_str())
        .eq(removes.iter().copied())
    {
        return Err(format!("{removes:?} do not follow one another in the table"));
    }
    if let Some((gone, _)) = replaced.iter().find(|(path, _)| !folder.join(path).exists()) {
        return Err(format!("the file of {gone} is gone"));
    }
    let path = add["path"].as_str().unwrap_or_default().to_owned();
    if parts.contains(&path) {
        return Err(format!("{path} is added twice"));
    }
    let rows = read_part(folder, &path, add, types).map_err(|problem| format!("{path}: {problem}"))?;
    let expected = replaced.iter().flat_map(|(_, rows)| rows);
    if !expected.eq(&rows) {
        return Err(format!("{path} has other rows than the parts that it replaces"));
    }
    parts.push(path.clone());
    live.splice(start..start + removes.len(), [(path, rows)]);
    Ok(())
}

/// The commit files by number.
fn commit_files(folder: &Path) -> BTreeMap<u64, PathBuf> {
    let entries = fs::read_dir(folder.join("_delta_log")).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let digits = name.strip_suffix(".json").filter(|digits| digits.len() == 20)?;
            Some((digits.parse().ok()?, entry.path()))
        })
        .collect()
}

fn check_creation(protocol: Option<&Value>, metadata: Option<&Value>, report: &mut impl FnMut(&'static str, String)) {
    let (Some(protocol), Some(metadata)) = (protocol, metadata) else {
        return report("creation", "commit 0 has no protocol or no metaData".to_owned());
    };
    let versions = (
        protocol["minReaderVersion"].as_u64(),
        protocol["minWriterVersion"].as_u64(),
    );
    if versions != (Some(1), Some(2)) {
        report("creation", format!("protocol {versions:?}"));
    }
    if metadata["configuration"]["delta.appendOnly"] != "true" {
        report("creation", "delta.appendOnly is not true".to_owned());
    }
}

fn read_part(folder: &Path, path: &str, add: &Value, types: &BTreeMap<String, String>) -> Result<Vec<Row>, String> {
    let file = folder.join(path);
    let bytes = fs::read(&file).map_err(|error| error.to_string())?;
    if add["size"].as_u64() != Some(bytes.len() as u64) {
        return Err(format!("{} bytes, the commit says {}", bytes.len(), add["size"]));
    }
    let sha256 = HEXLOWER.encode(&Sha256::digest(&bytes));
    if add["tags"]["sha256"] != sha256 {
        return Err(format!("sha256 {sha256}, the commit says {}", add["tags"]["sha256"]));
    }
    let reader = File::open(&file)
        .map_err(|error| error.to_string())
        .and_then(|file| ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string()))?
        .build()
        .map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for batch in reader {
        rows_of(&batch.map_err(|error| error.to_string())?, types, &mut rows)?;
    }
    let stats: Value = serde_json::from_str(add["stats"].as_str().unwrap_or("null")).unwrap_or_default();
    if stats["numRecords"].as_u64() != Some(rows.len() as u64) {
        return Err(format!("{} rows, the stats say {}", rows.len(), stats["numRecords"]));
    }
    Ok(rows)
}

fn rows_of(batch: &RecordBatch, types: &BTreeMap<String, String>, rows: &mut Vec<Row>) -> Result<(), String> {
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("no column {name}"));
    let number = |name: &str, row: usize| -> Result<u64, String> {
        let value = column(name)?.as_primitive::<Int64Type>().value(row);
        u64::try_from(value).map_err(|_error| format!("{name} is {value}"))
    };
    let text = |name: &str, row: usize| -> Result<String, String> {
        Ok(column(name)?.as_string::<i32>().value(row).to_owned())
    };
    for row in 0..batch.num_rows() {
        let mut members = Map::new();
        let schema = batch.schema();
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            let name = field.name();
            if column.is_null(row) {
                continue;
            }
            if name == "_sluice_extra" {
                if let Value::Object(extra) = parsed(column.as_string::<i32>().value(row)) {
                    members.extend(extra);
                }
            } else if !name.starts_with("_sluice_") {
                members.insert(
                    name.clone(),
                    cell(column.as_ref(), row, types.get(name).map(String::as_str))?,
                );
            }
        }
        let key = column("_sluice_key")?;
        rows.push(Row {
            key: key
                .as_binary_opt::<i32>()
                .ok_or("the key column is not binary")?
                .value(row)
                .to_vec(),
            contribution: text("_sluice_contribution", row)?,
            agent: text("_sluice_agent", row)?,
            version: number("_sluice_version", row)?,
            ordinal: number("_sluice_ordinal", row)?,
            record: normal(types, &members),
        });
    }
    Ok(())
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn cell(column: &dyn Array, row: usize, kind: Option<&str>) -> Result<Value, String> {
    Ok(match column.data_type() {
        DataType::Utf8 if kind == Some("json") => parsed(column.as_string::<i32>().value(row)),
        DataType::Utf8 => column.as_string::<i32>().value(row).into(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).into(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).into(),
        DataType::Boolean => column.as_boolean().value(row).into(),
        DataType::Timestamp(_, _) => {
            let micros = column.as_primitive::<TimestampMicrosecondType>().value(row);
            let instant = jiff::Timestamp::from_microsecond(micros).map_err(|error| error.to_string())?;
            instant.to_string().into()
        }
        other => return Err(format!("a column of type {other}")),
    })
}
