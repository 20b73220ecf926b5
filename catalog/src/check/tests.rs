use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt as _};
use parquet::arrow::ArrowWriter;
use serde_json::json;
use sha2::Digest as _;
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
    broken_with(versions, None).await
}

/// What a compaction of versions 2 and 3 does to its rows, and to its commit.
type Changes = (fn(RecordBatch) -> RecordBatch, fn(String) -> String);

/// The rules that a table of these versions breaks when the last two are compacted so.
async fn broken_with(versions: Vec<Told>, compaction: Option<Changes>) -> Vec<&'static str> {
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let dataset = DatasetId::new(Timestamp::from_micros(1));
    let contract = json!({"fields": [{"name": "name", "type": "string", "required": true}]});
    let contract: Arc<Contract> = Arc::new(serde_json::from_value(contract).unwrap());
    let agent = AgentId::new(Timestamp::from_micros(1));
    let zero = log::created(dataset, &contract, Timestamp::from_micros(1)).unwrap();
    objects.put(&log::path(dataset, 0), zero.into()).await.unwrap();
    let mut root = Root::EMPTY;
    let mut inputs = Vec::new();
    for (told, version) in versions.into_iter().zip(1..) {
        let batch = Batch::decode(&contract, &told.records);
        let encoded = part::encode(&batch, told.contribution, agent, Version(told.part_version)).unwrap();
        root = root.extend((0..batch.len()).map(|row| batch.canonical(row)));
        let part = PartInfo {
            version: Version(version),
            compacted: None,
            contribution: told.contribution,
            index: 0,
            attempt: 0,
            rows: batch.len() as u64,
            bytes: encoded.bytes.len() as u64,
            sha256: encoded.sha256,
        };
        let rows = part::decode(encoded.bytes.clone()).unwrap().next().unwrap().unwrap();
        objects.put(&part.path(dataset), encoded.bytes.into()).await.unwrap();
        inputs.push((part.clone(), rows));
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
        let bytes = log::merged(dataset, &merge, [(&part, None)]).unwrap();
        objects.put(&log::path(dataset, version), bytes.into()).await.unwrap();
    }
    if let Some((rows, commit)) = compaction {
        let (parts, batches): (Vec<_>, Vec<_>) = inputs.split_off(1).into_iter().unzip();
        let rows = rows(concat_batches(batches[0].schema_ref(), &batches).unwrap());
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        let bytes = writer.into_inner().unwrap();
        let rewrite = log::PartRewrite {
            first: Version(2),
            last: Version(3),
            rows: 4,
            bytes: bytes.len() as u64,
            sha256: sha2::Sha256::digest(&bytes).into(),
            replaces: parts.iter().map(PartInfo::name).collect(),
        };
        let path = Path::from(format!("{dataset}/{}", rewrite.name()));
        objects.put(&path, bytes.into()).await.unwrap();
        let bytes = log::compacted(&rewrite, None, &parts, Timestamp::from_micros(1)).unwrap();
        let bytes = log::seal::sealed(&commit(String::from_utf8(bytes).unwrap()));
        objects.put(&log::path(dataset, 4), bytes.into()).await.unwrap();
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

fn same(commit: String) -> String {
    commit
}

/// These rows of a batch, in this order.
fn taken(rows: &RecordBatch, indexes: &[u32]) -> RecordBatch {
    take_record_batch(rows, &UInt32Array::from(indexes.to_vec())).unwrap()
}

#[tokio::test]
async fn a_compaction_with_other_rows_than_it_replaced_is_found() {
    let broken = async |changes: Changes| broken_with(vec![told(1), told(2), told(3)], Some(changes)).await;
    assert_eq!(broken((|rows| rows, same)).await, [""; 0]);
    assert_eq!(broken((|rows| rows.slice(0, 3), same)).await, ["compaction"]);
    assert_eq!(broken((|rows| rows.slice(1, 3), same)).await[0], "hidden_columns");
    assert_eq!(
        broken((|rows| taken(&rows, &[0, 1, 2, 3, 3]), same)).await,
        ["compaction"]
    );
    assert_eq!(
        broken((|rows| taken(&rows, &[1, 0, 2, 3]), same)).await[0],
        "hidden_columns"
    );
    assert_eq!(
        broken((|rows| taken(&rows, &[2, 3, 0, 1]), same)).await[0],
        "hidden_columns"
    );
    // The hidden columns are right, the records are swapped.
    let swapped = |rows: RecordBatch| {
        let mut columns = rows.columns().to_vec();
        columns[0] = Arc::clone(taken(&rows, &[1, 0, 2, 3]).column(0));
        RecordBatch::try_new(rows.schema(), columns).unwrap()
    };
    assert_eq!(broken((swapped, same)).await, ["record_key", "compaction"]);
}

#[tokio::test]
async fn a_compaction_of_parts_that_are_not_the_table_s_is_found() {
    let broken = async |commit: fn(String) -> String| {
        broken_with(vec![told(1), told(2), told(3)], Some((|rows| rows, commit))).await
    };
    for commit in [
        |commit: String| commit.replacen("part-00000000000000000002", "part-00000000000000000001", 1),
        |commit: String| commit.replace("\"dataChange\":false", "\"dataChange\":true"),
        |commit: String| commit.replace("\"firstVersion\":2", "\"firstVersion\":1"),
        |commit: String| commit.replace("numRecords\\\":4", "numRecords\\\":5"),
        |commit: String| commit.replace("{\"add\":", "{\"txn\":"),
    ] {
        assert_eq!(broken(commit).await, ["compaction"]);
    }
}
