//! Knowledge units as a list, the newest first, and what the whole market has.
//!
//! Invariant: what is listed is shown to anybody.

use std::str::FromStr as _;

use pages::{FindHit, KnowledgePage};
use schemars::JsonSchema;
use search::{Facet, SearchFilter, SearchMode, SearchOrder, SearchQuery};
use serde::Deserialize;
use store::ShownUnit;
use types::{Timestamp, UnitId};

use super::view::SearchHit;
use super::{ask, hits};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::page_layout;
use crate::ops::paging::take_page;

const PATH: &str = "/units";
/// Units on a page of the list.
const ROWS: u32 = 20;
/// Values of a condition that are offered where nothing was searched for yet.
const OFFERED: usize = 3;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "knowledge_page",
            path: PATH,
            summary: "Knowledge units",
            ..Spec::PAGE
        },
        &[],
        list,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListUnitsPageQuery {
    /// Last unit of the page before.
    #[schemars(length(max = 100))]
    before: Option<String>,
}

/// Reads the place of a unit in the list.
fn place(text: &str) -> Option<ShownUnit> {
    let (micros, id) = text.split_once('.')?;
    Some(ShownUnit {
        id: UnitId::from_str(id).ok()?,
        published_at: Timestamp::from_micros(micros.parse().ok()?),
    })
}

async fn list(cx: Cx, input: ListUnitsPageQuery) -> Result<PageResponse, ApiError> {
    let before = input
        .before
        .as_deref()
        .map(|text| place(text).ok_or_else(|| ApiError::invalid("/before", "must be the last unit of a page before")));
    let before = before.transpose()?;
    let (rows, next) = newest(&cx, before, ROWS).await?;
    let market = market(&cx).await;
    PageResponse::page(&KnowledgePage {
        chrome: page_layout(&cx).await?,
        total: market.as_ref().map(|market| market.units),
        categories: market.map(|market| market.categories).unwrap_or_default(),
        rows,
        first: before.map(|_| PATH.to_owned()),
        next: next.map(|last| format!("{PATH}?before={}.{}", last.published_at.micros(), last.id)),
    })
}

/// Returns units as rows of a list, newest first, and the place of the last if there are more.
pub(in crate::ops) async fn newest(
    cx: &Cx,
    before: Option<ShownUnit>,
    most: u32,
) -> Result<(Vec<FindHit>, Option<ShownUnit>), ApiError> {
    let mut units = cx.app.store.searching().units_newest(before, most + 1).await?;
    let next = take_page(&mut units, most).map(|unit| ShownUnit {
        id: unit.id,
        published_at: unit.published_at.unwrap_or(unit.submitted_at),
    });
    let rows = units
        .into_iter()
        .map(|unit| hits::of(SearchHit::of_unit(cx, unit), &[]));
    Ok((rows.collect(), next))
}

/// Totals and most frequent words of all that is shown.
pub(in crate::ops) struct Market {
    /// Number of published units.
    pub(in crate::ops) units: u64,
    /// Most frequent categories of units.
    pub(in crate::ops) categories: Vec<String>,
    /// Most frequent tags of datasets.
    pub(in crate::ops) tags: Vec<String>,
}

/// Returns what the whole market has; nothing while the index of the search is not ready.
pub(in crate::ops) async fn market(cx: &Cx) -> Option<Market> {
    let index = cx.app.process.searching.index().ok()?;
    let query = SearchQuery {
        filter: SearchFilter::default(),
        order: SearchOrder::Best,
        text: String::new(),
        vector: None,
        mode: SearchMode::Keyword,
        offset: 0,
        limit: 0,
    };
    let found = ask(index, query, cx.now).await.ok()?;
    let counts = |facet: Facet| {
        let of = found.facets.iter().find(|(of, _)| *of == facet);
        of.map(|(_, values)| values.as_slice()).unwrap_or_default()
    };
    let offered = |facet: Facet| {
        counts(facet)
            .iter()
            .take(OFFERED)
            .map(|count| count.value.clone())
            .collect()
    };
    let units = counts(Facet::Kind).iter().find(|count| count.value == "unit");
    Some(Market {
        units: units.map_or(0, |count| count.count as u64),
        categories: offered(Facet::Category),
        tags: offered(Facet::Tag),
    })
}
