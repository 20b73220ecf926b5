use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde_json::json;
use types::{AgentId, Batch, ContributionId, Timestamp, Version};

use super::*;
use crate::log;
use crate::part::{self, PartInfo};
use crate::{Merge, Root};

/// What one version of a table says; every test falsifies one thing.
struct Told {
    records: Vec<Value>,
    contribution: ContributionId,
    part_version: u64,
    record_count: u64,
    root: Option<Root>,
}

fn told(version: u64) -> Told {
    Told {
        records: vec![
            json!({"name": format!("a{version}")}),
            json!({"name": format!("b{version}")}),
        ],
        contribution: ContributionId::new(Timestamp::from_micros(1)),
        part_version: version,
        record_count: version * 2,
        root: None,
    }
}

/// The rules that a table of these versions breaks.
async fn broken(versions: Vec<Told>) -> Vec<&'static str> {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let dataset = DatasetId::new(Timestamp::from_micros(1));
    let contract = json!({"fields": [{"name": "name", "type": "string", "required": true}]});
    let contract: Arc<Contract> = Arc::new(serde_json::from_value(contract).unwrap());
    let agent = AgentId::new(Timestamp::from_micros(1));
    let zero = log::created(dataset, &contract, Timestamp::from_micros(1)).unwrap();
    objects.put(&log::path(dataset, 0), zero.into()).await.unwrap();
    let mut root = Root::EMPTY;
    for (told, version) in versions.into_iter().zip(1..) {
        let batch = Batch::decode(&contract, &told.records);
        let encoded = part::encode(&batch, told.contribution, agent, Version(told.part_version)).unwrap();
        root = root.extend((0..batch.len()).map(|row| batch.canonical(row)));
        let part = PartInfo {
            version: Version(version),
            contribution: told.contribution,
            index: 0,
            attempt: 0,
            rows: batch.len() as u64,
            bytes: encoded.bytes.len() as u64,
            sha256: encoded.sha256,
        };
        objects.put(&part.path(dataset), encoded.bytes.into()).await.unwrap();
        let merge = Merge {
            contribution: told.contribution,
            agent,
            version: Version(version),
            accepted: part.rows,
            record_count: told.record_count,
            root: told.root.unwrap_or(root).to_string(),
            duplicates: Vec::new(),
            at: Timestamp::from_micros(1),
            notes: Value::Null,
        };
        let bytes = log::merged(dataset, &merge, std::slice::from_ref(&part)).unwrap();
        objects.put(&log::path(dataset, version), bytes.into()).await.unwrap();
    }
    let report = table(&objects, dataset).await.unwrap();
    let mut rules: Vec<_> = report.violations.iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

#[tokio::test]
async fn a_sound_table_breaks_no_rule() {
    assert_eq!(broken(vec![told(1), told(2), told(3)]).await, [""; 0]);
}

#[tokio::test]
async fn a_contribution_in_two_versions_is_found() {
    let (first, mut second) = (told(1), told(2));
    second.contribution = first.contribution;
    assert_eq!(broken(vec![first, second]).await, ["contribution_twice"]);
}

#[tokio::test]
async fn a_record_in_two_versions_is_found() {
    let (first, mut second) = (told(1), told(2));
    second.records[1] = first.records[0].clone();
    assert_eq!(broken(vec![first, second]).await, ["key_twice"]);
}

#[tokio::test]
async fn a_part_of_another_version_is_found() {
    let mut second = told(2);
    second.part_version = 1;
    assert_eq!(broken(vec![told(1), second]).await, ["hidden_columns"]);
}

#[tokio::test]
async fn a_wrong_count_and_a_wrong_root_are_found() {
    let mut second = told(2);
    second.record_count = 5;
    assert_eq!(broken(vec![told(1), second]).await, ["record_count"]);
    let mut second = told(2);
    second.root = Some(Root::EMPTY);
    assert_eq!(broken(vec![told(1), second]).await, ["content_root"]);
}

#[tokio::test]
async fn a_record_that_breaks_the_contract_is_found() {
    let mut second = told(2);
    second.records[0] = json!({});
    assert_eq!(broken(vec![told(1), second]).await, ["record_key"]);
}
