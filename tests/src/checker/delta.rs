//! The checker's own reading of a Delta table: commit files line by line, parts with the Parquet reader.
//!
//! Invariant: the checker compares a table with the Delta protocol, `.github/ARCHITECTURE.md` and
//! `catalog/proof/FORMAT.md`, and shares no code with the writer. It reads every file anew each time. It remembers what
//! bytes mean, never that they are still there.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Violation;
use super::part::{self, Row};

/// The rows of a part.
type Rows = Arc<[Row]>;

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
    /// The rows of each of its parts, in order.
    pub parts: Vec<Arc<[Row]>>,
}

impl Commit {
    /// Its rows in order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    /// How many rows it has.
    pub fn row_count(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }
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

/// Reads tables again and again, and takes apart only what it has not seen.
#[derive(Debug, Default)]
pub struct Reader {
    /// The text of each commit file and its actions.
    commits: HashMap<PathBuf, (String, Arc<[Value]>)>,
    /// The SHA-256 of each part and its rows.
    parts: HashMap<PathBuf, (String, Rows)>,
}

/// A table that is being read.
struct Reading<'a> {
    reader: &'a mut Reader,
    folder: &'a Path,
    types: &'a BTreeMap<String, String>,
    /// Every part that a commit adds.
    parts: HashSet<String>,
    /// What a reader of the latest commit reads, with the rows.
    live: Vec<(String, Rows)>,
}

impl Reader {
    /// Reads a table, reporting what breaks the format.
    pub fn read(&mut self, folder: &Path, types: &BTreeMap<String, String>, violations: &mut Vec<Violation>) -> Table {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut report =
            |rule, detail: String| violations.push(Violation::new(rule, format!("table {name}: {detail}")));
        let mut table = Table::default();
        let mut reading = Reading {
            reader: self,
            folder,
            types,
            parts: HashSet::new(),
            live: Vec::new(),
        };
        for (index, (number, path)) in commit_files(folder).into_iter().enumerate() {
            if number != index as u64 {
                report("log-gap", format!("commit {index} is missing, {number} is there"));
                break;
            }
            let Some(actions) = reading.reader.actions(path) else {
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
                if let Err(problem) = reading.compact(&actions) {
                    report("compaction", format!("commit {number}: {problem}"));
                }
            } else if actions.iter().any(|action| action.get("add").is_some()) {
                table.commits.push(reading.merge(number, &actions, &mut report));
            } else if index > 0 {
                report("empty-commit", format!("commit {number} adds nothing"));
            }
        }
        table
    }

    /// The actions of a commit; none where it is empty or not JSON lines.
    fn actions(&mut self, path: PathBuf) -> Option<Arc<[Value]>> {
        let text = fs::read_to_string(&path).unwrap_or_default();
        if let Some((_, actions)) = self.commits.get(&path).filter(|(before, _)| *before == text) {
            return Some(Arc::clone(actions));
        }
        let actions: Option<Vec<Value>> = text.lines().map(|line| serde_json::from_str(line).ok()).collect();
        let actions: Arc<[Value]> = actions.filter(|actions| !actions.is_empty())?.into();
        self.commits.insert(path, (text, Arc::clone(&actions)));
        Some(actions)
    }
}

impl Reading<'_> {
    /// A commit that adds parts and removes none: a version.
    fn merge(&mut self, number: u64, actions: &[Value], report: &mut impl FnMut(&'static str, String)) -> Commit {
        let action = |name: &str| actions.iter().find_map(|action| action.get(name));
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
        let mut parts = Vec::new();
        for add in actions.iter().filter_map(|action| action.get("add")) {
            let path = add["path"].as_str().unwrap_or_default().to_owned();
            if !self.parts.insert(path.clone()) {
                report("part-twice", format!("{path} is added twice"));
            }
            if add["dataChange"] != true {
                report("data-change", format!("{path} is a merge's and changes no data"));
            }
            let rows = self.part(&path, add).unwrap_or_else(|problem| {
                report("part", format!("{path}: {problem}"));
                Arc::default()
            });
            self.live.push((path, Arc::clone(&rows)));
            parts.push(rows);
        }
        Commit {
            version: number_of("version"),
            contribution: text_of("contribution"),
            agent: text_of("agent"),
            accepted: number_of("accepted"),
            record_count: number_of("recordCount"),
            root: text_of("root"),
            parts,
        }
    }

    /// A commit that removes parts is a compaction: it changes no data and no version, what it removes stands in the
    /// table in this order without a gap, its files are still there, and what it adds has the very same rows.
    fn compact(&mut self, actions: &[Value]) -> Result<(), String> {
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
        let first = removes.first();
        let start = self.live.iter().position(|(path, _)| Some(&path.as_str()) == first);
        let start = start.ok_or_else(|| format!("{removes:?} are not in the table"))?;
        let replaced = self.live.get(start..start + removes.len()).unwrap_or_default();
        if !replaced
            .iter()
            .map(|(path, _)| path.as_str())
            .eq(removes.iter().copied())
        {
            return Err(format!("{removes:?} do not follow one another in the table"));
        }
        if let Some((gone, _)) = replaced.iter().find(|(path, _)| !self.folder.join(path).exists()) {
            return Err(format!("the file of {gone} is gone"));
        }
        let expected: Vec<_> = replaced.iter().map(|(_, rows)| Arc::clone(rows)).collect();
        let path = add["path"].as_str().unwrap_or_default().to_owned();
        if !self.parts.insert(path.clone()) {
            return Err(format!("{path} is added twice"));
        }
        let rows = self.part(&path, add).map_err(|problem| format!("{path}: {problem}"))?;
        if !expected.iter().flat_map(|rows| rows.iter()).eq(rows.iter()) {
            return Err(format!("{path} has other rows than the parts that it replaces"));
        }
        self.live.splice(start..start + removes.len(), [(path, rows)]);
        Ok(())
    }

    /// The rows of a part, whose bytes must be what the commit says of them.
    fn part(&mut self, name: &str, add: &Value) -> Result<Rows, String> {
        let path = self.folder.join(name);
        let bytes = fs::read(&path).map_err(|error| error.to_string())?;
        if add["size"].as_u64() != Some(bytes.len() as u64) {
            return Err(format!("{} bytes, the commit says {}", bytes.len(), add["size"]));
        }
        let sha256 = HEXLOWER.encode(&Sha256::digest(&bytes));
        if add["tags"]["sha256"] != sha256 {
            return Err(format!("sha256 {sha256}, the commit says {}", add["tags"]["sha256"]));
        }
        let rows = match self.reader.parts.get(&path) {
            Some((before, rows)) if *before == sha256 => Arc::clone(rows),
            _ => {
                let rows: Rows = part::rows_in(bytes.into(), self.types)?.into();
                self.reader.parts.insert(path, (sha256, Arc::clone(&rows)));
                rows
            }
        };
        let stats: Value = serde_json::from_str(add["stats"].as_str().unwrap_or("null")).unwrap_or_default();
        if stats["numRecords"].as_u64() != Some(rows.len() as u64) {
            return Err(format!("{} rows, the stats say {}", rows.len(), stats["numRecords"]));
        }
        Ok(rows)
    }
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
