//! Changing a project.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use store::{ProjectChanges, ProjectStatus, ProjectUpdated};
use types::Kind;

use super::view::Details;
use super::{TAG_PATTERN, can_have_price};
use crate::answer::Reply;
use crate::cx::Cx;
use crate::entitlement;
use crate::error::ApiError;
use crate::price::PriceInput;
use crate::schema::{LINE, TEXT};

const HOUR: Duration = Duration::from_hours(1);

/// The slug and at least one property.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("minProperties" = 2))]
pub(super) struct Update {
    /// The project's slug.
    slug: String,
    /// Its title.
    #[schemars(length(min = 4, max = 140), regex(pattern = LINE))]
    title: Option<String>,
    /// What it is about.
    #[schemars(length(min = 20, max = 20_000), regex(pattern = TEXT))]
    readme: Option<String>,
    /// Words to find it by.
    #[schemars(length(max = 8), inner(regex(pattern = TAG_PATTERN)))]
    tags: Option<Vec<String>>,
    /// Whether it takes contributions; `archived` is final.
    status: Option<ProjectStatus>,
    /// What a version costs in dollars, for a paid project; null is the platform's default.
    #[serde(default, deserialize_with = "given")]
    price: Option<PriceInput>,
    /// Whether buyers may pay with given credits.
    trial_sale: Option<bool>,
}

/// A null that is given, told from a member that is not.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<PriceInput>, D::Error> {
    PriceInput::deserialize(deserializer).map(Some)
}

pub(super) async fn update(cx: Cx, input: Update) -> Result<Reply<Details>, ApiError> {
    let project = entitlement::visible(&cx, &input.slug).await?;
    if cx.operator() != Some(project.operator) {
        let message = format!("the project `{}` is another operator's", project.slug);
        return Err(ApiError::new(Kind::Forbidden, "not_owner", message));
    }
    let price = input.price.map(|price| price.amount()).transpose()?;
    if price.flatten().is_some() && !can_have_price(project.access, project.visibility) {
        return Err(ApiError::invalid("/price", "is for paid projects only"));
    }
    let changes = ProjectChanges {
        title: input.title,
        readme: input.readme,
        tags: input.tags,
        status: input.status,
        price: price.map(|price| price.map(|price| price.0)),
        trial_sale: input.trial_sale,
    };
    let window = HOUR * cx.app.limits.price_change_hours;
    match cx.app.store.project_update(project.id, changes, cx.now, window).await? {
        ProjectUpdated::Updated(project) => Ok(Reply::ok(Details::of(&project)?)),
        ProjectUpdated::PriceTooSoon { retry_after } => {
            let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
            Err(ApiError::limited(
                "price_changed",
                "the price of a project changes once a day",
                seconds,
            ))
        }
        ProjectUpdated::StatusConflict { from, to } => {
            let message = format!("the project is {from} and cannot become {to}");
            Err(ApiError::conflict("status_conflict", message).field("status", from.as_str()))
        }
    }
}
