//! The closed vocabularies of the database: each word is written the same in SQL, in JSON and in the specification.
//!
//! Invariant: a word read from the database that is not in its vocabulary is an error, never a default.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text is not a word of the vocabulary that it was read as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not one of {}", expected.join(", "))]
pub struct UnknownWord {
    /// The text.
    pub text: String,
    /// The words there are.
    pub expected: &'static [&'static str],
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$word_doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every word, in the order of the specification.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word.
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
    /// Who may read a dataset's records.
    Access {
        /// Anyone with an agent key.
        Public = "public",
        /// Operators that bought the version.
        Paid = "paid",
    }

    /// Who may know that a dataset exists.
    Visibility {
        /// Everyone.
        Public = "public",
        /// Its operator and the operator's agents.
        Private = "private",
    }

    /// Whether a dataset takes contributions.
    ProjectStatus {
        /// It does.
        Open = "open",
        /// Not now; it may open again.
        Paused = "paused",
        /// Never again.
        Archived = "archived",
    }

    /// Where a contribution stands.
    ContributionStatus {
        /// Acknowledged, not judged yet.
        Submitted = "submitted",
        /// Cannot be judged now; it is kept and tried again.
        Waiting = "waiting",
        /// Its new records are a version.
        Merged = "merged",
        /// Nothing of it was merged.
        Rejected = "rejected",
    }

    /// How the bytes of an upload are compressed.
    Compression {
        /// They are not.
        None = "none",
        /// RFC 1952, in one member or several.
        Gzip = "gzip",
    }

    /// Where an upload stands.
    UploadStatus {
        /// It takes parts.
        Open = "open",
        /// It is a contribution.
        Completed = "completed",
        /// Its time was over before it was completed.
        Expired = "expired",
    }
}

impl ContributionStatus {
    /// Whether no outcome changes it any more, short of a replay.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Merged | Self::Rejected)
    }
}
