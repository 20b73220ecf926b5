//! Page for a form that came without a session, or of an earlier one: what was typed is kept, and can be sent again.
//!
//! Invariant: the page shows what its own request brought, and nothing of an account.

use askama::Template;

use crate::chrome::{PageLayout, Theme};

/// Answer to a form whose sender was signed out meanwhile. Its button sends the same fields again.
#[derive(Debug, Template)]
#[template(path = "kept.html")]
pub struct KeptFormPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Path that the form is posted to.
    pub action: String,
    /// Path of the page that the form was on.
    pub page: String,
    /// Fields of the form, as they were typed.
    pub fields: Vec<(&'static str, String)>,
    /// Words of the button: a verb and its object.
    pub label: &'static str,
}

impl KeptFormPage {
    /// Returns true if the browser has a session, so that the form can be sent again at once.
    fn has_token(&self) -> bool {
        !self.chrome.form_token.is_empty()
    }

    /// Returns the fields that a person typed more than a word into.
    fn typed(&self) -> impl Iterator<Item = &(&'static str, String)> {
        self.fields
            .iter()
            .filter(|(_, value)| value.contains(char::is_whitespace))
    }
}
