//! Keeper of the figures: counts what happened on a UTC day, for the page of administrators and the metrics.
//!
//! Invariant: a count is of the tables, never a sum of increments. Any number of processes may count; the latest count
//! stays, and one that was missed is made up for by the next.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use store::{FigureDay, Store};
use tokio_util::sync::CancellationToken;
use types::{Clock, Timestamp, metric};

use crate::periodic::PeriodicTimer;
use types::error::with_causes;

/// Time after which figures that did not change are kept anew, so that their age tells that somebody counts.
const KEPT_FOR: Duration = Duration::from_mins(10);
/// Days that the page shows; those that were never counted are counted at the start.
const DAYS: i64 = 30;
/// Time after midnight (UTC) until which the day before is counted too: what was begun before midnight is committed then.
const AFTER_MIDNIGHT: Duration = Duration::from_mins(10);

/// Task that counts.
#[derive(Debug)]
pub struct FiguresKeeper {
    store: Store,
    clock: Arc<dyn Clock>,
    every: Duration,
}

impl FiguresKeeper {
    /// Creates a keeper that has not started. It counts at the interval `every`.
    pub const fn new(store: Store, clock: Arc<dyn Clock>, every: Duration) -> Self {
        Self { store, clock, every }
    }

    /// Counts until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        // An interval of zero would panic.
        let period = self.every.max(Duration::from_millis(10));
        let counting = async {
            let mut rounds = PeriodicTimer::every(period, &stop);
            while rounds.next().await {
                if let Err(error) = self.count(self.clock.now()).await {
                    tracing::warn!(
                        error = with_causes(&error),
                        "cannot count the figures of the service; trying again"
                    );
                }
            }
        };
        stop.run_until_cancelled(counting).await;
    }

    /// Counts the days that need it, the present one last, and sets the metrics.
    ///
    /// # Errors
    /// A database that does not answer. What was counted before stays.
    pub async fn count(&self, now: Timestamp) -> Result<FigureDay, store::Error> {
        let (staff, today) = (self.store.staff(), now.day());
        let known: HashMap<i64, FigureDay> = staff
            .figures(today - DAYS)
            .await?
            .into_iter()
            .map(|day| (day.day, day))
            .collect();
        let is_final = |day: i64| {
            let settled = Timestamp::of_day(day + 1).plus(AFTER_MIDNIGHT);
            known.get(&day).is_some_and(|kept| kept.counted_at >= settled)
        };
        let mut changed = Vec::new();
        for day in today - DAYS + 1..today {
            if !is_final(day) {
                changed.push(staff.figures_counted(day, now).await?);
            }
        }
        let day = staff.figures_counted(today, now).await?;
        // A service that nobody uses writes nothing each minute.
        let is_known = known.get(&today).is_some_and(|before| {
            now.since(before.counted_at) < KEPT_FOR
                && FigureDay {
                    counted_at: day.counted_at,
                    ..*before
                } == day
        });
        if !is_known {
            changed.push(day);
        }
        staff.figures_keep(changed).await?;
        let failing = staff.jobs_failing_count().await?;
        let gauges = [
            (metric::DAY_SIGN_UPS, day.sign_ups),
            (metric::DAY_SALES, day.sales),
            (metric::DAY_SALES_CENTS, cents(&day)),
            (metric::DAY_ROWS, day.rows),
        ];
        for (name, value) in gauges {
            metrics::gauge!(name).set(as_gauge(value));
        }
        for (state, value) in [("retried", failing.retried), ("given_up", failing.given_up)] {
            metrics::gauge!(metric::JOBS_FAILING, "state" => state).set(as_gauge(value));
        }
        Ok(day)
    }
}

/// Returns the prices of a day's sales for money, in whole cents.
fn cents(day: &FigureDay) -> u64 {
    let micros = day.credit.0.saturating_add(day.wallet.0);
    u64::try_from(micros / 10_000).unwrap_or(0)
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a double")]
const fn as_gauge(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use store::Options;
    use types::clock::ManualClock;

    use super::*;

    #[tokio::test]
    async fn each_day_is_counted_and_the_present_one_again() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("db").display());
        let store = Store::connect(&url, Options::default()).await.unwrap();
        let now = Timestamp::of_day(20_000).plus(Duration::from_hours(12));
        let keeper = FiguresKeeper::new(store.clone(), Arc::new(ManualClock::at(now)), Duration::from_mins(1));
        let day = keeper.count(now).await.unwrap();
        assert_eq!((day.day, day.accounts, day.sales), (20_000, 0, 0));
        let days = store.staff().figures(0).await.unwrap();
        assert_eq!((days.len(), days[0].day, days[29].day), (30, 19_971, 20_000));
        // What did not change is not written each time.
        let later = now.plus(Duration::from_mins(1));
        keeper.count(later).await.unwrap();
        assert_eq!(store.staff().figures(20_000).await.unwrap()[0].counted_at, now);
        let later = now.plus(KEPT_FOR);
        keeper.count(later).await.unwrap();
        assert_eq!(store.staff().figures(20_000).await.unwrap()[0].counted_at, later);
    }
}
