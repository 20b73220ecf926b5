//! Operations for large contributions: begin an upload, complete it, list and cancel open ones. The parts themselves are
//! sent elsewhere.
//!
//! Invariants: the parts of an upload are sealed before the contribution's row, which is its outbox entry, is durable.
//! A 201 is sent only after that row is durable.

mod open;
pub(crate) mod part_route;
mod unbegun;

use std::io::ErrorKind;

use http::Method;
use messages::{CONTRIBUTIONS_TOPIC, SUBMISSION_FORMAT, Source, Submission};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{
    Allowance, Compression, NewContribution, Project, ProjectStatus, Upload, UploadBounds, UploadCompleted,
    UploadCreated, UploadStatus, Visibility,
};
use tabular::reading::Reading;
use types::vocabulary::OnRefused;
use types::{Contract, ContributionId, Timestamp, metric};
use uploads::{PartTag, UploadLayout};

use self::unbegun::AbandonOnDrop;
use super::contribute::{acknowledged_in_log, allowance_spent, check_enabled, contract, known_head, no_more, not_open};
use super::contributions::{ContributionView, left};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::{SchemaBound, TEXT};
use crate::call::spec::Spec;
use crate::call::wire::{ContributionAllowance, WireInstant};
use crate::codes::ErrorCode;
use crate::config::Limits;
use crate::error::{ApiError, ErrorDetail};
use crate::rules::entitlement;
use crate::rules::storage_quota;
use crate::state::backlog::BacklogRefusal;
use types::error::with_causes;

const TOO_MANY_UPLOADS: &str = "Too many calls, too many open uploads (`uploads` lists them: cancel one, or wait), or the day's \
                                allowance is used up.";

const NO_PLACE: &str = "Too many contributions wait for their outcome, there is no room for more, or the store of the \
                        parts does not answer; nothing was kept.";

const NOT_COMPLETED: &str = "Too many contributions wait for their outcome, there is no room for more, the store of the parts \
                             does not answer, or `onRefused: drop` or `reading` is not enabled; nothing was kept.";

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
    table.add(
        Spec {
            name: "complete_upload",
            method: Method::POST,
            path: "/projects/{slug}/uploads/{id}/complete",
            summary: "Turn the parts of an upload into a contribution",
            description: "A 201 is durable: the records will be judged and merged or rejected, once; follow it as a \
                          contribution of the same id. Completing again with the same body gives the same answer. A \
                          `reading` says how a file that is not JSON Lines of the contract becomes records.",
            success: &[(201, "The contribution.")],
            failure: &[
                (404, "There is no such upload that the caller may complete."),
                (
                    409,
                    "Parts are missing, too many or other than their tags say; the upload has expired or was completed \
                     with other tags or another reading; the project is not open.",
                ),
                (503, NOT_COMPLETED),
            ],
            example: r#"{"etags": [{"n": 1, "etag": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}]}"#,
            ..Spec::CONTRIBUTION
        },
        &[],
        complete,
    );
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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CompleteUploadInput {
    /// Slug of the project.
    slug: String,
    /// Id of the upload.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// Entity tag of every part.
    #[schemars(length(min = 1, max = 1000))]
    etags: Vec<UploadedPartTag>,
    /// What refused records do: `reject` the upload, or `drop`: they are left out unless they are more than half.
    #[serde(default)]
    on_refused: OnRefused,
    /// How the bytes become records, if the file is not one record of the contract a line: CSV, JSON documents, another
    /// encoding, other names. One that does not fit the contract is answered 400, and the upload stays open.
    reading: Option<Reading>,
}

/// Entity tag of one part.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "Tag")]
#[serde(deny_unknown_fields)]
struct UploadedPartTag {
    /// Number of the part.
    #[schemars(range(min = 1))]
    n: u32,
    /// The `ETag` of the answer to its PUT, with or without its quotes.
    #[schemars(length(min = 1, max = 200))]
    etag: String,
}

async fn complete(cx: Cx, input: CompleteUploadInput) -> Result<JsonReply<ContributionView>, ApiError> {
    let (project, upload) = own(&cx, &input.slug, &input.id).await?;
    let id = upload.id;
    let tags = tags(&upload, input.etags)?;
    // Before anything is sealed, so that a reading that does not fit costs nothing but another call.
    let reading = checked_reading(&project, &upload, input.reading)?;
    let etags = completion(&tags, input.on_refused, reading.as_ref())?;
    if upload.status == UploadStatus::Completed {
        return before(&cx, &project, &upload, &etags).await;
    }
    if !upload.is_open(cx.now) {
        return Err(expired(&cx, &upload));
    }
    if project.status != ProjectStatus::Open {
        return Err(not_open(&project.slug, project.status));
    }
    let contract = contract(&project)?;
    check_enabled(&cx, input.on_refused, &contract)?;
    if reading.is_some() && SUBMISSION_FORMAT > cx.app.config.write_format {
        let message = "`reading` is not enabled in this service; send one record of the contract a line (JSON Lines)";
        return Err(ApiError::new(ErrorCode::NotEnabled, message));
    }
    if let Some(rejected) = cx.app.backlog.rejection() {
        return Err(no_more(rejected));
    }
    // Sealing comes before the row: a row whose parts could still change would not be durable.
    let sealed = cx.app.uploads.objects.complete(&layout(&upload), &tags).await;
    sealed.map_err(|error| place_failed(&error))?;
    let (new, record) = submission(&cx, &project, contract, &upload, input.on_refused, reading)?;
    let (bytes, paused) = (new.submission.len(), new.paused);
    match cx.app.store.upload_complete(etags.clone(), new).await? {
        UploadCompleted::Completed => {
            acknowledged_in_log(id, &project);
            // Counted, and appended to the log, only after the transaction. The sweeper appends it if this process ends
            // first.
            cx.app.backlog.add(bytes);
            metrics::counter!(metric::CONTRIBUTIONS, "state" => "acknowledged").increment(1);
            let view = ContributionView::submitted(id, &project.slug, upload.source_declaration, 0, cx.now);
            let view = view.with_allowance(left(&cx, &project).await);
            // The sweeper appends what waits when the pause ends.
            if paused {
                return Ok(JsonReply::created(view.paused()));
            }
            cx.app.relay.submit(CONTRIBUTIONS_TOPIC, record);
            Ok(JsonReply::created(view))
        }
        // A concurrent call has completed it in the meantime.
        UploadCompleted::Before => {
            let (_, upload) = own(&cx, &input.slug, &input.id).await?;
            before(&cx, &project, &upload, &etags).await
        }
        UploadCompleted::Expired => {
            // The reaper may have deleted the parts before this call sealed them again. Nobody would delete those
            // later, so it is done here.
            if let Err(error) = cx.app.uploads.objects.delete(id).await {
                tracing::warn!(
                    upload = %id, error = with_causes(&error),
                    "cannot delete the bytes of an expired upload; trying again later"
                );
            }
            Err(expired(&cx, &upload))
        }
        UploadCompleted::NotOpen { status } => Err(not_open(&project.slug, status)),
    }
}

/// Returns the text that a repeated completion is compared with.
fn completion(tags: &[PartTag], on_refused: OnRefused, reading: Option<&Reading>) -> Result<String, ApiError> {
    let mut text = serde_json::to_string(tags).map_err(ApiError::internal)?;
    // The usual policy adds nothing, and no reading neither, as in texts that are kept.
    if on_refused == OnRefused::Drop {
        text = format!("{text} {on_refused}");
    }
    if let Some(reading) = reading {
        let reading = serde_json::to_string(reading).map_err(ApiError::internal)?;
        text = format!("{text} {reading}");
    }
    Ok(text)
}

/// Returns the reading of an upload if it fits, and `None` if it says what holds without one.
fn checked_reading(project: &Project, upload: &Upload, reading: Option<Reading>) -> Result<Option<Reading>, ApiError> {
    let Some(reading) = reading.filter(|reading| *reading != Reading::default()) else {
        return Ok(None);
    };
    reading
        .check(&contract(project)?)
        .map_err(|error| ApiError::invalid(format!("/reading{}", error.path), error.problem))?;
    if reading.compression.is_some() && upload.compression != Compression::None {
        let problem = format!(
            "must be absent, since the upload has the compression `{}`",
            upload.compression
        );
        return Err(ApiError::invalid("/reading/compression", problem));
    }
    Ok(Some(reading))
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

/// Returns the tags of all parts in order. Fails if a part is missing, named twice or beyond the last.
fn tags(upload: &Upload, given: Vec<UploadedPartTag>) -> Result<Vec<PartTag>, ApiError> {
    let mut tags: Vec<Option<String>> = vec![None; upload.parts as usize];
    let mut details = Vec::new();
    let mut beyond = Vec::new();
    for (index, UploadedPartTag { n, etag }) in given.into_iter().enumerate() {
        let etag = etag.trim_matches('"').to_owned();
        // Part 0 wraps to a huge index and counts as beyond the last.
        match tags.get_mut((n as usize).wrapping_sub(1)) {
            None => beyond.push(n),
            Some(place @ None) => *place = Some(etag),
            Some(Some(_)) => details.push(ErrorDetail {
                path: format!("/etags/{index}/n"),
                problem: format!("names part {n} again"),
            }),
        }
    }
    if !details.is_empty() {
        return Err(ApiError::invalid_all(details));
    }
    if !beyond.is_empty() {
        let message = format!("the upload has {} parts, but `etags` names {beyond:?}", upload.parts);
        return Err(ApiError::new(ErrorCode::PartsExtra, message).field("parts", beyond));
    }
    let missing: Vec<u32> = (1..)
        .zip(&tags)
        .filter(|(_, tag)| tag.is_none())
        .map(|(n, _)| n)
        .collect();
    if !missing.is_empty() {
        return Err(parts_missing("not named", &missing));
    }
    let tags = (1..)
        .zip(tags)
        .filter_map(|(n, etag)| etag.map(|etag| PartTag { n, etag }));
    Ok(tags.collect())
}

fn parts_missing(how: &str, missing: &[u32]) -> ApiError {
    let shown = &missing[..missing.len().min(20)];
    ApiError::new(ErrorCode::PartsMissing, format!("parts {shown:?} are {how}")).field("parts", shown)
}

/// Returns the answer to a repeated completion. It must have the same tags as the first.
async fn before(
    cx: &Cx,
    project: &Project,
    upload: &Upload,
    etags: &str,
) -> Result<JsonReply<ContributionView>, ApiError> {
    if upload.etags.as_deref() != Some(etags) {
        let message =
            "the upload was completed earlier, with other entity tags, another `onRefused` or another `reading`";
        return Err(ApiError::new(ErrorCode::UploadCompleted, message));
    }
    let row = cx.app.store.contribution(upload.id).await?;
    let row = row.ok_or_else(|| ApiError::internal(format!("upload {} is completed without a row", upload.id)))?;
    Ok(JsonReply::created(ContributionView::of(cx, &project.slug, row).await?))
}

fn expired(cx: &Cx, upload: &Upload) -> ApiError {
    let at = upload.expires_at.min(cx.now).to_string();
    let message = if cx.now < upload.expires_at {
        "the upload was cancelled".to_owned()
    } else {
        format!("the upload expired at {at}")
    };
    ApiError::new(ErrorCode::UploadExpired, message).field("expiredAt", at)
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

/// Returns the contribution's row and the message of which that row is the outbox entry.
fn submission(
    cx: &Cx,
    project: &Project,
    contract: Contract,
    upload: &Upload,
    on_refused: OnRefused,
    reading: Option<Reading>,
) -> Result<(NewContribution, eventlog::Record), ApiError> {
    let private = project.visibility == Visibility::Private;
    let message = Submission {
        format: match &reading {
            Some(_) => SUBMISSION_FORMAT,
            None => Submission::format_for(on_refused, &contract),
        },
        contribution: upload.id,
        generation: 0,
        dataset: project.id,
        agent: upload.agent,
        private,
        contract,
        submitted_at: cx.now,
        source: Source::Upload(layout(upload)),
        origin: Some(cx.origin()),
        head: known_head(project),
        on_refused,
        reading,
    };
    let record = message
        .record()
        .map_err(|error| ApiError::internal(format!("submission: {error}")))?;
    let new = NewContribution {
        id: upload.id,
        project: project.id,
        agent: upload.agent,
        operator: upload.operator,
        source_declaration: upload.source_declaration.clone(),
        rows: 0,
        private,
        paused: !private && cx.app.validation.is_paused(),
        submission: record.value.to_vec(),
        now: cx.now,
        idempotency: None,
        allowance: None,
        first_sweep: cx.app.sweeper.first(cx.now),
    };
    Ok((new, record))
}

#[cfg(test)]
mod tests;
