//! The query sandbox behind the door that the API has for one.
//!
//! Invariant: of a version the sandbox is given the files of its parts and nothing else.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use api::sandbox::{Answered, Column, Failure};
use async_trait::async_trait;
use catalog::Snapshot;
use types::{Clock, Contract};

use crate::config::Config;

/// Runs queries in processes of their own, over parts in a local folder.
#[derive(Debug)]
pub struct Sandbox {
    tables: PathBuf,
    processes: sql::Sandbox,
}

impl Sandbox {
    /// Starts the processes that are kept ready; `tables` is the folder of the tables.
    pub fn start(config: &Config, tables: PathBuf, clock: &Arc<dyn Clock>) -> anyhow::Result<Self> {
        let settings = sql::Config {
            standby: config.sql.standby,
            at_once: config.sql.at_once.get(),
            threads: config.sql.threads.get(),
            memory_bytes: config.sql.memory.0,
            seconds: config.limits.query_timeout.0,
            ..sql::Config::new(program()?, Arc::clone(clock))
        };
        Ok(Self {
            tables,
            processes: sql::Sandbox::start(settings).context("the processes for queries cannot be started")?,
        })
    }
}

/// This program, whatever becomes of its file.
fn program() -> anyhow::Result<PathBuf> {
    let itself = PathBuf::from("/proc/self/exe");
    if itself.exists() {
        return Ok(itself);
    }
    std::env::current_exe().context("the program does not find its own file")
}

#[async_trait]
impl api::sandbox::Sandbox for Sandbox {
    fn check(&self, sql: &str) -> Result<(), Failure> {
        sql::check(sql).map_err(|refusal| failure(refusal.into()))
    }

    async fn query(
        &self,
        contract: &Arc<Contract>,
        snapshot: &Snapshot,
        sql: &str,
        limit: u32,
    ) -> Result<Answered, Failure> {
        let part = |part: catalog::PartInfo| sql::Part {
            path: self.tables.join(part.path(snapshot.dataset()).as_ref()),
            rows: part.rows,
            bytes: part.bytes,
        };
        let records = sql::Records {
            contract: Arc::clone(contract),
            parts: snapshot.parts().into_iter().map(part).collect(),
        };
        let answer = self.processes.query(&records, sql, limit).await.map_err(failure)?;
        let column = |column: sql::Column| Column {
            name: column.name,
            kind: column.kind,
            nullable: column.nullable,
        };
        Ok(Answered {
            columns: answer.columns.into_iter().map(column).collect(),
            rows: answer.rows,
            truncated: answer.truncated,
        })
    }
}

fn failure(error: sql::Error) -> Failure {
    match error {
        sql::Error::Refused(refusal) => Failure::Refused {
            reason: refusal.to_string(),
        },
        sql::Error::Failed { message } => Failure::Failed { message },
        sql::Error::TimedOut { .. } => Failure::TimedOut,
        sql::Error::TooLarge => Failure::TooLarge {
            message: error.to_string(),
        },
        sql::Error::OutOfMemory { .. } => Failure::Failed {
            message: error.to_string(),
        },
        sql::Error::Crashed { .. } => {
            // Why the caller's: its process served this statement and nothing else.
            tracing::warn!(%error, "a query ended its process");
            Failure::Failed {
                message: "the query ended its process".to_owned(),
            }
        }
        sql::Error::Busy | sql::Error::Process { .. } | sql::Error::Part { .. } => Failure::Unavailable {
            context: format!("{:#}", anyhow::Error::from(error)),
        },
    }
}
