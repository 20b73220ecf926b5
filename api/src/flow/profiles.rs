//! Builder of profiles, behind the merges.
//!
//! Invariants:
//! - A merge waits for nothing here. The newest version of each dataset gets a profile, but not every version does.
//! - A build that was interrupted is due again when its lease ends; one that failed, after a wait that doubles.
//! - Nothing is built of a table whose root is not the one that the database knows.

use std::sync::Arc;
use std::time::Duration;

use store::{ProfileLease, ProfileLimits};
use tokio_util::sync::CancellationToken;
use types::Timestamp;
use types::error::with_causes;

use crate::periodic::PeriodicTimer;
use crate::rules::profiles::build::{self, BegunProfile, BuildError, DocumentTerms};
use crate::state::app::App;
use crate::state::profiling::ProfileConfig;

/// The longest interval at which versions without a profile are looked for.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Time for which a process has a dataset to itself. A build that takes longer goes on where it kept sketches.
const LEASE: Duration = Duration::from_mins(10);
/// The least time between two builds of a dataset, as a multiple of the time that the first took.
const PACE: u32 = 20;
/// The wait after a failure of the database.
const WAIT: Duration = Duration::from_mins(1);
/// The wait for a version that this process does not see yet.
const SEEN_WAIT: Duration = Duration::from_secs(2);

/// Task that builds profiles.
#[derive(Clone, Debug)]
pub struct Profiles {
    app: Arc<App>,
}

/// Failure of a round.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// Failure of the database.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Failure to read the secret that samples rows.
    #[error("the secret of the samples cannot be read: {0}")]
    Secret(String),
}

impl Profiles {
    /// Creates a builder that has not started.
    pub fn new(app: App) -> Self {
        Self { app: Arc::new(app) }
    }

    /// Builds profiles until `stop`, as many at once as the configuration says.
    pub async fn run(self, stop: CancellationToken) {
        let builders = (0..self.app.profiles.at_once.get()).map(|_| self.build_all(&stop));
        futures_util::future::join_all(builders).await;
    }

    /// Builds profiles until `stop`, one after the other.
    async fn build_all(&self, stop: &CancellationToken) {
        let every = POLL_INTERVAL
            .min(self.app.profiles.every.0)
            .max(Duration::from_millis(100));
        let mut rounds = PeriodicTimer::every(every, stop);
        let mut resumes = Timestamp::default();
        while rounds.next().await {
            while self.app.clock.now() >= resumes && !stop.is_cancelled() {
                match self.round(stop).await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        tracing::warn!(
                            error = with_causes(&error),
                            "cannot look for profiles to build; trying again later"
                        );
                        resumes = self.app.clock.now().plus(WAIT);
                    }
                }
            }
        }
    }

    /// Builds one profile. Returns false if there was none to build.
    ///
    /// # Errors
    /// A database that does not answer. The version is due again when its lease ends.
    async fn round(&self, stop: &CancellationToken) -> Result<bool, Error> {
        let limits = limits(self.app.profiles);
        let profiles = self.app.store.profiles();
        let begun = self.app.clock.now();
        let Some(lease) = profiles.take(begun, limits).await? else {
            return Ok(false);
        };
        let built = self.built(&lease, stop).await?;
        let (app, now) = (&self.app, self.app.clock.now());
        match built {
            Ok(Some(profile)) => {
                // What was built too slowly, or of a dataset that was deleted meanwhile, is dropped.
                let _is_kept = profiles.write(&lease, profile, begun, now, limits).await?;
                build::measure("built", now.since(begun));
            }
            Ok(None) => profiles.give_back(&lease, now.plus(SEEN_WAIT)).await?,
            Err(BuildError::Stopped) => profiles.give_back(&lease, now).await?,
            Err(error) => {
                build::measure("failed", now.since(begun));
                tracing::warn!(
                    dataset = %lease.project,
                    version = %lease.version,
                    error = with_causes(&error),
                    "cannot build the profile of a version; it has none meanwhile"
                );
                let problem = error.into_word();
                profiles.fail(&lease, problem, app.profiles.every.0, now).await?;
            }
        }
        Ok(true)
    }

    /// Returns the profile of a version, or `None` if this process does not see the version yet.
    async fn built(
        &self,
        lease: &ProfileLease,
        stop: &CancellationToken,
    ) -> Result<Result<Option<store::NewProfile>, BuildError>, Error> {
        let App { store, catalog, .. } = &*self.app;
        let sampling = self
            .app
            .process
            .profiles
            .sampling(store, lease.project, self.app.clock.now())
            .await;
        let sampling = sampling.map_err(|error| Error::Secret(error.reason().to_owned()))?;
        let building = async {
            let found = build::snapshot_of(catalog, lease.project, lease.version, &lease.root).await?;
            let Some(snapshot) = found else {
                return Ok(None);
            };
            let Some(begun) = BegunProfile::begin(snapshot, sampling, stop).await? else {
                return Ok(None);
            };
            let terms = DocumentTerms {
                access: lease.access,
                visibility: lease.visibility,
                preview_rows: lease.preview_rows,
            };
            begun.finish(terms, stop).await.map(Some)
        };
        Ok(building.await)
    }
}

const fn limits(config: ProfileConfig) -> ProfileLimits {
    ProfileLimits {
        lease: LEASE,
        every: config.every.0,
        pace: PACE,
    }
}
