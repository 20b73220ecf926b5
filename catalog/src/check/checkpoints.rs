//! Check of checkpoints: a checkpoint has the same actions as the log.
//!
//! Invariant: a checkpoint is compared with the commits up to its own, as they are read. After a commit that cannot be
//! read, no checkpoint is compared.

use std::collections::{BTreeMap, HashMap};

use arrow::json::LineDelimitedWriter;
use bytes::Bytes;
use serde_json::Value;

use super::Checker;
use crate::Error;

/// Name of the rule.
const CHECKPOINT_RULE: &str = "checkpoint";
/// Time in milliseconds that a `remove` must stay in checkpoints: a week (Delta protocol, *Table Properties*). It is
/// stated here again, so that the check does not share the writer's constant.
const TOMBSTONE_RETENTION_MS: i64 = 604_800_000;

/// Actions by kind and subject: a part's path, a table's id, or nothing.
type Actions = BTreeMap<(&'static str, String), Value>;

/// Checkpoints of a table, and the state of the log to compare them with.
#[derive(Default)]
pub(super) struct Checkpoints {
    /// Paths by commit number.
    files: BTreeMap<u64, String>,
    /// Bytes of the file `_last_checkpoint`, if it exists.
    last: Option<Bytes>,
    /// Number of actions of the readable checkpoints, by commit number.
    sizes: HashMap<u64, usize>,
    /// State of the log so far. `None` after an unreadable commit, or if no checkpoint is left.
    log: Option<CheckedLog>,
}

#[derive(Default)]
struct CheckedLog {
    actions: Actions,
    /// Time of the last commit, in milliseconds since the epoch.
    at: i64,
}

impl CheckedLog {
    fn apply(&mut self, actions: &[Value]) {
        for action in actions {
            if let Some(at) = action["commitInfo"]["timestamp"].as_i64() {
                self.at = at;
            }
            let Some((key, said)) = key_of(action) else { continue };
            let mut said = said.clone();
            // `add` and `remove` of one part cancel each other.
            let other = match key.0 {
                "add" => "remove",
                "remove" => "add",
                _ => "",
            };
            if !other.is_empty() {
                self.actions.remove(&(other, key.1.clone()));
                said["dataChange"] = Value::Bool(false);
                // The hashes of blocks are in commits only.
                if let Some(Value::Object(tags)) = said.get_mut("tags") {
                    tags.remove("blocks");
                }
            }
            self.actions.insert(key, said);
        }
    }

    /// Returns a description of the first difference, or `None` if there is none.
    fn difference(&self, found: &Actions) -> Option<String> {
        // A `remove` may be left out once its retention is over.
        let expired =
            |said: &Value| said["deletionTimestamp"].as_i64() < Some(self.at.saturating_sub(TOMBSTONE_RETENTION_MS));
        let missing = self.actions.iter().find_map(|(key, said)| match found.get(key) {
            Some(told) => (told != said).then_some((key, "differs from the log")),
            None => (key.0 != "remove" || !expired(said)).then_some((key, "is missing")),
        });
        let added = || found.keys().find(|key| !self.actions.contains_key(*key));
        let ((kind, about), how) = missing.or_else(|| Some((added()?, "is missing from the log")))?;
        Some(format!("`{kind}` of `{about}` {how}"))
    }
}

/// Returns the kind, subject and content of an action. Returns `None` for an action that checkpoints do not have.
fn key_of(action: &Value) -> Option<((&'static str, String), &Value)> {
    let about = |kind: &'static str, member: &str| {
        let said = action.get(kind).filter(|said| said.is_object())?;
        Some(((kind, said[member].as_str().unwrap_or_default().to_owned()), said))
    };
    let of_files = about("add", "path").or_else(|| about("remove", "path"));
    let others = || about("txn", "appId").or_else(|| about("metaData", "id"));
    of_files.or_else(others).or_else(|| about("protocol", ""))
}

/// Decodes a checkpoint. Returns its actions and its number of rows.
fn decode(bytes: Bytes) -> Result<(Actions, usize), String> {
    let mut lines = LineDelimitedWriter::new(Vec::new());
    for batch in crate::part::decode(bytes).map_err(|error| error.to_string())? {
        let batch = batch.map_err(|error| error.to_string())?;
        lines.write(&batch).map_err(|error| error.to_string())?;
    }
    lines.finish().map_err(|error| error.to_string())?;
    let (mut actions, mut rows) = (Actions::new(), 0);
    for line in lines.into_inner().split(|&byte| byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        rows += 1;
        let action: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let (key, said) = key_of(&action).ok_or("one of its rows is not an action")?;
        if actions.insert(key, said.clone()).is_some() {
            return Err("it has two actions about the same file or table".to_owned());
        }
    }
    Ok((actions, rows))
}

/// Decodes a checkpoint that may be damaged.
async fn decode_untrusted(bytes: Bytes) -> Result<(Actions, usize), String> {
    // The Parquet reader panics on some damaged files. A task turns the panic into an error.
    let decoded = tokio::task::spawn_blocking(move || decode(bytes)).await;
    decoded.unwrap_or_else(|_ended| Err("the Parquet reader panicked on it".to_owned()))
}

impl Checker {
    /// Finds the checkpoints. Runs before the commits are listed, so that the list has the commit of each checkpoint.
    pub(super) async fn find_checkpoints(&mut self) -> Result<(), Error> {
        let last = self.get(&self.last_checkpoint()).await?;
        let mut files = BTreeMap::new();
        for (stem, path) in self.list("_delta_log", ".parquet").await? {
            let number = stem.strip_suffix(".checkpoint").filter(|number| number.len() == 20);
            match number.and_then(|number| number.parse().ok()) {
                Some(number) => drop(files.insert(number, path)),
                None => self.violation(CHECKPOINT_RULE, &path, "its name is not a checkpoint name"),
            }
        }
        self.checkpoints = Checkpoints {
            log: (!files.is_empty()).then(CheckedLog::default),
            files,
            last,
            sizes: HashMap::new(),
        };
        Ok(())
    }

    fn last_checkpoint(&self) -> String {
        format!("{}/_delta_log/_last_checkpoint", self.dataset)
    }

    /// Applies the next commit, or `None` for one that cannot be read. Then checks the checkpoint of that commit, if
    /// there is one.
    pub(super) async fn checkpoint(&mut self, number: u64, actions: Option<&[Value]>) -> Result<(), Error> {
        match (actions, &mut self.checkpoints.log) {
            (Some(actions), Some(log)) => log.apply(actions),
            _ => self.checkpoints.log = None,
        }
        let Some(path) = self.checkpoints.files.remove(&number) else {
            return Ok(());
        };
        let Some(bytes) = self.get(&path).await? else {
            return Ok(());
        };
        match decode_untrusted(bytes).await {
            Ok((found, rows)) => {
                self.checkpoints.sizes.insert(number, rows);
                let log = self.checkpoints.log.as_ref();
                if let Some(difference) = log.and_then(|log| log.difference(&found)) {
                    self.violation(CHECKPOINT_RULE, &path, &difference);
                }
            }
            Err(problem) => self.violation(CHECKPOINT_RULE, &path, &problem),
        }
        // No checkpoint is left to compare, so the state of the log is not needed any more.
        if self.checkpoints.files.is_empty() {
            self.checkpoints.log = None;
        }
        Ok(())
    }

    /// Reports checkpoints without a commit and checks `_last_checkpoint`. Runs after the last commit.
    pub(super) fn checkpoints_are_of_commits(&mut self) {
        let Checkpoints { files, last, sizes, .. } = std::mem::take(&mut self.checkpoints);
        for path in files.values() {
            self.violation(CHECKPOINT_RULE, path, "the log has no commit with its number");
        }
        let Some(last) = last else { return };
        let path = self.last_checkpoint();
        let told: Value = match serde_json::from_slice(&last) {
            Ok(told) => told,
            Err(error) => return self.violation(CHECKPOINT_RULE, &path, &error),
        };
        let size = told["version"].as_u64().and_then(|number| sizes.get(&number));
        if size.is_none() || told["size"].as_u64() != size.map(|size| *size as u64) {
            self.violation(CHECKPOINT_RULE, &path, "it does not describe an existing checkpoint");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, StringArray, StructArray};
    use arrow::datatypes::{DataType, Field};
    use arrow::record_batch::RecordBatch;
    use parquet::arrow::ArrowWriter;

    use super::*;

    /// A file with the removals of some parts.
    fn file() -> Vec<u8> {
        let paths: ArrayRef = Arc::new(StringArray::from_iter_values(
            (0..40).map(|part| format!("part-{part}")),
        ));
        let path = Arc::new(Field::new("path", DataType::Utf8, true));
        let removals: ArrayRef = Arc::new(StructArray::from(vec![(path, paths)]));
        let rows = RecordBatch::try_from_iter([("remove", removals)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.into_inner().unwrap()
    }

    #[tokio::test]
    async fn a_file_with_any_bit_changed_is_read_or_is_not_and_ends_nothing() {
        let good = file();
        let (actions, rows) = decode_untrusted(good.clone().into()).await.unwrap();
        assert_eq!((actions.len(), rows), (40, 40));
        let mut refused = 0;
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            refused += usize::from(decode_untrusted(bytes.into()).await.is_err());
        }
        assert!(refused > good.len(), "{refused} of {} bits", good.len() * 8);
        for length in 0..good.len() {
            assert!(
                decode_untrusted(good[..length].to_vec().into()).await.is_err(),
                "{length}"
            );
        }
    }
}
