//! 500 records over HTTP, from the request to merged and readable, against the raw durable writes of the same sizes.
//!
//! The raw round does what a batch costs at least: the acknowledgement's row and its outcome's in a write-ahead log,
//! the submission and its outcome in the event log, and part and commit as new files: two appends of the batch, two of
//! the outcome, and two files that are written, synced, linked and have their folder synced.
//!
//! With `--sync-delay-ms N` every sync of both sides takes that much longer: an emulation of the disk that the goal was
//! set on, whose syncs took 4 ms.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::world::{Agent, Operator, batch, merged, project_body};
use tests::{Http, Options, Server};

use crate::report::Report;
use crate::syncs::Folder;
use crate::usage::{cpu_of, wake_ups_of};
use crate::{RECORDS, contract, percentile, records, sorted};

/// Measured rounds.
const ROUNDS: usize = 300;
/// Rounds before anything is measured.
const WARM_UP: usize = 30;
/// The goal: the batch against the raw writes.
const GOAL: f64 = 1.5;

/// The sizes of the writes of a batch, in bytes.
struct Sizes {
    submission: usize,
    outcome: usize,
    part: usize,
    commit: usize,
}

/// Files that are only appended to, and a folder for new ones.
struct Raw {
    folder: PathBuf,
    database: File,
    log: File,
    sizes: Sizes,
    noise: Vec<u8>,
}

impl Raw {
    fn new(folder: &Path, sizes: Sizes) -> Self {
        fs::create_dir_all(folder).unwrap();
        let append = |name: &str| {
            File::options()
                .create(true)
                .append(true)
                .open(folder.join(name))
                .unwrap()
        };
        let most = sizes.submission.max(sizes.part).max(sizes.commit).max(sizes.outcome);
        let mut random = tests::random::Random::new(1);
        Self {
            database: append("database"),
            log: append("log"),
            noise: (0..most).map(|_| random.bits().to_le_bytes()[0]).collect(),
            folder: folder.to_owned(),
            sizes,
        }
    }

    fn round(&mut self, number: usize) {
        let Sizes {
            submission,
            outcome,
            part,
            commit,
        } = self.sizes;
        append(&mut self.database, &self.noise[..submission]);
        append(&mut self.log, &self.noise[..submission]);
        self.put(&format!("part-{number}"), part);
        self.put(&format!("commit-{number}"), commit);
        append(&mut self.log, &self.noise[..outcome]);
        append(&mut self.database, &self.noise[..outcome]);
    }

    /// A new file as a durable store puts one that must not exist yet.
    fn put(&self, name: &str, bytes: usize) {
        let staged = self.folder.join("staged");
        let mut file = File::create(&staged).unwrap();
        file.write_all(&self.noise[..bytes]).unwrap();
        file.sync_data().unwrap();
        fs::hard_link(&staged, self.folder.join(name)).unwrap();
        File::open(&self.folder).unwrap().sync_all().unwrap();
        fs::remove_file(&staged).unwrap();
    }
}

fn append(file: &mut File, bytes: &[u8]) {
    file.write_all(bytes).unwrap();
    file.sync_data().unwrap();
}

/// Submits a batch and reads its version; the outcome.
async fn service_round(http: &Http, body: Vec<u8>) -> Value {
    let answer = http
        .post_bytes("/projects/bench/contribute?wait=20", body)
        .await
        .expect(201);
    assert_eq!(answer.text("/status"), "merged", "{}", answer.body);
    let version = &answer.body["mergedVersion"];
    let page = http
        .get(&format!("/projects/bench/data?version={version}&limit=1"))
        .await
        .expect(200);
    assert_eq!(page.body["version"], *version);
    answer.body
}

/// The sizes that a batch really has, from the files of the first one.
fn sizes(data: &Path, submission: usize, outcome: &Value) -> Sizes {
    let table = tests::checker::delta::tables_below(data).remove(0);
    let size = |path: PathBuf| usize::try_from(fs::metadata(path).unwrap().len()).unwrap();
    let part = fs::read_dir(&table).unwrap().flatten().map(|entry| entry.path());
    let part = part
        .filter(|path| path.extension().is_some_and(|name| name == "parquet"))
        .map(size)
        .next()
        .unwrap();
    Sizes {
        submission,
        outcome: outcome.to_string().len(),
        part,
        commit: size(table.join(format!("_delta_log/{:020}.json", 1))),
    }
}

pub(crate) async fn run(report: &mut Report, syncs: &Folder, delay: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(crate::server(), folder.path().join("data"));
    let server = Server::start(&options).await;
    let http = server.http();
    let operator = Operator::create(&options, "bench");
    let agent = Agent::create(&http, &operator, "bench.agent").await;
    let changes = json!({"schemaDef": contract()});
    agent
        .http
        .post("/projects", &merged(project_body("bench"), changes))
        .await
        .expect(201);

    let body = |number| batch(&records(number, RECORDS)).to_string().into_bytes();
    let outcome = service_round(&agent.http, body(0)).await;
    let sizes = sizes(options.data(), body(0).len(), &outcome);
    let mut raw = Raw::new(&folder.path().join("raw"), sizes);
    let (mut ours, mut theirs, mut synced) = (Vec::new(), Vec::new(), 0);
    let used = || (cpu_of(server.pid()), wake_ups_of(server.pid()));
    let mut before = used();
    for number in 1..=WARM_UP + ROUNDS {
        if number == WARM_UP + 1 {
            before = used();
        }
        let body = body(number);
        let (begun, counted) = (Instant::now(), syncs.count());
        service_round(&agent.http, body).await;
        let (service, counted) = (begun.elapsed(), syncs.count() - counted);
        let begun = Instant::now();
        raw.round(number);
        let disk = begun.elapsed();
        if number > WARM_UP {
            ours.push(service.as_secs_f64() * 1e3);
            theirs.push(disk.as_secs_f64() * 1e3);
            synced += counted;
        }
    }
    let after = used();
    let each = |all: f64| format!("{:.2}", all / f64::from(u32::try_from(ROUNDS).unwrap()));
    let count = |all: u64| each(f64::from(u32::try_from(all).unwrap()));
    let (ours, theirs) = (sorted(ours), sorted(theirs));
    let shown = |values: &[f64]| format!("{:.2} / {:.2} ms", percentile(values, 50), percentile(values, 99));
    let ratio = percentile(&ours, 50) / percentile(&theirs, 50);
    let Sizes {
        submission,
        outcome,
        part,
        commit,
    } = raw.sizes;
    report.table(
        "500 records over HTTP, p50 / p99",
        &[
            ("rounds".to_owned(), ROUNDS.to_string()),
            ("submit to merged and readable".to_owned(), shown(&ours)),
            (
                "raw durable writes (4 appends, 2 new files; 8 syncs)".to_owned(),
                shown(&theirs),
            ),
            ("ratio of the p50".to_owned(), format!("{ratio:.2} (goal {GOAL})")),
            (
                "every sync made longer by".to_owned(),
                format!("{:.1} ms", delay.as_secs_f64() * 1e3),
            ),
            (
                "of the server, per batch with its page: CPU ms, wake-ups, syncs".to_owned(),
                format!(
                    "{}, {}, {}",
                    each(after.0.saturating_sub(before.0).as_secs_f64() * 1e3),
                    count(after.1 - before.1),
                    count(synced)
                ),
            ),
            (
                "bytes: submission, outcome, part, commit".to_owned(),
                format!("{submission}, {outcome}, {part}, {commit}"),
            ),
        ],
    );
}
