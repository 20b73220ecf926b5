//! An instrumented store of tables: the number of requests, and of failures.
//!
//! Invariant: only errors of the store are failures. A missing object and one that exists already are answers.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use catalog::storage::{DurableStore, PendingObject};
use futures_util::stream::{BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tracing::Instrument as _;
use types::metric;

/// A store of tables that records metrics.
#[derive(Debug)]
pub struct MeteredObjects {
    inner: Arc<dyn DurableStore>,
}

impl MeteredObjects {
    /// Wraps `inner`, whose requests are counted from now on.
    pub fn new(inner: Arc<dyn DurableStore>) -> Self {
        Self { inner }
    }
}

impl fmt::Display for MeteredObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

fn asked(call: &'static str) {
    metrics::counter!(metric::OBJECT_REQUESTS, "call" => call).increment(1);
}

fn failed(call: &'static str, error: &Error) {
    // Conditional requests use these errors as answers.
    let answers = matches!(
        error,
        Error::NotFound { .. } | Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. }
    );
    if !answers {
        metrics::counter!(metric::OBJECT_FAILURES, "call" => call).increment(1);
    }
}

async fn counted<T>(call: &'static str, request: impl Future<Output = Result<T>>) -> Result<T> {
    asked(call);
    let answered = request.instrument(tracing::debug_span!("object store", call)).await;
    answered.inspect_err(|error| failed(call, error))
}

#[async_trait]
impl DurableStore for MeteredObjects {
    // Syncing a folder is no request to a store, so it is not counted.
    async fn sync_dir(&self, directory: &Path) -> Result<()> {
        self.inner.sync_dir(directory).await
    }

    fn blocks(&self) -> bool {
        self.inner.blocks()
    }

    fn prepare(&self, location: &Path, payload: PutPayload) -> Box<dyn PendingObject + '_> {
        Box::new(MeasuredObject(self.inner.prepare(location, payload)))
    }

    async fn link_file(&self, file: &std::path::Path, location: &Path) -> Result<()> {
        counted("put", self.inner.link_file(file, location)).await
    }
}

/// A prepared object whose creation is counted as a put.
struct MeasuredObject<'a>(Box<dyn PendingObject + 'a>);

#[async_trait]
impl PendingObject for MeasuredObject<'_> {
    async fn create(self: Box<Self>) -> Result<()> {
        counted("put", self.0.create()).await
    }
}

#[async_trait]
impl ObjectStore for MeteredObjects {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        counted("put", self.inner.put_opts(location, payload, options)).await
    }

    async fn put_multipart_opts(&self, location: &Path, o: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        counted("put", self.inner.put_multipart_opts(location, o)).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        counted("get", self.inner.get_opts(location, options)).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        counted("get", self.inner.get_ranges(location, ranges)).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let deleted = self.inner.delete_stream(locations);
        deleted
            .map(|deleted| {
                // Each object of the stream counts as one request, although a bucket deletes many in one.
                asked("delete");
                deleted.inspect_err(|error| failed("delete", error))
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        // A listing counts once, whatever its number of pages.
        asked("list");
        let listed = self.inner.list(prefix);
        listed
            .map(|entry| entry.inspect_err(|error| failed("list", error)))
            .boxed()
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        asked("list");
        let listed = self.inner.list_with_offset(prefix, offset);
        listed
            .map(|entry| entry.inspect_err(|error| failed("list", error)))
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        counted("list", self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        counted("copy", self.inner.copy_opts(from, to, options)).await
    }
}

#[cfg(test)]
mod tests {
    use catalog::storage::DurableLocal;
    use object_store::{ObjectStoreExt, PutMode};

    use super::*;
    use crate::exporter::Registry;

    #[test]
    fn requests_are_counted_and_answers_are_no_failures() {
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::default();
        let asking = async {
            let objects = MeteredObjects::new(Arc::new(DurableLocal::open(folder.path()).unwrap()));
            let path = Path::from("a/b");
            assert!(objects.get(&path).await.is_err());
            for fits in [true, false] {
                let put = objects.put_opts(&path, "c".into(), PutMode::Create.into()).await;
                assert_eq!(put.is_ok(), fits);
            }
            for fits in [true, false] {
                let created = objects.prepare(&Path::from("a/d"), "e".into()).create().await;
                assert_eq!(created.is_ok(), fits);
            }
            let copied = objects.copy(&path, &Path::from("d")).await;
            assert!(copied.is_err(), "a directory on disk copies nothing");
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        metrics::with_local_recorder(&registry, || runtime.block_on(asking));
        let rendered = registry.render();
        for line in [
            "sluice_object_requests_total{call=\"get\"} 1",
            "sluice_object_requests_total{call=\"put\"} 4",
            "sluice_object_failures_total{call=\"copy\"} 1",
        ] {
            assert!(
                rendered.lines().any(|found| found == line),
                "{line} is not in\n{rendered}"
            );
        }
        assert!(!rendered.contains("failures_total{call=\"put\"}"), "{rendered}");
    }
}
