//! Pages of lists.
//!
//! Invariant: a page names a next one only if there is a row for it.

use std::str::FromStr;

use crate::error::ApiError;

/// Problem of a text that is not the cursor of a list for programs.
pub(super) const NOT_A_NEXT_CURSOR: &str = "must be the `nextCursor` of a page before";

/// Parses the cursor of a list, if one is given. A text that is none has the problem `problem`.
pub(super) fn read_cursor<T: FromStr>(text: Option<&str>, problem: &str) -> Result<Option<T>, ApiError> {
    let cursor = text.map(str::parse::<T>).transpose();
    cursor.map_err(|_error| ApiError::invalid("/cursor", problem))
}

/// Cuts a list of one row more than a page has to the page. Returns the last row if there is a next page.
pub(super) fn take_page<T>(rows: &mut Vec<T>, page: u32) -> Option<&T> {
    let more = rows.len() > page as usize;
    rows.truncate(page as usize);
    rows.last().filter(|_| more)
}
