//! Interface to the reader of files, which works in processes of its own, and the shares of operators in their time.
//!
//! Invariants:
//! - One call of an operator is in work, from before its body is read. Two processes work at once.
//! - Nothing of a file is stored or logged.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;
use types::vocabulary::OnRefused;
use types::{Contract, OperatorId, Timestamp};

use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::state::holder_limit::{HolderLimit, HolderPermit};

/// Processes that read files at the same time.
const FILE_PROCESSES: usize = 2;
/// Processor time of an operator's files in [`BUDGET_WINDOW`].
const BUDGET: Duration = Duration::from_mins(1);
const BUDGET_WINDOW: Duration = Duration::from_mins(10);
/// `Retry-After` while another file of the operator is read, in seconds. Most take less.
const ALONE_SECONDS: u64 = 1;

/// Reads files.
#[async_trait]
pub trait FileReader: Debug + Send + Sync {
    /// Says what a file is: an object with the members of an inference. With a contract it judges the records by it.
    async fn infer(&self, job: FileJob) -> FileDone<Value>;

    /// Returns the records of a Parquet, Arrow or XLSX file as JSON Lines; line N is row N.
    async fn convert(&self, job: FileJob) -> FileDone<Bytes>;
}

/// A file, and what is known of it.
#[derive(Clone, Debug)]
pub struct FileJob {
    /// The bytes of the file.
    pub body: Bytes,
    /// Flags of the command line, each with its value; empty for none.
    pub flags: Vec<(String, String)>,
    /// Reading of another file, or an edited one.
    pub reading: Option<Value>,
    /// Contract that the records are judged by.
    pub contract: Option<Arc<Contract>>,
    /// Effect of refused records.
    pub on_refused: OnRefused,
}

/// The work on a file.
#[derive(Debug)]
pub struct FileDone<T> {
    /// Processor time that it took, or may have taken.
    pub processor: Duration,
    /// What came of it.
    pub result: Result<T, FileFailure>,
}

/// Reason why a file is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFailure {
    /// A flag, or the reading, breaks a rule: the path in the body, and the rule.
    Input {
        /// Path of the member.
        path: String,
        /// Broken rule.
        problem: String,
    },
    /// The file is none that is read.
    Refused(String),
    /// A person has to decide something first; the questions in words.
    Open(Vec<String>),
    /// The file comes to more than may be read here.
    TooLarge(String),
    /// No process could read the file; the cause, for the log.
    Unavailable(String),
}

/// The most processor time of one process.
pub const FILE_PROCESSOR: Duration = Duration::from_secs(20);

/// Shares of operators in the reading of files.
#[derive(Debug)]
pub(crate) struct FileShares {
    /// The place of each operator's call.
    calls: HolderLimit,
    /// Places of processes. They are taken in the order of arrival.
    pub(crate) processes: Semaphore,
    used: Mutex<HashMap<OperatorId, VecDeque<(Timestamp, Duration)>>>,
}

impl Default for FileShares {
    fn default() -> Self {
        Self {
            calls: HolderLimit::new(1),
            processes: Semaphore::new(FILE_PROCESSES),
            used: Mutex::default(),
        }
    }
}

impl FileShares {
    /// Takes the place of an operator's call.
    pub(crate) fn place(&self, operator: OperatorId) -> Result<HolderPermit, ApiError> {
        self.calls.try_acquire(operator, 1).ok_or_else(|| {
            let message = "another file of this operator is being read";
            ApiError::limited(ErrorCode::Busy, message, ALONE_SECONDS)
        })
    }

    /// Returns the time until the operator has processor time again; `None` if it has some now.
    pub(crate) fn wait(&self, operator: OperatorId, now: Timestamp) -> Option<Duration> {
        let mut used = self.used.lock();
        // Operators without a call in the window are forgotten at each call.
        used.retain(|_, calls| {
            calls.retain(|(at, _)| now.since(*at) < BUDGET_WINDOW);
            !calls.is_empty()
        });
        let calls = used.get(&operator)?;
        let mut left: Duration = calls.iter().map(|(_, time)| *time).sum();
        if left < BUDGET {
            return None;
        }
        let freed = calls.iter().find(|(_, time)| {
            left = left.saturating_sub(*time);
            left < BUDGET
        });
        freed.map(|(at, _)| BUDGET_WINDOW.saturating_sub(now.since(*at)))
    }

    /// Counts the processor time of a call.
    pub(crate) fn spend(&self, operator: OperatorId, now: Timestamp, time: Duration) {
        self.used.lock().entry(operator).or_default().push_back((now, time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_has_a_minute_of_processor_time_in_ten() {
        let shares = FileShares::default();
        let [ada, eve] = [1, 2].map(|byte| OperatorId::from_bytes([byte; 16]));
        let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        assert_eq!(shares.wait(ada, at(0)), None);
        shares.spend(ada, at(0), Duration::from_secs(20));
        shares.spend(ada, at(100), Duration::from_secs(39));
        assert_eq!(shares.wait(ada, at(100)), None, "59 seconds are used");
        shares.spend(ada, at(200), Duration::from_secs(20));
        assert_eq!(shares.wait(ada, at(200)), Some(Duration::from_secs(400)));
        assert_eq!(shares.wait(eve, at(200)), None, "others have their own");
        assert_eq!(shares.wait(ada, at(600)), None, "the first call is 10 minutes ago");
        assert_eq!(shares.wait(eve, at(10_000)), None);
        assert!(shares.used.lock().is_empty(), "old calls are forgotten");
    }
}
