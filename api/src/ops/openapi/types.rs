//! Types of the description by name, for programs that generate clients from it.
//!
//! Invariants:
//! - A name stands for one schema, and a schema that several operations share has one name.
//! - No schema is `true` or `false`, except what `additionalProperties` says of further members; none lists types; a
//!   value that may be null is `anyOf` of two.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::call::operation::Operation;

/// Place of the types in the document.
const PLACE: &str = "#/components/schemas/";
/// Place of the types in the schema of one operation.
const OWN: &str = "#/$defs/";
/// Keywords whose value is a schema.
const SCHEMA: [&str; 5] = ["items", "additionalProperties", "not", "contains", "propertyNames"];
/// Keywords whose value is an object of schemas.
const SCHEMAS: [&str; 2] = ["properties", "patternProperties"];
/// Keywords whose value is a list of schemas.
const WAYS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords that say something of values of one type only, by the type.
const OF_TYPE: [(&str, &[&str]); 5] = [
    ("string", &["pattern", "minLength", "maxLength", "format"]),
    (
        "number",
        &[
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ],
    ),
    (
        "integer",
        &[
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ],
    ),
    ("array", &["items", "minItems", "maxItems", "uniqueItems"]),
    (
        "object",
        &[
            "properties",
            "required",
            "additionalProperties",
            "minProperties",
            "maxProperties",
        ],
    ),
];

/// The schema of one input or answer, with its types by name.
pub(super) struct NamedSchema {
    name: String,
    /// Schema without its name and without the types.
    pub(super) root: Value,
    types: Map<String, Value>,
    /// Text of each type with all that it refers to.
    texts: HashMap<String, String>,
}

impl NamedSchema {
    /// Takes apart a schema whose `title` is the name of its root and whose `$defs` are its types.
    pub(super) fn new(mut named: Value) -> Self {
        let mut take = |member| named.as_object_mut().and_then(|members| members.remove(member));
        let (title, types) = (take("title"), take("$defs"));
        let types = match types {
            Some(Value::Object(types)) => types,
            _ => Map::new(),
        };
        let named = extended(&named, &types);
        let schemas = types.iter();
        let types: Map<_, _> = schemas
            .map(|(name, schema)| (name.clone(), extended(schema, &types)))
            .collect();
        let texts = types.iter();
        let texts = texts.map(|(name, schema)| (name.clone(), whole(schema, &types, 0).to_string()));
        Self {
            name: title.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(),
            root: named,
            texts: texts.collect(),
            types,
        }
    }

    /// Returns what has a name here, with its text: the types, and for an answer the root.
    fn uses(&self, with_root: bool) -> Vec<(&str, String)> {
        let named = self.types.iter().filter(|(_, schema)| is_type(schema));
        let mut uses: Vec<_> = named.map(|(name, _)| (name.as_str(), self.text(name))).collect();
        if with_root && !self.name.is_empty() && is_type(&self.root) {
            uses.push((&self.name, self.root_text()));
        }
        uses
    }

    fn text(&self, name: &str) -> String {
        self.texts.get(name).cloned().unwrap_or_default()
    }

    fn root_text(&self) -> String {
        whole(&self.root, &self.types, 0).to_string()
    }
}

/// One schema with a name that others may have too.
struct TypeUse {
    text: String,
    operation: &'static str,
    is_input: bool,
}

/// Types of the document.
pub(super) struct DocumentTypes {
    /// Name in the document of each type, by its own name and its text.
    names: HashMap<(String, String), String>,
    /// Names of the bodies of requests, which no type has.
    bodies: HashSet<String>,
    /// Schemas by their name in the document.
    pub(super) schemas: Map<String, Value>,
}

impl DocumentTypes {
    /// Gives the types of these operations their names, none of which is that of one of `schemas`.
    pub(super) fn of<'a>(operations: impl Iterator<Item = &'a Operation>, schemas: Map<String, Value>) -> Self {
        let mut uses: BTreeMap<String, Vec<TypeUse>> = BTreeMap::new();
        let (mut answers, mut inputs) = (Vec::new(), Vec::new());
        let mut bodies = HashSet::new();
        for operation in operations {
            bodies.insert(body_name(operation.spec.name));
            answers.push((operation.spec.name, NamedSchema::new((operation.named_output)())));
            inputs.push((operation.spec.name, NamedSchema::new(operation.input.named())));
        }
        // Answers come first, so that they have the shorter names.
        for (sources, is_input) in [(answers, false), (inputs, true)] {
            for &(operation, ref source) in &sources {
                for (name, text) in source.uses(!is_input) {
                    let known = uses.entry(name.to_owned()).or_default();
                    if known.iter().all(|other| other.text != text) {
                        known.push(TypeUse {
                            text,
                            operation,
                            is_input,
                        });
                    }
                }
            }
        }
        let mut types = Self {
            names: HashMap::new(),
            bodies,
            schemas,
        };
        for (own, uses) in uses {
            let inputs = uses.iter().filter(|one| one.is_input).count();
            let answers = uses.len() - inputs;
            for one in &uses {
                let twins = if one.is_input { inputs } else { answers };
                // A name that one type has is kept. Of several, each has that of its first operation before it.
                let owner = if twins == 1 {
                    String::new()
                } else {
                    pascal(one.operation)
                };
                let side = if one.is_input && answers > 0 { "Input" } else { "" };
                let name = types.free(format!("{owner}{}{side}", pascal(&own)));
                types.names.insert((own.clone(), one.text.clone()), name);
            }
        }
        types
    }

    /// Returns this name, or one like it that nothing has.
    fn free(&self, mut name: String) -> String {
        let is_taken = |name: &String| {
            self.schemas.contains_key(name)
                || self.bodies.contains(name)
                || self.names.values().any(|other| other == name)
        };
        while is_taken(&name) {
            name.push_str("Other");
        }
        name
    }

    /// Returns the schema of an answer, by reference if it has a name.
    pub(super) fn answer(&mut self, source: &NamedSchema) -> Value {
        match self.names.get(&(source.name.clone(), source.root_text())).cloned() {
            Some(name) => self.named(&name, &source.root, source),
            None => self.placed(&source.root, source),
        }
    }

    /// Adds a schema of a source under a name and returns a reference to it.
    pub(super) fn named(&mut self, name: &str, schema: &Value, source: &NamedSchema) -> Value {
        if !self.schemas.contains_key(name) {
            let placed = self.placed(schema, source);
            self.schemas.insert(name.to_owned(), placed);
        }
        json!({"$ref": format!("{PLACE}{name}")})
    }

    /// Returns a schema of a source with its references leading into the document.
    pub(super) fn placed(&mut self, schema: &Value, source: &NamedSchema) -> Value {
        plain(schema, &mut |own| {
            let Some(schema) = source.types.get(own) else {
                return json!({});
            };
            match self.names.get(&(own.to_owned(), source.text(own))).cloned() {
                Some(name) => self.named(&name, schema, source),
                None => self.placed(schema, source),
            }
        })
    }
}

/// Returns true for a schema that gets a name: an object with known members, or a list of words.
fn is_type(schema: &Value) -> bool {
    let has_members = schema.get("properties").and_then(Value::as_object);
    has_members.is_some_and(|members| !members.is_empty())
        || schema.get("enum").is_some()
        || is_words(schema.get("oneOf"))
}

/// Returns the name of the type of an operation's body.
pub(super) fn body_name(operation: &str) -> String {
    format!("{}Request", pascal(operation))
}

/// Returns the name of an operation or of a type as the name of a type.
pub(super) fn pascal(name: &str) -> String {
    let words = name.split('_').filter_map(|word| {
        let mut letters = word.chars();
        let first = letters.next()?;
        Some(first.to_uppercase().chain(letters).collect::<String>())
    });
    words.collect()
}

/// Returns a schema in which a type with further members, such as the word that tells one kind of answer from others, is
/// in place of the reference to it.
fn extended(schema: &Value, types: &Map<String, Value>) -> Value {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(schemas) => return schemas.iter().map(|schema| extended(schema, types)).collect(),
        other => return other.clone(),
    };
    let own = members
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|to| to.strip_prefix(OWN));
    let (Some(own), Some(Value::Object(more))) = (own, members.get("properties")) else {
        let members = members.iter();
        return Value::Object(
            members
                .map(|(name, schema)| (name.clone(), extended(schema, types)))
                .collect(),
        );
    };
    let mut whole = types
        .get(own)
        .map_or_else(|| json!({}), |schema| extended(schema, types));
    for (name, schema) in more {
        whole["properties"][name] = schema.clone();
    }
    let lists = [members.get("required"), whole.get("required")];
    let required: Vec<Value> = lists
        .into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .flatten()
        .cloned()
        .collect();
    whole["required"] = required.into();
    whole
}

/// Returns a schema with all types that it refers to in place. No type contains itself.
fn whole(schema: &Value, types: &Map<String, Value>, depth: usize) -> Value {
    plain(schema, &mut |name| match types.get(name) {
        Some(schema) if depth < types.len() => whole(schema, types, depth + 1),
        _ => json!({}),
    })
}

/// Returns a schema in the forms that generators read, with each reference to a type of its own replaced.
pub(super) fn plain(schema: &Value, refer: &mut dyn FnMut(&str) -> Value) -> Value {
    let Value::Object(members) = schema else {
        // `true`: any value.
        return json!({});
    };
    let mut plainly = Map::new();
    if let Some(own) = members
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|to| to.strip_prefix(OWN))
        && let Value::Object(referred) = refer(own)
    {
        plainly = referred;
    }
    for (keyword, value) in members.iter().filter(|(keyword, _)| *keyword != "$ref") {
        let value = match (keyword.as_str(), value) {
            ("additionalProperties", Value::Bool(_)) => value.clone(),
            (keyword, schema) if SCHEMA.contains(&keyword) => plain(schema, refer),
            (keyword, Value::Object(schemas)) if SCHEMAS.contains(&keyword) => {
                let schemas = schemas.iter();
                let schemas = schemas.map(|(name, schema)| (name.clone(), plain(schema, refer)));
                Value::Object(schemas.collect())
            }
            (keyword, Value::Array(ways)) if WAYS.contains(&keyword) => {
                ways.iter().map(|schema| plain(schema, refer)).collect()
            }
            _ => value.clone(),
        };
        plainly.insert(keyword.clone(), value);
    }
    one_of_words(&mut plainly);
    if let Some(word) = plainly.remove("const") {
        plainly.insert("enum".to_owned(), json!([word]));
    }
    one_type(&mut plainly);
    say_width(&mut plainly);
    Value::Object(plainly)
}

/// Returns true for a choice of words, each with what it means.
fn is_words(ways: Option<&Value>) -> bool {
    let ways = ways.and_then(Value::as_array);
    ways.is_some_and(|ways| {
        ways.iter()
            .all(|way| way.get("const").or_else(|| way.get("enum")).is_some())
    })
}

/// Turns a choice of words, each with what it means, into a list of words.
fn one_of_words(schema: &mut Map<String, Value>) {
    if !is_words(schema.get("oneOf")) {
        return;
    }
    let Some(Value::Array(ways)) = schema.remove("oneOf") else {
        return;
    };
    let mut meanings: Vec<String> = Vec::new();
    meanings.extend(schema.get("description").and_then(Value::as_str).map(str::to_owned));
    let mut words = Vec::new();
    for way in &ways {
        let own = way.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        let meaning = way.get("description").and_then(Value::as_str);
        if let (Some(meaning), [word]) = (meaning, own.as_slice()) {
            meanings.push(format!("`{}`: {meaning}", word.as_str().unwrap_or_default()));
        }
        words.extend(own);
    }
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), words.into());
    if !meanings.is_empty() {
        schema.insert("description".to_owned(), meanings.join(" ").into());
    }
}

/// Replaces a list of types by one way for each of them.
fn one_type(schema: &mut Map<String, Value>) {
    let types = match schema.get("type") {
        Some(Value::Array(types)) => types.clone(),
        _ => return,
    };
    schema.remove("type");
    let words = match schema.remove("enum") {
        Some(Value::Array(words)) => Some(words),
        _ => None,
    };
    let mut ways = Vec::new();
    for one in &types {
        let word = one.as_str().unwrap_or_default();
        let mut way = Map::from_iter([("type".to_owned(), one.clone())]);
        for keyword in keywords(word) {
            way.extend(schema.get(*keyword).map(|value| ((*keyword).to_owned(), value.clone())));
        }
        if let Some(words) = words.as_ref().filter(|_| word != "null") {
            let words = words.iter().filter(|word| !word.is_null()).cloned();
            way.insert("enum".to_owned(), words.collect());
        }
        say_width(&mut way);
        ways.push(Value::Object(way));
    }
    for (_, keywords) in OF_TYPE {
        for keyword in keywords {
            schema.remove(*keyword);
        }
    }
    if let [Value::Object(way)] = ways.as_slice() {
        schema.extend(way.clone());
    } else {
        schema.insert("anyOf".to_owned(), ways.into());
    }
}

/// Says of each integer in a description that was written by hand if it may need 64 bits.
pub(super) fn say_widths(description: &mut Value) {
    match description {
        Value::Object(members) => {
            say_width(members);
            members.values_mut().for_each(say_widths);
        }
        Value::Array(items) => items.iter_mut().for_each(say_widths),
        _ => {}
    }
}

/// Says that an integer may need 64 bits. Generators take one without a format for one of 32 bits.
fn say_width(schema: &mut Map<String, Value>) {
    let is_integer = schema.get("type").is_some_and(|name| name == "integer");
    let maximum = schema.get("maximum").and_then(Value::as_i64);
    if is_integer && maximum.is_none_or(|maximum| maximum > i64::from(i32::MAX)) {
        schema.insert("format".to_owned(), "int64".into());
    }
}

/// Returns the keywords that say something of values of this type only.
fn keywords(of: &str) -> &'static [&'static str] {
    let found = OF_TYPE.iter().find(|(name, _)| *name == of);
    found.map_or(&[], |(_, keywords)| keywords)
}
