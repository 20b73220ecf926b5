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

use crate::state::kept::TtlCell;

/// Agents of a ranking.
const PLACES: u32 = 100;
/// UTC days of the shorter period, today included.
const DAYS: i64 = 30;

/// Period of a ranking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Period")]
#[schemars(transform = types::vocabulary::plain)]
pub(crate) enum RankingPeriod {
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
pub(crate) struct RankingCache {
    boards: [TtlCell<Arc<RankingSnapshot>>; 2],
}

/// Ranking of agents, as read at one time.
#[derive(Debug)]
pub(crate) struct RankingSnapshot {
    /// Time at which it was read.
    pub(crate) at: Timestamp,
    /// The agents, best first.
    pub(crate) agents: Vec<Ranked>,
}

impl RankingCache {
    /// Returns the ranking of a period, at most a minute old.
    pub(crate) async fn of(
        &self,
        store: &Store,
        period: RankingPeriod,
        now: Timestamp,
    ) -> Result<Arc<RankingSnapshot>, store::Error> {
        let (place, since) = match period {
            RankingPeriod::Days => (0, Some(now.day() - (DAYS - 1))),
            RankingPeriod::All => (1, None),
        };
        let moderation = store.moderation();
        let is_outdated = |at| moderation.agents_fell_since(at);
        let make = || async {
            let agents = store.points().ranking(since, PLACES).await?;
            Ok(Arc::new(RankingSnapshot { at: now, agents }))
        };
        self.boards[place].get(now, is_outdated, make).await
    }
}
