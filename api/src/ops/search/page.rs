//! The search as a page.
//!
//! Invariant: the page shows what the operation for programs answers to the same conditions. Beside those it knows an
//! order, a tag and a language.

use pages::{AskedRequest, FindFacet, FindMode, FindPage, FindValue};
use schemars::JsonSchema;
use search::SearchOrder;
use serde::Deserialize;
use store::{RequestFilter, RequestStatus};
use types::money::MicroUsdc;
use types::vocabulary::Language;
use url::form_urlencoded::Serializer;

use super::hits::{self, marked_words};
use super::suggest;
use super::view::FacetValueCount;
use super::{PageConditions, SearchInput, answer};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::page_layout;

const PATH: &str = "/find";
/// The ways of searching, with their names.
const MODES: [(&str, &str); 3] = [
    ("auto", "Words and meaning"),
    ("keyword", "Words alone"),
    ("semantic", "Meaning alone"),
];
/// Kinds of items, with their names.
const KINDS: [(&str, &str); 3] = [("", "Everything"), ("dataset", "Datasets"), ("unit", "Knowledge")];
/// Orders of results, with their names.
const ORDERS: [(&str, &str, SearchOrder); 4] = [
    ("", "Best match", SearchOrder::Best),
    ("newest", "Newest", SearchOrder::Newest),
    ("cheapest", "Cheapest", SearchOrder::Cheapest),
    ("score", "Highest score", SearchOrder::Score),
];
/// Ages of items as their facet counts them, in order.
const AGES: [&str; 3] = ["day", "week", "month"];
/// Name of the first order where nothing was searched for.
const UNASKED_ORDER: &str = "Newest";
/// Words that are tried alone where nothing was found.
const TRIES: usize = 4;
/// Open requests that are shown where nothing was found.
const ASKED: u32 = 3;

pub(super) fn add(table: &mut Operations) {
    table.add(
        Spec {
            name: "find_page",
            path: PATH,
            summary: "Search units and datasets",
            ..Spec::PAGE
        },
        &[],
        find,
    );
}

/// The conditions as a form sends them: what is empty is not set.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SearchPageQuery {
    /// Words to search for.
    #[schemars(length(max = 200))]
    q: Option<String>,
    /// Way of searching, such as `auto`.
    #[schemars(length(max = 20))]
    mode: Option<String>,
    /// Kind of the items.
    #[schemars(length(max = 20))]
    kind: Option<String>,
    /// Category that a unit must have.
    #[schemars(length(max = 50))]
    category: Option<String>,
    /// Id of the licence.
    #[schemars(length(max = 60))]
    license: Option<String>,
    /// Price class, such as `free`.
    #[schemars(length(max = 20))]
    price: Option<String>,
    /// Greatest age, such as `day`.
    #[schemars(length(max = 20))]
    within: Option<String>,
    /// Tag that a dataset must have.
    #[schemars(length(max = 60))]
    tag: Option<String>,
    /// Language that a unit must have, such as `en`.
    #[schemars(length(max = 20))]
    language: Option<String>,
    /// Order of the results, such as `newest`.
    #[schemars(length(max = 20))]
    sort: Option<String>,
    /// Place in the results.
    #[schemars(length(max = 80))]
    cursor: Option<String>,
}

impl SearchPageQuery {
    /// Returns the conditions that are set, by the names of their parameters.
    fn set(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("q", &self.q),
            ("mode", &self.mode),
            ("kind", &self.kind),
            ("category", &self.category),
            ("license", &self.license),
            ("price", &self.price),
            ("within", &self.within),
            ("tag", &self.tag),
            ("language", &self.language),
            ("sort", &self.sort),
            ("cursor", &self.cursor),
        ];
        let set = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.as_deref()?.trim())));
        set.filter(|(_, value)| !value.is_empty()).collect()
    }

    /// Returns the address with one condition changed, on the first page. An empty value lifts it.
    fn with(&self, name: &str, value: &str) -> String {
        let mut query = Serializer::new(String::new());
        // A cursor belongs to the conditions that it was made for, so a changed search begins at its
        // first page.
        let others = self
            .set()
            .into_iter()
            .filter(|(other, _)| *other != name && *other != "cursor");
        query.extend_pairs(others);
        if !value.is_empty() {
            query.append_pair(name, value);
        }
        match query.finish() {
            query if query.is_empty() => PATH.to_owned(),
            query => format!("{PATH}?{query}"),
        }
    }

    /// Returns the value of a condition; empty where it is not set.
    fn value(&self, name: &str) -> &str {
        let set = self.set();
        let found = set.iter().find(|(other, _)| *other == name);
        found.map_or("", |(_, value)| *value)
    }

    /// Returns the conditions as the operation for programs takes them, and those that only the page has.
    fn search(&self) -> Result<(SearchInput, PageConditions), ApiError> {
        let unknown = || ApiError::not_found("there is no such search");
        let set = self
            .set()
            .into_iter()
            .filter(|(name, _)| !matches!(*name, "tag" | "language" | "sort"))
            .map(|(name, value)| (name.to_owned(), value.into()));
        let set: serde_json::Map<String, serde_json::Value> = set.collect();
        let input = serde_json::from_value(set.into()).map_err(|_error| unknown())?;
        let order = ORDERS.into_iter().find(|(word, ..)| *word == self.value("sort"));
        let language: Option<Language> = match self.value("language") {
            "" => None,
            word => Some(word.parse().map_err(|_error| unknown())?),
        };
        let beside = PageConditions {
            tag: Some(self.value("tag")).filter(|tag| !tag.is_empty()).map(str::to_owned),
            language,
            order: order.map(|(_, _, order)| order).ok_or_else(unknown)?,
        };
        Ok((input, beside))
    }

    /// Returns a choice of the search.
    fn choice(&self, name: &str, word: &'static str, label: &'static str) -> FindMode {
        FindMode {
            word,
            label,
            href: self.with(name, word),
            here: self.value(name) == word,
        }
    }
}

async fn find(cx: Cx, input: SearchPageQuery) -> Result<PageResponse, ApiError> {
    let (asked, beside) = input.search()?;
    let mut results = answer(&cx, asked, beside).await?;
    let ages = &mut results.facets.freshness;
    ages.sort_by_key(|count| AGES.iter().position(|age| count.value == *age));
    let set = input.set();
    let query = input.value("q").to_owned();
    let facet = |title, name: &'static str, counts: &[FacetValueCount]| FindFacet {
        title,
        values: counts
            .iter()
            .map(|count| {
                let here = input.value(name) == count.value;
                FindValue {
                    label: label(name, &count.value),
                    count: count.count,
                    href: input.with(name, if here { "" } else { &count.value }),
                    here,
                }
            })
            .collect(),
    };
    let facets = &results.facets;
    let of_kind = |word: &str| {
        let found = facets.kind.iter().find(|count| count.value == word);
        found.map_or(0, |count| count.count)
    };
    let is_split = input.value("kind").is_empty() && results.total_is_exact && !results.items.is_empty();
    let split = is_split.then(|| (of_kind("unit"), of_kind("dataset")));
    let facets = vec![
        facet("Price", "price", &facets.price),
        facet("Category", "category", &facets.category),
        facet("Tag", "tag", &results.tags),
        facet("Updated within", "within", &facets.freshness),
        facet("Licence", "license", &facets.license),
        facet("Language", "language", &facets.language),
    ];
    // The text, the kind and the order are fields of the form and come with it.
    let kept = set
        .iter()
        .filter(|(name, _)| !matches!(*name, "q" | "kind" | "sort" | "cursor"));
    let only = SearchPageQuery {
        q: input.q.clone(),
        ..SearchPageQuery::default()
    };
    let is_empty = results.items.is_empty();
    let (tries, open) = if is_empty && !query.is_empty() {
        tokio::try_join!(tries(&cx, &query), asked_for(&cx, &query))?
    } else {
        (Vec::new(), Vec::new())
    };
    let words = marked_words(&query);
    PageResponse::page(&FindPage {
        chrome: page_layout(&cx).await?,
        modes: MODES
            .map(|(word, label)| FindMode {
                here: results.mode == word,
                ..input.choice("mode", word, label)
            })
            .to_vec(),
        kinds: KINDS.map(|(word, label)| input.choice("kind", word, label)).to_vec(),
        orders: ORDERS
            .into_iter()
            // Without words the best are the newest.
            .filter(|(word, ..)| !(query.is_empty() && *word == "newest"))
            .map(|(word, label, _)| {
                let is_best_of_all = query.is_empty() && word.is_empty();
                input.choice("sort", word, if is_best_of_all { UNASKED_ORDER } else { label })
            })
            .collect(),
        split,
        total: results.total,
        is_exact: results.total_is_exact,
        is_heuristic: results.judge.name == search::LEXICAL_RANKING_ID,
        judge: results.judge.name,
        kept: kept
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        clear: only.with("cursor", ""),
        facets,
        hits: results.items.into_iter().map(|hit| hits::of(hit, &words)).collect(),
        first: input.cursor.as_ref().map(|_| input.with("cursor", "")),
        next: results.next_cursor.map(|cursor| input.with("cursor", &cursor)),
        ask: AskedRequest {
            title: query.clone(),
            is_dataset: input.value("kind") == "dataset",
            base: cx.app.config.public_url.clone(),
        },
        tries,
        asked: open,
        query,
    })
}

/// Returns the words of a text that find something alone, with the numbers of what they find.
async fn tries(cx: &Cx, query: &str) -> Result<Vec<(String, u64)>, ApiError> {
    let words = marked_words(query);
    let mut found = Vec::new();
    // One word that found nothing was tried already.
    for word in words.iter().filter(|_| words.len() > 1).take(TRIES) {
        let (_, total) = suggest::found(cx, word, 0).await?;
        if total > 0 {
            found.push((word.clone(), total));
        }
    }
    Ok(found)
}

/// Returns open requests with words of a text, as addresses, titles and budgets.
async fn asked_for(cx: &Cx, query: &str) -> Result<Vec<(String, String, Option<String>)>, ApiError> {
    // A request with all of the words is found by the board itself; here one with the longest of them is near enough.
    let longest = marked_words(query).into_iter().max_by_key(|word| word.chars().count());
    let Some(word) = longest else {
        return Ok(Vec::new());
    };
    let filter = RequestFilter {
        status: Some(RequestStatus::Open),
        kind: None,
        category: None,
        words: vec![word],
    };
    let open = cx.app.store.community().requests(&filter, cx.now, 0, ASKED).await?;
    let shown = open.into_iter().map(|request| {
        let budget = request.budget_micro.map(|budget| MicroUsdc(budget).to_string());
        (format!("/requests/{}", request.id), request.title, budget)
    });
    Ok(shown.collect())
}

/// Returns the name of a value of a condition.
fn label(name: &str, value: &str) -> String {
    let label = match (name, value) {
        ("price", "free") => "Free for all",
        ("price", "key") => "Free with an account",
        ("price", "priced") => "Priced by the seller",
        ("price", "trial") => "Trial credit works",
        ("within", "day") => "A day",
        ("within", "week") => "A week",
        ("within", "month") => "A month",
        ("language", "en") => "English",
        ("language", "ko") => "한국어",
        ("language", "mixed") => "English and 한국어",
        ("language", "other") => "Others",
        _ => value,
    };
    label.to_owned()
}
