//! A file becomes a dataset, or more records of one: the page, its consent, and its forms for a browser without scripts.
//!
//! Invariants:
//! - The page makes nothing by itself. It calls operations as the agent that the person chose, through the dispatcher and
//!   by the door of the console, as its script does.
//! - The bytes of a file are in the form of the person and nowhere else until they are contributed.

mod draft;
mod lines;
mod send;

use http::header::{self, HeaderValue};
use pages::AgentChoice;
use pages::console::{
    ActiveDataset, ConnectForm, PublishBounds, PublishDraft, PublishPage, PublishTarget, UnfinishedUpload,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use store::{CONSOLE_CLIENT, NewConsent, Project, ProjectStatus, Visibility};
use types::{AgentId, OperatorId};

use super::agents::name_form;
use crate::call::answer::MULTIPART;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::{BodySize, Spec};
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::licenses::License;
use crate::ops::accounts::REGISTRATIONS;
use crate::ops::as_agent::act;
use crate::ops::page_kit::{form, form_page, id, instant, missing, page, page_layout, repairable};
use crate::ops::spend_lines::may_act;
use crate::rules::accounts;

const PATH: &str = "/console/publish";
/// Value of the field `agent` for an agent that is made with the consent.
pub(in crate::ops) const NEW: &str = "new";
/// Value of a box that is ticked.
const YES: &str = "yes";
/// Datasets that the page lists.
const MAX_PROJECTS: u32 = 200;
/// Bytes of a file that its script sends to be looked at: in Base64 they are within the body of that call.
const LOOKED_BYTES: u64 = 12_000_000;
/// Bytes of a file in a form.
const FORM_BYTES: u64 = 1 << 20;
/// Records of a file in a form: those of a batch.
const FORM_RECORDS: u64 = 500;

pub(super) fn add(table: &mut Operations) {
    table.add(page("publish_page", PATH, "A file becomes a dataset"), &[], show);
    table.add(
        form(
            "connect_console_form",
            "/console/publish/connect",
            "Lets the console act as an agent",
        ),
        &[],
        connect,
    );
    // What these change is in the trail as the calls that they make.
    let file = |name, path, summary| Spec {
        audit: false,
        body: BodySize::Batch,
        takes: &[MULTIPART],
        ..form(name, path, summary)
    };
    table.add(
        file("read_file_form", "/console/publish/read", "Shows what a file is"),
        &[],
        draft::read,
    );
    table.add(file("publish_form", PATH, "Publishes a file"), &[], send::publish);
    let cancel_form = Spec {
        audit: false,
        ..form("cancel_upload_form", "/console/publish/cancel", "Cancels an upload")
    };
    table.add(cancel_form, &[], cancel);
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PublishQuery {
    /// Slug of the dataset that gets the records; a new one without it.
    #[schemars(length(max = 100))]
    to: Option<String>,
    /// Id of the agent that publishes; the one that did last without it.
    #[schemars(length(max = 64))]
    agent: Option<String>,
}

async fn show(cx: Cx, input: PublishQuery) -> Result<PageResponse, ApiError> {
    let place = PublishPlace::of(&cx, input.to.as_deref(), input.agent.as_deref()).await?;
    respond(&cx, &place.page(&cx).await?)
}

/// Returns the page. Its script may send parts to the bucket, if there is one.
fn respond(cx: &Cx, page: &PublishPage) -> Result<PageResponse, ApiError> {
    let view = form_page(page, !page.errors.is_empty())?;
    let Some(origin) = cx.app.uploads.objects.origin() else {
        return Ok(view);
    };
    let policy = pages::CONTENT_SECURITY_POLICY.replace("connect-src 'self'", &format!("connect-src 'self' {origin}"));
    let policy = HeaderValue::from_str(&policy).map_err(ApiError::internal)?;
    Ok(view.header(header::CONTENT_SECURITY_POLICY, policy))
}

/// Dataset and agent that the page is about.
struct PublishPlace {
    operator: OperatorId,
    /// Dataset of the operator that gets the records.
    target: Option<Project>,
    /// Agent that the console is connected to.
    agent: Option<AgentChoice>,
    /// Agents that it may be connected to.
    agents: Vec<AgentChoice>,
}

impl PublishPlace {
    /// Looks the dataset and the agent up.
    async fn of(cx: &Cx, to: Option<&str>, agent: Option<&str>) -> Result<Self, ApiError> {
        let (operator, store) = (cx.the_operator()?, &cx.app.store);
        let target = match to {
            Some(slug) => {
                let found = store.project_by_slug(slug, Some(operator)).await?;
                // The page adds to the person's own datasets. To those of others an agent contributes.
                let own = found.filter(|project| project.operator == operator);
                Some(own.ok_or_else(|| missing("dataset"))?)
            }
            None => None,
        };
        let connections = store.oauth().connections_of(operator, cx.now).await?;
        let mut connected: Vec<_> = connections
            .into_iter()
            .filter(|connection| connection.client_id == CONSOLE_CLIENT)
            .collect();
        // The agent that was used last, or agreed to last, is likely meant again.
        connected.sort_by_key(|connection| connection.used_at.max(Some(connection.began_at)));
        let agents = store.accounts().agents_of(operator, cx.now).await?;
        let agents: Vec<AgentChoice> = agents
            .into_iter()
            .filter(may_act)
            .map(|agent| AgentChoice {
                id: agent.id.to_string(),
                name: agent.name,
                description: agent.description,
            })
            .collect();
        let chosen = match agent {
            Some(id) => connected.iter().find(|connection| connection.agent.to_string() == id),
            None => connected.last(),
        };
        let chosen = chosen.map(|connection| connection.agent.to_string());
        Ok(Self {
            operator,
            target,
            agent: agents.iter().find(|agent| Some(&agent.id) == chosen.as_ref()).cloned(),
            agents,
        })
    }

    /// Returns the page without a file.
    async fn page(self, cx: &Cx) -> Result<PublishPage, ApiError> {
        let (operator, store, limits) = (self.operator, &cx.app.store, &cx.app.limits);
        let (accounts, console) = (store.accounts(), store.console());
        let (found, waiting, active, uploads) = tokio::try_join!(
            store.operator(operator),
            accounts.claims_waiting(operator, cx.now),
            console.active_projects_of(operator, MAX_PROJECTS),
            store.uploads_open(operator, cx.now)
        )?;
        let taken = u32::try_from(self.agents.len())
            .unwrap_or(u32::MAX)
            .saturating_add(waiting);
        Ok(PublishPage {
            chrome: page_layout(cx).await?,
            operator: found.map(|operator| operator.display_name).unwrap_or_default(),
            connect: ConnectForm {
                chosen: self.agent.as_ref().map_or_else(String::new, |agent| agent.id.clone()),
                places_left: limits.agents_per_operator.saturating_sub(taken),
                agents: self.agents,
                name: String::new(),
            },
            agent: self.agent,
            target: self.target.map(|project| PublishTarget {
                slug: project.slug,
                title: project.title,
                schema: project.contract_json,
            }),
            active_count: u32::try_from(active.len()).unwrap_or(u32::MAX),
            active: active
                .into_iter()
                .map(|project| ActiveDataset {
                    slug: project.slug,
                    title: project.title,
                    is_private: project.visibility == Visibility::Private,
                })
                .collect(),
            active_limit: limits.active_projects_per_operator,
            uploads: uploads
                .into_iter()
                .map(|open| UnfinishedUpload {
                    id: open.upload.id.to_string(),
                    slug: open.slug,
                    agent: open.agent,
                    bytes: open.upload.bytes,
                    created_at: instant(open.upload.created_at),
                    expires_at: instant(open.upload.expires_at),
                })
                .collect(),
            licenses: License::ALL
                .iter()
                .map(|license| (license.id().to_owned(), license.name().to_owned()))
                .collect(),
            bounds: PublishBounds {
                upload_bytes: limits.upload.0,
                looked_bytes: LOOKED_BYTES,
                form_bytes: FORM_BYTES,
                form_records: FORM_RECORDS,
            },
            draft: None,
            errors: Vec::new(),
        })
    }

    /// Returns the page with a file.
    async fn page_with(self, cx: &Cx, draft: PublishDraft, error: Option<ApiError>) -> Result<PublishPage, ApiError> {
        Ok(PublishPage {
            draft: Some(draft),
            errors: error.map(repairable).transpose()?.unwrap_or_default(),
            ..self.page(cx).await?
        })
    }

    /// Returns the agent that acts. A form may name any id, and the door looks at it again.
    fn the_agent(&self) -> Result<AgentId, ApiError> {
        let agent = self
            .agent
            .as_ref()
            .ok_or_else(|| missing("connection of the console"))?;
        id(&agent.id, "agent")
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConnectConsoleForm {
    /// Slug of the dataset that the person came from.
    #[schemars(length(max = 100))]
    to: Option<String>,
    /// Id of the agent, or `new`.
    #[serde(default)]
    #[schemars(length(max = 64))]
    agent: String,
    /// Name of a new agent.
    #[serde(default)]
    #[schemars(length(max = 60))]
    name: String,
    /// `yes` if the person agrees.
    #[serde(default)]
    #[schemars(length(max = 10))]
    agreed: String,
}

async fn connect(cx: Cx, input: ConnectConsoleForm) -> Result<PageResponse, ApiError> {
    let connected = async {
        if input.agreed != YES {
            return Err(ApiError::invalid(
                "/agreed",
                "must be ticked: without it the console does nothing",
            ));
        }
        let operator = cx.the_operator()?;
        let agent = match input.agent.as_str() {
            NEW => make(&cx, operator, &input.name).await?,
            "" => return Err(ApiError::invalid("/agent", "must be chosen")),
            text => id(text, "agent")?,
        };
        if cx.app.store.oauth().console_connect(operator, agent, cx.now).await? {
            Ok(agent)
        } else {
            Err(missing("agent"))
        }
    };
    match connected.await {
        Ok(agent) => {
            let to = input.to.map(|slug| format!("&to={slug}")).unwrap_or_default();
            PageResponse::see(&format!("{PATH}?agent={agent}{to}"))
        }
        Err(error) => {
            let page = PublishPlace::of(&cx, input.to.as_deref(), None)
                .await?
                .page(&cx)
                .await?;
            let page = PublishPage {
                errors: repairable(error)?,
                connect: ConnectForm {
                    chosen: input.agent,
                    name: input.name,
                    ..page.connect
                },
                ..page
            };
            form_page(&page, true)
        }
    }
}

/// Makes an agent of this name, or returns the one that the same form made before. Its key is shown to nobody; the person
/// can make another.
pub(in crate::ops) async fn make(cx: &Cx, operator: OperatorId, name: &str) -> Result<AgentId, ApiError> {
    name_form(name)?;
    let consent = NewConsent {
        request_hash: *blake3::hash(format!("{CONSOLE_CLIENT} {name}").as_bytes()).as_bytes(),
        stale: cx.now.minus(super::consent::REPEATED),
    };
    if let Some(before) = cx.app.store.accounts().agent_of_consent(operator, consent).await? {
        return Ok(before);
    }
    // It is a registration like every other, or names could be taken here without end.
    REGISTRATIONS.take(&cx.app, cx.client).await?;
    accounts::create_for_consent(&cx.app, operator, name, consent, cx.now)
        .await
        .map_err(|error| match error.details() {
            [] => ApiError::invalid("/name", error.message()).with_code(error.code()),
            _ => error,
        })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CancelUploadForm {
    /// Slug of the dataset.
    #[schemars(length(max = 100))]
    slug: String,
    /// Id of the upload.
    #[schemars(length(max = 64))]
    id: String,
    /// `yes`: the button says what it does.
    #[schemars(length(max = 10))]
    #[expect(dead_code, reason = "a button has a name and a value")]
    agreed: String,
}

async fn cancel(cx: Cx, input: CancelUploadForm) -> Result<PageResponse, ApiError> {
    let place = PublishPlace::of(&cx, None, None).await?;
    let members = [("slug", input.slug), ("id", input.id)];
    let members = members.map(|(name, value)| (name.to_owned(), Value::from(value)));
    act(&cx, place.the_agent()?, "cancel_upload", Map::from_iter(members)).await?;
    PageResponse::see(PATH)
}

/// Returns true if the dataset takes records.
fn takes_records(project: &Project) -> bool {
    project.status == ProjectStatus::Open
}
