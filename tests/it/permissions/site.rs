//! A service with one caller for each column of the table.
//!
//! Invariant: a credential that must not work stopped working before anybody used it, so no memory of an earlier call
//! can let it in.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api::Operations;
use api::rules::accounts::{ClaimCodeParts, ClaimCodeText};
use oauth::{Access, Hash, Scopes, Storage as _};
use reqwest::Method;
use reqwest::redirect::Policy;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use store::{
    AgentCreated, Allowance, ClaimCodeAdded, HourlyLimit, Language, NewAgent, NewClaimCode, NewSession, NewToken,
    NewUnit, Store, TokenAdded, UnitOutcome, UnitSubmitted,
};
use tempfile::TempDir;
use tests::apps::{App, Wish, hidden};
use tests::letters::letter_to;
use tests::{Answer, Http, Options, Server};
use tokio::sync::OnceCell;
use types::unit::{Judge, UnitResolution, UnitScores};
use types::vocabulary::JudgeKind;
use types::{AgentId, ClaimCodeId, ContributionId, OperatorId, SessionId, Timestamp, UnitId};

use crate::accounts::{TERMS, connect, now};
use crate::binary;

const HOUR: Duration = Duration::from_hours(1);

/// Credential as a caller sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Credential {
    Nothing,
    Bearer(String),
    /// Token of a session, in the cookie of the console.
    Session(String),
}

/// Operator with its credentials.
#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) operator: OperatorId,
    pub(super) token: String,
    pub(super) key: String,
    pub(super) session: String,
}

/// Request that is valid in everything but its caller.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Option<Vec<u8>>,
}

impl Call {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers: Vec::new(),
            body: None,
        }
    }

    pub(super) fn post(path: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::POST, path, body.to_string())
    }

    pub(super) fn new(method: Method, path: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: vec![("content-type", "application/json".to_owned())],
            body: Some(body.into()),
        }
    }

    pub(super) fn with(mut self, header: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((header, value.into()));
        self
    }
}

/// A running service with its callers.
pub(super) struct Site {
    pub(super) server: Server,
    pub(super) operations: Operations,
    /// Operator whose agent owns the items.
    pub(super) owner: Person,
    /// Another operator.
    pub(super) other: Person,
    /// An operator that was suspended.
    suspended: Person,
    pending: String,
    revoked: Vec<String>,
    /// Tokens of apps, by caller.
    tokens: Vec<(&'static str, String)>,
    app: OnceCell<App>,
    pub(super) store: Store,
    client: reqwest::Client,
    names: AtomicUsize,
    folder: TempDir,
}

impl Site {
    /// Starts a service on the database at `url`; on a file of its own without one.
    pub(super) async fn start(url: Option<&str>, change: impl FnOnce(Options) -> Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(binary(), folder.path().join("data"))
            .with("SLUICE__SIGNUP__OPEN", "true")
            .with("SLUICE__MAIL__PER_DAY", 1_000_000)
            .with("SLUICE__LIMITS__AGENTS_PER_OPERATOR", 1_000_000)
            .with("SLUICE__LIMITS__KNOWLEDGE_PER_DAY", 1_000_000)
            .with("SLUICE__LIMITS__SUBMISSIONS_PER_AGENT_PER_HOUR", 1_000_000)
            .with("SLUICE__LIMITS__REVISIONS_PER_AGENT_PER_HOUR", 1_000_000)
            .with("SLUICE__LIMITS__RATINGS_PER_AGENT_PER_HOUR", 1_000_000)
            .with("SLUICE__LIMITS__REPORTS_PER_IP_PER_HOUR", 1_000_000)
            .with("SLUICE__LIMITS__COMMENTS_PER_AGENT_PER_HOUR", 1_000_000)
            .with("SLUICE__LIMITS__REQUESTS_PER_AGENT_PER_HOUR", 1_000_000)
            .with("SLUICE__LIMITS__ANSWERS_PER_AGENT_PER_HOUR", 1_000_000)
            .with("SLUICE__LIMITS__DECISIONS_PER_AGENT_PER_HOUR", 1_000_000)
            .with("SLUICE__LIMITS__REVIEWS_PER_AGENT_PER_HOUR", 1_000_000);
        let options = match url {
            Some(url) => options.with("SLUICE__DATABASE__URL", url),
            None => options,
        };
        let options = change(options);
        let server = Server::start(&options).await;
        let file = format!("sqlite://{}", options.data().join("sluice.db").display());
        let store = connect(url.unwrap_or(&file)).await;
        let nobody = Person {
            operator: OperatorId::new(now()),
            token: String::new(),
            key: String::new(),
            session: String::new(),
        };
        let limits = sluice::config::LoadedConfig::load(None, &[]).unwrap().config.limits;
        let mut site = Self {
            server,
            operations: api::operations(&limits),
            owner: nobody.clone(),
            other: nobody.clone(),
            suspended: nobody,
            pending: String::new(),
            revoked: Vec::new(),
            tokens: Vec::new(),
            app: OnceCell::new(),
            store,
            client: s3_server::caller().redirect(Policy::none()).build().unwrap(),
            names: AtomicUsize::new(0),
            folder,
        };
        site.owner = site.person().await;
        site.other = site.person().await;
        site.suspended = site.person().await;
        site.tokens = site.tokens_of_apps().await;
        let reason = "a reason".to_owned();
        site.store
            .operator_suspend(site.suspended.operator, reason, now())
            .await
            .unwrap();
        site.revoked = site.revoked_keys().await;
        site.pending = site.claimed_key().await;
        site
    }

    /// Signs a person up who has a session, a token and an agent.
    async fn person(&self) -> Person {
        let token = self.verification_token().await;
        let session = secret("session");
        let new = NewSession {
            id: SessionId::new(now()),
            token_hash: Sha256::digest(&session).into(),
            expires_at: now().plus(HOUR),
            address: String::new(),
            user_agent: String::new(),
        };
        let accounts = self.store.accounts();
        let used = accounts.verify(Sha256::digest(&token).into(), TERMS.to_owned(), Some(new), now());
        let operator = used.await.unwrap().unwrap();
        let token = secret("wto");
        let new = NewToken {
            operator,
            token_hash: Sha256::digest(&token).into(),
            label: String::new(),
            now: now(),
        };
        let added = self.store.accounts().token_add(new, 9).await.unwrap();
        assert!(matches!(added, TokenAdded::Added(_)), "{added:?}");
        Person {
            operator,
            token,
            key: self.agent(operator).await.1,
            session,
        }
    }

    /// Makes an agent, as `POST /agents` does.
    pub(super) async fn agent(&self, operator: OperatorId) -> (AgentId, String) {
        let (key, name, id) = (secret("km"), self.name("agent"), AgentId::new(now()));
        let new = NewAgent {
            id,
            operator,
            skeleton: api::names::skeleton(&name),
            name,
            wallet_address: None,
            description: None,
            key_hash: Sha256::digest(&key).into(),
            now: now(),
        };
        assert_eq!(self.store.agent_create(new, 999).await.unwrap(), AgentCreated::Created);
        (id, key)
    }

    /// Keys of the owner that no longer work: one replaced at once, one of an agent that was removed.
    async fn revoked_keys(&self) -> Vec<String> {
        let (operator, accounts) = (self.owner.operator, self.store.accounts());
        let (agent, replaced) = self.agent(operator).await;
        let hash = Sha256::digest(secret("km")).into();
        let rotated = accounts.agent_key_rotate(operator, agent, hash, Duration::ZERO, now());
        assert!(rotated.await.unwrap());
        let (agent, removed) = self.agent(operator).await;
        assert!(accounts.agent_remove(operator, agent, now()).await.unwrap());
        vec![replaced, removed]
    }

    /// The app that acts as agents of the owner.
    pub(super) async fn app(&self) -> &App {
        let register = || App::register(self.server.base(), "an app");
        self.app.get_or_init(register).await
    }

    /// Id of an agent of the owner.
    pub(super) async fn agent_of_owner(&self) -> String {
        let agents = self
            .store
            .accounts()
            .agents_of(self.owner.operator, now())
            .await
            .unwrap();
        let agent = agents.iter().find(|agent| agent.removed_at.is_none()).unwrap();
        agent.id.to_string()
    }

    /// Connects the console of the owner to an agent. Returns the agent's id and the token of the forms of the session.
    pub(super) async fn connected_console(&self) -> (String, String) {
        let agent = self.agent_of_owner().await;
        let connected = self.store.oauth();
        let connected = connected.console_connect(self.owner.operator, agent.parse().unwrap(), now());
        assert!(connected.await.unwrap());
        (agent, self.form_token().await)
    }

    /// Token of the forms of the owner's session.
    pub(super) async fn form_token(&self) -> String {
        let session = Credential::Session(self.owner.session.clone());
        let page = Call::get("/console/settings").with("accept", "text/html");
        let html = String::from_utf8(self.send(&session, page).await.bytes).unwrap();
        hidden(&html, "form_token")
    }

    /// Tokens with exactly one scope, and tokens that no longer work.
    async fn tokens_of_apps(&self) -> Vec<(&'static str, String)> {
        let (app, oauth) = (self.app().await, self.store.oauth());
        let (agent, operator) = (self.agent_of_owner().await, self.owner.operator);
        let (session, mut tokens) = (&self.owner.session, Vec::new());
        let token = async |session: &str, resource: &str, scopes: &str, agent: &str| {
            let wish = Wish {
                resource,
                scopes,
                agent,
            };
            app.connect(session, &wish).await.text("/access_token").to_owned()
        };
        for (caller, resource, scope) in [
            ("oauth_read_mcp", "/mcp", "read"),
            ("oauth_write_mcp", "/mcp", "write"),
            ("oauth_spend_mcp", "/mcp", "spend"),
            ("oauth_write_directory", "/mcp/directory", "write"),
        ] {
            tokens.push((caller, token(session, resource, scope, &agent).await));
        }
        // One whose hour is over.
        let connection = oauth.connections_of(operator, now()).await.unwrap().remove(0);
        let expired = secret("wta");
        let access = Access {
            connection: connection.id,
            scopes: Scopes::ALL,
            expires_at: Timestamp::from_micros(now().micros() - 1),
        };
        let hash = Hash(Sha256::digest(&expired).into());
        assert!(self.store.add_access(hash, &access).await.unwrap());
        tokens.push(("oauth_expired", expired));
        // One of an agent that was removed, of a connection that was ended, and of a person who is suspended.
        let (removed, _) = self.agent(operator).await;
        let of_removed = token(session, "/mcp", "read write spend", &removed.to_string()).await;
        assert!(
            self.store
                .accounts()
                .agent_remove(operator, removed, now())
                .await
                .unwrap()
        );
        tokens.push(("oauth_expired", of_removed));
        let ended = app
            .connect(
                session,
                &Wish {
                    resource: "/mcp",
                    scopes: "read write spend",
                    agent: &agent,
                },
            )
            .await;
        let form = [("token", ended.text("/refresh_token")), ("client_id", &app.id)];
        app.send("/oauth/revoke", &form).await.expect(200);
        tokens.push(("oauth_expired", ended.text("/access_token").to_owned()));
        let of_suspended = token(&self.suspended.session, "/mcp", "read write spend", "new").await;
        tokens.push(("oauth_expired", of_suspended));
        tokens
    }

    /// Key of a claim that its operator has not decided.
    async fn claimed_key(&self) -> String {
        let body = json!({"code": self.claim_code().await, "name": self.name("claimed")});
        let claimed = self.http().post("/agents/claim", &body).await.expect(202);
        claimed.text("/key").to_owned()
    }

    /// Token of the letter to somebody who has just signed up.
    pub(super) async fn verification_token(&self) -> String {
        let email = self.email();
        self.http().post("/operators", &sign_up(&email)).await.expect(201);
        letter_to(&self.folder.path().join("data/mail"), &email).await.token()
    }

    /// A new claim code of the owner.
    pub(super) async fn claim_code(&self) -> String {
        let text = ClaimCodeText::generate().unwrap().reveal();
        let parts = ClaimCodeParts::of(&text).unwrap();
        let new = NewClaimCode {
            id: ClaimCodeId::new(now()),
            operator: self.owner.operator,
            lookup: parts.lookup,
            secret_hash: parts.secret_hash,
            expires_at: now().plus(HOUR / 4),
            now: now(),
        };
        let added = self.store.accounts().claim_code_add(new, 9_999).await.unwrap();
        assert_eq!(added, ClaimCodeAdded::Added);
        text
    }

    /// Submits a unit of the owner with this price and publishes it, as a worker would. Returns its id.
    pub(super) async fn unit(&self, price: Option<i64>) -> String {
        self.unit_of(&self.owner, price).await
    }

    /// The same of another person, with a price in micro-USDC. The rows are made here: the worker of the service would
    /// judge the text.
    pub(super) async fn unit_of(&self, person: &Person, price_micro: Option<i64>) -> String {
        let agents = self.store.accounts().agents_of(person.operator, now()).await.unwrap();
        let agent = agents.iter().find(|agent| agent.removed_at.is_none()).unwrap().id;
        let (body, now) = (self.name("A text"), now());
        let id = UnitId::new(now);
        let new = NewUnit {
            id,
            revises: None,
            agent,
            operator: person.operator,
            title: "A title".to_owned(),
            text_hash: *blake3::hash(body.as_bytes()).as_bytes(),
            length: body.len() as u64,
            body,
            category: "tool-usage".to_owned(),
            source_declaration: "Ran here today.".to_owned(),
            language: Language::English,
            license: "platform-standard".to_owned(),
            price_micro,
            trial_sale: false,
            submission: Vec::new(),
            held: None,
            now,
            first_sweep: now.plus(Duration::from_hours(24)),
        };
        let hourly = HourlyLimit {
            most: 1_000_000,
            window: Duration::from_hours(1),
        };
        let allowance = Allowance {
            limit: 1_000_000,
            day: now.day(),
        };
        let submitted = self.store.knowledge().submit(new, hourly, allowance).await.unwrap();
        assert_eq!(submitted, UnitSubmitted::Submitted);
        let scores = UnitScores {
            accuracy: 60,
            novelty: 60,
            reproducibility: 60,
            specificity: 60,
            total: 60,
        };
        let judge = Judge {
            kind: JudgeKind::Heuristic,
            name: "test".to_owned(),
        };
        let outcome = UnitOutcome {
            id,
            generation: 0,
            at: now,
            resolution: UnitResolution::Published {
                scores,
                judge,
                language: Language::English,
                near: None,
                embedder: None,
            },
            report: Vec::new(),
        };
        let applied = self.store.knowledge().apply(vec![outcome]).await.unwrap();
        assert!(applied[0].changed);
        id.to_string()
    }

    /// A caller without a credential.
    pub(super) fn http(&self) -> Http {
        self.server.http()
    }

    /// A caller with the key of the agent that owns the items.
    pub(super) fn author(&self) -> Http {
        self.http().with(&self.owner.key)
    }

    /// A name that nothing here has had.
    pub(super) fn name(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.names.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(super) fn email(&self) -> String {
        format!("{}@example.org", self.name("person"))
    }

    /// Credentials of a caller of the table, each of which must be answered alike; none if the service has no such
    /// callers.
    pub(super) fn credentials(&self, caller: &str) -> Vec<Credential> {
        let bearer = |text: &str| vec![Credential::Bearer(text.to_owned())];
        match caller {
            "none" => vec![Credential::Nothing],
            // Text without the form of a credential is refused before a lookup, a well-formed one after it.
            "garbage" => vec![
                Credential::Bearer("nonsense".to_owned()),
                Credential::Bearer(secret("km")),
                Credential::Bearer(secret("wto")),
            ],
            "pending_key" => bearer(&self.pending),
            "key" => bearer(&self.owner.key),
            "other_key" => bearer(&self.other.key),
            "revoked_key" => self.revoked.iter().cloned().map(Credential::Bearer).collect(),
            "suspended_key" => bearer(&self.suspended.key),
            "op_token" => bearer(&self.owner.token),
            "other_op_token" => bearer(&self.other.token),
            "suspended_op_token" => bearer(&self.suspended.token),
            "console_session" => vec![Credential::Session(self.owner.session.clone())],
            caller => {
                let tokens = self.tokens.iter().filter(|(other, _)| *other == caller);
                tokens.map(|(_, token)| Credential::Bearer(token.clone())).collect()
            }
        }
    }

    /// True if the service has a route for this method and path.
    pub(super) async fn has_route(&self, method: &str, path: &str) -> bool {
        let method: Method = method.parse().unwrap();
        let answer = self.http().send(method, path, &[], None).await.unwrap();
        !matches!(answer.code(), 404 | 405)
    }

    /// Sends a call.
    pub(super) async fn send(&self, credential: &Credential, call: Call) -> Answer {
        let mut request = self
            .client
            .request(call.method, format!("{}{}", self.server.base(), call.path));
        request = match credential {
            Credential::Nothing => request,
            Credential::Bearer(text) => request.bearer_auth(text),
            Credential::Session(token) => request.header("cookie", format!("__Host-sluice={token}")),
        };
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        if let Some(body) = call.body {
            request = request.body(body);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.bytes().await.unwrap().to_vec();
        Answer {
            status,
            headers,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            bytes,
        }
    }
}

/// Body of a sign-up.
pub(super) fn sign_up(email: &str) -> Value {
    json!({"email": email, "displayName": "Ada", "acceptTerms": TERMS})
}

/// A secret of this kind. It is long enough to be looked up, and nothing has had it.
fn secret(kind: &str) -> String {
    format!("{kind}_{}", ContributionId::new(now()))
}
