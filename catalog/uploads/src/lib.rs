//! The parts of uploads, until their contribution is decided: in a folder or in a bucket.
//!
//! Invariant: a part that was put is durable and whole, or it is not there. Once an upload is sealed its parts never
//! change.

#[cfg(feature = "s3")]
mod bucket;
#[cfg(test)]
mod conformance;
mod local;
mod progress;
mod store;

#[cfg(feature = "s3")]
pub use bucket::BucketUploads;
pub use local::{LocalUploads, PartWriter};
pub use progress::{ListedUpload, ProgressCounters, StagingProgress, Stagings};
pub use store::{Error, PartTag, UploadStore};
pub use types::UploadLayout;
pub use types::vocabulary::Compression;
