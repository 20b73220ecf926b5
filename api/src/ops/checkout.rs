//! Purchase of an item by a person, in the browser.
//!
//! ```text
//! GET …/buy ──▶ POST /console/buy ──▶ GET /console/approvals/{id} ──▶ POST …/yes ──▶ GET /console/receipts/{sale}
//! ```
//!
//! Invariants:
//! - An agent that the person chose buys, within its limits, and the trail names both. The operations for programs stay
//!   closed to a session.
//! - Opening a page writes nothing. A form counts only if its browser names this service in `Origin`.
//! - What is sent twice is answered twice and done once.

mod buy;
mod question;
mod receipt;

use pages::{Checkout, CheckoutThing};
use store::{Bought, Project, Unit};
use types::money::MicroUsdc;
use types::vocabulary::ItemKind;
use types::{UnitId, Version};

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{Effect, Scope, Spec};
use crate::error::ApiError;
use crate::ops::page_kit::form;
use crate::rules::reading;

pub(super) fn add(table: &mut Operations) {
    buy::add(table);
    question::add(table);
    receipt::add(table);
}

/// Returns the description of a form that leads to a purchase, or ends the way to one.
fn money_form(name: &'static str, path: &'static str, summary: &'static str) -> Spec {
    Spec {
        scope: Scope::Spend,
        effect: Effect::Spend,
        names_origin: true,
        ..form(name, path, summary)
    }
}

/// Returns a version of a dataset as the pages of a purchase show it.
async fn of_dataset(
    cx: &Cx,
    project: &Project,
    version: Version,
    price: MicroUsdc,
    takes_trial_credit: bool,
) -> Result<Checkout, ApiError> {
    let before = Version(version.0.saturating_sub(1));
    let found = cx.app.store.project_versions_between(project.id, before, version, 1);
    let records = found.await?.first().map(|version| version.record_count);
    // A table that cannot be read now takes this figure from the page, and nothing else.
    let table = reading::snapshot(cx, project, Some(version)).await.ok();
    Ok(Checkout {
        thing: CheckoutThing::Dataset {
            slug: project.slug.clone(),
            version,
            records,
            bytes: table.map(|table| table.bytes()),
        },
        title: project.title.clone(),
        agent: None,
        license: Some(project.license.clone()),
        price,
        takes_trial_credit,
    })
}

/// Returns a unit as the pages of a purchase show it.
fn of_unit(unit: &Unit, price: MicroUsdc) -> Checkout {
    Checkout {
        thing: CheckoutThing::Unit {
            id: unit.id,
            length: Some(unit.length),
        },
        title: unit.title.clone(),
        agent: Some(unit.agent_name.clone()),
        license: Some(unit.chain.license.clone()),
        price,
        takes_trial_credit: unit.chain.trial_sale,
    }
}

/// An item as a row names it, for which somebody asked or that was bought.
struct NamedItem<'a> {
    kind: ItemKind,
    /// Id of the dataset, or of the first version of the unit.
    item: &'a str,
    slug: Option<&'a str>,
    title: Option<&'a str>,
    version: u64,
    price: MicroUsdc,
}

/// Returns the item of a row as pages show it. One that is hidden by now has its name, its version and its price only.
async fn of_row(cx: &Cx, named: NamedItem<'_>) -> Result<Checkout, ApiError> {
    let title = named.title.unwrap_or_default().to_owned();
    match named.kind {
        ItemKind::Dataset => {
            let slug = named.slug.unwrap_or_default();
            let version = Version(named.version);
            let found = cx.app.store.project_by_slug(slug, cx.operator()).await?;
            if let Some(project) = found.filter(|project| project.id.to_string() == named.item) {
                let trial = project.trial_sale;
                return of_dataset(cx, &project, version, named.price, trial).await;
            }
            let thing = CheckoutThing::Dataset {
                slug: slug.to_owned(),
                version,
                records: None,
                bytes: None,
            };
            Ok(hidden(thing, title, named.price))
        }
        ItemKind::Unit => {
            let chain: UnitId = named.item.parse().map_err(ApiError::internal)?;
            let knowledge = cx.app.store.knowledge();
            let first = knowledge.unit(chain).await?;
            // The newest text is what the buyer reads.
            let latest = first.as_ref().and_then(|first| first.chain.latest);
            let unit = match latest.filter(|latest| *latest != chain) {
                Some(latest) => knowledge.unit(latest).await?,
                None => first,
            };
            Ok(
                if let Some(unit) = unit.filter(|unit| unit.chain.taken_down.is_none()) {
                    of_unit(&unit, named.price)
                } else {
                    let thing = CheckoutThing::Unit {
                        id: chain,
                        length: None,
                    };
                    hidden(thing, title, named.price)
                },
            )
        }
    }
}

/// Returns what is known of an item that the caller may not know of now.
fn hidden(thing: CheckoutThing, title: String, price: MicroUsdc) -> Checkout {
    Checkout {
        thing,
        title,
        agent: None,
        license: None,
        price,
        takes_trial_credit: false,
    }
}

/// Returns what was bought as pages show it, for the price of the sale.
async fn of_bought(cx: &Cx, bought: &Bought) -> Result<Checkout, ApiError> {
    let named = NamedItem {
        kind: bought.sale.kind,
        item: &bought.sale.item,
        slug: bought.slug.as_deref(),
        title: bought.title.as_deref(),
        version: bought.sale.version,
        price: bought.sale.price,
    };
    of_row(cx, named).await
}
