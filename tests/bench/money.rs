//! The ledger with many events: a balance, a page of the journal, what a read asks, the check, and purchases of one hot
//! item.
//!
//! Invariant: the events are made by the store's own methods, so the ledger is one that the service can have. Every kind
//! of event is in it.

use std::path::Path;
use std::time::{Duration, Instant};

use api::rules::seals;
use store::conformance::money_model;
use store::{
    Access, AgentCreated, CheckTerms, EntryCursor, EntryFilter, Granted, ItemKind, NewAgent, NewContribution,
    NewDeposit, NewGrant, NewOperator, NewProject, NewPurchase, NewPurchaseAsk, OperatorCreated, OutcomeRow,
    ProjectCreated, Purchased, Resolution, SaleTerms, SpendLimits, SpendOwner, Store, SubmitOutcome, Visibility,
};
use tokio::task::JoinSet;
use types::clock::SystemClock;
use types::money::MicroUsdc;
use types::{AgentId, ContributionId, DatasetId, LedgerEventId, OperatorId, SaleId, Timestamp, Version};

use crate::report::Report;

const ASSET: &str = "eip155:84532/0x5111ce0000000000000000000000000000000402";
/// Operators with credits.
const BUYERS: usize = 2_000;
/// Callers at once.
const CALLERS: usize = 64;
/// Times that a short question is asked.
const QUESTIONS: usize = 1_000;
/// Movements of a page.
const PAGE: u32 = 50;
const PRICE: i64 = 500_000;
/// Purchases of one agent in a day.
const CAPPED: usize = 10_000;

fn now() -> Timestamp {
    Timestamp::from_micros(1_790_000_000_000_000)
}

fn hash() -> [u8; 32] {
    *blake3::hash(ContributionId::new(now()).to_string().as_bytes()).as_bytes()
}

async fn operator(store: &Store, name: &str) -> OperatorId {
    let new = NewOperator {
        id: OperatorId::new(now()),
        email: format!("{name}@example.org"),
        display_name: name.to_owned(),
        terms_version: "2026-11".to_owned(),
        token_hash: hash(),
        now: now(),
    };
    let id = new.id;
    assert_eq!(store.operator_create(new).await.unwrap(), OperatorCreated::Created);
    id
}

/// Creates an operator with an agent of the same name.
async fn with_agent(store: &Store, name: &str) -> (OperatorId, AgentId) {
    let operator = operator(store, name).await;
    let new = NewAgent {
        id: AgentId::new(now()),
        operator,
        name: name.to_owned(),
        skeleton: name.to_owned(),
        wallet_address: None,
        description: None,
        key_hash: hash(),
        now: now(),
    };
    let agent = new.id;
    assert_eq!(store.agent_create(new, 5).await.unwrap(), AgentCreated::Created);
    (operator, agent)
}

/// Puts a dataset with one version on sale.
async fn on_sale(store: &Store, (seller, agent): (OperatorId, AgentId), slug: String) -> DatasetId {
    let new = NewProject {
        id: DatasetId::new(now()),
        slug,
        title: "Hot".to_owned(),
        readme: String::new(),
        contract_json: r#"{"fields":[{"name":"n","type":"integer"}]}"#.to_owned(),
        license: "CC0-1.0".to_owned(),
        tags: Vec::new(),
        access: Access::Paid,
        visibility: Visibility::Public,
        price_micro: Some(PRICE),
        trial_sale: false,
        preview_rows: Some(20),
        operator: seller,
        created_by_agent: Some(agent),
        now: now(),
    };
    let dataset = new.id;
    assert_eq!(
        store.project_create(new, u32::MAX).await.unwrap(),
        ProjectCreated::Created
    );
    let new = NewContribution {
        id: ContributionId::new(now()),
        project: dataset,
        agent,
        operator: seller,
        source_declaration: None,
        rows: 1,
        private: false,
        paused: false,
        submission: b"{\"generation\":0}".to_vec(),
        now: now(),
        idempotency: None,
        allowance: None,
        first_sweep: now(),
    };
    let id = new.id;
    assert_eq!(store.contribution_submit(new).await.unwrap(), SubmitOutcome::Submitted);
    let resolution = Resolution::Merged {
        version: Version(1),
        accepted: 1,
        record_count: 1,
        root: "ab".repeat(32),
    };
    let merged = OutcomeRow {
        id,
        generation: 0,
        at: now(),
        resolution,
        tallies: "[]".to_owned(),
        verdicts: "[]".to_owned(),
    };
    store.outcomes_apply(vec![merged]).await.unwrap();
    dataset
}

/// Runs `one` for each number below `count`, many at once, and returns the time of all.
async fn together<F>(count: usize, one: impl Fn(usize) -> F) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for number in 0..count {
        if running.len() == CALLERS {
            running.join_next().await.unwrap().unwrap();
        }
        running.spawn(one(number));
    }
    running.join_all().await;
    begun.elapsed()
}

async fn buy(store: &Store, item: DatasetId, buyer: OperatorId, agent: Option<AgentId>) {
    let new = NewPurchase {
        sale: SaleId::new(now()),
        event: LedgerEventId::new(now()),
        kind: ItemKind::Dataset,
        item: item.to_string(),
        version: None,
        buyer,
        agent,
        app: None,
        max_price: None,
        ask: NewPurchaseAsk::silent(now()),
        terms: SaleTerms {
            asset: ASSET.to_owned(),
            default_price: MicroUsdc(PRICE),
            fee: "100000:30,1000000:20,10000000:10".parse().unwrap(),
            dispute_window: Duration::from_hours(168),
            quote_window: Duration::from_mins(5),
        },
        now: now(),
    };
    let purchased = store.money().purchase(new).await.unwrap();
    assert!(matches!(purchased, Purchased::Bought(_)), "{purchased:?}");
}

/// Buys many datasets for one operator, in turns by nobody's hand and by an agent whose caps they fill, and returns the
/// times of both.
async fn buy_at_cap(store: &Store, seller: (OperatorId, AgentId)) -> [Duration; 2] {
    let (buyer, agent) = with_agent(store, "capped").await;
    let total = PRICE * i64::try_from(CAPPED).unwrap();
    let new = NewGrant {
        event: LedgerEventId::new(now()),
        asset: ASSET.to_owned(),
        operator: buyer,
        amount: MicroUsdc(2 * total),
        given: false,
        reference: "bench-capped".to_owned(),
        now: now(),
    };
    assert_eq!(store.money().grant(new).await.unwrap(), Granted::Done);
    let limits = SpendLimits {
        per_purchase: Some(MicroUsdc(PRICE)),
        per_day: Some(MicroUsdc(total)),
        per_month: Some(MicroUsdc(total)),
        approve_above: Some(MicroUsdc(PRICE)),
    };
    let money = store.money();
    let set = money.limits_set(buyer, SpendOwner::Agent(agent), limits, now());
    assert!(set.await.unwrap());
    let mut items = Vec::with_capacity(2 * CAPPED);
    for number in 0..2 * CAPPED {
        items.push(on_sale(store, seller, format!("capped-{number}")).await);
    }
    let mut times = [Duration::ZERO; 2];
    // In turns, so that both meet the same ledger and the same disk.
    for (round, some) in items.chunks(CAPPED / 5).enumerate() {
        let agent = Some(agent).filter(|_| round % 2 == 1);
        times[round % 2] += together(some.len(), |number| {
            let (store, item) = (store.clone(), some[number]);
            async move { buy(&store, item, buyer, agent).await }
        })
        .await;
    }
    times
}

/// Returns the median and the 99th percentile of the times of a question.
async fn times(ask: impl AsyncFn(usize)) -> String {
    let mut times = Vec::with_capacity(QUESTIONS);
    for number in 0..QUESTIONS {
        let begun = Instant::now();
        ask(number).await;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    let shown = |at: usize| format!("{:.3} ms", times[at].as_secs_f64() * 1e3);
    format!("p50 {}, p99 {}", shown(QUESTIONS / 2), shown(QUESTIONS * 99 / 100))
}

/// Books a deposit of the platform, seals every day, and returns the row of the report.
async fn seal(store: &Store) -> (String, String) {
    let deposit = NewDeposit {
        transaction: "0xdeposit".to_owned(),
        asset: ASSET.to_owned(),
        amount: MicroUsdc(PRICE),
        events: [LedgerEventId::new(now()), LedgerEventId::new(now())],
        now: now(),
    };
    assert!(store.money().deposit(deposit).await.unwrap());
    let begun = Instant::now();
    let mut sealed = 0;
    loop {
        let days = seals::seal(store, &SystemClock::default(), now().day()).await.unwrap();
        sealed += days;
        if days < seals::DAYS {
            break;
        }
    }
    (
        format!("seals of {sealed} days, the last one with nearly all events"),
        format!("{:.1} s", begun.elapsed().as_secs_f64()),
    )
}

/// Opens the database with the patience of `sluice check`, since a rule reads the whole ledger at once.
async fn open(url: &str) -> Store {
    let options = store::Options {
        timeout: Duration::from_mins(30),
        ..store::Options::default()
    };
    Store::connect(url, options).await.unwrap()
}

/// Makes a ledger of `events` in a new folder and measures it.
pub(crate) async fn run(report: &mut Report, folder: &Path, events: usize) {
    std::fs::create_dir_all(folder).unwrap();
    let url = format!("sqlite://{}/money.db", folder.display());
    let store = open(&url).await;
    // In the years before the measured events, so that no release or payout takes their sales.
    Box::pin(money_model::play(&url, i64::try_from(events / 100).unwrap())).await;
    let seller = with_agent(&store, "seller").await;
    let item = on_sale(&store, seller, "hot".to_owned()).await;
    let mut buyers = Vec::with_capacity(BUYERS);
    for number in 0..BUYERS {
        buyers.push(operator(&store, &format!("buyer-{number}")).await);
    }
    // The first grant of each pays its purchase.
    let granted = together(events, |number| {
        let (store, operator) = (store.clone(), buyers[number % BUYERS]);
        async move {
            let new = NewGrant {
                event: LedgerEventId::new(now()),
                asset: ASSET.to_owned(),
                operator,
                amount: MicroUsdc(PRICE),
                given: false,
                reference: format!("bench-{number}"),
                now: now(),
            };
            assert_eq!(store.money().grant(new).await.unwrap(), Granted::Done);
        }
    })
    .await;
    let sold = together(BUYERS, |number| {
        let (store, buyer) = (store.clone(), buyers[number]);
        async move {
            buy(&store, item, buyer, None).await;
        }
    })
    .await;
    let capped = buy_at_cap(&store, seller).await;
    let (money, item) = (store.money(), item.to_string());
    let balance = times(async |number| {
        money.balances(ASSET, buyers[number]).await.unwrap();
    });
    let balance = balance.await;
    let page = times(async |number| {
        let (filter, from) = (EntryFilter::default(), EntryCursor::NEWEST);
        money.journal(ASSET, buyers[number], filter, from, PAGE).await.unwrap();
    });
    let page = page.await;
    let owned = times(async |number| {
        let owned = money.owned(buyers[number], ItemKind::Dataset, &item).await.unwrap();
        assert_eq!(owned, Some(1));
    });
    let owned = owned.await;
    let sealing = seal(&store).await;
    let begun = Instant::now();
    let terms = CheckTerms {
        free_egress: 20 << 30,
        quote_window: Duration::from_mins(5),
        now: now(),
    };
    let faults = money.faults(terms, 9).await.unwrap();
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(seals::faults(&store, 9).await.unwrap(), []);
    let checked = begun.elapsed();
    let rate = |count: usize, time: Duration| {
        let count = f64::from(u32::try_from(count).unwrap());
        format!("{:.0} a second", count / time.as_secs_f64())
    };
    report.table(
        &format!("ledger of {events} events"),
        &[
            ("grants".to_owned(), rate(events, granted)),
            (
                "purchases of one item (goal 500 a second)".to_owned(),
                rate(BUYERS, sold),
            ),
            (
                format!("purchases of {CAPPED} items at the caps of an agent, beside those of nobody (goal 90 %)"),
                format!(
                    "{}, {:.0} %",
                    rate(CAPPED, capped[1]),
                    100.0 * capped[0].as_secs_f64() / capped[1].as_secs_f64()
                ),
            ),
            ("balance (goal p50 1 ms)".to_owned(), balance),
            (format!("page of {PAGE} movements (goal 10 ms)"), page),
            ("entitlement of a read (goal 0.1 ms)".to_owned(), owned),
            sealing,
            (
                "check of all rules (goal 20 s)".to_owned(),
                format!("{:.1} s", checked.as_secs_f64()),
            ),
        ],
    );
}
