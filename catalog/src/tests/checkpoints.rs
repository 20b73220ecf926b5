use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use arrow::json::{LineDelimitedWriter, ReaderBuilder};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use types::Version;

use super::fixture::{Proposal, Trouble, Troubled, World, merged, names, numbered};
use crate::storage::DurableStore;
use crate::{Catalog, Policy, Table};

/// What is done to the rows of a checkpoint.
type Change<'a> = &'a dyn Fn(&mut Vec<Value>);

const DAY: Duration = Duration::from_hours(24);

fn checkpoint_file(world: &World, number: u64) -> PathBuf {
    world.file(&format!("_delta_log/{number:020}.checkpoint.parquet"))
}

fn last_file(world: &World) -> PathBuf {
    world.file("_delta_log/_last_checkpoint")
}

fn last(world: &World) -> Option<Value> {
    let bytes = fs::read(last_file(world)).ok()?;
    Some(serde_json::from_slice(&bytes).unwrap())
}

/// The numbers of the commits that have a checkpoint.
fn checkpoints(world: &World) -> Vec<u64> {
    let entries = fs::read_dir(world.file("_delta_log")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut numbers: Vec<_> = names
        .filter_map(|name| name.strip_suffix(".checkpoint.parquet")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// The rows of a checkpoint with its columns.
fn decoded(bytes: Vec<u8>) -> (SchemaRef, Vec<Value>) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
    let schema = Arc::clone(reader.schema());
    let mut lines = LineDelimitedWriter::new(Vec::new());
    for batch in reader.build().unwrap() {
        lines.write(&batch.unwrap()).unwrap();
    }
    lines.finish().unwrap();
    let lines = String::from_utf8(lines.into_inner()).unwrap();
    let rows = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    (schema, rows.collect())
}

fn rows(world: &World, number: u64) -> Vec<Value> {
    decoded(fs::read(checkpoint_file(world, number)).unwrap()).1
}

fn encoded(schema: &SchemaRef, rows: &[Value]) -> Vec<u8> {
    let mut decoder = ReaderBuilder::new(Arc::clone(schema)).build_decoder().unwrap();
    decoder.serialize(rows).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(schema), None).unwrap();
    writer.write(&decoder.flush().unwrap().unwrap()).unwrap();
    writer.into_inner().unwrap()
}

/// The lines of the commits up to this one, without those that a later one cancels.
fn replayed(world: &World, number: u64) -> Vec<Value> {
    let mut said = BTreeMap::new();
    for number in 0..=number {
        let commit = fs::read_to_string(world.commit_file(number)).unwrap();
        for line in commit.lines() {
            let mut action: Value = serde_json::from_str(line).unwrap();
            let kind = action.as_object().unwrap().keys().next().unwrap().clone();
            let mut about = kind.clone();
            if kind == "commitInfo" {
                continue;
            }
            if let Some(path) = action[&kind]["path"].as_str() {
                path.clone_into(&mut about);
                action[&kind]["dataChange"] = false.into();
            }
            said.insert(about, action);
        }
    }
    said.into_values().collect()
}

fn sorted(mut rows: Vec<Value>) -> Vec<String> {
    rows.sort_by_key(Value::to_string);
    rows.iter().map(Value::to_string).collect()
}

fn count(rows: &[Value], kind: &str) -> usize {
    rows.iter().filter(|row| row.get(kind).is_some()).count()
}

/// Merges records with these numbers, one version each, some time after the others.
async fn grow_at(world: &World, table: &mut Table, numbers: std::ops::Range<u64>, after: Duration) {
    for number in numbers {
        let proposal = world.proposal(&numbered(number..number + 1));
        let at = proposal.at.plus(after);
        merged(table.merge(Proposal { at, ..proposal }).await.unwrap());
    }
}

async fn grow(world: &World, table: &mut Table, numbers: std::ops::Range<u64>) {
    grow_at(world, table, numbers, Duration::ZERO).await;
}

async fn compact(table: &mut Table) {
    while let Some(compaction) = table.compaction() {
        assert!(
            table
                .install_compaction(compaction.build().await.unwrap())
                .await
                .unwrap()
        );
    }
}

/// A table of so many versions, whose owner died.
async fn grown(versions: u64) -> World {
    let world = World::new();
    let mut table = world.table(&world.catalog("one")).await;
    grow(&world, &mut table, 0..versions).await;
    world
}

/// A table whose first versions were compacted, and the others merged some days later.
async fn compacted(days: u32) -> (World, Catalog) {
    let world = World::new();
    let catalog = world.catalog("one").with_compaction(Policy::new(8, 1 << 30));
    let mut table = world.table(&catalog).await;
    for version in 0..70 {
        grow(&world, &mut table, version..version + 1).await;
        compact(&mut table).await;
    }
    grow_at(&world, &mut table, 70..280, DAY * days).await;
    (world, catalog)
}

async fn broken(world: &World) -> Vec<&'static str> {
    let report = world.check().await;
    let mut rules: Vec<_> = report.violations.iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

#[tokio::test]
async fn a_checkpoint_is_what_the_log_amounts_to() {
    let (world, _) = compacted(6).await;
    // 70 versions and their compactions: 8 of 8 parts, one of those.
    assert_eq!(checkpoints(&world), [255]);
    let rows = rows(&world, 255);
    assert_eq!(sorted(rows.clone()), sorted(replayed(&world, 255)));
    let counts = ["protocol", "metaData", "txn", "add", "remove"].map(|kind| count(&rows, kind));
    assert_eq!(counts, [1, 1, 1, 255 - 9 - 64 + 1, 64 + 8]);
    let size = fs::metadata(checkpoint_file(&world, 255)).unwrap().len();
    assert_eq!(
        last(&world),
        Some(json!({"version": 255, "size": 258, "sizeInBytes": size, "numOfAddFiles": counts[3]}))
    );
    world.sound(280).await;
}

#[tokio::test]
async fn parts_replaced_more_than_a_week_ago_leave_the_checkpoint() {
    let (world, _) = compacted(8).await;
    let found = rows(&world, 255);
    let mut expected = replayed(&world, 255);
    expected.retain(|row| row.get("remove").is_none());
    assert_eq!(sorted(found.clone()), sorted(expected));
    world.sound(280).await;
    // Who wrote it earlier would have told it still, and be right.
    let (schema, _) = decoded(fs::read(checkpoint_file(&world, 255)).unwrap());
    let with_them = replayed(&world, 255);
    assert!(with_them.len() > found.len());
    fs::write(checkpoint_file(&world, 255), encoded(&schema, &with_them)).unwrap();
    let told = json!({"version": 255, "size": with_them.len()});
    fs::write(last_file(&world), told.to_string()).unwrap();
    world.sound(280).await;
}

#[tokio::test]
async fn compactions_after_a_checkpoint_are_in_the_next() {
    let (world, catalog) = compacted(1).await;
    let mut table = world.table(&catalog).await;
    for version in 280..520 {
        grow_at(&world, &mut table, version..version + 1, DAY).await;
        compact(&mut table).await;
    }
    let [first, second] = checkpoints(&world)[..] else {
        panic!("{:?}", checkpoints(&world))
    };
    assert_eq!((first, second), (255, 511));
    assert_eq!(sorted(rows(&world, second)), sorted(replayed(&world, second)));
    assert!(count(&rows(&world, second), "add") < 100);
    assert_eq!(last(&world).unwrap()["version"], second);
    world.sound(520).await;
}

#[tokio::test]
async fn a_table_from_before_checkpoints_gets_one_from_its_owner_or_its_first_reader() {
    for derived in [true, false] {
        let world = grown(300).await;
        fs::remove_file(checkpoint_file(&world, 255)).unwrap();
        fs::remove_file(last_file(&world)).unwrap();
        let catalog = world.catalog("two");
        if derived {
            // Who only reads looks for what spares it reading, and there is nothing to do.
            assert_eq!(names(&catalog, world.dataset, 300).await.len(), 300);
            assert_eq!(checkpoints(&world), [0; 0]);
            let mut table = world.table(&catalog).await;
            grow(&world, &mut table, 300..301).await;
            assert_eq!(checkpoints(&world), [301]);
        } else {
            fs::remove_file(world.file("_sluice/timeline")).unwrap();
            assert_eq!(names(&catalog, world.dataset, 300).await.len(), 300);
            assert_eq!(checkpoints(&world), [300]);
        }
        world.sound(if derived { 301 } else { 300 }).await;
    }
}

#[tokio::test]
async fn an_owner_that_dies_before_it_points_to_its_checkpoint_leaves_a_sound_table() {
    let world = World::new();
    let troubled = Arc::new(Troubled::new(
        Arc::clone(&world.durable) as _,
        "_last_checkpoint",
        Trouble::Refused,
    ));
    let catalog = world.catalog_over("one", Arc::clone(&troubled) as Arc<dyn DurableStore>);
    let mut table = world.table(&catalog).await;
    troubled.strike(1);
    grow(&world, &mut table, 0..255).await;
    assert_eq!((checkpoints(&world), last(&world)), (vec![255], None));
    world.sound(255).await;
    drop((table, catalog));
    let bytes = fs::read(checkpoint_file(&world, 255)).unwrap();

    // Who finds the table as it was left makes the same, makes sure that it lasts, and points to it.
    fs::remove_file(world.file("_sluice/timeline")).unwrap();
    let before = world.counting.counts().directory_syncs;
    assert_eq!(names(&world.catalog("two"), world.dataset, 255).await.len(), 255);
    assert_eq!(world.counting.counts().directory_syncs - before, 2);
    assert_eq!(fs::read(checkpoint_file(&world, 255)).unwrap(), bytes);
    assert_eq!(last(&world).unwrap()["version"], 255);
    world.sound(255).await;

    // Who finds it grown makes another.
    fs::remove_file(last_file(&world)).unwrap();
    let mut table = world.table(&world.catalog("three")).await;
    grow(&world, &mut table, 255..256).await;
    assert_eq!(checkpoints(&world), [255, 256]);
    assert_eq!(last(&world).unwrap()["version"], 256);
    world.sound(256).await;
}

#[tokio::test]
async fn a_checkpoint_that_cannot_be_written_fails_no_merge_and_is_tried_again_later() {
    for trouble in [Trouble::Refused, Trouble::LostAnswer, Trouble::Unsynced] {
        let world = World::new();
        let troubled = Arc::new(Troubled::new(
            Arc::clone(&world.durable) as _,
            "checkpoint.parquet",
            trouble,
        ));
        let catalog = world.catalog_over("one", Arc::clone(&troubled) as Arc<dyn DurableStore>);
        let mut table = world.table(&catalog).await;
        troubled.strike(1);
        grow(&world, &mut table, 0..300).await;
        assert_eq!(last(&world), None);
        world.sound(300).await;
        grow(&world, &mut table, 300..520).await;
        assert_eq!(last(&world).unwrap()["version"], 511);
        world.sound(520).await;
    }
}

#[tokio::test]
async fn a_damaged_checkpoint_is_found_and_not_needed_and_replaced_when_it_is_made_again() {
    let world = grown(255).await;
    let other = World::of(&world, 9);
    let mut table = other.table(&other.catalog("other")).await;
    grow(&other, &mut table, 0..255).await;
    let (path, foreign) = (checkpoint_file(&world, 255), checkpoint_file(&other, 255));
    let (good, foreign) = (fs::read(&path).unwrap(), fs::read(foreign).unwrap());
    let mut flipped = good.clone();
    flipped[good.len() / 3] ^= 1;
    let middle = &good[..good.len() / 2];
    for (process, damaged) in ["a", "b", "c", "d", "e"]
        .iter()
        .zip([&b""[..], b"PAR1", middle, &flipped, &foreign])
    {
        fs::write(&path, damaged).unwrap();
        assert!(broken(&world).await.contains(&"checkpoint"), "{process}");
        // Nobody here reads it.
        let catalog = world.catalog(process);
        assert_eq!(names(&catalog, world.dataset, 255).await.len(), 255);
        assert_eq!(world.table(&catalog).await.head(), Version(255));
        drop(catalog);
        // Who writes it again sees that it is not what it should be.
        fs::remove_file(last_file(&world)).unwrap();
        fs::remove_file(world.file("_sluice/timeline")).unwrap();
        let again = format!("{process} again");
        assert_eq!(names(&world.catalog(&again), world.dataset, 255).await.len(), 255);
        assert!(fs::read(&path).unwrap() == good, "{process}");
        world.sound(255).await;
    }
}

#[tokio::test]
async fn an_owner_that_fell_behind_does_not_point_back() {
    let world = World::new();
    let mut ahead = world.table(&world.catalog("ahead")).await;
    grow(&world, &mut ahead, 0..300).await;
    let behind = world.table(&world.catalog("behind")).await;
    grow(&world, &mut ahead, 300..600).await;
    let (told, there) = (last(&world), checkpoints(&world));
    assert_eq!(there, [255, 511]);
    behind.close().await;
    assert_eq!((last(&world), checkpoints(&world)), (told, there));
    world.sound(600).await;
}

#[tokio::test]
async fn what_commit_0_does_not_say_is_in_no_checkpoint() {
    let world = World::new();
    let mut table = world.table(&world.catalog("one")).await;
    grow(&world, &mut table, 0..200).await;
    let good = fs::read(world.commit_file(0)).unwrap();
    fs::write(world.commit_file(0), b"").unwrap();
    grow(&world, &mut table, 200..300).await;
    assert_eq!((last(&world), checkpoints(&world)), (None, Vec::new()));
    fs::write(world.commit_file(0), good).unwrap();
    grow(&world, &mut table, 300..600).await;
    assert_eq!(checkpoints(&world), [511]);
    world.sound(600).await;
}

#[tokio::test]
async fn a_checkpoint_that_disagrees_with_the_commits_is_found() {
    let (world, _) = compacted(6).await;
    let path = checkpoint_file(&world, 255);
    let good = fs::read(&path).unwrap();
    let (schema, rows) = decoded(good.clone());
    fs::write(&path, encoded(&schema, &rows)).unwrap();
    world.sound(280).await;
    let first = |kind: &str| rows.iter().position(|row| row.get(kind).is_some()).unwrap();
    let changes: [(&str, Change<'_>); 9] = [
        ("a part less", &|rows| drop(rows.remove(first("add")))),
        ("a removal less", &|rows| drop(rows.remove(first("remove")))),
        ("no version", &|rows| drop(rows.remove(first("txn")))),
        ("no schema", &|rows| drop(rows.remove(first("metaData")))),
        ("a part twice", &|rows| rows.push(rows[first("add")].clone())),
        ("a part that was removed", &|rows| {
            let mut part = rows[first("add")].clone();
            part["add"]["path"] = rows[first("remove")]["remove"]["path"].clone();
            rows.push(part);
        }),
        ("another size", &|rows| rows[first("add")]["add"]["size"] = 7.into()),
        ("another version", &|rows| {
            rows[first("txn")]["txn"]["version"] = 7.into();
        }),
        ("changes", &|rows| {
            rows[first("add")]["add"]["dataChange"] = true.into();
        }),
    ];
    for (what, change) in changes {
        let mut changed = rows.clone();
        change(&mut changed);
        fs::write(&path, encoded(&schema, &changed)).unwrap();
        let told = json!({"version": 255, "size": changed.len()});
        fs::write(last_file(&world), told.to_string()).unwrap();
        assert_eq!(broken(&world).await, ["checkpoint"], "{what}");
    }
}

#[tokio::test]
async fn what_points_to_no_checkpoint_is_found_and_replaced() {
    let world = grown(300).await;
    for (process, damaged) in ["a", "b", "c", "d", "e"].iter().zip([
        "",
        "{",
        r#"{"version":-1,"size":1}"#,
        r#"{"version":299,"size":258}"#,
        r#"{"version":255,"size":257}"#,
    ]) {
        fs::write(last_file(&world), damaged).unwrap();
        assert_eq!(broken(&world).await, ["checkpoint"], "{damaged}");
        let mut table = world.table(&world.catalog(process)).await;
        let versions = table.head().0;
        grow(&world, &mut table, versions..versions + 1).await;
        assert_eq!(last(&world).unwrap()["version"], versions + 1, "{damaged}");
        world.sound(versions + 1).await;
    }
    // Nor does what points to one that is cut off.
    let bytes = fs::read(checkpoint_file(&world, 305)).unwrap();
    fs::write(checkpoint_file(&world, 305), &bytes[1..]).unwrap();
    let mut table = world.table(&world.catalog("f")).await;
    grow(&world, &mut table, 305..306).await;
    assert_eq!(last(&world).unwrap()["version"], 306);
    fs::write(checkpoint_file(&world, 305), bytes).unwrap();
    world.sound(306).await;
    // Names that no reader of a log takes for a checkpoint of it.
    fs::write(checkpoint_file(&world, 9_999), b"").unwrap();
    assert_eq!(broken(&world).await, ["checkpoint"]);
    fs::remove_file(checkpoint_file(&world, 9_999)).unwrap();
    fs::write(world.file("_delta_log/9.checkpoint.parquet"), b"").unwrap();
    assert_eq!(broken(&world).await, ["checkpoint"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn owners_that_write_the_same_checkpoint_do_no_harm() {
    let world = grown(300).await;
    fs::remove_file(checkpoint_file(&world, 255)).unwrap();
    fs::remove_file(last_file(&world)).unwrap();
    fs::remove_file(world.file("_sluice/timeline")).unwrap();
    let world = Arc::new(world);
    let mut owners = tokio::task::JoinSet::new();
    for process in ["a", "b", "c", "d"] {
        let (world, catalog) = (Arc::clone(&world), world.catalog(process));
        owners.spawn(async move { world.table(&catalog).await.head() });
    }
    assert_eq!(owners.join_all().await, [Version(300); 4]);
    assert_eq!(checkpoints(&world), [300]);
    assert_eq!(sorted(rows(&world, 300)), sorted(replayed(&world, 300)));
    assert_eq!(last(&world).unwrap()["version"], 300);
    world.sound(300).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn owners_that_race_for_versions_write_checkpoints_of_what_there_is() {
    let world = Arc::new(World::new());
    let mut owners = tokio::task::JoinSet::new();
    for owner in 0..3_u64 {
        let catalog = world.catalog(["a", "b", "c"][usize::try_from(owner).unwrap()]);
        let catalog = catalog.with_compaction(Policy::new(4, 1 << 30));
        let world = Arc::clone(&world);
        owners.spawn(async move {
            let mut table = world.table(&catalog).await;
            for number in 0..80 {
                grow(&world, &mut table, owner * 1_000 + number..owner * 1_000 + number + 1).await;
                if let Some(compaction) = table.compaction() {
                    let _ = table
                        .install_compaction(compaction.build().await.unwrap())
                        .await
                        .unwrap();
                }
            }
        });
    }
    owners.join_all().await;
    let numbers = checkpoints(&world);
    assert!(!numbers.is_empty());
    for number in numbers {
        assert_eq!(sorted(rows(&world, number)), sorted(replayed(&world, number)));
    }
    world.sound(240).await;
}
