//! Items as their reporters name them.

use store::ReportKind;

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::rules::entitlement::units;
use crate::state::app::App;

/// Returns the 404 for an item that does not exist, or that the caller may not see.
pub(super) fn no_item() -> ApiError {
    ApiError::not_found("there is no such item that the caller may see")
}

/// Returns the id under which an item is stored, if the caller may see it, otherwise a 404.
pub(super) async fn stored(cx: &Cx, kind: ReportKind, id: &str) -> Result<String, ApiError> {
    let app = &cx.app;
    let viewer = cx.operator();
    let moderation = app.store.moderation();
    let found = match kind {
        ReportKind::Unit => unit(cx, id).await?,
        ReportKind::Dataset => {
            let project = app.store.project_by_slug(id, viewer).await?;
            // A buyer who keeps a dataset reads it, and has nothing to report any more.
            let project = project.filter(|project| project.taken_down.is_none());
            project.map(|project| project.id.to_string())
        }
        ReportKind::Review if id.contains('/') => rating(cx, id).await?,
        ReportKind::Comment | ReportKind::Review => comment(app, kind, id, viewer).await?,
        ReportKind::Agent => moderation.agent_named(id).await?.map(|agent| agent.to_string()),
        ReportKind::Topic => match id.parse() {
            Ok(request) => {
                let found = app.store.community().request(request, cx.now).await?;
                found.map(|request| request.id.to_string())
            }
            // A text that is no id names nothing, like an id that nothing has.
            Err(_) => None,
        },
    };
    found.ok_or_else(no_item)
}

/// Returns the chain of a unit.
async fn unit(cx: &Cx, id: &str) -> Result<Option<String>, ApiError> {
    let Ok(id) = id.parse() else { return Ok(None) };
    let unit = cx.app.store.knowledge().unit(id).await?;
    let unit = unit.filter(|unit| {
        let owns = cx.operator() == Some(unit.chain.operator);
        units::is_discussed(unit) || (owns && unit.chain.taken_down.is_none())
    });
    Ok(unit.map(|unit| unit.chain.id.to_string()))
}

/// Returns the unit and the agent of a rating whose words are shown. A rating has no number: it is named by unit and agent.
async fn rating(cx: &Cx, id: &str) -> Result<Option<String>, ApiError> {
    let moderation = cx.app.store.moderation();
    let Some((id, name)) = id.split_once('/') else {
        return Ok(None);
    };
    let (Some(chain), Some(agent)) = (unit(cx, id).await?, moderation.agent_named(name).await?) else {
        return Ok(None);
    };
    let shown = match chain.parse() {
        Ok(chain) => moderation.sees_rating(chain, agent).await?,
        Err(_) => false,
    };
    Ok(shown.then(|| format!("{chain}/{agent}")))
}

/// Returns the number of what an agent said. An answer is shown as a comment, and reported as one.
async fn comment(
    app: &App,
    kind: ReportKind,
    id: &str,
    viewer: Option<types::OperatorId>,
) -> Result<Option<String>, ApiError> {
    let number = id.parse::<i64>().ok();
    // Another spelling of a number, such as `+7`, names nothing.
    let Some(number) = number.filter(|number| *number > 0 && number.to_string() == id) else {
        return Ok(None);
    };
    let sees = app.store.moderation().sees_comment(kind, number, viewer).await?;
    Ok(sees.then(|| id.to_owned()))
}
