//! The prints of a published version, as they are stored beside the platform's table: a line of JSON for each.
//!
//! Invariant: a line is read by every build that knows its members. Of one version there may be several lines: what was
//! made later, such as the vectors of another embedder, has a line of its own.

use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use types::UnitId;

use super::facts::{TextFact, decode_facts, encode_facts};
use super::fingerprint::{Fingerprint, QuantisedVector, SIGNATURE, Signature};

/// The prints of one version.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitPrints {
    /// Id of the version.
    pub unit: UnitId,
    /// Signature of its words, base64; empty in a line that was made later.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    signature: String,
    /// Hashes of its quantities and identifiers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<u32>,
    /// Figures and names with their places, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    facts: Option<String>,
    /// Id of the maker of the vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedder: Option<String>,
    /// Vectors of the title and of parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    vectors: Vec<PrintedVector>,
    /// The one vector of a line that was written before there were several.
    #[serde(flatten, skip_serializing)]
    single: Option<PrintedVector>,
    /// The version that it was marked as near to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<UnitId>,
}

/// A vector in a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PrintedVector {
    scale: f32,
    /// A signed byte for each dimension, base64.
    vector: String,
}

impl PrintedVector {
    fn of(vector: &QuantisedVector) -> Self {
        let bytes: Vec<u8> = vector.bytes.iter().map(|byte| byte.to_le_bytes()[0]).collect();
        Self {
            scale: vector.scale,
            vector: BASE64.encode(&bytes),
        }
    }

    fn read(&self) -> Option<QuantisedVector> {
        let bytes = BASE64.decode(self.vector.as_bytes()).ok()?;
        Some(QuantisedVector {
            scale: self.scale,
            bytes: bytes.into_iter().map(|byte| i8::from_le_bytes([byte])).collect(),
        })
    }
}

impl UnitPrints {
    /// Returns the prints of a version that is published now. `embedder` is the id of the maker of the vectors.
    pub fn of(
        unit: UnitId,
        print: &Fingerprint,
        vectors: &[QuantisedVector],
        embedder: Option<&str>,
        near: Option<UnitId>,
    ) -> Self {
        let signature: Vec<u8> = print.signature.iter().flat_map(|bin| bin.to_le_bytes()).collect();
        Self {
            signature: BASE64.encode(&signature),
            details: print.details.clone(),
            near,
            ..Self::later(unit, &print.facts, vectors, embedder)
        }
    }

    /// Returns the line of a version that was published before its facts and vectors were made.
    pub fn later(unit: UnitId, facts: &[TextFact], vectors: &[QuantisedVector], embedder: Option<&str>) -> Self {
        Self {
            unit,
            signature: String::new(),
            details: Vec::new(),
            facts: Some(BASE64.encode(&encode_facts(facts))),
            embedder: embedder.filter(|_| !vectors.is_empty()).map(ToOwned::to_owned),
            vectors: vectors.iter().map(PrintedVector::of).collect(),
            single: None,
            near: None,
        }
    }

    /// Adds what another line of the version has and this one lacks, of vectors those of `embedder`.
    pub fn merge(&mut self, other: Self, embedder: Option<&str>) {
        if self.signature.is_empty() {
            self.signature = other.signature;
            self.details = other.details;
        }
        self.facts = self.facts.take().or(other.facts);
        self.near = self.near.or(other.near);
        if self.embedder.as_deref() != embedder && other.embedder.as_deref() == embedder {
            self.embedder = other.embedder;
            self.vectors = other.vectors;
            self.single = other.single;
        }
    }

    /// Returns the signature, if the line has one.
    pub fn signature(&self) -> Option<Signature> {
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

    /// Returns the facts, if the line has them.
    pub fn facts(&self) -> Option<Vec<TextFact>> {
        decode_facts(&BASE64.decode(self.facts.as_ref()?.as_bytes()).ok()?)
    }

    /// Returns the vectors of an embedder; those of another one cannot be compared.
    pub fn vectors(&self, embedder: Option<&str>) -> Vec<QuantisedVector> {
        if embedder.is_none() || self.embedder.as_deref() != embedder {
            return Vec::new();
        }
        let printed = self.vectors.iter().chain(&self.single);
        printed.filter_map(PrintedVector::read).collect()
    }
}
