//! Search for obstacles to the next message of the log and to the next commit of a table.
//!
//! Invariant: it changes nothing of the service. It reads a copy of the log, because opening a log writes to it. A log
//! that a service has open is not read, and the output says so.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use eventlog::{Embedded, EventLog};
use messages::{CONTRIBUTIONS_TOPIC, OUTCOMES_TOPIC, Outcome, Submission};
use types::DatasetId;

use super::CheckOutput;
use super::compare::CheckViolation;
use crate::config::{Backend, Config, LogBackend};
use crate::layout::DataLayout;

/// Records in one read of the log.
const RECORDS_PER_READ: usize = 256;

/// A temporary folder that is removed on drop.
struct ScratchFolder(PathBuf);

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // A failure is ignored, since the system cleans the folder of temporary files.
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

/// Decodes every submission and outcome in the embedded log and returns the violations. Returns none if the log is not
/// embedded or does not exist, or if a service has it open.
pub(super) async fn log(
    config: &Config,
    layout: &DataLayout,
    output: &mut CheckOutput,
) -> anyhow::Result<Vec<CheckViolation>> {
    let path = layout.log();
    if config.log.backend != LogBackend::Embedded || !path.exists() {
        return Ok(Vec::new());
    }
    // The lock is held while the log is copied, so that no service writes to it meanwhile.
    let lock = File::open(path.join("lock")).and_then(|file| match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    });
    let lock = match lock {
        Ok(Some(lock)) => Some(lock),
        Ok(None) => {
            output.note("log: not read, as a service has it open; the check of a stopped service reads it")?;
            return Ok(Vec::new());
        }
        // A log that was never opened has no lock file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).context("the lock of the log cannot be taken"),
    };
    let scratch = ScratchFolder(std::env::temp_dir().join(format!("sluice-check-{}", std::process::id())));
    let copied = copy(&path, &scratch.0);
    // A service may start from here on.
    drop(lock);
    copied.with_context(|| format!("the log `{}` cannot be copied to be read", path.display()))?;
    let (copy, options) = (scratch.0.clone(), config.log.options());
    let opened = tokio::task::spawn_blocking(move || Embedded::open(copy, options)).await?;
    let damaged = |error: &eventlog::Error| {
        vec![CheckViolation::new(
            "log_damaged",
            format!("the log `{}` cannot be read: {error}", path.display()),
        )]
    };
    let log = match opened {
        Ok(log) => log,
        Err(error) => return Ok(damaged(&error)),
    };
    let mut violations = Vec::new();
    let mut count = 0;
    for topic in [CONTRIBUTIONS_TOPIC, OUTCOMES_TOPIC] {
        match records(&*log, topic, &mut violations).await {
            Ok(read) => count += read,
            Err(error) => violations.extend(damaged(&error)),
        }
    }
    output.note(format!("log: {count} messages"))?;
    Ok(violations)
}

/// Decodes every record of a topic and returns their number.
async fn records(
    log: &dyn EventLog,
    topic: &str,
    violations: &mut Vec<CheckViolation>,
) -> Result<u64, eventlog::Error> {
    let bounds = log.bounds(topic).await?;
    let mut left: u64 = bounds.iter().map(|bounds| bounds.next - bounds.first).sum();
    let count = left;
    let mut reader = log.recent(topic, u64::MAX).await?;
    while left > 0 {
        let records = reader.next(RECORDS_PER_READ).await?;
        left = left.saturating_sub(records.len() as u64);
        for delivered in records {
            let value = &delivered.record.value;
            let (rule, problem) = if topic == OUTCOMES_TOPIC {
                ("log_outcome", Outcome::decode(value).err())
            } else {
                ("log_submission", Submission::decode(value).err())
            };
            if let Some(problem) = problem {
                let position = delivered.position;
                let place = format!("partition {}, offset {}", position.partition, position.offset);
                violations.push(CheckViolation::new(
                    rule,
                    format!("topic `{topic}`, {place}: {problem}"),
                ));
            }
        }
    }
    Ok(count)
}

/// Copies a folder with its contents. Fails if `to` exists.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    // An error if the folder exists: anybody could have made it among the temporary files.
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Returns a violation for each name in a local table's folder that a commit needs and that is not a regular file.
pub(super) fn commits(config: &Config, layout: &DataLayout, dataset: DatasetId) -> Vec<CheckViolation> {
    if config.objects.backend != Backend::Local {
        return Vec::new();
    }
    let table = layout.tables().join(dataset.to_string());
    let log = table.join("_delta_log");
    for folder in [&table, &log] {
        if folder.symlink_metadata().is_ok() && !folder.is_dir() {
            let detail = format!("`{}` is no folder", folder.display());
            return vec![CheckViolation::new("commit_blocked", detail)];
        }
    }
    let Ok(entries) = fs::read_dir(&log) else {
        return Vec::new();
    };
    let blocked = entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".json"));
        let is_commit = number.is_some_and(|number| number.len() == 20 && number.bytes().all(|b| b.is_ascii_digit()));
        // A commit is put if absent, so anything of that name stops the table for good.
        is_commit && entry.file_type().is_ok_and(|kind| !kind.is_file())
    });
    blocked
        .map(|entry| {
            let path = entry.path();
            let detail = format!("`{}` has the name of a commit and is no file", path.display());
            CheckViolation::new("commit_blocked", detail)
        })
        .collect()
}
