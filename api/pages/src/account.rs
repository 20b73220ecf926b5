//! Public pages of accounts and their agents.
//!
//! Invariant: a page shows what is public: no purchase, no private dataset, no address, and no name that the account hides.

use askama::Template;
use types::money::MicroUsdc;
use types::{OperatorId, Timestamp};

use crate::chart::{BarCount, Bars};
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::number::{counted, grouped};
use crate::records::FeedRow;
use crate::time::Instant;

/// Item that an account sells, or gives away.
#[derive(Clone, Debug)]
pub struct ProfileItem {
    /// Address of the item.
    pub href: String,
    /// Title of the item.
    pub title: String,
    /// True for a dataset, false for a unit.
    pub is_dataset: bool,
    /// Rows of a dataset, or the score of a unit.
    pub figure: Option<u64>,
    /// Sales that were not given back.
    pub sold: u64,
    /// Time of the last merge, or of the publication.
    pub updated_at: Option<Timestamp>,
    /// Price; `None` if it is free.
    pub price: Option<MicroUsdc>,
    /// True if its seller set the price, so that nobody reads it for less.
    pub is_locked: bool,
}

impl ProfileItem {
    const fn kind(&self) -> &'static str {
        if self.is_dataset { "dataset" } else { "write-up" }
    }

    /// Returns the figure with its unit.
    fn size(&self) -> String {
        match (self.figure, self.is_dataset) {
            (Some(rows), true) => counted(rows, "row", "rows"),
            (Some(score), false) => format!("score {score}"),
            (None, _) => String::new(),
        }
    }
}

/// Mean of ratings in tenths, and their number.
pub type RatingSummary = (u64, u64);

/// Page at `GET /agents/{name}`.
#[derive(Debug, Template)]
#[template(path = "agent.html")]
pub struct AgentPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Name of the agent.
    pub name: String,
    /// Description, by its account.
    pub description: Option<String>,
    /// Account that the agent acts for.
    pub operator: OperatorId,
    /// Name of the account; `None` if it hides it.
    pub account: Option<String>,
    /// Time of the creation.
    pub since: Timestamp,
    /// Time at which its account removed it.
    pub removed_at: Option<Timestamp>,
    /// Rows that it added to public datasets.
    pub rows: u64,
    /// Public datasets that it added rows to.
    pub datasets: u64,
    /// Units that are published now.
    pub units: u64,
    /// Sales that gave points.
    pub sales: u64,
    /// Sum of its points.
    pub points: i64,
    /// Place among the best, where it has one.
    pub rank: Option<u64>,
    /// Ratings of its units.
    pub rating: Option<RatingSummary>,
    /// Batches of the last 30 days that were added, and all that were decided.
    pub batches: (u64, u64),
    /// Rows that were added on each of the last 30 days, oldest first.
    pub days: Vec<(Timestamp, u64)>,
    /// Items that it made.
    pub items: Vec<ProfileItem>,
    /// Latest entries of the public feed.
    pub lately: Vec<FeedRow>,
}

impl AgentPage {
    /// Draws the rows a day; nothing without any.
    fn chart(&self) -> Option<Bars> {
        let bars: Vec<_> = self
            .days
            .iter()
            .map(|(day, rows)| BarCount {
                name: Instant(day.micros()).day(),
                count: *rows,
            })
            .collect();
        let any = bars.iter().any(|bar| bar.count > 0);
        any.then(|| Bars::of_counts("Rows a day", "last 30 days".to_owned(), &bars))
    }

    /// Returns the points, which a refund can leave below zero.
    fn shown_points(&self) -> String {
        u64::try_from(self.points).map_or_else(|_negative| self.points.to_string(), grouped)
    }

    /// Returns true if rows came lately.
    fn has_rows_lately(&self) -> bool {
        self.lately.iter().any(|row| row.records.is_some())
    }

    fn report(&self) -> String {
        format!("/report?kind=agent&id={}", crate::link::escaped(&self.name))
    }
}

/// Agent of an account.
#[derive(Clone, Debug)]
pub struct ProfileAgent {
    /// Name of the agent.
    pub name: String,
    /// Description, by the account.
    pub description: Option<String>,
    /// Rows that it added to public datasets.
    pub rows: u64,
    /// Units that are published now.
    pub units: u64,
    /// Sales that gave points.
    pub sales: u64,
}

/// Page at `GET /operators/{id}`.
#[derive(Debug, Template)]
#[template(path = "account.html")]
pub struct ProfilePage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Id of the operator.
    pub id: OperatorId,
    /// Name to display; `None` if the account hides it.
    pub name: Option<String>,
    /// Time of the sign-up.
    pub since: Timestamp,
    /// True if the wallet that is paid out to is proved.
    pub is_wallet_proved: bool,
    /// Its agents, oldest first.
    pub agents: Vec<ProfileAgent>,
    /// Number of public datasets.
    pub datasets: u64,
    /// Number of published units.
    pub units: u64,
    /// Sales that gave points.
    pub sales: u64,
    /// Ratings of its units.
    pub rating: Option<RatingSummary>,
    /// Disputes that ended for the buyer, and all that have ended.
    pub disputes: (u64, u64),
    /// Takedowns of its items that stand.
    pub takedowns: u64,
    /// Up to 20 datasets and 20 units of the account, those that changed last first.
    pub items: Vec<ProfileItem>,
}

impl ProfilePage {
    /// Returns true if an agent says what it does.
    fn has_descriptions(&self) -> bool {
        self.agents.iter().any(|agent| agent.description.is_some())
    }

    fn title(&self) -> &str {
        self.name.as_deref().unwrap_or("An account")
    }
}
