//! Letters that a service wrote as files.
//!
//! Invariant: a file is looked at only under its own name, which it gets once it is complete.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::server::{DEADLINE, POLL};

/// A letter that arrived.
#[derive(Clone, Debug)]
pub struct Received {
    /// Subject.
    pub subject: String,
    /// Text, with line feeds.
    pub text: String,
    /// The same as HTML.
    pub html: String,
}

impl Received {
    /// The words of the text with one blank between them, wherever its lines end.
    pub fn words(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The token of the link in the letter.
    pub fn token(&self) -> String {
        let (_, rest) = self.text.split_once("?token=").expect("a link");
        rest.split_whitespace().next().unwrap_or_default().to_owned()
    }
}

/// Waits until there is a letter to an address.
pub async fn letter_to(folder: &Path, to: &str) -> Received {
    letters_to(folder, to, 1).await.remove(0)
}

/// Waits until there are `count` letters to an address, and returns all of them.
pub async fn letters_to(folder: &Path, to: &str, count: usize) -> Vec<Received> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let letters = read(folder, to);
        if letters.len() >= count {
            return letters;
        }
        assert!(
            Instant::now() < deadline,
            "{} of {count} letters to {to}",
            letters.len()
        );
        tokio::time::sleep(POLL).await;
    }
}

fn read(folder: &Path, to: &str) -> Vec<Received> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut letters = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        // An unfinished file begins with a full stop.
        if path.extension().is_none_or(|extension| extension != "eml") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
        let header = |name: &str| {
            head.lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap_or_default()
        };
        if header("To: ") == to {
            letters.push(Received {
                subject: header("Subject: ").to_owned(),
                text: part(body, "text/plain"),
                html: part(body, "text/html"),
            });
        }
    }
    letters
}

/// Returns the part of a message in several forms that has this type. The tests look at ASCII only.
fn part(body: &str, kind: &str) -> String {
    let (_, rest) = body
        .split_once(&format!("Content-Type: {kind}"))
        .expect("a part of the type");
    let (head, rest) = rest.split_once("\n\n").expect("a head of the part");
    // The boundary is random, and no line of a letter is like it.
    let lines = rest.split('\n').take_while(|line| !is_boundary(line));
    let text = lines.collect::<Vec<_>>().join("\n");
    // Long lines are sent as quoted-printable (RFC 2045 section 6.7).
    if head.contains("quoted-printable") {
        return text.replace("=\n", "").replace("=3D", "=");
    }
    text
}

fn is_boundary(line: &str) -> bool {
    let rest = line.strip_prefix("--").unwrap_or_default();
    let random = rest.trim_end_matches('-');
    rest.len() >= 40 && !random.is_empty() && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
