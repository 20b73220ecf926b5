//! Overview of the console: first the matters that need the person.

use askama::Template;
use types::ApprovalId;
use types::money::MicroUsdc;

use super::{ActivityRow, ChangeActor, DisputeView, EarnedMoney, SpentMoney};
use crate::allowance::Allowance;
use crate::chart::{Bars, DayCount, RowFlow, SalesDay};
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::number::{counted, grouped};
use crate::spend::CreditBalance;
use crate::time::Instant;
use crate::words::{StateMark, isolate};

/// Page at `GET /console`. Form: `POST /console/steps/hide`.
#[derive(Debug, Template)]
#[template(path = "console/overview.html")]
pub struct OverviewPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Display name of the operator.
    pub operator: String,
    /// Time at which the operator was created.
    pub since: Instant,
    /// Matters that need the person, most urgent first.
    pub attention: Vec<Attention>,
    /// Matters that need nothing of the person: batches that wait, downloads near their limit, requests on the board.
    pub also: Vec<GoodToKnow>,
    /// First steps, while there are some to do.
    pub steps: Option<FirstSteps>,
    /// Credits of the account.
    pub credits: CreditBalance,
    /// Purchases with credits in 30 days.
    pub spent: SpentMoney,
    /// Shares of sales.
    pub earned: EarnedMoney,
    /// Bytes sent in the UTC month, and those that may be.
    pub egress: Allowance,
    /// Bytes stored, and those that may be.
    pub storage: Allowance,
    /// Contributions to public datasets of the UTC day.
    pub contributions: Allowance,
    /// Points of all agents of the operator.
    pub points: i64,
    /// Number of active agents, and the most there may be.
    pub agents: Allowance,
    /// Number of datasets that the operator maintains.
    pub datasets: u64,
    /// Number of records in them.
    pub records: u64,
    /// Rows of the last 24 hours, check by check.
    pub flow: RowFlow,
    /// Contributions of the last 14 days, oldest first.
    pub days: Vec<DayCount>,
    /// Sales of the last 14 days, oldest first, days without one too.
    pub sales: Vec<SalesDay>,
    /// Latest rows of the trail, repeated ones as one.
    pub events: Vec<EventGroup>,
}

impl OverviewPage {
    fn bars(&self) -> Bars {
        Bars::of_contributions(&self.days)
    }

    fn sold(&self) -> Bars {
        Bars::of_sales(&self.sales)
    }

    /// Returns true for a person who has just come.
    fn is_new(&self) -> bool {
        self.steps.is_some_and(|steps| !steps.has_agent && !steps.has_item)
    }

    /// Returns the points with separators.
    fn points(&self) -> String {
        let sign = if self.points < 0 { "−" } else { "" };
        format!("{sign}{}", grouped(self.points.unsigned_abs()))
    }
}

/// First steps of a new account.
#[derive(Clone, Copy, Debug)]
pub struct FirstSteps {
    /// Time at which the e-mail address was confirmed.
    pub confirmed_at: Option<Instant>,
    /// True if there is an agent.
    pub has_agent: bool,
    /// True if something was bought or published.
    pub has_item: bool,
    /// True if there is a payout address, in force or not.
    pub has_address: bool,
}

impl FirstSteps {
    const fn all(self) -> [bool; 4] {
        [
            self.confirmed_at.is_some(),
            self.has_agent,
            self.has_item,
            self.has_address,
        ]
    }

    /// Returns the number of steps that are done.
    fn done(&self) -> usize {
        self.all().into_iter().filter(|done| *done).count()
    }

    /// Returns the class of a step, from 0: done, the next one, or neither.
    fn class(&self, step: usize) -> &'static str {
        let all = self.all();
        let next = all.iter().position(|done| !done);
        match all.get(step) {
            Some(true) => "done",
            _ if next == Some(step) => "now",
            _ => "",
        }
    }
}

/// Matter that needs nothing of the person, in one line.
#[derive(Clone, Debug)]
pub struct GoodToKnow {
    /// Sentence about the matter, without a full stop.
    pub what: String,
    /// Page about it.
    pub href: String,
}

impl GoodToKnow {
    /// Batch or upload that waits to be judged.
    pub fn held(id: &str, dataset: &str, records: u64, resumes_at: Option<Instant>) -> Self {
        let again = match resumes_at {
            Some(at) => format!("goes on at about {} by itself", at.text("%H:%M UTC")),
            None => "goes on by itself".to_owned(),
        };
        Self {
            what: format!(
                "A batch of {} rows for {} waits to be judged and {again}",
                grouped(records),
                isolate(dataset)
            ),
            href: format!("/console/contributions/{id}"),
        }
    }

    /// Downloads of which little is left this month.
    pub fn downloads(egress: &Allowance) -> Self {
        Self {
            what: format!("Downloads are at {} % of what this month may have", egress.share()),
            href: "/console/quota".to_owned(),
        }
    }

    /// Request on the board that an item of the operator may answer.
    pub fn request(id: &str, title: &str) -> Self {
        Self {
            what: format!("Somebody asks for {}; an item of yours may be it", isolate(title)),
            href: format!("/requests/{id}"),
        }
    }
}

/// Rows of the trail that say the same of a day.
#[derive(Clone, Debug)]
pub struct EventGroup {
    /// Time of the first.
    pub from: Instant,
    /// Time of the last.
    pub to: Instant,
    /// Number of rows.
    pub count: u64,
    /// The latest row.
    pub row: ActivityRow,
    /// True for the first group of its day in the list.
    pub begins_day: bool,
}

impl EventGroup {
    /// Groups rows, newest first, by day, actor, operation and subject; at most `most` groups.
    pub fn of(rows: Vec<ActivityRow>, most: usize) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for row in rows {
            let day = |at: Instant| at.text("%Y-%m-%d");
            let same = groups.iter_mut().find(|group| {
                day(group.to) == day(row.at)
                    && group.row.actor == row.actor
                    && group.row.operation == row.operation
                    && group.row.subject == row.subject
            });
            if let Some(group) = same {
                group.from = row.at;
                group.count += 1;
                continue;
            }
            let begins_day = groups.last().is_none_or(|last| day(last.to) != day(row.at));
            groups.push(Self {
                from: row.at,
                to: row.at,
                count: 1,
                row,
                begins_day,
            });
        }
        groups.truncate(most);
        groups
    }

    /// Returns the times of the first and the last, such as `08:02 to 11:21`.
    fn times(&self) -> String {
        let time = |at: Instant| at.text("%H:%M");
        if self.from == self.to {
            time(self.to)
        } else {
            format!("{} to {}", time(self.from), time(self.to))
        }
    }

    /// Returns the subject, unless it is an id that says nothing to a person.
    fn subject(&self) -> Option<&str> {
        self.row.subject.as_deref().filter(|_subject| !self.row.is_id())
    }
}

/// Matter that needs the person.
#[derive(Clone, Debug)]
pub struct Attention {
    /// Class of the word.
    pub mark: StateMark,
    /// Word that names the kind of matter.
    pub word: String,
    /// Matter in one sentence.
    pub what: String,
    /// Consequence and next step.
    pub detail: String,
    /// Page to act on.
    pub href: String,
    /// Words of the link to it.
    pub action: String,
    /// Time at which it began.
    pub since: Instant,
}

impl Attention {
    /// Claim that waits for the approval of the person.
    pub fn claim(agent: &str, since: Instant, expires_at: Instant) -> Self {
        Self {
            mark: StateMark::Hold,
            word: "wants to join".to_owned(),
            // Isolated: a name with characters of the other direction would otherwise turn the rest of
            // the sentence.
            what: format!("An agent that calls itself {} wants to join", isolate(agent)),
            detail: format!("Approve it before {}, or it expires.", expires_at.plain()),
            href: "/console/agents".to_owned(),
            action: "Review".to_owned(),
            since,
        }
    }

    /// Purchase of an agent that waits for the person's yes.
    pub fn approval(
        id: ApprovalId,
        agent: &str,
        title: &str,
        price: MicroUsdc,
        since: Instant,
        expires_at: Instant,
    ) -> Self {
        Self {
            mark: StateMark::Hold,
            word: "asks to spend".to_owned(),
            what: format!("{} wants to buy {} for ${price}", isolate(agent), isolate(title)),
            detail: format!(
                "In test USDC, above what it may spend without asking. Decide before {}.",
                expires_at.plain()
            ),
            href: format!("/console/approvals/{id}"),
            action: "Decide".to_owned(),
            since,
        }
    }

    /// Reports and answers of owners that wait for the staff.
    pub fn reports(open: u64, answers: u64, now: Instant) -> Self {
        let what = match (open, answers) {
            (open, 0) => counted(open, "report waits", "reports wait"),
            (0, answers) => counted(answers, "answer of an owner waits", "answers of owners wait"),
            (open, answers) => format!(
                "{} and {} wait",
                counted(open, "report", "reports"),
                counted(answers, "answer of an owner", "answers of owners")
            ),
        };
        Self {
            mark: StateMark::Hold,
            word: "to decide".to_owned(),
            what: format!("{what} for a decision"),
            detail: "Personal data first, then the oldest. Whoever decides first decides.".to_owned(),
            href: "/console/moderation".to_owned(),
            action: "Open the desk".to_owned(),
            since: now,
        }
    }

    /// Item of the operator that is down and unanswered.
    pub fn takedown(title: &str, reason: &str, since: Instant) -> Self {
        Self {
            mark: StateMark::Bad,
            word: "taken down".to_owned(),
            what: format!("{} was taken down for {reason}", isolate(title)),
            detail: "Nobody sees it while it is checked. Say what the report gets wrong, or what you changed."
                .to_owned(),
            href: "/console/moderation?tab=own".to_owned(),
            action: "Answer".to_owned(),
            since,
        }
    }

    /// Earnings that nothing can be paid out of, since there is no address.
    pub fn payout(ready: MicroUsdc, now: Instant) -> Self {
        Self {
            mark: StateMark::Hold,
            word: "payout".to_owned(),
            what: "Say where your earnings go".to_owned(),
            detail: format!("${ready} in test USDC is ready. Without an address nothing is ever paid out."),
            href: "/console/money#payout".to_owned(),
            action: "Enter an address".to_owned(),
            since: now,
        }
    }

    /// Batch that no worker could process.
    pub fn dead(id: &str, dataset: &str, at: Instant) -> Self {
        Self {
            mark: StateMark::Bad,
            word: "failed".to_owned(),
            what: format!("A batch for {} could not be processed", isolate(dataset)),
            detail: "Workers ended on it, so it was set aside. Send it again in smaller pieces.".to_owned(),
            href: format!("/console/contributions/{id}"),
            action: "See reason".to_owned(),
            since: at,
        }
    }

    /// Letter that could not be sent.
    pub fn letter(error: &str, at: Instant) -> Self {
        Self {
            mark: StateMark::Bad,
            word: "e-mail".to_owned(),
            what: "An e-mail to you could not be sent".to_owned(),
            detail: error.to_owned(),
            href: "/console/activity".to_owned(),
            action: "See e-mails".to_owned(),
            since: at,
        }
    }
}

impl Attention {
    /// Dispute of a sale that waits for the answer of the person.
    pub fn dispute(dispute: &DisputeView) -> Self {
        let due = dispute.due.map(|due| Instant(due.micros()).plain()).unwrap_or_default();
        Self {
            mark: StateMark::Bad,
            word: "dispute".to_owned(),
            what: format!("A buyer disputes {}", isolate(dispute.shown_title())),
            detail: format!("Answer, or give ${} back, until {due}.", dispute.price),
            href: format!("/console/disputes/{}", dispute.id),
            action: "Answer".to_owned(),
            since: Instant(dispute.opened_at.micros()),
        }
    }

    /// Dispute of others that waits for the administrator.
    pub fn decision(dispute: &DisputeView) -> Self {
        Self {
            mark: StateMark::Hold,
            word: "dispute".to_owned(),
            what: format!(
                "A dispute about {} waits for a decision",
                isolate(dispute.shown_title())
            ),
            detail: match dispute.reply {
                Some(_) => "The seller has answered.".to_owned(),
                None => "The seller has not answered yet.".to_owned(),
            },
            href: format!("/console/disputes/{}/decide", dispute.id),
            action: "Decide".to_owned(),
            since: Instant(dispute.opened_at.micros()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(minutes: i64, actor: ChangeActor, operation: &str, subject: &str) -> ActivityRow {
        ActivityRow {
            at: Instant(1_795_435_200_000_000 - minutes * 60_000_000),
            actor,
            operation: operation.to_owned(),
            subject: Some(subject.to_owned()),
            request_id: String::new(),
        }
    }

    #[test]
    fn repeated_rows_of_a_day_are_one_line() {
        let agent = || ChangeActor::Agent("tide-gauge".to_owned());
        let rows = vec![
            row(12, agent(), "contribute_records", "tides"),
            row(20, ChangeActor::Person, "create_claim_code", "x"),
            row(72, agent(), "contribute_records", "tides"),
            row(80, agent(), "contribute_records", "quays"),
            row(13 * 60, agent(), "contribute_records", "tides"),
        ];
        let groups = EventGroup::of(rows.clone(), 9);
        let shown: Vec<_> = groups
            .iter()
            .map(|group| (group.times(), group.count, group.subject(), group.begins_day))
            .collect();
        assert_eq!(
            shown,
            [
                ("10:48 to 11:48".to_owned(), 2, Some("tides"), true),
                ("11:40".to_owned(), 1, Some("x"), false),
                ("10:40".to_owned(), 1, Some("quays"), false),
                ("23:00".to_owned(), 1, Some("tides"), true),
            ]
        );
        assert_eq!(EventGroup::of(rows, 1).len(), 1);
        let bought = row(
            1,
            ChangeActor::Person,
            "approve_purchase",
            "019a8d10-2c4e-7f11-8a07-b2f0e5d9c314",
        );
        assert_eq!(EventGroup::of(vec![bought], 9)[0].subject(), None);
    }

    #[test]
    fn the_next_step_is_the_first_that_is_not_done() {
        let steps = FirstSteps {
            confirmed_at: Some(Instant(0)),
            has_agent: false,
            has_item: true,
            has_address: false,
        };
        let classes: Vec<_> = (0..4).map(|step| steps.class(step)).collect();
        assert_eq!((classes, steps.done()), (vec!["done", "now", "done", ""], 2));
    }
}
