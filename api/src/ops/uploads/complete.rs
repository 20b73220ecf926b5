//! Operation that completes an upload.
//!
//! Invariants: the parts of an upload are sealed before the contribution's row, which is its outbox entry, is durable.
//! A 201 is sent only after that row is durable.

use http::Method;
use messages::{CONTRIBUTIONS_TOPIC, SUBMISSION_FORMAT, Source, Submission};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Compression, NewContribution, Project, ProjectStatus, Upload, UploadCompleted, UploadStatus, Visibility};
use tabular::reading::Reading;
use types::error::with_causes;
use types::vocabulary::OnRefused;
use types::{Contract, metric};
use uploads::PartTag;

use super::{layout, own, parts_missing, place_failed};
use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::codes::ErrorCode;
use crate::error::{ApiError, ErrorDetail};
use crate::ops::contribute::{acknowledged_in_log, check_enabled, contract, known_head, no_more, not_open};
use crate::ops::contributions::{ContributionView, left};

const NOT_COMPLETED: &str = "Too many contributions wait for their outcome, there is no room for more, the store of the parts \
                             does not answer, or `onRefused: drop` or `reading` is not enabled; nothing was kept.";

pub(super) fn add(table: &mut Operations) {
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
