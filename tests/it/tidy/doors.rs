//! Checks the table of faults that strangers met.
//!
//! Invariant: each row names tests and files that exist.

use std::collections::BTreeSet;

use super::{none, root, sources};

const TABLE: &str = include_str!("../../fixtures/doors.md");

#[test]
fn the_table_of_doors_names_tests_and_files_that_exist() {
    let sources = sources();
    let functions: BTreeSet<&str> = sources
        .iter()
        .flat_map(|(_, text)| text.split("fn ").skip(1))
        .filter_map(|rest| rest.split_once('(').map(|(name, _)| name))
        .collect();
    let mut problems = Vec::new();
    for named in TABLE.split('`').skip(1).step_by(2) {
        let last = named.rsplit([':', ' ']).next().unwrap_or(named);
        // A test has a package and a path or a long name, a file an ending. Other words are of the faults.
        let is_known = if named.contains(": ") && last.contains('_') {
            functions.contains(last)
        } else {
            !named.contains('/') || !named.contains('.') || root().join(named).is_file()
        };
        if !is_known {
            problems.push(format!("`{named}` does not exist"));
        }
    }
    none(&problems);
}
