//! Checks how doc comments begin, in every package.

use std::collections::BTreeMap;

use super::{metadata, none, root, sources};

/// Words that no doc comment begins with: it says what something is or does, not what a reader might ask.
const RIDDLES: [&str; 9] = [
    "What", "How", "Whether", "Who", "Whoever", "Where", "Those", "Which", "Whose",
];
/// The most doc comments of a package that may begin so, in percent.
const MAX_RIDDLES: usize = 2;
/// Folders and files of tests, whose doc comments are not measured.
const TEST_PATHS: [&str; 10] = [
    "test",
    "tests",
    "testing",
    "conformance",
    "examples",
    "bench",
    "benches",
    "it",
    "fixture",
    "fixtures",
];

/// The doc comments of a source file: each run of `///` lines with the number of its first line.
fn docs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        let doc = line.trim_start().strip_prefix("///").map(str::trim);
        match doc {
            Some(doc) if is_open => {
                let (_, joined) = found.last_mut().unwrap();
                if !joined.is_empty() && !doc.is_empty() {
                    joined.push(' ');
                }
                joined.push_str(doc);
            }
            Some(doc) => found.push((at + 1, doc.to_owned())),
            None => {}
        }
        is_open = doc.is_some();
    }
    found.retain(|(_, doc)| !doc.is_empty());
    found
}

/// Returns true if a doc comment begins with one of [`RIDDLES`].
fn is_riddle(doc: &str) -> bool {
    let end = doc
        .find(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .unwrap_or(doc.len());
    RIDDLES.contains(&&doc[..end])
}

#[test]
fn doc_comments_say_what_things_are_and_do() {
    let packages = metadata().packages;
    let folders: Vec<(String, String)> = packages
        .iter()
        .map(|package| {
            let folder = package.manifest_path.parent().unwrap();
            let folder = folder.strip_prefix(root().to_str().unwrap()).unwrap();
            (format!("{folder}/src/"), package.name.to_string())
        })
        .collect();
    let mut counts: BTreeMap<&str, (usize, Vec<String>)> = BTreeMap::new();
    for (name, text) in sources() {
        let parts = name.split('/').map(|part| part.trim_end_matches(".rs"));
        if parts.into_iter().any(|part| TEST_PATHS.contains(&part)) {
            continue;
        }
        let Some((_, package)) = folders.iter().find(|(folder, _)| name.starts_with(folder)) else {
            continue;
        };
        let (count, riddles) = counts.entry(package).or_default();
        for (line, doc) in docs(&text) {
            *count += 1;
            if is_riddle(&doc) {
                riddles.push(format!("{name}:{line}: {doc}"));
            }
        }
    }
    let mut problems = Vec::new();
    for (package, (count, riddles)) in counts {
        if riddles.len() * 100 > count * MAX_RIDDLES {
            problems.push(format!(
                "{package}: {} of {count} doc comments begin with {}; begin with a noun or a verb:\n  {}",
                riddles.len(),
                RIDDLES.join(", "),
                riddles.join("\n  ")
            ));
        }
    }
    none(&problems);
}

#[test]
fn a_doc_comment_is_a_riddle_by_its_first_word() {
    let text = "/// What it is.\n/// And more.\nfn one() {}\n\n    ///\n    /// Whatever it is.\n// What.\n//! How.\n/// Who's there.\n";
    let found = docs(text);
    assert_eq!(found.len(), 3);
    assert_eq!(found[0], (1, "What it is. And more.".to_owned()));
    let riddles: Vec<bool> = found.iter().map(|(_, doc)| is_riddle(doc)).collect();
    assert_eq!(riddles, [true, false, true]);
}
