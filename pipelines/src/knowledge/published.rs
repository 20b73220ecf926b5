//! Published versions, as reviews and the publisher compare with them.
//!
//! Invariant: a version is known here once its row is in the table, and as long as the process lives.

use std::collections::HashMap;

use catalog::platform::KNOWLEDGE;
use catalog::{Catalog, Columns};
use futures_util::TryStreamExt as _;
use operators::knowledge::PublishedUnits;
use parking_lot::RwLock;
use types::unit::UnitResolution;
use types::{Contract, UnitId, Version};

use super::Error;
use super::row::{Prints, Row};

/// The published versions and their outcomes.
#[derive(Debug, Default)]
pub(super) struct Published {
    pub(super) units: RwLock<PublishedUnits>,
    /// The outcome of each version, to be told again.
    pub(super) outcomes: RwLock<HashMap<UnitId, UnitResolution>>,
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
        let mut prints = HashMap::new();
        for file in catalog.prints().await? {
            let lines = file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            prints.extend(lines.filter_map(|line| {
                let print: Prints = serde_json::from_slice(line).ok()?;
                Some((print.unit, print))
            }));
        }
        let mut rows = snapshot.stream(Columns::Records, first..snapshot.record_count());
        while let Some(batch) = rows.try_next().await? {
            let records = types::render::records_of(contract, &batch).map_err(Error::Rows)?;
            for record in records {
                match serde_json::from_value::<Row>(record.into()) {
                    Ok(row) => {
                        self.outcomes.write().insert(row.unit, row.resolution());
                        self.units.write().add(row.published(prints.get(&row.unit), embedder));
                    }
                    Err(error) => tracing::error!(%error, "a row of the table of knowledge units cannot be read"),
                }
            }
        }
        Ok(snapshot.version())
    }
}
