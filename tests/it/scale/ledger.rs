//! Datasets, the batches that clients send to them, and what must be true of all that was acknowledged.
//!
//! Invariant: the judge knows nothing but what clients sent and were told. Batches share a record with the one before,
//! so that a record that comes in twice would be seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tests::world::{self, decided_within, project_body, records};
use tests::{Answer, Http};

/// Records of a batch that no other has.
const OWN: usize = 5;
/// Contributions whose outcomes are asked for at once.
const AT_ONCE: usize = 8;
/// How long one may be open when all faults are over: what faults lost again and again is appended again after up to
/// 192 s, 64 times the sweeper's first wait.
const SETTLED: Duration = Duration::from_mins(5);

/// A batch of records under a key, or the records of an upload.
pub(super) struct Batch {
    pub(super) dataset: usize,
    key: String,
    records: Vec<Value>,
    /// Of an upload that was begun: its id and where its one part goes.
    begun: Mutex<Option<(String, String)>>,
    /// What its part is known by.
    tag: Mutex<Option<String>>,
}

/// A batch that was acknowledged.
struct Entry {
    id: String,
    records: Vec<String>,
}

/// The datasets of a phase of a test, and what was acknowledged of them.
pub(super) struct Ledger {
    slugs: Vec<String>,
    made: AtomicUsize,
    /// The record of each dataset that the next batch has, too.
    shared: Mutex<Vec<Option<Value>>>,
    /// What was acknowledged, in this order, by dataset.
    acknowledged: Mutex<Vec<Vec<Entry>>>,
}

/// A dataset as it was found, which it must stay.
pub(super) struct Found {
    slug: String,
    rows: Vec<String>,
    /// The version of each acknowledged batch, in the order of the acknowledgements.
    pub(super) versions: Vec<u64>,
}

impl Ledger {
    /// Makes so many projects whose slugs begin with `prefix`.
    pub(super) async fn open(agent: &Http, prefix: &str, datasets: usize) -> Self {
        let slugs: Vec<_> = (0..datasets).map(|number| format!("{prefix}-{number}")).collect();
        for slug in &slugs {
            agent.post("/projects", &project_body(slug)).await.expect(201);
        }
        Self {
            slugs,
            made: AtomicUsize::new(0),
            shared: Mutex::new(vec![None; datasets]),
            acknowledged: Mutex::new((0..datasets).map(|_| Vec::new()).collect()),
        }
    }

    pub(super) fn slugs(&self) -> &[String] {
        &self.slugs
    }

    /// The next batch, for one dataset after the other.
    pub(super) fn batch(&self) -> Batch {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        self.make(number, number % self.slugs.len())
    }

    /// The next batch for a dataset.
    pub(super) fn batch_for(&self, dataset: usize) -> Batch {
        self.make(self.made.fetch_add(1, Ordering::Relaxed), dataset)
    }

    fn make(&self, number: usize, dataset: usize) -> Batch {
        let mut records = records(&format!("series {number}"), OWN);
        let shared = self.shared.lock().unwrap()[dataset].replace(records[0].clone());
        records.extend(shared);
        Batch {
            dataset,
            key: format!("batch-{number}"),
            records,
            begun: Mutex::default(),
            tag: Mutex::default(),
        }
    }

    /// Sends a batch and waits so many seconds for its outcome; what is acknowledged is written down.
    pub(super) async fn send(&self, http: &Http, batch: &Batch, wait: u32) -> Result<Answer, reqwest::Error> {
        let path = format!("/projects/{}/contribute?wait={wait}", self.slugs[batch.dataset]);
        let body = world::batch(&batch.records).to_string();
        let headers = [("idempotency-key", batch.key.as_str())];
        let answer = http.send(Method::POST, &path, &headers, Some(body.into())).await?;
        if matches!(answer.code(), 200 | 201) {
            self.acknowledged(batch, answer.text("/id"));
        }
        Ok(answer)
    }

    /// Sends a batch as an upload of one part; to be called again with it until it is acknowledged.
    pub(super) async fn upload(&self, http: &Http, batch: &Batch) -> Result<Answer, reqwest::Error> {
        let lines: Vec<_> = batch.records.iter().map(|record| format!("{record}\n")).collect();
        let lines = lines.concat();
        let path = format!("/projects/{}/uploads", self.slugs[batch.dataset]);
        let begun = batch.begun.lock().unwrap().clone();
        let (id, url) = if let Some(begun) = begun {
            begun
        } else {
            let body = json!({
                "bytes": lines.len(),
                "parts": 1,
                "partSize": lines.len(),
                "sourceDeclaration": "a batch of a test",
            });
            let answer = http
                .send(Method::POST, &path, &[], Some(body.to_string().into()))
                .await?;
            if answer.code() != 201 {
                return Ok(answer);
            }
            let begun = (answer.text("/id").to_owned(), answer.text("/partUrls/0/url").to_owned());
            *batch.begun.lock().unwrap() = Some(begun.clone());
            begun
        };
        let sent = s3_server::caller().build()?.put(url).body(lines).send().await?;
        // Nothing takes a part any more where the upload was completed and the answer lost: its tag stays what it was.
        let tag = sent.headers().get("etag").and_then(|tag| tag.to_str().ok());
        if let Some(tag) = tag {
            batch.tag.lock().unwrap().get_or_insert_with(|| tag.to_owned());
        }
        let tag = batch.tag.lock().unwrap().clone();
        let body = json!({"etags": [{"n": 1, "etag": tag}]}).to_string();
        let path = format!("{path}/{id}/complete");
        let answer = http.send(Method::POST, &path, &[], Some(body.into())).await?;
        if matches!(answer.code(), 200 | 201) {
            self.acknowledged(batch, &id);
        }
        Ok(answer)
    }

    fn acknowledged(&self, batch: &Batch, id: &str) {
        let entry = Entry {
            id: id.to_owned(),
            records: batch.records.iter().map(name_of).collect(),
        };
        self.acknowledged.lock().unwrap()[batch.dataset].push(entry);
    }

    /// How many batches were acknowledged.
    pub(super) fn count(&self) -> usize {
        self.acknowledged.lock().unwrap().iter().map(Vec::len).sum()
    }

    /// How many batches of each dataset were acknowledged.
    pub(super) fn counts(&self) -> Vec<usize> {
        self.acknowledged.lock().unwrap().iter().map(Vec::len).collect()
    }

    /// Waits for what was acknowledged and holds the datasets against it, as every replica tells them.
    pub(super) async fn judge(&self, replicas: &[Http]) -> Vec<Found> {
        let acknowledged = std::mem::take(&mut *self.acknowledged.lock().unwrap());
        let mut ids = BTreeSet::new();
        let mut found = Vec::new();
        for (slug, entries) in self.slugs.iter().zip(acknowledged) {
            let mut versions = BTreeMap::new();
            let mut expected = BTreeSet::new();
            let mut in_order = Vec::new();
            for some in entries.chunks(AT_ONCE) {
                let outcomes = some.iter().map(|entry| outcome(replicas, slug, &entry.id));
                let outcomes = futures_util::future::join_all(outcomes).await;
                for (entry, (version, accepted)) in some.iter().zip(outcomes) {
                    assert!(ids.insert(entry.id.clone()), "{slug}: {} acknowledged twice", entry.id);
                    // One of its records may have come with the next batch, and one it shares with the one before.
                    let possible = OWN as u64 - 1..=entry.records.len() as u64;
                    assert!(
                        possible.contains(&accepted),
                        "{slug}: {accepted} records of {} were accepted",
                        entry.id
                    );
                    let before = versions.insert(version, accepted);
                    assert!(before.is_none(), "{slug}: version {version} twice");
                    expected.extend(entry.records.iter().cloned());
                    in_order.push(version);
                }
            }
            let newest = versions.len() as u64;
            assert!(versions.keys().copied().eq(1..=newest), "{slug}: versions with gaps");
            let rows = read(replicas, slug, newest).await;
            let distinct: BTreeSet<_> = rows.iter().cloned().collect();
            assert_eq!(distinct.len(), rows.len(), "{slug}: a record twice");
            assert_eq!(rows.len() as u64, versions.values().sum::<u64>(), "{slug}");
            assert!(distinct == expected, "{slug}: other records than were acknowledged");
            found.push(Found {
                slug: slug.clone(),
                rows,
                versions: in_order,
            });
        }
        found
    }
}

impl Found {
    /// The dataset is as it was.
    pub(super) async fn assert_unchanged(&self, replicas: &[Http]) {
        let rows = read(replicas, &self.slug, self.versions.len() as u64).await;
        assert!(rows == self.rows, "{}: changed afterwards", self.slug);
    }
}

/// The one outcome of a contribution that every replica tells: its version, and how many records it brought.
async fn outcome(replicas: &[Http], slug: &str, id: &str) -> (u64, u64) {
    let mut told = Vec::new();
    for http in replicas {
        let outcome = decided_within(SETTLED, http, slug, id).await;
        assert_eq!(outcome.text("/status"), "merged", "{}", outcome.body);
        told.push(["mergedVersion", "acceptedCount", "recordCount", "root"].map(|name| outcome.body[name].clone()));
    }
    assert!(
        told.iter().all(|one| *one == told[0]),
        "{slug}: {id} has two outcomes: {told:?}"
    );
    let number = |value: &Value| value.as_u64().unwrap();
    (number(&told[0][0]), number(&told[0][1]))
}

/// The records of a version, which every replica must tell alike.
async fn read(replicas: &[Http], slug: &str, version: u64) -> Vec<String> {
    let mut told = Vec::new();
    for http in replicas {
        told.push(exported(http, slug, version).await);
    }
    assert!(told.iter().all(|one| *one == told[0]), "{slug}: the replicas differ");
    told[0].iter().map(name_of).collect()
}

/// Every record of a version.
pub(super) async fn exported(http: &Http, slug: &str, version: u64) -> Vec<Value> {
    let answer = http
        .get(&format!("/projects/{slug}/export?version={version}"))
        .await
        .expect(200);
    let lines = answer
        .bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// What tells a record from all others.
fn name_of(record: &Value) -> String {
    json!([record["station"], record["sample"]]).to_string()
}
