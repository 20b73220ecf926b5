//! Forms of the settings that change the account: its name, who sees it, and which letters come.
//!
//! Invariant: a name that was changed in another window meanwhile is not overwritten; what was typed is shown again.

mod close;
mod copy;
mod email;

use pages::FieldError;
use pages::console::{AccountForms, LetterChoice};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{LetterTopic, Operator};

use super::payout::is_fresh;
use super::settings::{DoneWord, done, settings};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{form, form_page, instant, missing};

/// Most characters of a name, as at the sign-up.
const MAX_NAME_CHARS: usize = 80;

pub(super) fn add(table: &mut Operations) {
    table.add(
        form(
            "rename_account_form",
            "/console/settings/name",
            "Change the name of the account",
        ),
        &[],
        rename,
    );
    table.add(
        form(
            "hide_name_form",
            "/console/settings/profile",
            "Show the name of the account in public, or leave it out",
        ),
        &[],
        hide_name,
    );
    table.add(
        form(
            "choose_letters_form",
            "/console/settings/letters",
            "Choose which letters come",
        ),
        &[],
        choose_letters,
    );
    email::add(table);
    close::add(table);
    copy::add(table);
}

/// Returns the forms about an account, as it is.
pub(super) async fn forms(cx: &Cx, account: &Operator) -> Result<AccountForms, ApiError> {
    let store = &cx.app.store;
    let (accounts, moderation) = (store.accounts(), store.moderation());
    let (change, role) = tokio::try_join!(accounts.email_change_of(account.id), moderation.role_of(account.id))?;
    let waiting = change.as_ref().filter(|change| change.waits(cx.now));
    let settled = change
        .as_ref()
        .filter(|change| change.confirmed_at.is_some() && change.stopped_at.is_none() && change.stop_until > cx.now);
    let topics = [LetterTopic::Approvals, LetterTopic::BoughtItems, LetterTopic::Reports];
    // Only moderators get letters about reports.
    let topics = topics
        .into_iter()
        .filter(|topic| role.is_some() || *topic != LetterTopic::Reports);
    Ok(AccountForms {
        name: account.display_name.clone(),
        name_seen: account.display_name.clone(),
        email: String::new(),
        waiting: waiting.map(|change| (change.new_email.clone(), instant(change.confirm_until))),
        settled_at: settled.map(|change| instant(change.stop_until)),
        is_fresh: is_fresh(cx),
        is_hidden: account.profile_hidden,
        letters: topics
            .map(|topic| LetterChoice {
                topic,
                is_wanted: !account.muted_letters.contains(&topic),
            })
            .collect(),
    })
}

/// Returns the account of the person.
async fn account(cx: &Cx) -> Result<Operator, ApiError> {
    let found = cx.app.store.operator(cx.the_operator()?).await?;
    found.ok_or_else(|| missing("account"))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AccountNameForm {
    /// Name as the person typed it.
    #[serde(default)]
    #[schemars(length(max = 1_000))]
    name: String,
    /// Name that the form was made from.
    #[serde(default)]
    #[schemars(length(max = 1_000))]
    seen: String,
}

/// Returns the rule that a name breaks, if it breaks one.
fn broken_rule(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("Must have a visible character".to_owned());
    }
    if name.chars().count() > MAX_NAME_CHARS {
        return Some(format!("Must have at most {MAX_NAME_CHARS} characters"));
    }
    name.chars()
        .any(char::is_control)
        .then(|| "Must be one line without control characters".to_owned())
}

async fn rename(cx: Cx, input: AccountNameForm) -> Result<PageResponse, ApiError> {
    let operator = cx.the_operator()?;
    let name = input.name.trim();
    let problem = if let Some(problem) = broken_rule(name) {
        problem
    } else {
        let accounts = cx.app.store.accounts();
        if accounts.rename(operator, input.seen.clone(), name.to_owned()).await? {
            return done(DoneWord::Name);
        }
        "The name was changed in another window; look at it above, then save again".to_owned()
    };
    let mut page = settings(&cx).await?;
    page.forms.name = input.name;
    page.errors = vec![FieldError::new("name", problem)];
    form_page(&page, true)
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum YesOrNo {
    Yes,
    No,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PublicNameForm {
    /// `yes` to leave the name out of public pages.
    hidden: YesOrNo,
}

async fn hide_name(cx: Cx, input: PublicNameForm) -> Result<PageResponse, ApiError> {
    let is_hidden = matches!(input.hidden, YesOrNo::Yes);
    cx.app
        .store
        .accounts()
        .profile_hide(cx.the_operator()?, is_hidden)
        .await?;
    done(DoneWord::Profile)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LettersForm {
    /// Present if letters come about purchases of agents that wait.
    #[schemars(length(max = 10))]
    approvals: Option<String>,
    /// Present if letters come about bought items that are taken down.
    #[schemars(length(max = 10))]
    bought_items: Option<String>,
    /// Present if letters come about reports that wait.
    #[schemars(length(max = 10))]
    reports: Option<String>,
}

async fn choose_letters(cx: Cx, input: LettersForm) -> Result<PageResponse, ApiError> {
    let operator = cx.the_operator()?;
    let is_staff = cx.app.store.moderation().role_of(operator).await?.is_some();
    let muted: Vec<LetterTopic> = [
        (LetterTopic::Approvals, input.approvals.is_none()),
        (LetterTopic::BoughtItems, input.bought_items.is_none()),
        // The form of a person who is no moderator has no such box.
        (LetterTopic::Reports, is_staff && input.reports.is_none()),
    ]
    .into_iter()
    .filter_map(|(topic, is_muted)| is_muted.then_some(topic))
    .collect();
    cx.app.store.accounts().letters_mute(operator, &muted).await?;
    done(DoneWord::Letters)
}

#[cfg(test)]
mod tests;
