//! Operations for large contributions: begin an upload, complete it, list and cancel open ones. The parts themselves are
//! sent elsewhere.
//!
//! Invariant: an upload that its client never learns of is abandoned, however its begin ends.

mod complete;
mod open;
pub(crate) mod part_route;
mod unbegun;

use std::io::ErrorKind;

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Allowance, Compression, Project, Upload, UploadBounds, UploadCreated, UploadStatus, Visibility};
use types::vocabulary::OnRefused;
use types::{ContributionId, Timestamp};
use uploads::UploadLayout;

use self::unbegun::AbandonOnDrop;
use super::contribute::{allowance_spent, check_enabled, contract, no_more, not_open};
use super::contributions::left;
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::{SchemaBound, TEXT};
use crate::call::spec::Spec;
use crate::call::wire::{ContributionAllowance, WireInstant};
use crate::codes::ErrorCode;
use crate::config::Limits;
use crate::error::ApiError;
use crate::rules::entitlement;
use crate::rules::storage_quota;
use crate::state::backlog::BacklogRefusal;
use types::error::with_causes;

const TOO_MANY_UPLOADS: &str = "Too many calls, too many open uploads (`uploads` lists them: cancel one, or wait), or the day's \
                                allowance is used up.";

const NO_PLACE: &str = "Too many contributions wait for their outcome, there is no room for more, or the store of the \
                        parts does not answer; nothing was kept.";

pub(super) fn add(table: &mut Operations, limits: &Limits) {
    table.add(
        Spec {
            name: "begin_upload",
            method: Method::POST,
            path: "/projects/{slug}/uploads",
            summary: "Begin a large contribution in parts",
            description: "PUT each part to its URL with exactly its length, keep the `ETag` of each answer, then complete \
                          the upload. The file is one record a line (JSON Lines), or what the `reading` of the completion \
                          says. An upload that is not completed \
                          expires; a part may be sent again until then.",
            success: &[(201, "The upload, with a URL for each part.")],
            failure: &[
                (
                    402,
                    "The storage of the uploader, or of who maintains the dataset, is used up; `quota` says how much \
                     there is. Where it is the uploader's, `credits.topUp` says how to buy more.",
                ),
                (404, "There is no such project, or it is private to others."),
                (409, "The project is not open."),
                (413, "More bytes than an upload may have."),
                (429, TOO_MANY_UPLOADS),
                (503, NO_PLACE),
            ],
            example: r#"{"bytes": 1000000000, "parts": 12, "partSize": 83886080, "compression": "gzip",
                "sourceDeclaration": "The gauge's log of 2026."}"#,
            ..Spec::CONTRIBUTION
        },
        &[SchemaBound {
            at: "/properties/bytes",
            keyword: "maximum",
            value: limits.upload.0,
            asserted: false,
        }],
        begin,
    );
    complete::add(table);
    open::add(table);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BeginUploadInput {
    /// The project's slug.
    slug: String,
    /// Size of all parts together in bytes; a greater one than the maximum is answered 413.
    #[schemars(range(min = 1))]
    bytes: u64,
    /// Number of parts.
    #[schemars(range(min = 1, max = 1000))]
    parts: u32,
    /// Size in bytes of every part but the last, which has the remainder.
    #[schemars(range(min = 1, max = 5_368_709_120_u64))]
    part_size: u64,
    /// Source of the records: what was measured, where and when, or whose work it is.
    #[schemars(length(max = 500), regex(pattern = TEXT))]
    source_declaration: Option<String>,
    /// Compression of the file: `none`, or `gzip` (RFC 1952, in one member or several).
    #[serde(default)]
    compression: Compression,
}

/// An upload that accepts parts.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Begun")]
#[serde(rename_all = "camelCase")]
struct UploadOpened {
    /// Id of the upload. Once completed, it is the id of the contribution.
    id: String,
    /// The slug of its project.
    project: String,
    /// Always `open`.
    status: &'static str,
    /// Size of all parts together in bytes.
    bytes: u64,
    /// Number of parts.
    parts: u32,
    /// Size of every part but the last, in bytes.
    part_size: u64,
    /// Compression of the file.
    compression: Compression,
    /// Time until which parts may be sent and the upload completed.
    expires_at: WireInstant,
    /// Address of each part, in order.
    part_urls: Vec<PartUrl>,
    /// What is left of the day's allowance; absent where none is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowance: Option<ContributionAllowance>,
}

/// Address to which a part is sent.
#[derive(Debug, Serialize, JsonSchema)]
struct PartUrl {
    /// Number of the part, from 1.
    n: u32,
    /// Exact size of the part in bytes.
    bytes: u64,
    /// Address for the PUT; good until the upload expires.
    url: String,
}

async fn begin(cx: Cx, input: BeginUploadInput) -> Result<JsonReply<UploadOpened>, ApiError> {
    let project = entitlement::current(&cx, &input.slug).await?;
    check_enabled(&cx, OnRefused::Reject, &contract(&project)?)?;
    let limits = &cx.app.limits;
    if input.bytes > limits.upload.0 {
        let or = match input.compression {
            Compression::None => ", or compress it with gzip",
            Compression::Gzip => "",
        };
        let message = format!(
            "the upload has {} bytes, and one may have at most {}: send its records in several uploads{or}",
            input.bytes, limits.upload.0
        );
        let error = ApiError::new(ErrorCode::UploadTooLarge, message);
        return Err(error.field("limitBytes", limits.upload.0));
    }
    cut_is_even(&input)?;
    let upload = Upload {
        id: ContributionId::new(cx.now),
        project: project.id,
        agent: cx.the_agent()?,
        operator: cx.the_operator()?,
        source_declaration: input.source_declaration,
        bytes: input.bytes,
        parts: input.parts,
        part_size: input.part_size,
        compression: input.compression,
        status: UploadStatus::Open,
        created_at: cx.now,
        expires_at: cx.now.plus(limits.upload_window.0),
        etags: None,
    };
    // Refused here already, so that a client does not send bytes that could not be acknowledged.
    if let Some(rejected) = cx.app.backlog.rejection() {
        return Err(no_more(rejected));
    }
    // Only the local disk has a free space that can be checked in advance.
    if let Some(local) = &cx.app.uploads.local {
        local.room_for(upload.bytes).map_err(|error| place_failed(&error))?;
    }
    // An upload counts toward the uploader's storage while it is open, and toward the maintainer's once it is merged.
    // So both must have space.
    let stored = storage_quota::stored_bytes(&cx, project.operator).await?;
    let maintains = project.operator == upload.operator;
    let allowed = storage_quota::allowed(&cx, project.operator).await?;
    if !maintains && stored.saturating_add(upload.bytes) > allowed {
        return Err(storage_quota::exceeded_by_maintainer(&cx, &project, upload.bytes));
    }
    let (of_uploader, allowed) = if maintains {
        (stored, allowed)
    } else {
        (0, storage_quota::allowed(&cx, upload.operator).await?)
    };
    let bounds = UploadBounds {
        open: limits.open_uploads,
        bytes: allowed.saturating_sub(of_uploader),
        // Contributions to private projects use no allowance.
        allowance: (project.visibility == Visibility::Public).then_some(Allowance {
            limit: limits.public_contributions_per_day,
            day: cx.now.day(),
        }),
    };
    // From here on, an upload that the client never learns of is abandoned, whatever ends the call.
    let unbegun = AbandonOnDrop::new(&cx, upload.id);
    let refused = match cx.app.store.upload_create(upload.clone(), bounds).await? {
        UploadCreated::Created => None,
        UploadCreated::NotOpen { status } => Some(not_open(&project.slug, status)),
        UploadCreated::AllowanceSpent => Some(allowance_spent(&cx)),
        UploadCreated::TooMany { until } => Some(open::too_many(&cx, limits.open_uploads, until).await?),
        UploadCreated::Full { held } => {
            let used = of_uploader.saturating_add(held);
            Some(storage_quota::exceeded(&cx, &upload, used, allowed))
        }
    };
    if let Some(refused) = refused {
        // No row was written, so nothing is left to abandon.
        unbegun.settle();
        return Err(refused);
    }
    let part_urls = match part_urls(&cx, &upload).await {
        Ok(part_urls) => part_urls,
        Err(error) => {
            unbegun.abandon().await?;
            return Err(error);
        }
    };
    unbegun.settle();
    let allowance = left(&cx, &project).await;
    Ok(JsonReply::created(UploadOpened {
        part_urls,
        allowance,
        id: upload.id.to_string(),
        project: project.slug,
        status: "open",
        bytes: upload.bytes,
        parts: upload.parts,
        part_size: upload.part_size,
        compression: input.compression,
        expires_at: upload.expires_at.into(),
    }))
}

/// Checks that `parts` is the number of parts of `partSize` bytes that `bytes` needs.
fn cut_is_even(input: &BeginUploadInput) -> Result<(), ApiError> {
    let needed = input.bytes.div_ceil(input.part_size);
    if needed == u64::from(input.parts) {
        return Ok(());
    }
    let problem = if needed > 1_000 {
        format!(
            "is too small: {} bytes would be {needed} parts, and there are at most 1000",
            input.bytes
        )
    } else {
        format!(
            "must be {needed}: that is how many parts of {} bytes {} bytes are",
            input.part_size, input.bytes
        )
    };
    let path = if needed > 1_000 { "/partSize" } else { "/parts" };
    Err(ApiError::invalid(path, problem))
}

/// Returns the layout of an upload, as the store of its parts expects it.
pub(crate) fn layout(upload: &Upload) -> UploadLayout {
    UploadLayout {
        upload: upload.id,
        bytes: upload.bytes,
        parts: upload.parts,
        part_size: upload.part_size,
        compression: upload.compression,
    }
}

/// Opens the upload in the store of parts and returns the address of each part. A bucket presigns its own addresses;
/// otherwise the parts come to this service.
async fn part_urls(cx: &Cx, upload: &Upload) -> Result<Vec<PartUrl>, ApiError> {
    let layout = layout(upload);
    let lasting = upload.expires_at.since(cx.now);
    let begun = cx.app.uploads.objects.begin(&layout, lasting).await;
    let urls = if let Some(urls) = begun.map_err(|error| place_failed(&error))? {
        urls
    } else {
        let signer = cx.app.process.links.signer(&cx.app.store, cx.now).await?;
        let (base, expires) = (&cx.app.config.public_url, seconds(upload.expires_at));
        let address = |n| signer.upload_address(base, upload.id, n, expires);
        (1..=upload.parts).map(address).collect()
    };
    let part = |(n, url)| PartUrl {
        n,
        bytes: layout.size_of(n).unwrap_or(0),
        url,
    };
    Ok((1..).zip(urls).map(part).collect())
}

/// Returns an instant in whole seconds since the epoch, rounded up, so that an address is valid at least until then.
pub(crate) fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.micros()).unwrap_or(0).div_ceil(1_000_000)
}

/// Returns a project and an upload to it of the caller's operator, otherwise a 404.
async fn own(cx: &Cx, slug: &str, id: &str) -> Result<(Project, Upload), ApiError> {
    let project = entitlement::current(cx, slug).await?;
    // Uploads of other operators get the same answer as missing ones, so that ids cannot be probed.
    let missing = || ApiError::not_found(format!("there is no upload `{id}` to `{slug}`"));
    let parsed: ContributionId = id.parse().map_err(|_error| missing())?;
    let operator = cx.the_operator()?;
    let upload = cx.app.store.upload(parsed).await?;
    let own = upload.filter(|upload| upload.project == project.id && upload.operator == operator);
    Ok((project, own.ok_or_else(missing)?))
}

fn parts_missing(how: &str, missing: &[u32]) -> ApiError {
    let shown = &missing[..missing.len().min(20)];
    ApiError::new(ErrorCode::PartsMissing, format!("parts {shown:?} are {how}")).field("parts", shown)
}

/// Returns the error for a part of an upload that is completed, cancelled or expired.
pub(crate) fn closed() -> ApiError {
    ApiError::new(
        ErrorCode::UploadClosed,
        "the upload is completed, cancelled or expired and accepts no parts",
    )
}

/// Maps an error of the store of parts: a conflict where the caller can repair it, otherwise 503.
pub(crate) fn place_failed(error: &uploads::Error) -> ApiError {
    match error {
        uploads::Error::Missing { missing } => parts_missing("missing, or have another length", missing),
        uploads::Error::Differing { differing } => {
            let message = format!("parts {differing:?} have other entity tags");
            ApiError::new(ErrorCode::EtagMismatch, message).field("parts", differing.as_slice())
        }
        uploads::Error::Closed => closed(),
        uploads::Error::Io(error) if error.kind() == ErrorKind::StorageFull => no_more(BacklogRefusal::Disk),
        uploads::Error::Gone { .. } | uploads::Error::Changed { .. } | uploads::Error::Io(_) => {
            ApiError::unavailable(with_causes(error))
        }
    }
}

#[cfg(test)]
mod tests;
