//! `sluice credits`: what the operator can spend, what the caller may spend of it, and the newest movements.
//!
//! Invariant: the sum of what is shown as bought and as given is the balance.

use std::process::ExitCode;

use client::model::{CreditMovement, Credits};
use serde_json::Value;
use types::money::MicroUsdc;

use crate::cli::CreditsArgs;
use crate::terminal::{self, cut, shown};
use crate::{exit, grid};

/// Most characters of an item or of the name of an agent.
const MAX_NAME_CHARS: usize = 40;

/// Prints the credits.
pub async fn run(arguments: &CreditsArgs) -> anyhow::Result<ExitCode> {
    let (client, _) = arguments.remote.client_with_key()?;
    let credits = client.credits(arguments.limit).await.map_err(exit::of_arguments)?;
    if arguments.json {
        terminal::json(&credits)?;
    } else {
        terminal::line(&lines(&credits, &client.origin()).join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(credits: &Credits, origin: &str) -> Vec<String> {
    let mut lines = vec![format!("credits    ${} in test USDC", MicroUsdc(credits.balance_micro))];
    lines.push(format!("  bought   ${}", MicroUsdc(credits.bought_micro)));
    if credits.given_micro > 0 {
        lines.push(format!(
            "  given    ${}, for trial sales only",
            MicroUsdc(credits.given_micro)
        ));
    }
    let limits = credits.more.get("limits").unwrap_or(&Value::Null);
    for owner in ["agent", "app"] {
        let limits = &limits[owner];
        if limits.is_object() {
            lines.push(format!("{owner:<10} {}", limits_of(limits)));
        }
    }
    lines.push(format!("buy more   {}/console/money", shown(origin)));
    if !credits.ledger.items.is_empty() {
        lines.push(String::new());
        let heads = ["time", "amount", "what", "item", "agent"].map(str::to_owned);
        let rows: Vec<Vec<String>> = credits.ledger.items.iter().map(row).collect();
        lines.extend(grid::lines(&heads, &rows, |column| column == 1));
    }
    lines
}

/// Returns what an agent or an app spent, and what it may spend.
fn limits_of(limits: &Value) -> String {
    let micro = |value: &Value| value.as_i64().map(MicroUsdc);
    let period = |name: &str, words: &str| {
        let used = micro(&limits[name]["usedMicro"]).unwrap_or_default();
        match micro(&limits[name]["capMicro"]) {
            Some(cap) => format!("${used} of ${cap} {words}"),
            None => format!("${used} {words}"),
        }
    };
    let mut parts = vec![period("day", "today"), period("month", "this month")];
    if let Some(cap) = micro(&limits["purchaseCapMicro"]) {
        parts.push(format!("at most ${cap} each"));
    }
    if let Some(line) = micro(&limits["approveAboveMicro"]) {
        parts.push(format!("a person is asked above ${line}"));
    }
    format!("spent {}", parts.join(", "))
}

fn row(movement: &CreditMovement) -> Vec<String> {
    // RFC 3339 has the minute in its first 16 characters.
    let at = movement.at.get(..16).unwrap_or(&movement.at).replace('T', " ");
    vec![
        shown(&at),
        signed(movement.amount_micro),
        shown(&movement.kind.replace('_', " ")),
        cut(&movement.item, MAX_NAME_CHARS),
        cut(movement.agent.as_deref().unwrap_or_default(), MAX_NAME_CHARS),
    ]
}

/// Returns a change of a balance.
fn signed(micro: i64) -> String {
    let sign = if micro < 0 { "-" } else { "+" };
    let amount = MicroUsdc(i64::try_from(micro.unsigned_abs()).unwrap_or(i64::MAX));
    format!("{sign}${amount}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_person_sees_what_there_is_what_may_be_spent_and_where_it_went() {
        let credits: Credits = serde_json::from_value(json!({
            "asset": "test USDC", "balanceMicro": 4_700_000, "boughtMicro": 4_200_000, "givenMicro": 500_000,
            "limits": {"agent": {
                "purchaseCapMicro": null, "approveAboveMicro": 500_000,
                "day": {"capMicro": 5_000_000, "usedMicro": 100_000},
                "month": {"capMicro": null, "usedMicro": 1_000_000},
            }, "app": null},
            "ledger": {"items": [
                {"at": "2026-11-23T12:01:02Z", "kind": "sale", "amountMicro": -100_000, "balanceMicro": 4_200_000,
                 "account": "credits", "item": "tides\u{1b}", "agent": "reader"},
                {"at": "2026-11-20T08:00:00Z", "kind": "top_up", "amountMicro": 1_000_000, "balanceMicro": 4_300_000,
                 "account": "credits", "item": "pack", "agent": null},
            ]},
        }))
        .unwrap();
        assert_eq!(
            lines(&credits, "https://x.example"),
            [
                "credits    $4.70 in test USDC",
                "  bought   $4.20",
                "  given    $0.50, for trial sales only",
                "agent      spent $0.10 of $5.00 today, $1.00 this month, a person is asked above $0.50",
                "buy more   https://x.example/console/money",
                "",
                "time              amount  what    item         agent",
                "----------------  ------  ------  -----------  ------",
                "2026-11-23 12:01  -$0.10  sale    tides\\u{1b}  reader",
                "2026-11-20 08:00  +$1.00  top up  pack",
            ]
        );
    }
}
