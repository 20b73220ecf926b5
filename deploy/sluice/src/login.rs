//! `sluice login`: gets a key for this machine, if a person who is signed in approves it.
//!
//! Invariants:
//! - The address that a person opens is made of `--server` and never of an answer, and the code is in no address.
//! - A key is kept only once it works, and never shown.

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use client::Client;
use client::model::Me;
use serde_json::json;
use types::{Classify as _, Kind};

use crate::cli::LoginArgs;
use crate::config;
use crate::credentials::{CredentialsFile, SavedKey};
use crate::exit::{NotAllowed, Unanswered, WrongUsage};
use crate::terminal::{self, shown};

/// Page on which a person types the code.
const LOGIN_PAGE: &str = "console/login";
/// Longest time that a login is waited for; the service ends it before.
const MAX_LOGIN_WAIT: Duration = Duration::from_mins(20);
/// Bounds on the pause between two questions about the decision, in seconds.
const MIN_POLL_SECONDS: u64 = 1;
const MAX_POLL_SECONDS: u64 = 60;
/// Longest name of a device that the service takes.
const MAX_DEVICE_CHARS: usize = 60;

/// Begins a login, shows its code, waits for the decision and keeps the key.
pub async fn run(arguments: LoginArgs) -> anyhow::Result<ExitCode> {
    let anonymous = Client::anonymous(&arguments.server)?;
    let origin = anonymous.origin();
    let file = CredentialsFile::of_user();
    let file = file.context("there is no home folder to keep the key in; set XDG_CONFIG_HOME")?;
    // A file that cannot be used is said before a person is asked.
    file.key_for(&origin)?;
    let device = match arguments.device {
        Some(device) if is_device(&device) => device,
        Some(_) => {
            let rule = format!("--device: 1 to {MAX_DEVICE_CHARS} letters, digits, signs and blanks of ASCII");
            return Err(WrongUsage(rule).into());
        }
        None => this_device(),
    };
    let begun = anonymous.login_begin(&device).await?;
    let page = format!("{}/{LOGIN_PAGE}", arguments.server.trim_end_matches('/'));
    terminal::note(&format!(
        "Open {} and type {}, if you started this yourself.",
        shown(&page),
        shown(&begun.code)
    ));
    let pause = Duration::from_secs(begun.poll_seconds.clamp(MIN_POLL_SECONDS, MAX_POLL_SECONDS));
    let client = Client::new(&arguments.server, begun.key.as_str())?;
    let me = decision(&client, pause).await?;
    let saved = SavedKey {
        key: begun.key,
        agent: me.name.clone(),
        operator: me.operator.name.clone(),
        expires_at: me.expires_at.clone(),
    };
    file.keep(&origin, saved)?;
    if arguments.json {
        let (agent, operator, expires_at) = (&me.name, &me.operator.name, &me.expires_at);
        let path = file.path();
        terminal::json(&json!({
            "agent": agent, "operator": operator, "server": origin, "expiresAt": expires_at, "file": path,
        }))?;
    } else {
        terminal::line(&format!(
            "You are `{}` of {}{}.",
            shown(&me.name),
            shown(&me.operator.name),
            until(me.expires_at.as_deref())
        ))?;
    }
    if config::has_key_of_environment() {
        terminal::note("SLUICE_KEY is set: commands use that key and not this one.");
    }
    Ok(ExitCode::SUCCESS)
}

/// Waits until a person has decided, and returns whom the key acts for.
async fn decision(client: &Client, pause: Duration) -> anyhow::Result<Me> {
    let begun = Instant::now();
    while begun.elapsed() < MAX_LOGIN_WAIT {
        tokio::time::sleep(pause).await;
        let error = match client.me().await {
            Ok(me) => return Ok(me),
            Err(error) => error,
        };
        let status = error.problem().filter(|problem| problem.code == "login_not_approved");
        let status = status.and_then(|problem| problem.body.get("status")?.as_str());
        match status {
            Some("pending") => {}
            Some("rejected") => {
                return Err(NotAllowed("the login was rejected; nothing was kept".to_owned()).into());
            }
            Some(_) => break,
            // A service that restarts meanwhile does not end the login.
            None if matches!(error.kind(), Kind::Unavailable | Kind::Limited) => {}
            None => return Err(error.into()),
        }
    }
    let late = "nobody approved in time; nothing was kept. `sluice login` begins another login";
    Err(Unanswered(late.to_owned()).into())
}

/// Returns the end of a key as the end of a sentence about it.
pub(crate) fn until(expires_at: Option<&str>) -> String {
    // The day is enough, and the beginning of an RFC 3339 text.
    let day = |at: &str| at.split('T').next().map(shown);
    expires_at
        .and_then(day)
        .map_or_else(String::new, |day| format!(" until {day}"))
}

/// Returns true for a name that the service takes for a device.
fn is_device(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    is_plain && name.len() <= MAX_DEVICE_CHARS && !name.trim().is_empty()
}

/// Returns the name that this machine has in its network, or a general one.
fn this_device() -> String {
    ["/proc/sys/kernel/hostname", "/etc/hostname"]
        .into_iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .map(|name| name.trim().to_owned())
        .find(|name| is_device(name))
        .unwrap_or_else(|| "a command line".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_a_name_that_the_service_takes() {
        assert!(is_device(&this_device()));
        for (name, takes) in [
            ("ada-laptop", true),
            ("Ada's laptop (blue)", true),
            ("", false),
            ("  ", false),
            ("a\u{202e}b", false),
            ("a\nb", false),
        ] {
            assert_eq!(is_device(name), takes, "{name:?}");
        }
        assert!(!is_device(&"x".repeat(61)));
    }

    #[test]
    fn the_end_of_a_key_is_a_day() {
        assert_eq!(until(Some("2027-02-23T10:00:00Z")), " until 2027-02-23");
        assert_eq!(until(Some("\u{1b}[2J")), " until \\u{1b}[2J");
        assert_eq!(until(None), "");
    }
}
