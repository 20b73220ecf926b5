//! Each rule of the check, broken once.

use store::VersionEntry;
use types::{AgentId, ContributionId, DatasetId, Version};

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

fn contribution(id: u8, status: ContributionStatus) -> ContributionEntry {
    ContributionEntry {
        id: ContributionId::from_bytes([id; 16]),
        agent: AgentId::from_bytes([9; 16]),
        status,
        generation: 0,
        rows: 5,
        submitted_at: NOW,
        decided_at: status.is_terminal().then_some(NOW),
        version: None,
        accepted: None,
        record_count: None,
        root: None,
        reject_code: None,
        lost: false,
        in_outbox: !status.is_terminal(),
    }
}

fn merged(id: u8, version: u64) -> ContributionEntry {
    ContributionEntry {
        version: Some(Version(version)),
        accepted: Some(5),
        record_count: Some(5 * version),
        root: Some(format!("root-{version}")),
        ..contribution(id, ContributionStatus::Merged)
    }
}

fn row(entry: &ContributionEntry) -> VersionEntry {
    VersionEntry {
        version: entry.version.unwrap(),
        contribution: entry.id,
        agent: entry.agent,
        accepted: entry.accepted.unwrap(),
        record_count: entry.record_count.unwrap(),
        root: entry.root.clone().unwrap(),
    }
}

fn entries(contributions: &[ContributionEntry]) -> ProjectEntries {
    ProjectEntries {
        contributions: contributions.to_vec(),
        versions: contributions
            .iter()
            .filter(|entry| entry.version.is_some())
            .map(row)
            .collect(),
    }
}

/// A table whose versions are these contributions in order, five records each.
fn table(ids: &[u8]) -> Report {
    let version = |(version, id): (u64, &u8)| CheckedVersion {
        version,
        contribution: ContributionId::from_bytes([*id; 16]).to_string(),
        rows: 5,
        root: Some(format!("root-{version}")),
    };
    Report {
        versions: (1..).zip(ids).map(version).collect(),
        records: 5 * ids.len() as u64,
        ..Report::default()
    }
}

fn project(version: u64) -> ProjectEntry {
    ProjectEntry {
        id: DatasetId::from_bytes([7; 16]),
        slug: "weather".to_owned(),
        version: Version(version),
        record_count: 5 * version,
        deleted_at: None,
    }
}

/// Returns the broken rules if the database is the same before and after.
fn broken(version: u64, recorded: &ProjectEntries, table: &Report) -> Vec<&'static str> {
    let (_, violations) = compare(&project(version), recorded, table, recorded, NOW);
    violations.iter().map(|violation| violation.rule).collect()
}

#[test]
fn a_sound_project_breaks_no_rule_and_is_counted() {
    let recorded = entries(&[
        merged(1, 1),
        merged(2, 2),
        contribution(3, ContributionStatus::Rejected),
    ]);
    let (counts, violations) = compare(&project(2), &recorded, &table(&[1, 2]), &recorded, NOW);
    assert_eq!(violations, []);
    assert_eq!(
        counts.to_string(),
        "2 versions, 10 records, 3 contributions (2 merged, 1 rejected, 0 open)"
    );
}

#[test]
fn work_that_goes_on_is_no_violation() {
    let open = contribution(2, ContributionStatus::Submitted);
    let before = entries(&[merged(1, 1), open]);
    let after = entries(&[merged(1, 1), merged(2, 2), merged(3, 3)]);
    for (after, table) in [
        (&before, table(&[1])),
        (&before, table(&[1, 2])),
        (&after, table(&[1, 2, 3])),
    ] {
        let (_, violations) = compare(&project(1), &before, &table, after, NOW);
        assert_eq!(violations, []);
    }
}

#[test]
fn every_broken_rule_is_named() {
    let lost = entries(&[merged(1, 1), merged(2, 2)]);
    assert_eq!(
        broken(2, &lost, &table(&[1])),
        ["outcome", "history_lost"],
        "a merged batch that is in no version"
    );
    assert_eq!(
        broken(2, &lost, &table(&[1, 2, 2])),
        ["outcome"],
        "a batch that is in two versions"
    );
    assert_eq!(
        broken(2, &lost, &table(&[2, 1])),
        ["outcome", "outcome"],
        "swapped versions"
    );
    assert_eq!(
        broken(1, &entries(&[merged(1, 1)]), &table(&[1, 2])),
        ["commit_without_row"]
    );
    let rejected = entries(&[contribution(1, ContributionStatus::Rejected)]);
    assert_eq!(
        broken(0, &rejected, &table(&[1])),
        ["outcome"],
        "a rejected batch that is in a version"
    );

    let mut gap = entries(&[merged(1, 1), merged(2, 2)]);
    gap.versions.remove(0);
    assert_eq!(broken(2, &gap, &table(&[1, 2])), ["version_gap", "version_row"]);
    assert_eq!(broken(3, &entries(&[merged(1, 1)]), &table(&[1])), ["project_head"]);

    let mut kept = merged(1, 1);
    kept.in_outbox = true;
    assert_eq!(broken(1, &entries(&[kept]), &table(&[1])), ["outbox"]);
    let mut old = contribution(1, ContributionStatus::Waiting);
    old.submitted_at = Timestamp::from_micros(1);
    assert_eq!(broken(0, &entries(&[old]), &table(&[])), ["open_too_long"]);

    let mut other_root = merged(1, 1);
    other_root.root = Some("root-x".to_owned());
    assert_eq!(
        broken(1, &entries(&[other_root]), &table(&[1])),
        ["outcome", "history_lost"]
    );
}

#[test]
fn a_deleted_dataset_has_nothing_open_and_in_time_no_table() {
    let gone = Report {
        was_deleted: true,
        ..Report::default()
    };
    let of_deleted = |recorded: &ProjectEntries, report: &Report, deleted_at, open_since| {
        let (_, violations) = compare_deleted(report, recorded, deleted_at, open_since);
        violations.iter().map(|violation| violation.rule).collect::<Vec<_>>()
    };
    let later = NOW.plus(std::time::Duration::from_secs(1));
    // Its merged contributions are in no version any more.
    let decided = entries(&[contribution(1, ContributionStatus::Rejected)]);
    assert_eq!(of_deleted(&decided, &gone, NOW, later), [""; 0]);
    assert_eq!(
        of_deleted(&decided, &table(&[1]), NOW, NOW),
        [""; 0],
        "the job is under way"
    );
    assert_eq!(of_deleted(&decided, &table(&[1]), NOW, later), ["deleted_table"]);
    let open = entries(&[contribution(1, ContributionStatus::Waiting)]);
    assert_eq!(of_deleted(&open, &gone, NOW, later), ["open_too_long"]);
    // And none of a dataset that was not deleted is taken for one that was.
    assert_eq!(broken(0, &entries(&[]), &gone), ["deleted_table"]);
}
