//! Parameters of a request: a query string or a body of `application/x-www-form-urlencoded`.
//!
//! Invariant: a parameter that is read occurs once. Parameters that nobody reads are ignored (RFC 6749 section 3.1).

use std::collections::BTreeMap;
use std::fmt;

use url::form_urlencoded;

/// Decoded parameters. They may contain secrets, so that `Debug` shows only their names.
#[derive(Clone, Default)]
pub struct Params(BTreeMap<String, Vec<String>>);

/// A parameter occurs more than once.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` occurs more than once")]
pub struct RepeatedParam(pub &'static str);

impl Params {
    /// Decodes a query string or a form. The caller bounds its length.
    pub fn parse(text: &[u8]) -> Self {
        let mut params: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(text) {
            // A parameter without a value counts as omitted (RFC 6749 section 3.1).
            if !value.is_empty() {
                params.entry(name.into_owned()).or_default().push(value.into_owned());
            }
        }
        Self(params)
    }

    /// Returns the value of a parameter, if there is one.
    ///
    /// # Errors
    /// [`RepeatedParam`] if there are several.
    pub fn get(&self, name: &'static str) -> Result<Option<&str>, RepeatedParam> {
        match self.0.get(name).map(Vec::as_slice) {
            // An entry is made with its first value, so that no list is empty.
            None | Some([]) => Ok(None),
            Some([value]) => Ok(Some(value)),
            Some(_) => Err(RepeatedParam(name)),
        }
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_value_is_no_value_and_two_values_are_refused_when_they_are_read() {
        let params = Params::parse(b"a=1&b=&c=x+y%20z&d=1&d=2&a=&=5&e");
        assert_eq!(params.get("a"), Ok(Some("1")));
        assert_eq!(params.get("b"), Ok(None));
        assert_eq!(params.get("c"), Ok(Some("x y z")));
        assert_eq!(params.get("d"), Err(RepeatedParam("d")));
        assert_eq!(params.get("e"), Ok(None));
        assert_eq!(format!("{params:?}"), r#"{"", "a", "c", "d"}"#);
    }
}
