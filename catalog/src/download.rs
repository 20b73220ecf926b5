//! Parts as the files they are, for who copies them.
//!
//! Invariant: nothing but a part of a table can be named, and a copy holds no more than a few pieces in memory.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use types::DatasetId;

use crate::part::lost;
use crate::{Catalog, Error};

/// How many bytes of a part are read at once.
const PIECE: u64 = 1 << 20;
/// How many pieces are read before they are asked for.
const AHEAD: usize = 2;

impl Catalog {
    /// The size of the file of the part `name`; `None` where there is no such part.
    pub async fn part_size(&self, dataset: DatasetId, name: &str) -> Result<Option<u64>, Error> {
        let Some(path) = path(dataset, name) else {
            return Ok(None);
        };
        match self.objects().head(&path).await {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(Error::storage(&path, error)),
        }
    }

    /// Bytes of the part `name`, in order; `range` is within its size. A part that does not exist has none.
    pub fn part_bytes(
        &self,
        dataset: DatasetId,
        name: &str,
        range: Range<u64>,
    ) -> BoxStream<'static, Result<Bytes, Error>> {
        let Some(path) = path(dataset, name) else {
            return stream::empty().boxed();
        };
        let pieces = (0..(range.end - range.start).div_ceil(PIECE)).map(move |piece| {
            let start = range.start + piece * PIECE;
            start..range.end.min(start + PIECE)
        });
        let objects = Arc::clone(self.objects());
        let read = move |piece| {
            let (objects, path) = (Arc::clone(&objects), path.clone());
            async move {
                let read = objects.get_range(&path, piece).await;
                read.map_err(|error| lost(&path, error))
            }
        };
        stream::iter(pieces).map(read).buffered(AHEAD).boxed()
    }
}

/// The object of a part; `None` where the name is not one that parts have.
fn path(dataset: DatasetId, name: &str) -> Option<Path> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let stem = name.strip_prefix("part-")?.strip_suffix(".parquet")?;
    (!stem.is_empty() && stem.bytes().all(plain)).then(|| Path::from(format!("{dataset}/{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_parts_have_a_path() {
        let dataset = DatasetId::from_bytes([7; 16]);
        assert!(path(dataset, "part-00000000000000000001-0a-0b.parquet").is_some());
        for name in [
            "",
            "part-.parquet",
            "_delta_log/00000000000000000000.json",
            "part-/../../x.parquet",
            "part-1.parquet/x",
            "part-A.parquet",
            "part-%2e.parquet",
        ] {
            assert!(path(dataset, name).is_none(), "{name}");
        }
    }
}
