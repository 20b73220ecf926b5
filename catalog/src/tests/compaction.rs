use std::fs;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use futures_util::TryStreamExt as _;
use types::Version;

use super::fixture::{Trouble, Troubled, World, merged, names, numbered, page};
use crate::storage::DurableStore;
use crate::{Catalog, Columns, Error, Policy, Snapshot, Table};

/// As often as can be.
const EAGER: (usize, u64) = (2, 1 << 30);

fn compacting(catalog: Catalog, (fan_in, target): (usize, u64)) -> Catalog {
    catalog.with_compaction(Policy::new(fan_in, target))
}

/// Compacts until nothing is due; how often that was.
async fn compact(table: &mut Table) -> usize {
    let mut times = 0;
    while let Some(compaction) = table.compaction() {
        let built = compaction.build().await.unwrap();
        assert!(table.install_compaction(built).await.unwrap());
        times += 1;
    }
    times
}

/// Merges records with these numbers, one version each.
async fn grow(world: &World, table: &mut Table, numbers: std::ops::Range<u64>) {
    for number in numbers {
        world.merge(table, &numbered(number..number + 1)).await;
    }
}

async fn snapshot(world: &World, catalog: &Catalog, version: u64) -> Snapshot {
    let found = catalog.snapshot(world.dataset, Some(Version(version))).await;
    found.unwrap().unwrap()
}

/// The first and the last version of the parts of a version.
async fn layout(world: &World, catalog: &Catalog, version: u64) -> Vec<(u64, u64)> {
    let parts = snapshot(world, catalog, version).await.parts();
    parts
        .iter()
        .map(|part| (part.first_version().0, part.version.0))
        .collect()
}

async fn rows(snapshot: &Snapshot, rows: std::ops::Range<u64>) -> Option<RecordBatch> {
    let batches: Vec<_> = snapshot.stream(Columns::All, rows).try_collect().await.unwrap();
    let first = batches.first()?;
    Some(concat_batches(first.schema_ref(), &batches).unwrap())
}

/// A small generator: the sequences must only be many and the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// That a version reads in every way as it does in a table that was never compacted.
async fn same(world: &World, one: &Catalog, other: &World, twin: &Catalog, version: u64, random: &mut Random) {
    let (found, expected) = (
        snapshot(world, one, version).await,
        snapshot(other, twin, version).await,
    );
    let count = expected.record_count();
    assert_eq!(found.record_count(), count);
    assert_eq!(
        rows(&found, 0..count).await,
        rows(&expected, 0..count).await,
        "{version}"
    );
    let start = random.below(count + 1);
    let end = start + random.below(count - start + 1);
    assert_eq!(rows(&found, start..end).await, rows(&expected, start..end).await);
    let (found, expected) = (found.chain(), expected.chain());
    assert_eq!(
        found.last().map(|link| link.root),
        expected.last().map(|link| link.root)
    );
    let mut head = 0;
    for link in &found {
        // The root of a part is that of the version that it ends with.
        assert_eq!(link.part.first_version().0, head + 1);
        head = link.part.version.0;
        assert_eq!(link.root, expected[usize::try_from(head).unwrap() - 1].root);
    }
    assert_eq!(head, version);
}

#[tokio::test]
async fn whatever_is_compacted_every_version_is_that_of_a_table_that_is_not() {
    for seed in 0..5 {
        let random = &mut Random(seed);
        let (world, other) = (World::new(), World::new());
        let policy = (2 + usize::try_from(random.below(3)).unwrap(), 32_000 << random.below(8));
        let mut catalog = compacting(world.catalog("one"), policy);
        let twin = other.catalog("twin");
        let (mut table, mut plain) = (world.table(&catalog).await, other.table(&twin).await);
        let (mut version, mut number, mut compactions) = (0, 0, 0);
        for step in 0..90_u64 {
            match random.below(10) {
                0..6 => {
                    let most = if random.below(8) == 0 { 400 } else { 12 };
                    let size = 1 + random.below(most);
                    let proposal = world.proposal(&numbered(number..number + size));
                    let merge = merged(table.merge(proposal.clone()).await.unwrap());
                    assert_eq!(merge, merged(plain.merge(proposal).await.unwrap()));
                    (version, number) = (version + 1, number + size);
                }
                6 | 7 => {
                    if let Some(compaction) = table.compaction() {
                        let built = compaction.build().await.unwrap();
                        assert!(table.install_compaction(built).await.unwrap());
                        compactions += 1;
                    }
                }
                8 => compactions += compact(&mut table).await,
                _ => {
                    if random.below(2) == 0 {
                        table.close().await;
                    } else {
                        drop(table);
                    }
                    let process = ["one", "two"][usize::try_from(random.below(2)).unwrap()];
                    drop(catalog);
                    catalog = compacting(world.catalog(process), policy);
                    table = world.table(&catalog).await;
                }
            }
            if step % 10 == 9 && version > 0 {
                let version = 1 + random.below(version);
                same(&world, &catalog, &other, &twin, version, random).await;
            }
        }
        for version in 1..=version {
            same(&world, &catalog, &other, &twin, version, random).await;
        }
        assert!(compactions > 3, "{policy:?}: {compactions}");
        // Everything that ever was a part is still there.
        let report = world.sound(version).await;
        assert_eq!(report.orphans, [""; 0]);
        assert_eq!(world.parts().len() as u64, version + compactions as u64);
    }
}

#[tokio::test]
async fn many_small_versions_are_few_parts_at_every_version_and_read_as_such() {
    let world = World::new();
    let catalog = compacting(world.catalog("one"), (8, 1 << 30));
    let mut table = world.table(&catalog).await;
    for version in 0..600 {
        grow(&world, &mut table, version..version + 1).await;
        compact(&mut table).await;
    }
    for version in [1, 7, 8, 63, 64, 100, 511, 512, 599, 600] {
        // As many parts as the digits of the version sum up to.
        let digits = (0..4).map(|place| version / 8_u64.pow(place) % 8).sum::<u64>();
        let before = world.counting.counts().gets;
        assert_eq!(names(&catalog, world.dataset, version).await.len() as u64, version);
        let read = world.counting.counts().gets - before;
        assert_eq!(
            (layout(&world, &catalog, version).await.len() as u64, read),
            (digits, digits),
            "{version}"
        );
    }
    // A page reads one part, or two.
    let latest = snapshot(&world, &catalog, 600).await;
    for offset in [0, 300, 511, 595] {
        let before = world.counting.counts().gets;
        assert_eq!(page(&latest, offset, 2).await.len(), 2);
        assert!(world.counting.counts().gets - before <= 2);
    }
    table.close().await;
    // Opening reads the derived file and few commits.
    let before = world.counting.counts().gets;
    let again = world.catalog("two");
    assert_eq!(layout(&world, &again, 600).await, layout(&world, &catalog, 600).await);
    let opened = world.counting.counts().gets - before;
    assert!(opened < 64, "{opened} objects read to open");
    world.sound(600).await;
}

#[tokio::test]
async fn parts_that_were_replaced_are_still_handed_out() {
    let world = World::new();
    let catalog = compacting(world.catalog("one"), EAGER);
    let mut table = world.table(&catalog).await;
    grow(&world, &mut table, 0..4).await;
    let before = snapshot(&world, &catalog, 4).await.parts();
    assert_eq!(compact(&mut table).await, 3);
    let after = snapshot(&world, &catalog, 4).await.parts();
    assert_eq!((before.len(), after.len(), after[0].rows), (4, 1, 4));
    for part in before.iter().chain(&after) {
        let name = part.name();
        let bytes = fs::read(world.file(&name)).unwrap();
        assert_eq!(catalog.part(world.dataset, &name).await.unwrap().as_ref(), Some(part));
        let pieces = catalog.part_bytes(world.dataset, part, 0..part.bytes).await.unwrap();
        assert_eq!(pieces.try_collect::<Vec<_>>().await.unwrap().concat(), bytes);
    }
}

#[tokio::test]
async fn an_owner_who_fell_behind_compactions_merges_after_them() {
    let world = World::new();
    let (one, two) = (
        compacting(world.catalog("one"), EAGER),
        compacting(world.catalog("two"), EAGER),
    );
    let (mut first, mut second) = (world.table(&one).await, world.table(&two).await);
    grow(&world, &mut first, 0..4).await;
    compact(&mut first).await;
    // It still believes that there is no table.
    let merge = world.merge(&mut second, &numbered(3..6)).await;
    assert_eq!((merge.version, merge.duplicates), (Version(5), vec![0]));
    // And the first owner after what the second did.
    let merge = world.merge(&mut first, &numbered(5..7)).await;
    assert_eq!((merge.version, &merge.duplicates[..]), (Version(6), &[0][..]));
    assert_eq!(layout(&world, &one, 6).await, [(1, 4), (5, 5), (6, 6)]);
    let adopted = second.find(merge.contribution).await.unwrap();
    assert_eq!(adopted, None, "it has not looked yet");
    assert_eq!(names(&two, world.dataset, 6).await.len(), 7);
    assert_eq!(second.find(merge.contribution).await.unwrap(), Some(merge));
    world.sound(6).await;
}

#[tokio::test]
async fn of_two_owners_who_compact_the_same_parts_one_does() {
    let world = World::new();
    let (one, two) = (
        compacting(world.catalog("one"), EAGER),
        compacting(world.catalog("two"), (4, 1 << 30)),
    );
    let mut first = world.table(&one).await;
    grow(&world, &mut first, 0..4).await;
    let mut second = world.table(&two).await;
    let (ours, theirs) = (first.compaction().unwrap(), second.compaction().unwrap());
    assert_eq!((ours.versions().1, theirs.versions().1), (Version(2), Version(4)));
    let (ours, theirs) = (ours.build().await.unwrap(), theirs.build().await.unwrap());
    assert!(first.install_compaction(ours).await.unwrap());
    assert!(!second.install_compaction(theirs).await.unwrap());
    assert_eq!(layout(&world, &two, 4).await, [(1, 2), (3, 3), (4, 4)]);
    // What was built in vain is named by no commit, until the same rows are compacted: then it is there already.
    assert_eq!(world.sound(4).await.orphans.len(), 1);
    compact(&mut first).await;
    assert_eq!(layout(&world, &one, 4).await, [(1, 4)]);
    assert_eq!(world.sound(4).await.orphans, [""; 0]);
    // Both build the same: the second finds it done.
    grow(&world, &mut first, 4..6).await;
    let third = compacting(world.catalog("three"), EAGER);
    let mut third = world.table(&third).await;
    let (ours, theirs) = (first.compaction().unwrap(), third.compaction().unwrap());
    let (ours, theirs) = (ours.build().await.unwrap(), theirs.build().await.unwrap());
    assert!(first.install_compaction(ours).await.unwrap() && third.install_compaction(theirs).await.unwrap());
    assert_eq!(world.sound(6).await.orphans, [""; 0]);
}

/// Owners in two processes merge and compact at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn owners_that_race_lose_nothing() {
    let world = Arc::new(World::new());
    let catalogs = [
        compacting(world.catalog("one"), EAGER),
        compacting(world.catalog("two"), (3, 1 << 30)),
    ];
    let mut owners = tokio::task::JoinSet::new();
    for owner in 0..4_u64 {
        let world = Arc::clone(&world);
        let catalog = catalogs[usize::try_from(owner % 2).unwrap()].clone();
        owners.spawn(async move {
            let mut table = world.table(&catalog).await;
            for number in 0..15 {
                world
                    .merge(&mut table, &numbered(owner * 100 + number..owner * 100 + number + 1))
                    .await;
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
    let report = world.sound(60).await;
    assert_eq!(report.records, 60);
    for catalog in &catalogs {
        assert!(
            catalog
                .snapshot(world.dataset, Some(Version(61)))
                .await
                .unwrap()
                .is_none()
        );
        let mut table = world.table(catalog).await;
        compact(&mut table).await;
        assert!(layout(&world, catalog, 60).await.len() <= 8);
        let mut found = names(catalog, world.dataset, 60).await;
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 60);
    }
    world.sound(60).await;
}

#[tokio::test]
async fn a_compaction_that_dies_leaves_a_file_that_the_next_takes() {
    let world = World::new();
    let catalog = compacting(world.catalog("one"), EAGER);
    let mut table = world.table(&catalog).await;
    grow(&world, &mut table, 0..2).await;
    drop(table.compaction().unwrap().build().await.unwrap());
    drop((table, catalog));
    assert_eq!(world.sound(2).await.orphans.len(), 1);

    let catalog = compacting(world.catalog("two"), EAGER);
    let mut table = world.table(&catalog).await;
    let before = world.counting.counts();
    assert_eq!(compact(&mut table).await, 1);
    let after = world.counting.counts();
    // The part was there: it is made durable, and only the commit is new.
    assert_eq!(
        (after.puts - before.puts, after.directory_syncs - before.directory_syncs),
        (2, 1)
    );
    assert_eq!(world.sound(2).await.orphans, [""; 0]);
    assert_eq!(world.parts().len(), 3);
}

#[tokio::test]
async fn a_compaction_whose_answer_was_lost_is_found_and_one_that_was_not_put_is_tried_again() {
    for trouble in [
        Trouble::LostAnswer,
        Trouble::OwnConflict,
        Trouble::Refused,
        Trouble::Unsynced,
    ] {
        let world = World::new();
        let troubled = Arc::new(Troubled::new(Arc::clone(&world.durable) as _, "_delta_log", trouble));
        let objects = Arc::clone(&troubled) as Arc<dyn DurableStore>;
        let catalog = compacting(world.catalog_over("one", objects), EAGER);
        let mut table = world.table(&catalog).await;
        grow(&world, &mut table, 0..2).await;
        let built = table.compaction().unwrap().build().await.unwrap();
        troubled.strike(if trouble == Trouble::Unsynced { 2 } else { 1 });
        let installed = table.install_compaction(built).await;
        match trouble {
            Trouble::LostAnswer | Trouble::OwnConflict => assert!(installed.unwrap()),
            Trouble::Refused | Trouble::Unsynced => {
                assert!(matches!(installed, Err(Error::Storage { .. })), "{trouble:?}");
            }
            Trouble::Moved => panic!("a trouble of reads"),
        }
        // Whatever is known of it, merges go on, and the compaction is in the log once.
        grow(&world, &mut table, 2..3).await;
        compact(&mut table).await;
        assert_eq!(layout(&world, &catalog, 3).await, [(1, 2), (3, 3)], "{trouble:?}");
        assert!(!world.commit_file(5).exists());
        world.sound(3).await;
    }
}

#[tokio::test]
async fn a_compacted_part_that_is_damaged_is_never_served_and_older_versions_do_not_need_it() {
    let world = World::new();
    let catalog = compacting(world.catalog("one"), EAGER);
    let mut table = world.table(&catalog).await;
    grow(&world, &mut table, 0..2).await;
    compact(&mut table).await;
    let name = snapshot(&world, &catalog, 2).await.parts()[0].name();
    let mut bytes = fs::read(world.file(&name)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(world.file(&name), bytes).unwrap();
    assert!(matches!(
        snapshot(&world, &catalog, 2).await.page(0, 2).await,
        Err(Error::Corrupt { .. })
    ));
    assert_eq!(names(&catalog, world.dataset, 1).await, ["n0"]);
    assert!(
        world
            .check()
            .await
            .violations
            .iter()
            .any(|violation| violation.rule == "part_hash")
    );
    fs::remove_file(world.file(&name)).unwrap();
    assert!(
        world
            .check()
            .await
            .violations
            .iter()
            .any(|violation| violation.rule == "part_missing")
    );
}

/// What a derived file of an older program says is read from the commits again, and written anew.
#[tokio::test]
async fn a_derived_file_of_another_format_is_ignored() {
    let world = World::new();
    let catalog = compacting(world.catalog("one"), (16, 1 << 30));
    let mut table = world.table(&catalog).await;
    for version in 0..260 {
        grow(&world, &mut table, version..version + 1).await;
        compact(&mut table).await;
    }
    table.close().await;
    let expected = layout(&world, &catalog, 260).await;
    let derived = world.file("_sluice/timeline");
    let mut older = fs::read(&derived).unwrap();
    assert_eq!(&older[..16], b"sluice timeline5");
    older[15] = b'4';
    let body = older.len() - 32;
    let checksum = *blake3::hash(&older[..body]).as_bytes();
    older[body..].copy_from_slice(&checksum);
    fs::write(&derived, &older).unwrap();
    let again = world.catalog("two");
    assert_eq!(layout(&world, &again, 260).await, expected);
    assert_eq!(&fs::read(&derived).unwrap()[..16], b"sluice timeline5");
}
