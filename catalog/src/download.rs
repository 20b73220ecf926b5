//! Parts as files, for clients that copy a table.
//!
//! Invariants: only a part that a commit names can be read. Every byte is verified before it leaves. A copy has at most
//! a few pieces in memory.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use types::DatasetId;

use crate::part::{self, PartInfo};
use crate::{Catalog, Error};

/// Bytes per read request.
const PIECE_BYTES: u64 = 1 << 20;
/// Number of pieces that are requested before the caller polls for them.
const PIECES_AHEAD: usize = 2;

impl Catalog {
    /// Returns the part of a dataset by its file name. Returns `None` if no commit names it.
    pub async fn part(&self, dataset: DatasetId, name: &str) -> Result<Option<PartInfo>, Error> {
        let state = self.confirmed(dataset).await?;
        let named = state.version_index().part_named(name).cloned();
        if named.is_some() {
            return Ok(named);
        }
        // Another process may have committed the part since.
        state.refresh().await?;
        let named = state.version_index().part_named(name).cloned();
        Ok(named)
    }

    /// Streams the bytes of a part in order. `range` must lie within the part's size. The first piece is read and
    /// verified before this returns.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if bytes differ from the part's proof, [`Error::Storage`] if they cannot be read. The stream
    /// has the same errors.
    pub async fn part_bytes(
        &self,
        dataset: DatasetId,
        part: &PartInfo,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        let state = self.state(dataset).await?;
        let proof = part::proof(state.source(), part).await?;
        let path = part.path(dataset);
        // Every piece but the first begins at a block boundary, so no block is read twice.
        let first = range.start / PIECE_BYTES;
        let pieces = (first..range.end.div_ceil(PIECE_BYTES)).map(move |piece| {
            let start = piece * PIECE_BYTES;
            range.start.max(start)..range.end.min(start + PIECE_BYTES)
        });
        let read = move |piece: Range<u64>| {
            let (objects, proof, path) = (Arc::clone(&state.objects), Arc::clone(&proof), path.clone());
            async move {
                let read = part::verified(&objects, &path, &proof, &[piece]).await?;
                Ok(read.into_iter().next().unwrap_or_default())
            }
        };
        // The first piece is read here, so that a damaged part gives an error and not a broken body.
        let mut pieces = stream::iter(pieces).map(read).buffered(PIECES_AHEAD).boxed();
        let first = pieces.try_next().await?;
        Ok(stream::iter(first.map(Ok)).chain(pieces).boxed())
    }
}
