//! `sluice uploads`: lists the open uploads of the operator, and cancels one.
//!
//! Invariant: names from the service are printed so that a terminal does not obey them.

use std::process::ExitCode;
use std::time::Duration;

use client::Client;
use client::model::OpenUpload;
use indicatif::HumanBytes;
use serde_json::json;
use types::clock::SystemClock;
use types::{Clock as _, Timestamp};

use crate::cli::{UploadsArgs, UploadsCommand};
use crate::exit;
use crate::terminal::{self, shown};

/// Prints the open uploads, or cancels one.
pub async fn run(arguments: UploadsArgs) -> anyhow::Result<ExitCode> {
    let (remote, is_json, cancel) = match arguments.command {
        None => (arguments.remote, arguments.json, None),
        Some(UploadsCommand::Cancel { id, json, remote }) => (remote, json, Some(id)),
    };
    let (client, _) = remote.client_with_key()?;
    let uploads = open(&client).await?;
    let Some(id) = cancel else {
        if is_json {
            terminal::json(&json!({ "uploads": uploads }))?;
            return Ok(ExitCode::SUCCESS);
        }
        if uploads.is_empty() {
            terminal::line("No upload is open.")?;
        }
        for upload in &uploads {
            terminal::line(&line(upload))?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some(upload) = uploads.iter().find(|upload| upload.id == id) else {
        terminal::note(&format!(
            "sluice: no upload `{}` is open; `sluice uploads` lists those that are",
            shown(&id)
        ));
        return Ok(exit::NOT_FOUND.into());
    };
    client.upload_cancel(&upload.project, &upload.id).await?;
    if is_json {
        terminal::json(&json!({ "cancelled": upload }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (id, project) = (shown(&upload.id), shown(&upload.project));
    terminal::line(&format!("{id} to {project} is cancelled."))?;
    Ok(ExitCode::SUCCESS)
}

async fn open(client: &Client) -> Result<Vec<OpenUpload>, client::Error> {
    // The list is that of the operator, whatever the project. Without any project there is no upload.
    match client.projects(1).await?.first() {
        Some(project) => client.uploads(&project.slug).await,
        None => Ok(Vec::new()),
    }
}

/// Returns the line for an open upload.
pub(crate) fn line(upload: &OpenUpload) -> String {
    let left = match upload.expires_at.parse::<Timestamp>() {
        Ok(at) => format!("expires in {}", spoken(at.since(SystemClock::default().now()))),
        Err(_) => format!("expires at {}", shown(&upload.expires_at)),
    };
    let by = match upload.agent.as_str() {
        "" => String::new(),
        agent => format!(", by {}", shown(agent)),
    };
    let id = shown(&upload.id);
    // Text of the service is in a command to paste only if it can be nothing else than an id.
    let is_plain = upload
        .id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let cancel = if is_plain && !upload.id.starts_with('-') {
        format!("     cancel: sluice uploads cancel {id}")
    } else {
        String::new()
    };
    let (project, bytes) = (shown(&upload.project), HumanBytes(upload.bytes));
    format!("{id}  {project}  {bytes}  open, {left}{by}{cancel}")
}

/// Returns a time span in hours and minutes.
fn spoken(span: Duration) -> String {
    let minutes = span.as_secs() / 60;
    match (minutes / 60, minutes % 60) {
        (0, 0) => "less than a minute".to_owned(),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_is_a_line_that_says_how_to_cancel_it() {
        let upload = |id: &str, project: &str| OpenUpload {
            id: id.to_owned(),
            project: project.to_owned(),
            agent: "tide-gauge".to_owned(),
            bytes: 1 << 30,
            expires_at: "2000-01-01T00:00:00Z".to_owned(),
            more: serde_json::Map::new(),
        };
        assert_eq!(
            line(&upload("01a2", "visits")),
            "01a2  visits  1.00 GiB  open, expires in less than a minute, by tide-gauge     cancel: sluice uploads cancel 01a2"
        );
        let evil = line(&upload("x; rm -rf", "\u{1b}]0;x"));
        assert!(!evil.contains("cancel") && !evil.contains('\u{1b}'), "{evil}");
        assert_eq!(spoken(Duration::from_mins(250)), "4 h 10 min");
    }
}
