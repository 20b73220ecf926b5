//! Profiles of versions that somebody asks for and that are not stored: built within the call, or put in the queue.
//!
//! Invariant: a version is built for a caller only who may see its full profile, and a call reads a bounded number of rows.

use std::time::Duration;

use catalog::Snapshot;
use store::{MAX_ASKED_PROFILES, ProfileAsked, Project};
use tokio_util::sync::CancellationToken;
use types::Version;

use super::build::{self, BegunProfile, BuildError, DocumentTerms};
use super::{ShownProfile, shown};
use crate::call::cx::Cx;
use crate::call::spec::{CallLimit, LimitSubject};
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::rules::{entitlement, reading};

/// Versions that wait to be built, of all datasets.
const MOST_ASKED: u32 = 1_000;
/// Seconds after which a version that waits is asked for again.
const ASKED_RETRY_SECONDS: u64 = 5;
/// Seconds after which a call comes again that found every place taken.
const BUSY_RETRY_SECONDS: u64 = 2;
/// Time after which it is noted again that somebody asks for a version.
const NOTED_AGAIN: Duration = Duration::from_hours(1);
/// Limit on the profiles that an address has built.
const BUILDS: CallLimit = CallLimit {
    name: "profiles",
    subject: LimitSubject::Address,
    most: |_| 10,
    window: Duration::from_mins(1),
    code: ErrorCode::ProfileBusy,
    counted: "profiles in a minute were built for this address",
};

/// Returns the profile of a version as the caller may see it; without a version the newest that has one. A version that
/// the caller may see in full is built if it has none. Returns `None` where nothing may be shown.
///
/// # Errors
/// 404 for a version that does not exist, or of a dataset that is taken down and was not bought so far; 429
/// `profile_busy`; 503 `not_yet` for a version that is being built, `table_damaged`, `history_lost`.
pub(crate) async fn shown_or_built(
    cx: &Cx,
    project: &Project,
    version: Option<Version>,
) -> Result<Option<ShownProfile>, ApiError> {
    let wanted = version.unwrap_or(project.version);
    if wanted == Version::EMPTY {
        return Ok(None);
    }
    if wanted > project.version {
        // A version that does not exist is looked for as every read does it.
        reading::snapshot(cx, project, version).await?;
    }
    if let Some(found) = shown(cx, project, version).await? {
        if version.is_some() {
            note(cx, project, &found).await?;
        }
        return Ok(Some(found));
    }
    if !entitlement::sees_whole(cx, project, wanted).await? {
        // The buyer of an earlier version learns nothing of a later one of a dataset that is down.
        return match project.taken_down {
            Some(_) => Err(ApiError::no_project(&project.slug)),
            None => Ok(None),
        };
    }
    if wanted > project.version {
        // The table is ahead of the database.
        return Err(being_made(project, wanted));
    }
    let builds = &cx.app.process.profiles;
    let _one = builds.of_dataset.acquire(project.id).await;
    // Another call may have built it while this one waited.
    if let Some(found) = shown(cx, project, version).await? {
        return Ok(Some(found));
    }
    let Ok(_permit) = builds.in_calls.try_acquire() else {
        let message = "other profiles are being built; try again shortly";
        return Err(ApiError::limited(ErrorCode::ProfileBusy, message, BUSY_RETRY_SECONDS));
    };
    let began = cx.app.clock.now();
    let built = build(cx, project, wanted).await;
    let result = match &built {
        Ok(CallBuild::Kept) => "built",
        Ok(CallBuild::Queued) => "queued",
        Err(_) => "failed",
    };
    build::measure(result, cx.app.clock.now().since(began));
    if built? == CallBuild::Queued {
        return Err(queued(cx, project, wanted).await?);
    }
    let found = shown(cx, project, version).await?;
    found.map(Some).ok_or_else(|| being_made(project, wanted))
}

/// The end of a build within a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallBuild {
    /// The profile was built and stored.
    Kept,
    /// It would have read too many rows, and is in the queue.
    Queued,
}

/// Builds a version, or puts it in the queue.
async fn build(cx: &Cx, project: &Project, version: Version) -> Result<CallBuild, ApiError> {
    let (app, profiles) = (&cx.app, cx.app.store.profiles());
    let snapshot = reading::snapshot(cx, project, Some(version)).await?;
    let sampling = app.process.profiles.sampling(&app.store, project.id, cx.now).await?;
    let root = snapshot.root_at(version).map(|root| root.to_string());
    // A call that ends early takes its build with it.
    let stop = CancellationToken::new();
    let begun = BegunProfile::begin(snapshot, sampling, &stop).await?;
    let (Some(begun), Some(root)) = (begun, root) else {
        return Err(being_made(project, version));
    };
    if begun.unread_rows() > app.profiles.request_rows {
        let (waiting, of) = match profiles.ask(project.id, version, &root, MOST_ASKED, cx.now).await? {
            ProfileAsked::Asked => return Ok(CallBuild::Queued),
            ProfileAsked::Full => (MOST_ASKED, "all datasets".to_owned()),
            ProfileAsked::DatasetFull => (MAX_ASKED_PROFILES, format!("`{}`", project.slug)),
        };
        let message = format!("{waiting} versions of {of} wait for a profile, which is the most; try again later");
        return Err(ApiError::limited(ErrorCode::ProfileBusy, message, ASKED_RETRY_SECONDS));
    }
    // The limit counts builds. A call for a version in the queue builds nothing.
    BUILDS.take(&cx.app, cx.client).await?;
    let terms = DocumentTerms {
        access: project.access,
        visibility: project.visibility,
        preview_rows: project.preview_rows,
    };
    let built = begun.finish(terms, &stop).await;
    let built = built.map_err(|error| match error {
        BuildError::Table(catalog::Error::HistoryLost { .. }) => ApiError::history_lost(&project.slug),
        error => error.into(),
    })?;
    profiles.add(built, cx.now).await?;
    Ok(CallBuild::Kept)
}

/// Puts a version in the queue whose rows a caller reads and that has no profile. The newest is built without that, and a full
/// queue only means that the caller sees no figures for longer.
pub(crate) async fn ask_for(cx: &Cx, project: &Project, snapshot: &Snapshot) -> Result<(), ApiError> {
    let version = snapshot.version();
    let root = snapshot.root_at(version).filter(|_| version < project.version);
    if let Some(root) = root.map(|root| root.to_string()) {
        let profiles = cx.app.store.profiles();
        let _asked: ProfileAsked = profiles.ask(project.id, version, &root, MOST_ASKED, cx.now).await?;
    }
    Ok(())
}

/// Returns the answer for a version in the queue.
async fn queued(cx: &Cx, project: &Project, version: Version) -> Result<ApiError, ApiError> {
    let problem = cx.app.store.profiles().problem(project.id).await?;
    Ok(match problem.as_deref() {
        Some(word) if word == ErrorCode::TableDamaged.word() => {
            ApiError::damaged("the last build of a profile found it")
        }
        Some(word) if word == ErrorCode::HistoryLost.word() => ApiError::history_lost(&project.slug),
        _ => being_made(project, version),
    })
}

fn being_made(project: &Project, version: Version) -> ApiError {
    let message = format!("the profile of version {version} of `{}` is being made", project.slug);
    ApiError::new(ErrorCode::NotYet, message).retry_after(ASKED_RETRY_SECONDS)
}

/// Notes that somebody asks for a version, so that its document stays longer than those of other versions.
async fn note(cx: &Cx, project: &Project, found: &ShownProfile) -> Result<(), ApiError> {
    let is_noted = found.asked_at.is_some_and(|at| cx.now.since(at) < NOTED_AGAIN);
    if found.version == project.version || is_noted {
        return Ok(());
    }
    let profiles = cx.app.store.profiles();
    profiles
        .note_asked(project.id, found.version, &found.root, cx.now)
        .await?;
    Ok(())
}
