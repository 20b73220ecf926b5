//! Services that the operations on uploads use.
//!
//! Invariant: `local` is the store of `objects`, or there is none.

use std::sync::Arc;

use uploads::UploadStore;

/// Dependencies of the upload operations.
#[derive(Clone, Debug)]
pub struct UploadServices {
    /// Store of the parts.
    pub objects: Arc<dyn UploadStore>,
    /// The same store, if it is on this machine's disk and the service receives the parts itself.
    pub local: Option<uploads::LocalUploads>,
    /// Progress of the uploads that this process ingests.
    pub stagings: uploads::Stagings,
}
