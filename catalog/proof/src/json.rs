//! Signed bytes, and documents read without losing a member.
//!
//! Invariant: two documents that differ in any signed member, known to this build or not, differ in their signed bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use types::canonical;

use crate::Error;

/// Returns the signed bytes: `format`, a line feed, and the canonical form (RFC 8785) of an object.
pub(crate) fn signed_bytes(format: &str, members: Map<String, Value>) -> Vec<u8> {
    let mut bytes = format.as_bytes().to_vec();
    // No format name contains a line feed, so the name and the object cannot run into each
    // other.
    bytes.push(b'\n');
    canonical::write_value(&mut bytes, &Value::Object(members));
    bytes
}

/// Parses a strict JSON object. A repeated member and trailing text are errors.
pub(crate) fn object(what: &'static str, text: &[u8]) -> Result<Map<String, Value>, Error> {
    let malformed = |path: String, problem: String| Error::Malformed { what, path, problem };
    match types::json::parse(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(malformed(String::new(), "not an object".to_owned())),
        Err(error) => Err(malformed(error.path, error.problem)),
    }
}

/// Converts a value of a document to a type; `path` is its JSON pointer.
pub(crate) fn typed<T: DeserializeOwned>(what: &'static str, path: &str, value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|error| Error::Malformed {
        what,
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

/// Converts a document to the object that is signed and sent.
pub(crate) fn members(what: &'static str, document: &impl Serialize) -> Result<Map<String, Value>, Error> {
    let malformed = |problem: String| Error::Malformed {
        what,
        path: String::new(),
        problem,
    };
    match serde_json::to_value(document) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(malformed("not an object".to_owned())),
        Err(error) => Err(malformed(error.to_string())),
    }
}
