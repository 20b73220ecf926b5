//! The stage that asks a screener, such as a model, whether a record may be published.
//!
//! Invariant: a record passes only if the screener accepts it. No answer, or an answer of another length, holds every
//! record.

mod local;

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use types::unit::{Judge, UNUSABLE_ANSWER};
use types::{Batch, Timestamp};

pub use local::LocalScreener;

use crate::{GateName, Reason, Stage, Verdict, Verdicts};

/// The name of the fixed rules.
const LOCAL: &str = "screen-1";

/// A judge of texts, such as a model. Object safe.
#[async_trait]
pub trait Screener: Debug + Send + Sync {
    /// Returns the name that answers give.
    fn judge(&self) -> Judge {
        Judge::heuristic(LOCAL)
    }

    /// Returns one opinion for each of `records`, in order. A record is the canonical JSON text of its members.
    ///
    /// The texts are data. An implementation must not follow instructions in them.
    async fn screen(&self, records: &[&str]) -> Result<Vec<Opinion>, Unavailable>;

    /// Returns a screener that bounds what one contribution asks, or `None` if this one needs no bound.
    fn for_contribution(&self) -> Option<Arc<dyn Screener>> {
        None
    }
}

/// Returns the screener of one contribution.
pub fn for_contribution(screener: &Arc<dyn Screener>) -> Arc<dyn Screener> {
    screener.for_contribution().unwrap_or_else(|| Arc::clone(screener))
}

/// The opinion of a screener on a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// The record may be published.
    Acceptable,
    /// The record may not be published.
    Objectionable {
        /// Machine-readable rule, such as `prompt_injection`.
        code: String,
        /// The requirement of the rule.
        expected: String,
        /// A description of the violation, without quoting the record.
        actual: String,
    },
}

impl Opinion {
    /// Creates an objection.
    pub fn objectionable(code: &str, expected: &str, actual: &str) -> Self {
        Self::Objectionable {
            code: code.to_owned(),
            expected: expected.to_owned(),
            actual: actual.to_owned(),
        }
    }
}

/// A screener that cannot answer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the screen is unavailable: {}", reason.code())]
pub struct Unavailable {
    /// The cause of the failure.
    pub reason: Cause,
    /// The expected end of the outage, if known.
    pub resumes_after: Option<Timestamp>,
}

/// The cause of a missing answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The model budget is spent.
    Budget,
    /// The provider refuses, does not answer, or answers with nonsense.
    Provider,
    /// The provider answers others, but never about this text in a form that counts.
    Text,
    /// An administrator has paused validation.
    Paused,
}

impl Cause {
    /// Returns `budget`, `provider`, `unusable_answer` or `paused`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Provider => "provider",
            Self::Text => UNUSABLE_ANSWER,
            Self::Paused => "paused",
        }
    }

    /// Returns the cause of a code. One that is unknown is the provider.
    pub fn of_code(code: &str) -> Self {
        let all = [Self::Budget, Self::Text, Self::Paused];
        all.into_iter()
            .find(|cause| cause.code() == code)
            .unwrap_or(Self::Provider)
    }

    /// Returns the reason for which something waits: `budget`, `provider` or `paused`.
    pub const fn waits_for(self) -> &'static str {
        match self {
            Self::Text => Self::Provider.code(),
            other => other.code(),
        }
    }
}

/// A stage that turns the opinions of a [`Screener`] into verdicts.
#[derive(Clone, Debug)]
pub struct Screen {
    screener: Arc<dyn Screener>,
}

impl Screen {
    /// Creates a stage that asks `screener`.
    pub fn new(screener: Arc<dyn Screener>) -> Self {
        Self { screener }
    }
}

#[async_trait]
impl Stage for Screen {
    fn name(&self) -> GateName {
        GateName::SCREEN
    }

    async fn judge(&self, rows: &Batch) -> Verdicts {
        // Canonical JSON is UTF-8, so the copy is never made.
        let text = |row| match std::str::from_utf8(rows.canonical(row)) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(rows.canonical(row)),
        };
        let texts: Vec<_> = (0..rows.len()).map(text).collect();
        let records: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
        match self.screener.screen(&records).await {
            // The pairing of opinions and records is by position, so a wrong count makes all of
            // them useless.
            // Opinions are matched to rows by position.
            Ok(opinions) if opinions.len() == rows.len() => {
                Verdicts::from_exceptions(rows.len(), opinions.into_iter().enumerate().filter_map(refusal))
            }
            Ok(opinions) => {
                let unavailable = Unavailable {
                    reason: Cause::Provider,
                    resumes_after: None,
                };
                let actual = format!("{} opinions on {} records", opinions.len(), rows.len());
                hold(rows.len(), unavailable, &actual)
            }
            Err(unavailable) => hold(rows.len(), unavailable, "none"),
        }
    }
}

/// Converts an opinion to a verdict, unless the record is acceptable.
fn refusal((row, opinion): (usize, Opinion)) -> Option<(usize, Verdict)> {
    match opinion {
        Opinion::Acceptable => None,
        Opinion::Objectionable { code, expected, actual } => {
            let reason = Reason {
                gate: GateName::SCREEN,
                code,
                path: String::new(),
                expected,
                actual,
            };
            Some((row, Verdict::Refuse { reasons: vec![reason] }))
        }
    }
}

/// Holds every row, with the reason that the screener gave.
fn hold(rows: usize, Unavailable { reason, resumes_after }: Unavailable, actual: &str) -> Verdicts {
    let reason = Reason {
        gate: GateName::SCREEN,
        code: reason.code().to_owned(),
        path: String::new(),
        expected: "one opinion per record".to_owned(),
        actual: actual.to_owned(),
    };
    let held = (0..rows).map(|row| {
        (
            row,
            Verdict::Hold {
                reason: reason.clone(),
                resumes_after,
            },
        )
    });
    Verdicts::from_exceptions(rows, held)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::conformance::{batch, ready};

    /// Answers what it was made with.
    #[derive(Debug)]
    struct Says(Result<Vec<Opinion>, Unavailable>);

    #[async_trait]
    impl Screener for Says {
        async fn screen(&self, _: &[&str]) -> Result<Vec<Opinion>, Unavailable> {
            self.0.clone()
        }
    }

    /// Objects to every record, quoting it.
    #[derive(Debug)]
    struct Quotes;

    #[async_trait]
    impl Screener for Quotes {
        async fn screen(&self, records: &[&str]) -> Result<Vec<Opinion>, Unavailable> {
            Ok(records.iter().map(|record| objection(record)).collect())
        }
    }

    fn objection(actual: &str) -> Opinion {
        Opinion::Objectionable {
            code: "spam".to_owned(),
            expected: "no spam".to_owned(),
            actual: actual.to_owned(),
        }
    }

    fn judge(screener: impl Screener + 'static) -> Verdicts {
        let rows = batch(&[json!({"name": "b", "count": 1}), json!({"name": "a"})]);
        ready(Screen::new(Arc::new(screener)).judge(&rows))
    }

    fn held(verdicts: &Verdicts) -> Vec<(usize, &str, Option<Timestamp>)> {
        let hold = |(row, verdict): &'_ (usize, Verdict)| match verdict {
            Verdict::Hold { reason, resumes_after } => (*row, reason.code.clone(), *resumes_after),
            other => panic!("{other:?}"),
        };
        let codes = ["budget", "provider", "unusable_answer", "paused"];
        let named =
            |(row, code, until): (usize, String, _)| (row, *codes.iter().find(|known| **known == code).unwrap(), until);
        verdicts.exceptions().iter().map(hold).map(named).collect()
    }

    #[test]
    fn opinions_meet_their_records() {
        let verdicts = judge(Says(Ok(vec![Opinion::Acceptable, objection("x")])));
        let reason = Reason {
            gate: GateName::SCREEN,
            code: "spam".to_owned(),
            path: String::new(),
            expected: "no spam".to_owned(),
            actual: "x".to_owned(),
        };
        assert_eq!(verdicts.exceptions(), [(1, Verdict::Refuse { reasons: vec![reason] })]);
    }

    #[test]
    fn the_screener_reads_canonical_records() {
        let verdicts = judge(Quotes);
        let actual = |index: usize| match &verdicts.exceptions()[index].1 {
            Verdict::Refuse { reasons } => reasons[0].actual.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            (actual(0).as_str(), actual(1).as_str()),
            (r#"{"count":1,"name":"b"}"#, r#"{"name":"a"}"#)
        );
    }

    #[test]
    fn a_screener_that_is_away_holds_every_record() {
        let until = Some(Timestamp::from_micros(7));
        for (cause, code) in [
            (Cause::Budget, "budget"),
            (Cause::Provider, "provider"),
            (Cause::Text, "unusable_answer"),
            (Cause::Paused, "paused"),
        ] {
            let verdicts = judge(Says(Err(Unavailable {
                reason: cause,
                resumes_after: until,
            })));
            assert_eq!(held(&verdicts), [(0, code, until), (1, code, until)]);
            assert_eq!(Cause::of_code(code), cause);
        }
    }

    #[test]
    fn an_answer_of_another_length_is_not_trusted() {
        for opinions in [vec![], vec![Opinion::Acceptable], vec![objection("x"); 3]] {
            let verdicts = judge(Says(Ok(opinions)));
            assert_eq!(held(&verdicts), [(0, "provider", None), (1, "provider", None)]);
        }
    }
}
