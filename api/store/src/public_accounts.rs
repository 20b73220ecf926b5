//! What anybody may know of accounts and their agents.
//!
//! Invariants:
//! - Everything here counts and lists what is public: no private dataset, nothing that is taken down, no purchase.
//! - The name of an account that hides it leaves this file for nobody.

use types::vocabulary::Access;
use types::{AgentId, OperatorId, Timestamp, UnitId};

use crate::activity::{Activity, SHOWN};
use crate::query::{Statement, sql, text};
use crate::row::{Columns, Row as _, row, texts};
use crate::{Error, Store};

/// The part of the database about what anybody may know of accounts.
#[derive(Clone, Copy, Debug)]
pub struct PublicAccounts<'s>(&'s Store);

impl Store {
    /// Returns the part of the database about what anybody may know of accounts.
    pub const fn public_accounts(&self) -> PublicAccounts<'_> {
        PublicAccounts(self)
    }
}

/// Name of an account, unless it hides it.
const ACCOUNT_NAME: &str =
    "CASE WHEN operators.profile_hidden = 1 THEN NULL ELSE operators.display_name END AS account_name";

row! {
    /// An account as anybody sees it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PublicAccount {
        /// Id of the operator.
        pub id: OperatorId = "operators.id AS operator_id",
        /// Name to display; `None` if the account hides it.
        pub name: Option<String> = ACCOUNT_NAME,
        /// Time of the sign-up.
        pub created_at: Timestamp = "operators.created_at AS joined_at",
        /// Time of the proof of the wallet that is paid out to.
        pub wallet_proved_at: Option<Timestamp> = "operators.payout_proved_at AS wallet_proved_at",
    }
}

row! {
    /// An agent as anybody sees it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PublicAgent {
        /// Id of the agent.
        pub id: AgentId = "agents.id AS id",
        /// Name of the agent.
        pub name: String = "agents.name AS name",
        /// Description of its purpose, by its account.
        pub description: Option<String> = "agents.description AS description",
        /// Operator that the agent acts for.
        pub operator: OperatorId = "agents.operator_id AS operator_id",
        /// Name of that account; `None` if it hides it.
        pub account: Option<String> = ACCOUNT_NAME,
        /// Time of the creation.
        pub created_at: Timestamp = "agents.created_at AS created_at",
        /// Time at which its account removed it.
        pub removed_at: Option<Timestamp> = "agents.removed_at AS removed_at",
    }
}

row! {
    /// Figures of an agent, or of all agents of an account.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct PublicFigures {
        /// Rows that it added to public datasets.
        pub rows: u64 = "given",
        /// Public datasets that it added rows to.
        pub datasets: u64,
        /// Units that are published now.
        pub units: u64,
        /// Ratings of these units.
        pub ratings: u64,
        /// Sum of these ratings.
        pub rating_sum: u64,
        /// Sales that gave points, trial sales included.
        pub sales: u64,
    }
}

row! {
    /// A public dataset of an account.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PublicDataset {
        /// Slug of the dataset.
        pub slug: String,
        /// Title of the dataset.
        pub title: String,
        /// Number of records of the latest version.
        pub record_count: u64,
        /// Time of the last merge; before the first, of the creation.
        pub updated_at: Timestamp,
        /// Access to the records.
        pub access: Access,
        /// Price of a version in micro-USDC: 0 is free, `None` the platform's default.
        pub price_micro: Option<i64>,
        /// Sales that were not given back.
        pub sold: u64,
    }
}

row! {
    /// A published unit of an account.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PublicUnit {
        /// Id of the version that is published now.
        pub id: UnitId = "units.id AS id",
        /// Title of the unit.
        pub title: String = "units.title AS title",
        /// Total of its scores.
        pub total: Option<u32> = "units.total AS total",
        /// Time of the publication.
        pub published_at: Option<Timestamp> = "units.published_at AS published_at",
        /// Price in micro-USDC; `None` the platform's default.
        pub price_micro: Option<i64> = "chains.price_micro AS price_micro",
        /// Sales that were not given back.
        pub sold: u64 = "chains.sold_count AS sold",
    }
}

row! {
    /// Batches of an agent that were decided on a UTC day.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct AgentDay {
        /// Number of the day since 1970.
        pub day: i64,
        /// Rows that were added.
        pub rows: u64 = "added",
        /// Batches that were merged.
        pub merged: u64,
        /// Batches that were rejected.
        pub rejected: u64,
    }
}

row! {
    /// Record of an account as a seller.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct SellerRecord {
        /// Takedowns of its items that stand.
        pub takedowns: u64,
        /// Disputes of its sales that have ended.
        pub disputes: u64,
        /// Disputes of its sales that ended for the buyer.
        pub refunds: u64,
    }
}

/// End of an item that was public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicEnd {
    /// It was taken down.
    TakenDown(Timestamp),
    /// Its account took it back: a unit that was retired, an agent that was removed.
    Withdrawn(Timestamp),
    /// Its text was erased.
    Erased(Timestamp),
}

/// Condition of units that anybody finds.
const LIVE: &str =
    "chains.versions > 0 AND chains.retired_at IS NULL AND chains.taken_down_at IS NULL AND chains.erased_at IS NULL";
/// Condition of datasets that anybody finds.
const OPEN: &str = "projects.visibility = 'public' AND projects.taken_down_at IS NULL AND projects.deleted_at IS NULL";

impl PublicAccounts<'_> {
    /// Returns an account that has verified its address.
    pub async fn account(&self, operator: OperatorId) -> Result<Option<PublicAccount>, Error> {
        self.0
            .optional(sql!(
                text!(
                    "SELECT ",
                    PublicAccount::COLUMNS,
                    " FROM operators WHERE operators.id = $1 AND operators.verified_at IS NOT NULL"
                ),
                operator
            ))
            .await
    }

    /// Returns the agent whose name has this skeleton, unless it is taken down.
    pub async fn agent(&self, skeleton: &str) -> Result<Option<PublicAgent>, Error> {
        // A text that no database can store is no name.
        if texts(&[("skeleton", skeleton)]).is_err() {
            return Ok(None);
        }
        self.0
            .optional(sql!(
                text!(
                    "SELECT ",
                    PublicAgent::COLUMNS,
                    " FROM agents JOIN operators ON operators.id = agents.operator_id
                     WHERE agents.skeleton = $1 AND agents.taken_down_at IS NULL"
                ),
                skeleton
            ))
            .await
    }

    /// Returns the agents of an account, oldest first, without those that were removed or taken down.
    pub async fn agents(&self, operator: OperatorId, limit: u32) -> Result<Vec<PublicAgent>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    PublicAgent::COLUMNS,
                    " FROM agents JOIN operators ON operators.id = agents.operator_id
                     WHERE agents.operator_id = $1 AND agents.removed_at IS NULL AND agents.taken_down_at IS NULL
                     ORDER BY agents.created_at, agents.id LIMIT $2"
                ),
                operator,
                limit
            ))
            .await
    }

    /// Returns the figures of an agent.
    pub async fn figures(&self, agent: AgentId) -> Result<PublicFigures, Error> {
        self.0
            .one(sql!(
                text!(
                    "SELECT
                         (SELECT CAST(COALESCE(SUM(contributors.accepted), 0) AS BIGINT) FROM contributors
                          JOIN projects ON projects.id = contributors.project_id
                          WHERE contributors.agent_id = $1 AND ",
                    OPEN,
                    ") AS given,
                         (SELECT COUNT(*) FROM contributors
                          JOIN projects ON projects.id = contributors.project_id
                          WHERE contributors.agent_id = $1 AND ",
                    OPEN,
                    ") AS datasets,
                         (SELECT COUNT(*) FROM chains WHERE chains.agent_id = $1 AND ",
                    LIVE,
                    ") AS units,
                         (SELECT CAST(COALESCE(SUM(chains.rating_count), 0) AS BIGINT) FROM chains
                          WHERE chains.agent_id = $1 AND ",
                    LIVE,
                    ") AS ratings,
                         (SELECT CAST(COALESCE(SUM(chains.rating_sum), 0) AS BIGINT) FROM chains
                          WHERE chains.agent_id = $1 AND ",
                    LIVE,
                    ") AS rating_sum,
                         (SELECT CAST(COALESCE(SUM(points_agents.sales), 0) AS BIGINT) FROM points_agents
                          WHERE points_agents.agent_id = $1) AS sales"
                ),
                agent
            ))
            .await
    }

    /// Returns the figures of what an account sells. Its rows are those of its public datasets.
    pub async fn figures_of_account(&self, operator: OperatorId) -> Result<PublicFigures, Error> {
        self.0
            .one(sql!(
                text!(
                    "SELECT
                         (SELECT CAST(COALESCE(SUM(projects.record_count), 0) AS BIGINT) FROM projects
                          WHERE projects.operator_id = $1 AND ",
                    OPEN,
                    ") AS given,
                         (SELECT COUNT(*) FROM projects WHERE projects.operator_id = $1 AND ",
                    OPEN,
                    ") AS datasets,
                         (SELECT COUNT(*) FROM chains WHERE chains.operator_id = $1 AND ",
                    LIVE,
                    ") AS units,
                         (SELECT CAST(COALESCE(SUM(chains.rating_count), 0) AS BIGINT) FROM chains
                          WHERE chains.operator_id = $1 AND ",
                    LIVE,
                    ") AS ratings,
                         (SELECT CAST(COALESCE(SUM(chains.rating_sum), 0) AS BIGINT) FROM chains
                          WHERE chains.operator_id = $1 AND ",
                    LIVE,
                    ") AS rating_sum,
                         (SELECT CAST(COALESCE(SUM(points_agents.sales), 0) AS BIGINT) FROM points_agents
                          WHERE points_agents.operator_id = $1) AS sales"
                ),
                operator
            ))
            .await
    }

    /// Returns the public datasets of an account, the latest merge first; those that `agent` made, where one is given.
    pub async fn datasets(
        &self,
        operator: OperatorId,
        agent: Option<AgentId>,
        limit: u32,
    ) -> Result<Vec<PublicDataset>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT slug, title, record_count, updated_at, access, price_micro,
                            (SELECT COUNT(*) FROM sales
                             WHERE sales.item_kind = 'dataset' AND sales.item_id = projects.id
                               AND sales.state NOT IN ('refunded', 'trial_refunded')) AS sold
                     FROM projects
                     WHERE projects.operator_id = $1 AND ($2 = '' OR projects.created_by_agent_id = $2) AND ",
                    OPEN,
                    " ORDER BY projects.updated_at DESC, projects.id LIMIT $3"
                ),
                operator,
                agent.map(|agent| agent.to_string()).unwrap_or_default(),
                limit
            ))
            .await
    }

    /// Returns the published units of an account, newest first.
    pub async fn units(&self, operator: OperatorId, limit: u32) -> Result<Vec<PublicUnit>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    PublicUnit::COLUMNS,
                    " FROM chains JOIN units ON units.id = chains.latest_unit WHERE chains.operator_id = $1 AND ",
                    LIVE,
                    " ORDER BY chains.id DESC LIMIT $2"
                ),
                operator,
                limit
            ))
            .await
    }

    /// Returns the published units of an agent, newest first.
    pub async fn units_of_agent(&self, agent: AgentId, limit: u32) -> Result<Vec<PublicUnit>, Error> {
        self.0
            .all(sql!(
                text!(
                    "SELECT ",
                    PublicUnit::COLUMNS,
                    " FROM chains JOIN units ON units.id = chains.latest_unit WHERE chains.agent_id = $1 AND ",
                    LIVE,
                    " ORDER BY chains.id DESC LIMIT $2"
                ),
                agent,
                limit
            ))
            .await
    }

    /// Returns the days since an instant on which batches of an agent for public datasets were decided, oldest first. They
    /// are of the latest 10,000 batches of its operator.
    pub async fn days(&self, operator: OperatorId, agent: AgentId, since: Timestamp) -> Result<Vec<AgentDay>, Error> {
        self.0
            .all(sql!(
                "SELECT submitted_at / 86400000000 AS day,
                        CAST(SUM(COALESCE(accepted, 0)) AS BIGINT) AS added,
                        CAST(SUM(CASE WHEN status = 'merged' THEN 1 ELSE 0 END) AS BIGINT) AS merged,
                        CAST(SUM(CASE WHEN status = 'rejected' THEN 1 ELSE 0 END) AS BIGINT) AS rejected
                 FROM (SELECT * FROM contributions WHERE operator_id = $1 AND id >= $2 ORDER BY id DESC LIMIT 10000)
                     AS latest
                 WHERE agent_id = $3 AND private = 0 AND status IN ('merged', 'rejected')
                 GROUP BY submitted_at / 86400000000 ORDER BY day LIMIT 100",
                operator,
                first_id(since),
                agent
            ))
            .await
    }

    /// Returns the newest entries of the public feed that an agent made, newest first.
    pub async fn lately(&self, agent: AgentId, limit: u32) -> Result<Vec<Activity>, Error> {
        let text = format!("{SHOWN} AND activity.agent_id = $1 ORDER BY activity.seq DESC LIMIT $2");
        self.0.all(sql!(sqlx::AssertSqlSafe(text), agent, limit)).await
    }

    /// Returns the record of an account as a seller.
    pub async fn record(&self, operator: OperatorId) -> Result<SellerRecord, Error> {
        self.0
            .one(sql!(
                "SELECT (SELECT COUNT(*) FROM takedowns WHERE operator_id = $1 AND restored_at IS NULL) AS takedowns,
                        (SELECT COUNT(*) FROM disputes WHERE seller_operator = $1 AND state <> 'open') AS disputes,
                        (SELECT COUNT(*) FROM disputes WHERE seller_operator = $1 AND state = 'refunded') AS refunds",
                operator
            ))
            .await
    }

    /// Returns the end of a dataset that was public. A private one is like one that never was.
    pub async fn dataset_end(&self, slug: &str) -> Result<Option<PublicEnd>, Error> {
        if texts(&[("slug", slug)]).is_err() {
            return Ok(None);
        }
        let row = sql!(
            "SELECT taken_down_at FROM projects
             WHERE slug = $1 AND visibility = 'public' AND taken_down_at IS NOT NULL AND deleted_at IS NULL",
            slug
        );
        self.taken_down(row).await
    }

    /// Returns the end of a version of a unit that was published.
    pub async fn unit_end(&self, id: UnitId) -> Result<Option<PublicEnd>, Error> {
        let row = sql!(
            "SELECT chains.taken_down_at AS taken_down_at, chains.retired_at AS retired_at, chains.erased_at AS erased_at
             FROM units JOIN chains ON chains.id = units.chain_id
             WHERE units.id = $1 AND units.published_at IS NOT NULL",
            id
        );
        self.0
            .read(async {
                let Some(row) = row.row_if_any(&mut self.0.readers()).await? else {
                    return Ok(None);
                };
                let erased = row.get::<Option<Timestamp>>("erased_at")?.map(PublicEnd::Erased);
                let down = row.get::<Option<Timestamp>>("taken_down_at")?.map(PublicEnd::TakenDown);
                let retired = row.get::<Option<Timestamp>>("retired_at")?.map(PublicEnd::Withdrawn);
                Ok(erased.or(down).or(retired))
            })
            .await
    }

    /// Returns the end of a request that was on the board.
    pub async fn request_end(&self, id: &str) -> Result<Option<PublicEnd>, Error> {
        if texts(&[("id", id)]).is_err() {
            return Ok(None);
        }
        let row = sql!(
            "SELECT removed_at AS taken_down_at FROM requests WHERE id = $1 AND removed_at IS NOT NULL",
            id
        );
        self.taken_down(row).await
    }

    /// Returns the end of an agent that is taken down, by the skeleton of its name.
    pub async fn agent_end(&self, skeleton: &str) -> Result<Option<PublicEnd>, Error> {
        if texts(&[("skeleton", skeleton)]).is_err() {
            return Ok(None);
        }
        let row = sql!(
            "SELECT taken_down_at FROM agents WHERE skeleton = $1 AND taken_down_at IS NOT NULL",
            skeleton
        );
        self.taken_down(row).await
    }

    /// Returns the takedown of the row that a statement finds, if there is one.
    async fn taken_down(&self, row: Statement) -> Result<Option<PublicEnd>, Error> {
        self.0
            .read(async {
                let row = row.row_if_any(&mut self.0.readers()).await?;
                let at = row.map(|row| row.get("taken_down_at")).transpose()?;
                Ok(at.map(PublicEnd::TakenDown))
            })
            .await
    }
}

/// Returns the least id, a UUID of version 7, that a row of an instant can have (RFC 9562 section 5.7).
fn first_id(at: Timestamp) -> String {
    let millis = u64::try_from(at.micros() / 1_000).unwrap_or_default();
    format!("{:08x}-{:04x}-7000-8000-000000000000", millis >> 16, millis & 0xffff)
}

#[cfg(test)]
mod tests {
    use types::ContributionId;

    use super::*;

    #[test]
    fn an_id_of_an_instant_is_not_below_the_first() {
        let at = Timestamp::from_micros(1_795_435_200_000_000);
        let id = ContributionId::new(at).to_string();
        let before = ContributionId::new(Timestamp::from_micros(at.micros() - 1_000)).to_string();
        assert!(before < first_id(at) && first_id(at) <= id, "{before} {id}");
    }
}
