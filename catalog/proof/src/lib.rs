//! Proofs for datasets: content roots, signed manifests, receipts and the document of service keys. With them a client
//! checks a version, or an answer over it, without trusting the service.
//!
//! Invariants:
//! - The package has no network and no runtime. It reads only the files of the folder that it verifies.
//! - A signature covers the document as received, with members that this build does not know.
//! - A part is opened as Parquet only after its SHA-256 matches a verified manifest.
//!
//! ```text
//! Keys::parse ──► follows (no key seen before was taken back) ──► begins_with (the first key is the trusted one)
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
pub mod jws;
pub mod keys;
pub mod manifest;
pub mod pace;
pub mod query_receipt;
mod root;
mod row;
pub mod sale;
mod seal;
mod signing;
pub mod statement;
mod suffix;
pub mod terms;
mod time;

pub use codes::{FileHash, KeyId, ParseCodeError, PublicKey, SignatureBytes};
pub use error::Error;
pub use keys::{Key, Keys, KeysDocument, Status};
pub use manifest::{Manifest, Part, SignedManifest, VerifiedManifest};
pub use query_receipt::QueryReceipt;
pub use root::{Extension, KnownHead, Root};
pub use sale::SaleReceipt;
pub use seal::LedgerSeal;
pub use signing::{Algorithm, Endorsement, SigningKey};
pub use statement::{SignedStatement, Statement, VerifiedStatement};
pub use suffix::Suffix;
