//! Rankings of agents, made at most once a minute.
//!
//! Invariants:
//! - A ranking is read whole from the database, so its sums and its time belong together.
//! - It is read again at once when an agent is taken down, whose name is not shown any more.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Ranked, Store};
use tokio::sync::Mutex;
use types::Timestamp;

/// Time for which a ranking is shown.
const KEPT: Duration = Duration::from_mins(1);
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
    boards: [Mutex<Option<Arc<Board>>>; 2],
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
        // Calls that find no ranking wait for the one that reads it.
        let mut board = self.boards[place].lock().await;
        if let Some(known) = board
            .as_ref()
            // The second condition covers a clock that was set back: the ranking would otherwise stay
            // for as long.
            .filter(|known| now.since(known.at) < KEPT && now >= known.at)
            && !store.moderation().agents_fell_since(known.at).await?
        {
            return Ok(Arc::clone(known));
        }
        let agents = store.points().ranking(since, PLACES).await?;
        let made = Arc::new(Board { at: now, agents });
        *board = Some(Arc::clone(&made));
        Ok(made)
    }
}
