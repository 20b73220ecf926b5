//! The background tasks of a process.
//!
//! Invariant: every task gets the one stop signal, and its end is known by its name.

use std::net::SocketAddr;

use api::state::open_files::OpenFiles;
use catalog::Catalog;
use futures_util::FutureExt;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::exporter::Exporter;
use crate::{deleted_tables, open_files};

/// The background tasks and their stop signal.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    pub(crate) set: JoinSet<(&'static str, anyhow::Result<()>)>,
    pub(crate) stop: CancellationToken,
    pub(crate) open_files: OpenFiles,
}

impl Tasks {
    /// Starts the watch of the open files.
    pub(crate) fn watch_files(&mut self) {
        let files = self.open_files.clone();
        self.spawn("open files", |stop| open_files::watch(files, stop).map(anyhow::Ok));
    }

    /// Starts the task that drops keys of deleted tables, and returns the catalog.
    pub(crate) fn watch_deletions(&mut self, catalog: Catalog) -> Catalog {
        let compared = catalog.clone();
        self.spawn("deleted tables", |stop| {
            deleted_tables::watch(compared, stop).map(anyhow::Ok)
        });
        catalog
    }

    // The name is kept with the result, so that an error says which task failed.
    pub(crate) fn spawn<E, F>(&mut self, name: &'static str, task: impl FnOnce(CancellationToken) -> F)
    where
        E: Into<anyhow::Error>,
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let task = task(self.stop.clone());
        self.set.spawn(async move { (name, task.await.map_err(Into::into)) });
    }

    /// Starts the exporter of the metrics and returns its address, or `None` if metrics are off.
    ///
    /// # Errors
    /// An address that is taken.
    pub(crate) async fn export(&mut self, config: &Config) -> anyhow::Result<Option<SocketAddr>> {
        let Some(address) = config.telemetry.metrics.0 else {
            return Ok(None);
        };
        let exporter = Exporter::bind(address).await?;
        let address = exporter.address()?;
        self.spawn("exporter", |stop| exporter.run(stop));
        Ok(Some(address))
    }
}
