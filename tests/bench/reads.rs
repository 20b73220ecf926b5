//! Reads of a version of millions of records, and of ten thousand versions, against others over the same files.
//!
//! ```text
//! SLUICE_BENCH_PYTHON=…/python bench reads FILE.ndjson FOLDER [pages] [export] [open] [sql] [http]
//! ```
//!
//! Without the last, all of them. The file has a record of [`scene::contract`] a line, some millions of them. The
//! tables are made once in `FOLDER` and used again by the next run. The Python has `duckdb`, `polars`, `chdb`,
//! `datafusion`, `deltalake` and `orjson`.
//!
//! Invariant: a peer is measured between two measurements of ours; of each the best of all rounds counts.

mod ours;
mod peers;
pub(crate) mod scene;

use std::path::{Path, PathBuf};

use self::peers::{Cost, Costs, Peers, keep};
use self::scene::Scene;
use crate::report::Report;

/// How often everything is measured, ours and theirs in turn.
const ROUNDS: usize = 3;
/// The queries of the comparison.
const QUERIES: [(&str, &str); 6] = [
    ("count", "select count(*) as n from records"),
    (
        "filter",
        "select count(*) as n, avg(value) as a from records where ok and value > 400 and device like '%eu-west'",
    ),
    (
        "group by",
        "select device, count(*) as n, avg(value) as a, max(seq) as m from records group by device \
         order by n desc, device limit 20",
    ),
    (
        "top-k",
        "select id, device, seq, value from records order by value desc, id limit 100",
    ),
    (
        "search",
        "select count(*) as n from records where note like '%gripe%' and note like '%sista%'",
    ),
    ("point", "select * from records where id = 'ev_58e943829caad32a'"),
];
/// Who answers SQL besides us.
const ENGINES: [&str; 5] = [
    "chdb",
    "duckdb",
    "polars",
    "datafusion",
    "datafusion, filters pushed down",
];

/// Measures what was chosen, everything where nothing was.
pub(crate) async fn run(report: &mut Report, file: &Path, folder: &Path, chosen: &[String]) {
    let wanted = |what: &str| chosen.is_empty() || chosen.iter().any(|chosen| chosen == what);
    let scene = Scene::set(file, folder).await;
    let parts = scene.parts();
    let parts = parts.to_str().unwrap();
    let peers = Peers::of_environment();
    let layout = folder.join("duckdb");
    if let Some(peers) = peers.as_ref().filter(|_| !layout.exists()) {
        peers.run(&["layout", parts, layout.to_str().unwrap()]);
    }
    let layout = layout.to_str().unwrap();
    let memory = memory();
    let out = memory.join(format!("sluice-export-{}", std::process::id()));
    let many = scene.tables.join(scene.many.to_string());
    let queries: serde_json::Map<_, _> = QUERIES
        .iter()
        .map(|&(name, sql)| (name.to_owned(), sql.into()))
        .collect();
    let queries = serde_json::Value::from(queries).to_string();

    let mut mine = Costs::new();
    let mut theirs: Vec<(String, Costs)> = Vec::new();
    for _ in 0..ROUNDS {
        let mut ask = |who: String, arguments: &[&str]| {
            let costs = peers.as_ref().map_or_else(Costs::new, |peers| peers.costs(arguments));
            match theirs.iter_mut().find(|(name, _)| *name == who) {
                Some((_, best)) => keep(best, costs),
                None => theirs.push((who, costs)),
            }
        };
        if wanted("pages") {
            keep(&mut mine, ours::pages(&scene).await);
            for engine in ["duckdb", "polars"] {
                ask(format!("pages: {engine}"), &["pages", engine, parts]);
            }
        }
        if wanted("export") {
            keep(&mut mine, ours::export(&scene, &out).await);
            for engine in ["polars", "duckdb"] {
                let arguments = ["export", engine, parts, out.to_str().unwrap()];
                ask(format!("export: {engine}"), &arguments);
            }
        }
        if wanted("open") {
            keep(&mut mine, ours::open(&scene).await);
            let arguments = ["open", "deltalake", many.to_str().unwrap(), "5000", "10000"];
            ask("open: deltalake, version".to_owned(), &arguments);
        }
        if wanted("sql") {
            keep(&mut mine, ours::queries(&scene, &QUERIES).await);
            for engine in ENGINES {
                ask(format!("sql: {engine}"), &["sql", engine, parts, &queries]);
                let who = format!("sql: {engine}, files as DuckDB writes them");
                ask(who, &["sql", engine, layout, &queries]);
            }
        }
        if wanted("http") {
            keep(&mut mine, ours::over_http(&scene).await);
        }
    }
    tell(report, &mine, &theirs);
}

/// A folder in memory, so that no disk is measured.
fn memory() -> PathBuf {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() {
        shared.to_owned()
    } else {
        std::env::temp_dir()
    }
}

fn shown(cost: Cost) -> String {
    format!("{:.2} / {:.2} ms", cost.wall, cost.cpu)
}

fn tell(report: &mut Report, mine: &Costs, theirs: &[(String, Costs)]) {
    let rows: Vec<_> = mine.iter().map(|(name, cost)| (name.clone(), shown(*cost))).collect();
    report.table("ours: clock / processors", &rows);
    let mut rows: Vec<_> = Vec::new();
    for (who, costs) in theirs {
        rows.extend(
            costs
                .iter()
                .map(|(name, cost)| (format!("{who}: {name}"), shown(*cost))),
        );
        if who.starts_with("sql: ") && costs.len() == QUERIES.len() {
            let sum = costs.values().fold(Cost::NONE, |sum, cost| sum.plus(*cost));
            rows.push((format!("{who}: sum"), shown(sum)));
        }
    }
    report.table("theirs: clock / processors", &rows);
    let cpu = |costs: &Costs, name: &str| costs.get(name).map(|cost| cost.cpu);
    let of = |who: &str, name: &str| {
        let found = theirs.iter().find(|(found, _)| found == who);
        found.and_then(|(_, costs)| cpu(costs, name))
    };
    let page = [
        ("Sluice", cpu(mine, "page: random")),
        ("DuckDB", of("pages: duckdb", "random")),
        ("Polars", of("pages: polars", "random")),
    ];
    report.chart("200 records at a random depth of 5 million", "CPU ms", &page);
    let export = [
        ("Sluice", cpu(mine, "export")),
        ("Polars", of("export: polars", "export")),
        ("DuckDB", of("export: duckdb", "export")),
    ];
    report.chart("export of 5 million records", "CPU ms", &export);
    let sum = |engine: &str| {
        let (_, costs) = theirs.iter().find(|(found, _)| *found == format!("sql: {engine}"))?;
        (costs.len() == QUERIES.len()).then(|| costs.values().map(|cost| cost.wall).sum::<f64>())
    };
    let mut bars = vec![("Sluice, sandboxed", mine.get("sql: sum").map(|cost| cost.wall))];
    bars.extend(ENGINES[..4].iter().map(|engine| (*engine, sum(engine))));
    report.chart("six queries over 5 million records, sum", "ms", &bars);
    let opened = [
        ("Sluice", cpu(mine, "open: a random version of 10,000, and its parts")),
        ("delta-rs, version 5,000", of("open: deltalake, version", "5000")),
        ("delta-rs, the latest", of("open: deltalake, version", "10000")),
    ];
    report.chart("opening one of 10,000 versions", "CPU ms", &opened);
}
