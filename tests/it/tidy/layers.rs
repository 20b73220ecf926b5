//! Checks the order of the layers of `api`, and that no package has a large circle of files.
//!
//! An import is a path that begins with `crate`, `super` or `self`, in a `use` or elsewhere, outside of tests. It leads to
//! the file that has the name, through one re-export. A parent that uses a file of its own folder is no edge of a circle,
//! since the two are one module to everybody else; a child that uses its parent is one.
//!
//! Invariant: an exception is a line of a list here, with its reason.

use std::collections::{BTreeMap, BTreeSet};

use super::{documents, metadata, none, product_sources, root};

/// Layers of `api/src` from below, each a folder, or the files beside the folders (`base`). Each may use itself and those
/// that are named with it.
const LAYERS: [(&str, &[&str]); 8] = [
    ("base", &[]),
    ("state", &["base"]),
    ("call", &["base", "state"]),
    ("rules", &["base", "state", "call"]),
    ("flow", &["base", "state", "call", "rules"]),
    ("ops", &["base", "state", "call", "rules"]),
    ("dispatch", &["base", "state", "call", "rules", "ops"]),
    ("transport", &["base", "state", "call", "rules", "ops", "dispatch"]),
];
/// The most files of a circle.
const MOST_IN_CIRCLE: usize = 3;
/// Larger circles that stay: one file of each, how many it has at most, and the reason.
const CIRCLES: [(&str, usize, &str); 4] = [
    (
        "api/store/error",
        11,
        "errors name the indexes of the engine, which opens connections that fail with errors",
    ),
    (
        "api/store/money/faults",
        4,
        "a planted bug is told what it breaks, and stands where it breaks it",
    ),
    (
        "catalog/state",
        17,
        "the state of a table is made of commits, parts and keys, and a commit of what was prepared for a state",
    ),
    (
        "pipelines/eventlog/embedded/state",
        4,
        "a topic has the queue of its committer, which writes batches of the topic",
    ),
];

/// Path of a module from the root of its package.
type Module = Vec<String>;

/// A word, `::` or another letter of a source text without comments, literals and inline tests.
fn tokens(text: &str) -> Vec<&str> {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    let is_word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    while at < bytes.len() {
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(literal) = rest.strip_prefix("r#\"").or_else(|| rest.strip_prefix("br#\"")) {
            let opening = rest.len() - literal.len();
            literal.find("\"#").map_or(rest.len(), |end| opening + end + 2)
        } else if let Some(literal) = rest.strip_prefix('"') {
            let mut is_escaped = false;
            let end = literal.bytes().position(|byte| {
                let ends = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("'\"'") || rest.starts_with("b'\"'") {
            rest.find("\"'").unwrap() + 2
        } else if rest.starts_with("::") {
            found.push("::");
            2
        } else if is_word(bytes[at]) {
            let end = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
            found.push(&rest[..end]);
            end
        } else {
            let end = rest.chars().next().unwrap().len_utf8();
            found.extend(Some(&rest[..end]).filter(|letter| !letter.trim().is_empty()));
            end
        };
        at += length;
    }
    found
}

/// Reads the tree of paths that begins at `at`, such as `a::{b, c::d}`. Returns the place after it.
fn tree<'a>(tokens: &[&'a str], mut at: usize, prefix: &[&'a str], paths: &mut Vec<Vec<&'a str>>) -> usize {
    let mut path = prefix.to_vec();
    while let Some(&token) = tokens.get(at) {
        match token {
            "{" => {
                at += 1;
                while !matches!(tokens.get(at), Some(&"}") | None) {
                    let after = tree(tokens, at, &path, paths);
                    // A new name, as in `a as b`, belongs to no path.
                    let separator = |token: &&str| matches!(*token, "," | "}");
                    at = tokens[after..]
                        .iter()
                        .position(separator)
                        .map_or(tokens.len(), |next| after + next);
                    at += usize::from(tokens.get(at) == Some(&","));
                }
                return at + 1;
            }
            word => {
                path.push(word);
                at += 1;
                if tokens.get(at) != Some(&"::") {
                    break;
                }
                at += 1;
            }
        }
    }
    paths.push(path);
    at
}

/// The paths of a source text that begin with `crate`, `super` or `self`, and what it re-exports of its children.
fn paths(text: &str) -> (Vec<Vec<&str>>, Vec<Vec<&str>>) {
    let tokens = tokens(text);
    let (mut found, mut exported) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        let before = at.checked_sub(1).map(|before| tokens[before]);
        let is_path = tokens.get(at + 1) == Some(&"::") && before != Some("::");
        at = match tokens[at] {
            "crate" | "super" | "self" if is_path => tree(&tokens, at, &[], &mut found),
            // `pub use a::B;` and `pub(crate) use a::B;`
            "use"
                if matches!(before, Some("pub" | ")")) && !matches!(tokens.get(at + 1), Some(&("crate" | "super"))) =>
            {
                let first = at + 1 + 2 * usize::from(tokens.get(at + 1) == Some(&"self"));
                tree(&tokens, first, &[], &mut exported)
            }
            _ => at + 1,
        };
    }
    (found, exported)
}

/// The files of one package, by module.
struct Files {
    texts: BTreeMap<Module, String>,
    /// What a module re-exports: the child that has the name.
    exported: BTreeMap<(Module, String), Module>,
}

fn child(module: &[String], names: &[&str]) -> Module {
    module
        .iter()
        .cloned()
        .chain(names.iter().map(|name| (*name).to_owned()))
        .collect()
}

impl Files {
    /// Reads the source files of the folder `src`, a path from the root of the workspace.
    fn of(src: &str) -> Self {
        let module = |name: &str| {
            let path = name.strip_prefix(src)?.strip_prefix('/')?.strip_suffix(".rs")?;
            Some(if path == "lib" {
                Vec::new()
            } else {
                path.split('/').map(str::to_owned).collect()
            })
        };
        let sources = product_sources().into_iter();
        let texts = sources
            .filter_map(|(name, text)| Some((module(&name)?, text)))
            .collect();
        Self::new(texts)
    }

    fn new(texts: BTreeMap<Module, String>) -> Self {
        let mut exported = BTreeMap::new();
        for (module, text) in &texts {
            for path in paths(text).1 {
                let (name, of) = path.split_last().unwrap();
                let of = child(module, of);
                if &of != module && texts.contains_key(&of) {
                    exported.insert((module.clone(), (*name).to_owned()), of);
                }
            }
        }
        Self { texts, exported }
    }

    /// The module that has what a path of `module` names.
    fn target(&self, module: &Module, path: &[&str]) -> Option<Module> {
        let ups = path.iter().take_while(|name| **name == "super").count();
        let base = match path[0] {
            "crate" => &[],
            "self" => &module[..],
            _ => module.get(..module.len().checked_sub(ups)?)?,
        };
        let full = child(base, &path[ups.max(1)..]);
        let known = (0..=full.len())
            .rev()
            .find(|length| self.texts.contains_key(&full[..*length]))?;
        let found = full[..known].to_vec();
        let name = full.get(known).cloned().unwrap_or_default();
        Some(self.exported.get(&(found.clone(), name)).cloned().unwrap_or(found))
    }

    /// The modules that each uses, without itself.
    fn imports(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let uses = |module: &Module, text: &str| {
            let found = paths(text).0;
            let targets = found.iter().filter_map(|path| self.target(module, path));
            targets.filter(|target| target != module).collect()
        };
        self.texts
            .iter()
            .map(|(module, text)| (module, uses(module, text)))
            .collect()
    }

    /// The circles of more files than are allowed.
    fn circles(&self) -> BTreeSet<BTreeSet<Module>> {
        let mut edges = self.imports();
        for (module, used) in &mut edges {
            used.retain(|used| !used.starts_with(module));
        }
        let reached = |from: &Module| {
            let (mut seen, mut pending) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(next) = pending.pop() {
                let more = edges[&next].iter().filter(|used| seen.insert((*used).clone()));
                pending.extend(more.cloned().collect::<Vec<_>>());
            }
            seen
        };
        let reached: BTreeMap<&Module, BTreeSet<Module>> =
            self.texts.keys().map(|from| (from, reached(from))).collect();
        let circle = |of: &Module| -> BTreeSet<Module> {
            let both = reached[of].iter().filter(|other| reached[other].contains(of));
            both.cloned().collect()
        };
        let circles = self.texts.keys().map(circle);
        circles.filter(|circle| circle.len() > MOST_IN_CIRCLE).collect()
    }
}

/// The layer of a module of `api`; `None` for the root, which is above all.
fn layer(module: &[String]) -> Option<&str> {
    let first = module.first()?.as_str();
    let named = LAYERS.iter().find(|(name, _)| *name == first).map(|(name, _)| *name);
    Some(named.unwrap_or("base"))
}

/// The imports of a package that point up.
fn upward(files: &Files) -> Vec<String> {
    let mut problems = Vec::new();
    for (module, used) in files.imports() {
        let Some(own) = layer(module) else { continue };
        let allowed = LAYERS.iter().find(|(name, _)| *name == own).unwrap().1;
        for used in used {
            let of = layer(&used);
            if of != Some(own) && of.is_none_or(|of| !allowed.contains(&of)) {
                let (from, to) = (module.join("/"), used.join("/"));
                problems.push(format!("{from} ({own}) uses {to} ({})", of.unwrap_or("the root")));
            }
        }
    }
    problems
}

#[test]
fn no_import_of_api_points_up() {
    none(&upward(&Files::of("api/src")));
}

#[test]
fn no_package_has_a_large_circle_of_files() {
    let mut problems = Vec::new();
    for package in metadata().packages {
        let folder = package.manifest_path.parent().unwrap();
        let folder = folder.strip_prefix(root().to_str().unwrap()).unwrap();
        for circle in Files::of(&format!("{folder}/src")).circles() {
            let names: Vec<String> = circle
                .iter()
                .map(|module| format!("{folder}/{}", module.join("/")))
                .collect();
            let kept = CIRCLES.iter().find(|(file, ..)| names.iter().any(|name| name == file));
            if kept.is_none_or(|(_, most, _)| names.len() > *most) {
                problems.push(format!(
                    "{} files use each other in a circle: {}",
                    names.len(),
                    names.join(", ")
                ));
            }
        }
    }
    none(&problems);
}

#[test]
fn every_file_that_a_document_names_is_there() {
    let mut problems = Vec::new();
    for (path, text) in documents() {
        // Decisions and measurements name files as they were.
        if path.ends_with("DECISIONS.md") || path.ends_with("RESULTS.md") || path.ends_with("RENAMES.md") {
            continue;
        }
        let quoted = text.split('`').skip(1).step_by(2);
        let sources = quoted.filter(|name| name.contains("/src/") && !name.contains([' ', '*', '\n', '…']));
        let missing = sources.filter(|name| !root().join(name).exists());
        problems.extend(missing.map(|name| format!("{}: there is no {name}", path.display())));
    }
    none(&problems);
}

#[test]
fn an_import_that_points_up_and_a_circle_are_found() {
    let texts = [
        ("state", "mod a;"),
        (
            "state/a",
            "use crate::call::B as C; // use crate::ops::X;\nconst A: &str = \"crate::ops::Y\";",
        ),
        ("call", "mod b;\npub(crate) use self::b::B;"),
        ("call/b", "use super::super::rules::{self, d::{D, E}};"),
        ("rules", "mod d;"),
        (
            "rules/d",
            "fn f() { crate::state::a::g() }\n#[cfg(test)]\nmod tests {\n    use crate::ops;\n}",
        ),
    ];
    let module = |name: &str| name.split('/').map(str::to_owned).collect::<Module>();
    let texts = texts.map(|(name, text)| (module(name), text.to_owned()));
    let files = Files::new(BTreeMap::from(texts));
    let found = [
        "call/b (call) uses rules (rules)",
        "call/b (call) uses rules/d (rules)",
        "state/a (state) uses call/b (call)",
    ];
    assert_eq!(upward(&files), found);
    // Three files are allowed.
    assert!(files.circles().is_empty());
}
