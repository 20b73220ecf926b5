//! The manifest of a version: its parts, the chain of their content roots, and a signature over all of it.
//!
//! Invariants:
//! - The parts hold the versions 1 to N in order without a gap, and the addresses to fetch them from are not part of what
//!   is signed.
//! - The members of [`Manifest`] and [`Part`] are declared in the order of the canonical form, so that the text of a
//!   manifest without addresses is its canonical form.

mod check;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use types::{Contract, DatasetId, Timestamp, Version};

use crate::{Algorithm, Error, FileHash, Key, KeyId, PublicKey, Root, SignatureBytes, SigningKey, time};

/// What a manifest is called in errors.
const WHAT: &str = "manifest";
/// About how many bytes the text of a part has.
const PART_BYTES: usize = 384;

/// What a version is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// When the version was merged: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// The dataset's id.
    #[schemars(with = "String")]
    pub dataset: DatasetId,
    /// The version of this form.
    pub format: ManifestFormat,
    /// When the manifest was signed: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub issued_at: Timestamp,
    /// The licence of the dataset.
    pub license: String,
    /// The files that hold the records, in the order of the records.
    pub parts: Vec<Part>,
    /// How many records it has.
    pub record_count: u64,
    /// The content root of the version: 64 hexadecimal digits.
    #[schemars(with = "String")]
    pub root: Root,
    /// The contract of the records: `{fields: [{name, type, required}], allowExtra}`.
    #[serde(serialize_with = "canonical")]
    #[schemars(with = "Map<String, Value>")]
    pub schema_def: Arc<Contract>,
    /// The project's slug.
    pub slug: String,
    /// Until when the addresses of the parts are good; not signed.
    #[serde(default, with = "time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub urls_expire_at: Option<Timestamp>,
    /// The version.
    #[schemars(with = "u64")]
    pub version: Version,
}

/// The version of a manifest's form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ManifestFormat {
    /// The only one so far.
    #[default]
    #[serde(rename = "sluice-manifest-1")]
    V1,
}

impl ManifestFormat {
    /// The version's name, which the signed bytes begin with.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "sluice-manifest-1",
        }
    }
}

/// A file of records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// The version of its first record.
    #[schemars(with = "u64")]
    pub first_version: Version,
    /// The version of its last record.
    #[schemars(with = "u64")]
    pub last_version: Version,
    /// The file's name: letters, digits, `.`, `_`, `-`, then `.parquet`.
    pub path: String,
    /// The content root of its last version: 64 hexadecimal digits.
    #[schemars(with = "String")]
    pub root: Root,
    /// How many records it has.
    pub rows: u64,
    /// The SHA-256 of the file: 64 hexadecimal digits.
    #[schemars(with = "String")]
    pub sha256: FileHash,
    /// The size of the file in bytes. The first manifests name it `bytes`, and are still read.
    #[serde(alias = "bytes")]
    pub size: u64,
    /// Where to fetch it, absolute or relative to the manifest; not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The signature of a manifest, over `sluice-manifest-1`, a line feed, and the canonical form of the manifest without
/// this, `urlsExpireAt` and the `url` of each part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Signature {
    /// How it is signed.
    pub algorithm: Algorithm,
    /// The key that signed it.
    #[schemars(with = "String")]
    pub key_id: KeyId,
    /// The key that signed it: Base64 of 32 bytes.
    #[schemars(with = "String")]
    pub public_key: PublicKey,
    /// The signature: Base64 of 64 bytes.
    #[schemars(with = "String")]
    pub value: SignatureBytes,
    /// Who vouches for the key; null for the first.
    pub endorsement: Option<KeyEndorsement>,
}

/// The endorsement of the key that signed a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyEndorsement {
    /// The key that signed the endorsement.
    #[schemars(with = "String")]
    pub by: KeyId,
    /// The signature: Base64 of 64 bytes.
    #[schemars(with = "String")]
    pub value: SignatureBytes,
    /// When the endorsed key was made.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub created_at: Timestamp,
}

impl KeyEndorsement {
    fn of(key: &Key) -> Option<Self> {
        key.endorsement.map(|endorsement| Self {
            by: endorsement.by,
            value: endorsement.value,
            created_at: key.created_at,
        })
    }
}

/// A manifest to be sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SignedManifest {
    /// What is signed, and the addresses.
    #[serde(flatten)]
    pub manifest: Manifest,
    /// The signature.
    pub signature: Signature,
}

impl Manifest {
    /// Signs it with `secret`, the other half of `key`. The addresses may be changed afterwards.
    ///
    /// # Errors
    /// Where a verifier would refuse it, or the halves do not belong together.
    pub fn sign(mut self, secret: &SigningKey, key: &Key) -> Result<SignedManifest, Error> {
        check::shape(&self)?;
        if secret.public_key() != key.public_key {
            return Err(Error::OtherPublicKey { key: key.key_id });
        }
        let expire = self.urls_expire_at.take();
        let urls: Vec<_> = self.parts.iter_mut().map(|part| part.url.take()).collect();
        let bytes = self.signed_bytes()?;
        self.urls_expire_at = expire;
        for (part, url) in self.parts.iter_mut().zip(urls) {
            part.url = url;
        }
        Ok(SignedManifest {
            manifest: self,
            signature: Signature {
                algorithm: Algorithm::Ed25519,
                key_id: key.key_id,
                public_key: key.public_key,
                value: secret.sign(&bytes),
                endorsement: KeyEndorsement::of(key),
            },
        })
    }

    /// What is signed of a manifest without addresses. Its text is the canonical form, which is much faster than to make
    /// that of a tree of values: no number in it has a fraction, and JSON text is written with the escapes of RFC 8785.
    fn signed_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::with_capacity(1_024 + self.parts.len() * PART_BYTES);
        bytes.extend_from_slice(self.format.name().as_bytes());
        bytes.push(b'\n');
        serde_json::to_writer(&mut bytes, self).map_err(|error| Error::Malformed {
            what: WHAT,
            path: String::new(),
            problem: error.to_string(),
        })?;
        Ok(bytes)
    }
}

/// Serialises a value in its canonical form.
fn canonical<S: Serializer>(value: &impl Serialize, serializer: S) -> Result<S::Ok, S::Error> {
    let mut text = Vec::new();
    let value = serde_json::to_value(value).map_err(S::Error::custom)?;
    types::canonical::write_value(&mut text, &value);
    let text = String::from_utf8(text).map_err(S::Error::custom)?;
    RawValue::from_string(text)
        .map_err(S::Error::custom)?
        .serialize(serializer)
}

/// A manifest that a key signed which may, and whose parts can be those of its version.
#[derive(Clone, Debug)]
pub struct VerifiedManifest {
    received: Map<String, Value>,
    manifest: Manifest,
    key: KeyId,
}

impl VerifiedManifest {
    /// The manifest as it is understood.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The key that signed it.
    pub const fn key(&self) -> KeyId {
        self.key
    }

    /// The manifest as it was received but for the addresses, as indented JSON, to be kept.
    pub fn to_json(&self) -> String {
        // Why: a JSON object has text keys and no infinite number, so it can always be written.
        serde_json::to_string_pretty(&unaddressed(self.received.clone())).unwrap_or_default()
    }
}

/// Without the members that are good for fetching only.
fn unaddressed(mut manifest: Map<String, Value>) -> Map<String, Value> {
    manifest.remove("urlsExpireAt");
    if let Some(Value::Array(parts)) = manifest.get_mut("parts") {
        for part in parts.iter_mut().filter_map(Value::as_object_mut) {
            part.remove("url");
        }
    }
    manifest
}

#[cfg(test)]
mod tests;
