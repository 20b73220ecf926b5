//! Entitlement: visibility of a project to a caller, access to its versions, and their price.
//!
//! Invariant: every read path asks this module. A private project is answered like a missing one, except to its
//! operator. What an operator has bought is remembered for a minute, and no longer than a second after a refund or a
//! takedown; what it has not bought is not remembered.

use std::sync::Arc;

use pay::Quote;
use serde_json::{Value, json};
use store::{Access, Project, Visibility};
use types::money::MicroUsdc;
use types::vocabulary::ItemKind;
use types::{OperatorId, Timestamp, Version};

use crate::call::caller::Caller;
use crate::call::cx::Cx;
use crate::call::spec::GuardedItem;
use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::price::dataset_price;
use crate::rules::auth;
use crate::state::app::App;

pub(crate) mod requests;
pub(crate) mod units;

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
        (Visibility::Public, Access::Paid) => match dataset_price(project.price_micro) {
            MicroUsdc(0) => Entitlement::Granted,
            price => Entitlement::Priced(price),
        },
    }
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

/// Returns the same project as [`visible`], unless it is taken down: for everything but the reads that its buyers keep.
pub(crate) async fn current(cx: &Cx, slug: &str) -> Result<Project, ApiError> {
    current_to(&cx.app, cx.operator(), slug).await
}

async fn current_to(app: &App, operator: Option<OperatorId>, slug: &str) -> Result<Project, ApiError> {
    let project = visible_to(app, operator, slug).await?;
    if project.taken_down.is_some() {
        return Err(ApiError::no_project(slug));
    }
    Ok(project)
}

/// Returns the project with this slug if the caller's operator maintains it, otherwise a 404, or a 403 if the caller
/// sees it.
pub(crate) async fn own(cx: &Cx, slug: &str) -> Result<Project, ApiError> {
    own_of(&cx.app, cx.operator(), slug).await
}

async fn own_of(app: &App, operator: Option<OperatorId>, slug: &str) -> Result<Project, ApiError> {
    let project = current_to(app, operator, slug).await?;
    // The caller sees the project, so a 403 instead of a 404 reveals nothing.
    if operator != Some(project.operator) {
        let message = format!("the project `{}` is another operator's", project.slug);
        return Err(ApiError::new(ErrorCode::NotOwner, message));
    }
    Ok(project)
}

/// Fails as the operation would if the caller may not see the item of a call, or has not the right over it. For a call
/// whose input is refused.
pub(crate) async fn check_access_before_input(
    app: &App,
    item: GuardedItem,
    caller: Option<&Caller>,
    now: Timestamp,
    input: &Value,
) -> Result<(), ApiError> {
    let operator = caller.map(|caller| caller.operator);
    let slug = input["slug"].as_str().unwrap_or_default();
    match item {
        GuardedItem::None => Ok(()),
        GuardedItem::Project => visible_to(app, operator, slug).await.map(drop),
        GuardedItem::Records => {
            if input["limit"] != 0 {
                auth::require_agent(app, caller)?;
            }
            visible_to(app, operator, slug).await.map(drop)
        }
        GuardedItem::OwnProject => own_of(app, operator, slug).await.map(drop),
        GuardedItem::Unit | GuardedItem::OwnUnit => {
            units::check_unit_access_before_input(app, item, caller, now, input).await
        }
        GuardedItem::Request | GuardedItem::OwnRequest => {
            requests::check_request_access_before_input(app, item, operator, now, input).await
        }
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

/// Checks that the caller may read the records of `version`, which exists, or of the latest. The error contains the
/// price. `asked` is the version that the request names, if it names one.
pub(crate) async fn records(
    cx: &Cx,
    project: &Project,
    version: Version,
    asked: Option<Version>,
) -> Result<(), ApiError> {
    match decide(cx.operator(), project) {
        Entitlement::Granted => Ok(()),
        Entitlement::Hidden => Err(ApiError::no_project(&project.slug)),
        Entitlement::Priced(price) => {
            if owns(cx, ItemKind::Dataset, &project.id.to_string(), version.0).await? {
                return Ok(());
            }
            // A dataset that is down is not sold: the buyer of an earlier version learns nothing of a later one.
            if project.taken_down.is_some() {
                return Err(ApiError::no_project(&project.slug));
            }
            Err(refusal(&dataset_quote(cx, project, asked, price)))
        }
    }
}

/// Returns the latest version whose records the caller may read, or the price of a version if it may read none.
pub(crate) async fn latest_readable(cx: &Cx, project: &Project) -> Result<Result<Version, MicroUsdc>, ApiError> {
    let price = match decide(cx.operator(), project) {
        Entitlement::Granted => return Ok(Ok(project.version)),
        Entitlement::Hidden => return Err(ApiError::no_project(&project.slug)),
        Entitlement::Priced(price) => price,
    };
    let id = project.id.to_string();
    if owns(cx, ItemKind::Dataset, &id, project.version.0).await? {
        return Ok(Ok(project.version));
    }
    let Some(operator) = cx.operator() else {
        return Ok(Err(price));
    };
    let bought = cx.app.store.money().owned(operator, ItemKind::Dataset, &id).await?;
    Ok(bought.map(|bought| Version(bought.min(project.version.0))).ok_or(price))
}

/// Returns true if anything that is computed from the records of a version may be shown to the caller in full: the
/// dataset is free, its own, or bought up to the version.
pub(crate) async fn sees_whole(cx: &Cx, project: &Project, version: Version) -> Result<bool, ApiError> {
    match decide(cx.operator(), project) {
        Entitlement::Granted => Ok(true),
        Entitlement::Hidden => Ok(false),
        Entitlement::Priced(_) => owns(cx, ItemKind::Dataset, &project.id.to_string(), version.0).await,
    }
}

/// Returns true if the caller may read the records of a version. A caller without a credential reads none, of a free
/// dataset either.
pub(crate) async fn may_read(cx: &Cx, project: &Project, version: Version) -> Result<bool, ApiError> {
    Ok(cx.operator().is_some() && sees_whole(cx, project, version).await?)
}

/// Returns true if the caller's operator has bought an item up to a version; for a unit the version is 1.
pub(crate) async fn owns(cx: &Cx, kind: ItemKind, item: &str, version: u64) -> Result<bool, ApiError> {
    // A caller without a credential owns nothing here; wallets prove their items at the paid paths.
    let Some(operator) = cx.operator() else {
        return Ok(false);
    };
    let entitlements = &cx.app.process.entitlements;
    Ok(entitlements
        .owns(&cx.app.store, operator, kind, item, version, cx.now)
        .await?)
}

/// Returns the offer of a version of a dataset to a caller who sees it, or `None` if it costs the caller nothing.
pub(crate) fn offer(cx: &Cx, project: &Project, asked: Option<Version>) -> Option<Quote> {
    match decide(cx.operator(), project) {
        Entitlement::Priced(price) => Some(dataset_quote(cx, project, asked, price)),
        Entitlement::Granted | Entitlement::Hidden => None,
    }
}

/// Returns the offer of a version of a dataset.
pub(crate) fn dataset_quote(cx: &Cx, project: &Project, version: Option<Version>, price: MicroUsdc) -> Quote {
    let (base, slug) = (&cx.app.config.public_url, &project.slug);
    // The address for the payment names a version only if the request did.
    let version = version.map_or_else(String::new, |version| format!("&version={version}"));
    Quote {
        message: format!("a version of `{slug}` costs ${price} in test USDC and the operator has not bought it"),
        price,
        buy: format!("{base}/projects/{slug}/buy"),
        pay: format!("{base}/paid/dataset?slug={slug}{version}"),
        top_up: top_up(cx),
        short: None,
    }
}

/// Returns the offer of a unit.
pub(crate) fn unit_quote(cx: &Cx, id: &str, price: MicroUsdc) -> Quote {
    let base = &cx.app.config.public_url;
    Quote {
        message: format!("this unit costs ${price} in test USDC"),
        price,
        buy: format!("{base}/knowledge/{id}/buy"),
        pay: format!("{base}/paid/knowledge?id={id}"),
        top_up: top_up(cx),
        short: None,
    }
}

/// Returns the address that sells credits to the caller's operator.
pub(crate) fn top_up(cx: &Cx) -> Option<String> {
    cx.operator().map(|operator| cx.app.config.top_up(operator))
}

/// Returns an offer as an error of the interface.
pub(crate) fn refusal(quote: &Quote) -> ApiError {
    let mut credits = json!({"buy": quote.buy});
    if let Some(top_up) = &quote.top_up {
        // The address names the operator, so there is none for a caller without a credential.
        credits["topUp"] = json!(top_up);
    }
    let mut error = ApiError::new(ErrorCode::PaymentRequired, quote.message.clone());
    if let Some(short) = quote.short {
        credits["balanceMicro"] = json!(short.balance.0);
        credits["givenMicro"] = json!(short.given.0);
        error = error.with_code(ErrorCode::CreditsShort);
    }
    error
        .field("price", quote.price.to_string())
        .field("priceMicro", quote.price.0)
        .field("credits", credits)
        .field("pay", quote.pay.clone())
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
            preview_rows: Some(20),
            status: ProjectStatus::Open,
            operator: operator(1),
            created_by_agent: None,
            created_at: now,
            updated_at: now,
            version: Version(0),
            record_count: 0,
            head: None,
            taken_down: None,
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
            assert_eq!(
                decide(caller, &unpriced),
                Entitlement::Priced(pay::DEFAULT_DATASET_PRICE)
            );
            let free = project(Visibility::Public, Access::Paid, Some(0));
            assert_eq!(decide(caller, &free), Entitlement::Granted);
            let private = project(Visibility::Private, Access::Public, None);
            assert_eq!(decide(caller, &private), Entitlement::Hidden);
        }
    }
}
