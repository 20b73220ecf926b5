//! The contract of a dataset: its `schemaDef`, checked once, and the Arrow schema of its tables.
//!
//! Invariant: a [`Contract`] has 1 to 256 fields whose names are distinct ignoring case and legal in a Delta table.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{canonical, decimal, vocabulary};

/// The most fields a contract may have.
pub const MAX_FIELDS: usize = 256;
/// The longest field name, in characters.
pub const MAX_NAME: usize = 128;
/// The prefix of names that are reserved for the service.
pub const RESERVED_PREFIX: &str = "_sluice";
/// The column for members that the contract does not name, as one JSON object. Exists if `allowExtra` is set.
pub const EXTRA_COLUMN: &str = "_sluice_extra";
/// The columns of a table that say where a record is: the version that appended it, and its index among the records that
/// this version appended. Both have 64 bits.
pub const PLACE_COLUMNS: [&str; 2] = ["_sluice_version", "_sluice_ordinal"];

/// The longest title of a field, in characters.
pub const MAX_FIELD_TITLE: usize = 100;
/// The longest description of a field, in characters.
pub const MAX_FIELD_DESCRIPTION: usize = 200;
/// The longest unit of a field, in characters.
pub const MAX_FIELD_UNIT: usize = 40;

/// The type of a contract's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// A day of the years 1 to 9999, text `YYYY-MM-DD`.
    Date,
    /// A decimal with this many digits after the point, its *scale*: at most [`decimal::MAX_SCALE`], and
    /// [`decimal::MAX_DIGITS`] digits in all. Text, or a JSON number of few digits.
    Decimal(u8),
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
            Self::Date => "date",
            Self::Decimal(_) => "decimal",
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
            Self::Date => DataType::Date32,
            Self::Decimal(scale) => {
                DataType::Decimal128(decimal::MAX_DIGITS, scale.min(decimal::MAX_SCALE).cast_signed())
            }
        }
    }

    /// Returns true for the types that programs before them refuse.
    pub const fn is_new(self) -> bool {
        matches!(self, Self::Date | Self::Decimal(_))
    }
}

/// The name of a field's type in a `schemaDef`, beside which a decimal has a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "FieldType", transform = vocabulary::plain)]
pub enum FieldTypeName {
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
    /// A day of the years 1 to 9999, text `YYYY-MM-DD`.
    Date,
    /// A decimal of a fixed scale.
    Decimal,
}

impl FieldTypeName {
    /// Returns the type of this name.
    ///
    /// # Errors
    /// The broken rule of the scale: it is required for a decimal, and for nothing else.
    pub fn with_scale(self, scale: Option<u64>) -> Result<FieldType, String> {
        let kind = match self {
            Self::String => FieldType::String,
            Self::Integer => FieldType::Integer,
            Self::Number => FieldType::Number,
            Self::Boolean => FieldType::Boolean,
            Self::Timestamp => FieldType::Timestamp,
            Self::Json => FieldType::Json,
            Self::Date => FieldType::Date,
            Self::Decimal => {
                let scale = scale.and_then(|scale| u8::try_from(scale).ok());
                let scale = scale.filter(|scale| *scale <= decimal::MAX_SCALE);
                return scale.map(FieldType::Decimal).ok_or_else(|| {
                    format!(
                        "must be a whole number from 0 to {} for a decimal: its digits after the point",
                        decimal::MAX_SCALE
                    )
                });
            }
        };
        match scale {
            None => Ok(kind),
            Some(_) => Err("is for a field of the type `decimal` only; leave it out".to_owned()),
        }
    }
}

impl From<FieldType> for FieldTypeName {
    fn from(kind: FieldType) -> Self {
        match kind {
            FieldType::String => Self::String,
            FieldType::Integer => Self::Integer,
            FieldType::Number => Self::Number,
            FieldType::Boolean => Self::Boolean,
            FieldType::Timestamp => Self::Timestamp,
            FieldType::Json => Self::Json,
            FieldType::Date => Self::Date,
            FieldType::Decimal(_) => Self::Decimal,
        }
    }
}

/// One field of a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The member name in a record and the column name in the table.
    pub name: String,
    /// The type of the values.
    pub kind: FieldType,
    /// True if a record without it, or with null, is refused.
    pub required: bool,
    /// A name for people, on one line. It judges no record, like the description and the unit.
    pub title: Option<String>,
    /// What the values say, on one line.
    pub description: Option<String>,
    /// The unit of the values, such as `m/s`.
    pub unit: Option<String>,
}

impl Field {
    /// Creates a field that is not required and has no documentation.
    pub fn new(name: impl Into<String>, kind: FieldType) -> Self {
        Self {
            name: name.into(),
            kind,
            required: false,
            title: None,
            description: None,
            unit: None,
        }
    }

    /// Returns the field without its documentation.
    fn rules(&self) -> Self {
        Self {
            required: self.required,
            ..Self::new(&*self.name, self.kind)
        }
    }

    /// Returns the members of the documentation with their names and the most characters of each.
    fn documentation(&self) -> [(&'static str, Option<&str>, usize); 3] {
        [
            ("title", self.title.as_deref(), MAX_FIELD_TITLE),
            ("description", self.description.as_deref(), MAX_FIELD_DESCRIPTION),
            ("unit", self.unit.as_deref(), MAX_FIELD_UNIT),
        ]
    }
}

/// The JSON form of a field.
#[derive(Serialize, Deserialize)]
struct FieldText<'a> {
    name: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: FieldTypeName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scale: Option<u64>,
    #[serde(default)]
    required: bool,
    // Absent members are not written, so the text of a contract without them is what it was before they existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<Cow<'a, str>>,
}

impl FieldText<'_> {
    /// Returns the field, or the broken rule of its scale.
    fn read(self) -> Result<Field, String> {
        Ok(Field {
            kind: self.kind.with_scale(self.scale)?,
            name: self.name.into_owned(),
            required: self.required,
            title: self.title.map(Cow::into_owned),
            description: self.description.map(Cow::into_owned),
            unit: self.unit.map(Cow::into_owned),
        })
    }
}

impl Serialize for Field {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = FieldText {
            name: Cow::Borrowed(&self.name),
            kind: self.kind.into(),
            scale: match self.kind {
                FieldType::Decimal(scale) => Some(scale.into()),
                _ => None,
            },
            required: self.required,
            title: self.title.as_deref().map(Cow::Borrowed),
            description: self.description.as_deref().map(Cow::Borrowed),
            unit: self.unit.as_deref().map(Cow::Borrowed),
        };
        text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = FieldText::deserialize(deserializer)?;
        text.read()
            .map_err(|problem| serde::de::Error::custom(format!("scale: {problem}")))
    }
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
            if matches!(field.kind, FieldType::Decimal(scale) if scale > decimal::MAX_SCALE) {
                let problem = format!("must be at most {}", decimal::MAX_SCALE);
                return fail(format!("/fields/{index}/scale"), &problem);
            }
            for (member, text, most) in field.documentation() {
                let fits =
                    |text: &str| !text.is_empty() && text.chars().count() <= most && !text.contains(char::is_control);
                if !text.is_none_or(fits) {
                    let problem = format!("must have 1 to {most} characters, on one line");
                    return fail(format!("/fields/{index}/{member}"), &problem);
                }
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

    /// Reads a `schemaDef`, or returns the first rule that is broken, with the empty path for a value of another shape.
    pub fn from_json(def: serde_json::Value) -> Result<Self, ContractError> {
        let text: ContractText = serde_json::from_value(def).map_err(|error| ContractError {
            path: String::new(),
            problem: format!("is not a contract: {error}"),
        })?;
        text.read()
    }

    /// Returns the fields in the order of the `schemaDef`.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns true if members that no field names are kept instead of refused.
    pub const fn allow_extra(&self) -> bool {
        self.allow_extra
    }

    /// Returns the contract without the documentation of its fields: all that judges a record.
    #[must_use]
    pub fn rules(&self) -> Self {
        Self {
            fields: self.fields.iter().map(Field::rules).collect(),
            allow_extra: self.allow_extra,
            canonical_order: self.canonical_order.clone(),
        }
    }

    /// Returns true if a field has a type that programs before it refuse.
    pub fn has_new_types(&self) -> bool {
        self.fields.iter().any(|field| field.kind.is_new())
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

/// The JSON form of a contract. Members that this build does not know are ignored, so that a later build may document more
/// of a field. A type decides about records, so one that is not known is an error.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContractText {
    fields: Vec<FieldText<'static>>,
    #[serde(default)]
    allow_extra: bool,
}

impl ContractText {
    fn read(self) -> Result<Contract, ContractError> {
        let field = |(index, field): (usize, FieldText<'_>)| {
            field.read().map_err(|problem| ContractError {
                path: format!("/fields/{index}/scale"),
                problem,
            })
        };
        let fields = self.fields.into_iter().enumerate().map(field);
        // Reading goes through `new`, so a contract that exists has been checked.
        Contract::new(fields.collect::<Result<_, _>>()?, self.allow_extra)
    }
}

impl<'de> Deserialize<'de> for Contract {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = ContractText::deserialize(deserializer)?;
        text.read().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Result<Contract, ContractError> {
        let field = |name: &&str| Field::new(*name, FieldType::String);
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
    }

    #[test]
    fn a_field_tells_its_scale_and_its_documentation() {
        let text = r#"{"fields":[{"name":"a","type":"decimal","scale":2,"required":false,"title":"Höhe (m)","description":"above the sea","unit":"m"},{"name":"b","type":"date","required":true}],"allowExtra":false}"#;
        let contract: Contract = serde_json::from_str(text).unwrap();
        assert_eq!(contract.fields()[0].kind, FieldType::Decimal(2));
        assert_eq!(serde_json::to_string(&contract).unwrap(), text);
        let rules = r#"{"fields":[{"name":"a","type":"decimal","scale":2,"required":false},{"name":"b","type":"date","required":true}],"allowExtra":false}"#;
        assert_eq!(serde_json::to_string(&contract.rules()).unwrap(), rules);
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::from_value::<Contract>(value).unwrap(), contract);
    }

    #[test]
    fn a_wrong_scale_and_wrong_documentation_are_named() {
        for (field, words) in [
            (
                r#""type":"decimal""#,
                "/fields/0/scale: must be a whole number from 0 to 18",
            ),
            (
                r#""type":"decimal","scale":19"#,
                "/fields/0/scale: must be a whole number from 0 to 18",
            ),
            (
                r#""type":"decimal","scale":null"#,
                "/fields/0/scale: must be a whole number from 0 to 18",
            ),
            (
                r#""type":"integer","scale":0"#,
                "/fields/0/scale: is for a field of the type `decimal` only",
            ),
            (
                r#""type":"date","unit":"""#,
                "/fields/0/unit: must have 1 to 40 characters, on one line",
            ),
            (
                r#""type":"date","title":"a\nb""#,
                "/fields/0/title: must have 1 to 100 characters, on one line",
            ),
        ] {
            let text = format!(r#"{{"fields":[{{"name":"a",{field}}}]}}"#);
            let error = serde_json::from_str::<Contract>(&text).unwrap_err().to_string();
            assert!(error.starts_with(words), "{field}: {error}");
        }
        let long = format!(
            r#"{{"fields":[{{"name":"a","type":"date","description":"{}"}}]}}"#,
            "é".repeat(201)
        );
        assert!(serde_json::from_str::<Contract>(&long).is_err());
        assert!(serde_json::from_str::<Contract>(&long.replacen('é', "", 1)).is_ok());
    }

    #[test]
    fn members_of_a_later_build_are_ignored_and_types_of_it_refused() {
        let text = r#"{"fields":[{"name":"a","type":"json","colour":"red"}],"strict":1}"#;
        assert_eq!(serde_json::from_str::<Contract>(text).unwrap().fields().len(), 1);
        assert!(serde_json::from_str::<Contract>(r#"{"fields":[{"name":"a","type":"uuid"}]}"#).is_err());
    }
}
