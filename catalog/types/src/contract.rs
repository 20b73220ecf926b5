//! The contract of a dataset: its `schemaDef`, checked once, and the Arrow schema of its tables.
//!
//! Invariant: a [`Contract`] has 1 to 256 fields whose names are distinct ignoring case and legal in a Delta table.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::canonical;
use crate::vocabulary;

/// The most fields a contract may have.
pub const MAX_FIELDS: usize = 256;
/// The longest field name, in characters.
pub const MAX_NAME: usize = 128;
/// The prefix of names that are reserved for the service.
pub const RESERVED_PREFIX: &str = "_sluice";
/// The column for members that the contract does not name, as one JSON object. Exists if `allowExtra` is set.
pub const EXTRA_COLUMN: &str = "_sluice_extra";

/// The type of a contract's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(transform = vocabulary::plain)]
pub enum FieldType {
    /// Unicode text.
    String,
    /// A whole number of 64 bits; `1.0` is the integer 1.
    Integer,
    /// An IEEE 754 double.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An instant of the years 1 to 9999, RFC 3339 text with at most microseconds.
    Timestamp,
    /// Any JSON value.
    Json,
}

impl FieldType {
    /// Returns the name of the type in a `schemaDef`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Timestamp => "timestamp",
            Self::Json => "json",
        }
    }

    /// Returns the Arrow type of the column; `json` is stored as canonical JSON text.
    pub fn arrow(self) -> DataType {
        match self {
            Self::String | Self::Json => DataType::Utf8,
            Self::Integer => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::Boolean => DataType::Boolean,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        }
    }
}

/// One field of a contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The member name in a record and the column name in the table.
    pub name: String,
    /// The type of the values.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// True if a record without it, or with null, is refused.
    #[serde(default)]
    pub required: bool,
}

/// The rules for every record of a dataset. A contract never changes after its creation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Contract {
    fields: Vec<Field>,
    allow_extra: bool,
    /// The indexes of `fields` in the order of the canonical form.
    #[serde(skip)]
    canonical_order: Vec<usize>,
}

/// The first broken rule of a `schemaDef`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ContractError {
    /// JSON pointer within the `schemaDef`.
    pub path: String,
    /// The rule that is broken.
    pub problem: String,
}

impl Contract {
    /// Checks the rules and returns the contract, or the first rule that is broken.
    pub fn new(fields: Vec<Field>, allow_extra: bool) -> Result<Self, ContractError> {
        let fail = |path: String, problem: &str| {
            Err(ContractError {
                path,
                problem: problem.to_owned(),
            })
        };
        // Every rule is checked here once; later code relies on them.
        if fields.is_empty() || fields.len() > MAX_FIELDS {
            return fail("/fields".to_owned(), &format!("must have 1 to {MAX_FIELDS} fields"));
        }
        let mut seen = HashSet::new();
        for (index, field) in fields.iter().enumerate() {
            let path = format!("/fields/{index}/name");
            // The limit is in characters, as the interface documents it.
            let length = field.name.chars().count();
            if length == 0 || length > MAX_NAME {
                return fail(path, &format!("must have 1 to {MAX_NAME} characters"));
            }
            // The Delta protocol forbids these characters in column names of tables without
            // column mapping.
            if field
                .name
                .chars()
                .any(|character| character.is_control() || " ,;{}()=".contains(character))
            {
                return fail(
                    path,
                    "must not contain spaces, control characters or any of , ; { } ( ) =",
                );
            }
            // Compared without case, since `_SLUICE` would collide in a Delta table too.
            if field.name.to_lowercase().starts_with(RESERVED_PREFIX) {
                return fail(
                    path,
                    &format!("must not start with `{RESERVED_PREFIX}`, which the service keeps for itself"),
                );
            }
            // Delta tables ignore case in column names.
            if !seen.insert(field.name.to_lowercase()) {
                return fail(path, "must differ from the other names in more than case");
            }
        }
        // Sorted once here, so that no record has to sort its members.
        let mut canonical_order: Vec<usize> = (0..fields.len()).collect();
        canonical_order
            .sort_unstable_by(|&left, &right| canonical::compare_names(&fields[left].name, &fields[right].name));
        Ok(Self {
            fields,
            allow_extra,
            canonical_order,
        })
    }

    /// Returns the fields in the order of the `schemaDef`.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns true if members that no field names are kept instead of refused.
    pub const fn allow_extra(&self) -> bool {
        self.allow_extra
    }

    /// Returns the fields in the order of the canonical form, with their index in [`Self::fields`].
    pub(crate) fn canonical_fields(&self) -> impl Iterator<Item = (usize, &Field)> {
        self.canonical_order.iter().map(|&index| (index, &self.fields[index]))
    }

    /// Returns the Arrow schema of the records: the fields in order, then [`EXTRA_COLUMN`] if extras are allowed.
    ///
    /// Every column is nullable, also a required one, because the contract is checked by a gate and not by the file
    /// format.
    pub fn schema(&self) -> SchemaRef {
        let mut columns: Vec<_> = self
            .fields
            .iter()
            .map(|field| arrow::datatypes::Field::new(&field.name, field.kind.arrow(), true))
            .collect();
        // Extras of all records share one column, since their names are not known in advance.
        if self.allow_extra {
            columns.push(arrow::datatypes::Field::new(EXTRA_COLUMN, DataType::Utf8, true));
        }
        Arc::new(Schema::new(columns))
    }
}

impl<'de> Deserialize<'de> for Contract {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct SchemaDef {
            fields: Vec<Field>,
            #[serde(default)]
            allow_extra: bool,
        }
        // Parsing goes through `new`, so a contract that exists has been checked.
        let def = SchemaDef::deserialize(deserializer)?;
        Self::new(def.fields, def.allow_extra).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Result<Contract, ContractError> {
        let field = |name: &&str| Field {
            name: (*name).to_owned(),
            kind: FieldType::String,
            required: false,
        };
        Contract::new(names.iter().map(field).collect(), false)
    }

    #[test]
    fn names_that_a_table_cannot_hold_are_refused() {
        for names in [
            &[][..],
            &[""],
            &["a b"],
            &["a\n"],
            &["_sluice_key"],
            &["_SLUICE"],
            &["a", "A"],
            &["x=y"],
        ] {
            assert!(named(names).is_err(), "{names:?}");
        }
        assert!(named(&["a", "b.c", "_id", "온도", "a-b"]).is_ok());
    }

    #[test]
    fn a_schema_def_round_trips() {
        let text = r#"{"fields":[{"name":"b","type":"integer","required":true},{"name":"a","type":"json","required":false}],"allowExtra":true}"#;
        let contract: Contract = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&contract).unwrap(), text);
        assert!(serde_json::from_str::<Contract>(r#"{"fields":[{"name":"a","type":"uuid"}]}"#).is_err());
        assert!(serde_json::from_str::<Contract>(r#"{"fields":[{"name":"a","type":"json"}],"strict":1}"#).is_err());
    }
}
