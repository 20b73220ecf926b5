//! The footers of large parts, kept so that a page does not read and parse one for its few rows.
//!
//! Invariant: the cache never holds more than its budget, and a part never changes, so what it holds never lies. Of a part
//! that is damaged it holds nothing.

use std::collections::HashMap;
use std::sync::Arc;

use object_store::path::Path;
use parking_lot::Mutex;
use parquet::file::metadata::ParquetMetaData;

/// The most bytes that all footers take.
const BUDGET: usize = 64 << 20;

/// Footers by part.
#[derive(Debug, Default)]
pub(crate) struct Footers {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    footers: HashMap<Path, Arc<ParquetMetaData>>,
    bytes: usize,
}

impl Footers {
    /// The footer of a part, if it is kept.
    pub(crate) fn get(&self, part: &Path) -> Option<Arc<ParquetMetaData>> {
        let kept = self.kept.lock();
        kept.footers.get(part).map(Arc::clone)
    }

    /// Keeps a footer; what is beyond the budget makes room by forgetting the rest.
    pub(crate) fn put(&self, part: &Path, footer: &Arc<ParquetMetaData>) {
        let mut kept = self.kept.lock();
        if kept.footers.contains_key(part) {
            return;
        }
        let size = footer.memory_size();
        if size > BUDGET / 4 {
            return;
        }
        if kept.bytes + size > BUDGET {
            *kept = Kept::default();
        }
        kept.footers.insert(part.clone(), Arc::clone(footer));
        kept.bytes += size;
    }

    /// Forgets the footer of a part that is damaged, as it may be restored from a copy.
    pub(crate) fn forget(&self, part: &Path) {
        let mut kept = self.kept.lock();
        if let Some(footer) = kept.footers.remove(part) {
            kept.bytes = kept.bytes.saturating_sub(footer.memory_size());
        }
    }
}
