//! Object store wrapper that counts requests.
//!
//! Invariant: every request is counted once and passed on unchanged.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result,
};

use super::{DurableStore, PendingObject};

/// Number of requests of each kind that reached a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Puts, successful or not.
    pub puts: u64,
    /// Reads of an object or of its ranges.
    pub gets: u64,
    /// Reads of an object's metadata.
    pub heads: u64,
    /// Listings of a prefix.
    pub lists: u64,
    /// Requests to delete objects.
    pub deletes: u64,
    /// Number of calls of [`DurableStore::sync_dir`].
    pub directory_syncs: u64,
}

/// An object store that counts its requests and passes them on.
#[derive(Debug)]
pub struct CountingStore {
    inner: Arc<dyn DurableStore>,
    puts: AtomicU64,
    gets: AtomicU64,
    heads: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    directory_syncs: AtomicU64,
}

impl CountingStore {
    /// Wraps `inner` and starts counting.
    pub fn new(inner: Arc<dyn DurableStore>) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            inner,
            puts: zero(),
            gets: zero(),
            heads: zero(),
            lists: zero(),
            deletes: zero(),
            directory_syncs: zero(),
        }
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> RequestCounts {
        RequestCounts {
            puts: self.puts.load(Ordering::SeqCst),
            gets: self.gets.load(Ordering::SeqCst),
            heads: self.heads.load(Ordering::SeqCst),
            lists: self.lists.load(Ordering::SeqCst),
            deletes: self.deletes.load(Ordering::SeqCst),
            directory_syncs: self.directory_syncs.load(Ordering::SeqCst),
        }
    }
}

impl fmt::Display for CountingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Counting({})", self.inner)
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::SeqCst);
}

#[async_trait]
impl DurableStore for CountingStore {
    async fn sync_dir(&self, directory: &Path) -> Result<()> {
        count(&self.directory_syncs);
        self.inner.sync_dir(directory).await
    }

    fn blocks(&self) -> bool {
        self.inner.blocks()
    }

    fn prepare(&self, location: &Path, payload: PutPayload) -> Box<dyn PendingObject + '_> {
        Box::new(CountedObject {
            prepared: self.inner.prepare(location, payload),
            puts: &self.puts,
        })
    }

    async fn link_file(&self, file: &std::path::Path, location: &Path) -> Result<()> {
        count(&self.puts);
        self.inner.link_file(file, location).await
    }
}

/// A prepared object whose creation is counted as a put.
struct CountedObject<'a> {
    prepared: Box<dyn PendingObject + 'a>,
    puts: &'a AtomicU64,
}

#[async_trait]
impl PendingObject for CountedObject<'_> {
    async fn create(self: Box<Self>) -> Result<()> {
        count(self.puts);
        self.prepared.create().await
    }
}

#[async_trait]
impl ObjectStore for CountingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        count(&self.puts);
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(&self, location: &Path, o: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        count(&self.puts);
        self.inner.put_multipart_opts(location, o).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        count(if options.head { &self.heads } else { &self.gets });
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        count(&self.gets);
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        count(&self.deletes);
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        count(&self.lists);
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        count(&self.lists);
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        count(&self.lists);
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        count(&self.puts);
        self.inner.copy_opts(from, to, options).await
    }
}
