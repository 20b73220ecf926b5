//! Published versions, as reviews and the publisher compare with them.
//!
//! Invariant: a version is known here once its row is in the table, and as long as the process lives.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use catalog::platform::KNOWLEDGE;
use catalog::{Catalog, Columns};
use futures_util::TryStreamExt as _;
use operators::knowledge::{PublishedUnits, UnitPrints};
use parking_lot::{Mutex, RwLock};
use types::unit::UnitResolution;
use types::{Contract, UnitId, Version};

use super::row::Row;

/// The error that ends the worker.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log cannot be used.
    #[error("the log cannot be used")]
    Log(#[from] eventlog::Error),
    /// The platform's table cannot be used.
    #[error("the platform's table cannot be used")]
    Table(#[from] catalog::Error),
    /// The contract of the platform's table is wrong.
    #[error("the contract of the platform's table is wrong")]
    Contract(#[from] types::contract::ContractError),
    /// A version cannot be written as a row of the platform's table.
    #[error("a unit cannot be written as a row: {0}")]
    Encode(String),
    /// Rows of the platform's table cannot be read.
    #[error("rows of the platform's table cannot be read")]
    Rows(#[source] arrow::error::ArrowError),
    /// A version has a row in the platform's table that this build cannot read.
    #[error("the row of unit `{0}` in the platform's table cannot be read")]
    Unread(UnitId),
}

/// The published versions and their outcomes.
#[derive(Debug, Default)]
pub(super) struct Published {
    pub(super) units: RwLock<PublishedUnits>,
    /// The outcome of each version, to be told again.
    pub(super) outcomes: RwLock<HashMap<UnitId, UnitResolution>>,
    prints: Mutex<PrintsRead>,
}

/// The files of prints that were read.
#[derive(Debug, Default)]
struct PrintsRead {
    files: HashSet<String>,
    /// Prints of versions whose rows were not read yet: prints are put before the row.
    waiting: HashMap<UnitId, UnitPrints>,
}

impl Published {
    /// Adds the rows of the table after the version `known`, and returns the version that was read.
    pub(super) async fn extend(
        &self,
        catalog: &Catalog,
        embedder: Option<&str>,
        contract: &Contract,
        known: Version,
    ) -> Result<Version, Error> {
        let Some(mut snapshot) = catalog.snapshot(KNOWLEDGE, None).await? else {
            return Ok(known);
        };
        // The snapshot may be older than what another process put.
        if let Some(newer) = catalog.snapshot(KNOWLEDGE, Some(snapshot.version().next())).await? {
            snapshot = newer.latest();
        }
        let first = snapshot.at(known).map_or(0, |earlier| earlier.record_count());
        if snapshot.record_count() == first {
            return Ok(snapshot.version());
        }
        self.read_prints(catalog, embedder).await?;
        let mut rows = snapshot.stream(Columns::Records, first..snapshot.record_count());
        while let Some(batch) = rows.try_next().await? {
            let records = types::render::records_of(contract, &batch).map_err(Error::Rows)?;
            for record in records {
                match serde_json::from_value::<Row>(record.into()) {
                    Ok(row) => {
                        let prints = self.prints.lock().waiting.remove(&row.unit);
                        let resolution = row.resolution(prints.as_ref());
                        // A row that is read again has no prints left here, and so no mark.
                        self.outcomes.write().entry(row.unit).or_insert(resolution);
                        self.units.write().add(row.published(prints.as_ref(), embedder));
                    }
                    Err(error) => tracing::error!(%error, "a row of the table of knowledge units cannot be read"),
                }
            }
        }
        Ok(snapshot.version())
    }

    /// Reads the files of prints that are new, and gives versions that are known already what was made later for them.
    pub(super) async fn read_prints(&self, catalog: &Catalog, embedder: Option<&str>) -> Result<(), Error> {
        let known = self.prints.lock().files.clone();
        for (name, file) in catalog.prints(&known).await? {
            let lines = file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            for line in lines {
                let Ok(prints) = serde_json::from_slice::<UnitPrints>(line) else {
                    continue;
                };
                if self.units.read().contains(prints.unit) {
                    let (facts, vectors) = (prints.facts().unwrap_or_default(), prints.vectors(embedder));
                    self.units.write().supply(prints.unit, facts, &vectors);
                    continue;
                }
                let mut read = self.prints.lock();
                match read.waiting.entry(prints.unit) {
                    Entry::Occupied(mut there) => there.get_mut().merge(prints, embedder),
                    Entry::Vacant(place) => _ = place.insert(prints),
                }
            }
            self.prints.lock().files.insert(name);
        }
        Ok(())
    }
}
