//! `sluice ledger`: takes days out of the ledger, beside a running service.
//!
//! Invariant: a day is written only if its seal is there. What is written is what the seal covers, so a stranger can
//! compute the hash again.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Value, json};
use store::{Schema, Seal, Store};
use types::Timestamp;

use crate::cli::LedgerCommand;
use crate::config::Config;
use crate::database;

/// The format of the file.
const DAY_FORMAT: &str = "sluice-ledger-day-1";
/// Seals that are read at once.
const SEALS: u32 = 100;

/// Runs a command.
///
/// # Errors
/// A day that is none or has no seal, or a file that cannot be written.
pub async fn run(config: &Config, command: LedgerCommand) -> anyhow::Result<()> {
    let LedgerCommand::Day { day: named, file } = command;
    let day = day_of(&named)?;
    let store = database::connect(config, Schema::Current).await?;
    let written = write(&store, day, &named, &file).await;
    // The database is closed after an error too.
    store.close().await;
    written
}

/// Reads a UTC day, counted from 1970-01-01.
fn day_of(text: &str) -> anyhow::Result<i64> {
    let day = format!("{text}T00:00:00Z").parse::<Timestamp>().ok();
    // A longer text could be another time of the day.
    let day = day.filter(|day| day.to_string() == format!("{text}T00:00:00Z"));
    Ok(day
        .with_context(|| format!("`{text}` is no day; write it as 2026-11-27"))?
        .day())
}

async fn write(store: &Store, day: i64, named: &str, path: &Path) -> anyhow::Result<()> {
    let seals = seals(store, day).await?;
    if seals.first().is_none_or(|seal| seal.closed.day != day) {
        bail!("the day {named} has no seal: it is not over for ten minutes, or nothing had been moved by then");
    }
    let seals: Vec<Value> = seals.iter().map(published).collect();
    let shown = path.display();
    let file = File::create_new(path).with_context(|| format!("`{shown}` could not be made"))?;
    let mut file = BufWriter::new(file);
    let mut line = |value: &Value| writeln!(file, "{value}").with_context(|| format!("`{shown}` could not be written"));
    line(&json!({"format": DAY_FORMAT, "day": day, "seals": seals}))?;
    let mut after = String::new();
    loop {
        let movements = store.money().movements(day, &after).await?;
        let Some(last) = movements.last() else { break };
        after.clone_from(&last.id);
        for movement in &movements {
            line(&serde_json::to_value(movement)?)?;
        }
    }
    // A buffer that is dropped loses what it could not write.
    file.into_inner()
        .map_err(std::io::IntoInnerError::into_error)
        .and_then(|file| file.sync_all())
        .with_context(|| format!("`{shown}` could not be written"))
}

/// Returns the seals from a day on, up to the first that a key which counts signed: a later seal vouches for the earlier
/// ones.
async fn seals(store: &Store, day: i64) -> anyhow::Result<Vec<Seal>> {
    let keys = store.service_keys().await?;
    let counts = |seal: &Seal| {
        let mut keys = keys.iter();
        keys.any(|key| key.key_id == seal.key_id && key.revoked.is_none())
    };
    let mut found: Vec<Seal> = Vec::new();
    let mut after = day.saturating_sub(1);
    loop {
        let page = store.money().seals(after, SEALS).await?;
        let Some(last) = page.last() else { return Ok(found) };
        after = last.closed.day;
        for seal in page {
            let is_last = counts(&seal);
            found.push(seal);
            if is_last {
                return Ok(found);
            }
        }
    }
}

/// Returns a seal: the members that were signed, the key and the signature.
fn published(seal: &Seal) -> Value {
    json!({
        "day": seal.closed.day.to_string(),
        "before": HEXLOWER.encode(&seal.closed.before),
        "hash": HEXLOWER.encode(&seal.closed.hash),
        "sealedAt": seal.sealed_at.to_string(),
        "keyId": seal.key_id,
        "signature": BASE64.encode(&seal.signature),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_one_spelling() {
        assert_eq!(day_of("1970-01-02").unwrap(), 1);
        assert_eq!(day_of("2026-11-27").unwrap(), 20_784);
        for text in [
            "",
            "2026-11-31",
            "2026-11-27T00:00:00Z",
            "27.11.2026",
            "2026-11-27 ",
            "20784",
        ] {
            assert!(day_of(text).is_err(), "{text}");
        }
    }
}
