//! Contributions: acknowledgement, lookup, and the outbox of those without an outcome.
//!
//! Invariant: a contribution is in the outbox exactly as long as it has no terminal outcome, so an acknowledged
//! contribution can be submitted again until it has one.

use sqlx::any::AnyRow;
use types::vocabulary::ContributionStatus;
use types::{AgentId, ContributionId, DatasetId, OperatorId, Timestamp, Version};

use crate::query::{sql, text};
use crate::row::{Row as _, pair, row};
use crate::{Error, Store};

pub(crate) mod outbox;
pub(crate) mod submit;

pub use outbox::{Due, Outbox, Swept};
pub use submit::{Idempotency, NewContribution, SubmitOutcome};

row! {
    /// A contribution and its outcome, once there is one.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Contribution {
        /// Id of the contribution.
        pub id: ContributionId = "contributions.id AS id",
        /// Project that receives the records.
        pub project: DatasetId = "contributions.project_id AS project_id",
        /// Agent that made the contribution.
        pub agent: AgentId = "contributions.agent_id AS agent_id",
        /// Name of that agent. One that was taken down stays the contributor, without its name.
        pub agent_name: String = "CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS agent_name",
        /// Operator that the agent acts for.
        pub operator: OperatorId = "contributions.operator_id AS operator_id",
        /// Number of submitted records.
        pub rows: u32 = "row_count",
        /// Declared source of the records.
        pub source_declaration: Option<String>,
        /// True if the project is private.
        pub private: bool,
        /// Time of the acknowledgement.
        pub submitted_at: Timestamp,
        /// Number of replays so far.
        pub generation: u32,
        /// Status of the contribution.
        pub status: ContributionStatus,
        /// Time of the decision; set with a terminal status.
        pub decided_at: Option<Timestamp>,
        /// Version with its new records; set when merged.
        pub version: Option<Version> = "contributions.version AS version",
        /// Number of its records in that version; set when merged.
        pub accepted: Option<u64>,
        /// Total number of records of that version; set when merged.
        pub record_count: Option<u64>,
        /// Content root of that version, 64 hexadecimal digits; set when merged.
        pub root: Option<String>,
        /// Machine-readable reason; set when rejected.
        pub reject_code: Option<String>,
        /// Sentence for the contributor; set when rejected.
        pub reject_message: Option<String>,
        /// `budget`, `provider`, `paused` or `history_lost`; when waiting.
        pub waiting_reason: Option<String>,
        /// Time of the next judgement; set when waiting and known.
        pub resumes_after: Option<Timestamp>,
        /// Tallies of the gates as JSON; set with a terminal status.
        pub tallies: Option<String>,
        /// The loss of history that took the version it became; when merged and lost.
        pub loss: Option<ContributionLoss> = "losses.reason AS loss_reason, losses.accepted_at AS loss_accepted_at" => loss,
    }
}

/// The loss of history that a contribution was lost with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContributionLoss {
    /// The reason of the administrator who accepted it.
    pub reason: String,
    /// The time at which it was accepted.
    pub accepted_at: Timestamp,
}

impl Store {
    /// Returns the contribution with this id. The caller decides who may see it.
    pub async fn contribution(&self, id: ContributionId) -> Result<Option<Contribution>, Error> {
        self.optional(sql!(
            text!(
                "SELECT ",
                Contribution::COLUMNS,
                " FROM contributions JOIN agents ON agents.id = contributions.agent_id
                 LEFT JOIN losses ON losses.project_id = contributions.project_id AND losses.number = contributions.loss
                 WHERE contributions.id = $1"
            ),
            id
        ))
        .await
    }

    /// The verdicts other than pass of a decided contribution, as the JSON its outcome carried; nothing before, and
    /// nothing for an id that is not known.
    pub async fn contribution_verdicts(&self, id: ContributionId) -> Result<Option<String>, Error> {
        self.read(async {
            let verdicts: Option<Option<String>> = sql!("SELECT verdicts FROM contributions WHERE id = $1", id)
                .scalar_if_any(&mut self.readers())
                .await?;
            // No row and no verdicts are the same to the caller, who has looked the contribution up before.
            Ok(verdicts.flatten())
        })
        .await
    }
}

fn loss(row: &AnyRow, _: &'static str) -> Result<Option<ContributionLoss>, Error> {
    let loss = pair(row, "loss_reason, loss_accepted_at")?;
    Ok(loss.map(|(reason, accepted_at)| ContributionLoss { reason, accepted_at }))
}
