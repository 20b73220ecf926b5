//! Previews: the beginning of a text that anybody may read.
//!
//! Invariant: a preview of what was sold shows at most 15 % of it, and nothing that is hidden has one.

use async_trait::async_trait;
use operators::knowledge::{Previews, UnitPreview};
use store::Store;
use types::UnitId;

use crate::rules::entitlement::units::ShownStatus;
use types::error::with_causes;

/// The most code points of a preview.
const PREVIEW: usize = 240;
/// The most code points of the beginning on the page of a unit.
const BEGINNING: usize = 600;
/// The share of a body that the preview of a priced unit may have, in percent.
const PRICED_PERCENT: usize = 15;
/// The share of a body that the page of a unit without a price of its own shows, in percent.
const FREE_PERCENT: usize = 50;

/// The previews of the units in the database, for judges.
#[derive(Clone, Debug)]
pub struct StoredPreviews(Store);

impl StoredPreviews {
    /// Creates the previews of a database.
    pub const fn new(store: Store) -> Self {
        Self(store)
    }
}

#[async_trait]
impl Previews for StoredPreviews {
    async fn preview(&self, unit: UnitId) -> Option<UnitPreview> {
        let found = self.0.knowledge().unit(unit).await;
        let unit = found
            .inspect_err(|error| {
                tracing::warn!(
                    error = with_causes(error),
                    "the preview of a published unit cannot be read; a fixed rule compares with it"
                );
            })
            .ok()??;
        let is_shown = matches!(ShownStatus::of(&unit), ShownStatus::Published | ShownStatus::Superseded)
            && unit.chain.erased_at.is_none();
        let is_priced = unit.chain.price_micro.is_some_and(|price| price > 0);
        is_shown.then(|| UnitPreview {
            text: preview(&unit.body, is_priced),
            title: unit.title,
        })
    }
}

/// Returns the beginning of a body on one line: at most 240 code points, of a priced one at most 15 %, cut at a word.
pub(crate) fn preview(body: &str, is_priced: bool) -> String {
    let plain: Vec<&str> = body
        .split_whitespace()
        .filter(|word| !word.starts_with("```"))
        .collect();
    let plain = plain.join(" ");
    let length = body.chars().count();
    let most = if is_priced {
        PREVIEW.min(length * PRICED_PERCENT / 100)
    } else {
        PREVIEW
    };
    let Some((end, _)) = plain.char_indices().nth(most) else {
        return plain;
    };
    let cut = &plain[..end];
    // A text without a space near the end is cut inside a word.
    let is_between = plain[end..].starts_with(' ');
    match cut.rfind(' ').filter(|at| !is_between && *at > end / 2) {
        Some(at) => cut[..at].to_owned(),
        None => cut.trim_end().to_owned(),
    }
}

/// Returns how many code points of a body its page shows to who may not read all of it, of a priced one at most 15 %. The
/// page ends at a block, so it may show fewer.
pub(crate) fn most_of_beginning(body: &str, is_priced: bool) -> usize {
    let percent = if is_priced { PRICED_PERCENT } else { FREE_PERCENT };
    BEGINNING.min(body.chars().count() * percent / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_takes_time_that_is_linear_in_the_body() {
        for is_priced in [true, false] {
            growth::is_linear("a preview", 4_000, |body| growth::consume(preview(body, is_priced)));
        }
    }

    #[test]
    fn a_preview_is_cut_at_a_word_and_a_priced_one_is_shorter() {
        let body = "word ".repeat(100);
        assert!(preview(&body, false).chars().count() <= 240);
        assert!(preview(&body, false).ends_with("word"));
        assert!(preview(&body, true).chars().count() <= 75);
        assert_eq!(preview("short", false), "short");
        assert_eq!(preview("short", true), "");
        assert_eq!(preview(&"가".repeat(300), false).chars().count(), 240);
    }
}
