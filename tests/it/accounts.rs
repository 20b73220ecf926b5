//! Accounts through the service's own doors: sign-up, claims, limits and suspension, on every database.
//!
//! Letters are read from the folder that the service writes them to. What a person does in the console is done on the
//! database here.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use api::rules::accounts::{ClaimCodeParts, ClaimCodeText};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use store::{Approval, ClaimCodeAdded, NewClaimCode, NewSession, NewToken, Schema, SpendLimits, Store, TokenAdded};
use tempfile::TempDir;
use tests::letters::{Received, letter_to, letters_to};
use tests::{Answer, Http, Options, Server};
use types::clock::SystemClock;
use types::{ClaimCodeId, Clock, ContributionId, OperatorId, SessionId, Timestamp};

use crate::binary;

const HOUR: Duration = Duration::from_hours(1);
/// Version of the terms in force.
pub(crate) const TERMS: &str = "2026-11-01";

/// A service with open sign-up on a database of its own.
pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) http: Http,
    pub(crate) store: Store,
    folder: TempDir,
}

impl Site {
    /// Starts a service on the database at `url`; on a file of its own without one.
    pub(crate) async fn start(url: Option<&str>, change: impl FnOnce(Options) -> Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(binary(), folder.path().join("data")).with("SLUICE__SIGNUP__OPEN", "true");
        if let Some(url) = url {
            options = options.with("SLUICE__DATABASE__URL", url);
        }
        let options = change(options);
        let server = Server::start(&options).await;
        let file = format!("sqlite://{}", options.data().join("sluice.db").display());
        let store = connect(url.unwrap_or(&file)).await;
        Self {
            http: server.http(),
            server,
            store,
            folder,
        }
    }

    pub(crate) async fn restart(self, change: impl FnOnce(Options) -> Options) -> Self {
        let options = change(self.server.options().clone());
        assert!(self.server.stop().await.success());
        let server = Server::start(&options).await;
        Self {
            http: server.http(),
            server,
            ..self
        }
    }

    /// Waits until the process has killed itself at a crash point, and starts another on its data.
    pub(crate) async fn start_again(mut self) -> Self {
        let ended = self.server.exits_by(Instant::now() + tests::server::DEADLINE).await;
        assert!(ended.is_some_and(|status| !status.success()), "{ended:?}");
        let options = self.server.options().clone().with("SLUICE_FAULT_POINT", "");
        let server = Server::start(&options).await;
        Self {
            http: server.http(),
            server,
            ..self
        }
    }

    pub(crate) fn mail(&self) -> std::path::PathBuf {
        self.folder.path().join("data/mail")
    }

    pub(crate) async fn letter(&self, to: &str) -> Received {
        letter_to(&self.mail(), to).await
    }

    /// Signs up and verifies, and returns the operator.
    pub(crate) async fn operator(&self, email: &str) -> OperatorId {
        let signed_up = self.http.post("/operators", &sign_up(email)).await.expect(201);
        let token = self.letter(email).await.token();
        let verified = self
            .http
            .post("/operators/verify", &json!({"token": token}))
            .await
            .expect(200);
        assert_eq!(verified.text("/id"), signed_up.text("/id"));
        verified.text("/id").parse().unwrap()
    }

    /// Makes an operator token, as the console does.
    pub(crate) async fn token(&self, operator: OperatorId) -> String {
        let secret = format!("wto_{}", ContributionId::new(now()));
        let new = NewToken {
            operator,
            token_hash: Sha256::digest(&secret).into(),
            label: String::new(),
            now: now(),
        };
        let added = self.store.accounts().token_add(new, 9).await.unwrap();
        assert!(matches!(added, TokenAdded::Added(_)), "{added:?}");
        secret
    }

    /// Gives an operator credits.
    pub(crate) fn grant(&self, operator: OperatorId, cents: &str) {
        let operator = operator.to_string();
        let options = self.server.options();
        options.admin(&["credits", "grant", &operator, "--cents", cents]);
    }

    /// Takes a dataset down, as administrators do after a report.
    pub(crate) async fn take_down(&self, slug: &str) {
        let report = json!({
            "kind": "dataset", "id": slug, "reason": "copyright", "detail": "It is a copy of our yearbook.",
            "email": "rights@example.org",
        });
        let sent = self.http.post("/reports", &report).await.expect(201);
        self.server.options().admin(&["reports", "uphold", sent.text("/id")]);
    }

    /// Pays a purchase back, as administrators do after a dispute.
    pub(crate) fn refund(&self, sale: &str) {
        let options = self.server.options();
        let opened = options.admin(&["disputes", "open", sale, "--reason", "made up"]);
        let dispute = opened["id"].as_str().unwrap();
        options.admin(&["disputes", "resolve", dispute, "--refund", "--answer", "refunded"]);
    }

    /// Signs up and verifies in a browser, and returns the operator with the token of the session.
    pub(crate) async fn signed_in(&self, email: &str) -> (OperatorId, String) {
        self.http.post("/operators", &sign_up(email)).await.expect(201);
        let token = self.letter(email).await.token();
        let session = format!("wts_{}", ContributionId::new(now()));
        let new = NewSession {
            id: SessionId::new(now()),
            token_hash: Sha256::digest(&session).into(),
            expires_at: now().plus(HOUR),
            address: String::new(),
            user_agent: String::new(),
        };
        let (hash, terms) = (Sha256::digest(&token).into(), TERMS.to_owned());
        let verified = self.store.accounts().verify(hash, terms, Some(new), now()).await;
        (verified.unwrap().unwrap(), session)
    }

    /// Removes every agent of an operator, as the console does.
    pub(crate) async fn remove_agents(&self, operator: OperatorId) {
        let accounts = self.store.accounts();
        for agent in accounts.agents_of(operator, now()).await.unwrap() {
            assert!(accounts.agent_remove(operator, agent.id, now()).await.unwrap());
        }
    }

    /// Makes a claim code, as the console does.
    pub(crate) async fn code(&self, operator: OperatorId) -> String {
        let text = ClaimCodeText::generate().unwrap().reveal();
        let parts = ClaimCodeParts::of(&text).unwrap();
        let new = NewClaimCode {
            id: ClaimCodeId::new(now()),
            operator,
            lookup: parts.lookup,
            secret_hash: parts.secret_hash,
            expires_at: now().plus(HOUR / 4),
            now: now(),
        };
        let added = self.store.accounts().claim_code_add(new, 99).await.unwrap();
        assert_eq!(added, ClaimCodeAdded::Added);
        text
    }

    async fn approve(&self, operator: OperatorId, phrase: &str) -> Approval {
        let accounts = self.store.accounts();
        let claim = accounts.claims_of(operator, 1, now()).await.unwrap()[0].id;
        accounts
            .claim_approve(operator, claim, phrase, SpendLimits::default(), now())
            .await
            .unwrap()
    }
}

pub(crate) async fn connect(url: &str) -> Store {
    let options = store::Options {
        schema: Schema::Current,
        ..store::Options::default()
    };
    Store::connect(url, options).await.unwrap()
}

pub(crate) fn now() -> Timestamp {
    SystemClock::default().now()
}

fn sign_up(email: &str) -> Value {
    json!({"email": email, "displayName": "Ada", "acceptTerms": TERMS})
}

fn claim(code: &str, name: &str) -> Value {
    json!({"code": code, "name": name})
}

/// Runs a test on every database that is there.
pub(crate) async fn on_each(test: impl AsyncFn(Option<String>)) {
    test(None).await;
    #[cfg(feature = "postgres")]
    if let Some(server) = store::testing::Postgres::shared() {
        let url = tokio::task::block_in_place(|| server.fresh_database());
        Store::connect(&url, store::Options::default())
            .await
            .unwrap()
            .close()
            .await;
        test(Some(url)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_signs_up_and_an_agent_claims() {
    on_each(async |url| {
        let site = Site::start(url.as_deref(), |options| options).await;
        let operator = site.operator("ada@example.org").await;
        let code = site.code(operator).await;
        let claimed = site
            .http
            .post("/agents/claim", &claim(&code, "tide-gauge"))
            .await
            .expect(202);
        let agent = site.http.with(claimed.text("/key"));
        for path in ["/projects", "/projects/none"] {
            let waiting = agent.get(path).await.expect(401);
            assert_eq!(waiting.text("/status"), "pending");
            assert!(!waiting.text("/hint").is_empty() && !waiting.text("/getKey").is_empty());
        }
        assert_eq!(
            agent.get("/agents/claim/status").await.expect(200).text("/status"),
            "pending"
        );
        let soon = agent.get("/agents/claim/status").await.expect(429);
        let seconds: u64 = soon.header("retry-after").parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
        assert_eq!(site.approve(operator, "no such words").await, Approval::WrongPhrase);
        let approved = site.approve(operator, claimed.text("/phrase")).await;
        assert!(matches!(approved, Approval::Approved(_)), "{approved:?}");
        agent.soon("/projects", 200).await;
        // A claim that is decided stays so.
        assert!(matches!(
            site.approve(operator, claimed.text("/phrase")).await,
            Approval::Decided(_)
        ));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_64_identical_claims_one_is_made() {
    on_each(async |url| {
        let site = Site::start(url.as_deref(), |options| options).await;
        let operator = site.operator("ada@example.org").await;
        let code = site.code(operator).await;
        let body = claim(&code, "gauge");
        let calls = (0..64).map(|_| site.http.post("/agents/claim", &body));
        let answers: Vec<Answer> = futures_util::future::join_all(calls).await;
        let count = |status| answers.iter().filter(|answer| answer.code() == status).count();
        assert_eq!((count(202), count(409)), (1, 63));
        let claims = site.store.accounts().claims_of(operator, 99, now()).await.unwrap();
        assert_eq!(claims.len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_locks_no_code_and_five_wrong_tries_do() {
    on_each(async |url| {
        let site = Site::start(url.as_deref(), |options| options).await;
        let operator = site.operator("ada@example.org").await;
        let code = site.code(operator).await;
        let (first, second) = code.split_at(20);
        for number in 0..20 {
            let guess = format!("wtc_{number:016}{second}");
            let refused = site
                .http
                .post("/agents/claim", &claim(&guess, "gauge"))
                .await
                .expect(400);
            assert_eq!(refused.error(), "claim_code_unknown");
        }
        for _ in 0..4 {
            let wrong = format!("{first}{}", "0".repeat(32));
            site.http
                .post("/agents/claim", &claim(&wrong, "gauge"))
                .await
                .expect(400);
        }
        site.http
            .post("/agents/claim", &claim(&code, "gauge"))
            .await
            .expect(202);

        let code = site.code(operator).await;
        let wrong = format!("{}{}", &code[..20], "0".repeat(32));
        for _ in 0..5 {
            site.http
                .post("/agents/claim", &claim(&wrong, "other"))
                .await
                .expect(400);
        }
        site.http
            .post("/agents/claim", &claim(&code, "other"))
            .await
            .expect(423);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspension_reaches_every_credential_within_a_second_and_is_told() {
    on_each(async |url| {
        let site = Site::start(url.as_deref(), |options| options).await;
        let operator = site.operator("ada@example.org").await;
        let token = site.token(operator).await;
        let owner = site.http.with(&token);
        let created = owner.post("/agents", &json!({"name": "gauge"})).await.expect(201);
        let agent = site.http.with(created.text("/key"));
        agent.get("/projects").await.expect(200);
        let id = operator.to_string();
        let options = site.server.options();
        options.admin(&["operator", "suspend", &id, "--reason", "copied the records of others"]);
        let begun = Instant::now();
        for http in [&owner, &agent] {
            let refused = http.soon("/projects", 401).await;
            assert_eq!(refused.error(), "account_suspended");
        }
        assert!(begun.elapsed() < Duration::from_secs(1));
        // The first letter was that of the sign-up.
        let letters = letters_to(&site.mail(), "ada@example.org", 2).await;
        let told = letters
            .iter()
            .find(|letter| letter.subject.contains("suspended"))
            .unwrap();
        for part in [
            "copied the records of others",
            "Reply to this e-mail",
            "operator tokens",
            "keys of your agents",
            "download addresses",
            "Nothing of yours is sold",
            "no earnings are paid out",
            "signed out",
            "links for signing in",
            "Every app is disconnected",
            "Claim codes",
            "Uploads that were not completed",
        ] {
            assert!(told.words().contains(part), "{part}: {}", told.text);
            assert!(told.html.contains(part), "{part}: {}", told.html);
        }
        options.admin(&[
            "operator",
            "restore",
            &id,
            "--reason",
            "the records were the operator's own",
        ]);
        agent.soon("/projects", 200).await;
        owner.soon("/projects", 200).await;
        let letters = letters_to(&site.mail(), "ada@example.org", 3).await;
        let again = letters
            .iter()
            .find(|letter| letter.subject.contains("active again"))
            .unwrap();
        for part in ["Connect your apps anew", "begin anew the"] {
            assert!(again.words().contains(part), "{part}: {}", again.text);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_invitation_nobody_signs_up() {
    let site = Site::start(None, |options| options.with("SLUICE__SIGNUP__OPEN", "false")).await;
    let refused = site
        .http
        .post("/operators", &sign_up("ada@example.org"))
        .await
        .expect(403);
    assert!(refused.text("/invite").ends_with("/invite"), "{}", refused.body);
    let options = site.server.options();
    let invited = options.admin(&["invite", "Ada@Example.org"]);
    assert_eq!(invited["invited"], true);
    site.operator("ada@example.org").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_is_not_verified_is_deleted_after_72_hours() {
    on_each(async |url| {
        let site = Site::start(url.as_deref(), |options| options).await;
        site.http
            .post("/operators", &sign_up("ada@example.org"))
            .await
            .expect(201);
        let token = site.letter("ada@example.org").await.token();
        let site = site
            .restart(|options| options.with("SLUICE__CLOCK__OFFSET", "24h"))
            .await;
        let late = site
            .http
            .post("/operators/verify", &json!({"token": token}))
            .await
            .expect(410);
        assert_eq!(late.error(), "token_expired");
        site.http
            .post("/operators", &sign_up("ada@example.org"))
            .await
            .expect(409);
        let site = site
            .restart(|options| options.with("SLUICE__CLOCK__OFFSET", "73h"))
            .await;
        site.http
            .post("/operators", &sign_up("ada@example.org"))
            .await
            .expect(201);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_in_a_sign_up_leaves_all_of_it_or_nothing() {
    for (point, is_made) in [("signup.rows", false), ("signup.commit", true), ("job.done", true)] {
        let site = Site::start(None, |options| options.with("SLUICE_FAULT_POINT", point)).await;
        let path = "/operators";
        let body = sign_up("ada@example.org").to_string();
        let cut = site
            .http
            .send(reqwest::Method::POST, path, &[], Some(body.into_bytes()))
            .await;
        // After the answer the letter is sent, and the process ends before the job's row is deleted.
        assert_eq!(cut.is_ok(), point == "job.done", "{point}: {cut:?}");
        let site = site.start_again().await;
        let again = site.http.post(path, &sign_up("ada@example.org")).await;
        assert_eq!(again.code(), if is_made { 409 } else { 201 }, "{point}");
        // Either way one letter is there, under one name for each try, and its link works.
        let letters = letters_to(&site.mail(), "ada@example.org", 1).await;
        assert_eq!(letters.len(), 1, "{point}");
        let verify = json!({"token": letters[0].token()});
        site.http.post("/operators/verify", &verify).await.expect(200);
    }
}

const CHILD: &str = "SLUICE_TEST_APPROVES";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_in_an_approval_leaves_all_of_it_or_nothing() {
    for point in ["approve.decided", "approve.agent", "approve.key"] {
        let site = Site::start(None, |options| options).await;
        let operator = site.operator("ada@example.org").await;
        let code = site.code(operator).await;
        let claimed = site
            .http
            .post("/agents/claim", &claim(&code, "gauge"))
            .await
            .expect(202);
        let database = site.server.options().data().join("sluice.db");
        let child = json!({
            "point": point, "database": database, "operator": operator.to_string(), "phrase": claimed.text("/phrase"),
        });
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "accounts::approves_when_started_as_another_process"])
            .env(CHILD, child.to_string())
            .status()
            .unwrap();
        assert!(!status.success(), "{point}: {status}");
        // The claim waits as before, with its key.
        let agent = site.http.with(claimed.text("/key"));
        assert_eq!(agent.get("/projects").await.expect(401).text("/status"), "pending");
        let approved = site.approve(operator, claimed.text("/phrase")).await;
        assert!(matches!(approved, Approval::Approved(_)), "{point}: {approved:?}");
        agent.soon("/projects", 200).await;
    }
}

/// Approves the latest claim and is killed at a crash point, when started by the test above.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approves_when_started_as_another_process() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let told: Value = serde_json::from_str(&told).unwrap();
    let text = |member: &str| told[member].as_str().unwrap().to_owned();
    let store = connect(&format!("sqlite://{}", Path::new(&text("database")).display())).await;
    types::fault::arm(text("point"), 1, None, None, String::new());
    let operator = text("operator").parse().unwrap();
    let claim = store.accounts().claims_of(operator, 1, now()).await.unwrap()[0].id;
    let (accounts, phrase) = (store.accounts(), text("phrase"));
    let approved = accounts
        .claim_approve(operator, claim, &phrase, SpendLimits::default(), now())
        .await;
    panic!("not killed: {approved:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limits_of_an_hour_hold_over_a_restart() {
    let site = Site::start(None, |options| {
        options
            .with("SLUICE__LIMITS__SIGN_UPS_PER_IP_PER_HOUR", 3)
            .with("SLUICE__LIMITS__RESENDS_PER_IP_PER_HOUR", 2)
            .with("SLUICE__LIMITS__AGENT_REGISTRATIONS_PER_IP_PER_HOUR", 4)
    })
    .await;
    let calls = [
        ("/operators", json!({"email": "ada"}), 3, "sign_up_limit"),
        (
            "/operators/resend",
            json!({"email": "ada@example.org"}),
            2,
            "resend_limit",
        ),
        ("/agents/claim", claim("wtc_", "gauge"), 4, "registration_limit"),
    ];
    for (path, body, most, _) in &calls {
        for _ in 0..*most {
            assert_ne!(site.http.post(path, body).await.code(), 429, "{path}");
        }
    }
    let site = site.restart(|options| options).await;
    for (path, body, _, code) in &calls {
        let refused = site.http.post(path, body).await.expect(429);
        assert_eq!(refused.error(), *code);
        let seconds: u64 = refused.header("retry-after").parse().unwrap();
        assert!((1..=7_200).contains(&seconds), "{seconds}");
    }
}
