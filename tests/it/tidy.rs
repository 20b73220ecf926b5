//! Checks the shape of the source tree, which the README describes.
//!
//! Invariant: a new edge between packages, or a new owner of an outside package, is a visible change of a list here.

mod comments;
mod doors;
mod layers;
mod mutations;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// What each package of the workspace may use of the others; `tests` may use every one.
const EDGES: [(&str, &[&str]); 27] = [
    ("types", &[]),
    ("proof", &["types"]),
    ("tabular", &["types"]),
    ("catalog", &["types", "proof"]),
    ("fenced", &[]),
    ("sql", &["types", "fenced"]),
    ("operators", &["types"]),
    ("encoder", &[]),
    ("models", &["types", "operators", "encoder"]),
    ("eventlog", &["types"]),
    ("messages", &["types", "proof", "operators", "tabular", "eventlog"]),
    ("uploads", &["types", "catalog"]),
    (
        "pipelines",
        &[
            "types",
            "operators",
            "tabular",
            "eventlog",
            "catalog",
            "messages",
            "uploads",
        ],
    ),
    ("x402", &["types", "outbound"]),
    ("pay", &["types"]),
    ("store", &["types", "pay", "oauth"]),
    ("client", &["types", "proof"]),
    ("mail", &["types"]),
    ("oauth", &["types"]),
    ("pages", &["types", "operators"]),
    ("search", &["types", "operators", "models"]),
    ("outbound", &["types"]),
    ("collectors", &["types", "tabular", "outbound", "store"]),
    ("growth", &[]),
    ("s3-server", &[]),
    (
        "api",
        &[
            "types",
            "proof",
            "tabular",
            "operators",
            "eventlog",
            "catalog",
            "messages",
            "uploads",
            "pay",
            "store",
            "mail",
            "pages",
            "oauth",
            "outbound",
            "x402",
            "search",
            "models",
        ],
    ),
    (
        "sluice",
        &[
            "types",
            "proof",
            "tabular",
            "operators",
            "models",
            "eventlog",
            "catalog",
            "pipelines",
            "messages",
            "uploads",
            "store",
            "pay",
            "x402",
            "outbound",
            "collectors",
            "client",
            "api",
            "fenced",
            "sql",
            "mail",
        ],
    ),
];

/// Outside packages with few users: who they are. Everybody else goes through these.
const OWNERS: [(&str, &[&str]); 42] = [
    ("sqlx", &["store"]),
    ("datafusion", &["sql"]),
    ("chrono", &["sql"]),
    ("chrono-tz", &["sql"]),
    ("seccompiler", &["fenced"]),
    ("calamine", &["tabular"]),
    ("sheet-xml", &["tabular"]),
    ("zip", &["tabular", "tests"]),
    (
        "parquet",
        &["proof", "catalog", "collectors", "tabular", "sluice", "tests"],
    ),
    ("object_store", &["catalog", "sluice", "tests"]),
    ("fjall", &["catalog", "eventlog"]),
    ("rusty-s3", &["catalog"]),
    ("s3s", &["s3-server"]),
    ("s3s-fs", &["s3-server"]),
    ("rdkafka", &["eventlog"]),
    ("redis", &["api"]),
    ("lettre", &["mail"]),
    ("mailchecker", &["api"]),
    ("opentelemetry", &["sluice"]),
    ("opentelemetry-http", &["client"]),
    ("opentelemetry-otlp", &["sluice"]),
    ("opentelemetry_sdk", &["sluice"]),
    ("ed25519-dalek", &["proof"]),
    ("ring", &["oauth"]),
    ("k256", &["x402"]),
    ("askama", &["pages"]),
    ("tantivy", &["search"]),
    ("rust-stemmers", &["models"]),
    ("zstd", &["api", "encoder", "tabular"]),
    ("encoding_rs", &["tabular"]),
    ("chardetng", &["tabular"]),
    ("datasketches", &["operators"]),
    ("pulldown-cmark", &["pages"]),
    ("axum", &["api", "sluice", "tests"]),
    ("hyper", &["outbound", "sluice", "s3-server"]),
    ("reqwest", &["client", "s3-server", "tests"]),
    ("rustls", &["client", "outbound", "s3-server", "tests"]),
    ("clap", &["sluice", "tests"]),
    ("clap_complete", &["sluice"]),
    ("config", &["sluice"]),
    ("deltalake", &[]),
    ("rand", &[]),
];

/// Packages at the bottom, which do no I/O and know no runtime.
const PURE: [&str; 2] = ["types", "operators"];
/// What a package at the bottom does not use.
const IMPURE: [&str; 6] = ["tokio", "tokio-util", "reqwest", "object_store", "fjall", "sqlx"];
/// What a visitor sees first.
const TOP: [&str; 13] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "NOTICE",
    "README.md",
    "api",
    "catalog",
    "collectors",
    "deploy",
    "operators",
    "pipelines",
    "sql",
    "tests",
];
/// The most lines of a source file.
const LONGEST: usize = 600;
/// Statics that are not computed at their first use: the allocator, what tests arm and plant, a mark of a thread that is no
/// state, and a file that stands in the program once.
const STATICS: [&str; 5] = ["ALLOCATOR", "ARMED", "PLANTED", "ON_BLOCKING_THREAD", "PACKED"];
/// The most bytes of the README, which is what a visitor reads first.
const README_BYTES: u64 = 10_240;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap()
}

/// For each package of the workspace, what it uses outside of its own tests.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    let packages = metadata().packages;
    packages
        .iter()
        .map(|package| {
            let normal = package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind != DependencyKind::Development);
            (
                package.name.to_string(),
                normal.map(|dependency| dependency.name.clone()).collect(),
            )
        })
        .collect()
}

/// Every file below the folders of the workspace, with its path from the root.
fn files() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut pending = vec![root()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with('.') || name == "target" {
                continue;
            }
            if entry.path().is_dir() {
                pending.push(entry.path());
            } else {
                let path = entry.path();
                found.push((path.strip_prefix(root()).unwrap().display().to_string(), path));
            }
        }
    }
    found.sort();
    found
}

fn sources() -> Vec<(String, String)> {
    let rust = files()
        .into_iter()
        .filter(|(_, path)| path.extension().is_some_and(|extension| extension == "rs"));
    rust.map(|(name, path)| (name, fs::read_to_string(path).unwrap()))
        .collect()
}

/// The source files of the product, without those of tests.
fn product_sources() -> Vec<(String, String)> {
    let mut product = sources();
    product.retain(|(name, _)| {
        let of_tests = ["tests/", "tests.rs", "testing", "conformance"];
        name.contains("src/") && !of_tests.iter().any(|part| name.contains(part))
    });
    product
}

/// Fails with every problem at once.
#[track_caller]
fn none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn packages_use_each_other_only_along_the_listed_edges() {
    let uses = uses();
    let members: BTreeSet<_> = uses.keys().cloned().collect();
    let mut problems = Vec::new();
    for (package, used) in &uses {
        let inside = used.intersection(&members);
        match EDGES.iter().find(|(name, _)| name == package) {
            Some((_, allowed)) => {
                let inside: BTreeSet<&str> = inside.map(String::as_str).collect();
                let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
                let unlisted = inside.difference(&allowed);
                problems.extend(unlisted.map(|name| format!("{package} uses {name}: not a listed edge")));
                let unused = allowed.difference(&inside);
                problems
                    .extend(unused.map(|name| format!("{package} does not use {name}: a listed edge that is none")));
            }
            None if package == "tests" => {}
            None => problems.push(format!("{package} is not in the list of edges")),
        }
    }
    none(&problems);
}

#[test]
fn outside_packages_are_used_only_by_their_owners() {
    let mut problems = Vec::new();
    for (package, used) in uses() {
        for (outside, owners) in OWNERS {
            if used.contains(outside) && !owners.contains(&package.as_str()) {
                problems.push(format!("{package} uses {outside}, which belongs to {owners:?}"));
            }
        }
        if PURE.contains(&package.as_str()) {
            let impure = IMPURE.into_iter().filter(|name| used.contains(*name));
            problems.extend(impure.map(|name| format!("{package} must do no I/O and uses {name}")));
        }
    }
    none(&problems);
}

#[test]
fn every_package_takes_the_workspace_lints_and_is_not_published() {
    let mut problems = Vec::new();
    for package in metadata().packages {
        let manifest = fs::read_to_string(&package.manifest_path).unwrap();
        if !manifest.contains("[lints]\nworkspace = true") {
            problems.push(format!("{}: the workspace's lints are not taken", package.name));
        }
        if package.publish.as_ref().is_none_or(|registries| !registries.is_empty()) {
            problems.push(format!("{}: can be published", package.name));
        }
        if package.description.is_none() {
            problems.push(format!("{}: has no description", package.name));
        }
    }
    none(&problems);
}

#[test]
fn the_readme_names_every_package() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut problems = Vec::new();
    for package in metadata().packages {
        let folder = package.manifest_path.parent().unwrap();
        let folder = folder.strip_prefix(root().to_str().unwrap()).unwrap();
        if !readme.contains(&format!("`{folder}`")) {
            problems.push(format!("the README does not name `{folder}`"));
        }
    }
    none(&problems);
}

#[test]
fn the_readme_is_short() {
    let bytes = fs::metadata(root().join("README.md")).unwrap().len();
    assert!(
        bytes <= README_BYTES,
        "README.md: {bytes} bytes, at most {README_BYTES}"
    );
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        letter if letter.is_alphanumeric() || matches!(letter, '-' | '_') => Some(letter.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

/// The documents of the workspace by path, including those of `.github`.
fn documents() -> BTreeMap<PathBuf, String> {
    let hidden = fs::read_dir(root().join(".github"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let all = files().into_iter().map(|(_, path)| path).chain(hidden);
    all.filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| (path.canonicalize().unwrap(), fs::read_to_string(&path).unwrap()))
        .collect()
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let documents = documents();
    let mut problems = Vec::new();
    for (path, text) in &documents {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            // Links of texts that the service fills in are followed where it serves them.
            if link.contains("://") || link.starts_with("{base}") || link.starts_with('/') {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                path.clone()
            } else {
                path.with_file_name(file)
            };
            let Ok(target) = target.canonicalize() else {
                problems.push(format!("{}: no file for the link {link}", path.display()));
                continue;
            };
            let found = |text: &String| {
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                headings.any(|line| anchor(line.trim_start_matches('#').trim()) == heading)
            };
            if !heading.is_empty() && !documents.get(&target).is_some_and(found) {
                problems.push(format!("{}: no heading for the link {link}", path.display()));
            }
        }
    }
    none(&problems);
}

/// The arguments of a call, up to its closing bracket.
fn arguments(call: &str) -> &str {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (at, letter) in call.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted && depth == 0 => return &call[..at],
            ')' if !quoted => depth -= 1,
            _ => {}
        }
    }
    call
}

/// The messages that a source file logs at the levels that operators see, each up to its first placeholder.
fn log_lines(text: &str) -> BTreeSet<String> {
    let calls = ["tracing::info!(", "tracing::warn!(", "tracing::error!("];
    let calls = calls.into_iter().flat_map(|call| text.split(call).skip(1));
    let messages = calls.filter_map(|call| arguments(call).rsplit('"').nth(1));
    let fixed = messages.map(|message| message.split('{').next().unwrap().trim().to_owned());
    fixed.filter(|message| !message.is_empty()).collect()
}

#[test]
fn operations_lists_every_log_line_and_no_other() {
    let operations = fs::read_to_string(root().join("deploy/OPERATIONS.md")).unwrap();
    let section = operations.split("\n## Log lines\n").nth(1).unwrap();
    let rows = section.split("\n## ").next().unwrap().lines();
    let lines = rows.filter_map(|row| row.strip_prefix("| ")?.split(" | ").nth(1));
    let listed: BTreeSet<_> = lines
        .filter(|line| line.starts_with('`'))
        .map(|line| line.trim_matches('`').split(['{', '…']).next().unwrap().trim())
        .collect();
    let product = product_sources();
    let mut problems = Vec::new();
    for (name, text) in &product {
        let missing = log_lines(text)
            .into_iter()
            .filter(|line| !listed.contains(line.as_str()));
        problems.extend(missing.map(|line| format!("{name}: OPERATIONS does not list `{line}`")));
    }
    let stale = listed
        .iter()
        .filter(|line| !product.iter().any(|(_, text)| text.contains(**line)));
    problems.extend(stale.map(|line| format!("OPERATIONS lists `{line}`, which nothing logs")));
    none(&problems);
}

#[test]
fn the_top_of_the_tree_stays_as_it_is() {
    let mut problems = Vec::new();
    for entry in fs::read_dir(root()).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if !name.starts_with('.') && !TOP.contains(&name.as_str()) && !matches!(name.as_str(), "target" | "data") {
            problems.push(format!("{name} does not belong at the top"));
        }
    }
    none(&problems);
}

#[test]
fn every_source_file_is_short_and_says_what_it_is_for() {
    let mut problems = Vec::new();
    for (name, text) in sources() {
        let lines = text.lines().count();
        if lines > LONGEST {
            problems.push(format!("{name}: {lines} lines, at most {LONGEST}"));
        }
        // The tests of a file say what they are for by standing beside it.
        let beside = name.ends_with("/tests.rs") || name.contains("/src/tests/");
        if !beside && !text.starts_with("//! ") {
            problems.push(format!("{name}: does not open with what it is for (`//! …`)"));
        }
        if Path::new(&name).file_name().unwrap() == "mod.rs" {
            problems.push(format!("{name}: a module is named by its file, not `mod.rs`"));
        }
        if text.lines().any(|line| line.len() > 2 && line.ends_with([' ', '\t'])) {
            problems.push(format!("{name}: trailing space"));
        }
    }
    none(&problems);
}

#[test]
fn nothing_is_left_unfinished_or_switched_off() {
    let unfinished = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("#[ign", "ore"),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("thread::", "sleep"),
        concat!("#[all", "ow("),
        concat!("#![all", "ow("),
    ];
    let mut problems = Vec::new();
    for (name, text) in sources() {
        let found = unfinished.into_iter().filter(|word| text.contains(word));
        problems.extend(found.map(|word| format!("{name}: contains {word}")));
    }
    none(&problems);
}

#[test]
fn no_state_belongs_to_the_process() {
    let mut problems = Vec::new();
    for (name, text) in product_sources() {
        for line in text.lines() {
            let words = line
                .trim_start()
                .split_once("static ")
                .filter(|(before, _)| before.is_empty() || (before.starts_with("pub") && before.ends_with(' ')));
            let Some((found, kind)) = words.and_then(|(_, rest)| rest.split_once(": ")) else {
                continue;
            };
            // A `LazyLock` of plain values is a constant that is computed at its first use.
            let mutable = ["Atomic", "Cell<", "Lock<", "Mutex", "Semaphore"];
            let kind = kind.strip_prefix("LazyLock<");
            let is_constant = kind.is_some_and(|kind| !mutable.iter().any(|part| kind.contains(part)));
            if !is_constant && !STATICS.contains(&found) {
                problems.push(format!(
                    "{name}: `static {found}` is state of the process; let an object own it"
                ));
            }
        }
    }
    none(&problems);
}
