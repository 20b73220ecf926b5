//! `sluice check`: proves that the database and the tables agree and that nothing blocks the next message or commit,
//! also while a service runs.
//!
//! Invariant: it changes nothing. The database is read before and after each table: everything it has before must be in
//! the table, and everything in the table must be in the database after, decided or open. Work that goes on meanwhile
//! is therefore never a violation.

mod blocked;
mod compare;
mod units;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use api::rules::{receipts, seals};
use serde_json::json;
use store::{CheckTerms, KnowledgeFault, MoneyFault, Schema, Store};
use types::{Clock, Timestamp};

use crate::assemble;
use crate::cli;
use crate::config::Config;
use crate::database;
use crate::layout::DataLayout;
use crate::ledger;
use crate::losses;
use crate::means_of_payment;
use crate::objects;
use crate::terminal;

use compare::{CheckedCounts, compare, compare_deleted};

/// Subjects that are printed of each broken rule about knowledge.
const FAULTS_PER_RULE: u32 = 20;

/// Subjects that break a rule of the ledger, shown of each rule.
const MONEY_FAULTS: u32 = 20;

/// Time that one question to the database may take, at least.
const MIN_QUERY_TIMEOUT: Duration = Duration::from_mins(30);

/// Output of a check: each line at once, or all lines as one JSON object at the end.
#[derive(Debug)]
struct CheckOutput {
    is_json: bool,
    notes: Vec<String>,
    violations: Vec<String>,
}

impl CheckOutput {
    const fn new(is_json: bool) -> Self {
        Self {
            is_json,
            notes: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// Says something that is no violation.
    fn note(&mut self, line: impl Into<String>) -> io::Result<()> {
        Self::say(self.is_json, &mut self.notes, line.into())
    }

    /// Says a violation, with the subject that it is of.
    fn violation(&mut self, subject: &str, violation: &dyn Display) -> io::Result<()> {
        let line = format!("{subject}: VIOLATION {violation}");
        Self::say(self.is_json, &mut self.violations, line)
    }

    /// Says the sum at the end.
    fn end(self, sum: &str) -> io::Result<ExitCode> {
        let is_sound = self.violations.is_empty();
        if self.is_json {
            let (notes, violations) = (&self.notes, &self.violations);
            terminal::json(&json!({ "sound": is_sound, "violations": violations, "notes": notes, "summary": sum }))?;
        } else {
            terminal::line(sum)?;
        }
        Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn say(is_json: bool, lines: &mut Vec<String>, line: String) -> io::Result<()> {
        if !is_json {
            terminal::line(&line)?;
        }
        lines.push(line);
        Ok(())
    }
}

/// Checks every dataset, the knowledge units and the ledger, and prints counts and violations. The exit code is a failure
/// if there is a violation.
pub async fn run(config: &Config, arguments: cli::CheckArgs) -> anyhow::Result<ExitCode> {
    let layout = DataLayout::new(&config.data.dir);
    let clock = assemble::clock(config);
    let store = database::connect(&patient(config), Schema::Current).await?;
    let objects = objects::open_to_read(config, &layout)?;
    let folders = objects::tables(objects.as_ref()).await?;
    let mut projects = BTreeSet::new();
    let mut total = CheckedCounts::default();
    let mut output = CheckOutput::new(arguments.json);
    for project in store.check_projects().await? {
        let before = store.check_project(project.id).await?;
        let tables = match &objects {
            Some(tables) => Some(Arc::clone(tables)),
            // A worker may have created the first table since the start of the check.
            None => objects::open_to_read(config, &layout)?,
        };
        let report = match &tables {
            Some(tables) => catalog::check::table(tables, project.id).await?,
            None => catalog::check::Report::default(),
        };
        let after = store.check_project(project.id).await?;
        let open_since = clock.now().minus(arguments.open_for.0);
        let (counts, mut violations) = match project.deleted_at {
            Some(deleted_at) => compare_deleted(&report, &after, deleted_at, open_since),
            None => compare(&project, &before, &report, &after, open_since),
        };
        output.note(format!("{}: {counts}", project.slug))?;
        for loss in store.losses(project.id).await? {
            output.note(format!(
                "{}: accepted loss {}: versions {} to {}, on {}: {}",
                project.slug,
                loss.number,
                loss.kept.next(),
                loss.version,
                loss.accepted_at,
                loss.reason
            ))?;
        }
        violations.extend(blocked::commits(config, &layout, project.id));
        if let Some(tables) = tables.as_ref().filter(|_| project.deleted_at.is_none()) {
            let accepted_losses = catalog::history::accepted(tables, project.id).await?;
            let lost = losses::known(&store, project.id).await?;
            violations.extend(compare::untold(
                lost.iter().filter(|lost| !accepted_losses.contains(&lost.root)).count(),
            ));
        }
        for violation in &violations {
            output.violation(&project.slug, violation)?;
        }
        total.add(&counts);
        projects.insert(project.id.to_string());
    }
    // The folders were listed before the projects, so the project of each of them was listed too.
    projects.insert(catalog::platform::KNOWLEDGE.to_string());
    for folder in folders.difference(&projects) {
        output.violation(folder, &"table_without_project: no project has this table")?;
    }
    let knowledge = store.knowledge().faults(FAULTS_PER_RULE).await?;
    let community = store.community().faults(FAULTS_PER_RULE).await?;
    for KnowledgeFault { rule, subject } in knowledge.into_iter().chain(community) {
        output.violation("knowledge", &format_args!("{subject}: {rule}"))?;
    }
    for violation in units::table(config, &layout, &store).await? {
        output.violation("knowledge", &violation)?;
    }
    // The log is read once for all projects.
    for violation in blocked::log(config, &layout, &mut output).await? {
        output.violation("log", &violation)?;
    }
    for fault in money(config, &layout, &store, &clock, &mut output).await? {
        let MoneyFault { rule, subject, problem } = &fault;
        output.violation("money", &format_args!("{rule} {subject}: {problem}"))?;
    }
    let profiles = store.profiles().coverage().await?;
    // They are made again, so neither is a violation.
    if profiles.missing + profiles.stale > 0 {
        output.note(format!(
            "profiles: the newest version of {} has none; {} of no version",
            counted(profiles.missing, "project"),
            counted(profiles.stale, "profile")
        ))?;
    }
    store.close().await;
    // The table of units is of no project.
    let projects = counted(projects.len() - 1, "project");
    let broken = counted(output.violations.len(), "violation");
    Ok(output.end(&format!("{projects}: {total}; {broken}"))?)
}

/// Returns the configuration of a command whose statements read the whole ledger, and may take longer than a call of the
/// service.
pub(crate) fn patient(config: &Config) -> Config {
    let mut patient = config.clone();
    patient.database.timeout.0 = patient.database.timeout.0.max(MIN_QUERY_TIMEOUT);
    patient
}

/// Returns what is wrong with the money, the treasury on the chain included where it can be read.
async fn money(
    config: &Config,
    layout: &DataLayout,
    store: &Store,
    clock: &Arc<dyn Clock>,
    output: &mut CheckOutput,
) -> anyhow::Result<Vec<MoneyFault>> {
    let (tariff, money) = (config.tariff(), store.money());
    let terms = CheckTerms {
        free_egress: config.limits.egress_per_operator.0,
        quote_window: tariff.quote_window(),
        now: clock.now(),
    };
    let mut faults = money.faults(terms, MONEY_FAULTS).await?;
    faults.extend(seals::faults(store, MONEY_FAULTS).await?);
    if let Some(day) = money.newest_closed_day().await?.filter(|day| *day >= clock.now().day()) {
        let opens = Timestamp::of_day(day.saturating_add(1));
        output.note(format!(
            "money: a clock ran ahead, so days were sealed that are not over; events are of {opens} until then"
        ))?;
    }
    faults.extend(receipts::faults(store, &**clock, MONEY_FAULTS).await?);
    faults.extend(ledger::faults(config, layout, store).await?);
    if let Some((chain, wallet)) = means_of_payment::treasury_on_chain(config, layout, store, clock).await? {
        let before = money.treasury(&tariff.asset).await?;
        match chain.balance(wallet).await {
            Ok(found) => faults.extend(before.fault(found, money.treasury(&tariff.asset).await?)),
            // A node that is away says nothing about the books.
            Err(silent) => output.note(format!(
                "money: the treasury was not compared with the chain: {}",
                silent.reason
            ))?,
        }
    }
    Ok(faults)
}

fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}
