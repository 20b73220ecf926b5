//! The tasks of the marketplace: reviews of knowledge units, money, and the search.
//!
//! Invariant: a pause of the reviews is known before the first submission is appended.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use api::App;
use api::flow::PaymentReconciler;
use api::flow::PayoutTask;
use api::flow::jobs::JobRunner;
use api::flow::jobs::delete_table::DeleteTable;
use api::flow::jobs::later_prints::MakeVectors;
use api::flow::jobs::mail::MailHandler;
use api::flow::jobs::points::BatchPoints;
use api::flow::jobs::prints::ForgetFingerprints;
use api::flow::jobs::requests::{MatchJob, RequestEndJob};
use api::flow::{FiguresKeeper, MoneyKeeper, Profiles, Summaries, UnitSweeper};
use api::state::validation::ReviewState;
use catalog::Catalog;
use eventlog::EventLog;
use futures_util::FutureExt;
use operators::knowledge::Embedder;
use operators::summary::Summariser;
use store::Store;
use types::Clock;

use super::Tasks;
use crate::config::Config;

/// Starts the task that appends open units again and holds them while reviews are paused. Returns the state of the
/// pause, read before the first submission, so that none is appended during one.
pub(super) async fn keep_units(
    store: &Store,
    log: &Arc<dyn EventLog>,
    clock: &Arc<dyn Clock>,
    sweeping: &api::state::sweeper_config::SweeperConfig,
    tasks: &mut Tasks,
) -> anyhow::Result<ReviewState> {
    let validation = ReviewState::default();
    validation.refresh(store).await?;
    let (reading, state) = (store.clone(), validation.clone());
    tasks.spawn("validation", |stop| state.run(reading, stop).map(anyhow::Ok));
    let (log, clock) = (Arc::clone(log), Arc::clone(clock));
    let units = UnitSweeper::new(store.clone(), log, clock, sweeping.clone(), validation.clone());
    tasks.spawn("unit sweeper", |stop| units.run(stop).map(anyhow::Ok));
    Ok(validation)
}

/// Starts the tasks that settle payments whose end is not known, that pay sellers out, and that keep the index of the
/// search. `is_alone` says that no other process takes payments of this database.
///
/// # Errors
/// A database that does not answer.
pub(super) async fn serve_market(app: &App, is_alone: bool, tasks: &mut Tasks) -> anyhow::Result<()> {
    let (searching, read) = (app.process.searching.clone(), app.store.clone());
    tasks.spawn("search", |stop| searching.run(read, stop).map(anyhow::Ok));
    let (store, clock) = (app.store.clone(), Arc::clone(&app.clock));
    let reconciler = PaymentReconciler::new(store, Arc::clone(&app.payments), clock);
    if is_alone {
        let taken = reconciler.take_over().await;
        taken.map_err(|error| anyhow!("the payments of an earlier process: {}", error.reason()))?;
    }
    tasks.spawn("payments", |stop| reconciler.run(stop).map(anyhow::Ok));
    let (store, clock) = (app.store.clone(), Arc::clone(&app.clock));
    let payouts = PayoutTask::new(store, Arc::clone(&app.payments), clock);
    tasks.spawn("payouts", |stop| payouts.run(stop).map(anyhow::Ok));
    Ok(())
}

/// Starts the task that writes summaries of public datasets, if there is a model for it.
pub(super) fn write_summaries(app: &App, summariser: Option<Arc<dyn Summariser>>, tasks: &mut Tasks) {
    let Some(summariser) = summariser else { return };
    let (store, catalog, clock) = (app.store.clone(), app.catalog.clone(), Arc::clone(&app.clock));
    let summaries = Summaries::new(store, catalog, clock, summariser);
    tasks.spawn("summaries", |stop| summaries.run(stop).map(anyhow::Ok));
}

/// Starts the task that builds profiles of versions.
pub(super) fn build_profiles(app: &App, tasks: &mut Tasks) {
    let profiles = Profiles::new(app.clone());
    tasks.spawn("profiles", |stop| profiles.run(stop).map(anyhow::Ok));
}

/// Starts the keepers of the money and of the figures, and returns the prices that it goes by.
pub(super) fn keep_money(
    config: &Config,
    store: &Store,
    catalog: &Catalog,
    clock: &Arc<dyn Clock>,
    tasks: &mut Tasks,
) -> Arc<pay::Tariff> {
    let tariff = Arc::new(config.tariff());
    let keeper = MoneyKeeper::new(
        store.clone(),
        catalog.clone(),
        Arc::clone(clock),
        Arc::clone(&tariff),
        config.limits.storage_per_operator.0,
        // A window that is set short, for a test, is looked at as often.
        Duration::from_mins(1).min(tariff.dispute_window()),
    );
    tasks.spawn("money keeper", |stop| keeper.run(stop).map(anyhow::Ok));
    let figures = FiguresKeeper::new(
        store.clone(),
        Arc::clone(clock),
        Duration::from_mins(1).min(tariff.dispute_window()),
    );
    tasks.spawn("figures", |stop| figures.run(stop).map(anyhow::Ok));
    tariff
}

/// Starts the runner of the jobs. Older units without vectors of the embedder get them.
///
/// # Errors
/// A database that cannot be used.
pub(super) async fn run_jobs(
    app: &App,
    letters: MailHandler,
    embedder: Arc<dyn Embedder>,
    tasks: &mut Tasks,
) -> anyhow::Result<()> {
    let (store, clock) = (app.store.clone(), Arc::clone(&app.clock));
    let forget_prints = ForgetFingerprints::new(store.clone(), app.catalog.clone(), Arc::clone(&clock));
    let vectors = MakeVectors::new(store.clone(), app.catalog.clone(), embedder, Arc::clone(&clock));
    vectors.add(None).await?;
    let delete_table = DeleteTable::new(store.clone(), app.catalog.clone(), Arc::clone(&clock));
    let jobs = JobRunner::new(store.clone(), Arc::clone(&clock))
        .with(MakeVectors::KIND, Arc::new(vectors))
        .with(DeleteTable::KIND, Arc::new(delete_table))
        .with(api::rules::letters::KIND, Arc::new(letters))
        .with(BatchPoints::KIND, Arc::new(BatchPoints::new(store.clone())))
        .with(ForgetFingerprints::KIND, Arc::new(forget_prints))
        .with(RequestEndJob::KIND, Arc::new(RequestEndJob::new(store, clock)))
        .with(MatchJob::KIND, Arc::new(MatchJob::new(app.clone())));
    tasks.spawn("jobs", |stop| jobs.run(stop).map(anyhow::Ok));
    Ok(())
}
