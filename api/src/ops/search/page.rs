//! The search as a page.
//!
//! Invariant: the page shows what the operation for programs answers to the same conditions.

use pages::{FindFacet, FindHit, FindMode, FindPage, FindValue};
use schemars::JsonSchema;
use serde::Deserialize;
use types::money::MicroUsdc;
use url::form_urlencoded::Serializer;

use super::view::{DatasetPreview, FacetValueCount, SearchHit, UnitPreview};
use super::{SearchInput, answer};
use crate::call::cx::Cx;
use crate::call::operation::Operations;
use crate::call::spec::Spec;
use crate::call::view::PageResponse;
use crate::error::ApiError;
use crate::ops::page_kit::{instant, page_layout};

const PATH: &str = "/find";
/// The ways of searching, with their names.
const MODES: [(&str, &str); 3] = [("auto", "Auto"), ("keyword", "Keyword"), ("semantic", "Meaning")];

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

    /// Returns the conditions as the operation for programs takes them.
    fn search(&self) -> Result<SearchInput, ApiError> {
        let set = self
            .set()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()));
        let set: serde_json::Map<String, serde_json::Value> = set.collect();
        serde_json::from_value(set.into()).map_err(|_error| ApiError::not_found("there is no such search"))
    }
}

async fn find(cx: Cx, input: SearchPageQuery) -> Result<PageResponse, ApiError> {
    let results = answer(&cx, input.search()?).await?;
    let set = input.set();
    let value_of = |name: &str| {
        set.iter()
            .find(|(other, _)| *other == name)
            .map_or("", |(_, value)| *value)
    };
    let facet = |title, name: &'static str, counts: &[FacetValueCount]| FindFacet {
        title,
        values: counts
            .iter()
            .map(|count| {
                let here = value_of(name) == count.value;
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
    let facets = vec![
        facet("Kind", "kind", &facets.kind),
        facet("Price", "price", &facets.price),
        facet("Category", "category", &facets.category),
        facet("Licence", "license", &facets.license),
        facet("Fresh within", "within", &facets.freshness),
    ];
    let kept = set.iter().filter(|(name, _)| !matches!(*name, "q" | "mode" | "cursor"));
    let only = SearchPageQuery {
        q: input.q.clone(),
        mode: input.mode.clone(),
        ..SearchPageQuery::default()
    };
    PageResponse::page(&FindPage {
        chrome: page_layout(&cx).await?,
        query: value_of("q").to_owned(),
        modes: MODES
            .map(|(word, label)| FindMode {
                word,
                label,
                here: results.mode == word,
            })
            .to_vec(),
        total: results.total,
        is_exact: results.total_is_exact,
        is_heuristic: results.judge.name == search::LEXICAL_RANKING_ID,
        judge: results.judge.name,
        kept: kept
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        clear: only.with("cursor", ""),
        facets,
        hits: results.items.into_iter().map(hit).collect(),
        first: input.cursor.as_ref().map(|_| input.with("cursor", "")),
        next: results.next_cursor.map(|cursor| input.with("cursor", &cursor)),
    })
}

/// Returns the name of a value of a condition.
fn label(name: &str, value: &str) -> String {
    let label = match (name, value) {
        ("kind", "unit") => "Units",
        ("kind", "dataset") => "Datasets",
        ("price", "free") => "Free",
        ("price", "key") => "Free with a key",
        ("price", "priced") => "Priced by the seller",
        ("price", "trial") => "Open to trial",
        ("within", "day") => "A day",
        ("within", "week") => "A week",
        ("within", "month") => "A month",
        _ => value,
    };
    label.to_owned()
}

fn price(micro: i64) -> String {
    if micro == 0 {
        "Free".to_owned()
    } else {
        format!("${}", MicroUsdc(micro))
    }
}

/// Returns the notes below a price.
fn notes(trial_sale: bool, more: Option<String>) -> Vec<String> {
    let trial = trial_sale.then(|| "trial: given credits work".to_owned());
    more.into_iter().chain(trial).collect()
}

fn hit(preview: SearchHit) -> FindHit {
    match preview {
        SearchHit::Unit(unit) => unit_hit(*unit),
        SearchHit::Dataset(dataset) => dataset_hit(*dataset),
    }
}

fn unit_hit(unit: UnitPreview) -> FindHit {
    let with_key = !unit.locked && unit.price_micro > 0;
    let ratings = unit.ratings.average.map(|average| {
        let count = unit.ratings.count;
        format!(
            "{average:.1} of 5, {count} {}",
            if count == 1 { "rating" } else { "ratings" }
        )
    });
    let below = match unit.ranked_below {
        Some("new_seller") => Some("new seller: ranks below".to_owned()),
        Some("near_another") => Some("near another unit: ranks below".to_owned()),
        Some(_) => Some("flagged by readers: ranks below".to_owned()),
        None => None,
    };
    FindHit {
        title: unit.title,
        href: format!("/units/{}", unit.id),
        facts: vec!["Knowledge".to_owned(), unit.category, unit.license],
        text: unit.preview,
        score: Some(unit.score.into()),
        ratings: ratings.or_else(|| Some("not yet rated".to_owned())),
        price: price(unit.price_micro),
        is_locked: unit.locked,
        notes: notes(unit.trial_sale, with_key.then(|| "free with a key".to_owned()))
            .into_iter()
            .chain(below)
            .collect(),
        at: instant(unit.published_at.instant()),
    }
}

fn dataset_hit(dataset: DatasetPreview) -> FindHit {
    let rows = format!("{} rows, v{}", dataset.record_count, dataset.version);
    FindHit {
        title: dataset.title,
        href: format!("/projects/{}", dataset.slug),
        facts: vec!["Dataset".to_owned(), dataset.slug, dataset.license],
        text: dataset.preview,
        score: None,
        ratings: None,
        price: price(dataset.price_micro),
        is_locked: dataset.locked,
        notes: notes(dataset.trial_sale, Some(rows)),
        at: instant(dataset.updated_at.instant()),
    }
}
