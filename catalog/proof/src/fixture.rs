//! A service with keys and a dataset, as small as they can be.
//!
//! Invariant: keys are made of fixed secrets, so every signature is the same in every run.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use types::{Batch, Contract, DatasetId, Timestamp, Version};

use crate::manifest::ManifestFormat;
use crate::{FileHash, Key, Keys, KeysDocument, Manifest, Part, Root, SignedManifest, SigningKey, Status};

/// `second` seconds after the first of November 2026.
pub(crate) fn at(second: u64) -> Timestamp {
    let start: Timestamp = "2026-11-01T00:00:00Z".parse().unwrap();
    start.plus(std::time::Duration::from_secs(second))
}

/// What signs.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) secrets: Vec<SigningKey>,
    pub(crate) keys: Vec<Key>,
    pub(crate) sequence: u64,
}

impl Service {
    /// With one key, made of this byte at second 0.
    pub(crate) fn new(seed: u8) -> Self {
        let secret = SigningKey::from_secret(&[seed; 32]);
        let key = Key::new(secret.public_key(), at(0), None);
        Self {
            secrets: vec![secret],
            keys: vec![key],
            sequence: 1,
        }
    }

    /// Makes a new key, the old one endorses it.
    pub(crate) fn rotate(&mut self, second: u64) {
        self.add(second);
        let old = self.keys.len() - 2;
        self.keys[old].status = Status::Retired;
        self.keys[old].retired_at = Some(at(second));
    }

    /// Revokes a key; a new one is made where it is the current.
    pub(crate) fn revoke(&mut self, index: usize, second: u64) {
        if index == self.keys.len() - 1 {
            self.add(second);
        }
        self.sequence += 1;
        let key = &mut self.keys[index];
        key.status = Status::Revoked;
        key.revoked_at = Some(at(second));
        key.reason = Some("the backup was lost".to_owned());
    }

    fn add(&mut self, second: u64) {
        let old = self.secrets.last().unwrap();
        let seed = old.secret()[0] + 1;
        let secret = SigningKey::from_secret(&[seed; 32]);
        let endorsement = old.endorse(&secret.public_key(), at(second));
        self.keys
            .push(Key::new(secret.public_key(), at(second), Some(endorsement)));
        self.secrets.push(secret);
        self.sequence += 1;
    }

    pub(crate) fn document(&self) -> KeysDocument {
        let current = self.secrets.last().unwrap();
        KeysDocument::sign(self.sequence, at(1_000), self.keys.clone(), current).unwrap()
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys::parse(&serde_json::to_vec(&self.document()).unwrap()).unwrap()
    }

    /// Signs with the key of this index.
    pub(crate) fn sign(&self, manifest: Manifest, index: usize) -> SignedManifest {
        manifest.sign(&self.secrets[index], &self.keys[index]).unwrap()
    }
}

pub(crate) fn contract() -> Arc<Contract> {
    let def = json!({"fields": [{"name": "n", "type": "integer"}, {"name": "at", "type": "timestamp"}]});
    Arc::new(serde_json::from_value(def).unwrap())
}

/// A manifest and the folder of its parts.
pub(crate) struct Dataset {
    pub(crate) folder: TempDir,
    pub(crate) manifest: Manifest,
    root: Root,
    rows: i64,
}

impl Dataset {
    /// Without a version yet.
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            manifest: Manifest {
                format: ManifestFormat::V1,
                dataset: DatasetId::from_bytes([7; 16]),
                slug: "tide-levels".to_owned(),
                version: Version::EMPTY,
                record_count: 0,
                root: Root::EMPTY,
                schema_def: contract(),
                license: "CC-BY-4.0".to_owned(),
                created_at: at(10),
                issued_at: at(20),
                parts: Vec::new(),
                urls_expire_at: None,
            },
            root: Root::EMPTY,
            rows: 0,
        }
    }

    /// One part for each of three versions.
    pub(crate) fn with_three_parts() -> Self {
        let mut dataset = Self::new();
        for version in 1..=3 {
            dataset.part(&[(version, 2)]);
        }
        dataset
    }

    /// Writes a part with so many rows of each version; a version goes on where its number is that of the last.
    pub(crate) fn part(&mut self, versions: &[(u64, i64)]) {
        let name = format!("part-{}.parquet", self.manifest.parts.len() + 1);
        let mut rows = Vec::new();
        for &(version, count) in versions {
            rows.extend((self.rows..self.rows + count).map(|n| (version, record(n))));
            self.rows += count;
        }
        let (size, sha256) = write(&self.folder.path().join(&name), &rows);
        self.manifest.parts.push(Part {
            path: name,
            first_version: Version(versions[0].0),
            last_version: Version(versions[versions.len() - 1].0),
            rows: rows.len() as u64,
            size,
            sha256,
            root: Root::EMPTY,
            url: None,
        });
        self.finish();
    }

    /// The numbers and roots of the manifest, from what was written.
    fn finish(&mut self) {
        let mut roots = vec![Root::EMPTY];
        let mut first = 0;
        let counts = self.counts();
        for count in counts {
            let records: Vec<_> = (first..first + count).map(record).collect();
            let batch = Batch::decode(&contract(), &records);
            let rows: Vec<_> = (0..batch.len()).map(|row| batch.canonical(row).to_vec()).collect();
            let root = roots[roots.len() - 1].extend(rows.iter().map(Vec::as_slice));
            roots.push(root);
            first += count;
        }
        for part in &mut self.manifest.parts {
            part.root = roots[usize::try_from(part.last_version.0).unwrap()];
        }
        self.root = roots[roots.len() - 1];
        self.manifest.root = self.root;
        self.manifest.version = Version(roots.len() as u64 - 1);
        self.manifest.record_count = u64::try_from(self.rows).unwrap();
    }

    /// How many rows each version has, read from the parts.
    fn counts(&self) -> Vec<i64> {
        let mut counts: Vec<i64> = Vec::new();
        for part in &self.manifest.parts {
            let file = fs::File::open(self.folder.path().join(&part.path)).unwrap();
            let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(file, 1_024).unwrap();
            for batch in reader.map(Result::unwrap) {
                let versions = batch.column_by_name("_sluice_version").unwrap();
                let versions = versions.as_any().downcast_ref::<Int64Array>().unwrap();
                for version in versions.values() {
                    counts.resize(counts.len().max(usize::try_from(*version).unwrap()), 0);
                    counts[usize::try_from(*version - 1).unwrap()] += 1;
                }
            }
        }
        counts
    }
}

pub(crate) fn record(n: i64) -> Value {
    json!({"n": n, "at": at(n.unsigned_abs()).to_string()})
}

/// Writes a Parquet file of records and their versions; its size and hash.
pub(crate) fn write(path: &Path, rows: &[(u64, Value)]) -> (u64, FileHash) {
    let records: Vec<_> = rows.iter().map(|(_, record)| record.clone()).collect();
    let batch = Batch::decode(&contract(), &records);
    let versions: ArrayRef = Arc::new(Int64Array::from_iter_values(
        rows.iter().map(|(version, _)| i64::try_from(*version).unwrap()),
    ));
    let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
    for (field, column) in batch.columns().schema().fields().iter().zip(batch.columns().columns()) {
        columns.push((field.name().clone(), Arc::clone(column), true));
    }
    columns.push(("_sluice_version".to_owned(), versions, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    fs::write(path, &bytes).unwrap();
    (bytes.len() as u64, FileHash::from_bytes(Sha256::digest(&bytes).into()))
}

/// The same signature with another scalar: S plus the order of the group (RFC 8032 section 5.1).
pub(crate) fn non_canonical(signature: &str) -> String {
    let order = data_encoding::HEXLOWER
        .decode(b"edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
        .unwrap();
    let mut bytes = data_encoding::BASE64.decode(signature.as_bytes()).unwrap();
    let mut carry = 0_u16;
    for (byte, add) in bytes[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = u8::try_from(sum & 0xff).unwrap();
        carry = sum >> 8;
    }
    assert_eq!(carry, 0);
    data_encoding::BASE64.encode(&bytes)
}
