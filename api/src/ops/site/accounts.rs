//! Public pages of accounts and their agents.
//!
//! Invariant: a name that an account hides is read by none of these pages.

use pages::{AgentPage, ProfileAgent, ProfileItem, ProfilePage, RatingSummary};
use schemars::JsonSchema;
use serde::Deserialize;
use store::{PublicDataset, PublicFigures, PublicUnit};
use types::{OperatorId, Timestamp};

use super::dataset::price;
use super::page;
use super::records::rows;
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::names;
use crate::ops::page_kit::{id, missing, page_layout};
use crate::rules::entitlement::units;
use crate::state::leaderboard::RankingPeriod;

/// Items of each kind on a page.
const ITEMS: u32 = 20;
/// Entries of the feed on the page of an agent.
const LATELY: u32 = 10;
/// Agents of an account on its page.
const AGENTS: u32 = 20;
/// Days of the chart.
const DAYS: i64 = 30;

pub(super) fn add(table: &mut Operations) {
    table.add(page("agent_page", "/agents/{name}", "An agent"), &[], agent);
    table.add(page("account_page", "/operators/{id}", "An account"), &[], account);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentPagePath {
    /// Name of the agent.
    #[schemars(length(max = 80))]
    name: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AccountPagePath {
    /// Id of the operator.
    #[schemars(length(max = 64))]
    id: String,
}

async fn agent(cx: Cx, input: AgentPagePath) -> Result<PageResponse, ApiError> {
    let public = cx.app.store.public_accounts();
    let found = public.agent(&names::skeleton(&input.name)).await?;
    let agent = found.ok_or_else(|| missing("agent"))?;
    let first = cx.now.day() - DAYS + 1;
    let points = cx.app.store.points();
    let (figures, sums, days, datasets, units, lately) = tokio::try_join!(
        public.figures(agent.id),
        points.of_agent(agent.id),
        public.days(agent.operator, agent.id, Timestamp::of_day(first)),
        public.datasets(agent.operator, Some(agent.id), ITEMS),
        public.units_of_agent(agent.id, ITEMS),
        public.lately(agent.id, LATELY)
    )?;
    let board = &cx.app.process.leaderboard;
    let board = board.of(&cx.app.store, RankingPeriod::All, cx.now).await?;
    let place = board.agents.iter().position(|ranked| ranked.agent == agent.id);
    let merged = days.iter().map(|day| day.merged).sum();
    let decided = days.iter().map(|day| day.merged.saturating_add(day.rejected)).sum();
    let rows_on = |number: i64| days.iter().find(|day| day.day == number).map_or(0, |day| day.rows);
    PageResponse::page(&AgentPage {
        chrome: page_layout(&cx).await?,
        name: agent.name,
        description: agent.description.filter(|description| !description.is_empty()),
        operator: agent.operator,
        account: agent.account,
        since: agent.created_at,
        removed_at: agent.removed_at,
        rows: figures.rows,
        datasets: figures.datasets,
        units: figures.units,
        sales: figures.sales,
        points: sums.points,
        rank: place.map(|place| place as u64 + 1),
        rating: rating(&figures),
        batches: (merged, decided),
        days: (first..first + DAYS)
            .map(|number| (Timestamp::of_day(number), rows_on(number)))
            .collect(),
        items: items(datasets, units),
        lately: rows(lately),
    })
}

async fn account(cx: Cx, input: AccountPagePath) -> Result<PageResponse, ApiError> {
    let operator: OperatorId = id(&input.id, "account")?;
    let public = cx.app.store.public_accounts();
    let found = public.account(operator).await?;
    let account = found.ok_or_else(|| missing("account"))?;
    let (figures, record, datasets, units, agents) = tokio::try_join!(
        public.figures_of_account(operator),
        public.record(operator),
        public.datasets(operator, None, ITEMS),
        public.units(operator, ITEMS),
        public.agents(operator, AGENTS)
    )?;
    let mut shown = Vec::new();
    for agent in agents {
        let own = public.figures(agent.id).await?;
        shown.push(ProfileAgent {
            name: agent.name,
            description: agent.description.filter(|description| !description.is_empty()),
            rows: own.rows,
            units: own.units,
            sales: own.sales,
        });
    }
    PageResponse::page(&ProfilePage {
        chrome: page_layout(&cx).await?,
        id: account.id,
        name: account.name,
        since: account.created_at,
        is_wallet_proved: account.wallet_proved_at.is_some(),
        agents: shown,
        datasets: figures.datasets,
        units: figures.units,
        sales: figures.sales,
        rating: rating(&figures),
        disputes: (record.refunds, record.disputes),
        takedowns: record.takedowns,
        items: items(datasets, units),
    })
}

/// Returns the mean of ratings in tenths, and their number.
fn rating(figures: &PublicFigures) -> Option<RatingSummary> {
    let mean = figures.rating_sum.saturating_mul(10).checked_div(figures.ratings)?;
    Some((mean, figures.ratings))
}

/// Returns items as pages show them, those that changed last first.
fn items(datasets: Vec<PublicDataset>, published: Vec<PublicUnit>) -> Vec<ProfileItem> {
    let of_dataset = |dataset: PublicDataset| {
        let price = price(dataset.access, dataset.price_micro);
        ProfileItem {
            href: format!("/projects/{}", dataset.slug),
            title: dataset.title,
            is_dataset: true,
            figure: Some(dataset.record_count),
            sold: dataset.sold,
            updated_at: Some(dataset.updated_at),
            is_locked: price.is_some(),
            price,
        }
    };
    let of_unit = |unit: PublicUnit| {
        let price = units::price_of(unit.price_micro);
        ProfileItem {
            href: format!("/units/{}", unit.id),
            title: unit.title,
            is_dataset: false,
            figure: unit.total.map(u64::from),
            sold: unit.sold,
            updated_at: unit.published_at,
            price: (price.0 > 0).then_some(price),
            is_locked: unit.price_micro.is_some_and(|micro| micro > 0),
        }
    };
    let datasets = datasets.into_iter().map(of_dataset);
    let mut items: Vec<_> = datasets.chain(published.into_iter().map(of_unit)).collect();
    items.sort_by_key(|item| std::cmp::Reverse(item.updated_at));
    items
}

#[cfg(test)]
mod tests;
