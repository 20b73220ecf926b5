//! The binary: configuration, commands, assembly, telemetry.
//!
//! Invariants:
//! - [`assemble`](mod@assemble) is the only place that names every package. Only the tests depend on this package.
//! - Only [`config`](mod@config) reads the environment, once. Only [`terminal`] writes to standard output.

pub mod admin;
pub mod assemble;
pub mod buy;
pub mod cache;
pub mod check;
pub mod cli;
pub mod collect;
pub mod config;
pub mod create;
pub mod credentials;
pub mod credits;
pub mod database;
mod deleted_tables;
mod disk_space;
pub mod exit;
pub mod exporter;
pub mod file_child;
pub mod find;
mod grid;
pub mod infer;
pub mod info;
mod input;
pub mod instrumented;
pub mod isolation;
mod json_member;
mod judges;
pub mod keys;
pub mod layout;
pub mod ledger;
pub mod lock;
pub mod login;
mod look;
pub mod losses;
mod made;
pub mod mailer;
pub mod means_of_payment;
pub mod money;
pub mod objects;
mod open_files;
pub mod projects;
pub mod pull;
pub mod push;
pub mod query;
pub mod quickstart;
pub mod remote;
pub mod roles;
pub mod sandbox;
pub mod serve;
pub mod signals;
pub mod telemetry;
pub mod terminal;
pub mod uploads;
pub mod verify;
pub mod whoami;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use cli::{Cli, Command, VerifyArgs, VerifyCommand};
use config::LoadedConfig;
use mimalloc::MiMalloc;
use roles::ProcessRole;

/// The allocator. A batch is a tree of many small values that one thread allocates and another frees, which mimalloc is
/// made for.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Runs a command to its end and returns the exit code of the process.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    refuse_huge_pages();
    open_files::raise_limit();
    let loaded = LoadedConfig::load(cli.global.config.as_deref(), &cli.global.flags())?;
    let mut command = cli.command;
    if let Command::Verify(VerifyArgs {
        command: Some(VerifyCommand::Receipt(receipt)),
        ..
    }) = &mut command
    {
        receipt.data = cli.global.data;
    }
    // These commands need no runtime and open nothing.
    match command {
        Command::Config(arguments) if arguments.json => terminal::json(&loaded.show_json())?,
        Command::Config(_) => terminal::line(loaded.show().trim_end())?,
        Command::Completions(arguments) => {
            let mut script = Vec::new();
            clap_complete::generate(arguments.shell, &mut cli::command(), "sluice", &mut script);
            terminal::bytes(&script)?;
        }
        Command::Openapi => {
            let config = &loaded.config;
            let public_url = config.api(config.server.listen).public_url;
            terminal::json(&api::openapi(&config.limits, &public_url))?;
        }
        command => {
            // Files that a client command writes are the caller's own results, which keep the caller's umask.
            if !matches!(
                command,
                Command::Query(_)
                    | Command::Pull(_)
                    | Command::Push(_)
                    | Command::Infer(_)
                    | Command::Info(_)
                    | Command::Buy(_)
            ) {
                keep_private();
            }
            return tokio::runtime::Runtime::new()?.block_on(work(&loaded, command));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Disables transparent huge pages for this process and for the processes that it starts.
///
/// The kernel clears a huge page as a whole at its first byte. Every thread, and every process that runs a query,
/// begins a few of its own for short-lived memory.
fn refuse_huge_pages() {
    #[cfg(target_os = "linux")]
    // The result is ignored: on a kernel without this setting the service only uses more memory.
    rustix::thread::disable_transparent_huge_pages(true).ok();
}

/// Sets the umask so that only the user who runs the service can read the files it creates. The database contains the
/// signing keys.
fn keep_private() {
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// Starts the telemetry, runs a command on the runtime, and sends the spans that are left.
async fn work(loaded: &LoadedConfig, command: Command) -> anyhow::Result<ExitCode> {
    let config = &loaded.config;
    let mut telemetry = config.telemetry.clone();
    if !matches!(command, Command::Serve(_)) && telemetry.filter == "info" {
        // The output of these commands is read by a person, who can ask for more than warnings with another filter.
        "warn".clone_into(&mut telemetry.filter);
    }
    if !matches!(command, Command::Serve(_) | Command::Quickstart(_)) {
        // Only the commands that run the service send traces.
        telemetry.traces.clear();
    }
    let traces = telemetry::start(&telemetry)?;
    loaded.warn_of_renamed();
    let ended = dispatch(loaded, command).await;
    traces.flush().await;
    ended
}

async fn dispatch(loaded: &LoadedConfig, command: Command) -> anyhow::Result<ExitCode> {
    let config = &loaded.config;
    match command {
        Command::Serve(arguments) => serve(loaded, arguments.role).await?,
        Command::Quickstart(arguments) => quickstart::run(loaded, arguments).await?,
        Command::Admin(command) => admin::run(config, command).await?,
        Command::Check(arguments) => return check::run(config, arguments).await,
        Command::Keys(command) => keys::run(config, command).await?,
        Command::Ledger(command) => ledger::run(config, command).await?,
        Command::Search(arguments) => return find::search(&arguments).await,
        Command::List(arguments) => return find::list(&arguments).await,
        Command::Info(arguments) => return info::run(&arguments).await,
        Command::Buy(arguments) => return buy::run(arguments).await,
        Command::Credits(arguments) => return credits::run(&arguments).await,
        Command::Query(arguments) => query::run(&arguments).await?,
        Command::Pull(arguments) => pull::run(arguments).await?,
        Command::Infer(arguments) => return infer::run(&arguments).await,
        Command::Create(arguments) => return create::run(&arguments).await,
        Command::Push(arguments) => return push::run(&arguments).await,
        Command::Uploads(arguments) => return uploads::run(arguments).await,
        Command::Login(arguments) => return login::run(arguments).await,
        Command::Whoami(arguments) => return whoami::run(arguments).await,
        Command::Archive(arguments) => return projects::archive(arguments).await,
        Command::Delete(arguments) => return projects::delete(arguments).await,
        Command::Collect(arguments) => return collect::run(config, arguments).await,
        Command::Verify(arguments) => return verify::run(&arguments).await,
        Command::Openapi | Command::Config(_) | Command::Completions(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}

// The signals are caught before anything opens, so that a signal during the start also stops the service in order.
async fn serve(loaded: &LoadedConfig, role: ProcessRole) -> anyhow::Result<()> {
    let mut signals = signals::Signals::listen()?;
    let running = match role {
        ProcessRole::Collector => collect::assemble(loaded).await?,
        _ => assemble::assemble(loaded, role).await?,
    };
    let (address, role) = (running.address(), role.name());
    tracing::info!(%address, role, data = %loaded.config.data.dir.display(), "serving");
    running.run(&mut signals).await
}
