//! `sluice pull`: pulls a version into a folder.
//!
//! Invariant: the final line is true of the folder. Progress goes to standard error.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use client::{KnownKeys, PullEvent};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

use crate::cli::{PullArgs, TrustArgs};
use crate::config;
use crate::terminal;

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
    let (parts, bytes) = (manifest.parts.len(), manifest.parts.iter().map(|part| part.size).sum());
    terminal::line(&format!(
        "{} version {}: {} records, {} in {parts} parts, {} of them fetched\n  folder        {}\n  \
         content root  {}\n  signed by     {}\nNext: sluice verify {}",
        manifest.slug,
        manifest.version,
        HumanCount(manifest.record_count),
        HumanBytes(bytes),
        pulled.fetched,
        pull.folder.display(),
        manifest.root,
        pulled.manifest.key(),
        quoted(&pull.folder),
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

/// Returns a progress bar on standard error. It is hidden if that is no terminal.
pub(crate) fn bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// Quotes a path for a POSIX shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) && !text.starts_with('-') {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_so_that_a_shell_takes_it() {
        for (path, shown) in [
            ("tide-levels", "tide-levels"),
            ("/tmp/a b", "'/tmp/a b'"),
            ("it's", r"'it'\''s'"),
            ("-x", "'-x'"),
        ] {
            assert_eq!(quoted(Path::new(path)), shown);
        }
    }
}
