//! How a process recovers undisturbed, and what is read of it before it is given new work.
//!
//! Invariant: everything that is acknowledged has its outcome here, or it is lost.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use super::{Fault, READ_AGAIN, Site};
use crate::checker::Violation;
use crate::history::Event;
use crate::{Http, Server};

impl Site {
    /// Starts a process, lets it recover and judges what there is; it dies of `fault` once it is given work.
    pub(super) async fn recover_and_judge(&mut self, fault: Option<Fault>) -> (Server, Vec<Violation>) {
        let signal = self.starting_signal();
        if signal.exists() {
            fs::remove_file(&signal).unwrap();
        }
        let options = fault.map_or_else(|| self.options.clone(), |fault| self.armed(fault));
        let begun = Instant::now();
        let server = Server::start(&options.with("SLUICE_FAULT_AFTER", signal.display())).await;
        self.counters.spend("starting", begun);
        let http = server.http();
        let begun = Instant::now();
        self.settle(&http, begun + self.patience).await;
        self.counters.spend("recovering", begun);
        let begun = Instant::now();
        self.look_at_projects(&http).await;
        self.datasets.retain(|dataset| !dataset.slug.starts_with("made-"));
        let unread = self.read_again(&http).await;
        self.counters.spend("reading", begun);
        let begun = Instant::now();
        let events = self.seen.read_on(self.load.history.path());
        let mut violations = self.judge.check(events, self.options.data(), &self.ids);
        violations.extend(unread);
        self.counters.spend("judging", begun);
        (server, violations)
    }

    /// Reads what the clients have seen again; what cannot be read.
    async fn read_again(&mut self, http: &Http) -> Vec<Violation> {
        let mut unread = Vec::new();
        let caller = http.with(&self.agents[0].key);
        let looked_back = self.random.below(self.datasets.len());
        for (index, dataset) in self.datasets.iter().enumerate() {
            let Some(latest) = self.load.read(&caller, dataset, None).await else {
                unread.push(Violation::new(
                    "unreadable",
                    format!("{}: after a recovery", dataset.slug),
                ));
                continue;
            };
            let older = usize::try_from(latest).ok().filter(|latest| *latest > 0);
            if let Some(older) = older.filter(|_| index == looked_back) {
                let version = self.random.below(older) as u64;
                self.load.read(&caller, dataset, Some(version.max(1))).await;
            }
        }
        let closed = self.load.closed.lock().unwrap().clone();
        for _ in 0..READ_AGAIN.min(closed.len()) {
            let (contribution, request) = self.random.pick(&closed);
            let answer = request.caller(http).get(&request.path_of(contribution)).await;
            self.load.observe(contribution, answer.code(), &answer.body);
        }
        unread
    }

    /// Writes down what every project reads as.
    pub(super) async fn look_at_projects(&mut self, http: &Http) {
        for dataset in &self.datasets {
            let answer = http.with(&self.owner).get(&format!("/projects/{}", dataset.slug)).await;
            let found = answer.code() == 200;
            if found {
                self.ids.insert(answer.text("/id").to_owned(), dataset.slug.clone());
            }
            self.load.history.write(&Event::Found {
                slug: dataset.slug.clone(),
                status: answer.code(),
                contract: if found {
                    plain(&answer.body["schemaDef"])
                } else {
                    json!(null)
                },
                versions: answer.body["versions"].clone(),
            });
        }
    }
}

/// A `schemaDef` as [`crate::world::contract`] writes it: `required` only where it is true.
fn plain(contract: &Value) -> Value {
    let mut contract = contract.clone();
    for field in contract["fields"].as_array_mut().into_iter().flatten() {
        if field["required"] == false {
            field.as_object_mut().expect("a field").remove("required");
        }
    }
    contract
}
