//! Page of what an account uses of what is free.
//!
//! Invariant: the figures are those of `GET /quota`.

use std::collections::HashMap;

use pages::console::{CountLimit, EgressShare, MonthOfEgress, QuotaPage, StoredDataset};
use pages::{Allowance, CreditBalance};
use store::{AppConnection, EgressOfReader, ListedProject, SpendOwner, Visibility};
use types::{OperatorId, Timestamp};

use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::view::PageResponse;
use crate::call::wire::NoInput;
use crate::error::ApiError;
use crate::ops::page_kit::{instant, page, page_layout, sentence};
use crate::ops::quota::{self, QuotaFigures};
use crate::ops::spend_lines;
use crate::rules::storage_quota;

/// Readers, datasets and months that are listed.
const READERS: u32 = 20;
const STORED: usize = 20;
const MONTHS: u32 = 12;
/// Datasets that are looked at.
const PROJECTS: u32 = 200;

pub(super) fn add(table: &mut Operations) {
    table.add(page("quota_page", "/console/quota", "Quota"), &[], show);
}

async fn show(cx: Cx, _: NoInput) -> Result<PageResponse, ApiError> {
    let (operator, tariff, limits) = (cx.the_operator()?, &cx.app.pay, &cx.app.limits);
    let stored = storage_quota::counted(&cx, operator).await?;
    let figures = quota::figures(&cx, stored).await?;
    let egress = egress(&figures);
    let reviews_wait = quota::reviews_wait(&cx).await?.map(|waiting| {
        let message = waiting.message.unwrap_or_else(|| "reviews wait".to_owned());
        sentence(&message)
    });
    let credits: CreditBalance = spend_lines::credits(&cx, operator).await?;
    let (stored, more_stored) = stored_datasets(&cx, operator).await?;
    let months = cx.app.store.egress_months(operator, MONTHS).await?;
    let month = |of: store::EgressOfMonth| MonthOfEgress {
        begin: instant(Timestamp::of_month(of.month)),
        bytes: of.bytes,
    };
    PageResponse::page(&QuotaPage {
        chrome: page_layout(&cx).await?,
        ends_about: ends_about(cx.now, &egress).map(instant),
        egress,
        free_egress: tariff.free_egress_bytes,
        next_month: instant(cx.now.next_month()),
        storage: storage(&cx, &figures),
        free_storage: limits.storage_per_operator.0,
        knowledge: Allowance {
            used: figures.knowledge_used.into(),
            allowed: limits.knowledge_per_day.into(),
        },
        contributions: contributions(&cx, &figures),
        reviews_wait,
        credits,
        readers: readers(&cx, operator).await?,
        stored,
        more_stored,
        uploading: figures.uploading,
        counts: counts(&cx, operator).await?,
        months: months.into_iter().map(month).collect(),
        block: pay::BLOCK_BYTES,
        egress_block: tariff.egress_block,
        storage_block_day: tariff.storage_block_day,
    })
}

/// Returns the bytes that were sent in the month, of those that may be.
pub(super) const fn egress(figures: &QuotaFigures) -> Allowance {
    Allowance {
        used: figures.egress_used,
        allowed: figures.egress_allowed,
    }
}

/// Returns the bytes that are stored, of those that may be.
pub(super) fn storage(cx: &Cx, figures: &QuotaFigures) -> Allowance {
    let (used, free) = (figures.storage_used(), cx.app.limits.storage_per_operator.0);
    Allowance {
        used,
        // Storage beyond the free part is paid with credit, so the larger limit is shown once the free part is full.
        allowed: if used < free { free } else { figures.storage_allowed },
    }
}

/// Returns the contributions of the day to public datasets, of those that may be.
pub(super) fn contributions(cx: &Cx, figures: &QuotaFigures) -> Allowance {
    Allowance {
        used: figures.contributions_used.into(),
        allowed: cx.app.limits.public_contributions_per_day.into(),
    }
}

/// Returns the instant at which what may be sent is used up if the month goes on as it began; `None` if that is not in it,
/// or if less than two days of it are known.
fn ends_about(now: Timestamp, egress: &Allowance) -> Option<Timestamp> {
    let (begin, end) = (Timestamp::of_month(now.month()), now.next_month());
    let gone = now.micros() - begin.micros();
    if gone < 2 * 86_400_000_000 || egress.used == 0 || egress.used >= egress.allowed {
        return None;
    }
    let needed = i128::from(gone) * i128::from(egress.allowed) / i128::from(egress.used);
    let at = Timestamp::from_micros(begin.micros().saturating_add(i64::try_from(needed).unwrap_or(i64::MAX)));
    (at < end).then_some(at)
}

/// Returns who read the bytes of the month.
async fn readers(cx: &Cx, operator: OperatorId) -> Result<Vec<EgressShare>, ApiError> {
    let store = &cx.app.store;
    let found = store.egress_readers(operator, cx.now.month(), READERS).await?;
    let agents = store.accounts().agents_of(operator, cx.now).await?;
    let agents: HashMap<String, String> = agents
        .into_iter()
        .map(|agent| (SpendOwner::Agent(agent.id).to_string(), agent.name))
        .collect();
    let apps = store.oauth().connections_of(operator, cx.now).await?;
    let apps: HashMap<String, &AppConnection> = apps
        .iter()
        .map(|app| (SpendOwner::App(app.id).to_string(), app))
        .collect();
    let all: u64 = found.iter().map(|of| of.bytes).fold(0, u64::saturating_add);
    let share = |of: EgressOfReader| {
        let app = apps.get(&of.reader);
        let is_known = of.reader.is_empty() || app.is_some() || agents.contains_key(&of.reader);
        EgressShare {
            agent: app
                .map(|app| app.agent_name.clone())
                .or_else(|| agents.get(&of.reader).cloned()),
            app: match app {
                Some(app) => Some(super::apps::name(app)),
                None => (!is_known).then(|| "an app that was disconnected".to_owned()),
            },
            share: u64::try_from(u128::from(of.bytes) * 100 / u128::from(all.max(1))).unwrap_or(100),
            bytes: of.bytes,
        }
    };
    Ok(found.into_iter().map(share).collect())
}

/// Returns the largest datasets of an operator, and the number of the others.
async fn stored_datasets(cx: &Cx, operator: OperatorId) -> Result<(Vec<StoredDataset>, u64), ApiError> {
    let projects = cx.app.store.console().projects_of(operator, PROJECTS).await?;
    let projects: HashMap<_, ListedProject> = projects.into_iter().map(|project| (project.id, project)).collect();
    let mut sizes = storage_quota::sizes(cx, operator).await?;
    sizes.retain(|(_, size)| *size > 0);
    sizes.sort_by_key(|(dataset, size)| (std::cmp::Reverse(*size), *dataset));
    let row = |(dataset, bytes): &(types::DatasetId, u64)| {
        let project = projects.get(dataset)?;
        let visibility = (project.visibility == Visibility::Private).then_some("private");
        let status = Some(project.status.as_str()).filter(|status| *status != "open");
        Some(StoredDataset {
            slug: project.slug.clone(),
            title: project.title.clone(),
            facts: visibility.into_iter().chain(status).collect::<Vec<_>>().join(", "),
            bytes: *bytes,
        })
    };
    let rows: Vec<_> = sizes.iter().filter_map(row).take(STORED).collect();
    let more = sizes.len().saturating_sub(rows.len());
    Ok((rows, u64::try_from(more).unwrap_or(u64::MAX)))
}

/// Returns the limits on numbers.
async fn counts(cx: &Cx, operator: OperatorId) -> Result<Vec<CountLimit>, ApiError> {
    let (store, limits) = (&cx.app.store, &cx.app.limits);
    let active = store.console().active_projects_of(operator, PROJECTS).await?.len();
    let agents = store.accounts().agents_of(operator, cx.now).await?;
    let agents = agents.iter().filter(|agent| agent.removed_at.is_none()).count();
    let waiting = store.accounts().claims_waiting(operator, cx.now).await?;
    let uploads = store.uploads_open(operator, cx.now).await?.len();
    let number = |number: usize| Some(u64::try_from(number).unwrap_or(u64::MAX));
    let limit = |label, used, most: u32| CountLimit {
        label,
        used,
        most: most.into(),
    };
    let agents = number(agents).map(|agents| agents.saturating_add(waiting.into()));
    Ok(vec![
        limit("Active datasets", number(active), limits.active_projects_per_operator),
        limit("Agents, waiting ones included", agents, limits.agents_per_operator),
        limit("Uploads that are open", number(uploads), limits.open_uploads),
        limit("SQL queries at a time", None, 1),
        limit(
            "Calls a minute from one address",
            None,
            limits.calls_per_ip_per_minute.get(),
        ),
        limit(
            "Write-ups an hour and agent",
            None,
            limits.submissions_per_agent_per_hour,
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_free_part_follows_from_the_pace() {
        // 30 days of November 2026.
        let month = Timestamp::from_micros(1_795_435_200_000_000).month();
        let begin = Timestamp::of_month(month);
        let day = |days: i64| Timestamp::from_micros(begin.micros() + days * 86_400_000_000);
        for (days, used, ends) in [
            (22, 178, Some(24)),
            (10, 100, Some(20)),
            (10, 30, None),
            (1, 100, None),
            (22, 200, None),
            (22, 0, None),
        ] {
            let egress = Allowance { used, allowed: 200 };
            let expected = ends.map(|days| day(days).day());
            assert_eq!(
                ends_about(day(days), &egress).map(Timestamp::day),
                expected,
                "{used} in {days}"
            );
        }
    }
}
