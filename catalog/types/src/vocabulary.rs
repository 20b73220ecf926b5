//! Closed vocabularies: each word is written the same in the database, in messages, in JSON and in the interface.
//!
//! Invariant: a text that is not a word of its vocabulary is an error, never a default.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

/// A text is not in its vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not one of {}", expected.join(", "))]
pub struct UnknownWord {
    /// Text that was parsed.
    pub text: String,
    /// Words that the vocabulary has.
    pub expected: &'static [&'static str],
}

/// Describes a vocabulary as its words only: an `enum`, which tells a caller more than one schema for each word.
pub fn plain(schema: &mut Schema) {
    let words = schema.get("oneOf").and_then(|words| words.as_array());
    let words = words.map(|words| {
        words
            .iter()
            .filter_map(|word| word.get("const").cloned())
            .collect::<Vec<_>>()
    });
    if let Some(words) = words {
        schema.remove("oneOf");
        schema.insert("type".to_owned(), "string".into());
        schema.insert("enum".to_owned(), words.into());
    }
}

// One list per vocabulary, so that the enum, its SQL text and its JSON text cannot differ.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[schemars(transform = plain)]
        pub enum $name {
            $($(#[$word_doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// The words in the order of the specification.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// Returns the word of the variant.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(UnknownWord { text: text.to_owned(), expected: Self::WORDS }),
                }
            }
        }
    )*};
}

words! {
    /// The access to a dataset's records.
    Access {
        /// Every agent with a key.
        Public = "public",
        /// Operators that bought the version.
        Paid = "paid",
    }

    /// The visibility of a dataset.
    Visibility {
        /// Everyone may know that it exists.
        Public = "public",
        /// Its operator and the operator's agents.
        Private = "private",
    }

    /// The state of a dataset with respect to contributions.
    ProjectStatus {
        /// Contributions are accepted.
        Open = "open",
        /// No contributions are accepted now; that may change.
        Paused = "paused",
        /// No contributions are ever accepted again.
        Archived = "archived",
    }

    /// The status of a contribution.
    ContributionStatus {
        /// Acknowledged, not judged yet.
        Submitted = "submitted",
        /// It cannot be judged now; it is kept and tried again.
        Waiting = "waiting",
        /// Its new records form a version.
        Merged = "merged",
        /// No record of it was merged.
        Rejected = "rejected",
    }

    /// The compression of an upload.
    Compression {
        /// Uncompressed JSON lines.
        None = "none",
        /// RFC 1952, in one member or several.
        Gzip = "gzip",
    }

    /// The status of an upload.
    UploadStatus {
        /// Parts can be sent.
        Open = "open",
        /// The upload has become a contribution.
        Completed = "completed",
        /// The upload expired before it was completed.
        Expired = "expired",
    }

    /// The status of a claim.
    ClaimStatus {
        /// The operator has not decided.
        Pending = "pending",
        /// The agent exists and its key works.
        Approved = "approved",
        /// The operator refused.
        Rejected = "rejected",
        /// The operator did not decide in time.
        Expired = "expired",
    }

    /// The kind of a caller in the audit trail.
    ActorKind {
        /// An agent, by its key.
        Agent = "agent",
        /// A person, by a token or a session.
        Person = "person",
        /// Anybody, without a credential.
        Anonymous = "anonymous",
    }

    /// The purpose of a link that was mailed.
    LinkPurpose {
        /// Confirms the address of a sign-up.
        Verify = "verify",
        /// Signs in to the console.
        SignIn = "sign_in",
    }
}

impl ContributionStatus {
    /// Returns true if only a replay can still change the status.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Merged | Self::Rejected)
    }
}

#[expect(clippy::derivable_impls, reason = "the macro of the vocabularies knows no default")]
impl Default for Compression {
    fn default() -> Self {
        Self::None
    }
}
