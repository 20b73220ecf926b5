//! Collectors: the sources that a process has, its place in the service, and `sluice collect`.
//!
//! Invariant: records are submitted over HTTP, by the agent of the platform's operator or by that of the caller, so that
//! no other way into a dataset exists.

mod intake;
mod platform;

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use client::Client;
use collectors::{BUNDLED, CollectorSource, Fetcher, RunReport, Scheduler, SchedulerOptions};
use futures_util::FutureExt as _;
use serde_json::json;
use store::{RunOutcome, Schema, Store};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use types::{Clock, ContributionId};

use self::intake::IntakeService;
use crate::assemble::{RunningService, STOP_MARGIN, Tasks, clock};
use crate::cli::Collect;
use crate::config::{Config, LoadedConfig};
use crate::database::connect;
use crate::exit::Missing;
use crate::remote::reachable;
use crate::roles::ProcessRole;
use crate::serve::serve;
use crate::terminal;

/// Word for every source that comes with the service.
const ALL_SOURCES: &str = "all";

/// Returns the sources that the configuration names.
///
/// # Errors
/// A name that no source has, or a file that is no definition; both name it.
pub fn sources(config: &Config) -> anyhow::Result<Vec<CollectorSource>> {
    let mut sources: Vec<CollectorSource> = Vec::new();
    let names = config.collectors.sources.split(',').map(str::trim);
    for name in names.filter(|name| !name.is_empty()) {
        if name == ALL_SOURCES {
            for (name, text) in BUNDLED {
                sources.push(parsed(name, text, None)?);
            }
        } else if let Some((_, text)) = BUNDLED.iter().find(|(bundled, _)| *bundled == name) {
            sources.push(parsed(name, text, None)?);
        } else if Path::new(name).extension().is_some_and(|extension| extension == "toml") {
            sources.push(read(Path::new(name))?);
        } else {
            let known: Vec<_> = BUNDLED.iter().map(|(name, _)| *name).collect();
            bail!(
                "`collectors.sources`: `{name}` is neither the path of a .toml file nor one of {}",
                known.join(", ")
            );
        }
    }
    // The name is the key of the row with cursor and lease, which two sources would overwrite for each
    // other.
    for (at, source) in sources.iter().enumerate() {
        if sources[..at].iter().any(|other| other.name() == source.name()) {
            bail!("`collectors.sources`: two sources are named `{}`", source.name());
        }
    }
    Ok(sources)
}

fn parsed(name: &str, text: &str, folder: Option<&Path>) -> anyhow::Result<CollectorSource> {
    CollectorSource::parse(text, folder).with_context(|| format!("the source `{name}` cannot be used"))
}

fn read(path: &Path) -> anyhow::Result<CollectorSource> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    parsed(&path.display().to_string(), &text, Some(folder))
}

/// Starts the collectors of a process whose role includes them, if the configuration names any.
pub(crate) async fn start(
    config: &Config,
    role: ProcessRole,
    address: SocketAddr,
    store: Option<&Store>,
    clock: &Arc<dyn Clock>,
    tasks: &mut Tasks,
) -> anyhow::Result<()> {
    let Some(store) = store.filter(|_| role.collects()) else {
        return Ok(());
    };
    let sources = sources(config)?;
    if !sources.is_empty() {
        let scheduler = scheduler(config, &own_address(config, Some(address))?, store, clock, sources).await?;
        tasks.spawn("collectors", |stop| scheduler.run(stop).map(anyhow::Ok));
    }
    Ok(())
}

/// Assembles a process that only collects: it has the database and calls the interface of the service.
///
/// # Errors
/// No source, no address of the service, or a part that cannot be opened.
pub(crate) async fn assemble(loaded: &LoadedConfig) -> anyhow::Result<RunningService> {
    let config = &loaded.config;
    let sources = sources(config)?;
    if sources.is_empty() {
        bail!("`serve --role collector` has nothing to do: `collectors.sources` is empty");
    }
    let server = own_address(config, None)?;
    let listener = TcpListener::bind(config.server.listen)
        .await
        .with_context(|| format!("cannot listen on `{}`", config.server.listen))?;
    let address = listener.local_addr()?;
    let mut tasks = Tasks::default();
    let metrics = tasks.export(config).await?;
    tasks.watch_files();
    let clock = clock(config);
    // The interface migrates the schema; a collector waits for it by being started again.
    let store = connect(config, Schema::Current).await?;
    let scheduler = scheduler(config, &server, &store, &clock, sources).await?;
    tasks.spawn("collectors", |stop| scheduler.run(stop).map(anyhow::Ok));
    let drain = api::state::drain::Drain::default();
    let router = api::transport::probes::of_collector(drain.clone(), store.clone(), tasks.open_files.clone());
    let closing = CancellationToken::new();
    let server = tokio::spawn(serve(listener, router, config.server.clone(), closing.clone()));
    Ok(RunningService {
        address,
        metrics,
        store: Some(store),
        clock,
        drain,
        notice: config.server.drain_notice.0,
        closing,
        stopping: tasks.stop,
        server,
        tasks: tasks.set,
        grace: config.worker.grace.0 + STOP_MARGIN,
        // The folder belongs to the process that serves. The database is the one part of it that many processes share.
        _lock: None,
    })
}

/// Returns the address of the service that records are submitted to.
fn own_address(config: &Config, listening: Option<SocketAddr>) -> anyhow::Result<String> {
    let named = [&config.collectors.server, &config.server.public_url];
    match (named, listening) {
        ([server, _], _) if !server.is_empty() => Ok(server.clone()),
        // The own listener comes before the public address, which leads through a proxy and its limits.
        (_, Some(address)) => Ok(format!("http://{}", reachable(address))),
        ([_, public_url], None) if !public_url.is_empty() => Ok(public_url.clone()),
        _ => bail!("`collectors.server` or `server.public_url` must name the service that records are submitted to"),
    }
}

async fn scheduler(
    config: &Config,
    server: &str,
    store: &Store,
    clock: &Arc<dyn Clock>,
    sources: Vec<CollectorSource>,
) -> anyhow::Result<Scheduler> {
    let key = platform::key(store, clock, &config.terms.version).await?;
    let intake = IntakeService::new(Client::new(server, key)?).owned_by_platform(store.clone());
    let options = SchedulerOptions {
        lease: config.collectors.lease.0,
        every: config.collectors.every.0,
        at_once: config.collectors.at_once.get(),
    };
    let (store, clock) = (store.clone(), Arc::clone(clock));
    let fetcher = fetcher(config, server)?;
    Ok(Scheduler::new(
        store,
        clock,
        fetcher,
        Arc::new(intake),
        sources,
        options,
    ))
}

/// Returns the client of sources: public servers only, unless the configuration is one for tests.
fn fetcher(config: &Config, server: &str) -> anyhow::Result<Fetcher> {
    let contact = [&config.collectors.contact, &config.server.public_url];
    let contact = contact.into_iter().find(|contact| !contact.is_empty());
    let mut options = outbound::ClientOptions::new(contact.map_or(server, String::as_str));
    if config.outbound.allow_private {
        options.allow_private = true;
        options.ports = outbound::Ports::Any;
    }
    Ok(Fetcher::new(
        outbound::OutboundClient::new(options)?,
        config.collectors.pause.0,
    ))
}

/// Runs `sluice collect`: a source once, and prints what became of it.
pub async fn run(config: &Config, arguments: Collect) -> anyhow::Result<ExitCode> {
    let stop = CancellationToken::new();
    let report = match (&arguments.file, &arguments.once) {
        (Some(file), _) => by_anybody(config, file, &arguments).await?,
        (None, Some(name)) => by_platform(config, name, &arguments, &stop).await?,
        (None, None) => bail!("name a file, or a collector with --once"),
    };
    let counts = report.counts;
    terminal::json(&json!({
        "outcome": report.outcome,
        "fetched": counts.fetched,
        "new": counts.added,
        "known": counts.known,
        "refused": counts.refused,
        "failed": counts.failed,
        "version": report.version,
        "reason": report.failure.as_ref().map(|failure| json!({"code": failure.code, "message": failure.message})),
    }))?;
    Ok(match report.outcome {
        RunOutcome::Failed => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// Runs a file with the key of the caller. Without a database there is no place in the source: the gates drop what is
/// known.
async fn by_anybody(config: &Config, file: &Path, arguments: &Collect) -> anyhow::Result<RunReport> {
    let source = read(file)?;
    let (client, _) = arguments.remote.client_with_key()?;
    let intake = IntakeService::new(client);
    let fetcher = fetcher(config, &arguments.remote.server)?;
    let run = ContributionId::new(clock(config).now()).to_string();
    Ok(collectors::collect(&source, &fetcher, &intake, &run, None).await)
}

/// Runs a configured source or one that comes with the service, under its lease, whatever its schedule.
async fn by_platform(
    config: &Config,
    name: &str,
    arguments: &Collect,
    stop: &CancellationToken,
) -> anyhow::Result<RunReport> {
    let mut sources = sources(config)?;
    if !sources.iter().any(|source| source.name() == name)
        && let Some((name, text)) = BUNDLED.iter().find(|(bundled, _)| *bundled == name)
    {
        sources.push(parsed(name, text, None)?);
    }
    sources.retain(|source| source.name() == name);
    let source = sources
        .first()
        .cloned()
        .ok_or_else(|| Missing(format!("there is no collector `{name}`")))?;
    let clock = clock(config);
    let store = connect(config, Schema::Current).await?;
    let scheduler = scheduler(config, &arguments.remote.server, &store, &clock, sources).await?;
    // The row must exist before a lease on it can be taken.
    scheduler.see().await?;
    let report = scheduler.once(&source, true, stop).await;
    // Closed before the result is looked at, so that a failed run also leaves no open database.
    store.close().await;
    report?.ok_or_else(|| anyhow!("the collector `{name}` is running already"))
}

impl ProcessRole {
    /// Returns true if the process runs collectors.
    pub const fn collects(self) -> bool {
        matches!(self, Self::All | Self::Collector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sources_named: &str) -> anyhow::Result<Vec<String>> {
        let flags = [("collectors.sources", sources_named.to_owned())];
        let config = LoadedConfig::load(None, &flags)?.config;
        Ok(sources(&config)?
            .iter()
            .map(|source| source.name().to_owned())
            .collect())
    }

    #[test]
    fn sources_are_named_or_files() {
        assert_eq!(names("").unwrap(), [""; 0]);
        assert_eq!(names("usgs-earthquakes, tz-database-releases").unwrap().len(), 2);
        assert_eq!(names("all").unwrap().len(), BUNDLED.len());
        for wrong in ["quakes", "all,usgs-earthquakes", "missing.toml"] {
            assert!(names(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn records_go_to_the_named_service_or_to_this_one() {
        let mut config = LoadedConfig::load(None, &[]).unwrap().config;
        let listening = Some("0.0.0.0:80".parse().unwrap());
        assert!(own_address(&config, None).is_err());
        assert_eq!(own_address(&config, listening).unwrap(), "http://127.0.0.1:80");
        config.server.public_url = "https://data.example".to_owned();
        assert_eq!(own_address(&config, None).unwrap(), "https://data.example");
        assert_eq!(own_address(&config, listening).unwrap(), "http://127.0.0.1:80");
        config.collectors.server = "http://api.internal".to_owned();
        assert_eq!(own_address(&config, listening).unwrap(), "http://api.internal");
    }
}
