//! The review of one version: personal data, copies, meaning, screen, consistency, score.
//!
//! Invariants: a refusal ends the review, and a judge that does not answer holds it. No step falls back to another
//! judge. What an entry says never quotes personal data.

use std::sync::{Arc, OnceLock};

use messages::UnitSubmission;
use operators::gates::{PersonalData, instead_of_personal_data};
use operators::knowledge::{
    Axis, Comparer, ContradictionFinder, CopiedText, EmbeddedText, Embedder, Fingerprint, Likeness, NearestUnit,
    Neighbour, QuantisedVector, Scorer, ScorerAnswer, TextRole,
};
use operators::screen::{Cause, Screen, Screener, Unavailable};
use operators::{GateChain, Reason, Verdict as RowVerdict};
use serde_json::json;
use types::contract::ContractError;
use types::knowledge::{PASS_MARK, UnitText};
use types::unit::{Judge, ReviewEntry, SimilarUnit, UnitResolution, UnitScores};
use types::vocabulary::{ReviewStep, StepOutcome};
use types::{Batch, Clock, Contract, Field, FieldType, Timestamp, UnitId, fault, mutate};

use super::published::Published;
use super::row::Candidate;

/// The cosine from which a judge of like meaning is asked.
const CLOSE: f32 = 0.85;
/// Name of the fixed rule that tells copies by their facts and their meaning.
const FACTS_RULE: &str = "facts-1";

/// The sentence of a hold that belongs to the text.
const UNUSABLE: &str = "The judge answers about other texts, but its answers about this one cannot be used. The unit is \
                        kept and judged again a few times.";

/// The sentence of a hold for time.
const OVERDUE: &str =
    "Judging this text took too long and was given up. The unit is kept and judged again a few times.";

/// The judges of units.
#[derive(Clone, Debug)]
pub struct Judges {
    /// Screeners, the local one first. The first objection counts.
    pub screeners: Vec<Arc<dyn Screener>>,
    /// Finder of figures that contradict each other.
    pub contradictions: Arc<dyn ContradictionFinder>,
    /// Scorer of the four axes of a unit.
    pub scorer: Arc<dyn Scorer>,
    /// Maker of vectors. Meanings are not compared without one.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Judge of units of like meaning. A fixed rule decides without one.
    pub comparer: Option<Arc<dyn Comparer>>,
    /// The second judges, which decide on appeals in place of these.
    pub appeal: Option<Arc<Self>>,
}

/// The verdict of a review.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The version is to be published.
    Pass(Box<Candidate>),
    /// The version was published before.
    Told(UnitResolution),
    /// The version is refused.
    Reject { code: String, message: String },
    /// A judge panicked on the version.
    Panicked,
    /// The version waits, until a time if one is known.
    Hold {
        reason: String,
        resumes_after: Option<Timestamp>,
    },
}

/// Version after its review, with the entries of its steps.
#[derive(Debug)]
pub(super) struct Reviewed {
    pub(super) submission: UnitSubmission,
    pub(super) entries: Vec<ReviewEntry>,
    pub(super) verdict: Verdict,
}

/// The end of a review before its last step.
enum ReviewStop {
    Reject(String, String),
    Hold(Unavailable),
}

/// Returns the hold of a version whose review took too long. It belongs to the text, so it is judged again a few times.
pub(super) fn overdue(submission: UnitSubmission, at: Timestamp) -> Reviewed {
    let cause = Cause::Text;
    let entry = entry(
        ReviewStep::Hold,
        StepOutcome::Held,
        cause.code(),
        OVERDUE.to_owned(),
        at,
    );
    Reviewed {
        submission,
        entries: vec![entry],
        verdict: Verdict::Hold {
            reason: cause.waits_for().to_owned(),
            resumes_after: None,
        },
    }
}

/// Reviews a version, unless its outcome is known already. Its print is put into `print` before anything else is done.
pub(super) async fn review(
    submission: UnitSubmission,
    print: Arc<OnceLock<Fingerprint>>,
    published: Arc<Published>,
    judges: Judges,
    clock: Arc<dyn Clock>,
) -> Reviewed {
    let told = published.outcomes.read().get(&submission.unit).cloned();
    mutate!(Bug::UnitTwice => let told = None);
    if let Some(told) = told {
        return Reviewed {
            submission,
            entries: Vec::new(),
            verdict: Verdict::Told(told),
        };
    }
    let (second, is_appeal) = (judges.appeal.clone(), submission.is_appeal());
    let mut review = UnitReview {
        print: print.get_or_init(|| Fingerprint::of(&submission.text.body)),
        submission: &submission,
        published: &published,
        judges: second.as_deref().filter(|_| is_appeal).unwrap_or(&judges),
        at: clock.now(),
        entries: Vec::new(),
    };
    // Whoever rejected the version does not decide on the appeal: it waits for a worker that has a second judge.
    let reviewed = if is_appeal && second.is_none() {
        Err(ReviewStop::Hold(OUT_OF_ORDER))
    } else {
        review.run().await
    };
    let verdict = match reviewed {
        Ok(candidate) => Verdict::Pass(Box::new(candidate)),
        Err(ReviewStop::Reject(code, message)) => Verdict::Reject { code, message },
        Err(ReviewStop::Hold(unavailable)) => {
            let cause = unavailable.reason;
            let detail = if cause == Cause::Text {
                UNUSABLE.to_owned()
            } else {
                let code = cause.code();
                format!("The judge does not answer ({code}). The unit is kept and judged later.")
            };
            review.add(ReviewStep::Hold, StepOutcome::Held, cause.code(), detail);
            Verdict::Hold {
                reason: cause.waits_for().to_owned(),
                resumes_after: unavailable.resumes_after,
            }
        }
    };
    let entries = review.entries;
    Reviewed {
        submission,
        entries,
        verdict,
    }
}

struct UnitReview<'a> {
    print: &'a Fingerprint,
    submission: &'a UnitSubmission,
    published: &'a Published,
    judges: &'a Judges,
    at: Timestamp,
    entries: Vec<ReviewEntry>,
}

impl UnitReview<'_> {
    async fn run(&mut self) -> Result<Candidate, ReviewStop> {
        fault::point("review.gates");
        fault::crash_on(self.submission.text.body.as_bytes());
        self.rows(
            ReviewStep::PersonalData,
            GateChain::new().gate(PersonalData::new()),
            None,
        )
        .await?;
        let print = self.print;
        self.duplicate(print)?;
        let seen = self.published.units.read().len();
        let (mut vectors, mut near, mut marked) = (Vec::new(), NearestUnit::default(), None);
        if let Some(embedder) = self.judges.embedder.clone() {
            let text = EmbeddedText {
                title: &self.submission.text.title,
                body: &self.submission.text.body,
            };
            let embedded = embedder.embed(&[text], TextRole::Document).await;
            vectors = QuantisedVector::of_each(&embedded.map_err(ReviewStop::Hold)?.concat());
            (near, marked) = self.meaning(print, &vectors, embedder.judge()).await?;
        }
        for (earlier, screener) in self.judges.screeners.clone().into_iter().enumerate() {
            // The step has one entry: that of the screener that ended it.
            if earlier > 0 {
                self.entries.pop();
            }
            let judge = screener.judge();
            let chain = GateChain::new().stage(Arc::new(Screen::new(screener)));
            self.rows(ReviewStep::Screen, chain, Some(judge)).await?;
        }
        self.consistency()?;
        let scored = self
            .judges
            .scorer
            .score(&self.submission.text, &near)
            .await
            .map_err(ReviewStop::Hold)?;
        fault::point("review.asked");
        let judge = self.judges.scorer.judge();
        self.score(&scored, &judge)?;
        fault::point("review.judged");
        Ok(Candidate {
            print: print.clone(),
            vectors,
            near: marked,
            scores: UnitScores::from(scored.axes),
            judge,
            language: scored.language,
            seen,
        })
    }

    fn add(&mut self, step: ReviewStep, outcome: StepOutcome, code: &str, detail: String) -> &mut ReviewEntry {
        self.entries.push(entry(step, outcome, code, detail, self.at));
        let last = self.entries.len() - 1;
        &mut self.entries[last]
    }

    /// Runs a chain over the version as a batch of one row, and adds an entry for each of its reasons, or one that says
    /// that the step passed.
    async fn rows(&mut self, step: ReviewStep, mut chain: GateChain, judge: Option<Judge>) -> Result<(), ReviewStop> {
        let batch = batch(&self.submission.text).map_err(|_constant| ReviewStop::Hold(OUT_OF_ORDER))?;
        let judged = chain.run(batch).await;
        let mut end = None;
        for found in judged.verdicts {
            match found.verdict {
                RowVerdict::Refuse { reasons } => {
                    for reason in reasons {
                        let (code, detail) = reason_text(step, &reason);
                        self.add(step, StepOutcome::Refused, &code, detail.clone())
                            .judge
                            .clone_from(&judge);
                        end.get_or_insert(ReviewStop::Reject(code, detail));
                    }
                }
                RowVerdict::Hold { reason, resumes_after } => {
                    let reason = Cause::of_code(&reason.code);
                    end.get_or_insert(ReviewStop::Hold(Unavailable { reason, resumes_after }));
                }
                RowVerdict::Pass | RowVerdict::Drop { .. } => {}
            }
        }
        if let Some(end) = end {
            return Err(end);
        }
        let detail = match step {
            ReviewStep::PersonalData => "No personal data was found.",
            _ => "Nothing objectionable was found.",
        };
        self.add(step, StepOutcome::Passed, "passed", detail.to_owned()).judge = judge;
        Ok(())
    }

    /// Looks for copies among the published units of other chains.
    fn duplicate(&mut self, print: &Fingerprint) -> Result<(), ReviewStop> {
        let look = self.published.units.read().find_copy(self.submission.chain, print);
        let Some(copy) = look.copy else {
            let detail = format!(
                "At most {:.0} % of the text is in one published text.",
                look.share * 100.0
            );
            self.add(ReviewStep::Duplicate, StepOutcome::Passed, "passed", detail);
            return Ok(());
        };
        let (code, detail, similar) = described(&copy);
        self.add(ReviewStep::Duplicate, StepOutcome::Refused, code, detail.clone())
            .similar = Some(similar);
        Err(ReviewStop::Reject(code.to_owned(), detail))
    }

    /// Compares facts and meaning with the published units of other chains. Returns how near the nearest is, for the scorer,
    /// and the unit that this one is to be marked as near to.
    async fn meaning(
        &mut self,
        print: &Fingerprint,
        vectors: &[QuantisedVector],
        judge: Judge,
    ) -> Result<(NearestUnit, Option<UnitId>), ReviewStop> {
        let (nearest, compared, all) = {
            let units = self.published.units.read();
            let nearest = units.nearest(self.submission.chain, print, vectors);
            (nearest, units.len() - units.count_without_vectors(), units.len())
        };
        // The vectors of older units are made in the background.
        let so_far = if compared < all {
            format!(" Meanings were compared with {compared} of {all} units.")
        } else {
            String::new()
        };
        let Some(nearest) = nearest else {
            let detail = format!("There is no published unit to compare with.{so_far}");
            self.add(ReviewStep::Embedding, StepOutcome::Passed, "passed", detail)
                .judge = Some(judge);
            return Ok((NearestUnit::default(), None));
        };
        let decided = self.compared(&nearest, judge).await.map_err(ReviewStop::Hold)?;
        let (outcome, code) = match decided.likeness {
            Likeness::Copy => (StepOutcome::Refused, "duplicate_meaning"),
            Likeness::Near => (StepOutcome::Passed, "near_unit"),
            Likeness::Distinct => (StepOutcome::Passed, "passed"),
        };
        let detail = format!("{}{so_far}", decided.detail);
        let added = self.add(ReviewStep::Embedding, outcome, code, detail);
        added.judge = Some(decided.judge);
        added.similar = Some(SimilarUnit {
            unit_id: nearest.unit,
            similarity: (f64::from(nearest.cosine) * 100.0).round() / 100.0,
        });
        match decided.likeness {
            Likeness::Copy => Err(ReviewStop::Reject(code.to_owned(), decided.detail)),
            Likeness::Near => Ok((nearest.near(), Some(nearest.unit))),
            Likeness::Distinct => Ok((nearest.near(), None)),
        }
    }

    /// Decides if this version is a copy of the nearest unit: a judge of like meaning, where there is one, else the fixed
    /// rule. A likeness of meaning alone refuses nothing: reports of one template are as alike as copies.
    async fn compared(&self, nearest: &Neighbour, judge: Judge) -> Result<DecidedLikeness, Unavailable> {
        let (cosine, unit) = (nearest.cosine, nearest.unit);
        // Common facts are proof enough; a judge decides what only seems alike.
        let is_close = match nearest.likeness {
            Likeness::Copy => false,
            Likeness::Near => true,
            Likeness::Distinct => cosine >= CLOSE,
        };
        if let Some(comparer) = self.judges.comparer.as_ref().filter(|_| is_close)
            && let Some(compared) = comparer.compare(&self.submission.text, &nearest.near()).await?
        {
            return Ok(DecidedLikeness {
                likeness: match nearest.likeness {
                    _ if !compared.is_distinct => Likeness::Copy,
                    likeness => likeness,
                },
                detail: if compared.is_distinct {
                    format!(
                        "Close to unit {unit} ({cosine:.2}), and judged to add: {}",
                        compared.adds
                    )
                } else {
                    format!("Judged to add nothing to unit {unit}. Say what yours adds.")
                },
                judge: comparer.judge(),
            });
        }
        let detail = match nearest.likeness {
            Likeness::Copy => copied_facts(unit),
            Likeness::Near => {
                format!("Near to unit {unit} ({cosine:.2}): it is published, marked so and ranked below.")
            }
            Likeness::Distinct => {
                let detail = format!(
                    "The nearest published text is {:.0} % alike in meaning.",
                    cosine * 100.0
                );
                return Ok(DecidedLikeness {
                    likeness: Likeness::Distinct,
                    detail,
                    judge,
                });
            }
        };
        Ok(DecidedLikeness {
            likeness: nearest.likeness,
            detail,
            judge: Judge::heuristic(FACTS_RULE),
        })
    }

    /// Looks for figures of the text that contradict each other. Each refuses by itself, whatever the text is worth else.
    fn consistency(&mut self) -> Result<(), ReviewStop> {
        let finder = &self.judges.contradictions;
        let found = finder.contradictions(&self.submission.text, self.submission.submitted_at);
        let judge = Some(finder.judge());
        let mut end = None;
        for detail in found {
            self.add(
                ReviewStep::Consistency,
                StepOutcome::Refused,
                "contradiction",
                detail.clone(),
            )
            .judge
            .clone_from(&judge);
            end.get_or_insert_with(|| ReviewStop::Reject("contradiction".to_owned(), detail));
        }
        if let Some(end) = end {
            return Err(end);
        }
        let detail = "No figures were found that contradict each other.".to_owned();
        self.add(ReviewStep::Consistency, StepOutcome::Passed, "passed", detail)
            .judge = judge;
        Ok(())
    }

    /// Adds the entry of the score.
    fn score(&mut self, scored: &ScorerAnswer, judge: &Judge) -> Result<(), ReviewStop> {
        let total = scored.axes.total();
        let passes = scored.axes.passes();
        let mut detail = format!("Total {total} of 100, {PASS_MARK} is needed.");
        if !passes && !scored.reasons.is_empty() {
            detail.push(' ');
            detail.push_str(&scored.reasons.join(" "));
        } else if !passes {
            let mut axes: Vec<_> = Axis::ALL
                .into_iter()
                .zip(scored.axes.tenths())
                .zip(&scored.fixes)
                .collect();
            axes.sort_by_key(|((_, tenths), _)| *tenths);
            for ((axis, tenths), fix) in axes.into_iter().take(2) {
                let tenths = f64::from(tenths) / 10.0;
                detail.extend([" ", axis.name(), &format!(" {tenths:.1}: "), fix, "."]);
            }
        }
        if let Some(remark) = &scored.remark {
            detail.push(' ');
            detail.push_str(remark);
        }
        let (outcome, code) = if passes {
            (StepOutcome::Passed, "passed")
        } else {
            (StepOutcome::Refused, "score_below_55")
        };
        let added = self.add(ReviewStep::Score, outcome, code, detail.clone());
        added.judge = Some(judge.clone());
        added.scores = Some(UnitScores::from(scored.axes));
        if passes {
            Ok(())
        } else {
            Err(ReviewStop::Reject(code.to_owned(), detail))
        }
    }
}

/// The hold of a review that cannot be run at all.
const OUT_OF_ORDER: Unavailable = Unavailable {
    reason: Cause::Provider,
    resumes_after: None,
};

/// The decision on a version beside the nearest unit.
struct DecidedLikeness {
    likeness: Likeness,
    /// Sentence for the author.
    detail: String,
    judge: Judge,
}

/// Returns the sentence about a unit whose facts a version has. It names and counts none of them: the unit may be one that
/// the author has not paid for.
pub(super) fn copied_facts(unit: UnitId) -> String {
    format!(
        "Most figures and names of the text are in unit {unit}, and the meaning is alike. Submit what is new, or revise that \
         unit if it is yours."
    )
}

/// Builds an entry of a review without judge, scores and similar unit.
pub(super) fn entry(step: ReviewStep, outcome: StepOutcome, code: &str, detail: String, at: Timestamp) -> ReviewEntry {
    ReviewEntry {
        step,
        outcome,
        code: code.to_owned(),
        detail,
        at,
        judge: None,
        scores: None,
        similar: None,
    }
}

/// Returns the code and the sentence of a reason.
fn reason_text(step: ReviewStep, reason: &Reason) -> (String, String) {
    match step {
        ReviewStep::PersonalData => (
            "personal_data".to_owned(),
            format!(
                "`{}` holds {}; expected {}. Remove it or put `{}` in its place, then submit again.",
                reason.path,
                reason.actual,
                reason.expected,
                instead_of_personal_data(&reason.code)
            ),
        ),
        _ => (
            reason.code.clone(),
            format!(
                "Expected {}; found {}. Describe such text instead of including it.",
                reason.expected, reason.actual
            ),
        ),
    }
}

/// Returns a version as a batch of one row.
fn batch(text: &UnitText) -> Result<Batch, ContractError> {
    let field = |name: &str| Field {
        required: true,
        ..Field::new(name, FieldType::String)
    };
    let fields = ["title", "body", "category", "sourceDeclaration"].map(field);
    let contract = Arc::new(Contract::new(fields.to_vec(), false)?);
    let row = json!({
        "title": text.title,
        "body": text.body,
        "category": text.category,
        "sourceDeclaration": text.source_declaration,
    });
    Ok(Batch::decode(&contract, &[row]))
}

/// Returns the code, the sentence and the unit of a copy.
pub(super) fn described(copy: &CopiedText) -> (&'static str, String, SimilarUnit) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share from 0 to 1"
    )]
    let percent = |share: &f64| (share * 100.0).round() as u32;
    let similar = |unit: &UnitId, share: f64| SimilarUnit {
        unit_id: *unit,
        similarity: share,
    };
    match copy {
        CopiedText::Exact(unit) => (
            "duplicate_exact",
            format!("The text is the same as unit {unit}."),
            similar(unit, 1.0),
        ),
        CopiedText::Nearly(unit, share) => (
            "duplicate_near",
            format!(
                "{} % of the text is that of unit {unit}. Submit what is new, say what you measured yourself, or revise \
                 that unit if it is yours.",
                percent(share)
            ),
            similar(unit, *share),
        ),
        CopiedText::Parts(unit, share) => (
            "duplicate_parts",
            format!(
                "{} % of the paragraphs are in published units, such as {unit}.",
                percent(share)
            ),
            similar(unit, *share),
        ),
    }
}
