//! `sluice whoami`: whom the key of this machine acts for, where it is from, and what is left.

use std::process::ExitCode;

use client::model::{LimitUse, Me};
use indicatif::HumanCount;
use serde_json::{Value, json};

use crate::cli::WhoamiArgs;
use crate::login::until;
use crate::remote::KeySource;
use crate::terminal::{self, shown};

/// Prints the caller, the key, the projects, the uploads and the allowance.
pub async fn run(arguments: WhoamiArgs) -> anyhow::Result<ExitCode> {
    let (client, source) = arguments.remote.client_with_key()?;
    let me = client.me().await?;
    if arguments.json {
        let mut answer = serde_json::to_value(&me)?;
        answer["server"] = client.origin().into();
        answer["key"] = match &source {
            KeySource::Flag => json!({"from": "--key"}),
            KeySource::Environment => json!({"from": "SLUICE_KEY"}),
            KeySource::File(path, _) => json!({"from": path}),
        };
        terminal::json(&answer)?;
    } else {
        terminal::line(&lines(&me, &source, &client.origin()).join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(me: &Me, source: &KeySource, origin: &str) -> Vec<String> {
    let operator = shown(&me.operator.name);
    let who = match &me.agent_id {
        Some(_) => format!("agent      {} of {operator}", shown(&me.name)),
        None => format!("operator   {operator}"),
    };
    let key = match source {
        KeySource::Flag => "--key".to_owned(),
        KeySource::Environment => "SLUICE_KEY".to_owned(),
        KeySource::File(path, _) => terminal::plain(&path.display().to_string()),
    };
    let mut lines = vec![
        who,
        format!("service    {}", shown(origin)),
        format!("key        of {key}{}", until(me.expires_at.as_deref())),
    ];
    let projects = &me.projects;
    let active = projects.active.len();
    lines.push(format!("projects   {active} of {} are active", projects.limit));
    for project in &projects.active {
        lines.push(format!(
            "  {}  version {}, {} records, {}",
            shown(&project.slug),
            project.version,
            HumanCount(project.record_count),
            shown(&project.visibility)
        ));
    }
    let LimitUse { used, allowed } = me.limits.uploads;
    lines.push(format!("uploads    {used} of {allowed} are open"));
    if let Some(allowance) = allowance(&me.limits.more) {
        lines.push(format!("allowance  {allowance}"));
    }
    lines
}

/// Returns what is left of the day's allowance, if the answer says so.
fn allowance(limits: &serde_json::Map<String, Value>) -> Option<String> {
    let validation = limits.get("validation")?;
    let number = |part: &str, kind: &str| validation.get(part)?.get(kind)?.as_u64();
    let left = |kind: &str| Some((number("remaining", kind)?, number("allowed", kind)?));
    let ((contributions, of_contributions), (units, of_units)) = (left("contributions")?, left("knowledge")?);
    Some(format!(
        "{contributions} of {of_contributions} contributions to public datasets and {units} of {of_units} units are left today"
    ))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::credentials::SavedKey;

    #[test]
    fn a_person_sees_who_acts_until_when_and_what_is_left() {
        let me: Me = serde_json::from_value(json!({
            "name": "tide-gauge", "agentId": "01", "operator": {"id": "02", "name": "Harbour\u{1b}[2J"},
            "credential": "agent_key", "expiresAt": "2027-02-23T10:00:00Z", "scopes": ["read"],
            "limits": {
                "uploads": {"used": 1, "allowed": 3}, "agents": {"used": 1, "allowed": 5},
                "validation": {
                    "remaining": {"knowledge": 9, "contributions": 45}, "allowed": {"knowledge": 10, "contributions": 50},
                },
            },
            "projects": {"limit": 3, "remaining": 2, "active": [{
                "slug": "levels", "title": "x", "status": "open", "visibility": "public", "version": 2, "recordCount": 1204,
            }]},
        }))
        .unwrap();
        let saved = SavedKey {
            key: "km_secret".to_owned(),
            agent: String::new(),
            operator: String::new(),
            expires_at: None,
        };
        let source = KeySource::File(PathBuf::from("/home/ada/.config/sluice/credentials.json"), saved);
        assert_eq!(
            lines(&me, &source, "https://example.org"),
            [
                "agent      tide-gauge of Harbour\\u{1b}[2J",
                "service    https://example.org",
                "key        of /home/ada/.config/sluice/credentials.json until 2027-02-23",
                "projects   1 of 3 are active",
                "  levels  version 2, 1,204 records, public",
                "uploads    1 of 3 are open",
                "allowance  45 of 50 contributions to public datasets and 9 of 10 units are left today",
            ]
        );
    }
}
