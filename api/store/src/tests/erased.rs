use std::fs;
use std::path::Path;

use crate::conformance::fixture::{at, open};
use crate::conformance::knowledge::World;

/// Returns how often a text is in the files of a database.
fn count(folder: &Path, text: &str) -> usize {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|file| fs::read(file.unwrap().path()).unwrap());
    let occurrences = |file: Vec<u8>| {
        file.windows(text.len())
            .filter(|bytes| *bytes == text.as_bytes())
            .count()
    };
    files.map(occurrences).sum()
}

#[tokio::test]
async fn an_erased_text_is_in_no_file_of_the_database() {
    let (url, folder) = super::fresh_file();
    let store = open(&url).await;
    let world = World::new(&store).await;
    // One fits a page, and one fills many, each at several places in work and done.
    let short = "needle in the haystack. ".to_owned();
    let long = format!("long text. {}", "needle in the haystack. ".repeat(2_000));
    let kept = format!("kept text. {}", "straw of the haystack. ".repeat(2_000));
    let mut erased = Vec::new();
    for text in [&short, &long] {
        erased.push(world.published(&store, text, 60).await);
    }
    let id = world.published(&store, &kept, 60).await;
    assert!(count(folder.path(), "needle in the haystack") > 2_000);
    for unit in erased {
        assert!(store.knowledge().erase(unit, at(20)).await.unwrap());
    }
    assert!(store.flow().scrub().await.unwrap());
    assert_eq!(count(folder.path(), "needle in the haystack"), 0);
    let unit = store.knowledge().unit(id).await.unwrap().unwrap();
    assert_eq!(unit.body, kept);
    // It can be done again at any time, and what is written later stays.
    world.published(&store, "another text", 60).await;
    assert!(store.flow().scrub().await.unwrap());
    assert_eq!(count(folder.path(), "CREATE TABLE scrub"), 0);
}
