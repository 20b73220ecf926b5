//! JSON Schemas: generated from types, published, and enforced on input.
//!
//! Invariant: the enforced schema is byte for byte the published one, except for bounds that an operation enforces
//! itself.

use jsonschema::Validator;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::call::problem;
use crate::error::{ApiError, ErrorDetail, MAX_DETAILS};

/// Pattern of text in one line: no control characters (C0 and DEL).
pub const LINE: &str = r"^[^\u0000-\u001F\u007F]*$";
/// Pattern of text in several lines: no control characters other than tab, line feed and carriage return.
pub const TEXT: &str = r"^[^\u0000-\u0008\u000B\u000C\u000E-\u001F\u007F]*$";
/// Pattern of a header value that can be repeated in an answer: visible ASCII.
pub const VISIBLE: &str = r"^[\u0021-\u007E]*$";

/// Schema of an operation's input.
#[derive(Debug)]
pub struct InputSchema {
    /// Schema as it is published.
    pub document: Value,
    /// Compiled schema, or the reason why it cannot be compiled.
    validator: Result<Validator, String>,
    /// Greatest `maxItems` anywhere in the schema.
    longest: usize,
    /// Generates the schema with its types by name.
    named: fn() -> Value,
    /// Member that is not one of the type, with its schema.
    further: Option<(&'static str, Value)>,
    bounds: Vec<SchemaBound>,
}

impl InputSchema {
    /// Generates the schema from which `I` is deserialized, with `bounds` written into it.
    pub fn of<I: JsonSchema>(bounds: &[SchemaBound]) -> Self {
        Self::with::<I>(bounds, None)
    }

    /// Generates it with a further member, which is not one of `I`.
    pub fn with<I: JsonSchema>(bounds: &[SchemaBound], further: Option<(&'static str, Value)>) -> Self {
        let mut document = generate::<I>(SchemaSettings::draft2020_12().for_deserialize());
        if let Some((name, schema)) = &further {
            document["properties"][*name] = schema.clone();
        }
        for bound in bounds.iter().filter(|bound| bound.asserted) {
            bound.set(&mut document);
        }
        // The validator is built between the two: bounds that are not asserted are published but not enforced.
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&document)
            .map_err(|error| error.to_string());
        // After the validator is built: these are published, and the function refuses with an error of
        // its own.
        for bound in bounds.iter().filter(|bound| !bound.asserted) {
            bound.set(&mut document);
        }
        Self {
            longest: longest(&document),
            document,
            validator,
            named: named::<I, true>,
            further,
            bounds: bounds.to_vec(),
        }
    }

    /// Returns the published schema with its types by name: `title` names the root, and `$defs` has the others.
    pub fn named(&self) -> Value {
        let mut named = (self.named)();
        if let Some((name, schema)) = &self.further {
            named["properties"][*name] = schema.clone();
        }
        for bound in &self.bounds {
            bound.set(&mut named);
        }
        named
    }

    /// Returns the schema of one member of the input.
    pub fn property(&self, name: &str) -> Option<&Value> {
        self.document.get("properties")?.get(name)
    }

    /// Returns the members of the input with their schemas.
    pub fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.document
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    }

    /// Returns true if the member is required.
    pub fn requires(&self, name: &str) -> bool {
        let required = self.document.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|required| required == name))
    }

    /// Checks an input. `immutable` lists the members that exist but never change.
    ///
    /// Arrays are shortened to one item more than the longest that the schema allows before errors are collected. That
    /// is enough to report the length, and it bounds the work: the validator computes every error before it returns the
    /// first, and a body can contain millions of items.
    pub fn check(&self, input: &Value, immutable: &[&str]) -> Result<(), ApiError> {
        let validator = self
            .validator
            .as_ref()
            .map_err(|reason| ApiError::internal(format!("schema: {reason}")))?;
        // Valid input, the usual case, needs no list of errors.
        if validator.is_valid(input) {
            return Ok(());
        }
        // One item more than allowed is enough to violate every limit on a length.
        let most = self.longest.saturating_add(1);
        let details = |input: &Value| -> Vec<ErrorDetail> {
            let errors = validator.iter_errors(input).take(MAX_DETAILS);
            errors
                .flat_map(|error| problem::details(&error, input, immutable))
                .collect()
        };
        let of_the_first = has_longer(input, most).then(|| details(&shortened(input, most)));
        // If the shortened input is valid, the error is in an array without a limit on its length, so the whole input
        // is checked.
        let found = of_the_first.filter(|found| !found.is_empty());
        Err(ApiError::invalid_all(found.unwrap_or_else(|| details(input))))
    }
}

/// Returns the greatest `maxItems` anywhere in a schema.
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

/// Returns true if an array anywhere in the value has more than `most` items.
fn has_longer(value: &Value, most: usize) -> bool {
    match value {
        Value::Array(items) => items.len() > most || items.iter().any(|item| has_longer(item, most)),
        Value::Object(members) => members.values().any(|member| has_longer(member, most)),
        _ => false,
    }
}

/// Returns a copy of a value with at most `most` items in each array.
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

/// Limit from the configuration that is written into an input schema.
#[derive(Clone, Copy, Debug)]
pub struct SchemaBound {
    /// JSON pointer to the schema that gets the keyword.
    pub at: &'static str,
    /// Keyword of JSON Schema, such as `maximum`.
    pub keyword: &'static str,
    /// Value of the keyword.
    pub value: u64,
    /// True if the schema enforces the limit; false if the operation does, with an error of its own.
    pub asserted: bool,
}

impl SchemaBound {
    fn set(self, document: &mut Value) {
        let mut at = String::new();
        for step in self.at.split('/').skip(1) {
            // A schema with its types by name refers to them on the way.
            if let Some(type_at) = referred(document, &at) {
                at = type_at;
            }
            at = format!("{at}/{step}");
        }
        if let Some(Value::Object(schema)) = document.pointer_mut(&at) {
            schema.insert(self.keyword.to_owned(), self.value.into());
        }
    }
}

/// Returns the pointer to the type that the schema at a pointer refers to, also as one of two with null.
fn referred(document: &Value, at: &str) -> Option<String> {
    let schema = document.pointer(at)?;
    let reference = schema.get("$ref").or_else(|| schema.pointer("/anyOf/0/$ref"))?;
    reference.as_str()?.strip_prefix('#').map(str::to_owned)
}

/// Returns the schema of the JSON that `O` is serialized to.
pub fn of_output<O: JsonSchema>() -> Value {
    generate::<O>(SchemaSettings::draft2020_12().for_serialize())
}

/// Returns the same schema with its types by name: `title` names the root, and `$defs` has the others.
pub fn named_output<O: JsonSchema>() -> Value {
    named::<O, false>()
}

fn named<T: JsonSchema, const INPUT: bool>() -> Value {
    let settings = SchemaSettings::draft2020_12();
    let settings = if INPUT {
        settings.for_deserialize()
    } else {
        settings.for_serialize()
    };
    schema_of::<T>(settings, false).into()
}

/// Returns a self-contained schema, since clients that list operations as tools cannot follow references.
fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let mut schema = schema_of::<T>(settings, true);
    // The title is the Rust name of the type, which has no meaning for callers.
    schema.remove("title");
    schema.into()
}

fn schema_of<T: JsonSchema>(settings: SchemaSettings, inline: bool) -> Schema {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = inline;
        settings.meta_schema = None;
    });
    let generator = settings.with_transform(RecursiveTransform(plain)).into_generator();
    generator.into_root_schema_for::<T>()
}

/// Keyword of a member's schema whose null has a meaning. It is not published.
pub(crate) const NULL_COUNTS: &str = "x-null-counts";

/// Removes what has meaning in Rust only: number formats, and null as a second way to omit a member.
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
    // Only members that are not required can be omitted, so only those lose null.
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

/// Removes null from a member's types if it was added for an `Option`: then there are two types. A member whose null
/// has a meaning lists more, is not made from an `Option`, or says so by [`NULL_COUNTS`].
fn without_null(property: &mut Map<String, Value>) {
    let counts = property.remove(NULL_COUNTS).is_some();
    // A type with a name, or null.
    if let Some(Value::Array(ways)) = property.get("anyOf")
        && let [Value::Object(reference), null] = ways.as_slice()
        && reference.contains_key("$ref")
        && null.get("type").is_some_and(|word| word == "null")
    {
        let reference = reference.clone();
        property.remove("anyOf");
        property.extend(reference);
    }
    if let Some(Value::Array(types)) = property.get_mut("type")
        && types.len() == 2
        && !counts
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

/// Converts text to JSON by the schema of its member: a path, a query or a header is text, while the input may need a
/// number. Text that is not exactly such a value stays text, and the schema refuses it.
pub fn coerce(schema: &Value, text: &str) -> Value {
    let wants = |name| takes(schema, name);
    let digits = text.strip_prefix('-').unwrap_or(text);
    // `-0` stays text, since it would lose its sign as an integer.
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

/// Converts a number of a body to the type of its member: a number without a fraction is an integer, however it is
/// written (JSON Schema 2020-12, validation section 6.1.1), as in `1e9`. One beyond the exact range stays as it is and
/// is refused.
pub fn whole(schema: &Value, value: Value) -> Value {
    match value.as_f64() {
        #[expect(clippy::cast_possible_truncation, reason = "it has no fraction and fits")]
        Some(float)
            if value.is_f64()
                && takes(schema, "integer")
                && float.fract() == 0.0
                && float.abs() <= MAX_EXACT_INTEGER =>
        {
            Value::from(float as i64)
        }
        _ => value,
    }
}

/// The greatest integer that every JSON reader represents exactly (RFC 7493 section 2.2).
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Returns true if the schema accepts values of this JSON type.
pub fn takes(schema: &Value, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(types)) => types.iter().any(|one| one == name),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
