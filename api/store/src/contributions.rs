//! Contributions: acknowledgement, lookup, and the outbox of those without an outcome.
//!
//! Invariant: a contribution is in the outbox exactly as long as it has no terminal outcome, so an acknowledged
//! contribution can be submitted again until it has one.

use sqlx::any::AnyRow;
use types::vocabulary::ContributionStatus;
use types::{AgentId, ContributionId, DatasetId, OperatorId, Timestamp, Version};

use crate::row::Columns;
use crate::{Error, Store};

pub(crate) mod outbox;
pub(crate) mod submit;

pub use outbox::{Due, Outbox, Swept};
pub use submit::{Idempotency, NewContribution, SubmitOutcome};

/// A contribution and its outcome, once there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contribution {
    /// Id of the contribution.
    pub id: ContributionId,
    /// Project that receives the records.
    pub project: DatasetId,
    /// Agent that made the contribution.
    pub agent: AgentId,
    /// Name of that agent.
    pub agent_name: String,
    /// Operator that the agent acts for.
    pub operator: OperatorId,
    /// Number of submitted records.
    pub rows: u32,
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
    pub version: Option<Version>,
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
    /// The loss of history that took the version it became; when merged and lost.
    pub loss: Option<ContributionLoss>,
    /// `budget`, `provider`, `paused` or `history_lost`; when waiting.
    pub waiting_reason: Option<String>,
    /// Time of the next judgement; set when waiting and known.
    pub resumes_after: Option<Timestamp>,
    /// Tallies of the gates as JSON; set with a terminal status.
    pub tallies: Option<String>,
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
        self.read(async {
            sqlx::query(
                // An agent that was taken down stays the contributor, without its name.
                "SELECT contributions.id AS id, contributions.project_id AS project_id,
                        contributions.agent_id AS agent_id, CASE WHEN agents.taken_down_at IS NULL THEN agents.name ELSE '[removed]' END AS agent_name,
                        contributions.operator_id AS operator_id, row_count, source_declaration, private, submitted_at,
                        generation, status, decided_at, contributions.version AS version, accepted, record_count, root,
                        reject_code, reject_message, waiting_reason, resumes_after, tallies,
                        losses.reason AS loss_reason, losses.accepted_at AS loss_accepted_at
                 FROM contributions JOIN agents ON agents.id = contributions.agent_id
                 LEFT JOIN losses ON losses.project_id = contributions.project_id AND losses.number = contributions.loss
                 WHERE contributions.id = $1",
            )
            .bind(id.to_string())
            .fetch_optional(self.readers())
            .await?
            .map(|row| contribution(&row))
            .transpose()
        })
        .await
    }

    /// The verdicts other than pass of a decided contribution, as the JSON its outcome carried; nothing before, and
    /// nothing for an id that is not known.
    pub async fn contribution_verdicts(&self, id: ContributionId) -> Result<Option<String>, Error> {
        self.read(async {
            let verdicts: Option<Option<String>> =
                sqlx::query_scalar("SELECT verdicts FROM contributions WHERE id = $1")
                    .bind(id.to_string())
                    .fetch_optional(self.readers())
                    .await?;
            // No row and no verdicts are the same to the caller, who has looked the contribution up before.
            Ok(verdicts.flatten())
        })
        .await
    }
}

fn contribution(row: &AnyRow) -> Result<Contribution, Error> {
    Ok(Contribution {
        id: row.parsed("id")?,
        project: row.parsed("project_id")?,
        agent: row.parsed("agent_id")?,
        agent_name: row.value("agent_name")?,
        operator: row.parsed("operator_id")?,
        rows: row.number("row_count")?,
        source_declaration: row.value("source_declaration")?,
        private: row.flag("private")?,
        submitted_at: row.time("submitted_at")?,
        generation: row.number("generation")?,
        status: row.parsed("status")?,
        decided_at: row.time_optional("decided_at")?,
        version: row.number_optional("version")?.map(Version),
        accepted: row.number_optional("accepted")?,
        record_count: row.number_optional("record_count")?,
        root: row.value("root")?,
        reject_code: row.value("reject_code")?,
        reject_message: row.value("reject_message")?,
        loss: row
            .value::<Option<String>>("loss_reason")?
            .zip(row.time_optional("loss_accepted_at")?)
            .map(|(reason, accepted_at)| ContributionLoss { reason, accepted_at }),
        waiting_reason: row.value("waiting_reason")?,
        resumes_after: row.time_optional("resumes_after")?,
        tallies: row.value("tallies")?,
    })
}
