//! A visitor of the leaves of JSON text, which builds no tree of values.
//!
//! Invariant: every name, string and integer of the text is visited once, in order, and every `enter` is followed by
//! one `leave`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// The callbacks of a walk.
pub(crate) trait JsonVisitor {
    /// Called before the leaves of a member.
    fn enter_member(&mut self, name: &str);
    /// Called before the leaves of an array item.
    fn enter_item(&mut self, index: usize);
    /// Called after the last leaf of the member or item that was entered last.
    fn leave(&mut self);
    /// Called for a string.
    fn text(&mut self, text: &str);
    /// Called for an integer, with its magnitude.
    fn integer(&mut self, magnitude: u64);
}

/// Visits the leaves of `json`. Returns an error if it is not JSON.
pub(crate) fn walk(json: &str, visitor: &mut impl JsonVisitor) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    Walk(visitor).deserialize(&mut deserializer)?;
    deserializer.end()
}

struct Walk<'a, L>(&'a mut L);

impl<'de, L: JsonVisitor> DeserializeSeed<'de> for Walk<'_, L> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, L: JsonVisitor> Visitor<'de> for Walk<'_, L> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.0.integer(value.unsigned_abs());
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.0.integer(value);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.text(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            // serde reports the end of an array only when the next item is asked for, so the
            // item is entered first. An empty visit at the end is harmless.
            self.0.enter_item(index);
            let item = items.next_element_seed(Walk(&mut *self.0));
            self.0.leave();
            if item?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while members.next_key_seed(Name(&mut *self.0))?.is_some() {
            // The member is left even if its value is malformed, so that every `enter` has its
            // `leave`.
            let value = members.next_value_seed(Walk(&mut *self.0));
            self.0.leave();
            value?;
        }
        Ok(())
    }
}

/// A seed that enters the member with the next name.
struct Name<'a, L>(&'a mut L);

impl<'de, L: JsonVisitor> DeserializeSeed<'de> for Name<'_, L> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<L: JsonVisitor> Visitor<'_> for Name<'_, L> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, name: &str) -> Result<(), E> {
        self.0.enter_member(name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log {
        path: Vec<String>,
        seen: Vec<String>,
    }

    impl JsonVisitor for Log {
        fn enter_member(&mut self, name: &str) {
            self.path.push(name.to_owned());
        }
        fn enter_item(&mut self, index: usize) {
            self.path.push(index.to_string());
        }
        fn leave(&mut self) {
            self.path.pop();
        }
        fn text(&mut self, text: &str) {
            self.seen.push(format!("{}={text}", self.path.join("/")));
        }
        fn integer(&mut self, magnitude: u64) {
            self.seen.push(format!("{}={magnitude}", self.path.join("/")));
        }
    }

    #[test]
    fn every_leaf_is_visited_under_its_path() {
        let mut log = Log::default();
        walk(
            r#"{"a":"x","b":{"c\n":["y",-2,[],{}]},"d":[1.5,true,null,"\u00e9"]}"#,
            &mut log,
        )
        .unwrap();
        assert_eq!(log.seen, ["a=x", "b/c\n/0=y", "b/c\n/1=2", "d/3=é"]);
        assert_eq!(log.path, [""; 0]);
    }

    #[test]
    fn what_is_not_json_is_an_error() {
        assert!(walk("{\"a\":", &mut Log::default()).is_err());
        assert!(walk("1 2", &mut Log::default()).is_err());
    }
}
