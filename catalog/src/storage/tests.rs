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
    assert_eq!(fs::read_dir(store.root.join(STAGING)).unwrap().count(), 0);
}

#[test]
fn what_a_crash_left_is_swept_and_what_may_be_in_use_is_not() {
    let (_directory, store) = store();
    let abandoned = store.root.join(STAGING).join("put#1");
    let in_use = store.root.join(STAGING).join("put#2");
    let file = File::create(&abandoned).unwrap();
    file.set_modified(file.metadata().unwrap().modified().unwrap() - 2 * ABANDONED)
        .unwrap();
    File::create(&in_use).unwrap();
    DurableLocal::open(&*store.root).unwrap();
    assert!(!abandoned.exists());
    assert!(in_use.exists());
}
