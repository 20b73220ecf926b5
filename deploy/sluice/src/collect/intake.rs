//! The intake of collectors: the operations of the service over HTTP.
//!
//! Invariant: a failure names no address and no text of an answer.

use async_trait::async_trait;
use client::model::{Contribution, NewProject, Project};
use client::{Client, Error};
use collectors::{CollectorSource, Intake, JudgedRecord, RunFailure, SubmitOutcome};
use serde_json::Value;
use store::Store;
use types::OperatorId;

/// The longest `wait` of the interface, in seconds.
const WAIT_SECONDS: u32 = 20;
/// Most requests for one outcome; with the longest wait five minutes.
const MAX_OUTCOME_REQUESTS: usize = 15;

/// The service that collectors submit to, with the key of an agent.
#[derive(Debug)]
pub(super) struct IntakeService {
    client: Client,
    /// Database, if the agent is that of the platform.
    store: Option<Store>,
}

impl IntakeService {
    pub(super) const fn new(client: Client) -> Self {
        Self { client, store: None }
    }

    /// Returns the intake of the platform's agent, which adds to datasets of its own operator only.
    pub(super) fn owned_by_platform(self, store: Store) -> Self {
        Self {
            store: Some(store),
            ..self
        }
    }

    /// Checks that a dataset takes the records of a source for everybody to read.
    async fn check(&self, source: &CollectorSource, project: &Project) -> Result<(), RunFailure> {
        let word = |member: &str| project.more.get(member).and_then(Value::as_str).unwrap_or_default();
        if let Some(store) = &self.store {
            let found = store
                .project_by_slug(source.dataset(), None)
                .await
                .map_err(|_error| database())?;
            if found.is_none_or(|project| project.operator != OperatorId::PLATFORM) {
                return Err(RunFailure::new("dataset", "the dataset belongs to another operator"));
            }
        }
        if word("access") != "public" || word("visibility") != "public" {
            return Err(RunFailure::new("dataset", "the dataset is not public and free"));
        }
        if project.status != "open" {
            return Err(RunFailure::new("dataset", "the dataset takes no contributions"));
        }
        // A contract never changes, so a definition with another one needs another dataset.
        if project.more.get("schemaDef") != Some(&source.schema_def()) {
            return Err(RunFailure::new(
                "dataset",
                "the dataset has another contract than the definition of the source",
            ));
        }
        Ok(())
    }
}

#[async_trait]
impl Intake for IntakeService {
    async fn prepare(&self, source: &CollectorSource) -> Result<(), RunFailure> {
        match self.client.project(source.dataset()).await {
            Ok(project) => return self.check(source, &project).await,
            Err(error) if status(&error) == Some(404) => {}
            Err(error) => return Err(refused(&error)),
        }
        let new = NewProject {
            slug: source.dataset().to_owned(),
            title: source.title().to_owned(),
            readme: source.readme(),
            schema_def: source.schema_def(),
            license: Some(source.license().to_owned()),
            tags: source.tags().to_vec(),
            access: Some("public".to_owned()),
            visibility: Some("public".to_owned()),
            price: None,
        };
        match self.client.project_create(&new).await {
            Ok(_) => Ok(()),
            // A run that died, or another process, may have created it.
            Err(error) if status(&error) == Some(409) => {
                let project = self
                    .client
                    .project(source.dataset())
                    .await
                    .map_err(|error| refused(&error))?;
                self.check(source, &project).await
            }
            Err(error) => Err(refused(&error)),
        }
    }

    async fn judge(&self, dataset: &str, records: &[Value]) -> Result<Vec<JudgedRecord>, RunFailure> {
        let judged = self
            .client
            .validate(dataset, records)
            .await
            .map_err(|error| refused(&error))?;
        let mut verdicts = vec![JudgedRecord::New; records.len()];
        for verdict in judged.verdicts {
            let place = usize::try_from(verdict.row).ok().and_then(|row| verdicts.get_mut(row));
            let Some(place) = place else { continue };
            *place = match verdict.verdict.as_str() {
                "pass" => JudgedRecord::New,
                "drop" => JudgedRecord::Known,
                "hold" => JudgedRecord::Held,
                // A word of a newer service is no permission.
                _ => JudgedRecord::Refused,
            };
        }
        Ok(verdicts)
    }

    async fn submit(
        &self,
        source: &CollectorSource,
        records: &[Value],
        key: &str,
    ) -> Result<SubmitOutcome, RunFailure> {
        let (dataset, declaration) = (source.dataset(), source.declaration());
        let sent = self
            .client
            .contribute_from(dataset, records, &declaration, WAIT_SECONDS, key);
        let mut contribution = sent.await.map_err(|error| refused(&error))?;
        for _ in 0..MAX_OUTCOME_REQUESTS {
            // A contribution that waits for its review may wait for days.
            if contribution.is_decided() || contribution.status == "waiting" {
                break;
            }
            let asked = self.client.contribution(dataset, &contribution.id, WAIT_SECONDS).await;
            contribution = asked.map_err(|error| refused(&error))?;
        }
        Ok(outcome(&contribution))
    }
}

fn outcome(contribution: &Contribution) -> SubmitOutcome {
    let reason = contribution.reason.as_ref().map(|reason| reason.code.as_str());
    match (contribution.status.as_str(), contribution.merged_version, reason) {
        ("merged", Some(version), _) => SubmitOutcome::Merged {
            version,
            accepted: contribution.accepted_count.unwrap_or_default(),
        },
        ("rejected", _, Some("duplicates")) => SubmitOutcome::Duplicates,
        ("rejected", ..) => SubmitOutcome::Refused,
        // A word of a newer service counts as not decided, so that the place in the source stays.
        _ => SubmitOutcome::Held,
    }
}

fn status(error: &Error) -> Option<u16> {
    error.problem().map(|problem| problem.status)
}

fn refused(error: &Error) -> RunFailure {
    tracing::debug!(%error, "the service refused a call of a collector");
    match status(error) {
        Some(status) => RunFailure::new("service", format!("the service answered {status} to the collector")),
        None => RunFailure::new("service", "the service did not answer the collector"),
    }
}

fn database() -> RunFailure {
    RunFailure::new("service", "the database did not answer the collector")
}
