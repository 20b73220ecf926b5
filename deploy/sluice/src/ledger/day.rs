//! `sluice ledger day`: writes a sealed day with its seals, for others to check.
//!
//! Invariant: what is written is what the seal covers, so a stranger can compute the hash again. The movements of an
//! archived month come from its file.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::iter::Peekable;
use std::path::Path;

use anyhow::{Context as _, bail};
use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Value, json};
use store::{ArchiveProof, Schema, Seal, SealedMovement, Store};
use types::Timestamp;

use super::file::{MonthMovements, month_name};
use super::{LedgerFiles, movement_faults, parquet, shown};
use crate::cli::LedgerDay;
use crate::config::Config;
use crate::database;
use crate::layout::DataLayout;

/// The format of the file.
const DAY_FORMAT: &str = "sluice-ledger-day-1";
/// Seals that are read at once.
const SEALS: u32 = 100;

/// Writes a day into a new file.
///
/// # Errors
/// A day without a seal, or a file that cannot be written.
pub(super) async fn run(config: &Config, day: LedgerDay, file: &Path) -> anyhow::Result<()> {
    let store = database::connect(config, Schema::Current).await?;
    let written = write(config, &store, day.0, file).await;
    // The database is closed after an error too.
    store.close().await;
    written
}

async fn write(config: &Config, store: &Store, day: i64, path: &Path) -> anyhow::Result<()> {
    let seals = seals(store, day).await?;
    if seals.first().is_none_or(|seal| seal.closed.day != day) {
        bail!("the day has no seal: a day is sealed ten minutes after its end, from that of the first movement on");
    }
    let seals: Vec<Value> = seals.iter().map(published).collect();
    let mut archived = archived(config, store, day).await?;
    let shown = path.display();
    let file = File::create_new(path).with_context(|| format!("`{shown}` could not be made"))?;
    let mut file = BufWriter::new(file);
    let mut line = |value: &Value| writeln!(file, "{value}").with_context(|| format!("`{shown}` could not be written"));
    line(&json!({"format": DAY_FORMAT, "day": day, "seals": seals}))?;
    // The file of a month is read from its beginning, event by event.
    let first = archived.as_ref().map_or(day, |month| month.first_day);
    for current in first..=day {
        let mut after = String::new();
        loop {
            let page = store.money().movements(current, &after).await?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.id);
            for movement in page {
                let movements = match &mut archived {
                    None => vec![movement],
                    Some(month) => month.movements_of(movement),
                };
                if current == day {
                    for movement in &movements {
                        line(&serde_json::to_value(movement)?)?;
                    }
                }
            }
        }
    }
    // A buffer that is dropped loses what it could not write.
    file.into_inner()
        .map_err(std::io::IntoInnerError::into_error)
        .and_then(|file| file.sync_all())
        .with_context(|| format!("`{shown}` could not be written"))
}

/// A month whose movements are in a file.
struct MonthFile {
    /// First day of the month.
    first_day: i64,
    movements: Peekable<MonthMovements>,
}

impl MonthFile {
    /// Returns the movements of the next event; the event alone, if it has none.
    fn movements_of(&mut self, event: SealedMovement) -> Vec<SealedMovement> {
        let mut found = Vec::new();
        while let Some(movement) = self.movements.next_if(|movement| movement.event == event.id) {
            found.push(SealedMovement {
                debit_account: movement.debit_account,
                credit_account: movement.credit_account,
                line: movement.line,
                amount: movement.amount,
                debit_seq: movement.debit_seq,
                debit_after: movement.debit_after,
                credit_seq: movement.credit_seq,
                credit_after: movement.credit_after,
                ..event.clone()
            });
        }
        if found.is_empty() { vec![event] } else { found }
    }
}

/// Opens the file of the month of a day, if the month is archived.
async fn archived(config: &Config, store: &Store, day: i64) -> anyhow::Result<Option<MonthFile>> {
    let month = Timestamp::of_day(day).month();
    if !store.money().archived_months().await?.contains(&month) {
        return Ok(None);
    }
    let name = parquet(&month_name(month));
    let files = LedgerFiles::open_to_read(config, &DataLayout::new(&config.data.dir))?;
    let found = files.get(&name).await?;
    let found = found.with_context(|| format!("the file `{}` of the archived month is missing", shown(&name)))?;
    // A file that lost rows can be read, too. What is written must be what was sealed.
    let (_, faults) = movement_faults(store, month, found.clone(), &mut ArchiveProof::default()).await?;
    if let Some(fault) = faults.first() {
        bail!(
            "`{}` is not as it was archived: {}; put back a copy of it",
            fault.subject,
            fault.problem
        );
    }
    let movements = MonthMovements::read(found).with_context(|| format!("`{}` cannot be read", shown(&name)))?;
    Ok(Some(MonthFile {
        first_day: Timestamp::of_month(month).day(),
        movements: movements.peekable(),
    }))
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
