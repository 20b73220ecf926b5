//! Items that were public and are gone, as a person who follows a link is told.
//!
//! Invariant: what was never public is told of to nobody: a private item, a missing one and one that was deleted get the
//! same answer. A program gets that answer in any case.

use pages::{GoneEnd, GonePage, GoneThing};
use serde_json::Value;
use store::PublicEnd;

use crate::call::view::{LayoutOptions, PageResponse, page_layout};
use crate::call::visit::BrowserRequest;
use crate::error::ApiError;
use crate::names;
use crate::state::app::App;

/// Returns the page about the item at a path, if it was public and is gone.
pub(crate) async fn page(app: &App, visit: &BrowserRequest, body: &Value) -> Option<PageResponse> {
    let (thing, end) = find(app, &visit.path).await.ok()??;
    let (end, at) = match end {
        PublicEnd::TakenDown(at) => (GoneEnd::TakenDown, at),
        PublicEnd::Withdrawn(at) => (GoneEnd::Withdrawn, at),
        PublicEnd::Erased(at) => (GoneEnd::Erased, at),
    };
    let page = GonePage {
        chrome: page_layout(visit, None, &LayoutOptions::of(app)),
        thing,
        end,
        at,
        json: serde_json::to_string_pretty(body).unwrap_or_default(),
    };
    PageResponse::page(&page).ok()
}

/// Finds the end of the item at a path.
async fn find(app: &App, path: &str) -> Result<Option<(GoneThing, PublicEnd)>, ApiError> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut segments = path.split('/').skip(1);
    let (Some(folder), Some(name)) = (segments.next(), segments.next()) else {
        return Ok(None);
    };
    let public = app.store.public_accounts();
    let found = match folder {
        "projects" => (GoneThing::Dataset, public.dataset_end(name).await?),
        "units" => match name.parse() {
            Ok(id) => (GoneThing::Unit, public.unit_end(id).await?),
            Err(_) => return Ok(None),
        },
        "requests" => (GoneThing::Request, public.request_end(name).await?),
        "agents" => (GoneThing::Agent, public.agent_end(&names::skeleton(name)).await?),
        _ => return Ok(None),
    };
    let (thing, end) = found;
    Ok(end.map(|end| (thing, end)))
}
