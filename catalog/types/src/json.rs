//! Strict JSON (RFC 8259, with the interoperability rules of RFC 7493) for input from outside.
//!
//! Invariant: a value that parses has no duplicate member names, no U+0000, no lone surrogate, no number beyond an IEEE
//! double, and is at most 127 levels deep. The same holds for text that [`outline`] checks without keeping it.

use std::cell::RefCell;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

mod digits;
mod outline;

pub use digits::{LostDigits, check_digits, lost_digits, whole_double};
pub use outline::outline;

/// The reason that a text is not strict JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct JsonError {
    /// JSON pointer (RFC 6901) of the wrong value; empty for the whole text.
    pub path: String,
    /// The error, with line and column.
    pub problem: String,
}

/// Parses one strict JSON value that fills `text`.
pub fn parse(text: &[u8]) -> Result<Value, JsonError> {
    // serde does not report paths, so the visitor records its own.
    let trail = RefCell::new(Vec::new());
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let parsed = Strict { trail: &trail }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    parsed.map_err(|error| {
        let mut path = String::new();
        for segment in trail.borrow().iter().rev() {
            push_pointer(&mut path, segment);
        }
        JsonError {
            path,
            problem: error.to_string(),
        }
    })
}

/// Appends one reference token to a JSON pointer (RFC 6901 section 3).
pub fn push_pointer(path: &mut String, token: &str) {
    path.push('/');
    for character in token.chars() {
        match character {
            '~' => path.push_str("~0"),
            '/' => path.push_str("~1"),
            other => path.push(other),
        }
    }
}

/// A visitor that builds a value. On an error each level adds its reference token to `trail`, innermost first.
#[derive(Clone, Copy)]
struct Strict<'a> {
    trail: &'a RefCell<Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        clean_text(value.to_owned()).map(Value::String)
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        clean_text(value).map(Value::String)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        loop {
            match items.next_element_seed(self) {
                Ok(Some(item)) => array.push(item),
                Ok(None) => return Ok(Value::Array(array)),
                Err(error) => {
                    self.trail.borrow_mut().push(array.len().to_string());
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let name = clean_text::<A::Error>(name)?;
            // Parsers disagree on which of two equal members wins, so neither is taken.
            if object.contains_key(&name) {
                let error = de::Error::custom("duplicate member name");
                self.trail.borrow_mut().push(name);
                return Err(error);
            }
            match members.next_value_seed(self) {
                Ok(value) => object.insert(name, value),
                Err(error) => {
                    self.trail.borrow_mut().push(name);
                    return Err(error);
                }
            };
        }
        Ok(Value::Object(object))
    }
}

/// Refuses text that contains U+0000.
fn clean_text<E: de::Error>(text: String) -> Result<String, E> {
    // PostgreSQL cannot store the character, and programs in C end a text at it.
    if text.contains('\0') {
        Err(E::custom("the character U+0000 is not allowed"))
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> (String, String) {
        let error = parse(text.as_bytes()).unwrap_err();
        (error.path, error.problem)
    }

    #[test]
    fn plain_values_parse_as_serde_json_reads_them() {
        let text = r#" {"a":[1,-2,3.5,true,null,"x\n"],"b":{"c":{}}} "#;
        assert_eq!(
            parse(text.as_bytes()).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
    }

    #[test]
    fn duplicate_names_are_named_by_their_path() {
        let (path, problem) = refusal(r#"{"records":[{},{"a/b":{"x":1,"x":1}}]}"#);
        assert_eq!(path, "/records/1/a~1b/x");
        assert!(problem.starts_with("duplicate member name"), "{problem}");
    }

    #[test]
    fn what_other_parsers_read_differently_is_refused() {
        for text in [
            r#"{"a":"\u0000"}"#,
            r#"{"\u0000":1}"#,
            r#"["\ud800"]"#,
            r#"["\udc00x"]"#,
            "[1e400]",
            "[-1e999]",
            "[01]",
            "[1,]",
            "{} {}",
            "[NaN]",
            "\u{feff}[]",
            "['a']",
            "[\"a\nb\"]",
            "",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(parse(b"[\"\xff\"]").is_err());
        let deep = "[".repeat(200_000);
        assert!(refusal(&deep).1.contains("recursion limit"));
    }
}
