//! A worker with its log, its tables and a screener that does what a record says.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use catalog::storage::DurableLocal;
use catalog::{Catalog, Reserve};
use eventlog::{Delivered, Embedded, EmbeddedOptions, EventLog, Record, Subscription};
use operators::screen::{Cause, Opinion, Screener, Unavailable};
use pipelines::isolation::Isolation;
use pipelines::message::{
    BASE_FORMAT, CONTRIBUTIONS_TOPIC, DEAD_LETTERS, DeadLetter, OUTCOMES_TOPIC, Outcome, Records, Resolution, Source,
    Submission,
};
use pipelines::{Config, Uploads, Worker};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use types::clock::ManualClock;
use types::vocabulary::OnRefused;
use types::{AgentId, Clock, Contract, ContributionId, DatasetId, Timestamp, Version};
use uploads::{Compression, LocalUploads, PartTag, Stagings, UploadLayout, UploadStore as _};

use crate::faulty::{Faulty, Fuse};
use crate::trials::Trials;

/// One partition, so that every dataset shares it.
fn open(dir: &TempDir, name: &str) -> Arc<Faulty> {
    let options = EmbeddedOptions {
        partitions: 1,
        retain: 1_000,
    };
    Faulty::new(Embedded::open(dir.path().join(name), options).unwrap())
}

/// A screener that does what the text of a record says.
#[derive(Debug)]
pub(crate) struct Scripted {
    /// Records with `"slow"` take one permit each.
    pub(crate) slow: Semaphore,
    /// Records with `"stuck"` keep their thread until this is dropped.
    pub(crate) stuck: Mutex<Option<Sender<()>>>,
    keeps: Mutex<Receiver<()>>,
    /// Records with `"hold"` are held while this is true.
    pub(crate) holding: Mutex<bool>,
    pub(crate) calls: Mutex<usize>,
    /// Contributions that began.
    pub(crate) contributions: AtomicUsize,
    /// Records with `"lethal"` end the process while this is true: [`Self::dying`] is told, and whoever waits for that
    /// ends it.
    pub(crate) mortal: AtomicBool,
    pub(crate) dying: Notify,
    busy: AtomicUsize,
    /// The most calls at the same time.
    pub(crate) busiest: AtomicUsize,
}

/// A call that is going on.
struct Call<'a>(&'a AtomicUsize);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Screener for Scripted {
    async fn screen(&self, records: &[&str]) -> Result<Vec<Opinion>, Unavailable> {
        *self.calls.lock().unwrap() += 1;
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.busiest.fetch_max(busy, Ordering::SeqCst);
        let _call = Call(&self.busy);
        if self.mortal.load(Ordering::SeqCst) && records.iter().any(|record| record.contains("lethal")) {
            self.dying.notify_one();
            std::future::pending::<()>().await;
        }
        if records.iter().any(|record| record.contains("slow")) {
            self.slow.acquire().await.unwrap().forget();
        }
        if records.iter().any(|record| record.contains("stuck")) {
            let released = self.keeps.lock().unwrap().recv();
            assert!(released.is_err(), "nothing is sent");
        }
        let fatal = records.iter().any(|record| record.contains("panic"));
        assert!(!fatal, "a screener that panics");
        if records.iter().any(|record| record.contains("hold")) && *self.holding.lock().unwrap() {
            return Err(Unavailable {
                reason: Cause::Budget,
                resumes_after: Some(Timestamp::from_micros(7)),
            });
        }
        Ok(vec![Opinion::Acceptable; records.len()])
    }

    fn for_contribution(&self) -> Option<Arc<dyn Screener>> {
        self.contributions.fetch_add(1, Ordering::SeqCst);
        None
    }
}

pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) log: Arc<Faulty>,
    /// How many logs were lost.
    logs: usize,
    pub(crate) screener: Arc<Scripted>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) outcomes: Box<dyn Subscription>,
    pub(crate) seen: HashMap<ContributionId, Vec<Outcome>>,
    pub(crate) config: Config,
    pub(crate) objects: LocalUploads,
    pub(crate) trials: Arc<Trials>,
    /// Whether suspects are tried out.
    pub(crate) is_isolated: bool,
    pub(crate) stagings: Stagings,
    /// The most records of an upload, where it is not as many as usual.
    pub(crate) most_rows: Option<u64>,
    pub(crate) worker: Option<(CancellationToken, JoinHandle<Result<(), pipelines::Error>>)>,
    process: Process,
}

/// What stands for the process of a worker: everything in it ends at once.
#[derive(Default)]
struct Process(Option<Runtime>);

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// After so long, an outcome that was told is not on its way any more.
pub(crate) const LATER: Duration = Duration::from_secs(10);

pub(crate) fn config() -> Config {
    Config {
        group: "workers".to_owned(),
        judged_ahead: 4,
        writer_bytes: 1 << 20,
        queue_bytes: 8 << 20,
        idle_seconds: 60,
        retry_first_ms: 1,
        retry_most_ms: 10,
        grace_seconds: 10,
    }
}

pub(crate) fn contract() -> Contract {
    serde_json::from_value(json!({"fields": [{"name": "text", "type": "string", "required": true}]})).unwrap()
}

pub(crate) fn texts<const N: usize>(texts: [&str; N]) -> Vec<Value> {
    texts.into_iter().map(|text| json!({"text": text})).collect()
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(config()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let dir = TempDir::new().unwrap();
        let log = open(&dir, "log");
        let outcomes = log.subscribe(OUTCOMES_TOPIC, "test").await.unwrap();
        let (stuck, keeps) = channel();
        let screener = Scripted {
            slow: Semaphore::new(0),
            stuck: Mutex::new(Some(stuck)),
            keeps: Mutex::new(keeps),
            holding: Mutex::new(true),
            calls: Mutex::new(0),
            contributions: AtomicUsize::new(0),
            mortal: AtomicBool::new(true),
            dying: Notify::new(),
            busy: AtomicUsize::new(0),
            busiest: AtomicUsize::new(0),
        };
        let objects = LocalUploads::open(dir.path().join("uploads"), Reserve::default()).unwrap();
        let mut world = Self {
            dir,
            log,
            logs: 0,
            screener: Arc::new(screener),
            clock: Arc::new(ManualClock::at("2026-11-21T00:00:00Z".parse().unwrap())),
            outcomes,
            seen: HashMap::new(),
            config,
            objects,
            trials: Arc::default(),
            is_isolated: true,
            stagings: Stagings::default(),
            most_rows: None,
            worker: None,
            process: Process::default(),
        };
        world.begin().await;
        world
    }

    /// Starts the worker; what is appended afterwards is no suspect.
    pub(crate) async fn begin(&mut self) {
        let mut begun = self.log.begun();
        let before = *begun.borrow();
        self.start();
        begun.wait_for(|begun| *begun > before).await.unwrap();
    }

    /// One whose worker has not started.
    pub(crate) async fn asleep(config: Config) -> Self {
        let mut world = Self::with(config).await;
        world.stop().await;
        world
    }

    pub(crate) fn catalog(&self, index: &str) -> Catalog {
        let tables = DurableLocal::open(self.dir.path().join("tables")).unwrap();
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        Catalog::open(Arc::new(tables), self.dir.path().join(index), clock).unwrap()
    }

    /// What a reader that shares nothing with the worker finds: the latest version and its number of records.
    pub(crate) async fn latest(&self, dataset: DatasetId) -> (Version, u64) {
        let snapshot = self.catalog("reader").snapshot(dataset, None).await.unwrap().unwrap();
        (snapshot.version(), snapshot.record_count())
    }

    /// How many parts the latest version has for a reader that shares nothing with the worker, once that is `expected`.
    pub(crate) async fn parts(&self, dataset: DatasetId, expected: usize) {
        let found = tokio::time::timeout(Duration::from_secs(20), async {
            loop {
                let snapshot = self.catalog("reader").snapshot(dataset, None).await.unwrap().unwrap();
                if snapshot.parts().len() == expected {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        found.await.unwrap();
    }

    pub(crate) fn start(&mut self) {
        let (stop, worker) = (CancellationToken::new(), self.worker());
        self.worker = Some((stop.clone(), tokio::spawn(worker.run(stop))));
    }

    /// Starts the worker in a process of its own.
    pub(crate) fn live(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let (stop, worker) = (CancellationToken::new(), self.worker());
        self.worker = Some((stop.clone(), runtime.spawn(worker.run(stop))));
        self.process = Process(Some(runtime));
    }

    /// Ends the process of the worker.
    pub(crate) async fn die(&mut self) {
        self.worker = None;
        let runtime = self.process.0.take().unwrap();
        let ended = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::from_secs(10)));
        ended.await.unwrap();
    }

    fn worker(&self) -> Worker {
        let log = Arc::clone(&self.log) as Arc<dyn EventLog>;
        let screener = Arc::clone(&self.screener) as Arc<dyn Screener>;
        let worker = Worker::new(
            log,
            // As often as can be, so that whatever is tested here is with compactions in between.
            self.catalog("index").with_compaction(catalog::Policy::new(2, 1 << 30)),
            screener,
            Arc::new(Fuse {
                clock: Arc::clone(&self.clock),
                log: Arc::clone(&self.log),
            }),
            self.config.clone(),
        );
        let isolation = self.is_isolated.then(|| Arc::clone(&self.trials) as Arc<dyn Isolation>);
        let uploads = Uploads::new(Arc::new(self.objects.clone()), self.stagings.clone());
        worker.with_isolation(isolation).with_uploads(match self.most_rows {
            Some(rows) => uploads.with_most_rows(rows),
            None => uploads,
        })
    }

    /// Goes on with a new log: no position and no outcome is left, only the tables.
    pub(crate) async fn lose_the_log(&mut self) {
        self.stop().await;
        self.logs += 1;
        self.log = open(&self.dir, &format!("log-{}", self.logs));
        self.outcomes = self.log.subscribe(OUTCOMES_TOPIC, "test").await.unwrap();
        self.seen.clear();
        self.start();
    }

    pub(crate) async fn stop(&mut self) {
        if let Some((stop, worker)) = self.worker.take() {
            stop.cancel();
            worker.await.unwrap().unwrap();
        }
        self.process = Process::default();
    }

    pub(crate) fn dataset(&self) -> DatasetId {
        DatasetId::new(self.clock.now())
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers make the records for it")]
    pub(crate) fn submission(&self, dataset: DatasetId, records: Vec<Value>) -> Submission {
        Submission {
            format: BASE_FORMAT,
            contribution: ContributionId::new(self.clock.now()),
            generation: 0,
            dataset,
            agent: AgentId::new(self.clock.now()),
            private: false,
            contract: contract(),
            submitted_at: self.clock.now(),
            source: Source::Inline(Records::of(&records).unwrap()),
            origin: None,
            head: None,
            on_refused: OnRefused::Reject,
            reading: None,
        }
    }

    /// An upload of these bytes in parts of `part_size`, sealed.
    pub(crate) async fn upload(
        &self,
        dataset: DatasetId,
        bytes: &[u8],
        part_size: usize,
        compression: Compression,
    ) -> Submission {
        let mut submission = self.submission(dataset, Vec::new());
        let parts: Vec<&[u8]> = bytes.chunks(part_size).collect();
        let cut = UploadLayout {
            upload: submission.contribution,
            bytes: bytes.len() as u64,
            parts: u32::try_from(parts.len()).unwrap(),
            part_size: part_size as u64,
            compression,
        };
        let mut tags = Vec::new();
        for (n, part) in (1..).zip(parts) {
            let mut writer = self.objects.writer().unwrap();
            writer.write(part).unwrap();
            let etag = writer.finish(cut.upload, n).unwrap();
            tags.push(PartTag { n, etag });
        }
        self.objects.complete(&cut, &tags).await.unwrap();
        submission.source = Source::Upload(cut);
        submission
    }

    pub(crate) async fn append(&self, record: Record) {
        self.log.append(CONTRIBUTIONS_TOPIC, vec![record]).await.unwrap();
    }

    pub(crate) async fn submit(&self, dataset: DatasetId, records: Vec<Value>) -> ContributionId {
        let submission = self.submission(dataset, records);
        self.append(submission.record().unwrap()).await;
        submission.contribution
    }

    /// The next outcome of a contribution that was not returned before.
    pub(crate) async fn outcome(&mut self, id: ContributionId) -> Outcome {
        loop {
            if let Some(seen) = self.seen.get_mut(&id).filter(|seen| !seen.is_empty()) {
                return seen.remove(0);
            }
            for delivered in self.outcomes.next(64).await.unwrap() {
                let outcome = Outcome::decode(&delivered.record.value).unwrap();
                self.seen.entry(outcome.contribution).or_default().push(outcome);
            }
        }
    }

    pub(crate) async fn rejected(&mut self, id: ContributionId) -> String {
        match self.outcome(id).await.resolution {
            Resolution::Rejected { code, .. } => code,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn letters(&self, count: usize) -> Vec<DeadLetter> {
        let mut letters = self.log.subscribe(DEAD_LETTERS, "test").await.unwrap();
        let mut seen = Vec::new();
        while seen.len() < count {
            let batch = letters.next(64).await.unwrap();
            let read = |delivered: &Delivered| serde_json::from_slice(&delivered.record.value).unwrap();
            seen.extend(batch.iter().map(read));
        }
        seen
    }

    /// The versions of a dataset in the order in which they were told, from the first up to the first telling of
    /// `last`.
    pub(crate) async fn told(&self, dataset: DatasetId, last: u64) -> Vec<u64> {
        let mut outcomes = self.log.recent(OUTCOMES_TOPIC, u64::MAX).await.unwrap();
        let mut told = Vec::new();
        loop {
            for delivered in outcomes.next(64).await.unwrap() {
                let outcome = Outcome::decode(&delivered.record.value).unwrap();
                match outcome.resolution {
                    Resolution::Merged { version, .. } if outcome.dataset == dataset => told.push(version.0),
                    _ => continue,
                }
                if told.last() == Some(&last) {
                    return told;
                }
            }
        }
    }

    pub(crate) async fn merged(&mut self, id: ContributionId) -> (u64, u64) {
        match self.outcome(id).await.resolution {
            Resolution::Merged { version, accepted, .. } => (version.0, accepted),
            other => panic!("{other:?}"),
        }
    }
}
