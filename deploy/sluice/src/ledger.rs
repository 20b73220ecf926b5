//! `sluice ledger`: takes whole months of movements out of the database into files, proves such files, and writes a day for
//! others to check.
//!
//! Invariants:
//! - A month leaves the database after its file was read back and gave the hashes that were sealed.
//! - A file never changes, and is durable before the transaction that needs it.

mod day;
mod file;

use std::path::Path as FilePath;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use api::rules::seals;
use bytes::Bytes;
use catalog::storage::{DurableLocal, DurableStore};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode};
use serde_json::{Value, json};
use store::{ArchiveProof, CheckTerms, MoneyFault, MonthArchived, Schema, Seal, Store};

use crate::assemble;
use crate::check;
use crate::cli::{LedgerCommand, LedgerMonth};
use crate::config::{Backend, Config};
use crate::database;
use crate::layout::DataLayout;
use crate::objects;
use crate::terminal;

use file::{ArchivedMonth, MonthMovements, MonthWriter, month_name};

/// Folder of the files in messages.
const FOLDER: &str = "ledger";
/// Faults of one file that are shown.
const FILE_FAULTS: usize = 20;
/// Fault of a file that is not there.
const MISSING: &str = "the file of an archived month is missing";

/// Runs a command.
///
/// # Errors
/// A day or month that is not sealed, a ledger with violations, a file that cannot be written, or a database that does not
/// answer.
pub async fn run(config: &Config, command: LedgerCommand) -> anyhow::Result<()> {
    match command {
        LedgerCommand::Archive { before } => archive_months(config, before).await,
        LedgerCommand::Day { day, file } => day::run(config, day, &file).await,
    }
}

/// Archives months, and prints them.
async fn archive_months(config: &Config, before: LedgerMonth) -> anyhow::Result<()> {
    let patient = check::patient(config);
    let store = database::connect(&patient, Schema::Current).await?;
    let mut months = Vec::new();
    let archived = archive(&patient, &store, before, &mut months).await;
    store.close().await;
    // What was archived before an error stays archived.
    terminal::json(&json!({ "archived": months }))?;
    archived
}

async fn archive(config: &Config, store: &Store, before: LedgerMonth, done: &mut Vec<Value>) -> anyhow::Result<()> {
    let layout = DataLayout::new(&config.data.dir);
    let money = store.money();
    refuse_broken(config, &layout, store).await?;
    let files = LedgerFiles::open(config, &layout).await?;
    while let Some(month) = money.next_to_archive().await?.filter(|month| *month < before.0) {
        let name = month_name(month);
        let Some(seals) = money.month_seals(month).await? else {
            bail!(
                "{name} is not sealed to its last day; a process of the role `api` seals a day ten minutes after its end"
            );
        };
        files.put(&parquet(&name), encoded(store, &seals).await?).await?;
        // What is read back may be of an earlier run that ended here. It is what the days were sealed with, or nothing is
        // deleted.
        let found = files.get(&parquet(&name)).await?;
        let found = found.with_context(|| format!("`{}` was written and is not there", shown(&parquet(&name))))?;
        let mut proof = ArchiveProof::default();
        let (movements, mut faults) = movement_faults(store, month, found.clone(), &mut proof).await?;
        if faults.is_empty() {
            let document = ArchivedMonth::of(month, &found, movements, &seals);
            files.put(&json_name(&name), document.to_json()?.into()).await?;
            faults.extend(files.document_fault(&document, &name).await?);
        }
        if let Some(fault) = faults.first() {
            bail!(
                "{name} stays in the database, because `{}` differs from it: {}; move the file away and try again",
                fault.subject,
                fault.problem
            );
        }
        let size = found.len();
        match money.archive(month).await? {
            MonthArchived::Archived(0) | MonthArchived::Unsealed => {
                bail!("{name} has events and no movements, or lost a seal; run `sluice check`")
            }
            // Another process was faster.
            MonthArchived::Before => {}
            MonthArchived::Archived(deleted) => done.push(json!({
                "month": name, "movements": deleted, "file": shown(&parquet(&name)), "bytes": size,
            })),
        }
    }
    Ok(())
}

/// Refuses to archive a ledger that does not hold: what is archived is proven by its seals, and no longer step by step.
async fn refuse_broken(config: &Config, layout: &DataLayout, store: &Store) -> anyhow::Result<()> {
    let terms = CheckTerms {
        free_egress: config.limits.egress_per_operator.0,
        quote_window: config.tariff().quote_window(),
        now: assemble::clock(config).now(),
    };
    let mut found = store.money().faults(terms, 1).await?;
    found.extend(seals::faults(store, 1).await?);
    found.extend(faults(config, layout, store).await?);
    match found.first() {
        None => Ok(()),
        Some(fault) => bail!(
            "nothing was archived, because the ledger has violations: {} {}: {}; run `sluice check`",
            fault.rule,
            fault.subject,
            fault.problem
        ),
    }
}

/// Encodes the movements of a month.
async fn encoded(store: &Store, seals: &[Seal]) -> anyhow::Result<Bytes> {
    let mut writer = MonthWriter::new()?;
    for seal in seals {
        let mut last = String::new();
        loop {
            let (movements, next) = store.money().day_movements(seal.closed.day, &last).await?;
            if !movements.is_empty() {
                writer.add(&movements)?;
            }
            let Some(next) = next else { break };
            last = next;
        }
    }
    writer.finish()
}

/// Returns what is wrong with the archived months.
///
/// # Errors
/// A database or a bucket that does not answer.
pub(crate) async fn faults(config: &Config, layout: &DataLayout, store: &Store) -> anyhow::Result<Vec<MoneyFault>> {
    let money = store.money();
    let (mut faults, mut proof) = (Vec::new(), ArchiveProof::default());
    let months = money.archived_months().await?;
    if months.is_empty() {
        return Ok(faults);
    }
    let files = LedgerFiles::open_to_read(config, layout)?;
    for month in months {
        let mut found = files.faults(store, month, &mut proof).await?;
        // The sums need every file.
        if found.is_empty() {
            found = money.archived_openings(month, &proof).await?;
        }
        found.truncate(FILE_FAULTS);
        faults.append(&mut found);
    }
    if faults.is_empty() {
        faults = money.archived_sums(proof).await?;
        faults.truncate(FILE_FAULTS);
    }
    Ok(faults)
}

fn parquet(month: &str) -> String {
    format!("{month}.parquet")
}

fn json_name(month: &str) -> String {
    format!("{month}.json")
}

/// Returns the name of a file in messages, which is that below the data folder or in the bucket.
fn shown(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

/// Files of archived months: a folder of the data folder or, if the tables are in a bucket, of the bucket.
struct LedgerFiles {
    /// `None` before the first file.
    objects: Option<Arc<dyn ObjectStore>>,
    /// Folder of the files in the store, with a slash if it is not the root.
    folder: &'static str,
}

impl LedgerFiles {
    async fn open(config: &Config, layout: &DataLayout) -> anyhow::Result<Self> {
        let objects: Arc<dyn DurableStore> = match config.objects.backend {
            Backend::Local => {
                let folder = layout.ledger();
                let opening = tokio::task::spawn_blocking(move || DurableLocal::open(&folder));
                Arc::new(opening.await?.with_context(|| cannot_open(&layout.ledger()))?)
            }
            Backend::S3 => objects::open(config, layout).await?.store,
        };
        Ok(Self {
            objects: Some(objects),
            folder: Self::folder(config),
        })
    }

    /// Opens the files for reading, and creates nothing.
    fn open_to_read(config: &Config, layout: &DataLayout) -> anyhow::Result<Self> {
        let objects: Option<Arc<dyn ObjectStore>> = match config.objects.backend {
            Backend::Local => {
                let folder = layout.ledger();
                let files = folder.exists().then(|| LocalFileSystem::new_with_prefix(&folder));
                let files = files.transpose().with_context(|| cannot_open(&folder))?;
                files.map(|files| Arc::new(files) as Arc<dyn ObjectStore>)
            }
            Backend::S3 => objects::open_to_read(config, layout)?,
        };
        Ok(Self {
            objects,
            folder: Self::folder(config),
        })
    }

    const fn folder(config: &Config) -> &'static str {
        match config.objects.backend {
            Backend::Local => "",
            Backend::S3 => "ledger/",
        }
    }

    fn path(&self, name: &str) -> Path {
        Path::from(format!("{}{name}", self.folder))
    }

    /// Puts a file if there is none of this name.
    async fn put(&self, name: &str, bytes: Bytes) -> anyhow::Result<()> {
        let Some(objects) = &self.objects else {
            bail!("the files of the ledger are open for reading only");
        };
        let put = objects
            .put_opts(&self.path(name), bytes.into(), PutMode::Create.into())
            .await;
        match put {
            Ok(_) | Err(object_store::Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("`{}` cannot be written", shown(name))),
        }
    }

    /// Returns the bytes of a file; `None` if there is none.
    async fn get(&self, name: &str) -> anyhow::Result<Option<Bytes>> {
        let Some(objects) = &self.objects else { return Ok(None) };
        let read = async { objects.get(&self.path(name)).await?.bytes().await };
        match read.await {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("`{}` cannot be read", shown(name))),
        }
    }

    /// Returns what is wrong with the files of a month, and adds its movements to `proof`.
    async fn faults(&self, store: &Store, month: i64, proof: &mut ArchiveProof) -> anyhow::Result<Vec<MoneyFault>> {
        let name = month_name(month);
        let Some(found) = self.get(&parquet(&name)).await? else {
            return Ok(vec![fault(&parquet(&name), MISSING)]);
        };
        let (movements, mut faults) = movement_faults(store, month, found.clone(), proof).await?;
        let seals = store.money().month_seals(month).await?.unwrap_or_default();
        let document = ArchivedMonth::of(month, &found, movements, &seals);
        faults.extend(self.document_fault(&document, &name).await?);
        Ok(faults)
    }

    /// Compares the document of a month with what it must be.
    async fn document_fault(&self, document: &ArchivedMonth, month: &str) -> anyhow::Result<Option<MoneyFault>> {
        let name = json_name(month);
        let problem = match self.get(&name).await? {
            None => MISSING,
            Some(text) if document.is_in(&text) => return Ok(None),
            Some(_) => "the file does not name the movements and seals of its month",
        };
        Ok(Some(fault(&name, problem)))
    }
}

/// Returns the number of movements of a file, and what is wrong with them.
async fn movement_faults(
    store: &Store,
    month: i64,
    file: Bytes,
    proof: &mut ArchiveProof,
) -> anyhow::Result<(u64, Vec<MoneyFault>)> {
    let name = parquet(&month_name(month));
    let Ok(mut read) = MonthMovements::read(file) else {
        return Ok((0, vec![fault(&name, "the file is not one of movements")]));
    };
    let mut count = 0;
    let mut counted = read.by_ref().inspect(|_| count += 1);
    let (money, subject) = (store.money(), shown(&name));
    let mut faults = money.archived_days(month, &subject, &mut counted, proof).await?;
    drop(counted);
    if read.problem().is_some() {
        faults.push(fault(&name, "the file cannot be read to its end"));
    }
    Ok((count, faults))
}

fn fault(name: &str, problem: &'static str) -> MoneyFault {
    MoneyFault {
        rule: "M4",
        subject: shown(name),
        problem,
    }
}

fn cannot_open(folder: &FilePath) -> String {
    format!("the folder `{}` cannot be opened", folder.display())
}
