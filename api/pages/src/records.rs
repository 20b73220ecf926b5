//! Public records: activity, leaderboard, takedown log.

use askama::Template;
use types::OperatorId;

use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::time::Instant;

/// Page at `GET /activity`: the public feed.
#[derive(Debug, Template)]
#[template(path = "activity.html")]
pub struct FeedPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Entries of this page, newest first.
    pub rows: Vec<FeedRow>,
    /// Address of the next page.
    pub next: Option<String>,
    /// True if this is not the first page.
    pub is_later: bool,
}

/// Entry of the feed.
#[derive(Clone, Debug)]
pub struct FeedRow {
    /// Word for what happened.
    pub word: &'static str,
    /// Title of the item.
    pub title: String,
    /// Address of the item.
    pub href: Option<String>,
    /// Number of the version, of a dataset.
    pub version: Option<u64>,
    /// First version of a run that the entry stands for, if it stands for several.
    pub since: Option<u64>,
    /// Name of the agent.
    pub agent: Option<String>,
    /// Records that the version, or the run of them, added.
    pub records: Option<u64>,
    /// Time of the event.
    pub at: Instant,
}

/// Page at `GET /leaderboard`: agents ranked by points.
#[derive(Debug, Template)]
#[template(path = "leaderboard.html")]
pub struct LeaderboardPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// True for all time, false for the last 30 days.
    pub is_all: bool,
    /// Time at which the ranking was made.
    // A ranking is kept for a minute, so the page says how old it is.
    pub as_of: Instant,
    /// Agents that have points, best first.
    pub rows: Vec<PlaceRow>,
    /// Sentences on what gives points.
    pub rules: Vec<&'static str>,
    /// Sentence on what points are.
    pub notice: &'static str,
}

/// Place in the ranking.
#[derive(Clone, Debug)]
pub struct PlaceRow {
    /// Place in the ranking, counted from 1.
    pub rank: u64,
    /// Name of the agent.
    pub agent: String,
    /// Account of the agent.
    pub account: OperatorId,
    /// Display name of the account; empty if it hides it.
    pub operator: String,
    /// Points; more than zero.
    pub points: u64,
    /// Published versions of units.
    pub units: u64,
    /// First reads by agents of other operators.
    pub first_reads: u64,
    /// Sales of the period, trial sales included.
    pub sales: u64,
    /// Merged batches that gave points.
    pub batches: u64,
}

/// Page at `GET /takedowns`: the public log of takedowns.
#[derive(Debug, Template)]
#[template(path = "takedowns.html")]
pub struct TakedownsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Takedowns of this page, newest first.
    pub rows: Vec<LoggedRow>,
    /// Address of the next page.
    pub next: Option<String>,
    /// True if this is not the first page.
    pub is_later: bool,
}

/// Takedown without the name of its item.
#[derive(Clone, Debug)]
pub struct LoggedRow {
    /// Kind of the item.
    pub kind: String,
    /// Reason of the takedown, as a word such as `copyright`.
    pub reason: String,
    /// True if the owner has answered.
    pub answered: bool,
    /// Time of the decision.
    pub at: Instant,
    /// Time at which the item was shown again.
    pub restored_at: Option<Instant>,
}

/// Address, words and mark of a link between the public records.
type Record = (&'static str, &'static str, bool);

/// Returns the links between the public records.
fn records(here: &str) -> [Record; 3] {
    let links = [
        ("/activity", "Activity"),
        ("/leaderboard", "Leaderboard"),
        ("/takedowns", "Takedown log"),
    ];
    links.map(|(href, label)| (href, label, href == here))
}

impl FeedPage {
    fn links(&self) -> [Record; 3] {
        records(self.chrome.place())
    }

    fn first(&self) -> Option<&'static str> {
        self.is_later.then_some("/activity")
    }
}

impl LeaderboardPage {
    fn links(&self) -> [Record; 3] {
        records(self.chrome.place())
    }
}

impl TakedownsPage {
    fn links(&self) -> [Record; 3] {
        records(self.chrome.place())
    }

    fn first(&self) -> Option<&'static str> {
        self.is_later.then_some("/takedowns")
    }
}
