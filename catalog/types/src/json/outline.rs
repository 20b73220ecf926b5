//! Outlines of strict JSON: an object of which one member, a large array of objects, is checked but not kept.
//!
//! Invariant: a text that has an outline parses, and its value differs from the outline only in the objects of that
//! array, which are empty in the outline.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::Strict;

/// The most names of an object that are compared one by one; further names go to a hash set.
const MAX_LINEAR_NAMES: usize = 16;

/// Returns the outline of a strict JSON object whose member `member` is an array of objects. Returns `None` for any
/// other text; [`parse`](super::parse) reports its error.
pub fn outline(text: &[u8], member: &str) -> Option<Map<String, Value>> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let outlined = deserializer.deserialize_map(Outline { member });
    let whole = outlined.and_then(|members| deserializer.end().map(|()| members));
    whole.ok()
}

struct Outline<'a> {
    member: &'a str,
}

impl<'de> Visitor<'de> for Outline<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let trail = RefCell::default();
        let mut object = Map::new();
        while let Some(TextValue(name)) = members.next_key_seed(ValueCheck)? {
            // The rules are those of `parse`, so both accept the same texts.
            if object.contains_key(&*name) {
                return Err(de::Error::custom("duplicate member name"));
            }
            let value = if name == self.member {
                // The array keeps its length and nothing else of its content.
                Value::Array(vec![
                    Value::Object(Map::new());
                    members.next_value_seed(ObjectsVisitor)?
                ])
            } else {
                members.next_value_seed(Strict { trail: &trail })?
            };
            object.insert(name.into_owned(), value);
        }
        Ok(object)
    }
}

/// A visitor that checks an array of objects and counts them.
struct ObjectsVisitor;

impl<'de> DeserializeSeed<'de> for ObjectsVisitor {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ObjectsVisitor {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<usize, A::Error> {
        let mut count = 0;
        while items.next_element_seed(Object)?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

/// A seed that checks an object without keeping it.
struct Object;

impl<'de> DeserializeSeed<'de> for Object {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(ValueCheck).map(drop)
    }
}

/// The text of a checked value; empty if the value is not a string.
struct TextValue<'de>(Cow<'de, str>);

impl TextValue<'_> {
    const NONE: Self = Self(Cow::Borrowed(""));
}

/// A visitor that checks any value without keeping it.
#[derive(Clone, Copy)]
struct ValueCheck;

impl<'de> DeserializeSeed<'de> for ValueCheck {
    type Value = TextValue<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<TextValue<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueCheck {
    type Value = TextValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<TextValue<'de>, E> {
        Ok(TextValue::NONE)
    }

    fn visit_bool<E>(self, _: bool) -> Result<TextValue<'de>, E> {
        Ok(TextValue::NONE)
    }

    fn visit_i64<E>(self, _: i64) -> Result<TextValue<'de>, E> {
        Ok(TextValue::NONE)
    }

    fn visit_u64<E>(self, _: u64) -> Result<TextValue<'de>, E> {
        Ok(TextValue::NONE)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<TextValue<'de>, E> {
        if value.is_finite() {
            Ok(TextValue::NONE)
        } else {
            Err(E::custom("number out of range"))
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<TextValue<'de>, E> {
        // U+0000 can only arrive escaped, and escaped text is never borrowed, so borrowed text
        // needs no check.
        super::clean_text(text.to_owned()).map(|text| TextValue(Cow::Owned(text)))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<TextValue<'de>, E> {
        Ok(TextValue(Cow::Borrowed(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<TextValue<'de>, A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(TextValue::NONE)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<TextValue<'de>, A::Error> {
        let mut names = MemberNames::default();
        while let Some(TextValue(name)) = members.next_key_seed(self)? {
            if !names.insert(name) {
                return Err(de::Error::custom("duplicate member name"));
            }
            members.next_value_seed(self)?;
        }
        Ok(TextValue::NONE)
    }
}

/// The member names seen in one object.
#[derive(Default)]
struct MemberNames<'de> {
    first: Vec<Cow<'de, str>>,
    others: HashSet<Cow<'de, str>>,
}

impl<'de> MemberNames<'de> {
    /// Adds a name. Returns false if it was there already.
    fn insert(&mut self, name: Cow<'de, str>) -> bool {
        if self.first.contains(&name) {
            return false;
        }
        if self.first.len() < MAX_LINEAR_NAMES {
            self.first.push(name);
            return true;
        }
        self.others.insert(name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::parse;

    /// The value of a text with the objects in `records` emptied.
    fn emptied(text: &str) -> Value {
        let mut value = parse(text.as_bytes()).unwrap();
        for record in value["records"].as_array_mut().unwrap() {
            *record = json!({});
        }
        value
    }

    #[test]
    fn an_outline_is_the_value_with_empty_records() {
        for text in [
            r#"{"records":[]}"#,
            r#" {"a":[1,{"b":null}],"records":[{"a":1,"b":"x\n","c":[{"d":true}],"é":-1.5e3},{}],"z":"\u00e9"} "#,
        ] {
            let outlined = outline(text.as_bytes(), "records").unwrap();
            assert_eq!(Value::Object(outlined), emptied(text), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_strict_has_no_outline() {
        let others = (0..100)
            .map(|name| format!("\"{name}\":0,"))
            .collect::<Vec<_>>()
            .concat();
        for record in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a":{"b":[{"c":1,"c":1}]}}"#,
            &format!("{{{others}\"99\":1}}"),
            r#"{"a":"\u0000"}"#,
            r#"{"\u0000":1}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":1e400}"#,
            r#"{"a":01}"#,
            r#"{"a":1,}"#,
            &format!("{{\"a\":{}{}}}", "[".repeat(130), "]".repeat(130)),
        ] {
            let text = format!("{{\"records\":[{record}]}}");
            assert!(parse(text.as_bytes()).is_err(), "{text}");
            assert!(outline(text.as_bytes(), "records").is_none(), "{text}");
        }
        for text in [
            "",
            "[]",
            "{}x",
            r#"{"records":[],"records":[]}"#,
            r#"{"a":1,"records":[],"a":1}"#,
        ] {
            assert!(outline(text.as_bytes(), "records").is_none(), "{text}");
        }
        assert!(outline(b"{\"records\":[{\"a\":\"\xff\"}]}", "records").is_none());
        let others = others.trim_end_matches(',');
        assert!(outline(format!("{{\"records\":[{{{others}}}]}}").as_bytes(), "records").is_some());
    }

    #[test]
    fn what_is_no_array_of_objects_is_left_to_the_parser() {
        for text in [
            r#"{"records":{}}"#,
            r#"{"records":[1]}"#,
            r#"{"records":[{},null]}"#,
            r#"{"records":"x"}"#,
        ] {
            assert!(parse(text.as_bytes()).is_ok());
            assert!(outline(text.as_bytes(), "records").is_none(), "{text}");
        }
    }
}
