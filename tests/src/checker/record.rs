//! Records as the checker compares them: plain JSON members in one form.
//!
//! Invariant: two records that the interface calls equal have equal text here, computed from the records alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// A record without nulls, its timestamps in one spelling, members by name.
pub type Record = BTreeMap<String, Value>;

/// The types of the fields of a `schemaDef`, by name.
pub fn types_of(contract: &Value) -> BTreeMap<String, String> {
    let fields = contract["fields"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    fields
        .iter()
        .map(|field| (text(&field["name"]), text(&field["type"])))
        .collect()
}

/// A record as submitted or as read through the interface.
pub fn normal(types: &BTreeMap<String, String>, record: &Map<String, Value>) -> Record {
    let mut normal = Record::new();
    for (name, value) in record {
        let value = match (types.get(name).map(String::as_str), value) {
            (_, Value::Null) => continue,
            (Some("timestamp"), Value::String(text)) => timestamp(text).unwrap_or_else(|| value.clone()),
            (Some("decimal"), Value::String(text)) => decimal(text),
            (Some("decimal"), Value::Number(number)) => decimal(&number.to_string()),
            _ => value.clone(),
        };
        normal.insert(name.clone(), value);
    }
    normal
}

/// The canonical text of a record as submitted; empty where it is no object.
pub(super) fn text(types: &BTreeMap<String, String>, record: &Value) -> String {
    record
        .as_object()
        .map_or_else(String::new, |members| text_of(&normal(types, members)))
}

fn timestamp(text: &str) -> Option<Value> {
    let instant: jiff::Timestamp = text.parse().ok()?;
    Some(Value::String(instant.to_string()))
}

/// A decimal without zeros that say nothing.
fn decimal(text: &str) -> Value {
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    };
    if text == "-0" { "0" } else { text }.into()
}

/// The canonical text (RFC 8785) of a record; for the values that the crash tests use.
pub fn text_of(record: &Record) -> String {
    let mut out = String::from("{");
    for (index, (name, value)) in record.iter().enumerate() {
        member(&mut out, index, name, value);
    }
    out.push('}');
    out
}

fn member(out: &mut String, index: usize, name: &str, value: &Value) {
    if index > 0 {
        out.push(',');
    }
    write!(out, "{}:", Value::String(name.to_owned())).unwrap();
    write_value(out, value);
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let sorted: BTreeMap<_, _> = members.iter().collect();
            out.push('{');
            for (index, (name, value)) in sorted.into_iter().enumerate() {
                member(out, index, name, value);
            }
            out.push('}');
        }
        Value::Number(number) if number.is_f64() => {
            let double = number.as_f64().unwrap();
            // Rust's shortest form is ECMAScript's from 1e-6 to 1e21, which covers what the tests send.
            write!(out, "{double}").unwrap();
        }
        other => write!(out, "{other}").unwrap(),
    }
}

/// A running fingerprint of records in order.
#[derive(Clone, Debug, Default)]
pub struct Fingerprint(blake3::Hasher);

impl Fingerprint {
    /// Adds a record.
    pub fn push(&mut self, record: &Record) {
        self.push_text(&text_of(record));
    }

    /// Adds a record by its canonical text.
    pub(super) fn push_text(&mut self, text: &str) {
        self.0.update(text.as_bytes());
        self.0.update(b"\n");
    }

    /// The fingerprint so far.
    pub fn hex(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelt(json: &str) -> String {
        let record: Map<String, Value> = serde_json::from_str(json).unwrap();
        let types = [("at", "timestamp"), ("price", "decimal"), ("day", "date")];
        let types = types.map(|(name, kind)| (name.to_owned(), kind.to_owned())).into();
        text_of(&normal(&types, &record))
    }

    #[test]
    fn spellings_of_one_record_meet() {
        assert_eq!(spelt(r#"{"b":1.0,"a":"x","c":null}"#), r#"{"a":"x","b":1}"#);
        assert_eq!(
            spelt(r#"{"j":{"b":[0.5,-0.25],"a":1}}"#),
            r#"{"j":{"a":1,"b":[0.5,-0.25]}}"#
        );
        assert_eq!(
            spelt(r#"{"at":"2026-01-02T04:00:00+01:00"}"#),
            spelt(r#"{"at":"2026-01-02T03:00:00Z"}"#)
        );
        assert_eq!(
            spelt(r#"{"price":"12.50","day":"2020-02-29"}"#),
            r#"{"day":"2020-02-29","price":"12.5"}"#
        );
        assert_eq!(spelt(r#"{"price":12.5}"#), spelt(r#"{"price":"12.500"}"#));
        assert_eq!(spelt(r#"{"price":"-0.00"}"#), spelt(r#"{"price":0}"#));
        assert_ne!(spelt(r#"{"price":"100"}"#), spelt(r#"{"price":"1"}"#));
    }
}
