//! Tests against a small server on the loopback interface that signs as the service does and fails as a test asks.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::Router;
use axum::extract::{Path as At, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use proof::manifest::ManifestFormat;
use proof::{FileHash, Key, KeysDocument, Part, Root, SigningKey, Status};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use types::{DatasetId, Timestamp, Version};

use super::*;
use crate::{RetryBudget, Verify};

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(second * 1_000_000)
}

/// The fault of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whim {
    /// The first answer of each part ends in the middle.
    Break,
    /// Addresses of the first manifest are refused.
    Expire,
    /// Every address is refused.
    Refuse,
    /// The first bytes of the second part are wrong.
    Corrupt,
    /// Every answer has the first part.
    Swap,
}

#[derive(Debug)]
struct Service {
    secrets: Vec<SigningKey>,
    keys: Vec<Key>,
    sequence: u64,
    dataset: DatasetId,
    parts: BTreeMap<String, Vec<u8>>,
    manifest_of: Option<u64>,
    whim: Option<Whim>,
    manifests: u64,
    /// The offsets of the requests for each part.
    asked: HashMap<String, Vec<u64>>,
}

type Shared = Arc<Mutex<Service>>;

impl Service {
    /// Creates a service with `versions` versions of one part each.
    fn new(seed: u8, versions: u8) -> Self {
        let secret = SigningKey::from_secret(&[seed; 32]);
        let keys = vec![Key::new(secret.public_key(), at(0), None)];
        let mut service = Self {
            secrets: vec![secret],
            keys,
            sequence: 1,
            dataset: DatasetId::from_bytes([seed; 16]),
            parts: BTreeMap::new(),
            manifest_of: None,
            whim: None,
            manifests: 0,
            asked: HashMap::new(),
        };
        service.grow(versions);
        service
    }

    fn grow(&mut self, versions: u8) {
        for _ in 0..versions {
            let number = u8::try_from(self.parts.len() + 1).unwrap();
            let bytes = (0..200_000_u32)
                .map(|byte| number.wrapping_mul(31) ^ byte.to_le_bytes()[0])
                .collect();
            self.parts.insert(format!("part-{number}.parquet"), bytes);
        }
    }

    fn rotate(&mut self, second: i64) {
        let old = self.secrets.last().unwrap();
        let new = SigningKey::from_secret(&[old.secret()[0] + 1; 32]);
        let endorsement = old.endorse(&new.public_key(), at(second));
        let last = self.keys.last_mut().unwrap();
        (last.status, last.retired_at) = (Status::Retired, Some(at(second)));
        self.keys
            .push(Key::new(new.public_key(), at(second), Some(endorsement)));
        self.secrets.push(new);
        self.sequence += 1;
    }

    fn manifest(&mut self, version: Option<u64>) -> String {
        let version = self.manifest_of.or(version).unwrap_or(self.parts.len() as u64);
        let generation = self.manifests;
        self.manifests += 1;
        let parts = self.parts.iter().take(usize::try_from(version).unwrap()).enumerate();
        let parts: Vec<_> = parts
            .map(|(index, (path, bytes))| Part {
                path: path.clone(),
                first_version: Version(index as u64 + 1),
                last_version: Version(index as u64 + 1),
                rows: 1,
                size: bytes.len() as u64,
                sha256: FileHash::from_bytes(Sha256::digest(bytes).into()),
                root: Root::from_bytes([u8::try_from(index).unwrap(); 32]),
                url: Some(format!("/parts/{path}?generation={generation}")),
            })
            .collect();
        let manifest = Manifest {
            format: ManifestFormat::V1,
            dataset: self.dataset,
            slug: "tide-levels".to_owned(),
            version: Version(version),
            record_count: version,
            root: parts.last().map_or(Root::EMPTY, |part| part.root),
            schema_def: serde_json::from_str(r#"{"fields":[{"name":"n","type":"integer"}]}"#).unwrap(),
            license: "CC0-1.0".to_owned(),
            created_at: at(1),
            issued_at: at(1_000),
            parts,
            urls_expire_at: Some(at(1_900)),
        };
        let signed = manifest
            .sign(self.secrets.last().unwrap(), self.keys.last().unwrap())
            .unwrap();
        serde_json::to_string(&signed).unwrap()
    }

    fn document(&self) -> String {
        let document = KeysDocument::sign(
            self.sequence,
            at(1_000),
            self.keys.clone(),
            self.secrets.last().unwrap(),
        );
        serde_json::to_string(&document.unwrap()).unwrap()
    }

    fn part(&mut self, name: &str, generation: u64, from: u64) -> Response {
        let asked = self.asked.entry(name.to_owned()).or_default();
        asked.push(from);
        let first = asked.len() == 1;
        let served = if self.whim == Some(Whim::Swap) {
            "part-1.parquet"
        } else {
            name
        };
        let mut bytes = self.parts[served].clone();
        match self.whim {
            Some(Whim::Refuse) => return StatusCode::FORBIDDEN.into_response(),
            Some(Whim::Expire) if generation == 0 => return StatusCode::FORBIDDEN.into_response(),
            Some(Whim::Corrupt) if name == "part-2.parquet" => bytes[..9].fill(0),
            Some(Whim::Break) if first => return bytes[..bytes.len() / 2].to_vec().into_response(),
            _ => {}
        }
        let total = bytes.len();
        if from == 0 {
            return bytes.into_response();
        }
        let range = format!("bytes {from}-{}/{total}", total - 1);
        let rest = bytes.split_off(usize::try_from(from).unwrap());
        (StatusCode::PARTIAL_CONTENT, [("content-range", range)], rest).into_response()
    }
}

async fn serve(service: Service) -> (Shared, String) {
    let shared = Arc::new(Mutex::new(service));
    let router = Router::new()
        .route(
            "/projects/{slug}/manifest",
            get(
                |State(service): State<Shared>, Query(query): Query<HashMap<String, u64>>| async move {
                    service.lock().unwrap().manifest(query.get("version").copied())
                },
            ),
        )
        .route(
            "/.well-known/service-keys",
            get(|State(service): State<Shared>| async move { service.lock().unwrap().document() }),
        )
        .route(
            "/parts/{name}",
            get(
                |State(service): State<Shared>,
                 At(name): At<String>,
                 Query(query): Query<HashMap<String, u64>>,
                 headers: HeaderMap| async move {
                    assert!(
                        !headers.contains_key("authorization"),
                        "the key is nobody's business here"
                    );
                    let from = headers.get("range").map_or(0, |range| {
                        let range = range.to_str().unwrap();
                        range
                            .trim_start_matches("bytes=")
                            .trim_end_matches('-')
                            .parse()
                            .unwrap()
                    });
                    service.lock().unwrap().part(&name, query["generation"], from)
                },
            ),
        )
        .with_state(Arc::clone(&shared));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (shared, address)
}

/// A client's machine, with a folder and known keys.
struct Machine {
    home: TempDir,
    address: String,
}

impl Machine {
    fn new(address: &str) -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            address: address.to_owned(),
        }
    }

    fn folder(&self) -> PathBuf {
        self.home.path().join("tide-levels")
    }

    fn known(&self) -> KnownKeys {
        KnownKeys::at(self.home.path().join("share/known-keys.json"))
    }

    async fn pull(&self, version: Option<u64>) -> Result<PullResult, Error> {
        self.watched(version).await.0
    }

    /// Pulls and returns the result and the planned bytes that were not reported as present.
    async fn watched(&self, version: Option<u64>) -> (Result<PullResult, Error>, i64) {
        let retry_budget = RetryBudget {
            first_pause: std::time::Duration::from_millis(1),
            ..RetryBudget::default()
        };
        let client = Client::new(&self.address, "km_secret")
            .unwrap()
            .with_retry_budget(retry_budget);
        let pull = Pull {
            slug: "tide-levels".to_owned(),
            version,
            folder: self.folder(),
            known: self.known(),
        };
        let missing = Arc::new(AtomicI64::new(0));
        let watched = Arc::clone(&missing);
        let pulled = client.pull(
            &pull,
            Arc::new(move |progress| {
                let change = match progress {
                    PullEvent::Planned { bytes } | PullEvent::Discarded(bytes) => i64::try_from(bytes).unwrap(),
                    PullEvent::Here(bytes) => -i64::try_from(bytes).unwrap(),
                };
                watched.fetch_add(change, Ordering::SeqCst);
            }),
        );
        let pulled = pulled.await;
        (pulled, missing.load(Ordering::SeqCst))
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn signatures(&self) -> Result<crate::VerifiedVersion, Error> {
        Verify {
            folder: &self.folder(),
            keys: None,
            known: &self.known(),
        }
        .signatures()
    }
}

fn asked(service: &Shared, part: u32) -> Vec<u64> {
    let name = format!("part-{part}.parquet");
    service.lock().unwrap().asked.get(&name).cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_version_is_pulled_whole_with_keys_and_manifest() {
    let (service, address) = serve(Service::new(1, 20)).await;
    let machine = Machine::new(&address);
    let (pulled, missing) = machine.watched(Some(12)).await;
    let pulled = pulled.unwrap();
    assert_eq!((pulled.fetched, pulled.first_meeting, missing), (12, true, 0));
    assert_eq!(pulled.manifest.manifest().version, Version(12));
    let names = machine.names();
    assert_eq!(names.len(), 14);
    for (name, bytes) in service.lock().unwrap().parts.iter().take(12) {
        assert_eq!(&fs::read(machine.folder().join(name)).unwrap(), bytes);
    }
    let manifest = fs::read_to_string(machine.folder().join("manifest.json")).unwrap();
    assert!(!manifest.contains("generation"), "addresses are kept: {manifest}");
    assert_eq!(machine.signatures().unwrap().manifest.manifest().version, Version(12));
}

#[tokio::test]
async fn only_what_is_missing_or_damaged_is_fetched() {
    let (service, address) = serve(Service::new(1, 3)).await;
    let machine = Machine::new(&address);
    machine.pull(None).await.unwrap();
    service.lock().unwrap().grow(1);
    fs::write(machine.folder().join("part-2.parquet"), vec![0; 200_000]).unwrap();
    let (pulled, missing) = machine.watched(None).await;
    let pulled = pulled.unwrap();
    assert_eq!((pulled.fetched, pulled.first_meeting, missing), (2, false, 0));
    assert_eq!([1, 2, 3, 4].map(|part| asked(&service, part).len()), [1, 2, 1, 1]);
}

#[tokio::test]
async fn a_broken_download_goes_on_where_it_broke_off() {
    let (service, address) = serve(Service::new(1, 3)).await;
    service.lock().unwrap().whim = Some(Whim::Break);
    let machine = Machine::new(&address);
    let (pulled, missing) = machine.watched(None).await;
    pulled.unwrap();
    assert_eq!(missing, 0);
    for part in [1, 2, 3] {
        let asked = asked(&service, part);
        assert_eq!(asked, [0, 100_000]);
    }
    assert!(!machine.names().iter().any(|name| name.ends_with(".partial")));
}

#[tokio::test]
async fn what_an_earlier_pull_left_half_done_is_gone_on_with() {
    let (service, address) = serve(Service::new(1, 2)).await;
    let machine = Machine::new(&address);
    fs::create_dir(machine.folder()).unwrap();
    let half = service.lock().unwrap().parts["part-1.parquet"][..77_777].to_vec();
    fs::write(machine.folder().join("part-1.parquet.partial"), half).unwrap();
    // The file of the second part is longer than the part.
    fs::write(machine.folder().join("part-2.parquet.partial"), vec![0; 300_000]).unwrap();
    machine.pull(None).await.unwrap();
    assert_eq!((asked(&service, 1), asked(&service, 2)), (vec![77_777], vec![0]));
}

#[tokio::test]
async fn half_of_something_else_is_fetched_anew() {
    let (service, address) = serve(Service::new(1, 1)).await;
    let machine = Machine::new(&address);
    fs::create_dir(machine.folder()).unwrap();
    fs::write(machine.folder().join("part-1.parquet.partial"), vec![9; 1_000]).unwrap();
    machine.pull(None).await.unwrap();
    assert_eq!(asked(&service, 1), [1_000, 0]);
}

#[tokio::test]
async fn expired_addresses_are_renewed_once_for_all_parts() {
    let (service, address) = serve(Service::new(1, 8)).await;
    service.lock().unwrap().whim = Some(Whim::Expire);
    Machine::new(&address).pull(None).await.unwrap();
    assert_eq!(service.lock().unwrap().manifests, 2);
}

#[tokio::test]
async fn addresses_that_are_never_good_end_the_pull() {
    let (service, address) = serve(Service::new(1, 1)).await;
    service.lock().unwrap().whim = Some(Whim::Refuse);
    let machine = Machine::new(&address);
    let refused = machine.pull(None).await.unwrap_err();
    assert!(
        matches!(refused, Error::Part { .. }) && refused.to_string().contains("403"),
        "{refused}"
    );
    assert!(!machine.folder().join("manifest.json").exists());
}

#[tokio::test]
async fn parts_that_are_not_what_was_signed_are_never_given_their_name() {
    for whim in [Whim::Corrupt, Whim::Swap] {
        let (service, address) = serve(Service::new(1, 2)).await;
        service.lock().unwrap().whim = Some(whim);
        let machine = Machine::new(&address);
        let refused = machine.pull(None).await.unwrap_err();
        assert!(
            matches!(refused, Error::Proof(proof::Error::PartHash { .. })),
            "{whim:?}: {refused}"
        );
        assert!(!machine.folder().join("part-2.parquet").exists());
        assert!(!machine.folder().join("manifest.json").exists());
    }
}

#[tokio::test]
async fn the_manifest_of_another_version_is_refused() {
    let (service, address) = serve(Service::new(1, 3)).await;
    service.lock().unwrap().manifest_of = Some(2);
    let refused = Machine::new(&address).pull(Some(3)).await.unwrap_err();
    assert!(matches!(refused, Error::OtherManifest { .. }), "{refused}");
}

#[tokio::test]
async fn a_service_with_another_first_key_is_not_trusted_again() {
    let (service, address) = serve(Service::new(1, 1)).await;
    let machine = Machine::new(&address);
    machine.pull(None).await.unwrap();
    *service.lock().unwrap() = Service::new(50, 1);
    let refused = machine.pull(None).await.unwrap_err();
    assert!(matches!(refused, Error::Untrusted { .. }), "{refused}");
    assert!(refused.to_string().contains("known-keys.json"), "{refused}");
}

#[tokio::test]
async fn a_rotation_is_followed_and_its_roll_back_refused() {
    let (service, address) = serve(Service::new(1, 1)).await;
    let machine = Machine::new(&address);
    machine.pull(None).await.unwrap();
    service.lock().unwrap().rotate(2_000);
    assert!(!machine.pull(None).await.unwrap().first_meeting);
    *service.lock().unwrap() = Service::new(1, 1);
    let refused = machine.pull(None).await.unwrap_err();
    let Error::Untrusted { source, .. } = refused else {
        panic!("{refused}")
    };
    assert!(
        matches!(*source, proof::Error::RolledBack { seen: 2, found: 1 }),
        "{source}"
    );
}

#[tokio::test]
async fn a_folder_is_judged_by_the_newest_keys_this_machine_has_met() {
    let (service, address) = serve(Service::new(1, 1)).await;
    let machine = Machine::new(&address);
    machine.pull(None).await.unwrap();
    assert_eq!(machine.signatures().unwrap().sequence, 1);
    // The key is revoked. This machine learns it with a pull of another version.
    {
        let mut service = service.lock().unwrap();
        service.rotate(2_000);
        let key = &mut service.keys[0];
        (key.status, key.revoked_at) = (Status::Revoked, Some(at(2_000)));
        service.sequence += 1;
        let keys = Keys::parse(service.document().as_bytes()).unwrap();
        machine.known().meet(&format!("{address}/"), &keys).unwrap();
    }
    let refused = machine.signatures().unwrap_err();
    assert!(
        matches!(refused, Error::Proof(proof::Error::Revoked { .. })),
        "{refused}"
    );
}

#[tokio::test]
async fn a_folder_of_an_unknown_service_needs_its_keys_document() {
    let (service, address) = serve(Service::new(1, 1)).await;
    let machine = Machine::new(&address);
    machine.pull(None).await.unwrap();
    let stranger = Machine::new(&address);
    let (folder, known) = (machine.folder(), stranger.known());
    let mut verify = Verify {
        folder: &folder,
        keys: None,
        known: &known,
    };
    assert!(matches!(verify.signatures(), Err(Error::UnknownService { .. })));
    let keys = stranger.home.path().join("keys.json");
    fs::write(&keys, service.lock().unwrap().document()).unwrap();
    verify.keys = Some(&keys);
    assert_eq!(
        verify.signatures().unwrap().first_key,
        service.lock().unwrap().keys[0].key_id
    );
    fs::write(&keys, Service::new(50, 1).document()).unwrap();
    assert!(matches!(
        verify.signatures(),
        Err(Error::Proof(proof::Error::UnknownKey { .. }))
    ));
}

#[tokio::test]
async fn an_older_version_takes_away_what_a_newer_one_brought() {
    let (_service, address) = serve(Service::new(1, 3)).await;
    let machine = Machine::new(&address);
    machine.pull(None).await.unwrap();
    fs::write(machine.folder().join("notes.txt"), "mine").unwrap();
    machine.pull(Some(1)).await.unwrap();
    assert_eq!(
        machine.names(),
        ["keys.json", "manifest.json", "notes.txt", "part-1.parquet"]
    );
}

#[tokio::test]
async fn files_of_others_are_left_alone() {
    let (service, address) = serve(Service::new(1, 1)).await;
    let machine = Machine::new(&address);
    fs::create_dir(machine.folder()).unwrap();
    fs::write(machine.folder().join("mine.parquet"), "mine").unwrap();
    let refused = machine.pull(None).await.unwrap_err();
    assert!(
        refused.to_string().contains("mine.parquet` is not a part of version 1"),
        "{refused}"
    );
    fs::remove_file(machine.folder().join("mine.parquet")).unwrap();
    machine.pull(None).await.unwrap();
    service.lock().unwrap().dataset = DatasetId::from_bytes([9; 16]);
    let refused = machine.pull(None).await.unwrap_err();
    assert!(refused.to_string().contains("contains another dataset"), "{refused}");
    assert_eq!(machine.names(), ["keys.json", "manifest.json", "part-1.parquet"]);
}
