//! Head of the pages of a dataset: what it is, its figures, what it costs, and the tabs.

use types::money::MicroUsdc;
use types::{Timestamp, Version};

use crate::chrome::PageLayout;
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

/// Head of a dataset, with the box beside it.
#[derive(Clone, Debug)]
pub struct DatasetHead {
    /// Slug of the dataset.
    pub slug: String,
    /// Title of the dataset.
    pub title: String,
    /// Readme of the dataset, in Markdown. Its first paragraph stands below the title.
    pub readme: String,
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
    /// Newest version whose rows the reader may read, if there is one.
    pub readable: Option<Version>,
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

    /// Returns the address at which a wallet pays for the newest version.
    pub(crate) fn pay(&self) -> String {
        format!("/paid/dataset?slug={}&version={}", self.slug, self.version)
    }

    /// Returns what a person says to an agent that buys the newest version.
    pub(crate) fn ask(&self) -> String {
        format!("Buy {} version {} on Sluice.", self.slug, self.version)
    }

    /// Returns the call by which an agent buys the newest version with credits.
    pub(crate) fn buy(&self, chrome: &PageLayout) -> String {
        let (base, slug, version) = (&chrome.base, &self.slug, self.version);
        format!(
            "curl -s {base}/projects/{slug}/buy -H \"Authorization: Bearer $SLUICE_KEY\" -H \"Content-Type: \
             application/json\" -d '{{\"version\": {version}}}'"
        )
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

    pub(crate) fn pull(&self) -> String {
        format!("sluice pull {}", self.slug)
    }
}
