//! Sketches that are kept beside the parts: what is damaged, deleted or of something else is made again as it was.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tests::checker::delta::tables_below;
use tests::world::contribute;
use tests::{Answer, World};

use super::{MANY, checked, profile, started};
use crate::uploads::{begin, complete, fill, lines};

/// Uploads many records as a version of a new dataset, and returns its slug and the folder of the sketches.
async fn uploaded(world: &World) -> (String, PathBuf) {
    let slug = world.project().await;
    let http = &world.agent.http;
    let bytes = lines(0..MANY);
    let upload = begin(http, &slug, &bytes, 1 << 22, "none").await;
    let tags = fill(&upload, &bytes, 1 << 22).await;
    let completed = complete(http, &slug, &upload, &tags).await.expect(201);
    tests::world::decided(http, &slug, completed.text("/id")).await;
    let table = tables_below(world.server.options().data()).remove(0);
    (slug, table.join("_sluice"))
}

/// The sketches of the parts of a table, each with its bytes.
fn sketches(folder: &PathBuf) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let is_sketch = |path: &PathBuf| path.to_string_lossy().contains("/profile-1-");
    let mut found: Vec<_> = entries
        .filter(is_sketch)
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    found.sort();
    found
}

/// A sketch of a part of another dataset than that of this folder.
fn foreign_sketch(world: &World, own: &Path) -> Vec<u8> {
    let folders = tables_below(world.server.options().data()).into_iter();
    let others = folders
        .map(|table| table.join("_sluice"))
        .filter(|folder| folder.as_path() != own);
    others.flat_map(|folder| sketches(&folder)).next().unwrap().1
}

/// Bytes of the files of all tables, and of their sketches, whose names fit.
fn bytes_of(world: &World, fits: impl Fn(&str) -> bool) -> u64 {
    let folders = tables_below(world.server.options().data()).into_iter();
    let files = folders
        .flat_map(|table| [table.join("_sluice"), table])
        .flat_map(fs::read_dir)
        .flatten();
    files
        .map(Result::unwrap)
        .filter(|file| fits(&file.file_name().to_string_lossy()))
        .map(|file| file.metadata().unwrap().len())
        .sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sketches_that_are_damaged_or_deleted_are_made_again_as_they_were() {
    let world = started().await;
    let (slug, folder) = uploaded(&world).await;
    let own = &world.agent.http;
    checked(&profile(&world.http, &slug, 1).await, MANY);
    let kept = sketches(&folder);
    assert!(!kept.is_empty(), "{}", folder.display());
    // A sound sketch of other rows.
    let (other, _) = uploaded(&world).await;
    checked(&profile(&world.http, &other, 1).await, MANY);
    let foreign = foreign_sketch(&world, &folder);
    // They count as storage beside the parts.
    let parts = bytes_of(&world, |name| name.starts_with("part-"));
    let all = parts + bytes_of(&world, |name| name.starts_with("profile-1-"));
    // What was uploaded counts until it is deleted.
    let is_counted = |answer: &Answer| {
        let used = answer.body["storage"]["used"].as_u64();
        used.is_some_and(|used| parts < used && used <= all)
    };
    own.comes_to_show("/quota", is_counted).await;
    let mut records = MANY;
    for (version, damage) in [(2, "flip"), (3, "cut"), (4, "delete"), (5, "swap"), (6, "none")] {
        for (path, bytes) in &kept {
            let mut damaged = bytes.clone();
            match damage {
                "flip" => {
                    damaged[bytes.len() / 2] ^= 1;
                    fs::write(path, damaged).unwrap();
                }
                "cut" => fs::write(path, &bytes[..bytes.len() / 3]).unwrap(),
                "delete" => fs::remove_file(path).unwrap(),
                "swap" => fs::write(path, &foreign).unwrap(),
                _ => {}
            }
        }
        contribute(
            own,
            &slug,
            &[json!({"station": format!("one of {version}"), "sample": 7, "value": 1.5})],
        )
        .await;
        records += 1;
        checked(&profile(&world.http, &slug, version).await, records);
        assert_eq!(sketches(&folder), kept, "{damage}");
    }
    let log = fs::read_to_string(world.server.options().log()).unwrap();
    assert!(log.contains("a sketch is damaged or of something else; it is made again"));
    world.server.options().assert_consistent();
}
