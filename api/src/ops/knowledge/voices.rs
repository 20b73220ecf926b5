//! Forms of the page of a unit: a person has an agent of the account read it, say if it is still true, rate it, or appeal.
//!
//! Invariants:
//! - Each calls the operation that the agent would call, so a read, its points, limits and the trail are those of the agent.
//! - What is sent twice is done once: a second read records nothing, a mark takes the place of the same mark, and a second
//!   rating or appeal is refused.

use pages::UnitWords;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use types::AgentId;

use super::reader::{DoneInAddress, UnitPagePath, page};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::as_agent;
use crate::ops::console::{NEW_AGENT, make_agent};
use crate::ops::page_kit::{form, form_lines, form_page, id, repairable};

pub(super) fn add(table: &mut Operations) {
    table.add(
        form(
            "read_unit_form",
            "/units/{id}/read",
            "Has an agent of yours read a unit",
        ),
        &[],
        read,
    );
    // These are in the trail as the calls that they make.
    let said = |name, path, summary| Spec {
        audit: false,
        ..form(name, path, summary)
    };
    table.add(
        said("mark_unit_form", "/units/{id}/mark", "Says if a unit is still true"),
        &[],
        mark,
    );
    table.add(said("rate_unit_form", "/units/{id}/rate", "Rates a unit"), &[], rate);
    table.add(
        said(
            "appeal_unit_form",
            "/units/{id}/appeal",
            "Lets a second judge decide on a rejection",
        ),
        &[],
        appeal,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadUnitForm {
    /// Id of the version.
    #[schemars(length(max = 64))]
    id: String,
    /// Id of the agent, or `new`.
    #[serde(default)]
    #[schemars(length(max = 64))]
    agent: String,
    /// Name of a new agent.
    #[serde(default)]
    #[schemars(length(max = 200))]
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MarkUnitForm {
    /// Id of the version.
    #[schemars(length(max = 64))]
    id: String,
    /// Id of the agent.
    #[serde(default)]
    #[schemars(length(max = 64))]
    agent: String,
    /// Finding, as a word.
    #[serde(default)]
    #[schemars(length(max = 20))]
    mark: String,
    /// Words on what was run.
    #[serde(default)]
    #[schemars(length(max = 8_000))]
    ran: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RateUnitForm {
    /// Id of the version.
    #[schemars(length(max = 64))]
    id: String,
    /// Id of the agent.
    #[serde(default)]
    #[schemars(length(max = 64))]
    agent: String,
    /// Number of stars.
    #[serde(default)]
    #[schemars(length(max = 20))]
    rating: String,
    /// Sentence beside the stars.
    #[serde(default)]
    #[schemars(length(max = 8_000))]
    comment: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AppealUnitForm {
    /// Id of the version.
    #[schemars(length(max = 64))]
    id: String,
    /// Id of the agent.
    #[serde(default)]
    #[schemars(length(max = 64))]
    agent: String,
}

/// Returns the page that shows what was done, or the form again with what stands in the way.
async fn answered(
    cx: &Cx,
    unit: String,
    words: UnitWords,
    done: DoneInAddress,
    result: Result<(), ApiError>,
) -> Result<PageResponse, ApiError> {
    match result {
        Ok(()) => PageResponse::see(&done.address(&unit)),
        Err(error) => {
            let errors = repairable(error)?;
            let mut page = page(cx, &UnitPagePath::of(unit)).await?;
            page.forms.words = words;
            page.forms.errors = errors;
            form_page(&page, true)
        }
    }
}

/// Returns the agent that a form names, with the console connected to it.
async fn agent(cx: &Cx, text: &str) -> Result<AgentId, ApiError> {
    let agent: AgentId = id(text, "agent")?;
    as_agent::connect(cx, cx.the_operator()?, agent).await?;
    Ok(agent)
}

/// Has an agent read a unit in full, as it would by itself.
async fn reading(cx: &Cx, agent: AgentId, unit: &str) -> Result<(), ApiError> {
    let members = Map::from_iter([("id".to_owned(), Value::from(unit))]);
    as_agent::act(cx, agent, "get_knowledge_full", members).await.map(drop)
}

/// Has an agent read a unit and call an operation on it.
async fn saying(
    cx: &Cx,
    (unit, as_whom): (&str, &str),
    operation: &str,
    mut members: Map<String, Value>,
) -> Result<(), ApiError> {
    let agent = agent(cx, as_whom).await?;
    // The person read the text on the page, and who says something must have read it.
    reading(cx, agent, unit).await?;
    members.insert("id".to_owned(), Value::from(unit));
    as_agent::act(cx, agent, operation, members).await.map(drop)
}

async fn read(cx: Cx, input: ReadUnitForm) -> Result<PageResponse, ApiError> {
    let done = async {
        let agent = if input.agent == NEW_AGENT {
            let operator = cx.the_operator()?;
            let made = make_agent(&cx, operator, input.name.trim()).await?;
            as_agent::connect(&cx, operator, made).await?;
            made
        } else {
            agent(&cx, &input.agent).await?
        };
        reading(&cx, agent, &input.id).await
    };
    let done = done.await;
    let words = UnitWords {
        agent: input.agent,
        name: input.name,
        ..UnitWords::default()
    };
    answered(&cx, input.id, words, DoneInAddress::Read, done).await
}

async fn mark(cx: Cx, input: MarkUnitForm) -> Result<PageResponse, ApiError> {
    let done = async {
        if input.mark.is_empty() {
            return Err(ApiError::invalid("/mark", "must be chosen: what did you find?"));
        }
        let ran = form_lines(input.ran.trim());
        let length = ran.chars().count();
        if !(10..=1_000).contains(&length) {
            return Err(ApiError::invalid("/ran", "must have 10 to 1,000 characters"));
        }
        let members = [
            ("mark".to_owned(), Value::from(input.mark.as_str())),
            ("ran".to_owned(), Value::from(ran)),
        ];
        let whom = (input.id.as_str(), input.agent.as_str());
        saying(&cx, whom, "mark_knowledge", Map::from_iter(members)).await
    };
    let done = done.await;
    let words = UnitWords {
        agent: input.agent,
        mark: input.mark,
        ran: input.ran,
        ..UnitWords::default()
    };
    answered(&cx, input.id, words, DoneInAddress::Mark, done).await
}

async fn rate(cx: Cx, input: RateUnitForm) -> Result<PageResponse, ApiError> {
    let done = async {
        let stars: u32 = input
            .rating
            .parse()
            .map_err(|_error| ApiError::invalid("/rating", "must be chosen, from 1 to 5"))?;
        let comment = form_lines(input.comment.trim());
        if comment.chars().count() > 500 {
            return Err(ApiError::invalid("/comment", "must have at most 500 characters"));
        }
        let mut members = Map::from_iter([("rating".to_owned(), json!(stars))]);
        if !comment.is_empty() {
            members.insert("comment".to_owned(), Value::from(comment));
        }
        let whom = (input.id.as_str(), input.agent.as_str());
        saying(&cx, whom, "rate_knowledge", members).await
    };
    let done = done.await;
    let words = UnitWords {
        agent: input.agent,
        rating: input.rating,
        comment: input.comment,
        ..UnitWords::default()
    };
    answered(&cx, input.id, words, DoneInAddress::Rate, done).await
}

async fn appeal(cx: Cx, input: AppealUnitForm) -> Result<PageResponse, ApiError> {
    let done = async {
        let agent = agent(&cx, &input.agent).await?;
        let members = Map::from_iter([("id".to_owned(), Value::from(input.id.as_str()))]);
        as_agent::act(&cx, agent, "appeal_rejection", members).await.map(drop)
    };
    let done = done.await;
    let words = UnitWords {
        agent: input.agent,
        ..UnitWords::default()
    };
    answered(&cx, input.id, words, DoneInAddress::Appeal, done).await
}
