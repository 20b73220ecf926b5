//! Letters to people, with a delivery that can be repeated: as files in a folder, or by SMTP.
//!
//! Invariants, which the suite `conformance` proves of every [`Mailer`]:
//! - A letter that was sent twice arrives with the same `Message-ID`, so that its reader's mailbox can show it once.
//! - No text of a letter can add a header or a recipient.
//! - A letter arrives as text and as HTML.
//! - An error says whether sending the same letter again can help.

mod body;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod folder;
mod letter;
mod smtp;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::fmt::Debug;

use async_trait::async_trait;
use types::{Classify, Kind, Retry};

pub use body::LetterBody;
pub use folder::Folder;
pub use letter::{Letter, is_address, is_like_address};
pub use smtp::{Security, Smtp, SmtpOptions};

/// Way to deliver letters to people.
#[async_trait]
pub trait Mailer: Debug + Send + Sync {
    /// Delivers a letter. Returns once a file of it is durable, or the mail server has taken it.
    ///
    /// # Errors
    /// [`Error`]. If its [`Retry`] is `Backoff`, the letter may have been delivered nevertheless.
    async fn send(&self, letter: &Letter) -> Result<(), Error>;
}

/// Failure to deliver a letter.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The letter has an address or a header that mail cannot have.
    #[error("the letter cannot be sent: {0}")]
    Letter(String),
    /// The mail server refused the letter or its recipient for good.
    #[error("the mail server refused the letter: {0}")]
    Refused(String),
    /// The mail server cannot be reached, or asks to try again later.
    #[error("the mail server did not take the letter")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The options name no mail server that can be used.
    #[error("mail cannot be sent: {0}")]
    Options(String),
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::Letter(_) | Self::Refused(_) => Kind::Invalid,
            Self::Unavailable(_) => Kind::Unavailable,
            Self::Options(_) => Kind::Internal,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            // The same letter would be refused again, and a server that is asked again and again may refuse every
            // other.
            Self::Letter(_) | Self::Refused(_) | Self::Options(_) => Retry::Never,
            Self::Unavailable(_) => Retry::Backoff,
        }
    }
}
