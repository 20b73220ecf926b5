//! The rows of the platform's table and the prints beside it.
//!
//! Invariant: a row holds no text of a unit, and no hash from which much of it could be read back.

use data_encoding::HEXLOWER;
use messages::UnitSubmission;
use operators::knowledge::{Fingerprint, PublishedUnit, QuantisedVector, UnitPrints};
use serde::Deserialize;
use serde_json::{Value, json};
use types::unit::{Judge, UnitResolution, UnitScores};
use types::vocabulary::Language;
use types::{OperatorId, Timestamp, UnitId};

/// A version that passed its review.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) print: Fingerprint,
    /// Vectors of the title and of parts; none without an embedder.
    pub(super) vectors: Vec<QuantisedVector>,
    /// The unit that it is marked as near to.
    pub(super) near: Option<UnitId>,
    pub(super) scores: UnitScores,
    pub(super) judge: Judge,
    pub(super) language: Language,
    /// The number of published versions that the review compared it with.
    pub(super) seen: usize,
}

impl Candidate {
    /// Returns the outcome of a published version.
    pub(super) fn resolution(&self, embedder: Option<&str>) -> UnitResolution {
        UnitResolution::Published {
            scores: self.scores,
            judge: self.judge.clone(),
            language: self.language,
            near: self.near,
            embedder: embedder.map(ToOwned::to_owned),
        }
    }

    /// Returns the row of the version.
    pub(super) fn row(&self, submission: &UnitSubmission, at: Timestamp, embedder: Option<&str>) -> Value {
        let paragraphs: Vec<String> = self
            .print
            .paragraphs
            .iter()
            .map(|(hash, _)| format!("{hash:016x}"))
            .collect();
        let mut row = json!({
            "unit": submission.unit.to_string(),
            "chain": submission.chain.to_string(),
            "operator": submission.operator.to_string(),
            "agent": submission.agent.to_string(),
            "category": submission.text.category,
            "language": self.language.as_str(),
            "publishedAt": at.to_string(),
            "textHash": HEXLOWER.encode(&self.print.text_hash),
            "paragraphHashes": paragraphs,
            "accuracy": self.scores.accuracy,
            "novelty": self.scores.novelty,
            "reproducibility": self.scores.reproducibility,
            "specificity": self.scores.specificity,
            "total": self.scores.total,
            "judgeKind": self.judge.kind.as_str(),
            "judge": self.judge.name,
        });
        if let Some(predecessor) = submission.predecessor {
            row["predecessor"] = json!(predecessor.to_string());
        }
        if let Some(embedder) = embedder {
            row["embedder"] = json!(embedder);
        }
        row
    }

    /// Returns the version as later ones are compared with it.
    pub(super) fn published(&self, submission: &UnitSubmission) -> PublishedUnit {
        PublishedUnit {
            unit: submission.unit,
            chain: submission.chain,
            operator: Some(submission.operator),
            text_hash: self.print.text_hash,
            paragraphs: self.print.paragraphs.iter().map(|(hash, _)| *hash).collect(),
            signature: Some(self.print.signature.clone()),
            details: self.print.details.clone(),
            facts: self.print.facts.clone(),
            vectors: self.vectors.clone(),
        }
    }
}

/// A row as it is read back.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) unit: UnitId,
    pub(super) chain: UnitId,
    operator: OperatorId,
    language: Language,
    text_hash: String,
    paragraph_hashes: Vec<String>,
    #[serde(flatten)]
    scores: UnitScores,
    judge_kind: types::vocabulary::JudgeKind,
    judge: String,
    #[serde(default)]
    embedder: Option<String>,
}

impl Row {
    /// Returns the version as later ones are compared with it, with its prints if they are left.
    pub(super) fn published(&self, prints: Option<&UnitPrints>, embedder: Option<&str>) -> PublishedUnit {
        let text_hash = HEXLOWER.decode(self.text_hash.as_bytes()).unwrap_or_default();
        let hash = |text: &String| u64::from_str_radix(text, 16).ok();
        PublishedUnit {
            unit: self.unit,
            chain: self.chain,
            operator: Some(self.operator),
            text_hash: text_hash.try_into().unwrap_or_default(),
            paragraphs: self.paragraph_hashes.iter().filter_map(hash).collect(),
            signature: prints.and_then(UnitPrints::signature),
            details: prints.map(|prints| prints.details.clone()).unwrap_or_default(),
            facts: prints.and_then(UnitPrints::facts).unwrap_or_default(),
            vectors: prints.map(|prints| prints.vectors(embedder)).unwrap_or_default(),
        }
    }

    /// Returns the outcome of the version, with the mark in its prints if they are left.
    pub(super) fn resolution(&self, prints: Option<&UnitPrints>) -> UnitResolution {
        UnitResolution::Published {
            scores: self.scores,
            judge: Judge {
                kind: self.judge_kind,
                name: self.judge.clone(),
            },
            language: self.language,
            near: prints.and_then(|prints| prints.near),
            embedder: self.embedder.clone(),
        }
    }
}
