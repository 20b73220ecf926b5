//! Copies in other words, in other languages and padded, and texts of one template, against the comparison of the review.
//!
//! Invariant: nothing is fitted to the held-back half.

use std::collections::BTreeMap;
use std::path::PathBuf;

use models::sentences::SentenceEmbedder;
use operators::knowledge::{
    EmbeddedText, Embedder as _, Fingerprint, Likeness, PublishedUnit, PublishedUnits, QuantisedVector, TextRole,
};
use serde::Deserialize;
use types::{OperatorId, Timestamp, UnitId};

use super::CountedShare;
use super::texts::{LabelledText, TRAINING_HALF, lines, project_texts};

/// A stranger's text with its author and what it was made from.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ComparedLine {
    #[serde(flatten)]
    text: LabelledText,
    author: String,
    /// Id of the text that a copy was made from.
    #[serde(default, deserialize_with = "first_original")]
    copy_of: Option<String>,
}

/// Reads the id of an original, or the first of several.
fn first_original<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Originals {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Option::<Originals>::deserialize(deserializer)? {
        Some(Originals::One(id)) => Some(id),
        Some(Originals::Several(ids)) => ids.into_iter().next(),
        None => None,
    })
}

/// What the review does with a text beside what is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ComparedText {
    /// Refused by its words.
    Words,
    /// Refused by its facts and its meaning.
    Facts,
    /// Published and marked as near.
    Near,
    Distinct,
}

/// Returns the vectors of a text as the review compares them.
async fn vectors(embedder: &SentenceEmbedder, text: &LabelledText) -> Vec<QuantisedVector> {
    let embedded = EmbeddedText {
        title: &text.title,
        body: &text.body,
    };
    let vectors = embedder.embed(&[embedded], TextRole::Document).await.unwrap();
    QuantisedVector::of_each(&vectors.concat())
}

async fn publish(units: &mut PublishedUnits, embedder: &SentenceEmbedder, author: &str, text: &LabelledText) {
    let (print, id) = (Fingerprint::of(&text.body), UnitId::new(Timestamp::from_micros(0)));
    let mut seller = [0; 16];
    seller.copy_from_slice(&Fingerprint::of(author).text_hash[..16]);
    units.add(PublishedUnit {
        unit: id,
        chain: id,
        operator: Some(OperatorId::from_bytes(seller)),
        text_hash: print.text_hash,
        paragraphs: print.paragraphs.iter().map(|(hash, _)| *hash).collect(),
        signature: Some(print.signature),
        details: print.details,
        facts: print.facts,
        vectors: vectors(embedder, text).await,
    });
}

async fn compared(units: &PublishedUnits, embedder: &SentenceEmbedder, text: &LabelledText) -> ComparedText {
    let (print, chain) = (Fingerprint::of(&text.body), UnitId::new(Timestamp::from_micros(0)));
    if units.find_copy(chain, &print).copy.is_some() {
        return ComparedText::Words;
    }
    let nearest = units.nearest(chain, &print, &vectors(embedder, text).await);
    // Of the training half only: nobody is to fit anything to the other.
    if text.half == TRAINING_HALF {
        let facts = print.facts.iter().filter(|fact| fact.weight >= 2).count();
        let found = nearest.map(|near| (near.shared_facts, near.cosine, near.likeness));
        println!(
            "  {} {} {}: {found:?} of {facts} facts",
            text.id, text.kind, text.language
        );
    }
    match nearest.map_or(Likeness::Distinct, |nearest| nearest.likeness) {
        Likeness::Copy => ComparedText::Facts,
        Likeness::Near => ComparedText::Near,
        Likeness::Distinct => ComparedText::Distinct,
    }
}

/// Prints and returns the copies that are refused or marked, and the texts of a template that are refused.
async fn of_half(folder: &std::path::Path, half: &str) -> (CountedShare, CountedShare) {
    let embedder = SentenceEmbedder::open().unwrap();
    let mut strangers: Vec<ComparedLine> = lines(&folder.join("texts.jsonl")).unwrap();
    strangers.retain(|line| line.text.half == half);
    let originals: Vec<LabelledText> = project_texts(half).unwrap();
    let mut units = PublishedUnits::default();
    let good = |text: &&LabelledText| text.label == "good";
    for text in originals.iter().filter(good) {
        publish(&mut units, &embedder, "project", text).await;
    }
    let is_original = |line: &&ComparedLine| {
        strangers
            .iter()
            .any(|copy| copy.copy_of.as_deref() == Some(&line.text.id))
    };
    let (first, second): (Vec<_>, Vec<_>) = strangers
        .iter()
        .filter(|line| line.text.label == "distinct")
        .partition(|line| line.text.id.ends_with("-a"));
    for line in strangers.iter().filter(is_original).chain(first) {
        publish(&mut units, &embedder, &line.author, &line.text).await;
    }
    let mut kinds: BTreeMap<(&str, ComparedText), usize> = BTreeMap::new();
    let (mut copies, mut distinct) = (CountedShare::default(), CountedShare::default());
    for copy in strangers
        .iter()
        .map(|line| &line.text)
        .filter(|text| text.label == "copied")
    {
        let found = compared(&units, &embedder, copy).await;
        *kinds.entry((&copy.kind, found)).or_default() += 1;
        copies.whole += 1;
        copies.part += usize::from(found != ComparedText::Distinct);
    }
    for text in second.into_iter().map(|line| &line.text) {
        let found = compared(&units, &embedder, text).await;
        *kinds.entry((&text.kind, found)).or_default() += 1;
        distinct.whole += 1;
        distinct.part += usize::from(found < ComparedText::Near);
    }
    println!("copies, {half}: {kinds:?}");
    copies.print("copies refused or marked");
    distinct.print("other texts of a template refused");
    (copies, distinct)
}

#[tokio::test]
async fn copies_are_found_and_texts_of_one_template_are_told_apart() {
    let Some(folder) = std::env::var_os("SLUICE_TEST_TEXTS").map(PathBuf::from) else {
        println!("skipped: SLUICE_TEST_TEXTS names no folder of strangers' texts");
        return;
    };
    of_half(&folder, TRAINING_HALF).await;
    let (copies, distinct) = of_half(&folder, "held").await;
    assert!(copies.share() >= 0.7, "{copies:?}");
    // The goal is 3 % and is missed: of some pairs the second has every figure of the first. See `corpus/runs.md`.
    assert!(distinct.part <= 7, "{distinct:?}");
}
