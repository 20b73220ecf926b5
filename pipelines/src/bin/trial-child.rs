//! The child alone: what the tests start to try messages out.

use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use operators::knowledge::{ContradictionFinder, NearestUnit, Scorer, ScorerAnswer};
use operators::screen::{LocalScreener, Unavailable};
use pipelines::isolation::child;
use pipelines::knowledge::Judges;
use types::Timestamp;
use types::knowledge::{Axes, UnitText};
use types::unit::Judge;
use types::vocabulary::Language;

/// A judge that finds every unit good.
#[derive(Debug)]
struct Kind;

#[async_trait]
impl Scorer for Kind {
    fn judge(&self) -> Judge {
        Judge::heuristic("kind")
    }

    async fn score(&self, _: &UnitText, _: &NearestUnit) -> Result<ScorerAnswer, Unavailable> {
        Ok(ScorerAnswer {
            axes: Axes::of_tenths([70; 4]),
            fixes: ["", "", "", ""].map(ToOwned::to_owned),
            reasons: Vec::new(),
            language: Language::English,
            remark: None,
        })
    }
}

impl ContradictionFinder for Kind {
    fn judge(&self) -> Judge {
        Judge::heuristic("kind")
    }

    fn contradictions(&self, _: &UnitText, _: Timestamp) -> Vec<String> {
        Vec::new()
    }
}

fn main() -> ExitCode {
    child::run(Judges {
        screeners: vec![Arc::new(LocalScreener)],
        contradictions: Arc::new(Kind),
        scorer: Arc::new(Kind),
        embedder: None,
        comparer: None,
        appeal: None,
    })
}
