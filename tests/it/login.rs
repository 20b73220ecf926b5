//! `sluice login` and the commands that use its key: the program, the service and the pages of the person who approves.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::apps::{App, hidden};
use tests::world::project_body;
use tests::{Answer, Http, Options};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::accounts::Site;
use crate::binary;

/// A person's machine: a home folder, and nothing of the environment of the tests.
struct Machine {
    home: TempDir,
}

/// What a command said, and its exit code.
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Machine {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    fn credentials(&self) -> PathBuf {
        self.home.path().join("config/sluice/credentials.json")
    }

    fn command(&self, server: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env("SLUICE_SERVER", server)
            .env("HOME", self.home.path())
            .env("XDG_CONFIG_HOME", self.home.path().join("config"))
            .env_remove("SLUICE_KEY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn run(&self, server: &str, arguments: &[&str]) -> Ended {
        ended(self.command(server, arguments).spawn().unwrap(), String::new()).await
    }

    /// Begins a login, and returns it with the code that it shows.
    async fn begin(&self, server: &str) -> (Child, String) {
        let mut child = self
            .command(server, &["login", "--device", "ada-laptop"])
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).await.unwrap();
        child.stderr = Some(stderr.into_inner());
        let page = format!("Open {server}/console/login and type ");
        let rest = line.strip_prefix(&page).unwrap_or_else(|| panic!("{line}"));
        let (code, rest) = rest.split_once(',').unwrap();
        assert_eq!(rest, " if you started this yourself.\n");
        (child, code.to_owned())
    }
}

async fn ended(mut child: Child, mut stderr: String) -> Ended {
    let mut stdout = String::new();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (read, also) = tokio::join!(out.read_to_string(&mut stdout), err.read_to_string(&mut stderr));
    read.and(also).unwrap();
    let code = child.wait().await.unwrap().code().unwrap();
    Ended { code, stdout, stderr }
}

/// The browser of the person.
struct Person {
    browser: App,
    session: String,
}

impl Person {
    async fn send(&self, step: &str, fields: &[(&str, &str)]) -> Answer {
        let page = self.browser.browse(&self.session, "/console/login", None).await;
        let html = String::from_utf8(page.expect(200).bytes).unwrap();
        let token = hidden(&html, "form_token");
        let mut all = vec![("form_token", token.as_str())];
        all.extend(fields);
        let path = format!("/console/login{step}");
        self.browser.browse(&self.session, &path, Some(&all)).await
    }

    async fn approve(&self, code: &str, agent: &str) {
        let fields = [("code", code), ("agent", "new"), ("new_name", agent)];
        self.send("/approve", &fields).await.expect(303);
    }
}

async fn start() -> (Site, Person) {
    let site = Site::start(None, |options: Options| options).await;
    let (_, session) = site.signed_in("ada@example.org").await;
    let browser = App::known(site.http.base(), "none");
    (site, Person { browser, session })
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_approves_a_device_whose_commands_then_use_its_key() {
    let (site, person) = start().await;
    let (machine, server) = (Machine::new(), site.http.base().to_owned());
    // Without a key a command says how to get one.
    let nobody = machine.run(&server, &["whoami"]).await;
    assert_eq!(nobody.code, 5, "{}", nobody.stderr);
    assert!(nobody.stderr.contains("`sluice login`"), "{}", nobody.stderr);
    assert_eq!(machine.run(&server, &["uploads"]).await.code, 5);

    let (login, code) = machine.begin(&server).await;
    assert!(!machine.credentials().exists());
    let page = person.send("", &[("code", &code)]).await.expect(200);
    let html = String::from_utf8(page.bytes).unwrap();
    assert!(
        html.contains("ada-laptop") && html.contains("all that the agent can"),
        "{html}"
    );
    person.approve(&code, "tide-gauge").await;
    let done = ended(login, String::new()).await;
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stdout.starts_with("You are `tide-gauge` of Ada until 20"),
        "{}",
        done.stdout
    );

    let file = machine.credentials();
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let whoami = machine.run(&server, &["whoami"]).await;
    assert_eq!(whoami.code, 0, "{}", whoami.stderr);
    let path = file.display().to_string();
    for words in [
        "agent      tide-gauge of Ada",
        path.as_str(),
        " until 20",
        "projects   0 of ",
    ] {
        assert!(whoami.stdout.contains(words), "{words}: {}", whoami.stdout);
    }
    let shown: Value = serde_json::from_str(&machine.run(&server, &["whoami", "--json"]).await.stdout).unwrap();
    assert_eq!(
        (&shown["name"], &shown["key"]["from"]),
        (&json!("tide-gauge"), &json!(path))
    );

    // The key of the file makes, pushes and reads; one that is given comes before it.
    let saved: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let key = saved["services"][&server]["key"].as_str().unwrap().to_owned();
    let http = Http::new(&server).with(&key);
    http.post("/projects", &project_body("levels")).await.expect(201);
    let records = machine.home.path().join("rows.ndjson");
    fs::write(&records, "{\"station\": \"a\", \"sample\": 1}\n").unwrap();
    let pushed = machine
        .run(
            &server,
            &["push", "rows.ndjson", "--project", "levels", "--state", "state"],
        )
        .await;
    assert_eq!(pushed.code, 0, "{}{}", pushed.stdout, pushed.stderr);
    let query = [
        "query",
        "levels",
        "SELECT count(*) AS n FROM records",
        "--format",
        "csv",
    ];
    let counted = machine.run(&server, &query).await;
    assert_eq!(counted.stdout, "n\n1\n", "{}", counted.stderr);
    let given = machine
        .run(&server, &[&query[..], &["--key", "km_nobody"]].concat())
        .await;
    assert_eq!(given.code, 5, "{}", given.stderr);
    assert!(given.stderr.contains("`sluice login`"), "{}", given.stderr);

    // An end is for good.
    let missing = machine.run(&server, &["archive", "nothing"]).await;
    assert_eq!(missing.code, 7, "{}", missing.stderr);
    let unsaid = machine.run(&server, &["delete", "levels"]).await;
    assert_eq!(unsaid.code, 3, "{}", unsaid.stderr);
    let archived = machine.run(&server, &["archive", "levels", "--json"]).await;
    let archived: Value = serde_json::from_str(&archived.stdout).unwrap();
    assert_eq!(archived["status"], "archived");

    // What others may read is not used, and the command that repairs it is said.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = machine.run(&server, &["whoami"]).await;
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(
        refused.stderr.contains(&format!("chmod 600 '{path}'")),
        "{}",
        refused.stderr
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_is_rejected_keeps_nothing() {
    let (site, person) = start().await;
    let machine = Machine::new();
    let (login, code) = machine.begin(site.http.base()).await;
    person.send("/reject", &[("code", &code)]).await.expect(303);
    let rejected = ended(login, String::new()).await;
    assert_eq!(rejected.code, 5, "{}", rejected.stderr);
    assert!(rejected.stderr.contains("rejected"), "{}", rejected.stderr);
    assert!(!machine.credentials().exists());
}

/// Keys that a service which is none was sent.
type Sent = Arc<Mutex<Vec<String>>>;

/// Starts a service that ends every login as too late, and keeps the keys that it is sent.
async fn late_service() -> (String, Sent) {
    let sent = Sent::default();
    let seen = Arc::clone(&sent);
    let me = move |headers: HeaderMap| {
        let key = headers.get("authorization").map(|key| key.to_str().unwrap().to_owned());
        seen.lock().extend(key);
        let body = json!({"error": "login_not_approved", "message": "late", "status": "expired"});
        async move { (StatusCode::UNAUTHORIZED, body.to_string()) }
    };
    let begun = json!({"code": "BCDF-GHJK", "key": "km_late", "pollSeconds": 1}).to_string();
    let begin = move || async move { (StatusCode::ACCEPTED, begun.clone()) };
    let router = Router::new().route("/agents/login", post(begin)).route("/me", get(me));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}"), sent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_is_late_keeps_nothing_and_another_service_gets_no_key() {
    let (server, sent) = late_service().await;
    let machine = Machine::new();
    let (login, code) = machine.begin(&server).await;
    assert_eq!(code, "BCDF-GHJK");
    let late = ended(login, String::new()).await;
    assert_eq!(late.code, 3, "{}", late.stderr);
    assert!(!machine.credentials().exists());
    assert_eq!(*sent.lock(), ["Bearer km_late"]);

    // A key of another origin stays at home, also if only the port differs.
    let folder = machine.credentials().parent().unwrap().to_owned();
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let saved = json!({"services": {"http://127.0.0.1:1": {"key": "km_other", "agent": "a", "operator": "b"}}});
    fs::write(machine.credentials(), saved.to_string()).unwrap();
    fs::set_permissions(machine.credentials(), fs::Permissions::from_mode(0o600)).unwrap();
    let nobody = machine.run(&server, &["whoami"]).await;
    assert_eq!(nobody.code, 5, "{}", nobody.stderr);
    let unreachable = machine.run("http://127.0.0.1:1", &["whoami"]).await;
    assert_eq!(unreachable.code, 6, "{}", unreachable.stderr);
    assert_eq!(sent.lock().len(), 1);
}
