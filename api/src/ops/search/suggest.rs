//! Suggestions while somebody types a search.
//!
//! Invariant: what is suggested is shown to anybody. No model is asked, and no search is counted.

use pages::{MarkedText, SuggestPage, SuggestedItem};
use schemars::JsonSchema;
use search::{SearchFilter, SearchMode, SearchOrder, SearchQuery};
use serde::Deserialize;

use super::hits::{marked_words, price};
use super::view::SearchHit;
use super::{ask, previews};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::room::PageRoom;
use crate::call::schema::LINE;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::error::ApiError;

/// Items that are suggested.
const ITEMS: usize = 6;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "suggest_page",
            path: "/find/suggest",
            summary: "Suggestions for a search",
            ..Spec::PAGE
        },
        &[],
        suggest,
    );
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SuggestQuery {
    /// Beginning of a search.
    #[schemars(length(max = 200), regex(pattern = LINE))]
    q: Option<String>,
}

async fn suggest(cx: Cx, input: SuggestQuery) -> Result<PageResponse, ApiError> {
    let query = input.q.unwrap_or_default().trim().to_owned();
    let (hits, total) = if query.is_empty() {
        (Vec::new(), 0)
    } else {
        found(&cx, &query, ITEMS).await?
    };
    let words = marked_words(&query);
    let item = |hit: SearchHit| match hit {
        SearchHit::Unit(unit) => SuggestedItem {
            title: MarkedText::new(&unit.title, &words),
            href: format!("/units/{}", unit.id),
            facts: format!("write-up · {}", price(unit.price_micro)),
        },
        SearchHit::Dataset(dataset) => SuggestedItem {
            title: MarkedText::new(&dataset.title, &words),
            href: format!("/projects/{}", dataset.slug),
            facts: format!("dataset · {}", price(dataset.price_micro)),
        },
    };
    PageResponse::page(&SuggestPage {
        total,
        items: hits.into_iter().map(item).collect(),
        query,
    })
}

/// Returns the best items with words of a text, at most `most`, and the number of all of them.
pub(super) async fn found(cx: &Cx, text: &str, most: usize) -> Result<(Vec<SearchHit>, u64), ApiError> {
    let index = cx.app.process.searching.index()?;
    let query = SearchQuery {
        filter: SearchFilter::default(),
        order: SearchOrder::Best,
        text: text.to_owned(),
        // By words alone: a model would be asked with every letter.
        vector: None,
        mode: SearchMode::Keyword,
        offset: 0,
        limit: most,
    };
    let found = ask(index, query, cx.now).await?;
    let (hits, _) = previews(cx, &found, most, PageRoom::of(cx)).await?;
    Ok((hits, found.total as u64))
}
