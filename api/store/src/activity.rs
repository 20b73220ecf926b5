//! Feed of what happened in public.
//!
//! Invariants:
//! - Entries are numbered in the order of their commits, so whoever has seen a number has seen all before it.
//! - An entry is shown only while anybody may see its item.

use sqlx::AnyConnection;
use types::vocabulary::ActivityKind;
use types::{AgentId, Timestamp};

use crate::query::sql;
use crate::row::{Columns, row};
use crate::service_state;
use crate::{Error, Store};

/// The part of the database about the feed.
#[derive(Clone, Copy, Debug)]
pub struct Feed<'s>(&'s Store);

impl Store {
    /// Returns the part of the database about the feed.
    pub const fn feed(&self) -> Feed<'_> {
        Feed(self)
    }
}

/// An entry to add.
#[derive(Clone, Debug)]
pub(crate) struct NewActivity {
    pub(crate) kind: ActivityKind,
    /// The chain of a unit, or the id of a dataset or a request.
    pub(crate) item: String,
    /// The version of the unit or dataset, or the number of the answer; empty for none.
    pub(crate) subject: String,
    pub(crate) agent: Option<AgentId>,
    pub(crate) at: Timestamp,
}

row! {
    /// An entry as shown.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Activity {
        /// Number of the entry.
        pub seq: i64,
        /// Kind of the entry.
        pub kind: ActivityKind,
        /// Slug of the dataset, or id of the unit or request.
        pub item: String,
        /// Title of the item.
        pub title: String,
        /// Version of the dataset, or id of the unit's version; empty for none.
        pub subject: String,
        /// Records that a version added.
        pub records: Option<u64> = "accepted",
        /// Name of the agent, unless a person acted or the agent is taken down.
        pub agent: Option<String> = "agent_name",
        /// Time of the event.
        pub at: Timestamp,
    }
}

/// Merges among entries of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merges {
    /// Number of the last entry that was read; the one asked for if there is none after it.
    pub seq: i64,
    /// Ids of datasets, each with the time of its last merge.
    pub of: Vec<(String, Timestamp)>,
}

/// Statement of the entries that anybody may see.
pub(crate) const SHOWN: &str =
    "SELECT activity.seq AS seq, activity.kind AS kind, activity.subject AS subject, activity.at AS at,
           COALESCE(projects.slug, units.id, requests.id) AS item,
           COALESCE(projects.title, units.title, requests.title) AS title,
           versions.accepted AS accepted, agents.name AS agent_name
    FROM activity
    LEFT JOIN projects ON activity.kind IN ('dataset', 'version') AND projects.id = activity.item_id
        AND projects.visibility = 'public' AND projects.taken_down_at IS NULL
    LEFT JOIN versions ON activity.kind = 'version' AND versions.project_id = activity.item_id
        AND CAST(versions.version AS TEXT) = activity.subject
    LEFT JOIN chains ON activity.kind = 'unit' AND chains.id = activity.item_id
        AND chains.taken_down_at IS NULL AND chains.retired_at IS NULL AND chains.erased_at IS NULL
    LEFT JOIN units ON units.id = activity.subject AND units.chain_id = chains.id
    LEFT JOIN requests ON activity.kind IN ('request', 'answer') AND requests.id = activity.item_id
        AND requests.removed_at IS NULL
    LEFT JOIN comments ON comments.id = CASE WHEN activity.kind = 'answer' THEN CAST(activity.subject AS BIGINT) END
        AND comments.removed_at IS NULL AND comments.withdrawn_at IS NULL
    LEFT JOIN agents ON agents.id = activity.agent_id AND agents.taken_down_at IS NULL
    WHERE COALESCE(projects.slug, units.id, requests.id) IS NOT NULL
      AND (activity.kind <> 'answer' OR comments.id IS NOT NULL)";

impl Feed<'_> {
    /// Returns the newest entries before a number, newest first.
    pub async fn before(&self, seq: i64, limit: u32) -> Result<Vec<Activity>, Error> {
        self.shown("activity.seq < $1 ORDER BY activity.seq DESC", seq, limit)
            .await
    }

    /// Returns the oldest entries after a number, oldest first.
    pub async fn after(&self, seq: i64, limit: u32) -> Result<Vec<Activity>, Error> {
        self.shown("activity.seq > $1 ORDER BY activity.seq", seq, limit).await
    }

    /// Returns the merges among the entries after a number, oldest first: each dataset with the time of its last merge.
    /// The number is that of the last entry that was read, of whatever kind.
    pub async fn merges_after(&self, seq: i64, limit: u32) -> Result<Merges, Error> {
        self.0
            .read(async {
                // The time is the project's, because an outcome that was late is not the last merge.
                let rows = sql!(
                    "SELECT activity.seq AS seq, activity.item_id AS item_id, projects.updated_at AS updated_at
                     FROM activity
                     LEFT JOIN projects ON activity.kind = 'version' AND projects.id = activity.item_id
                     WHERE activity.seq > $1 ORDER BY activity.seq LIMIT $2",
                    seq,
                    limit
                )
                .rows(&mut self.0.readers())
                .await?;
                let mut merges = Merges { seq, of: Vec::new() };
                for row in &rows {
                    merges.seq = row.get("seq")?;
                    if let Some(at) = row.get("updated_at")? {
                        merges.of.push((row.get("item_id")?, at));
                    }
                }
                Ok(merges)
            })
            .await
    }

    /// Returns the number of the newest entry; 0 if there is none.
    pub async fn last(&self) -> Result<i64, Error> {
        self.0
            .read(async {
                sql!("SELECT value FROM counters WHERE name = 'activity'")
                    .row(&mut self.0.readers())
                    .await?
                    .get("value")
            })
            .await
    }

    async fn shown(&self, condition: &'static str, seq: i64, limit: u32) -> Result<Vec<Activity>, Error> {
        let text = format!("{SHOWN} AND {condition} LIMIT $2");
        self.0.all(sql!(sqlx::AssertSqlSafe(text), seq, limit)).await
    }
}

/// Adds an entry. The last statement of a transaction, because it makes other transactions that add one wait.
pub(crate) async fn note(cx: &mut AnyConnection, new: &NewActivity) -> Result<(), Error> {
    // The counter's row is locked until the commit, so entries become visible in the order of their
    // numbers and a reader that remembers a number misses none.
    let seq = service_state::next(cx, "activity").await?;
    sql!(
        "INSERT INTO activity (seq, kind, item_id, subject, agent_id, at) VALUES ($1, $2, $3, $4, $5, $6)",
        seq,
        new.kind,
        new.item.as_str(),
        new.subject.as_str(),
        new.agent,
        new.at
    )
    .run(cx)
    .await?;
    Ok(())
}
