//! What an account uses of what is free, who uses it, and what more costs.
//!
//! Invariant: a figure is counted or left out, never estimated; the day on which the free part ends says that it is about.

use askama::Template;
use types::money::MicroUsdc;

use crate::allowance::Allowance;
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::number::size;
use crate::spend::CreditBalance;
use crate::time::Instant;

/// Page at `GET /console/quota`.
#[derive(Debug, Template)]
#[template(path = "console/quota.html")]
pub struct QuotaPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Bytes sent in the UTC month, and those that may be.
    pub egress: Allowance,
    /// Free bytes of egress in a month.
    pub free_egress: u64,
    /// Beginning of the next month.
    pub next_month: Instant,
    /// Time at which the free part ends if the month goes on as it began.
    pub ends_about: Option<Instant>,
    /// Bytes stored, and those that may be.
    pub storage: Allowance,
    /// Bytes stored that cost nothing.
    pub free_storage: u64,
    /// Units and revisions of the UTC day.
    pub knowledge: Allowance,
    /// Contributions to public datasets of the UTC day.
    pub contributions: Allowance,
    /// Sentence about reviews, if they do not run.
    pub reviews_wait: Option<String>,
    /// Credits of the account.
    pub credits: CreditBalance,
    /// Readers of the bytes of the month, those with the most first.
    pub readers: Vec<EgressShare>,
    /// Datasets that are stored, the largest first.
    pub stored: Vec<StoredDataset>,
    /// Number of datasets that are not listed.
    pub more_stored: u64,
    /// Bytes of files that are being uploaded.
    pub uploading: u64,
    /// Limits on numbers, such as those of active datasets and of agents.
    pub counts: Vec<CountLimit>,
    /// Earlier months, newest first.
    pub months: Vec<MonthOfEgress>,
    /// Bytes of a block of egress or storage.
    pub block: u64,
    /// Price of a block of egress.
    pub egress_block: MicroUsdc,
    /// Price of a block of storage for a day.
    pub storage_block_day: MicroUsdc,
}

/// Reader of bytes of the month.
#[derive(Clone, Debug)]
pub struct EgressShare {
    /// Name of the agent, if one read.
    pub agent: Option<String>,
    /// Name of the app through which it read, if one did.
    pub app: Option<String>,
    /// Number of bytes.
    pub bytes: u64,
    /// Hundredths of the bytes of the month.
    pub share: u64,
}

/// Dataset that is stored.
#[derive(Clone, Debug)]
pub struct StoredDataset {
    /// Slug of the dataset.
    pub slug: String,
    /// Title of the dataset.
    pub title: String,
    /// Words about it, such as `private, archived`.
    pub facts: String,
    /// Bytes of its newest version.
    pub bytes: u64,
}

/// Limit on a number.
#[derive(Clone, Debug)]
pub struct CountLimit {
    /// Name of the limit, such as `Active datasets`.
    pub label: &'static str,
    /// Number now, where it is counted for the account.
    pub used: Option<u64>,
    /// Greatest number that the limit allows.
    pub most: u64,
}

/// Bytes sent in a month.
#[derive(Clone, Copy, Debug)]
pub struct MonthOfEgress {
    /// Beginning of the month.
    pub begin: Instant,
    /// Number of bytes.
    pub bytes: u64,
}

impl QuotaPage {
    /// Returns the name of the month.
    fn month(&self) -> String {
        self.chrome.now.text("%B")
    }

    fn month_of(&self, month: &MonthOfEgress) -> String {
        let begin = month.begin.text("%B %Y");
        if begin == self.chrome.now.text("%B %Y") {
            format!("{begin}, until now")
        } else {
            begin
        }
    }

    /// Returns the price of a number of bytes by the price of a block.
    fn gib(&self, block: MicroUsdc, days: i64) -> MicroUsdc {
        let blocks = i64::try_from((1_u64 << 30) / self.block.max(1)).unwrap_or(0);
        MicroUsdc(block.0.saturating_mul(blocks).saturating_mul(days))
    }

    fn egress_gib(&self) -> MicroUsdc {
        self.gib(self.egress_block, 1)
    }

    /// Returns the price of a gibibyte that is stored for 30 days.
    fn storage_gib(&self) -> MicroUsdc {
        self.gib(self.storage_block_day, 30)
    }

    /// Returns the bytes of egress that the bought credits pay for.
    fn covered(&self) -> String {
        let blocks = self.credits.bought.0.checked_div(self.egress_block.0).unwrap_or(0);
        size(u64::try_from(blocks).unwrap_or(0).saturating_mul(self.block))
    }
}
