//! Check of a compaction against the parts that it replaced: the same rows, in the same order, of the same versions.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use types::Contract;

use super::Checker;
use super::rows::{self, ExpectedRows};
use crate::Error;

/// A part that a reader of the latest commit reads.
pub(super) struct LivePart {
    name: String,
    first: u64,
    last: u64,
    rows: u64,
}

impl LivePart {
    /// Creates the entry of a part that has rows of one version.
    pub(super) fn of(name: &str, version: u64, rows: u64) -> Self {
        Self {
            name: name.to_owned(),
            first: version,
            last: version,
            rows,
        }
    }
}

/// Content of a version, found in the parts of its merge.
#[derive(Clone)]
pub(super) struct MergedContent {
    pub(super) contribution: String,
    pub(super) agent: String,
    pub(super) rows: u64,
    /// Content root of the version. `None` if some rows could not be read.
    pub(super) root: Option<[u8; 32]>,
}

/// Statements of a compaction's commit.
struct CompactionCommit<'a> {
    replaces: Vec<&'a str>,
    add: &'a Value,
    name: &'a str,
    first: u64,
    last: u64,
    rows: u64,
}

fn parse(actions: &[Value]) -> Option<CompactionCommit<'_>> {
    let of = |name: &'static str| actions.iter().filter_map(move |action| action.get(name));
    let one = |name: &'static str| {
        let mut all = of(name);
        all.next().filter(|_| all.next().is_none())
    };
    let (info, add) = (&one("commitInfo")?["compaction"], one("add")?);
    let changes = of("remove").chain([add]).any(|action| action["dataChange"] != false);
    let known = of("remove").count() + 2 == actions.len();
    let replaces = of("remove").map(|remove| remove["path"].as_str());
    let stats: Value = serde_json::from_str(add["stats"].as_str()?).ok()?;
    (known && !changes).then_some(CompactionCommit {
        replaces: replaces.collect::<Option<_>>()?,
        add,
        name: add["path"].as_str()?,
        first: info["firstVersion"].as_u64()?,
        last: info["lastVersion"].as_u64()?,
        rows: stats["numRecords"].as_u64()?,
    })
}

impl Checker {
    /// Checks a commit that removes parts, and replaces them by its part in the list of live parts.
    pub(super) async fn compaction(
        &mut self,
        path: &str,
        actions: &[Value],
        contract: Option<&Arc<Contract>>,
    ) -> Result<(), Error> {
        let Some(parsed) = parse(actions) else {
            self.violation("compaction", path, "it removes parts, but is not a compaction");
            return Ok(());
        };
        let start = self.live.iter().position(|live| live.name == parsed.replaces[0]);
        let start = start.unwrap_or(self.live.len());
        let place = start..start + parsed.replaces.len();
        // A range beyond the list gives no parts, and the comparison below reports it.
        let replaced = self.live.get(place.clone()).unwrap_or_default();
        let named = replaced
            .iter()
            .map(|live| live.name.as_str())
            .eq(parsed.replaces.iter().copied());
        let span = replaced.first().zip(replaced.last());
        let versions = span.map(|(first, last)| (first.first, last.last));
        let rows: u64 = replaced.iter().map(|live| live.rows).sum();
        if !named || versions != Some((parsed.first, parsed.last)) || rows != parsed.rows {
            self.violation(
                "compaction",
                path,
                "it does not remove the rows that it adds, or removes parts that are not in the table",
            );
            return Ok(());
        }
        let part = format!("{}/{}", self.dataset, parsed.name);
        self.named.insert(part.clone());
        match self.get(&part).await? {
            None => self.violation("part_missing", &part, &format!("`{path}` names it")),
            Some(bytes) => {
                self.hash(&part, &bytes, parsed.add);
                if let Err(problem) = self.same_rows(&part, bytes, &parsed, contract) {
                    self.violation("compaction", &part, &problem);
                }
            }
        }
        let live = LivePart {
            name: parsed.name.to_owned(),
            first: parsed.first,
            last: parsed.last,
            rows,
        };
        self.live.splice(place, [live]);
        Ok(())
    }

    /// Checks that a compacted part has the rows of its versions and that the rows give the versions' content roots.
    fn same_rows(
        &mut self,
        part: &str,
        bytes: Bytes,
        parsed: &CompactionCommit<'_>,
        contract: Option<&Arc<Contract>>,
    ) -> Result<(), String> {
        let batches = crate::part::decode(bytes).map_err(|error| error.to_string())?;
        // Version 1 extends the empty root.
        let before = match parsed.first {
            1 => Some([0; 32]),
            first => self.merged.get(&(first - 1)).and_then(|merged| merged.root),
        };
        let after = |root: Option<[u8; 32]>| root.map(|root| rows::extension(&root));
        let (mut version, mut ordinal, mut hasher) = (parsed.first, 0, after(before));
        for batch in batches {
            let batch = batch.map_err(|error| error.to_string())?;
            let mut at = 0;
            // A batch may have rows of several versions. Each version's rows are checked on their own.
            while at < batch.num_rows() {
                let merged = self
                    .merged
                    .get(&version)
                    .filter(|merged| merged.rows > 0 && version <= parsed.last);
                let merged = merged.cloned().ok_or("it has rows of versions outside its range")?;
                let take = usize::try_from(merged.rows - ordinal).unwrap_or(usize::MAX);
                let taken = batch.slice(at, take.min(batch.num_rows() - at));
                let expected = ExpectedRows {
                    number: version,
                    contribution: &merged.contribution,
                    agent: &merged.agent,
                    contract,
                    first: 0,
                    new: false,
                };
                self.batch(part, &taken, ordinal, &expected, hasher.as_mut())?;
                at += taken.num_rows();
                ordinal += taken.num_rows() as u64;
                if ordinal == merged.rows {
                    let root = hasher.map(|hasher| *hasher.finalize().as_bytes());
                    if root.is_some() && merged.root.is_some() && root != merged.root {
                        return Err(format!(
                            "the content root of its rows of version {version} differs from the version's"
                        ));
                    }
                    (version, ordinal, hasher) = (version + 1, 0, after(merged.root));
                }
            }
        }
        if (version, ordinal) == (parsed.last + 1, 0) {
            Ok(())
        } else {
            Err("it lacks rows of the last versions of its range".to_owned())
        }
    }
}
