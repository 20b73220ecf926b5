//! Every process is restarted, one after the other, behind a load balancer and under load: nobody notices.
//!
//! Invariant: no request fails: no connection breaks, nothing is answered 5xx. The balancer knows nothing but what
//! drain probes answer.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::Method;
use tests::server::{DEADLINE, POLL};
use tests::topology::Parts;
use tests::{Http, Server};

use super::ledger::Ledger;
use super::site::{DATASETS, Site};
use crate::binary;

/// How often the balancer asks.
const PROBE: Duration = Duration::from_millis(100);
/// How long a replica serves on once it says that it is about to stop: many probes.
const NOTICE: &str = "2s";
/// Acknowledgements between two restarts, so that each process does some of the work.
const BETWEEN: usize = 15;
/// Clients at the same time.
const CLIENTS: usize = 4;

/// A replica behind the balancer.
struct Backend {
    http: Http,
    serves: bool,
}

/// Gives requests to the replicas in turn that say they serve.
struct Balancer {
    backends: Mutex<Vec<Backend>>,
    turn: AtomicUsize,
    /// How often a replica that answered its probe said not to send it requests.
    drained: AtomicUsize,
}

impl Balancer {
    fn new(callers: &[Http]) -> Self {
        let backend = |http: &Http| Backend {
            http: http.clone(),
            serves: true,
        };
        Self {
            backends: Mutex::new(callers.iter().map(backend).collect()),
            turn: AtomicUsize::new(0),
            drained: AtomicUsize::new(0),
        }
    }

    /// A replica that serves; none where none does.
    fn pick(&self) -> Option<Http> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let backends = self.backends.lock().unwrap();
        let serving: Vec<_> = backends.iter().filter(|backend| backend.serves).collect();
        let picked = serving.get(turn % serving.len().max(1));
        picked.map(|backend| backend.http.clone())
    }

    /// Asks every replica.
    async fn probe(&self) {
        let callers: Vec<_> = self
            .backends
            .lock()
            .unwrap()
            .iter()
            .map(|backend| backend.http.clone())
            .collect();
        for (index, http) in callers.iter().enumerate() {
            let answer = http.anonymous().send(Method::GET, "/drainz", &[], None).await;
            let status = answer.ok().map(|answer| answer.code());
            self.drained
                .fetch_add(usize::from(status == Some(503)), Ordering::Relaxed);
            self.backends.lock().unwrap()[index].serves = status == Some(200);
        }
    }

    /// Another process takes the place of a replica: it is sent nothing until it was asked.
    fn replace(&self, index: usize, http: Http) {
        self.backends.lock().unwrap()[index] = Backend { http, serves: false };
    }

    fn serves(&self, index: usize) -> bool {
        self.backends.lock().unwrap()[index].serves
    }
}

/// The clients, until `over`; what of their requests failed.
async fn load(balancer: &Balancer, ledger: &Ledger, over: &AtomicBool) -> Vec<String> {
    let mut failures = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let batch = ledger.batch();
        let slug = &ledger.slugs()[batch.dataset];
        for path in [None, Some(format!("/projects/{slug}/data?limit=5"))] {
            let Some(http) = balancer.pick() else {
                failures.push("no replica serves".to_owned());
                tokio::time::sleep(PROBE).await;
                continue;
            };
            let answer = match &path {
                None => ledger.send(&http, &batch, 2).await,
                Some(path) => http.send(Method::GET, path, &[], None).await,
            };
            match answer {
                Ok(answer) if matches!(answer.code(), 200 | 201) => {}
                Ok(answer) => failures.push(format!("{path:?}: {} {}", answer.code(), answer.body)),
                Err(error) => failures.push(format!("{path:?}: {error:?}")),
            }
        }
    }
    failures
}

/// Waits until `enough`.
async fn until(what: &str, enough: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !enough() {
        assert!(Instant::now() < deadline, "{what} never happened");
        tokio::time::sleep(POLL).await;
    }
}

/// What a process is called: its folder.
fn name_of(server: &Server) -> String {
    let folder = server.options().data().file_name().unwrap();
    folder.to_str().unwrap().to_owned()
}

/// Stops every process in turn and starts it again.
async fn restart_all(site: &mut Site, balancer: &Balancer, ledger: &Ledger) {
    let some_work = async || {
        let before = ledger.count();
        until("more work", || ledger.count() >= before + BETWEEN).await;
    };
    for index in 0..site.replicas.len() {
        some_work().await;
        let replica = site.replicas.remove(index);
        let name = name_of(&replica);
        let status = replica.stop().await;
        assert!(status.success(), "{name}: {status}");
        let replica = site.parts.replica(&name).await;
        balancer.replace(index, site.agent.at(&replica.http()).http);
        site.replicas.insert(index, replica);
        until("a replica that serves again", || balancer.serves(index)).await;
    }
    for index in 0..site.workers.len() {
        some_work().await;
        let worker = site.workers.remove(index);
        let name = name_of(&worker);
        let status = worker.stop().await;
        assert!(status.success(), "{name}: {status}");
        site.workers.insert(index, site.parts.worker(&name).await);
    }
    some_work().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_notices_that_every_process_is_restarted() {
    let Some(parts) = Parts::start(binary()).await else {
        return;
    };
    let mut site = Site::on(parts.with("SLUICE__SERVER__DRAIN_NOTICE", NOTICE)).await;
    let ledger = Ledger::open(&site.agent.http, "rolled", DATASETS).await;
    let balancer = Balancer::new(&[site.http(0).clone(), site.http(1).clone()]);
    let over = AtomicBool::new(false);
    let probing = async {
        while !over.load(Ordering::Relaxed) {
            balancer.probe().await;
            tokio::time::sleep(PROBE).await;
        }
    };
    let restarting = async {
        restart_all(&mut site, &balancer, &ledger).await;
        over.store(true, Ordering::Relaxed);
    };
    let clients = futures_util::future::join_all((0..CLIENTS).map(|_| load(&balancer, &ledger, &over)));
    let ((), (), failures) = tokio::join!(probing, restarting, clients);
    let failures = failures.concat();
    let drained = balancer.drained.load(Ordering::Relaxed);
    eprintln!(
        "{} batches while 5 processes were restarted, {drained} probes said to send nothing, {} requests failed",
        ledger.count(),
        failures.len()
    );
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(drained >= 2, "no replica said that it was about to stop");
    let callers: Vec<_> = site
        .replicas
        .iter()
        .map(|replica| site.agent.at(&replica.http()).http)
        .collect();
    ledger.judge(&callers).await;
    site.replicas[0].options().assert_consistent();
}
