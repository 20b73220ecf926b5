//! Why something is not proven.

use std::io;
use std::path::PathBuf;

use types::{Classify, Kind, Retry, Timestamp};

use crate::{FileHash, KeyId, Root};

/// Why a document, a signature or a folder of parts does not prove what it claims, or could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A document is not strict JSON, or breaks a rule of its form.
    #[error("the {what} is malformed{}: {problem}", place(path))]
    Malformed {
        /// The document.
        what: &'static str,
        /// JSON pointer of what is wrong; empty for the whole of it.
        path: String,
        /// The rule that is broken.
        problem: String,
    },
    /// The signature is not that of the key over what was received.
    #[error("the signature of the {what} does not hold: it was changed, or signed by somebody else")]
    Signature {
        /// The document.
        what: &'static str,
    },
    /// A manifest is signed by a key that the keys document does not have.
    #[error("the manifest is signed by the unknown key `{key}`")]
    UnknownKey {
        /// The key that the manifest names.
        key: KeyId,
    },
    /// A public key is not the one that its name stands for.
    #[error("the public key given for `{key}` is another one")]
    OtherPublicKey {
        /// The name.
        key: KeyId,
    },
    /// A manifest is signed by a key that was revoked.
    #[error("the manifest is signed by the key `{key}`, which was revoked at {at}: {reason}")]
    Revoked {
        /// The key.
        key: KeyId,
        /// When it was revoked.
        at: Timestamp,
        /// Why.
        reason: String,
    },
    /// A manifest was issued after its key was retired.
    #[error("the manifest was issued at {issued_at} with the key `{key}`, which was retired at {at}")]
    Retired {
        /// The key.
        key: KeyId,
        /// When it was retired.
        at: Timestamp,
        /// When the manifest says that it was issued.
        issued_at: Timestamp,
    },
    /// A key is not vouched for by the one before it.
    #[error("the key `{key}` is not to be trusted: {problem}")]
    Chain {
        /// The key.
        key: KeyId,
        /// The rule that is broken.
        problem: &'static str,
    },
    /// The chain of keys does not begin with the key that is trusted.
    #[error("the keys begin with `{found}`, and the key that is trusted is `{trusted}`")]
    OtherFirstKey {
        /// The key that is trusted.
        trusted: KeyId,
        /// The first key of the document.
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
    /// Two keys documents of one sequence say different things.
    #[error("the keys document of sequence {sequence} has other keys than the one seen before")]
    SameSequence {
        /// The sequence of both.
        sequence: u64,
    },
    /// A key seen before is not in the keys document.
    #[error("the keys document lacks the key `{key}`, which was seen before")]
    KeyMissing {
        /// The key.
        key: KeyId,
    },
    /// A key seen before is another in the keys document.
    #[error("the keys document changes the key `{key}`, which was seen before: {problem}")]
    KeyChanged {
        /// The key.
        key: KeyId,
        /// What changed.
        problem: &'static str,
    },
    /// A file is not the part that the manifest names.
    #[error("`{part}` is not the file that was signed: it has {found} bytes, and {expected} were signed")]
    PartSize {
        /// The part's name.
        part: String,
        /// The size in the manifest.
        expected: u64,
        /// The size of the file.
        found: u64,
    },
    /// A file is not the part that the manifest names.
    #[error("`{part}` is not the file that was signed: its SHA-256 is {found}, and {expected} was signed")]
    PartHash {
        /// The part's name.
        part: String,
        /// The hash in the manifest.
        expected: FileHash,
        /// The hash of the file.
        found: FileHash,
    },
    /// A part is what was signed and yet does not hold the records that its manifest says.
    #[error("`{part}` does not hold what the manifest says: {problem}")]
    PartRows {
        /// The part's name.
        part: String,
        /// What is wrong.
        problem: String,
    },
    /// The records of a version do not give its content root.
    #[error("the records up to `{part}` give the content root {found}, and the manifest says {expected}")]
    ContentRoot {
        /// The part that ends with the version.
        part: String,
        /// The root in the manifest.
        expected: Root,
        /// The root of the records.
        found: Root,
    },
    /// A folder has a Parquet file that is not of the version.
    #[error("`{file}` is a Parquet file that the manifest does not name")]
    Stranger {
        /// The file's name.
        file: String,
    },
    /// A file could not be read.
    #[error("`{}` could not be read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The operating system gave no randomness.
    #[error("no randomness for a key")]
    Randomness(#[source] getrandom::Error),
}

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
