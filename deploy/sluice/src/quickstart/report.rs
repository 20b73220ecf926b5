//! Output of the quickstart.

use std::io;

use client::model::{Contribution, Page, Project, Tally};
use serde_json::Value;

use crate::terminal::line;

/// The most versions that are shown.
const MAX_VERSIONS: usize = 4;
/// The most records of a page that are shown.
const MAX_RECORDS: usize = 3;

/// Prints a heading after an empty line.
pub(super) fn head(text: &str) -> io::Result<()> {
    line(&format!("\n{text}"))
}

/// Prints a name and its value in two columns.
pub(super) fn item(name: &str, text: &str) -> io::Result<()> {
    line(&format!("  {name:<26} {text}"))
}

/// Formats a number with commas between the thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Prints the outcome of a batch, with the reasons of the refused records.
pub(super) fn outcome(name: &str, batch: &Contribution) -> io::Result<()> {
    let dropped: u64 = batch.tallies.iter().map(|tally| tally.dropped).sum();
    let text = match (batch.merged_version, &batch.reason) {
        (Some(version), _) => {
            let accepted = batch.accepted_count.unwrap_or_default();
            format!("merged as version {version}: {accepted} new records, {dropped} duplicates dropped")
        }
        (None, Some(reason)) => format!("{} ({}): {}", batch.status, reason.code, reason.message),
        (None, None) => batch.status.clone(),
    };
    item(name, &text)?;
    // Passed and dropped rows have no broken rule to show.
    for verdict in batch.verdicts.iter().filter(|verdict| verdict.verdict == "refuse") {
        for reason in &verdict.reasons {
            let place = format!("    record {} {}", verdict.row, reason.path);
            line(&format!(
                "  {place:<26} {}, {}: expected {}, found {}",
                reason.gate, reason.code, reason.expected, reason.actual
            ))?;
        }
    }
    Ok(())
}

/// Prints the newest versions of a project.
pub(super) fn versions(project: &Project) -> io::Result<()> {
    head(&format!(
        "{} versions, each immutable; the newest:",
        grouped(project.version_count)
    ))?;
    line("  version   records       new   content root")?;
    for version in project.versions.iter().take(MAX_VERSIONS) {
        let root: String = version
            .more
            // The client's type of a version has no root, so it is read from the other fields.
            .get("root")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .chars()
            .take(16)
            .collect();
        line(&format!(
            "  {:>7}   {:>7}   {:>7}   {root}…",
            version.version,
            grouped(version.record_count),
            grouped(version.accepted_count),
        ))?;
    }
    Ok(())
}

/// Prints the sum of each gate's tallies over all batches.
pub(super) fn gates(batches: &[Contribution]) -> io::Result<()> {
    let mut sums: Vec<Tally> = Vec::new();
    for tally in batches.iter().flat_map(|batch| &batch.tallies) {
        // A list instead of a map keeps the order of the chain.
        match sums.iter_mut().find(|sum| sum.gate == tally.gate) {
            None => sums.push(tally.clone()),
            Some(sum) => {
                sum.rows += tally.rows;
                sum.passed += tally.passed;
                sum.dropped += tally.dropped;
                sum.refused += tally.refused;
                sum.held += tally.held;
            }
        }
    }
    head("Rows by gate:")?;
    line("  gate                rows    passed   dropped   refused      held")?;
    for sum in &sums {
        line(&format!(
            "  {:<13} {:>10}{:>10}{:>10}{:>10}{:>10}",
            sum.gate,
            grouped(sum.rows),
            grouped(sum.passed),
            grouped(sum.dropped),
            grouped(sum.refused),
            grouped(sum.held)
        ))?;
    }
    Ok(())
}

/// Prints the first records of a page, without their nulls.
pub(super) fn page(page: &Page, offset: u64) -> io::Result<()> {
    let (version, total) = (page.version, grouped(page.total));
    head(&format!(
        "Version {version}, which never changes, from record {} of {total} on:",
        grouped(offset)
    ))?;
    for record in page.items.iter().take(MAX_RECORDS).filter_map(Value::as_object) {
        let mut record = record.clone();
        // Missing optional fields are null, which would fill the line.
        record.retain(|_, value| !value.is_null());
        line(&format!("  {}", Value::Object(record)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (34_888, "34,888"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
