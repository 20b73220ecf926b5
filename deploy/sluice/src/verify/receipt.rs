//! `sluice verify receipt`: finds the kind of a receipt and the keys to trust, and has it checked.
//!
//! Invariant: a key counts only if it is in a keys document that the caller names, or that this machine got from the
//! service.

use std::fs;
use std::process::ExitCode;

use anyhow::Context as _;
use proof::{KeyId, QueryReceipt, Statement as _};
use serde::Deserialize;

use super::query_receipt::{self, QueryReceiptFiles};
use super::with_flag;
use crate::cli::ReceiptArgs;
use crate::pull::known_keys;
use crate::terminal;

/// Members that tell what a receipt is, before anything of it is proven.
#[derive(Deserialize)]
struct ReceiptHead {
    format: String,
    signature: SignerName,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignerName {
    key_id: KeyId,
}

/// Checks a receipt and prints what holds.
///
/// # Errors
/// A receipt that is forged, cut or revoked, of an unknown kind, or of a service whose keys are not known.
pub(super) async fn run(arguments: &ReceiptArgs) -> anyhow::Result<ExitCode> {
    let shown = arguments.file.display();
    let text = fs::read(&arguments.file).with_context(|| format!("`{shown}` could not be read"))?;
    let head: ReceiptHead = serde_json::from_slice(&text).with_context(|| format!("`{shown}` is not a receipt"))?;
    let known = known_keys(&arguments.trust)?;
    let keys = client::trusted_keys(arguments.keys.as_deref(), head.signature.key_id, &known).map_err(with_flag)?;
    match head.format.as_str() {
        QueryReceipt::FORMAT => {
            let files = QueryReceiptFiles {
                answer: arguments.answer.as_deref(),
                data: arguments.data.as_deref(),
                keys: arguments.keys.as_deref(),
                known: &known,
            };
            query_receipt::run(&text, &keys, &files).await
        }
        other => anyhow::bail!(
            "`{shown}` is of the format `{}`, which this program does not know",
            terminal::shown(other)
        ),
    }
}
