//! Texts of errors.

use std::error::Error;

/// Returns an error with its causes in one line, outermost first: `a: b: c`.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Link(&'static str, #[source] Option<Box<Self>>);

    #[test]
    fn the_outermost_error_comes_first() {
        let error = Link("a", Some(Box::new(Link("b", Some(Box::new(Link("c", None)))))));
        assert_eq!(with_causes(&error), "a: b: c");
        assert_eq!(with_causes(&Link("a", None)), "a");
    }
}
