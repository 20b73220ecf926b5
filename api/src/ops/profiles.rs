//! Operations that show what a dataset looks like before anybody buys or reads it: its profile, and some of its rows.
//!
//! Invariant: both answer from stored documents, and neither shows more than the level of the caller. Neither counts as
//! egress; what a preview has beyond the document, whole rows for who may read them, does.

use operators::profile::{self, ProfileFigures, ProfileLevel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::Project;
use types::contract::FieldTypeName;
use types::{FieldType, Version};

use crate::call::answer::JsonReply;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::room::PageRoom;
use crate::call::spec::{GuardedItem, OPTIONAL, Spec};
use crate::call::wire::WireInstant;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::contribute::documented_contract;
use crate::rules::profiles::{ShownProfile, request};
use crate::rules::reading::{self, MAX_EXACT_INTEGER};
use crate::rules::{entitlement, profiles};
use crate::state::egress::EgressReader;
use crate::state::page_size::PageSize;

/// Error of both operations for a caller that has nothing to see.
const NOTHING: (u16, &str) = (
    404,
    "There is no such project or version, the project is private to others, or it shows no profile.",
);
const BUSY: (u16, &str) = (
    429,
    "Too many calls; or `profile_busy`: others are being built or wait, or the address had 10 built in a minute.",
);
const NOT_YET: (u16, &str) = (
    503,
    "The profile is being made (`not_yet`), the table lacks versions that it had (`history_lost`), or a file of it is \
     damaged (`table_damaged`); `Retry-After` says when to come back.",
);

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "dataset_profile",
            path: "/projects/{slug}/profile",
            summary: "Figures of every column of a version",
            description: "Without `version`, the newest that has a profile. Of a paid dataset that the caller has not \
                          bought: coarse figures (`level` public) of the milestone at or before the version.",
            failure: &[NOTHING, BUSY, NOT_YET],
            ..PREVIEW
        },
        &[],
        figures,
    );
    table.add(
        Spec {
            name: "preview_dataset",
            path: "/projects/{slug}/preview",
            summary: "Some rows and column figures of a dataset, free",
            description: "`next` says how to read or buy the rest.",
            failure: &[
                (
                    404,
                    "There is no such project or version, or the project is private to others.",
                ),
                BUSY,
                NOT_YET,
            ],
            ..PREVIEW
        },
        &[],
        preview,
    );
}

/// What both operations share.
const PREVIEW: Spec = Spec {
    tag: "datasets",
    accepts: OPTIONAL,
    item: GuardedItem::Project,
    is_validated: true,
    ..Spec::BASE
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VersionChoice {
    /// Slug of the project.
    slug: String,
    /// Version to look at.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    version: Option<u64>,
}

/// Figures of every column of a version.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DatasetProfile {
    /// Slug of the project.
    dataset: String,
    /// Version that the figures are of.
    version: u64,
    /// Content root of the version: 64 hexadecimal digits.
    root: String,
    /// `full`, or `public` for a paid dataset that the caller has not bought.
    level: ProfileLevel,
    /// Time at which the figures were made.
    made_at: WireInstant,
    #[serde(flatten)]
    figures: ProfileFigures,
}

async fn figures(cx: Cx, input: VersionChoice) -> Result<JsonReply<DatasetProfile>, ApiError> {
    let project = entitlement::visible_lately(&cx, &input.slug).await?;
    let found = request::shown_or_built(&cx, &project, input.version.map(Version)).await?;
    let Some(shown) = found else {
        return Err(ApiError::not_found(nothing(&project)));
    };
    Ok(JsonReply::ok(DatasetProfile {
        dataset: project.slug.clone(),
        version: shown.version.0,
        root: shown.root,
        level: shown.level,
        made_at: shown.made_at.into(),
        figures: shown.figures,
    }))
}

/// Returns why a project that the caller sees shows no profile.
fn nothing(project: &Project) -> String {
    let slug = &project.slug;
    if project.version == Version::EMPTY {
        return format!("the dataset `{slug}` has no records yet");
    }
    format!(
        "the dataset `{slug}` shows no profile to who has not bought the version; contract and counts are at \
         `/projects/{slug}`"
    )
}

/// Some rows of a dataset and a line about each column.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PreviewAnswer {
    /// Slug of the project.
    dataset: String,
    /// Version of the rows; 0 before the first merge.
    version: u64,
    /// Number of records in the version.
    records: u64,
    /// `full`, or `public` for a paid dataset that the caller has not bought.
    level: ProfileLevel,
    /// Some records, in the order of the version. They are a sample, and not the beginning.
    rows: Vec<Map<String, Value>>,
    /// True if values in them are cut.
    cut: bool,
    /// The fields of the contract.
    columns: Vec<PreviewColumn>,
    /// Where it goes on.
    next: NextStep,
}

/// A field with its figures in a line.
#[derive(Debug, Serialize, JsonSchema)]
struct PreviewColumn {
    /// Name of the field.
    name: String,
    /// Type of the field.
    #[serde(rename = "type")]
    kind: FieldTypeName,
    /// Figures of the field in one line; absent where none are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

/// Where a caller goes on: to the data, to signing in, or to the purchase.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NextStep {
    /// Address of the records, for who may read them.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    /// Address at which a person signs in, for who needs nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    sign_in: Option<String>,
    /// Address that sells the version for credits.
    #[serde(skip_serializing_if = "Option::is_none")]
    buy: Option<String>,
    /// Price of the version in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<String>,
    /// Address that sells the version by x402.
    #[serde(skip_serializing_if = "Option::is_none")]
    pay: Option<String>,
}

async fn preview(cx: Cx, input: VersionChoice) -> Result<JsonReply<PreviewAnswer>, ApiError> {
    let project = entitlement::visible_lately(&cx, &input.slug).await?;
    let asked = input.version.map(Version);
    let shown = request::shown_or_built(&cx, &project, asked).await?;
    let next = next_step(&cx, &project, asked).await?;
    let mut room = PageRoom::of(&cx);
    room.spend(&next)?;
    let Some(shown) = shown else {
        // Without a profile there are the contract and the counts.
        let level = if entitlement::sees_whole(&cx, &project, asked.unwrap_or(project.version)).await? {
            ProfileLevel::Full
        } else {
            ProfileLevel::Public
        };
        let contract = documented_contract(&project)?;
        let fields = contract.fields().iter().map(|field| column(&field.name, field.kind));
        let mut columns: Vec<PreviewColumn> = fields.collect();
        room.keep(&mut columns)?;
        return Ok(JsonReply::ok(PreviewAnswer {
            dataset: project.slug.clone(),
            version: project.version.0,
            records: project.record_count,
            level,
            rows: Vec::new(),
            cut: false,
            columns,
            next,
        }));
    };
    let (mut rows, mut cut) = (shown.preview.clone(), shown.is_cut);
    // A tool has no room for whole texts, which may be long.
    if cut
        && !room.is_bounded()
        && profiles::may_read(&cx, &project, shown.version).await?
        && let Some(whole) = whole_rows(&cx, &project, &shown).await?
    {
        (rows, cut) = whole;
    }
    let columns = shown.figures.columns.iter().map(|column| PreviewColumn {
        name: column.name.clone(),
        kind: column.kind,
        summary: Some(profile::summary(column)),
    });
    let mut columns: Vec<PreviewColumn> = columns.collect();
    room.share(2).keep(&mut columns)?;
    room.spend(&columns)?;
    cut |= room.keep(&mut rows)?;
    Ok(JsonReply::ok(PreviewAnswer {
        dataset: project.slug.clone(),
        version: shown.version.0,
        records: shown.records,
        level: shown.level,
        rows,
        cut,
        columns,
        next,
    }))
}

fn column(name: &str, kind: FieldType) -> PreviewColumn {
    PreviewColumn {
        name: name.to_owned(),
        kind: kind.into(),
        summary: None,
    }
}

/// Reads the rows of a preview from the table, whole, for who may read it. Returns true with them if some did not fit
/// into a page, and `None` if they are beyond the egress of the caller, which no credits are spent on here.
async fn whole_rows(
    cx: &Cx,
    project: &Project,
    shown: &ShownProfile,
) -> Result<Option<(Vec<Map<String, Value>>, bool)>, ApiError> {
    let Some(reader) = cx.reader().filter(|_| cx.answer_is_sent) else {
        return Ok(None);
    };
    let reader = EgressReader {
        may_spend: false,
        ..reader
    };
    let snapshot = reading::snapshot(cx, project, Some(shown.version)).await?;
    let (mut rows, mut bytes, mut is_cut) = (Vec::with_capacity(shown.offsets.len()), 0, false);
    'rows: for offset in &shown.offsets {
        let range = *offset..offset.saturating_add(1);
        let pages = reading::page(&snapshot, catalog::Columns::Records, range, PageSize::LARGE, |_| Ok(())).await?;
        for record in pages.iter().flat_map(|((), records)| records) {
            if PageSize::LARGE.ends_before(bytes, record.get().len()) {
                is_cut = true;
                break 'rows;
            }
            bytes += record.get().len();
            let row = serde_json::from_str(record.get());
            rows.push(row.map_err(|error| ApiError::internal(format!("a record: {error}")))?);
        }
    }
    let (egress, now, bytes) = (&cx.app.egress, cx.app.clock.now(), bytes as u64);
    match egress.admit(&cx.app, reader, now, bytes).await {
        Ok(()) => {
            egress.sent(&reader, now, bytes);
            Ok(Some((rows, is_cut)))
        }
        Err(error) if matches!(error.code(), ErrorCode::EgressQuota | ErrorCode::PlatformCapacity) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns where the caller goes on with a version, or with the latest.
async fn next_step(cx: &Cx, project: &Project, asked: Option<Version>) -> Result<NextStep, ApiError> {
    let (base, slug) = (&cx.app.config.public_url, &project.slug);
    let version = asked.unwrap_or(project.version);
    if entitlement::may_read(cx, project, version).await? {
        let version = asked.map_or_else(String::new, |version| format!("?version={version}"));
        return Ok(NextStep {
            data: Some(format!("{base}/projects/{slug}/data{version}")),
            ..NextStep::default()
        });
    }
    Ok(match entitlement::offer(cx, project, asked) {
        Some(quote) => NextStep {
            buy: Some(quote.buy),
            price: Some(quote.price.to_string()),
            pay: Some(quote.pay),
            ..NextStep::default()
        },
        None => NextStep {
            sign_in: Some(format!("{base}/signin")),
            ..NextStep::default()
        },
    })
}

#[cfg(test)]
mod tests;
