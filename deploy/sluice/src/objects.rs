//! The store of the tables that the configuration names: a local folder, or a bucket of an S3 API.
//!
//! Invariant: a bucket is probed before anything is written to it. One that lacks a needed operation is refused.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use api::state::direct::PresignedUrls;
use catalog::storage::{DurableLocal, DurableStore};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use types::DatasetId;
use uploads::UploadStore;

use crate::config::{Backend, Config};
use crate::layout::DataLayout;

/// The store of the tables, with the services that only a bucket has.
#[derive(Clone, Debug)]
pub struct TableStores {
    /// The store that the catalog reads and writes.
    pub store: Arc<dyn DurableStore>,
    /// The signer of addresses of parts. `None` if the service itself sends parts.
    pub direct: Option<Arc<dyn PresignedUrls>>,
    /// The store of upload parts. `None` if they are in the data folder.
    pub uploads: Option<Arc<dyn UploadStore>>,
}

/// Opens the store of the tables for reading and writing.
pub async fn open(config: &Config, layout: &DataLayout) -> anyhow::Result<TableStores> {
    match config.objects.backend {
        Backend::Local => {
            let tables = layout.tables();
            // Opening waits for the disk.
            let opened = tokio::task::spawn_blocking(move || DurableLocal::open(&tables)).await?;
            let store = opened.with_context(|| cannot_open(&layout.tables()))?;
            Ok(TableStores {
                store: Arc::new(store),
                direct: None,
                uploads: None,
            })
        }
        Backend::S3 => bucket::open(config).await,
    }
}

/// Opens the store of the tables for reading only, and changes nothing. `None` before the first table.
pub fn open_to_read(config: &Config, layout: &DataLayout) -> anyhow::Result<Option<Arc<dyn ObjectStore>>> {
    match config.objects.backend {
        Backend::Local => {
            let tables = layout.tables();
            if !tables.exists() {
                return Ok(None);
            }
            // The plain store is enough for reading and creates nothing in the folder.
            let files = LocalFileSystem::new_with_prefix(&tables).with_context(|| cannot_open(&tables))?;
            Ok(Some(Arc::new(files)))
        }
        Backend::S3 => bucket::open_to_read(config).map(Some),
    }
}

/// Returns the folders whose names are ids of datasets.
pub async fn tables(objects: Option<&Arc<dyn ObjectStore>>) -> anyhow::Result<BTreeSet<String>> {
    let Some(objects) = objects else {
        return Ok(BTreeSet::new());
    };
    let listed = objects
        .list_with_delimiter(None)
        .await
        .context("the tables cannot be listed")?;
    let names = listed.common_prefixes.iter().filter_map(|folder| folder.filename());
    // The bucket has other folders beside the tables, such as those of uploads and budgets.
    let tables = names.filter(|name| name.parse::<DatasetId>().is_ok());
    Ok(tables.map(str::to_owned).collect())
}

fn cannot_open(tables: &Path) -> String {
    format!("the tables `{}` cannot be opened", tables.display())
}

#[cfg(feature = "s3")]
mod bucket {
    use std::sync::Arc;
    use std::time::Duration;

    use api::state::direct::PresignedUrls;
    use catalog::storage::s3::{Presigner, S3};
    use object_store::ObjectStore;
    use object_store::path::Path;
    use types::DatasetId;
    use uploads::BucketUploads;

    use super::TableStores;
    use crate::config::Config;

    /// Signs addresses of parts in a bucket.
    #[derive(Debug)]
    struct Signed(Presigner);

    impl PresignedUrls for Signed {
        fn address(&self, dataset: DatasetId, name: &str, lasting: Duration) -> String {
            self.0.read(&Path::from(format!("{dataset}/{name}")), lasting)
        }
    }

    pub(super) async fn open(config: &Config) -> anyhow::Result<TableStores> {
        let store = S3::open(&config.objects.bucket()).await?;
        Ok(TableStores {
            direct: Some(Arc::new(Signed(store.presigner().clone()))),
            uploads: Some(Arc::new(BucketUploads::new(store.clone()))),
            store: Arc::new(store),
        })
    }

    pub(super) fn open_to_read(config: &Config) -> anyhow::Result<Arc<dyn ObjectStore>> {
        Ok(Arc::new(S3::connect(&config.objects.bucket())?))
    }
}

#[cfg(not(feature = "s3"))]
mod bucket {
    use std::sync::Arc;

    use anyhow::{Result, bail};
    use object_store::ObjectStore;

    use super::TableStores;
    use crate::config::Config;

    const MISSING: &str =
        "`objects.backend` is `s3`, and this program was built without it: build with `--features s3`";

    #[expect(clippy::unused_async, reason = "with the feature it waits for the store")]
    pub(super) async fn open(_: &Config) -> Result<TableStores> {
        bail!(MISSING)
    }

    pub(super) fn open_to_read(_: &Config) -> Result<Arc<dyn ObjectStore>> {
        bail!(MISSING)
    }
}
