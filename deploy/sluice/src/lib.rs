//! The binary: configuration, commands, assembly, telemetry.
//!
//! Invariants:
//! - [`assemble`](mod@assemble) is the only place that names every package; nothing depends on this one but the tests.
//! - Only [`config`](mod@config) reads the environment, once; only [`terminal`] writes to standard output.

pub mod admin;
pub mod assemble;
pub mod cache;
pub mod check;
pub mod cli;
pub mod config;
pub mod database;
pub mod exporter;
pub mod keys;
pub mod lock;
pub mod losses;
pub mod metered;
pub mod objects;
pub mod pull;
pub mod push;
pub mod query;
pub mod quickstart;
pub mod remote;
pub mod roles;
mod room;
pub mod sandbox;
pub mod serve;
pub mod signals;
pub mod telemetry;
pub mod terminal;
pub mod verify;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use cli::{Cli, Command};
use config::Loaded;
use mimalloc::MiMalloc;
use roles::Role;

/// Why: a batch is a tree of many small values, made on one thread and dropped on another.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Runs a command to its end.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    refuse_huge_pages();
    let loaded = Loaded::load(cli.global.config.as_deref(), &cli.global.flags())?;
    match cli.command {
        Command::Config(_) => terminal::line(loaded.show().trim_end())?,
        Command::Openapi => {
            let config = &loaded.config;
            let public_url = config.api(config.server.listen).public_url;
            terminal::json(&api::openapi(&config.limits.clone().into(), &public_url))?;
        }
        command => {
            if !matches!(command, Command::Query(_) | Command::Pull(_) | Command::Push(_)) {
                keep_private();
            }
            return tokio::runtime::Runtime::new()?.block_on(work(&loaded, command));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Has the kernel back the memory of this process, and of those that it starts, with small pages only, also where huge
/// ones are given unasked; the allocator asks for none.
///
/// Why: a huge page is cleared whole at its first byte, and every thread and every query's process begins a few of its
/// own for what they hold for a moment.
fn refuse_huge_pages() {
    #[cfg(target_os = "linux")]
    // Why ignored: a kernel that knows no such setting only costs more memory.
    rustix::thread::disable_transparent_huge_pages(true).ok();
}

/// Has every file that is made be for the user alone who runs the service: the database has the keys that sign.
fn keep_private() {
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// The commands that open the data directory.
async fn work(loaded: &Loaded, command: Command) -> anyhow::Result<ExitCode> {
    let config = &loaded.config;
    let mut telemetry = config.telemetry.clone();
    if !matches!(command, Command::Serve(_)) && telemetry.filter == "info" {
        // Why: these commands talk to a person, who asks for more than warnings by naming another filter.
        "warn".clone_into(&mut telemetry.filter);
    }
    if !matches!(command, Command::Serve(_) | Command::Quickstart(_)) {
        telemetry.traces.clear();
    }
    let traces = telemetry::start(&telemetry)?;
    let ended = dispatch(loaded, command).await;
    traces.flush().await;
    ended
}

async fn dispatch(loaded: &Loaded, command: Command) -> anyhow::Result<ExitCode> {
    let config = &loaded.config;
    match command {
        Command::Serve(arguments) => serve(loaded, arguments.role).await?,
        Command::Quickstart(arguments) => quickstart::run(loaded, arguments).await?,
        Command::Admin(command) => admin::run(config, command).await?,
        Command::Check(arguments) => return check::run(config, arguments).await,
        Command::Keys(command) => keys::run(config, command).await?,
        Command::Query(arguments) => query::run(&arguments).await?,
        Command::Pull(arguments) => pull::run(arguments).await?,
        Command::Push(arguments) => return push::run(arguments).await,
        Command::Verify(arguments) => verify::run(&arguments)?,
        Command::Openapi | Command::Config(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn serve(loaded: &Loaded, role: Role) -> anyhow::Result<()> {
    let mut signals = signals::Signals::listen()?;
    let running = assemble::assemble(loaded, role).await?;
    let (address, role) = (running.address(), role.name());
    tracing::info!(%address, role, data = %loaded.config.data.dir.display(), "serving");
    running.run(&mut signals).await
}
