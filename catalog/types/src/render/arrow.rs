//! Typed columns for other programs: their schema, and the Arrow IPC streaming format.
//!
//! Invariant: a field whose texts are JSON says so in its metadata, in each format that carries metadata.

use std::collections::HashMap;
use std::sync::Arc;
use std::{fmt, mem};

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;

use crate::contract::{Contract, EXTRA_COLUMN, FieldType};

/// Key of the metadata of a field that names the type of its values where Arrow has none.
const TYPE_KEY: &str = "sluice.type";
/// Value for texts that are JSON.
const JSON_TYPE: &str = "json";

/// Returns the columns that other programs read of a contract's records: those of [`Contract::schema`], with JSON marked.
pub fn record_schema(contract: &Contract) -> SchemaRef {
    let schema = contract.schema();
    let is_json = |field: &Field| {
        let declared = contract.fields().iter().find(|declared| declared.name == *field.name());
        field.name() == EXTRA_COLUMN || declared.is_some_and(|declared| declared.kind == FieldType::Json)
    };
    let fields = schema.fields().iter().map(|field| {
        let field = Field::clone(field);
        if is_json(&field) { marked_json(field) } else { field }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Marks a field whose texts are JSON.
pub(super) fn marked_json(field: Field) -> Field {
    field.with_metadata(HashMap::from([(TYPE_KEY.to_owned(), JSON_TYPE.to_owned())]))
}

/// Rows in the Arrow IPC streaming format, batch by batch.
pub struct ArrowStream {
    schema: SchemaRef,
    writer: StreamWriter<Vec<u8>>,
}

impl fmt::Debug for ArrowStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrowStream")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl ArrowStream {
    /// Begins a stream of rows with these columns.
    ///
    /// # Errors
    /// That of the encoder for a type that the format lacks.
    pub fn new(schema: SchemaRef) -> Result<Self, ArrowError> {
        let writer = StreamWriter::try_new(Vec::new(), &schema)?;
        Ok(Self { schema, writer })
    }

    /// Returns the bytes of a batch, before the first with those of the schema.
    ///
    /// # Errors
    /// [`ArrowError::InvalidArgumentError`] if the batch has other columns.
    pub fn encode(&mut self, rows: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        // The batch may lack the metadata of the fields.
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), rows.columns().to_vec())?;
        self.writer.write(&rows)?;
        Ok(mem::take(self.writer.get_mut()))
    }

    /// Returns the bytes after the last batch, of which a reader knows that the stream is whole.
    ///
    /// # Errors
    /// That of the encoder.
    pub fn finish(mut self) -> Result<Vec<u8>, ArrowError> {
        self.writer.finish()?;
        self.writer.into_inner()
    }
}

#[cfg(test)]
mod tests;
