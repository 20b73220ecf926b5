//! Entitlement: visibility of a project to a caller, access to its versions, and their price.
//!
//! Invariant: every read path asks this module. A private project is answered like a missing one, except to its
//! operator.

use std::sync::Arc;

use serde_json::Value;
use store::{Access, Project, Visibility};
use types::money::MicroUsdc;
use types::{Kind, OperatorId, Version};

use crate::app::App;
use crate::cx::Cx;
use crate::error::ApiError;
use crate::operation::Item;
use crate::price;

/// Entitlement of a caller to a version of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entitlement {
    /// The caller may read it.
    Granted,
    /// The caller may read it after paying this price.
    Priced(MicroUsdc),
    /// The caller may not know that it exists.
    Hidden,
}

/// Decides the entitlement of a caller; the only place that does.
fn decide(caller: Option<OperatorId>, project: &Project) -> Entitlement {
    let owns = caller == Some(project.operator);
    match (project.visibility, project.access) {
        // The owner comes first: it reads its project whatever the visibility and the price.
        _ if owns => Entitlement::Granted,
        (Visibility::Private, _) => Entitlement::Hidden,
        (Visibility::Public, Access::Public) => Entitlement::Granted,
        (Visibility::Public, Access::Paid) => match price_of(project.price_micro) {
            MicroUsdc(0) => Entitlement::Granted,
            price => Entitlement::Priced(price),
        },
    }
}

/// Returns the price of a version of a paid project: its own, or the platform's default.
pub(crate) fn price_of(micro: Option<i64>) -> MicroUsdc {
    micro.map_or(price::DATASET_DEFAULT, MicroUsdc)
}

/// Returns the project with this slug if the caller may know of it, otherwise a 404.
pub(crate) async fn visible(cx: &Cx, slug: &str) -> Result<Project, ApiError> {
    visible_to(&cx.app, cx.operator(), slug).await
}

async fn visible_to(app: &App, operator: Option<OperatorId>, slug: &str) -> Result<Project, ApiError> {
    // The query filters too: reading a hidden row and dropping it would take longer than finding none, and so reveal
    // it.
    let project = app.store.project_by_slug(slug, operator).await?;
    project
        .filter(|project| decide(operator, project) != Entitlement::Hidden)
        .ok_or_else(|| ApiError::no_project(slug))
}

/// Returns the project with this slug if the caller's operator maintains it, otherwise a 404, or a 403 if the caller
/// sees it.
pub(crate) async fn own(cx: &Cx, slug: &str) -> Result<Project, ApiError> {
    own_of(&cx.app, cx.operator(), slug).await
}

async fn own_of(app: &App, operator: Option<OperatorId>, slug: &str) -> Result<Project, ApiError> {
    let project = visible_to(app, operator, slug).await?;
    // The caller sees the project, so a 403 instead of a 404 reveals nothing.
    if operator != Some(project.operator) {
        let message = format!("the project `{}` is another operator's", project.slug);
        return Err(ApiError::new(Kind::Forbidden, "not_owner", message));
    }
    Ok(project)
}

/// Fails as the operation would if the caller may not see the item of a call, or has not the right over it. For a call
/// whose input is refused.
pub(crate) async fn outrank(
    app: &App,
    item: Item,
    operator: Option<OperatorId>,
    input: &Value,
) -> Result<(), ApiError> {
    let slug = input["slug"].as_str().unwrap_or_default();
    match item {
        Item::None => Ok(()),
        Item::Project => visible_to(app, operator, slug).await.map(drop),
        Item::OwnProject => own_of(app, operator, slug).await.map(drop),
    }
}

/// Returns the same project as [`visible`], as it was at most half a second ago: for reads, not for decisions about
/// changes.
pub(crate) async fn visible_lately(cx: &Cx, slug: &str) -> Result<Arc<Project>, ApiError> {
    let project = cx.app.project(slug, cx.operator()).await?;
    let project = project.ok_or_else(|| ApiError::no_project(slug))?;
    known(cx, &project)?;
    Ok(project)
}

/// Checks that the caller may know of a project.
pub(crate) fn known(cx: &Cx, project: &Project) -> Result<(), ApiError> {
    if decide(cx.operator(), project) == Entitlement::Hidden {
        return Err(ApiError::no_project(&project.slug));
    }
    Ok(())
}

/// Checks that the caller may read the records of `version`, or of the latest. The error contains the price.
pub(crate) fn records(cx: &Cx, project: &Project, version: Option<Version>) -> Result<(), ApiError> {
    match decide(cx.operator(), project) {
        Entitlement::Granted => Ok(()),
        Entitlement::Hidden => Err(ApiError::no_project(&project.slug)),
        Entitlement::Priced(price) => Err(unpaid(cx, project, version, price)),
    }
}

fn unpaid(cx: &Cx, project: &Project, version: Option<Version>, price: MicroUsdc) -> ApiError {
    let (base, slug) = (&cx.app.config.public_url, &project.slug);
    // The address for the payment names a version only if the request did.
    let version = version.map_or_else(String::new, |version| format!("&version={version}"));
    let message = format!("a version of `{slug}` costs ${price} and the operator has not bought it");
    ApiError::new(Kind::PaymentRequired, "payment_required", message)
        .field("price", price.to_string())
        .field("priceMicro", price.0)
        .field(
            "credits",
            serde_json::json!({"buy": format!("{base}/projects/{slug}/buy")}),
        )
        .field("pay", format!("{base}/paid/dataset?slug={slug}{version}"))
}

#[cfg(test)]
mod tests {
    use store::ProjectStatus;
    use types::{DatasetId, Timestamp};

    use super::*;

    fn operator(number: u8) -> OperatorId {
        OperatorId::from_bytes([number; 16])
    }

    fn project(visibility: Visibility, access: Access, price_micro: Option<i64>) -> Project {
        let now = Timestamp::from_micros(0);
        Project {
            id: DatasetId::new(now),
            slug: "weather".to_owned(),
            title: "Weather".to_owned(),
            readme: String::new(),
            contract_json: String::new(),
            license: String::new(),
            tags: Vec::new(),
            access,
            visibility,
            price_micro,
            trial_sale: false,
            status: ProjectStatus::Open,
            operator: operator(1),
            created_by_agent: None,
            created_at: now,
            updated_at: now,
            version: Version(0),
            record_count: 0,
            head: None,
        }
    }

    #[test]
    fn the_owner_reads_whatever_it_costs() {
        for (visibility, access) in [
            (Visibility::Public, Access::Public),
            (Visibility::Public, Access::Paid),
            (Visibility::Private, Access::Public),
        ] {
            let project = project(visibility, access, Some(500_000));
            assert_eq!(decide(Some(operator(1)), &project), Entitlement::Granted);
        }
    }

    #[test]
    fn others_read_public_pay_paid_and_do_not_know_of_private() {
        for caller in [None, Some(operator(2))] {
            let public = project(Visibility::Public, Access::Public, None);
            assert_eq!(decide(caller, &public), Entitlement::Granted);
            let paid = project(Visibility::Public, Access::Paid, Some(500_000));
            assert_eq!(decide(caller, &paid), Entitlement::Priced(MicroUsdc(500_000)));
            let unpriced = project(Visibility::Public, Access::Paid, None);
            assert_eq!(decide(caller, &unpriced), Entitlement::Priced(price::DATASET_DEFAULT));
            let free = project(Visibility::Public, Access::Paid, Some(0));
            assert_eq!(decide(caller, &free), Entitlement::Granted);
            let private = project(Visibility::Private, Access::Public, None);
            assert_eq!(decide(caller, &private), Entitlement::Hidden);
        }
    }
}
