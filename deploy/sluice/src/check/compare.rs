//! Rules between a project's rows in the database and its table.

use std::collections::HashMap;
use std::fmt;

use catalog::check::{CheckedVersion, Report};
use store::{ContributionEntry, ContributionStatus, ProjectEntries, ProjectEntry};
use types::Timestamp;

/// A broken rule, with the place and the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckViolation {
    rule: &'static str,
    detail: String,
}

impl CheckViolation {
    pub(super) const fn new(rule: &'static str, detail: String) -> Self {
        Self { rule, detail }
    }
}

impl fmt::Display for CheckViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.detail)
    }
}

/// Counts of the checked versions, records and contributions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CheckedCounts {
    versions: u64,
    records: u64,
    merged: u64,
    rejected: u64,
    open: u64,
    orphans: u64,
}

impl CheckedCounts {
    fn of(contributions: &[ContributionEntry], report: &Report) -> Self {
        let count = |status: &[ContributionStatus]| {
            let counted = contributions.iter().filter(|entry| status.contains(&entry.status));
            counted.count() as u64
        };
        Self {
            versions: report.versions.len() as u64,
            records: report.records,
            merged: count(&[ContributionStatus::Merged]),
            rejected: count(&[ContributionStatus::Rejected]),
            open: count(&[ContributionStatus::Submitted, ContributionStatus::Waiting]),
            orphans: report.orphans.len() as u64,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.versions += other.versions;
        self.records += other.records;
        self.merged += other.merged;
        self.rejected += other.rejected;
        self.open += other.open;
        self.orphans += other.orphans;
    }
}

impl fmt::Display for CheckedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contributions = self.merged + self.rejected + self.open;
        write!(
            f,
            "{} versions, {} records, {contributions} contributions ({} merged, {} rejected, {} open)",
            self.versions, self.records, self.merged, self.rejected, self.open
        )?;
        if self.orphans > 0 {
            write!(f, ", {} unused files", self.orphans)?;
        }
        Ok(())
    }
}

/// Compares the database before and after with the table in between.
///
/// A contribution without an outcome is a violation if it was acknowledged before `open_since`.
pub(super) fn compare(
    project: &ProjectEntry,
    before: &ProjectEntries,
    report: &Report,
    after: &ProjectEntries,
    open_since: Timestamp,
) -> (CheckedCounts, Vec<CheckViolation>) {
    let mut rules = ComparedRules {
        commits: HashMap::new(),
        violations: Vec::new(),
    };
    for violation in &report.violations {
        rules.break_rule(violation.rule, format!("{}: {}", violation.at, violation.found));
    }
    let mut record_count = 0;
    for version in &report.versions {
        record_count += version.rows;
        rules
            .commits
            .entry(&version.contribution)
            .or_default()
            .push(ComparedVersion { version, record_count });
    }
    // A row that was read after the table may name a version that the report lacks. So a merged contribution must be in
    // the table if it was merged before.
    for entry in &after.contributions {
        rules.status(entry, open_since);
    }
    for entry in &before.contributions {
        rules.merged(entry);
    }
    rules.versions(project, before);
    rules.head(before, report);
    rules.known(after);
    if report.was_deleted {
        rules.break_rule("deleted_table", "its table was deleted, and it was not".to_owned());
    }
    (CheckedCounts::of(&after.contributions, report), rules.violations)
}

/// Checks a dataset that was deleted: it has nothing open, and no table once it was deleted before `open_since`.
pub(super) fn compare_deleted(
    report: &Report,
    after: &ProjectEntries,
    deleted_at: Timestamp,
    open_since: Timestamp,
) -> (CheckedCounts, Vec<CheckViolation>) {
    let mut rules = ComparedRules {
        commits: HashMap::new(),
        violations: Vec::new(),
    };
    for entry in &after.contributions {
        rules.status(entry, open_since);
    }
    // A restored copy has no folder of a table that was deleted before.
    if !report.versions.is_empty() && deleted_at < open_since {
        let detail = format!("it was deleted at {deleted_at}, and its table was not; look for a job that failed");
        rules.break_rule("deleted_table", detail);
    }
    (CheckedCounts::of(&after.contributions, report), rules.violations)
}

/// A version of the table, with the number of records up to it.
struct ComparedVersion<'a> {
    version: &'a CheckedVersion,
    record_count: u64,
}

struct ComparedRules<'a> {
    /// The commits by the id of their contribution.
    commits: HashMap<&'a str, Vec<ComparedVersion<'a>>>,
    violations: Vec<CheckViolation>,
}

impl ComparedRules<'_> {
    fn break_rule(&mut self, rule: &'static str, detail: String) {
        self.violations.push(CheckViolation { rule, detail });
    }

    /// Checks that a contribution is in the outbox exactly while it is open, and that it is not open for too long.
    fn status(&mut self, entry: &ContributionEntry, open_since: Timestamp) {
        let (id, status) = (entry.id, entry.status);
        if status.is_terminal() == entry.in_outbox {
            let place = if entry.in_outbox { "in" } else { "not in" };
            self.break_rule(
                "outbox",
                format!("contribution {id} is {status} and {place} the outbox"),
            );
        }
        if !status.is_terminal() && entry.submitted_at < open_since {
            self.break_rule(
                "open_too_long",
                format!("contribution {id} is {status} since {}", entry.submitted_at),
            );
        }
    }

    /// Checks that a merged contribution is one commit that agrees with it, and that a rejected one is none.
    fn merged(&mut self, entry: &ContributionEntry) {
        // The number of a lost version may belong to another contribution by now.
        if entry.lost {
            return;
        }
        let id = entry.id.to_string();
        let found = match (
            entry.status,
            self.commits.get(id.as_str()).map_or(&[][..], Vec::as_slice),
        ) {
            (ContributionStatus::Merged, [commit]) => differences(entry, commit),
            (ContributionStatus::Merged, commits) => {
                Some(format!("is merged, but is in {} versions of the table", commits.len()))
            }
            (ContributionStatus::Rejected, [_, ..]) => Some("is rejected, but is in a version of the table".to_owned()),
            _ => None,
        };
        if let Some(found) = found {
            self.break_rule("outcome", format!("contribution {id} {found}"));
        }
    }

    /// Checks that the versions in the database have no gaps, and that each agrees with its contribution.
    fn versions(&mut self, project: &ProjectEntry, entries: &ProjectEntries) {
        let contributions: HashMap<_, _> = entries.contributions.iter().map(|entry| (entry.id, entry)).collect();
        for (expected, entry) in (1..).zip(&entries.versions) {
            let version = entry.version;
            if version.0 != expected {
                self.break_rule(
                    "version_gap",
                    format!("expected version {expected}, found version {version}"),
                );
            }
            let agrees = contributions.get(&entry.contribution).is_some_and(|contribution| {
                contribution.version == Some(version)
                    && contribution.agent == entry.agent
                    && contribution.accepted == Some(entry.accepted)
                    && contribution.record_count == Some(entry.record_count)
                    && contribution.root.as_ref() == Some(&entry.root)
            });
            if !agrees {
                let id = entry.contribution;
                self.break_rule(
                    "version_row",
                    format!("version {version} differs from its contribution {id}"),
                );
            }
        }
        let merged = entries
            .contributions
            .iter()
            .filter(|entry| entry.version.is_some() && !entry.lost)
            .count();
        if merged != entries.versions.len() {
            let versions = entries.versions.len();
            self.break_rule(
                "version_row",
                format!("{merged} contributions are merged, but the database has {versions} versions"),
            );
        }
        // The project was read before the versions, so only the version it names is compared: there may be later ones.
        let recorded = entries.versions.iter().find(|entry| entry.version == project.version);
        if project.version.0 > 0 && recorded.is_none_or(|entry| entry.record_count != project.record_count) {
            let detail = format!(
                "the project has version {} with {} records, which no version row confirms",
                project.version, project.record_count
            );
            self.break_rule("project_head", detail);
        }
    }

    /// Checks that the table has the latest version in the database, with the same content root.
    fn head(&mut self, before: &ProjectEntries, report: &Report) {
        let Some(known) = before.versions.last() else {
            return;
        };
        let found = report
            .versions
            .iter()
            .find(|version| version.version == known.version.0);
        let latest = report.versions.last().map_or(0, |version| version.version);
        let detail = match found {
            None => format!(
                "it is known to have version {}, and its latest is {latest}",
                known.version
            ),
            // A root that could not be computed has a violation of its own.
            Some(found) => match &found.root {
                Some(root) if *root != known.root => {
                    format!(
                        "version {} has root {root} and is known with root {}",
                        known.version, known.root
                    )
                }
                _ => return,
            },
        };
        self.break_rule(
            "history_lost",
            format!("{detail}; restore the table, or accept the loss with `sluice admin table accept-loss`"),
        );
    }

    /// Checks that every commit names a contribution in the database.
    fn known(&mut self, after: &ProjectEntries) {
        let known: HashMap<_, _> = after
            .contributions
            .iter()
            .map(|entry| (entry.id.to_string(), entry))
            .collect();
        let unknown: Vec<_> = self
            .commits
            .keys()
            .filter(|id| !known.contains_key(**id))
            .map(ToString::to_string)
            .collect();
        for id in unknown {
            self.break_rule(
                "commit_without_row",
                format!("contribution {id} is in the table, but not in the database"),
            );
        }
    }
}

/// Returns a violation if the loss of versions is accepted in the database but not recorded beside the table.
pub(super) fn untold(versions: usize) -> Option<CheckViolation> {
    (versions > 0).then(|| CheckViolation {
        rule: "loss_untold",
        detail: format!(
            "the loss of {versions} versions is accepted and the workers were not told; run `sluice admin table \
             accept-loss` again"
        ),
    })
}

/// Returns the disagreement of a merged contribution and its commit, if there is one.
fn differences(entry: &ContributionEntry, commit: &ComparedVersion<'_>) -> Option<String> {
    let recorded = (
        entry.version.map(|version| version.0),
        entry.accepted,
        entry.record_count,
    );
    let is = (
        Some(commit.version.version),
        Some(commit.version.rows),
        Some(commit.record_count),
    );
    if recorded != is {
        return Some(format!(
            "has (version, accepted, records) {recorded:?} in the database and {is:?} in the table"
        ));
    }
    // A root that could not be computed has a violation of its own.
    let root = commit.version.root.as_ref()?;
    (entry.root.as_ref() != Some(root))
        .then(|| format!("has the root {:?} in the database and {root} in the table", entry.root))
}

#[cfg(test)]
mod tests;
