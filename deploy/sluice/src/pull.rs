//! `sluice pull`: pulls a version into a folder.
//!
//! Invariant: the final line is true of the folder. Progress goes to standard error.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use client::{KnownKeys, PullEvent};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use serde_json::json;

use crate::cli::{PullArgs, TrustArgs};
use crate::config;
use crate::terminal::{self, quoted_path};

/// Pulls a version and prints its root, its parts and the key that signed it.
pub async fn run(arguments: PullArgs) -> anyhow::Result<()> {
    let client = arguments.remote.client()?;
    let pull = client::Pull {
        folder: arguments.dir.unwrap_or_else(|| PathBuf::from(&arguments.slug)),
        slug: arguments.slug,
        version: arguments.version,
        known: known_keys(&arguments.trust)?,
    };
    let bar = bar("{bar:40} {bytes}/{total_bytes}, {binary_bytes_per_sec}, {eta} left");
    // Downloads run concurrently, so each event is a difference.
    let watched = bar.clone();
    let progress = move |progress| match progress {
        PullEvent::Planned { bytes } => watched.set_length(bytes),
        PullEvent::Here(bytes) => watched.inc(bytes),
        PullEvent::Discarded(bytes) => watched.dec(bytes),
    };
    let pulled = client.pull(&pull, Arc::new(progress)).await;
    // The bar is cleared before an error is printed.
    bar.finish_and_clear();
    let pulled = pulled?;
    let manifest = pulled.manifest.manifest();
    if pulled.first_meeting {
        terminal::note(&format!(
            "This machine meets {} for the first time and trusts its keys from now on.",
            arguments.remote.server
        ));
    }
    let (parts, bytes): (_, u64) = (manifest.parts.len(), manifest.parts.iter().map(|part| part.size).sum());
    if arguments.json {
        terminal::json(&json!({
            "slug": manifest.slug,
            "version": manifest.version,
            "recordCount": manifest.record_count,
            "bytes": bytes,
            "parts": parts,
            "fetched": pulled.fetched,
            "folder": pull.folder,
            "root": manifest.root,
            "keyId": pulled.manifest.key().to_string(),
            "firstMeeting": pulled.first_meeting,
        }))?;
        return Ok(());
    }
    terminal::line(&format!(
        "{} version {}: {} records, {} in {parts} parts, {} of them fetched\n  folder        {}\n  \
         content root  {}\n  signed by     {}{}",
        manifest.slug,
        manifest.version,
        HumanCount(manifest.record_count),
        HumanBytes(bytes),
        pulled.fetched,
        pull.folder.display(),
        manifest.root,
        pulled.manifest.key(),
        quoted_path(&pull.folder).map_or_else(String::new, |folder| format!("\nNext: sluice verify {folder}")),
    ))?;
    Ok(())
}

/// Returns the file of the services that this machine has met.
pub(crate) fn known_keys(trust: &TrustArgs) -> anyhow::Result<KnownKeys> {
    let default = || config::data_home().map(|data| data.join("sluice/known-keys.json"));
    let path = trust.known_keys.clone().or_else(default);
    let path = path.context("there is no home folder to remember keys in; name a file with --known-keys")?;
    Ok(KnownKeys::at(path))
}

/// Returns a progress bar on standard error. It is hidden if that is no terminal, or one without a cursor.
pub(crate) fn bar(template: &str) -> ProgressBar {
    if !config::has_cursor() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
