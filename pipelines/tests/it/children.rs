//! Trials in real processes: what condemns a message, and what does not.
//!
//! Invariant: one test at a time has children, because they are counted.

use std::ops::Range;
use std::process::Command;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use eventlog::Record;
use messages::{KNOWLEDGE_TOPIC, UnitSubmission, UnitText};
use pipelines::isolation::{Isolation as _, Probe, ProbeChildren, ProbeResult, ProbeSettings};
use pipelines::message::{Source, Submission};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use types::{AgentId, Clock as _, ContributionId, OperatorId, UnitId, UploadLayout};
use uploads::{Compression, PartTag, UploadStore};

use crate::world::{World, config, texts};

/// One test at a time has children.
static ALONE: Mutex<()> = Mutex::const_new(());

/// A store that never answers.
#[derive(Debug)]
struct Silent;

#[async_trait]
impl UploadStore for Silent {
    async fn begin(&self, _: &UploadLayout, _: Duration) -> Result<Option<Vec<String>>, uploads::Error> {
        Err(uploads::Error::Closed)
    }

    async fn complete(&self, _: &UploadLayout, _: &[PartTag]) -> Result<(), uploads::Error> {
        Err(uploads::Error::Closed)
    }

    async fn read(&self, _: &UploadLayout, _: u32, _: Range<u64>) -> Result<Bytes, uploads::Error> {
        std::future::pending().await
    }

    async fn delete(&self, _: ContributionId) -> Result<(), uploads::Error> {
        Err(uploads::Error::Closed)
    }
}

fn settings() -> ProbeSettings {
    let program = env!("CARGO_BIN_EXE_trial-child").into();
    ProbeSettings {
        memory: 512 << 20,
        ..ProbeSettings::new(program, Duration::from_secs(30), 2)
    }
}

/// The children of this process that live.
fn living() -> Vec<String> {
    let me = std::process::id();
    let tasks = std::fs::read_dir(format!("/proc/{me}/task")).unwrap();
    let children = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    let children: Vec<String> = children
        .flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let lives = |child: &String| {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .is_some_and(|state| !state.starts_with(['Z', 'X']))
    };
    children.into_iter().filter(lives).collect()
}

/// Its text claims to be as long as the compressed bytes allow, which nobody has the memory for.
fn greedy(submission: &Submission) -> Record {
    let record = submission.record().unwrap();
    let head = head_of(&record.value);
    let mut head: Value = serde_json::from_slice(head).unwrap();
    let block = vec![0; 4 << 20];
    head["bytes"] = json!(block.len() * 254);
    let value = [head.to_string().as_bytes(), b"\n", &block].concat();
    Record {
        value: value.into(),
        ..record
    }
}

fn head_of(value: &[u8]) -> &[u8] {
    value.split(|byte| *byte == b'\n').next().unwrap()
}

fn upload_of(world: &World) -> (Record, UploadLayout) {
    let mut submission = world.submission(world.dataset(), Vec::new());
    let layout = UploadLayout {
        upload: submission.contribution,
        bytes: 10,
        parts: 1,
        part_size: 10,
        compression: Compression::None,
    };
    submission.source = Source::Upload(layout);
    (submission.record().unwrap(), layout)
}

fn unit(world: &World) -> Record {
    let now = world.clock.now();
    let id = UnitId::new(now);
    let submission = UnitSubmission {
        format: messages::BASE_FORMAT,
        unit: id,
        chain: id,
        predecessor: None,
        generation: 0,
        agent: AgentId::new(now),
        operator: OperatorId::new(now),
        submitted_at: now,
        text: UnitText {
            title: "A title of some words".to_owned(),
            body: "Some words about what was measured, and how.".to_owned(),
            category: "performance-tuning".to_owned(),
            source_declaration: "Measured by us".to_owned(),
        },
        origin: None,
    };
    let record = submission.record().unwrap();
    assert_eq!(record.key, KNOWLEDGE_TOPIC.as_bytes());
    record
}

#[tokio::test]
async fn harmless_messages_of_every_kind_survive_in_one_child() {
    let _alone = ALONE.lock().await;
    let world = World::asleep(config()).await;
    let children = ProbeChildren::new(settings());
    assert!(living().is_empty(), "nothing is started before it is needed");
    let dataset = world.dataset();
    let batch = world.submission(dataset, texts(["a", "b"])).record().unwrap();
    let refused = world.submission(dataset, vec![json!({"text": 1})]).record().unwrap();
    let nothing = Record {
        value: b"nothing".as_slice().into(),
        ..batch.clone()
    };
    for record in [&batch, &refused, &nothing] {
        assert_eq!(children.probe(Probe::Batch(record)).await, ProbeResult::Survived);
    }
    let lines = "{\"text\": \"a line\"}\n".repeat(100_000);
    let upload = world
        .upload(dataset, lines.as_bytes(), 1 << 20, Compression::None)
        .await;
    let Source::Upload(layout) = &upload.source else {
        panic!("{upload:?}");
    };
    let trial = Probe::Upload {
        record: &upload.record().unwrap(),
        layout,
        objects: &world.objects,
    };
    assert_eq!(children.probe(trial).await, ProbeResult::Survived);
    assert_eq!(children.probe(Probe::Unit(&unit(&world))).await, ProbeResult::Survived);
    assert_eq!(living().len(), 1);
}

#[tokio::test]
async fn a_batch_that_needs_too_much_memory_is_condemned_and_the_next_one_survives() {
    let _alone = ALONE.lock().await;
    let world = World::asleep(config()).await;
    let children = ProbeChildren::new(settings());
    let submission = world.submission(world.dataset(), texts(["a"]));
    let died = children.probe(Probe::Batch(&greedy(&submission))).await;
    assert_eq!(
        died,
        ProbeResult::Died {
            how: "SIGABRT".to_owned()
        }
    );
    let record = submission.record().unwrap();
    assert_eq!(children.probe(Probe::Batch(&record)).await, ProbeResult::Survived);
}

#[tokio::test]
async fn a_kill_from_outside_a_time_out_and_a_failed_start_condemn_nothing() {
    let _alone = ALONE.lock().await;
    let world = World::asleep(config()).await;
    let (record, layout) = upload_of(&world);
    let trial = Probe::Upload {
        record: &record,
        layout: &layout,
        objects: &Silent,
    };
    for (signal, number) in [("-KILL", "9"), ("-TERM", "15")] {
        let children = ProbeChildren::new(settings());
        let killing = async {
            let child = loop {
                match living().first() {
                    Some(child) => break child.clone(),
                    None => tokio::task::yield_now().await,
                }
            };
            assert!(Command::new("kill").args([signal, &child]).status().unwrap().success());
        };
        let (result, ()) = tokio::join!(children.probe(trial), killing);
        let ProbeResult::Unknown { why } = result else {
            panic!("{result:?}");
        };
        // Where it comes before the child is ready, it is a start that failed.
        assert!(why.contains(number) || why.contains("started"), "{why}");
    }
    let hasty = ProbeChildren::new(ProbeSettings {
        timeout: Duration::from_millis(50),
        ..settings()
    });
    let ProbeResult::Unknown { why } = hasty.probe(trial).await else {
        panic!("it took its time");
    };
    assert!(why.contains("longer than 50ms"), "{why}");
    for program in ["/nonexistent/program", "/bin/false"] {
        let none = ProbeChildren::new(ProbeSettings::new(program.into(), Duration::from_secs(30), 2));
        let result = none.probe(trial).await;
        assert!(matches!(result, ProbeResult::Unknown { .. }), "{program}: {result:?}");
    }
}
