use types::Timestamp;
use types::key::KeyHasher;

use super::*;

/// The key of something that a number names.
pub(crate) fn key(number: u32) -> RecordKey {
    KeyHasher::new().key(&number.to_le_bytes())
}

fn keys(range: std::ops::Range<u32>) -> Vec<RecordKey> {
    range.map(key).collect()
}

fn root(number: u8) -> Root {
    Root::from_bytes([number; 32])
}

struct Fixture {
    directory: tempfile::TempDir,
    dataset: DatasetId,
}

impl Fixture {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            dataset: DatasetId::new(Timestamp::from_micros(1)),
        }
    }

    fn open(&self) -> KeyIndex {
        let store = Arc::new(KeyStore::open(self.directory.path().to_owned()).unwrap());
        let stored = store.stored(self.dataset).unwrap();
        KeyIndex::open(self.dataset, store, stored)
    }
}

#[test]
fn keys_are_known_before_during_and_after_they_are_stored() {
    let fixture = Fixture::new();
    let index = fixture.open();
    for version in 1..=4_u32 {
        index.insert(Version(u64::from(version)), &keys(version * 100..version * 100 + 100));
        if version % 2 == 0 {
            index.flush(Version(u64::from(version)), root(1));
        }
    }
    assert!(index.contains(&keys(100..500)).unwrap().into_iter().all(|known| known));
    assert!(!index.contains(&keys(500..900)).unwrap().into_iter().any(|known| known));
    drop(index);
    let index = fixture.open();
    assert_eq!(index.indexed_version(), Version(4));
    assert!(index.contains(&keys(100..500)).unwrap().into_iter().all(|known| known));
    assert!(!index.contains(&keys(500..900)).unwrap().into_iter().any(|known| known));
}

#[test]
fn only_the_next_version_is_taken() {
    let fixture = Fixture::new();
    let index = fixture.open();
    index.insert(Version(2), &keys(0..1));
    assert_eq!(
        (index.indexed_version(), index.contains(&keys(0..1)).unwrap()),
        (Version(0), vec![false])
    );
    index.insert(Version(1), &keys(0..1));
    index.insert(Version(1), &keys(1..2));
    assert_eq!(
        (index.indexed_version(), index.contains(&keys(0..2)).unwrap()),
        (Version(1), vec![true, false])
    );
}

#[test]
fn keys_are_stored_only_under_the_version_they_are_of() {
    let fixture = Fixture::new();
    let index = fixture.open();
    index.insert(Version(1), &keys(0..10));
    index.insert(Version(2), &keys(10..20));
    index.flush(Version(1), root(1));
    assert_eq!(index.store.stored(fixture.dataset).unwrap(), None);
    index.flush(Version(2), root(2));
    let stored = StoredVersion {
        version: Version(2),
        root: root(2),
        keys: 20,
    };
    assert_eq!(index.store.stored(fixture.dataset).unwrap(), Some(stored));
}

#[test]
fn stored_keys_that_do_not_belong_are_dropped() {
    let fixture = Fixture::new();
    let index = fixture.open();
    index.insert(Version(1), &keys(0..70_000));
    assert!(index.is_due());
    index.flush(Version(1), root(1));
    let store = Arc::clone(&index.store);
    drop(index);
    let other = DatasetId::new(Timestamp::from_micros(2));
    store
        .add(
            other,
            &[keys(0..1)[0]],
            StoredVersion {
                version: Version(1),
                root: root(1),
                keys: 1,
            },
        )
        .unwrap();

    let index = KeyIndex::open(fixture.dataset, Arc::clone(&store), None);
    assert!(!index.contains(&keys(0..70_000)).unwrap().into_iter().any(|known| known));
    assert_eq!(store.stored(fixture.dataset).unwrap(), None);
    let mut left = 0;
    store.scan(fixture.dataset, |_| left += 1).unwrap();
    assert_eq!(left, 0);
    // Other tables keep theirs.
    assert!(store.contains(other, &keys(0..1)[0]).unwrap());
}

#[test]
fn after_the_store_was_given_up_keys_stay_in_memory_and_the_next_opening_starts_anew() {
    let fixture = Fixture::new();
    let index = fixture.open();
    index.insert(Version(1), &keys(0..10));
    index.flush(Version(1), root(1));
    index.forget_stored();
    assert_eq!(
        (index.indexed_version(), index.contains(&keys(0..1)).unwrap()),
        (Version(0), vec![false])
    );
    index.insert(Version(1), &keys(0..70_000));
    assert!(!index.is_due());
    index.flush(Version(1), root(1));
    assert_eq!(index.contains(&keys(0..1)).unwrap(), [true]);
    drop(index);
    assert_eq!(fixture.open().indexed_version(), Version(0));
}

/// Marked for fewer keys than there are: what is left of an addition or a removal that a crash cut short.
#[test]
fn stored_keys_that_are_not_as_many_as_were_stored_are_dropped() {
    for counted in [9, 11] {
        let fixture = Fixture::new();
        let store = KeyStore::open(fixture.directory.path().to_owned()).unwrap();
        let mut stored_keys = keys(0..10);
        stored_keys.sort_unstable();
        let stored = StoredVersion {
            version: Version(1),
            root: root(1),
            keys: counted,
        };
        store.add(fixture.dataset, &stored_keys, stored).unwrap();
        drop(store);
        let index = fixture.open();
        assert_eq!(index.indexed_version(), Version(0));
        assert!(!index.contains(&keys(0..10)).unwrap().into_iter().any(|known| known));
        assert_eq!(index.store.stored(fixture.dataset).unwrap(), None);
    }
}

#[test]
fn a_store_that_fails_is_tried_again_only_when_the_keys_have_doubled() {
    let fixture = Fixture::new();
    let index = fixture.open();
    std::fs::remove_dir_all(fixture.directory.path()).unwrap();
    let mut tries = 0;
    for version in 1..=100_u32 {
        let number = Version(u64::from(version));
        index.insert(number, &keys(version * 2_000..version * 2_000 + 2_000));
        if index.is_due() {
            index.flush(number, root(1));
            tries += 1;
        }
    }
    // At 65,536 keys, and at twice as many.
    assert_eq!((tries, index.store.additions()), (2, 2));
    assert!(
        index
            .contains(&keys(2_000..202_000))
            .unwrap()
            .into_iter()
            .all(|known| known)
    );
}

#[test]
fn keys_that_are_read_at_once_are_known_as_those_that_are_looked_up() {
    let fixture = Fixture::new();
    let index = fixture.open();
    index.insert(Version(1), &keys(0..2_000));
    index.flush(Version(1), root(1)).unwrap();
    let often = SortedKeySnapshot::default();
    let all = keys(0..4_000);
    let known = |often: &SortedKeySnapshot| index.contains_since(Version(1), &all, Some(often)).unwrap();
    let expected: Vec<bool> = (0..4_000).map(|number| number < 2_000).collect();
    assert_eq!(known(&often), expected, "it has been asked often enough");
    // What is stored since is in the store only.
    index.insert(Version(2), &keys(3_000..3_500));
    index.flush(Version(2), root(2)).unwrap();
    let expected: Vec<bool> = (0..4_000)
        .map(|number| number < 2_000 || (3_000..3_500).contains(&number))
        .collect();
    assert_eq!(known(&often), expected);
    assert_eq!(known(&SortedKeySnapshot::default()), expected);
}

/// Ingests keys as the next version of a table that has `before`.
fn ingest(index: &KeyIndex, version: u64, numbers: std::ops::Range<u32>, before: u64) -> bool {
    let mut sorted = keys(numbers);
    sorted.sort_unstable();
    let table = before + sorted.len() as u64;
    index.ingest(Version(version), root(1), table, sorted.into_iter().map(Ok))
}

/// The files of keys, by name.
fn files(fixture: &Fixture) -> Vec<std::path::PathBuf> {
    let folder = fixture.directory.path().join("files");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort_unstable();
    files
}

/// Whether exactly the keys of the first `count` numbers are known, by every way there is.
fn knows(index: &KeyIndex, count: u32) {
    let all = keys(0..count + 1_000);
    let expected: Vec<bool> = (0..count + 1_000).map(|number| number < count).collect();
    assert_eq!(index.contains(&all).unwrap(), expected);
    assert_eq!(index.known(&all), expected);
    let seldom = index.contains_since(index.indexed_version(), &all[..1], None);
    assert_eq!(seldom.unwrap(), [0 < count]);
    let often = index.contains_since(index.indexed_version(), &all, Some(&SortedKeySnapshot::default()));
    assert_eq!(often.unwrap(), expected);
}

#[test]
fn keys_that_come_at_once_are_known_with_the_others_and_after_a_restart() {
    let fixture = Fixture::new();
    let index = fixture.open();
    assert!(ingest(&index, 1, 0..5_000, 0));
    knows(&index, 5_000);
    index.insert(Version(2), &keys(5_000..6_000));
    // What is in memory only has to be stored first.
    assert!(!ingest(&index, 3, 6_000..9_000, 6_000));
    index.flush(Version(2), root(2)).unwrap();
    assert!(ingest(&index, 3, 6_000..9_000, 6_000));
    index.insert(Version(4), &keys(9_000..9_100));
    knows(&index, 9_100);
    drop(index);
    let index = fixture.open();
    assert_eq!(index.indexed_version(), Version(3));
    knows(&index, 9_000);
    assert_eq!(index.store.stored(fixture.dataset).unwrap().unwrap().keys, 9_000);
}

#[test]
fn there_are_few_files_however_often_keys_come_at_once() {
    let fixture = Fixture::new();
    let index = fixture.open();
    for version in 0..64_u32 {
        let numbers = version * 100..version * 100 + 100;
        assert!(ingest(
            &index,
            u64::from(version) + 1,
            numbers.clone(),
            numbers.start.into()
        ));
        assert!(files(&fixture).len() <= 5, "{version}");
    }
    knows(&index, 6_400);
    // A large one stays as it is while small ones come.
    assert!(ingest(&index, 65, 6_400..60_000, 6_400));
    let [large] = &files(&fixture)[..] else {
        panic!("it is not larger than all before");
    };
    assert!(ingest(&index, 66, 60_000..60_100, 60_000));
    assert!(ingest(&index, 67, 60_100..60_200, 60_100));
    assert_eq!(files(&fixture).len(), 2);
    assert!(large.exists());
    drop(index);
    knows(&fixture.open(), 60_200);
}

#[test]
fn a_file_that_is_damaged_or_gone_costs_the_stored_keys_and_nothing_else() {
    let damage: [fn(&std::path::Path); 3] = [
        |path| std::fs::remove_file(path).unwrap(),
        |path| std::fs::write(path, b"").unwrap(),
        |path| {
            let mut bytes = std::fs::read(path).unwrap();
            bytes[5_000] ^= 1;
            std::fs::write(path, bytes).unwrap();
        },
    ];
    for damage in damage {
        let fixture = Fixture::new();
        let index = fixture.open();
        assert!(ingest(&index, 1, 0..5_000, 0));
        drop(index);
        damage(&files(&fixture)[0]);
        let index = fixture.open();
        assert_eq!(index.indexed_version(), Version(0));
        knows(&index, 0);
        assert_eq!(index.store.stored(fixture.dataset).unwrap(), None);
        assert!(files(&fixture).is_empty());
        // As after any loss it catches up.
        assert!(ingest(&index, 1, 0..5_000, 0));
        knows(&index, 5_000);
    }
}

#[test]
fn damage_that_is_met_while_the_index_is_open_is_an_error() {
    let fixture = Fixture::new();
    let index = fixture.open();
    assert!(ingest(&index, 1, 0..5_000, 0));
    let file = &files(&fixture)[0];
    std::fs::write(file, vec![7; std::fs::read(file).unwrap().len()]).unwrap();
    assert!(index.contains(&keys(0..1)).is_err());
    assert!(index.unreadable.load(Ordering::Relaxed));
    // Who asks before the commit is told that nothing is known; the commit asks again.
    assert_eq!(index.known(&keys(0..1)), [false]);
    index.forget_stored();
    assert_eq!(index.contains(&keys(0..1)).unwrap(), [false]);
    drop(index);
    let index = fixture.open();
    assert_eq!((index.indexed_version(), files(&fixture).len()), (Version(0), 0));
}

#[test]
fn stored_keys_are_given_up_for_damage_or_for_trouble_that_does_not_pass() {
    let passing = || fjall::Error::Io(io::Error::other("too many open files"));
    let is_given_up = |index: &KeyIndex| index.unreadable.load(Ordering::Relaxed);
    let fixture = Fixture::new();
    let index = fixture.open();
    assert!(ingest(&index, 1, 0..5_000, 0));
    let begun = Instant::now();
    let after = |seconds| begun + Duration::from_secs(seconds);
    (0..59).for_each(|second| index.note(&passing(), after(second)));
    assert!(!is_given_up(&index));
    // Long after, it is another trouble.
    index.note(&passing(), after(1_000));
    index.note(&passing(), after(1_059));
    assert!(!is_given_up(&index));
    // What else is read meanwhile says nothing of it.
    assert_eq!(index.contains(&keys(0..1)).unwrap(), [true]);
    index.note(&passing(), after(1_060));
    assert!(is_given_up(&index));
    index.forget_stored();
    let damaged = io::Error::from(io::ErrorKind::InvalidData);
    index.note(&fjall::Error::Io(damaged), begun);
    assert!(is_given_up(&index));
}

#[test]
fn a_file_that_nothing_names_is_removed_at_the_next_opening() {
    let fixture = Fixture::new();
    let index = fixture.open();
    assert!(ingest(&index, 1, 0..5_000, 0));
    let kept = files(&fixture);
    let left = fixture.directory.path().join("files").join(format!("{:020}", 1));
    drop(index);
    std::fs::write(&left, b"written by one that died").unwrap();
    let index = fixture.open();
    assert_eq!(files(&fixture), kept);
    assert!(ingest(&index, 2, 5_000..5_100, 5_000));
    assert_eq!(files(&fixture), [kept, vec![left]].concat());
    knows(&index, 5_100);
}

/// Keys that break off, that are not as many as they are said to be, and that do not ascend.
#[test]
fn keys_that_cannot_be_stored_at_once_change_nothing() {
    let fixture = Fixture::new();
    let index = fixture.open();
    assert!(ingest(&index, 1, 0..5_000, 0));
    let before = (files(&fixture), index.store.stored(fixture.dataset).unwrap());
    let mut sorted = keys(5_000..6_000);
    sorted.sort_unstable();
    let broken = || Err(io::Error::other("the disk is gone"));
    let tries: [Vec<io::Result<RecordKey>>; 3] = [
        sorted.iter().map(|key| Ok(*key)).chain([broken()]).collect(),
        sorted[1..].iter().map(|key| Ok(*key)).collect(),
        sorted.iter().rev().map(|key| Ok(*key)).collect(),
    ];
    for keys in tries {
        assert!(!index.ingest(Version(2), root(1), 6_000, keys.into_iter()));
        assert_eq!((files(&fixture), index.store.stored(fixture.dataset).unwrap()), before);
        knows(&index, 5_000);
    }
    assert!(!index.unreadable.load(Ordering::Relaxed));
    assert!(ingest(&index, 2, 5_000..6_000, 5_000));
    // Nor where somebody else brought them.
    let before = files(&fixture);
    assert!(!ingest(&index, 2, 5_000..6_000, 5_000));
    assert_eq!(files(&fixture), before);
    knows(&index, 6_000);
}

#[test]
fn damage_that_is_met_while_files_become_one_changes_nothing() {
    let fixture = Fixture::new();
    let index = fixture.open();
    assert!(ingest(&index, 1, 0..40_000, 0));
    let before = (files(&fixture), index.store.stored(fixture.dataset).unwrap());
    // Beyond what is read before the first key is written.
    let mut bytes = std::fs::read(&before.0[0]).unwrap();
    bytes[100 * 4_096] ^= 1;
    std::fs::write(&before.0[0], bytes).unwrap();
    assert!(!ingest(&index, 2, 40_000..60_000, 40_000));
    assert_eq!((files(&fixture), index.store.stored(fixture.dataset).unwrap()), before);
}

#[test]
fn a_lookup_that_needs_dropped_keys_fails() {
    let fixture = Fixture::new();
    let index = fixture.open();
    assert!(ingest(&index, 1, 0..5_000, 0));
    let found = |index: &KeyIndex| index.contains_since(Version(1), &keys(0..1), None);
    assert_eq!(found(&index).unwrap(), [true]);
    index.forget_stored();
    assert!(matches!(found(&index), Err(Error::KeysGivenUp { .. })));
    index.insert(Version(1), &keys(0..5_000));
    assert_eq!(found(&index).unwrap(), [true]);
}

#[test]
fn large_files_are_not_written_again() {
    let fixture = Fixture::new();
    let index = fixture.open();
    index.store.large.store(3_000, Ordering::Relaxed);
    for version in 0..8_u32 {
        let numbers = version * 1_000..version * 1_000 + 1_000;
        assert!(ingest(
            &index,
            u64::from(version) + 1,
            numbers.clone(),
            numbers.start.into()
        ));
    }
    // The first has five thousand, which are more than three, so it stays though the second has as many as it takes.
    assert_eq!(files(&fixture).len(), 2);
    knows(&index, 8_000);
    drop(index);
    knows(&fixture.open(), 8_000);
}

#[test]
fn a_file_that_is_no_key_file_does_not_prevent_opening() {
    let fixture = Fixture::new();
    let index = fixture.open();
    assert!(ingest(&index, 1, 0..5_000, 0));
    drop(index);
    std::fs::create_dir_all(fixture.directory.path().join("files/folder/of somebody")).unwrap();
    knows(&fixture.open(), 5_000);
}

#[test]
fn the_files_of_one_table_are_not_those_of_another() {
    let fixture = Fixture::new();
    let index = fixture.open();
    assert!(ingest(&index, 1, 0..5_000, 0));
    let other = DatasetId::new(Timestamp::from_micros(2));
    let others = KeyIndex::open(other, Arc::clone(&index.store), None);
    assert!(ingest(&others, 1, 5_000..5_200, 0));
    knows(&index, 5_000);
    assert_eq!(others.contains(&keys(0..1)).unwrap(), [false]);
    index.store.clear(other).unwrap();
    assert_eq!(files(&fixture).len(), 1);
    drop((index, others));
    knows(&fixture.open(), 5_000);
}
