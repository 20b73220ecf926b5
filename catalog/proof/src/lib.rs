//! What a stranger needs to check a version of a dataset without asking the service: content roots, signed manifests
//! and the document of service keys.
//!
//! Invariants:
//! - It knows no network and no runtime; the only files it reads are those of the folder it is asked to verify.
//! - What a signature covers is what was received, member by member, never what this build understood of it.
//! - A part is opened as Parquet only after its SHA-256 is the one that a verified manifest names.
//!
//! ```text
//! Keys::parse ──► follows (nothing seen before was taken back) ──► begins_with (the first key is the trusted one)
//!      │
//!      ▼
//! VerifiedManifest::parse ──► folder::verify: SHA-256 of every part, content roots recomputed from the rows
//! ```

mod codes;
mod error;
#[cfg(test)]
mod fixture;
pub mod folder;
mod json;
pub mod keys;
pub mod manifest;
pub mod pace;
mod root;
mod row;
mod signing;
mod suffix;
mod time;

pub use codes::{FileHash, KeyId, ParseCodeError, PublicKey, SignatureBytes};
pub use error::Error;
pub use keys::{Key, Keys, KeysDocument, Status};
pub use manifest::{Manifest, Part, SignedManifest, VerifiedManifest};
pub use root::{Extension, Root};
pub use signing::{Algorithm, Endorsement, SigningKey};
pub use suffix::Suffix;
