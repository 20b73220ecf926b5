//! The bytes that signatures cover, and documents read without losing any member of them.
//!
//! Invariant: two documents that differ in any member that is signed, known to this build or not, differ in these bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use types::canonical;

use crate::Error;

/// `format`, a line feed, and the canonical form (RFC 8785) of an object.
pub(crate) fn signed_bytes(format: &str, members: Map<String, Value>) -> Vec<u8> {
    let mut bytes = format.as_bytes().to_vec();
    bytes.push(b'\n');
    canonical::write_value(&mut bytes, &Value::Object(members));
    bytes
}

/// Reads a strict JSON object: no member twice, nothing after it.
pub(crate) fn object(what: &'static str, text: &[u8]) -> Result<Map<String, Value>, Error> {
    let malformed = |path: String, problem: String| Error::Malformed { what, path, problem };
    match types::json::parse(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(malformed(String::new(), "not an object".to_owned())),
        Err(error) => Err(malformed(error.path, error.problem)),
    }
}

/// A value of a document as a type; `path` is where it is.
pub(crate) fn typed<T: DeserializeOwned>(what: &'static str, path: &str, value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(|error| Error::Malformed {
        what,
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

/// A document as the object that is signed and sent.
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
