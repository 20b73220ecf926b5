//! A letter before it is sent.

use lettre::Address;
use lettre::message::{Mailbox, Message, MultiPart};
use types::host::is_host_name;

use crate::Error;

/// A letter in two forms, of which the reader's program shows one.
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
    /// The same as HTML, which loads nothing.
    pub html: String,
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
            // The text comes first: a reader takes the last form that it knows (RFC 2046 section 5.1.4).
            .multipart(MultiPart::alternative_plain_html(self.text.clone(), self.html.clone()))
            .map_err(|error| Error::Letter(error.to_string()))
    }
}

/// Longest name before the sign, in bytes (RFC 5321 section 4.5.3.1).
const MAX_NAME: usize = 64;

/// Returns true if every [`Mailer`](crate::Mailer) can send to the text, whatever the mail server offers: a name of plain
/// words with dots between them and a host name, all ASCII (RFC 5321 section 4.1.2, without quotes, comments and address
/// literals). A domain in another script has a form in ASCII.
pub fn is_address(text: &str) -> bool {
    let Some((name, domain)) = text.rsplit_once('@') else {
        return false;
    };
    let is_word = |word: &str| {
        let is_atom = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
        !word.is_empty() && word.bytes().all(is_atom)
    };
    // Numbers alone are an address of a machine, which a mail server takes only in brackets, if at all.
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    let has_parts = name.len() <= MAX_NAME
        && name.split('.').all(is_word)
        && is_host_name(domain)
        && !domain.rsplit('.').next().is_some_and(is_number);
    // The library that sends has the last word.
    has_parts && text.parse::<Address>().is_ok()
}

/// Returns true if the text is written like an address, which may be one that no letter reaches.
pub fn is_like_address(text: &str) -> bool {
    text.parse::<Address>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_to_an_address_can_be_made_and_read_again() {
        let from: Mailbox = "Sluice <sluice@example.org>".parse().unwrap();
        let words = (0..=0x7f_u8).map(|byte| format!("a{}b@example.org", char::from(byte)));
        let hosts = (0..=0x7f_u8).map(|byte| format!("ada@a{}b.example.org", char::from(byte)));
        let further = [
            "a@b",
            "o'hara@example.org",
            "a+b=c@x-1.example",
            "!#$%&'*+-/=?^_`{|}~@example.org",
        ];
        let mut taken = 0;
        for to in words.chain(hosts).chain(further.map(str::to_owned)) {
            let letter = Letter {
                id: "a-1".to_owned(),
                to: to.clone(),
                subject: "A subject".to_owned(),
                text: "A text.\n".to_owned(),
                html: "<p>A text.</p>\n".to_owned(),
            };
            if !is_address(&to) {
                continue;
            }
            taken += 1;
            let message = letter.message(&from).unwrap();
            let recipients = message.envelope().to().iter().map(ToString::to_string);
            assert_eq!(recipients.collect::<Vec<_>>().join(" "), to);
            let written = String::from_utf8(message.formatted()).unwrap();
            assert!(written.contains(&format!("\r\nTo: {to}\r\n")), "{written}");
        }
        assert!(taken > 140, "{taken}");
    }

    #[test]
    fn what_no_mailer_can_send_to_is_no_address() {
        let long = format!("{}@example.org", "a".repeat(65));
        let label = format!("a@{}.org", "b".repeat(64));
        for text in [
            "a@1.2.3.4",
            "a@[1.2.3.4]",
            "a@[IPv6:::1]",
            "a@::1",
            "\"a b\"@example.org",
            "\"a\"@example.org",
            ".a@example.org",
            "a.@example.org",
            "a..b@example.org",
            "a@example..org",
            "a@example.org.",
            "a@.example.org",
            "a@-x.example.org",
            "a@x-.example.org",
            "a@x_y.example.org",
            "\u{e4}da@example.org",
            "ada@ex\u{e4}mple.org",
            "a@b@example.org",
            "a@example.123",
            long.as_str(),
            label.as_str(),
        ] {
            assert!(!is_address(text), "{text}");
        }
    }
}
