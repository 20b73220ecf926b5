//! Rows of Arrow's files (Feather 2) and streams.

use std::io::{BufReader, Read, Seek};

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReader, StreamReader};

use super::arrow_columns::rows;
use super::error::FileError;
use super::nested;
use super::visitor::{RowVisitor, names_of};

/// Name of the type of UUIDs in the metadata of a field (Arrow, canonical extension types).
const UUID_EXTENSION: &str = "arrow.uuid";
const EXTENSION_KEY: &str = "ARROW:extension:name";

/// Visits every row of a file.
pub(super) fn visit_file(input: impl Read + Seek, visitor: &mut dyn RowVisitor) -> Result<(), FileError> {
    let reader = FileReader::try_new(BufReader::new(input), None)?;
    let schema = reader.schema();
    visit(&schema, reader, visitor)
}

/// Visits every row of a stream.
pub(super) fn visit_stream(input: impl Read, visitor: &mut dyn RowVisitor) -> Result<(), FileError> {
    let reader = StreamReader::try_new(BufReader::new(input), None)?;
    let schema = reader.schema();
    visit(&schema, reader, visitor)
}

fn visit(
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
    visitor: &mut dyn RowVisitor,
) -> Result<(), FileError> {
    visitor.begin(names_of(schema)?)?;
    let uuids = uuids(schema);
    let mut row = 0;
    for batch in batches {
        rows(&batch?, &uuids, |cells| {
            row += 1;
            visitor.row(row, cells)
        })?;
    }
    Ok(())
}

fn uuids(schema: &Schema) -> Vec<Vec<bool>> {
    schema.fields().iter().map(|field| leaves(field)).collect()
}

/// Says of each leaf of a field, in order, whether it is a UUID.
fn leaves(field: &Field) -> Vec<bool> {
    match nested::children(field.data_type()) {
        Some(fields) => fields.into_iter().flat_map(leaves).collect(),
        None => vec![
            field
                .metadata()
                .get(EXTENSION_KEY)
                .is_some_and(|name| name == UUID_EXTENSION),
        ],
    }
}
