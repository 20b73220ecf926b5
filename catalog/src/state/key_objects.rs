//! Key objects: the record keys of a range of versions in one object, so that a new owner of a large table need not
//! read its parts.
//!
//! Invariants: a key object is used only if the log has its last version with the same content root and row counts. A
//! damaged object, or one of another history, costs one read. Key objects are derived and can be deleted. One is
//! written whenever keys are stored, so their cost per version is constant.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use object_store::path::Path;
use object_store::{ObjectStore as _, ObjectStoreExt as _};
use types::{DatasetId, RecordKey, Version};

use super::{PARTS_AT_ONCE, TableState};
use crate::keys::{FlushBatch, KeyIndex};
use crate::{Error, Root, commit};

/// First bytes of every key object of this format.
const KEY_OBJECT_MAGIC: &[u8; 16] = b"sluice key run 1";
/// Number of missing versions from which key objects are looked up. For fewer, the parts are cheaper than a listing.
pub(super) const MIN_VERSIONS_FOR_KEY_OBJECTS: u64 = 64;

/// Range of versions in a key object, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct VersionRange {
    first: u64,
    last: u64,
}

impl VersionRange {
    fn path(self, dataset: DatasetId) -> Path {
        let Self { first, last } = self;
        Path::from(format!("{dataset}/_sluice/keys-{first:020}-{last:020}"))
    }

    fn of(name: &str) -> Option<Self> {
        let (first, last) = name.strip_prefix("keys-")?.split_once('-')?;
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (0 < first && first <= last).then_some(Self { first, last })
    }
}

impl TableState {
    /// Writes stored keys as a key object. A failure is only logged, because the parts have the keys too.
    pub(crate) async fn put_key_object(&self, batch: FlushBatch, version: Version, root: Root) {
        let span = VersionRange {
            first: batch.after.0 + 1,
            last: version.0,
        };
        let bytes = encode(self.dataset, span, root, &batch.keys);
        let path = span.path(self.dataset);
        if let Err(error) = commit::overwrite(self, &path, bytes.into()).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "cannot write a key object; a new owner reads the parts instead");
        }
    }

    /// Catches up from key objects as far as they follow each other without a gap. Returns `None` if no later object
    /// exists. Otherwise returns the version before the next object, up to which the caller reads parts.
    pub(super) async fn catch_up_from_key_objects(
        self: &Arc<Self>,
        index: &KeyIndex,
    ) -> Result<Option<Version>, Error> {
        let mut spans = self.key_objects().await;
        loop {
            let head = self.head().0;
            let plan = plan(&spans, index.indexed_version().0, head);
            if plan.is_empty() {
                if index.is_due() {
                    // Keys from parts then start a key object of their own, after the existing ones.
                    let indexed_version = index.indexed_version();
                    self.flush(indexed_version, self.root_at(indexed_version)).await?;
                }
                let after = index.indexed_version().0 + 1;
                let next = spans.iter().map(|span| span.first).filter(|&first| first > after).min();
                return Ok(next.map(|first| Version(first - 1)));
            }
            // Objects are read ahead and inserted in order, since each continues the versions of the one before.
            let mut read = stream::iter(plan)
                .map(|span| async move { (span, self.read_key_object(span).await) })
                .buffered(PARTS_AT_ONCE);
            while let Some((span, keys)) = read.next().await {
                let Some(keys) = keys else {
                    spans.retain(|other| *other != span);
                    break;
                };
                let last = Version(span.last);
                // The commits state how many keys these versions add, so foreign keys are found.
                let new = self.rows_at(last).saturating_sub(self.rows_at(index.indexed_version()));
                if !index.insert_key_object(Version(span.first - 1), last, keys, new)? {
                    tracing::warn!(
                        path = %span.path(self.dataset),
                        "a key object does not fit the versions of its table; ignoring it"
                    );
                    spans.retain(|other| *other != span);
                    break;
                }
                if index.is_due_in_bulk() {
                    self.flush(last, self.root_at(last)).await?;
                }
            }
        }
    }

    /// Lists the key objects in no order. Returns an empty list if the store cannot list them.
    async fn key_objects(&self) -> Vec<VersionRange> {
        let directory = Path::from(format!("{}/_sluice", self.dataset));
        match self.objects.list_with_delimiter(Some(&directory)).await {
            Ok(found) => {
                let names = found.objects.iter().filter_map(|object| object.location.filename());
                names.filter_map(VersionRange::of).collect()
            }
            Err(error) => {
                tracing::warn!(%directory, %error, "cannot list the key objects of a table; reading the parts");
                Vec::new()
            }
        }
    }

    /// Reads the keys of a key object. Returns `None` if it cannot be read or belongs to another history.
    async fn read_key_object(&self, span: VersionRange) -> Option<Vec<RecordKey>> {
        let path = span.path(self.dataset);
        let read = async { self.objects.get(&path).await?.bytes().await };
        let bytes = read
            .await
            .inspect_err(|error| tracing::warn!(%path, %error, "cannot read a key object; reading the parts"))
            .ok()?;
        let root = self.root_at(Version(span.last));
        // No two rows have the same key, so there are as many keys as rows.
        let rows = self.rows_at(Version(span.last)) - self.rows_at(Version(span.first - 1));
        let keys = decode(self.dataset, span, root, &bytes).filter(|keys| keys.len() as u64 == rows);
        if keys.is_none() {
            tracing::warn!(%path, "a key object is damaged or of another table; ignoring it");
        }
        keys
    }
}

/// Returns the fewest ranges that lead from `from` as far as possible without a gap, in order. None goes beyond `head`.
fn plan(spans: &[VersionRange], from: u64, head: u64) -> Vec<VersionRange> {
    let (mut at, mut plan) = (from, Vec::new());
    let usable = |at: u64| move |span: &&VersionRange| span.first <= at + 1 && at < span.last && span.last <= head;
    while let Some(next) = spans
        .iter()
        .filter(usable(at))
        .max_by_key(|span| (span.last, span.first))
    {
        plan.push(*next);
        at = next.last;
    }
    plan
}

fn encode(dataset: DatasetId, span: VersionRange, root: Root, keys: &[RecordKey]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(120 + 16 * keys.len());
    bytes.extend_from_slice(KEY_OBJECT_MAGIC);
    bytes.extend_from_slice(dataset.as_bytes());
    bytes.extend_from_slice(&span.first.to_le_bytes());
    bytes.extend_from_slice(&span.last.to_le_bytes());
    bytes.extend_from_slice(root.as_bytes());
    for key in keys {
        bytes.extend_from_slice(key.as_bytes());
    }
    let checksum = *blake3::hash(&bytes).as_bytes();
    bytes.extend_from_slice(&checksum);
    bytes
}

/// Decodes a key object. Returns `None` unless it is complete and has this dataset, range and root.
fn decode(dataset: DatasetId, span: VersionRange, root: Root, bytes: &[u8]) -> Option<Vec<RecordKey>> {
    let (body, checksum) = bytes.split_last_chunk::<32>()?;
    if blake3::hash(body) != *checksum {
        return None;
    }
    // The expected head is encoded again and compared as bytes.
    let head = encode(dataset, span, root, &[]);
    let keys = body.strip_prefix(&head[..head.len() - 32])?;
    let (keys, rest) = keys.as_chunks::<16>();
    rest.is_empty()
        .then(|| keys.iter().copied().map(RecordKey::from_bytes).collect())
}

#[cfg(test)]
mod tests {
    use types::Timestamp;

    use super::*;

    const fn span(first: u64, last: u64) -> VersionRange {
        VersionRange { first, last }
    }

    #[test]
    fn key_objects_are_chosen_so_that_none_is_missing_between_them() {
        let spans = [
            span(1, 10),
            span(11, 20),
            span(5, 14),
            span(11, 12),
            span(31, 40),
            span(21, 90),
        ];
        assert_eq!(plan(&spans, 0, 80), [span(1, 10), span(11, 20)]);
        assert_eq!(plan(&spans, 0, 90), [span(1, 10), span(11, 20), span(21, 90)]);
        assert_eq!(plan(&spans, 12, 30), [span(11, 20)]);
        assert_eq!(plan(&spans, 4, 14), [span(5, 14)]);
        assert_eq!(plan(&spans, 0, 9), []);
        assert_eq!(plan(&spans, 40, 60), []);
    }

    #[test]
    fn the_name_of_a_key_object_has_its_versions_and_other_names_are_ignored() {
        let dataset = DatasetId::new(Timestamp::from_micros(1));
        let path = span(1, 256).path(dataset);
        assert_eq!(path.filename().and_then(VersionRange::of), Some(span(1, 256)));
        for name in ["timeline", "keys-", "keys-1", "keys-a-b", "keys-0-4", "keys-5-4"] {
            assert_eq!(VersionRange::of(name), None, "{name}");
        }
    }

    #[test]
    fn a_key_object_of_something_else_is_nothing() {
        let dataset = DatasetId::new(Timestamp::from_micros(1));
        let keys: Vec<_> = (0..9).map(|byte| RecordKey::from_bytes([byte; 16])).collect();
        let (root, other) = (Root::from_bytes([7; 32]), Root::from_bytes([8; 32]));
        let bytes = encode(dataset, span(3, 4), root, &keys);
        assert_eq!(decode(dataset, span(3, 4), root, &bytes).as_deref(), Some(&keys[..]));
        assert!(decode(dataset, span(3, 5), root, &bytes).is_none());
        assert!(decode(dataset, span(3, 4), other, &bytes).is_none());
        assert!(decode(DatasetId::new(Timestamp::from_micros(2)), span(3, 4), root, &bytes).is_none());
        for end in 0..bytes.len() {
            assert!(decode(dataset, span(3, 4), root, &bytes[..end]).is_none(), "{end}");
        }
    }
}
