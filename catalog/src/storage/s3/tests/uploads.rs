//! Objects that others put in parts.

use super::*;

const MIB: usize = 1 << 20;

/// Puts bytes to an address; answers the status and the entity tag.
async fn put(url: &str, bytes: Vec<u8>) -> (u16, String) {
    let client = s3_server::caller().build().unwrap();
    let answer = client.put(url).body(bytes).send().await.unwrap();
    let tag = answer.headers().get("etag").map(|tag| tag.to_str().unwrap().to_owned());
    (answer.status().as_u16(), tag.unwrap_or_default())
}

struct Upload {
    place: Place,
    store: S3,
    path: Path,
    id: String,
}

impl Upload {
    async fn begin() -> Self {
        let place = Place::new();
        let store = place.open().await;
        let path = Path::from("uploads/one");
        let id = store.upload_begin(&path).await.unwrap();
        Self { place, store, path, id }
    }

    fn address(&self, number: u16, bytes: usize) -> String {
        let lasting = Duration::from_hours(6);
        let address = self
            .store
            .upload_address(&self.path, &self.id, number, bytes as u64, lasting);
        address.unwrap().url
    }

    async fn complete(&self, tags: &[&str], bytes: usize) -> Result<CompletedUpload, UploadError> {
        let tags: Vec<_> = tags.iter().map(|&tag| tag.to_owned()).collect();
        self.store
            .upload_complete(&self.path, &self.id, &tags, bytes as u64)
            .await
    }
}

#[tokio::test]
async fn parts_become_one_object_that_is_read_in_ranges() {
    let upload = Upload::begin().await;
    let (first, second) = (vec![1; 5 * MIB], vec![2; 1_234]);
    let (status, one) = put(&upload.address(1, first.len()), first.clone()).await;
    assert_eq!(status, 200);
    let (status, two) = put(&upload.address(2, second.len()), second.clone()).await;
    assert_eq!(status, 200);
    let bytes = first.len() + second.len();
    // As a client may hand them on: with and without their quotes.
    let completed = upload.complete(&[&one, two.trim_matches('"')], bytes).await.unwrap();
    assert_eq!(completed.bytes, bytes as u64);
    let around = (5 * MIB - 3) as u64..(5 * MIB + 3) as u64;
    let read = upload.store.get_range(&upload.path, around).await.unwrap();
    assert_eq!(read[..], [1, 1, 1, 2, 2, 2]);
    // Who did not hear it asks again.
    assert_eq!(upload.complete(&[&one, &two], bytes).await.unwrap(), completed);
}

#[tokio::test]
async fn a_part_of_another_length_is_refused_by_the_store() {
    let upload = Upload::begin().await;
    let url = upload.address(1, 1_000);
    for bytes in [0, 1, 999, 1_001, 100_000] {
        let (status, tag) = put(&url, vec![7; bytes]).await;
        assert_eq!((status, tag.as_str()), (403, ""), "{bytes}");
    }
    let (status, tag) = put(&url, vec![7; 1_000]).await;
    assert_eq!(status, 200);
    let completed = upload.complete(&[&tag], 1_000).await.unwrap();
    assert_eq!(completed.bytes, 1_000);
}

#[tokio::test]
async fn an_address_takes_its_own_part_only() {
    let upload = Upload::begin().await;
    let url = upload.address(1, 10);
    for (from, to) in [
        ("partNumber=1", "partNumber=2"),
        ("uploads/one", "uploads/two"),
        (upload.id.as_str(), "00000000-0000-0000-0000-000000000000"),
    ] {
        let other = url.replace(from, to);
        assert_ne!(other, url);
        assert_eq!(put(&other, vec![7; 10]).await.0, 403, "{from}");
    }
    for number in [0, 10_001] {
        let refused = upload
            .store
            .upload_address(&upload.path, &upload.id, number, 1, Duration::from_hours(1));
        assert!(matches!(refused, Err(UploadError::Number { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn other_tags_than_were_answered_are_a_conflict() {
    let upload = Upload::begin().await;
    let (_, one) = put(&upload.address(1, 5 * MIB), vec![1; 5 * MIB]).await;
    let (_, two) = put(&upload.address(2, 10), vec![2; 10]).await;
    let whole = 5 * MIB + 10;
    for tags in [&[&two, &one][..], &[&one, &one], &[&one, &two, &two], &[&two]] {
        let tags: Vec<_> = tags.iter().map(|tag| tag.as_str()).collect();
        let refused = upload.complete(&tags, whole).await.unwrap_err();
        assert!(matches!(refused, UploadError::Mismatch { .. }), "{refused:?}");
        assert_eq!(refused.kind(), Kind::Conflict);
    }
    // A part may be put again until then; the tag of the last one counts.
    let (_, again) = put(&upload.address(2, 10), vec![3; 10]).await;
    let stale = upload.complete(&[&one, &two], whole).await.unwrap_err();
    assert!(matches!(stale, UploadError::Mismatch { .. }), "{stale:?}");
    upload.complete(&[&one, &again], whole).await.unwrap();
    let read = upload
        .store
        .get_range(&upload.path, 5 * MIB as u64..whole as u64)
        .await
        .unwrap();
    assert_eq!(read[..], [3; 10]);
}

#[tokio::test]
async fn fewer_bytes_than_announced_are_a_conflict() {
    let upload = Upload::begin().await;
    let (_, one) = put(&upload.address(1, 10), vec![1; 10]).await;
    let refused = upload.complete(&[&one], 20).await.unwrap_err();
    assert!(
        matches!(
            refused,
            UploadError::Size {
                announced: 20,
                found: 10
            }
        ),
        "{refused:?}"
    );
    assert_eq!(refused.kind(), Kind::Conflict);
}

#[tokio::test]
async fn an_upload_that_was_given_up_is_gone() {
    let upload = Upload::begin().await;
    let url = upload.address(1, 10);
    let (_, one) = put(&url, vec![1; 10]).await;
    for _ in 0..2 {
        upload.store.upload_abort(&upload.path, &upload.id).await.unwrap();
    }
    assert_ne!(put(&url, vec![1; 10]).await.0, 200);
    let gone = upload.complete(&[&one], 10).await.unwrap_err();
    assert!(
        matches!(gone, UploadError::Gone { .. } | UploadError::Mismatch { .. }),
        "{gone:?}"
    );
    assert_eq!(gone.kind(), Kind::Conflict);
}

#[tokio::test]
async fn a_completion_whose_answer_was_lost_is_one() {
    for fault in [
        Fault::LostAnswer,
        Fault::DoneThenInternal,
        Fault::Internal,
        Fault::SlowDown,
    ] {
        let upload = Upload::begin().await;
        let (_, one) = put(&upload.address(1, 10), vec![1; 10]).await;
        upload
            .place
            .server
            .faults()
            .add(Rule::next(fault, "POST", "uploads/one", 1));
        let completed = upload.complete(&[&one], 10).await.unwrap();
        assert_eq!(completed.bytes, 10, "{fault:?}");
        assert_eq!(upload.place.server.faults().happened(fault), 1, "{fault:?}");
    }
}
