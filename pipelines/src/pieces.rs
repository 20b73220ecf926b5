//! The bytes of an upload, read in order.

use std::ops::Range;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use uploads::{UploadLayout, UploadStore};

/// Bytes of a part that are read at once.
const PIECE: u64 = 1 << 20;
/// Number of pieces that are read at once.
pub(crate) const AT_ONCE: usize = 4;

/// Reads the bytes of every part in order.
pub(crate) fn pieces<'a>(
    objects: &'a dyn UploadStore,
    layout: &'a UploadLayout,
) -> impl Stream<Item = Result<Bytes, uploads::Error>> + Send + 'a {
    let ranges = (1..=layout.parts).flat_map(|n| {
        let size = layout.size_of(n).unwrap_or(0);
        (0..size.div_ceil(PIECE)).map(move |piece| (n, piece * PIECE..size.min((piece + 1) * PIECE)))
    });
    // Several at once, because each answer of a distant store takes long.
    let reading = ranges.map(|(n, range): (u32, Range<u64>)| objects.read(layout, n, range));
    stream::iter(reading).buffered(AT_ONCE)
}
