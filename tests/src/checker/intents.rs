//! Rules about batches: what a client wanted merged, against what became of it.
//!
//! An intent is one batch that a client wanted in at most once: one request, or all requests of one idempotency key.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Value, json};

use super::Violation;
use super::delta::{Commit, Table};
use super::record::{normal, text_of};
use crate::history::{Event, Nature};

type Tables = BTreeMap<String, (Table, BTreeMap<String, String>)>;

#[derive(Debug)]
struct Intent<'a> {
    slug: &'a str,
    agent: &'a str,
    nature: Nature,
    records: &'a [Value],
    contributions: BTreeSet<&'a str>,
    /// Whether a request of it was sent whose answer never came.
    unknown: bool,
}

/// Every intent of a history, with the outcomes that were read.
#[derive(Debug)]
pub(super) struct Intents<'a> {
    intents: Vec<Intent<'a>>,
    /// The last outcome read of each contribution: status of the answer and body.
    outcomes: HashMap<&'a str, (u16, &'a Value)>,
}

impl<'a> Intents<'a> {
    /// Reads the history; reports outcomes that changed and keys with two contributions.
    pub(super) fn gather(events: &'a [Event], violations: &mut Vec<Violation>) -> Self {
        let mut intents: Vec<Intent<'a>> = Vec::new();
        let mut of_request = HashMap::new();
        let mut of_key = HashMap::new();
        let mut outcomes: HashMap<&str, (u16, &Value)> = HashMap::new();
        for event in events {
            match event {
                Event::Submit {
                    request,
                    slug,
                    agent,
                    key,
                    nature,
                    records,
                } => {
                    let next = intents.len();
                    let index = match key {
                        Some(key) => *of_key.entry((slug, agent, key)).or_insert(next),
                        None => next,
                    };
                    if index == next {
                        intents.push(Intent {
                            slug,
                            agent,
                            nature: *nature,
                            records,
                            contributions: BTreeSet::new(),
                            unknown: false,
                        });
                    }
                    of_request.insert(*request, index);
                }
                Event::Answer {
                    request,
                    status,
                    contribution,
                } => {
                    if let Some(contribution) = contribution {
                        intents[of_request[request]].contributions.insert(contribution);
                    } else {
                        let detail = format!("request {request} was answered {status}");
                        violations.push(Violation::new("refused-request", detail));
                    }
                }
                Event::Unknown { request } => intents[of_request[request]].unknown = true,
                Event::Outcome {
                    contribution,
                    status,
                    body,
                } => {
                    let before = outcomes.insert(contribution, (*status, body));
                    if let Some((_, before)) = before.filter(|(_, before)| is_terminal(before))
                        && decision(before) != decision(body)
                    {
                        let detail = format!("{contribution}: {before} and later {body}");
                        violations.push(Violation::new("two-outcomes", detail));
                    }
                }
                _ => {}
            }
        }
        for intent in &intents {
            if intent.contributions.len() > 1 {
                let detail = format!("{}: one key has {:?}", intent.slug, intent.contributions);
                violations.push(Violation::new("key-twice-acknowledged", detail));
            }
        }
        Self { intents, outcomes }
    }

    /// Judges every intent against the tables.
    pub(super) fn check(&self, tables: &Tables, violations: &mut Vec<Violation>) {
        let none = (Table::default(), BTreeMap::new());
        let mut report = |rule, detail| violations.push(Violation::new(rule, detail));
        let mut births: HashMap<&str, HashMap<String, u64>> = HashMap::new();
        for (slug, (table, _)) in tables {
            let rows = table.commits.iter().flat_map(|commit| &commit.rows);
            births.insert(slug, rows.map(|row| (text_of(&row.record), row.version)).collect());
        }
        let nothing = HashMap::new();
        for intent in &self.intents {
            let (table, types) = tables.get(intent.slug).unwrap_or(&none);
            let births = births.get(intent.slug).unwrap_or(&nothing);
            let records: Vec<_> = intent.records.iter().map(|record| text(types, record)).collect();
            for contribution in &intent.contributions {
                let mut commits = table
                    .commits
                    .iter()
                    .filter(|commit| commit.contribution == *contribution);
                let problem = self.judge(intent, contribution, commits.next(), &records, births);
                if let Err((rule, detail)) = problem {
                    report(rule, format!("{} {contribution}: {detail}", intent.slug));
                }
            }
        }
        for (slug, (table, types)) in tables {
            self.attribute(slug, table, types, &mut report);
        }
    }

    fn judge(
        &self,
        intent: &Intent<'_>,
        contribution: &str,
        commit: Option<&Commit>,
        records: &[String],
        births: &HashMap<String, u64>,
    ) -> Result<(), (&'static str, String)> {
        let Some((status, body)) = self.outcomes.get(contribution) else {
            return Err(("unread", "its outcome was never read".to_owned()));
        };
        if *status != 200 {
            return Err(("lost-ack", format!("acknowledged, now reads {status}")));
        }
        let outcome = body["status"].as_str().unwrap_or_default();
        match (outcome, commit) {
            ("merged", None) => Err(("merged-without-commit", body.to_string())),
            ("merged", Some(commit)) => {
                if intent.nature != Nature::Fresh {
                    return Err(("wrong-verdict", format!("{:?} was merged", intent.nature)));
                }
                let told = ["mergedVersion", "acceptedCount", "recordCount", "root"].map(|name| body[name].clone());
                let (accepted, count) = (commit.rows.len() as u64, commit.record_count);
                let stored = [json!(commit.version), json!(accepted), json!(count), json!(commit.root)];
                if told != stored {
                    return Err(("outcome-differs", format!("told {told:?}, stored {stored:?}")));
                }
                all_of(commit, intent, records)?;
                let lost = records
                    .iter()
                    .find(|record| births.get(*record).is_none_or(|born| *born > commit.version));
                lost.map_or(Ok(()), |record| {
                    Err(("record-lost", format!("merged without {record}")))
                })
            }
            ("rejected", Some(commit)) => Err(("rejected-with-commit", format!("version {}: {body}", commit.version))),
            ("rejected", None) => {
                let held = records.iter().all(|record| births.contains_key(record));
                match (intent.nature, held) {
                    (Nature::Bad, _) | (Nature::Duplicates | Nature::Fresh, true) => Ok(()),
                    _ => Err(("wrong-verdict", format!("{:?} with new records: {body}", intent.nature))),
                }
            }
            _ => Err(("no-outcome", body.to_string())),
        }
    }

    /// Every commit belongs to one intent: by the contribution's id, or to one whose answer never came.
    fn attribute(
        &self,
        slug: &str,
        table: &Table,
        types: &BTreeMap<String, String>,
        report: &mut impl FnMut(&'static str, String),
    ) {
        let here = || self.intents.iter().filter(|intent| intent.slug == slug);
        let known: HashSet<_> = here().flat_map(|intent| intent.contributions.iter().copied()).collect();
        let unknown: Vec<(&Intent<'_>, HashSet<String>)> = here()
            .filter(|intent| intent.unknown && intent.contributions.is_empty())
            .map(|intent| {
                (
                    intent,
                    intent.records.iter().map(|record| text(types, record)).collect(),
                )
            })
            .collect();
        let mut taken = HashSet::new();
        for commit in table
            .commits
            .iter()
            .filter(|commit| !known.contains(&*commit.contribution))
        {
            let fits =
                |records: &HashSet<String>| commit.rows.iter().all(|row| records.contains(&text_of(&row.record)));
            let found = unknown
                .iter()
                .position(|(intent, records)| intent.agent == commit.agent && fits(records));
            match found {
                None => report("phantom", format!("{slug}: version {} is nobody's", commit.version)),
                Some(index) if !taken.insert(index) => {
                    report(
                        "merged-twice",
                        format!("{slug}: version {} is a batch merged before", commit.version),
                    );
                }
                Some(_) => {}
            }
        }
    }
}

fn all_of(commit: &Commit, intent: &Intent<'_>, records: &[String]) -> Result<(), (&'static str, String)> {
    if commit.agent != intent.agent {
        return Err((
            "wrong-agent",
            format!("{} contributed it, {} is stored", intent.agent, commit.agent),
        ));
    }
    let sent: HashSet<_> = records.iter().collect();
    let foreign = commit
        .rows
        .iter()
        .map(|row| text_of(&row.record))
        .find(|row| !sent.contains(row));
    foreign.map_or(Ok(()), |row| Err(("foreign-row", row)))
}

fn text(types: &BTreeMap<String, String>, record: &Value) -> String {
    record
        .as_object()
        .map_or_else(String::new, |members| text_of(&normal(types, members)))
}

fn is_terminal(body: &Value) -> bool {
    matches!(body["status"].as_str(), Some("merged" | "rejected"))
}

fn decision(body: &Value) -> [&Value; 5] {
    ["status", "mergedVersion", "acceptedCount", "recordCount", "reason"].map(|name| &body[name])
}
