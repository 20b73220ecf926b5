//! A dataset in which every rule of the stored form matters, and every way in which the interface gives it back.
//!
//! Invariant: what is asked for here is asked over HTTP or by a command of the program, as a reader would.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Map, Value, json};
use tests::checker::delta::tables_below;
use tests::checker::record::types_of;
use tests::random::Random;
use tests::server::{DEADLINE, POLL};
use tests::world::{Agent, contribute};
use tests::{Options, World};

use super::sight::{Sight, Types, double, instant, parsed};
use crate::binary;

/// The version that is read beside the newest.
pub(super) const OLD: u64 = 2;
/// Rows of a page of the differences that carry a lot of text.
const LONG: usize = 3_000;
/// What is asked in SQL here and of others: in both an exact answer, in one order.
pub(super) const STATEMENTS: [&str; 22] = [
    "SELECT count(*) AS n FROM records",
    "SELECT count(number) AS a, count(\"double\") AS b, count(flag) AS c, count(\"at\") AS d, count(\"any\") AS e, \
     count(\"온도\") AS f FROM records",
    "SELECT min(number) AS a, max(number) AS b, min(\"double\") AS c, max(\"double\") AS d, min(text) AS e, max(text) AS f, \
     min(\"at\") AS g, max(\"at\") AS h FROM records",
    "SELECT max(number) AS a, min(\"double\") AS b FROM records WHERE series <> 'none'",
    "SELECT number, \"double\" FROM records ORDER BY \"double\" DESC NULLS LAST, number LIMIT 30",
    "SELECT number, text, flag FROM records ORDER BY small NULLS FIRST, number DESC LIMIT 60",
    "SELECT number, text, \"at\" FROM records ORDER BY \"at\" NULLS LAST, number LIMIT 20 OFFSET 2",
    "SELECT series, count(*) AS n, sum(small) AS s, avg(small) AS m, sum(eighths) AS e, avg(eighths) AS a FROM records \
     GROUP BY series ORDER BY series",
    "SELECT flag, count(DISTINCT text) AS n FROM records WHERE flag IS NOT NULL GROUP BY flag ORDER BY flag",
    "SELECT number, text FROM records WHERE text LIKE '%서울%' OR text = '' ORDER BY number DESC",
    "SELECT number, \"at\" FROM records WHERE \"at\" < TIMESTAMP '1970-01-01T00:00:00Z' ORDER BY number",
    "SELECT number, \"any\" FROM records WHERE \"any\" IS NOT NULL ORDER BY number LIMIT 50",
    "SELECT number, \"double\" FROM records WHERE \"double\" > 1e20 OR \"double\" < -1e20 ORDER BY number",
    "SELECT number FROM records WHERE number > 9007199254740992 ORDER BY number LIMIT 20 OFFSET 5",
    "SELECT text, count(*) AS n FROM records WHERE series <> 'long' GROUP BY text HAVING count(*) > 1 ORDER BY n DESC, text",
    "SELECT number, row_number() OVER (PARTITION BY flag ORDER BY number) AS place FROM records ORDER BY number LIMIT 100",
    "WITH late AS (SELECT * FROM records WHERE \"at\" >= TIMESTAMP '2026-01-01T00:00:00Z') SELECT a.number, b.small FROM late a \
     JOIN records b ON a.number = b.number ORDER BY a.number",
    "SELECT DISTINCT series, flag, CASE WHEN small IS NULL THEN 'none' WHEN small > 20 THEN 'many' ELSE 'few' END AS size \
     FROM records WHERE flag ORDER BY series, size",
    "SELECT number, day, price FROM records WHERE day < DATE '2021-01-01' OR price > 20.5 ORDER BY number LIMIT 90",
    "SELECT min(day) AS a, max(day) AS b, min(price) AS c, max(price) AS d, max(wei) AS e, min(fine) AS f FROM records",
    "SELECT series, sum(price) AS s, count(DISTINCT day) AS n FROM records GROUP BY series ORDER BY series",
    "SELECT day, price, count(*) AS n FROM records WHERE day > DATE '1999-01-01' GROUP BY day, price ORDER BY day, price LIMIT 50",
];

/// A service with a dataset of several versions by several agents.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) world: World,
    pub(super) types: Types,
    pub(super) slug: String,
    /// How many records each version has, from version 0 on.
    counts: Vec<u64>,
}

/// What a statement was answered.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Name and type of each column.
    pub(super) columns: Vec<(String, String)>,
    pub(super) rows: Vec<Vec<Value>>,
}

impl Answer {
    /// The rows as texts, whoever answered.
    pub(super) fn sight(&self, who: &str) -> Sight {
        let value = |(value, (_, kind)): (&Value, &(String, String))| match (kind.as_str(), value) {
            (_, Value::Null) => Value::Null,
            ("Json", Value::String(text)) if who != "/query" => parsed(text),
            ("Float64", value) => double(value),
            (kind, value) if kind.starts_with("Timestamp") => instant(value),
            _ => value.clone(),
        };
        let row = |row: &Vec<Value>| {
            assert_eq!(row.len(), self.columns.len());
            Value::Array(row.iter().zip(&self.columns).map(value).collect()).to_string()
        };
        Sight {
            who: who.to_owned(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    fn records(&self) -> Vec<Map<String, Value>> {
        let record = |row: &Vec<Value>| {
            let mut members = Map::new();
            for ((name, _), value) in self.columns.iter().zip(row) {
                match value {
                    Value::Object(extra) if name == "_sluice_extra" => members.extend(extra.clone()),
                    value if name != "_sluice_extra" => {
                        members.insert(name.clone(), value.clone());
                    }
                    _ => {}
                }
            }
            members
        };
        self.rows.iter().map(record).collect()
    }
}

/// Rows with the version and the contribution that each came with.
#[derive(Debug)]
pub(super) struct Told(Sight, Vec<u64>);

impl Told {
    /// Those that came after a version.
    pub(super) fn after(&self, version: u64) -> Sight {
        let Self(sight, versions) = self;
        let rows = sight.rows.iter().zip(versions).filter(|(_, of)| **of > version);
        Sight {
            who: sight.who.clone(),
            rows: rows.map(|(row, _)| row.clone()).collect(),
        }
    }
}

/// The rows of a reader with where they come from.
pub(super) fn told_by(types: &Types, who: &str, rows: &[Map<String, Value>]) -> Told {
    let mut sight = Sight::of_columns(who, types, rows);
    let mut versions = Vec::new();
    for (text, row) in sight.rows.iter_mut().zip(rows) {
        let version = row["_sluice_version"].as_u64().unwrap();
        *text = told(version, row["_sluice_contribution"].as_str().unwrap(), text);
        versions.push(version);
    }
    Told(sight, versions)
}

fn told(version: u64, contribution: &str, record: &str) -> String {
    format!("{version} by {contribution}: {record}")
}

impl Scene {
    /// Makes it. With `compacted`, two parts become one wherever they can; it is waited for the first.
    pub(super) async fn set(compacted: bool) -> Self {
        let world = World::start_with(binary(), |options| {
            options
                .with("SLUICE__COMPACTION__ENABLED", compacted)
                .with("SLUICE__COMPACTION__FAN_IN", 2)
        })
        .await;
        let def = contract();
        let slug = world.project_with(json!({"schemaDef": def})).await;
        let second = Agent::create(&world.http, &world.operator, "second.agent").await;
        let (_, stranger) = world.newcomer().await;
        let (usual, edges, long) = (usual(0, 300), edges(), long());
        let again = [&usual[100..], &self::usual(300, 40)[..]].concat();
        let last = vec![json!({"number": 0, "series": "bare"})];
        let (mut counts, mut count) = (vec![0], 0);
        for (agent, records, new) in [
            (&world.agent, &usual, usual.len()),
            (&second, &edges, edges.len()),
            (&stranger, &long, long.len()),
            (&second, &again, 40),
            (&world.agent, &last, 1),
        ] {
            let merged = contribute(&agent.http, &slug, records).await;
            assert_eq!(merged.text("/status"), "merged", "{}", merged.body);
            assert_eq!(merged.body["acceptedCount"], new, "{}", merged.body);
            count += new as u64;
            counts.push(count);
        }
        let scene = Self {
            types: types_of(&def),
            world,
            slug,
            counts,
        };
        let deadline = Instant::now() + DEADLINE;
        while compacted && scene.versions_of_commits().len() <= scene.counts.len() {
            assert!(Instant::now() < deadline, "the table was not compacted");
            tokio::time::sleep(POLL).await;
        }
        scene
    }

    /// The folder of the table.
    pub(super) fn table(&self) -> PathBuf {
        let mut tables = tables_below(self.world.server.options().data());
        assert_eq!(tables.len(), 1, "{tables:?}");
        tables.remove(0)
    }

    /// The version of the dataset at each version of the Delta table: a compaction leaves it as it is.
    pub(super) fn versions_of_commits(&self) -> Vec<u64> {
        let log = self.table().join("_delta_log");
        let commits = (0..).map_while(|number| std::fs::read_to_string(log.join(format!("{number:020}.json"))).ok());
        commits
            .scan(0, |version, commit| {
                *version += u64::from(commit.contains(r#"{"txn":"#));
                Some(*version)
            })
            .collect()
    }

    /// Merges small versions until the table has a checkpoint and some commits after it; the number of its commit.
    pub(super) async fn grow_to_a_checkpoint(&mut self) -> usize {
        let last = self.table().join("_delta_log/_last_checkpoint");
        let mut after = 0;
        while after < 3 {
            let number = self.counts.len();
            let record = json!({"number": -i64::try_from(number).unwrap(), "series": "small"});
            let merged = contribute(&self.world.agent.http, &self.slug, &[record]).await;
            assert_eq!(merged.text("/status"), "merged", "{}", merged.body);
            self.counts.push(self.records_at(self.newest()) + 1);
            assert!(number < 1_000, "no checkpoint after {number} versions");
            after += usize::from(last.exists());
        }
        let last: Value = serde_json::from_slice(&std::fs::read(last).unwrap()).unwrap();
        usize::try_from(last["version"].as_u64().unwrap()).unwrap()
    }

    /// A copy of the table in which the commits before this one are missing.
    pub(super) fn copy_without_commits_before(&self, number: usize) -> PathBuf {
        let (table, copy) = (self.table(), self.world.folder().join("copy"));
        std::fs::create_dir_all(copy.join("_delta_log")).unwrap();
        // The log first: what a commit names is there before it.
        for folder in ["_delta_log", "."] {
            for entry in std::fs::read_dir(table.join(folder)).unwrap().map(Result::unwrap) {
                let name = entry.file_name().into_string().unwrap();
                let commit = name.strip_suffix(".json").and_then(|commit| commit.parse().ok());
                if entry.path().is_file() && commit.is_none_or(|commit: usize| commit >= number) {
                    std::fs::copy(entry.path(), copy.join(folder).join(name)).unwrap();
                }
            }
        }
        copy
    }

    pub(super) fn newest(&self) -> u64 {
        self.counts.len() as u64 - 1
    }

    pub(super) fn records_at(&self, version: u64) -> u64 {
        self.counts[usize::try_from(version).unwrap()]
    }

    async fn get(&self, path: &str) -> tests::Answer {
        let path = format!("/projects/{}/{path}", self.slug);
        self.world.agent.http.get(&path).await.expect(200)
    }

    /// All pages of a version, of `limit` records each.
    pub(super) async fn data(&self, version: u64, limit: usize) -> Sight {
        let mut records = Vec::new();
        let mut next = (version > 0).then_some(0);
        while let Some(offset) = next {
            let page = self
                .get(&format!("data?version={version}&limit={limit}&offset={offset}"))
                .await;
            assert_eq!(page.body["version"], version);
            assert_eq!(page.body["total"], self.records_at(version));
            records.extend(page.body["items"].as_array().unwrap().clone());
            next = page.body["nextOffset"].as_u64();
        }
        self.sight(&format!("/data by {limit}"), &records)
    }

    /// One row at a time: the first, the last, some between, and the one that is not there.
    pub(super) async fn single_rows(&self, version: u64, whole: &Sight) {
        let (mut random, count) = (Random::new(version), whole.rows.len());
        let some = (0..10).map(|_| random.below(count)).collect::<Vec<_>>();
        for offset in [0, count - 1, count].into_iter().chain(some) {
            let page = self
                .get(&format!("data?version={version}&limit=1&offset={offset}"))
                .await;
            let row = self.sight("/data by 1", page.body["items"].as_array().unwrap());
            let expected = Sight {
                who: whole.who.clone(),
                rows: whole.rows.get(offset).cloned().into_iter().collect(),
            };
            row.must_be(&expected, &format!("version {version} at offset {offset}"));
        }
    }

    /// The export of a version.
    pub(super) async fn export(&self, version: u64) -> Sight {
        if version == 0 {
            return self.sight("/export", &[]);
        }
        let answer = self.get(&format!("export?version={version}")).await;
        assert_eq!(answer.header("content-type"), "application/x-ndjson; charset=utf-8");
        let text = String::from_utf8(answer.bytes).unwrap();
        let records: Vec<_> = text.lines().map(parsed).collect();
        self.sight("/export", &records)
    }

    /// All pages of what was appended between two versions, each record with where it comes from.
    pub(super) async fn diff(&self, from: u64, to: u64, limit: usize) -> Sight {
        let mut rows = Vec::new();
        let mut next = Some(0);
        while let Some(offset) = next {
            let path = format!("diff?from={from}&to={to}&limit={limit}&offset={offset}");
            let page = self.get(&path).await;
            assert_eq!(
                page.body["appendedCount"],
                self.records_at(to) - self.records_at(from),
                "{path}"
            );
            for item in page.body["items"].as_array().unwrap() {
                let record = self
                    .sight("/diff", std::slice::from_ref(&item["record"]))
                    .rows
                    .remove(0);
                let contribution = item["contributionId"].as_str().unwrap();
                rows.push(told(item["version"].as_u64().unwrap(), contribution, &record));
            }
            next = page.body["nextOffset"].as_u64();
        }
        Sight {
            who: "/diff".to_owned(),
            rows,
        }
    }

    /// What a statement is answered over a version.
    pub(super) async fn query(&self, version: u64, sql: &str, limit: usize) -> Answer {
        let body = json!({"sql": sql, "version": version, "limit": limit});
        let path = format!("/projects/{}/query", self.slug);
        let answer = self.world.agent.http.post(&path, &body).await.expect(200).body;
        assert_eq!(answer["version"], version);
        assert_eq!(answer["truncated"], false, "{sql}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let columns = answer["columns"].as_array().unwrap().iter();
        let rows = answer["rows"].as_array().unwrap().iter();
        Answer {
            columns: columns
                .map(|column| (text(&column["name"]), text(&column["type"])))
                .collect(),
            rows: rows.map(|row| row.as_array().unwrap().clone()).collect(),
        }
    }

    /// All rows of a version by SQL, `limit` at a time, ordered by `number`.
    pub(super) async fn query_pages(&self, version: u64, limit: usize) -> Sight {
        let mut records = Vec::new();
        loop {
            let offset = records.len();
            let sql = format!("SELECT * FROM records ORDER BY number LIMIT {limit} OFFSET {offset}");
            let page = self.query(version, &sql, limit).await.records();
            if page.is_empty() {
                return Sight::of_records(&format!("/query by {limit}"), &self.types, &records);
            }
            records.extend(page);
        }
    }

    /// The same rows in the order of `number`, which is another in every row.
    pub(super) fn by_number(sight: &Sight) -> Sight {
        let mut rows = sight.rows.clone();
        rows.sort_by_key(|row| parsed(row)["number"].as_i64().unwrap());
        Sight {
            who: format!("{} in order of `number`", sight.who),
            rows,
        }
    }

    /// Pulls a version with the program and verifies it with the program; the folder.
    pub(super) fn pull(&self, version: u64) -> PathBuf {
        let folder = self.world.folder().join(format!("pulled-{version}"));
        let known = self.world.folder().join("known-keys.json");
        let options: Options = self.world.server.options().clone();
        let options = options
            .with("SLUICE_KEY", &self.world.agent.key)
            .with("SLUICE_SERVER", self.world.server.base())
            .with("SLUICE_KNOWN_KEYS", known.display());
        let (version, dir) = (version.to_string(), folder.to_str().unwrap());
        for command in [
            &["pull", &self.slug, "--version", &version, "--dir", dir][..],
            &["verify", dir],
        ] {
            let output = options.run(command);
            let failed = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{command:?}: {failed}");
        }
        folder
    }

    fn sight(&self, who: &str, records: &[Value]) -> Sight {
        let records = records.iter().map(|record| record.as_object().unwrap());
        Sight::of_records(who, &self.types, records)
    }
}

fn contract() -> Value {
    json!({"allowExtra": true, "fields": [
        {"name": "number", "type": "integer", "required": true},
        {"name": "series", "type": "string", "required": true},
        {"name": "text", "type": "string"},
        {"name": "small", "type": "integer"},
        {"name": "eighths", "type": "number"},
        {"name": "double", "type": "number"},
        {"name": "flag", "type": "boolean"},
        {"name": "at", "type": "timestamp"},
        {"name": "any", "type": "json"},
        {"name": "day", "type": "date", "title": "Day", "description": "of the reading"},
        {"name": "price", "type": "decimal", "scale": 2, "unit": "€"},
        {"name": "wei", "type": "decimal", "scale": 0},
        {"name": "fine", "type": "decimal", "scale": 18},
        {"name": "온도", "type": "string"},
    ]})
}

/// Records from the `first` on, with `number` in another order and beyond what a double holds.
fn usual(first: i64, count: i64) -> Vec<Value> {
    let record = |row: i64| {
        let mut record = json!({
            "number": (row * 7_919 % 10_007 - 5_000) * 1_000_000_000_000_003,
            "series": "usual",
            "text": format!("reading {}", row % 89),
            "small": row % 41,
            "eighths": f64::from(i32::try_from(row * 37 % 1_001).unwrap()) / 8.0,
            "flag": row % 3 == 0,
            "day": format!("2026-{:02}-{:02}", 1 + row % 12, 1 + row % 28),
            "price": format!("{}.{:02}", row % 61 - 30, row % 100),
            "at": format!("2026-01-{:02}T{:02}:00:00.{:06}Z", 1 + row % 28, row % 24, row * 3_571 % 1_000_000),
        });
        if row % 5 == 0 {
            record["any"] = json!({"b": [row, null, {"c": format!("d{row}")}], "a": 0.5});
            record["extra"] = json!(["kept", row]);
        }
        if row % 7 == 0 {
            record["flag"] = Value::Null;
        }
        record
    };
    (first..first + count).map(record).collect()
}

/// Days and decimals at the ends of what their columns hold.
fn exact() -> Vec<Value> {
    let days = [
        "0001-01-01",
        "9999-12-31",
        "1969-12-31",
        "1970-01-01",
        "2020-02-29",
        "1582-10-10",
    ];
    let prices = [
        "0.00",
        "-0.01",
        "0.05",
        "99999999999999999999999999.99",
        "-99999999999999999999999999.99",
    ];
    let wei = [
        "170141183460469231731",
        "-9999999999999999999999999999",
        "9223372036854775808",
        "0",
    ];
    let fine = [
        "0.000000000000000001",
        "-9999999999.999999999999999999",
        "1.000000000000000000",
    ];
    let members = [
        days.map(|value| json!({"day": value})).to_vec(),
        prices.map(|value| json!({"price": value})).to_vec(),
        wei.map(|value| json!({"wei": value})).to_vec(),
        fine.map(|value| json!({"fine": value})).to_vec(),
    ];
    members.concat()
}

/// One value each that a reader or a writer could get wrong.
fn edges() -> Vec<Value> {
    let doubles = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        0.1,
        1e-7,
        5e-324,
        1e21,
        1e300,
        -1e300,
        f64::MAX,
        f64::MIN_POSITIVE,
        9_007_199_254_740_993.0,
    ];
    let texts = [
        "",
        " ",
        "NULL",
        "a\"\\/\u{8}\t\n\u{c}\r\u{1}\u{1f}\u{7f}",
        "é e\u{301}\u{2028}",
        "서울 \u{1f600}\u{fb33}",
        "'; --",
    ];
    let times = [
        "1970-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
        "0001-01-01T00:00:00Z",
        "9999-12-30T21:59:59.00001Z",
        "2026-11-21T07:10:20.5Z",
        "2026-11-21T07:10:20.000001+09:00",
    ];
    let anything = [
        json!("text"),
        json!(""),
        json!(-1),
        json!(1.5),
        json!(true),
        json!([]),
        json!({}),
        json!([null, {"z": null, "é": 1, "a": [[]]}]),
        json!(9_007_199_254_740_993_i64),
        json!({"deep": {"deeper": ["서울", "\u{1f600}", 1e300]}}),
    ];
    let extras = [
        json!({"more": null, "list": [1, 2]}),
        json!({"텍스트": "값", "n": -0.5}),
        json!({"Number": "not the field"}),
    ];
    let integers = [i64::MIN, i64::MAX, 9_007_199_254_740_993, -9_007_199_254_740_993, 1, -1];
    let members = [
        doubles.map(|value| json!({"double": value})).to_vec(),
        texts.map(|value| json!({"text": value})).to_vec(),
        texts.map(|value| json!({"온도": value})).to_vec(),
        times.map(|value| json!({"at": value})).to_vec(),
        exact(),
        anything.map(|value| json!({"any": value})).to_vec(),
        extras.to_vec(),
        vec![
            json!({"flag": true}),
            json!({"flag": false}),
            json!({"small": i64::MIN}),
            json!({}),
        ],
    ];
    let numbered = members.concat().into_iter().zip(2..).map(|(mut record, number)| {
        record["number"] = number.into();
        record
    });
    let whole = integers.map(|number| json!({"number": number}));
    let edges = numbered.chain(whole).map(|mut record| {
        record["series"] = "edges".into();
        record
    });
    edges.collect()
}

/// As many records as a batch may have, with so much text that their part is read by ranges.
fn long() -> Vec<Value> {
    let mut random = Random::new(3);
    let mut text = || -> String {
        let letter = |_| char::from(b'a' + u8::try_from(random.below(26)).unwrap());
        (0..LONG).map(letter).collect()
    };
    (0..500_i64)
        .map(|row| json!({"number": 100_000 - row, "series": "long", "text": text(), "small": row}))
        .collect()
}
