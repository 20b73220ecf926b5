//! A directory with a table, and catalogs over it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use serde_json::{Map, Value, json};
use types::clock::ManualClock;
use types::{AgentId, Batch, Contract, ContributionId, DatasetId, Timestamp, Version, render};

use crate::check::{self, Report};
use crate::storage::{CountingStore, DurableLocal, DurableStore, PendingObject};
use crate::{Catalog, CommitOutcome, Error, Merge, PreparedVersion, Snapshot, Table};

pub(super) struct World {
    directory: Arc<tempfile::TempDir>,
    pub(super) durable: Arc<DurableLocal>,
    pub(super) counting: Arc<CountingStore>,
    pub(super) dataset: DatasetId,
    pub(super) contract: Arc<Contract>,
}

impl World {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let durable = Arc::new(DurableLocal::open(directory.path().join("tables")).unwrap());
        let counting = Arc::new(CountingStore::new(Arc::clone(&durable) as _));
        let contract = json!({"fields": [
            {"name": "name", "type": "string", "required": true},
            {"name": "count", "type": "integer"},
            {"name": "ratio", "type": "number"},
            {"name": "ok", "type": "boolean"},
            {"name": "at", "type": "timestamp"},
            {"name": "more", "type": "json"}
        ], "allowExtra": true});
        Self {
            directory: Arc::new(directory),
            durable,
            counting,
            dataset: DatasetId::new(Timestamp::from_micros(1)),
            contract: Arc::new(serde_json::from_value(contract).unwrap()),
        }
    }

    /// Another dataset in the same store.
    pub(super) fn of(world: &Self, number: i64) -> Self {
        Self {
            directory: Arc::clone(&world.directory),
            durable: Arc::clone(&world.durable),
            counting: Arc::clone(&world.counting),
            dataset: DatasetId::new(Timestamp::from_micros(number)),
            contract: Arc::clone(&world.contract),
        }
    }

    pub(super) fn index_directory(&self, process: &str) -> PathBuf {
        self.directory.path().join(process)
    }

    /// A catalog as another process would open it.
    pub(super) fn catalog(&self, process: &str) -> Catalog {
        self.catalog_over(process, Arc::clone(&self.counting) as _)
    }

    pub(super) fn catalog_over(&self, process: &str, objects: Arc<dyn DurableStore>) -> Catalog {
        let clock = ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000));
        Catalog::open(objects, self.index_directory(process), Arc::new(clock)).unwrap()
    }

    pub(super) async fn table(&self, catalog: &Catalog) -> Table {
        catalog.table(self.dataset, &self.contract).await.unwrap()
    }

    pub(super) fn proposal(&self, records: &[Value]) -> Proposal {
        Proposal {
            contribution: ContributionId::new(Timestamp::from_micros(2)),
            agent: AgentId::new(Timestamp::from_micros(3)),
            batch: Arc::new(Batch::decode(&self.contract, records)),
            at: Timestamp::from_micros(1_700_000_000_123_456),
            notes: json!({"rows": records.len(), "ratio": 0.1}),
        }
    }

    /// Merges records that are new and come from nowhere else.
    pub(super) async fn merge(&self, table: &mut Table, records: &[Value]) -> Merge {
        merged(table.merge(self.proposal(records)).await.unwrap())
    }

    pub(super) async fn check(&self) -> Report {
        check::table(&(Arc::clone(&self.durable) as _), self.dataset)
            .await
            .unwrap()
    }

    /// Checks that the table is sound and has this many versions.
    pub(super) async fn sound(&self, versions: u64) -> Report {
        let report = self.check().await;
        assert_eq!(report.violations, []);
        let numbers: Vec<_> = report.versions.iter().map(|version| version.version).collect();
        assert_eq!(numbers, (1..=versions).collect::<Vec<_>>());
        report
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory
            .path()
            .join("tables")
            .join(self.dataset.to_string())
            .join(name)
    }

    pub(super) fn commit_file(&self, number: u64) -> PathBuf {
        self.file(&format!("_delta_log/{number:020}.json"))
    }

    /// Removes what was derived for other readers, as it is not in a copy of the table from before.
    pub(super) fn forget_checkpoints(&self) {
        for entry in std::fs::read_dir(self.file("_delta_log")).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().contains("checkpoint") {
                std::fs::remove_file(path).unwrap();
            }
        }
    }

    /// Names of the parts in the table's directory.
    pub(super) fn parts(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.file("")).unwrap().map(|entry| entry.unwrap());
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".parquet"));
        names.sort();
        names
    }
}

/// A batch and what its commit keeps.
#[derive(Clone, Debug)]
pub(super) struct Proposal {
    pub(super) contribution: ContributionId,
    pub(super) agent: AgentId,
    pub(super) batch: Arc<Batch>,
    pub(super) at: Timestamp,
    pub(super) notes: Value,
}

impl Table {
    pub(super) async fn merge(&mut self, proposal: Proposal) -> Result<CommitOutcome, Error> {
        let Proposal {
            contribution,
            agent,
            batch,
            at,
            notes,
        } = proposal;
        let mut prepared = PreparedVersion::of_batch(contribution, agent, batch);
        self.commit(&mut prepared, at, move |_| notes.clone()).await
    }
}

pub(super) fn merged(outcome: CommitOutcome) -> Merge {
    match outcome {
        CommitOutcome::Committed(merge) => merge,
        other => panic!("not merged now: {other:?}"),
    }
}

/// Small records with these numbers.
pub(super) fn numbered(numbers: std::ops::Range<u64>) -> Vec<Value> {
    numbers
        .map(|number| json!({"name": format!("n{number}"), "count": number}))
        .collect()
}

/// The names of the records of a version, in order.
pub(super) async fn names(catalog: &Catalog, dataset: DatasetId, version: u64) -> Vec<String> {
    let snapshot = catalog
        .snapshot(dataset, Some(Version(version)))
        .await
        .unwrap()
        .unwrap();
    let rows = page(&snapshot, 0, usize::MAX >> 1).await;
    rows.iter()
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect()
}

pub(super) async fn page(snapshot: &Snapshot, offset: u64, limit: usize) -> Vec<Map<String, Value>> {
    let contract = snapshot.contract().unwrap();
    let batches = snapshot.page(offset, limit).await.unwrap();
    batches
        .iter()
        .flat_map(|batch| render::records_of(contract, batch).unwrap())
        .collect()
}

/// What goes wrong with the next puts or reads whose path contains a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The put is done and the answer is lost.
    LostAnswer,
    /// The put is done, repeated by a client that lost the answer, and answered by a conflict.
    OwnConflict,
    /// The put is not done.
    Refused,
    /// The put is done, its directory could not be synced, and cannot be until the trouble is over.
    Unsynced,
    /// Another process moved the object right before it is read.
    Moved,
}

/// A store in which some puts go wrong.
#[derive(Debug)]
pub(super) struct Troubled {
    inner: Arc<dyn DurableStore>,
    path_contains: &'static str,
    trouble: Trouble,
    left: AtomicUsize,
}

impl Troubled {
    pub(super) fn new(inner: Arc<dyn DurableStore>, path_contains: &'static str, trouble: Trouble) -> Self {
        Self {
            inner,
            path_contains,
            trouble,
            left: AtomicUsize::new(0),
        }
    }

    /// Lets the next puts, syncs or reads go wrong.
    pub(super) fn strike(&self, times: usize) {
        self.left.store(times, Ordering::SeqCst);
    }

    /// Does a put, unless it is refused; what it says of it.
    async fn put<T>(&self, location: &Path, put: impl Future<Output = Result<T>>) -> Result<T> {
        let strikes = self.trouble != Trouble::Moved && self.strikes(location);
        if strikes && self.trouble == Trouble::Refused {
            return Err(failed("refused"));
        }
        let done = put.await?;
        match (strikes, self.trouble) {
            (true, Trouble::LostAnswer) => Err(failed("no answer")),
            (true, Trouble::Unsynced) => Err(failed("not synced")),
            (true, Trouble::OwnConflict) => Err(object_store::Error::AlreadyExists {
                path: location.to_string(),
                source: "it is there".into(),
            }),
            _ => Ok(done),
        }
    }

    fn strikes(&self, location: &Path) -> bool {
        location.as_ref().contains(self.path_contains)
            && self
                .left
                .try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                .is_ok()
    }
}

fn failed(what: &'static str) -> object_store::Error {
    object_store::Error::Generic {
        store: "Troubled",
        source: what.into(),
    }
}

#[async_trait]
impl DurableStore for Troubled {
    async fn sync_dir(&self, directory: &Path) -> Result<()> {
        if self.trouble == Trouble::Unsynced && self.strikes(directory) {
            return Err(failed("not synced"));
        }
        self.inner.sync_dir(directory).await
    }

    fn blocks(&self) -> bool {
        self.inner.blocks()
    }

    fn prepare(&self, location: &Path, payload: PutPayload) -> Box<dyn PendingObject + '_> {
        Box::new(InTrouble {
            store: self,
            prepared: self.inner.prepare(location, payload),
            location: location.clone(),
        })
    }
}

/// An object whose creation may go wrong.
struct InTrouble<'a> {
    store: &'a Troubled,
    prepared: Box<dyn PendingObject + 'a>,
    location: Path,
}

#[async_trait]
impl PendingObject for InTrouble<'_> {
    async fn create(self: Box<Self>) -> Result<()> {
        self.store.put(&self.location, self.prepared.create()).await
    }
}

impl fmt::Display for Troubled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Troubled({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Troubled {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.put(location, self.inner.put_opts(location, payload, options))
            .await
    }

    async fn put_multipart_opts(&self, location: &Path, o: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, o).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if self.trouble == Trouble::Moved && self.strikes(location) {
            let moved = Path::from(format!("{location}0"));
            let bytes = self.inner.get(location).await?.bytes().await?;
            self.inner.put(&moved, bytes.into()).await?;
            self.inner.delete(location).await?;
        }
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
