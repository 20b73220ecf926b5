//! Proves the invariants of a table from its files alone.
//!
//! Invariants: the check shares with the rest of the catalog only the Parquet decoder and the definitions of `types`
//! (canonical form, record key). It has its own code for paths, commits and the content root, so it finds a mistake in
//! the other. It only reads. A table may grow meanwhile; the check covers the commits that exist when it lists them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde::Serialize;
use serde_json::Value;
use types::{Contract, DatasetId};

use crate::Error;

mod checkpoints;
mod compacted;
mod rows;

/// A rule that a table breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Name of the rule: one of [`RULES`].
    pub rule: &'static str,
    /// Path of the object, or id of the contribution.
    pub at: String,
    /// Description of the problem.
    pub found: String,
}

/// The rules that [`table()`] checks.
pub const RULES: [&str; 18] = [
    "commit_gap",
    "commit_empty",
    "commit_unreadable",
    "commit_checksum",
    "table_protocol",
    "table_contract",
    "version_number",
    "contribution_twice",
    "record_count",
    "part_missing",
    "part_hash",
    "part_unreadable",
    "hidden_columns",
    "record_key",
    "key_twice",
    "content_root",
    "compaction",
    "checkpoint",
];

/// One version, as its commit and its parts state it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedVersion {
    /// Number of the version.
    pub version: u64,
    /// Id of the contribution that the commit names.
    pub contribution: String,
    /// Number of rows in its parts. Unreadable parts count as 0.
    pub rows: u64,
    /// Content root, computed from the rows up to here. `None` if some rows could not be read.
    pub root: Option<String>,
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Versions in ascending order.
    pub versions: Vec<CheckedVersion>,
    /// Number of rows in all parts.
    pub records: u64,
    /// Parts that no commit names. A crash or a lost race leaves them. Readers never see them, and they break no rule.
    pub orphans: Vec<String>,
    /// True if the table was deleted: it has no versions then, and its parts are orphans.
    pub was_deleted: bool,
    /// Broken rules. The list is empty for a sound table.
    pub violations: Vec<Violation>,
}

/// Checks the table of a dataset. A table that does not exist is sound and has no versions.
///
/// # Errors
/// [`Error::Storage`] if the store cannot be read. Problems of the table are in the report.
pub async fn table(objects: &Arc<dyn ObjectStore>, dataset: DatasetId) -> Result<Report, Error> {
    let mut checker = Checker {
        objects: Arc::clone(objects),
        dataset: dataset.to_string(),
        report: Report::default(),
        contributions: HashMap::new(),
        keys: HashSet::new(),
        root: Some([0; 32]),
        named: HashSet::new(),
        expected: Some(1),
        live: Vec::new(),
        merged: HashMap::new(),
        checkpoints: checkpoints::Checkpoints::default(),
    };
    // Before the commits: each checkpoint is compared when the log has been read up to it.
    checker.find_checkpoints().await?;
    let numbers = checker.list("_delta_log", ".json").await?;
    // The head comes from a listing, so that a gap before it is found.
    let head = numbers.keys().filter_map(|stem| stem.parse::<u64>().ok()).max();
    for stem in numbers
        .keys()
        .filter(|stem| stem.len() != 20 || stem.parse::<u64>().is_err())
    {
        checker.violation("commit_unreadable", stem, "its name is not a commit number");
    }
    if let Some(head) = head {
        checker.commits(head).await?;
    }
    if !checker.report.was_deleted {
        checker.checkpoints_are_of_commits();
    }
    let parts = checker.list("", ".parquet").await?;
    // A part with a version after the last commit read is not an orphan: the next commit may name it.
    let last = checker.report.versions.last().map_or(0, |version| version.version);
    let is_final = |stem: &str| {
        let version = stem.split('-').nth(1).and_then(|version| version.parse::<u64>().ok());
        version.is_none_or(|version| version <= last)
    };
    let orphans = parts
        .into_iter()
        .filter(|(stem, path)| is_final(stem) && !checker.named.contains(path));
    checker.report.orphans = orphans.map(|(_, path)| path).collect();
    Ok(checker.report)
}

struct Checker {
    objects: Arc<dyn ObjectStore>,
    dataset: String,
    report: Report,
    contributions: HashMap<String, u64>,
    keys: HashSet<[u8; 16]>,
    /// Content root so far. `None` after rows that could not be read.
    root: Option<[u8; 32]>,
    named: HashSet<String>,
    /// Version that the next merge must have. `None` after a commit that could not be read.
    expected: Option<u64>,
    /// Parts that a reader of the latest commit reads, in order.
    live: Vec<compacted::LivePart>,
    /// Content of the versions, by number.
    merged: HashMap<u64, compacted::MergedContent>,
    checkpoints: checkpoints::Checkpoints,
}

impl Checker {
    fn violation(&mut self, rule: &'static str, at: &str, found: &(impl ToString + ?Sized)) {
        debug_assert!(RULES.contains(&rule), "rule `{rule}` is not in the list");
        self.report.violations.push(Violation {
            rule,
            at: at.to_owned(),
            found: found.to_string(),
        });
    }

    /// Lists the objects in a directory of the table whose names end with `end`: the name without `end`, and the path.
    async fn list(&self, directory: &str, end: &str) -> Result<BTreeMap<String, String>, Error> {
        let prefix = Path::from(format!("{}/{directory}", self.dataset));
        let listed = self.objects.list_with_delimiter(Some(&prefix)).await;
        let listed = listed.map_err(|error| Error::storage(&prefix, error))?;
        let stems = listed.objects.into_iter().filter_map(|object| {
            let stem = object.location.filename()?.strip_suffix(end)?.to_owned();
            Some((stem, object.location.to_string()))
        });
        Ok(stems.collect())
    }

    /// Reads an object. Returns `None` if it does not exist.
    async fn get(&self, path: &str) -> Result<Option<Bytes>, Error> {
        let read = async {
            let found = self.objects.get(&Path::from(path)).await?;
            let chunks: Vec<Bytes> = found.into_stream().try_collect().await?;
            Ok(chunks.concat().into())
        };
        match read.await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(Error::storage(path, error)),
        }
    }

    async fn commits(&mut self, head: u64) -> Result<(), Error> {
        if self.was_deleted(head).await? {
            return Ok(());
        }
        let mut contract = None;
        for number in 0..=head {
            let path = format!("{}/_delta_log/{number:020}.json", self.dataset);
            let Some(bytes) = self.get(&path).await? else {
                self.violation("commit_gap", &path, "it is missing, but a later commit exists");
                self.is_lost(number).await?;
                continue;
            };
            if bytes.is_empty() {
                self.violation("commit_empty", &path, "it is empty");
                self.is_lost(number).await?;
                continue;
            }
            // The deletion begins with its last commit, and may not have come to commit 0 yet.
            if number == head && self.is_deletion(&bytes) {
                continue;
            }
            let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
            let actions: Result<Vec<Value>, _> = lines.map(serde_json::from_slice).collect();
            // Lines that are no JSON are reported as such below.
            if actions.is_ok() && !has_its_checksum(&bytes) {
                self.violation("commit_checksum", &path, "it is not that of its bytes");
                self.is_lost(number).await?;
                continue;
            }
            if let Ok(actions) = &actions {
                self.checkpoint(number, Some(actions)).await?;
            }
            let mut merged = serde_json::Map::new();
            let mut adds = Vec::new();
            match actions {
                Ok(actions) if actions.iter().any(|action| action.get("remove").is_some()) => {
                    self.compaction(&path, &actions, contract.as_ref()).await?;
                    continue;
                }
                Ok(actions) => {
                    for mut action in actions.into_iter().filter_map(into_object) {
                        adds.extend(action.remove("add"));
                        merged.extend(action);
                    }
                    merged.insert("adds".to_owned(), adds.into());
                }
                Err(error) => {
                    self.violation("commit_unreadable", &path, &error);
                    self.is_lost(number).await?;
                    continue;
                }
            }
            let actions = Value::Object(merged);
            if number == 0 {
                contract = self.created(&path, &actions);
            } else {
                self.version(&path, &actions, contract.as_ref()).await?;
            }
        }
        Ok(())
    }

    /// Returns true if commit 0 and the last commit say that the table was deleted. Then it has no versions, and what is
    /// below its folder besides is an orphan.
    async fn was_deleted(&mut self, head: u64) -> Result<bool, Error> {
        for number in [0, head] {
            let path = format!("{}/_delta_log/{number:020}.json", self.dataset);
            let Some(bytes) = self.get(&path).await? else {
                return Ok(false);
            };
            if !self.is_deletion(&bytes) {
                return Ok(false);
            }
        }
        self.report.was_deleted = true;
        Ok(true)
    }

    fn is_deletion(&self, commit: &[u8]) -> bool {
        let action = serde_json::from_slice::<Value>(commit).unwrap_or_default();
        let info = &action["commitInfo"];
        info["operation"] == "DROP TABLE"
            && info["operationParameters"]["table"] == self.dataset.as_str()
            && has_its_checksum(commit)
    }

    /// Handles a commit that cannot be read: later versions, roots and checkpoints cannot be checked any more.
    async fn is_lost(&mut self, number: u64) -> Result<(), Error> {
        (self.root, self.expected) = (None, None);
        self.checkpoint(number, None).await
    }

    fn created(&mut self, path: &str, actions: &Value) -> Option<Arc<Contract>> {
        let configuration = &actions["metaData"]["configuration"];
        for (pointer, expected) in [
            ("/protocol/minReaderVersion", Value::from(1)),
            ("/protocol/minWriterVersion", Value::from(2)),
            ("/metaData/configuration/delta.appendOnly", Value::from("true")),
            (
                "/metaData/configuration/delta.enableExpiredLogCleanup",
                Value::from("false"),
            ),
        ] {
            if actions.pointer(pointer) != Some(&expected) {
                self.violation("table_protocol", path, &format!("{pointer} is not {expected}"));
            }
        }
        match configuration["sluice.contract"]
            .as_str()
            .map(serde_json::from_str::<Contract>)
        {
            Some(Ok(contract)) => Some(Arc::new(contract)),
            Some(Err(error)) => {
                self.violation("table_contract", path, &error);
                None
            }
            None => {
                self.violation("table_contract", path, "the table has no contract");
                None
            }
        }
    }

    async fn version(&mut self, path: &str, actions: &Value, contract: Option<&Arc<Contract>>) -> Result<(), Error> {
        let info = &actions["commitInfo"]["sluice"];
        let adds = actions["adds"].as_array().map_or(&[][..], Vec::as_slice);
        let names: Option<Vec<&str>> = adds.iter().map(|add| add["path"].as_str()).collect();
        let (Some(contribution), Some(agent), Some(names)) = (
            info["contribution"].as_str(),
            info["agent"].as_str(),
            names.filter(|names| !names.is_empty()),
        ) else {
            self.violation(
                "commit_unreadable",
                path,
                "it does not name a contribution, an agent and a part",
            );
            (self.root, self.expected) = (None, None);
            return Ok(());
        };
        // Without an expected number, the commit's own number is the best guess.
        let told = [&info["version"], &actions["txn"]["version"]];
        let number = self.expected.or(told[0].as_u64()).unwrap_or(0);
        self.expected = Some(number + 1);
        if told.iter().any(|version| version.as_u64() != Some(number)) {
            self.violation(
                "version_number",
                path,
                &format!(
                    "its `commitInfo` and `txn` have the versions {} and {}",
                    told[0], told[1]
                ),
            );
        }
        if actions["txn"]["appId"] != self.dataset.as_str() {
            self.violation("version_number", path, "its `txn` names another table");
        }
        if let Some(first) = self.contributions.insert(contribution.to_owned(), number) {
            self.violation(
                "contribution_twice",
                contribution,
                &format!("versions {first} and {number} name it"),
            );
        }
        let before = self.report.records;
        let mut rows = 0;
        // Every root contains the one before. Once a root is unknown, all later ones are.
        let mut root = self.root.map(|root| rows::extension(&root));
        for (add, name) in adds.iter().zip(names) {
            let part = format!("{}/{name}", self.dataset);
            if !self.named.insert(part.clone()) {
                self.violation("part_missing", &part, "two actions add it");
            }
            let Some(bytes) = self.get(&part).await? else {
                self.violation("part_missing", &part, &format!("version {number} names it"));
                self.live.push(compacted::LivePart::of(name, number, 0));
                root = None;
                continue;
            };
            self.hash(&part, &bytes, add);
            let expected = rows::ExpectedRows {
                number,
                contribution,
                agent,
                contract,
                first: rows,
                new: true,
            };
            let found = self.rows(&part, bytes, &expected, &mut root);
            self.live.push(compacted::LivePart::of(name, number, found));
            if part_count(add) != Some(found) {
                self.violation(
                    "record_count",
                    &part,
                    &format!("it has {found} rows, but its commit has another count"),
                );
            }
            rows += found;
        }
        self.root = root.map(|root| *root.finalize().as_bytes());
        self.report.records += rows;
        self.counts(path, actions, rows, before);
        let root = self.root.map(|root| data_encoding::HEXLOWER.encode(&root));
        if root.as_deref().is_some_and(|root| info["root"] != root) {
            self.violation("content_root", path, "its `root` is not the content root of the rows");
        }
        let merged = compacted::MergedContent {
            contribution: contribution.to_owned(),
            agent: agent.to_owned(),
            rows,
            root: self.root,
        };
        self.merged.insert(number, merged);
        let contribution = contribution.to_owned();
        self.report.versions.push(CheckedVersion {
            version: number,
            contribution,
            rows,
            root,
        });
        Ok(())
    }

    fn hash(&mut self, part: &str, bytes: &Bytes, add: &Value) {
        use sha2::Digest as _;
        let found = data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(bytes));
        let (size, tags) = (add["size"].as_u64(), &add["tags"]);
        let blocks = tags.get("blocks").map(|text| text.as_str().unwrap_or_default());
        let differ = blocks.is_some_and(|blocks| blocks != hashes_of_blocks(bytes));
        if size != Some(bytes.len() as u64) || tags["sha256"] != found.as_str() || differ {
            self.violation(
                "part_hash",
                part,
                &format!(
                    "the file has {} bytes and the SHA-256 {found}, which differ from its commit",
                    bytes.len()
                ),
            );
        }
    }

    fn counts(&mut self, path: &str, actions: &Value, rows: u64, before: u64) {
        let info = &actions["commitInfo"]["sluice"];
        let told = [&info["accepted"], &info["recordCount"]].map(Value::as_u64);
        if told != [Some(rows), Some(before + rows)] || rows == 0 {
            self.violation(
                "record_count",
                path,
                &format!("it has the counts {told:?}, but its parts add {rows} rows to {before}"),
            );
        }
    }
}

/// Verifies the checksum of a commit: BLAKE3, cut to 16 bytes, of the bytes after it. An older commit has no checksum
/// and passes.
fn has_its_checksum(commit: &[u8]) -> bool {
    let begin = b"{\"commitInfo\":{\"checksum\":\"";
    let Some((checksum, rest)) = commit.strip_prefix(begin).and_then(|rest| rest.split_at_checked(32)) else {
        // The commit was written before commits had checksums.
        return commit.starts_with(b"{\"commitInfo\":{\"timestamp\":");
    };
    data_encoding::HEXLOWER
        .encode(&blake3::hash(rest).as_bytes()[..16])
        .as_bytes()
        == checksum
}

/// Returns the BLAKE3 hash, cut to 16 bytes, of each block of 64 KiB.
fn hashes_of_blocks(part: &[u8]) -> String {
    let hashes = part.chunks(65_536).map(|block| *blake3::hash(block).as_bytes());
    data_encoding::BASE64.encode(&hashes.flat_map(|hash| hash.into_iter().take(16)).collect::<Vec<_>>())
}

/// Returns the row count that a commit states for a part.
fn part_count(add: &Value) -> Option<u64> {
    let stats: Value = serde_json::from_str(add["stats"].as_str()?).ok()?;
    stats["numRecords"].as_u64()
}

fn into_object(action: Value) -> Option<serde_json::Map<String, Value>> {
    match action {
        Value::Object(members) => Some(members),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
