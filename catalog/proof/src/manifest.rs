//! The manifest of a version: its parts, the chain of their content roots, and a signature.
//!
//! Invariants:
//! - The parts hold the versions 1 to N in order without a gap. Their download addresses are not signed.
//! - The members of [`Manifest`] and [`Part`] are declared in the order of the canonical form, so the serialised text
//!   of a manifest without addresses is its canonical form.

mod check;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use types::{Contract, DatasetId, Timestamp, Version};

pub use crate::statement::{KeyEndorsement, Signature};
use crate::{Error, FileHash, Key, KeyId, Root, SigningKey, time};

/// The name of the document in errors.
const DOCUMENT_NAME: &str = "manifest";
/// The estimated size of a part in the text, in bytes.
const PART_BYTES: usize = 384;

/// The content of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Time of the merge: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub created_at: Timestamp,
    /// The id of the dataset.
    #[schemars(with = "String")]
    pub dataset: DatasetId,
    /// The version of the manifest format.
    pub format: ManifestFormat,
    /// Time of the signature: RFC 3339 in UTC.
    #[serde(with = "time")]
    #[schemars(with = "String")]
    pub issued_at: Timestamp,
    /// The licence of the dataset.
    pub license: String,
    /// The files that hold the records, in the order of the records.
    pub parts: Vec<Part>,
    /// Number of records in it.
    pub record_count: u64,
    /// The content root of the version: 64 hexadecimal digits.
    #[schemars(with = "String")]
    pub root: Root,
    /// The contract of the records: `{fields: [{name, type, required}], allowExtra}`; a field may have `scale`, `title`,
    /// `description` and `unit`.
    #[serde(serialize_with = "canonical")]
    #[schemars(with = "Map<String, Value>")]
    pub schema_def: Arc<Contract>,
    /// The slug of the project.
    pub slug: String,
    /// Expiry of the addresses of the parts; not signed.
    #[serde(default, with = "time::optional", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub urls_expire_at: Option<Timestamp>,
    /// The number of the version.
    #[schemars(with = "u64")]
    pub version: Version,
}

/// The version of the manifest format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ManifestFormat {
    /// The first version of the format.
    #[default]
    #[serde(rename = "sluice-manifest-1")]
    V1,
}

impl ManifestFormat {
    /// Returns the name of the version, with which the signed bytes begin.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "sluice-manifest-1",
        }
    }
}

/// A file with records of a dataset.
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
    /// Number of records in it.
    pub rows: u64,
    /// The SHA-256 of the file: 64 hexadecimal digits.
    #[schemars(with = "String")]
    pub sha256: FileHash,
    /// Size of the file in bytes. The first manifests call it `bytes` and are still read.
    #[serde(alias = "bytes")]
    pub size: u64,
    /// Download address, absolute or relative to the manifest; not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A manifest with its signature, ready to be sent.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SignedManifest {
    /// The manifest, with addresses.
    #[serde(flatten)]
    pub manifest: Manifest,
    /// The signature over `sluice-manifest-1`, a line feed, and the canonical form of the manifest without this member,
    /// `urlsExpireAt` and the `url` of each part.
    pub signature: Signature,
}

impl Manifest {
    /// Signs the manifest with `secret`, the private half of `key`. The addresses may be changed afterwards.
    ///
    /// # Errors
    /// The rule that a verifier would refuse the manifest for, or [`Error::OtherPublicKey`] if the halves do not match.
    pub fn sign(mut self, secret: &SigningKey, key: &Key) -> Result<SignedManifest, Error> {
        check::shape(&self)?;
        // Addresses are not signed, so they are set aside while the bytes are made.
        let expire = self.urls_expire_at.take();
        let urls: Vec<_> = self.parts.iter_mut().map(|part| part.url.take()).collect();
        let bytes = self.signed_bytes()?;
        self.urls_expire_at = expire;
        for (part, url) in self.parts.iter_mut().zip(urls) {
            part.url = url;
        }
        Ok(SignedManifest {
            signature: Signature::over(&bytes, secret, key)?,
            manifest: self,
        })
    }

    /// Returns the signed bytes of a manifest without addresses. Serialising in declaration order gives the canonical
    /// form directly, which is much faster than building a tree: no number has a fraction, and `serde_json` uses the
    /// escapes of RFC 8785.
    fn signed_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::with_capacity(1_024 + self.parts.len() * PART_BYTES);
        bytes.extend_from_slice(self.format.name().as_bytes());
        bytes.push(b'\n');
        serde_json::to_writer(&mut bytes, self).map_err(|error| Error::Malformed {
            what: DOCUMENT_NAME,
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

/// A manifest that was signed by a key with the right to, and whose parts are consistent with its version.
#[derive(Clone, Debug)]
pub struct VerifiedManifest {
    received: Map<String, Value>,
    manifest: Manifest,
    key: KeyId,
}

impl VerifiedManifest {
    /// Returns the parsed manifest.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the id of the signing key.
    pub const fn key(&self) -> KeyId {
        self.key
    }

    /// Returns the received manifest without its addresses as indented JSON, to be stored.
    pub fn to_json(&self) -> String {
        // A JSON object has text keys and no infinite number, so writing cannot fail.
        serde_json::to_string_pretty(&unaddressed(self.received.clone())).unwrap_or_default()
    }
}

/// Removes the members that only serve downloads.
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
