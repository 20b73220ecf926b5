//! A database whose answers take long: what was decided while it was away is still applied.

use std::sync::Arc;
use std::time::Duration;

use api::flow::Projector;
use api::state::waiters::Waiters;
use eventlog::{Embedded, EventLog, Record};
use messages::{BASE_FORMAT, ContributionOutcome, OUTCOMES_TOPIC, Resolution};
use store::Store;
use store::testing::{Mode, Postgres, Proxy};
use tests::server::{DEADLINE, POLL};
use tokio_util::sync::CancellationToken;
use types::clock::SystemClock;
use types::{Clock, ContributionId, DatasetId};

/// As many as one transaction takes at most.
const OUTCOMES_AT_ONCE: usize = 128;
/// How long a statement takes.
const LATE: Duration = Duration::from_millis(20);
/// How long a transaction may take: too little for all, and time enough for some.
const TIMEOUT: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outcomes_that_do_not_fit_the_time_of_a_transaction_are_applied_in_several() {
    let Some(server) = Postgres::shared() else { return };
    let url = tokio::task::block_in_place(|| server.fresh_database());
    let proxy = Proxy::start(server.address()).await;
    let options = store::Options {
        timeout: TIMEOUT,
        busy_timeout: TIMEOUT / 2,
        ..store::Options::default()
    };
    Store::connect(&url, store::Options::default()).await.unwrap();
    let database = url.rsplit_once('/').unwrap().1;
    let store = Store::connect(&Postgres::url(database, proxy.address()), options)
        .await
        .unwrap();

    let folder = tempfile::tempdir().unwrap();
    let retain = eventlog::EmbeddedOptions {
        retain: 0,
        ..eventlog::EmbeddedOptions::default()
    };
    let log = Embedded::open(folder.path(), retain).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let dataset = DatasetId::new(clock.now());
    let mut records = Vec::new();
    for _ in 0..OUTCOMES_AT_ONCE {
        let outcome = ContributionOutcome {
            format: BASE_FORMAT,
            contribution: ContributionId::new(clock.now()),
            generation: 0,
            dataset,
            at: clock.now(),
            resolution: Resolution::Rejected {
                code: "refused".to_owned(),
                message: "no".to_owned(),
            },
            rows: 1,
            verdicts: Vec::new(),
            tallies: Vec::new(),
            traceparent: None,
        };
        records.push(Record {
            key: dataset.as_bytes().to_vec().into(),
            value: serde_json::to_vec(&outcome).unwrap().into(),
        });
    }
    log.append(OUTCOMES_TOPIC, records).await.unwrap();
    proxy.set(Mode::Slow(LATE));
    let stop = CancellationToken::new();
    let shared = Arc::clone(&log) as Arc<dyn EventLog>;
    let projector = Projector::new(store, shared, Waiters::default(), clock);
    let projecting = tokio::spawn(projector.run(stop.clone()));
    // The log lets go of what the projector has done.
    let done = async {
        while log
            .bounds(OUTCOMES_TOPIC)
            .await
            .unwrap()
            .iter()
            .all(|bounds| bounds.first == 0)
        {
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(DEADLINE, done).await.unwrap();
    stop.cancel();
    projecting.await.unwrap().unwrap();
}
