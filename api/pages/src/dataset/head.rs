//! Head of the pages of a dataset: what it is, its figures, what it costs, and the tabs.

use types::money::MicroUsdc;
use types::{OperatorId, Timestamp, Version};

use crate::document;

/// Most characters of the line below a title.
const MAX_LEDE_CHARS: usize = 220;

/// Tab of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetTab {
    /// Rows, readme and schema.
    Data,
    /// Statements over the rows.
    Sql,
    /// All versions, and each of them.
    Versions,
}

/// Right of the reader to the rows, and the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatasetOffer {
    /// The account of the reader maintains the dataset.
    Own,
    /// The dataset costs nothing.
    Free,
    /// A version costs this.
    Priced {
        /// Price of a version.
        price: MicroUsdc,
        /// True if trial credit pays it.
        takes_trial_credit: bool,
        /// Newest version that the reader's account has bought.
        bought: Option<Version>,
    },
}

/// Purchase by which the reader's account may read a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetPurchase {
    /// Name of the agent that bought it; none if a wallet did.
    pub agent: Option<String>,
    /// Time of the purchase.
    pub at: Timestamp,
    /// Price that was paid.
    pub price: MicroUsdc,
}

/// Head of a dataset, with the box beside it.
#[derive(Clone, Debug)]
pub struct DatasetHead {
    /// Slug of the dataset.
    pub slug: String,
    /// Title of the dataset.
    pub title: String,
    /// Readme of the dataset, in Markdown. Its first paragraph stands below the title.
    pub readme: String,
    /// Name of the agent that made the dataset, if it is among those that contributed most.
    pub agent: Option<String>,
    /// Account that sells or maintains it.
    pub operator: OperatorId,
    /// Name of that account; `None` if it hides it.
    pub account: Option<String>,
    /// Status: `open`, `paused` or `archived`.
    pub status: &'static str,
    /// Id of the licence.
    pub license: String,
    /// Tags of the dataset.
    pub tags: Vec<String>,
    /// True if nobody but its account knows of it.
    pub is_private: bool,
    /// Newest version, 0 before the first.
    pub version: Version,
    /// Number of records of the newest version.
    pub records: u64,
    /// Time of the merge of the newest version; before the first, of the creation.
    pub updated_at: Timestamp,
    /// Bytes of the files of the newest version; none where they cannot be read.
    pub bytes: Option<u64>,
    /// Number of agents whose contributions were merged.
    pub contributors: u64,
    /// Right of the reader, and the price.
    pub offer: DatasetOffer,
    /// The newest purchase of the reader's account, if it is known.
    pub purchase: Option<DatasetPurchase>,
    /// Number of sales that were not refunded; the first page of the dataset counts them, and the others say nothing of
    /// them.
    pub sold: u64,
    /// Number of reviews and questions; the first page of the dataset counts them, and the others say nothing of them.
    pub review_count: u64,
    /// Newest version whose rows the reader may read, if there is one.
    pub readable: Option<Version>,
    /// Number of records of that version; none where they cannot be counted.
    pub readable_records: Option<u64>,
    /// Bytes of the files of that version.
    pub readable_bytes: Option<u64>,
    /// Tab that the page is of.
    pub tab: DatasetTab,
}

impl DatasetHead {
    /// Returns the line below the title.
    pub(crate) fn lede(&self) -> String {
        document::lede(&self.readme, MAX_LEDE_CHARS)
    }

    pub(crate) fn is_here(&self, tab: DatasetTab) -> bool {
        self.tab == tab
    }

    /// Returns the class of the status.
    pub(crate) fn mark(&self) -> &'static str {
        match self.status {
            "open" => "live",
            "paused" => "hold",
            _ => "off",
        }
    }

    /// Returns the newest version that the reader has not bought, with its price, if there is something to buy.
    pub(crate) fn for_sale(&self) -> Option<MicroUsdc> {
        match self.offer {
            DatasetOffer::Priced { price, bought, .. } if bought < Some(self.version) => Some(price),
            _ => None,
        }
    }

    /// Returns the number of versions after the newest that the reader may read.
    pub(crate) fn newer(&self) -> u64 {
        self.readable
            .map_or(0, |readable| self.version.0.saturating_sub(readable.0))
    }

    /// Returns the newest version that the reader may read, with the numbers of its records and bytes, if there are later
    /// ones.
    pub(crate) fn earlier(&self) -> Option<(Version, u64, Option<u64>)> {
        let readable = self.readable.filter(|readable| *readable < self.version)?;
        Some((readable, self.readable_records?, self.readable_bytes))
    }

    /// Returns the page at which a person buys the newest version.
    pub(crate) fn buy(&self) -> String {
        format!("/projects/{}/buy?version={}", self.slug, self.version)
    }

    /// Returns what a person says to an agent that buys the newest version.
    pub(crate) fn ask(&self) -> String {
        format!("Buy {} version {} on Sluice.", self.slug, self.version)
    }

    /// Returns true if trial credit pays for a version.
    pub(crate) fn takes_trial_credit(&self) -> bool {
        matches!(
            self.offer,
            DatasetOffer::Priced {
                takes_trial_credit: true,
                ..
            }
        )
    }
}
