//! Application of outcomes to versions.
//!
//! Invariants:
//! - The first terminal outcome of a version's generation decides it, so outcomes may arrive twice, in any order and from
//!   several projectors at once.
//! - A publication, the end of its predecessor, the facts of the chain, the points and the note for the search are one
//!   transaction with the deletion of the outbox row.
//! - A hold rejects nothing, but for one of a text that spoils its answers: their entries count its tries.

use std::time::Duration;

use serde::Serialize;
use sqlx::AnyConnection;
use types::unit::{Judge, UNUSABLE_ANSWER, UnitResolution, UnitScores, is_held_by_its_text};
use types::vocabulary::{ActivityKind, AllowanceKind, ItemKind, Language, PointsKind, ReviewStep, StepOutcome};
use types::{Timestamp, UnitId, fault, mutate};

use super::erase::forget_late_prints;
use super::outbox::remove;
use super::unit_outcome::{UNPROCESSABLE, UnitApplied, UnitOutcome};
use super::{Chain, Knowledge, appeals, lock};
use crate::activity::{self, NewActivity};
use crate::points::{self, NewPoints};
use crate::query::{sql, tx};
use crate::row::{Columns, json_text, replace_nul};
use crate::service_state::{self, Hold};
use crate::writer::Change;
use crate::{Error, allowances};

/// The code of versions about which the judge never gave an answer that counts.
const NO_VERDICT: &str = "no_verdict";
/// The tries of such a version. With the longest wait of the default configuration they take 40 minutes, so a gateway
/// that garbles answers for a while rejects nothing.
const TRIES: i64 = 5;
/// Time over which versions are spread that become due when a hold ends.
const SPREAD: Duration = Duration::from_secs(10);

impl Knowledge<'_> {
    /// Applies outcomes in their order, in one transaction.
    ///
    /// # Errors
    /// No outcome was applied.
    pub async fn apply(&self, outcomes: Vec<UnitOutcome>) -> Result<Vec<UnitApplied>, Error> {
        fault::point("project.unit");
        let retry = self.0.options().waiting_retry;
        let applied = self
            .0
            .write_aside(tx!(async move |cx| {
                let mut applied = Vec::with_capacity(outcomes.len());
                let mut published = Vec::new();
                for outcome in &outcomes {
                    let given_up = given_up(cx, outcome).await?;
                    let is_given_up = given_up.is_some();
                    let outcome = given_up.as_ref().unwrap_or(outcome);
                    let changed = match &outcome.resolution {
                        UnitResolution::Published {
                            scores,
                            judge,
                            language,
                            near,
                            embedder,
                        } => {
                            let marks = (*near, embedder.as_deref());
                            let chain = publish(cx, outcome, (scores, judge), *language, marks).await?;
                            let is_new = chain.is_some();
                            published.extend(chain);
                            is_new
                        }
                        UnitResolution::Rejected { code, message } => reject(cx, outcome, code, message).await?,
                        UnitResolution::Waiting { reason, resumes_after } => {
                            hold(cx, outcome, reason, *resumes_after, retry).await?
                        }
                    };
                    if changed {
                        keep_entries(cx, outcome).await?;
                        appeals::decide(cx, outcome).await?;
                    } else {
                        forget_late_prints(cx, outcome.id, outcome.at).await?;
                    }
                    applied.push(UnitApplied {
                        id: outcome.id,
                        changed,
                        given_up: is_given_up,
                    });
                }
                // By the outcomes as they came and not as they were rewritten: what a hold says
                // about the provider does not depend on the number of its tries.
                note_hold(cx, &outcomes).await?;
                // Last, because it makes other changes of the search wait.
                for new in &published {
                    service_state::search_changed(cx, ItemKind::Unit, &new.item, new.at).await?;
                }
                for new in &published {
                    activity::note(cx, new).await?;
                }
                Ok(Change::Keep(applied))
            }))
            .await?;
        fault::point("project.points");
        Ok(applied)
    }
}

/// Locks the chain of a version and then the version, if it is open and of this generation.
async fn open_chain(cx: &mut AnyConnection, outcome: &UnitOutcome) -> Result<Option<Chain>, Error> {
    let found = sql!("SELECT chain_id FROM units WHERE id = $1", outcome.id)
        .row_if_any(cx)
        .await?;
    let Some(row) = found else { return Ok(None) };
    // The chain comes first, as in every change of a unit, so that changes do not wait for each other in a circle.
    let Some(chain) = lock(cx, row.get("chain_id")?).await? else {
        return Ok(None);
    };
    Ok(is_open(cx, outcome).await?.then_some(chain))
}

/// Locks a version, if it is open and of the outcome's generation. Returns false if it is not.
async fn is_open(cx: &mut AnyConnection, outcome: &UnitOutcome) -> Result<bool, Error> {
    let open = sql!(
        "UPDATE units SET status = status WHERE id = $1 AND generation = $2 AND status IN ('queued', 'waiting')",
        outcome.id,
        outcome.generation
    )
    .run(cx)
    .await?;
    Ok(open > 0)
}

/// Publishes a version. Returns its entry of the feed if the outcome changed something.
async fn publish(
    cx: &mut AnyConnection,
    outcome: &UnitOutcome,
    (scores, judge): (&UnitScores, &Judge),
    language: Language,
    (near, embedder): (Option<UnitId>, Option<&str>),
) -> Result<Option<NewActivity>, Error> {
    let Some(chain) = open_chain(cx, outcome).await? else {
        mutate!(Bug::PointsTwice => super::faults::give_again(cx, outcome, *scores).await?);
        return Ok(None);
    };
    // The unique key allows one published version, so the predecessor ends first.
    sql!(
        "UPDATE units SET status = 'superseded' WHERE chain_id = $1 AND status = 'published'",
        chain.id
    )
    .run(cx)
    .await?;
    let row = sql!(
        "UPDATE units
         SET status = 'published', number = $2, decided_at = $3, published_at = $3, language = $4, accuracy = $5,
             novelty = $6, reproducibility = $7, specificity = $8, total = $9, judge = $10, near_unit = $11,
             embedder = $12, waiting_reason = NULL, resumes_after = NULL
         WHERE id = $1 RETURNING agent_id",
        outcome.id,
        i64::from(chain.versions) + 1,
        outcome.at,
        language,
        scores.accuracy,
        scores.novelty,
        scores.reproducibility,
        scores.specificity,
        scores.total,
        text(judge)?,
        near,
        embedder
    )
    .row(cx)
    .await?;
    sql!(
        "UPDATE chains SET latest_unit = $2, versions = versions + 1, best_score = $3 WHERE id = $1",
        chain.id,
        outcome.id,
        u32::from(scores.total).max(chain.best_score)
    )
    .run(cx)
    .await?;
    let new = NewPoints {
        agent: row.get("agent_id")?,
        operator: chain.operator,
        kind: PointsKind::Published,
        key: outcome.id.to_string(),
        // A revision gets only what it adds over the best version so far.
        points: i64::from(u32::from(scores.total).saturating_sub(chain.best_score)),
        subject: outcome.id.to_string(),
        at: outcome.at,
    };
    points::give(cx, &new).await?;
    remove(cx, &outcome.id.to_string()).await?;
    Ok(Some(NewActivity {
        kind: ActivityKind::Unit,
        item: chain.id.to_string(),
        subject: outcome.id.to_string(),
        agent: Some(new.agent),
        at: outcome.at,
    }))
}

async fn reject(cx: &mut AnyConnection, outcome: &UnitOutcome, code: &str, message: &str) -> Result<bool, Error> {
    let scored = outcome
        .report
        .iter()
        .find_map(|entry| Some((entry.scores?, entry.judge.as_ref()?)));
    // A rejection may come before the score. Then there is none to keep.
    let tenths = |axis: fn(&UnitScores) -> u8| scored.map(|(scores, _)| i64::from(axis(&scores)));
    let closed = sql!(
        "UPDATE units
         SET status = 'rejected', decided_at = $3, reject_code = $4, reject_message = $5, waiting_reason = NULL,
             resumes_after = NULL, accuracy = $6, novelty = $7, reproducibility = $8, specificity = $9, total = $10,
             judge = $11
         WHERE id = $1 AND generation = $2 AND status IN ('queued', 'waiting')
         RETURNING operator_id, submitted_at",
        outcome.id,
        outcome.generation,
        outcome.at,
        replace_nul(code),
        replace_nul(message),
        tenths(|scores| scores.accuracy),
        tenths(|scores| scores.novelty),
        tenths(|scores| scores.reproducibility),
        tenths(|scores| scores.specificity),
        tenths(|scores| scores.total),
        scored.map(|(_, judge)| text(judge)).transpose()?
    )
    .row_if_any(cx)
    .await?;
    let Some(row) = closed else { return Ok(false) };
    // Nobody judged it, so the author gets the submission of that day back.
    if code == UNPROCESSABLE {
        let day = row.get::<Timestamp>("submitted_at")?.day();
        let operator = row.value::<&str>("operator_id")?;
        allowances::give_back(cx, operator, AllowanceKind::Knowledge, day).await?;
    }
    remove(cx, &outcome.id.to_string()).await?;
    Ok(true)
}

async fn hold(
    cx: &mut AnyConnection,
    outcome: &UnitOutcome,
    reason: &str,
    resumes_after: Option<Timestamp>,
    retry: Duration,
) -> Result<bool, Error> {
    let updated = sql!(
        "UPDATE units SET status = 'waiting', waiting_reason = $3, resumes_after = $4
         WHERE id = $1 AND generation = $2 AND status IN ('queued', 'waiting')",
        outcome.id,
        outcome.generation,
        replace_nul(reason),
        resumes_after
    )
    .run(cx)
    .await?;
    if updated == 0 {
        return Ok(false);
    }
    // Without a time in the outcome, the sweeper tries again after a fixed time.
    let next_sweep = resumes_after.unwrap_or_else(|| outcome.at.plus(retry));
    sql!(
        "UPDATE unit_outbox SET attempts = 0, next_sweep = $2 WHERE unit_id = $1",
        outcome.id,
        next_sweep
    )
    .run(cx)
    .await?;
    Ok(true)
}

/// Returns the rejection of a version whose last try this hold was.
async fn given_up(cx: &mut AnyConnection, outcome: &UnitOutcome) -> Result<Option<UnitOutcome>, Error> {
    if outcome.resolution.is_terminal() || !is_held_by_its_text(&outcome.report) {
        return Ok(None);
    }
    // The lock makes the count exact: another projector may be keeping the entry of an earlier try.
    if !is_open(cx, outcome).await? {
        return Ok(None);
    }
    // The entries of the holds are the count. This outcome may have come before.
    let row = sql!(
        "SELECT COUNT(*) AS tries FROM unit_validations
         WHERE unit_id = $1 AND code = $2 AND entry LIKE $3 AND entry <> $4",
        outcome.id,
        UNUSABLE_ANSWER,
        format!("{}:%", outcome.generation),
        held_by_text(outcome)
    )
    .row(cx)
    .await?;
    if row.get::<i64>("tries")? < TRIES - 1 {
        return Ok(None);
    }
    let message = format!(
        "The judging model answers about other texts, but in {TRIES} tries it gave no answer about this one that could \
         be used. Leave out what may confuse a model, such as instructions or text shaped like an answer, or make the \
         text shorter, then submit again."
    );
    let mut given_up = outcome.clone();
    if let Some(last) = given_up.report.last_mut() {
        last.outcome = StepOutcome::Refused;
        NO_VERDICT.clone_into(&mut last.code);
        last.detail.clone_from(&message);
    }
    given_up.resolution = UnitResolution::Rejected {
        code: NO_VERDICT.to_owned(),
        message,
    };
    Ok(Some(given_up))
}

/// Returns the name of the entry of a hold that belongs to the text: each try has its own.
fn held_by_text(outcome: &UnitOutcome) -> String {
    format!("{}:{UNUSABLE_ANSWER}:{}", outcome.generation, outcome.at.micros())
}

async fn keep_entries(cx: &mut AnyConnection, outcome: &UnitOutcome) -> Result<(), Error> {
    let (generation, decided) = (outcome.generation, outcome.at.micros());
    for (position, entry) in (0_i64..).zip(&outcome.report) {
        let name = match &outcome.resolution {
            UnitResolution::Waiting { .. } if entry.code == UNUSABLE_ANSWER => held_by_text(outcome),
            // Any other hold adds one entry a day, however long it is.
            UnitResolution::Waiting { reason, .. } if entry.outcome == StepOutcome::Held => {
                format!("{generation}:{}:{}", replace_nul(reason), outcome.at.day())
            }
            // Steps that passed before a hold are taken again after it.
            UnitResolution::Waiting { .. } => continue,
            // A step can have several reasons.
            _ => format!("{generation}:{decided}:{}:{position}", entry.step),
        };
        sql!(
            "INSERT INTO unit_validations
                 (unit_id, entry, position, at, step, outcome, code, detail, scores, judge, similar_to)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (unit_id, entry) DO NOTHING",
            outcome.id,
            name,
            position,
            entry.at,
            entry.step,
            entry.outcome,
            replace_nul(&entry.code),
            replace_nul(&entry.detail),
            entry.scores.as_ref().map(text).transpose()?,
            entry.judge.as_ref().map(text).transpose()?,
            entry.similar.as_ref().map(text).transpose()?
        )
        .run(cx)
        .await?;
    }
    Ok(())
}

/// Steps that a hold of the models would have stopped: a decision at one of them shows that the hold is over.
const JUDGED: [ReviewStep; 3] = [ReviewStep::Embedding, ReviewStep::Screen, ReviewStep::Score];

/// Keeps the state of the review by what the outcomes tell of holds.
async fn note_hold(cx: &mut AnyConnection, outcomes: &[UnitOutcome]) -> Result<(), Error> {
    let held = outcomes.iter().filter_map(|outcome| match &outcome.resolution {
        // The text of one version holds no other.
        UnitResolution::Waiting { .. } if is_held_by_its_text(&outcome.report) => None,
        UnitResolution::Waiting { reason, resumes_after } if reason != "paused" => Some(Hold {
            reason: replace_nul(reason).into_owned(),
            resumes_after: *resumes_after,
            since: outcome.at,
        }),
        _ => None,
    });
    let held = held.max_by_key(|hold| hold.since);
    let is_judged = |outcome: &&UnitOutcome| {
        let report = &outcome.report;
        // A hold by the text says that the judge answers others.
        is_held_by_its_text(report)
            || outcome.resolution.is_terminal() && report.iter().any(|entry| JUDGED.contains(&entry.step))
    };
    let judged = outcomes.iter().filter(is_judged).map(|outcome| outcome.at).max();
    if held.is_none() && judged.is_none() {
        return Ok(());
    }
    let before = service_state::validation_lock(cx).await?;
    let mut state = before.clone();
    state.decided_at = state.decided_at.max(judged);
    if let Some(held) = held
        && state.hold.as_ref().is_none_or(|hold| hold.since <= held.since)
    {
        state.hold = Some(held);
    }
    // The later of the two decides, also if they arrive in another order.
    let is_over = |hold: &Hold| state.decided_at.is_some_and(|decided| decided >= hold.since);
    if state.hold.as_ref().is_some_and(is_over) {
        state.hold = None;
    }
    if state == before {
        return Ok(());
    }
    let at = judged
        .or_else(|| state.hold.as_ref().map(|hold| hold.since))
        .unwrap_or_default();
    service_state::validation_set(cx, &state, at).await?;
    if before.hold.is_some() && state.hold.is_none() {
        release(cx, at).await?;
    }
    Ok(())
}

/// Makes everything due that waited for the models, in the order of its submission.
async fn release(cx: &mut AnyConnection, now: Timestamp) -> Result<(), Error> {
    let waiting = [
        (
            "SELECT id FROM units WHERE status = 'waiting' AND waiting_reason IN ('budget', 'provider')
             ORDER BY submitted_at, id",
            "UPDATE unit_outbox SET attempts = 0, next_sweep = $2 WHERE unit_id = $1",
        ),
        (
            "SELECT id FROM contributions WHERE status = 'waiting' AND waiting_reason IN ('budget', 'provider')
             ORDER BY submitted_at, id",
            "UPDATE outbox SET attempts = 0, next_sweep = $2 WHERE contribution_id = $1",
        ),
    ];
    for (select, update) in waiting {
        let rows = sql!(select).rows(cx).await?;
        // Spread over some seconds: all at once, they could bring a provider down that has just come
        // back.
        let most = u32::try_from(rows.len()).unwrap_or(u32::MAX).max(1);
        for (place, row) in (0_u32..).zip(&rows) {
            sql!(update, row.get::<String>("id")?, now.plus(SPREAD * place / most))
                .run(cx)
                .await?;
        }
    }
    Ok(())
}

/// Returns a value as JSON.
fn text<T: Serialize>(value: &T) -> Result<String, Error> {
    json_text("unit_validations", value)
}
