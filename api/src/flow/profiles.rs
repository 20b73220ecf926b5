//! Builder of profiles, behind the merges.
//!
//! Invariants:
//! - A merge waits for nothing here. The newest version of each dataset gets a profile, but not every version does.
//! - A build that was interrupted is due again when its lease ends; one that failed, after a wait that doubles. A build
//!   that goes on keeps its lease, however long it takes.
//! - Versions that somebody asked for and newest versions take turns.
//! - Nothing is built of a table whose root is not the one that the database knows.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt as _};
use store::{ProfileLease, ProfileLimits, ProfileTurn};
use tokio_util::sync::CancellationToken;
use types::Timestamp;
use types::error::with_causes;

use crate::periodic::PeriodicTimer;
use crate::rules::profiles::build::{self, BegunProfile, BuildError, DocumentTerms};
use crate::state::app::App;
use crate::state::profiling::ProfileConfig;

/// The longest interval at which versions without a profile are looked for.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Time for which a process has a dataset to itself. It is renewed while the build goes on; the build that follows one
/// which was interrupted goes on where sketches were kept.
const LEASE: Duration = Duration::from_mins(10);
/// Interval at which a lease is renewed.
const RENEWAL_INTERVAL: Duration = Duration::from_mins(3);
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
        let mut turn = ProfileTurn::Newest;
        while rounds.next().await {
            while self.app.clock.now() >= resumes && !stop.is_cancelled() {
                match self.round(turn, stop).await {
                    Ok(true) => turn = turn.next(),
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
    async fn round(&self, turn: ProfileTurn, stop: &CancellationToken) -> Result<bool, Error> {
        let limits = limits(self.app.profiles);
        let profiles = self.app.store.profiles();
        let begun = self.app.clock.now();
        let Some(mut lease) = profiles.take(turn, begun, limits).await? else {
            return Ok(false);
        };
        let (taken, ending) = (lease.clone(), stop.child_token());
        let rounds = PeriodicTimer::every(RENEWAL_INTERVAL, &ending);
        let renewals = stream::unfold(rounds, |mut rounds| async move {
            rounds.next().await.then_some(((), rounds))
        });
        // The first round is at once, and the lease is new.
        let renewals = renewals.skip(1);
        let built = self
            .renewing(&mut lease, renewals, &ending, self.built(&taken, &ending))
            .await?;
        let (app, now) = (&self.app, self.app.clock.now());
        match built {
            Ok(Some(profile)) => {
                // A profile is dropped if its dataset was deleted during the build, or if its owner chose to show rows
                // after the build began.
                let is_kept = profiles.write(&lease, profile, begun, now, limits).await?;
                build::measure(if is_kept { "built" } else { "dropped" }, now.since(begun));
            }
            Ok(None) => profiles.give_back(&lease, now.plus(SEEN_WAIT)).await?,
            Err(BuildError::Stopped) => {
                // If this process goes on, another one has the dataset.
                if !stop.is_cancelled() {
                    build::measure("dropped", now.since(begun));
                }
                profiles.give_back(&lease, now).await?;
            }
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

    /// Waits for a build and renews its lease at each of `renewals` meanwhile. Stops the build if another process has
    /// the dataset.
    async fn renewing<T>(
        &self,
        lease: &mut ProfileLease,
        renewals: impl Stream<Item = ()>,
        stop: &CancellationToken,
        building: impl Future<Output = T>,
    ) -> T {
        let mut building = pin!(building);
        let mut renewals = pin!(renewals);
        loop {
            tokio::select! {
                biased;
                built = &mut building => return built,
                Some(()) = renewals.next() => {}
            }
            let until = self.app.clock.now().plus(LEASE);
            match self.app.store.profiles().renew(lease, until).await {
                Ok(true) => {}
                Ok(false) => stop.cancel(),
                // There are more tries before the lease ends.
                Err(error) => tracing::debug!(%error, "cannot renew the lease of a build of a profile"),
            }
        }
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::mpsc;
    use types::Version;

    use super::*;
    use crate::testing::Service;

    async fn due() -> (Service, Profiles) {
        let service = Service::start().await;
        let token = service.operator().await;
        let key = service.agent(&token, "ada").await;
        service.project(&key, "names", &json!({})).await;
        service.merged(&key, "names", &[json!({"name": "one"})]).await;
        let builder = Profiles::new(service.app.clone());
        (service, builder)
    }

    #[tokio::test]
    async fn a_build_keeps_its_dataset_however_long_it_takes() {
        let (service, builder) = due().await;
        let (store, limits) = (service.app.store.clone(), limits(service.app.profiles));
        let take = async || {
            let profiles = store.profiles();
            profiles
                .take(ProfileTurn::Newest, service.app.clock.now(), limits)
                .await
                .unwrap()
        };
        let mut lease = take().await.unwrap();
        let (tick, mut ticks) = mpsc::channel(1);
        let renewals = stream::poll_fn(|cx| ticks.poll_recv(cx));
        let stop = CancellationToken::new();
        let building = async {
            for _ in 0..5 {
                service.clock.advance(LEASE / 10 * 9);
                tick.send(()).await.unwrap();
                // The lease is renewed before this goes on.
                tokio::task::yield_now().await;
                assert_eq!(take().await, None);
            }
        };
        builder.renewing(&mut lease, renewals, &stop, building).await;
        assert!(!stop.is_cancelled());

        // One whose lease is over all the same ends.
        service.clock.advance(LEASE);
        let other = take().await.unwrap();
        let (tick, mut ticks) = mpsc::channel(1);
        let renewals = stream::poll_fn(|cx| ticks.poll_recv(cx));
        let building = async {
            tick.send(()).await.unwrap();
            stop.cancelled().await;
        };
        builder.renewing(&mut lease, renewals, &stop, building).await;
        assert_ne!(lease.until, other.until);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_round_builds_what_is_due_and_gives_the_dataset_back() {
        let (service, builder) = due().await;
        let stop = CancellationToken::new();
        assert!(builder.round(ProfileTurn::Newest, &stop).await.unwrap());
        assert!(!builder.round(ProfileTurn::Asked, &stop).await.unwrap());
        let store = &service.app.store;
        let id = store.check_projects().await.unwrap()[0].id;
        let built = store.profiles().of(id, Version(1)).await.unwrap();
        assert_eq!(built.unwrap().records, 1);
    }
}
