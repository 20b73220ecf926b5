//! The child alone: what the tests start to try messages out.

use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use operators::knowledge::{NearestUnit, Scorer, ScorerAnswer};
use operators::screen::{LocalScreener, Unavailable};
use pipelines::isolation::child;
use pipelines::knowledge::Judges;
use types::knowledge::{Axes, UnitText};
use types::unit::Judge;
use types::vocabulary::Language;

/// A scorer that finds every unit good.
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
            language: Language::English,
            remark: None,
        })
    }
}

fn main() -> ExitCode {
    child::run(Judges {
        screeners: vec![Arc::new(LocalScreener)],
        scorer: Arc::new(Kind),
        embedder: None,
        comparer: None,
        appeal: None,
    })
}
