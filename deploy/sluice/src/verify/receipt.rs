//! `sluice verify receipt`: finds the kind of a receipt and the keys to trust, and has it checked.
//!
//! Invariant: a key counts only if it is in a keys document that the caller names, or that this machine got from the
//! service.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use client::KnownKeys;
use proof::jws::CompactJws;
use proof::{KeyId, QueryReceipt, SaleReceipt, Statement as _};
use serde::Deserialize;
use serde_json::Value;

use super::query_receipt::{self, QueryReceiptFiles};
use super::{sale_receipt, with_flag};
use crate::cli::ReceiptArgs;
use crate::exit::WrongUsage;
use crate::pull::known_keys;
use crate::terminal;

/// A receipt by its form, before anything of it is proven.
enum Receipt {
    /// A statement in the manner of a manifest, with its format and its key.
    Statement { format: String, key: KeyId },
    /// An offer or a receipt of x402, as a compact JWS.
    Terms(String),
}

/// Members of a statement that tell what it is.
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

/// Places of an artifact of x402: itself, in the answer to a payment, and in a challenge.
const ARTIFACTS: [&str; 3] = [
    "",
    "/extensions/offer-receipt/info/receipt",
    "/extensions/offer-receipt/info/offers/0",
];

impl Receipt {
    fn of(text: &[u8]) -> anyhow::Result<Self> {
        // A compact JWS begins with the Base64 of `{"`.
        if text.starts_with(b"eyJ") {
            return Ok(Self::Terms(String::from_utf8_lossy(text).trim().to_owned()));
        }
        let value: Value = serde_json::from_slice(text)?;
        for place in ARTIFACTS {
            let artifact = value.pointer(place).unwrap_or(&Value::Null);
            if artifact["format"] == "jws"
                && let Some(signature) = artifact["signature"].as_str()
            {
                return Ok(Self::Terms(signature.to_owned()));
            }
        }
        let ReceiptHead { format, signature } = serde_json::from_value(value)?;
        Ok(Self::Statement {
            format,
            key: signature.key_id,
        })
    }
}

/// Returns whose keys are trusted for a key: the services that were met with it, or the file that names them.
fn service(arguments: &ReceiptArgs, known: &KnownKeys, key: KeyId) -> anyhow::Result<String> {
    Ok(match &arguments.keys {
        Some(file) => format!("the keys in {}", file.display()),
        None => known.servers_with(key)?.join(", "),
    })
}

/// Checks a receipt and prints what holds.
///
/// # Errors
/// A receipt that is forged, cut or revoked, of an unknown kind, or of a service whose keys are not known.
pub(super) async fn run(arguments: &ReceiptArgs) -> anyhow::Result<ExitCode> {
    let shown = arguments.file.display();
    let text = fs::read(&arguments.file).with_context(|| format!("`{shown}` could not be read"))?;
    let receipt = Receipt::of(&text).with_context(|| format!("`{shown}` is not a receipt"))?;
    let known = known_keys(&arguments.trust)?;
    let trusted = |key| client::trusted_keys(arguments.keys.as_deref(), key, &known).map_err(with_flag);
    let (format, key) = match receipt {
        Receipt::Terms(jws) => {
            compares_nothing(arguments)?;
            let key = CompactJws::parse(&jws)?.key();
            return sale_receipt::terms(&jws, &trusted(key)?, &service(arguments, &known, key)?, arguments.json);
        }
        Receipt::Statement { format, key } => (format, key),
    };
    match format.as_str() {
        QueryReceipt::FORMAT => {
            let files = QueryReceiptFiles {
                answer: arguments.answer.as_deref(),
                data: arguments.data.as_deref(),
                keys: arguments.keys.as_deref(),
                known: &known,
                is_json: arguments.json,
            };
            query_receipt::run(&text, &trusted(key)?, &files).await
        }
        SaleReceipt::FORMAT => {
            compares_nothing(arguments)?;
            sale_receipt::run(&text, &trusted(key)?, &service(arguments, &known, key)?, arguments.json)
        }
        other => bail!(
            "`{shown}` is of the format `{}`, which this program does not know",
            terminal::shown(other)
        ),
    }
}

/// Refuses the files that only a receipt of a query is held against.
fn compares_nothing(arguments: &ReceiptArgs) -> anyhow::Result<()> {
    if arguments.answer.is_some() || arguments.data.is_some() {
        let message = "`--answer` and `--data` are for the receipt of a query, and this is one of a sale";
        return Err(WrongUsage(message.to_owned()).into());
    }
    Ok(())
}
