//! Lists of the page of money: sales, and the statement of the credits, with the choices that a person makes of them.
//!
//! Invariant: a list is of the signed-in operator, whatever its choices name.

use std::collections::BTreeSet;

use pages::OptionChoice;
use pages::console::{SalesList, SoldRow, SpendingKind, SpendingList, SpendingRow};
use pay::{AccountKind, EventKind};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{Agent, EntryCursor, EntryFilter, ItemName, ListedSale, SaleState, SoldFilter, StatementLine};
use types::vocabulary::ItemKind;
use types::{AgentId, OperatorId, SaleId, Timestamp};

use crate::call::cx::Cx;
use crate::error::ApiError;
use crate::ops::page_kit::instant;
use crate::ops::paging::take_page;

/// Rows on a page of a list.
const ROWS: u32 = 20;
/// Newest sales whose items can be chosen.
const ITEM_SALES: u32 = 500;
/// Months that can be chosen.
const MONTHS: i64 = 12;

/// Choice of both lists, in an address.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoneyQuery {
    /// Id of the item whose sales are listed; empty for all.
    #[schemars(length(max = 64))]
    item: Option<String>,
    /// State of the sales; empty for all.
    #[schemars(length(max = 40))]
    state: Option<String>,
    /// Last sale of the page before.
    #[schemars(length(max = 64))]
    sold: Option<String>,
    /// Kind of the events of the credits: `purchases`, `added`, `usage` or `returned`; empty for all.
    #[schemars(length(max = 40))]
    kind: Option<String>,
    /// Id of the agent that acted; empty for everybody.
    #[schemars(length(max = 64))]
    by: Option<String>,
    /// Month of the events, such as `2026-11`; empty for all.
    #[schemars(length(max = 7))]
    month: Option<String>,
    /// Position in the statement, from the page before.
    #[schemars(length(max = 64))]
    cursor: Option<String>,
}

/// Choice of sales.
#[derive(Debug, Default)]
pub(super) struct SalesChoice {
    item: Option<String>,
    state: Option<SaleState>,
    /// Last sale of the page before.
    pub(super) before: Option<SaleId>,
}

impl SalesChoice {
    pub(super) fn filter(&self) -> SoldFilter<'_> {
        SoldFilter {
            state: self.state,
            item: self.item.as_deref(),
        }
    }
}

/// Choice of the events of the credits.
#[derive(Debug)]
pub(super) struct SpendingChoice {
    kind: SpendingKind,
    by: Option<AgentId>,
    /// Beginning of the month.
    month: Option<Timestamp>,
    /// Position of the page.
    pub(super) cursor: EntryCursor,
}

impl Default for SpendingChoice {
    fn default() -> Self {
        Self {
            kind: SpendingKind::Everything,
            by: None,
            month: None,
            cursor: EntryCursor::NEWEST,
        }
    }
}

impl SpendingChoice {
    pub(super) fn filter(&self) -> EntryFilter {
        let kinds = match self.kind {
            SpendingKind::Everything => [None; 3],
            SpendingKind::Purchases => [Some(EventKind::Sale), Some(EventKind::TrialSale), None],
            SpendingKind::Added => [Some(EventKind::Pack), Some(EventKind::Grant), Some(EventKind::Given)],
            SpendingKind::Usage => [Some(EventKind::EgressBlock), Some(EventKind::StorageDay), None],
            SpendingKind::Returned => [Some(EventKind::DisputeWon), Some(EventKind::UsageRefund), None],
        };
        EntryFilter {
            kinds,
            agent: self.by,
            from: self.month,
            to: self.month.map(Timestamp::next_month),
        }
    }
}

/// Returns what was chosen of a field; nothing for an empty text.
fn chosen(field: Option<&String>) -> Option<&str> {
    field.map(String::as_str).filter(|text| !text.is_empty())
}

impl MoneyQuery {
    pub(super) fn sales(&self) -> Result<SalesChoice, ApiError> {
        let state = chosen(self.state.as_ref()).map(str::parse).transpose();
        let before = chosen(self.sold.as_ref()).map(str::parse).transpose();
        Ok(SalesChoice {
            item: chosen(self.item.as_ref()).map(str::to_owned),
            state: state.map_err(|_error| ApiError::invalid("/state", "must be a state of a sale"))?,
            before: before.map_err(|_error| ApiError::invalid("/sold", "must be the id of a sale"))?,
        })
    }

    pub(super) fn spending(&self, now: Timestamp) -> Result<SpendingChoice, ApiError> {
        let kind = chosen(self.kind.as_ref()).map_or(Some(SpendingKind::Everything), |word| {
            SpendingKind::CHOICES.iter().copied().find(|kind| kind.word() == word)
        });
        let by = chosen(self.by.as_ref()).map(str::parse).transpose();
        let month = chosen(self.month.as_ref()).map(|month| {
            let begin = months(now).find(|begin| word_of(*begin) == month);
            begin.ok_or_else(|| ApiError::invalid("/month", "must be one of the last 12 months, such as 2026-11"))
        });
        let cursor = chosen(self.cursor.as_ref()).map(str::parse).transpose();
        let cursor = cursor.map_err(|_error| ApiError::invalid("/cursor", "must be the position of a page"))?;
        Ok(SpendingChoice {
            kind: kind.ok_or_else(|| ApiError::invalid("/kind", "is no kind of event"))?,
            by: by.map_err(|_error| ApiError::invalid("/by", "must be the id of an agent"))?,
            month: month.transpose()?,
            cursor: cursor.unwrap_or(EntryCursor::NEWEST),
        })
    }
}

/// Returns the beginnings of the months that can be chosen, newest first.
fn months(now: Timestamp) -> impl Iterator<Item = Timestamp> {
    (0..MONTHS).map(move |ago| Timestamp::of_month(now.month() - ago))
}

/// Returns the word of a month, such as `2026-11`.
fn word_of(begin: Timestamp) -> String {
    begin.to_string().chars().take(7).collect()
}

/// Returns a page of the sales of an operator.
pub(super) async fn sales(cx: &Cx, operator: OperatorId, choice: &SalesChoice) -> Result<SalesList, ApiError> {
    let (money, asset) = (cx.app.store.money(), &cx.app.pay.asset);
    let items = money.sold_items(operator, ITEM_SALES).await?;
    let mut found = money
        .sold_by(asset, operator, choice.filter(), choice.before, ROWS + 1)
        .await?;
    let next = take_page(&mut found, ROWS).map(|sold| sold.sale.id);
    let item = |item: store::SoldItem| OptionChoice {
        label: item.title.unwrap_or_else(|| item.item.clone()),
        is_chosen: choice.item.as_ref() == Some(&item.item),
        value: item.item,
    };
    Ok(SalesList {
        items: items.into_iter().map(item).collect(),
        state: choice.state,
        rows: found.into_iter().map(sold_row).collect(),
        next,
        is_later: choice.before.is_some(),
    })
}

/// Returns the row of a sale.
pub(in crate::ops::console) fn sold_row(sold: ListedSale) -> SoldRow {
    let sale = sold.sale;
    SoldRow {
        at: instant(sale.sold_at),
        href: match (sale.kind, sold.slug) {
            (ItemKind::Dataset, Some(slug)) => format!("/console/datasets/{slug}"),
            (ItemKind::Dataset, None) => "/console/datasets".to_owned(),
            (ItemKind::Unit, _) => format!("/units/{}", sale.item),
        },
        title: sold.title.unwrap_or(sale.item),
        kind: sale.kind,
        version: (sale.kind == ItemKind::Dataset).then_some(sale.version),
        paid_with: sale.paid_with,
        wallet: sale.wallet,
        price: sale.price,
        fee: sale.fee,
        share: sale.share,
        state: sale.state,
        release_at: instant(sale.release_at),
        paid_at: sold.paid_at.map(instant),
        resolved_at: sold.resolved_at.map(instant),
    }
}

/// Returns a page of the statement of an operator's credits.
pub(super) async fn spending(cx: &Cx, operator: OperatorId, choice: &SpendingChoice) -> Result<SpendingList, ApiError> {
    let (money, asset) = (cx.app.store.money(), &cx.app.pay.asset);
    let agents = cx.app.store.accounts().agents_of(operator, cx.now).await?;
    let (lines, next) = money
        .statement(asset, operator, choice.filter(), choice.cursor, ROWS)
        .await?;
    let items: BTreeSet<&String> = lines
        .iter()
        .filter(|line| is_of_item(line))
        .map(|line| &line.subject)
        .collect();
    let items: Vec<String> = items.into_iter().cloned().collect();
    let names = money.item_names(&items).await?;
    let archived = money.archived_before(asset, operator).await?;
    let agent = |agent: &Agent| OptionChoice {
        value: agent.id.to_string(),
        label: agent.name.clone(),
        is_chosen: choice.by == Some(agent.id),
    };
    let month = |begin: Timestamp| OptionChoice {
        value: word_of(begin),
        label: word_of(begin),
        is_chosen: choice.month == Some(begin),
    };
    let rows = lines.into_iter().map(|line| {
        let name = is_of_item(&line).then(|| names.get(&line.subject).cloned()).flatten();
        row(line, name, &agents)
    });
    let rows = rows.collect();
    Ok(SpendingList {
        kind: choice.kind,
        actors: agents.iter().map(agent).collect(),
        months: months(cx.now).map(month).collect(),
        rows,
        next: next.map(|next| next.to_string()),
        is_later: choice.cursor != EntryCursor::NEWEST,
        archived_before: archived.map(instant),
    })
}

/// Returns true if the subject of a line is an item.
const fn is_of_item(line: &StatementLine) -> bool {
    matches!(
        line.kind,
        EventKind::Sale | EventKind::TrialSale | EventKind::DisputeWon
    )
}

fn row(line: StatementLine, name: Option<ItemName>, agents: &[Agent]) -> SpendingRow {
    let (what, note) = words(&line, name.as_ref());
    let agent = agents.iter().find(|agent| agent.id.to_string() == line.actor);
    let is_purchase = matches!(line.kind, EventKind::Sale | EventKind::TrialSale);
    SpendingRow {
        at: instant(line.at),
        what: what.to_owned(),
        href: name.as_ref().map(|name| match &name.slug {
            Some(slug) => format!("/projects/{slug}"),
            None => format!("/units/{}", name.id),
        }),
        title: name.map(|name| name.title),
        note,
        agent: agent.map_or(line.actor, |agent| agent.name.clone()),
        amount: line.amount,
        after: line.after,
        is_trial: line.account == AccountKind::Given,
        // The key of the event of a sale is the sale.
        receipt: is_purchase.then(|| line.key.parse().ok()).flatten(),
    }
}

/// Returns what a line says beside the title of its item: the event, and more about it.
fn words(line: &StatementLine, name: Option<&ItemName>) -> (&'static str, String) {
    let kind = match name {
        Some(ItemName { slug: Some(_), .. }) => "dataset",
        Some(_) => "write-up",
        None => "",
    };
    match line.kind {
        EventKind::Sale | EventKind::TrialSale if name.is_some() => ("", kind.to_owned()),
        EventKind::Sale => ("Bought", String::new()),
        EventKind::TrialSale => ("Bought with trial credit", String::new()),
        EventKind::Pack => ("Credit added", "a pack, from a wallet".to_owned()),
        EventKind::Grant => ("Credit granted", line.subject.clone()),
        EventKind::Given => ("Trial credit given", "for items that accept it".to_owned()),
        EventKind::EgressBlock => ("Downloads beyond the free part", String::new()),
        EventKind::StorageDay => ("Storage beyond the free part", String::new()),
        EventKind::UsageRefund => ("Charge given back", line.subject.clone()),
        EventKind::DisputeWon => ("Given back", kind.to_owned()),
        EventKind::Assigned => ("Credit found", "a payment without a known purchase".to_owned()),
        other => (other.as_str(), String::new()),
    }
}
