//! The suite that every place of parts runs: what [`UploadStore`] promises, scenario by scenario.
//!
//! Invariant: parts are put as clients put them, and nothing is known of a place but what the trait says.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use types::ContributionId;

use crate::{Compression, Error, PartTag, UploadLayout, UploadStore};

/// A place for one scenario, empty at first.
#[async_trait]
pub(crate) trait Fixture: Send + Sync {
    /// Opens the place. When called again, it opens what is there as another process would.
    fn open(&self) -> Arc<dyn UploadStore>;

    /// Puts a part, at its address where it has one; its tag, or `None` where it was refused.
    async fn put(&self, layout: &UploadLayout, n: u32, url: Option<&str>, bytes: Bytes) -> Option<String>;

    /// How much is left of uploads.
    fn left(&self) -> usize;
}

/// Makes a test of each scenario, with the fixture that the expression gives.
macro_rules! suite {
    ($fixture:expr) => {
        $crate::conformance::suite! { $fixture;
            parts_that_were_sealed_are_read_as_they_were_put,
            large_parts_are_read_across_their_whole_length,
            what_is_missing_or_other_is_named,
            a_part_has_its_length,
            a_part_may_be_put_again_until_it_is_sealed,
            a_sealed_upload_is_compared_and_takes_no_parts,
            of_those_who_seal_at_once_all_say_the_same,
            another_process_reads_what_this_one_sealed,
            what_was_not_sealed_is_not_read,
            what_is_deleted_is_gone_sealed_or_not,
        }
    };
    ($fixture:expr; $($scenario:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scenario() {
                $crate::conformance::$scenario(&$fixture).await;
            }
        )+
    };
}
pub(crate) use suite;

/// An upload that takes parts.
struct Open<'a, F> {
    fixture: &'a F,
    objects: Arc<dyn UploadStore>,
    layout: UploadLayout,
    urls: Option<Vec<String>>,
}

impl<'a, F: Fixture> Open<'a, F> {
    async fn begin(fixture: &'a F, bytes: u64, parts: u32, part_size: u64) -> Self {
        let objects = fixture.open();
        let layout = UploadLayout {
            upload: ContributionId::from_bytes([9; 16]),
            bytes,
            parts,
            part_size,
            compression: Compression::None,
        };
        let urls = objects.begin(&layout, Duration::from_hours(6)).await.unwrap();
        if let Some(urls) = &urls {
            assert_eq!(urls.len(), parts as usize);
        }
        Self {
            fixture,
            objects,
            layout,
            urls,
        }
    }

    async fn put(&self, n: u32, bytes: impl Into<Bytes>) -> Option<PartTag> {
        let url = self.urls.as_ref().map(|urls| urls[n as usize - 1].as_str());
        let put = self.fixture.put(&self.layout, n, url, bytes.into());
        let etag = put.await?.trim_matches('"').to_owned();
        Some(PartTag { n, etag })
    }

    async fn put_all(&self, parts: &[&'static str]) -> Vec<PartTag> {
        let mut tags = Vec::new();
        for (n, part) in (1..).zip(parts) {
            tags.push(self.put(n, *part).await.unwrap());
        }
        tags
    }

    async fn complete(&self, tags: &[PartTag]) -> Result<(), Error> {
        self.objects.complete(&self.layout, tags).await
    }

    async fn read(&self, n: u32, range: std::ops::Range<u64>) -> Result<Bytes, Error> {
        self.objects.read(&self.layout, n, range).await
    }
}

fn other(n: u32) -> PartTag {
    PartTag {
        n,
        etag: "0".repeat(64),
    }
}

pub(crate) async fn parts_that_were_sealed_are_read_as_they_were_put(fixture: &impl Fixture) {
    let open = Open::begin(fixture, 7, 2, 4).await;
    let tags = open.put_all(&["abcd", "efg"]).await;
    open.complete(&tags).await.unwrap();
    assert_eq!(open.read(1, 0..4).await.unwrap(), "abcd");
    assert_eq!(open.read(1, 1..3).await.unwrap(), "bc");
    assert_eq!(open.read(2, 0..3).await.unwrap(), "efg");
}

/// Of a size at which a store may keep them as one.
pub(crate) async fn large_parts_are_read_across_their_whole_length(fixture: &impl Fixture) {
    const SIZE: usize = 5 << 20;
    let open = Open::begin(fixture, 2 * SIZE as u64 + 5, 3, SIZE as u64).await;
    // The last first.
    let last = open.put(3, "third").await.unwrap();
    let second = open.put(2, vec![2; SIZE]).await.unwrap();
    let first = open.put(1, vec![1; SIZE]).await.unwrap();
    let swapped = open.complete(&[second.clone(), first.clone(), last.clone()]).await;
    assert!(
        matches!(swapped, Err(Error::Differing { ref differing }) if *differing == [1, 2]),
        "{swapped:?}"
    );
    open.complete(&[first, second, last]).await.unwrap();
    let size = SIZE as u64;
    assert!(open.read(1, 0..size).await.unwrap().iter().all(|byte| *byte == 1));
    assert_eq!(open.read(1, size - 1..size).await.unwrap(), [1][..]);
    assert_eq!(open.read(2, 0..2).await.unwrap(), [2, 2][..]);
    assert_eq!(open.read(2, size - 1..size).await.unwrap(), [2][..]);
    assert_eq!(open.read(3, 1..5).await.unwrap(), "hird");
}

pub(crate) async fn what_is_missing_or_other_is_named(fixture: &impl Fixture) {
    let open = Open::begin(fixture, 7, 2, 4).await;
    let missing = open.complete(&[other(1), other(2)]).await;
    assert!(
        matches!(missing, Err(Error::Missing { ref missing }) if *missing == [1, 2]),
        "{missing:?}"
    );
    let first = open.put(1, "abcd").await.unwrap();
    let missing = open.complete(&[first.clone(), other(2)]).await;
    assert!(
        matches!(missing, Err(Error::Missing { ref missing }) if *missing == [2]),
        "{missing:?}"
    );
    let second = open.put(2, "efg").await.unwrap();
    let differing = open.complete(&[first.clone(), other(2)]).await;
    assert!(
        matches!(differing, Err(Error::Differing { ref differing }) if *differing == [2]),
        "{differing:?}"
    );
    // The tag of another part.
    let (mut one, mut two) = (second.clone(), first.clone());
    (one.n, two.n) = (1, 2);
    let differing = open.complete(&[one, two]).await;
    assert!(
        matches!(differing, Err(Error::Differing { ref differing }) if *differing == [1, 2]),
        "{differing:?}"
    );
    // It was not sealed by any of this.
    assert!(open.put(2, "xyz").await.is_some());
}

pub(crate) async fn a_part_has_its_length(fixture: &impl Fixture) {
    let open = Open::begin(fixture, 7, 2, 4).await;
    for bytes in ["abc", "abcde", "", "abcdefghijkl"] {
        assert!(open.put(1, bytes).await.is_none(), "{bytes}");
    }
    assert!(open.put(2, "efgh").await.is_none());
    let missing = open.complete(&[other(1), other(2)]).await;
    assert!(
        matches!(missing, Err(Error::Missing { ref missing }) if *missing == [1, 2]),
        "{missing:?}"
    );
}

pub(crate) async fn a_part_may_be_put_again_until_it_is_sealed(fixture: &impl Fixture) {
    let open = Open::begin(fixture, 7, 2, 4).await;
    let stale = open.put_all(&["once", "efg"]).await;
    let fresh = open.put(1, "abcd").await.unwrap();
    let differing = open.complete(&stale).await;
    assert!(
        matches!(differing, Err(Error::Differing { ref differing }) if *differing == [1]),
        "{differing:?}"
    );
    open.complete(&[fresh, stale[1].clone()]).await.unwrap();
    assert_eq!(open.read(1, 0..4).await.unwrap(), "abcd");
}

pub(crate) async fn a_sealed_upload_is_compared_and_takes_no_parts(fixture: &impl Fixture) {
    let open = Open::begin(fixture, 7, 2, 4).await;
    let tags = open.put_all(&["abcd", "efg"]).await;
    open.complete(&tags).await.unwrap();
    assert!(open.put(1, "late").await.is_none());
    // Not even the same again.
    assert!(open.put(2, "efg").await.is_none());
    open.complete(&tags).await.unwrap();
    let differing = open.complete(&[tags[0].clone(), other(2)]).await;
    assert!(
        matches!(differing, Err(Error::Differing { ref differing }) if *differing == [2]),
        "{differing:?}"
    );
    assert_eq!(open.read(1, 0..4).await.unwrap(), "abcd");
}

pub(crate) async fn of_those_who_seal_at_once_all_say_the_same(fixture: &impl Fixture) {
    let open = Open::begin(fixture, 7, 2, 4).await;
    let tags = open.put_all(&["abcd", "efg"]).await;
    let (one, two, three) = tokio::join!(open.complete(&tags), open.complete(&tags), open.complete(&tags));
    for sealed in [one, two, three] {
        sealed.unwrap();
    }
    assert_eq!(open.read(2, 0..3).await.unwrap(), "efg");
}

pub(crate) async fn another_process_reads_what_this_one_sealed(fixture: &impl Fixture) {
    let open = Open::begin(fixture, 7, 2, 4).await;
    let tags = open.put_all(&["abcd", "efg"]).await;
    open.complete(&tags).await.unwrap();
    let elsewhere = fixture.open();
    assert_eq!(elsewhere.read(&open.layout, 1, 0..4).await.unwrap(), "abcd");
    elsewhere.complete(&open.layout, &tags).await.unwrap();
    elsewhere.delete(open.layout.upload).await.unwrap();
    assert!(matches!(open.read(1, 0..4).await, Err(Error::Gone { n: 1 })));
}

pub(crate) async fn what_was_not_sealed_is_not_read(fixture: &impl Fixture) {
    let layout = UploadLayout {
        upload: ContributionId::from_bytes([7; 16]),
        bytes: 4,
        parts: 1,
        part_size: 4,
        compression: Compression::None,
    };
    let gone = fixture.open().read(&layout, 1, 0..4).await;
    assert!(matches!(gone, Err(Error::Gone { n: 1 })), "{gone:?}");
}

pub(crate) async fn what_is_deleted_is_gone_sealed_or_not(fixture: &impl Fixture) {
    for (parts, sealed) in [(0, false), (1, false), (2, false), (2, true)] {
        let open = Open::begin(fixture, 7, 2, 4).await;
        let tags = open.put_all(&["abcd", "efg"][..parts]).await;
        if sealed {
            open.complete(&tags).await.unwrap();
            assert!(fixture.left() > 0);
        }
        for _ in 0..2 {
            open.objects.delete(open.layout.upload).await.unwrap();
        }
        assert_eq!(fixture.left(), 0, "{parts} parts, sealed: {sealed}");
        assert!(matches!(open.read(1, 0..4).await, Err(Error::Gone { n: 1 })));
    }
}
