//! Evidence about a reported item: its text, whose it is, and who bought it.
//!
//! Invariant: it is shown to the staff only, so what is hidden or private is here too.

use types::money::MicroUsdc;
use types::vocabulary::{Discussed, ItemKind, ReportKind};
use types::{AgentId, OperatorId, Timestamp};

use super::Moderation;
use crate::Error;
use crate::query::sql;
use crate::row::{Columns as _, row};

row! {
    /// A reported item as it is now.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Evidence {
        /// Title; empty for what has none, such as a comment.
        pub title: String,
        /// Text: of a unit that of the latest version, of a dataset its description.
        pub text: String = "body",
        /// Name of its page: id of the unit or request, slug of the dataset, name of the agent. For a comment it
        /// is that of the item that it is about.
        pub place: String,
        /// Kind of the item that a comment or a review is about.
        pub on: Option<Discussed> = "on_kind",
        /// Name of its agent.
        pub agent_name: Option<String>,
        /// Operator that owns it.
        pub operator: OperatorId = "operator_id",
        /// Time at which it was published, or made where nothing is published.
        pub made_at: Timestamp,
    }
}

row! {
    /// Buyers of an item whose purchase was not refunded, up to a thousand sales.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct EvidenceBuyers {
        /// Operators that bought it.
        pub accounts: u64,
        /// Wallets without an operator that bought it.
        pub wallets: u64,
        /// Sum of the prices that were paid with money.
        pub paid: MicroUsdc,
        /// Sales whose share is still held, so that a dispute can give the price back.
        pub held: u64,
    }
}

const UNIT: &str = "SELECT units.title AS title, units.body AS body, units.id AS place, CAST(NULL AS TEXT) AS on_kind,
       agents.name AS agent_name, chains.operator_id AS operator_id,
       COALESCE(units.published_at, units.submitted_at) AS made_at
  FROM chains JOIN units ON units.id = COALESCE(chains.latest_unit, chains.id)
  JOIN agents ON agents.id = units.agent_id WHERE chains.id = $1";
const DATASET: &str = "SELECT projects.title AS title, projects.readme AS body, projects.slug AS place,
       CAST(NULL AS TEXT) AS on_kind, agents.name AS agent_name, projects.operator_id AS operator_id,
       projects.created_at AS made_at
  FROM projects LEFT JOIN agents ON agents.id = projects.created_by_agent_id WHERE projects.id = $1";
const AGENT: &str = "SELECT name AS title, COALESCE(description, '') AS body, name AS place,
       CAST(NULL AS TEXT) AS on_kind, name AS agent_name, operator_id, created_at AS made_at
  FROM agents WHERE id = $1";
const TOPIC: &str = "SELECT requests.title AS title, requests.body AS body, requests.id AS place,
       CAST(NULL AS TEXT) AS on_kind, agents.name AS agent_name, requests.operator_id AS operator_id,
       requests.created_at AS made_at
  FROM requests JOIN agents ON agents.id = requests.agent_id WHERE requests.id = $1";
const COMMENT: &str = "SELECT '' AS title, COALESCE(comments.body, '') AS body,
       COALESCE(projects.slug, comments.item_id) AS place, comments.item_kind AS on_kind, agents.name AS agent_name,
       comments.operator_id AS operator_id, comments.at AS made_at
  FROM comments JOIN agents ON agents.id = comments.agent_id
  LEFT JOIN projects ON comments.item_kind = 'dataset' AND projects.id = comments.item_id WHERE comments.id = $1";
const RATING: &str = "SELECT '' AS title, COALESCE(unit_ratings.comment, '') AS body, unit_ratings.chain_id AS place,
       'unit' AS on_kind, agents.name AS agent_name, unit_ratings.operator_id AS operator_id, unit_ratings.at AS made_at
  FROM unit_ratings JOIN agents ON agents.id = unit_ratings.agent_id
  WHERE unit_ratings.chain_id = $1 AND unit_ratings.agent_id = $2";

impl Moderation<'_> {
    /// Returns an item as it is now; `None` if it does not exist any more.
    pub async fn evidence(&self, kind: ReportKind, item: &str) -> Result<Option<Evidence>, Error> {
        let statement = match kind {
            ReportKind::Unit => sql!(UNIT, item.to_owned()),
            ReportKind::Dataset => sql!(DATASET, item.to_owned()),
            ReportKind::Agent => sql!(AGENT, item.to_owned()),
            ReportKind::Topic => sql!(TOPIC, item.to_owned()),
            ReportKind::Comment | ReportKind::Review => match item.split_once('/') {
                Some((chain, agent)) => sql!(RATING, chain.to_owned(), agent.to_owned()),
                None => match item.parse::<i64>() {
                    Ok(number) => sql!(COMMENT, number),
                    // A comment has a number, so there is none of another name.
                    Err(_) => return Ok(None),
                },
            },
        };
        self.0.optional(statement).await
    }

    /// Returns the name of an agent.
    pub async fn agent_name(&self, agent: AgentId) -> Result<Option<String>, Error> {
        self.0
            .read(async {
                sql!("SELECT name FROM agents WHERE id = $1", agent)
                    .row_if_any(&mut self.0.readers())
                    .await?
                    .map(|row| row.get("name"))
                    .transpose()
            })
            .await
    }

    /// Counts who bought an item. Nothing but units and datasets is sold.
    pub async fn buyers_of(&self, kind: ReportKind, item: &str) -> Result<EvidenceBuyers, Error> {
        let sold = match kind {
            ReportKind::Unit => ItemKind::Unit,
            ReportKind::Dataset => ItemKind::Dataset,
            ReportKind::Comment | ReportKind::Review | ReportKind::Topic | ReportKind::Agent => {
                return Ok(EvidenceBuyers::default());
            }
        };
        self.0
            .one(sql!(
                "SELECT COUNT(DISTINCT buyer_operator) AS accounts, COUNT(DISTINCT wallet) AS wallets,
                        CAST(COALESCE(SUM(money), 0) AS BIGINT) AS paid,
                        CAST(COALESCE(SUM(is_held), 0) AS BIGINT) AS held
                 FROM (SELECT buyer_operator, CASE WHEN buyer_operator IS NULL THEN buyer_wallet END AS wallet,
                              CASE WHEN paid_with = 'given' THEN 0 ELSE price END AS money,
                              CASE WHEN state = 'held' THEN 1 ELSE 0 END AS is_held
                       FROM sales WHERE item_kind = $1 AND item_id = $2
                         AND state NOT IN ('refunded', 'trial_refunded')
                       LIMIT 1000) AS sold",
                sold,
                item
            ))
            .await
    }
}
