//! A letter before it is sent.

use lettre::Address;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message};

use crate::Error;

/// A letter of plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Identifier of the letter within the service, the same for every try: letters, digits and hyphens.
    pub id: String,
    /// Address of the recipient.
    pub to: String,
    /// Subject: one line without control characters.
    pub subject: String,
    /// Text, with line feeds between its lines.
    pub text: String,
}

impl Letter {
    /// Returns the letter as an Internet message (RFC 5322) from `from`, with the `Message-ID` `<id@domain of the sender>`.
    pub(crate) fn message(&self, from: &Mailbox) -> Result<Message, Error> {
        let rule = |problem: &str| Error::Letter(problem.to_owned());
        // The id becomes a header and a file name, so nothing that could end a header or leave a folder is in it.
        let is_plain = |character: char| character.is_ascii_alphanumeric() || character == '-';
        if self.id.is_empty() || !self.id.chars().all(is_plain) {
            return Err(rule("its id must be letters, digits and hyphens"));
        }
        // A line break in the subject would begin another header, for example one with more recipients.
        if self.subject.chars().any(char::is_control) {
            return Err(rule("its subject must be one line without control characters"));
        }
        let to: Address = self
            .to
            .parse()
            .map_err(|error| Error::Letter(format!("`{}` is not an address: {error}", self.to)))?;
        Message::builder()
            .message_id(Some(format!("<{}@{}>", self.id, from.email.domain())))
            .from(from.clone())
            // Without a display name, because names are chosen by the people who sign up.
            .to(Mailbox::new(None, to))
            .subject(self.subject.clone())
            .header(ContentType::TEXT_PLAIN)
            .body(self.text.clone())
            .map_err(|error| Error::Letter(error.to_string()))
    }
}

/// Returns true if mail can be sent to the text (RFC 5321 section 4.1.2, without comments and address literals).
pub fn is_address(text: &str) -> bool {
    text.parse::<Address>().is_ok()
}
