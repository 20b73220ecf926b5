//! The rows of the platform's table and the prints beside it.
//!
//! Invariant: a row holds no text of a unit, and no hash from which much of it could be read back.

use data_encoding::{BASE64, HEXLOWER};
use messages::UnitSubmission;
use operators::knowledge::{Fingerprint, PublishedUnit, QuantisedVector, SIGNATURE};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use types::unit::{Judge, UnitResolution, UnitScores};
use types::vocabulary::Language;
use types::{Timestamp, UnitId};

/// A version that passed its review.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) print: Fingerprint,
    pub(super) vector: Option<QuantisedVector>,
    pub(super) scores: UnitScores,
    pub(super) judge: Judge,
    pub(super) language: Language,
    /// The number of published versions that the review compared it with.
    pub(super) seen: usize,
}

impl Candidate {
    /// Returns the outcome of a published version.
    pub(super) fn resolution(&self) -> UnitResolution {
        UnitResolution::Published {
            scores: self.scores,
            judge: self.judge.clone(),
            language: self.language,
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
            text_hash: self.print.text_hash,
            paragraphs: self.print.paragraphs.iter().map(|(hash, _)| *hash).collect(),
            signature: Some(self.print.signature.clone()),
            details: self.print.details.clone(),
            vector: self.vector.clone(),
        }
    }
}

/// A row as it is read back.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) unit: UnitId,
    pub(super) chain: UnitId,
    language: Language,
    text_hash: String,
    paragraph_hashes: Vec<String>,
    #[serde(flatten)]
    scores: UnitScores,
    judge_kind: types::vocabulary::JudgeKind,
    judge: String,
}

impl Row {
    /// Returns the version as later ones are compared with it, with its prints if they are left.
    pub(super) fn published(&self, prints: Option<&Fingerprints>, embedder: Option<&str>) -> PublishedUnit {
        let text_hash = HEXLOWER.decode(self.text_hash.as_bytes()).unwrap_or_default();
        let hash = |text: &String| u64::from_str_radix(text, 16).ok();
        PublishedUnit {
            unit: self.unit,
            chain: self.chain,
            text_hash: text_hash.try_into().unwrap_or_default(),
            paragraphs: self.paragraph_hashes.iter().filter_map(hash).collect(),
            signature: prints.and_then(Fingerprints::signature),
            details: prints.map(|prints| prints.details.clone()).unwrap_or_default(),
            // Vectors of another embedder cannot be compared.
            vector: prints
                .filter(|prints| prints.embedder.as_deref() == embedder)
                .and_then(Fingerprints::vector),
        }
    }

    /// Returns the outcome of the version.
    pub(super) fn resolution(&self) -> UnitResolution {
        UnitResolution::Published {
            scores: self.scores,
            judge: Judge {
                kind: self.judge_kind,
                name: self.judge.clone(),
            },
            language: self.language,
        }
    }
}

/// The prints of one version, a line of a file beside the table.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Fingerprints {
    pub(super) unit: UnitId,
    signature: String,
    details: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedder: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scale: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vector: Option<String>,
}

impl Fingerprints {
    /// Returns the prints of a candidate.
    pub(super) fn of(submission: &UnitSubmission, candidate: &Candidate, embedder: Option<&str>) -> Self {
        let signature: Vec<u8> = candidate
            .print
            .signature
            .iter()
            .flat_map(|bin| bin.to_le_bytes())
            .collect();
        let bytes = |vector: &QuantisedVector| {
            vector
                .bytes
                .iter()
                .map(|byte| byte.to_le_bytes()[0])
                .collect::<Vec<u8>>()
        };
        Self {
            unit: submission.unit,
            signature: BASE64.encode(&signature),
            details: candidate.print.details.clone(),
            embedder: embedder.filter(|_| candidate.vector.is_some()).map(ToOwned::to_owned),
            scale: candidate.vector.as_ref().map(|vector| vector.scale),
            vector: candidate.vector.as_ref().map(|vector| BASE64.encode(&bytes(vector))),
        }
    }

    fn signature(&self) -> Option<Box<[u32; SIGNATURE]>> {
        let bytes = BASE64.decode(self.signature.as_bytes()).ok()?;
        let mut signature = Box::new([0; SIGNATURE]);
        if bytes.len() != SIGNATURE * 4 {
            return None;
        }
        for (bin, bytes) in signature.iter_mut().zip(bytes.as_chunks().0) {
            *bin = u32::from_le_bytes(*bytes);
        }
        Some(signature)
    }

    fn vector(&self) -> Option<QuantisedVector> {
        let bytes = BASE64.decode(self.vector.as_ref()?.as_bytes()).ok()?;
        Some(QuantisedVector {
            scale: self.scale?,
            bytes: bytes.into_iter().map(|byte| i8::from_le_bytes([byte])).collect(),
        })
    }
}
