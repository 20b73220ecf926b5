//! Figures of the service: sign-ups, sales, rows, and jobs that fail.
//!
//! Invariant: rendered for administrators only. A day that was not counted is drawn as none and said to be so.

use askama::Template;
use types::money::MicroUsdc;

use crate::chart::Bars;
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::number::{counted, grouped};
use crate::time::Instant;

/// `GET /console/figures`. Form: `POST /console/jobs/{id}/retry`.
#[derive(Debug, Template)]
#[template(path = "console/figures.html")]
pub struct FiguresPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Time of the latest count; `None` before the first.
    pub counted_at: Option<Instant>,
    /// Accounts of all days.
    pub accounts: u64,
    /// Days, oldest first, each of the last 30.
    pub days: Vec<FigureBar>,
    /// Jobs that are tried again by themselves, up to a thousand.
    pub retried: u64,
    /// Jobs that were given up, up to a thousand.
    pub given_up: u64,
    /// Jobs whose last try failed, oldest first.
    pub jobs: Vec<FailingJobRow>,
}

/// Figures of a UTC day.
#[derive(Clone, Copy, Debug, Default)]
pub struct FigureBar {
    /// Beginning of the day.
    pub day: Instant,
    /// Number of accounts made on the day, without those deleted since because nobody confirmed their address.
    pub sign_ups: u64,
    /// Number of these whose address is confirmed.
    pub confirmed: u64,
    /// Sales for money.
    pub sales: u64,
    /// Prices that credits paid.
    pub credit: MicroUsdc,
    /// Prices that wallets paid.
    pub wallet: MicroUsdc,
    /// Fees of the sales for money, summed.
    pub fee: MicroUsdc,
    /// Sales for trial credit.
    pub trials: u64,
    /// Versions added to datasets.
    pub versions: u64,
    /// Rows of these versions.
    pub rows: u64,
    /// Number of versions of units that were published.
    pub units: u64,
}

/// Job that fails.
#[derive(Clone, Debug)]
pub struct FailingJobRow {
    /// Id of the job.
    pub id: String,
    /// Kind of the work.
    pub kind: String,
    /// Error of the last try.
    pub error: String,
    /// Number of tries.
    pub tries: u32,
    /// Time since when it is there.
    pub since: Instant,
    /// True if it was given up.
    pub is_given_up: bool,
}

impl FailingJobRow {
    fn kind_words(&self) -> String {
        crate::words::job(&self.kind)
    }
}

/// Days that the figures at the top are of.
const WEEK: usize = 7;

impl FiguresPage {
    /// Returns the last seven days.
    fn week(&self) -> &[FigureBar] {
        &self.days[self.days.len().saturating_sub(WEEK)..]
    }

    /// Returns the seven days before these.
    fn week_before(&self) -> &[FigureBar] {
        let end = self.days.len().saturating_sub(WEEK);
        &self.days[end.saturating_sub(WEEK)..end]
    }

    fn sign_ups(&self) -> u64 {
        self.week().iter().map(|day| day.sign_ups).sum()
    }

    fn rows(&self) -> u64 {
        self.week().iter().map(|day| day.rows).sum()
    }

    fn rows_before(&self) -> u64 {
        self.week_before().iter().map(|day| day.rows).sum()
    }

    fn sales(&self) -> String {
        counted(self.week().iter().map(|day| day.sales).sum(), "sale", "sales")
    }

    fn turnover(&self) -> i64 {
        self.week()
            .iter()
            .map(|day| day.credit.0.saturating_add(day.wallet.0))
            .sum()
    }

    fn units(&self) -> u64 {
        self.week().iter().map(|day| day.units).sum()
    }

    fn sign_up_bars(&self) -> Bars {
        let bars = self.days.iter().map(|day| {
            (
                day.day.day(),
                vec![day.confirmed, day.sign_ups.saturating_sub(day.confirmed)],
            )
        });
        let all: u64 = self.days.iter().map(|day| day.sign_ups).sum();
        let label = format!("Sign-ups a day in {} days: {} in all", self.days.len(), grouped(all));
        Bars::of_series(
            "Sign-ups a day",
            label,
            &[("confirmed", "b1"), ("not confirmed", "b3")],
            &bars.collect::<Vec<_>>(),
        )
    }

    fn sales_bars(&self) -> Bars {
        let micro = |amount: MicroUsdc| u64::try_from(amount.0).unwrap_or(0);
        let bars = self
            .days
            .iter()
            .map(|day| (day.day.day(), vec![micro(day.credit), micro(day.wallet)]));
        let label = format!("Sales a day in {} days, in test USDC", self.days.len());
        Bars::of_money(
            "Sales a day",
            label,
            &[("with credit", "b1"), ("from wallets", "b2")],
            &bars.collect::<Vec<_>>(),
        )
    }

    fn rows_bars(&self) -> Bars {
        let bars = self.days.iter().map(|day| (day.day.day(), vec![day.rows]));
        let label = format!("Rows added a day in {} days", self.days.len());
        Bars::of_series("Rows added a day", label, &[("added", "b1")], &bars.collect::<Vec<_>>())
    }

    /// Returns the days that had something, the latest first.
    fn table(&self) -> Vec<&FigureBar> {
        let has = |day: &&FigureBar| day.sign_ups + day.sales + day.trials + day.versions + day.units > 0;
        self.days.iter().rev().filter(has).collect()
    }
}
