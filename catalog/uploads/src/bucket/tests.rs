use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use catalog::storage::s3::{S3Config, Secret};
use s3_server::{ACCESS_KEY, BUCKET, Fault, REGION, Rule, SECRET_KEY, Server};

use super::*;
use crate::Compression;
use crate::conformance::{self, Fixture};

/// A server over a folder of its own.
struct Place {
    folder: tempfile::TempDir,
    server: Server,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(folder.path()).unwrap();
        Self { folder, server }
    }

    fn objects(&self) -> BucketUploads {
        let config = S3Config {
            endpoint: self.server.endpoint(),
            region: REGION.to_owned(),
            bucket: BUCKET.to_owned(),
            prefix: "some/tables".to_owned(),
            access_key: ACCESS_KEY.to_owned(),
            secret_key: Secret::new(SECRET_KEY.to_owned()),
            path_style: true,
            attempt: Duration::from_secs(2),
            patience: Duration::from_secs(8),
        };
        BucketUploads::new(S3::connect(&config).unwrap())
    }

    /// Every file of the bucket, and every part of an upload to it, which are beside it.
    fn files(&self) -> Vec<PathBuf> {
        let mut pending = vec![self.folder.path().to_owned()];
        let mut files = Vec::new();
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.path().is_dir() {
                    pending.push(entry.path());
                } else if !name.starts_with('.') || name.contains(".part-") {
                    files.push(entry.path());
                }
            }
        }
        files
    }
}

/// Puts bytes to an address; the status, and the tag.
async fn send(url: &str, bytes: impl Into<Bytes>) -> (u16, Option<String>) {
    let client = s3_server::caller().build().unwrap();
    let sent = client.put(url).body(bytes.into()).send().await.unwrap();
    let tag = sent.headers().get("etag").map(|tag| tag.to_str().unwrap().to_owned());
    (sent.status().as_u16(), tag)
}

#[async_trait]
impl Fixture for Place {
    fn open(&self) -> Arc<dyn UploadStore> {
        Arc::new(self.objects())
    }

    async fn put(&self, _: &UploadLayout, _: u32, url: Option<&str>, bytes: Bytes) -> Option<String> {
        let (status, tag) = send(url.unwrap(), bytes).await;
        assert_eq!(status == 200, tag.is_some(), "{status}");
        tag
    }

    fn left(&self) -> usize {
        self.files().len()
    }
}

conformance::suite!(Place::new());

fn layout(bytes: u64, parts: u32, part_size: u64) -> UploadLayout {
    UploadLayout {
        upload: ContributionId::from_bytes([9; 16]),
        bytes,
        parts,
        part_size,
        compression: Compression::None,
    }
}

async fn begin(objects: &BucketUploads, layout: &UploadLayout) -> Vec<String> {
    let begun = objects.begin(layout, Duration::from_hours(6)).await.unwrap();
    begun.unwrap()
}

/// Puts parts to their addresses.
async fn fill(urls: &[String], parts: &[&'static str]) -> Vec<PartTag> {
    let mut tags = Vec::new();
    for ((n, url), part) in (1..).zip(urls).zip(parts) {
        let (status, tag) = send(url, *part).await;
        assert_eq!(status, 200);
        let etag = tag.unwrap().trim_matches('"').to_owned();
        tags.push(PartTag { n, etag });
    }
    tags
}

#[tokio::test]
async fn an_address_is_good_for_its_part_its_length_and_its_time() {
    let place = Place::new();
    let objects = place.objects();
    let layout = layout(7, 2, 4);
    let urls = begin(&objects, &layout).await;
    for bytes in ["abc", "abcde", ""] {
        assert_eq!(send(&urls[0], bytes).await.0, 403, "{bytes}");
    }
    // Another part, another time, another signature.
    let signature = urls[0].rsplit_once("X-Amz-Signature=").unwrap().0;
    for other in [
        urls[0].replace("parts-1", "parts-2"),
        urls[0].replace("X-Amz-Expires=21600", "X-Amz-Expires=99999"),
        format!("{signature}X-Amz-Signature={}", "0".repeat(64)),
    ] {
        assert_ne!(other, urls[0]);
        assert_eq!(send(&other, "abcd").await.0, 403, "{other}");
    }
    let over = UploadLayout {
        upload: ContributionId::from_bytes([8; 16]),
        ..layout
    };
    let over = objects.begin(&over, Duration::ZERO).await.unwrap().unwrap();
    assert_eq!(send(&over[0], "abcd").await.0, 403);
}

#[tokio::test]
async fn an_address_is_no_good_once_the_upload_is_sealed_or_deleted() {
    let place = Place::new();
    let objects = place.objects();
    let layout = layout(7, 2, 4);
    let urls = begin(&objects, &layout).await;
    let tags = fill(&urls, &["abcd", "efg"]).await;
    objects.complete(&layout, &tags).await.unwrap();
    assert_eq!(send(&urls[0], "late").await.0, 404);
    objects.delete(layout.upload).await.unwrap();
    assert_eq!(send(&urls[1], "efg").await.0, 404);
    assert_eq!(place.left(), 0);
    let urls = begin(&objects, &layout).await;
    fill(&urls, &["abcd"]).await;
    objects.delete(layout.upload).await.unwrap();
    assert_eq!(send(&urls[0], "abcd").await.0, 404);
    assert_eq!(place.left(), 0);
    let closed = objects.complete(&layout, &tags).await;
    assert!(matches!(closed, Err(Error::Closed)), "{closed:?}");
}

/// As the caller of a replica that dies.
#[tokio::test]
async fn a_completion_that_nobody_waits_for_any_more_can_be_asked_for_again() {
    let place = Place::new();
    let objects = place.objects();
    for turn in 0..40 {
        let layout = UploadLayout {
            upload: ContributionId::from_bytes([turn; 16]),
            ..layout(7, 2, 4)
        };
        let urls = begin(&objects, &layout).await;
        let tags = fill(&urls, &["abcd", "efg"]).await;
        let patience = Duration::from_micros(250) * u32::from(turn);
        drop(tokio::time::timeout(patience, objects.complete(&layout, &tags)).await);
        objects.complete(&layout, &tags).await.unwrap();
        assert_eq!(objects.read(&layout, 2, 0..3).await.unwrap(), "efg");
    }
}

/// Who has the credential may do what no address allows.
#[tokio::test]
async fn an_object_that_was_exchanged_or_taken_away_is_never_read_as_what_was_sealed() {
    for (bytes, parts, size) in [(7, 2, 4), (4, 1, 4)] {
        let place = Place::new();
        let objects = place.objects();
        let layout = layout(bytes, parts, size);
        let urls = begin(&objects, &layout).await;
        let tags = fill(&urls, &["abcd", "efg"]).await;
        objects.complete(&layout, &tags).await.unwrap();
        assert_eq!(objects.read(&layout, 1, 0..4).await.unwrap(), "abcd");
        let file = place
            .files()
            .into_iter()
            .find(|file| file.ends_with("parts-1"))
            .unwrap();
        let url = urls[0].split('?').next().unwrap();
        assert!(url.ends_with("parts-1"), "{url}");
        let again = begin_anew(&place, url).await;
        assert_eq!(again, 200);
        let changed = objects.read(&layout, 1, 0..4).await;
        assert!(matches!(changed, Err(Error::Changed { n: 1 })), "{changed:?}");
        fs::remove_file(file).unwrap();
        let gone = objects.read(&layout, 1, 0..4).await;
        assert!(matches!(gone, Err(Error::Gone { n: 1 })), "{gone:?}");
    }
}

/// Overwrites the object at this address with one of as many bytes.
async fn begin_anew(place: &Place, url: &str) -> u16 {
    use catalog::storage::s3::S3;
    use object_store::{ObjectStore as _, PutMode};

    let config = S3Config {
        endpoint: place.server.endpoint(),
        region: REGION.to_owned(),
        bucket: BUCKET.to_owned(),
        prefix: String::new(),
        access_key: ACCESS_KEY.to_owned(),
        secret_key: Secret::new(SECRET_KEY.to_owned()),
        path_style: true,
        attempt: Duration::from_secs(2),
        patience: Duration::from_secs(4),
    };
    let path = url.split_once(&format!("{BUCKET}/")).unwrap().1;
    let store = S3::connect(&config).unwrap();
    let put = store
        .put_opts(&path.into(), "ABCD".into(), PutMode::Overwrite.into())
        .await;
    if put.is_ok() { 200 } else { 0 }
}

/// What a request can be answered by, and be tried again.
const PASSING: [Fault; 5] = [
    Fault::Internal,
    Fault::SlowDown,
    Fault::DoneThenInternal,
    Fault::LostAnswer,
    Fault::Slow(Duration::from_millis(30)),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_the_store_misbehaves() {
    const SIZE: usize = 5 << 20;
    for (bytes, parts, size) in [(7, 2, 4), (SIZE as u64 + 3, 2, SIZE as u64)] {
        for fault in PASSING {
            let place = Place::new();
            let objects = place.objects();
            let layout = layout(bytes, parts, size);
            let urls = begin(&objects, &layout).await;
            let mut tags = Vec::new();
            for (n, url) in (1..).zip(&urls) {
                let part = vec![n; usize::try_from(layout.size_of(n.into()).unwrap()).unwrap()];
                let (status, tag) = send(url, part).await;
                assert_eq!(status, 200);
                let etag = tag.unwrap().trim_matches('"').to_owned();
                tags.push(PartTag { n: n.into(), etag });
            }
            // Listing, completing, and both documents.
            let faults = place.server.faults();
            for (method, path) in [
                ("GET", "parts-1"),
                ("POST", "parts-1"),
                ("PUT", "sealed"),
                ("GET", "begun"),
            ] {
                faults.add(Rule::next(fault, method, path, 1));
            }
            objects.complete(&layout, &tags).await.unwrap();
            assert_eq!(faults.happened(fault), 4, "{fault:?}");
            faults.add(Rule::next(fault, "GET", "", 2));
            assert_eq!(objects.read(&layout, 1, 0..2).await.unwrap(), [1, 1][..], "{fault:?}");
            assert_eq!(objects.read(&layout, 2, 1..3).await.unwrap(), [2, 2][..], "{fault:?}");
            faults.add(Rule::next(fault, "GET", "begun", 1));
            faults.add(Rule::next(fault, "POST", "", 1));
            // Who frees comes again.
            if objects.delete(layout.upload).await.is_err() {
                objects.delete(layout.upload).await.unwrap();
            }
            assert_eq!(faults.happened(fault), 8, "{fault:?}");
            assert_eq!(place.left(), 0, "{fault:?}");
        }
    }
}

#[tokio::test]
async fn an_upload_that_could_not_be_begun_leaves_nothing() {
    let place = Place::new();
    let objects = place.objects();
    let layout = layout(7, 2, 4);
    place
        .server
        .faults()
        .add(Rule::next(Fault::Internal, "PUT", "begun", u64::MAX));
    let failed = objects.begin(&layout, Duration::from_hours(6)).await;
    assert!(matches!(failed, Err(Error::Io(_))), "{failed:?}");
    place.server.faults().clear();
    assert_eq!(place.left(), 0);
    objects.delete(layout.upload).await.unwrap();
    // Nothing stands in the way of another try.
    assert_eq!(begin(&objects, &layout).await.len(), 2);
}

#[tokio::test]
async fn parts_that_cannot_be_freed_are_freed_the_next_time() {
    let place = Place::new();
    let objects = place.objects();
    let layout = layout(7, 2, 4);
    let urls = begin(&objects, &layout).await;
    fill(&urls, &["abcd", "efg"]).await;
    place
        .server
        .faults()
        .add(Rule::next(Fault::Internal, "DELETE", "parts-2", u64::MAX));
    let failed = objects.delete(layout.upload).await;
    assert!(matches!(failed, Err(Error::Io(_))), "{failed:?}");
    assert!(place.left() > 0);
    place.server.faults().clear();
    objects.delete(layout.upload).await.unwrap();
    assert_eq!(place.left(), 0);
}
