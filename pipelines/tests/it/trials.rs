//! An isolation without processes: its children die, hang or tell nothing, as the text of a message says.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use messages::UnitSubmission;
use pipelines::isolation::{Isolation, Probe, ProbeResult};
use pipelines::message::{Source, Submission};
use tokio::sync::Semaphore;
use types::ContributionId;

/// Processes that messages are tried out in.
#[derive(Debug)]
pub(crate) struct Trials {
    /// Messages with `"lethal"` are condemned while this is true.
    pub(crate) mortal: AtomicBool,
    /// Messages with `"hang"` take one permit each.
    pub(crate) hangs: Semaphore,
    /// The trials that began.
    pub(crate) begun: AtomicUsize,
    tried: Mutex<Vec<ContributionId>>,
}

impl Default for Trials {
    fn default() -> Self {
        Self {
            mortal: AtomicBool::new(true),
            hangs: Semaphore::new(0),
            begun: AtomicUsize::new(0),
            tried: Mutex::default(),
        }
    }
}

impl Trials {
    /// The contributions that were tried out since the last call, in the order of their ids.
    pub(crate) fn tried(&self) -> Vec<ContributionId> {
        let mut tried = std::mem::take(&mut *self.tried.lock().unwrap());
        tried.sort_unstable();
        tried
    }
}

#[async_trait]
impl Isolation for Trials {
    async fn probe(&self, trial: Probe<'_>) -> ProbeResult {
        let text = match trial {
            Probe::Unit(record) => {
                UnitSubmission::decode(&record.value).map_or_else(|_| Vec::new(), |unit| unit.text.body.into())
            }
            Probe::Batch(record) | Probe::Upload { record, .. } => {
                let Ok(submission) = Submission::decode(&record.value) else {
                    return ProbeResult::Survived;
                };
                self.tried.lock().unwrap().push(submission.contribution);
                match (submission.source, trial) {
                    (Source::Inline(records), _) => records.text().to_vec(),
                    (Source::Upload(layout), Probe::Upload { objects, .. }) => {
                        objects.read(&layout, 1, 0..layout.bytes).await.unwrap().to_vec()
                    }
                    (Source::Upload(_), _) => panic!("an upload is tried out as a batch"),
                }
            }
        };
        self.begun.fetch_add(1, Ordering::SeqCst);
        let has = |word: &str| text.windows(word.len()).any(|window| window == word.as_bytes());
        if has("hang") {
            self.hangs.acquire().await.unwrap().forget();
        }
        if has("lethal") && self.mortal.load(Ordering::SeqCst) {
            return ProbeResult::Died {
                how: "SIGABRT".to_owned(),
            };
        }
        if has("killed") {
            return ProbeResult::Unknown {
                why: "somebody killed it".to_owned(),
            };
        }
        ProbeResult::Survived
    }
}
