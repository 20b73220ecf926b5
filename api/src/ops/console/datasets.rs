//! Pages about the operator's datasets: the list, and one with its versions, verdicts and uploads, which says how many rows
//! anybody sees, and deletes it if it is private.

use pages::console::{
    ConsoleDatasetPage, DatasetFacts, DatasetRow, DatasetsPage, DeletionForm, GateTally, PreviewRowsForm, UploadRow,
    VersionRow,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use store::{Access, ItemKind, ItemOfSeller, ListedUpload, Project, ProjectVersion, Visibility};
use types::{Contract, Field, FieldType, Timestamp};

use super::overview::{add_up, tallies};
use super::{contributions, item_sales};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{Effect, Spec};
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::ops::contribute::contract;
use crate::ops::page_kit::{form, form_page, instant, missing, page, page_layout, repairable};
use crate::ops::projects::{can_have_price, delete_project, most_preview_rows, set_preview_rows};
use crate::spans::hours;

mod edit;

const PATH: &str = "/console/datasets";
/// Datasets on the page.
const MAX_PROJECTS: u32 = 200;
/// Versions on the page of a dataset.
const MAX_VERSIONS: u32 = 30;
/// Contributions and uploads on the page of a dataset.
const MAX_RECENT: u32 = 30;
/// Contributors on the page of a dataset.
const MAX_CONTRIBUTORS: u32 = 20;
/// Versions that the chart of the rows has at most.
const GROWTH_POINTS: u64 = 120;

pub(super) fn add(table: &mut Operations) {
    table.add(page("datasets_page", PATH, "Datasets"), &[], list);
    table.add(page("dataset_page", "/console/datasets/{slug}", "A dataset"), &[], show);
    let preview_form = form(
        "preview_rows_form",
        "/console/datasets/{slug}/preview",
        "Say how many rows of a dataset anybody sees",
    );
    table.add(preview_form, &[], choose_rows);
    let delete_form = Spec {
        effect: Effect::Destroy,
        ..form(
            "delete_dataset_form",
            "/console/datasets/{slug}/delete",
            "Delete a private dataset",
        )
    };
    table.add(delete_form, &[], delete);
    edit::add(table);
}

async fn list(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let projects = cx
        .app
        .store
        .console()
        .projects_of(cx.the_operator()?, MAX_PROJECTS)
        .await?;
    PageResponse::page(&DatasetsPage {
        chrome: page_layout(&cx).await?,
        datasets: projects
            .into_iter()
            .map(|project| DatasetRow {
                slug: project.slug,
                title: project.title,
                is_down: project.is_taken_down,
                status: project.status.as_str().to_owned(),
                visibility: project.visibility.as_str().to_owned(),
                access: project.access.as_str().to_owned(),
                version: project.version.0,
                records: project.record_count,
                merged_at: project.merged_at.map(instant),
                waiting: project.open,
                is_asked: project.access == Access::Paid && project.preview_rows.is_none(),
            })
            .collect(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DatasetChoice {
    /// Slug of the dataset.
    #[schemars(length(max = 100))]
    slug: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DatasetPageQuery {
    /// Slug of the dataset.
    #[schemars(length(max = 100))]
    slug: String,
    /// True after a change was saved.
    #[serde(default)]
    saved: bool,
}

async fn show(cx: Cx, input: DatasetPageQuery) -> Result<PageResponse, ApiError> {
    let project = own(&cx, &input.slug).await?;
    let mut page = dataset(&cx, project, DeletionForm::default()).await?;
    page.edit.is_saved = input.saved;
    PageResponse::page(&page)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PreviewRowsInput {
    /// Slug of the dataset.
    #[schemars(length(max = 100))]
    slug: String,
    /// Number of rows as the person typed it; empty for neither rows nor figures.
    #[serde(default)]
    #[schemars(length(max = 20))]
    rows: String,
}

async fn choose_rows(cx: Cx, input: PreviewRowsInput) -> Result<PageResponse, ApiError> {
    let project = own(&cx, &input.slug).await?;
    let chosen = match input.rows.trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_error| {
            let most = most_preview_rows(project.access);
            ApiError::invalid("/rows", format!("must be a number from 0 to {most}"))
        }),
    };
    match chosen {
        Ok(chosen) => match set_preview_rows(&cx, &project, chosen).await {
            Ok(()) => PageResponse::see(&format!("{PATH}/{}#preview", project.slug)),
            Err(error) => refused_rows(&cx, project, input.rows, error).await,
        },
        Err(error) => refused_rows(&cx, project, input.rows, error).await,
    }
}

/// Returns the page of a dataset with what is wrong with the number of rows.
async fn refused_rows(cx: &Cx, project: Project, rows: String, error: ApiError) -> Result<PageResponse, ApiError> {
    let errors = repairable(error)?;
    let mut page = dataset(cx, project, DeletionForm::default()).await?;
    if let Some(form) = &mut page.preview {
        (form.rows, form.errors) = (rows, errors);
        // The field of the form has a name of its own.
        for error in &mut form.errors {
            "rows".clone_into(&mut error.field);
        }
    }
    form_page(&page, true)
}

/// Returns the form about the rows that anybody sees, as the dataset is.
fn preview_form(project: &Project) -> PreviewRowsForm {
    PreviewRowsForm {
        rows: project.preview_rows.map_or_else(String::new, |rows| rows.to_string()),
        most: most_preview_rows(project.access),
        is_paid: project.access == Access::Paid,
        is_asked: project.preview_rows.is_none(),
        errors: Vec::new(),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteDatasetForm {
    /// Slug of the dataset.
    #[schemars(length(max = 100))]
    slug: String,
    /// The slug, as the person typed it.
    #[schemars(length(max = 100))]
    confirm: String,
}

async fn delete(cx: Cx, input: DeleteDatasetForm) -> Result<PageResponse, ApiError> {
    let project = own(&cx, &input.slug).await?;
    let deleted = if input.confirm.trim() == project.slug {
        delete_project(&cx, &project, project.operator).await
    } else {
        Err(ApiError::invalid(
            "/confirm",
            format!("must be the slug of this dataset, {}", project.slug),
        ))
    };
    match deleted {
        Ok(()) => PageResponse::see(PATH),
        Err(error) => {
            let form = DeletionForm {
                confirm: input.confirm,
                errors: repairable(error)?,
            };
            form_page(&dataset(&cx, project, form).await?, true)
        }
    }
}

/// Returns a dataset of the operator.
async fn own(cx: &Cx, slug: &str) -> Result<Project, ApiError> {
    let operator = cx.the_operator()?;
    let project = cx.app.store.project_by_slug(slug, Some(operator)).await?;
    project
        // A public dataset of another operator is visible, too, but this page shows who uploads what to
        // it.
        .filter(|project| project.operator == operator)
        .ok_or_else(|| missing("dataset"))
}

/// Returns the page of a dataset as it is now.
async fn dataset(cx: &Cx, project: Project, deletion: DeletionForm) -> Result<ConsoleDatasetPage, ApiError> {
    let operator = cx.the_operator()?;
    let store = &cx.app.store;
    let console = store.console();
    let (versions, recent, uploads) = tokio::try_join!(
        store.project_versions(project.id, None, MAX_VERSIONS),
        console.contributions_to(project.id, None, MAX_RECENT),
        console.uploads_to(project.id, MAX_RECENT)
    )?;
    let counts = store.project_counts(project.id).await?;
    let contributors = store.project_contributors(project.id, MAX_CONTRIBUTORS).await?;
    let mut gates: Vec<GateTally> = Vec::new();
    for row in &recent {
        let tallies = tallies(row.tallies.as_deref())?;
        add_up(&mut gates, tallies.iter().map(contributions::tally).collect());
    }
    let agents = store.accounts().agents_of(operator, cx.now).await?;
    let example = example(&contract(&project)?);
    let creator = agents
        .into_iter()
        .find(|agent| Some(agent.id) == project.created_by_agent);
    let is_private = project.visibility == Visibility::Private;
    let item = project.id.to_string();
    let sold = ItemOfSeller {
        kind: ItemKind::Dataset,
        item: &item,
        seller: operator,
    };
    let readers = store.money().readers_of_dataset(&item).await?;
    let is_priced = can_have_price(project.access, project.visibility);
    let sales = item_sales::of(cx, sold, is_priced, readers).await?;
    let step = project.version.0.div_ceil(GROWTH_POINTS).max(1);
    let growth = store.project_growth(project.id, project.version, step).await?;
    Ok(ConsoleDatasetPage {
        chrome: page_layout(cx).await?,
        edit: edit::form_of(&project),
        price_window: hours(cx.app.limits.price_change_window.hours()),
        sales,
        growth: growth
            .into_iter()
            .map(|point| pages::GrowthPoint {
                at: point.created_at,
                records: point.record_count,
            })
            .collect(),
        preview: (!is_private).then(|| preview_form(&project)),
        deletion: is_private.then_some(deletion),
        dataset: DatasetFacts {
            slug: project.slug,
            title: project.title,
            status: project.status.as_str().to_owned(),
            visibility: project.visibility.as_str().to_owned(),
            access: project.access.as_str().to_owned(),
            license: project.license,
            tags: project.tags,
            created_by: creator.map(|agent| agent.name),
            created_at: instant(project.created_at),
            version: project.version.0,
            records: project.record_count,
            bytes: None,
            contributors: counts.contributors,
            root: project.head.as_ref().map(|head| head.root.clone()),
            merged_at: project.head.map(|head| instant(head.merged_at)),
            example: Some(example),
        },
        contributors: contributors
            .into_iter()
            .map(|contributor| pages::VersionContributor {
                agent: contributor.name,
                contributions: contributor.contributions,
                added: contributor.accepted,
            })
            .collect(),
        gates,
        versions: versions.into_iter().map(shown_version).collect(),
        uploads: uploads.into_iter().map(|upload| shown_upload(upload, cx.now)).collect(),
        contributions: recent.iter().map(contributions::listed).collect(),
    })
}

fn shown_version(version: ProjectVersion) -> VersionRow {
    VersionRow {
        version: version.version.0,
        contribution: Some(version.contribution.to_string()),
        agent: version.agent_name,
        added: version.accepted,
        records: version.record_count,
        root: version.root,
        at: instant(version.created_at),
    }
}

fn shown_upload(upload: ListedUpload, now: Timestamp) -> UploadRow {
    UploadRow {
        id: upload.id.to_string(),
        agent: upload.agent_name,
        bytes: upload.bytes,
        parts: upload.parts,
        // An upload whose time is over is only marked later.
        state: if upload.status == store::UploadStatus::Open && upload.expires_at <= now {
            store::UploadStatus::Expired.as_str().to_owned()
        } else {
            upload.status.as_str().to_owned()
        },
        created_at: instant(upload.created_at),
        expires_at: instant(upload.expires_at),
    }
}

/// Returns a record that fits a contract: its required fields, or its first one if none is required.
fn example(contract: &Contract) -> String {
    let required: Vec<&Field> = contract.fields().iter().filter(|field| field.required).collect();
    // A record without any member would be refused, so one field is named even if all are optional.
    let fields = if required.is_empty() {
        contract.fields().iter().take(1).collect()
    } else {
        required
    };
    let members: Vec<String> = fields
        .into_iter()
        .map(|field| format!("{}: {}", Value::from(field.name.as_str()), sample(field.kind)))
        .collect();
    format!("{{{}}}", members.join(", "))
}

/// Returns a value of a type, as JSON.
const fn sample(kind: FieldType) -> &'static str {
    match kind {
        FieldType::String => r#""text""#,
        FieldType::Integer => "1",
        FieldType::Number => "0.83",
        FieldType::Boolean => "true",
        FieldType::Timestamp => r#""2026-01-31T12:00:00Z""#,
        FieldType::Json => r#"{"any": "value"}"#,
        FieldType::Date => r#""2026-01-31""#,
        FieldType::Decimal(0) => r#""12""#,
        FieldType::Decimal(1) => r#""12.5""#,
        FieldType::Decimal(_) => r#""12.50""#,
    }
}
