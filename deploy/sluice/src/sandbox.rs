//! The query sandbox as the API's trait.
//!
//! Invariant: the sandbox gets the files of one version's parts and nothing else.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use api::state::sandbox::{AnswerColumn, AnswerRepetition, SandboxAnswer, SandboxFailure, SandboxQuery};
use async_trait::async_trait;
use catalog::{HeldParts, PartCache, Snapshot};
use proof::query_receipt::BuildId;
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};
use types::error::with_causes;
use types::{Classify, Clock, Contract, DatasetId, Kind, Proof, metric};

use crate::config::Config;

/// Bytes of the program that are hashed at a time.
const HASHED_PIECE_BYTES: usize = 64 << 10;

/// Source of the files of parts.
#[derive(Debug)]
pub enum PartFiles {
    /// The folder of the tables.
    Folder(PathBuf),
    /// A cache of copies, which are fetched from the bucket.
    Fetched(PartCache),
}

/// Runs each query in a process of its own, over parts in local files.
#[derive(Debug)]
pub struct ProcessSandbox {
    files: PartFiles,
    /// The program, once somebody asked for it.
    build: OnceCell<BuildId>,
    /// The time-out of a query, which includes fetching its parts.
    time: Duration,
    processes: sql::Sandbox,
}

impl ProcessSandbox {
    /// Starts the idle processes.
    pub fn start(config: &Config, files: PartFiles, clock: &Arc<dyn Clock>) -> anyhow::Result<Self> {
        let settings = sql::SandboxConfig {
            standby: config.sql.standby,
            at_once: config.sql.at_once.get(),
            threads: config.sql.threads.get(),
            memory_bytes: config.sql.memory.0,
            seconds: config.limits.query_timeout.0,
            ..sql::SandboxConfig::new(program()?, Arc::clone(clock))
        };
        Ok(Self {
            files,
            build: OnceCell::new(),
            time: config.limits.query_timeout.0,
            processes: sql::Sandbox::start(settings).context("the processes for queries cannot be started")?,
        })
    }
}

/// Returns a path of the running program that stays valid when its file is replaced or removed.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    // The link of Linux names the running program, even after its file was replaced by an update.
    let itself = PathBuf::from("/proc/self/exe");
    if itself.exists() {
        return Ok(itself);
    }
    std::env::current_exe().context("cannot find the program's own file")
}

/// Returns the id of the running program, which is read and hashed.
pub(crate) async fn build() -> anyhow::Result<BuildId> {
    let hashing = tokio::task::spawn_blocking(|| -> anyhow::Result<BuildId> {
        let path = program()?;
        let mut file = File::open(&path).with_context(|| format!("cannot open `{}`", path.display()))?;
        let mut hasher = Sha256::new();
        let mut piece = vec![0; HASHED_PIECE_BYTES];
        loop {
            let read = file
                .read(&mut piece)
                .with_context(|| format!("cannot read `{}`", path.display()))?;
            match piece.get(..read) {
                Some(read) if !read.is_empty() => hasher.update(read),
                _ => break,
            }
        }
        Ok(BuildId::of_sha256(&hasher.finalize().into()))
    });
    hashing.await.context("the program's own file could not be read")?
}

#[async_trait]
impl api::state::sandbox::QuerySandbox for ProcessSandbox {
    fn forget(&self, dataset: DatasetId) {
        match &self.files {
            PartFiles::Folder(_) => {}
            PartFiles::Fetched(cache) => cache.forget_table(dataset),
        }
    }

    async fn check(&self, sql: &str) -> Result<(), SandboxFailure> {
        sql::check(sql).await.map_err(failure)
    }

    async fn query(
        &self,
        contract: &Arc<Contract>,
        snapshot: &Snapshot,
        asked: &SandboxQuery<'_>,
    ) -> Result<SandboxAnswer, SandboxFailure> {
        // Fetching and running share one time-out.
        let until = Instant::now() + self.time;
        let parts = snapshot.parts();
        // The copies stay held until the process has opened them. Otherwise the cache could remove them to make space.
        let (paths, held): (Vec<PathBuf>, Option<HeldParts>) = match &self.files {
            PartFiles::Folder(tables) => {
                let path = |part: &catalog::PartInfo| tables.join(part.path(snapshot.dataset()).as_ref());
                (parts.iter().map(path).collect(), None)
            }
            PartFiles::Fetched(cache) => {
                let held = timeout_at(until, cache.hold(snapshot.dataset(), &parts)).await;
                let held = held.map_err(|_late| {
                    unavailable("the parts were not fetched in time; those that were stay in the cache")
                })?;
                let held = held.map_err(|error| not_ready(&error))?;
                (held.paths(), Some(held))
            }
        };
        let proofs = timeout_at(until, snapshot.proofs(&parts)).await;
        let proofs = proofs.map_err(|_late| unavailable("the hashes of the parts were not read in time"))?;
        let proofs = proofs.map_err(|error| not_ready(&error))?;
        let part = |((part, path), proof): ((&catalog::PartInfo, PathBuf), Arc<Proof>)| sql::SandboxPart {
            path,
            rows: part.rows,
            proof,
        };
        let records = sql::VersionRecords {
            contract: Arc::clone(contract),
            parts: parts.iter().zip(paths).zip(proofs).map(part).collect(),
        };
        // The program is hashed before the statement runs, and once.
        let build = match asked.now {
            Some(_) => Some(
                *self
                    .build
                    .get_or_try_init(build)
                    .await
                    .map_err(|error| unavailable(&format!("the program that answers is not known: {error:#}")))?,
            ),
            None => None,
        };
        let query = measured(async {
            if let Some(now) = asked.now {
                self.processes.query_at(&records, asked.sql, asked.limit, now).await
            } else if asked.has_places {
                self.processes.query_with_places(&records, asked.sql, asked.limit).await
            } else if asked.is_steady {
                self.processes.query_steadily(&records, asked.sql, asked.limit).await
            } else {
                self.processes.query(&records, asked.sql, asked.limit).await
            }
        });
        let answered = match self.files {
            PartFiles::Folder(_) => query.await,
            // The sandbox has its own time-out, which does not know the time that fetching took.
            PartFiles::Fetched(_) => timeout_at(until, query)
                .await
                .map_err(|_late| SandboxFailure::TimedOut)?,
        };
        // The next query fetches the damaged copies again.
        if let (Err(sql::Error::Damaged { .. }), Some(held)) = (&answered, &held) {
            held.forget();
        }
        let answer = answered.map_err(failure)?;
        let column = |column: sql::Column| AnswerColumn {
            name: column.name,
            kind: column.kind,
            nullable: column.nullable,
        };
        Ok(SandboxAnswer {
            columns: answer.columns.into_iter().map(column).collect(),
            rows: answer.rows,
            truncated: answer.truncated,
            repetition: asked.now.zip(build).map(|(now, build)| AnswerRepetition {
                now,
                build,
                why: answer.unrepeatable.iter().map(|reason| reason.as_str()).collect(),
            }),
        })
    }
}

fn unavailable(context: &str) -> SandboxFailure {
    SandboxFailure::Unavailable {
        context: context.to_owned(),
    }
}

/// Converts an error of preparing the parts of a version.
fn not_ready(error: &(impl Classify + std::error::Error)) -> SandboxFailure {
    let context = with_causes(error);
    match error.kind() {
        Kind::Damaged => SandboxFailure::Damaged { context },
        _ => SandboxFailure::Unavailable { context },
    }
}

/// A running query, counted until it is dropped, so also when its caller goes away.
struct RunningQuery(Instant);

impl RunningQuery {
    fn begin() -> Self {
        metrics::gauge!(metric::QUERIES_RUNNING).increment(1.0);
        Self(Instant::now())
    }
}

impl Drop for RunningQuery {
    fn drop(&mut self) {
        metrics::gauge!(metric::QUERIES_RUNNING).decrement(1.0);
        metrics::histogram!(metric::QUERY_SECONDS).record(self.0.elapsed().as_secs_f64());
    }
}

async fn measured<T>(query: impl Future<Output = Result<T, sql::Error>>) -> Result<T, sql::Error> {
    let _run = RunningQuery::begin();
    let answer = query.await;
    let result = match &answer {
        Ok(_) => "ok",
        Err(sql::Error::Refused(_)) => "refused",
        Err(sql::Error::Failed { .. }) => "failed",
        Err(sql::Error::TimedOut { .. }) => "timed_out",
        Err(sql::Error::TooLarge) => "too_large",
        Err(sql::Error::OutOfMemory { .. }) => "out_of_memory",
        Err(sql::Error::Crashed { .. }) => "crashed",
        Err(sql::Error::Busy) => "busy",
        Err(error) if error.kind() == Kind::Damaged => "damaged",
        Err(
            sql::Error::Process { .. }
            | sql::Error::Part { .. }
            | sql::Error::Unreadable { .. }
            | sql::Error::Damaged { .. },
        ) => "unavailable",
    };
    metrics::counter!(metric::QUERIES, "result" => result).increment(1);
    answer
}

fn failure(error: sql::Error) -> SandboxFailure {
    match error {
        sql::Error::Refused(refusal) => SandboxFailure::Refused {
            reason: format!("{}: {}", refusal.what, refusal.rule),
        },
        sql::Error::Failed { message } => SandboxFailure::Failed { message },
        sql::Error::TimedOut { .. } => SandboxFailure::TimedOut,
        sql::Error::TooLarge => SandboxFailure::TooLarge {
            message: error.to_string(),
        },
        sql::Error::OutOfMemory { .. } => SandboxFailure::Failed {
            message: error.to_string(),
        },
        sql::Error::Crashed { .. } => {
            // The failure is the caller's: the process served this statement and nothing else.
            tracing::warn!(%error, "a query crashed its process; only that query failed");
            SandboxFailure::Failed {
                message: "the query crashed its process".to_owned(),
            }
        }
        sql::Error::Busy => SandboxFailure::Busy,
        sql::Error::Damaged { .. } | sql::Error::Part { .. } if error.kind() == Kind::Damaged => {
            metrics::counter!(metric::DAMAGE, "file" => "part").increment(1);
            not_ready(&error)
        }
        sql::Error::Process { .. }
        | sql::Error::Part { .. }
        | sql::Error::Unreadable { .. }
        | sql::Error::Damaged { .. } => not_ready(&error),
    }
}
