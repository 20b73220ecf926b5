//! Files of people, pushed with the program into a dataset: what is wrong with one is said of the file itself, before anything is sent,
//! and no copy is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tests::World;
use tests::server::{DEADLINE, POLL};

use crate::binary;
use crate::uploads::{push, said};

/// A file of this text, in a folder of its own.
fn file(world: &World, text: &str) -> PathBuf {
    let folder = world.folder().join(world.name("folder"));
    fs::create_dir(&folder).unwrap();
    let file = folder.join("readings.csv");
    fs::write(&file, text).unwrap();
    file
}

/// The files that a push of this one left behind.
fn left(file: &Path) -> Vec<PathBuf> {
    let folder = fs::read_dir(file.with_extension("state"));
    let entries = folder.into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_be_sent_is_named_with_its_line_and_leaves_nothing() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let many: Vec<_> = (0..100_000).map(|n| format!("column_{n}")).collect();
    for (text, code, words) in [
        ("station,sample\n\"a\n\nb\",1\nd,2\nc,many\n", 4, "line 6, `sample`: "),
        (
            "station,sample\na,1\n\"Inch 5,2\nb,3\n",
            4,
            "line 3: the quote that opens column `station` is never closed",
        ),
        ("station,sample\na,1\n\"b\"c,2\n", 4, "line 3, `station`: "),
        ("station,sample\n", 4, "no record"),
        ("station,sample,extra\na,1,b\n", 3, "--ignore 'extra'"),
        (&many.join(","), 4, "columns"),
    ] {
        let file = file(&world, text);
        let begun = Instant::now();
        let output = push(&world, &slug, &file, 1 << 20).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(words), "{said}");
        assert_eq!(left(&file), Vec::<PathBuf>::new(), "{words}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
    let answer = world.agent.http.get("/me/contributions").await.expect(200);
    assert_eq!(answer.body["items"], serde_json::json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_are_refused_are_named_by_their_lines_of_the_file() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let file = file(&world, "station,sample\r\n\"a\r\n\r\nb\",1\r\n\r\n,2\r\nc,3\r\n,4\r\n");
    let output = push(&world, &slug, &file, 1 << 20).output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("4 records, 2 refused"), "{said}");
    assert!(
        said.contains("  line 6, `station`") && said.contains("  line 8, `station`"),
        "{said}"
    );
    assert_eq!(left(&file), Vec::<PathBuf>::new());
    // The service says the same of it.
    let output = push(&world, &slug, &file, 1 << 20).arg("--no-check").output().unwrap();
    let said = crate::uploads::said(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("the first is on line 6"), "{said}");
    assert!(
        said.contains("  line 6 /station") && said.contains("  line 8 /station"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_that_is_interrupted_while_it_reads_leaves_nothing() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let mut random = tests::random::Random::new(7);
    let digits = |random: &mut tests::random::Random| {
        let digits: Vec<_> = (0..250).map(|_| format!("{:016x}", random.bits())).collect();
        digits.concat()
    };
    let rows: Vec<_> = (0..30_000)
        .map(|row| format!("{},{row}\n", digits(&mut random)))
        .collect();
    let file = file(&world, &format!("station,sample\n{}", rows.concat()));
    for signal in ["-INT", "-KILL"] {
        // A text is copied only to be compressed.
        let mut child = push(&world, &slug, &file, 1 << 20).arg("--gzip").spawn().unwrap();
        let pid = child.id().to_string();
        let begun = Instant::now();
        let written = || {
            let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
            let line = io
                .lines()
                .find_map(|line| line.strip_prefix("wchar: ").map(str::to_owned));
            line.map_or(0, |bytes| bytes.parse::<u64>().unwrap())
        };
        while written() < 4 << 20 {
            assert!(begun.elapsed() < DEADLINE, "nothing is written");
            tokio::time::sleep(POLL).await;
        }
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        assert!(!child.wait().unwrap().success());
        assert_eq!(left(&file), Vec::<PathBuf>::new(), "{signal}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_says_its_duplicates_first_and_one_without_news_is_no_failure() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let rows = |numbers: std::ops::Range<u32>| {
        let rows: Vec<String> = numbers.map(|n| format!("s,{n}\n")).collect();
        rows.concat()
    };
    let first = file(&world, &format!("station,sample\n{}{}", rows(0..20), rows(0..1)));
    let output = push(&world, &slug, &first, 1 << 20).output().unwrap();
    let headline = said(&output);
    let expected = format!("{slug} version 1: 20 of 21 records are new; 1 duplicate dropped (4.8 %).\n");
    assert!(output.status.success() && headline.starts_with(&expected), "{headline}");
    let again = push(&world, &slug, &first, 1 << 20).output().unwrap();
    let headline = said(&again);
    let expected = format!("Nothing new: all 21 records are in `{slug}` already.\n");
    assert_eq!(again.status.code(), Some(0), "{headline}");
    assert!(headline.starts_with(&expected), "{headline}");
    let more = file(&world, &format!("station,sample\n{}", rows(10..1_040)));
    let headline = said(&push(&world, &slug, &more, 1 << 20).output().unwrap());
    let expected = format!("{slug} version 2: 1,020 of 1,030 records are new; 10 duplicates dropped (1.0 %).\n");
    assert!(headline.starts_with(&expected), "{headline}");
    assert_eq!(left(&more), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exit_code_says_who_has_to_act() {
    let world = World::start(binary()).await;
    let slug = world.project().await;
    let file = file(&world, "station,sample\na,1\n");
    let code = |slug: &str, change: &dyn Fn(&mut Command)| {
        let mut command = push(&world, slug, &file, 1 << 20);
        change(&mut command);
        command.output().unwrap().status.code()
    };
    assert_eq!(code(&slug, &|_| {}), Some(0));
    assert_eq!(
        code(&slug, &|command| {
            command.arg("--colour");
        }),
        Some(2)
    );
    assert_eq!(
        code(&slug, &|command| {
            command.env("SLUICE_KEY", "km_nobody");
        }),
        Some(5)
    );
    let nowhere = |command: &mut Command| {
        command.env("SLUICE_SERVER", "http://nowhere.invalid");
    };
    assert_eq!(code(&slug, &nowhere), Some(6));
    assert_eq!(code("no-such-project", &|_| {}), Some(7));
    let of = |arguments: &[&str]| {
        let mut command = Command::new(binary());
        let command = command.args(arguments).env("SLUICE_SERVER", world.server.base());
        command
            .env("SLUICE_KEY", &world.agent.key)
            .output()
            .unwrap()
            .status
            .code()
    };
    assert_eq!(of(&["query", "no-such-project", "SELECT 1 FROM records"]), Some(7));
    assert_eq!(of(&["pull", "no-such-project"]), Some(7));
    assert_eq!(of(&["uploads"]), Some(0));
    assert_eq!(of(&["uploads", "cancel", "no-such-upload"]), Some(7));
}
