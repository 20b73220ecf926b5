//! Page of the apps that act as an agent of the operator.

use pages::SpendLine;
use pages::console::{AppRow, AppsPage};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use store::{AppConnection, CONSOLE_CLIENT, SpendOwner};
use url::Url;

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{Effect, Spec};
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::ops::page_kit::{form, instant, missing, page, page_layout};
use crate::ops::spend_lines;

const PATH: &str = "/console/apps";

pub(super) fn add(table: &mut Operations) {
    table.add(page("apps_page", PATH, "Connected apps"), &[], show);
    let revoke_form = Spec {
        effect: Effect::Destroy,
        ..form(
            "revoke_app_form",
            "/console/apps/{id}/revoke",
            "Ends the connection of an app",
        )
    };
    table.add(revoke_form, &[], revoke);
}

async fn show(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let apps = cx.app.store.oauth().connections_of(cx.the_operator()?, cx.now).await?;
    let owners: Vec<_> = apps.iter().map(|app| SpendOwner::App(app.id)).collect();
    let spending = spend_lines::lines(&cx, &owners).await?;
    PageResponse::page(&AppsPage {
        chrome: page_layout(&cx).await?,
        apps: apps.into_iter().zip(spending).map(row).collect(),
        notice: None,
    })
}

fn row((app, spending): (AppConnection, SpendLine)) -> AppRow {
    AppRow {
        client: name(&app),
        id: app.id.to_string(),
        client_id: app.client_id,
        agent: app.agent_name,
        scopes: app.scopes.split_whitespace().map(str::to_owned).collect(),
        endpoint: app.resource,
        created_at: instant(app.began_at),
        used_at: app.used_at.map(instant),
        expires_at: Some(instant(app.ends_at)),
        spending,
    }
}

/// Returns the name that a client registered, or the host of its document.
pub(in crate::ops) fn name(app: &AppConnection) -> String {
    if app.client_id == CONSOLE_CLIENT {
        return "Console".to_owned();
    }
    let metadata: Option<Value> = app
        .client_metadata
        .as_deref()
        .and_then(|text| serde_json::from_str(text).ok());
    let given = metadata.as_ref().and_then(|metadata| metadata["name"].as_str());
    // A client that is known by the address of its document has no row with a name.
    let host = || Url::parse(&app.client_id).ok()?.host_str().map(str::to_owned);
    given
        .map(str::to_owned)
        .or_else(host)
        .unwrap_or_else(|| app.client_id.clone())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AppPath {
    /// Id of the connection.
    #[schemars(length(max = 64))]
    id: String,
}

async fn revoke(cx: Cx, input: AppPath) -> Result<PageResponse, ApiError> {
    let id = input.id.parse().map_err(|_error| missing("connection"))?;
    let connections = cx.app.store.oauth();
    if connections.connection_end_of(cx.the_operator()?, id, cx.now).await? {
        PageResponse::see(PATH)
    } else {
        Err(missing("connection"))
    }
}
