//! Job that makes the facts and vectors of versions that were published without those of the present embedder, and puts
//! them beside the platform's table, where the review reads them.
//!
//! Invariant: what a slice of versions has put is noted after it; a job that dies in between puts the same again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use catalog::Catalog;
use operators::knowledge::{EmbeddedText, Embedder, QuantisedVector, TextRole, UnitPrints, text_facts};
use operators::screen::{Cause, Unavailable};
use serde::{Deserialize, Serialize};
use store::{Job, NewJob, Store, UnembeddedVersion};
use tokio::time::Instant;
use types::error::with_causes;
use types::{Clock, UnitId};

use super::JobHandler;
use crate::ids;
use crate::rules::jobs::JobFailure;

/// Versions whose prints are one file.
const VERSIONS_PER_FILE: u32 = 64;
/// Time after which a run ends and another job goes on: well within that of a run.
const SLICE: Duration = Duration::from_secs(20);

/// Handler of the job.
#[derive(Debug)]
pub struct MakeVectors {
    store: Store,
    catalog: Catalog,
    embedder: Arc<dyn Embedder>,
    clock: Arc<dyn Clock>,
}

/// Input of the job.
#[derive(Debug, Serialize, Deserialize)]
struct MakeVectorsPayload {
    /// The last version that an earlier job looked at.
    #[serde(default)]
    after: Option<UnitId>,
}

impl MakeVectors {
    /// Kind of the job, which is added at each start.
    pub const KIND: &'static str = "make_vectors";

    /// Creates a handler.
    pub const fn new(store: Store, catalog: Catalog, embedder: Arc<dyn Embedder>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            catalog,
            embedder,
            clock,
        }
    }

    /// Adds the job for the versions behind `after`, unless there is one already or no version needs it.
    pub async fn add(&self, after: Option<UnitId>) -> Result<(), store::Error> {
        let waiting = self.store.knowledge();
        let waiting = waiting.versions_without_vectors(self.embedder.id(), after, 1).await?;
        if waiting.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let next = NewJob {
            id: ids::new(now),
            kind: Self::KIND.to_owned(),
            dedupe: Some(match after {
                None => format!("{}-{}", Self::KIND, self.embedder.id()),
                Some(after) => format!("{}-{}-{after}", Self::KIND, self.embedder.id()),
            }),
            operator: None,
            // A text has no value that JSON lacks.
            payload: serde_json::to_string(&MakeVectorsPayload { after }).unwrap_or_default(),
            due_at: now,
            now,
        };
        self.store.flow().job_add(next).await.map(drop)
    }

    /// Returns the vectors of a version. One to which the embedder gives none is compared by its facts only.
    async fn vectors(&self, version: &UnembeddedVersion) -> Result<Vec<QuantisedVector>, Unavailable> {
        let text = EmbeddedText {
            title: &version.title,
            body: &version.body,
        };
        match self.embedder.embed(&[text], TextRole::Document).await {
            Ok(vectors) => Ok(QuantisedVector::of_each(&vectors.concat())),
            Err(error) if error.reason == Cause::Text => {
                Ok(vec![QuantisedVector::near_to_nothing(self.embedder.dimensions())])
            }
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl JobHandler for MakeVectors {
    async fn run(&self, job: &Job) -> Result<(), JobFailure> {
        let payload = serde_json::from_str(&job.payload);
        let MakeVectorsPayload { mut after } = payload.map_err(|error| JobFailure {
            reason: with_causes(&error),
            may_pass: false,
        })?;
        let (began, id) = (Instant::now(), self.embedder.id());
        loop {
            let knowledge = self.store.knowledge();
            let versions = knowledge.versions_without_vectors(id, after, VERSIONS_PER_FILE).await;
            let versions = versions.map_err(|error| JobFailure::passing(&error))?;
            let Some((first, last)) = versions
                .first()
                .zip(versions.last())
                .map(|(first, last)| (first.id, last.id))
            else {
                return Ok(());
            };
            let mut lines = Vec::new();
            for version in &versions {
                let vectors = self.vectors(version).await.map_err(|unavailable| JobFailure {
                    reason: format!("the embedder does not answer ({})", unavailable.reason.code()),
                    may_pass: true,
                })?;
                let line = UnitPrints::later(version.id, &text_facts(&version.body), &vectors, Some(id));
                let line = serde_json::to_vec(&line).map_err(|error| JobFailure {
                    reason: with_causes(&error),
                    may_pass: false,
                })?;
                lines.extend(line);
                lines.push(b'\n');
            }
            let put = self.catalog.put_prints(first, lines.into()).await;
            put.map_err(|error| JobFailure::passing(&error))?;
            let ids: Vec<UnitId> = versions.iter().map(|version| version.id).collect();
            let noted = knowledge.vectors_put(ids, id, self.clock.now()).await;
            noted.map_err(|error| JobFailure::passing(&error))?;
            after = Some(last);
            if began.elapsed() >= SLICE {
                let added = self.add(after).await;
                return added.map_err(|error| JobFailure::passing(&error));
            }
        }
    }
}
