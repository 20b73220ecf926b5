use object_store::ObjectStoreExt as _;

use super::*;

fn store() -> (tempfile::TempDir, DurableLocal) {
    let directory = tempfile::tempdir().unwrap();
    let store = DurableLocal::open(directory.path().join("deep/root")).unwrap();
    (directory, store)
}

async fn put(store: &DurableLocal, path: &str, text: &'static str, mode: PutMode) -> Result<PutResult> {
    store
        .put_opts(&Path::from(path), PutPayload::from_static(text.as_bytes()), mode.into())
        .await
}

async fn text(store: &DurableLocal, path: &str) -> String {
    let bytes = store.get(&Path::from(path)).await.unwrap().bytes().await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn only_the_first_of_two_creations_succeeds() {
    let (_directory, store) = store();
    put(&store, "a/b/one", "first", PutMode::Create).await.unwrap();
    let second = put(&store, "a/b/one", "second", PutMode::Create).await;
    assert!(
        matches!(second, Err(object_store::Error::AlreadyExists { .. })),
        "{second:?}"
    );
    assert_eq!(text(&store, "a/b/one").await, "first");
    put(&store, "a/b/one", "third", PutMode::Overwrite).await.unwrap();
    assert_eq!(text(&store, "a/b/one").await, "third");
}

#[tokio::test]
async fn a_put_into_a_directory_that_exists_costs_two_syncs() {
    let (_directory, store) = store();
    put(&store, "a/one", "1", PutMode::Create).await.unwrap();
    let before = store.syncs();
    put(&store, "a/two", "2", PutMode::Create).await.unwrap();
    let after = store.syncs();
    assert_eq!(after.files - before.files, 1);
    assert_eq!(after.of_files - before.of_files, 1);
    assert_eq!(after.of_directories - before.of_directories, 1);
}

#[tokio::test]
async fn nothing_stays_behind_after_a_put_won_or_lost() {
    let (_directory, store) = store();
    put(&store, "one", "1", PutMode::Create).await.unwrap();
    put(&store, "one", "2", PutMode::Create).await.unwrap_err();
    put(&store, "one", "3", PutMode::Overwrite).await.unwrap();
    assert_eq!(
        fs::read_dir(store.directories.root().join(STAGING_FOLDER))
            .unwrap()
            .count(),
        0
    );
}

/// A runtime that has one thread for what blocks, so that of two such things the first is done first.
fn one_by_one() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.max_blocking_threads(1).build().unwrap()
}

fn entries(store: &DurableLocal, directory: &str) -> usize {
    fs::read_dir(store.directories.root().join(directory)).unwrap().count()
}

#[test]
fn what_is_prepared_is_written_before_it_is_created_and_not_again() {
    let (_directory, store) = store();
    let before = store.syncs();
    one_by_one().block_on(async {
        put(&store, "a/one", "1", PutMode::Create).await.unwrap();
        let [second, taken] = ["a/two", "a/one"].map(|path| store.prepare(&Path::from(path), "2".into()));
        drop(store.prepare(&Path::from("a/three"), "3".into()));
        spawn_blocking(|| ()).await.unwrap();
        // The third is gone again.
        assert_eq!(store.syncs().of_files - before.of_files, 4);
        assert_eq!((entries(&store, STAGING_FOLDER), entries(&store, "a")), (2, 1));
        second.create().await.unwrap();
        let taken = taken.create().await;
        assert!(
            matches!(taken, Err(object_store::Error::AlreadyExists { .. })),
            "{taken:?}"
        );
        assert_eq!(
            (text(&store, "a/one").await, text(&store, "a/two").await),
            ("1".into(), "2".into())
        );
    });
    assert_eq!(store.syncs().of_files - before.of_files, 4);
    assert_eq!((entries(&store, STAGING_FOLDER), entries(&store, "a")), (0, 2));
}

#[test]
fn what_is_prepared_where_no_thread_is_left_is_written_when_it_is_created() {
    let (_directory, store) = store();
    let runtime = one_by_one();
    runtime.block_on(async {
        let store = store.clone();
        let creating = async move { store.prepare(&Path::from("a/one"), "1".into()).create().await };
        let pool = crate::blocking::BlockingPool::default();
        pool.run(creating).await.unwrap().unwrap();
    });
    assert_eq!(runtime.block_on(text(&store, "a/one")), "1");
    drop(runtime);
    assert_eq!((store.syncs().of_files, entries(&store, STAGING_FOLDER)), (1, 0));
}

#[tokio::test]
async fn what_is_prepared_and_could_not_be_written_is_no_object() {
    let (_directory, store) = store();
    fs::remove_dir_all(store.directories.root().join(STAGING_FOLDER)).unwrap();
    let path = Path::from("a/one");
    let failed = store.prepare(&path, "1".into()).create().await;
    assert!(matches!(failed, Err(object_store::Error::Generic { .. })), "{failed:?}");
    assert!(matches!(
        store.get(&path).await,
        Err(object_store::Error::NotFound { .. })
    ));
}

#[test]
fn what_a_crash_left_is_swept_and_what_may_be_in_use_is_not() {
    let (_directory, store) = store();
    let abandoned = store.directories.root().join(STAGING_FOLDER).join("put#1");
    let in_use = store.directories.root().join(STAGING_FOLDER).join("put#2");
    let file = File::create(&abandoned).unwrap();
    file.set_modified(file.metadata().unwrap().modified().unwrap() - 2 * ABANDONED_AFTER)
        .unwrap();
    File::create(&in_use).unwrap();
    DurableLocal::open(store.directories.root()).unwrap();
    assert!(!abandoned.exists());
    assert!(in_use.exists());
}

fn fail_syncs(store: &DurableLocal, times: u64) {
    store.directories.failing.store(times, Ordering::SeqCst);
}

#[tokio::test]
async fn a_name_whose_directory_could_not_be_synced_is_no_answer() {
    let (_directory, store) = store();
    put(&store, "a/one", "1", PutMode::Create).await.unwrap();
    for (mode, path) in [(PutMode::Create, "a/two"), (PutMode::Overwrite, "a/one")] {
        fail_syncs(&store, 1);
        let failed = put(&store, path, "2", mode).await;
        assert!(matches!(failed, Err(object_store::Error::Generic { .. })), "{failed:?}");
        // It is there, and nobody is told that it is before a sync succeeded.
        assert_eq!(text(&store, path).await, "2");
    }
    fail_syncs(&store, 1);
    let taken = put(&store, "a/two", "3", PutMode::Create).await;
    assert!(matches!(taken, Err(object_store::Error::Generic { .. })), "{taken:?}");
    let before = store.syncs().of_directories;
    let taken = put(&store, "a/two", "3", PutMode::Create).await;
    assert!(
        matches!(taken, Err(object_store::Error::AlreadyExists { .. })),
        "{taken:?}"
    );
    assert_eq!(store.syncs().of_directories - before, 1);
}

#[tokio::test]
async fn settling_syncs_or_fails() {
    let (_directory, store) = store();
    put(&store, "a/one", "1", PutMode::Create).await.unwrap();
    fail_syncs(&store, 1);
    store.sync_dir(&Path::from("a")).await.unwrap_err();
    let before = store.syncs().of_directories;
    store.sync_dir(&Path::from("a")).await.unwrap();
    assert_eq!(store.syncs().of_directories - before, 1);
}

/// Directories that another process made, and may have died before it synced them.
#[tokio::test]
async fn directories_found_are_synced_once_like_directories_made() {
    let (_directory, store) = store();
    fs::create_dir_all(store.directories.root().join("a/b")).unwrap();
    let mut before = store.syncs().of_directories;
    let mut synced = || {
        let after = store.syncs().of_directories;
        std::mem::replace(&mut before, after).abs_diff(after)
    };
    put(&store, "a/b/one", "1", PutMode::Create).await.unwrap();
    assert_eq!(synced(), 3);
    put(&store, "a/b/two", "1", PutMode::Create).await.unwrap();
    assert_eq!(synced(), 1);
    put(&store, "a/c/one", "1", PutMode::Create).await.unwrap();
    assert_eq!(synced(), 2);
    // One whose name could not be synced is not taken for durable.
    fs::create_dir(store.directories.root().join("d")).unwrap();
    for _ in 0..2 {
        fail_syncs(&store, 1);
        put(&store, "d/one", "1", PutMode::Create).await.unwrap_err();
    }
    put(&store, "d/one", "1", PutMode::Create).await.unwrap();
}

#[tokio::test]
async fn a_directory_that_was_removed_is_made_again() {
    let (_directory, store) = store();
    put(&store, "a/b/one", "1", PutMode::Create).await.unwrap();
    fs::remove_dir_all(store.directories.root().join("a")).unwrap();
    let before = store.syncs().of_directories;
    put(&store, "a/b/one", "2", PutMode::Create).await.unwrap();
    assert_eq!(text(&store, "a/b/one").await, "2");
    assert_eq!(store.syncs().of_directories - before, 3);
}

mod conformance {
    use super::*;

    struct Folder(tempfile::TempDir);

    #[async_trait]
    impl crate::storage::conformance::Fixture for Folder {
        async fn open(&mut self) -> Result<Arc<dyn DurableStore>> {
            Ok(Arc::new(DurableLocal::open(self.0.path())?))
        }
    }

    crate::conformance!(Folder(tempfile::tempdir().unwrap()));
}
