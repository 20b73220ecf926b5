//! Pages of lists.
//!
//! Invariant: a page names a next one only if there is a row for it.

/// Cuts a list of one row more than a page has to the page. Returns the last row if there is a next page.
pub(super) fn take_page<T>(rows: &mut Vec<T>, page: u32) -> Option<&T> {
    let more = rows.len() > page as usize;
    rows.truncate(page as usize);
    rows.last().filter(|_| more)
}
