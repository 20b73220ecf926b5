use std::fs;

use types::Version;

use super::fixture::{World, numbered};

const TAG: [u8; 32] = [7; 32];

/// Another process finds the sketch of a part by its tag. One that is damaged, of another tag or of another part counts as
/// missing, and is replaced.
#[tokio::test]
async fn a_sketch_is_found_whole_or_not_at_all() {
    let world = World::new();
    let catalog = world.catalog("one");
    let mut table = world.table(&catalog).await;
    world.merge(&mut table, &numbered(0..3)).await;
    world.merge(&mut table, &numbered(3..5)).await;
    let snapshot = catalog.snapshot(world.dataset, None).await.unwrap().unwrap();
    let parts = snapshot.parts();
    assert_eq!(snapshot.sketch(&parts[0], &TAG).await.unwrap(), None);
    let size = snapshot
        .put_sketch(&parts[0], &TAG, b"figures of three rows")
        .await
        .unwrap();
    let file = world.file(&format!("_sluice/profile-1-{}", parts[0].name()));
    assert_eq!(fs::metadata(&file).unwrap().len(), size);

    let other = world.catalog("two");
    let first = other.snapshot(world.dataset, Some(Version(1))).await.unwrap().unwrap();
    let found = first.sketch(&parts[0], &TAG).await.unwrap();
    assert_eq!(found.as_deref(), Some(&b"figures of three rows"[..]));
    assert_eq!(first.sketch(&parts[0], &[8; 32]).await.unwrap(), None);
    assert_eq!(first.sketch(&parts[1], &TAG).await.unwrap(), None);
    // The file of another part is no sketch of this one.
    fs::copy(&file, world.file(&format!("_sluice/profile-1-{}", parts[1].name()))).unwrap();
    assert_eq!(first.sketch(&parts[1], &TAG).await.unwrap(), None);

    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [&flipped[..], &whole[..whole.len() - 1], b""] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(first.sketch(&parts[0], &TAG).await.unwrap(), None);
    }
    first.put_sketch(&parts[0], &TAG, b"again").await.unwrap();
    assert_eq!(
        first.sketch(&parts[0], &TAG).await.unwrap().as_deref(),
        Some(&b"again"[..])
    );
    world.sound(2).await;
    // They go with the table.
    assert!(other.delete_table(world.dataset).await.unwrap());
    assert!(!file.exists());
}
