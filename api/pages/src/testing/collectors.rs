//! Samples of the page of the collectors.

use super::{Texts, ago, ahead, person};
use crate::PageLayout;
use crate::console::{CollectorRow, CollectorRunRow, CollectorState, CollectorsPage};

/// Returns the page of a service without collectors.
pub(super) fn none(chrome: PageLayout) -> CollectorsPage {
    CollectorsPage {
        chrome,
        rows: Vec::new(),
        log: Vec::new(),
    }
}

/// Returns the page with a collector in each state.
pub(super) fn some(texts: &Texts) -> CollectorsPage {
    let run = |state: CollectorState, minutes: i64| CollectorRunRow {
        collector: texts.word.clone(),
        state,
        at: ago(minutes),
        millis: (state != CollectorState::Running).then_some(41_250),
        fetched: 561_204,
        new: if state == CollectorState::Merged { 1_906 } else { 0 },
        known: 559_298,
        refused: 3,
        version: (state == CollectorState::Merged).then_some(418),
        reason: (state == CollectorState::Failed).then(|| texts.text.clone()),
    };
    let states = [
        CollectorState::Running,
        CollectorState::Merged,
        CollectorState::Unchanged,
        CollectorState::Held,
        CollectorState::Failed,
    ];
    let row = |(at, state): (i64, CollectorState)| CollectorRow {
        name: texts.word.clone(),
        dataset: texts.word.clone(),
        title: texts.text.clone(),
        schedule: "7 */6 * * *".to_owned(),
        failures: if state == CollectorState::Failed { 2 } else { 0 },
        next_at: ahead(at * 60 + 20),
        version: Some(418),
        news: vec![296, 311, 0, 1_906],
        last: Some(run(state, at * 90 + 8)),
    };
    CollectorsPage {
        chrome: person("/console/collectors", texts, 3),
        rows: (0..).zip(states).map(row).collect(),
        log: (0..).zip(states).map(|(at, state)| run(state, at * 90 + 8)).collect(),
    }
}
