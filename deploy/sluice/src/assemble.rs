//! Puts the service together: the one place that names every package.
//!
//! Invariants:
//! - Parts start in the order of the flow backwards, so nothing is accepted before what carries it on runs.
//! - Stopping goes the other way: first no new connection, then the requests that run (their outcomes still arrive),
//!   then the tasks behind them, then the database. What is acknowledged and not decided is in the database.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use api::egress::Egress;
use api::flow::{Freeing, Projector, Relay, Sweeper, Waiters};
use api::{App, Planes, UploadPlane};
use catalog::Catalog;
use catalog::storage::DurableLocal;
use eventlog::{Embedded, EventLog};
use futures_util::FutureExt;
use operators::screen::{LocalScreener, Screener};
use pipelines::Worker;
use pipelines::staging::objects::LocalObjects;
use pipelines::staging::{Stagings, Uploads};
use store::Store;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use types::Clock;
use types::clock::SystemClock;

use crate::config::{Config, Loaded};
use crate::lock::DirectoryLock;
use crate::sandbox::Sandbox;
use crate::serve::serve;
use crate::signals::Signals;

/// The consumer group of the worker.
const WORKERS: &str = "workers";
/// How long stopping tasks may take beyond the worker's grace.
const MARGIN: Duration = Duration::from_secs(5);

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
}

/// The clock that the configuration asks for.
pub fn clock(config: &Config) -> Arc<dyn Clock> {
    Arc::new(SystemClock::ahead(config.clock.offset.0))
}

/// Connects to the database of a data directory.
pub async fn connect(layout: &Layout, create: bool) -> anyhow::Result<Store> {
    let file = layout.database();
    if !create && !file.exists() {
        bail!(
            "there is no service in `{}`; name its folder with --data",
            layout.root.display()
        );
    }
    let path = std::path::absolute(&file).with_context(|| format!("`{}` is not a path", file.display()))?;
    let options = store::Options {
        create,
        ..store::Options::default()
    };
    let url = format!("sqlite://{}", percent_encoded(&path));
    Store::connect(&url, options)
        .await
        .with_context(|| format!("the database `{}` cannot be opened", file.display()))
}

/// A path as the path of a URL (RFC 3986 section 3.3).
fn percent_encoded(path: &Path) -> String {
    let encode = |&byte: &u8| match byte {
        b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    path.as_os_str().as_encoded_bytes().iter().map(encode).collect()
}

/// The service while it runs.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    store: Store,
    clock: Arc<dyn Clock>,
    /// Ends accepting connections.
    closing: CancellationToken,
    /// Ends the tasks behind the requests.
    stopping: CancellationToken,
    server: JoinHandle<()>,
    tasks: JoinSet<(&'static str, anyhow::Result<()>)>,
    grace: Duration,
    _lock: DirectoryLock,
}

/// Opens everything, starts every task and accepts connections.
pub async fn assemble(loaded: &Loaded) -> anyhow::Result<Running> {
    let config = &loaded.config;
    let layout = Layout::new(&config.data.dir);
    let lock = DirectoryLock::acquire(&config.data.dir)?;
    let listener = TcpListener::bind(config.server.listen)
        .await
        .with_context(|| format!("cannot listen on `{}`", config.server.listen))?;
    let address = listener.local_addr()?;

    let clock = clock(config);
    let store = connect(&layout, true).await?;
    let log = open_log(config, &layout).await?;
    let catalog = open_catalog(&layout, layout.index(), &clock).await?;
    let screener: Arc<dyn Screener> = Arc::new(LocalScreener);

    let stopping = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let waiters = Waiters::default();
    let projector = Projector::new(store.clone(), Arc::clone(&log), waiters.clone(), Arc::clone(&clock));
    spawn(&mut tasks, "projector", projector.run(stopping.clone()));
    let local = open_uploads(&layout).await?;
    let stagings = Stagings::default();
    let staging = Uploads::new(Arc::new(local.clone()), stagings.clone());
    let worker = |catalog: Catalog, group: &str| {
        let (log, screener, clock) = (Arc::clone(&log), Arc::clone(&screener), Arc::clone(&clock));
        Worker::new(log, catalog, screener, clock, config.worker.of_group(group)).with_uploads(staging.clone())
    };
    spawn(
        &mut tasks,
        "worker",
        worker(catalog.clone(), WORKERS).run(stopping.clone()),
    );
    #[cfg(feature = "faults")]
    if loaded.faults.rival {
        let rival = open_catalog(&layout, layout.index().with_extension("rival"), &clock).await?;
        spawn(&mut tasks, "rival", worker(rival, "rivals").run(stopping.clone()));
    }
    let (relay, relaying) = Relay::new(Arc::clone(&log));
    spawn(&mut tasks, "relay", relaying.run(stopping.clone()).map(anyhow::Ok));
    let sweeping = api::flow::SweeperConfig::from(config.sweeper.clone());
    let keys = config.limits.idempotency_window.0;
    let sweeper = Sweeper::new(
        store.clone(),
        Arc::clone(&log),
        Arc::clone(&clock),
        sweeping.clone(),
        keys,
    );
    spawn(&mut tasks, "sweeper", sweeper.run(stopping.clone()).map(anyhow::Ok));

    let every = config.sweeper.every.0;
    let freeing = Freeing::new(store.clone(), Arc::new(local.clone()), Arc::clone(&clock), every);
    spawn(&mut tasks, "freeing", freeing.run(stopping.clone()).map(anyhow::Ok));

    let egress = Egress::default();
    let counting = egress.clone().run(store.clone(), stopping.clone());
    spawn(&mut tasks, "egress", counting.map(anyhow::Ok));

    let planes = Planes {
        store: store.clone(),
        catalog,
        relay,
        waiters,
        screener,
        clock: Arc::clone(&clock),
        sandbox: Arc::new(Sandbox::start(config, layout.tables(), &clock)?),
        egress,
        uploads: UploadPlane {
            objects: Arc::new(local.clone()),
            local: Some(local),
            stagings,
        },
        sweeper: sweeping,
    };
    let app = App::new(planes, config.api(address), config.limits.clone().into());
    let closing = CancellationToken::new();
    let server = tokio::spawn(serve(
        listener,
        api::router(app),
        config.server.clone(),
        closing.clone(),
    ));
    Ok(Running {
        address,
        store,
        clock,
        closing,
        stopping,
        server,
        tasks,
        grace: config.worker.grace.0 + MARGIN,
        _lock: lock,
    })
}

async fn open_log(config: &Config, layout: &Layout) -> anyhow::Result<Arc<dyn EventLog>> {
    let (path, options) = (layout.log(), config.log.options());
    let opened = tokio::task::spawn_blocking(move || Embedded::open(path, options)).await?;
    Ok(opened.with_context(|| format!("the event log `{}` cannot be opened", layout.log().display()))?)
}

async fn open_uploads(layout: &Layout) -> anyhow::Result<LocalObjects> {
    let path = layout.uploads();
    let opened = tokio::task::spawn_blocking(move || LocalObjects::open(path)).await?;
    opened.with_context(|| format!("the uploads `{}` cannot be opened", layout.uploads().display()))
}

async fn open_catalog(layout: &Layout, index: PathBuf, clock: &Arc<dyn Clock>) -> anyhow::Result<Catalog> {
    let (tables, clock) = (layout.tables(), Arc::clone(clock));
    let opened = tokio::task::spawn_blocking(move || {
        let objects = DurableLocal::open(&tables)?;
        anyhow::Ok(Catalog::open(Arc::new(objects), index, clock)?)
    });
    opened
        .await?
        .with_context(|| format!("the tables `{}` cannot be opened", layout.tables().display()))
}

fn spawn<E: Into<anyhow::Error>>(
    tasks: &mut JoinSet<(&'static str, anyhow::Result<()>)>,
    name: &'static str,
    task: impl Future<Output = Result<(), E>> + Send + 'static,
) {
    tasks.spawn(async move { (name, task.await.map_err(Into::into)) });
}

impl Running {
    /// Where the service listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The metadata database.
    pub const fn store(&self) -> &Store {
        &self.store
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
        tracing::info!("stopping");
        let stopped = tokio::select! {
            stopped = self.stop() => stopped,
            () = signals.asked() => Err(anyhow!("stopped at once, at a second signal")),
        };
        failure.map_or(stopped, Err)
    }

    /// Ends accepting, lets running requests end, then ends every task.
    ///
    /// # Errors
    /// A task that failed, or did not end in time.
    pub async fn stop(mut self) -> anyhow::Result<()> {
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
        self.store.close().await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_odd_characters_is_one_path_in_a_url() {
        assert_eq!(
            percent_encoded(Path::new("/tmp/a b?c#d%é")),
            "/tmp/a%20b%3Fc%23d%25%C3%A9"
        );
    }
}
