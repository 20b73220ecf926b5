//! Wrong bits in the files of tables, in a folder and in a bucket: every answer is the right one or a refusal.
//!
//! Each round flips one bit in a file of every dataset, before the service starts anew or under one that has the tables
//! open, asks for everything, and puts the files back. `SLUICE_TEST_FLIPS` says how many bits are flipped; the seed is
//! fixed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use reqwest::Method;
use serde_json::{Value, json};
use tests::World;
use tests::random::Random;
use tests::server::Options;
use tests::world::{batch, contribute, decided, records};

use crate::uploads::{begin, complete, fill};
use crate::uploads_bucket::Bucket;
use crate::{binary, configured};

/// How many bits are flipped in all.
const FLIPS: u64 = 200;
/// Flips within which a service that does not verify what it reads is caught.
const PLANTED: u64 = 60;
/// The versions of the dataset with a checkpoint, which is written after 256 commits.
const LONG: u64 = 258;
/// Adjacent parts that become one.
const FAN_IN: u64 = 4;

/// What is asked of a dataset: the method, the path, and the body.
type Question = (Method, String, Option<Value>);

/// A dataset and what it answers when nothing is wrong.
struct Dataset {
    questions: Vec<Question>,
    expected: Vec<Vec<u8>>,
    folder: PathBuf,
    /// The parts that its latest version is read from, and all files of its table.
    live: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

/// A bit that was flipped, and the file as it was.
struct Flip {
    file: PathBuf,
    bit: u64,
    sound: Vec<u8>,
}

impl Flip {
    fn make(dataset: &Dataset, random: &mut Random) -> Self {
        let of_log = |file: &&PathBuf| file.extension().is_none_or(|end| end != "parquet") || is_checkpoint(file);
        let others: Vec<_> = dataset.files.iter().filter(of_log).cloned().collect();
        // Half of them in what is read, a quarter in commits and what is derived, the rest anywhere.
        let files = match random.below(4) {
            0 => &others,
            1 => &dataset.files,
            _ => &dataset.live,
        };
        let file = random.pick(files).clone();
        let sound = fs::read(&file).unwrap();
        let bit = random.bits() % (sound.len() as u64 * 8);
        let mut wrong = sound.clone();
        wrong[usize::try_from(bit / 8).unwrap()] ^= 1 << (bit % 8);
        fs::write(&file, wrong).unwrap();
        Self { file, bit, sound }
    }

    fn undo(&self) {
        fs::write(&self.file, &self.sound).unwrap();
    }
}

fn is_checkpoint(file: &Path) -> bool {
    file.to_string_lossy().ends_with(".checkpoint.parquet")
}

/// Every file below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut pending = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = pending.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                pending.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Records of texts that no codec makes much of.
fn noise(series: &str, count: usize, bytes: usize) -> Vec<Value> {
    let text = |number: usize| {
        let mut text = vec![0; bytes];
        blake3::Hasher::new()
            .update(series.as_bytes())
            .update(&number.to_le_bytes())
            .finalize_xof()
            .fill(&mut text);
        BASE64.encode(&text)
    };
    (0..count)
        .map(|sample| json!({"station": text(sample), "sample": sample, "value": 0.25, "more": {"n": sample}}))
        .collect()
}

fn questions(slug: &str, version: u64, rows: u64) -> Vec<Question> {
    let page = |offset: u64| format!("/projects/{slug}/data?version={version}&offset={offset}&limit=40");
    let diff = format!("/projects/{slug}/diff?from={}&to={version}&limit=40", version - 1);
    let sql = "SELECT count(*) AS n, sum(sample) AS s, avg(value) AS v, min(station) AS a, max(station) AS b, \
               max(more) AS m, max(at) AS t FROM records";
    let query = json!({"sql": sql, "version": version});
    vec![
        (Method::GET, page(0), None),
        (Method::GET, page(rows - rows.min(40)), None),
        (Method::GET, diff, None),
        (Method::GET, format!("/projects/{slug}/export?version={version}"), None),
        (Method::POST, format!("/projects/{slug}/query"), Some(query)),
    ]
}

/// A service with datasets whose tables are in files below `root`.
struct Scene {
    world: World,
    datasets: Vec<Dataset>,
    counts: BTreeMap<String, u64>,
    /// Whether the service verifies what it reads.
    verifies: bool,
}

impl Scene {
    async fn start(world: World, root: &Path) -> Self {
        let http = &world.agent.http;
        let mut made = Vec::new();
        let small = world.project().await;
        for series in ["a", "b", "c"] {
            contribute(http, &small, &records(series, 20)).await;
        }
        made.push((small, 3, 60));
        // Two of them are not compacted: each is read by ranges.
        let large = world.project().await;
        for series in ["a", "b"] {
            contribute(http, &large, &noise(series, 300, 2_400)).await;
        }
        made.push((large, 2, 600));
        // What is compacted is read by ranges, too.
        let compacted = world.project().await;
        for series in ["a", "b", "c", "d", "e"] {
            contribute(http, &compacted, &noise(series, 60, 3_000)).await;
        }
        made.push((compacted, 5, 300));
        let groups = world.project().await;
        let lines: Vec<_> = (0..140_000)
            .map(|n| format!("{{\"station\":\"s\",\"sample\":{n}}}\n"))
            .collect();
        let bytes = lines.concat().into_bytes();
        let upload = begin(http, &groups, &bytes, bytes.len(), "none").await;
        let tags = fill(&upload, &bytes, bytes.len()).await;
        let answer = complete(http, &groups, &upload, &tags).await;
        let outcome = decided(http, &groups, answer.text("/id")).await;
        assert_eq!(outcome.text("/status"), "merged", "{}", outcome.body);
        made.push((groups, 1, 140_000));
        let long = world.project().await;
        let mut last = String::new();
        for version in 0..LONG {
            let body = batch(&noise(&format!("v{version}"), 1, 3_000));
            let answer = http
                .post(&format!("/projects/{long}/contribute"), &body)
                .await
                .expect(201);
            answer.text("/id").clone_into(&mut last);
        }
        assert_eq!(decided(http, &long, &last).await.text("/status"), "merged");
        made.push((long, LONG, LONG));

        // What is still being compacted is there after a stop.
        let world = world.restart_with(|options| options).await;
        let mut datasets = Vec::new();
        for (slug, version, rows) in made {
            let http = &world.agent.http;
            let manifest = http
                .get(&format!("/projects/{slug}/manifest?version={version}"))
                .await
                .expect(200);
            let parts = manifest.body["parts"].as_array().unwrap();
            let names: Vec<_> = parts
                .iter()
                .map(|part| part["path"].as_str().unwrap().to_owned())
                .collect();
            let all = files_below(root);
            let live: Vec<_> = all
                .iter()
                .filter(|file| names.iter().any(|name| file.ends_with(name)))
                .cloned()
                .collect();
            assert_eq!(live.len(), names.len(), "{slug}: {names:?}");
            let folder = live[0].parent().unwrap().to_owned();
            let questions = questions(&slug, version, rows);
            let mut dataset = Dataset {
                files: files_below(&folder),
                expected: Vec::new(),
                questions,
                folder,
                live,
            };
            for question in &dataset.questions {
                let answer = ask(&world, question).await.unwrap();
                assert_eq!(answer.code(), 200, "{question:?}: {}", answer.body);
                dataset.expected.push(answer.bytes);
            }
            datasets.push(dataset);
        }
        assert!(
            datasets
                .iter()
                .any(|dataset| dataset.files.iter().any(|file| is_checkpoint(file)))
        );
        Self {
            world,
            datasets,
            counts: BTreeMap::new(),
            verifies: true,
        }
    }

    /// Flips so many bits; the wrong answers with 200.
    async fn flip(mut self, flips: u64, random: &mut Random) -> Vec<String> {
        let mut wrong = Vec::new();
        let (mut done, mut round) = (0, 0);
        while done < flips {
            let made: Vec<_> = self
                .datasets
                .iter()
                .map(|dataset| Flip::make(dataset, random))
                .collect();
            if round % 2 == 0 {
                self.world = self.world.restart_with(|options| options).await;
            }
            let (world, counts) = (&self.world, &mut self.counts);
            for (dataset, flip) in self.datasets.iter().zip(&made) {
                for (question, expected) in dataset.questions.iter().zip(&dataset.expected) {
                    let file = flip.file.strip_prefix(&dataset.folder).unwrap_or(&flip.file);
                    let told = format!("bit {} of {}: {question:?}", flip.bit, file.display());
                    let became = match ask(world, question).await {
                        Err(_) => "broken off".to_owned(),
                        Ok(answer) if answer.code() != 200 => {
                            if self.verifies {
                                assert_eq!((answer.code(), answer.error()), (503, "table_damaged"), "{told}");
                                assert!(!answer.header("retry-after").is_empty(), "{told}");
                            }
                            "refused".to_owned()
                        }
                        Ok(answer) if answer.bytes == *expected => "right".to_owned(),
                        Ok(_) => {
                            wrong.push(told);
                            "wrong".to_owned()
                        }
                    };
                    *counts.entry(became).or_default() += 1;
                }
                flip.undo();
            }
            done += made.len() as u64;
            round += 1;
        }
        // What was put back is served, by the same process.
        for dataset in self.datasets.iter().filter(|_| self.verifies) {
            for (question, expected) in dataset.questions.iter().zip(&dataset.expected) {
                let answer = ask(&self.world, question).await.unwrap();
                assert!(answer.bytes == *expected, "{question:?}: {}", answer.code());
            }
        }
        eprintln!("{done} flips: {:?}", self.counts);
        wrong
    }
}

async fn ask(world: &World, (method, path, body): &Question) -> Result<tests::Answer, reqwest::Error> {
    let body = body.as_ref().map(|body| body.to_string().into_bytes());
    world.agent.http.send(method.clone(), path, &[], body).await
}

fn compacting(options: Options) -> Options {
    options.with("SLUICE__COMPACTION__FAN_IN", FAN_IN)
}

async fn in_a_folder() -> Scene {
    let world = World::start_with(binary(), compacting).await;
    let tables = world.folder().join("data/tables");
    Scene::start(world, &tables).await
}

#[tokio::test]
async fn no_answer_of_a_folder_is_wrong_whatever_bit_is_flipped() {
    let flips = configured("SLUICE_TEST_FLIPS", FLIPS) / 2;
    let wrong = in_a_folder().await.flip(flips, &mut Random::new(17)).await;
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn no_answer_of_a_bucket_is_wrong_whatever_bit_is_flipped() {
    let flips = configured("SLUICE_TEST_FLIPS", FLIPS).div_ceil(2);
    let bucket = Bucket::start();
    let world = World::start_with(binary(), |options| compacting(bucket.configure(options))).await;
    let scene = Scene::start(world, bucket.folder()).await;
    let wrong = scene.flip(flips, &mut Random::new(18)).await;
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn a_service_that_does_not_verify_what_it_reads_is_caught() {
    let mut scene = in_a_folder().await;
    let blind = |options: Options| options.with("SLUICE_FAULT_PLANT", "blind-reads");
    scene.world = scene.world.restart_with(blind).await;
    scene.verifies = false;
    let wrong = scene.flip(PLANTED, &mut Random::new(17)).await;
    eprintln!("{} wrong answers in {PLANTED} flips", wrong.len());
    assert!(!wrong.is_empty(), "no wrong answer in {PLANTED} flips");
}

/// How often damage was counted, by what it was found in.
async fn counted(address: &str, file: &str) -> u64 {
    let answer = tests::Http::new(&format!("http://{address}")).get("/metrics").await;
    let text = String::from_utf8(answer.bytes).unwrap();
    let sample = format!("sluice_table_damage_total{{file=\"{file}\"}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&sample)).unwrap();
    value.parse().unwrap()
}

#[tokio::test]
async fn damage_is_answered_503_with_its_code_on_every_path_and_is_counted() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics = free.local_addr().unwrap().to_string();
    drop(free);
    let exporting = |options: Options| options.with("SLUICE__TELEMETRY__METRICS", &metrics);
    let mut world = World::start_with(binary(), exporting).await;
    let slug = world.project().await;
    contribute(&world.agent.http, &slug, &noise("a", 300, 2_400)).await;
    contribute(&world.agent.http, &slug, &records("b", 20)).await;
    let files = files_below(&world.folder().join("data/tables"));
    let named = |part: &str| {
        let found = files.iter().find(|file| file.to_string_lossy().contains(part));
        found.unwrap().clone()
    };
    let get = |path: String| (Method::GET, path, None);
    let manifest = get(format!("/projects/{slug}/manifest"));
    let parts = ask(&world, &manifest).await.unwrap().body["parts"].clone();
    let part = |index: usize| {
        let url = parts[index]["url"].as_str().unwrap();
        get(url[url.find("/parts/").unwrap()..].to_owned())
    };
    let validate = format!("/projects/{slug}/validate");
    let validate = (Method::POST, validate, Some(batch(&records("c", 1))));
    let export = get(format!("/projects/{slug}/export?version=2"));
    let page = |offset: u64| get(format!("/projects/{slug}/data?version=2&limit=10&offset={offset}"));
    let diff = |to: u64| get(format!("/projects/{slug}/diff?from={}&to={to}", to - 1));
    let query = questions(&slug, 2, 320).swap_remove(4);
    let every = [
        &manifest,
        &validate,
        &export,
        &page(0),
        &diff(2),
        &query,
        &part(0),
        &part(1),
    ]
    .map(Clone::clone);
    for (file, kind, asked) in [
        (named("00000.json"), "commit", every.to_vec()),
        (named("00002.json"), "commit", every.to_vec()),
        (
            named("part-00000000000000000001"),
            "part",
            vec![export, page(0), diff(1), query.clone(), part(0)],
        ),
        (
            named("part-00000000000000000002"),
            "part",
            vec![page(300), diff(2), query, part(1)],
        ),
    ] {
        let sound = fs::read(&file).unwrap();
        let mut wrong = sound.clone();
        // In every block, as not every one of them is read by each.
        for byte in wrong.iter_mut().skip(300).step_by(10_000) {
            *byte ^= 1;
        }
        fs::write(&file, wrong).unwrap();
        world = world.restart_with(|options| options).await;
        for question in &asked {
            let answer = ask(&world, question).await.unwrap();
            let told = format!("{question:?} of {}", file.display());
            assert_eq!(
                (answer.code(), answer.error()),
                (503, "table_damaged"),
                "{told}: {}",
                answer.body
            );
            assert!(!answer.header("retry-after").is_empty(), "{told}");
        }
        assert!(counted(&metrics, kind).await > 0, "{}", file.display());
        fs::write(&file, sound).unwrap();
    }
    for question in &every {
        assert_eq!(ask(&world, question).await.unwrap().code(), 200, "{question:?}");
    }
}
