//! `sluice verify`: verifies a pulled version or a receipt offline.
//!
//! Invariant: it succeeds only if keys, signature, parts and records are proven, and it uses no network.

mod query_receipt;
mod receipt;
mod sale_receipt;

use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use client::VerifiedVersion;
use indicatif::HumanCount;
use serde_json::json;

use crate::cli::{VerifyArgs, VerifyCommand};
use crate::exit::WrongUsage;
use crate::pull::{bar, known_keys};
use crate::terminal;

/// Verifies the keys and the manifest of a folder.
fn signatures(verify: &client::Verify<'_>) -> anyhow::Result<VerifiedVersion> {
    verify.signatures().map_err(with_flag)
}

/// Adds to an error the flag that helps. The client does not know the command line.
fn with_flag(error: client::Error) -> anyhow::Error {
    match error {
        client::Error::UnknownService { .. } => anyhow!("{error}: --keys FILE"),
        error => error.into(),
    }
}

/// Verifies a folder or a receipt and prints the result.
pub async fn run(arguments: &VerifyArgs) -> anyhow::Result<ExitCode> {
    match (&arguments.command, &arguments.dir) {
        (Some(VerifyCommand::Receipt(receipt)), _) => receipt::run(receipt).await,
        (None, Some(dir)) => {
            folder(dir, arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        (None, None) => Err(WrongUsage("name the folder of a pulled version".to_owned()).into()),
    }
}

fn folder(dir: &Path, arguments: &VerifyArgs) -> anyhow::Result<()> {
    let known = known_keys(&arguments.trust)?;
    let verify = client::Verify {
        folder: dir,
        keys: arguments.keys.as_deref(),
        known: &known,
    };
    let verified = signatures(&verify)?;
    let manifest = verified.manifest.manifest();
    let bar = bar("{bar:40} {human_pos}/{human_len} records, {eta} left");
    bar.set_length(manifest.record_count);
    let proven = verify.parts(&verified.manifest, &|rows| bar.inc(rows));
    bar.finish_and_clear();
    proven?;
    if arguments.json {
        terminal::json(&json!({
            "slug": manifest.slug,
            "version": manifest.version,
            "verified": true,
            "firstKeyId": verified.first_key.to_string(),
            "keyId": verified.manifest.key().to_string(),
            "keysSequence": verified.sequence,
            "parts": manifest.parts.len(),
            "recordCount": manifest.record_count,
            "root": manifest.root,
        }))?;
        return Ok(());
    }
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
