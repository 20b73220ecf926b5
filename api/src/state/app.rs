//! Handles to the parts of the service that operations use.
//!
//! Invariant: a process has one [`ReplicaState`], which all clones of its [`App`] share, so no counter exists twice.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catalog::Catalog;
use operators::knowledge::Embedder;
use operators::screen::Screener;
use pay::Tariff;
use store::Store;
use tokio::sync::Semaphore;
use types::Clock;
use types::trace::Propagator;

use crate::config::{Config, Limits};
use crate::ids::RequestIds;
use crate::state::apps::OAuthApps;
use crate::state::backlog::Backlog;
use crate::state::bodies::BodyReservations;
use crate::state::caches::Caches;
use crate::state::direct::{PresignedEgress, PresignedUrls};
use crate::state::drain::Drain;
use crate::state::egress::EgressMeter;
use crate::state::entitlement_cache::EntitlementCache;
use crate::state::feed_head::FeedHead;
use crate::state::files::{FileReader, FileShares};
use crate::state::holder_limit::HolderLimit;
use crate::state::kept::TtlCell;
use crate::state::leaderboard::RankingCache;
use crate::state::limit::{LimitSource, Limiter, RateRule};
use crate::state::links::PartUrlSigner;
use crate::state::open_files::OpenFiles;
use crate::state::payment_services::PaymentServices;
use crate::state::profiling::{ProfileBuilds, ProfileConfig};
use crate::state::readers::ReaderLog;
use crate::state::relay::Relay;
use crate::state::sandbox::QuerySandbox;
use crate::state::search::SearchIndex;
use crate::state::storage_cache::StorageUsageCache;
use crate::state::sweeper_config::SweeperConfig;
use crate::state::upload_services::UploadServices;
use crate::state::usage::UsageCounts;
use crate::state::validation::ReviewState;
use crate::state::waiters::Waiters;

const MINUTE: Duration = Duration::from_mins(1);
/// Dry runs judged at the same time in this process.
const DRY_RUNS: usize = 2;
/// Answers, exports and parts of one operator at the same time, each counted for itself. Further ones wait.
const MAX_CONCURRENT_PER_OPERATOR: usize = 8;
/// Answers with events of the feed to one address at the same time.
const FOLLOWERS: usize = 8;
/// Disk operations (writes and renames of parts) at the same time. Further ones wait, and so do their senders.
const PART_WRITES: usize = 16;

/// Dependencies of the operations. Clones are cheap and share all state.
#[derive(Clone, Debug)]
pub struct App {
    /// Database of the marketplace plane.
    pub store: Store,
    /// Reads the versions of the tables.
    pub catalog: Catalog,
    /// Appends a submission to the log right after its transaction was committed.
    pub relay: Relay,
    /// Registry of the requests that wait for an outcome.
    pub waiters: Waiters,
    /// Judges the records of public projects by a model, in dry runs.
    pub screener: Arc<dyn Screener>,
    /// Source of time for every operation.
    pub clock: Arc<dyn Clock>,
    /// Writes the trace context into messages, so that traces cross processes.
    pub propagator: Arc<dyn Propagator>,
    /// Runs SQL queries, in this process or in another.
    pub sandbox: Arc<dyn QuerySandbox>,
    /// Reads files, each in a process of its own.
    pub files: Arc<dyn FileReader>,
    /// Counts the bytes sent to each operator.
    pub egress: EgressMeter,
    /// Counts uses of the service by kind and UTC day, such as searches.
    pub usage: UsageCounts,
    /// Storage of the parts of uploads, and their progress.
    pub uploads: UploadServices,
    /// Schedule by which the sweeper appends open contributions again.
    pub sweeper: Arc<SweeperConfig>,
    /// Schedule and bounds of the building of profiles.
    pub profiles: ProfileConfig,
    /// Count of the acknowledged contributions without an outcome. A background task refreshes it from the database.
    pub backlog: Backlog,
    /// State of the reviews of units. A background task reads it from the database.
    pub validation: ReviewState,
    /// Authorization server for apps.
    pub apps: OAuthApps,
    /// Public address, proxies, terms and sign-up.
    pub config: Arc<Config>,
    /// Limits on sizes, rates and times.
    pub limits: Arc<Limits>,
    /// Prices, fee and free figures of the platform.
    pub pay: Arc<Tariff>,
    /// Money that is taken by x402, and who settles it.
    pub payments: Arc<PaymentServices>,
    /// Set while the replica shuts down: `/drainz` then answers 503, so that load balancers send no new calls.
    pub drain: Drain,
    /// Counts calls per address, for the limits.
    pub limiter: Arc<Limiter>,
    /// Signs addresses of parts at the bucket. `None` where this service serves the parts.
    pub direct: Option<Arc<dyn PresignedUrls>>,
    /// Counters and permits that belong to this process alone.
    pub process: Arc<ReplicaState>,
}

/// Counters, limits and permits of one process, which it shares with no other replica.
#[derive(Debug)]
pub struct ReplicaState {
    /// Limit on calls per address and minute.
    pub(crate) calls: RateRule,
    /// Source of the ids of requests.
    pub(crate) request_ids: RequestIds,
    /// Rows, pages and texts that are answered again without a look-up.
    pub(crate) caches: Caches,
    /// Purchases of operators, which are remembered for a minute.
    pub(crate) entitlements: EntitlementCache,
    /// Sizes of what operators store.
    pub(crate) storage: StorageUsageCache,
    /// Memory reserved for the bodies of requests, per operator or address and in total.
    pub(crate) bodies: Arc<BodyReservations>,
    /// Permits for dry runs. They are few, so that dry runs never take every core from the merges.
    pub(crate) dry_runs: Arc<Semaphore>,
    /// Shares of operators in the reading of files.
    pub(crate) files: FileShares,
    /// Permits of each operator for answers that count as egress and are whole in memory. A permit is returned when its
    /// answer has been sent.
    pub(crate) answers: HolderLimit,
    /// Permits of each operator for exports.
    pub(crate) exports: HolderLimit,
    /// Permits of each operator for the receipt of parts.
    pub(crate) parts: HolderLimit,
    /// Permits for disk operations (writes and renames of parts).
    pub(crate) part_writes: Semaphore,
    /// Rankings of agents by points.
    pub(crate) leaderboard: RankingCache,
    /// Operators that read datasets of others.
    pub readers: ReaderLog,
    /// Map of the site, as XML.
    pub(crate) site_map: TtlCell<Bytes>,
    /// Newest number of the public feed.
    pub(crate) newest: FeedHead,
    /// Permits of each address to follow the feed.
    pub(crate) followers: HolderLimit<LimitSource>,
    /// Index of the search.
    pub searching: SearchIndex,
    /// Permits for the building of profiles, and the secret that samples rows.
    pub(crate) profiles: ProfileBuilds,
    /// Signs the addresses of parts that this service serves.
    pub(crate) links: PartUrlSigner,
    /// State of the open files, for the probes.
    pub(crate) open_files: OpenFiles,
    /// The addresses at the bucket that were handed out lately, so that egress is counted once for each.
    pub(crate) presigned_egress: PresignedEgress,
}

impl ReplicaState {
    /// Creates them for the given limits. All counters start at zero and all permits are free.
    pub fn new(limits: &Limits) -> Self {
        Self {
            calls: RateRule {
                // The names are part of the keys of the shared counters, so all replicas must use the same.
                name: "calls",
                limit: limits.calls_per_ip_per_minute.get(),
                window: MINUTE,
            },
            request_ids: RequestIds::default(),
            caches: Caches::new(limits.remembered.bytes()),
            entitlements: EntitlementCache::default(),
            storage: StorageUsageCache::default(),
            bodies: Arc::new(BodyReservations::new(
                limits.bodies_per_operator.bytes(),
                limits.bodies.bytes(),
            )),
            // Shared by all callers: the processor is the resource here, and not the share of an operator.
            dry_runs: Arc::new(Semaphore::new(DRY_RUNS)),
            files: FileShares::default(),
            answers: HolderLimit::new(MAX_CONCURRENT_PER_OPERATOR),
            exports: HolderLimit::new(MAX_CONCURRENT_PER_OPERATOR),
            parts: HolderLimit::new(MAX_CONCURRENT_PER_OPERATOR),
            part_writes: Semaphore::new(PART_WRITES),
            leaderboard: RankingCache::default(),
            readers: ReaderLog::default(),
            site_map: TtlCell::default(),
            newest: FeedHead::default(),
            followers: HolderLimit::new(FOLLOWERS),
            searching: SearchIndex::default(),
            profiles: ProfileBuilds::default(),
            links: PartUrlSigner::default(),
            open_files: OpenFiles::default(),
            presigned_egress: PresignedEgress::default(),
        }
    }

    /// Returns them with the state of the open files that a task keeps.
    #[must_use]
    pub fn with_open_files(self, open_files: OpenFiles) -> Self {
        Self { open_files, ..self }
    }

    /// Returns them with a maker of vectors for the search.
    #[must_use]
    pub fn with_embedder(self, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self {
            searching: SearchIndex::new(embedder),
            ..self
        }
    }

    /// Returns them with a folder for the index of the search.
    #[must_use]
    pub fn with_search_folder(self, folder: PathBuf) -> Self {
        Self {
            searching: self.searching.with_folder(folder),
            ..self
        }
    }
}
