//! What clients do while the process is about to die: overlapping batches, duplicates, bad ones, retries, reads.
//!
//! Invariant: every request is in the history before it is sent, and what came of it after.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::made::{Dataset, record, upload};
use crate::checker::record::{Fingerprint, normal, types_of};
use crate::history::{Event, History, Nature};
use crate::random::Random;
use crate::world::Agent;
use crate::{Answer, Http};

/// Percentage of batches that share records with other batches, some of them in flight.
const OVERLAPPING: u64 = 35;
/// Percentage of batches that hold nothing but records that were merged before.
const DUPLICATES: u64 = 10;
/// Percentage of batches with a record that does not fit.
const BAD: u64 = 8;
/// Percentage of requests under an idempotency key.
const KEYED: u64 = 60;
/// Percentage of the other requests that are uploads in two parts.
const UPLOADED: u64 = 75;
/// Percentage of requests that wait for their outcome.
const WAITING: u64 = 25;
/// Percentage of fresh batches that others repeat at the same moment, each with one record of its own besides.
const ECHOED: u64 = 25;
/// How many others.
const ECHOES: usize = 3;
/// Percentage of uploads whose records come in a batch just before: it is decided when the upload begins.
const LED: u64 = 80;
/// The most recent records of a dataset from which batches take what they share.
const RECENT: usize = 60;

/// A request that may be sent again under its key.
#[derive(Clone, Debug)]
pub(super) struct Request {
    slug: String,
    agent: Agent,
    key: Option<String>,
    nature: Nature,
    records: Vec<Value>,
    /// Whether it is sent as an upload.
    upload: bool,
}

/// The clients' shared memory.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) history: History,
    next: AtomicU64,
    /// Records sent lately, by dataset.
    recent: Mutex<BTreeMap<String, Vec<Value>>>,
    /// Records that are in a table for certain, by dataset.
    merged: Mutex<BTreeMap<String, Vec<Value>>>,
    /// Keyed requests whose answer never came.
    pub(super) unanswered: Mutex<Vec<Request>>,
    /// Acknowledged contributions whose outcome is not known: id, dataset, agent, records.
    pub(super) open: Mutex<BTreeMap<String, Request>>,
    /// Contributions with a known outcome.
    pub(super) closed: Mutex<Vec<(String, Request)>>,
    /// Requests of this life of the process that were cut off.
    cut_off: Mutex<InFlight>,
}

/// What is under way: asked for or acknowledged, and its outcome not known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InFlight {
    pub(super) requests: u64,
    /// How many of them are uploads.
    pub(super) uploads: u64,
}

impl InFlight {
    fn add(&mut self, request: &Request) {
        self.requests += 1;
        self.uploads += u64::from(request.upload);
    }
}

impl Request {
    pub(super) fn path_of(&self, contribution: &str) -> String {
        format!("/projects/{}/contributions/{contribution}", self.slug)
    }

    pub(super) fn caller(&self, http: &Http) -> Http {
        http.with(&self.agent.key)
    }

    /// A batch of the same records but the first.
    fn echo(&self, first: Value, number: u64) -> Self {
        let mut echo = self.clone();
        echo.records[0] = first;
        echo.key = Some(format!("request-{number}"));
        echo.upload = false;
        echo
    }
}

impl Load {
    pub(super) fn new(history: History) -> Self {
        Self {
            history,
            next: AtomicU64::new(0),
            recent: Mutex::default(),
            merged: Mutex::default(),
            unanswered: Mutex::default(),
            open: Mutex::default(),
            closed: Mutex::default(),
            cut_off: Mutex::default(),
        }
    }

    /// A life of the process begins.
    pub(super) fn begin(&self) {
        *self.cut_off.lock().unwrap() = InFlight::default();
    }

    /// What was under way when the process died.
    pub(super) fn in_flight(&self) -> InFlight {
        let mut in_flight = *self.cut_off.lock().unwrap();
        self.open
            .lock()
            .unwrap()
            .values()
            .for_each(|request| in_flight.add(request));
        in_flight
    }

    /// How many requests were written down.
    pub(super) fn requests(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Sends `count` batches one after the other until the connection breaks, some with echoes; whether it holds.
    pub(super) async fn submit(
        &self,
        http: &Http,
        agent: &Agent,
        dataset: &Dataset,
        count: usize,
        mut random: Random,
    ) -> bool {
        for _ in 0..count {
            let number = self.number();
            let request = self.request(number, agent, dataset, &mut random);
            let echoes = match request.nature {
                Nature::Fresh if request.upload => 1,
                Nature::Fresh if random.chance(ECHOED) => ECHOES,
                _ => 0,
            };
            let is_led = request.upload && random.chance(LED);
            let mut requests = vec![(number, request)];
            for _ in 0..echoes {
                let number = self.number();
                let echo = requests[0].1.echo(record(number, 0, dataset, &mut random), number);
                if !is_led {
                    requests.push((number, echo));
                } else if !self.send(http, number, echo, true).await {
                    return false;
                }
            }
            let wait = random.chance(WAITING);
            let sent = requests
                .into_iter()
                .map(|(number, request)| self.send(http, number, request, wait));
            if join_all(sent).await.contains(&false) {
                return false;
            }
        }
        true
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request again under the key it had; whether the connection holds.
    pub(super) async fn repeat(&self, http: &Http, request: Request) -> bool {
        self.send(http, self.number(), request, false).await
    }

    fn request(&self, number: u64, agent: &Agent, dataset: &Dataset, random: &mut Random) -> Request {
        let slug = dataset.slug.clone();
        let known = self.merged.lock().unwrap().get(&slug).cloned().unwrap_or_default();
        let rolled = random.bits() % 100;
        let (nature, records) = if rolled < DUPLICATES && !known.is_empty() {
            let count = 1 + random.below(4);
            (
                Nature::Duplicates,
                (0..count).map(|_| random.pick(&known).clone()).collect(),
            )
        } else {
            let count = 4 + random.below(6);
            let mut records: Vec<Value> = (0..count).map(|row| record(number, row, dataset, random)).collect();
            if rolled >= 100 - BAD {
                let row = random.below(count);
                records[row]["sample"] = json!("seven");
                (Nature::Bad, records)
            } else {
                self.share(&slug, &mut records, random);
                (Nature::Fresh, records)
            }
        };
        let key = random.chance(KEYED).then(|| format!("request-{number}"));
        Request {
            slug,
            agent: agent.clone(),
            upload: key.is_none() && random.chance(UPLOADED),
            key,
            nature,
            records,
        }
    }

    /// Replaces some records, never the first, by ones that other batches have; then offers these to others.
    fn share(&self, slug: &str, records: &mut [Value], random: &mut Random) {
        let mut pools = self.recent.lock().unwrap();
        let pool = pools.entry(slug.to_owned()).or_default();
        let own = records.to_vec();
        if !pool.is_empty() && random.chance(OVERLAPPING) {
            for record in records.iter_mut().skip(1) {
                if random.chance(60) {
                    *record = random.pick(pool).clone();
                }
            }
        }
        pool.extend(own);
        let excess = pool.len().saturating_sub(RECENT);
        pool.drain(..excess);
    }

    async fn send(&self, http: &Http, number: u64, request: Request, wait: bool) -> bool {
        self.history.write(&Event::Submit {
            request: number,
            slug: request.slug.clone(),
            agent: request.agent.id.clone(),
            key: request.key.clone(),
            nature: request.nature,
            records: request.records.clone(),
        });
        if request.upload {
            return self.send_upload(http, number, request).await;
        }
        let path = format!(
            "/projects/{}/contribute?wait={}",
            request.slug,
            if wait { 2 } else { 0 }
        );
        let body = json!({"records": request.records, "sourceDeclaration": "made up by a crash test"});
        let headers: Vec<(&str, &str)> = request
            .key
            .iter()
            .map(|key| ("idempotency-key", key.as_str()))
            .collect();
        let caller = request.caller(http);
        if let Ok(answer) = caller
            .send(Method::POST, &path, &headers, Some(body.to_string().into()))
            .await
        {
            self.answered(number, request, &answer);
            true
        } else {
            self.unknown(number, &request);
            if request.key.is_some() {
                self.unanswered.lock().unwrap().push(request);
            }
            false
        }
    }

    /// Sends records as an upload; whether the connection holds.
    async fn send_upload(&self, http: &Http, number: u64, request: Request) -> bool {
        if let Some(answer) = upload(&request.caller(http), &request.slug, &request.records).await {
            self.answered(number, request, &answer);
            true
        } else {
            self.unknown(number, &request);
            false
        }
    }

    /// Writes down that no answer came.
    fn unknown(&self, number: u64, request: &Request) {
        self.history.write(&Event::Unknown { request: number });
        self.cut_off.lock().unwrap().add(request);
    }

    fn answered(&self, number: u64, request: Request, answer: &Answer) {
        let status = answer.code();
        let acknowledged = matches!(status, 200 | 201).then(|| answer.text("/id").to_owned());
        self.history.write(&Event::Answer {
            request: number,
            status,
            contribution: acknowledged.clone(),
        });
        let Some(contribution) = acknowledged else { return };
        self.open.lock().unwrap().insert(contribution.clone(), request);
        self.observe(&contribution, 200, &answer.body);
    }

    /// Writes down what a contribution reads as; whether it is decided.
    pub(super) fn observe(&self, contribution: &str, status: u16, body: &Value) -> bool {
        self.history.write(&Event::Outcome {
            contribution: contribution.to_owned(),
            status,
            body: body.clone(),
        });
        let decided = matches!(body["status"].as_str(), Some("merged" | "rejected"));
        if decided && let Some(request) = self.open.lock().unwrap().remove(contribution) {
            if body["status"] == "merged" {
                let mut merged = self.merged.lock().unwrap();
                merged
                    .entry(request.slug.clone())
                    .or_default()
                    .extend(request.records.iter().cloned());
            }
            self.closed.lock().unwrap().push((contribution.to_owned(), request));
        }
        decided
    }

    /// Reads a version whole (the latest where none is named) and writes its fingerprint down; its number. None where
    /// no answer came, or the service was told of a version that is not there.
    pub(super) async fn read(&self, http: &Http, dataset: &Dataset, version: Option<u64>) -> Option<u64> {
        let types = types_of(&dataset.contract);
        let mut version = version;
        let mut fingerprint = Fingerprint::default();
        let mut rows = 0;
        loop {
            let pin = version.map(|version| format!("&version={version}")).unwrap_or_default();
            let path = format!("/projects/{}/data?limit=1000&offset={rows}{pin}", dataset.slug);
            let answer = http.send(Method::GET, &path, &[], None).await.ok()?;
            if answer.code() == 503 {
                return None;
            }
            if answer.code() == 500 {
                // What cannot be read is not what was merged, and the checker's to tell.
                self.history.write(&Event::Read {
                    slug: dataset.slug.clone(),
                    version: version.unwrap_or_default(),
                    rows,
                    fingerprint: "unreadable".to_owned(),
                });
                return None;
            }
            assert_eq!(answer.code(), 200, "{path}: {}", answer.body);
            version = answer.body["version"].as_u64();
            let items = answer.body["items"].as_array().expect("items");
            for item in items {
                fingerprint.push(&normal(&types, item.as_object().expect("a record")));
            }
            rows += items.len() as u64;
            if items.len() < 1000 {
                break;
            }
        }
        let version = version.expect("a version");
        self.history.write(&Event::Read {
            slug: dataset.slug.clone(),
            version,
            rows,
            fingerprint: fingerprint.hex(),
        });
        Some(version)
    }
}
