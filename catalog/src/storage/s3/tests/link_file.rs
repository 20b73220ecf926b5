//! Files that become objects.

use super::*;

const MIB: usize = 1 << 20;

/// A file of this many bytes, no two megabytes of it alike.
fn file(place: &Place, name: &str, bytes: usize) -> (std::path::PathBuf, Vec<u8>) {
    let path = place.folder.path().join(name);
    let content: Vec<u8> = (0..bytes)
        .map(|at| u8::try_from((at / MIB * 7 + at) % 251).unwrap())
        .collect();
    std::fs::write(&path, &content).unwrap();
    (path, content)
}

async fn read(store: &S3, path: &str) -> Vec<u8> {
    store
        .get(&Path::from(path))
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap()
        .to_vec()
}

/// How many parts of uploads are beside the bucket.
fn left(place: &Place) -> usize {
    let entries = place.folder.path().read_dir().unwrap().map(Result::unwrap);
    entries
        .filter(|entry| entry.file_name().to_string_lossy().contains("part-"))
        .count()
}

#[tokio::test]
async fn files_of_any_size_become_objects_whole_and_large_ones_in_pieces() {
    let place = Place::new();
    let store = place.open().await;
    for (bytes, puts) in [
        (0, 1),
        (1, 1),
        (8 * MIB, 1),
        (8 * MIB + 1, 2),
        (24 * MIB, 3),
        (27 * MIB + 5, 4),
    ] {
        let (path, content) = file(&place, "file", bytes);
        let before = place.server.faults().requests();
        let name = format!("a/{bytes}");
        store.link_file(&path, &Path::from(name.as_str())).await.unwrap();
        let after = place.server.faults().requests();
        assert_eq!(after.puts - before.puts, puts, "{bytes}");
        assert!(read(&store, &name).await == content, "{bytes}");
    }
    assert_eq!(left(&place), 0);
}

#[tokio::test]
async fn a_file_never_replaces_an_object() {
    let place = Place::new();
    let store = place.open().await;
    create(&store, "a/one", "theirs").await.unwrap();
    for bytes in [10, 20 * MIB] {
        let (path, _) = file(&place, "file", bytes);
        let taken = store.link_file(&path, &Path::from("a/one")).await;
        assert!(matches!(taken, Err(Error::AlreadyExists { .. })), "{taken:?}");
        assert_eq!(text(&store, "a/one").await, "theirs");
    }
    assert_eq!(left(&place), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_links_to_one_name_one_succeeds() {
    let place = Place::new();
    let stores = [place.open().await, place.open().await];
    let files: Vec<_> = (0..4)
        .map(|n| file(&place, &format!("file-{n}"), 9 * MIB + n))
        .collect();
    let linking = files.iter().enumerate().map(|(n, (path, _))| {
        let (store, path) = (stores[n % 2].clone(), path.clone());
        async move { store.link_file(&path, &Path::from("a/one")).await }
    });
    let mut winners = Vec::new();
    for (n, linked) in join_all(linking).await.into_iter().enumerate() {
        match linked {
            Ok(()) => winners.push(n),
            Err(Error::AlreadyExists { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(winners.len(), 1, "{winners:?}");
    assert!(read(&stores[0], "a/one").await == files[winners[0]].1);
    assert_eq!(left(&place), 0);
}

/// What is lost may be the answer to a piece, or that to all of them.
#[tokio::test]
async fn a_file_arrives_whole_while_the_store_misbehaves() {
    for fault in [
        Fault::Internal,
        Fault::SlowDown,
        Fault::DoneThenInternal,
        Fault::LostAnswer,
    ] {
        let place = Place::new();
        let store = place.open().await;
        let (path, content) = file(&place, "file", 20 * MIB);
        let faults = place.server.faults();
        faults.add(Rule::next(fault, "PUT", "a/one", 2));
        store.link_file(&path, &Path::from("a/one")).await.unwrap();
        assert_eq!(faults.happened(fault), 2, "{fault:?}");
        assert!(read(&store, "a/one").await == content, "{fault:?}");
        // Not the first, which begins the upload.
        faults.add(Rule::next(Fault::Slow(Duration::ZERO), "POST", "a/two", 1));
        faults.add(Rule::next(fault, "POST", "a/two", 1));
        match store.link_file(&path, &Path::from("a/two")).await {
            // Done, and not heard: who asks compares what is there with what they have.
            Ok(()) | Err(Error::AlreadyExists { .. }) => {}
            Err(error) => panic!("{fault:?}: {error}"),
        }
        assert_eq!(faults.happened(fault), 3, "{fault:?}");
        assert!(read(&store, "a/two").await == content, "{fault:?}");
        assert_eq!(left(&place), 0, "{fault:?}");
    }
}

#[tokio::test]
async fn a_link_that_fails_leaves_nothing() {
    let place = Place::new();
    let mut config = place.config();
    (config.attempt, config.patience) = (Duration::from_millis(200), Duration::from_millis(600));
    let store = S3::open(&config).await.unwrap();
    let (path, _) = file(&place, "file", 20 * MIB);
    place
        .server
        .faults()
        .add(Rule::next(Fault::Internal, "PUT", "a/one", u64::MAX));
    let failed = store.link_file(&path, &Path::from("a/one")).await;
    assert!(matches!(failed, Err(Error::Generic { .. })), "{failed:?}");
    assert_eq!(left(&place), 0);
    let missing = store.get(&Path::from("a/one")).await;
    assert!(matches!(missing, Err(Error::NotFound { .. })));
    let unreadable = store
        .link_file(&place.folder.path().join("nothing"), &Path::from("a/two"))
        .await;
    assert!(matches!(unreadable, Err(Error::Generic { .. })), "{unreadable:?}");
}
