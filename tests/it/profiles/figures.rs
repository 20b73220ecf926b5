//! Figures of generated tables are those that somebody else computes of the same rows.

mod strangers;

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use tests::random::Random;
use tests::world::contribute;

use super::{letters, profile, started};
use crate::{configured, readers};

/// Compares a profile with what `duckdb` computes of the same rows.
const COMPARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/readers/compare_profile.py");
/// Errors of estimates that the design aims at: a share of distinct values, and percent of rank. Both are at
/// least one and a half standard errors, so most are below, not all.
const AIMS: (f64, f64) = (0.05, 3.0);
/// Tables that are compared in a usual run; `SLUICE_TEST_PROFILES` asks for more, with other rows.
const TABLES: u64 = 3;

/// Sizes of the errors of estimates.
#[derive(Debug, Default, Deserialize)]
struct Estimates {
    /// Of numbers of distinct values, as shares.
    distinct: Vec<f64>,
    /// Of quantiles, in percent of rank.
    rank: Vec<f64>,
}

impl Estimates {
    fn add(&mut self, more: Self) {
        self.distinct.extend(more.distinct);
        self.rank.extend(more.rank);
    }

    /// Says how good estimates were, and fails unless they are as good as their standard errors promise together.
    fn tell(&self, tables: usize) {
        for (what, errors, aim) in [
            ("distinct values", &self.distinct, AIMS.0),
            ("quantiles", &self.rank, AIMS.1),
        ] {
            let within = errors.iter().filter(|error| **error <= aim).count();
            let worst = errors.iter().copied().fold(0.0, f64::max);
            eprintln!(
                "{tables} tables, {what}: {within} of {} within {aim}, worst {worst:.4}",
                errors.len()
            );
            // Of normal errors 86 % are within one and a half standard errors; a dozen may have bad luck.
            assert!(
                errors.len() < 12 || within * 4 >= errors.len() * 3,
                "{what}: {errors:?}"
            );
        }
    }
}

/// What the script printed.
#[derive(Deserialize)]
struct Comparison {
    differences: Vec<String>,
    off: Estimates,
}

/// Compares a profile with what `duckdb` computes of the lines of an export; how far estimates are off.
fn compared(python: &str, folder: &Path, figures: &Value, export: &[u8], what: &str) -> Estimates {
    let [shown, rows] = ["profile.json", "rows.ndjson"].map(|name| folder.join(name));
    fs::write(&shown, figures.to_string()).unwrap();
    fs::write(&rows, export).unwrap();
    let arguments = [COMPARED, shown.to_str().unwrap(), rows.to_str().unwrap()];
    let printed = tokio::task::block_in_place(|| readers::run(python, &arguments));
    let found: Comparison = serde_json::from_str(&printed).unwrap();
    assert!(found.differences.is_empty(), "{what}: {:#?}", found.differences);
    found.off
}

/// Fields of every type.
pub(crate) fn fields() -> Value {
    json!({"allowExtra": true, "fields": [
        {"name": "few", "type": "string"},
        {"name": "many", "type": "string"},
        {"name": "whole", "type": "integer"},
        {"name": "ratio", "type": "number"},
        {"name": "amount", "type": "decimal", "scale": 2},
        {"name": "ok", "type": "boolean"},
        {"name": "at", "type": "timestamp"},
        {"name": "day", "type": "date"},
        {"name": "more", "type": "json"},
    ]})
}

/// A record of [`fields`], some of which are null.
pub(crate) fn any_record(random: &mut Random, number: u64) -> Value {
    let words = [
        "Wick",
        "",
        "Lerwick",
        "한국",
        "naïve",
        "a longer name of a place, which has more than sixty-four bytes",
    ];
    let wide = [i64::MIN, i64::MAX, 0, -1, 1, 9_007_199_254_740_993];
    let small = |random: &mut Random| i64::try_from(random.below(2_001)).unwrap() - 1_000;
    let mut record = json!({
        "few": *random.pick(&words),
        "many": format!("{} {number}", { let count = random.below(40); letters(random, count) }),
        "whole": if random.chance(2) { *random.pick(&wide) } else { small(random) },
        "ratio": f64::from(i32::try_from(random.below(1 << 20)).unwrap() - (1 << 19)) / 3.0,
        "amount": format!("{}.{:02}", small(random), random.below(100)),
        "ok": random.chance(30),
        "at": format!("20{:02}-0{}-1{}T{:02}:59:{:02}.{:06}Z", random.below(30), 1 + random.below(9), random.below(10),
            random.below(24), random.below(60), random.below(1_000_000)),
        "day": format!("{}-{:02}-{:02}", 1_000 + random.below(2_000), 1 + random.below(12), 1 + random.below(28)),
        "more": match random.below(5) {
            0 => json!({"a": [number % 7, null]}),
            1 => json!([number % 3]),
            2 => json!("é"),
            3 => json!(1.5),
            _ => json!(true),
        },
    });
    let members = record.as_object_mut().unwrap();
    let names: Vec<String> = members.keys().filter(|name| *name != "many").cloned().collect();
    for name in names {
        if random.chance(5) {
            members.insert(name, Value::Null);
        }
    }
    if random.chance(10) {
        members.insert("beside".to_owned(), json!(number));
    }
    record
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_are_those_that_duckdb_computes() {
    let Some(python) = readers::python() else { return };
    let world = started().await;
    let (own, folder) = (&world.agent.http, world.folder());
    let mut estimates = Estimates::default();
    for seed in 0..configured("SLUICE_TEST_PROFILES", TABLES) {
        let slug = world.project_with(json!({"schemaDef": fields()})).await;
        let mut random = Random::new(seed);
        // One table is smaller than the sample, so its quantiles are exact.
        let batches = if seed % 3 == 0 { 3 } else { 12 };
        for batch in 0..batches {
            let records: Vec<Value> = (0..500).map(|row| any_record(&mut random, batch * 500 + row)).collect();
            let decided = contribute(own, &slug, &records).await;
            assert_eq!(decided.text("/status"), "merged", "{}", decided.body);
        }
        let figures = profile(&world.http, &slug, batches).await;
        let export = own
            .get(&format!("/projects/{slug}/export?version={batches}"))
            .await
            .expect(200);
        let extra = String::from_utf8_lossy(&export.bytes).matches("\"beside\"").count();
        assert_eq!(figures["extra"]["records"], extra, "{seed}");
        estimates.add(compared(
            &python,
            folder,
            &figures,
            &export.bytes,
            &format!("table {seed}"),
        ));
    }
    estimates.tell(usize::try_from(configured("SLUICE_TEST_PROFILES", TABLES)).unwrap());
}
