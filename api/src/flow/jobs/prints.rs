//! Job that erases the prints of erased units beside the platform's table, and what their texts left in free pages of the
//! database.
//!
//! Invariant: a job ends when nothing is left to replace of all that is erased by then. So what a slower job brought back,
//! because it had read a file before, is erased by that one.

use std::sync::Arc;

use async_trait::async_trait;
use catalog::Catalog;
use catalog::platform::Forgotten;
use serde::{Deserialize, Serialize};
use store::{FORGET_PRINTS, Job, NewJob, Store};
use types::Clock;

use super::JobHandler;
use crate::ids;
use crate::rules::jobs::JobFailure;
use types::error::with_causes;

/// Handler of the job. A run looks at some thousand files, and another job goes on with the rest.
#[derive(Debug)]
pub struct ForgetFingerprints {
    store: Store,
    catalog: Catalog,
    clock: Arc<dyn Clock>,
}

/// Input of the job.
#[derive(Debug, Serialize, Deserialize)]
struct ForgetPrintsPayload {
    /// The last file that an earlier job looked at.
    #[serde(default)]
    after: Option<String>,
}

impl ForgetFingerprints {
    /// Kind of the job, which an erasure adds.
    pub const KIND: &'static str = FORGET_PRINTS;

    /// Creates a handler.
    pub const fn new(store: Store, catalog: Catalog, clock: Arc<dyn Clock>) -> Self {
        Self { store, catalog, clock }
    }
}

impl ForgetFingerprints {
    /// Overwrites what the erased texts left in free pages of the database.
    async fn scrub(&self) -> Result<(), JobFailure> {
        let scrubbed = self.store.flow().scrub().await;
        if scrubbed.map_err(|error| JobFailure::passing(&error))? {
            return Ok(());
        }
        Err(JobFailure {
            reason: "the write-ahead log of the database is in use, so it cannot be emptied".to_owned(),
            may_pass: true,
        })
    }
}

#[async_trait]
impl JobHandler for ForgetFingerprints {
    async fn run(&self, job: &Job) -> Result<(), JobFailure> {
        let payload = serde_json::from_str(&job.payload);
        let ForgetPrintsPayload { after } = payload.map_err(|error| JobFailure {
            reason: with_causes(&error),
            may_pass: false,
        })?;
        let last = loop {
            // Read again for each look: another unit may have been erased meanwhile, by a job that this one overtakes.
            let erased = self.store.knowledge().erased_versions().await;
            let erased = erased.map_err(|error| JobFailure::passing(&error))?;
            let forgotten = self.catalog.forget_prints(&erased, after.as_deref()).await;
            let Forgotten { replaced, last } = forgotten.map_err(|error| JobFailure::passing(&error))?;
            if replaced == 0 {
                break last;
            }
        };
        let Some(last) = last else {
            return self.scrub().await;
        };
        let now = self.clock.now();
        let next = NewJob {
            id: ids::new(now),
            kind: Self::KIND.to_owned(),
            // Of a job that is done twice there is one that goes on.
            dedupe: Some(format!("{}-then", job.id)),
            operator: None,
            // A text has no value that JSON lacks.
            payload: serde_json::to_string(&ForgetPrintsPayload { after: Some(last) }).unwrap_or_default(),
            due_at: now,
            now,
        };
        let added = self.store.flow().job_add(next).await;
        added.map(drop).map_err(|error| JobFailure::passing(&error))
    }
}
