//! JSON Schemas: made from types, published, and asserted on what arrives.
//!
//! Invariant: what is asserted is byte for byte what is published, but for the bounds that an operation asserts itself.

use jsonschema::Validator;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::error::{ApiError, Detail, MAX_DETAILS};
use crate::problem;

/// Text of one line: no control characters (C0 and DEL).
pub const LINE: &str = r"^[^\u0000-\u001F\u007F]*$";
/// Text of several lines: no control characters other than tab, line feed and carriage return.
pub const TEXT: &str = r"^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]*$";
/// A header value that can be repeated: visible ASCII.
pub const VISIBLE: &str = r"^[\u0021-\u007E]*$";

/// The schema of an operation's input.
#[derive(Debug)]
pub struct InputSchema {
    /// As published.
    pub document: Value,
    /// As asserted; the reason where it cannot be.
    validator: Result<Validator, String>,
    /// The longest array that it allows anywhere.
    longest: usize,
}

impl InputSchema {
    /// The schema of what `I` is read from, with `bounds` set over it.
    pub fn of<I: JsonSchema>(bounds: &[Bound]) -> Self {
        let mut document = generate::<I>(SchemaSettings::draft2020_12().for_deserialize());
        for bound in bounds.iter().filter(|bound| bound.asserted) {
            bound.set(&mut document);
        }
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&document)
            .map_err(|error| error.to_string());
        for bound in bounds.iter().filter(|bound| !bound.asserted) {
            bound.set(&mut document);
        }
        Self {
            longest: longest(&document),
            document,
            validator,
        }
    }

    /// The schema of one member of the input.
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.document.get("properties")?.get(name)
    }

    /// The members of the input with their schemas.
    pub fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.document
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    }

    /// Whether the member must be given.
    pub fn requires(&self, name: &str) -> bool {
        let required = self.document.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|required| required == name))
    }

    /// Checks an input; `fixed` are the members that exist but never change.
    ///
    /// Of an array that is too long only as many items are told about as tell that it is: the validator makes every error
    /// before the first is taken, and a body has room for millions.
    pub fn check(&self, input: &Value, fixed: &[&str]) -> Result<(), ApiError> {
        let validator = self
            .validator
            .as_ref()
            .map_err(|reason| ApiError::internal(format!("schema: {reason}")))?;
        if validator.is_valid(input) {
            return Ok(());
        }
        let most = self.longest.saturating_add(1);
        let details = |input: &Value| -> Vec<Detail> {
            let errors = validator.iter_errors(input).take(MAX_DETAILS);
            errors
                .flat_map(|error| problem::details(&error, input, fixed))
                .collect()
        };
        let of_the_first = has_longer(input, most).then(|| details(&shortened(input, most)));
        // Where that tells nothing, what is wrong is in an array that may be of any length.
        let told = of_the_first.filter(|told| !told.is_empty());
        Err(ApiError::invalid_all(told.unwrap_or_else(|| details(input))))
    }
}

/// The longest array that any part of a schema allows.
fn longest(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => {
            let own = members.get("maxItems").and_then(Value::as_u64);
            let own = own.map_or(0, |most| usize::try_from(most).unwrap_or(usize::MAX));
            members.values().map(longest).fold(own, usize::max)
        }
        Value::Array(items) => items.iter().map(longest).max().unwrap_or(0),
        _ => 0,
    }
}

/// Whether an array in it has more items than `most`.
fn has_longer(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(items) => items.len() > most || items.iter().any(|item| has_longer(item, most)),
        Value::Object(members) => members.values().any(|member| has_longer(member, most)),
        _ => false,
    }
}

/// A value with no more than `most` items of each of its arrays.
fn shortened(value: &Value, most: usize) -> Value {
    match value {
        Value::Array(items) => items.iter().take(most).map(|item| shortened(item, most)).collect(),
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(name, member)| (name.clone(), shortened(member, most)))
                .collect()
        }
        other => other.clone(),
    }
}

/// A limit from the configuration that an input schema states.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// JSON pointer to the schema it is set in.
    pub at: &'static str,
    /// The keyword, such as `maximum`.
    pub keyword: &'static str,
    /// The limit.
    pub value: u64,
    /// True if the schema refuses what exceeds it, false if the operation does, with an answer of its own.
    pub asserted: bool,
}

impl Bound {
    fn set(self, document: &mut Value) {
        if let Some(Value::Object(schema)) = document.pointer_mut(self.at) {
            schema.insert(self.keyword.to_owned(), self.value.into());
        }
    }
}

/// The schema of what `O` is written as.
pub fn of_output<O: JsonSchema>() -> Value {
    generate::<O>(SchemaSettings::draft2020_12().for_serialize())
}

/// One self-contained schema: clients of tools cannot follow references.
fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let mut schema = settings
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(RecursiveTransform(plain))
        .into_generator()
        .into_root_schema_for::<T>();
    schema.remove("title");
    schema.into()
}

/// Takes out what only Rust means: number formats, and null as another way to leave a member out.
fn plain(schema: &mut Schema) {
    if let Some(Value::String(format)) = schema.get("format")
        && (format.starts_with("uint") || format.starts_with("int") || format == "double" || format == "float")
    {
        schema.remove("format");
    }
    let required: Vec<Value> = schema
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    for (name, property) in properties {
        if let Value::Object(property) = property
            && !required.iter().any(|required| required == name)
        {
            without_null(property);
        }
    }
}

/// Why two types only: a member whose null means something lists more, or is not made from an `Option`.
fn without_null(property: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = property.get_mut("type")
        && types.len() == 2
    {
        types.retain(|one| one != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            property.insert("type".to_owned(), one);
            if let Some(Value::Array(words)) = property.get_mut("enum") {
                words.retain(|word| !word.is_null());
            }
        }
    }
    if property.get("default") == Some(&Value::Null) {
        property.remove("default");
    }
}

/// Text to JSON, guided by the member's schema: what a path, a query or a header says is text, the input may want a
/// number. Text that is not exactly such a value stays text, and the schema refuses it.
pub fn coerce(schema: &Value, text: &str) -> Value {
    let wants = |name| takes(schema, name);
    let digits = text.strip_prefix('-').unwrap_or(text);
    let numeric = digits.starts_with(|first: char| first.is_ascii_digit()) && text != "-0";
    if (wants("integer") && numeric && digits.bytes().all(|byte| byte.is_ascii_digit()) || wants("number") && numeric)
        && let Ok(Value::Number(number)) = serde_json::from_str(text)
    {
        return Value::Number(number);
    }
    match text {
        "true" if wants("boolean") => Value::Bool(true),
        "false" if wants("boolean") => Value::Bool(false),
        _ => Value::String(text.to_owned()),
    }
}

/// A value of a body as its member's schema means it: a number without a fraction is an integer however it is written
/// (JSON Schema 2020-12, validation section 6.1.1), as in `1e9`. One beyond what is exact stays as it is, and is refused.
pub fn whole(schema: &Value, value: Value) -> Value {
    match value.as_f64() {
        #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and fits")]
        Some(float) if value.is_f64() && takes(schema, "integer") && float.fract() == 0.0 && float.abs() <= EXACT => {
            Value::from(float as i64)
        }
        _ => value,
    }
}

/// The greatest integer that every JSON reader takes exactly (RFC 7493 section 2.2).
const EXACT: f64 = 9_007_199_254_740_991.0;

/// Whether values of this type are taken.
pub fn takes(schema: &Value, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(types)) => types.iter().any(|one| one == name),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
