//! The labelled texts against the local judges: figures for both halves, and gates for the one that was held back.
//!
//! Invariant: only this test reads the held-back halves, and nothing is fitted to them. The project's halves are of one
//! hand; those of strangers are read where `SLUICE_TEST_TEXTS` names their folder.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::tests_outside_test_module,
    reason = "an integration test is a test module, and prints its figures"
)]

mod copies;
mod gaming;
mod texts;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use data_encoding::HEXLOWER;
use models::rubric::{ArithmeticFinder, RUBRIC_NAME, score};
use models::screen::UnitScreener;
use operators::knowledge::{ContradictionFinder as _, Fingerprint, NearestUnit, PublishedUnit, PublishedUnits};
use operators::screen::{LocalScreener, Opinion, Screener};
use sha2::{Digest as _, Sha256};
use types::knowledge::UnitText;
use types::{Timestamp, UnitId};

use self::gaming::passage_copies;
use self::texts::{LabelledText, TRAINING_HALF, gaming_sentences, project_files, project_texts, stranger_texts};

/// 2026-11-26, the time of the submissions.
const SUBMITTED: Timestamp = Timestamp::from_micros(1_795_651_200_000_000);

/// The end of a unit's review.
#[derive(Debug)]
struct Judged {
    text: LabelledText,
    /// The step that refused it.
    refused: Option<&'static str>,
    /// What it was told, if it was refused by its figures.
    told: Vec<String>,
    total: u8,
    tenths: [u8; 4],
}

impl Judged {
    fn is_right(&self) -> bool {
        matches!(self.text.label.as_str(), "good" | "distinct") == self.refused.is_none()
    }

    /// Returns true if a step that knows nothing of worth refused it.
    fn is_alarmed(&self) -> bool {
        matches!(self.refused, Some("screen" | "consistency"))
    }
}

fn unit(text: &LabelledText, body: &str) -> UnitText {
    UnitText {
        title: text.title.clone(),
        body: body.to_owned(),
        category: text.category.clone(),
        source_declaration: text.source.clone(),
    }
}

async fn objects(text: &UnitText) -> bool {
    let record = serde_json::to_string(text).unwrap();
    for screener in [&LocalScreener as &dyn Screener, &UnitScreener] {
        let opinions = screener.screen(&[&record]).await.unwrap();
        if opinions != [Opinion::Acceptable] {
            return true;
        }
    }
    false
}

/// Judges texts in order. Where `compares`, each is compared with those published before it.
async fn judge(texts: Vec<LabelledText>, compares: bool) -> Vec<Judged> {
    let mut published = PublishedUnits::default();
    let mut judged = Vec::new();
    for text in texts {
        let body = unit(&text, &text.body);
        let id = UnitId::new(Timestamp::from_micros(0));
        let print = Fingerprint::of(&body.body);
        let scored = score(&body, &NearestUnit::default());
        let told = ArithmeticFinder.contradictions(&body, SUBMITTED);
        let refused = if compares && published.find_copy(id, &print).copy.is_some() {
            Some("duplicate")
        } else if objects(&body).await {
            Some("screen")
        } else if !told.is_empty() {
            Some("consistency")
        } else if !scored.axes.passes() {
            Some("score")
        } else {
            published.add(PublishedUnit {
                unit: id,
                chain: id,
                operator: None,
                text_hash: print.text_hash,
                paragraphs: print.paragraphs.iter().map(|(hash, _)| *hash).collect(),
                signature: Some(print.signature),
                details: print.details,
                facts: Vec::new(),
                vectors: Vec::new(),
            });
            None
        };
        judged.push(Judged {
            text,
            refused,
            told,
            total: scored.axes.total(),
            tenths: scored.axes.tenths(),
        });
    }
    judged
}

/// The judged texts of which `is_counted`, and how many of them `is_so`, with the interval.
fn counted(
    name: &str,
    judged: &[Judged],
    is_counted: impl Fn(&Judged) -> bool,
    is_so: impl Fn(&Judged) -> bool,
) -> CountedShare {
    let all: Vec<&Judged> = judged.iter().filter(|judged| is_counted(judged)).collect();
    let share = CountedShare {
        part: all.iter().filter(|judged| is_so(judged)).count(),
        whole: all.len(),
    };
    share.print(name);
    share
}

/// A part of a number of texts.
#[derive(Clone, Copy, Debug, Default)]
struct CountedShare {
    part: usize,
    whole: usize,
}

impl CountedShare {
    fn share(self) -> f64 {
        number(self.part) / number(self.whole.max(1))
    }

    /// Returns the interval of Wilson that has the share with 95 %, or with a one-sided bound of 95 % for a smaller `z`.
    fn interval(self, z: f64) -> (f64, f64) {
        let (share, count) = (self.share(), number(self.whole.max(1)));
        let middle = share + z * z / (2.0 * count);
        let apart = z * (share * (1.0 - share) / count + z * z / (4.0 * count * count)).sqrt();
        let scale = 1.0 + z * z / count;
        (((middle - apart) / scale).max(0.0), ((middle + apart) / scale).min(1.0))
    }

    fn print(self, name: &str) {
        let (low, high) = self.interval(1.96);
        println!(
            "  {name}: {} of {}, {:.1} % ({:.1} to {:.1})",
            self.part,
            self.whole,
            self.share() * 100.0,
            low * 100.0,
            high * 100.0
        );
    }
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

fn is_good(judged: &Judged) -> bool {
    judged.text.label == "good"
}

fn is_published(judged: &Judged) -> bool {
    judged.refused.is_none()
}

/// Prints the figures of texts.
fn report(name: &str, judged: &[Judged]) {
    let mut table: BTreeMap<(&str, &str), [usize; 2]> = BTreeMap::new();
    let mut steps: BTreeMap<&str, usize> = BTreeMap::new();
    for one in judged {
        let row = table.entry((&one.text.label, &one.text.language)).or_default();
        row[usize::from(one.refused.is_some())] += 1;
        if let Some(step) = one.refused {
            *steps.entry(step).or_default() += 1;
        }
    }
    println!("{RUBRIC_NAME}, {name}: label, language: published, rejected");
    for ((label, language), [published, rejected]) in &table {
        println!("  {label:9} {language}: {published:3} {rejected:3}");
    }
    println!("  rejected by step: {steps:?}");
    let near = judged.iter().filter(|one| (50..60).contains(&one.total)).count();
    println!("  totals from 50 to 59: {near}");
    for (axis, name) in ["accuracy", "novelty", "reproducibility", "specificity"]
        .iter()
        .enumerate()
    {
        let sum: u32 = judged.iter().map(|one| u32::from(one.tenths[axis])).sum();
        println!("  mean {name} {:.1}", f64::from(sum) / 10.0 / number(judged.len()));
    }
    // Names of the training half only: nobody is to fit anything to the other.
    if judged.iter().all(|one| one.text.half == TRAINING_HALF) {
        for one in judged
            .iter()
            .filter(|one| !one.is_right() && one.text.domain.is_empty())
        {
            println!(
                "  missed: {} ({}) {} {:?}",
                one.text.id, one.text.kind, one.total, one.refused
            );
        }
        for one in judged
            .iter()
            .filter(|one| one.is_alarmed() && one.is_right() == is_published(one))
        {
            println!("  alarm: {} {:?}", one.text.id, one.told);
        }
    }
}

#[tokio::test]
async fn the_training_half_is_told_apart() {
    let judged = judge(project_texts(TRAINING_HALF).unwrap(), true).await;
    report("the project's train", &judged);
    let accuracy = counted("accuracy", &judged, |_| true, Judged::is_right);
    let good = counted("good published", &judged, is_good, is_published);
    assert!(accuracy.part >= 51 && good.part >= 19, "{accuracy:?} {good:?}");
}

#[tokio::test]
async fn the_held_back_half_is_told_apart() {
    let mut hash = Sha256::new();
    for path in project_files("held").unwrap() {
        hash.update(path.file_name().unwrap().to_str().unwrap());
        hash.update(fs::read(&path).unwrap());
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let expected = fs::read_to_string(corpus.join("held.sha256")).unwrap();
    assert_eq!(HEXLOWER.encode(&hash.finalize()), expected.trim());
    let judged = judge(project_texts("held").unwrap(), true).await;
    report("the project's held", &judged);
    let accuracy = counted("accuracy", &judged, |_| true, Judged::is_right);
    counted("good published", &judged, is_good, is_published);
    counted("bad published", &judged, |one| !is_good(one), is_published);
    let alarms = counted("false alarms", &judged, is_good, Judged::is_alarmed);
    assert!(accuracy.part >= 47, "{accuracy:?}");
    assert_eq!(alarms.part, 0);
}

/// Prints and returns good published, bad published, gamed junk published and false alarms of a half of the strangers.
async fn of_strangers(folder: &Path, half: &str) -> [CountedShare; 4] {
    let all = stranger_texts(folder, half).unwrap();
    let labelled: Vec<_> = all
        .iter()
        .filter(|text| matches!(text.label.as_str(), "good" | "bad" | "distinct"))
        .cloned()
        .collect();
    let sentences = gaming_sentences(half).unwrap();
    let junk = labelled.iter().filter(|text| text.label == "bad" && text.junk);
    let copies: Vec<_> = junk.flat_map(|text| passage_copies(text, &sentences)).collect();
    let judged = judge(labelled, false).await;
    report(&format!("strangers, {half}"), &judged);
    counted(
        "accuracy",
        &judged,
        |one| one.text.label != "distinct",
        Judged::is_right,
    );
    let good = counted("good published", &judged, is_good, is_published);
    let bad = counted("bad published", &judged, |one| one.text.label == "bad", is_published);
    let alarms = counted(
        "false alarms",
        &judged,
        |one| one.text.label != "bad",
        Judged::is_alarmed,
    );
    let gamed = judge(copies, false).await;
    let families: std::collections::BTreeSet<_> = gamed.iter().map(|one| one.text.kind.clone()).collect();
    for family in families {
        counted(&family, &gamed, |one| one.text.kind == family, is_published);
    }
    let of_junk = counted("gamed junk published", &gamed, |_| true, is_published);
    [good, bad, of_junk, alarms]
}

#[tokio::test]
async fn texts_of_strangers_are_told_apart() {
    let Some(folder) = env::var_os("SLUICE_TEST_TEXTS").map(PathBuf::from) else {
        println!("skipped: SLUICE_TEST_TEXTS names no folder of strangers' texts");
        return;
    };
    of_strangers(&folder, TRAINING_HALF).await;
    let [good, bad, gamed, alarms] = of_strangers(&folder, "held").await;
    // A one-sided bound of 95 %.
    let (least_good, _) = good.interval(1.645);
    assert!(least_good >= 0.78, "{good:?}");
    assert!(bad.share() <= 0.26, "{bad:?}");
    // The goal is 25 % and is missed: see `corpus/runs.md`.
    assert!(gamed.share() <= 0.36, "{gamed:?}");
    assert!(alarms.part <= 1, "{alarms:?}");
}

#[tokio::test]
async fn no_injected_unit_is_published() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/injected.jsonl");
    let lines = fs::read_to_string(path).unwrap();
    let (mut steps, started) = (BTreeMap::<&str, usize>::new(), Instant::now());
    let (mut published, mut near) = (Vec::new(), 0);
    for line in lines.lines() {
        let unit: serde_json::Value = serde_json::from_str(line).unwrap();
        let part = |name: &str| unit[name].as_str().unwrap_or_default().to_owned();
        let text = UnitText {
            title: part("title"),
            body: part("body"),
            category: part("category"),
            source_declaration: part("source"),
        };
        let scored = score(&text, &NearestUnit::default());
        if objects(&text).await {
            *steps.entry("screen").or_default() += 1;
        } else if !scored.axes.passes() {
            *steps.entry("score").or_default() += 1;
        } else {
            published.push(part("id"));
        }
        near += usize::from(scored.axes.passes());
    }
    println!("injected: rejected by step {steps:?}, {:?} for all", started.elapsed());
    println!("  of them, the score alone would publish {near}");
    assert_eq!(published, [] as [String; 0]);
    assert_eq!(lines.lines().count(), 200);
}
