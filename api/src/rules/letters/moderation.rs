//! Letters about reports and takedowns.
//!
//! Invariant: no letter has the words of a reporter or an owner. They are read in the console, by who may see them.

use std::time::Duration;

use mail::LetterBody;
use store::{DecisionLetters, Digest, Takedown};
use types::vocabulary::{ReportKind, ReportReason, TakedownReason};
use types::{OperatorId, ReportId, TakedownId, Timestamp};

use super::{KIND, LetterDraft, LetterPayload, choice_page, input, minute, to};
use crate::error::ApiError;
use crate::spans::span;
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
pub(super) async fn reported(app: &App, report: ReportId, now: Timestamp) -> Result<Option<LetterDraft>, ApiError> {
    let found = app.store.moderation().report_of(report).await?;
    let Some(email) = found.and_then(|report| report.email) else {
        return Ok(None);
    };
    // The job has no token; it is derived again.
    let token = app.process.links.signer(&app.store, now).await?.report_token(report);
    let base = &app.config.public_url;
    let body = LetterBody::new(format!(
        "You get this because somebody left this address in a report at {base}."
    ))
    .at_a_glance("A person looks at it. Its outcome has a page.")
    .paragraph(format!(
        "Somebody reported an item at {base} and left this address. A person looks at the report. What becomes of it \
             is on this page:"
    ))
    .button("See the report", format!("{base}/reports/{report}?token={token}"))
    .paragraph("Whoever has this address sees that, so keep it.")
    .note("If it was not you, do nothing.");
    Ok(Some(LetterDraft {
        to: email,
        subject: "What becomes of your report",
        body,
    }))
}

/// Returns a letter about reports to an operator; `None` if there is nothing to say any more.
pub(super) async fn addressed(
    app: &App,
    operator: Option<OperatorId>,
    payload: &LetterPayload,
) -> Result<Option<LetterDraft>, ApiError> {
    let to = match (operator, payload) {
        (Some(operator), _) => to(app, operator).await?,
        // The letter to moderators goes to the administrator while there are none.
        (None, LetterPayload::ReportDigest { .. }) => app.config.administrator.clone(),
        (None, _) => None,
    };
    let Some(to) = to else { return Ok(None) };
    let base = &app.config.public_url;
    let found = async |id: &TakedownId| app.store.moderation().takedown(*id).await;
    // The letter waits for some minutes, in which the item may be shown again.
    let still_down = async |id: &TakedownId| {
        let takedown = found(id).await?;
        Ok::<_, ApiError>(takedown.filter(|takedown| takedown.restored_at.is_none()))
    };
    let (subject, body) = match payload {
        LetterPayload::TakenDown { takedown } => {
            let body = still_down(takedown).await?.map(|takedown| owner(base, &takedown));
            ("An item of yours was taken down", body)
        }
        LetterPayload::ItemRestored { takedown } => {
            let body = found(takedown).await?.map(|takedown| restored(&takedown));
            ("An item of yours is shown again", body)
        }
        LetterPayload::BoughtTakenDown { takedown } => {
            let body = still_down(takedown).await?.map(|takedown| buyer(app, &takedown));
            ("An item that you bought was taken down", body)
        }
        LetterPayload::ReportDigest { from, to: end } => {
            let (from, end) = (Timestamp::from_micros(*from), Timestamp::from_micros(*end));
            ("Reports to decide", reports(app, base, from, end).await?)
        }
        _ => return Ok(None),
    };
    Ok(body.map(|body| LetterDraft { to, subject, body }))
}

/// Returns an item in words.
fn item(takedown: &Takedown) -> String {
    let kind = words(takedown.kind);
    format!("{kind} {}", takedown.named)
}

const fn words(kind: ReportKind) -> &'static str {
    match kind {
        ReportKind::Unit => "write-up",
        ReportKind::Dataset => "dataset",
        ReportKind::Comment => "comment",
        ReportKind::Review => "review",
        ReportKind::Topic => "request",
        ReportKind::Agent => "agent",
    }
}

fn owner(base: &str, takedown: &Takedown) -> LetterBody {
    let mut body = LetterBody::new("You get this because you own the item.")
        .at_a_glance(format!("Reason: {}. You can answer.", takedown.reason))
        .paragraph(
            "A person looked at a report and took this down until it is decided. Nothing comes down by itself. \
             Nobody sees it while this is checked.",
        )
        .facts([
            ("Item", item(takedown)),
            ("Reason", takedown.reason.to_string()),
            ("Since", minute(takedown.at)),
        ]);
    if let Some(note) = &takedown.note {
        body = body.heading("What the moderator says").quote(note);
    }
    body.heading("What you can do")
        .paragraph(
            "Say what the report gets wrong, or what you have changed. A person reads it, and the item comes back if \
             you are right.",
        )
        .button("Answer", format!("{base}/console/moderation?tab=own"))
        .note("Or reply to this e-mail.")
        .always_sent()
}

fn restored(takedown: &Takedown) -> LetterBody {
    LetterBody::new("You get this because you own the item.")
        .at_a_glance("It is as it was before.")
        .paragraph("This item of yours is shown again, as it was:")
        .facts([("Item", item(takedown))])
        .always_sent()
}

fn buyer(app: &App, takedown: &Takedown) -> LetterBody {
    let body = LetterBody::new("You get this because you bought the item.")
        .at_a_glance(format!("Reason: {}.", takedown.reason))
        .paragraph("This item, which you bought, was taken down:")
        .facts([("Item", item(takedown)), ("Reason", takedown.reason.to_string())]);
    let body = if TakedownReason::from(takedown.reason).is_kept() {
        body.paragraph("You keep reading what you bought. It is not sold any more, and its discussion is closed.")
    } else {
        let window = span(app.pay.dispute_window_seconds.into());
        body.paragraph(format!(
            "For this reason nobody reads it meanwhile, buyers included. If you hold a copy, look at it in the light \
             of the reason. Until a sale is {window} old, a dispute can give its price back: its receipt has a link. \
             Or reply to this e-mail."
        ))
    };
    body.chosen_at(choice_page(app))
}

/// Returns the reports and answers of a time that nobody has decided; `None` if there is none.
async fn reports(app: &App, base: &str, from: Timestamp, to: Timestamp) -> Result<Option<LetterBody>, ApiError> {
    let moderation = app.store.moderation();
    let (counts, answers) = tokio::try_join!(
        moderation.reports_open_between(from, to),
        moderation.answers_between(from, to)
    )?;
    // Everything was decided before the time of the letter.
    if counts.is_empty() && answers == 0 {
        return Ok(None);
    }
    let line = |kind: ReportKind, reason: ReportReason, count: u64| format!("{count} x {}: {reason}", words(kind));
    let mut lines: Vec<_> = counts
        .iter()
        .map(|count| line(count.kind, count.reason, count.count))
        .collect();
    if answers > 0 {
        lines.push(format!("{answers} x answer of an owner"));
    }
    Ok(Some(
        LetterBody::new("You get this because you decide about reports.")
            .paragraph(format!("Between {} and {} there came:", minute(from), minute(to)))
            .items(lines)
            .button("Decide", format!("{base}/console/moderation"))
            .chosen_at(choice_page(app)),
    ))
}
