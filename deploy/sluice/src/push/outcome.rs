//! Words for the outcome of a push.

use client::model::Contribution;
use indicatif::HumanCount;

use crate::terminal::shown;

/// Facts about a push beside its outcome.
#[derive(Debug, Default)]
pub(super) struct PushContext<'a> {
    pub(super) slug: &'a str,
    /// Number of a record: a row of a Parquet file or a workbook, else a line.
    pub(super) place: &'static str,
    /// Records that this machine refused, with their reasons, before they were sent.
    pub(super) told: u64,
    /// Number of them that are in the file `kept_in`.
    pub(super) kept: u64,
    /// The file that got the refused records.
    pub(super) kept_in: Option<String>,
}

/// Returns the sentence about the outcome of a contribution. Duplicates come first, since they are what people overlook.
pub(super) fn headline(context: &PushContext<'_>, contribution: &Contribution) -> String {
    let slug = shown(context.slug);
    let refused = contribution.refused_count.unwrap_or(0);
    // The service may refuse more than this machine did, and a record that is too long is not kept.
    let kept = match (&context.kept_in, context.kept) {
        (None, _) | (_, 0) => String::new(),
        (Some(file), kept) if kept >= refused => format!(", kept in {}", shown(file)),
        (Some(file), kept) => format!(", {} of them kept in {}", HumanCount(kept), shown(file)),
    };
    if contribution.has_nothing_new() {
        let (records, duplicates) = contribution.duplicates().unwrap_or_default();
        return match (records, refused) {
            (1, 0) => format!("Nothing new: the record is in `{slug}` already."),
            (records, 0) => format!(
                "Nothing new: all {} records are in `{slug}` already.",
                HumanCount(records)
            ),
            (records, refused) => format!(
                "Nothing new: of {} records {} are in `{slug}` already, {} are refused and left out{kept}.",
                HumanCount(records),
                HumanCount(duplicates),
                HumanCount(refused)
            ),
        };
    }
    match (contribution.merged_version, &contribution.reason) {
        (Some(version), _) => {
            // The service says what was left out, and why.
            let merged = contribution.summary.clone();
            let new = HumanCount(contribution.accepted_count.unwrap_or(0));
            let merged = merged.unwrap_or_else(|| format!("{new} records are new"));
            format!("{slug} version {version}: {merged}{kept}.")
        }
        (None, Some(reason)) => {
            let (status, code) = (&contribution.status, &reason.code);
            let message = in_words_of_the_file(context.place, &reason.message);
            format!("{slug}: {status} ({code}): {message}")
        }
        (None, None) => format!("{slug}: {}", contribution.status),
    }
}

/// Returns a message of the service, which counts lines, in the words of the file: line N of what was sent is its row N.
fn in_words_of_the_file(place: &str, message: &str) -> String {
    if place == "line" {
        return message.to_owned();
    }
    message.replacen("on line ", &format!("on {place} "), 1)
}

/// Returns the lines about the outcome of a contribution: tallies of the gates, and the refused records with their reasons,
/// unless they are known.
pub(super) fn outcome(context: &PushContext<'_>, contribution: &Contribution) -> Vec<String> {
    let mut lines = vec![headline(context, contribution)];
    // Of what is merged, or known already, a duplicate is no news, and what was left out is.
    let is_over = contribution.is_merged() || contribution.has_nothing_new();
    let refused = contribution.refused_count.unwrap_or(0);
    if is_over && refused <= context.told {
        return lines;
    }
    let verdicts = contribution.verdicts.iter();
    let verdicts = verdicts.filter(|said| !is_over || said.verdict == "refuse");
    for tally in &contribution.tallies {
        lines.push(format!(
            "  {:<14} {:>12} records: {} passed, {} dropped, {} refused, {} held",
            tally.gate,
            HumanCount(tally.rows).to_string(),
            HumanCount(tally.passed),
            HumanCount(tally.dropped),
            HumanCount(tally.refused),
            HumanCount(tally.held)
        ));
    }
    for verdict in verdicts {
        // The service counts records from 0, people count lines and rows from 1. A line of its own is that of the file.
        let line = verdict.line.unwrap_or(verdict.row + 1);
        for reason in &verdict.reasons {
            let path = if reason.path.is_empty() {
                String::new()
            } else {
                format!(" {}", reason.path)
            };
            let (place, gate, code) = (context.place, &reason.gate, &reason.code);
            let differs = match (reason.expected.as_str(), reason.actual.as_str()) {
                ("", "") => String::new(),
                (expected, actual) => format!(" expected {expected}, found {actual}"),
            };
            lines.push(format!("  {place} {line}{path}:{differs} ({gate}: {code})"));
        }
    }
    lines.push(format!("  contribution   {}", contribution.id));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns the lines about an outcome of a push.
    fn said(contribution: Value) -> Vec<String> {
        let context = PushContext {
            slug: "visits",
            place: "line",
            ..PushContext::default()
        };
        outcome(&context, &serde_json::from_value(contribution).unwrap())
    }

    fn tallies(passed: u64, dropped: u64, refused: u64) -> Value {
        let rows = passed + dropped + refused;
        json!([
            {"gate": "contract", "rows": rows, "passed": rows - refused, "dropped": 0, "refused": refused, "held": 0},
            {"gate": "dedup", "rows": rows - refused, "passed": passed, "dropped": dropped, "refused": 0, "held": 0},
        ])
    }

    fn verdicts() -> Value {
        let reason =
            |code: &str| json!({"gate": "contract", "code": code, "path": "/at", "expected": "a", "actual": "b"});
        json!([
            {"row": 2, "verdict": "drop", "reasons": [reason("duplicate_in_dataset")]},
            {"row": 6, "line": 9, "verdict": "refuse", "reasons": [reason("type")]},
        ])
    }

    #[test]
    fn what_was_left_out_is_said_with_its_reasons_and_never_as_known() {
        let merged = json!({
            "id": "1", "status": "merged", "mergedVersion": 3, "acceptedCount": 6, "refusedCount": 4, "droppedCount": 1,
            "summary": "6 of 11 records are new; 1 duplicate dropped (9.1 %), 4 refused and left out",
            "tallies": tallies(6, 1, 4), "verdicts": verdicts(),
        });
        let expected = "visits version 3: 6 of 11 records are new; 1 duplicate dropped (9.1 %), 4 refused and left out";
        let lines = said(merged.clone());
        assert_eq!(lines[0], format!("{expected}."));
        assert_eq!(
            lines[3..],
            [
                "  line 9 /at: expected a, found b (contract: type)",
                "  contribution   1"
            ]
        );
        // What this machine told before is not told again.
        for (kept, words) in [
            (4, ", kept in left-out.jsonl"),
            (3, ", 3 of them kept in left-out.jsonl"),
            (0, ""),
        ] {
            let context = PushContext {
                slug: "visits",
                place: "line",
                told: 4,
                kept,
                kept_in: Some("left-out.jsonl".to_owned()),
            };
            let lines = outcome(&context, &serde_json::from_value(merged.clone()).unwrap());
            assert_eq!(lines, [format!("{expected}{words}.")]);
        }

        let known = |refused: u64| {
            said(json!({
                "id": "1", "status": "rejected", "reason": {"code": "duplicates", "message": "x"}, "refusedCount": refused,
                "tallies": tallies(0, 6, refused), "verdicts": verdicts(),
            }))
        };
        let expected = "Nothing new: of 10 records 6 are in `visits` already, 4 are refused and left out.";
        assert_eq!((known(4)[0].as_str(), known(4).len()), (expected, 5));
        assert_eq!(known(0), ["Nothing new: all 6 records are in `visits` already."]);
        let rejected =
            json!({"id": "1", "status": "rejected", "reason": {"code": "refused", "message": "x on line 7"}});
        let row = PushContext {
            slug: "visits",
            place: "row",
            ..PushContext::default()
        };
        let lines = outcome(&row, &serde_json::from_value(rejected).unwrap());
        assert_eq!(lines[0], "visits: rejected (refused): x on row 7");
    }
}
