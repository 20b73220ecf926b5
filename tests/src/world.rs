//! A running service with people on it: what most tests start from.
//!
//! Invariant: every name made here is new in its service, so tests can share one.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{DEADLINE, Options, Server};
use crate::{Answer, Http};

/// A person who may create agents and projects.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The id.
    pub id: String,
    /// The operator token.
    pub token: String,
}

impl Operator {
    /// Creates an operator with the administration command; works while the service runs, and before.
    pub fn create(options: &Options, name: &str) -> Self {
        let email = format!("{name}@example.org");
        let printed = options.admin(&["operator", "add", "--email", &email, "--name", name]);
        let text = |member: &str| {
            let value = printed[member].as_str();
            value
                .unwrap_or_else(|| panic!("admin operator add printed {printed}"))
                .to_owned()
        };
        Self {
            id: text("operatorId"),
            token: text("token"),
        }
    }
}

/// An agent and a caller with its key.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// The key, shown once.
    pub key: String,
    /// A caller with the key.
    pub http: Http,
}

impl Agent {
    /// Registers an agent under `operator`.
    pub async fn create(http: &Http, operator: &Operator, name: &str) -> Self {
        let answer = http
            .with(&operator.token)
            .post("/agents", &json!({"name": name}))
            .await
            .expect(201);
        let key = answer.text("/key").to_owned();
        Self {
            id: answer.text("/id").to_owned(),
            name: name.to_owned(),
            http: http.with(&key),
            key,
        }
    }

    /// The same agent as a caller of another start of the service.
    #[must_use]
    pub fn at(&self, http: &Http) -> Self {
        Self {
            http: http.with(&self.key),
            ..self.clone()
        }
    }
}

/// A service in a folder of its own, an operator and its agent.
#[derive(Debug)]
pub struct World {
    /// The service.
    pub server: Server,
    /// A caller without a credential.
    pub http: Http,
    /// The operator.
    pub operator: Operator,
    /// A caller with the operator's token.
    pub owner: Http,
    /// Its agent.
    pub agent: Agent,
    names: AtomicUsize,
    folder: TempDir,
}

impl World {
    /// Starts one with the program `binary`.
    pub async fn start(binary: &Path) -> Self {
        Self::start_with(binary, |options| options).await
    }

    /// Starts one whose options `change` has changed.
    pub async fn start_with(binary: &Path, change: impl FnOnce(Options) -> Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = change(Options::new(binary, folder.path().join("data")));
        let server = Server::start(&options).await;
        let http = server.http();
        let operator = Operator::create(&options, "first");
        let agent = Agent::create(&http, &operator, "first.agent").await;
        Self {
            owner: http.with(&operator.token),
            server,
            http,
            operator,
            agent,
            names: AtomicUsize::new(0),
            folder,
        }
    }

    /// The folder that goes away with the world; the service's data is in `data` below it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops the service and starts it again on the same data with changed options.
    pub async fn restart_with(self, change: impl FnOnce(Options) -> Options) -> Self {
        let options = change(self.server.options().clone());
        let (server, rest) = self.apart();
        let status = server.stop().await;
        assert!(status.success(), "{status}");
        rest.started(&options).await
    }

    /// Starts a service that is dead on the same data with changed options.
    pub async fn again_with(self, change: impl FnOnce(Options) -> Options) -> Self {
        let options = change(self.server.options().clone());
        self.apart().1.started(&options).await
    }

    fn apart(self) -> (Server, Rest) {
        let rest = Rest {
            operator: self.operator,
            agent: self.agent,
            names: self.names,
            folder: self.folder,
        };
        (self.server, rest)
    }

    /// A name that this world has not seen: `prefix-1`, `prefix-2`, ….
    pub fn name(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.names.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Another operator with an agent.
    pub async fn newcomer(&self) -> (Operator, Agent) {
        let name = self.name("newcomer");
        let operator = Operator::create(self.server.options(), &name);
        let agent = Agent::create(&self.http, &operator, &format!("{name}.agent")).await;
        (operator, agent)
    }

    /// A new public project of the agent's operator with [`contract`]; its slug.
    pub async fn project(&self) -> String {
        self.project_with(json!({})).await
    }

    /// As [`Self::project`], with these members of the body added or replaced.
    pub async fn project_with(&self, changes: Value) -> String {
        let slug = self.name("dataset");
        let body = merged(project_body(&slug), changes);
        self.agent.http.post("/projects", &body).await.expect(201);
        slug
    }
}

/// A world between two starts of its service.
struct Rest {
    operator: Operator,
    agent: Agent,
    names: AtomicUsize,
    folder: TempDir,
}

impl Rest {
    async fn started(self, options: &Options) -> World {
        let server = Server::start(options).await;
        let http = server.http();
        World {
            owner: http.with(&self.operator.token),
            agent: self.agent.at(&http),
            server,
            http,
            operator: self.operator,
            names: self.names,
            folder: self.folder,
        }
    }
}

/// The contract of most tests.
pub fn contract() -> Value {
    json!({"fields": [
        {"name": "station", "type": "string", "required": true},
        {"name": "sample", "type": "integer", "required": true},
        {"name": "value", "type": "number"},
        {"name": "at", "type": "timestamp"},
        {"name": "good", "type": "boolean"},
        {"name": "more", "type": "json"},
    ]})
}

/// A request body that creates the project `slug`.
pub fn project_body(slug: &str) -> Value {
    json!({
        "slug": slug,
        "title": "Readings of the stations",
        "readme": "Readings that the tests make up, one row for each sample of a station.",
        "schemaDef": contract(),
    })
}

/// `count` records of [`contract`] that no other `series` has.
pub fn records(series: &str, count: usize) -> Vec<Value> {
    (0..count)
        .map(|sample| json!({"station": series, "sample": sample, "value": 0.5}))
        .collect()
}

/// The body of a contribution.
pub fn batch(records: &[Value]) -> Value {
    json!({"records": records, "sourceDeclaration": "made up by a test"})
}

/// `base` with the members of `changes`; a null removes one.
pub fn merged(mut base: Value, changes: Value) -> Value {
    let members = base.as_object_mut().expect("an object");
    if let Value::Object(changes) = changes {
        for (name, value) in changes {
            if value.is_null() {
                members.remove(&name);
            } else {
                members.insert(name, value);
            }
        }
    }
    base
}

/// Contributes and waits until the outcome is known.
pub async fn contribute(http: &Http, slug: &str, records: &[Value]) -> Answer {
    let path = format!("/projects/{slug}/contribute?wait=20");
    let answer = http.post(&path, &batch(records)).await.expect(201);
    decided(http, slug, answer.text("/id")).await
}

/// Waits until a contribution is merged or rejected.
pub async fn decided(http: &Http, slug: &str, id: &str) -> Answer {
    decided_within(DEADLINE, http, slug, id).await
}

/// The same for so long.
pub async fn decided_within(patience: Duration, http: &Http, slug: &str, id: &str) -> Answer {
    let deadline = Instant::now() + patience;
    loop {
        let answer = http
            .get(&format!("/projects/{slug}/contributions/{id}?wait=20"))
            .await
            .expect(200);
        if matches!(answer.text("/status"), "merged" | "rejected") {
            return answer;
        }
        assert!(Instant::now() < deadline, "still open: {}", answer.body);
    }
}

/// Every record of a version, page by page.
pub async fn all_data(http: &Http, slug: &str, version: u64) -> Vec<Value> {
    let mut records = Vec::new();
    loop {
        let offset = records.len();
        let path = format!("/projects/{slug}/data?version={version}&limit=1000&offset={offset}");
        let answer = http.get(&path).await.expect(200);
        let page = answer.body["items"].as_array().expect("items").clone();
        if page.is_empty() {
            return records;
        }
        records.extend(page);
    }
}
