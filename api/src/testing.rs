//! A service over temporary directories, for tests of this package.

pub(crate) mod browser;
mod scripted;

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::Response;
use catalog::storage::DurableLocal;
use catalog::{Catalog, CommitOutcome, Merge, PreparedVersion};
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::BodyExt as _;
use messages::SUBMISSION_FORMAT;
use operators::screen::LocalScreener;
use serde_json::Value;
use store::{NewOperator, OutcomeRow, Resolution, Store};
use tempfile::TempDir;
use tower::ServiceExt as _;
use types::clock::ManualClock;
use types::money::MicroUsdc;
use types::{AgentId, Batch, Clock, ContributionId, HumanDuration, LedgerEventId, OperatorId, Size, Timestamp};
use uploads::LocalUploads;
use uploads::Stagings;

use self::scripted::{Scripted, ScriptedFiles};
use crate::config::{Config, Limits};
use crate::rules::letters::{self, LetterPayload};
use crate::secrets::{Secret, SecretKind};
use crate::state::app::{App, ReplicaState};
use crate::state::apps::OAuthApps;
use crate::state::backlog::Backlog;
use crate::state::drain::Drain;
use crate::state::egress::EgressMeter;
use crate::state::files::FileReader;
use crate::state::limit::Limiter;
use crate::state::profiling::ProfileConfig;
use crate::state::relay::Relay;
use crate::state::sandbox::QuerySandbox;
use crate::state::sweeper_config::SweeperConfig;
use crate::state::upload_services::UploadServices;
use crate::state::usage::UsageCounts;
use crate::state::validation::ReviewState;
use crate::state::waiters::Waiters;

/// Returns a limit that is not zero.
pub(crate) const fn count(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

/// Returns the limits of the interface.
pub(crate) fn limits() -> Limits {
    Limits {
        calls_per_ip_per_minute: count(300),
        agent_registrations_per_ip_per_hour: 20,
        sign_ups_per_ip_per_hour: 10,
        resends_per_ip_per_hour: 5,
        agents_per_operator: 5,
        active_projects_per_operator: 3,
        public_contributions_per_day: 200,
        knowledge_per_day: 10,
        submissions_per_agent_per_hour: 12,
        revisions_per_agent_per_hour: 12,
        ratings_per_agent_per_hour: 60,
        validations_per_agent_per_hour: 30,
        comments_per_agent_per_hour: 30,
        reports_per_ip_per_hour: 20,
        requests_per_agent_per_hour: 20,
        answers_per_agent_per_hour: 60,
        decisions_per_agent_per_hour: 60,
        reviews_per_agent_per_hour: 30,
        open_contributions: 100_000,
        open_bytes: Size(4 << 30),
        records_per_contribution: count(500),
        wait: HumanDuration(Duration::from_secs(20)),
        price_change_window: HumanDuration(Duration::from_hours(24)),
        idempotency_window: HumanDuration(Duration::from_hours(24)),
        contribution_body: Size(4 << 20),
        file_body: Size(16 << 20),
        body: Size(1 << 20),
        bodies_per_operator: Size(64 << 20),
        bodies: Size(256 << 20),
        remembered: Size(64 << 20),
        body_patience: HumanDuration(Duration::from_secs(30)),
        page_records: count(1_000),
        default_page_records: count(200),
        diff_records: count(500),
        default_diff_records: count(100),
        query_characters: count(4_000),
        query_rows: count(1_000),
        default_query_rows: count(200),
        query_timeout: HumanDuration(Duration::from_secs(20)),
        query_version: Size(2 << 30),
        part_urls: HumanDuration(Duration::from_mins(15)),
        upload: Size(5 << 30),
        upload_window: HumanDuration(Duration::from_hours(6)),
        open_uploads: 3,
        storage_per_operator: Size(20 << 30),
        egress_per_operator: Size(20 << 30),
        platform_egress_per_month: Size(10 << 40),
    }
}

/// Returns the prices of the service in tests.
pub(crate) fn tariff() -> pay::Tariff {
    pay::Tariff {
        asset: "eip155:84532/0x5111ce0000000000000000000000000000000402".to_owned(),
        fee: "100000:30,1000000:20,10000000:10".parse().unwrap(),
        pack: MicroUsdc(1_000_000),
        egress_block: MicroUsdc(1_250),
        storage_block_day: MicroUsdc(40),
        free_egress_bytes: 20 << 30,
        platform_egress_bytes: 10 << 40,
        given_at_sign_up: MicroUsdc(500_000),
        dispute_window_seconds: 7 * 86_400,
        quote_seconds: 300,
        payout_threshold: MicroUsdc(50_000),
    }
}

/// Returns the configuration of the service in tests.
pub(crate) fn config() -> Config {
    Config {
        public_url: "http://sluice.test".to_owned(),
        trusted_proxies: 0,
        terms_version: "2026-11-01".to_owned(),
        terms_url: "http://sluice.test/terms".to_owned(),
        signup_open: true,
        mails_per_day: 1_000,
        administrator: Some("admin@sluice.test".to_owned()),
        write_format: SUBMISSION_FORMAT,
        has_second_judge: false,
    }
}

/// Returns the contract of the projects in tests.
fn schema_def() -> Value {
    serde_json::json!({"fields": [{"name": "name", "type": "string", "required": true}]})
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: http::HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes.clone()).unwrap()
    }
}

/// Makes a call and lets something happen while it waits. Panics if the call ends before that has happened.
pub(crate) async fn during<A: Debug>(call: impl Future<Output = A>, event: impl Future<Output = ()>) -> A {
    let mut call = pin!(call);
    tokio::select! {
        // The event begins first: a database that answers at once lets the call run to its end without a pause.
        biased;
        () = event => {}
        early = &mut call => panic!("the call did not wait: {early:?}"),
    }
    call.await
}

/// The service without workers: contributions are never judged.
pub(crate) struct Service {
    pub(crate) app: App,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) sandbox: Arc<Scripted>,
    pub(crate) files: Arc<ScriptedFiles>,
    pub(crate) router: axum::Router,
    directory: TempDir,
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::with(config(), limits()).await
    }

    pub(crate) async fn with(config: Config, limits: Limits) -> Self {
        Self::counting(config, limits, Limiter::default()).await
    }

    /// Starts a service whose calls are counted by `limiter`.
    pub(crate) async fn counting(config: Config, limits: Limits, limiter: Limiter) -> Self {
        Self::of(config, limits, limiter, tariff()).await
    }

    /// Starts a service with prices of its own.
    pub(crate) async fn priced(config: Config, limits: Limits, tariff: pay::Tariff) -> Self {
        Self::of(config, limits, Limiter::default(), tariff).await
    }

    async fn of(config: Config, limits: Limits, limiter: Limiter, tariff: pay::Tariff) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let clock = Arc::new(ManualClock::at("2026-11-21T07:00:00Z".parse::<Timestamp>().unwrap()));
        let url = format!("sqlite://{}", path.join("sluice.db").display());
        // How fast a disk is must not decide a test.
        let patient = store::Options {
            timeout: Duration::from_mins(2),
            busy_timeout: Duration::from_mins(1),
            ..store::Options::default()
        };
        let store = Store::connect(&url, patient).await.unwrap();
        let log = eventlog::Embedded::open(path.join("log"), eventlog::EmbeddedOptions::default()).unwrap();
        let objects = Arc::new(DurableLocal::open(path.join("tables")).unwrap());
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
        let catalog = Catalog::open(objects, path.join("index"), Arc::clone(&shared)).unwrap();
        let (relay, _task) = Relay::new(log);
        let sandbox = Arc::new(Scripted::default());
        let files = Arc::new(ScriptedFiles::default());
        let local = LocalUploads::open(path.join("uploads"), catalog::Reserve::default()).unwrap();
        let durable = Arc::new(crate::state::limit::DurableCounters::new(store.clone()));
        let plane = crate::rules::settlement::tests::plane(&store, &shared);
        let app = App {
            apps: OAuthApps::open(&config.public_url, false, store.clone(), Arc::clone(&shared)).unwrap(),
            store,
            catalog,
            relay,
            waiters: Waiters::default(),
            screener: Arc::new(LocalScreener),
            propagator: Arc::new(types::trace::NoTraces),
            clock: shared,
            sandbox: Arc::clone(&sandbox) as Arc<dyn QuerySandbox>,
            files: Arc::clone(&files) as Arc<dyn FileReader>,
            egress: EgressMeter::default(),
            usage: UsageCounts::default(),
            uploads: UploadServices {
                objects: Arc::new(local.clone()),
                local: Some(local),
                stagings: Stagings::default(),
            },
            profiles: ProfileConfig {
                every: HumanDuration(Duration::from_secs(30)),
                at_once: std::num::NonZeroUsize::MIN,
                request_rows: 200_000,
            },
            sweeper: Arc::new(SweeperConfig {
                every: HumanDuration(Duration::from_secs(1)),
                first: HumanDuration(Duration::from_secs(30)),
            }),
            backlog: Backlog::of(&limits),
            validation: ReviewState::default(),
            process: Arc::new(ReplicaState::new(&limits)),
            config: Arc::new(config),
            limits: Arc::new(limits),
            pay: Arc::new(tariff),
            payments: Arc::new(plane),
            direct: None,
            limiter: Arc::new(limiter.with_durable(durable)),
            drain: Drain::default(),
        };
        Self {
            router: crate::router(app.clone()),
            app,
            clock,
            sandbox,
            files,
            directory,
        }
    }

    /// Returns the database as another process has it.
    pub(crate) async fn other_store(&self) -> Store {
        let url = format!("sqlite://{}", self.directory.path().join("sluice.db").display());
        Store::connect(&url, store::Options::default()).await.unwrap()
    }

    /// Returns the folder of the tables.
    pub(crate) fn tables(&self) -> std::path::PathBuf {
        self.directory.path().join("tables")
    }

    /// Returns the folder of the parts of uploads.
    pub(crate) fn uploads(&self) -> std::path::PathBuf {
        self.directory.path().join("uploads")
    }

    /// Creates an operator and returns its token.
    pub(crate) async fn operator(&self) -> String {
        let id = OperatorId::new(self.app.clock.now());
        self.operator_at(&format!("{id}@example.org")).await
    }

    /// Creates the operator of an address and returns its token.
    pub(crate) async fn operator_at(&self, email: &str) -> String {
        let secret = Secret::generate(SecretKind::OperatorToken).unwrap();
        let now = self.app.clock.now();
        let id = OperatorId::new(now);
        let new = NewOperator {
            id,
            email: email.to_owned(),
            display_name: "Somebody".to_owned(),
            terms_version: "2026-11-01".to_owned(),
            token_hash: secret.hash(),
            now,
        };
        assert_eq!(
            self.app.store.operator_create(new).await.unwrap(),
            store::OperatorCreated::Created
        );
        secret.reveal()
    }

    /// Returns the token of the link in the only letter that is due.
    pub(crate) async fn mailed_token(&self) -> String {
        let now = self.app.clock.now();
        let flow = self.app.store.flow();
        let jobs = flow.jobs_lease(now, Duration::from_hours(1), 99).await.unwrap();
        assert_eq!(jobs.len(), 1);
        let letter = letters::letter(&self.app, &jobs[0], now).await;
        flow.job_done(&jobs[0].id).await.unwrap();
        let text = letter.unwrap().unwrap().text;
        let (_, rest) = text.split_once("?token=").unwrap();
        rest.lines().next().unwrap().to_owned()
    }

    /// Grants bought credits to an operator, in micro-USDC.
    pub(crate) async fn granted(&self, operator: OperatorId, amount: i64) {
        let now = self.app.clock.now();
        let event = LedgerEventId::new(now);
        let new = store::NewGrant {
            event,
            asset: self.app.pay.asset.clone(),
            operator,
            amount: MicroUsdc(amount),
            given: false,
            reference: event.to_string(),
            now,
        };
        let granted = self.app.store.money().grant(new).await.unwrap();
        assert_eq!(granted, store::Granted::Done);
    }

    /// Takes a dataset down, as a decision about a report does.
    pub(crate) async fn took_down(&self, slug: &str) {
        let projects = self.app.store.check_projects().await.unwrap();
        let id = projects.iter().find(|project| project.slug == slug).unwrap().id;
        let moderation = self.app.store.moderation();
        let reason = Some(store::ReportReason::Copyright);
        let hidden = moderation.hide(store::ReportKind::Dataset, id.to_string(), reason, self.app.clock.now());
        assert!(hidden.await.unwrap());
    }

    /// Refunds the only sale of a seller to its buyer, a second after which no process takes it for bought.
    pub(crate) async fn refunded(&self, seller: OperatorId) {
        let money = self.app.store.money();
        let held = money
            .sales_of(&self.app.pay.asset, seller, store::SaleState::Held, 9)
            .await;
        let sold = held.unwrap().sales;
        let [sale] = &sold[..] else { panic!("not one sale") };
        self.resolved(sale.id, store::DisputeResolution::Refund { wallet: None })
            .await;
        self.clock.advance(Duration::from_secs(1));
    }

    /// Opens a dispute about a sale and resolves it.
    pub(crate) async fn resolved(&self, sale: types::SaleId, resolution: store::DisputeResolution) {
        let (money, now) = (self.app.store.money(), self.app.clock.now());
        let dispute = store::NewDispute {
            id: types::DisputeId::new(now),
            event: LedgerEventId::new(now),
            sale,
            reason: "made up".to_owned(),
            by: "admin".to_owned(),
            opener: None,
            letters: None,
            now,
        };
        let id = dispute.id;
        let opened = money.dispute_open(dispute).await.unwrap();
        assert!(matches!(opened, store::DisputeOpened::Opened(_)), "{opened:?}");
        let decision = store::DisputeDecision {
            id,
            resolution,
            event: LedgerEventId::new(now),
            by: "admin".to_owned(),
            seller: None,
            answer: String::new(),
            letters: None,
            now,
        };
        let resolved = money.dispute_resolve(decision).await.unwrap();
        assert!(matches!(resolved, store::DisputeResolved::Resolved(_)), "{resolved:?}");
    }

    /// Sets the payout address of an operator, which is used after `wait`.
    pub(crate) async fn paid_out_at(&self, operator: OperatorId, address: &str, wait: Duration) {
        let now = self.app.clock.now();
        let effective_at = now.plus(wait);
        let payload = LetterPayload::PayoutChanged {
            operator,
            address: address.to_owned(),
            effective_at: effective_at.micros(),
        };
        let letter = letters::mail(&payload, Some(operator), None, now);
        let accounts = self.app.store.accounts();
        let set = accounts.payout_set(operator, address.to_owned(), effective_at, letter, now);
        set.await.unwrap();
    }

    /// Creates an agent and returns its key.
    pub(crate) async fn agent(&self, token: &str, name: &str) -> String {
        let body = serde_json::json!({"name": name}).to_string();
        let got = self.call("POST", "/agents", Some(token), &body).await;
        assert_eq!(got.status, 201, "{}", String::from_utf8_lossy(&got.bytes));
        got.json()["key"].as_str().unwrap().to_owned()
    }

    /// Creates a project with a required field `name` as `credential`.
    pub(crate) async fn project(&self, credential: &str, slug: &str, more: &Value) {
        let mut body = serde_json::json!({
            "slug": slug,
            "title": "A title",
            "readme": "A readme of at least twenty characters.",
            "schemaDef": schema_def(),
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let got = self
            .call("POST", "/projects", Some(credential), &body.to_string())
            .await;
        assert_eq!(got.status, 201, "{}", String::from_utf8_lossy(&got.bytes));
    }

    /// Contributes records with an agent key and merges them, as a worker and the projector would.
    pub(crate) async fn merged(&self, key: &str, slug: &str, records: &[Value]) -> Merge {
        self.merged_by(&self.app.store, key, slug, records).await
    }

    /// Contributes records, and merges them as a worker and the projector of the process with this store would.
    pub(crate) async fn merged_by(&self, store: &Store, key: &str, slug: &str, records: &[Value]) -> Merge {
        let body = serde_json::json!({ "records": records }).to_string();
        let path = format!("/projects/{slug}/contribute");
        let got = self.call("POST", &path, Some(key), &body).await;
        assert_eq!(got.status, 201, "{}", String::from_utf8_lossy(&got.bytes));
        let id = got.json()["id"].as_str().unwrap().parse().unwrap();
        let contribution = store.contribution(id).await.unwrap().unwrap();
        let merge = self
            .merged_in_the_table_only(slug, id, contribution.agent, records)
            .await;
        let resolution = Resolution::Merged {
            version: merge.version,
            accepted: merge.accepted,
            record_count: merge.record_count,
            root: merge.root.clone(),
        };
        let outcome = OutcomeRow {
            id,
            generation: 0,
            at: merge.at,
            resolution,
            tallies: "[]".to_owned(),
            verdicts: "[]".to_owned(),
        };
        let applied = store.outcomes_apply(vec![outcome]).await.unwrap();
        assert!(applied[0].changed);
        merge
    }

    /// Merges records into the table without an outcome.
    pub(crate) async fn merged_in_the_table_only(
        &self,
        slug: &str,
        contribution: ContributionId,
        agent: AgentId,
        records: &[Value],
    ) -> Merge {
        let store = &self.app.store;
        let projects = store.check_projects().await.unwrap();
        let id = projects.iter().find(|project| project.slug == slug).unwrap().id;
        let contract = Arc::new(serde_json::from_value(schema_def()).unwrap());
        let mut table = self.app.catalog.table(id, &contract).await.unwrap();
        let mut prepared = PreparedVersion::of_batch(contribution, agent, Arc::new(Batch::decode(&contract, records)));
        match table
            .commit(&mut prepared, self.app.clock.now(), |_| Value::Null)
            .await
            .unwrap()
        {
            CommitOutcome::Committed(merge) => merge,
            other => panic!("not merged: {other:?}"),
        }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, credential: Option<&str>, body: &str) -> Got {
        self.send(request(method, path, credential, body)).await
    }

    /// Sends a body of another media type.
    pub(crate) async fn call_as(
        &self,
        method: &str,
        path: &str,
        credential: Option<&str>,
        media_type: &'static str,
        body: &str,
    ) -> Got {
        let mut request = request(method, path, credential, body);
        let media_type = HeaderValue::from_static(media_type);
        request.headers_mut().insert(header::CONTENT_TYPE, media_type);
        self.send(request).await
    }

    pub(crate) async fn get(&self, path: &str, credential: Option<&str>) -> Got {
        self.call("GET", path, credential, "").await
    }

    /// Returns the answer of a call without reading its body.
    pub(crate) async fn untaken(&self, path: &str, credential: &str) -> Response {
        self.answer(request("GET", path, Some(credential), "")).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Got {
        Self::read(self.answer(request).await).await
    }

    /// Sends a request as it is, without adding a `Host` header.
    pub(crate) async fn send_as_it_is(&self, request: Request<Body>) -> Got {
        Self::read(self.answer_as_it_is(request).await).await
    }

    async fn read(answer: Response) -> Got {
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        Got {
            status: parts.status,
            headers: parts.headers,
            bytes,
        }
    }

    async fn answer(&self, mut request: Request<Body>) -> Response {
        let host = HeaderValue::from_static("sluice.test");
        request.headers_mut().entry(header::HOST).or_insert(host);
        self.answer_as_it_is(request).await
    }

    async fn answer_as_it_is(&self, mut request: Request<Body>) -> Response {
        let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 40_000);
        if request.extensions().get::<ConnectInfo<SocketAddr>>().is_none() {
            request.extensions_mut().insert(ConnectInfo(peer));
        }
        self.router.clone().oneshot(request).await.unwrap()
    }
}

fn request(method: &str, path: &str, credential: Option<&str>, body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(credential) = credential {
        request = request.header("authorization", format!("Bearer {credential}"));
    }
    request.body(Body::from(body.to_owned())).unwrap()
}
