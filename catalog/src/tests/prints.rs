//! Prints of published units, and that erased ones are gone.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use types::UnitId;

use super::fixture::{Trouble, Troubled, World};
use crate::Catalog;
use crate::platform::KNOWLEDGE;

fn units(count: i64) -> Vec<UnitId> {
    let new = |at| UnitId::new(types::Timestamp::from_micros(at));
    (0..count).map(new).collect()
}

/// Stores the prints of versions that were published together.
async fn put(catalog: &Catalog, units: &[UnitId]) {
    let line = |unit| json!({"unit": unit, "signature": format!("print of {unit}")}).to_string() + "\n";
    let lines: Vec<_> = units.iter().map(line).collect();
    catalog.put_prints(units[0], lines.concat().into()).await.unwrap();
}

/// Returns the versions that have prints.
async fn printed(catalog: &Catalog) -> BTreeSet<UnitId> {
    let files = catalog.prints(&HashSet::new()).await.unwrap();
    let lines = files.iter().flat_map(|(_, file)| file.split(|byte| *byte == b'\n'));
    let units = lines.filter(|line| !line.is_empty()).map(|line| {
        let line: Value = serde_json::from_slice(line).unwrap();
        line["unit"].as_str().unwrap().parse().unwrap()
    });
    units.collect()
}

/// Forgets versions, as the job does.
async fn forget(catalog: &Catalog, erased: &[UnitId]) -> Result<(), crate::Error> {
    let erased: HashSet<UnitId> = erased.iter().copied().collect();
    while catalog.forget_prints(&erased, None).await?.replaced > 0 {}
    Ok(())
}

/// Returns true if a file anywhere below a folder holds a print of a version.
fn holds(folder: &Path, unit: UnitId) -> bool {
    let text = format!("print of {unit}");
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holds(&path, unit)
        } else {
            String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(&text)
        }
    })
}

#[tokio::test]
async fn no_file_holds_prints_of_what_was_erased() {
    let world = World::new();
    let catalog = world.catalog("one");
    let units = units(6);
    put(&catalog, &units[..3]).await;
    put(&catalog, &units[3..5]).await;
    put(&catalog, &units[5..]).await;
    let tables = world.file("").parent().unwrap().to_owned();
    // The first of a commit, which its file is named after, one among others, and one that was alone.
    let erased = [units[0], units[4], units[5]];
    assert!(erased.iter().all(|unit| holds(&tables, *unit)));
    forget(&catalog, &erased).await.unwrap();
    assert!(!erased.iter().any(|unit| holds(&tables, *unit)));
    let left = [units[1], units[2], units[3]];
    assert_eq!(printed(&catalog).await, left.into_iter().collect());
    // Another process reads the same, and there is nothing left to do.
    let other = world.catalog("two");
    assert_eq!(printed(&other).await, left.into_iter().collect());
    let again = other.forget_prints(&erased.into_iter().collect(), None).await.unwrap();
    assert_eq!((again.replaced, again.last), (0, None));
}

#[tokio::test]
async fn a_replacement_that_was_broken_off_is_gone_on_with() {
    let world = World::new();
    let store = Arc::new(Troubled::new(
        Arc::clone(&world.counting) as _,
        "prints-",
        Trouble::LostAnswer,
    ));
    let catalog = world.catalog_over("one", Arc::clone(&store) as _);
    let units = units(3);
    put(&catalog, &units).await;
    store.strike(1);
    assert!(forget(&catalog, &units[..1]).await.is_err());
    // Both files are there: the old one is deleted last.
    assert_eq!(printed(&catalog).await, units.iter().copied().collect());
    forget(&catalog, &units[..1]).await.unwrap();
    assert_eq!(printed(&catalog).await, units[1..].iter().copied().collect());
    let folder = world.file("").parent().unwrap().join(KNOWLEDGE.to_string());
    assert!(!holds(&folder, units[0]) && holds(&folder, units[1]));
}

#[tokio::test]
async fn a_reader_misses_no_print_while_files_are_replaced() {
    let world = World::new();
    let store = Arc::new(Troubled::new(
        Arc::clone(&world.counting) as _,
        "prints-",
        Trouble::Moved,
    ));
    let catalog = world.catalog_over("one", Arc::clone(&store) as _);
    let units = units(2);
    put(&catalog, &units[..1]).await;
    put(&catalog, &units[1..]).await;
    store.strike(1);
    assert_eq!(printed(&catalog).await, units.iter().copied().collect());
}
