//! Pages of one dataset: its rows, its versions, and the way to all of them.
//!
//! Invariants:
//! - A page shows the values that it is given and asks nothing, so the right to see a row was decided before.
//! - A page of rows has a bounded size, whatever is in the rows: cells are cut, and rows that do not fit are for the next page.
//! - A readme is rendered like any document: markup within it is shown as text, and it loads nothing.

mod column;
mod growth;
mod head;
mod pace;
mod page;
mod record;
mod rows;
mod table;
mod versions;

pub use column::{ColumnOrder, ShownColumn};
pub(crate) use growth::GrowthChart;
pub use growth::GrowthPoint;
pub use head::{DatasetHead, DatasetOffer, DatasetPurchase, DatasetTab};
pub use page::{DatasetPage, ProofOfVersion, SummaryOfVersion, VersionContributor};
pub use record::{DatasetRecordPage, WholeRecord};
pub use rows::{
    ColumnChoice, DatasetRows, DatasetRowsPage, PreviewRows, ReadableRows, RowsState, RowsStatement, ShownFilter,
    VersionChoice,
};
pub use table::RecordRow;
pub use versions::{
    AddedRow, AddedRows, DatasetVersion, DatasetVersionPage, DatasetVersionsPage, LeftOutRecords, VersionFile,
};
