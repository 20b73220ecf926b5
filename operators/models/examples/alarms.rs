//! False alarms of the search for contradictions, in sections of prose that nobody wrote for it.
//!
//! Invariant: a person reads what it prints; every line is a contradiction that is there, or a fault of a rule.
//!
//! ```text
//! cargo run --release -p models --example alarms -- FOLDER…
//! ```
//!
//! Reads the Markdown and the documentation comments of Rust of each folder, such as Cargo's `registry/src`.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use models::rubric::ArithmeticFinder;
use operators::knowledge::ContradictionFinder as _;
use types::Timestamp;
use types::knowledge::UnitText;

/// Characters of a section that is read.
const SECTION_CHARACTERS: std::ops::RangeInclusive<usize> = 200..=6_000;
/// 2026-11-26, the time of the submissions.
const SUBMITTED: Timestamp = Timestamp::from_micros(1_795_651_200_000_000);

fn main() -> Result<(), Box<dyn Error>> {
    let (mut sections, mut characters, mut alarms) = (0, 0, 0);
    for folder in env::args().skip(1) {
        let mut files = Vec::new();
        add_files(Path::new(&folder), &mut files)?;
        files.sort();
        for path in files {
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let is_code = path.extension().is_some_and(|extension| extension == "rs");
            for body in if is_code { comments(&text) } else { headed(&text) } {
                if !SECTION_CHARACTERS.contains(&body.len()) {
                    continue;
                }
                sections += 1;
                characters += body.len();
                let unit = UnitText {
                    body,
                    ..UnitText::default()
                };
                for told in ArithmeticFinder.contradictions(&unit, SUBMITTED) {
                    alarms += 1;
                    println!("{}: {told}", path.display());
                }
            }
        }
    }
    println!("{alarms} alarms in {sections} sections of {characters} bytes");
    Ok(())
}

fn add_files(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            add_files(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "md" || extension == "rs")
        {
            files.push(path);
        }
    }
    Ok(())
}

/// Cuts Markdown at its headings.
fn headed(text: &str) -> Vec<String> {
    let mut sections = vec![String::new()];
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if !is_code && line.starts_with('#') {
            sections.push(String::new());
        }
        if let Some(section) = sections.last_mut() {
            section.push_str(line);
            section.push('\n');
        }
    }
    sections
}

/// Returns the blocks of documentation of Rust.
fn comments(text: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    for line in text.lines() {
        let line = line.trim_start();
        let told = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        match (told, blocks.last_mut()) {
            (Some(told), Some(block)) => {
                block.push_str(told.strip_prefix(' ').unwrap_or(told));
                block.push('\n');
            }
            (None, Some(block)) if !block.is_empty() => blocks.push(String::new()),
            _ => {}
        }
    }
    blocks
}
