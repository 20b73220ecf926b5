//! Operation that returns the manifest of a version: the signed list of its parts.
//!
//! Invariant: the time of issue is taken before the key is read, so a key that is rotated meanwhile has signed nothing
//! issued after it retired.

use std::sync::Arc;

use catalog::Snapshot;
use proof::manifest::ManifestFormat;
use proof::{FileHash, Manifest, Part, SignedManifest};
use schemars::JsonSchema;
use serde::Deserialize;
use store::Project;
use types::{Timestamp, Version};

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{GuardedItem, KEY, Spec};
use crate::error::ApiError;
use crate::keys::KeyRing;
use crate::ops::contribute::documented_contract;
use crate::rules::entitlement;
use crate::rules::reading::{self, MAX_EXACT_INTEGER, NO_VERSION, NOT_BOUGHT, NOT_YET};
use crate::state::links::{GrantAccount, PartGrant};

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "dataset_manifest",
            path: "/projects/{slug}/manifest",
            summary: "The parts of a version with their hashes, signed",
            description: "Without `version`, the latest. Each `url` is good until `urlsExpireAt`; the signature covers \
                          everything but the addresses. The keys are at `/.well-known/service-keys`.",
            tag: "datasets",
            accepts: KEY,
            item: GuardedItem::Project,
            success: &[(200, "The manifest.")],
            failure: &[NOT_BOUGHT, NO_VERSION, NOT_YET],
            ..Spec::BASE
        },
        &[],
        manifest,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ManifestInput {
    /// Slug of the project.
    slug: String,
    /// Version to list; the latest if absent.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
}

async fn manifest(cx: Cx, input: ManifestInput) -> Result<JsonReply<SignedManifest>, ApiError> {
    let account = cx.the_operator()?;
    let project = entitlement::visible(&cx, &input.slug).await?;
    let version = input.version.map(Version);
    let snapshot = reading::entitled(&cx, &project, version).await?;
    Ok(JsonReply::ok(
        signed(&cx, project, &snapshot, GrantAccount::Operator(account)).await?,
    ))
}

/// Returns the signed manifest of a version, with addresses for an account.
pub(super) async fn signed(
    cx: &Cx,
    project: Project,
    snapshot: &Snapshot,
    account: GrantAccount,
) -> Result<SignedManifest, ApiError> {
    let (Some(contract), Some(merge)) = (snapshot.contract(), snapshot.merge().await?) else {
        let message = format!("the dataset `{}` has no version yet", project.slug);
        return Err(ApiError::not_found(message));
    };
    let documented = documented_contract(&project)?;
    if documented.rules() != **contract {
        return Err(ApiError::internal(format!(
            "the table of project {} has another contract than the project",
            project.id
        )));
    }
    let chain = snapshot.chain();
    let ring = KeyRing::load(&cx.app.store, &*cx.app.clock).await?;
    let manifest = Manifest {
        format: ManifestFormat::V1,
        dataset: project.id,
        slug: project.slug,
        version: snapshot.version(),
        record_count: snapshot.record_count(),
        root: chain.last().map_or(catalog::Root::EMPTY, |link| link.root),
        // The documentation of the fields is signed as well: a buyer can prove what the numbers were said to be.
        schema_def: Arc::new(documented),
        license: project.license,
        created_at: merge.at,
        issued_at: ring.issued_at(cx.now),
        parts: chain
            .iter()
            .map(|link| Part {
                path: link.part.name(),
                first_version: link.part.first_version(),
                last_version: link.part.version,
                rows: link.part.rows,
                sha256: FileHash::from_bytes(link.part.sha256),
                size: link.part.bytes,
                root: link.root,
                url: None,
            })
            .collect(),
        urls_expire_at: None,
    };
    // The signature does not cover the addresses, which differ for each caller and expire. They are added afterwards.
    let mut signed = manifest.sign(ring.signer(), ring.current())?;

    let lasting = cx.app.limits.part_urls.0;
    // Addresses contain whole seconds, rounded up, and the manifest must state the same expiry as they do.
    let expires = u64::try_from(cx.now.plus(lasting).micros())
        .unwrap_or(0)
        .div_ceil(1_000_000);
    let at = i64::try_from(expires).unwrap_or(i64::MAX).saturating_mul(1_000_000);
    let until = Timestamp::from_micros(at);
    signed.manifest.urls_expire_at = Some(until);
    if let Some(direct) = &cx.app.direct {
        // A HEAD hands out no addresses, so it counts as no egress.
        if let (true, Some(account)) = (cx.answer_is_sent, account.operator()) {
            let bytes = cx
                .app
                .process
                .presigned_egress
                .new_bytes(account, project.id, &chain, cx.now, until);
            if let Some(reader) = cx.reader() {
                let admitting = cx.app.egress.admit(&cx.app, reader, cx.now, bytes).await;
                if admitting.is_err() {
                    // No address is handed out, so the next one counts.
                    cx.app.process.presigned_egress.forget(account, project.id, &chain);
                }
                admitting?;
            }
            match cx.reader().filter(|reader| reader.operator == account) {
                Some(reader) => cx.app.egress.sent(&reader, cx.now, bytes),
                None => cx.app.egress.add(account, cx.now, bytes),
            }
        }
        // The bucket serves these downloads, so their bytes were counted above, all at once.
        for part in &mut signed.manifest.parts {
            part.url = Some(direct.address(project.id, &part.path, lasting));
        }
        return Ok(signed);
    }
    let signer = cx.app.process.links.signer(&cx.app.store, cx.now).await?;
    for part in &mut signed.manifest.parts {
        let grant = PartGrant {
            dataset: project.id,
            part: &part.path,
            account: &account,
            expires,
        };
        part.url = Some(signer.address(&cx.app.config.public_url, &grant));
    }
    Ok(signed)
}

#[cfg(test)]
mod tests;
