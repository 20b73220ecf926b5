//! Errors of forms.

/// Rule that a field of a form breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Name of the field; empty for the form as a whole.
    pub field: String,
    /// Sentence that names the rule.
    pub message: String,
}

impl FieldError {
    /// Creates an error.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

/// Choice of a list in a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionChoice {
    /// Value that is sent; a word or an id, which needs no escape in an address.
    pub value: String,
    /// Words of the choice.
    pub label: String,
    /// True if it is chosen.
    pub is_chosen: bool,
}

/// Errors by field.
pub(crate) trait Errors {
    /// Returns the first error of a field.
    fn of(&self, field: &str) -> Option<&str>;
}

impl Errors for [FieldError] {
    fn of(&self, field: &str) -> Option<&str> {
        self.iter()
            .find(|error| error.field == field)
            .map(|error| error.message.as_str())
    }
}
