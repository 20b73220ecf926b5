//! Rankings of agents, made at most once a minute.
//!
//! Invariants:
//! - A ranking is read whole from the database, so its sums and its time belong together.
//! - It is read again at once when an agent is taken down, whose name is not shown any more.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Ranked, Store};
use types::Timestamp;

use crate::state::kept::Kept;

/// Agents of a ranking.
const PLACES: u32 = 100;
/// UTC days of the shorter period, today included.
const DAYS: i64 = 30;

/// Period of a ranking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = types::vocabulary::plain)]
pub(crate) enum Period {
    /// The last 30 UTC days.
    #[default]
    #[serde(rename = "30d")]
    Days,
    /// All time since the first points.
    #[serde(rename = "all")]
    All,
}

/// Rankings of this process.
#[derive(Debug, Default)]
pub(crate) struct Leaderboard {
    boards: [Kept<Arc<Board>>; 2],
}

/// Ranking of agents, as read at one time.
#[derive(Debug)]
pub(crate) struct Board {
    /// Time at which it was read.
    pub(crate) at: Timestamp,
    /// The agents, best first.
    pub(crate) agents: Vec<Ranked>,
}

impl Leaderboard {
    /// Returns the ranking of a period, at most a minute old.
    pub(crate) async fn of(&self, store: &Store, period: Period, now: Timestamp) -> Result<Arc<Board>, store::Error> {
        let (place, since) = match period {
            Period::Days => (0, Some(now.day() - (DAYS - 1))),
            Period::All => (1, None),
        };
        let moderation = store.moderation();
        let is_outdated = |at| moderation.agents_fell_since(at);
        let make = || async {
            let agents = store.points().ranking(since, PLACES).await?;
            Ok(Arc::new(Board { at: now, agents }))
        };
        self.boards[place].get(now, is_outdated, make).await
    }
}
