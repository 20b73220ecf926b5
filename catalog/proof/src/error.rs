//! The error of all proofs.

use std::io;
use std::path::PathBuf;

use types::{Classify, Kind, Retry, Timestamp};

use crate::{FileHash, KeyId, Root};

/// A document, a signature or a folder of parts does not prove what it claims, or could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A document is not strict JSON, or breaks a rule of its form.
    #[error("the {what} is malformed{}: {problem}", place(path))]
    Malformed {
        /// The kind of document, such as "manifest".
        what: &'static str,
        /// JSON pointer of the wrong value; empty for the whole document.
        path: String,
        /// The rule that is broken.
        problem: String,
    },
    /// The signature was not made by the key over the received document.
    #[error("the signature of the {what} is not valid: the document was changed, or signed with another key")]
    Signature {
        /// The kind of document, such as "manifest".
        what: &'static str,
    },
    /// A document is signed by a key that the keys document does not have.
    #[error("the {what} is signed by the unknown key `{key}`")]
    UnknownKey {
        /// The kind of document, such as "manifest".
        what: &'static str,
        /// The key that the document names.
        key: KeyId,
    },
    /// A public key does not match its id.
    #[error("the public key given for `{key}` is another key")]
    OtherPublicKey {
        /// The id of the key.
        key: KeyId,
    },
    /// A document is signed by a key that was revoked.
    #[error("the {what} is signed by the key `{key}`, which was revoked at {at}: {reason}")]
    Revoked {
        /// The kind of document, such as "manifest".
        what: &'static str,
        /// The id of the revoked key.
        key: KeyId,
        /// The time of the revocation.
        at: Timestamp,
        /// The reason given for the revocation.
        reason: String,
    },
    /// A document was issued after its key was retired.
    #[error("the {what} was issued at {issued_at} with the key `{key}`, which was retired at {at}")]
    Retired {
        /// The kind of document, such as "manifest".
        what: &'static str,
        /// The id of the retired key.
        key: KeyId,
        /// The time of the retirement.
        at: Timestamp,
        /// The time of issue that the document claims.
        issued_at: Timestamp,
    },
    /// A key is not endorsed by the one before it.
    #[error("the key `{key}` cannot be trusted: {problem}")]
    Chain {
        /// The id of the key.
        key: KeyId,
        /// The rule that is broken.
        problem: &'static str,
    },
    /// The chain of keys begins with another key than the trusted one.
    #[error("the keys document begins with the key `{found}`, but the trusted key is `{trusted}`")]
    OtherFirstKey {
        /// The id of the trusted key.
        trusted: KeyId,
        /// The id of the first key in the document.
        found: KeyId,
    },
    /// A keys document is older than one seen before.
    #[error("the keys document was rolled back: its sequence is {found}, and {seen} was seen before")]
    RolledBack {
        /// The sequence seen before.
        seen: u64,
        /// The sequence of the document.
        found: u64,
    },
    /// Two keys documents with the same sequence have different keys.
    #[error("the keys document of sequence {sequence} has other keys than the document of that sequence seen before")]
    SameSequence {
        /// The sequence of both documents.
        sequence: u64,
    },
    /// A key seen before is not in the keys document.
    #[error("the keys document lacks the key `{key}`, which was seen before")]
    KeyMissing {
        /// The id of the missing key.
        key: KeyId,
    },
    /// A key seen before has changed in the keys document.
    #[error("the keys document changes the key `{key}`, which was seen before: {problem}")]
    KeyChanged {
        /// The id of the key.
        key: KeyId,
        /// The change of the key.
        problem: &'static str,
    },
    /// A file has another size than the part in the manifest.
    #[error("`{part}` is not the signed file: it has {found} bytes instead of {expected}")]
    PartSize {
        /// The file name of the part.
        part: String,
        /// The size in the manifest.
        expected: u64,
        /// The size of the file.
        found: u64,
    },
    /// A file has another SHA-256 than the part in the manifest.
    #[error("`{part}` is not the signed file: its SHA-256 is {found} instead of {expected}")]
    PartHash {
        /// The file name of the part.
        part: String,
        /// The hash in the manifest.
        expected: FileHash,
        /// The hash of the file.
        found: FileHash,
    },
    /// A part is the signed file, but its records contradict the manifest.
    #[error("the records of `{part}` contradict the manifest: {problem}")]
    PartRows {
        /// The file name of the part.
        part: String,
        /// A description of the contradiction.
        problem: String,
    },
    /// The records of a version do not produce its content root.
    #[error("the records up to `{part}` give the content root {found}, but the manifest says {expected}")]
    ContentRoot {
        /// The part that ends with the version.
        part: String,
        /// The root in the manifest.
        expected: Root,
        /// The root of the records.
        found: Root,
    },
    /// A folder contains a Parquet file that the manifest does not name.
    #[error("`{file}` is a Parquet file that the manifest does not name")]
    Stranger {
        /// The name of the file.
        file: String,
    },
    /// A file could not be read.
    #[error("`{}` could not be read", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The operating system returned no random bytes.
    #[error("the operating system returned no random bytes for a key")]
    Randomness(#[source] getrandom::Error),
}

/// Formats a JSON pointer as a part of a sentence; empty for the whole document.
fn place(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!(" at `{path}`")
    }
}

impl Classify for Error {
    fn kind(&self) -> Kind {
        match self {
            Self::File { .. } | Self::Randomness(_) => Kind::Unavailable,
            _ => Kind::Invalid,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::File { .. } | Self::Randomness(_) => Retry::Backoff,
            _ => Retry::Never,
        }
    }
}
