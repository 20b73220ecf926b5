//! Cache of the footers of large parts, so that a page of few rows does not read and parse a footer.
//!
//! Invariants: the cache never exceeds its budget. A part never changes, so a cached footer stays correct. A damaged
//! part has no cached footer.

use std::collections::HashMap;
use std::sync::Arc;

use object_store::path::Path;
use parking_lot::Mutex;
use parquet::file::metadata::ParquetMetaData;

/// Maximum size of all cached footers in bytes.
const CACHE_BYTES: usize = 64 << 20;

/// Footers by the path of their part.
#[derive(Debug, Default)]
pub(crate) struct Footers {
    kept: Mutex<CachedFooters>,
}

#[derive(Debug, Default)]
struct CachedFooters {
    footers: HashMap<Path, Arc<ParquetMetaData>>,
    bytes: usize,
}

impl Footers {
    /// Returns the cached footer of a part.
    pub(crate) fn get(&self, part: &Path) -> Option<Arc<ParquetMetaData>> {
        let kept = self.kept.lock();
        kept.footers.get(part).map(Arc::clone)
    }

    /// Caches a footer. If the budget is exceeded, all other footers are dropped. A footer above a quarter of the
    /// budget is not cached.
    pub(crate) fn put(&self, part: &Path, footer: &Arc<ParquetMetaData>) {
        let mut kept = self.kept.lock();
        if kept.footers.contains_key(part) {
            return;
        }
        let size = footer.memory_size();
        // One huge footer must not evict all others again and again.
        if size > CACHE_BYTES / 4 {
            return;
        }
        // Dropping everything needs no order of use, and a footer is cheap to read again.
        if kept.bytes + size > CACHE_BYTES {
            *kept = CachedFooters::default();
        }
        kept.footers.insert(part.clone(), Arc::clone(footer));
        kept.bytes += size;
    }

    /// Drops the footer of a damaged part, because the part may be restored from a copy.
    pub(crate) fn forget(&self, part: &Path) {
        let mut kept = self.kept.lock();
        if let Some(footer) = kept.footers.remove(part) {
            kept.bytes = kept.bytes.saturating_sub(footer.memory_size());
        }
    }
}
