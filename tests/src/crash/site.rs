//! A data folder that lives through many kills.
//!
//! Invariant: agents, projects and history last as long as the folder; the process does not.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;

use super::Counters;
use super::load::{Dataset, Load};
use crate::Http;
use crate::checker::{self, Violation};
use crate::history::{Event, History};
use crate::random::Random;
use crate::server::{Options, POLL, Server, tail_of};
use crate::world::{Agent, Operator};

/// Batches that one client sends in one life of the process.
const BATCHES: usize = 4;
/// Reads of the latest version in one life.
const READS: usize = 6;
/// Projects that a life with a crash point in their creation makes.
const PROJECTS: usize = 6;
/// How long a life whose work is done may take to pass the point that was armed.
const LINGER: Duration = Duration::from_millis(500);
/// How many decided contributions are read again after a recovery.
const READ_AGAIN: usize = 12;

/// Where and when a process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The crash point.
    pub point: &'static str,
    /// Which passage of it, from 1.
    pub nth: u64,
}

/// What a kill and the recovery after it came to.
#[derive(Debug)]
pub struct Verdict {
    /// Whether the process died where it was armed to.
    pub fired: bool,
    /// Whether a recovery died where it was armed to.
    pub nested: bool,
    /// What is wrong afterwards.
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
    /// What happened here.
    pub counters: Counters,
    folder: TempDir,
}

impl Site {
    /// Builds one with the program `binary`; `environment` is in every life of the process.
    pub async fn build(binary: &Path, seed: u64, environment: &[(&str, &str)], patience: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(binary, folder.path().join("data"));
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

    /// Everything the clients saw.
    pub fn events(&self) -> Vec<Event> {
        self.load.history.events()
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

    /// One life that ends at `fault`, where given one that ends at `nested` while it recovers, then one that recovers
    /// undisturbed; and the judgement.
    pub async fn kill_at(&mut self, fault: Fault, nested: Option<Fault>) -> Verdict {
        let fired = self.armed_life(fault, true).await;
        let nested = match nested {
            Some(fault) if fired => self.armed_life(fault, false).await,
            _ => false,
        };
        let violations = self.recover_and_judge().await;
        self.lives += 1;
        Verdict {
            fired,
            nested,
            violations,
        }
    }

    /// Whether the process died at the point.
    async fn armed_life(&mut self, fault: Fault, with_work: bool) -> bool {
        let armed = self
            .options
            .clone()
            .with("SLUICE_FAULT_POINT", fault.point)
            .with("SLUICE_FAULT_NTH", fault.nth);
        let status = match Server::try_start(&armed).await {
            Err(status) => Some(status),
            Ok(mut server) => {
                let http = server.http();
                if with_work {
                    self.work(&http, fault.point.starts_with("project.")).await;
                }
                self.settle(&http, Instant::now() + self.patience).await;
                server.exits_by(Instant::now() + LINGER).await
            }
        };
        match status {
            None => false,
            Some(status) => {
                assert!(was_killed(status), "the service ended with {status}:\n{}", self.log());
                self.load.history.write(&Event::Kill {
                    point: fault.point.to_owned(),
                    nth: fault.nth,
                });
                self.counters.add(
                    if with_work {
                        "kills at work"
                    } else {
                        "kills in recovery"
                    },
                    1,
                );
                self.counters.add(fault.point, 1);
                true
            }
        }
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

    async fn recover_and_judge(&mut self) -> Vec<Violation> {
        let server = Server::start(&self.options).await;
        let http = server.http();
        let begun = Instant::now();
        self.settle(&http, begun + self.patience).await;
        self.counters.add(
            "recovery milliseconds",
            u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        );
        self.look_at_projects(&http).await;
        self.datasets.retain(|dataset| !dataset.slug.starts_with("made-"));
        let unread = self.read_again(&http).await;
        server.kill();
        let events = self.load.history.events();
        let mut violations = checker::check(&events, self.options.data(), &self.ids);
        violations.extend(unread);
        violations
    }

    /// Reads what the clients have seen again; what cannot be read.
    async fn read_again(&mut self, http: &Http) -> Vec<Violation> {
        let mut unread = Vec::new();
        let caller = http.with(&self.agents[0].key);
        for dataset in &self.datasets {
            let Some(latest) = self.load.read(&caller, dataset, None).await else {
                unread.push(Violation::new(
                    "unreadable",
                    format!("{}: after a recovery", dataset.slug),
                ));
                continue;
            };
            if let Some(older) = usize::try_from(latest).ok().filter(|latest| *latest > 0) {
                let version = self.random.below(older) as u64;
                self.load.read(&caller, dataset, Some(version.max(1))).await;
            }
        }
        let closed = self.load.closed.lock().unwrap().clone();
        for _ in 0..READ_AGAIN.min(closed.len()) {
            let (contribution, request) = self.random.pick(&closed);
            let answer = request.caller(http).get(&request.path_of(contribution)).await;
            self.load.observe(contribution, answer.code(), &answer.body);
        }
        unread
    }

    /// Writes down what every project reads as.
    async fn look_at_projects(&mut self, http: &Http) {
        for dataset in &self.datasets {
            let answer = http.with(&self.owner).get(&format!("/projects/{}", dataset.slug)).await;
            let found = answer.code() == 200;
            if found {
                self.ids.insert(answer.text("/id").to_owned(), dataset.slug.clone());
            }
            self.load.history.write(&Event::Found {
                slug: dataset.slug.clone(),
                status: answer.code(),
                contract: if found {
                    plain(&answer.body["schemaDef"])
                } else {
                    json!(null)
                },
                versions: answer.body["versions"].clone(),
            });
        }
    }
}

/// A `schemaDef` as [`crate::world::contract`] writes it: `required` only where it is true.
fn plain(contract: &serde_json::Value) -> serde_json::Value {
    let mut contract = contract.clone();
    for field in contract["fields"].as_array_mut().into_iter().flatten() {
        if field["required"] == false {
            field.as_object_mut().expect("a field").remove("required");
        }
    }
    contract
}

fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(9)
}
