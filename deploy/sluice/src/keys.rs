//! `sluice keys`: rotates and revokes the keys that sign manifests, beside a running service. Prints JSON.

use anyhow::bail;
use api::keys::{self, KeysChanged};
use proof::Key;
use serde_json::{Value, json};

use store::Schema;

use crate::assemble;
use crate::cli::KeysCommand;
use crate::config::Config;
use crate::database;
use crate::exit::WrongUsage;
use crate::terminal;

/// The most characters of a reason.
const MAX_REASON: usize = 500;

/// Runs a command and prints the changed key and the current one.
pub async fn run(config: &Config, command: KeysCommand) -> anyhow::Result<()> {
    // A missing or outdated database is refused, since this command may not create or migrate it.
    let store = database::connect(config, Schema::Current).await?;
    let clock = assemble::clock(config);
    let changed = match command {
        KeysCommand::Rotate => keys::rotate(&store, &*clock)
            .await
            .map(|changed| result("retired", &changed)),
        KeysCommand::Revoke { key, reason } => {
            check_reason(&reason)?;
            let revoked = keys::revoke(&store, &*clock, &key, &reason).await;
            revoked.map(|changed| result("revoked", &changed))
        }
    };
    // The database is closed after an error too.
    store.close().await;
    terminal::json(&changed?)?;
    Ok(())
}

fn result(what: &str, changed: &KeysChanged) -> Value {
    let KeysChanged { before, current } = changed;
    json!({ what: key(before), "current": key(current) })
}

fn key(key: &Key) -> Value {
    let mut shown = json!({
        "keyId": key.key_id,
        "status": key.status,
        "publicKey": key.public_key,
        "createdAt": key.created_at.to_string(),
    });
    let more = [
        ("retiredAt", key.retired_at.map(|at| at.to_string())),
        ("revokedAt", key.revoked_at.map(|at| at.to_string())),
        ("reason", key.reason.clone()),
    ];
    for (name, value) in more {
        // Members without a value are left out, as in the keys document.
        if let Some(value) = value {
            shown[name] = value.into();
        }
    }
    shown
}

pub(crate) fn check_reason(reason: &str) -> anyhow::Result<()> {
    // The reason becomes a part of the public document of keys, which people read in terminals: a
    // control character could rewrite the lines around it.
    if reason.trim().is_empty() || reason.chars().count() > MAX_REASON || reason.chars().any(char::is_control) {
        bail!(WrongUsage(format!(
            "--reason: must have 1 to {MAX_REASON} characters, none of them a control character"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_keeps_its_rules() {
        assert!(check_reason("lost").is_ok());
        for reason in ["", "  ", "a\nb", "x".repeat(501).as_str()] {
            assert!(check_reason(reason).is_err(), "{reason}");
        }
    }
}
