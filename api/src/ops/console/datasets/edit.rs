//! Forms that change a dataset: its title, readme, tags, price and status; and its end.
//!
//! Invariants:
//! - A form changes the dataset that it was made from: if somebody else changed it meanwhile, nothing is changed, and both
//!   are shown.
//! - What was typed is shown again whatever happens, also to who was signed out meanwhile.

use pages::console::DatasetEditForm;
use pages::{ConfirmPage, FieldError, KeptFormPage};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::{Project, ProjectStatus};

use super::{DatasetChoice, PATH, dataset, own};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{ANYBODY, Effect, Spec};
use crate::call::view::PageResponse;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::ops::page_kit::{form, form_lines, form_page, page, page_layout, repairable, sentence};
use crate::ops::projects::{self, ProjectEdit, can_have_price};
use crate::price::{dataset_price, typed_price};

pub(super) fn add(table: &mut Operations) {
    let edit_form = Spec {
        accepts: ANYBODY,
        keeps_form: true,
        ..form(
            "edit_dataset_form",
            "/console/datasets/{slug}",
            "Change title, readme, tags, price and status of a dataset",
        )
    };
    table.add(edit_form, &[], edit);
    let path = "/console/datasets/{slug}/archive";
    table.add(
        page("archive_dataset_page", path, "Asks before a dataset is archived"),
        &[],
        ask_to_archive,
    );
    let archive_form = Spec {
        effect: Effect::Destroy,
        ..form("archive_dataset_form", path, "Archive a dataset for good")
    };
    table.add(archive_form, &[], archive);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditDatasetForm {
    /// Slug of the dataset.
    #[schemars(length(max = 100))]
    slug: String,
    /// Edition that the form was made from.
    #[serde(default)]
    #[schemars(length(max = 64))]
    seen: String,
    /// Title as the person typed it.
    #[serde(default)]
    #[schemars(length(max = 2_000))]
    title: String,
    /// Readme as the person typed it.
    #[serde(default)]
    #[schemars(length(max = 60_000))]
    readme: String,
    /// Tags with commas or blanks between them.
    #[serde(default)]
    #[schemars(length(max = 2_000))]
    tags: String,
    /// Price in dollars; empty for the platform's default, absent for a dataset without price.
    #[schemars(length(max = 40))]
    price: Option<String>,
    /// Present if buyers may pay with trial credit.
    #[schemars(length(max = 10))]
    trial: Option<String>,
    /// `open` or `paused`; absent for an archived dataset.
    #[schemars(length(max = 20))]
    status: Option<String>,
}

impl EditDatasetForm {
    /// Returns the fields as members of the call that changes a dataset.
    fn members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("slug".to_owned(), json!(self.slug));
        members.insert("title".to_owned(), json!(self.title.trim()));
        members.insert("readme".to_owned(), json!(form_lines(&self.readme)));
        members.insert("tags".to_owned(), json!(tags(&self.tags)));
        if let Some(price) = &self.price {
            let price = price.trim();
            // People write the sign, too.
            let price = Some(price.strip_prefix('$').unwrap_or(price)).filter(|price| !price.is_empty());
            members.insert("price".to_owned(), json!(price));
            members.insert("trialSale".to_owned(), json!(self.trial.is_some()));
        }
        if let Some(status) = &self.status {
            members.insert("status".to_owned(), json!(status));
        }
        members
    }

    /// Returns the form with what was typed.
    fn typed(self, project: &Project) -> DatasetEditForm {
        let made = form_of(project);
        DatasetEditForm {
            seen: self.seen,
            title: self.title,
            readme: form_lines(&self.readme),
            tags: self.tags,
            price: made.price.is_some().then(|| self.price.unwrap_or_default()),
            trial: self.trial.is_some(),
            status: self.status.and_then(|word| word.parse().ok()).unwrap_or(made.status),
            ..made
        }
    }
}

/// Returns the tags of a line, each once.
fn tags(line: &str) -> Vec<&str> {
    let mut tags: Vec<&str> = Vec::new();
    let given = line.split(|letter: char| letter == ',' || letter.is_whitespace());
    for tag in given.filter(|tag| !tag.is_empty()) {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    tags
}

/// Returns the form about a dataset, as it is.
pub(super) fn form_of(project: &Project) -> DatasetEditForm {
    let is_priced = can_have_price(project.access, project.visibility);
    DatasetEditForm {
        seen: project.edition(),
        title: project.title.clone(),
        readme: project.readme.clone(),
        tags: project.tags.join(", "),
        price: is_priced.then(|| typed_price(project.price_micro)),
        default_price: dataset_price(None),
        trial: project.trial_sale,
        status: project.status,
        is_saved: false,
        errors: Vec::new(),
        changed: Vec::new(),
    }
}

async fn edit(cx: Cx, input: EditDatasetForm) -> Result<PageResponse, ApiError> {
    if cx.operator().is_none() {
        return kept(&cx, input).await;
    }
    let project = own(&cx, &input.slug).await?;
    match projects::edit(&cx, &project, input.members(), input.seen.clone()).await {
        Ok(ProjectEdit::Done(project)) => PageResponse::see(&format!("{PATH}/{}?saved=true#edit", project.slug)),
        Ok(ProjectEdit::Edited(now)) => {
            let mut typed = input.typed(&now);
            typed.changed = differences(&now, &typed);
            // Of the dataset as it is now, so that saving once more is what the person decides.
            typed.seen = now.edition();
            let error = FieldError::new("", "Nothing was saved: look at what changed, then save again.");
            typed.errors = vec![error];
            refused(&cx, now, typed).await
        }
        Err(error) => {
            let mut typed = input.typed(&project);
            typed.errors = errors_of(error)?;
            refused(&cx, project, typed).await
        }
    }
}

/// Returns the errors of the form. A price that changed within the day is one of them, since a page of its own would lose what
/// was typed.
fn errors_of(error: ApiError) -> Result<Vec<FieldError>, ApiError> {
    if error.code() == ErrorCode::PriceChanged {
        return Ok(vec![FieldError::new("price", sentence(error.message()))]);
    }
    let mut errors = repairable(error)?;
    for error in &mut errors {
        // A tag has no field of its own.
        if error.field.starts_with("tags/") {
            "tags".clone_into(&mut error.field);
        }
    }
    Ok(errors)
}

/// Returns the fields of a dataset that differ from what was typed, as they are now.
fn differences(project: &Project, typed: &DatasetEditForm) -> Vec<(&'static str, String)> {
    let now = form_of(project);
    let shown = |text: &str| {
        if text.is_empty() {
            "(empty)".to_owned()
        } else {
            text.to_owned()
        }
    };
    let mut differences = Vec::new();
    for (name, is, was) in [
        ("Title", &now.title, &typed.title),
        ("What is in it", &now.readme, &typed.readme),
        ("Tags", &now.tags, &typed.tags),
    ] {
        if is != was {
            differences.push((name, shown(is)));
        }
    }
    if let (Some(is), Some(was)) = (&now.price, &typed.price)
        && is != was
    {
        let price = if is.is_empty() {
            "the default".to_owned()
        } else {
            format!("${is}")
        };
        differences.push(("Price", price));
    }
    if now.trial != typed.trial {
        let words = if now.trial { "accepted" } else { "not accepted" };
        differences.push(("Trial credit", words.to_owned()));
    }
    if now.status != typed.status {
        differences.push(("New rows", now.status.to_string()));
    }
    differences
}

/// Returns the page of a dataset with a form that was not accepted.
async fn refused(cx: &Cx, project: Project, form: DatasetEditForm) -> Result<PageResponse, ApiError> {
    let mut page = dataset(cx, project, pages::console::DeletionForm::default()).await?;
    page.edit = form;
    form_page(&page, true)
}

/// Returns what was typed to a person who was signed out meanwhile.
async fn kept(cx: &Cx, input: EditDatasetForm) -> Result<PageResponse, ApiError> {
    let page = format!("{PATH}/{}", input.slug);
    let fields = [
        ("seen", Some(input.seen)),
        ("title", Some(input.title)),
        ("readme", Some(form_lines(&input.readme))),
        ("tags", Some(input.tags)),
        ("price", input.price),
        ("trial", input.trial),
        ("status", input.status),
    ];
    let kept = KeptFormPage {
        chrome: page_layout(cx).await?,
        action: page.clone(),
        page,
        fields: fields
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect(),
        label: "Save changes",
    };
    form_page(&kept, true)
}

async fn ask_to_archive(cx: Cx, input: DatasetChoice) -> Result<PageResponse, ApiError> {
    let project = own(&cx, &input.slug).await?;
    let back = format!("{PATH}/{}#end", project.slug);
    if project.status == ProjectStatus::Archived {
        return PageResponse::see(&back);
    }
    PageResponse::page(&ConfirmPage {
        chrome: page_layout(&cx).await?,
        title: format!("Archive {}?", project.slug),
        explanation:
            "It takes no rows any more, for good. It stays readable and on sale, its address stays taken, and it no \
                      longer counts as one of your active datasets. There is no undo."
                .to_owned(),
        action: format!("{PATH}/{}/archive", project.slug),
        fields: Vec::new(),
        label: "Archive it for good".to_owned(),
        danger: true,
        back,
    })
}

async fn archive(cx: Cx, input: DatasetChoice) -> Result<PageResponse, ApiError> {
    let project = own(&cx, &input.slug).await?;
    projects::archive(&cx, &project).await?;
    PageResponse::see(&format!("{PATH}/{}#end", project.slug))
}

#[cfg(test)]
mod tests;
