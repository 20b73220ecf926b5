//! Units and datasets as rows of a list.

use pages::{FindHit, MarkedText, MiniScore};
use types::money::MicroUsdc;
use types::vocabulary::ItemKind;

use super::view::{DatasetPreview, SearchHit, UnitPreview};
use crate::ops::page_kit::instant;

/// Words of a search that are marked in what it finds.
const MAX_MARKED_WORDS: usize = 16;

/// Returns the words of a search that tell something, in lower case.
pub(super) fn marked_words(query: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in query.split(|sign: char| !sign.is_alphanumeric()) {
        let word = word.to_lowercase();
        if !word.is_empty() && !models::tokens::is_common(&word) && !words.contains(&word) {
            words.push(word);
        }
    }
    words.truncate(MAX_MARKED_WORDS);
    words
}

/// Returns a price as lists show it.
pub(in crate::ops) fn price(micro: i64) -> String {
    if micro == 0 {
        "Free".to_owned()
    } else {
        format!("${}", MicroUsdc(micro))
    }
}

/// Returns the notes below a price.
fn notes(trial_sale: bool, more: Option<String>) -> Vec<String> {
    let trial = trial_sale.then(|| "trial credit works".to_owned());
    more.into_iter().chain(trial).collect()
}

/// Returns an item as a row, with words marked.
pub(super) fn of(preview: SearchHit, words: &[String]) -> FindHit {
    match preview {
        SearchHit::Unit(unit) => unit_hit(*unit, words),
        SearchHit::Dataset(dataset) => dataset_hit(*dataset, words),
    }
}

fn unit_hit(unit: UnitPreview, words: &[String]) -> FindHit {
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
        Some("near_another") => Some("near another write-up: ranks below".to_owned()),
        Some(_) => Some("doubted by readers: ranks below".to_owned()),
        None => None,
    };
    let confirmed = unit.freshness.as_ref().and_then(|marks| marks.confirmed_at.as_ref());
    let confirmed = confirmed.map(|at| ("confirmed", instant(at.instant())));
    let (happened, at) = confirmed.unwrap_or_else(|| ("published", instant(unit.published_at.instant())));
    FindHit {
        kind: ItemKind::Unit,
        title: MarkedText::new(&unit.title, words),
        href: format!("/units/{}", unit.id),
        category: Some(unit.category),
        slug: None,
        license: unit.license,
        agent: Some(unit.agent),
        text: MarkedText::new(&without_markup(&unit.preview), words),
        score: unit.axes.map(|axes| (unit.score.into(), MiniScore::new(axes))),
        ratings: ratings.or_else(|| Some("not yet rated".to_owned())),
        tags: Vec::new(),
        price: price(unit.price_micro),
        is_locked: unit.locked,
        size: None,
        notes: notes(unit.trial_sale, with_key.then(|| "free with an account".to_owned()))
            .into_iter()
            .chain(below)
            .collect(),
        happened,
        at,
    }
}

/// Returns the words of the beginning of a text in Markdown, without the signs of its tables and code.
fn without_markup(markdown: &str) -> String {
    let is_rule = |word: &str| word.contains("|-") && word.chars().all(|sign| matches!(sign, '|' | '-' | ':'));
    // Only in a table is the line no sign of a command.
    let is_table = markdown.starts_with('|') || markdown.split_whitespace().any(is_rule);
    let mut words = String::new();
    let mut is_cell = false;
    for word in markdown.split_whitespace() {
        if is_table && (word == "|" || is_rule(word)) {
            is_cell = true;
            continue;
        }
        if !words.is_empty() {
            words.push_str(if is_cell { " · " } else { " " });
        }
        is_cell = false;
        words.extend(word.chars().filter(|sign| *sign != '`'));
    }
    words
}

fn dataset_hit(dataset: DatasetPreview, words: &[String]) -> FindHit {
    FindHit {
        kind: ItemKind::Dataset,
        title: MarkedText::new(&dataset.title, words),
        href: format!("/projects/{}", dataset.slug),
        category: None,
        slug: Some(dataset.slug),
        license: dataset.license,
        agent: None,
        text: MarkedText::new(&dataset.preview, words),
        score: None,
        ratings: None,
        tags: dataset.tags,
        price: price(dataset.price_micro),
        is_locked: dataset.locked,
        size: Some((dataset.record_count, dataset.version)),
        notes: notes(dataset.trial_sale, None),
        happened: "updated",
        at: instant(dataset.updated_at.instant()),
    }
}

#[cfg(test)]
mod tests {
    use super::{marked_words, without_markup};

    #[test]
    fn an_excerpt_has_no_signs_of_tables_and_code() {
        let table = "Nine files. | kind | `csv` | |-|-| | bom | ok |";
        assert_eq!(without_markup(table), "Nine files. · kind · csv · bom · ok");
        assert_eq!(without_markup("grep -c x | sort -u"), "grep -c x | sort -u");
    }

    #[test]
    fn common_words_and_repeats_are_not_marked() {
        assert_eq!(marked_words("the Rate of \"rate limits\""), ["rate", "limits"]);
        assert_eq!(marked_words(" … "), Vec::<String>::new());
        assert_eq!(marked_words(&"a1 b2 ".repeat(60)), ["a1", "b2"]);
    }
}
