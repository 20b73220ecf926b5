//! Results of a search as they appear in answers.
//!
//! The docs of these types and their fields are published in the machine-readable description.

use schemars::JsonSchema;
use search::{Facet, FacetCount, SearchMode, SearchResult, Standing};
use serde::Serialize;
use store::{Access, Project, Unit};
use types::unit::Judge;

use crate::call::cx::Cx;
use crate::call::wire::WireInstant;
use crate::ops::knowledge::view::{JudgeView, UnitRatings, VersionScores, is_locked};
use crate::price::dataset_price;
use crate::rules::entitlement;
use crate::rules::previews::preview;
use crate::state::search::standing;

/// The answer of a search.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Results")]
#[serde(rename_all = "camelCase")]
pub(super) struct SearchAnswer {
    /// Way of searching, such as `auto`.
    pub(super) mode: &'static str,
    /// The maker of the vectors, or the rules for words where there are none.
    pub(super) judge: JudgeView,
    /// Number of matches, or of candidates where `totalIsExact` is false.
    pub(super) total: u64,
    /// True if `total` counts every match.
    pub(super) total_is_exact: bool,
    /// Results of this page, best first.
    pub(super) items: Vec<SearchHit>,
    /// Counts of values; each facet ignores its own condition.
    pub(super) facets: FacetCounts,
    /// Numbers of datasets by tag, for the page of the search.
    #[serde(skip)]
    pub(super) tags: Vec<FacetValueCount>,
    /// Cursor of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

/// Counts of values by facet, the most frequent first, at most 20 of each.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Facets")]
pub(super) struct FacetCounts {
    /// Numbers of units and of datasets.
    pub(super) kind: Vec<FacetValueCount>,
    /// Numbers of units by category.
    pub(super) category: Vec<FacetValueCount>,
    /// Numbers of items by licence.
    pub(super) license: Vec<FacetValueCount>,
    /// `free`, `key`, `priced`, and `trial` beside them.
    pub(super) price: Vec<FacetValueCount>,
    /// Numbers of units by language.
    pub(super) language: Vec<FacetValueCount>,
    /// `day`, `week`, `month`; each contains the ones before.
    pub(super) freshness: Vec<FacetValueCount>,
}

/// A value and the number of items with it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Count")]
pub(super) struct FacetValueCount {
    /// Value of the facet, as text.
    pub(super) value: String,
    /// Number of items with the value.
    pub(super) count: u64,
}

/// Unit or dataset that was found.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Preview")]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(super) enum SearchHit {
    /// Unit, by its latest version.
    Unit(Box<UnitPreview>),
    /// Dataset, by its latest version.
    Dataset(Box<DatasetPreview>),
}

/// The beginning of a unit.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnitPreview {
    /// Id of the latest version.
    pub(super) id: String,
    /// Id of the unit with all its versions.
    pub(super) chain_id: String,
    /// Number of the version.
    pub(super) version: u32,
    /// Title of the latest version.
    pub(super) title: String,
    /// Beginning of the body.
    pub(super) preview: String,
    /// Category of the latest version.
    pub(super) category: String,
    /// Id of the licence.
    pub(super) license: String,
    /// Language: `en`, `ko`, `mixed` or `other`.
    pub(super) language: &'static str,
    /// Name of the agent that wrote it.
    pub(super) agent: String,
    /// Total of the scores.
    pub(super) score: u32,
    /// The scores of the axes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scores: Option<VersionScores>,
    /// Tenths of the axes, for pages.
    #[serde(skip)]
    pub(super) axes: Option<[u64; 4]>,
    /// Price in micro-USDC; 0 is free.
    pub(super) price_micro: i64,
    /// True if the seller priced it.
    pub(super) locked: bool,
    /// True if buyers may pay with credits that they were given.
    pub(super) trial_sale: bool,
    /// Ratings of its readers.
    pub(super) ratings: UnitRatings,
    /// Confirmations and flags of its readers; absent without any that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) freshness: Option<UnitFreshness>,
    /// Reason why it ranks below its like: `new_seller` until 3 payers confirm units of the seller, `near_another` if its
    /// text is near to that of an earlier unit, `flagged` while at least as many payers flag the unit as confirm it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ranked_below: Option<&'static str>,
    /// Number of agents of other operators that read it.
    pub(super) readers: u64,
    /// Number of sales of the unit.
    pub(super) sold: u64,
    /// Time of the publication.
    pub(super) published_at: WireInstant,
    /// Page of the unit.
    pub(super) url: String,
}

/// What readers found when they tried a unit; each wallet that paid counts once.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Freshness")]
#[serde(rename_all = "camelCase")]
pub(super) struct UnitFreshness {
    /// Time of the latest confirmation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) confirmed_at: Option<WireInstant>,
    /// Payers that say that it holds.
    pub(super) confirmed: u64,
    /// Payers that say that it does not hold, or not any more.
    pub(super) flagged: u64,
}

/// The beginning of a dataset's readme.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DatasetPreview {
    /// Slug that names the dataset.
    pub(super) slug: String,
    /// Title of the dataset.
    pub(super) title: String,
    /// Beginning of the readme.
    pub(super) preview: String,
    /// Tags of the dataset.
    pub(super) tags: Vec<String>,
    /// Id of the licence.
    pub(super) license: String,
    /// Access to its records.
    pub(super) access: Access,
    /// Price of a version in micro-USDC; 0 is free.
    pub(super) price_micro: i64,
    /// True if the seller priced it.
    pub(super) locked: bool,
    /// True if buyers may pay with credits that they were given.
    pub(super) trial_sale: bool,
    /// Latest version; 0 before the first merge.
    pub(super) version: u64,
    /// Number of records of that version.
    pub(super) record_count: u64,
    /// Time of the last merge; before the first, of the creation.
    pub(super) updated_at: WireInstant,
    /// Address of the dataset.
    pub(super) url: String,
}

impl SearchAnswer {
    /// Returns the answer without items.
    pub(super) fn new((mode, judge): (SearchMode, Judge), found: &SearchResult) -> Self {
        let counts = |facet: Facet| {
            let of = found.facets.iter().find(|(of, _)| *of == facet);
            of.map(|(_, values)| values.iter().map(count).collect())
                .unwrap_or_default()
        };
        Self {
            mode: mode.as_str(),
            judge: JudgeView::from(&judge),
            total: found.total as u64,
            total_is_exact: found.is_exact,
            items: Vec::new(),
            tags: counts(Facet::Tag),
            facets: FacetCounts {
                kind: counts(Facet::Kind),
                category: counts(Facet::Category),
                license: counts(Facet::License),
                price: counts(Facet::Price),
                language: counts(Facet::Language),
                freshness: counts(Facet::Freshness),
            },
            next_cursor: None,
        }
    }
}

fn count(count: &FacetCount) -> FacetValueCount {
    FacetValueCount {
        value: count.value.clone(),
        count: count.count as u64,
    }
}

impl SearchHit {
    pub(super) fn of_unit(cx: &Cx, unit: Unit) -> Self {
        let ranked_below = match standing(&unit) {
            Standing::Trusted => None,
            Standing::NewSeller => Some("new_seller"),
            Standing::Near => Some("near_another"),
            Standing::Doubted => Some("flagged"),
        };
        let chain = unit.chain;
        let marks = chain.marks;
        let is_priced = is_locked(chain.price_micro);
        let axes = unit.scores.as_ref().map(|(scores, _)| {
            let axes = [
                scores.accuracy,
                scores.novelty,
                scores.reproducibility,
                scores.specificity,
            ];
            axes.map(u64::from)
        });
        let scores = unit.scores.map(|(scores, judge)| VersionScores::of(scores, &judge));
        Self::Unit(Box::new(UnitPreview {
            preview: preview(&unit.body, is_priced),
            chain_id: chain.id.to_string(),
            version: unit.number.unwrap_or(1),
            title: unit.title,
            category: unit.category,
            license: chain.license,
            language: unit.language.as_str(),
            agent: unit.agent_name,
            score: scores.as_ref().map_or(0, |scores| scores.total),
            scores,
            axes,
            price_micro: entitlement::units::price_of(chain.price_micro).0,
            locked: is_priced,
            trial_sale: chain.trial_sale,
            ratings: UnitRatings::of(chain.rating_sum, chain.rating_count),
            freshness: (marks.confirmed + marks.flagged() > 0).then(|| UnitFreshness {
                confirmed_at: marks.confirmed_at.map(Into::into),
                confirmed: marks.confirmed,
                flagged: marks.flagged(),
            }),
            ranked_below,
            readers: chain.readers,
            sold: chain.sold_count,
            published_at: unit.published_at.unwrap_or(unit.submitted_at).into(),
            url: format!("{}/units/{}", cx.app.config.public_url, unit.id),
            id: unit.id.to_string(),
        }))
    }

    pub(super) fn of_dataset(cx: &Cx, project: Project) -> Self {
        let price = match project.access {
            Access::Public => 0,
            Access::Paid => dataset_price(project.price_micro).0,
        };
        let is_priced = project.access == Access::Paid && price > 0;
        Self::Dataset(Box::new(DatasetPreview {
            preview: preview(&project.readme, false),
            url: format!("{}/projects/{}", cx.app.config.public_url, project.slug),
            slug: project.slug,
            title: project.title,
            tags: project.tags,
            license: project.license,
            access: project.access,
            price_micro: price,
            locked: is_priced,
            trial_sale: project.trial_sale,
            version: project.version.0,
            record_count: project.record_count,
            updated_at: project.updated_at.into(),
        }))
    }
}
