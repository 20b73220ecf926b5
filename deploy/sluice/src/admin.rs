//! `sluice admin`: reads and changes the database beside a running service. Prints JSON.

use std::fmt;
use std::sync::Arc;

use anyhow::{Context, bail};
use api::secrets::{Secret, SecretKind};
use catalog::storage::create_directory;
use messages::{Submission, UnitAddress, UnitSubmission};
use serde::Serialize;
use serde_json::json;
use store::{DeadLetterEntry, NewOperator, OperatorCreated, Replay, Schema, Store, UnitReplay};
use types::{Clock, OperatorId, UnitId};

use crate::assemble;
use crate::cli::{Admin, DeadLetters, KnowledgeCommand, OperatorCommand, TableCommand, ValidationCommand};
use crate::config::Config;
use crate::database;
use crate::exit::{Missing, WrongUsage};
use crate::layout::DataLayout;
use crate::losses;
use crate::money;
use crate::terminal;

mod operators;
mod payment_decisions;
mod reports;

/// Dead letters that are read at once.
const PROJECTS_PER_PAGE: u32 = 500;
/// The most characters of an e-mail address and of a name.
const MAX_EMAIL: usize = 254;
const MAX_NAME: usize = 80;

/// Runs a command and prints its result.
pub async fn run(config: &Config, command: Admin) -> anyhow::Result<()> {
    // The first operator is added before the service has run, and the ledger of a trial has no service at all. So only
    // these commands create the folder and the schema.
    let creates = matches!(
        command,
        Admin::Operator(OperatorCommand::Add { .. }) | Admin::Facilitator { .. }
    );
    if creates && config.database.url.is_empty() {
        create_directory(&config.data.dir)
            .with_context(|| format!("cannot create the data directory `{}`", config.data.dir.display()))?;
    }
    let schema = if creates { Schema::Made } else { Schema::Current };
    // A misspelt --data would create a second service silently, so the creation is reported.
    let is_new = creates && config.database.url.is_empty() && !DataLayout::new(&config.data.dir).database().exists();
    let store = database::connect(config, schema).await?;
    if is_new {
        let folder = config.data.dir.display();
        terminal::note(&format!(
            "created a new service in `{folder}`; --data names the folder of an existing one"
        ));
    }
    let clock = assemble::clock(config);
    let result = match command {
        Admin::Operator(command) => operators::operator(&store, &clock, config, command).await,
        Admin::Reports(command) => reports::run(&store, &clock, command).await,
        Admin::Invite { email } => operators::invite(&store, &clock, &email).await,
        Admin::Invitations(command) => operators::invitations(&store, command).await,
        Admin::Faucet { wallet, usdc } => payment_decisions::faucet(&store, &clock, config, &wallet, usdc).await,
        Admin::Facilitator { at } => payment_decisions::facilitator(&store, &clock, config, at).await,
        Admin::Payments(command) => payment_decisions::payments(&store, &clock, config, command).await,
        Admin::Payouts(command) => payment_decisions::payouts(&store, &clock, config, command).await,
        Admin::DeadLetters(DeadLetters::List) => dead_letters(&store).await,
        Admin::DeadLetters(DeadLetters::Replay { id }) => replay(&store, &clock, id).await,
        Admin::Credits(command) => money::credits(&store, &clock, config, command).await,
        Admin::Disputes(command) => money::disputes(&store, &clock, command).await,
        Admin::Table(TableCommand::AcceptLoss { slug, reason }) => {
            losses::accept(&store, &clock, config, &slug, reason).await
        }
        Admin::Validation(command) => validation(&store, &clock, command).await,
        Admin::Knowledge(KnowledgeCommand::Erase { id }) => erase(&store, &clock, &id).await,
    };
    store.close().await;
    result
}

/// A new operator with its token, which is not shown again.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddedOperator {
    /// The id of the operator.
    pub operator_id: String,
    /// The operator token, in plain text.
    pub token: String,
}

/// Shows the id, never the token.
impl fmt::Debug for AddedOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Added")
            .field("operator_id", &self.operator_id)
            .finish_non_exhaustive()
    }
}

/// Adds an operator with a verified address and the terms in force accepted. `None` if another operator has the
/// address.
///
/// # Errors
/// An address or name that breaks the rules, or a database that does not answer.
pub async fn operator_add(
    store: &Store,
    clock: &Arc<dyn Clock>,
    config: &Config,
    email: &str,
    name: &str,
) -> anyhow::Result<Option<AddedOperator>> {
    check_email("--email", email)?;
    check_name(name)?;
    let secret = Secret::generate(SecretKind::OperatorToken)?;
    let now = clock.now();
    let id = OperatorId::new(now);
    let new = NewOperator {
        id,
        email: email.to_owned(),
        display_name: name.to_owned(),
        terms_version: config.terms.version.clone(),
        // The database stores only the hash, so the token can be printed only now.
        token_hash: secret.hash(),
        now,
    };
    Ok(match store.operator_create(new).await? {
        OperatorCreated::Created => Some(AddedOperator {
            operator_id: id.to_string(),
            token: secret.reveal(),
        }),
        OperatorCreated::EmailTaken => None,
    })
}

fn check_email(argument: &str, email: &str) -> anyhow::Result<()> {
    let has_dot = email.rsplit_once('@').is_some_and(|(_, domain)| domain.contains('.'));
    if !has_dot || !mail::is_address(email) || email.len() > MAX_EMAIL {
        bail!(WrongUsage(format!(
            "{argument}: `{email}` is not an e-mail address of at most {MAX_EMAIL} characters that mail can be sent to"
        )));
    }
    Ok(())
}

fn check_name(name: &str) -> anyhow::Result<()> {
    if name.trim().is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        bail!(WrongUsage(format!(
            "--name: must have 1 to {MAX_NAME} characters, none of them a control character"
        )));
    }
    Ok(())
}

/// Pauses or resumes the reviews. A process that serves the interface knows within a second.
async fn validation(store: &Store, clock: &Arc<dyn Clock>, command: ValidationCommand) -> anyhow::Result<()> {
    let paused = matches!(command, ValidationCommand::Pause);
    let changed = store.validation_pause(paused, clock.now()).await?;
    terminal::json(&json!({ "paused": paused, "changed": changed }))?;
    Ok(())
}

/// Erases a unit; its prints by a job of the service. Copies of its texts stay in the log and in backups for as long as
/// those are kept.
async fn erase(store: &Store, clock: &Arc<dyn Clock>, id: &str) -> anyhow::Result<()> {
    let id: UnitId = id
        .parse()
        .with_context(|| format!("`{id}` is not the id of a knowledge unit"))?;
    let Some(unit) = store.knowledge().unit(id).await? else {
        bail!(Missing(format!("there is no knowledge unit `{id}`")));
    };
    let chain = unit.chain.id;
    if !store.knowledge().erase(chain, clock.now()).await? {
        bail!("the knowledge unit `{chain}` was erased before");
    }
    terminal::json(&json!({
        "chainId": chain,
        "erased": true,
        "remains": "the running service erases the prints of the text, and what free pages of an embedded database hold of \
                    it, within seconds; hashes of the whole text and of its long paragraphs stay in the table of units, \
                    the log and its dead letters keep the text for their retention, PostgreSQL until it has vacuumed, and \
                    backups until they are deleted",
    }))?;
    Ok(())
}

pub(crate) fn operator_id(text: &str) -> anyhow::Result<OperatorId> {
    text.parse()
        .with_context(|| format!("`{text}` is not the id of an operator"))
}

async fn dead_letters(store: &Store) -> anyhow::Result<()> {
    let mut letters: Vec<DeadLetterEntry> = Vec::new();
    loop {
        // The pages are read until one is empty, since the total is not known.
        let after = letters.last().map(|letter| letter.id.clone());
        let page = store.dead_letters(PROJECTS_PER_PAGE, after.as_deref()).await?;
        if page.is_empty() {
            break;
        }
        letters.extend(page);
    }
    let items: Vec<_> = letters
        .iter()
        .map(|letter| {
            json!({
                "id": letter.id,
                "contributionId": letter.contribution,
                "unitId": letter.unit,
                "topic": letter.topic,
                "partition": letter.partition,
                "offset": letter.offset,
                "reason": letter.reason,
                "createdAt": letter.created_at.to_string(),
                "replayedAt": letter.replayed_at.map(|at| at.to_string()),
            })
        })
        .collect();
    terminal::json(&json!({ "total": items.len(), "items": items }))?;
    Ok(())
}

async fn replay(store: &Store, clock: &Arc<dyn Clock>, id: String) -> anyhow::Result<()> {
    let replayed = store.dead_letter_replay(id.clone(), renewed, clock.now()).await?;
    match replayed {
        Replay::Reopened {
            contribution,
            generation,
        } => terminal::json(&json!({
            "id": id, "contributionId": contribution, "status": "submitted", "generation": generation,
        }))?,
        Replay::Requeued { contribution } => {
            terminal::json(&json!({ "id": id, "contributionId": contribution, "status": "submitted" }))?;
        }
        Replay::Decided { contribution, status } => {
            bail!("the contribution {contribution} of the dead letter `{id}` is {status}; nothing was replayed")
        }
        Replay::Unit(UnitReplay::Reopened { unit, generation }) => terminal::json(&json!({
            "id": id, "unitId": unit, "status": "queued", "generation": generation,
        }))?,
        Replay::Unit(UnitReplay::Requeued { unit }) => {
            terminal::json(&json!({ "id": id, "unitId": unit, "status": "queued" }))?;
        }
        Replay::Unit(UnitReplay::Decided { unit, status }) => {
            bail!("the unit {unit} of the dead letter `{id}` is {status}; nothing was replayed")
        }
        Replay::NoContribution => bail!("the dead letter `{id}` belongs to no contribution; nothing was replayed"),
        Replay::Unreadable => bail!("the dead letter `{id}` cannot be read by this build; nothing was replayed"),
        Replay::AlreadyReplayed => bail!("the dead letter `{id}` was replayed before"),
        Replay::Unknown => bail!(Missing(format!("there is no dead letter `{id}`"))),
    }
    Ok(())
}

/// Returns the submission of a dead letter with its new generation, or `None` if it cannot be decoded.
fn renewed(payload: &[u8], generation: u32) -> Option<Vec<u8>> {
    if UnitAddress::read(payload).is_some() {
        let submission = UnitSubmission {
            generation,
            ..UnitSubmission::decode(payload).ok()?
        };
        return Some(submission.record().ok()?.value.to_vec());
    }
    let submission = Submission {
        generation,
        // The other fields stay as they were submitted.
        ..Submission::decode(payload).ok()?
    };
    Some(submission.record().ok()?.value.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_keep_their_rules() {
        assert!(check_email("--email", "a@example.org").is_ok());
        let long = format!("{}@example.org", "a".repeat(250));
        for email in [
            "",
            "a",
            "@b.org",
            "a@",
            "a@b",
            "a b@c.org",
            "a@b@c.org",
            "a@1.2.3.4",
            long.as_str(),
        ] {
            assert!(check_email("--email", email).is_err(), "{email}");
        }
        assert!(check_name("Ada").is_ok());
        let long = "a".repeat(81);
        for name in ["", " ", "a\nb", long.as_str()] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
