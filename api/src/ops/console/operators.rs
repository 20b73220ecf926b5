//! Accounts for the staff: found, looked at, suspended and restored.
//!
//! Invariant: the staff reads, and only an administrator changes; nobody suspends one of the staff by a page.

use pages::console::{
    AccountAgent, AccountItemRow, AccountPage, AccountRow, AccountsPage, HistoryLine, SuspensionForm, reason_words,
};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{AccountItem, Agent, Report, StaffAccount, StaffRole, TitledTakedown};
use types::OperatorId;
use types::vocabulary::ItemKind;

use super::staff::{administrator, decision_reason, staff};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::schema::{LINE, TEXT};
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{PAGE_ROWS, form, form_page, id, instant, missing, page, page_layout, repairable};
use crate::rules::letters::{self, LetterPayload};

const PATH: &str = "/console/operators";
/// Items of each kind on the page of an account.
const MAX_ITEMS: u32 = 25;
/// Reports and takedowns that the history tells.
const MAX_HISTORY: u32 = 20;

pub(super) fn add(table: &mut Operations) {
    table.add(page("staff_accounts_page", PATH, "Accounts for the staff"), &[], list);
    table.add(
        page(
            "staff_account_page",
            "/console/operators/{id}",
            "An account for the staff",
        ),
        &[],
        show,
    );
    table.add(
        form(
            "suspend_account_form",
            "/console/operators/{id}/suspend",
            "Suspend an account",
        ),
        &[],
        suspend,
    );
    table.add(
        form(
            "restore_account_form",
            "/console/operators/{id}/restore",
            "Restore an account",
        ),
        &[],
        restore,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AccountsQuery {
    /// Text that is known of the account: an e-mail address or a name by its beginning, or an agent, a wallet, an item or an id.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    q: Option<String>,
    /// Id of the account before which the page begins.
    #[schemars(length(max = 40))]
    before: Option<String>,
}

async fn list(cx: Cx, input: AccountsQuery) -> Result<PageResponse, ApiError> {
    let (_, role) = staff(&cx).await?;
    let directory = cx.app.store.staff();
    let q = input.q.unwrap_or_default().trim().to_owned();
    let most = usize::try_from(PAGE_ROWS).unwrap_or(usize::MAX);
    let before: Option<OperatorId> = input.before.as_deref().map(|text| id(text, "page")).transpose()?;
    let mut found = if q.is_empty() {
        directory.accounts(before, PAGE_ROWS + 1).await?
    } else {
        directory.accounts_found(&q, PAGE_ROWS + 1).await?
    };
    let has_more = found.len() > most;
    found.truncate(most);
    let last = found.last().filter(|_| has_more && q.is_empty());
    PageResponse::page(&AccountsPage {
        chrome: page_layout(&cx).await?,
        next: last.map(|last| format!("{PATH}?before={}", last.id)),
        first: before.is_some().then(|| PATH.to_owned()),
        has_more: has_more && !q.is_empty(),
        q,
        rows: found.iter().map(row).collect(),
        is_administrator: role == StaffRole::Administrator,
    })
}

fn row(account: &StaffAccount) -> AccountRow {
    AccountRow {
        id: account.id,
        name: account.display_name.clone(),
        email: account.email.clone(),
        since: instant(account.created_at),
        is_confirmed: account.verified_at.is_some(),
        suspended_at: account.suspended.as_ref().map(|(at, _)| instant(*at)),
        role: account.role,
        agents: account.agents,
        datasets: account.datasets,
        units: account.units,
        takedowns: account.takedowns,
        reports: account.reports,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AccountPath {
    /// Id of the operator.
    id: String,
}

async fn show(cx: Cx, input: AccountPath) -> Result<PageResponse, ApiError> {
    let (by, role) = staff(&cx).await?;
    let account = account(&cx, id(&input.id, "account")?).await?;
    PageResponse::page(&shown(&cx, account, (by, role), SuspensionForm::default()).await?)
}

async fn account(cx: &Cx, operator: OperatorId) -> Result<StaffAccount, ApiError> {
    let found = cx.app.store.staff().account(operator).await?;
    found.ok_or_else(|| missing("account"))
}

/// Returns the page of an account as it is now.
async fn shown(
    cx: &Cx,
    account: StaffAccount,
    (by, role): (OperatorId, StaffRole),
    form: SuspensionForm,
) -> Result<AccountPage, ApiError> {
    let store = &cx.app.store;
    let (directory, moderation, accounts, money) = (store.staff(), store.moderation(), store.accounts(), store.money());
    let (agents, items, takedowns, reports, balances) = tokio::try_join!(
        accounts.agents_of(account.id, cx.now),
        directory.items_of(account.id, MAX_ITEMS),
        moderation.takedowns_of(account.id, MAX_HISTORY),
        moderation.reports_of_owner(account.id, MAX_HISTORY),
        money.balances(&cx.app.pay.asset, account.id)
    )?;
    Ok(AccountPage {
        chrome: page_layout(cx).await?,
        history: history(&account, takedowns, reports, &items),
        suspended_for: account.suspended.as_ref().map(|(_, reason)| reason.clone()),
        terms: account.terms_version.clone(),
        payout: account.payout_address.clone(),
        is_payout_proved: account.payout_proved_at.is_some(),
        rejected: account.rejected,
        payable: balances.payable.0,
        held: balances.held.0,
        credits: balances.credits.0,
        given: balances.given.0,
        agents: agents.iter().map(agent).collect(),
        items: items.into_iter().map(item).collect(),
        is_administrator: role == StaffRole::Administrator,
        is_staff: is_protected(&account, by),
        account: row(&account),
        form,
    })
}

/// Returns true if nobody suspends the account by a page: the person would lock itself or another of the staff out.
fn is_protected(account: &StaffAccount, by: OperatorId) -> bool {
    account.role.is_some() || account.id == by
}

fn agent(agent: &Agent) -> AccountAgent {
    AccountAgent {
        name: agent.name.clone(),
        since: instant(agent.created_at),
        keys: agent.keys.len().try_into().unwrap_or(u64::MAX),
        removed_at: agent.removed_at.map(instant),
    }
}

fn item(item: AccountItem) -> AccountItemRow {
    AccountItemRow {
        kind: item.kind,
        href: match item.kind {
            ItemKind::Unit => format!("/units/{}", item.place),
            ItemKind::Dataset => format!("/projects/{}", item.place),
        },
        title: item.title,
        is_down: item.taken_down_at.is_some(),
        is_ended: item.ended_at.is_some(),
        is_private: item.is_private,
        sold: item.sold,
        at: instant(item.created_at),
    }
}

/// Returns what happened to an account, the latest first.
fn history(
    account: &StaffAccount,
    takedowns: Vec<TitledTakedown>,
    reports: Vec<Report>,
    items: &[AccountItem],
) -> Vec<HistoryLine> {
    let line = |at, what: String, said: Option<String>| HistoryLine {
        at: instant(at),
        what,
        said,
    };
    let mut lines = vec![line(account.created_at, "signed up".to_owned(), None)];
    if let Some((at, reason)) = &account.suspended {
        lines.push(line(*at, "suspended".to_owned(), Some(reason.clone())));
    }
    for TitledTakedown { takedown, title } in takedowns {
        let (title, reason) = (title.unwrap_or(takedown.named), reason_words(takedown.reason));
        lines.push(line(
            takedown.at,
            format!("an item was taken down for {reason}"),
            Some(title.clone()),
        ));
        if let Some(at) = takedown.restored_at {
            lines.push(line(at, "an item was shown again".to_owned(), Some(title)));
        }
    }
    for report in reports {
        let what = format!("an item was reported as: {}", reason_words(report.reason));
        // A report names a write-up by its id. One that is not among the newest items keeps it.
        let found = items.iter().find(|item| item.place == report.named);
        let title = found.map_or(report.named, |item| item.title.clone());
        lines.push(line(report.created_at, what, Some(title)));
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line.at));
    lines
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AccountSuspensionForm {
    /// Id of the operator.
    id: String,
    /// Reason, for the account.
    #[serde(default)]
    #[schemars(length(max = 4_000), regex(pattern = TEXT))]
    reason: String,
    /// Name of the account, as the person typed it.
    #[serde(default)]
    #[schemars(length(max = 200))]
    confirm: String,
}

async fn suspend(cx: Cx, input: AccountSuspensionForm) -> Result<PageResponse, ApiError> {
    change(cx, input, true).await
}

async fn restore(cx: Cx, input: AccountSuspensionForm) -> Result<PageResponse, ApiError> {
    change(cx, input, false).await
}

async fn change(cx: Cx, input: AccountSuspensionForm, is_suspension: bool) -> Result<PageResponse, ApiError> {
    let by = administrator(&cx).await?;
    let operator: OperatorId = id(&input.id, "account")?;
    let account = account(&cx, operator).await?;
    if is_protected(&account, by) {
        return Err(missing("account"));
    }
    let reason = decision_reason("/reason", &input.reason);
    let checked = reason.and_then(|reason| check_name(&account, &input.confirm).map(|()| reason));
    let reason = match checked {
        Ok(reason) => reason,
        Err(error) => {
            let form = SuspensionForm {
                reason: input.reason,
                confirm: input.confirm,
                errors: repairable(error)?,
            };
            return form_page(&shown(&cx, account, (by, StaffRole::Administrator), form).await?, true);
        }
    };
    let payload = if is_suspension {
        LetterPayload::Suspended {
            operator,
            reason: reason.clone(),
        }
    } else {
        LetterPayload::Restored {
            operator,
            reason: Some(reason.clone()),
        }
    };
    let letter = letters::mail(&payload, Some(operator), None, cx.now);
    let directory = cx.app.store.staff();
    // An account that is so already stays so, and nobody is told twice.
    let changed = directory
        .suspension_set(operator, is_suspension.then_some(reason), letter, cx.now)
        .await?;
    changed.ok_or_else(|| missing("account"))?;
    PageResponse::see(&format!("{PATH}/{operator}"))
}

fn check_name(account: &StaffAccount, confirm: &str) -> Result<(), ApiError> {
    if confirm.trim() == account.display_name.trim() {
        return Ok(());
    }
    Err(ApiError::invalid("/confirm", "must be the name of this account"))
}
