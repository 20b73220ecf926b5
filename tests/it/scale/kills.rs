//! Kills the processes of the topology at their crash points, several in turn and at once, with work in flight.
//!
//! Invariant: the clients send until the last process of a round has died, and nothing is sent while the round is
//! judged, so that what was lost is not covered up. A point that never fired fails the run.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tests::crash::{Counters, Fault};
use tests::server::{POLL, tail_of};
use tests::topology::Parts;
use tests::world::{Agent, Operator};
use tests::{Http, Options, Server};
use types::fault::CRASH_POINTS;

use super::ledger::Ledger;
use crate::{binary, configured};

/// Kills in a usual run; `SLUICE_TEST_SCALE_KILLS` asks for more.
const KILLS: u64 = 30;
/// Kills after which everything is judged, and new datasets are begun.
const ROUND: usize = 36;
/// The points of a service that keeps the parts of uploads in a folder, and its log: here they are elsewhere.
const OF_FOLDERS: [&str; 3] = ["upload.part", "upload.named", "log.shown"];
/// What the points begin with that a replica of the interface passes; a worker passes the others.
const OF_INTERFACE: [&str; 4] = ["ack.", "relay.", "project.", "upload."];
/// Every which batch is an upload.
const UPLOADS: usize = 3;
/// Passages at which a point is armed, in the order of the rounds.
const PASSAGES: [u64; 5] = [2, 1, 4, 3, 6];
/// How long a process may live until it passes its point.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a batch may be sent again and again; both replicas may be away for a while, one life after the other.
const REFUSED: Duration = Duration::from_mins(3);
/// After how long without a sign of life a process loses its partitions.
const SESSION: Duration = Duration::from_secs(3);
/// Every how many deaths of a worker others must take over; otherwise it is back under its name before they notice.
const TAKEN_OVER: u64 = 6;
/// Datasets of a round: as partitions stay with their processes, enough that each process has some.
const DATASETS: usize = 12;
/// The counter of processes that did not pass their points.
const NOT_ENDED: &str = "lives that were not ended";
/// How many there may be of them.
const MOST_NOT_ENDED: u64 = 20;
/// Clients at the same time.
const CLIENTS: usize = 6;
/// Seconds that a client waits for an outcome: so the load is what the topology can do.
const WAIT: u32 = 1;
/// What must have happened at least once in a run.
const REQUIRED: [&str; 4] = [
    "deaths that others took over",
    "broken connections",
    "replayed answers",
    "uploads",
];

/// A process that dies and is started again under its name.
struct Post {
    name: &'static str,
    serves: bool,
    /// The agent at the process that was last there.
    http: Mutex<Option<Http>>,
}

struct Fleet {
    parts: Parts,
    agent: Agent,
    posts: [Post; 4],
    counters: Mutex<Counters>,
    /// Batches that are being sent.
    sending: AtomicUsize,
}

/// What the processes of a round die of.
#[derive(Default)]
struct Jobs {
    interface: Mutex<VecDeque<Fault>>,
    workers: Mutex<VecDeque<Fault>>,
}

impl Jobs {
    fn new(faults: &[Fault]) -> Self {
        let (interface, workers) = faults.iter().copied().partition(|fault| is_of_interface(fault.point));
        Self {
            interface: Mutex::new(interface),
            workers: Mutex::new(workers),
        }
    }

    const fn of(&self, post: &Post) -> &Mutex<VecDeque<Fault>> {
        if post.serves { &self.interface } else { &self.workers }
    }
}

fn is_of_interface(point: &str) -> bool {
    OF_INTERFACE.iter().any(|prefix| point.starts_with(prefix))
}

/// The crash points that exist here.
fn points() -> impl Iterator<Item = &'static str> {
    CRASH_POINTS.into_iter().filter(|point| !OF_FOLDERS.contains(point))
}

/// Every point at one passage after the other, at least `kills` in all.
fn faults(kills: u64) -> Vec<Fault> {
    let rounds = usize::try_from(kills).unwrap().div_ceil(points().count());
    let of_round = |round: usize| {
        points().map(move |point| {
            let nth = PASSAGES[round % PASSAGES.len()];
            // Compactions are seldom, and a round's tables are small.
            let nth = if point.starts_with("compact.") { nth.min(2) } else { nth };
            Fault { point, nth }
        })
    };
    (0..rounds).flat_map(of_round).collect()
}

impl Fleet {
    /// The fleet, and the process that knows of its people already.
    async fn on(parts: Parts) -> (Self, Server) {
        let server = parts.replica("api-0").await;
        let operator = Operator::create(server.options(), "first");
        let agent = Agent::create(&server.http(), &operator, "first.agent").await;
        let post = |name, serves| Post {
            name,
            serves,
            http: Mutex::default(),
        };
        let fleet = Self {
            parts,
            agent,
            posts: [
                post("api-0", true),
                post("api-1", true),
                post("worker-0", false),
                post("worker-1", false),
            ],
            counters: Mutex::default(),
            sending: AtomicUsize::new(0),
        };
        (fleet, server)
    }

    fn count(&self, name: &str, count: u64) {
        self.counters.lock().unwrap().add(name, count);
    }

    fn options(&self, post: &Post) -> Options {
        // Under its own name, it has its partitions again at once when it comes back in time.
        let options = self.parts.options(post.name).with("SLUICE__LOG__INSTANCE", post.name);
        options.role(if post.serves { "api" } else { "worker" })
    }

    fn took(&self, post: &Post, server: &Server) {
        *post.http.lock().unwrap() = Some(self.agent.at(&server.http()).http);
    }

    /// The replicas that were last there.
    fn replicas(&self) -> Vec<Http> {
        self.posts
            .iter()
            .filter(|post| post.serves)
            .filter_map(|post| post.http.lock().unwrap().clone())
            .collect()
    }

    /// Lets the process of a post die of one fault after the other while there are any, then lets it live.
    async fn tend(&self, post: &Post, jobs: &Mutex<VecDeque<Fault>>) -> Server {
        loop {
            let fault = jobs.lock().unwrap().pop_front();
            let Some(fault) = fault else {
                let server = Server::start(&self.options(post)).await;
                self.took(post, &server);
                return server;
            };
            let armed = self
                .options(post)
                .with("SLUICE_FAULT_POINT", fault.point)
                .with("SLUICE_FAULT_NTH", fault.nth);
            let begun = Instant::now();
            let started = Server::try_start(&armed).await;
            self.counters.lock().unwrap().spend("starting", begun);
            let begun = Instant::now();
            let status = match started {
                Err(status) => Some(status),
                Ok(mut server) => {
                    self.took(post, &server);
                    server.exits_by(Instant::now() + PATIENCE).await
                }
            };
            self.counters.lock().unwrap().spend("armed", begun);
            if let Some(status) = status {
                self.died(post, fault, status).await;
            } else {
                self.lived(post, fault);
                jobs.lock().unwrap().push_back(Fault { nth: 1, ..fault });
            }
        }
    }

    /// Notes a process that did not pass its point; too many of them fail the run, with what they and the run did.
    fn lived(&self, post: &Post, fault: Fault) {
        self.count(NOT_ENDED, 1);
        let (so_many, counters) = {
            let counters = self.counters.lock().unwrap();
            (counters.get(NOT_ENDED), counters.lines())
        };
        eprintln!(
            "{} did not pass {fault:?} in {PATIENCE:?}; {} batches are being sent",
            post.name,
            self.sending.load(Ordering::Relaxed)
        );
        assert!(
            so_many <= MOST_NOT_ENDED,
            "{so_many} processes did not pass their points\n{counters}\n{}",
            self.posts
                .each_ref()
                .map(|post| tail_of(&self.options(post).log()))
                .join("\n\n")
        );
    }

    async fn died(&self, post: &Post, fault: Fault, status: ExitStatus) {
        let log = self.options(post).log();
        assert_eq!(
            status.signal(),
            Some(9),
            "{} ended with {status}:\n{}",
            post.name,
            tail_of(&log)
        );
        let at_work = self.sending.load(Ordering::Relaxed) > 0;
        self.count(if at_work { "kills at work" } else { "kills at rest" }, 1);
        self.count(fault.point, 1);
        if post.serves {
            return;
        }
        self.count("deaths of workers", 1);
        let deaths = self.counters.lock().unwrap().get("deaths of workers");
        if deaths.is_multiple_of(TAKEN_OVER) {
            self.count("deaths that others took over", 1);
            tokio::time::sleep(SESSION + Duration::from_secs(1)).await;
        }
    }

    /// Sends one batch after the other until `over`, each until it is acknowledged.
    async fn client(&self, number: usize, ledger: &Ledger, over: &AtomicBool) {
        let mut turn = number;
        for sent in number.. {
            if over.load(Ordering::Relaxed) {
                return;
            }
            let is_upload = sent % UPLOADS == 0;
            let batch = ledger.batch();
            self.sending.fetch_add(1, Ordering::Relaxed);
            let (begun, mut told) = (Instant::now(), String::new());
            loop {
                assert!(begun.elapsed() < REFUSED, "a batch is refused for {REFUSED:?}: {told}");
                turn += 1;
                let replicas = self.replicas();
                let Some(http) = replicas.get(turn % replicas.len().max(1)) else {
                    tokio::time::sleep(POLL).await;
                    continue;
                };
                let sent = if is_upload {
                    ledger.upload(http, &batch).await
                } else {
                    ledger.send(http, &batch, WAIT).await
                };
                match sent {
                    Ok(answer) if matches!(answer.code(), 200 | 201) => {
                        self.count("acknowledged", 1);
                        self.count("replayed answers", u64::from(answer.code() == 200));
                        self.count("uploads", u64::from(is_upload));
                        break;
                    }
                    Ok(answer) => {
                        assert_eq!(answer.code(), 503, "{}", answer.body);
                        self.count("refused requests", 1);
                        told = answer.body.to_string();
                    }
                    Err(error) => {
                        self.count("broken connections", 1);
                        told = error.to_string();
                    }
                }
                // A replica that is not there yet refuses at once.
                tokio::time::sleep(4 * POLL).await;
            }
            self.sending.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Lets processes die of `faults` under load until all have, then lets all live; they are there afterwards.
    async fn round(&self, faults: &[Fault], ledger: &Ledger) -> Vec<Server> {
        let (jobs, over) = (Jobs::new(faults), AtomicBool::new(false));
        let dying = async {
            let alive = join_all(self.posts.iter().map(|post| self.tend(post, jobs.of(post)))).await;
            over.store(true, Ordering::Relaxed);
            alive
        };
        let clients = join_all((0..CLIENTS).map(|number| self.client(number, ledger, &over)));
        tokio::join!(dying, clients).0
    }
}

fn kills_in(counters: &Counters) -> u64 {
    counters.get("kills at work")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_doubled_whichever_process_dies() {
    let Some(parts) = Parts::start(binary()).await else {
        return;
    };
    let wanted = configured("SLUICE_TEST_SCALE_KILLS", KILLS);
    let parts = parts
        .with("SLUICE__COMPACTION__FAN_IN", 2)
        .with("SLUICE__SQL__STANDBY", 0)
        .with("SLUICE__LOG__SESSION", format!("{}s", SESSION.as_secs()));
    let (fleet, server) = Fleet::on(parts).await;
    let begun = Instant::now();
    let mut found = Vec::new();
    let mut alive = vec![server];
    for (number, faults) in faults(wanted).chunks(ROUND).enumerate() {
        let agent = fleet.agent.at(&alive[0].http()).http;
        let ledger = Ledger::open(&agent, &format!("round-{number}"), DATASETS).await;
        // Every process ends here, so that each of the round finds its name free.
        alive.clear();
        alive = fleet.round(faults, &ledger).await;
        let began_judging = Instant::now();
        found.extend(ledger.judge(&fleet.replicas()).await);
        fleet.counters.lock().unwrap().spend("judging", began_judging);
    }
    for found in &found {
        found.assert_unchanged(&fleet.replicas()).await;
    }
    alive[0].options().assert_consistent();
    let counters = fleet.counters.lock().unwrap().clone();
    let kills = kills_in(&counters);
    eprintln!(
        "{kills} kills in {:?}; lost 0, doubled 0\n{}",
        begun.elapsed(),
        counters.lines()
    );
    assert!(kills >= wanted, "{kills} kills");
    for name in points().chain(REQUIRED) {
        assert!(counters.get(name) > 0, "`{name}` never happened");
    }
}
