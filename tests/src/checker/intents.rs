//! Rules about batches: what a client wanted merged, against what became of it.
//!
//! An intent is one batch that a client wanted in at most once: one request, or all requests of one idempotency key.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Value, json};

use super::Violation;
use super::delta::{Commit, Table};
use crate::history::{Event, Nature};

type Tables<'a> = BTreeMap<&'a str, Table>;

#[derive(Debug)]
struct Intent<'a> {
    slug: &'a str,
    agent: &'a str,
    nature: Nature,
    /// The canonical texts of the records.
    records: &'a [String],
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
    pub(super) fn gather(
        events: &'a [Event],
        texts: &'a BTreeMap<u64, Vec<String>>,
        violations: &mut Vec<Violation>,
    ) -> Self {
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
                    ..
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
                            records: &texts[request],
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
    pub(super) fn check(&self, tables: &Tables<'_>, violations: &mut Vec<Violation>) {
        let mut report = |rule, detail| violations.push(Violation::new(rule, detail));
        let known: BTreeMap<_, _> = tables.iter().map(|(slug, table)| (*slug, Known::of(table))).collect();
        let nothing = Known::default();
        for intent in &self.intents {
            let known = known.get(intent.slug).unwrap_or(&nothing);
            for contribution in &intent.contributions {
                let commit = known.commits.get(contribution).copied();
                if let Err((rule, detail)) = self.judge(intent, contribution, commit, &known.births) {
                    report(rule, format!("{} {contribution}: {detail}", intent.slug));
                }
            }
        }
        for (slug, table) in tables {
            self.attribute(slug, table, &mut report);
        }
    }

    fn judge(
        &self,
        intent: &Intent<'_>,
        contribution: &str,
        commit: Option<&Commit>,
        births: &HashMap<&str, u64>,
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
                let (accepted, count) = (commit.row_count(), commit.record_count);
                let stored = [json!(commit.version), json!(accepted), json!(count), json!(commit.root)];
                if told != stored {
                    return Err(("outcome-differs", format!("told {told:?}, stored {stored:?}")));
                }
                all_of(commit, intent)?;
                let lost = intent
                    .records
                    .iter()
                    .find(|record| births.get(record.as_str()).is_none_or(|born| *born > commit.version));
                lost.map_or(Ok(()), |record| {
                    Err(("record-lost", format!("merged without {record}")))
                })
            }
            ("rejected", Some(commit)) => Err(("rejected-with-commit", format!("version {}: {body}", commit.version))),
            ("rejected", None) => {
                let held = intent.records.iter().all(|record| births.contains_key(record.as_str()));
                match (intent.nature, held) {
                    (Nature::Bad, _) | (Nature::Duplicates | Nature::Fresh, true) => Ok(()),
                    _ => Err(("wrong-verdict", format!("{:?} with new records: {body}", intent.nature))),
                }
            }
            _ => Err(("no-outcome", body.to_string())),
        }
    }

    /// Every commit belongs to one intent: by the contribution's id, or to one whose answer never came.
    fn attribute(&self, slug: &str, table: &Table, report: &mut impl FnMut(&'static str, String)) {
        let here = || self.intents.iter().filter(|intent| intent.slug == slug);
        let known: HashSet<_> = here().flat_map(|intent| intent.contributions.iter().copied()).collect();
        let unknown: Vec<(&Intent<'_>, HashSet<&str>)> = here()
            .filter(|intent| intent.unknown && intent.contributions.is_empty())
            .map(|intent| (intent, intent.records.iter().map(String::as_str).collect()))
            .collect();
        let mut taken = HashSet::new();
        for commit in table
            .commits
            .iter()
            .filter(|commit| !known.contains(&*commit.contribution))
        {
            let fits = |records: &HashSet<&str>| commit.rows().all(|row| records.contains(row.text.as_str()));
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

/// What intents are looked up in.
#[derive(Default)]
struct Known<'a> {
    /// The first commit of each contribution.
    commits: HashMap<&'a str, &'a Commit>,
    /// The version that each record came with last.
    births: HashMap<&'a str, u64>,
}

impl<'a> Known<'a> {
    fn of(table: &'a Table) -> Self {
        let mut known = Self::default();
        for commit in &table.commits {
            known.commits.entry(&commit.contribution).or_insert(commit);
            known
                .births
                .extend(commit.rows().map(|row| (row.text.as_str(), row.version)));
        }
        known
    }
}

fn all_of(commit: &Commit, intent: &Intent<'_>) -> Result<(), (&'static str, String)> {
    if commit.agent != intent.agent {
        return Err((
            "wrong-agent",
            format!("{} contributed it, {} is stored", intent.agent, commit.agent),
        ));
    }
    let sent: HashSet<_> = intent.records.iter().map(String::as_str).collect();
    let foreign = commit.rows().find(|row| !sent.contains(row.text.as_str()));
    foreign.map_or(Ok(()), |row| Err(("foreign-row", row.text.clone())))
}

fn is_terminal(body: &Value) -> bool {
    matches!(body["status"].as_str(), Some("merged" | "rejected"))
}

fn decision(body: &Value) -> [&Value; 5] {
    ["status", "mergedVersion", "acceptedCount", "recordCount", "reason"].map(|name| &body[name])
}
