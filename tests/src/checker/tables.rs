//! Rules about one table: what its own files, and what was read from it before, must agree on.

use std::collections::{BTreeMap, HashMap};

use super::Violation;
use super::delta::Table;
use super::record::Fingerprint;
use crate::history::Event;

/// Domain separation of content roots, as `catalog/proof/FORMAT.md` specifies it.
const ROOT: &str = "sluice 2026-11 content root v1";

/// Versions gapless from 1, counts and content roots as stated, records distinct, hidden columns true.
pub(super) fn check_itself(slug: &str, table: &Table, violations: &mut Vec<Violation>) {
    let mut report = |rule, detail: String| violations.push(Violation::new(rule, format!("{slug}: {detail}")));
    let mut seen: HashMap<&str, u64> = HashMap::new();
    let mut keys: HashMap<&[u8], u64> = HashMap::new();
    let mut merged: HashMap<&str, u64> = HashMap::new();
    let mut count = 0;
    let mut root = [0_u8; 32];
    for (index, commit) in table.commits.iter().enumerate() {
        let expected = index as u64 + 1;
        let version = commit.version;
        if version != expected {
            report("version-gap", format!("version {version} where {expected} belongs"));
        }
        if let Some(first) = merged.insert(&commit.contribution, version) {
            report(
                "merged-twice",
                format!("{} is in versions {first} and {version}", commit.contribution),
            );
        }
        let rows = commit.row_count();
        count += rows;
        if commit.accepted != rows || commit.record_count != count {
            let stated = (commit.accepted, commit.record_count);
            report(
                "counts",
                format!("version {version} states {stated:?}, has {:?}", (rows, count)),
            );
        }
        let mut hasher = blake3::Hasher::new_derive_key(ROOT);
        hasher.update(&root);
        for (ordinal, row) in commit.rows().enumerate() {
            let text = row.text.as_str();
            hasher.update(&u32::try_from(text.len()).unwrap().to_le_bytes());
            hasher.update(text.as_bytes());
            let hidden = (row.contribution.as_str(), row.agent.as_str(), row.version, row.ordinal);
            if hidden != (&*commit.contribution, &*commit.agent, version, ordinal as u64) {
                report(
                    "hidden-columns",
                    format!("version {version} row {ordinal} says {hidden:?}"),
                );
            }
            if let Some(first) = keys.insert(&row.key, version) {
                report(
                    "key-twice",
                    format!("one key in versions {first} and {version}: {text}"),
                );
            }
            if let Some(first) = seen.insert(text, version) {
                report(
                    "record-twice",
                    format!("one record in versions {first} and {version}: {text}"),
                );
            }
        }
        root = *hasher.finalize().as_bytes();
        if commit.root != hasher.finalize().to_hex().as_str() {
            report(
                "root",
                format!("version {version} states another content root than its rows have"),
            );
        }
    }
}

/// Every read of a version, whenever it was made, gave the rows that the version has now.
pub(super) fn check_reads(slug: &str, table: &Table, events: &[Event], violations: &mut Vec<Violation>) {
    let mut now = BTreeMap::new();
    let mut fingerprint = Fingerprint::default();
    let mut count = 0;
    now.insert(0, (0, fingerprint.hex()));
    for commit in &table.commits {
        for row in commit.rows() {
            fingerprint.push_text(&row.text);
        }
        count += commit.row_count();
        now.insert(commit.version, (count, fingerprint.hex()));
    }
    for event in events {
        let Event::Read {
            slug: read,
            version,
            rows,
            fingerprint,
        } = event
        else {
            continue;
        };
        if read != slug {
            continue;
        }
        match now.get(version) {
            None => violations.push(Violation::new(
                "version-lost",
                format!("{slug}: version {version} was read"),
            )),
            Some((count, hash)) if (count, hash) != (rows, fingerprint) => {
                let detail = format!("{slug}: version {version} read as {rows} rows, now has {count} or others");
                violations.push(Violation::new("version-changed", detail));
            }
            Some(_) => {}
        }
    }
}

/// Every list of versions that was read agrees with the commits, without a gap below its newest.
pub(super) fn check_listed(slug: &str, table: &Table, events: &[Event], violations: &mut Vec<Violation>) {
    let mut report = |rule, detail: String| violations.push(Violation::new(rule, format!("{slug}: {detail}")));
    for event in events {
        let Event::Found {
            slug: found, versions, ..
        } = event
        else {
            continue;
        };
        if found != slug {
            continue;
        }
        let mut expected = None;
        for listed in versions.as_array().into_iter().flatten() {
            let number = |name: &str| listed[name].as_u64().unwrap_or(u64::MAX);
            let version = number("version");
            if expected.is_some_and(|expected| expected != version) {
                report(
                    "listed-gap",
                    format!("version {version} is listed where {expected:?} belongs"),
                );
            }
            expected = version.checked_sub(1);
            let commit = table.commits.iter().find(|commit| commit.version == version);
            let agrees = commit.is_some_and(|commit| {
                let stored = (commit.row_count(), commit.record_count);
                stored == (number("acceptedCount"), number("recordCount"))
                    && listed["contributionId"] == *commit.contribution
                    && listed["root"] == *commit.root
            });
            if !agrees {
                report("listed-differs", format!("{listed} is listed"));
            }
        }
    }
}
