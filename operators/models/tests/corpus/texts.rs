//! The labelled texts: the project's own, and those of strangers in a folder.
//!
//! Invariant: who asks for one half gets nothing of the other.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The half of the texts that the weights are fitted to.
pub(crate) const TRAINING_HALF: &str = "train";

/// A text with the verdict that a careful reader gave.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LabelledText {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) half: String,
    pub(crate) title: String,
    pub(crate) category: String,
    pub(crate) source: String,
    pub(crate) body: String,
    pub(crate) label: String,
    pub(crate) kind: String,
    pub(crate) language: String,
    /// Domain of a stranger's text; empty for the project's own.
    #[serde(default)]
    pub(crate) domain: String,
    /// True for a bad text that somebody would adorn with evidence he invented.
    #[serde(default)]
    pub(crate) junk: bool,
}

/// A sentence that an attacker adds.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct GamingSentence {
    pub(crate) half: String,
    pub(crate) family: String,
    pub(crate) language: String,
    /// The part of the text where it stands: `start`, `middle`, `end`, or `spread` for several.
    #[serde(default)]
    pub(crate) place: String,
    pub(crate) text: GamingText,
}

/// A passage, or several to scatter.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum GamingText {
    Passage(String),
    Scattered(Vec<String>),
}

impl GamingSentence {
    /// Returns the passages with the words of a title in the places that are left for them.
    pub(crate) fn about(&self, title: &str) -> Vec<String> {
        let name: String = title
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == ' ')
            .collect();
        let word = name
            .split_whitespace()
            .max_by_key(|word| word.len())
            .unwrap_or("value")
            .to_lowercase();
        let passages = match &self.text {
            GamingText::Passage(passage) => std::slice::from_ref(passage),
            GamingText::Scattered(passages) => passages.as_slice(),
        };
        passages
            .iter()
            .map(|passage| passage.replace("{subject}", title).replace("{word}", &word))
            .collect()
    }
}

/// Returns the files of the project's half in the order of their names.
pub(crate) fn project_files(half: &str) -> io::Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(half);
    let mut files = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    files.sort();
    Ok(files)
}

/// Returns the project's texts of a half. Copies come after what they copy.
pub(crate) fn project_texts(half: &str) -> io::Result<Vec<LabelledText>> {
    let mut texts = Vec::new();
    for path in project_files(half)? {
        let mut text: LabelledText = toml::from_str(&fs::read_to_string(&path)?).map_err(io::Error::other)?;
        text.id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        half.clone_into(&mut text.half);
        text.junk = text.label == "vague";
        texts.push(text);
    }
    texts.sort_by_key(|text| text.label == "copied");
    Ok(texts)
}

/// Returns the strangers' texts of a half: lines of `texts.jsonl` in a folder, which `corpus/fetch.py` writes.
pub(crate) fn stranger_texts(folder: &Path, half: &str) -> io::Result<Vec<LabelledText>> {
    Ok(lines(&folder.join("texts.jsonl"))?
        .into_iter()
        .filter(|text: &LabelledText| text.half == half)
        .collect())
}

/// Returns the sentences of attackers of a half, in the files of the corpus.
pub(crate) fn gaming_sentences(half: &str) -> io::Result<Vec<GamingSentence>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut sentences = lines(&folder.join(format!("gaming-{half}.jsonl")))?;
    let more = folder.join(format!("families-{half}.jsonl"));
    if more.exists() {
        sentences.extend(lines(&more)?);
    }
    Ok(sentences
        .into_iter()
        .filter(|sentence: &GamingSentence| sentence.half == half)
        .collect())
}

/// Reads a file with a line of JSON for each of its items.
pub(crate) fn lines<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<Vec<T>> {
    let text = fs::read_to_string(path)?;
    text.lines()
        .map(|line| serde_json::from_str(line).map_err(io::Error::other))
        .collect()
}
