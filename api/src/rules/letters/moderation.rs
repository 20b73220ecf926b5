//! Letters about reports and takedowns.
//!
//! Invariant: no letter has the words of a reporter or an owner. They are read in the console, by who may see them.

use std::time::Duration;

use store::{DecisionLetters, Digest, Takedown};
use types::vocabulary::{ReportKind, ReportReason, TakedownReason};
use types::{OperatorId, ReportId, TakedownId, Timestamp};

use super::{Addressed, KIND, LetterPayload, input, minute, quoted, to};
use crate::error::ApiError;
use crate::state::app::App;

/// Time between two letters to a moderator.
const DIGEST: Duration = Duration::from_mins(15);

/// Returns the letter that tells moderators of what happens at `now`: one at the end of each quarter of an hour.
pub fn digest(now: Timestamp) -> Digest {
    let length = i64::try_from(DIGEST.as_micros()).unwrap_or(i64::MAX);
    // All reports of a slot share one letter, so a flood of reports is no flood of letters.
    let slot = now.micros().div_euclid(length);
    let (from, to) = (slot * length, (slot + 1) * length);
    Digest {
        slot,
        kind: KIND.to_owned(),
        payload: input(&LetterPayload::ReportDigest { from, to }),
        due_at: Timestamp::from_micros(to),
    }
}

/// Returns the letters of a takedown.
pub fn decision(takedown: TakedownId) -> DecisionLetters {
    DecisionLetters {
        kind: KIND.to_owned(),
        owner: input(&LetterPayload::TakenDown { takedown }),
        buyers: input(&LetterPayload::BoughtTakenDown { takedown }),
        wait: Duration::ZERO,
    }
}

/// Returns the letter with the address of the outcome to the address that a reporter left; `None` if it left none.
pub(super) async fn reported(app: &App, report: ReportId, now: Timestamp) -> Result<Option<Addressed>, ApiError> {
    let found = app.store.moderation().report_of(report).await?;
    let Some(email) = found.and_then(|report| report.email) else {
        return Ok(None);
    };
    // The job has no token; it is derived again.
    let token = app.process.links.signer(&app.store, now).await?.report_token(report);
    let base = &app.config.public_url;
    let text = format!(
        "Hello,\n\n\
         somebody reported an item at {base} and left this\n\
         address. A person looks at the report. What becomes of it is at\n\n\
         {base}/reports/{report}?token={token}\n\n\
         Whoever has this address sees that, so keep it. If it was not you, do\n\
         nothing.\n"
    );
    Ok(Some((email, "What becomes of your report", text)))
}

/// Returns a letter about reports to an operator; `None` if there is nothing to say any more.
pub(super) async fn addressed(
    app: &App,
    operator: Option<OperatorId>,
    payload: &LetterPayload,
) -> Result<Option<Addressed>, ApiError> {
    let to = match (operator, payload) {
        (Some(operator), _) => to(app, operator).await?,
        // The letter to moderators goes to the administrator while there are none.
        (None, LetterPayload::ReportDigest { .. }) => app.config.administrator.clone(),
        (None, _) => None,
    };
    let Some(to) = to else { return Ok(None) };
    let base = &app.config.public_url;
    let found = async |id: &TakedownId| app.store.moderation().takedown(*id).await;
    Ok(match payload {
        LetterPayload::TakenDown { takedown } => {
            let found = found(takedown).await?;
            found.map(|takedown| (to, "An item of yours was taken down", owner(base, &takedown)))
        }
        LetterPayload::ItemRestored { takedown } => {
            let found = found(takedown).await?;
            found.map(|takedown| (to, "An item of yours is shown again", restored(base, &takedown)))
        }
        LetterPayload::BoughtTakenDown { takedown } => {
            let found = found(takedown).await?;
            found.map(|takedown| (to, "An item that you bought was taken down", buyer(base, &takedown)))
        }
        LetterPayload::ReportDigest { from, to: end } => {
            let (from, end) = (Timestamp::from_micros(*from), Timestamp::from_micros(*end));
            let text = reports(app, base, from, end).await?;
            text.map(|text| (to, "Reports to decide", text))
        }
        _ => None,
    })
}

/// Returns an item in words.
fn item(takedown: &Takedown) -> String {
    let kind = words(takedown.kind);
    format!("{kind} {}", takedown.named)
}

const fn words(kind: ReportKind) -> &'static str {
    match kind {
        ReportKind::Unit => "knowledge unit",
        ReportKind::Dataset => "dataset",
        ReportKind::Comment => "comment",
        ReportKind::Review => "review",
        ReportKind::Topic => "request",
        ReportKind::Agent => "agent",
    }
}

fn owner(base: &str, takedown: &Takedown) -> String {
    let note = takedown.note.as_deref();
    let note = note.map(|note| format!("What the moderator says:\n\n{}\n\n", quoted(note)));
    format!(
        "Hello,\n\n\
         a person has looked at a report and has taken an item of yours at\n\
         {base} down:\n\n\
         {}\n\n\
         The reason: {}.\n\n\
         {}Nobody sees it while this is checked. To answer, sign in and open\n\
         {base}/console/moderation\n\n\
         Say what the report gets wrong, or what you have changed. A person\n\
         reads it, and the item comes back if you are right.\n",
        quoted(&item(takedown)),
        takedown.reason,
        note.unwrap_or_default(),
    )
}

fn restored(base: &str, takedown: &Takedown) -> String {
    format!(
        "Hello,\n\n\
         an item of yours at {base} is shown again, as it was:\n\n\
         {}\n",
        quoted(&item(takedown))
    )
}

fn buyer(base: &str, takedown: &Takedown) -> String {
    let kept = TakedownReason::from(takedown.reason).is_kept();
    let kept = if kept {
        "You keep reading what you bought. It is not sold any more, and its\ndiscussion is closed."
    } else {
        "For this reason nobody reads it meanwhile, buyers included. If you hold\na copy, look at it in the light of the reason. Until a sale is a week\nold, a dispute can give its price back; reply to this letter for one."
    };
    format!(
        "Hello,\n\n\
         an item that you bought at {base} was taken down:\n\n\
         {}\n\n\
         The reason: {}.\n\n\
         {kept}\n",
        quoted(&item(takedown)),
        takedown.reason,
    )
}

/// Returns the reports and answers of a time that nobody has decided; `None` if there is none.
async fn reports(app: &App, base: &str, from: Timestamp, to: Timestamp) -> Result<Option<String>, ApiError> {
    let moderation = app.store.moderation();
    let (counts, answers) = tokio::try_join!(
        moderation.reports_open_between(from, to),
        moderation.answers_between(from, to)
    )?;
    // Everything was decided before the time of the letter.
    if counts.is_empty() && answers == 0 {
        return Ok(None);
    }
    let line = |kind: ReportKind, reason: ReportReason, count: u64| format!("  {count} x {}: {reason}", words(kind));
    let mut lines: Vec<_> = counts
        .iter()
        .map(|count| line(count.kind, count.reason, count.count))
        .collect();
    if answers > 0 {
        lines.push(format!("  {answers} x answer of an owner"));
    }
    Ok(Some(format!(
        "Hello,\n\n\
         between {} and {} there came to\n\
         {base}\n\n\
         {}\n\n\
         Decide at {base}/console/moderation\n",
        minute(from),
        minute(to),
        lines.join("\n")
    )))
}
