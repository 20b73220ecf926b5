//! Page of the money of an operator, and its journal as a table for a spreadsheet.
//!
//! Invariant: a cell of the table never begins with a character that a spreadsheet takes for a formula.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use http::header::{self, HeaderValue};
use oauth::Scope;
use pages::console::{BoughtRow, EntryRow, FeeRow, HoldRow, MoneyPage, WaitingPurchase};
use pages::{SpendOwnerName, SpendRow};
use pay::EventKind;
use schemars::JsonSchema;
use serde::Deserialize;
use store::{AppConnection, Entry, EntryCursor, EntryFilter, PurchaseApproval, Sale, SaleState, SpendOwner};
use types::money::MicroUsdc;
use types::render::csv::CsvReader;
use types::vocabulary::ItemKind;
use types::{OperatorId, Timestamp};

use crate::call::answer::{BodyMedia, StreamedAnswer};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::config::top_up_path;
use crate::error::ApiError;
use crate::ops::page_kit::{PAGE_ROWS, instant, page, page_layout};
use crate::ops::spend_lines;
use crate::rules::settlement::faucet;

const PATH: &str = "/console/money";
/// Days of the table of shares.
const DAYS: i64 = 30;
/// Sales that are looked at for the days on which shares are released.
const HELD: u32 = 1_000;
/// Purchases that wait for the person and are listed: as many as five agents may have.
const WAITING: u32 = 100;
/// Bought items that are listed.
const BOUGHT: u32 = 100;
/// Rows of a table for a spreadsheet.
const CSV_ROWS: u32 = 10_000;
/// Prices whose fee is shown.
const PRICES: [i64; 5] = [100_000, 250_000, 1_000_000, 2_500_000, 20_000_000];
/// Kinds of events that move credits.
const KINDS: [EventKind; 9] = [
    EventKind::Sale,
    EventKind::TrialSale,
    EventKind::Pack,
    EventKind::Grant,
    EventKind::Given,
    EventKind::EgressBlock,
    EventKind::StorageDay,
    EventKind::UsageRefund,
    EventKind::DisputeWon,
];

pub(super) fn add(table: &mut Operations) {
    table.add(page("money_page", PATH, "Money"), &[], show);
    table.add(
        page("money_csv", "/console/money.csv", "Journal of credits as a table"),
        &[],
        csv,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MonthChoice {
    /// Kind of the entries; empty for all.
    #[schemars(length(max = 40))]
    kind: Option<String>,
    /// Position in the journal, from the page before.
    #[schemars(length(max = 64))]
    cursor: Option<String>,
}

impl MonthChoice {
    fn filter(&self) -> Result<EntryFilter, ApiError> {
        let kind = match self.kind.as_deref() {
            None | Some("") => None,
            Some(word) => {
                Some(EventKind::parse(word).ok_or_else(|| ApiError::invalid("/kind", "is no kind of entry"))?)
            }
        };
        Ok(EntryFilter {
            kind,
            ..EntryFilter::default()
        })
    }

    fn cursor(&self) -> Result<EntryCursor, ApiError> {
        match &self.cursor {
            None => Ok(EntryCursor::NEWEST),
            Some(text) => text
                .parse()
                .map_err(|_error| ApiError::invalid("/cursor", "must be the position of a page")),
        }
    }
}

async fn show(cx: Cx, input: MonthChoice) -> Result<PageResponse, ApiError> {
    let operator = cx.the_operator()?;
    let (filter, cursor) = (input.filter()?, input.cursor()?);
    let (tariff, money) = (&cx.app.pay, cx.app.store.money());
    let asset = &tariff.asset;
    let balances = money.balances(asset, operator).await?;
    let held = money.sales_of(asset, operator, SaleState::Held, HELD).await?;
    let mut holds: BTreeMap<i64, (u64, i64)> = BTreeMap::new();
    for sale in &held.sales {
        let (sales, share) = holds.entry(sale.release_at.day()).or_default();
        *sales += 1;
        *share += sale.share.0;
    }
    let from = Timestamp::of_day(cx.now.day() - DAYS + 1);
    let days = money.sales_by_day(asset, operator, from, cx.now.next_day()).await?;
    let (entries, next) = money.journal(asset, operator, filter, cursor, PAGE_ROWS).await?;
    let payout = cx.app.store.accounts().payout(operator, cx.now).await?;
    let sales = money.bought_by(operator, BOUGHT).await?;
    let titles = titles(&cx, &entries, &sales).await?;
    let waiting = money.approvals_waiting(operator, WAITING, cx.now).await?;
    let kind = filter.kind.map(|kind| kind.as_str().to_owned());
    let chosen = kind.as_ref().map(|kind| format!("kind={kind}&")).unwrap_or_default();
    let row = |day: i64, sales, share| HoldRow {
        day: instant(Timestamp::of_day(day)),
        sales,
        share,
    };
    PageResponse::page(&MoneyPage {
        chrome: page_layout(&cx).await?,
        disputes: super::disputes::newest(&cx, operator).await?,
        payable: balances.payable.0,
        held: balances.held.0,
        disputed: balances.disputed.0,
        paid: money.paid_out(asset, operator).await?.0,
        payout_threshold: tariff.payout_threshold.0,
        holds: holds
            .into_iter()
            .map(|(day, (sales, share))| row(day, sales, share))
            .collect(),
        payout: payout.address,
        credits: balances.credits.0,
        given: balances.given.0,
        pack: tariff.pack.0,
        top_up: top_up_path(operator),
        faucet: cx.app.payments.is_built_in.then_some(faucet::GIFT),
        days: days
            .into_iter()
            .rev()
            .map(|(day, sales, share)| row(day, sales, share.0))
            .collect(),
        kinds: KINDS.iter().map(|kind| kind.as_str().to_owned()).collect(),
        kind,
        entries: named(&cx, operator, entries, &titles).await?,
        next: next.map(|next| format!("{PATH}?{chosen}cursor={next}")),
        is_later: input.cursor.is_some(),
        waiting: waiting.into_iter().map(waits).collect(),
        limits: limits(&cx, operator).await?,
        bought: sales.into_iter().map(|sale| bought(sale, &titles)).collect(),
        fees: PRICES
            .into_iter()
            .map(|price| {
                let split = tariff.fee.split(MicroUsdc(price));
                FeeRow {
                    price,
                    fee: split.fee.0,
                    share: split.share.0,
                }
            })
            .collect(),
    })
}

/// Returns the titles of the items of a page, by their ids.
async fn titles(cx: &Cx, entries: &[Entry], sales: &[Sale]) -> Result<HashMap<String, String>, ApiError> {
    let subjects = entries.iter().filter(|entry| is_of_item(entry));
    let subjects = subjects.map(|entry| &entry.subject);
    let items: BTreeSet<&String> = subjects.chain(sales.iter().map(|sale| &sale.item)).collect();
    let items: Vec<String> = items.into_iter().cloned().collect();
    Ok(cx.app.store.money().titles(&items).await?)
}

/// Returns true if the subject of an entry is an item.
const fn is_of_item(entry: &Entry) -> bool {
    matches!(
        entry.kind,
        EventKind::Sale | EventKind::TrialSale | EventKind::DisputeWon
    )
}

/// Returns entries with the titles of items and the names of agents.
async fn named(
    cx: &Cx,
    operator: OperatorId,
    entries: Vec<Entry>,
    titles: &HashMap<String, String>,
) -> Result<Vec<EntryRow>, ApiError> {
    let agents = cx.app.store.accounts().agents_of(operator, cx.now).await?;
    let rows = entries.into_iter().map(|entry| {
        let title = titles.get(&entry.subject).filter(|_| is_of_item(&entry)).cloned();
        let agent = agents.iter().find(|agent| agent.id.to_string() == entry.actor);
        EntryRow {
            at: instant(entry.at),
            kind: entry.kind.as_str().to_owned(),
            subject: title.unwrap_or(entry.subject),
            agent: agent.map_or(entry.actor, |agent| agent.name.clone()),
            amount: entry.amount.0,
            after: entry.after.0,
            is_given: entry.account == pay::AccountKind::Given,
        }
    });
    Ok(rows.collect())
}

/// Returns a purchase that waits for the person's yes.
fn waits(asked: PurchaseApproval) -> WaitingPurchase {
    WaitingPurchase {
        id: asked.id,
        agent: asked.agent_name,
        href: match asked.kind {
            ItemKind::Dataset => format!("/projects/{}", asked.slug.unwrap_or_default()),
            ItemKind::Unit => format!("/units/{}", asked.item),
        },
        title: asked.title.unwrap_or_default(),
        version: (asked.kind == ItemKind::Dataset).then_some(asked.version),
        price: asked.price,
        reason: asked.reason,
        asked_at: instant(asked.asked_at),
        expires_at: instant(asked.expires_at),
    }
}

/// Returns the agents of an operator, each followed by the apps that may spend as it, with their limits.
async fn limits(cx: &Cx, operator: OperatorId) -> Result<Vec<SpendRow>, ApiError> {
    let agents = spend_lines::agents(cx, operator).await?;
    let apps = cx.app.store.oauth().connections_of(operator, cx.now).await?;
    let spends = |app: &AppConnection| app.scopes.split_whitespace().any(|scope| scope == Scope::Spend.word());
    let apps: Vec<_> = apps.into_iter().filter(spends).collect();
    let owners: Vec<_> = apps.iter().map(|app| SpendOwner::App(app.id)).collect();
    let lines = spend_lines::lines(cx, &owners).await?;
    let mut rows = Vec::new();
    for agent in agents {
        rows.push(SpendRow {
            owner: SpendOwnerName::Agent {
                id: agent.id.to_string(),
                name: agent.name,
            },
            line: agent.line,
        });
        let own = apps.iter().zip(&lines).filter(|(app, _)| app.agent == agent.id);
        rows.extend(own.map(|(app, line)| SpendRow {
            owner: SpendOwnerName::App {
                id: app.id.to_string(),
                client: super::apps::name(app),
                agent: app.agent_name.clone(),
            },
            line: *line,
        }));
    }
    Ok(rows)
}

fn bought(sale: Sale, titles: &HashMap<String, String>) -> BoughtRow {
    BoughtRow {
        sale: sale.id,
        title: titles.get(&sale.item).cloned().unwrap_or(sale.item),
        kind: sale.kind.as_str().to_owned(),
        version: (sale.kind == ItemKind::Dataset).then_some(sale.version),
        at: instant(sale.sold_at),
        paid_with: sale.paid_with.as_str().to_owned(),
        price: sale.price.0,
        refunded: matches!(sale.state, SaleState::Refunded | SaleState::TrialRefunded),
    }
}

/// A table of comma-separated values (RFC 4180).
struct CsvTable;

impl BodyMedia for CsvTable {
    const TYPE: &'static str = "text/csv; charset=utf-8";
}

async fn csv(cx: Cx, input: MonthChoice) -> Result<StreamedAnswer<CsvTable>, ApiError> {
    let operator = cx.the_operator()?;
    let money = cx.app.store.money();
    let (entries, _) = money
        .journal(&cx.app.pay.asset, operator, input.filter()?, input.cursor()?, CSV_ROWS)
        .await?;
    let mut text = Vec::from("at,kind,item,agent,account,amount_micro,balance_micro\r\n");
    for entry in entries {
        let cells = [
            entry.at.to_string(),
            entry.kind.as_str().to_owned(),
            entry.subject,
            entry.actor,
            entry.account.as_str().to_owned(),
            entry.amount.0.to_string(),
            entry.after.0.to_string(),
        ];
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            CsvReader::Spreadsheet.write_cell(cell, &mut text);
        }
        text.extend_from_slice(b"\r\n");
    }
    let mut answer = StreamedAnswer::whole(text);
    answer.headers.push((
        header::CONTENT_DISPOSITION,
        HeaderValue::from_static("attachment; filename=\"credits.csv\""),
    ));
    Ok(answer)
}
