//! Scheduler: begins the runs that are due, each under a lease in the database.
//!
//! Invariants:
//! - A run ends in the database only while this process holds its lease. A process that cannot extend a lease in time
//!   gives the run up before another process can begin the next.
//! - A failed run is due again after a pause that doubles, and no later than by its schedule. A run that the stop of the
//!   service cuts short is no failed run: it is given back.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use store::{Collector, RunEnd, RunOutcome, SeenCollector, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use types::{Backoff, Clock, ContributionId, Timestamp, fault, metric};

use crate::RunFailure;
use crate::fetch::Fetcher;
use crate::intake::Intake;
use crate::run::{RunReport, collect};
use crate::source::CollectorSource;

/// Longest delay of a run after the instant of its schedule.
const MAX_JITTER: Duration = Duration::from_mins(10);
/// Pauses after failed runs.
const RUN_BACKOFF: Backoff = Backoff {
    first: Duration::from_mins(5),
    most: Duration::from_hours(6),
};
/// Interval at which definitions are noted again.
const SEE_EVERY: Duration = Duration::from_hours(1);

/// Options of a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerOptions {
    /// Time for which a run is leased, and extended every third of it.
    pub lease: Duration,
    /// Interval at which due runs are looked for.
    pub every: Duration,
    /// Most runs at a time.
    pub at_once: usize,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_mins(1),
            every: Duration::from_secs(2),
            at_once: 8,
        }
    }
}

/// Scheduler of the collectors of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Scheduler {
    store: Store,
    clock: Arc<dyn Clock>,
    fetcher: Arc<Fetcher>,
    intake: Arc<dyn Intake>,
    sources: Arc<[Arc<CollectorSource>]>,
    options: SchedulerOptions,
    places: Arc<Semaphore>,
}

impl Scheduler {
    /// Creates a scheduler of these sources.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        fetcher: Fetcher,
        intake: Arc<dyn Intake>,
        sources: Vec<CollectorSource>,
        options: SchedulerOptions,
    ) -> Self {
        Self {
            store,
            clock,
            fetcher: Arc::new(fetcher),
            intake,
            sources: sources.into_iter().map(Arc::new).collect(),
            options,
            places: Arc::new(Semaphore::new(options.at_once)),
        }
    }

    /// Begins due runs until `stop`, then gives those under way back, so that they are due again.
    pub async fn run(self, stop: CancellationToken) {
        let mut runs = JoinSet::new();
        let mut seen_at: Option<Timestamp> = None;
        let mut tick = tokio::time::interval(self.options.every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while stop.run_until_cancelled(tick.tick()).await.is_some() {
            let now = self.clock.now();
            // A clock that was set back also makes it time.
            if seen_at.is_none_or(|at| now < at || now.since(at) >= SEE_EVERY) {
                match self.see().await {
                    Ok(()) => seen_at = Some(now),
                    Err(error) => {
                        tracing::warn!(%error, "collectors cannot be noted in the database; trying again");
                        continue;
                    }
                }
            }
            if let Err(error) = self.round(&mut runs, &stop).await {
                tracing::warn!(%error, "due collectors cannot be read; trying again");
            }
            while runs.try_join_next().is_some() {}
        }
        while runs.join_next().await.is_some() {}
    }

    /// Notes the definitions of this process.
    pub async fn see(&self) -> Result<(), store::Error> {
        let seen = self.sources.iter().map(|source| SeenCollector {
            name: source.name().to_owned(),
            dataset: source.dataset().to_owned(),
            title: source.title().to_owned(),
            publisher: source.publisher().to_owned(),
            license: source.license().to_owned(),
            schedule: source.schedule_text().to_owned(),
        });
        self.store.collectors().see(seen.collect(), self.clock.now()).await
    }

    /// Begins the runs that are due. Beyond [`SchedulerOptions::at_once`] they begin with a later round, here or in another
    /// process.
    async fn round(&self, runs: &mut JoinSet<()>, stop: &CancellationToken) -> Result<(), store::Error> {
        let mut all = self.store.collectors().all().await?;
        // The collector that has waited longest is first.
        all.sort_by_key(|collector| collector.next_at);
        for collector in all {
            let now = self.clock.now();
            let Some(source) = self.sources.iter().find(|source| source.name() == collector.seen.name) else {
                continue;
            };
            self.bring_forward(&collector, source, now).await?;
            if collector.next_at > now || collector.is_leased(now, self.options.lease) {
                continue;
            }
            // Before the lease is taken: a run that waited for a place with a lease would keep other
            // processes from it.
            let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
                break;
            };
            let (scheduler, source, stop) = (self.clone(), Arc::clone(source), stop.clone());
            runs.spawn(async move { scheduler.due(&source, &stop, place).await });
        }
        Ok(())
    }

    /// Corrects a due time that lies after the next instant of the schedule: the clock was ahead, or the schedule changed.
    async fn bring_forward(
        &self,
        collector: &Collector,
        source: &CollectorSource,
        now: Timestamp,
    ) -> Result<(), store::Error> {
        let next = next(source, now);
        if collector.next_at > next.plus(MAX_JITTER) {
            self.store.collectors().reschedule(source.name(), next).await?;
        }
        Ok(())
    }

    async fn due(&self, source: &CollectorSource, stop: &CancellationToken, place: OwnedSemaphorePermit) {
        if let Err(error) = self.once(source, false, stop).await {
            tracing::warn!(
                collector = source.name(), %error,
                "a run of a collector is not in the database; it is due again when its lease ends"
            );
        }
        drop(place);
    }

    /// Runs a source if it is due, or in any case with `at_once`. `None` if it is not due or runs elsewhere, or the lease
    /// was lost.
    ///
    /// # Errors
    /// The database; the run is then due again when its lease ends.
    pub async fn once(
        &self,
        source: &CollectorSource,
        at_once: bool,
        stop: &CancellationToken,
    ) -> Result<Option<RunReport>, store::Error> {
        let collectors = self.store.collectors();
        let started = self.clock.now();
        let run = ContributionId::new(started).to_string();
        let lease = self.options.lease;
        // One statement decides between processes; what `round` read before it may be out of date.
        let Some(begun) = collectors.begin(source.name(), &run, started, lease, at_once).await? else {
            return Ok(None);
        };
        let running = collect(source, &self.fetcher, &*self.intake, &run, begun.cursor.as_deref());
        let report = tokio::select! {
            report = running => report,
            () = self.hold(source.name(), &run) => {
                tracing::warn!(collector = source.name(), "a run of a collector lost its lease and was given up");
                return Ok(None);
            }
            () = stop.cancelled() => {
                // Another process, or this one after its start, does at once what was cut short. The source has no
                // part in it, so the run counts as no failure.
                collectors.give_back(source.name(), &run, self.clock.now()).await?;
                return Ok(Some(stopped()));
            }
        };
        let now = self.clock.now();
        let next_at = match (&report.failure, report.outcome) {
            (Some(failure), RunOutcome::Failed) => {
                let asked = failure.retry_after.unwrap_or_default();
                // The source's own wish counts only where it is longer, and never beyond the next
                // instant of the schedule, so a header cannot switch a collector off.
                let pause = RUN_BACKOFF.pause(begun.failures).max(asked);
                now.plus(pause).min(next(source, now))
            }
            _ => next(source, now),
        };
        fault::point("collect.ending");
        let reason = report
            .failure
            .as_ref()
            .map(|failure| (failure.code.to_owned(), failure.message.clone()));
        let end = RunEnd {
            outcome: report.outcome,
            counts: report.counts,
            version: report.version,
            reason,
            cursor: report.cursor.clone(),
            next_at,
            now,
        };
        // Conditional on the run's id: a process that stood still past its lease must not store its
        // cursor over that of the run that followed.
        if !collectors.end(source.name(), &run, end).await? {
            tracing::warn!(
                collector = source.name(),
                "a run of a collector lost its lease and was given up"
            );
            return Ok(None);
        }
        fault::point("collect.ended");
        note(source, &report, now.since(started));
        Ok(Some(report))
    }

    /// Extends the lease of a run for as long as that succeeds. Returns when the lease is lost, or may be.
    async fn hold(&self, name: &str, run: &str) {
        let lease = self.options.lease;
        let mut held_until = self.clock.now().plus(lease);
        loop {
            tokio::time::sleep(lease / 3).await;
            let until = self.clock.now().plus(lease);
            match self.store.collectors().renew(name, run, until).await {
                Ok(true) => held_until = until,
                Ok(false) => return,
                // A third of the lease is left for the run to notice.
                Err(_) if self.clock.now().plus(lease / 3) >= held_until => return,
                Err(_) => {}
            }
        }
    }
}

/// Returns the instant of the next run by the schedule, with the delay that is the source's own.
fn next(source: &CollectorSource, now: Timestamp) -> Timestamp {
    // A schedule has a next instant; a day later is as good as any without one.
    let next = source.schedule().next(now);
    let next = next.unwrap_or_else(|| now.plus(Duration::from_hours(24)));
    next.plus(jitter(source.name(), next))
}

/// Returns the delay of a run after the instant of its schedule. All processes compute the same.
fn jitter(name: &str, at: Timestamp) -> Duration {
    let hash = Sha256::digest(format!("{name} {}", at.micros()).as_bytes());
    let number = hash
        .iter()
        .take(4)
        .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    Duration::from_secs(number % MAX_JITTER.as_secs())
}

fn stopped() -> RunReport {
    RunReport {
        outcome: RunOutcome::Failed,
        counts: store::RunCounts::default(),
        version: None,
        failure: Some(RunFailure::new(
            "stopped",
            "the service stopped during the run; the next run goes on",
        )),
        cursor: None,
    }
}

/// Logs and counts a run that ended.
fn note(source: &CollectorSource, report: &RunReport, took: Duration) {
    let counts = report.counts;
    let (collector, outcome) = (source.name(), report.outcome.as_str());
    metrics::counter!(metric::COLLECTOR_RUNS, "outcome" => outcome).increment(1);
    metrics::histogram!(metric::COLLECTOR_SECONDS).record(took.as_secs_f64());
    for (fate, rows) in [
        ("new", counts.added),
        ("known", counts.known),
        ("refused", counts.refused),
        ("failed", counts.failed),
    ] {
        metrics::counter!(metric::COLLECTOR_ROWS, "fate" => fate).increment(rows);
    }
    let (fetched, new, refused) = (counts.fetched, counts.added, counts.refused);
    match &report.failure {
        Some(failure) if report.outcome == RunOutcome::Failed => {
            let (code, reason) = (failure.code, failure.message.as_str());
            tracing::warn!(
                collector,
                code,
                reason,
                "a run of a collector failed; its dataset stays as it was"
            );
        }
        _ => tracing::info!(collector, outcome, fetched, new, refused, "a collector ran"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
