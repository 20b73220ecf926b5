//! The manifest of a version: its parts, the chain of their content roots, and a signature over all of it.
//!
//! Invariant: the parts hold the versions 1 to N in order without a gap, and the addresses to fetch them from are not
//! part of what is signed.

mod check;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use types::{Contract, DatasetId, Timestamp, Version};

use crate::json::{members, signed_bytes};
use crate::{Algorithm, Error, FileHash, Key, KeyId, PublicKey, Root, SignatureBytes, SigningKey, time};

/// What a manifest is called in errors.
const WHAT: &str = "manifest";

/// What a version is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The version of this form.
    pub format: ManifestFormat,
    /// The dataset's id.
    #[schemars(with = "String")]
    pub dataset: DatasetId,
    /// The project's slug.
    pub slug: String,
    /// The version.
    #[schemars(with = "u64")]
    pub version: Version,
    /// How many records it has.
    pub record_count: u64,
    /// The content root of the version: 64 hexadecimal digits.
    #[schemars(with = "String")]
    pub root: Root,
    /// The contract of the records: `{fields: [{name, type, required}], allowExtra}`.
    #[schemars(with = "Map<String, Value>")]
    pub schema_def: Arc<Contract>,
    /// The licence of the dataset.
    pub license: String,
    /// When the version was merged: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// When the manifest was signed: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub issued_at: Timestamp,
    /// The files that hold the records, in the order of the records.
    pub parts: Vec<Part>,
    /// Until when the addresses of the parts are good; not signed.
    #[serde(default, with = "time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub urls_expire_at: Option<Timestamp>,
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
    /// The file's name: letters, digits, `.`, `_`, `-`, then `.parquet`.
    pub path: String,
    /// The version of its first record.
    #[schemars(with = "u64")]
    pub first_version: Version,
    /// The version of its last record.
    #[schemars(with = "u64")]
    pub last_version: Version,
    /// How many records it has.
    pub rows: u64,
    /// The size of the file.
    pub bytes: u64,
    /// The SHA-256 of the file: 64 hexadecimal digits.
    #[schemars(with = "String")]
    pub sha256: FileHash,
    /// The content root of its last version: 64 hexadecimal digits.
    #[schemars(with = "String")]
    pub root: Root,
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
    pub fn sign(self, secret: &SigningKey, key: &Key) -> Result<SignedManifest, Error> {
        check::shape(&self)?;
        if secret.public_key() != key.public_key {
            return Err(Error::OtherPublicKey { key: key.key_id });
        }
        let bytes = signed_bytes(self.format.name(), unaddressed(members(WHAT, &self)?));
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
