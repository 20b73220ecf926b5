//! Puts the service together: the one place that names every package.
//!
//! Invariants:
//! - Parts start in the order of the flow backwards, so nothing is accepted before what carries it on runs.
//! - Stopping goes the other way: first load balancers are told, and everything is served still; then no new connection,
//!   then the requests that run (their outcomes still arrive), then the tasks behind them, then the database. What is
//!   acknowledged and not decided is in the database.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use api::drain::Drain;
use api::egress::Egress;
use api::flow::{Backlog, Follower, Freeing, Projector, Relay, Sweeper, Waiters};
use api::periodic::Rounds;
use api::usage::Usage;
use api::{App, Process, UploadPlane};
use axum::Router;
use catalog::storage::DurableStore;
use catalog::{Catalog, PartCache, Reserve};
use eventlog::{EventLog, Lasting};
use futures_util::FutureExt;
use operators::screen::{LocalScreener, Screener};
use pipelines::Worker;
use pipelines::staging::objects::LocalObjects;
use pipelines::staging::{Stagings, Uploads};
use store::{Schema, Store};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use types::clock::SystemClock;
use types::trace::Propagator;
use types::{Clock, metric};

use crate::cache;
use crate::config::{Backend, Config, Loaded, LogBackend};
use crate::database::connect;
use crate::exporter::Exporter;
use crate::lock::DirectoryLock;
use crate::metered;
use crate::objects::{self, Objects};
use crate::roles::Role;
use crate::sandbox::{Files, Sandbox};
use crate::serve::serve;
use crate::signals::Signals;
use crate::telemetry;

/// The consumer group of the worker.
const WORKERS: &str = "workers";
/// How long stopping tasks may take beyond the worker's grace.
const MARGIN: Duration = Duration::from_secs(5);
/// How often it is counted what is counted elsewhere.
const COUNTED: Duration = Duration::from_secs(5);

/// Where the parts of a data directory are.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout of the directory at `root`.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The event log.
    pub fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    /// The metadata database.
    pub fn database(&self) -> PathBuf {
        self.root.join("sluice.db")
    }

    /// The tables, one folder per dataset.
    pub fn tables(&self) -> PathBuf {
        self.root.join("tables")
    }

    /// The parts of uploads, until their contribution is decided.
    pub fn uploads(&self) -> PathBuf {
        self.root.join("uploads")
    }

    /// The key indexes; derived from the tables.
    pub fn index(&self) -> PathBuf {
        self.root.join("index")
    }

    /// Copies of parts for queries, where the tables are elsewhere.
    pub fn parts(&self) -> PathBuf {
        self.root.join("parts")
    }
}

/// The clock that the configuration asks for.
pub fn clock(config: &Config) -> Arc<dyn Clock> {
    Arc::new(SystemClock::ahead(config.clock.offset.0))
}

/// The service while it runs.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    store: Option<Store>,
    clock: Arc<dyn Clock>,
    /// Tells load balancers.
    drain: Drain,
    /// How long everything is served after that.
    notice: Duration,
    /// Ends accepting connections.
    closing: CancellationToken,
    /// Ends the tasks behind the requests.
    stopping: CancellationToken,
    server: JoinHandle<()>,
    tasks: JoinSet<(&'static str, anyhow::Result<()>)>,
    grace: Duration,
    _lock: DirectoryLock,
}

/// Opens what the role needs, starts its tasks and accepts connections.
pub async fn assemble(loaded: &Loaded, role: Role) -> anyhow::Result<Running> {
    let config = &loaded.config;
    role.check(config)?;
    let layout = Layout::new(&config.data.dir);
    let lock = DirectoryLock::acquire(&config.data.dir)?;
    let listener = TcpListener::bind(config.server.listen)
        .await
        .with_context(|| format!("cannot listen on `{}`", config.server.listen))?;
    let address = listener.local_addr()?;
    if address.ip().is_unspecified() && config.server.public_url.is_empty() {
        tracing::warn!(
            %address,
            "`server.public_url` is not set: links in answers begin with this address, which clients cannot reach"
        );
    }
    let mut tasks = Tasks::default();
    let metrics = match config.telemetry.metrics.0 {
        None => None,
        Some(address) => {
            let exporter = Exporter::bind(address).await?;
            let address = exporter.address()?;
            tasks.spawn("exporter", |stop| exporter.run(stop));
            Some(address)
        }
    };

    let clock = clock(config);
    let propagator = telemetry::propagator(&config.telemetry);
    let log = metered::Log::new(open_log(config, &layout, &mut tasks).await?);
    tasks.spawn("lags", |stop| log.clone().watch(stop).map(anyhow::Ok));
    let log: Arc<dyn EventLog> = Arc::new(log);
    let objects = objects::open(config, &layout).await?;
    let catalog = open_catalog(Arc::clone(&objects.store), layout.index(), &clock).await?;
    let catalog = configured(config, catalog);
    let screener: Arc<dyn Screener> = Arc::new(LocalScreener);
    let drain = Drain::default();

    let uploads = open_uploads(objects.uploads.clone(), config, &layout).await?;
    let staging = Uploads::new(Arc::clone(&uploads.objects), uploads.stagings.clone());
    let worker = |catalog: Catalog, group: &str| {
        let (log, screener, clock) = (Arc::clone(&log), Arc::clone(&screener), Arc::clone(&clock));
        Worker::new(log, catalog, screener, clock, config.worker.of_group(group))
            .with_uploads(staging.clone())
            .with_propagator(Arc::clone(&propagator))
    };
    // A database that is missing beside tables is refused before anything is merged.
    let database = if role.serves() {
        Some(connect(config, Schema::Migrated).await?)
    } else {
        None
    };
    if role.works() {
        let worker = worker(catalog.clone(), WORKERS);
        tasks.spawn("worker", |stop| worker.run(stop));
    }
    #[cfg(feature = "faults")]
    if loaded.faults.rival {
        let objects = objects::open(config, &layout).await?;
        let rival = open_catalog(objects.store, layout.index().with_extension("rival"), &clock).await?;
        let rival = worker(configured(config, rival), "rivals");
        tasks.spawn("rival", |stop| rival.run(stop));
    }
    let (router, store) = if let Some(store) = database {
        let parts = Parts {
            layout: &layout,
            store: store.clone(),
            log,
            objects,
            catalog,
            screener,
            clock: Arc::clone(&clock),
            propagator,
            uploads,
            drain: drain.clone(),
        };
        (interface(config, address, parts, &mut tasks)?, Some(store))
    } else {
        (api::probes::of_worker(drain.clone(), log), None)
    };
    let closing = CancellationToken::new();
    let server = tokio::spawn(serve(listener, router, config.server.clone(), closing.clone()));
    Ok(Running {
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
        grace: config.worker.grace.0 + MARGIN,
        _lock: lock,
    })
}

/// What the interface is made of.
struct Parts<'a> {
    layout: &'a Layout,
    store: Store,
    log: Arc<dyn EventLog>,
    objects: Objects,
    catalog: Catalog,
    screener: Arc<dyn Screener>,
    clock: Arc<dyn Clock>,
    propagator: Arc<dyn Propagator>,
    uploads: UploadPlane,
    drain: Drain,
}

/// Starts what carries requests on, and puts the interface before it.
fn interface(config: &Config, address: SocketAddr, parts: Parts<'_>, tasks: &mut Tasks) -> anyhow::Result<Router> {
    let Parts {
        layout,
        store,
        log,
        objects,
        catalog,
        screener,
        clock,
        propagator,
        uploads,
        drain,
    } = parts;
    let waiters = Waiters::default();
    if config.log.backend == LogBackend::Kafka {
        // Others project outcomes too, of contributions that were made here.
        let follower = Follower::new(Arc::clone(&log), waiters.clone());
        tasks.spawn("follower", |stop| follower.run(stop).map(anyhow::Ok));
    }
    let projector = Projector::new(store.clone(), Arc::clone(&log), waiters.clone(), Arc::clone(&clock));
    let projector = projector.with_propagator(Arc::clone(&propagator));
    tasks.spawn("projector", |stop| projector.run(stop));
    let (relay, relaying) = Relay::new(Arc::clone(&log));
    tasks.spawn("relay", |stop| relaying.run(stop).map(anyhow::Ok));
    let sweeping = api::flow::SweeperConfig::from(config.sweeper.clone());
    let keys = config.limits.idempotency_window.0;
    let sweeper = Sweeper::new(store.clone(), log, Arc::clone(&clock), sweeping.clone(), keys);
    tasks.spawn("sweeper", |stop| sweeper.run(stop).map(anyhow::Ok));
    let (places, every) = (Arc::clone(&uploads.objects), config.sweeper.every.0);
    let freeing = Freeing::new(store.clone(), places, Arc::clone(&clock), every);
    tasks.spawn("freeing", |stop| freeing.run(stop).map(anyhow::Ok));
    let egress = Egress::default();
    let (counting, counted, by) = (egress.clone(), store.clone(), Arc::clone(&clock));
    tasks.spawn("egress", |stop| counting.run(counted, by, stop).map(anyhow::Ok));
    let usage = Usage::default();
    let (counting, counted) = (usage.clone(), store.clone());
    tasks.spawn("usage", |stop| counting.run(counted, stop).map(anyhow::Ok));
    let committing = store.clone();
    tasks.spawn("commits", |stop| count_commits(committing, stop).map(anyhow::Ok));
    let files = match config.objects.backend {
        Backend::Local => Files::Folder(layout.tables()),
        Backend::S3 => Files::Fetched(PartCache::open(&catalog, layout.parts(), config.objects.cache.0)?),
    };
    let waiting = store.clone();
    let limits: api::Limits = config.limits.clone().into();
    let app = App {
        store,
        catalog,
        relay,
        waiters,
        screener,
        sandbox: Arc::new(Sandbox::start(config, files, &clock)?),
        clock,
        propagator,
        egress,
        usage,
        uploads,
        sweeper: Arc::new(sweeping),
        backlog: Backlog::of(&limits),
        process: Arc::new(Process::new(&limits)),
        config: Arc::new(config.api(address)),
        limits: Arc::new(limits),
        direct: objects.direct,
        limiter: Arc::new(cache::limiter(&config.cache)?),
        drain,
    };
    let (data, backlog) = (config.data.clone(), app.backlog.clone());
    tasks.spawn("room", |stop| crate::room::watch(data, backlog, stop).map(anyhow::Ok));
    let backlog = app.backlog.clone();
    tasks.spawn("backlog", |stop| backlog.run(waiting, stop).map(anyhow::Ok));
    Ok(api::router(app))
}

/// Measures the database's transactions until `stop`.
async fn count_commits(store: Store, stop: CancellationToken) {
    let mut rounds = Rounds::every(COUNTED, &stop);
    while rounds.next().await {
        metrics::counter!(metric::DATABASE_COMMITS).absolute(store.commits());
    }
}

async fn open_log(config: &Config, layout: &Layout, tasks: &mut Tasks) -> anyhow::Result<Arc<dyn EventLog>> {
    match config.log.backend {
        LogBackend::Embedded => open_embedded(config, layout).await,
        LogBackend::Kafka => open_kafka(config, tasks).await,
    }
}

#[cfg(feature = "kafka")]
async fn open_kafka(config: &Config, tasks: &mut Tasks) -> anyhow::Result<Arc<dyn EventLog>> {
    use pipelines::message::{ATTEMPTS, CONTRIBUTIONS, DEAD_LETTERS, OUTCOMES};

    let options = config.log.kafka().map_err(|rule| anyhow!(rule))?;
    let opened = eventlog::Kafka::open(options, &[CONTRIBUTIONS, OUTCOMES, DEAD_LETTERS, ATTEMPTS]).await;
    let log = opened.with_context(|| format!("the event log on Kafka at `{}` cannot be opened", config.log.brokers))?;
    let counted = Arc::clone(&log);
    tasks.spawn("places", |stop| count_lost(counted, stop).map(anyhow::Ok));
    Ok(log)
}

/// Measures how often readers lost their places in the log until `stop`.
#[cfg(feature = "kafka")]
async fn count_lost(log: Arc<eventlog::Kafka>, stop: CancellationToken) {
    let mut rounds = Rounds::every(COUNTED, &stop);
    while rounds.next().await {
        let stats = log.stats();
        metrics::counter!(metric::LOG_LOST, "how" => "out_of_range").absolute(stats.out_of_range);
        metrics::counter!(metric::LOG_LOST, "how" => "renewed").absolute(stats.consumers_renewed);
    }
}

#[cfg(not(feature = "kafka"))]
#[expect(clippy::unused_async, reason = "the builds with Kafka wait for it")]
async fn open_kafka(_config: &Config, _tasks: &mut Tasks) -> anyhow::Result<Arc<dyn EventLog>> {
    anyhow::bail!("`log.backend` is \"kafka\", which this build does not have; build it with the feature `kafka`")
}

async fn open_embedded(config: &Config, layout: &Layout) -> anyhow::Result<Arc<dyn EventLog>> {
    let (path, options) = (layout.log(), config.log.options());
    let opened = tokio::task::spawn_blocking(move || Lasting::open(path, options)).await?;
    let log = opened.with_context(|| format!("the event log `{}` cannot be opened", layout.log().display()))?;
    Ok(Arc::new(log))
}

/// The places of uploads: the store of the tables where it takes parts, or else a folder, which one process has.
async fn open_uploads(
    store: Option<Arc<dyn pipelines::staging::objects::Objects>>,
    config: &Config,
    layout: &Layout,
) -> anyhow::Result<UploadPlane> {
    let stagings = Stagings::default();
    if let Some(objects) = store {
        return Ok(UploadPlane {
            objects,
            local: None,
            stagings,
        });
    }
    let (path, reserve) = (layout.uploads(), Reserve(config.data.reserve.0));
    let opened = tokio::task::spawn_blocking(move || LocalObjects::open(path, reserve)).await?;
    let local = opened.with_context(|| format!("the uploads `{}` cannot be opened", layout.uploads().display()))?;
    Ok(UploadPlane {
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
        let measured = metered::Objects::new(objects);
        Catalog::open(Arc::new(measured), index, clock)
    });
    opened
        .await?
        .with_context(|| format!("the tables `{shown}` cannot be opened"))
}

/// The catalog as it is configured.
fn configured(config: &Config, catalog: Catalog) -> Catalog {
    let catalog = catalog.with_reserve(Reserve(config.data.reserve.0));
    match config.compaction.policy() {
        Some(policy) => catalog.with_compaction(policy),
        None => catalog,
    }
}

/// The tasks behind the requests, and what ends them.
#[derive(Debug, Default)]
struct Tasks {
    set: JoinSet<(&'static str, anyhow::Result<()>)>,
    stop: CancellationToken,
}

impl Tasks {
    fn spawn<E, F>(&mut self, name: &'static str, task: impl FnOnce(CancellationToken) -> F)
    where
        E: Into<anyhow::Error>,
        F: Future<Output = Result<(), E>> + Send + 'static,
    {
        let task = task(self.stop.clone());
        self.set.spawn(async move { (name, task.await.map_err(Into::into)) });
    }
}

impl Running {
    /// Where the service listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where measures are fetched, if they are.
    pub const fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// The metadata database; a worker has none.
    pub const fn store(&self) -> Option<&Store> {
        self.store.as_ref()
    }

    /// The one source of time.
    pub const fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Runs until `signals` ask to stop, then stops in order; a second signal stops at once.
    ///
    /// # Errors
    /// A task that ended by itself, or one that did not end in time.
    pub async fn run(mut self, signals: &mut Signals) -> anyhow::Result<()> {
        let failure = tokio::select! {
            () = signals.asked() => None,
            ended = self.tasks.join_next() => Some(failure(ended)),
        };
        tracing::info!("stopping: waiting for requests and tasks under way");
        let stopped = tokio::select! {
            stopped = self.stop() => stopped,
            () = signals.asked() => Err(anyhow!("stopped at once, at a second signal")),
        };
        failure.map_or(stopped, Err)
    }

    /// Tells load balancers to leave this process alone; everything is served still.
    pub fn drain(&self) {
        self.drain.begin();
    }

    /// Tells load balancers and serves on for the time of the notice, ends accepting, lets running requests end, then
    /// ends every task.
    ///
    /// # Errors
    /// A task that failed, or did not end in time.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.drain();
        tokio::time::sleep(self.notice).await;
        self.closing.cancel();
        self.server.await.context("the HTTP server failed")?;
        self.stopping.cancel();
        let ending = async {
            while let Some(ended) = self.tasks.join_next().await {
                let (name, result) = ended.context("a task failed")?;
                result.with_context(|| format!("the {name} failed"))?;
            }
            anyhow::Ok(())
        };
        let ended = tokio::time::timeout(self.grace, ending).await;
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

/// What to say of a task that ended while the service ran.
fn failure(ended: Option<Result<(&'static str, anyhow::Result<()>), tokio::task::JoinError>>) -> anyhow::Error {
    match ended {
        Some(Ok((name, Err(error)))) => error.context(format!("the {name} failed")),
        Some(Ok((name, Ok(())))) => anyhow!("the {name} ended by itself"),
        Some(Err(error)) => anyhow::Error::from(error).context("a task failed"),
        None => anyhow!("every task ended by itself"),
    }
}
