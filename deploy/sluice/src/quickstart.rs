//! `sluice quickstart`: runs the service and shows the whole flow on real data.
//!
//! Invariant: it uses the service over HTTP and through the code of `admin` only, so it shows the service's real
//! behaviour. A data directory may have had quickstarts before. Each gets names of its own.

mod dataset;
mod file;
mod readers;
mod report;
mod sample;
mod unit;

use std::time::Duration;

use anyhow::{Context, bail};
use client::Client;
use client::model::{Agent, Contribution, NewAgent, NewProject};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use types::{Classify, Kind};

use crate::admin;
use crate::assemble::{RunningService, assemble};
use crate::cli;
use crate::config::{Config, LoadedConfig, MailBackend};
use crate::layout::DataLayout;
use crate::mailer::letter_folder;
use crate::remote::reachable;
use crate::roles::ProcessRole;
use crate::signals::Signals;
use crate::terminal;

use report::{grouped, head, item};

/// Records of a contribution: the most that the interface takes.
const BATCH_RECORDS: usize = 500;
/// Contributions under way at once.
const MAX_CONCURRENT_BATCHES: usize = 4;
/// Records that are held back for the batch of which half is new.
const HELD_BACK_RECORDS: usize = BATCH_RECORDS / 2;
/// The longest `wait` of the interface, in seconds.
const WAIT_SECONDS: u32 = 20;
/// The most requests for one outcome.
const MAX_OUTCOME_REQUESTS: usize = 15;

/// Starts the service, shows the flow, and keeps the service running unless `--exit` is given.
pub async fn run(loaded: &LoadedConfig, arguments: cli::Quickstart) -> anyhow::Result<()> {
    // The signals are registered first, so that one during the start stops the service in order.
    let mut signals = Signals::listen()?;
    let mut loaded = loaded.clone();
    // Sources that the configuration names are collected as they are.
    if loaded.config.collectors.sources.is_empty() {
        loaded.config.collectors.sources = sample::write(&loaded.config.data.dir)?;
    }
    let running = assemble(&loaded, ProcessRole::All).await?;
    let shown = tokio::select! {
        shown = Box::pin(show(&running, &loaded.config, arguments.records)) => Some(shown),
        () = signals.asked() => None,
    };
    match shown {
        Some(Ok(())) if !arguments.exit => {
            terminal::line("\nThe service runs until Ctrl-C.")?;
            running.run(&mut signals).await
        }
        Some(shown) => shown.and(running.stop().await),
        // Stopped by a signal before the end.
        None => running.stop().await,
    }
}

/// The agent, client and project of a quickstart.
struct QuickstartStage {
    email: String,
    agent: Agent,
    client: Client,
    base: String,
    slug: String,
}

async fn show(running: &RunningService, config: &Config, count: u32) -> anyhow::Result<()> {
    let records = dataset::records(usize::try_from(count)?)?;
    let stage = set_up(running, config).await?;
    item(
        "dataset",
        &format!("{}: {} records", dataset::DATASET_TITLE, grouped(records.len() as u64)),
    )?;

    let (streamed, kept) = records.split_at(records.len() - HELD_BACK_RECORDS);
    let started = running.clock().now();
    let mut batches = stream_through(&stage, streamed).await?;
    let took = running.clock().now().since(started);
    timing(streamed.len(), batches.len(), took)?;

    head("Rows that the gates refused or dropped:")?;
    let again = contribute(&stage, &records[..BATCH_RECORDS], "again").await?;
    report::outcome("the first batch again", &again)?;
    let half_known = [&records[..BATCH_RECORDS - HELD_BACK_RECORDS], kept].concat();
    let mixed = contribute(&stage, &half_known, "half-known").await?;
    report::outcome(
        &format!("{} known, {HELD_BACK_RECORDS} new", BATCH_RECORDS - HELD_BACK_RECORDS),
        &mixed,
    )?;
    let bad = contribute(&stage, &dataset::bad_records(), "bad").await?;
    report::outcome("4 bad records of 5", &bad)?;
    // The batch of known records and the bad one are rejected. The mixed one merges its new half.
    if again.is_merged() || !mixed.is_merged() || bad.is_merged() {
        bail!("the gates gave unexpected verdicts");
    }
    batches.extend([again, mixed, bad]);

    let project = stage.client.project(&stage.slug).await?;
    report::versions(&project)?;
    report::gates(&batches)?;
    // A version in the middle shows that an old one stays readable.
    let middle = (project.latest_version / 2).max(1);
    let whole = stage.client.data(&stage.slug, Some(middle), 0, 1).await?.total;
    let offset = whole / 2;
    report::page(&stage.client.data(&stage.slug, Some(middle), offset, 3).await?, offset)?;
    readers::show(&stage, &config.data.dir, project.latest_version).await?;
    file::show(&stage, &config.data.dir, &records).await?;
    unit::show(running, config, &stage).await?;
    sample::show(running, &stage.base).await?;
    go_on(&stage, config, middle)
}

/// Creates an operator, its agent and its project under the first names that are free.
async fn set_up(running: &RunningService, config: &Config) -> anyhow::Result<QuickstartStage> {
    let address = reachable(running.address());
    let base = format!("http://{address}");
    // An operator whose agent or project name is taken stays behind. It is harmless, and the next number begins anew.
    for number in 1.. {
        let named = |name: &str| {
            if number == 1 {
                name.to_owned()
            } else {
                format!("{name}-{number}")
            }
        };
        let (email, slug) = (
            format!("{}@example.org", named("quickstart")),
            named("unicode-characters"),
        );
        let store = running.store().context("the service has no database")?;
        let added = admin::operator_add(store, running.clock(), config, &email, "Quickstart").await?;
        let Some(operator) = added else { continue };
        let owner = Client::new(&base, operator.token)?;
        let new = NewAgent {
            name: named("quickstart"),
            wallet_address: None,
        };
        let Some(agent) = unless_taken(owner.agent_create(&new).await)? else {
            continue;
        };
        let client = Client::new(&base, agent.key.clone())?;
        let project = NewProject {
            slug: slug.clone(),
            title: dataset::DATASET_TITLE.to_owned(),
            readme: dataset::DATASET_README.to_owned(),
            schema_def: dataset::schema_def(),
            tags: vec!["unicode".to_owned(), "quickstart".to_owned()],
            ..NewProject::default()
        };
        if unless_taken(client.project_create(&project).await)?.is_none() {
            continue;
        }
        head(&format!(
            "Sluice is running at {base}, its data is in `{}`.",
            config.data.dir.display()
        ))?;
        if number > 1 {
            terminal::line("An earlier quickstart used these names here, so this one adds a number to them.")?;
        }
        item(
            "operator",
            &format!("{email}, added as `sluice admin operator add` does"),
        )?;
        item("agent", &format!("{}, by POST /agents", agent.name))?;
        item("project", &format!("{slug}, by POST /projects"))?;
        return Ok(QuickstartStage {
            email,
            agent,
            client,
            base,
            slug,
        });
    }
    bail!("every name is taken")
}

/// Returns `None` if the name is taken.
fn unless_taken<T>(made: Result<T, client::Error>) -> anyhow::Result<Option<T>> {
    match made {
        Ok(made) => Ok(Some(made)),
        Err(error) if error.kind() == Kind::Conflict => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Contributes all of `records`, [`MAX_CONCURRENT_BATCHES`] batches at a time, and returns the outcomes in order.
async fn stream_through(stage: &QuickstartStage, records: &[Value]) -> anyhow::Result<Vec<Contribution>> {
    let progress = StreamProgress::new(records.len() as u64);
    stream::iter(records.chunks(BATCH_RECORDS).enumerate())
        .map(|(number, batch)| {
            let progress = &progress;
            async move {
                let merged = contribute(stage, batch, &number.to_string()).await?;
                if !merged.is_merged() {
                    bail!("batch {number} was not merged: {merged:?}");
                }
                progress.add(batch.len() as u64);
                Ok(merged)
            }
        })
        // A few at once keep the worker busy, and the order of the results stays that of the batches.
        .buffered(MAX_CONCURRENT_BATCHES)
        .try_collect()
        .await
}

/// Contributes a batch and waits for its outcome.
async fn contribute(stage: &QuickstartStage, records: &[Value], name: &str) -> anyhow::Result<Contribution> {
    // The client repeats a call only with an idempotency key. The slug makes the key different in every quickstart.
    let key = format!("{}-{name}", stage.slug);
    let (client, slug) = (&stage.client, &stage.slug);
    let mut batch = client.contribute(slug, records, WAIT_SECONDS, Some(&key)).await?;
    for _ in 0..MAX_OUTCOME_REQUESTS {
        if batch.is_decided() {
            return Ok(batch);
        }
        batch = client.contribution(slug, &batch.id, WAIT_SECONDS).await?;
    }
    Err(anyhow::anyhow!("{batch:?}")).context("a batch has no outcome")
}

/// Progress of the stream: a bar on a terminal, otherwise a line per quarter.
struct StreamProgress {
    bar: ProgressBar,
    watched: bool,
}

impl StreamProgress {
    fn new(total: u64) -> Self {
        let bar = ProgressBar::new(total);
        if let Ok(style) = ProgressStyle::with_template("  {bar:40} {human_pos}/{human_len} records, {eta} left") {
            bar.set_style(style);
        }
        Self {
            bar,
            watched: terminal::is_watched(),
        }
    }

    fn add(&self, records: u64) {
        let before = self.bar.position();
        self.bar.inc(records);
        let (now, total) = (before + records, self.bar.length().unwrap_or(u64::MAX));
        let quarter = |position: u64| position * 4 / total;
        // Output to a file or a pipe gets four lines instead of a bar.
        if !self.watched && quarter(before) != quarter(now) {
            terminal::note(&format!("  {}/{} records", grouped(now), grouped(total)));
        }
    }
}

impl Drop for StreamProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn timing(records: usize, batches: usize, took: Duration) -> anyhow::Result<()> {
    let seconds = took.as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = records as f64 / seconds.max(0.001);
    item(
        "streamed",
        &format!(
            "{} records in {batches} contributions in {seconds:.1} s: {rate:.0} records/s, each batch durable, judged, \
             merged and readable",
            grouped(records as u64)
        ),
    )?;
    Ok(())
}

/// Prints commands to try next.
fn go_on(stage: &QuickstartStage, config: &Config, version: u64) -> anyhow::Result<()> {
    let QuickstartStage {
        email,
        agent,
        base,
        slug,
        ..
    } = stage;
    let key = &agent.key;
    let authorization = format!("-H 'Authorization: Bearer {key}'");
    let json = "-H 'Content-Type: application/json'";
    let record = r#"{"codePoint":"U+E000","value":57344,"name":"EXAMPLE ONE","category":"Co","combiningClass":0,"bidiClass":"L","mirrored":false}"#;
    head("Continue with:")?;
    item("address", base)?;
    item("in a browser", &format!("{base}/projects/{slug}"))?;
    let letter = match config.mail.backend {
        MailBackend::Folder => {
            let folder = letter_folder(&config.mail, &DataLayout::new(&config.data.dir).mail());
            format!("the letter with the link is a file in {}", folder.display())
        }
        MailBackend::Smtp => "a letter brings the link".to_owned(),
    };
    item("sign in", &format!("{base}/signin as {email}; {letter}"))?;
    item(
        "what it made and sold",
        &format!("{base}/console/datasets, {base}/console/money"),
    )?;
    item("limits of its agent", &format!("{base}/console/agents"))?;
    item("guides and prices", &format!("{base}/docs"))?;
    item("agent key", key)?;
    terminal::line(
        "\n  # a preview with figures, which needs no key, a page of an old version, a record of yours, a dry run, an answer \
         with a signed receipt, a SQL query",
    )?;
    terminal::line(&format!("  curl -s '{base}/projects/{slug}/preview'"))?;
    terminal::line(&format!(
        "  curl -s {authorization} '{base}/projects/{slug}/data?version={version}&limit=3'"
    ))?;
    terminal::line(&format!(
        "  curl -s {authorization} {json} '{base}/projects/{slug}/contribute?wait=20' -d '{{\"records\":[{record}]}}'"
    ))?;
    terminal::line(&format!(
        "  curl -s {authorization} {json} '{base}/projects/{slug}/validate' -d '{{\"records\":[{{\"value\":\"one\"}}]}}'"
    ))?;
    terminal::line(&format!(
        "  curl -s {authorization} {json} '{base}/projects/{slug}/query' -d '{{\"sql\":\"SELECT count(*) FROM records\",\"receipt\":true}}'"
    ))?;
    terminal::line(&format!(
        "  sluice query {slug} 'SELECT name FROM records WHERE upper IS NOT NULL' --server {base} --key {key}"
    ))?;
    terminal::line(&format!("  sluice search 'case mappings' --server {base}"))?;
    Ok(())
}
