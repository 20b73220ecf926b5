//! The form in which an index keeps the key and the facts of a document.
//!
//! Invariant: what is written is read back equal. Anything else is no facts, and the index is built anew.

use types::Timestamp;
use types::vocabulary::Language;

use crate::document::{DocumentFacts, DocumentKey, Price, Standing};

/// What stands between two values. No value has one: ids, categories, licences and tags are single lines.
const SEPARATOR: char = '\n';
/// Separator of two tags, which have none: a tag has no control character.
const TAG_SEPARATOR: char = '\u{1f}';

/// Returns a key and facts as text.
pub(crate) fn encoded(key: &DocumentKey, facts: &DocumentFacts) -> String {
    let trial_sale = if facts.trial_sale { "trial" } else { "" };
    let values = [
        key.kind.as_str(),
        &key.id,
        facts.category.as_deref().unwrap_or_default(),
        &facts.license,
        facts.language.map_or("", Language::as_str),
        facts.price.as_str(),
        trial_sale,
        &facts.published_at.micros().to_string(),
        &facts.score.to_string(),
        facts.standing.as_str(),
        &facts.price_micro.to_string(),
        &facts.tags.join(&TAG_SEPARATOR.to_string()),
    ];
    values.join(&SEPARATOR.to_string())
}

/// Reads what [`encoded`] wrote.
pub(crate) fn decoded(text: &str) -> Option<(DocumentKey, DocumentFacts)> {
    let mut values = text.split(SEPARATOR);
    let mut next = || values.next();
    let key = DocumentKey {
        kind: next()?.parse().ok()?,
        id: next()?.to_owned(),
    };
    let facts = DocumentFacts {
        category: next().filter(|value| !value.is_empty()).map(str::to_owned),
        license: next()?.to_owned(),
        language: match next()? {
            "" => None,
            language => Some(language.parse().ok()?),
        },
        price: match next()? {
            "free" => Price::Free,
            "key" => Price::WithKey,
            "priced" => Price::Priced,
            _ => return None,
        },
        trial_sale: match next()? {
            "" => false,
            "trial" => true,
            _ => return None,
        },
        published_at: Timestamp::from_micros(next()?.parse().ok()?),
        score: next()?.parse().ok()?,
        standing: Standing::of(next()?)?,
        price_micro: next()?.parse().ok()?,
        tags: match next()? {
            "" => Vec::new(),
            tags => tags.split(TAG_SEPARATOR).map(str::to_owned).collect(),
        },
    };
    values.next().is_none().then_some((key, facts))
}
