//! A version pulled over HTTP and verified twice: by this crate, and by the Python example that was written from
//! `catalog/proof/FORMAT.md` alone.
//!
//! Invariant: both accept the same folders and refuse the same folders.

#![expect(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "an integration test is a test module"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use axum::Router;
use axum::routing::get;
use client::{Client, KnownKeys, Pull, Verify};
use parquet::arrow::ArrowWriter;
use proof::manifest::ManifestFormat;
use proof::{FileHash, Key, KeysDocument, Manifest, Part, Root, SigningKey, Status};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use types::{Batch, Contract, DatasetId, Timestamp, Version};

fn at(second: i64) -> Timestamp {
    Timestamp::from_micros(1_795_000_000_000_000 + second * 1_000_000)
}

fn contract() -> Arc<Contract> {
    let def = json!({"allowExtra": true, "fields": [
        {"name": "text", "type": "string"}, {"name": "whole", "type": "integer"}, {"name": "double", "type": "number"},
        {"name": "flag", "type": "boolean"}, {"name": "at", "type": "timestamp"}, {"name": "any", "type": "json"},
        {"name": "day", "type": "date", "title": "Tag"}, {"name": "price", "type": "decimal", "scale": 18, "unit": "€"},
        {"name": "level", "type": "decimal", "scale": 0}, {"name": "온도", "type": "string"}, {"name": "\u{fb33}", "type": "string"}, {"name": "😀", "type": "string"},
    ]});
    Arc::new(serde_json::from_value(def).unwrap())
}

/// Records in which every rule of the canonical form matters.
fn records() -> Vec<Vec<Value>> {
    let doubles = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        0.1,
        1e-6,
        1e-7,
        1.5e-9,
        123_456.789,
        1e15,
        1e16,
        1e20,
        1.234_567_890_123_456_8e20,
        1e21,
        1.5e300,
        5e-324,
        f64::MAX,
        f64::MIN_POSITIVE,
        9_007_199_254_740_993.0,
        590_295_810_358_705_651_712.0,
    ];
    let texts = [
        "",
        "a\"\\/\u{8}\t\n\u{c}\r\u{1}\u{1f}\u{7f}",
        "é\u{2028}\u{2029}",
        "😀\u{fb33}",
        "</script>",
    ];
    let times = [
        "1970-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
        "2026-11-21T07:10:20.5Z",
        "2026-11-21T07:10:20+09:00",
        "0001-01-01T00:00:00Z",
        "9999-12-30T21:59:59.00001Z",
    ];
    let first = doubles.iter().map(|double| json!({"double": double})).collect();
    let second = texts
        .iter()
        .map(|text| json!({"text": text, "온도": text, "\u{fb33}": "1", "😀": "2"}))
        .collect();
    let days = [
        "0001-01-01",
        "9999-12-31",
        "1969-12-31",
        "2020-02-29",
        "1970-01-01",
        "1582-10-10",
    ];
    let prices = [
        "-0.0",
        "0.1",
        "-9999999999.999999999999999999",
        "12",
        "0.000000000000000001",
        "-0.5",
    ];
    let levels = [
        "0",
        "-9999999999999999999999999999",
        "170141183460469231731",
        "7.0",
        "-1",
        "10",
    ];
    let third = (times.iter().zip(days))
        .zip(prices.iter().zip(levels))
        .map(|((time, day), (price, level))| {
            json!({"at": time, "flag": true, "whole": i64::MIN, "day": day, "price": price, "level": level})
        })
        .collect();
    let nested = json!({"z": [1, 2.50, {"b": null, "a": [u64::MAX, -1, 1e30]}], "😀": 1, "\u{fb33}": "x", "": {}});
    let fourth = vec![
        json!({"any": nested, "whole": 9_007_199_254_740_993_i64, "flag": false}),
        json!({"any": "text", "extra": nested, "Text": [], "zzz": 0.000_000_1}),
        json!({"any": 1.0, "\u{1}": "\u{1f}", "é": -0.0}),
        json!({"any": [], "text": null}),
        json!({}),
    ];
    vec![first, second, third, fourth]
}

/// A version as its manifest tells it, and the bytes of its parts.
fn version() -> (Manifest, Vec<Vec<u8>>) {
    let (contract, mut root, mut parts) = (contract(), Root::EMPTY, Vec::<(Part, Vec<u8>)>::new());
    let versions = records();
    let mut rows = Vec::new();
    for (index, records) in versions.iter().enumerate() {
        let version = index as u64 + 1;
        let batch = Batch::decode(&contract, records);
        assert_eq!(batch.defects(), []);
        root = root.extend((0..batch.len()).map(|row| batch.canonical(row)));
        rows.extend(records.iter().map(|record| (version, record.clone())));
        if version > 1 {
            let path = format!("part-{version:020}.parquet");
            let bytes = parquet(&contract, &rows);
            let part = Part {
                path,
                first_version: Version(rows[0].0),
                last_version: Version(version),
                rows: rows.len() as u64,
                size: bytes.len() as u64,
                sha256: FileHash::from_bytes(Sha256::digest(&bytes).into()),
                root,
                url: None,
            };
            parts.push((part, bytes));
            rows.clear();
        }
    }
    let manifest = Manifest {
        format: ManifestFormat::V1,
        dataset: DatasetId::from_bytes([7; 16]),
        slug: "tide-levels".to_owned(),
        version: Version(versions.len() as u64),
        record_count: versions.iter().map(|records| records.len() as u64).sum(),
        root,
        schema_def: contract,
        license: "CC-BY-4.0".to_owned(),
        created_at: at(10),
        issued_at: at(150),
        parts: parts.iter().map(|(part, _)| part.clone()).collect(),
        urls_expire_at: Some(at(900)),
    };
    (manifest, parts.into_iter().map(|(_, bytes)| bytes).collect())
}

/// A service with one version for each of `records`, the first two in one part.
struct Service {
    manifest: String,
    keys: String,
    parts: Vec<(String, Vec<u8>)>,
}

impl Service {
    fn new() -> Self {
        let (mut manifest, parts) = version();
        for part in &mut manifest.parts {
            part.url = Some(format!("/parts/{}", part.path));
        }
        let (keys, secrets) = keys();
        let document = KeysDocument::sign(4, at(300), keys.clone(), &secrets[2]).unwrap();
        let paths: Vec<_> = manifest.parts.iter().map(|part| part.path.clone()).collect();
        let signed = manifest.sign(&secrets[1], &keys[1]).unwrap();
        Self {
            manifest: serde_json::to_string(&signed).unwrap(),
            keys: serde_json::to_string(&document).unwrap(),
            parts: paths.into_iter().zip(parts).collect(),
        }
    }

    /// Serves the calls of a pull.
    async fn serve(self) -> String {
        let (manifest, keys) = (self.manifest, self.keys);
        let mut router = Router::new()
            .route("/projects/tide-levels/manifest", get(move || async move { manifest }))
            .route("/.well-known/service-keys", get(move || async move { keys }));
        for (name, bytes) in self.parts {
            router = router.route(&format!("/parts/{name}"), get(move || async move { bytes }));
        }
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }
}

/// Three keys, the first revoked and the second retired.
fn keys() -> (Vec<Key>, Vec<SigningKey>) {
    let secrets = [1, 2, 3].map(|seed| SigningKey::from_secret(&[seed; 32]));
    let mut keys = vec![Key::new(secrets[0].public_key(), at(0), None)];
    for (index, second) in [(1, 100), (2, 200)] {
        let public = secrets[index].public_key();
        let endorsement = secrets[index - 1].endorse(&public, at(second));
        keys.push(Key::new(public, at(second), Some(endorsement)));
    }
    (keys[0].status, keys[0].revoked_at) = (Status::Revoked, Some(at(100)));
    (keys[1].status, keys[1].retired_at) = (Status::Retired, Some(at(200)));
    (keys, secrets.into())
}

/// The rows of a part as the service writes them.
fn parquet(contract: &Arc<Contract>, rows: &[(u64, Value)]) -> Vec<u8> {
    let records: Vec<_> = rows.iter().map(|(_, record)| record.clone()).collect();
    let batch = Batch::decode(contract, &records);
    let versions = rows.iter().map(|(version, _)| i64::try_from(*version).unwrap());
    let versions: ArrayRef = Arc::new(Int64Array::from_iter_values(versions));
    let (schema, columns) = (batch.columns().schema(), batch.columns().columns());
    let mut columns: Vec<_> = schema
        .fields()
        .iter()
        .zip(columns)
        .map(|(field, column)| (field.name().clone(), Arc::clone(column), true))
        .collect();
    columns.push(("_sluice_version".to_owned(), versions, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// A folder that was pulled.
struct Pulled {
    home: TempDir,
}

impl Pulled {
    async fn new() -> Self {
        let pulled = Self {
            home: tempfile::tempdir().unwrap(),
        };
        let client = Client::anonymous(&Service::new().serve().await).unwrap();
        let pull = Pull {
            slug: "tide-levels".to_owned(),
            version: None,
            folder: pulled.folder(),
            known: pulled.known(),
        };
        client.pull(&pull, Arc::new(|_| {})).await.unwrap();
        pulled
    }

    fn folder(&self) -> PathBuf {
        self.home.path().join("tide-levels")
    }

    fn known(&self) -> KnownKeys {
        KnownKeys::at(self.home.path().join("known-keys.json"))
    }

    /// Returns true if the folder verifies. Both verifiers must agree.
    fn verifies(&self) -> bool {
        let (folder, known) = (self.folder(), self.known());
        let verify = Verify {
            folder: &folder,
            keys: None,
            known: &known,
        };
        let verified = verify.signatures();
        let verified = verified.and_then(|verified| verify.parts(&verified.manifest, &|_| {}));
        if let Some(example) = verified_by_example(&folder) {
            assert_eq!(verified.is_ok(), example.is_ok(), "{verified:?}, {example:?}");
        }
        verified.is_ok()
    }

    /// Changes a document of the folder.
    fn edit(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let path = self.folder().join(file);
        let mut document = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut document);
        std::fs::write(path, document.to_string()).unwrap();
    }
}

/// Runs the Python example, if a Python with its packages is configured. Returns what it printed, or its error.
fn verified_by_example(folder: &Path) -> Option<Result<String, String>> {
    let python = std::env::var_os("SLUICE_TEST_PYTHON")?;
    let (first, _) = keys();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/verify.py");
    let run = Command::new(python)
        .arg(example)
        .arg(folder)
        .arg(first[0].key_id.to_string())
        .output();
    let run = run.unwrap();
    let problem = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(!problem.contains("ModuleNotFoundError"), "{problem}");
    if !run.status.success() {
        return Some(Err(problem));
    }
    let printed = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(
        printed.starts_with("tide-levels version 4: 36 records, root "),
        "{printed}"
    );
    Some(Ok(printed))
}

#[tokio::test]
async fn a_pulled_version_verifies() {
    assert!(Pulled::new().await.verifies());
}

#[tokio::test]
async fn a_changed_folder_is_refused() {
    let (keys, secrets) = keys();
    let stranger = SigningKey::from_secret(&[9; 32]).endorse(&keys[1].public_key, at(100));
    let current = &secrets[2];
    let changes: [(&str, &str, Value); 10] = [
        ("manifest.json", "/root", json!(Root::EMPTY)),
        ("manifest.json", "/parts/0/root", json!(Root::EMPTY)),
        ("manifest.json", "/license", json!("CC0-1.0")),
        ("manifest.json", "/schemaDef/fields/7/unit", json!("$")),
        ("manifest.json", "/signature/keyId", json!(keys[0].key_id)),
        ("manifest.json", "/signature/keyId", json!(stranger.by)),
        ("manifest.json", "/signature/endorsement", json!(null)),
        ("manifest.json", "/signature/publicKey", json!(current.public_key())),
        ("keys.json", "/keys/1/endorsement/value", json!(stranger.value)),
        ("keys.json", "/sequence", json!(5)),
    ];
    for (file, pointer, value) in changes {
        let pulled = Pulled::new().await;
        pulled.edit(file, |document| *document.pointer_mut(pointer).unwrap() = value);
        assert!(!pulled.verifies(), "{file}: {pointer}");
    }
    let pulled = Pulled::new().await;
    pulled.edit("manifest.json", |manifest| manifest["note"] = "more".into());
    assert!(!pulled.verifies());
}

#[tokio::test]
async fn changed_parts_are_refused() {
    let parts = Service::new().parts;
    let (path, bytes) = &parts[1];
    let write = |pulled: &Pulled, name: &str, bytes: &[u8]| std::fs::write(pulled.folder().join(name), bytes).unwrap();
    let pulled = Pulled::new().await;
    write(&pulled, path, &bytes[..bytes.len() - 1]);
    assert!(!pulled.verifies(), "cut off");
    write(&pulled, path, &parts[0].1);
    assert!(!pulled.verifies(), "another part");
    write(&pulled, path, bytes);
    assert!(pulled.verifies(), "as it was");
    write(&pulled, "more.parquet", bytes);
    assert!(!pulled.verifies(), "a part nobody named");
}

#[tokio::test]
async fn what_breaks_a_rule_is_refused_whoever_signed_it() {
    let pulled = Pulled::new().await;
    let (keys, secrets) = keys();
    let write = |manifest: &Manifest| {
        let signed = manifest.clone().sign(&secrets[1], &keys[1]).unwrap();
        let text = serde_json::to_string(&signed).unwrap();
        std::fs::write(pulled.folder().join("manifest.json"), text).unwrap();
    };
    let (mut sound, _) = version();
    sound.urls_expire_at = None;
    write(&sound);
    assert!(pulled.verifies(), "as it was");
    // What is not even the shape of a version cannot be signed here.
    let changes: [fn(&mut Manifest); 2] = [
        |manifest| manifest.parts[1].first_version = Version(2),
        |manifest| {
            manifest.parts[0].rows -= 1;
            manifest.parts[1].rows += 1;
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut manifest = sound.clone();
        change(&mut manifest);
        write(&manifest);
        assert!(!pulled.verifies(), "change {number}");
    }
    // Each version has its records in their order, and so its root; a reader of rows sees them mixed.
    let versions = (1..).zip(records().into_iter().take(2));
    let mut rows: Vec<_> = versions
        .flat_map(|(version, records)| records.into_iter().map(move |record| (version, record)))
        .collect();
    let last = rows.iter().rposition(|(version, _)| *version == 1).unwrap();
    rows.swap(last, last + 1);
    let mixed = parquet(&contract(), &rows);
    let mut manifest = sound;
    manifest.parts[0].size = mixed.len() as u64;
    manifest.parts[0].sha256 = FileHash::from_bytes(Sha256::digest(&mixed).into());
    std::fs::write(pulled.folder().join(&manifest.parts[0].path), mixed).unwrap();
    write(&manifest);
    assert!(!pulled.verifies(), "rows out of order");
}
