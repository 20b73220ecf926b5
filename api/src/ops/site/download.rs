//! Form by which a person downloads a version as a file.
//!
//! Invariant: a file has what `export_dataset` answers to the operator's agents: the same records in the same order, with the
//! same entitlement and the same egress. A download spends no credits.

use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use types::Version;

use crate::call::answer::FileDownload;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{GuardedItem, SESSION, Spec};
use crate::error::ApiError;
use crate::ops::export;
use crate::rules::answer_file::FileFormat;
use crate::rules::entitlement;
use crate::rules::reading::{self, MAX_EXACT_INTEGER, NO_VERSION, NOT_BOUGHT, NOT_YET};

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "download_form",
            // A form with the token of the session, so that no other site makes a browser download anything.
            method: Method::POST,
            path: "/projects/{slug}/download",
            summary: "Download a version as a file",
            accepts: SESSION,
            item: GuardedItem::Project,
            egress: true,
            success: &[(200, "The file.")],
            failure: &[NOT_BOUGHT, NO_VERSION, NOT_YET],
            ..Spec::PAGE
        },
        &[],
        download,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DownloadForm {
    /// Slug of the dataset.
    #[schemars(length(max = 80))]
    slug: String,
    /// Format of the file.
    format: FileFormat,
    /// Version to download.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: u64,
}

async fn download(cx: Cx, input: DownloadForm) -> Result<FileDownload, ApiError> {
    let project = entitlement::visible(&cx, &input.slug).await?;
    let snapshot = reading::entitled(&cx, &project, Some(Version(input.version))).await?;
    let pieces = export::records(&cx, &project, &snapshot, input.format).await?;
    let name = input
        .format
        .file_name(&format!("{}-v{}", project.slug, snapshot.version()));
    Ok(FileDownload::pieces(&name, input.format.media_type(), pieces))
}

#[cfg(test)]
mod tests;
