//! A data folder that lives through many kills.
//!
//! Invariant: agents, projects and history last as long as the folder; the process does not.

mod judging;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use reqwest::Method;
use tempfile::TempDir;

use super::Counters;
use super::load::Load;
use super::made::Dataset;
use crate::Http;
use crate::checker::{Judge, Violation};
use crate::history::{Event, History, Reader};
use crate::random::Random;
use crate::server::{Options, POLL, Server, tail_of};
use crate::world::{Agent, Operator};

/// Batches that one client sends in one life of the process.
const BATCHES: usize = 2;
/// Reads of the latest version in one life.
const READS: usize = 2;
/// Projects that a life with a crash point in their creation makes.
const PROJECTS: usize = 6;
/// How long a life whose work is done may take to pass the point that was armed: one on the way to an outcome, which is
/// behind it; one of what is done beside that, after a while.
const LINGER: Duration = Duration::from_millis(30);
const LINGER_BESIDE: Duration = Duration::from_millis(700);
/// What the points begin with that are passed beside the way to an outcome.
const BESIDE: [&str; 3] = ["position.", "compact.", "upload.freed"];
/// How many decided contributions are read again after a recovery.
const READ_AGAIN: usize = 8;

/// Where and when a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The crash point.
    pub point: &'static str,
    /// Which passage of it, from 1.
    pub nth: u64,
}

/// What a kill, and the recovery before it, came to.
#[derive(Debug)]
pub struct Verdict {
    /// Whether the process died where it was armed to.
    pub fired: bool,
    /// Whether a recovery died where it was armed to.
    pub nested: bool,
    /// What was wrong before it, after the kills that went before; then there was none.
    pub violations: Vec<Violation>,
}

/// The folder, its people and its past.
#[derive(Debug)]
pub struct Site {
    options: Options,
    load: Load,
    owner: String,
    agents: Vec<Agent>,
    /// Agents of another operator, who do not see what is private.
    strangers: Vec<Agent>,
    datasets: Vec<Dataset>,
    ids: BTreeMap<String, String>,
    random: Random,
    patience: Duration,
    lives: usize,
    seen: Reader,
    judge: Judge,
    /// What happened here.
    pub counters: Counters,
    folder: TempDir,
}

impl Site {
    /// Builds one with the program `binary`; `environment` is in every life of the process.
    pub async fn build(binary: &Path, seed: u64, environment: &[(&str, &str)], patience: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Nobody asks for a query here, so no process is kept ready for one.
        let mut options = Options::new(binary, folder.path().join("data"))
            .with("SLUICE__SQL__STANDBY", 0)
            // Every life but the first would start processes for trials, which the other crash tests do.
            .with("SLUICE__WORKER__MAX_STRIKES", 0);
        for (name, value) in environment {
            options = options.with(name, value);
        }
        let load = Load::new(History::create(folder.path().join("history.jsonl")));
        let server = Server::start(&options).await;
        let http = server.http();
        let owner = Operator::create(&options, "owner");
        let other = Operator::create(&options, "other");
        let mut site = Self {
            load,
            owner: owner.token.clone(),
            agents: vec![
                Agent::create(&http, &owner, "north").await,
                Agent::create(&http, &owner, "south").await,
            ],
            strangers: vec![Agent::create(&http, &other, "east").await],
            datasets: vec![
                Dataset::new("weather", false, false),
                Dataset::new("harvest", false, true),
                Dataset::new("ledger", true, false),
            ],
            ids: BTreeMap::new(),
            random: Random::new(seed),
            patience,
            lives: 0,
            seen: Reader::default(),
            judge: Judge::default(),
            counters: Counters::default(),
            folder,
            options,
        };
        for dataset in &site.datasets {
            assert!(dataset.create(&site.load.history, &http.with(&site.owner)).await);
        }
        site.look_at_projects(&http).await;
        server.kill();
        site
    }

    /// How many times a process was killed here at a point.
    pub const fn lives(&self) -> usize {
        self.lives
    }

    /// The folder of the service.
    pub fn data(&self) -> PathBuf {
        self.options.data().to_owned()
    }

    /// Everything the clients saw up to the last judgement.
    pub fn events(&self) -> &[Event] {
        self.seen.events()
    }

    /// The dataset of each table folder.
    pub const fn slugs(&self) -> &BTreeMap<String, String> {
        &self.ids
    }

    /// How the service is started here, without a fault.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// The end of the service's log.
    pub fn log(&self) -> String {
        tail_of(&self.options.log())
    }

    /// Keeps the folder for a look after a failure; its place.
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    /// One life that recovers and is judged before it is given work, and ends at `fault`; where given, one that ends at
    /// `nested` while it recovers. What is wrong after the kills before.
    pub async fn kill_at(&mut self, fault: Fault, nested: Option<Fault>) -> Verdict {
        let (server, violations) = self.recover_and_judge(Some(fault)).await;
        if !violations.is_empty() {
            return Verdict {
                fired: false,
                nested: false,
                violations,
            };
        }
        let fired = self.work_until(server, fault).await;
        let nested = match nested {
            Some(fault) if fired => self.recover_until(fault).await,
            _ => false,
        };
        self.lives += 1;
        Verdict {
            fired,
            nested,
            violations,
        }
    }

    /// What is wrong after the last kill.
    pub async fn finish(&mut self) -> Vec<Violation> {
        let (server, violations) = self.recover_and_judge(None).await;
        server.kill();
        violations
    }

    /// Gives a process work that is to die of it; whether it did.
    async fn work_until(&mut self, mut server: Server, fault: Fault) -> bool {
        self.load.begin();
        File::create(self.starting_signal()).unwrap();
        let http = server.http();
        let begun = Instant::now();
        self.work(&http, fault.point.starts_with("project.")).await;
        self.settle(&http, Instant::now() + self.patience).await;
        self.counters.spend("at work", begun);
        let begun = Instant::now();
        let status = server.exits_by(begun + linger(fault.point)).await;
        self.counters.spend("lingering", begun);
        status.is_some_and(|status| self.died(fault, status, "kills at work"))
    }

    /// Starts a process that is to die while it recovers; whether it did.
    async fn recover_until(&mut self, fault: Fault) -> bool {
        self.load.begin();
        let armed = self.armed(fault);
        let begun = Instant::now();
        let started = Server::try_start(&armed).await;
        self.counters.spend("starting", begun);
        let status = match started {
            Err(status) => Some(status),
            Ok(mut server) => {
                let begun = Instant::now();
                self.settle(&server.http(), begun + self.patience).await;
                let status = server.exits_by(Instant::now() + linger(fault.point)).await;
                self.counters.spend("dying again", begun);
                status
            }
        };
        status.is_some_and(|status| self.died(fault, status, "kills in recovery"))
    }

    fn armed(&self, fault: Fault) -> Options {
        let options = self.options.clone();
        options
            .with("SLUICE_FAULT_POINT", fault.point)
            .with("SLUICE_FAULT_NTH", fault.nth)
    }

    /// The file that is there once a process that recovered is given work.
    fn starting_signal(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Counts a kill.
    fn died(&mut self, fault: Fault, status: ExitStatus, kind: &str) -> bool {
        assert!(was_killed(status), "the service ended with {status}:\n{}", self.log());
        self.load.history.write(&Event::Kill {
            point: fault.point.to_owned(),
            nth: fault.nth,
        });
        let in_flight = self.load.in_flight();
        let is_at_rest = in_flight.requests == 0;
        self.counters.add(if is_at_rest { "kills at rest" } else { kind }, 1);
        self.counters
            .add("kills during uploads", u64::from(in_flight.uploads > 0));
        self.counters.add(fault.point, 1);
        true
    }

    /// Several clients at once, until their work is done or the process is gone.
    async fn work(&mut self, http: &Http, create: bool) {
        let unanswered = std::mem::take(&mut *self.load.unanswered.lock().unwrap());
        self.counters
            .add("unanswered requests repeated", unanswered.len() as u64);
        let before = self.load.requests();
        let first = self.lives * PROJECTS;
        let load = &self.load;
        let random = &mut self.random;
        let mut submitters = Vec::new();
        for dataset in &self.datasets {
            let strangers = if dataset.private { &[][..] } else { &self.strangers };
            for agent in self.agents.iter().chain(strangers) {
                submitters.push(load.submit(http, agent, dataset, BATCHES, Random::new(random.bits())));
            }
        }
        let repeats = join_all(unanswered.into_iter().map(|request| load.repeat(http, request)));
        let reads = async {
            for round in 0..READS {
                let dataset = &self.datasets[round % self.datasets.len()];
                if load
                    .read(&http.with(&self.agents[0].key), dataset, None)
                    .await
                    .is_none()
                {
                    break;
                }
            }
        };
        let creations = async {
            let mut made = Vec::new();
            for number in first..first + if create { PROJECTS } else { 0 } {
                let dataset = Dataset::new(&format!("made-{number}"), number % 2 == 0, false);
                let answered = dataset.create(&load.history, &http.with(&self.owner)).await;
                if answered {
                    load.submit(http, &self.agents[0], &dataset, 1, Random::new(number as u64))
                        .await;
                }
                made.push(dataset);
                if !answered {
                    break;
                }
            }
            made
        };
        let ((_, _), (made, ())) = join(join(join_all(submitters), repeats), join(creations, reads)).await;
        self.counters.add("projects asked for", made.len() as u64);
        self.counters.add("requests", self.load.requests() - before);
        // What was made is looked at after the recovery, but takes no part in later work.
        self.datasets.extend(made);
    }

    /// Polls the open contributions until all are decided, one is gone, or `deadline`.
    async fn settle(&self, http: &Http, deadline: Instant) {
        let open = self.load.open.lock().unwrap().clone();
        join_all(open.into_iter().map(|(contribution, request)| async move {
            let path = format!("{}?wait=1", request.path_of(&contribution));
            loop {
                let Ok(answer) = request.caller(http).send(Method::GET, &path, &[], None).await else {
                    return;
                };
                let decided = self.load.observe(&contribution, answer.code(), &answer.body);
                if decided || answer.code() != 200 || Instant::now() >= deadline {
                    return;
                }
                tokio::time::sleep(POLL).await;
            }
        }))
        .await;
    }
}

fn linger(point: &str) -> Duration {
    let beside = BESIDE.iter().any(|prefix| point.starts_with(prefix));
    if beside { LINGER_BESIDE } else { LINGER }
}

fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(9)
}
