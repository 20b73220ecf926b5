//! Size of a page of records.
//!
//! Invariant: a page has a record at least, whatever the size.

/// Size at which a page of records ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageSize {
    pub(crate) most: usize,
    /// True if no record but the first takes the page beyond the size; false if the record that reaches it is the last.
    pub(crate) is_strict: bool,
}

impl PageSize {
    /// Size of a page outside of MCP. It bounds the memory of a page of large records.
    pub(crate) const LARGE: Self = Self {
        most: 8 << 20,
        is_strict: false,
    };

    /// Returns true if a page that has `bytes` of records ends before a record of `next` bytes.
    pub(crate) const fn ends_before(self, bytes: usize, next: usize) -> bool {
        if self.is_strict {
            bytes > 0 && bytes.saturating_add(next) > self.most
        } else {
            bytes >= self.most
        }
    }
}
