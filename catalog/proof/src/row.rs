//! The canonical form of the rows of a part, computed from its columns.
//!
//! Invariant: the result equals the canonical form that `types::Batch` computed for the original record. Stored text is
//! never trusted to be canonical where it may not be, because the content root would differ.

use arrow::array::{Array, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::array::{ArrowPrimitiveType, Date32Array, Decimal128Array, PrimitiveArray};
use arrow::datatypes::{DataType, Int64Type, TimestampMicrosecondType};
use serde_json::{Map, Value};
use types::canonical::{compare_names, write_double, write_integer, write_string, write_value};
use types::contract::EXTRA_COLUMN;
use types::{Contract, Date, FieldType, Timestamp, decimal, json};

/// The column with the version that added each row: 64 bits.
const VERSION_COLUMN: &str = "_sluice_version";

/// The columns of a batch of a part.
#[derive(Debug)]
pub(crate) struct PartRows<'a> {
    /// The contract's columns, in the order of the canonical form.
    members: Vec<ContractColumn<'a>>,
    extra: Option<&'a StringArray>,
    versions: &'a Int64Array,
}

/// A column of the contract, with its name.
#[derive(Debug)]
struct ContractColumn<'a> {
    name: &'a str,
    column: ProofColumn<'a>,
}

#[derive(Debug)]
enum ProofColumn<'a> {
    Text(&'a StringArray),
    /// JSON text in canonical form.
    Json(&'a StringArray),
    Integer(&'a Int64Array),
    Number(&'a Float64Array),
    Boolean(&'a BooleanArray),
    Timestamp(&'a PrimitiveArray<TimestampMicrosecondType>),
    Date(&'a Date32Array),
    /// Units, with the scale.
    Decimal(&'a Decimal128Array, u8),
}

/// Returns the names of the columns that [`PartRows`] reads.
pub(crate) fn columns(contract: &Contract) -> Vec<&str> {
    let fields = contract.fields().iter().map(|field| field.name.as_str());
    let extra = contract.allow_extra().then_some(EXTRA_COLUMN);
    fields.chain(extra).chain([VERSION_COLUMN]).collect()
}

impl<'a> PartRows<'a> {
    /// Takes the columns of `batch`. Returns an error unless they match the contract.
    pub(crate) fn new(contract: &'a Contract, batch: &'a RecordBatch) -> Result<Self, String> {
        let mut members = Vec::with_capacity(contract.fields().len());
        for field in contract.fields() {
            let name = field.name.as_str();
            let array = typed(batch, name, &field.kind.arrow())?;
            let column = match field.kind {
                FieldType::String => ProofColumn::Text(array.as_string()),
                FieldType::Json => ProofColumn::Json(array.as_string()),
                FieldType::Integer => ProofColumn::Integer(array.as_primitive()),
                FieldType::Number => ProofColumn::Number(array.as_primitive()),
                FieldType::Boolean => ProofColumn::Boolean(array.as_boolean()),
                FieldType::Timestamp => ProofColumn::Timestamp(array.as_primitive()),
                FieldType::Date => ProofColumn::Date(array.as_primitive()),
                FieldType::Decimal(scale) => ProofColumn::Decimal(array.as_primitive(), scale),
            };
            members.push(ContractColumn { name, column });
        }
        members.sort_unstable_by(|left, right| compare_names(left.name, right.name));
        let extra = if contract.allow_extra() {
            Some(typed(batch, EXTRA_COLUMN, &FieldType::Json.arrow())?.as_string())
        } else {
            None
        };
        let versions = typed(batch, VERSION_COLUMN, &FieldType::Integer.arrow())?.as_primitive::<Int64Type>();
        Ok(Self {
            members,
            extra,
            versions,
        })
    }

    /// Returns the version that added a row, or `None` if the cell is null or negative.
    pub(crate) fn version(&self, row: usize) -> Option<u64> {
        value(self.versions, row).and_then(|version| u64::try_from(version).ok())
    }

    /// Appends the canonical form of a row to `out`.
    pub(crate) fn write(&self, out: &mut Vec<u8>, row: usize) -> Result<(), String> {
        let extras = self.extras(row)?;
        let mut extras = sorted(&extras).into_iter().peekable();
        let start = out.len();
        out.push(b'{');
        for ContractColumn { name, column } in &self.members {
            // Extras are merged between the fields, so that all members come in canonical
            // order.
            while let Some((extra, value)) = extras.next_if(|(extra, _)| compare_names(extra, name).is_lt()) {
                write_name(out, start, extra);
                write_value(out, value);
            }
            // Such a row would have two members of one name, which no record has.
            if extras.peek().is_some_and(|(extra, _)| extra == name) {
                return Err(format!("an extra member has the name of the field `{name}`"));
            }
            if !column.is_null(row) {
                write_name(out, start, name);
                column.write(out, row)?;
            }
        }
        for (extra, value) in extras {
            write_name(out, start, extra);
            write_value(out, value);
        }
        out.push(b'}');
        Ok(())
    }

    /// Returns the members of a row that no field names.
    fn extras(&self, row: usize) -> Result<Map<String, Value>, String> {
        match self.extra {
            Some(column) if column.is_valid(row) => match json::parse(column.value(row).as_bytes()) {
                Ok(Value::Object(members)) => Ok(members),
                Ok(_) => Err(format!("`{EXTRA_COLUMN}` is not an object")),
                Err(error) => Err(format!("`{EXTRA_COLUMN}` is not JSON: {error}")),
            },
            _ => Ok(Map::new()),
        }
    }
}

impl ProofColumn<'_> {
    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Text(column) | Self::Json(column) => column.is_null(row),
            Self::Integer(column) => column.is_null(row),
            Self::Number(column) => column.is_null(row),
            Self::Boolean(column) => column.is_null(row),
            Self::Timestamp(column) => column.is_null(row),
            Self::Date(column) => column.is_null(row),
            Self::Decimal(column, _) => column.is_null(row),
        }
    }

    fn write(&self, out: &mut Vec<u8>, row: usize) -> Result<(), String> {
        match self {
            Self::Text(column) => write_string(out, column.value(row)),
            Self::Json(column) => out.extend_from_slice(column.value(row).as_bytes()),
            Self::Integer(column) => write_integer(out, column.value(row)),
            Self::Number(column) if column.value(row).is_finite() => write_double(out, column.value(row)),
            // JSON cannot express infinities and NaN, so the record cannot have had them.
            Self::Number(_) => return Err("a number is not finite".to_owned()),
            Self::Boolean(column) => out.extend_from_slice(if column.value(row) { b"true" } else { b"false" }),
            Self::Timestamp(column) => write_string(out, &Timestamp::from_micros(column.value(row)).to_string()),
            Self::Date(column) => write_string(out, &Date::from_days(column.value(row)).to_string()),
            Self::Decimal(column, scale) => write_string(out, &decimal::text(column.value(row), *scale)),
        }
        Ok(())
    }
}

fn typed<'a>(batch: &'a RecordBatch, name: &str, kind: &DataType) -> Result<&'a dyn Array, String> {
    let column = batch
        .column_by_name(name)
        .ok_or_else(|| format!("it has no column `{name}`"))?;
    if column.data_type() == kind {
        Ok(column.as_ref())
    } else {
        Err(format!("its column `{name}` is {} and not {kind}", column.data_type()))
    }
}

fn value<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    column.is_valid(row).then(|| column.value(row))
}

fn sorted(members: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut sorted: Vec<_> = members.iter().map(|(name, value)| (name.as_str(), value)).collect();
    sorted.sort_unstable_by(|(left, _), (right, _)| compare_names(left, right));
    sorted
}

fn write_name(out: &mut Vec<u8>, start: usize, name: &str) {
    if out.len() > start + 1 {
        out.push(b',');
    }
    write_string(out, name);
    out.push(b':');
}

#[cfg(test)]
mod tests;
