//! A sandbox of queries and a reader of files that do what a test tells them by a keyword.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use catalog::Snapshot;
use proof::query_receipt::BuildId;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Notify, Semaphore};
use types::Contract;

use crate::state::files::{FileDone, FileFailure, FileJob, FileReader};
use crate::state::sandbox::{
    AnswerColumn, AnswerRepetition, QuerySandbox, SandboxAnswer, SandboxFailure, SandboxQuery,
};

/// Things that have come to a point, each of which is awaited once.
#[derive(Debug)]
pub(crate) struct Arrivals(Semaphore);

impl Default for Arrivals {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Arrivals {
    fn add(&self) {
        self.0.add_permits(1);
    }

    /// Waits for the next one.
    pub(crate) async fn next(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

/// A sandbox that acts on keywords instead of SQL (`hang`, `time out`, `wait`, `refuse`, `fail`, `explode`,
/// `list`), and otherwise counts the records. After `pause ` it waits to be told before it does so. Only a count can be
/// repeated.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    /// Counts the statements that hang or pause.
    pub(crate) hanging: Arrivals,
    /// Lets a statement that pauses go on.
    pub(crate) going_on: Notify,
}

#[async_trait]
impl QuerySandbox for Scripted {
    async fn check(&self, sql: &str) -> Result<(), SandboxFailure> {
        let reason = "`EXPLAIN` is no SELECT".to_owned();
        (sql != "refuse")
            .then_some(())
            .ok_or(SandboxFailure::Refused { reason })
    }

    async fn query(
        &self,
        _: &Arc<Contract>,
        snapshot: &Snapshot,
        asked: &SandboxQuery<'_>,
    ) -> Result<SandboxAnswer, SandboxFailure> {
        let message = "division by zero".to_owned();
        let repetition = asked.now.map(|now| AnswerRepetition {
            now,
            build: BuildId::of_sha256(&[0xb1; 32]),
            why: if asked.sql == "list" { vec!["order"] } else { Vec::new() },
        });
        let paused = asked.sql.strip_prefix("pause ");
        if paused.is_some() {
            self.hanging.add();
            self.going_on.notified().await;
        }
        match paused.unwrap_or(asked.sql) {
            "hang" => {
                self.hanging.add();
                std::future::pending().await
            }
            "time out" => Err(SandboxFailure::TimedOut),
            "wait" => Err(SandboxFailure::Busy),
            "fail" => Err(SandboxFailure::Failed { message }),
            "explode" => Err(SandboxFailure::TooLarge { message }),
            "be gone" => Err(SandboxFailure::Unavailable { context: message }),
            // As many rows of a kilobyte as may be, in another order each time where that is left open.
            "list" => {
                let mut rows: Vec<_> = (0..asked.limit)
                    .map(|row| format!("[\"{row} {}\"]", "x".repeat(1_000)))
                    .collect();
                if !asked.is_steady {
                    rows.reverse();
                }
                Ok(SandboxAnswer {
                    columns: Vec::new(),
                    rows: rows
                        .into_iter()
                        .map(|row| RawValue::from_string(row).unwrap())
                        .collect(),
                    truncated: true,
                    repetition,
                })
            }
            _ => Ok(SandboxAnswer {
                columns: vec![AnswerColumn {
                    name: "n".to_owned(),
                    kind: "Int64".to_owned(),
                    nullable: false,
                }],
                rows: [snapshot.record_count(), asked.limit.into()]
                    .map(|value| RawValue::from_string(format!("[{value}]")).unwrap())
                    .into(),
                truncated: false,
                repetition,
            }),
        }
    }
}

/// Files that are told by their text: `hang`, `damaged`, `large`, `open`, and otherwise a file of one column.
#[derive(Debug, Default)]
pub(crate) struct ScriptedFiles {
    /// Counts the files that hang.
    pub(crate) hanging: Arrivals,
}

impl ScriptedFiles {
    async fn read<T>(&self, job: FileJob, answer: impl FnOnce(FileJob) -> T) -> FileDone<T> {
        let result = match &job.body[..] {
            b"hang" => {
                self.hanging.add();
                std::future::pending().await
            }
            b"damaged" => Err(FileFailure::Refused("the file is damaged".to_owned())),
            b"large" => Err(FileFailure::TooLarge("the file comes to 1 GiB".to_owned())),
            b"open" => Err(FileFailure::Open(vec!["which sheet?".to_owned()])),
            _ => Ok(answer(job)),
        };
        FileDone {
            processor: Duration::from_secs(15),
            result,
        }
    }
}

#[async_trait]
impl FileReader for ScriptedFiles {
    async fn infer(&self, job: FileJob) -> FileDone<Value> {
        let answer = |job: FileJob| {
            serde_json::json!({
                "format": "csv", "complete": true, "textBytes": job.body.len(), "records": 1,
                "columns": [{"name": "n", "field": "n", "type": "integer", "nulls": 0, "examples": ["1"]}],
                "schemaDef": {"fields": [{"name": "n", "type": "integer"}]}, "reading": {"format": "csv"},
                "sample": [{"n": 1}], "notes": [], "questions": [],
            })
        };
        self.read(job, answer).await
    }

    async fn convert(&self, job: FileJob) -> FileDone<Bytes> {
        self.read(job, |_| Bytes::from_static(b"\n{\"n\":1}\n")).await
    }
}
