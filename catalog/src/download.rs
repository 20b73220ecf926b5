//! Parts as the files they are, for who copies them.
//!
//! Invariant: nothing but a part that a commit names can be read, none of its bytes leave unverified, and a copy holds no
//! more than a few pieces in memory.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use types::DatasetId;

use crate::part::{self, PartInfo};
use crate::{Catalog, Error};

/// How many bytes of a part are read at once.
const PIECE: u64 = 1 << 20;
/// How many pieces are read before they are asked for.
const AHEAD: usize = 2;

impl Catalog {
    /// The part of a dataset that has this name; `None` where no commit names it.
    pub async fn part(&self, dataset: DatasetId, name: &str) -> Result<Option<PartInfo>, Error> {
        let state = self.confirmed(dataset).await?;
        let named = state.timeline().part_named(name).cloned();
        if named.is_some() {
            return Ok(named);
        }
        state.refresh().await?;
        let named = state.timeline().part_named(name).cloned();
        Ok(named)
    }

    /// Bytes of a part, in order; `range` is within its size. The first are read and verified when the stream is there.
    pub async fn part_bytes(
        &self,
        dataset: DatasetId,
        part: &PartInfo,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        let state = self.state(dataset).await?;
        let proof = part::proof(state.source(), part).await?;
        let path = part.path(dataset);
        // Every piece but the first begins with a block.
        let first = range.start / PIECE;
        let pieces = (first..range.end.div_ceil(PIECE)).map(move |piece| {
            let start = piece * PIECE;
            range.start.max(start)..range.end.min(start + PIECE)
        });
        let read = move |piece: Range<u64>| {
            let (objects, proof, path) = (Arc::clone(&state.objects), Arc::clone(&proof), path.clone());
            async move {
                let read = part::verified(&objects, &path, &proof, &[piece]).await?;
                Ok(read.into_iter().next().unwrap_or_default())
            }
        };
        let mut pieces = stream::iter(pieces).map(read).buffered(AHEAD).boxed();
        let first = pieces.try_next().await?;
        Ok(stream::iter(first.map(Ok)).chain(pieces).boxed())
    }
}
