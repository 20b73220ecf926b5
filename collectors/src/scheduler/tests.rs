use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use outbound::testing::{Authority, Names, Reply, Server, Toward};
use outbound::{OutboundClient, Ports, Roots};
use parking_lot::Mutex;
use serde_json::{Value, json};
use types::clock::ManualClock;

use super::*;
use crate::BUNDLED;
use crate::intake::{JudgedRecord, SubmitOutcome};

const HOST: &str = "harbour.example";

/// A service whose gates drop what they know and refuse rows with `bad`.
#[derive(Debug, Default)]
struct Gates {
    records: Mutex<BTreeSet<String>>,
    versions: AtomicUsize,
    keys: Mutex<BTreeSet<String>>,
    /// True while reviews are paused.
    holds: Mutex<bool>,
}

impl Gates {
    fn versions(&self) -> usize {
        self.versions.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Intake for Gates {
    async fn prepare(&self, _source: &CollectorSource) -> Result<(), RunFailure> {
        Ok(())
    }

    async fn judge(&self, _dataset: &str, records: &[Value]) -> Result<Vec<JudgedRecord>, RunFailure> {
        let known = self.records.lock();
        let judge = |record: &Value| match record {
            _ if known.contains(&record.to_string()) => JudgedRecord::Known,
            record if record["id"] == "bad" => JudgedRecord::Refused,
            _ => JudgedRecord::New,
        };
        Ok(records.iter().map(judge).collect())
    }

    async fn submit(
        &self,
        _source: &CollectorSource,
        records: &[Value],
        key: &str,
    ) -> Result<SubmitOutcome, RunFailure> {
        assert!(self.keys.lock().insert(key.to_owned()), "the key {key} was used before");
        if *self.holds.lock() {
            return Ok(SubmitOutcome::Held);
        }
        let mut known = self.records.lock();
        let new = records.iter().filter(|record| known.insert(record.to_string())).count();
        if new == 0 {
            return Ok(SubmitOutcome::Duplicates);
        }
        let version = self.versions.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(SubmitOutcome::Merged {
            version: version as u64,
            accepted: new as u64,
        })
    }
}

/// A scheduler with a server that stands in for every source.
struct Scene {
    scheduler: Scheduler,
    gates: Arc<Gates>,
    clock: Arc<ManualClock>,
    server: Server,
    folder: tempfile::TempDir,
}

pub(crate) const TIDES: &str = r#"
name = "tides"
dataset = "tides"
title = "Tides of a harbour"
publisher = "Harbour"
license = "CC0-1.0"
terms = "https://harbour.example/terms"
description = "Levels of the tide at a harbour, hourly."
schedule = "0 */6 * * *"
[fetch]
url = "https://harbour.example/tides"
format = "json"
[[fields]]
name = "id"
from = "/id"
type = "string"
required = true
"#;

fn tides(more: &str) -> CollectorSource {
    CollectorSource::parse(
        &TIDES.replace("format = \"json\"", &format!("format = \"json\"\n{more}")),
        None,
    )
    .unwrap()
}

async fn opened(folder: &Path) -> Store {
    let url = format!("sqlite://{}/collect.db", folder.display());
    Store::connect(&url, store::Options::default()).await.unwrap()
}

impl Scene {
    async fn new(source: CollectorSource, answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let url = source
            .text
            .fetch
            .url
            .clone()
            .unwrap_or_else(|| format!("https://{HOST}"));
        let host = url::Url::parse(&url).unwrap().host_str().unwrap().to_owned();
        let authority = Authority::default();
        let answer = move |head: &str| {
            if head.starts_with("GET /robots.txt ") {
                Reply::new("404 Not Found", "")
            } else {
                answer(head)
            }
        };
        let server = Server::with_tls(&authority, &[host.as_str()], answer).await;
        Self::with(source, server, &authority, &host).await
    }

    async fn with(source: CollectorSource, server: Server, authority: &Authority, host: &str) -> Self {
        let names = Names::default()
            .with(host, "93.184.216.34")
            .with("inner.example", "10.0.0.8");
        let options = outbound::ClientOptions {
            roots: Roots::Pem(authority.pem()),
            ports: Ports::Only(vec![443]),
            ..outbound::ClientOptions::new("mailto:collectors@example.org")
        };
        let client = OutboundClient::new(options).unwrap();
        let client = client
            .with_resolver(Arc::new(names))
            .with_dialer(Arc::new(Toward::new(server.address())));
        let folder = tempfile::tempdir().unwrap();
        let (gates, clock) = (Arc::new(Gates::default()), Arc::new(ManualClock::default()));
        clock.advance(Duration::from_hours(489_992));
        let scheduler = Scheduler::new(
            opened(folder.path()).await,
            Arc::clone(&clock) as Arc<dyn Clock>,
            Fetcher::new(client, Duration::ZERO),
            Arc::clone(&gates) as Arc<dyn Intake>,
            vec![source],
            SchedulerOptions::default(),
        );
        scheduler.see().await.unwrap();
        Self {
            scheduler,
            gates,
            clock,
            server,
            folder,
        }
    }

    async fn run(&self) -> RunReport {
        let source = Arc::clone(&self.scheduler.sources[0]);
        let report = self.scheduler.once(&source, true, &CancellationToken::new()).await;
        report.unwrap().unwrap()
    }

    async fn next_at(&self) -> Timestamp {
        self.scheduler.store.collectors().all().await.unwrap()[0].next_at
    }
}

fn ok(body: impl AsRef<[u8]>) -> Reply {
    Reply::new("200 OK", body)
}

/// The recorded shape of an answer, without and with the row that is new in the second.
fn answers(name: &str) -> [String; 2] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sources/answers").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once("@@[").unwrap();
    let (new, after) = rest.split_once("]@@").unwrap();
    [format!("{before}{after}"), format!("{before}{new}{after}")]
}

#[tokio::test]
async fn every_source_gives_a_version_then_none_and_one_more_for_a_new_row() {
    for (name, text) in BUNDLED {
        let [first, second] = answers(name);
        let body = Arc::new(Mutex::new(first.clone()));
        let shown = Arc::clone(&body);
        let source = CollectorSource::parse(text, None).unwrap();
        let scene = Scene::new(source, move |_| ok(shown.lock().as_bytes())).await;
        let one = scene.run().await;
        assert_eq!(
            (one.outcome, one.version),
            (RunOutcome::Merged, Some(types::Version(1))),
            "{name}: {one:?}"
        );
        assert!(one.counts.added >= 1 && one.counts.failed == 0, "{name}: {one:?}");
        let again = scene.run().await;
        assert_eq!(
            (again.outcome, again.counts.fetched),
            (RunOutcome::Unchanged, 0),
            "{name}"
        );
        // The same records in other bytes: the gates know every row.
        *body.lock() = format!("{first}\n");
        let same = scene.run().await;
        assert_eq!(
            (same.outcome, same.counts.known),
            (RunOutcome::Unchanged, one.counts.added),
            "{name}: {same:?}"
        );
        *body.lock() = second;
        let news = scene.run().await;
        assert_eq!(
            (news.outcome, news.counts.added),
            (RunOutcome::Merged, 1),
            "{name}: {news:?}"
        );
        assert_eq!(scene.gates.versions(), 2, "{name}");
    }
}

#[tokio::test]
async fn an_answer_that_did_not_change_is_asked_for_by_its_validators() {
    let scene = Scene::new(tides(""), |head| {
        if head.to_lowercase().contains("if-none-match: \"t1\"") {
            Reply::raw("HTTP/1.1 304 Not Modified\r\n\r\n")
        } else {
            Reply::new("200 OK\r\nETag: \"t1\"", r#"[{"id":"a"}]"#)
        }
    })
    .await;
    assert_eq!(scene.run().await.outcome, RunOutcome::Merged);
    assert_eq!(scene.run().await.outcome, RunOutcome::Unchanged);
    let heads = scene.server.heads();
    assert!(heads[0].starts_with("GET /robots.txt "));
    assert!(
        heads[1].contains("Sluice (+mailto:collectors@example.org)"),
        "{}",
        heads[1]
    );
    assert_eq!(heads.len(), 3);
}

#[tokio::test]
async fn bad_input_leaves_the_dataset_and_the_next_run_goes_on() {
    let good = r#"[{"id":"a"},{"id":"b"}]"#;
    let changed = r#"[{"ident":"a"},{"ident":"b"},{"id":"c"}]"#;
    let half = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}",
        good.len(),
        &good[..12]
    );
    let lie = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
    for (code, reply) in [
        ("unreachable", Reply::raw(half)),
        ("form", Reply::raw(format!("HTTP/1.1 200 OK\r\n\r\n{}", &good[..12]))),
        ("form", ok("<html>maintenance</html>")),
        ("form", ok("[]")),
        ("schema_changed", ok(changed)),
        (
            "too_large",
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n"),
        ),
        ("too_large", Reply::raw(lie).then_repeat(chunk)),
        (
            "compressed",
            Reply::new("200 OK\r\nContent-Encoding: gzip", [0x1f, 0x8b, 8, 0]),
        ),
        ("redirect", Reply::new("302 Found\r\nLocation: https://127.0.0.1/", "")),
        (
            "address",
            Reply::new("302 Found\r\nLocation: https://inner.example/", ""),
        ),
        ("redirect", Reply::new("302 Found\r\nLocation: /tides", "")),
        ("status", Reply::new("500 Internal Server Error", "")),
        ("protocol", Reply::raw("SSH-2.0-x\r\n\r\n")),
        (
            "timeout",
            Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[").then_stall(),
        ),
    ] {
        let (turn, wrong) = (Arc::new(Mutex::new(0)), reply.clone());
        let now = Arc::clone(&turn);
        let source = tides("max_mib = 1\ntimeout_seconds = 1");
        let scene = Scene::new(source, move |_| match *now.lock() {
            0 => ok(r#"[{"id":"a"}]"#),
            1 => wrong.clone(),
            _ => ok(good),
        })
        .await;
        assert_eq!(scene.run().await.outcome, RunOutcome::Merged);
        *turn.lock() = 1;
        let failed = scene.run().await;
        let failure = failed.failure.unwrap();
        assert_eq!((failed.outcome, failure.code), (RunOutcome::Failed, code), "{reply:?}");
        assert!(
            !failure.message.contains("inner") && !failure.message.contains("127."),
            "{failure:?}"
        );
        assert_eq!((scene.gates.versions(), failed.cursor), (1, None));
        *turn.lock() = 2;
        let next = scene.run().await;
        assert_eq!(
            (next.outcome, next.counts.added),
            (RunOutcome::Merged, 1),
            "after {code}"
        );
    }
}

#[tokio::test]
async fn a_certificate_of_another_name_or_authority_is_refused() {
    for (served_by, named) in [(None, "other.example"), (Some(Authority::default()), HOST)] {
        let trusted = Authority::default();
        let server = Server::with_tls(served_by.as_ref().unwrap_or(&trusted), &[named], |_| ok("[]")).await;
        let scene = Scene::with(tides(""), server, &trusted, HOST).await;
        assert_eq!(scene.run().await.failure.unwrap().code, "certificate");
    }
}

#[tokio::test]
async fn a_refused_row_is_left_out_and_counted_and_a_row_of_another_form_too() {
    let rows = r#"[{"id":"a"},{"id":"bad"},{"id":"b"},{"ident":1},{"id":"c"},{"id":"c"}]"#;
    let scene = Scene::new(tides(""), move |_| ok(rows)).await;
    let report = scene.run().await;
    let counts = report.counts;
    assert_eq!(report.outcome, RunOutcome::Merged);
    assert_eq!(
        (
            counts.fetched,
            counts.added,
            counts.known,
            counts.refused,
            counts.failed
        ),
        (6, 3, 1, 1, 1)
    );
    assert!(report.cursor.is_some());
}

#[tokio::test]
async fn what_is_held_is_sent_again_and_the_place_stays() {
    let scene = Scene::new(tides(""), |_| ok(r#"[{"id":"a"}]"#)).await;
    *scene.gates.holds.lock() = true;
    let held = scene.run().await;
    assert_eq!((held.outcome, held.cursor), (RunOutcome::Held, None));
    *scene.gates.holds.lock() = false;
    assert_eq!(scene.run().await.outcome, RunOutcome::Merged);
}

#[tokio::test]
async fn pages_are_read_to_the_last_and_a_circle_or_no_end_fails() {
    let by_number = tides("pages = { parameter = \"page\", max = 4 }");
    let scene = Scene::new(by_number, |head| {
        match head.split_once("page=").map(|(_, rest)| &rest[..1]) {
            Some("1") => ok(r#"[{"id":"a"}]"#),
            Some("2") => ok(r#"[{"id":"b"}]"#),
            _ => ok("[]"),
        }
    })
    .await;
    assert_eq!(scene.run().await.counts.added, 2);
    let endless = Scene::new(tides("pages = { parameter = \"page\", max = 4 }"), |_| {
        ok(r#"[{"id":"a"}]"#)
    })
    .await;
    assert_eq!(endless.run().await.failure.unwrap().code, "paging");
    for (next, code) in [
        ("/tides", Some("paging")),
        ("https://inner.example/tides", Some("paging")),
        ("/tides?p=2", None),
    ] {
        let linked = tides("records = \"/items\"\npages = { next = \"/next\" }");
        let scene = Scene::new(linked, move |head| {
            let next = if head.contains("?p=2") {
                Value::Null
            } else {
                next.into()
            };
            ok(json!({"items": [{"id": head.len().to_string()}], "next": next}).to_string())
        })
        .await;
        let report = scene.run().await;
        assert_eq!(report.failure.map(|failure| failure.code), code, "{next}");
        assert_eq!(report.counts.added, if code.is_none() { 2 } else { 0 });
    }
}

#[tokio::test]
async fn robots_txt_decides_and_a_server_that_does_not_answer_for_it_is_left_alone() {
    for (status, rules, code) in [
        ("200 OK", "User-agent: *\nDisallow: /tides", Some("robots")),
        ("503 Service Unavailable", "", Some("status")),
        (
            "200 OK",
            "User-agent: *\nDisallow: /\n\nUser-agent: sluice\nAllow: /",
            None,
        ),
        ("403 Forbidden", "", None),
    ] {
        let authority = Authority::default();
        let server = Server::with_tls(&authority, &[HOST], move |head| {
            if head.starts_with("GET /robots.txt ") {
                Reply::new(status, rules)
            } else {
                ok(r#"[{"id":"a"}]"#)
            }
        })
        .await;
        let scene = Scene::with(tides(""), server, &authority, HOST).await;
        let failure = scene.run().await.failure;
        assert_eq!(failure.map(|failure| failure.code), code, "{status} {rules}");
    }
}

#[tokio::test]
async fn a_failed_run_is_due_again_after_a_pause_and_by_its_schedule_at_the_latest() {
    let scene = Scene::new(tides(""), |_| Reply::new("503 Busy\r\nRetry-After: 1800", "")).await;
    let due_in = async || scene.next_at().await.since(scene.clock.now());
    scene.run().await;
    assert_eq!(due_in().await, Duration::from_mins(30));
    for _ in 0..8 {
        scene.run().await;
    }
    assert!(due_in().await <= Duration::from_hours(6) + MAX_JITTER);
    assert_eq!(scene.scheduler.store.collectors().all().await.unwrap()[0].failures, 9);
}

#[tokio::test]
async fn two_processes_make_one_run_for_each_of_100_due_times() {
    let scene = Scene::new(tides(""), |_| ok(r#"[{"id":"a"}]"#)).await;
    let other = Scheduler {
        store: opened(scene.folder.path()).await,
        ..scene.scheduler.clone()
    };
    let source = Arc::clone(&scene.scheduler.sources[0]);
    let stop = CancellationToken::new();
    let mut due = BTreeSet::new();
    for _ in 0..100 {
        let next = scene.next_at().await;
        assert!(due.insert(next), "{next} was due before");
        scene.clock.advance(next.since(scene.clock.now()));
        let both = tokio::join!(
            scene.scheduler.once(&source, false, &stop),
            other.once(&source, false, &stop),
        );
        let ran = [both.0.unwrap(), both.1.unwrap()].iter().flatten().count();
        assert_eq!(ran, 1, "at {next}");
    }
    let runs = scene.scheduler.store.collectors().runs(200).await.unwrap();
    let times: BTreeSet<_> = runs["tides"].iter().map(|run| run.due_at).collect();
    assert_eq!((runs["tides"].len(), times), (100, due));
    assert_eq!(scene.gates.versions(), 1);
}

#[tokio::test]
async fn a_clock_that_was_ahead_delays_no_run_for_years() {
    let scene = Scene::new(tides(""), |_| ok(r#"[{"id":"a"}]"#)).await;
    let far = scene.clock.now().plus(Duration::from_hours(24 * 400));
    scene
        .scheduler
        .store
        .collectors()
        .reschedule("tides", far)
        .await
        .unwrap();
    let mut runs = JoinSet::new();
    scene
        .scheduler
        .round(&mut runs, &CancellationToken::new())
        .await
        .unwrap();
    assert!(scene.next_at().await.since(scene.clock.now()) <= Duration::from_hours(6) + MAX_JITTER);
    assert!(runs.is_empty());

    // A run of that time whose process died does not hold its lease for years either.
    let (collectors, lease) = (scene.scheduler.store.collectors(), SchedulerOptions::default().lease);
    let run = ContributionId::new(far).to_string();
    assert!(
        collectors
            .begin("tides", &run, far, lease, true)
            .await
            .unwrap()
            .is_some()
    );
    scene.clock.advance(Duration::from_hours(7));
    scene
        .scheduler
        .round(&mut runs, &CancellationToken::new())
        .await
        .unwrap();
    while runs.join_next().await.is_some() {}
    assert_eq!(scene.gates.versions(), 1);
}

#[tokio::test]
async fn a_service_that_stops_leaves_the_run_due_and_counts_no_failure() {
    let scene = Scene::new(tides(""), |_| {
        Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[").then_stall()
    })
    .await;
    let (source, stop) = (Arc::clone(&scene.scheduler.sources[0]), CancellationToken::new());
    let stopping = async {
        while scene.server.heads().len() < 2 {
            tokio::task::yield_now().await;
        }
        stop.cancel();
    };
    let (report, ()) = tokio::join!(scene.scheduler.once(&source, false, &stop), stopping);
    assert_eq!(report.unwrap().unwrap().failure.unwrap().code, "stopped");
    let collectors = scene.scheduler.store.collectors();
    let all = collectors.all().await.unwrap();
    assert!(all[0].next_at <= scene.clock.now());
    assert_eq!((all[0].failures, all[0].leased_until), (0, None));
    assert!(collectors.runs(9).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_changed_definition_reads_the_source_anew() {
    let scene = Scene::new(tides(""), |_| Reply::new("200 OK\r\nETag: \"t\"", r#"[{"id":"a"}]"#)).await;
    let cursor = scene.run().await.cursor.unwrap();
    let changed = tides("max_mib = 2");
    let report = collect(&changed, &scene.scheduler.fetcher, &*scene.gates, "x", Some(&cursor)).await;
    assert_eq!((report.outcome, report.counts.known), (RunOutcome::Unchanged, 1));
}
