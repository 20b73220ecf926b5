//! Texts of values within a record of JSON.
//!
//! Invariant: numbers have the digits that the record has, which a double may drop.

use std::collections::HashMap;

use serde_json::value::RawValue;

/// Returns the text of the value at a JSON pointer (RFC 6901) as the record has it. `None` if there is none.
pub(crate) fn raw_member<'a>(record: &'a [u8], pointer: &str) -> Option<&'a str> {
    let mut value: &RawValue = serde_json::from_slice(record).ok()?;
    for step in pointer.strip_prefix('/')?.split('/') {
        let step = step.replace("~1", "/").replace("~0", "~");
        value = if value.get().starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            items.get(step.parse::<usize>().ok()?).copied()?
        } else {
            let members: HashMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
            members.get(&step).copied()?
        };
    }
    Some(value.get())
}

/// Returns the value at a JSON pointer for people: a text without its quotes, anything else as the record has it.
pub(crate) fn member_text(record: &[u8], pointer: &str) -> Option<String> {
    let raw = raw_member(record, pointer)?;
    Some(serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_digits_and_a_text_loses_its_quotes() {
        let record = br#"{"a":{"b/c":[1,{"n":123456789012345678901234567890}]},"t":"a\"b"}"#;
        assert_eq!(
            raw_member(record, "/a/b~1c/1/n"),
            Some("123456789012345678901234567890")
        );
        assert_eq!(raw_member(record, "/t"), Some(r#""a\"b""#));
        assert_eq!(member_text(record, "/t").as_deref(), Some("a\"b"));
        assert_eq!(member_text(record, "/a/b~1c/0").as_deref(), Some("1"));
        for missing in ["/x", "/a/b~1c/7", "/a/b~1c/x", "/t/0", ""] {
            assert_eq!(raw_member(record, missing), None, "{missing}");
        }
    }
}
