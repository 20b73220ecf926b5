//! Small reads over HTTP against a bare axum server that answers the same bytes: requests per second of the server's
//! processor time.
//!
//! The load comes from `wrk` with 32 connections, which is a package of Debian. Each door is measured at both servers
//! in turn, and of each the best round counts, so that the rest of the machine takes least part in it. The dataset
//! `few` has one version, `many` has hundreds by many contributors: a read must not cost more there. The same reads as
//! tools of MCP are measured against the calls that they repeat.
//!
//! ```text
//! bench doors [--seconds N] [--server PROGRAM]
//! ```

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::response::IntoResponse as _;
use axum::routing::get;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tests::world::{Agent, Operator, contribute, merged, project_body};
use tests::{Http, Options, Server};

use crate::report::Report;
use crate::usage::cpu_of;
use crate::{argument, contract, records};

/// Open connections.
const CONNECTIONS: &str = "32";
/// Seconds of load of a round, unless `--seconds` says otherwise, and rounds.
const SECONDS: u64 = 3;
const ROUNDS: usize = 3;
/// Operators that contribute to `many`, and batches of each.
const CONTRIBUTORS: usize = 20;
const BATCHES: usize = 15;
/// The names of the doors that are also measured at `many`.
const BY_SLUG: [(&str, &str, f64); 2] = [
    ("GET /projects/{slug}, with key", "", 0.2),
    ("GET /projects/{slug}/data?limit=10, with key", "/data?limit=10", 0.2),
];
/// Tools with the calls that they repeat.
const TOOLS: [(&str, &str, &str); 2] = [
    ("dataset_info", "/projects/few", r#"{"slug": "few"}"#),
    (
        "read_dataset",
        "/projects/few/data?limit=10",
        r#"{"slug": "few", "limit": 10}"#,
    ),
];
/// The longest that a server may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer that the bare server repeats.
#[derive(Debug, Deserialize, Serialize)]
struct Door {
    /// Path and query.
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// The bare server as a process of its own; killed when dropped.
#[derive(Debug)]
struct Bare {
    child: Child,
    base: String,
}

impl Bare {
    /// Starts one that answers `doors`.
    async fn start(folder: &Path, doors: &[&Door]) -> Self {
        let file = folder.join("doors.json");
        fs::write(&file, serde_json::to_vec(doors).unwrap()).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .arg("bare")
            .arg(&file)
            .arg(address.to_string())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let bare = Self {
            child,
            base: format!("http://{address}"),
        };
        let deadline = Instant::now() + PATIENCE;
        while tokio::net::TcpStream::connect(address).await.is_err() {
            assert!(Instant::now() < deadline, "the bare server did not start");
            tokio::time::sleep(tests::server::POLL).await;
        }
        bare
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs the bare server in this process: the doors of a file, at an address.
pub(crate) async fn bare(file: &Path, address: &str) {
    let doors: Vec<Door> = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let mut router = Router::new();
    for Door { path, headers, body } in doors {
        let body = Bytes::from(body);
        let headers: axum::http::HeaderMap = headers
            .into_iter()
            .map(|(name, value)| {
                let name: axum::http::HeaderName = name.parse().unwrap();
                (name, value.parse().unwrap())
            })
            .collect();
        let path = path.split('?').next().unwrap().to_owned();
        router = router.route(
            &path,
            get(async move || (headers.clone(), body.clone()).into_response()),
        );
    }
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    axum::serve(listener, router).await.unwrap();
}

/// One round of `wrk`.
struct Round {
    /// Requests per second of the server's processor time.
    per_cpu: f64,
    /// Requests per second.
    per_second: f64,
}

/// Loads a path of the server with this process id. `script` is a file that says how `wrk` makes its requests.
fn load(base: &str, pid: u32, path: &str, key: &str, seconds: u64, script: Option<&Path>) -> Round {
    let before = cpu_of(pid);
    let mut wrk = Command::new("wrk");
    wrk.args(["-t1", "-c", CONNECTIONS, "-d", &format!("{seconds}s")])
        .args(["-H", &format!("authorization: Bearer {key}")]);
    if let Some(script) = script {
        wrk.arg("-s").arg(script);
    }
    let output = wrk.arg(format!("{base}{path}")).output().unwrap();
    let used = cpu_of(pid).saturating_sub(before).as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "wrk: {text}");
    assert!(
        !text.contains("Non-2xx") && !text.contains("Socket errors"),
        "{path}: {text}"
    );
    let word_before = |what: &str| text.split(what).next().and_then(|text| text.split_whitespace().last());
    let requests: f64 = word_before(" requests in ").unwrap().parse().unwrap();
    let per_second = text.split("Requests/sec:").nth(1).unwrap();
    Round {
        per_cpu: requests / used,
        per_second: per_second.split_whitespace().next().unwrap().parse().unwrap(),
    }
}

/// The answer of the service at a path.
async fn door(http: &Http, path: &str) -> Door {
    let answer = http.get(path).await.expect(200);
    let of_connection = ["content-length", "date", "transfer-encoding", "connection"];
    let headers = answer.headers.iter();
    Door {
        path: path.to_owned(),
        headers: headers
            .filter(|(name, _)| !of_connection.contains(&name.as_str()))
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect(),
        body: String::from_utf8(answer.bytes).unwrap(),
    }
}

/// Makes the two datasets; an agent that reads them.
async fn people(options: &Options, http: &Http) -> Agent {
    let operator = Operator::create(options, "bench");
    let reader = Agent::create(http, &operator, "bench.agent").await;
    for slug in ["few", "many"] {
        let project = merged(project_body(slug), json!({"schemaDef": contract()}));
        reader.http.post("/projects", &project).await.expect(201);
        contribute(&reader.http, slug, &records(0, 500)).await;
    }
    for number in 1..=CONTRIBUTORS {
        let operator = Operator::create(options, &format!("bench-{number}"));
        let agent = Agent::create(http, &operator, &format!("bench.agent.{number}")).await;
        for batch in 0..BATCHES {
            contribute(&agent.http, "many", &records(number * BATCHES + batch, 20)).await;
        }
    }
    reader
}

pub(crate) async fn run(report: &mut Report) {
    if Command::new("wrk").arg("-v").output().is_err() {
        println!("skipped: there is no wrk here; apt-get install wrk");
        return;
    }
    let seconds = argument("--seconds").map_or(SECONDS, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new(crate::server(), folder.path().join("data"));
    let server = Server::start(&options).await;
    let reader = people(&options, &server.http()).await;

    let mut doors = vec![("GET /licenses".to_owned(), door(&reader.http, "/licenses").await, 0.6)];
    for slug in ["few", "many"] {
        for (name, rest, goal) in BY_SLUG {
            let door = door(&reader.http, &format!("/projects/{slug}{rest}")).await;
            doors.push((name.replace("{slug}", slug), door, goal));
        }
    }
    let bare = Bare::start(
        folder.path(),
        &doors.iter().map(|(_, door, _)| door).collect::<Vec<_>>(),
    )
    .await;
    let mut rows = vec![
        (
            "connections, rounds, seconds of each".to_owned(),
            format!("{CONNECTIONS}, {ROUNDS}, {seconds}"),
        ),
        (
            "door".to_owned(),
            "per CPU second: service, bare axum; ratio (goal); per second: service, bare axum".to_owned(),
        ),
    ];
    for (name, door, goal) in &doors {
        let best = |rounds: &[Round], of: fn(&Round) -> f64| rounds.iter().map(of).fold(0.0, f64::max);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            theirs.push(load(
                &bare.base,
                bare.child.id(),
                &door.path,
                &reader.key,
                seconds,
                None,
            ));
            ours.push(load(
                server.base(),
                server.pid(),
                &door.path,
                &reader.key,
                seconds,
                None,
            ));
        }
        let [ours_cpu, theirs_cpu] = [&ours, &theirs].map(|rounds| best(rounds, |round| round.per_cpu));
        let [ours, theirs] = [&ours, &theirs].map(|rounds| best(rounds, |round| round.per_second));
        let ratio = ours_cpu / theirs_cpu;
        rows.push((
            format!("{name}: {} bytes", door.body.len()),
            format!("{ours_cpu:.0}, {theirs_cpu:.0}; {ratio:.2} ({goal}); {ours:.0}, {theirs:.0}"),
        ));
    }
    report.table("small reads over HTTP against bare axum", &rows);
    let mut rows = Vec::new();
    for (name, path, arguments) in TOOLS {
        // The cost of a call is measured on answers that are errors neither at REST nor inside a message.
        let message = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": serde_json::from_str::<Value>(arguments).unwrap()},
        });
        let answer = reader.http.post("/mcp", &message).await.expect(200);
        assert_eq!(answer.body["result"]["isError"], false, "{}", answer.body);
        let script = folder.path().join(format!("{name}.lua"));
        let headers = r#"wrk.headers["content-type"] = "application/json""#;
        let accept = r#"wrk.headers["accept"] = "application/json, text/event-stream""#;
        let text = format!("wrk.method = \"POST\"\n{headers}\n{accept}\nwrk.body = [==[{message}]==]\n");
        fs::write(&script, text).unwrap();
        let (mut rest, mut tool) = (0.0_f64, 0.0_f64);
        for _ in 0..ROUNDS {
            let (base, pid) = (server.base(), server.pid());
            rest = rest.max(load(base, pid, path, &reader.key, seconds, None).per_cpu);
            tool = tool.max(load(base, pid, "/mcp", &reader.key, seconds, Some(&script)).per_cpu);
        }
        rows.push((
            format!("{name}, {path}"),
            format!(
                "per CPU second: tool {tool:.0}, call {rest:.0}; cost {:.2} (1.3)",
                rest / tool
            ),
        ));
    }
    report.table("tools of MCP against their calls", &rows);
}
