//! Overview of the console: first the matters that need the person.

use askama::Template;
use types::ApprovalId;
use types::money::MicroUsdc;

use super::{ActivityRow, ChangeActor, ContributionRow};
use crate::chart::{Bars, DayCount, RowFlow};
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::number::{counted, grouped};
use crate::time::Instant;
use crate::words::{StateMark, isolate};

/// Page at `GET /console`.
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
    /// Number of active agents. Without any, the page shows the first steps.
    pub agents: u32,
    /// Most agents that an operator may have.
    pub agent_limit: u32,
    /// Number of datasets that the operator maintains.
    pub datasets: u64,
    /// Number of records in them.
    pub records: u64,
    /// Number of contributions in the last 24 hours.
    pub contributions: u64,
    /// Rows of the last 24 hours, gate by gate.
    pub flow: RowFlow,
    /// Contributions of the last 14 days, oldest first.
    pub days: Vec<DayCount>,
    /// Latest contributions of all datasets.
    pub latest: Vec<ContributionRow>,
    /// Latest rows of the audit trail.
    pub activity: Vec<ActivityRow>,
}

impl OverviewPage {
    fn bars(&self) -> Bars {
        Bars::of_contributions(&self.days)
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
            word: "claim".to_owned(),
            // Isolated: a name with characters of the other direction would otherwise turn the rest of
            // the sentence.
            what: format!("An agent that calls itself {} wants to join", isolate(agent)),
            detail: format!("Approve it before {}, or it expires.", expires_at.plain()),
            href: "/console/agents".to_owned(),
            action: "Review claim".to_owned(),
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
                "{} and {}",
                counted(open, "report", "reports"),
                counted(answers, "answer of an owner waits", "answers of owners wait")
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

    /// Batch or upload that waits to be judged.
    pub fn held(id: &str, dataset: &str, records: u64, since: Instant, resumes_at: Option<Instant>) -> Self {
        let again = match resumes_at {
            Some(at) => format!("it is judged again at about {}", at.plain()),
            None => "it goes on by itself".to_owned(),
        };
        Self {
            mark: StateMark::Hold,
            word: "held".to_owned(),
            what: format!("A batch of {} rows for {} waits", grouped(records), isolate(dataset)),
            detail: format!("Nothing is lost; {again}."),
            href: format!("/console/contributions/{id}"),
            action: "See batch".to_owned(),
            since,
        }
    }

    /// Batch or upload that was rejected.
    pub fn rejected(id: &str, dataset: &str, reason: &str, at: Instant) -> Self {
        Self {
            mark: StateMark::Bad,
            word: "rejected".to_owned(),
            what: format!("A batch for {} was rejected", isolate(dataset)),
            detail: reason.to_owned(),
            href: format!("/console/contributions/{id}"),
            action: "See reason".to_owned(),
            since: at,
        }
    }

    /// Batch that no worker could process.
    pub fn dead(id: &str, dataset: &str, at: Instant) -> Self {
        Self {
            mark: StateMark::Bad,
            word: "dead letter".to_owned(),
            what: format!("A batch for {} could not be processed", isolate(dataset)),
            detail: "Workers ended on it, so it was set aside. Send it again in smaller pieces.".to_owned(),
            href: format!("/console/contributions/{id}"),
            action: "See reason".to_owned(),
            since: at,
        }
    }

    /// Request on the board that an item of the operator may answer.
    pub fn request(id: &str, title: &str, since: Instant) -> Self {
        Self {
            mark: StateMark::Hold,
            word: "request".to_owned(),
            what: format!("Somebody asks for {}", isolate(title)),
            detail: "An item of yours may be what is wanted; an agent of yours can answer with it.".to_owned(),
            href: format!("/requests/{id}"),
            action: "See request".to_owned(),
            since,
        }
    }

    /// Letter that could not be sent.
    pub fn letter(error: &str, at: Instant) -> Self {
        Self {
            mark: StateMark::Bad,
            word: "letter".to_owned(),
            what: "A letter to you could not be sent".to_owned(),
            detail: error.to_owned(),
            href: "/console/activity".to_owned(),
            action: "See letters".to_owned(),
            since: at,
        }
    }
}
