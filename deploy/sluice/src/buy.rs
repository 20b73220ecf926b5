//! `sluice buy`: buys an item with the credits of the operator.
//!
//! Invariant: nothing is bought before a person, or the command line, agreed to the price, and never above it.

use std::fs;
use std::process::ExitCode;

use anyhow::Context as _;
use client::Client;
use client::model::{Bought, PurchaseTerms};
use types::money::MicroUsdc;

use crate::cli::BuyArgs;
use crate::exit::{self, Unanswered, WrongUsage};
use crate::find::text;
use crate::info::is_unit_id;
use crate::terminal::{self, plain, shown};

/// An item with what it costs.
struct PricedItem {
    /// Words for it, such as "version 12 of `tides`".
    name: String,
    /// The price in dollars; `None` if there is nothing to buy.
    price: Option<String>,
    /// The version of a dataset that has one.
    version: Option<u64>,
    /// The command that reads it.
    next: Option<String>,
}

/// Prints that an item needed no purchase, for a program.
fn nothing_bought(arguments: &BuyArgs) -> anyhow::Result<ExitCode> {
    terminal::json(&serde_json::json!({"item": arguments.item, "charged": false, "priceMicro": 0}))?;
    Ok(ExitCode::SUCCESS)
}

/// Buys an item, after a confirmation.
pub async fn run(arguments: BuyArgs) -> anyhow::Result<ExitCode> {
    if let Some(price) = &arguments.max_price
        && price.parse::<MicroUsdc>().is_err()
    {
        return Err(WrongUsage("--max-price: dollars and cents, such as 0.50".to_owned()).into());
    }
    let (client, _) = arguments.remote.client_with_key()?;
    let item = priced(&client, &arguments).await?;
    let Some(price) = &item.price else {
        if arguments.json {
            return nothing_bought(&arguments);
        }
        terminal::line(&format!(
            "{} costs nothing with an account; nothing was bought.",
            item.name
        ))?;
        next(item.next.as_deref());
        return Ok(ExitCode::SUCCESS);
    };
    if !arguments.yes {
        confirm(&item.name, price)?;
    }
    let terms = PurchaseTerms {
        // The version that was shown, since a newer one may be merged meanwhile.
        version: item.version,
        // The price that was agreed to, unless another was named: it may have risen since.
        max_price: Some(arguments.max_price.as_ref().unwrap_or(price).clone()),
        reason: arguments.reason.clone(),
    };
    let answer = if is_unit_id(&arguments.item) {
        client.unit_buy_on(&arguments.item, &terms).await
    } else {
        client.dataset_buy(&arguments.item, &terms).await
    };
    let bought = match answer {
        Ok(bought) => bought,
        // Whoever has an item needs not buy it, so that a script can go on.
        Err(error) if error.problem().is_some_and(|problem| problem.code == "own_item") => {
            if arguments.json {
                return nothing_bought(&arguments);
            }
            terminal::line(&format!("{} is yours; nothing was bought.", item.name))?;
            next(item.next.as_deref());
            return Ok(ExitCode::SUCCESS);
        }
        Err(error) => return Err(exit::of_arguments(error)),
    };
    tell(&arguments, &item, &bought)
}

/// Returns an item with its price.
async fn priced(client: &Client, arguments: &BuyArgs) -> anyhow::Result<PricedItem> {
    let item = shown(&arguments.item);
    let quoted = terminal::quoted(&arguments.item);
    if is_unit_id(&arguments.item) {
        if arguments.version.is_some() {
            let rule = "--version is for datasets; a write-up is bought with all its versions";
            return Err(WrongUsage(rule.to_owned()).into());
        }
        let offer = client.unit_offer(&arguments.item).await?;
        let title = offer.title.as_deref().map(|title| format!(" \"{}\"", shown(title)));
        return Ok(PricedItem {
            name: format!("the write-up{} ({item})", title.unwrap_or_default()),
            price: offer.price.filter(|_| !offer.key_reads),
            version: None,
            next: quoted.map(|id| format!("sluice info {id} --text")),
        });
    }
    let project = client.project(&arguments.item).await?;
    let version = arguments.version.unwrap_or(project.latest_version);
    Ok(PricedItem {
        name: format!("version {version} of `{item}`"),
        price: Some(text(&project.more, "price")).filter(|price| !price.is_empty()),
        version: Some(version).filter(|version| *version > 0),
        next: quoted.map(|slug| format!("sluice pull {slug} --version {version}")),
    })
}

/// Asks a person.
///
/// # Errors
/// [`Unanswered`] if the answer is not yes.
fn confirm(name: &str, price: &str) -> anyhow::Result<()> {
    let question = format!(
        "Buy {name} for ${} in test USDC, with credits? It costs nothing if it is bought already. [y/N] ",
        shown(price)
    );
    let open = match terminal::ask(&question)? {
        Some(typed) if typed.eq_ignore_ascii_case("y") || typed.eq_ignore_ascii_case("yes") => return Ok(()),
        Some(_) => "nothing was bought".to_owned(),
        None => format!(
            "nobody is here to confirm; nothing was bought. --yes buys {name} for ${} without a question",
            shown(price)
        ),
    };
    Err(Unanswered(open).into())
}

/// Prints what became of a purchase, and keeps its receipt.
fn tell(arguments: &BuyArgs, item: &PricedItem, bought: &Bought) -> anyhow::Result<ExitCode> {
    keep_receipt(arguments, bought)?;
    if arguments.json {
        terminal::json(bought)?;
    }
    if bought.is_waiting() {
        let url = bought.approval.as_ref().map_or("", |approval| approval.url.as_str());
        let until = bought
            .approval
            .as_ref()
            .and_then(|approval| approval.expires_at.as_deref());
        let until = until.map_or_else(String::new, |until| format!(", until {}", shown(until)));
        return Err(Unanswered(format!(
            "nothing is bought yet: a person decides at {}{until}. The same command then says what became of it",
            plain(url)
        ))
        .into());
    }
    if !arguments.json {
        terminal::line(&outcome(&item.name, bought))?;
        next(item.next.as_deref());
    }
    Ok(ExitCode::SUCCESS)
}

fn outcome(name: &str, bought: &Bought) -> String {
    let sale = bought
        .sale_id
        .as_deref()
        .map_or_else(String::new, |sale| format!(" Sale {}.", shown(sale)));
    if bought.charged {
        format!("Bought {name} for ${} of credits.{sale}", MicroUsdc(bought.price_micro))
    } else {
        format!("The operator has {name}; nothing was charged.{sale}")
    }
}

fn keep_receipt(arguments: &BuyArgs, bought: &Bought) -> anyhow::Result<()> {
    let Some(path) = &arguments.receipt else { return Ok(()) };
    let Some(receipt) = &bought.receipt else {
        terminal::note("The answer has no receipt, so none was kept.");
        return Ok(());
    };
    let text = serde_json::to_vec_pretty(receipt)?;
    fs::write(path, text).with_context(|| format!("the receipt cannot be written to `{}`", path.display()))
}

fn next(command: Option<&str>) {
    if let Some(command) = command {
        terminal::note(&format!("Next: {command}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_outcome_says_what_was_charged() {
        let bought = |answer| outcome("version 12 of `tides`", &serde_json::from_value(answer).unwrap());
        assert_eq!(
            bought(
                json!({"charged": true, "priceMicro": 100_000, "saleId": "01\u{7}", "dataset": "tides", "version": 12})
            ),
            "Bought version 12 of `tides` for $0.10 of credits. Sale 01\\u{7}."
        );
        assert_eq!(
            bought(json!({"charged": false, "priceMicro": 0})),
            "The operator has version 12 of `tides`; nothing was charged."
        );
    }

    #[test]
    fn a_purchase_that_waits_is_known_as_one() {
        let waiting: Bought = serde_json::from_value(json!({
            "status": "waiting", "charged": false, "priceMicro": 500_000,
            "approval": {"id": "01", "status": "waiting", "url": "https://x.example/console/approvals/01"},
        }))
        .unwrap();
        assert!(waiting.is_waiting());
        assert_eq!(waiting.approval.unwrap().more["id"], "01");
    }
}
