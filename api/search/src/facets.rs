//! Conditions on the facts of documents, and how many documents have each value.
//!
//! Invariant: each facet counts the documents that satisfy all conditions but its own.

use std::collections::HashMap;
use std::time::Duration;

use types::Timestamp;
use types::vocabulary::{ItemKind, Language};

use crate::document::{DocumentFacts, DocumentKey, Price};

/// The most values of a facet.
const MAX_FACET_VALUES: usize = 20;
const DAY: Duration = Duration::from_hours(24);

/// A property that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Facet {
    /// Kind of the item: `unit` or `dataset`.
    Kind,
    /// Category of a unit; datasets have none.
    Category,
    /// Identifier of the licence of the item.
    License,
    /// Price class, and `trial` where given credits pay.
    Price,
    /// Language of a unit; datasets have none.
    Language,
    /// Tags of a dataset; units have none.
    Tag,
    /// Greatest ages that the document does not exceed: day, week and month.
    Freshness,
}

impl Facet {
    /// All facets, in the order of answers.
    pub const ALL: [Self; 7] = [
        Self::Kind,
        Self::Category,
        Self::License,
        Self::Price,
        Self::Language,
        Self::Tag,
        Self::Freshness,
    ];
}

/// The greatest age of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaxAge {
    /// Age of at most 24 hours.
    Day,
    /// Age of at most 7 days.
    Week,
    /// Age of at most 30 days.
    Month,
}

impl MaxAge {
    const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// Returns `day`, `week` or `month`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    const fn age(self) -> Duration {
        match self {
            Self::Day => DAY,
            Self::Week => Duration::from_hours(24 * 7),
            Self::Month => Duration::from_hours(24 * 30),
        }
    }
}

/// Conditions on the facts of a document. All that are set must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchFilter {
    /// Kind of the item.
    pub kind: Option<ItemKind>,
    /// Category that a unit must have; excludes datasets.
    pub category: Option<String>,
    /// Tag that a dataset must have; excludes units.
    pub tag: Option<String>,
    /// Language that a unit must have; excludes datasets.
    pub language: Option<Language>,
    /// Identifier of the licence that the item must have.
    pub license: Option<String>,
    /// Price class that the item must have.
    pub price: Option<Price>,
    /// True if it must be sold for given credits.
    pub trial_sale: bool,
    /// Greatest age, and the present.
    pub within: Option<(MaxAge, Timestamp)>,
    /// Least total of the scores.
    pub min_score: u32,
}

impl SearchFilter {
    /// Returns true if a condition that belongs to no facet fails.
    fn excludes(&self, facts: &DocumentFacts) -> bool {
        facts.score < self.min_score
    }

    /// Returns true if all conditions hold.
    pub(crate) fn is_satisfied(&self, key: &DocumentKey, facts: &DocumentFacts) -> bool {
        !self.excludes(facts) && Facet::ALL.into_iter().all(|facet| self.holds(facet, key, facts))
    }

    fn holds(&self, facet: Facet, key: &DocumentKey, facts: &DocumentFacts) -> bool {
        match facet {
            Facet::Kind => self.kind.is_none_or(|kind| kind == key.kind),
            Facet::Category => self.category.is_none() || self.category == facts.category,
            Facet::License => self.license.as_ref().is_none_or(|license| *license == facts.license),
            Facet::Price => {
                self.price.is_none_or(|price| price == facts.price) && (!self.trial_sale || facts.trial_sale)
            }
            Facet::Language => self.language.is_none() || self.language == facts.language,
            Facet::Tag => self.tag.as_ref().is_none_or(|tag| facts.tags.contains(tag)),
            Facet::Freshness => {
                let is_within = |(within, now): (MaxAge, Timestamp)| facts.published_at.plus(within.age()) >= now;
                self.within.is_none_or(is_within)
            }
        }
    }
}

/// The number of documents with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FacetCount {
    /// Value of the facet, such as `unit` or the identifier of a licence.
    pub value: String,
    /// Number of documents that have the value.
    pub count: usize,
}

/// Counts documents while they are filtered.
#[derive(Debug)]
pub(crate) struct FacetCounter<'a> {
    filter: &'a SearchFilter,
    now: Timestamp,
    /// Values that are words of this program, a list for each facet: few, and found sooner than by a hash.
    words: [Vec<(&'static str, usize)>; Facet::ALL.len()],
    /// Values that others choose, of which there may be any number.
    chosen: HashMap<(Facet, &'a str), usize>,
}

impl<'a> FacetCounter<'a> {
    pub(crate) fn new(filter: &'a SearchFilter, now: Timestamp) -> Self {
        Self {
            filter,
            now,
            words: std::array::from_fn(|_| Vec::new()),
            chosen: HashMap::new(),
        }
    }

    /// Counts a document and returns true if it satisfies all conditions.
    pub(crate) fn passes(&mut self, key: &'a DocumentKey, facts: &'a DocumentFacts) -> bool {
        if self.filter.excludes(facts) {
            return false;
        }
        let mut failed = Facet::ALL
            .into_iter()
            .filter(|facet| !self.filter.holds(*facet, key, facts));
        let (first, second) = (failed.next(), failed.next());
        // A document that fails two conditions is counted by no facet: lifting either one alone would
        // not show it. One that fails exactly one is counted by that facet, which shows what its other
        // values would give.
        if second.is_some() {
            return false;
        }
        for facet in Facet::ALL
            .into_iter()
            .filter(|facet| first.is_none_or(|failed| failed == *facet))
        {
            self.count(facet, key, facts);
        }
        first.is_none()
    }

    fn count(&mut self, facet: Facet, key: &'a DocumentKey, facts: &'a DocumentFacts) {
        let words = &mut self.words[facet as usize];
        let mut add = |value: &'static str| match words.iter_mut().find(|(known, _)| *known == value) {
            Some((_, count)) => *count += 1,
            None => words.push((value, 1)),
        };
        match facet {
            Facet::Kind => add(key.kind.as_str()),
            Facet::Category => {
                if let Some(category) = facts.category.as_deref() {
                    *self.chosen.entry((facet, category)).or_default() += 1;
                }
            }
            Facet::License => *self.chosen.entry((facet, &facts.license)).or_default() += 1,
            Facet::Price => {
                add(facts.price.as_str());
                if facts.trial_sale {
                    add("trial");
                }
            }
            Facet::Tag => {
                for tag in &facts.tags {
                    *self.chosen.entry((facet, tag.as_str())).or_default() += 1;
                }
            }
            Facet::Language => facts.language.into_iter().for_each(|language| add(language.as_str())),
            Facet::Freshness => {
                let young = MaxAge::ALL
                    .into_iter()
                    .filter(|within| facts.published_at.plus(within.age()) >= self.now);
                young.for_each(|within| add(within.as_str()));
            }
        }
    }

    /// Returns the values of each facet, the most frequent first.
    pub(crate) fn counted(self) -> Vec<(Facet, Vec<FacetCount>)> {
        let of = |facet: Facet| {
            let chosen = self.chosen.iter().filter(|((of, _), _)| *of == facet);
            let chosen = chosen.map(|((_, value), count)| (*value, *count));
            let mut values: Vec<FacetCount> = self.words[facet as usize]
                .iter()
                .copied()
                .chain(chosen)
                .map(|(value, count)| FacetCount {
                    value: value.to_owned(),
                    count,
                })
                .collect();
            // The value decides between equal counts: a hash map has no order, and pages of one search
            // must agree.
            values.sort_unstable_by(|one, other| other.count.cmp(&one.count).then_with(|| one.value.cmp(&other.value)));
            values.truncate(MAX_FACET_VALUES);
            (facet, values)
        };
        Facet::ALL.into_iter().map(of).collect()
    }
}
