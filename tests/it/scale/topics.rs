//! What happens to topics under the running topology: records go that nobody has read, or the whole topic, and records
//! come that nobody can read.
//!
//! Invariant: what goes is acknowledged and in no table, or its outcome in no database. Nobody sends it again but the
//! service.

use std::path::PathBuf;
use std::time::Instant;

use tests::Server;
use tests::crash::Counters;
use tests::server::DEADLINE;
use types::DatasetId;

use super::site::Site;
use super::{lasting, lines_with};

pub(super) const OUT_OF_RANGE: &str = "positions that were not kept";
pub(super) const MADE_ANEW: &str = "consumers of a topic that was made anew";
pub(super) const TOLD_AGAIN: &str = "outcomes that were lost, told again";
pub(super) const POISON: &str = "poison messages, kept";

const SUBMISSIONS: &str = "sluice.contributions";
const OUTCOMES: &str = "sluice.outcomes";
const LETTERS: &str = "sluice.dead-letters";
/// Batches that are sent while nobody reads.
const UNREAD: usize = 8;

pub(super) async fn fail(site: &Site, faults: &mut Counters) {
    submissions_are_deleted(site, faults).await;
    outcomes_are_deleted(site, faults).await;
    submissions_are_made_anew(site, faults).await;
    poison_comes(site, faults).await;
}

/// Retention takes what the workers have not read.
async fn submissions_are_deleted(site: &Site, faults: &mut Counters) {
    let said = Said::by(&site.workers, "the position is outside the log");
    site.under(async {
        unread(site).await;
        site.parts.broker.delete_records(SUBMISSIONS).await.unwrap();
        site.workers.iter().for_each(Server::go_on);
        said.again(1).await;
    })
    .await;
    faults.add(OUT_OF_RANGE, said.since());
}

/// Retention takes what the projectors have not read: the tables have what the database knows nothing of.
async fn outcomes_are_deleted(site: &Site, faults: &mut Counters) {
    let broker = &site.parts.broker;
    let told = Said::by(&site.workers, "merged before, and told again");
    unread(site).await;
    let before = broker.count(OUTCOMES).unwrap();
    site.replicas.iter().for_each(Server::hang);
    site.workers.iter().for_each(Server::go_on);
    let deadline = Instant::now() + DEADLINE;
    while broker.count(OUTCOMES).unwrap() < before + i64::try_from(UNREAD).unwrap() {
        assert!(Instant::now() < deadline, "nothing is decided without the interface");
        lasting(1).await;
    }
    broker.delete_records(OUTCOMES).await.unwrap();
    site.replicas.iter().for_each(Server::go_on);
    site.under(told.again(1)).await;
    faults.add(TOLD_AGAIN, told.since());
}

/// Somebody deletes the topic under the load, and nobody but the service makes it anew.
async fn submissions_are_made_anew(site: &Site, faults: &mut Counters) {
    let said = Said::by(
        &site.workers,
        &format!("the topic was deleted and created again; reading starts at its first record topic=\"{SUBMISSIONS}\""),
    );
    site.under(async {
        site.parts.broker.delete_topic(SUBMISSIONS).await.unwrap();
        said.again(1).await;
    })
    .await;
    // The first record comes a little after the topic.
    let deadline = Instant::now() + DEADLINE;
    while site.parts.broker.count(SUBMISSIONS).unwrap() == 0 {
        assert!(Instant::now() < deadline, "nothing is in it again");
        lasting(1).await;
    }
    faults.add(MADE_ANEW, said.since());
}

/// Somebody puts records into the topics that are nothing.
async fn poison_comes(site: &Site, faults: &mut Counters) {
    let broker = &site.parts.broker;
    let kept = || {
        let letters = site.replicas[0].options().admin(&["dead-letters", "list"]);
        letters["total"].as_u64().unwrap()
    };
    let kept = || tokio::task::block_in_place(kept);
    let before = kept();
    let until = async |count: u64| {
        let deadline = Instant::now() + DEADLINE;
        while kept() < before + count {
            assert!(Instant::now() < deadline, "poison is not kept");
            lasting(1).await;
        }
    };
    let project = site.http(0).get(&format!("/projects/{}", site.ledger.slugs()[0])).await;
    let key: DatasetId = project.text("/id").parse().unwrap();
    site.under(async {
        for partition in 0..2 {
            broker.put(SUBMISSIONS, partition, key.as_bytes(), b"{").await.unwrap();
            broker.put(SUBMISSIONS, partition, b"", b"").await.unwrap();
            broker
                .put(OUTCOMES, partition, key.as_bytes(), b"no outcome")
                .await
                .unwrap();
        }
        until(6).await;
        broker.put(LETTERS, 0, b"nobody", b"no letter").await.unwrap();
        until(7).await;
    })
    .await;
    faults.add(POISON, kept() - before);
}

/// Lets no worker read, and has the log take batches that are acknowledged.
async fn unread(site: &Site) {
    site.workers.iter().for_each(Server::hang);
    let before = site.parts.broker.count(SUBMISSIONS).unwrap();
    for number in 0..UNREAD {
        let batch = site.ledger.batch();
        site.ledger
            .send(site.http(number), &batch, 0)
            .await
            .unwrap()
            .expect(201);
    }
    let deadline = Instant::now() + DEADLINE;
    while site.parts.broker.count(SUBMISSIONS).unwrap() < before + i64::try_from(UNREAD).unwrap() {
        assert!(Instant::now() < deadline, "the log takes nothing");
        lasting(1).await;
    }
}

/// What processes say, since it was asked for.
struct Said {
    logs: Vec<PathBuf>,
    what: String,
    before: u64,
}

impl Said {
    fn by(servers: &[Server], what: &str) -> Self {
        let mut said = Self {
            logs: servers.iter().map(|server| server.options().log()).collect(),
            what: what.to_owned(),
            before: 0,
        };
        said.before = said.since();
        said
    }

    /// How often it was said since.
    fn since(&self) -> u64 {
        let said: u64 = self.logs.iter().map(|log| lines_with(log, &self.what)).sum();
        said - self.before
    }

    /// Waits until it was said so often. On a busy machine the sweeper comes to a submission after more than a minute.
    async fn again(&self, times: u64) {
        let deadline = Instant::now() + 3 * DEADLINE;
        while self.since() < times {
            assert!(Instant::now() < deadline, "nobody said `{}`", self.what);
            lasting(1).await;
        }
    }
}
