//! Question before something that cannot be undone.

use askama::Template;

use crate::chrome::{PageLayout, Theme};

/// Asks before an action: a form with hidden fields and one button.
#[derive(Debug, Template)]
#[template(path = "confirm.html")]
pub struct ConfirmPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Question that the person answers, as the heading.
    pub title: String,
    /// Consequences of a yes, in one paragraph.
    pub explanation: String,
    /// Path that the form is posted to.
    pub action: String,
    /// Hidden fields of the form.
    // The fields repeat what was asked, so the answer does not depend on what the service remembers
    // between the two requests.
    pub fields: Vec<(String, String)>,
    /// Words of the button: a verb and its object.
    pub label: String,
    /// True if the action destroys something.
    pub danger: bool,
    /// Path of the page to go back to.
    pub back: String,
}
