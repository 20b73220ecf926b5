//! Large contributions in parts: begin, send the parts elsewhere, complete.
//!
//! Invariant: what is completed is pinned: its parts are sealed before the contribution's row, which is its outbox, is
//! durable, and a 201 is sent only after that.

mod room;
mod unbegun;

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use pipelines::message::{FORMAT, Records, Submission};
use pipelines::staging::objects::{self, Cut, PartTag};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{
    Allowance, Compression, NewContribution, Project, ProjectStatus, Upload, UploadBounds, UploadCompleted,
    UploadCreated, UploadStatus, Visibility,
};
use types::{ContributionId, Kind, Timestamp, metric};

use self::unbegun::Unbegun;
use super::contribute::{acknowledged_in_log, allowance_spent, contract, known_head, no_more, not_open};
use super::contributions::View;
use crate::answer::Reply;
use crate::config::Limits;
use crate::cx::Cx;
use crate::entitlement;
use crate::error::{ApiError, Detail, chain};
use crate::flow::Full;
use crate::operation::{Auth, Effect, Operations, Scope, Spec};
use crate::schema::{Bound, TEXT};
use crate::wire::When;

/// What a caller may not do more often.
const TOO_MANY: &str = "Too many calls, too many open uploads, or the day's allowance is used up.";

/// Where nothing can be taken.
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
                          the upload. The file is one record a line (JSON Lines). An upload that is not completed \
                          expires; a part may be sent again until then.",
            tag: "datasets",
            auth: Auth::Key,
            scope: Scope::Write,
            effect: Effect::Write,
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
                (429, TOO_MANY),
                (503, NO_PLACE),
            ],
            example: r#"{"bytes": 1000000000, "parts": 12, "partSize": 83886080, "compression": "gzip",
                "sourceDeclaration": "The gauge's log of 2026."}"#,
            ..Spec::BASE
        },
        &[Bound {
            at: "/properties/bytes",
            keyword: "maximum",
            value: limits.upload_bytes,
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
                          contribution of the same id. Completing again with the same tags gives the same answer.",
            tag: "datasets",
            auth: Auth::Key,
            scope: Scope::Write,
            effect: Effect::Write,
            success: &[(201, "The contribution.")],
            failure: &[
                (404, "There is no such upload that the caller may complete."),
                (
                    409,
                    "Parts are missing, too many or other than their tags say; the upload has expired or was completed \
                     with other tags; the project is not open.",
                ),
                (503, NO_PLACE),
            ],
            example: r#"{"etags": [{"n": 1, "etag": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}]}"#,
            ..Spec::BASE
        },
        &[],
        complete,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Begin {
    /// The project's slug.
    slug: String,
    /// Size of all parts together in bytes; a greater one than the maximum is answered 413.
    #[schemars(range(min = 1))]
    bytes: u64,
    /// How many parts there are.
    #[schemars(range(min = 1, max = 1000))]
    parts: u32,
    /// The size of every part but the last, which has what is left.
    #[schemars(range(min = 1, max = 5_368_709_120_u64))]
    part_size: u64,
    /// What was measured, where and when, or whose work it is.
    #[schemars(length(max = 500), regex(pattern = TEXT))]
    source_declaration: Option<String>,
    /// Compression of the file: `none`, or `gzip` (RFC 1952, in one member or several).
    #[serde(default)]
    compression: Compression,
}

/// An upload that takes parts.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Begun {
    /// Its id; completed, that of its contribution.
    id: String,
    /// The slug of its project.
    project: String,
    /// `open`.
    status: &'static str,
    /// How many bytes all parts have together.
    bytes: u64,
    /// How many parts there are.
    parts: u32,
    /// The size of every part but the last.
    part_size: u64,
    /// How the bytes are compressed.
    compression: Compression,
    /// Until when parts may be sent and the upload completed.
    expires_at: When,
    /// Where each part goes.
    part_urls: Vec<PartUrl>,
}

/// Where a part goes.
#[derive(Debug, Serialize, JsonSchema)]
struct PartUrl {
    /// The part's number, from 1.
    n: u32,
    /// How many bytes it must have.
    bytes: u64,
    /// Where to PUT it; good until the upload expires.
    url: String,
}

async fn begin(cx: Cx, input: Begin) -> Result<Reply<Begun>, ApiError> {
    let project = entitlement::visible(&cx, &input.slug).await?;
    let limits = &cx.app.limits;
    if input.bytes > limits.upload_bytes {
        let message = format!("an upload has at most {} bytes", limits.upload_bytes);
        let error = ApiError::new(Kind::TooLarge, "upload_too_large", message);
        return Err(error.field("limitBytes", limits.upload_bytes));
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
        expires_at: cx.now.plus(Duration::from_secs(limits.upload_seconds.into())),
        etags: None,
    };
    if let Some(full) = cx.app.backlog.full() {
        return Err(no_more(full));
    }
    if let Some(local) = &cx.app.uploads.local {
        local.room_for(upload.bytes).map_err(|error| place_failed(&error))?;
    }
    // What is uploaded becomes the maintainer's; until then it is the uploader's.
    let stored = room::stored_bytes(&cx, project.operator).await?;
    let maintains = project.operator == upload.operator;
    if !maintains && stored.saturating_add(upload.bytes) > limits.storage_bytes {
        return Err(room::none_with_maintainer(&cx, &project, upload.bytes));
    }
    let of_uploader = if maintains { stored } else { 0 };
    let bounds = UploadBounds {
        open: limits.open_uploads,
        bytes: limits.storage_bytes.saturating_sub(of_uploader),
        allowance: (project.visibility == Visibility::Public).then_some(Allowance {
            limit: limits.public_contributions_per_day,
            day: cx.now.day(),
        }),
    };
    let unbegun = Unbegun::new(&cx, upload.id, bounds.allowance);
    let refused = match cx.app.store.upload_create(upload.clone(), bounds).await? {
        UploadCreated::Created => None,
        UploadCreated::NotOpen { status } => Some(not_open(&project.slug, status)),
        UploadCreated::AllowanceSpent => Some(allowance_spent(&cx)),
        UploadCreated::TooMany { until } => {
            let message = format!(
                "the operator has {} open uploads, which is the limit",
                limits.open_uploads
            );
            let seconds = until.since(cx.now).as_secs() + 1;
            Some(ApiError::limited("too_many_uploads", message, seconds))
        }
        UploadCreated::Full { held } => Some(room::none(&cx, &upload, of_uploader.saturating_add(held))),
    };
    if let Some(refused) = refused {
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
    Ok(Reply::created(Begun {
        part_urls,
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

/// Whether the parts of this size come to the bytes.
fn cut_is_even(input: &Begin) -> Result<(), ApiError> {
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

/// An upload as the place of its parts knows it.
pub(crate) fn cut(upload: &Upload) -> Cut {
    Cut {
        upload: upload.id,
        bytes: upload.bytes,
        parts: upload.parts,
        part_size: upload.part_size,
        compression: upload.compression,
    }
}

/// Makes room for the parts; where each goes: to the store itself, where it takes them.
async fn part_urls(cx: &Cx, upload: &Upload) -> Result<Vec<PartUrl>, ApiError> {
    let cut = cut(upload);
    let lasting = upload.expires_at.since(cx.now);
    let begun = cx.app.uploads.objects.begin(&cut, lasting).await;
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
        bytes: cut.size_of(n).unwrap_or(0),
        url,
    };
    Ok((1..).zip(urls).map(part).collect())
}

/// The first whole second at which an instant is over.
pub(crate) fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.micros()).unwrap_or(0).div_ceil(1_000_000)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Complete {
    /// The project's slug.
    slug: String,
    /// The upload's id.
    #[schemars(extend("format" = "uuid"))]
    id: String,
    /// The tag of every part.
    #[schemars(length(min = 1, max = 1000))]
    etags: Vec<Tag>,
}

/// What a part is known by.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tag {
    /// The part's number.
    #[schemars(range(min = 1))]
    n: u32,
    /// The `ETag` of the answer to its PUT, with or without its quotes.
    #[schemars(length(min = 1, max = 200))]
    etag: String,
}

async fn complete(cx: Cx, input: Complete) -> Result<Reply<View>, ApiError> {
    let project = entitlement::visible(&cx, &input.slug).await?;
    let missing = || ApiError::not_found(format!("there is no upload `{}` to `{}`", input.id, input.slug));
    let id: ContributionId = input.id.parse().map_err(|_error| missing())?;
    let operator = cx.the_operator()?;
    let upload = cx.app.store.upload(id).await?;
    let upload = upload
        .filter(|upload| upload.project == project.id && upload.operator == operator)
        .ok_or_else(missing)?;
    let tags = tags(&upload, input.etags)?;
    let etags = serde_json::to_string(&tags).map_err(ApiError::internal)?;
    if upload.status == UploadStatus::Completed {
        return before(&cx, &project, &upload, &etags).await;
    }
    if !upload.is_open(cx.now) {
        return Err(expired(&upload));
    }
    if project.status != ProjectStatus::Open {
        return Err(not_open(&project.slug, project.status));
    }
    if let Some(full) = cx.app.backlog.full() {
        return Err(no_more(full));
    }
    let sealed = cx.app.uploads.objects.complete(&cut(&upload), &tags).await;
    sealed.map_err(|error| place_failed(&error))?;
    let (new, record) = submission(&cx, &project, &upload)?;
    let bytes = new.submission.len();
    match cx.app.store.upload_complete(etags.clone(), new).await? {
        UploadCompleted::Completed => {
            acknowledged_in_log(id, &project);
            cx.app.backlog.add(bytes);
            metrics::counter!(metric::CONTRIBUTIONS, "state" => "acknowledged").increment(1);
            cx.app.relay.submit(record);
            Ok(Reply::created(View::submitted(
                id,
                &project.slug,
                upload.source_declaration,
                0,
                cx.now,
            )))
        }
        UploadCompleted::Before => {
            let upload = cx.app.store.upload(id).await?.ok_or_else(missing)?;
            before(&cx, &project, &upload, &etags).await
        }
        UploadCompleted::Expired => {
            // Why: it may have been deleted before it was sealed, and what was sealed since would stay.
            if let Err(error) = cx.app.uploads.objects.delete(id).await {
                tracing::warn!(
                    upload = %id, error = chain(&error),
                    "cannot delete the bytes of an expired upload; trying again later"
                );
            }
            Err(expired(&upload))
        }
        UploadCompleted::NotOpen { status } => Err(not_open(&project.slug, status)),
    }
}

/// The tags of all parts in order.
fn tags(upload: &Upload, given: Vec<Tag>) -> Result<Vec<PartTag>, ApiError> {
    let mut tags: Vec<Option<String>> = vec![None; upload.parts as usize];
    let mut details = Vec::new();
    let mut beyond = Vec::new();
    for (index, Tag { n, etag }) in given.into_iter().enumerate() {
        let etag = etag.trim_matches('"').to_owned();
        match tags.get_mut((n as usize).wrapping_sub(1)) {
            None => beyond.push(n),
            Some(place @ None) => *place = Some(etag),
            Some(Some(_)) => details.push(Detail {
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
        return Err(ApiError::conflict("parts_extra", message).field("parts", beyond));
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
    ApiError::conflict("parts_missing", format!("parts {shown:?} are {how}")).field("parts", shown)
}

/// The answer to a completion that comes again.
async fn before(cx: &Cx, project: &Project, upload: &Upload, etags: &str) -> Result<Reply<View>, ApiError> {
    if upload.etags.as_deref() != Some(etags) {
        let message = "the upload was completed earlier, with other entity tags";
        return Err(ApiError::conflict("upload_completed", message));
    }
    let row = cx.app.store.contribution(upload.id).await?;
    let row = row.ok_or_else(|| ApiError::internal(format!("upload {} is completed without a row", upload.id)))?;
    Ok(Reply::created(View::of(cx, &project.slug, row).await?))
}

fn expired(upload: &Upload) -> ApiError {
    let at = upload.expires_at.to_string();
    ApiError::conflict("upload_expired", format!("the upload expired at {at}")).field("expiredAt", at)
}

/// An upload that is over.
pub(crate) fn closed() -> ApiError {
    ApiError::conflict(
        "upload_closed",
        "the upload is completed or expired and accepts no parts",
    )
}

/// What the place of parts refuses, or why it could not be asked.
pub(crate) fn place_failed(error: &objects::Error) -> ApiError {
    match error {
        objects::Error::Missing { missing } => parts_missing("missing, or have another length", missing),
        objects::Error::Differing { differing } => {
            let message = format!("parts {differing:?} have other entity tags");
            ApiError::conflict("etag_mismatch", message).field("parts", differing.as_slice())
        }
        objects::Error::Closed => closed(),
        objects::Error::Io(error) if error.kind() == ErrorKind::StorageFull => no_more(Full::Disk),
        objects::Error::Gone { .. } | objects::Error::Changed { .. } | objects::Error::Io(_) => {
            ApiError::unavailable(chain(error))
        }
    }
}

/// The row of the contribution that an upload becomes, and the record of the log that it is the outbox of.
fn submission(cx: &Cx, project: &Project, upload: &Upload) -> Result<(NewContribution, eventlog::Record), ApiError> {
    let private = project.visibility == Visibility::Private;
    let message = Submission {
        format: FORMAT,
        contribution: upload.id,
        generation: 0,
        dataset: project.id,
        agent: upload.agent,
        private,
        contract: contract(project)?,
        submitted_at: cx.now,
        records: Records::of(&[]).map_err(ApiError::internal)?,
        upload: Some(cut(upload)),
        origin: Some(cx.origin()),
        head: known_head(project),
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
        submission: record.value.to_vec(),
        now: cx.now,
        idempotency: None,
        allowance: None,
        first_sweep: cx.app.sweeper.first(cx.now),
    };
    Ok((new, record))
}

/// The places of uploads.
#[derive(Clone, Debug)]
pub struct UploadPlane {
    /// Where the parts are.
    pub objects: Arc<dyn objects::Objects>,
    /// The same where the service takes parts itself.
    pub local: Option<objects::LocalObjects>,
    /// How far the uploads are that this process stages.
    pub stagings: pipelines::staging::Stagings,
}

#[cfg(test)]
mod tests;
