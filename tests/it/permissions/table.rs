//! Table of permissions: one row for each operation, one cell for each caller.
//!
//! Invariant: `permissions.tsv` was written from the interface, before the service, and stays as it is. Rows of paths
//! that the interface does not name, and of further items, are in `more.tsv`.

use std::collections::BTreeSet;
use std::fmt;

const INTERFACE: &str = include_str!("permissions.tsv");
const MORE: &str = include_str!("more.tsv");
/// First column of a caller.
const FIRST_CALLER: usize = 4;
const CALLERS: usize = 16;

/// The callers, in the order of the columns.
pub(super) fn callers() -> Vec<&'static str> {
    let head: Vec<&str> = INTERFACE.lines().next().unwrap().split('\t').collect();
    head[FIRST_CALLER..FIRST_CALLER + CALLERS].to_vec()
}

/// Statuses that a cell allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expected(Vec<&'static str>);

impl Expected {
    pub(super) fn allows(&self, status: u16) -> bool {
        self.0.iter().any(|word| match *word {
            "3xx" => (300..400).contains(&status),
            word => word.parse() == Ok(status),
        })
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("|"))
    }
}

/// Permissions of one operation on one kind of item.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) group: &'static str,
    pub(super) operation: &'static str,
    pub(super) fixture: &'static str,
    pub(super) cells: Vec<(&'static str, Expected)>,
    /// Permission that the token of an app needs; `-` for none.
    pub(super) scope: &'static str,
}

impl Row {
    fn of(line: &'static str) -> Self {
        let columns: Vec<&'static str> = line.split('\t').collect();
        assert_eq!(columns.len(), FIRST_CALLER + CALLERS + 3, "{line}");
        let cells = columns[FIRST_CALLER..FIRST_CALLER + CALLERS].iter();
        Self {
            group: columns[0],
            operation: columns[1],
            fixture: columns[3],
            cells: callers()
                .into_iter()
                .zip(cells.map(|cell| Expected(cell.split('|').collect())))
                .collect(),
            scope: columns[FIRST_CALLER + CALLERS],
        }
    }

    /// Method and path of the operation, without its query.
    pub(super) fn route(&self) -> Option<(&'static str, &'static str)> {
        let (method, path) = self.operation.split_once(' ')?;
        let path = path.split('?').next()?;
        (path.starts_with('/') && !path.contains(' ')).then_some((method, path))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {}", self.group, self.operation)
    }
}

fn of(text: &'static str) -> impl Iterator<Item = Row> {
    text.lines().skip(1).map(Row::of)
}

/// Every row: those of the interface, then the further ones.
pub(super) fn rows() -> Vec<Row> {
    of(INTERFACE).chain(of(MORE)).collect()
}

#[test]
fn the_table_of_the_interface_is_whole() {
    assert_eq!((of(INTERFACE).count(), callers().len()), (143, 16));
    let rows = rows();
    let unique: BTreeSet<String> = rows.iter().map(|row| format!("{row} {}", row.fixture)).collect();
    assert_eq!(unique.len(), rows.len());
}
