//! Data for the checker: what the rows about knowledge contradict, and the published versions to compare the platform
//! table with.
//!
//! Invariant: read only, and every answer has a bound.

use types::{Timestamp, UnitId};

use super::Knowledge;
use crate::query::{sql, text};
use crate::row::{Columns, Row as _, row};
use crate::{Error, Store};

/// A contradiction between rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnowledgeFault {
    /// The rule that does not hold, as a sentence.
    pub rule: &'static str,
    /// Id of the unit, chain, agent or operator.
    pub subject: String,
}

row! {
    /// A published or superseded version, as the platform table must have it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PublishedEntry {
        /// Id of the version.
        pub id: UnitId,
        /// Chain of the version.
        pub chain: UnitId = "chain_id",
        /// Hash of the normalised text.
        pub text_hash: [u8; 32],
        /// Total of the scores.
        pub total: u32,
        /// Time of the publication.
        pub published_at: Timestamp,
    }
}

/// Rules with the statement that finds what breaks each. Every statement returns ids as `subject`.
const RULES: &[(&str, &str)] = &[
    (
        "a version is in the outbox if and only if it has no outcome",
        "SELECT units.id AS subject FROM units LEFT JOIN unit_outbox ON unit_outbox.unit_id = units.id
         WHERE (status IN ('queued', 'waiting') AND unit_id IS NULL)
            OR (status NOT IN ('queued', 'waiting') AND unit_id IS NOT NULL)",
    ),
    (
        "a published version has its event of points, and no other has one",
        "SELECT units.id AS subject FROM units
         LEFT JOIN points_events ON points_events.kind = 'published' AND points_events.key = units.id
         WHERE (status IN ('published', 'superseded') AND points_events.id IS NULL)
            OR (status NOT IN ('published', 'superseded') AND points_events.id IS NOT NULL)",
    ),
    (
        "an event of a publication names a version",
        "SELECT points_events.key AS subject FROM points_events LEFT JOIN units ON units.id = points_events.key
         WHERE points_events.kind = 'published' AND units.id IS NULL",
    ),
    (
        "the numbers of published versions count from 1 without a gap",
        "SELECT chain_id AS subject FROM units WHERE number IS NOT NULL GROUP BY chain_id
         HAVING MIN(number) <> 1 OR MAX(number) <> COUNT(*)",
    ),
    (
        "a chain says how many versions were published, which is the latest, and the best total",
        "SELECT chains.id AS subject FROM chains
         LEFT JOIN (SELECT chain_id, COUNT(*) AS published, MAX(total) AS best, MAX(number) AS newest FROM units
                    WHERE number IS NOT NULL GROUP BY chain_id) AS counted ON counted.chain_id = chains.id
         LEFT JOIN units AS latest ON latest.chain_id = chains.id AND latest.number = counted.newest
         WHERE chains.versions <> COALESCE(counted.published, 0) OR chains.best_score <> COALESCE(counted.best, 0)
            OR COALESCE(chains.latest_unit, '') <> COALESCE(latest.id, '')",
    ),
    (
        "the latest version of a chain is published and the others are superseded",
        "SELECT units.id AS subject FROM units JOIN chains ON chains.id = units.chain_id
         WHERE number IS NOT NULL
           AND ((chains.latest_unit = units.id AND status <> 'published')
             OR (chains.latest_unit <> units.id AND status <> 'superseded'))",
    ),
    (
        "the points of an agent are those of its events",
        "SELECT agents.id AS subject FROM agents
         LEFT JOIN points_agents ON points_agents.agent_id = agents.id
         LEFT JOIN (SELECT agent_id, SUM(points) AS points,
                           SUM(CASE WHEN kind = 'published' THEN 1 ELSE 0 END) AS published,
                           SUM(CASE WHEN kind = 'first_read' THEN 1 ELSE 0 END) AS first_reads,
                           SUM(CASE WHEN kind IN ('sale', 'trial_sale') THEN 1 ELSE 0 END) AS sales,
                           SUM(CASE WHEN kind = 'merged_batch' THEN 1 ELSE 0 END) AS batches
                    FROM points_events GROUP BY agent_id) AS counted ON counted.agent_id = agents.id
         WHERE COALESCE(points_agents.points, 0) <> COALESCE(counted.points, 0)
            OR COALESCE(points_agents.published, 0) <> COALESCE(counted.published, 0)
            OR COALESCE(points_agents.first_reads, 0) <> COALESCE(counted.first_reads, 0)
            OR COALESCE(points_agents.sales, 0) <> COALESCE(counted.sales, 0)
            OR COALESCE(points_agents.batches, 0) <> COALESCE(counted.batches, 0)",
    ),
    (
        "the points of an agent are those of its days",
        "SELECT points_agents.agent_id AS subject FROM points_agents
         LEFT JOIN (SELECT agent_id, SUM(points) AS points FROM points_days GROUP BY agent_id) AS counted
                ON counted.agent_id = points_agents.agent_id
         WHERE points_agents.points <> COALESCE(counted.points, 0)",
    ),
    (
        "a first read has its event of points, and no other pair has one",
        "SELECT unit_reads.chain_id AS subject FROM unit_reads
         LEFT JOIN points_events ON points_events.kind = 'first_read'
                                AND points_events.key = unit_reads.chain_id || ':' || unit_reads.agent_id
         WHERE points_events.id IS NULL
         UNION ALL
         SELECT points_events.key AS subject FROM points_events
         LEFT JOIN unit_reads ON points_events.key = unit_reads.chain_id || ':' || unit_reads.agent_id
         WHERE points_events.kind = 'first_read' AND unit_reads.chain_id IS NULL",
    ),
    (
        "nobody's read, rating, mark or purchase of a unit of the own operator is recorded",
        "SELECT chains.id AS subject FROM chains JOIN unit_reads
             ON unit_reads.chain_id = chains.id AND unit_reads.operator_id = chains.operator_id
         UNION ALL
         SELECT chains.id AS subject FROM chains JOIN unit_ratings
             ON unit_ratings.chain_id = chains.id AND unit_ratings.operator_id = chains.operator_id
         UNION ALL
         SELECT chains.id AS subject FROM chains JOIN unit_marks
             ON unit_marks.chain_id = chains.id AND unit_marks.operator_id = chains.operator_id",
    ),
    (
        "the marks of a chain are those that its readers gave, one a payer",
        "SELECT chains.id AS subject FROM chains
         LEFT JOIN (SELECT chain_id, COUNT(DISTINCT CASE WHEN mark = 'confirmed' THEN payer END) AS confirmed,
                           COUNT(DISTINCT CASE WHEN mark = 'stale' THEN payer END) AS stale,
                           COUNT(DISTINCT CASE WHEN mark = 'incorrect' THEN payer END) AS incorrect,
                           MAX(CASE WHEN mark = 'confirmed' AND payer IS NOT NULL THEN at END) AS confirmed_at
                    FROM unit_marks GROUP BY chain_id) AS given ON given.chain_id = chains.id
         WHERE chains.confirmed_count <> COALESCE(given.confirmed, 0)
            OR chains.stale_count <> COALESCE(given.stale, 0)
            OR chains.incorrect_count <> COALESCE(given.incorrect, 0)
            OR COALESCE(chains.confirmed_at, 0) <> COALESCE(given.confirmed_at, 0)",
    ),
    (
        "an operator is trusted if and only if enough payers confirm its units",
        "SELECT operators.id AS subject FROM operators
         LEFT JOIN (SELECT seller_id, COUNT(DISTINCT payer) AS payers FROM unit_marks
                    WHERE mark = 'confirmed' GROUP BY seller_id) AS given ON given.seller_id = operators.id
         WHERE (operators.trusted_at IS NOT NULL) <> (COALESCE(given.payers, 0) >= 3)",
    ),
    (
        "an appeal is open only while its version is in work or cannot be processed, and granted only if it was published",
        "SELECT unit_appeals.unit_id AS subject FROM unit_appeals JOIN units ON units.id = unit_appeals.unit_id
         WHERE (unit_appeals.status = 'open' AND units.status NOT IN ('queued', 'waiting')
                AND COALESCE(reject_code, '') <> 'unprocessable')
            OR (unit_appeals.status = 'granted' AND units.status NOT IN ('published', 'superseded'))
            OR (unit_appeals.status = 'denied' AND units.status <> 'rejected')",
    ),
    (
        "a mark follows a read of the unit",
        "SELECT unit_marks.chain_id AS subject FROM unit_marks
         LEFT JOIN unit_reads ON unit_reads.chain_id = unit_marks.chain_id AND unit_reads.agent_id = unit_marks.agent_id
         WHERE unit_reads.chain_id IS NULL",
    ),
    (
        "the sums of a chain are those of its reads, ratings and comments",
        "SELECT chains.id AS subject FROM chains
         LEFT JOIN (SELECT chain_id, COUNT(*) AS used FROM unit_reads GROUP BY chain_id) AS reads
                ON reads.chain_id = chains.id
         LEFT JOIN (SELECT chain_id, COUNT(*) AS used, SUM(rating) AS total FROM unit_ratings GROUP BY chain_id) AS rated
                ON rated.chain_id = chains.id
         LEFT JOIN (SELECT item_id, COUNT(*) AS used FROM comments
                    WHERE item_kind = 'unit' AND kind = 'comment' AND removed_at IS NULL GROUP BY item_id) AS said
                ON said.item_id = chains.id
         WHERE chains.readers <> COALESCE(reads.used, 0) OR chains.rating_count <> COALESCE(rated.used, 0)
            OR chains.rating_sum <> COALESCE(rated.total, 0) OR chains.comment_count <> COALESCE(said.used, 0)",
    ),
    (
        "no two published units have one text",
        "SELECT MIN(id) AS subject FROM units WHERE status = 'published' GROUP BY text_hash HAVING COUNT(*) > 1",
    ),
    (
        "an operator's use of its allowance is the number of its versions of the day",
        "SELECT operators.id AS subject FROM operators
         JOIN (SELECT operator_id, submitted_at / 86400000000 AS day, COUNT(*) AS made FROM units
               WHERE NOT (status = 'rejected' AND reject_code = 'unprocessable')
               GROUP BY operator_id, submitted_at / 86400000000) AS counted ON counted.operator_id = operators.id
         LEFT JOIN allowances ON allowances.operator_id = operators.id AND allowances.kind = 'knowledge'
                             AND allowances.day = counted.day
         WHERE COALESCE(allowances.used, 0) <> counted.made
         UNION ALL
         SELECT allowances.operator_id AS subject FROM allowances
         WHERE allowances.kind = 'knowledge' AND allowances.used > 0
           AND NOT EXISTS (SELECT 1 FROM units WHERE units.operator_id = allowances.operator_id
                           AND units.submitted_at / 86400000000 = allowances.day)",
    ),
];

impl Knowledge<'_> {
    /// Returns what the rows contradict, at most `limit` subjects a rule.
    pub async fn faults(&self, limit: u32) -> Result<Vec<KnowledgeFault>, Error> {
        broken(self.0, RULES, limit).await
    }

    /// Returns a page of the versions that were ever published, by id: those after `after`, or the first.
    pub async fn ever_published(&self, after: Option<UnitId>, limit: u32) -> Result<Vec<PublishedEntry>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    PublishedEntry::COLUMNS,
                    " FROM units
                     WHERE number IS NOT NULL AND id > $1 ORDER BY id LIMIT $2"
                ),
                after.map(|id| id.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }
}

/// Returns what breaks each of these rules, at most `limit` subjects a rule.
pub(crate) async fn broken(
    store: &Store,
    rules: &[(&'static str, &'static str)],
    limit: u32,
) -> Result<Vec<KnowledgeFault>, Error> {
    let mut faults = Vec::new();
    for &(rule, select) in rules {
        let text = format!("SELECT subject FROM ({select}) AS broken ORDER BY subject LIMIT $1");
        let found = store.read(async {
            let rows = sql!(sqlx::AssertSqlSafe(text), limit)
                .rows(&mut store.readers())
                .await?;
            rows.iter()
                .map(|row| row.get::<String>("subject"))
                .collect::<Result<Vec<_>, _>>()
        });
        let found = found.await?;
        faults.extend(found.into_iter().map(|subject| KnowledgeFault { rule, subject }));
    }
    Ok(faults)
}
