//! The suite that every store of tables runs: what a [`DurableStore`] promises, scenario by scenario.
//!
//! A backend gives a [`Fixture`] to the macro [`conformance!`](crate::conformance!), which makes a test of each
//! scenario. A scenario fails by a panic of an assertion, or by an error of the store.
//!
//! Invariant: scenarios use the public interface only and wait for events, never for time.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, ObjectStoreExt as _, PutMode, PutPayload, Result};
use tokio::task::JoinSet;

use super::DurableStore;

/// A store for one scenario, empty at first.
#[async_trait]
pub trait Fixture: Send {
    /// Opens the store. When called again, it opens what is there as another process would.
    async fn open(&mut self) -> Result<Arc<dyn DurableStore>>;
}

/// Makes a test of each scenario, with the fixture that the expression gives.
#[macro_export]
macro_rules! conformance {
    ($fixture:expr) => {
        $crate::conformance! { $fixture;
            of_many_who_create_an_object_one_does,
            an_object_that_exists_is_not_created_again,
            what_is_prepared_is_there_once_it_is_created,
            an_object_is_overwritten_whole,
            ranges_are_the_bytes_that_were_asked_for,
            what_is_missing_is_not_found,
            an_object_that_was_put_is_read_by_another_at_once,
            syncing_a_directory_is_idempotent_and_loses_nothing,
            objects_are_listed_by_directory,
            deleting_what_is_gone_does_no_harm,
            large_objects_arrive_whole,
        }
    };
    ($fixture:expr; $($scenario:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scenario() -> object_store::Result<()> {
                let mut fixture = $fixture;
                $crate::storage::conformance::$scenario(&mut fixture).await
            }
        )+
    };
}

type Outcome = Result<()>;

async fn put(store: &Arc<dyn DurableStore>, path: &str, bytes: impl Into<Bytes>, mode: PutMode) -> Outcome {
    let payload = PutPayload::from_bytes(bytes.into());
    store
        .put_opts(&Path::from(path), payload, mode.into())
        .await
        .map(|_| ())
}

async fn read(store: &Arc<dyn DurableStore>, path: &str) -> Result<Bytes> {
    store.get(&Path::from(path)).await?.bytes().await
}

/// 32 writers in two processes, each with bytes of its own.
pub async fn of_many_who_create_an_object_one_does(fixture: &mut dyn Fixture) -> Outcome {
    let stores = [fixture.open().await?, fixture.open().await?];
    for round in 0..4 {
        let path = format!("race/{round}");
        let mut writers = JoinSet::new();
        for writer in 0..32_u8 {
            let (store, path) = (Arc::clone(&stores[usize::from(writer) % 2]), path.clone());
            writers.spawn(async move { (writer, put(&store, &path, vec![writer; 1_000], PutMode::Create).await) });
        }
        let mut winners = Vec::new();
        for (writer, put) in writers.join_all().await {
            match put {
                Ok(()) => winners.push(writer),
                Err(Error::AlreadyExists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        assert_eq!(winners.len(), 1, "{winners:?}");
        assert_eq!(read(&stores[0], &path).await?, vec![winners[0]; 1_000]);
    }
    Ok(())
}

/// A put-if-absent of an existing object fails, whichever process tries and with any bytes.
pub async fn an_object_that_exists_is_not_created_again(fixture: &mut dyn Fixture) -> Outcome {
    let (one, two) = (fixture.open().await?, fixture.open().await?);
    put(&one, "a/b/one", "first", PutMode::Create).await?;
    for store in [&one, &two] {
        for bytes in ["first", "second", ""] {
            let again = put(store, "a/b/one", bytes, PutMode::Create).await;
            assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
        }
    }
    assert_eq!(read(&two, "a/b/one").await?, "first");
    Ok(())
}

/// Not before, nor where another was quicker, nor where it is given up.
pub async fn what_is_prepared_is_there_once_it_is_created(fixture: &mut dyn Fixture) -> Outcome {
    let (one, two) = (fixture.open().await?, fixture.open().await?);
    let first = Path::from("a/b/first");
    let prepared = one.prepare(&first, "1".into());
    put(&one, "a/b/second", "2", PutMode::Create).await?;
    assert!(matches!(read(&one, "a/b/first").await, Err(Error::NotFound { .. })));
    prepared.create().await?;
    assert_eq!(read(&two, "a/b/first").await?, "1");
    let late = one.prepare(&Path::from("a/b/third"), "late".into());
    put(&two, "a/b/third", "3", PutMode::Create).await?;
    let late = late.create().await;
    assert!(matches!(late, Err(Error::AlreadyExists { .. })), "{late:?}");
    assert_eq!(read(&one, "a/b/third").await?, "3");
    drop(one.prepare(&Path::from("a/b/fourth"), "4".into()));
    let all: Vec<_> = two.list(None).try_collect().await?;
    assert_eq!(all.len(), 3, "{all:?}");
    Ok(())
}

/// Also by fewer bytes, also where there was nothing.
pub async fn an_object_is_overwritten_whole(fixture: &mut dyn Fixture) -> Outcome {
    let store = fixture.open().await?;
    for bytes in ["the first text", "another", "", "x"] {
        put(&store, "a/one", bytes, PutMode::Overwrite).await?;
        assert_eq!(read(&store, "a/one").await?, bytes);
    }
    Ok(())
}

/// Bounded, from an offset, the end of it, several at once; one that begins past the end is an error.
pub async fn ranges_are_the_bytes_that_were_asked_for(fixture: &mut dyn Fixture) -> Outcome {
    let store = fixture.open().await?;
    let bytes: Bytes = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    put(&store, "a/one", bytes.clone(), PutMode::Create).await?;
    let path = Path::from("a/one");
    for range in [0..1, 10..20, 399_999..400_000, 0..400_000, 65_530..200_000] {
        let expected = bytes.slice(usize::try_from(range.start).unwrap_or(0)..usize::try_from(range.end).unwrap_or(0));
        assert_eq!(store.get_range(&path, range.clone()).await?, expected, "{range:?}");
    }
    let several = store.get_ranges(&path, &[5..9, 300_000..300_004, 0..2]).await?;
    assert_eq!(
        several,
        [bytes.slice(5..9), bytes.slice(300_000..300_004), bytes.slice(0..2)]
    );
    for (range, expected) in [
        (GetRange::Offset(399_990), bytes.slice(399_990..)),
        (GetRange::Suffix(7), bytes.slice(399_993..)),
    ] {
        let options = GetOptions {
            range: Some(range),
            ..GetOptions::default()
        };
        let found = store.get_opts(&path, options).await?;
        assert_eq!(found.meta.size, 400_000);
        assert_eq!(found.bytes().await?, expected);
    }
    assert!(store.get_range(&path, 400_000..400_001).await.is_err());
    Ok(())
}

/// Reads, ranges, metadata.
pub async fn what_is_missing_is_not_found(fixture: &mut dyn Fixture) -> Outcome {
    let store = fixture.open().await?;
    put(&store, "a/one", "1", PutMode::Create).await?;
    for path in ["a/two", "b"] {
        let path = Path::from(path);
        assert!(matches!(store.get(&path).await, Err(Error::NotFound { .. })), "{path}");
        assert!(matches!(store.head(&path).await, Err(Error::NotFound { .. })), "{path}");
        assert!(
            matches!(store.get_range(&path, 0..1).await, Err(Error::NotFound { .. })),
            "{path}"
        );
    }
    Ok(())
}

/// Also one for which another has just asked in vain.
pub async fn an_object_that_was_put_is_read_by_another_at_once(fixture: &mut dyn Fixture) -> Outcome {
    let (writer, reader) = (fixture.open().await?, fixture.open().await?);
    for number in 0..20 {
        let path = format!("log/{number:020}.json");
        assert!(matches!(read(&reader, &path).await, Err(Error::NotFound { .. })));
        put(&writer, &path, path.clone(), PutMode::Create).await?;
        assert_eq!(read(&reader, &path).await?, path);
        assert_eq!(reader.head(&Path::from(path.as_str())).await?.size, path.len() as u64);
    }
    Ok(())
}

/// By whoever put it.
pub async fn syncing_a_directory_is_idempotent_and_loses_nothing(fixture: &mut dyn Fixture) -> Outcome {
    let (one, two) = (fixture.open().await?, fixture.open().await?);
    put(&one, "a/b/one", "1", PutMode::Create).await?;
    put(&two, "a/b/two", "2", PutMode::Create).await?;
    for store in [&one, &two, &one] {
        store.sync_dir(&Path::from("a/b")).await?;
        store.sync_dir(&Path::from("a")).await?;
    }
    assert_eq!(
        (read(&two, "a/b/one").await?, read(&one, "a/b/two").await?),
        ("1".into(), "2".into())
    );
    Ok(())
}

/// A listing has the objects directly in the directory, and its subdirectories; more than a page of them.
pub async fn objects_are_listed_by_directory(fixture: &mut dyn Fixture) -> Outcome {
    let store = fixture.open().await?;
    let names: Vec<_> = (0..40).map(|number| format!("a/{number:03}")).collect();
    for name in &names {
        put(&store, name, name.clone(), PutMode::Create).await?;
    }
    put(&store, "a/deeper/one", "1", PutMode::Create).await?;
    put(&store, "ab/one", "1", PutMode::Create).await?;
    let listed = store.list_with_delimiter(Some(&Path::from("a"))).await?;
    let mut found: Vec<_> = listed
        .objects
        .iter()
        .map(|object| object.location.to_string())
        .collect();
    found.sort();
    assert_eq!(found, names);
    assert_eq!(listed.common_prefixes, [Path::from("a/deeper")]);
    assert!(listed.objects.iter().all(|object| object.size == 5));
    let all: Vec<_> = store.list(Some(&Path::from("a"))).try_collect().await?;
    assert_eq!(all.len(), 41);
    let none = store.list_with_delimiter(Some(&Path::from("nowhere"))).await?;
    assert!(none.objects.is_empty() && none.common_prefixes.is_empty());
    Ok(())
}

/// A deleted object is gone for every reader, and its name is free.
pub async fn deleting_what_is_gone_does_no_harm(fixture: &mut dyn Fixture) -> Outcome {
    let (one, two) = (fixture.open().await?, fixture.open().await?);
    let path = Path::from("a/one");
    put(&one, "a/one", "1", PutMode::Create).await?;
    two.delete(&path).await?;
    assert!(matches!(one.get(&path).await, Err(Error::NotFound { .. })));
    match one.delete(&path).await {
        Ok(()) | Err(Error::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    put(&one, "a/one", "2", PutMode::Create).await?;
    assert_eq!(read(&two, "a/one").await?, "2");
    Ok(())
}

/// Of several pieces in memory, too.
pub async fn large_objects_arrive_whole(fixture: &mut dyn Fixture) -> Outcome {
    let store = fixture.open().await?;
    let pieces: Vec<Bytes> = (0..12_u8).map(|piece| vec![piece; 700_001].into()).collect();
    let payload: PutPayload = pieces.iter().cloned().collect();
    let path = Path::from("a/large");
    store.put_opts(&path, payload, PutMode::Create.into()).await?;
    let found = read(&store, "a/large").await?;
    assert_eq!(found.len(), 12 * 700_001);
    assert!(found == pieces.concat());
    Ok(())
}
