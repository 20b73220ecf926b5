//! State of the building of profiles in this process: its schedule, its permits, and the secret that samples rows.
//!
//! Invariant: all processes of a service sample by one secret, which the database keeps, so they make equal profiles.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use operators::profile::SamplingKey;
use serde::Deserialize;
use sha2::Sha256;
use store::Store;
use tokio::sync::{OnceCell, Semaphore};
use types::{DatasetId, HumanDuration, Timestamp};

use crate::error::ApiError;
use crate::state::holder_limit::HolderLimit;

/// Name of the secret in the database.
const SECRET: &str = "profile-sample";
/// Context of the keys of datasets, which separates them from whatever else the secret may be for.
const CONTEXT: &str = "sluice-profile-sample-1";
/// Profiles that are built within calls at the same time.
const BUILDS_IN_CALLS: usize = 2;

/// Section `profiles` of the configuration: the building of profiles.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct ProfileConfig {
    /// The least time between two builds of a dataset whose versions nobody asks for.
    pub every: HumanDuration,
    /// The builds behind the merges at the same time.
    pub at_once: std::num::NonZeroUsize,
    /// The most rows that are read within a call that asks for a version.
    pub request_rows: u64,
}

/// Permits and secret of the building of profiles.
pub(crate) struct ProfileBuilds {
    /// Permits for builds within calls.
    pub(crate) in_calls: Semaphore,
    /// Permits of each dataset, one at a time: who asks for it while it is built waits, and finds what was built.
    pub(crate) of_dataset: HolderLimit<DatasetId>,
    secret: OnceCell<[u8; 32]>,
}

impl Default for ProfileBuilds {
    fn default() -> Self {
        Self {
            in_calls: Semaphore::new(BUILDS_IN_CALLS),
            of_dataset: HolderLimit::new(1),
            secret: OnceCell::new(),
        }
    }
}

/// Shows nothing of the secret.
impl fmt::Debug for ProfileBuilds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProfileBuilds")
    }
}

impl ProfileBuilds {
    /// Returns the key that orders the rows of a dataset. The secret is read from the database, or made there, at the
    /// first use.
    pub(crate) async fn sampling(
        &self,
        store: &Store,
        dataset: DatasetId,
        now: Timestamp,
    ) -> Result<SamplingKey, ApiError> {
        let read = || async {
            let mut fresh = [0; 32];
            getrandom::fill(&mut fresh).map_err(ApiError::unavailable)?;
            Ok::<_, ApiError>(store.secret(SECRET, fresh, now).await?)
        };
        let secret = self.secret.get_or_try_init(read).await?;
        let mut keyed = Hmac::<Sha256>::new_from_slice(secret).map_err(ApiError::internal)?;
        keyed.update(format!("{CONTEXT}\n{dataset}").as_bytes());
        Ok(SamplingKey::new(keyed.finalize().into_bytes().into()))
    }
}
