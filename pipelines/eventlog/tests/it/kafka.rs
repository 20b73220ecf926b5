//! The log on Kafka against a real broker: the suite of every backend, and what only this one promises.
//!
//! Invariant: every test has topics and groups of its own. One broker serves all tests that leave it alone, another
//! those that kill or stop it, one after another.

mod broken;
mod groups;
mod recreated;
mod sharing;
mod topics;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use eventlog::conformance::Fixture;
use eventlog::kafka::KafkaOptions;
use eventlog::testing::Broker;
use eventlog::{Error, EventLog, Kafka};
use tokio::runtime::Runtime;
use tokio::sync::{Mutex, OnceCell};

type Outcome = Result<(), Error>;

/// Outlives every test, so that what the brokers stand behind does.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime")
});
static SHARED: OnceCell<Option<Broker>> = OnceCell::const_new();
static VICTIM: Mutex<Option<Broker>> = Mutex::const_new(None);
/// Held by the test that has the proxy of the shared broker.
static PROXY: Mutex<()> = Mutex::const_new(());

/// The files of Kafka; `None` where a test is to be skipped.
fn libraries() -> Option<PathBuf> {
    Broker::libraries().unwrap_or_else(|missing| panic!("{missing}"))
}

async fn start(libraries: PathBuf) -> Broker {
    let started = RUNTIME.spawn(Broker::start(libraries)).await;
    started.expect("the start does not panic").expect("the broker starts")
}

/// The broker that all tests share.
async fn shared() -> Option<&'static Broker> {
    let start = || async {
        match libraries() {
            Some(libraries) => Some(start(libraries).await),
            None => None,
        }
    };
    SHARED.get_or_init(start).await.as_ref()
}

/// A name that no other test has.
fn fresh() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

async fn open(options: &KafkaOptions) -> Result<Arc<Kafka>, Error> {
    Kafka::open(options.clone(), &[]).await
}

/// The broker that all tests share; without one the test is over.
macro_rules! broker {
    () => {
        match $crate::kafka::shared().await {
            Some(broker) => broker,
            None => return Ok(()),
        }
    };
}
use broker;

/// A log with names of its own, as a member that keeps its name.
struct Names(KafkaOptions);

impl Names {
    fn new(broker: &Broker) -> Self {
        Self(KafkaOptions {
            instance: Some("member".to_owned()),
            // A broker that has just started on a busy machine may take seconds to store megabytes.
            delivery: Duration::from_mins(1),
            ..broker.options(&fresh())
        })
    }
}

#[async_trait]
impl Fixture for Names {
    async fn open(&mut self) -> Result<Arc<dyn EventLog>, Error> {
        Ok(open(&self.0).await?)
    }

    /// As many as a scenario has: a busy machine may fetch one partition to its end before it begins with the next. So
    /// here only that each partition comes is tested; that those at hand share a delivery is tested in `kafka::state`.
    fn ahead(&self) -> usize {
        1_200
    }
}

mod conformance {
    use super::Names;

    eventlog::conformance!(Names::new(super::broker!()));
}
