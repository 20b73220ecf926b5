//! Page of the money of an operator, and its lists as tables for a spreadsheet.
//!
//! Invariant: a cell of a table never begins with a character that a spreadsheet takes for a formula.

mod lists;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::{self, HeaderValue};
use oauth::Scope;
use pages::console::{EarnedMoney, FeeRow, HoldRow, MoneyPage, SpentMoney, WaitingPurchase};
use pages::{FieldError, SalesDay, SpendOwnerName, SpendRow};
use store::{AppConnection, Balances, PurchaseApproval, SaleState, SpendOwner};
use types::money::MicroUsdc;
use types::render::csv::CsvReader;
use types::vocabulary::ItemKind;
use types::{OperatorId, Timestamp};

pub(super) use self::lists::sold_row;
use self::lists::{MoneyQuery, SalesChoice, SpendingChoice};
use super::payout;
use crate::call::answer::{BodyMedia, StreamedAnswer};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{instant, page, page_layout};
use crate::ops::spend_lines;

const PATH: &str = "/console/money";
/// Days of the chart and of what was spent.
const DAYS: i64 = 30;
/// Sales that are looked at for the days on which shares are released.
const HELD: u32 = 1_000;
/// Purchases that wait for the person and are listed: as many as five agents may have.
const WAITING: u32 = 100;
/// Payouts that are listed.
const PAYOUTS: u32 = 12;
/// Rows of a table for a spreadsheet.
const CSV_ROWS: u32 = 10_000;
/// Prices whose fee is shown.
const PRICES: [i64; 5] = [100_000, 250_000, 1_000_000, 2_500_000, 20_000_000];

pub(super) fn add(table: &mut Operations) {
    table.add(page("money_page", PATH, "Money"), &[], show);
    table.add(
        page("money_csv", "/console/money.csv", "Spending and credit as a table"),
        &[],
        spending_csv,
    );
    table.add(
        page("sales_csv", "/console/money/sales.csv", "Sales as a table"),
        &[],
        sales_csv,
    );
}

async fn show(cx: Cx, input: MoneyQuery) -> Result<PageResponse, ApiError> {
    let (sales, spending) = (input.sales()?, input.spending(cx.now)?);
    PageResponse::page(&shown(&cx, &sales, &spending).await?)
}

/// Returns the page after a form of the payout address that was not accepted.
pub(super) async fn with_errors(cx: &Cx, errors: Vec<FieldError>) -> Result<MoneyPage, ApiError> {
    let mut page = shown(cx, &SalesChoice::default(), &SpendingChoice::default()).await?;
    page.errors = errors;
    Ok(page)
}

async fn shown(cx: &Cx, sales: &SalesChoice, spending: &SpendingChoice) -> Result<MoneyPage, ApiError> {
    let operator = cx.the_operator()?;
    let (tariff, money) = (&cx.app.pay, cx.app.store.money());
    let asset = &tariff.asset;
    let held = money.sales_of(asset, operator, SaleState::Held, HELD).await?;
    let mut holds: BTreeMap<i64, (u64, i64)> = BTreeMap::new();
    for sale in &held.sales {
        let (sales, share) = holds.entry(sale.release_at.day()).or_default();
        *sales += 1;
        *share += sale.share.0;
    }
    let waiting = money.approvals_waiting(operator, WAITING, cx.now).await?;
    let balances = money.balances(asset, operator).await?;
    let payout = payout::view(cx, operator).await?;
    Ok(MoneyPage {
        chrome: page_layout(cx).await?,
        credits: pages::CreditBalance {
            bought: balances.credits,
            given: balances.given,
        },
        spent: spent(cx, operator).await?,
        earned: earned(cx, operator, &balances).await?,
        disputes: super::disputes::newest(cx, operator).await?,
        holds: holds
            .into_iter()
            .map(|(day, (sales, share))| HoldRow {
                day: instant(Timestamp::of_day(day)),
                sales,
                share: MicroUsdc(share),
            })
            .collect(),
        days: sales_days(cx, operator, DAYS).await?,
        waiting: waiting.into_iter().map(waits).collect(),
        payout,
        payouts: payout::rows(cx, operator, PAYOUTS).await?,
        sales: lists::sales(cx, operator, sales).await?,
        spending: lists::spending(cx, operator, spending).await?,
        limits: limits(cx, operator).await?,
        fees: PRICES
            .into_iter()
            .map(|price| {
                let split = tariff.fee.split(MicroUsdc(price));
                FeeRow {
                    price: MicroUsdc(price),
                    fee: split.fee,
                    share: split.share,
                }
            })
            .collect(),
        errors: Vec::new(),
    })
}

/// Returns what an operator spent on purchases with credits in 30 days.
pub(super) async fn spent(cx: &Cx, operator: OperatorId) -> Result<SpentMoney, ApiError> {
    let from = cx.now.minus(Duration::from_hours(30 * 24));
    let spent = cx
        .app
        .store
        .money()
        .spent_since(&cx.app.pay.asset, operator, from)
        .await?;
    Ok(SpentMoney {
        purchases: spent.purchases,
        sum: spent.sum,
    })
}

/// Returns the shares of the sales of an operator.
pub(super) async fn earned(cx: &Cx, operator: OperatorId, balances: &Balances) -> Result<EarnedMoney, ApiError> {
    let store = &cx.app.store;
    let payout = store.accounts().payout(operator, cx.now).await?;
    Ok(EarnedMoney {
        payable: balances.payable,
        held: balances.held,
        disputed: balances.disputed,
        on_its_way: balances.payout_pending,
        paid: store.money().paid_out(&cx.app.pay.asset, operator).await?,
        threshold: cx.app.pay.payout_threshold,
        has_address: payout.address.is_some() && payout.next.is_none(),
    })
}

/// Returns the sales of the last days, today's last, days without one too.
pub(super) async fn sales_days(cx: &Cx, operator: OperatorId, days: i64) -> Result<Vec<SalesDay>, ApiError> {
    let first = cx.now.day() - days + 1;
    let (from, to) = (Timestamp::of_day(first), cx.now.next_day());
    let found = cx
        .app
        .store
        .money()
        .days_of_sales(&cx.app.pay.asset, operator, from, to)
        .await?;
    let day = |number: i64| {
        let of = found.iter().find(|day| day.day == number).copied().unwrap_or_default();
        SalesDay {
            day: instant(Timestamp::of_day(number)),
            by_credits: of.by_credits,
            by_wallet: of.by_wallet,
            share_by_credits: of.share_by_credits,
            share_by_wallet: of.share_by_wallet,
        }
    };
    Ok((first..first + days).map(day).collect())
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

/// A table of comma-separated values (RFC 4180).
struct CsvTable;

impl BodyMedia for CsvTable {
    const TYPE: &'static str = "text/csv; charset=utf-8";
}

/// Returns a table with its head as a file.
fn csv<const N: usize>(
    head: &str,
    name: &'static str,
    rows: impl Iterator<Item = [String; N]>,
) -> StreamedAnswer<CsvTable> {
    let mut text = Vec::from(head);
    text.extend_from_slice(b"\r\n");
    for cells in rows {
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            CsvReader::Spreadsheet.write_cell(cell, &mut text);
        }
        text.extend_from_slice(b"\r\n");
    }
    let mut answer = StreamedAnswer::whole(text);
    answer
        .headers
        .push((header::CONTENT_DISPOSITION, HeaderValue::from_static(name)));
    answer
}

async fn spending_csv(cx: Cx, input: MoneyQuery) -> Result<StreamedAnswer<CsvTable>, ApiError> {
    let operator = cx.the_operator()?;
    let choice = input.spending(cx.now)?;
    let (money, asset) = (cx.app.store.money(), &cx.app.pay.asset);
    let (lines, _) = money
        .statement(asset, operator, choice.filter(), choice.cursor, CSV_ROWS)
        .await?;
    let rows = lines.into_iter().map(|line| {
        [
            line.at.to_string(),
            line.kind.as_str().to_owned(),
            line.subject,
            line.actor,
            line.account.as_str().to_owned(),
            line.amount.0.to_string(),
            line.after.0.to_string(),
        ]
    });
    let head = "at,kind,item,agent,account,amount_micro,balance_micro";
    Ok(csv(head, "attachment; filename=\"credits.csv\"", rows))
}

async fn sales_csv(cx: Cx, input: MoneyQuery) -> Result<StreamedAnswer<CsvTable>, ApiError> {
    let operator = cx.the_operator()?;
    let choice = input.sales()?;
    let (money, asset) = (cx.app.store.money(), &cx.app.pay.asset);
    let sold = money
        .sold_by(asset, operator, choice.filter(), choice.before, CSV_ROWS)
        .await?;
    let rows = sold.into_iter().map(|sold| {
        let sale = sold.sale;
        [
            sale.sold_at.to_string(),
            sale.id.to_string(),
            sale.kind.as_str().to_owned(),
            sale.item,
            sale.version.to_string(),
            sale.paid_with.as_str().to_owned(),
            sale.price.0.to_string(),
            sale.fee.0.to_string(),
            sale.share.0.to_string(),
            sale.state.as_str().to_owned(),
            sold.paid_at.map(|at| at.to_string()).unwrap_or_default(),
        ]
    });
    let head = "sold_at,sale,kind,item,version,paid_with,price_micro,fee_micro,share_micro,state,paid_out_at";
    Ok(csv(head, "attachment; filename=\"sales.csv\"", rows))
}
