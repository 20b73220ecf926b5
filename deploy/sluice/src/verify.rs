//! `sluice verify`: verifies a pulled version offline.
//!
//! Invariant: it succeeds only if keys, signature, parts and records are proven, and it uses no network.

use anyhow::anyhow;
use indicatif::HumanCount;

use crate::cli::VerifyArgs;
use crate::pull::{bar, known_keys};
use crate::terminal;

/// Verifies a folder and prints the result.
pub fn run(arguments: &VerifyArgs) -> anyhow::Result<()> {
    let known = known_keys(&arguments.trust)?;
    let verify = client::Verify {
        folder: &arguments.dir,
        keys: arguments.keys.as_deref(),
        known: &known,
    };
    let verified = verify.signatures().map_err(|error| match error {
        // The client does not know the command line, so the flag is added here.
        client::Error::UnknownService { .. } => anyhow!("{error}: --keys FILE"),
        error => error.into(),
    })?;
    let manifest = verified.manifest.manifest();
    let bar = bar("{bar:40} {human_pos}/{human_len} records, {eta} left");
    bar.set_length(manifest.record_count);
    let proven = verify.parts(&verified.manifest, &|rows| bar.inc(rows));
    bar.finish_and_clear();
    proven?;
    terminal::line(&format!(
        "{} version {}: verified\n  keys          {} trusted first, {} signed, document {}\n  parts         {}, each \
         with the signed SHA-256\n  records       {}, their content root is {}",
        terminal::shown(&manifest.slug),
        manifest.version,
        verified.first_key,
        verified.manifest.key(),
        verified.sequence,
        HumanCount(manifest.parts.len() as u64),
        HumanCount(manifest.record_count),
        manifest.root,
    ))?;
    Ok(())
}
