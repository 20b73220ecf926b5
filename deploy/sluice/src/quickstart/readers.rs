//! The steps of a reader: queries a version, compares it with another, pulls it and verifies it offline.
//!
//! Invariant: as in the rest of the quickstart, every step uses the public interface.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use client::{KnownKeys, Pull, Verify};
use indicatif::HumanBytes;

use super::QuickstartStage;
use super::report::{grouped, head, item};
use crate::query;
use crate::terminal::line;

/// The query that is shown.
const SAMPLE_STATEMENT: &str = "SELECT category, count(*) AS characters, min(name) AS \"for example\" FROM records \
                        GROUP BY category ORDER BY characters DESC, category LIMIT 4";
/// Folder in the data directory that versions are pulled to.
const PULLED_FOLDER: &str = "pulled";

/// Runs the steps for the version `latest` and prints their results.
pub(super) async fn show(stage: &QuickstartStage, data: &Path, latest: u64) -> anyhow::Result<()> {
    head(&format!("Version {latest} queried in SQL, in a sandboxed process:"))?;
    line(&format!("  {SAMPLE_STATEMENT}\n"))?;
    let answer = stage
        .client
        .query(&stage.slug, SAMPLE_STATEMENT, Some(latest), None)
        .await?;
    for row in query::table(&answer).lines() {
        line(&format!("  {row}"))?;
    }
    difference(stage, latest).await?;
    taken_along(stage, data, latest).await
}

async fn difference(stage: &QuickstartStage, latest: u64) -> anyhow::Result<()> {
    // Two versions back, so that the diff has more than one contribution.
    let from = latest.saturating_sub(2);
    let diff = stage.client.diff(&stage.slug, from, latest, 0, 1).await?;
    head(&format!(
        "From version {from} to {latest}: {} records, by",
        grouped(diff.appended_count)
    ))?;
    for one in &diff.contributions {
        let accepted = grouped(one.accepted_count);
        let text = format!(
            "{accepted} records of {}, contribution {}",
            one.contributor, one.contribution_id
        );
        item(&format!("version {}", one.version), &text)?;
    }
    for appended in &diff.items {
        let name = appended.record["name"].as_str().unwrap_or_default();
        item("the first of them", &format!("{name}, of {}", appended.contributor))?;
    }
    Ok(())
}

/// Pulls the version, verifies it offline, changes one bit of a part, and restores the part.
async fn taken_along(stage: &QuickstartStage, data: &Path, latest: u64) -> anyhow::Result<()> {
    let (folder, known) = (
        data.join(PULLED_FOLDER).join(&stage.slug),
        data.join(PULLED_FOLDER).join("known-keys.json"),
    );
    let known = KnownKeys::at(known);
    let pull = Pull {
        slug: stage.slug.clone(),
        version: Some(latest),
        folder: folder.clone(),
        known: known.clone(),
    };
    // The known keys are kept beside the folder, so that the user's own file does not change.
    let pulled = stage.client.pull(&pull, Arc::new(|_progress| {})).await?;
    let manifest = pulled.manifest.manifest();
    let bytes = manifest.parts.iter().map(|part| part.size).sum();
    head("Pulled and verified offline, trusting one key:")?;
    item(
        "pulled",
        &format!(
            "{} parts, {}, to {}",
            manifest.parts.len(),
            HumanBytes(bytes),
            folder.display()
        ),
    )?;
    verified(&folder, &known)
        .await?
        .context("the pulled version does not verify")?;
    item(
        "verified offline",
        &format!(
            "key {}, signature, {} parts, the content root of {} records",
            pulled.manifest.key(),
            manifest.parts.len(),
            grouped(manifest.record_count)
        ),
    )?;
    let part = folder.join(&manifest.parts[manifest.parts.len() / 2].path);
    let whole = fs::read(&part)?;
    let mut changed = whole.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    fs::write(&part, changed)?;
    let refused = verified(&folder, &known).await?;
    // The part is restored before the result is judged, so that the folder is whole in every case.
    fs::write(&part, whole)?;
    match refused {
        Ok(()) => bail!("a changed part verified"),
        Err(error) => item("one bit changed", &format!("refused: {error}")),
    }?;
    verified(&folder, &known)
        .await?
        .context("the restored version does not verify")?;
    item("put back", "verified again")?;
    Ok(())
}

/// Verifies the folder on a thread that may block. The outer error is a failure to run.
async fn verified(folder: &Path, known: &KnownKeys) -> anyhow::Result<Result<(), client::Error>> {
    let (folder, known): (PathBuf, _) = (folder.to_owned(), known.clone());
    let verify = move || {
        let verify = Verify {
            folder: &folder,
            keys: None,
            known: &known,
        };
        let signed = verify.signatures()?;
        verify.parts(&signed.manifest, &|_rows| {})
    };
    Ok(tokio::task::spawn_blocking(verify).await?)
}
