//! Job that deletes the table of a deleted dataset, and clears what the database keeps of its records.
//!
//! Invariant: every step may be done twice. A job that is over leaves nothing that was there when it began; what a slower
//! writer or change adds meanwhile is deleted by the second job, an hour after the deletion.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use catalog::Catalog;
use serde::{Deserialize, Serialize};
use store::{DELETE_TABLE, Job, NewJob, Store};
use tokio::time::Instant;
use types::error::with_causes;
use types::{Clock, DatasetId, fault};

use super::JobHandler;
use crate::ids;
use crate::rules::jobs::JobFailure;

/// Rows of each kind that one change of the database clears.
const ROWS_PER_CHANGE: u32 = 500;
/// Time after which a run ends and another job goes on: well within that of a run.
const SLICE: Duration = Duration::from_secs(20);

/// Handler of the job.
#[derive(Debug)]
pub struct DeleteTable {
    store: Store,
    catalog: Catalog,
    clock: Arc<dyn Clock>,
}

/// Input of the job.
#[derive(Debug, Serialize, Deserialize)]
struct DeleteTablePayload {
    dataset: DatasetId,
}

impl DeleteTable {
    /// Kind of the job, of which a deletion adds two.
    pub const KIND: &'static str = DELETE_TABLE;

    /// Creates a handler.
    pub const fn new(store: Store, catalog: Catalog, clock: Arc<dyn Clock>) -> Self {
        Self { store, catalog, clock }
    }

    /// Clears the rows of a dataset.
    async fn clear(&self, dataset: DatasetId) -> Result<(), store::Error> {
        while !self
            .store
            .project_clear(dataset, ROWS_PER_CHANGE, self.clock.now())
            .await?
        {}
        let mut last = None;
        loop {
            let page = self
                .store
                .project_clear_contributions(dataset, last, ROWS_PER_CHANGE)
                .await?;
            match page {
                Some(id) => last = Some(id),
                None => return Ok(()),
            }
        }
    }
}

#[async_trait]
impl JobHandler for DeleteTable {
    async fn run(&self, job: &Job) -> Result<(), JobFailure> {
        let payload = serde_json::from_str(&job.payload);
        let DeleteTablePayload { dataset } = payload.map_err(|error| JobFailure {
            reason: with_causes(&error),
            may_pass: false,
        })?;
        let began = Instant::now();
        loop {
            let deleted = self.catalog.delete_table(dataset).await;
            if deleted.map_err(|error| JobFailure::passing(&error))? {
                break;
            }
            if began.elapsed() >= SLICE {
                return self.go_on(job).await;
            }
        }
        // Rows after the table: an outcome that is on its way finds no project to change by now.
        self.clear(dataset).await.map_err(|error| JobFailure::passing(&error))?;
        fault::point("delete.cleared");
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

impl DeleteTable {
    /// Adds the job that deletes the rest.
    async fn go_on(&self, job: &Job) -> Result<(), JobFailure> {
        let now = self.clock.now();
        let next = NewJob {
            id: ids::new(now),
            kind: Self::KIND.to_owned(),
            // Of a job that is done twice there is one that goes on.
            dedupe: Some(format!("{}-then", job.id)),
            operator: None,
            payload: job.payload.clone(),
            due_at: now,
            now,
        };
        let added = self.store.flow().job_add(next).await;
        added.map(drop).map_err(|error| JobFailure::passing(&error))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::flow::jobs::JobRunner;
    use crate::testing::Service;

    /// Returns the number of files below a folder, those of stores in work aside.
    fn files(folder: &Path) -> usize {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .filter(|path| !path.ends_with(".staging"))
            .map(|path| if path.is_dir() { files(&path) } else { 1 })
            .sum()
    }

    #[tokio::test]
    async fn two_commits_stay_of_a_deleted_dataset_and_no_row_about_its_records() {
        let service = Service::start().await;
        let token = service.operator().await;
        let key = service.agent(&token, "gauge").await;
        service
            .project(&token, "secret", &json!({"visibility": "private"}))
            .await;
        for name in ["one", "two", "three"] {
            service.merged(&key, "secret", &[json!({"name": name})]).await;
        }
        let app = &service.app;
        let project = app.store.check_projects().await.unwrap().remove(0);
        assert!(files(&service.tables()) > 6);
        let deleted = service.call("DELETE", "/projects/secret", Some(&key), "").await;
        assert_eq!(deleted.status, 200);
        let run = async || {
            let deleting = DeleteTable::new(app.store.clone(), app.catalog.clone(), Arc::clone(&app.clock));
            let jobs = JobRunner::new(app.store.clone(), Arc::clone(&app.clock));
            jobs.with(DeleteTable::KIND, Arc::new(deleting)).run_due().await
        };
        assert_eq!(run().await, 1);
        assert_eq!(files(&service.tables()), 2);
        let entries = app.store.check_project(project.id).await.unwrap();
        assert_eq!((entries.contributions.len(), entries.versions.len()), (3, 0));
        assert!(entries.contributions.iter().all(|entry| entry.root.is_none()));
        assert_eq!(run().await, 0, "the other job is due in an hour");
        assert_eq!(app.store.flow().jobs_failed().await.unwrap(), []);
    }
}
