//! An independent judge of a crash test: from what clients saw and from the files of the tables alone.
//!
//! Invariant: shares no code with the service. Every rule is one sentence of the promise: an acknowledged batch has
//! exactly one outcome, a merged batch is in exactly one version, records are distinct, versions are gapless and never
//! change.

pub mod delta;
mod intents;
mod part;
pub mod record;
mod tables;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::Value;

use crate::history::Event;
use intents::Intents;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The name of the rule.
    pub rule: &'static str,
    /// Where it is broken.
    pub detail: String,
}

impl Violation {
    /// A violation of `rule`.
    pub const fn new(rule: &'static str, detail: String) -> Self {
        Self { rule, detail }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.detail)
    }
}

/// Judges a folder, and judges it again when more has happened there.
///
/// Every judgement is of everything; what it remembers of those before is only what bytes and records mean.
#[derive(Debug, Default)]
pub struct Judge {
    reader: delta::Reader,
    /// The canonical texts of the records of each request.
    texts: BTreeMap<u64, Vec<String>>,
}

impl Judge {
    /// Judges everything that happened so far; `slug_of` names the dataset of each table folder below `data`.
    pub fn check(&mut self, events: &[Event], data: &Path, slug_of: &BTreeMap<String, String>) -> Vec<Violation> {
        let mut violations = Vec::new();
        let contracts = contracts(events, &mut violations);
        let types: BTreeMap<_, _> = contracts
            .iter()
            .map(|(slug, contract)| (slug.as_str(), record::types_of(contract)))
            .collect();
        self.spell(events, &types);
        let intents = Intents::gather(events, &self.texts, &mut violations);
        let mut tables = BTreeMap::new();
        for folder in delta::tables_below(data) {
            let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let known = slug_of
                .get(&id)
                .and_then(|slug| Some((slug, types.get(slug.as_str())?)));
            let Some((slug, types)) = known else {
                violations.push(Violation::new("phantom-table", format!("{id} belongs to no project")));
                continue;
            };
            let table = self.reader.read(&folder, types, &mut violations);
            tables::check_itself(slug, &table, &mut violations);
            tables::check_reads(slug, &table, events, &mut violations);
            tables::check_listed(slug, &table, events, &mut violations);
            tables.insert(slug.as_str(), table);
        }
        intents.check(&tables, &mut violations);
        violations
    }

    /// Writes the records of requests that are new in the form in which they are compared.
    fn spell(&mut self, events: &[Event], types: &BTreeMap<&str, BTreeMap<String, String>>) {
        let untyped = BTreeMap::new();
        for event in events {
            if let Event::Submit {
                request, slug, records, ..
            } = event
            {
                self.texts.entry(*request).or_insert_with(|| {
                    let types = types.get(slug.as_str()).unwrap_or(&untyped);
                    records.iter().map(|record| record::text(types, record)).collect()
                });
            }
        }
    }
}

/// The contract of each project; reports projects that were acknowledged and are not there, or changed.
fn contracts(events: &[Event], violations: &mut Vec<Violation>) -> BTreeMap<String, Value> {
    let mut contracts = BTreeMap::new();
    let mut acknowledged = BTreeMap::new();
    for event in events {
        match event {
            Event::Create { slug, contract } => {
                contracts.insert(slug.clone(), contract.clone());
            }
            Event::Created { slug, status } => {
                acknowledged.insert(slug.clone(), *status == 201);
            }
            Event::Found {
                slug, status, contract, ..
            } => match (status, acknowledged.get(slug)) {
                (200, _) if Some(contract) == contracts.get(slug) => {}
                (404, None | Some(false)) => {}
                _ => violations.push(Violation::new("project", format!("{slug} reads {status} {contract}"))),
            },
            _ => {}
        }
    }
    contracts
}
