//! Assembly of the service: the one place that names every package.
//!
//! Invariants:
//! - Parts start in the reverse order of the flow, so nothing is accepted before the next stage runs.
//! - They stop in the order of the flow: load balancers are notified while everything is still served, then new
//!   connections end, then running requests (their outcomes still arrive), then tasks, then the database. Work that is
//!   acknowledged and not decided is in the database.

mod counts;
mod market;
mod tasks;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use api::flow::jobs::mail::MailHandler;
use api::flow::{AccountSweeper, DeletionFollower, Follower, Projector, Sweeper, UploadReaper};
use api::rules::letters::Letters;
use api::state::backlog::Backlog;
use api::state::drain::Drain;
use api::state::egress::EgressMeter;
use api::state::limit::DurableCounters;
use api::state::payment_services::PaymentServices;
use api::state::relay::Relay;
use api::state::upload_services::UploadServices;
use api::state::usage::UsageCounts;
use api::state::waiters::Waiters;
use api::{App, OAuthApps, ReplicaState};
use axum::Router;
use catalog::storage::DurableStore;
use catalog::{Catalog, PartCache, Reserve};
use eventlog::{EventLog, ReopeningLog};
use futures_util::FutureExt;
use operators::knowledge::Embedder;
use operators::screen::LocalScreener;
use operators::summary::Summariser;
use pipelines::knowledge::KnowledgeWorker;
use pipelines::{Uploads, Worker};
use store::{Schema, Store};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use types::Clock;
use types::clock::SystemClock;
use types::trace::Propagator;
use uploads::{LocalUploads, Stagings};

pub(crate) use self::tasks::Tasks;

use self::market::{build_profiles, keep_money, keep_units, run_jobs, serve_market, write_summaries};
use crate::cache;
use crate::collect;
use crate::config::{Backend, Config, LoadedConfig, LogBackend};
use crate::database::connect;
use crate::file_child::FileProcesses;
use crate::instrumented;
use crate::isolation;
use crate::judges;
use crate::layout::DataLayout;
use crate::lock::DirectoryLock;
use crate::mailer::{mailer, note_if_nobody_is_told};
use crate::means_of_payment;
use crate::objects::{self, TableStores};
use crate::roles::ProcessRole;
use crate::sandbox::{PartFiles, ProcessSandbox};
use crate::serve::serve;
use crate::signals::Signals;
use crate::telemetry;

/// The consumer group of the worker.
const WORKER_GROUP: &str = "workers";
/// Time beyond the worker's grace that stopping tasks have.
pub(crate) const STOP_MARGIN: Duration = Duration::from_secs(5);

/// Returns the system's clock, moved ahead by `clock.offset`.
pub fn clock(config: &Config) -> Arc<dyn Clock> {
    Arc::new(SystemClock::ahead(config.clock.offset.0))
}

/// The running service, which must be ended with [`run`](Self::run) or [`stop`](Self::stop).
#[derive(Debug)]
pub struct RunningService {
    pub(crate) address: SocketAddr,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) store: Option<Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The flag that load balancers see.
    pub(crate) drain: Drain,
    /// The time for which everything is still served after that.
    pub(crate) notice: Duration,
    /// Ends accepting connections.
    pub(crate) closing: CancellationToken,
    /// Ends the tasks behind the requests.
    pub(crate) stopping: CancellationToken,
    pub(crate) server: JoinHandle<()>,
    pub(crate) tasks: JoinSet<(&'static str, anyhow::Result<()>)>,
    pub(crate) grace: Duration,
    /// The lock of the data directory, unless another process has it.
    pub(crate) _lock: Option<DirectoryLock>,
}

/// Opens the parts that the role needs, starts their tasks and accepts connections.
///
/// # Errors
/// A role that the configuration does not allow, a data directory in use, an address that is taken, or a part that
/// cannot be opened.
pub async fn assemble(loaded: &LoadedConfig, role: ProcessRole) -> anyhow::Result<RunningService> {
    let config = &loaded.config;
    role.check(config)?;
    let layout = DataLayout::new(&config.data.dir);
    // The lock comes before anything that writes into the directory.
    let lock = DirectoryLock::acquire(&config.data.dir)?;
    let listener = TcpListener::bind(config.server.listen)
        .await
        .with_context(|| format!("cannot listen on `{}`", config.server.listen))?;
    let address = listener.local_addr()?;
    if address.ip().is_unspecified() && config.server.public_url.is_empty() {
        // The service still runs, since only the links in answers are affected.
        tracing::warn!(
            %address,
            "`server.public_url` is not set: links in answers begin with this address, which clients cannot reach"
        );
    }
    // The exporter is first, so that the metrics of the start are recorded.
    let mut tasks = Tasks::default();
    let metrics = tasks.export(config).await?;
    tasks.watch_files();

    let clock = clock(config);
    let propagator = telemetry::propagator(&config.telemetry);
    let log = instrumented::MeteredLog::new(open_log(config, &layout, &mut tasks).await?);
    tasks.spawn("lags", |stop| log.clone().watch(stop).map(anyhow::Ok));
    let log: Arc<dyn EventLog> = Arc::new(log);
    let objects = objects::open(config, &layout).await?;
    let catalog = open_catalog(Arc::clone(&objects.store), layout.index(), &clock).await?;
    let catalog = tasks.watch_deletions(configured(config, catalog));
    let drain = Drain::default();

    let uploads = open_uploads(objects.uploads.clone(), config, &layout).await?;
    let staging = Uploads::new(Arc::clone(&uploads.objects), uploads.stagings.clone());
    // A database that is missing beside tables is refused before anything is merged.
    let database = if role.serves() {
        Some(connect(config, Schema::Migrated).await?)
    } else {
        None
    };
    let judges = judges::build(&config.models, &objects.store, database.as_ref(), &clock)?;
    let isolation = isolation::of(config)?;
    // A closure, because a crash test starts a second worker of the same kind.
    let worker = |catalog: Catalog, group: &str| {
        let (log, screener, clock) = (Arc::clone(&log), Arc::clone(&judges.datasets), Arc::clone(&clock));
        Worker::new(log, catalog, screener, clock, config.worker.of_group(group))
            .with_uploads(staging.clone())
            .with_propagator(Arc::clone(&propagator))
            .with_isolation(isolation.clone())
    };
    if role.works() {
        let worker = worker(catalog.clone(), WORKER_GROUP);
        tasks.spawn("worker", |stop| worker.run(stop));
        let (log, clock) = (Arc::clone(&log), Arc::clone(&clock));
        let units = KnowledgeWorker::new(log, catalog.clone(), judges.units.clone(), clock, WORKER_GROUP)
            .with_isolation(isolation.clone());
        tasks.spawn("knowledge worker", |stop| units.run(stop));
    }
    // A second worker with its own index and consumer group sees every message and competes for every commit.
    #[cfg(feature = "faults")]
    if loaded.faults.rival {
        let objects = objects::open(config, &layout).await?;
        let rival = open_catalog(objects.store, layout.index().with_extension("rival"), &clock).await?;
        let rival = worker(configured(config, rival), "rivals");
        tasks.spawn("rival", |stop| rival.run(stop));
    }
    let (router, store) = if let Some(store) = database {
        note_if_nobody_is_told(&config.mail, &store).await?;
        let payments = Arc::new(means_of_payment::plane(config, &layout, &store, &clock).await?);
        let dependencies = InterfaceDependencies {
            layout: &layout,
            store: store.clone(),
            log,
            objects,
            catalog,
            clock: Arc::clone(&clock),
            propagator,
            uploads,
            drain: drain.clone(),
            payments,
            embedder: judges.embedder,
            summariser: judges.summariser,
        };
        (interface(config, address, dependencies, &mut tasks).await?, Some(store))
    } else {
        // A worker answers only the probes of the orchestrator.
        (
            api::transport::probes::of_worker(drain.clone(), log, tasks.open_files.clone()),
            None,
        )
    };
    collect::start(config, role, address, store.as_ref(), &clock, &mut tasks).await?;
    let closing = CancellationToken::new();
    // Connections are accepted last, when every task runs.
    let server = tokio::spawn(serve(listener, router, config.server.clone(), closing.clone()));
    Ok(RunningService {
        address,
        metrics,
        store,
        clock,
        drain,
        notice: config.server.drain_notice.0,
        closing,
        stopping: tasks.stop,
        server,
        tasks: tasks.set,
        grace: config.worker.grace.0 + STOP_MARGIN,
        _lock: Some(lock),
    })
}

/// The parts that the API is built from.
struct InterfaceDependencies<'a> {
    layout: &'a DataLayout,
    store: Store,
    log: Arc<dyn EventLog>,
    objects: TableStores,
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    propagator: Arc<dyn Propagator>,
    uploads: UploadServices,
    drain: Drain,
    payments: Arc<PaymentServices>,
    embedder: Arc<dyn Embedder>,
    summariser: Option<Arc<dyn Summariser>>,
}

/// Starts what notes the readers of datasets, and the space on the disk.
fn note_readers_and_space(config: &Config, app: &App, tasks: &mut Tasks) {
    let (readers, noted) = (app.process.readers.clone(), app.store.clone());
    tasks.spawn("readers", |stop| readers.run(noted, stop).map(anyhow::Ok));
    let (data, backlog) = (config.data.clone(), app.backlog.clone());
    tasks.spawn("disk space", |stop| {
        crate::disk_space::watch(data, backlog, stop).map(anyhow::Ok)
    });
}

/// Starts the tasks behind the API and returns its router.
async fn interface(
    config: &Config,
    address: SocketAddr,
    dependencies: InterfaceDependencies<'_>,
    tasks: &mut Tasks,
) -> anyhow::Result<Router> {
    let InterfaceDependencies {
        layout,
        store,
        log,
        objects,
        catalog,
        clock,
        propagator,
        uploads,
        drain,
        payments,
        embedder,
        summariser,
    } = dependencies;
    let waiters = Waiters::default();
    if config.log.backend == LogBackend::Kafka {
        // Other processes may project the outcomes of contributions that this one accepted, so it follows the topic
        // itself.
        let follower = Follower::new(Arc::clone(&log), waiters.clone());
        tasks.spawn("follower", |stop| follower.run(stop).map(anyhow::Ok));
    }
    let projector = Projector::new(store.clone(), Arc::clone(&log), waiters.clone(), Arc::clone(&clock));
    let projector = projector.with_propagator(Arc::clone(&propagator));
    tasks.spawn("projector", |stop| projector.run(stop));
    let (relay, relaying) = Relay::new(Arc::clone(&log));
    tasks.spawn("relay", |stop| relaying.run(stop).map(anyhow::Ok));
    let sweeping = config.sweeper.clone();
    // The sweeper also deletes idempotency keys that are older than the window.
    let keys = config.limits.idempotency_window.0;
    let validation = keep_units(&store, &log, &clock, &sweeping, tasks).await?;
    let sweeper = Sweeper::new(store.clone(), log, Arc::clone(&clock), sweeping.clone(), keys);
    let sweeper = sweeper.with_validation(validation.clone());
    tasks.spawn("sweeper", |stop| sweeper.run(stop).map(anyhow::Ok));
    let (places, every) = (Arc::clone(&uploads.objects), config.sweeper.every.0);
    let reaper = UploadReaper::new(store.clone(), places, Arc::clone(&clock), every);
    tasks.spawn("upload reaper", |stop| reaper.run(stop).map(anyhow::Ok));
    let accounts = AccountSweeper::new(store.clone(), Arc::clone(&clock), Duration::from_mins(1));
    tasks.spawn("account sweeper", |stop| accounts.run(stop).map(anyhow::Ok));
    let tariff = keep_money(config, &store, &catalog, &clock, tasks);
    let egress = EgressMeter::default();
    let (counting, counted, by) = (egress.clone(), store.clone(), Arc::clone(&clock));
    tasks.spawn("egress", |stop| counting.run(counted, by, stop).map(anyhow::Ok));
    let usage = count(&store, tasks);
    let files = match config.objects.backend {
        Backend::Local => PartFiles::Folder(layout.tables()),
        Backend::S3 => PartFiles::Fetched(PartCache::open(&catalog, layout.parts(), config.objects.cache.0)?),
    };
    let waiting = store.clone();
    let durable = Arc::new(DurableCounters::new(store.clone()));
    let limits = config.limits.clone();
    let settings = config.api(address);
    let process = ReplicaState::new(&limits).with_embedder(Some(Arc::clone(&embedder)));
    let process = process.with_open_files(tasks.open_files.clone());
    let process = process.with_search_folder(layout.search());
    let app = App {
        apps: OAuthApps::open(
            &settings.public_url,
            config.outbound.allow_private,
            store.clone(),
            Arc::clone(&clock),
        )
        .context("`server.public_url` cannot be used")?,
        store,
        catalog,
        relay,
        waiters,
        screener: Arc::new(LocalScreener),
        sandbox: Arc::new(ProcessSandbox::start(config, files, &clock)?),
        files: Arc::new(FileProcesses::new()?),
        clock,
        propagator,
        egress,
        usage,
        uploads,
        profiles: config.profiles,
        sweeper: Arc::new(sweeping),
        backlog: Backlog::of(&limits),
        validation,
        process: Arc::new(process),
        config: Arc::new(settings),
        limits: Arc::new(limits),
        pay: tariff,
        payments,
        direct: objects.direct,
        limiter: Arc::new(cache::limiter(&config.cache)?.with_durable(durable)),
        drain,
    };
    note_readers_and_space(config, &app, tasks);
    let mailer = mailer(&config.mail, &layout.mail())?;
    let letters = MailHandler::new(Arc::new(Letters::new(app.clone())), mailer);
    run_jobs(&app, letters, embedder, tasks).await?;
    // The data folder has one process at a time, a database of a server may have many.
    serve_market(&app, config.database.url.is_empty(), tasks).await?;
    write_summaries(&app, summariser, tasks);
    build_profiles(&app, tasks);
    let (deletions, backlog) = (DeletionFollower::new(app.clone()), app.backlog.clone());
    tasks.spawn("deletions", |stop| deletions.run(stop).map(anyhow::Ok));
    tasks.spawn("backlog", |stop| backlog.run(waiting, stop).map(anyhow::Ok));
    Ok(api::router(app))
}

async fn open_log(config: &Config, layout: &DataLayout, tasks: &mut Tasks) -> anyhow::Result<Arc<dyn EventLog>> {
    match config.log.backend {
        LogBackend::Embedded => open_embedded(config, layout).await,
        LogBackend::Kafka => open_kafka(config, tasks).await,
    }
}

#[cfg(feature = "kafka")]
async fn open_kafka(config: &Config, tasks: &mut Tasks) -> anyhow::Result<Arc<dyn EventLog>> {
    use messages::{CONTRIBUTIONS_TOPIC, DEAD_LETTERS, KNOWLEDGE_TOPIC, OUTCOMES_TOPIC};

    let options = config.log.kafka().map_err(|rule| anyhow!(rule))?;
    // All topics are created at the start, so that a missing permission shows there.
    let opened = eventlog::Kafka::open(
        options,
        &[CONTRIBUTIONS_TOPIC, KNOWLEDGE_TOPIC, OUTCOMES_TOPIC, DEAD_LETTERS],
    )
    .await;
    let log = opened.with_context(|| format!("the event log on Kafka at `{}` cannot be opened", config.log.brokers))?;
    let counted = Arc::clone(&log);
    tasks.spawn("log reader metrics", |stop| {
        counts::count_resets(counted, stop).map(anyhow::Ok)
    });
    Ok(log)
}

#[cfg(not(feature = "kafka"))]
#[expect(clippy::unused_async, reason = "the builds with Kafka wait for it")]
async fn open_kafka(_config: &Config, _tasks: &mut Tasks) -> anyhow::Result<Arc<dyn EventLog>> {
    anyhow::bail!("`log.backend` is \"kafka\", which this build does not have; build it with the feature `kafka`")
}

async fn open_embedded(config: &Config, layout: &DataLayout) -> anyhow::Result<Arc<dyn EventLog>> {
    // Opening reads the files of the log, which waits for the disk.
    let (path, options) = (layout.log(), config.log.options());
    let opened = tokio::task::spawn_blocking(move || ReopeningLog::open(path, options)).await?;
    let log = opened.with_context(|| format!("the event log `{}` cannot be opened", layout.log().display()))?;
    Ok(Arc::new(log))
}

/// Opens the store of upload parts: the bucket if the tables are in one, otherwise a folder.
async fn open_uploads(
    store: Option<Arc<dyn uploads::UploadStore>>,
    config: &Config,
    layout: &DataLayout,
) -> anyhow::Result<UploadServices> {
    let stagings = Stagings::default();
    if let Some(objects) = store {
        return Ok(UploadServices {
            objects,
            local: None,
            stagings,
        });
    }
    let (path, reserve) = (layout.uploads(), Reserve(config.data.reserve.0));
    // Opening waits for the disk. The same holds for the catalog.
    let opened = tokio::task::spawn_blocking(move || LocalUploads::open(path, reserve)).await?;
    let local = opened.with_context(|| format!("the uploads `{}` cannot be opened", layout.uploads().display()))?;
    Ok(UploadServices {
        objects: Arc::new(local.clone()),
        local: Some(local),
        stagings,
    })
}

async fn open_catalog(
    objects: Arc<dyn DurableStore>,
    index: PathBuf,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Catalog> {
    let (shown, clock) = (objects.to_string(), Arc::clone(clock));
    let opened = tokio::task::spawn_blocking(move || {
        let measured = instrumented::MeteredObjects::new(objects);
        Catalog::open(Arc::new(measured), index, clock)
    });
    opened
        .await?
        .with_context(|| format!("the tables `{shown}` cannot be opened"))
}

/// Returns the catalog with the configured reserve and compaction policy.
fn configured(config: &Config, catalog: Catalog) -> Catalog {
    let catalog = catalog.with_reserve(Reserve(config.data.reserve.0));
    match config.compaction.policy() {
        Some(policy) => catalog.with_compaction(policy),
        None => catalog,
    }
}

/// Starts the tasks that count what agents use, and the commits of the database.
fn count(store: &Store, tasks: &mut Tasks) -> UsageCounts {
    let usage = UsageCounts::default();
    let (counting, counted) = (usage.clone(), store.clone());
    tasks.spawn("usage", |stop| counting.run(counted, stop).map(anyhow::Ok));
    let committing = store.clone();
    tasks.spawn("commits", |stop| {
        counts::count_commits(committing, stop).map(anyhow::Ok)
    });
    usage
}

impl RunningService {
    /// Returns the address that the service listens on, with the port that was taken for port 0.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the metrics, or `None` if they are off.
    pub const fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Returns the metadata database. A worker has none.
    pub const fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// Returns the clock of the service.
    pub const fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Runs until `signals` ask to stop, then stops in order. A second signal stops at once.
    ///
    /// # Errors
    /// A task that ended by itself, or did not end in time.
    pub async fn run(mut self, signals: &mut Signals) -> anyhow::Result<()> {
        let failure = tokio::select! {
            () = signals.asked() => None,
            ended = self.tasks.join_next() => Some(failure(ended)),
        };
        tracing::info!("stopping: waiting for requests and tasks under way");
        let stopped = tokio::select! {
            stopped = self.stop() => stopped,
            // A second signal ends the process without the grace period.
            () = signals.asked() => Err(anyhow!("stopped at once, at a second signal")),
        };
        failure.map_or(stopped, Err)
    }

    /// Makes `/drainz` answer 503, so that load balancers send no more requests. Everything is still served.
    pub fn drain(&self) {
        self.drain.begin();
    }

    /// Drains for the notice, stops accepting connections, lets running requests end, then ends every task.
    ///
    /// # Errors
    /// A task that failed, or did not end in time.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.drain();
        tokio::time::sleep(self.notice).await;
        self.closing.cancel();
        // The server ends before the tasks, since running requests wait for them.
        self.server.await.context("the HTTP server failed")?;
        self.stopping.cancel();
        let ending = async {
            while let Some(ended) = self.tasks.join_next().await {
                // The first failure is returned. The other tasks are dropped with the set.
                let (name, result) = ended.context("a task failed")?;
                result.with_context(|| format!("the {name} failed"))?;
            }
            anyhow::Ok(())
        };
        let ended = tokio::time::timeout(self.grace, ending).await;
        // The database is closed last, and also if a task did not end in time.
        if let Some(store) = self.store {
            store.close().await;
        }
        ended.unwrap_or_else(|_late| {
            Err(anyhow!(
                "tasks were still running {:?} after they were stopped",
                self.grace
            ))
        })
    }
}

/// Returns the error of a task that ended while the service ran.
fn failure(ended: Option<Result<(&'static str, anyhow::Result<()>), tokio::task::JoinError>>) -> anyhow::Error {
    match ended {
        Some(Ok((name, Err(error)))) => error.context(format!("the {name} failed")),
        Some(Ok((name, Ok(())))) => anyhow!("the {name} ended by itself"),
        Some(Err(error)) => anyhow::Error::from(error).context("a task failed"),
        None => anyhow!("every task ended by itself"),
    }
}
