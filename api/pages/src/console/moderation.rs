//! Takedowns of the operator's items, and the desk of the staff: open reports, answers of owners, what is down, and what
//! was decided.
//!
//! Invariant: the desk is rendered for the staff only; the page of an owner has no word of a reporter.

use askama::Template;
use types::vocabulary::{ReportKind, ReportReason};
use types::{OperatorId, ReportId, TakedownId};

use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::form::{Errors as _, FieldError};
use crate::number::grouped;
use crate::time::Instant;

/// Fewest characters of the reason of a decision.
pub const MIN_REASON_CHARS: usize = 20;
/// Most characters of the reason of a decision.
pub const MAX_REASON_CHARS: usize = 2_000;

/// Returns the word of a kind of items on pages.
pub(crate) const fn kind_word(kind: ReportKind) -> &'static str {
    match kind {
        ReportKind::Unit => "write-up",
        ReportKind::Dataset => "dataset",
        ReportKind::Comment => "comment",
        ReportKind::Review => "review",
        ReportKind::Topic => "request",
        ReportKind::Agent => "agent",
    }
}

/// Returns the words of a reason on pages.
pub const fn reason_words(reason: ReportReason) -> &'static str {
    match reason {
        ReportReason::Copyright => "copyright",
        ReportReason::PersonalData => "personal data",
        ReportReason::Unlawful => "unlawful",
        ReportReason::Spam => "spam",
        ReportReason::Inaccurate => "inaccurate",
        ReportReason::Other => "other",
    }
}

/// `GET /console/moderation` of an owner. Form: `POST /console/takedowns/{id}/answer`.
#[derive(Debug, Template)]
#[template(path = "console/moderation.html")]
pub struct ModerationPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Tabs, if the operator is one of the staff.
    pub tabs: Option<ModerationTabs>,
    /// Takedowns of the operator's items that are in force, newest first.
    pub down: Vec<OwnTakedown>,
    /// Takedowns that are over, newest first.
    pub over: Vec<OwnTakedown>,
}

/// Takedown of an own item.
#[derive(Clone, Debug)]
pub struct OwnTakedown {
    /// Id of the takedown.
    pub id: TakedownId,
    /// Kind of the item.
    pub kind: ReportKind,
    /// Title of the item, or its name where it has none.
    pub title: String,
    /// Reason of the takedown.
    pub reason: ReportReason,
    /// Words of the moderator.
    pub note: Option<String>,
    /// Time of the decision.
    pub at: Instant,
    /// Answer of the owner, with its time.
    pub answer: Option<(Instant, String)>,
    /// Time at which the item was shown again, with the moderator's words.
    pub restored: Option<(Instant, Option<String>)>,
}

impl OwnTakedown {
    fn kind_word(&self) -> &'static str {
        kind_word(self.kind)
    }

    fn reason_words(&self) -> &'static str {
        reason_words(self.reason)
    }
}

/// Tab of the desk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModerationTab {
    /// Reports that wait for a decision.
    Open,
    /// Takedowns that their owners answered.
    Answers,
    /// Takedowns in force.
    Down,
    /// Reports that were upheld or dismissed.
    Decided,
    /// Takedowns of the own items.
    Own,
}

impl ModerationTab {
    /// Returns the word of the tab in addresses.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answers => "answers",
            Self::Down => "down",
            Self::Decided => "decided",
            Self::Own => "own",
        }
    }

    /// Returns the tab of a word; that of open reports for any other word.
    pub fn of(word: &str) -> Self {
        [Self::Answers, Self::Down, Self::Decided, Self::Own]
            .into_iter()
            .find(|tab| tab.word() == word)
            .unwrap_or(Self::Open)
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Open => "Open",
            Self::Answers => "Answers to weigh",
            Self::Down => "Down, being checked",
            Self::Decided => "Decided",
            Self::Own => "Your own items",
        }
    }
}

/// Tabs of the desk with their numbers, each up to a thousand.
#[derive(Clone, Copy, Debug)]
pub struct ModerationTabs {
    /// Tab that is open.
    pub here: ModerationTab,
    /// Number of open reports.
    pub open: u64,
    /// Number of takedowns that their owners answered.
    pub answers: u64,
    /// Number of takedowns in force.
    pub down: u64,
    /// Number of decided reports.
    pub decided: u64,
}

/// Tab as it is drawn.
pub(super) struct TabLink {
    pub(super) href: String,
    pub(super) label: &'static str,
    pub(super) count: Option<String>,
    pub(super) here: bool,
}

impl ModerationTabs {
    pub(super) fn links(&self) -> Vec<TabLink> {
        let tabs = [
            (ModerationTab::Open, Some(self.open)),
            (ModerationTab::Answers, Some(self.answers)),
            (ModerationTab::Down, Some(self.down)),
            (ModerationTab::Decided, Some(self.decided)),
            (ModerationTab::Own, None),
        ];
        let link = |(tab, count): (ModerationTab, Option<u64>)| TabLink {
            href: format!("/console/moderation?tab={}", tab.word()),
            label: tab.label(),
            count: count.map(|count| {
                if count < 1_000 {
                    grouped(count)
                } else {
                    "1,000+".to_owned()
                }
            }),
            here: tab == self.here,
        };
        tabs.into_iter().map(link).collect()
    }
}

/// `GET /console/moderation?tab=open`: the queue, and one report with its evidence. Form: `GET
/// /console/reports/{id}/confirm` with `decision` and `note`.
#[derive(Debug, Template)]
#[template(path = "console/reports.html")]
pub struct ReportsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Tabs of the desk.
    pub tabs: ModerationTabs,
    /// Open reports in the order in which they are looked at.
    pub queue: Vec<QueuedReport>,
    /// Report that is looked at.
    pub case: Option<ReportCase>,
    /// Decision as it was sent, with what is wrong about it.
    pub form: ReportDecisionForm,
}

/// Line of the queue.
#[derive(Clone, Debug)]
pub struct QueuedReport {
    /// Id of the report.
    pub id: ReportId,
    /// Kind of the item.
    pub kind: ReportKind,
    /// Title of the item, or its name where it has none.
    pub title: String,
    /// Reason of the report.
    pub reason: ReportReason,
    /// True if an agent reported, and not somebody without a key.
    pub is_by_agent: bool,
    /// Time of the report.
    pub at: Instant,
    /// True if it is looked at.
    pub here: bool,
}

impl QueuedReport {
    fn kind_word(&self) -> &'static str {
        kind_word(self.kind)
    }

    fn reason_words(&self) -> &'static str {
        reason_words(self.reason)
    }
}

/// Decision about a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportDecision {
    /// The item is taken down while it is checked.
    #[default]
    Uphold,
    /// The item stays.
    Dismiss,
}

impl ReportDecision {
    /// Returns the value of the form field.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Uphold => "uphold",
            Self::Dismiss => "dismiss",
        }
    }
}

/// Decision about a report as it was typed.
#[derive(Clone, Debug, Default)]
pub struct ReportDecisionForm {
    /// Decision that is chosen.
    pub decision: ReportDecision,
    /// Reason as typed.
    pub note: String,
    /// Rules that the input breaks.
    pub errors: Vec<FieldError>,
}

/// Piece of a text: a sentence, and whether another item has it too.
#[derive(Clone, Debug)]
pub struct TextPiece {
    /// Words of the piece.
    pub text: String,
    /// True if the item that overlaps most has it too.
    pub is_shared: bool,
}

/// Item that has sentences of the reported one.
#[derive(Clone, Debug)]
pub struct OverlapRow {
    /// Title of the other item.
    pub title: String,
    /// Address of the other item.
    pub href: String,
    /// Name of the account that owns it.
    pub owner: String,
    /// True if the same account owns both.
    pub is_same_owner: bool,
    /// Time at which the other was published.
    pub published_at: Instant,
    /// True if that was before the reported item.
    pub is_earlier: bool,
    /// Share of the sentences of the reported item that the other has too, in percent.
    pub percent: u32,
}

/// Account that owns a reported item.
#[derive(Clone, Debug)]
pub struct CaseOwner {
    /// Id of the operator.
    pub id: OperatorId,
    /// Name of the account.
    pub name: String,
    /// Time of the sign-up.
    pub since: Instant,
    /// True while it is suspended.
    pub is_suspended: bool,
    /// Number of agents.
    pub agents: u64,
    /// Number of published units.
    pub units: u64,
    /// Number of rejected versions.
    pub rejected: u64,
    /// Number of datasets.
    pub datasets: u64,
    /// Number of takedowns of its items so far.
    pub takedowns: u64,
    /// Number of open reports of its items.
    pub reports: u64,
}

/// Buyers of a reported item.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaseBuyers {
    /// Number of accounts.
    pub accounts: u64,
    /// Number of wallets without an account.
    pub wallets: u64,
    /// Sum of their prices, in micro-USDC.
    pub paid: i64,
    /// Number of sales within the time in which money can go back.
    pub held: u64,
}

/// Line of the history of an item.
#[derive(Clone, Debug)]
pub struct HistoryLine {
    /// Time of the event.
    pub at: Instant,
    /// Event in words of the service.
    pub what: String,
    /// Words of somebody about it.
    pub said: Option<String>,
}

/// Report with its evidence.
#[derive(Clone, Debug)]
pub struct ReportCase {
    /// Id of the report.
    pub id: ReportId,
    /// Kind of the item.
    pub kind: ReportKind,
    /// Title of the item, or its name where it has none.
    pub title: String,
    /// Reason of the report.
    pub reason: ReportReason,
    /// Time of the report.
    pub at: Instant,
    /// Address of the item, unless it is gone.
    pub href: Option<String>,
    /// Words of the reporter.
    pub detail: String,
    /// Name of the agent that reported, if one did.
    pub reporter: Option<String>,
    /// E-mail address that the reporter left.
    pub email: Option<String>,
    /// Earlier reports of the reporter that were decided.
    pub decided_before: u64,
    /// Number of these that were right.
    pub right_before: u64,
    /// Text of the item, by paragraphs; empty if it is gone or has none.
    pub text: Vec<Vec<TextPiece>>,
    /// Characters of the text that are not shown.
    pub more: u64,
    /// Name of the agent of the item.
    pub agent: Option<String>,
    /// Items that have sentences of this one, most first.
    pub overlaps: Vec<OverlapRow>,
    /// Owner; `None` if it is not known any more.
    pub owner: Option<CaseOwner>,
    /// Buyers of the item.
    pub buyers: CaseBuyers,
    /// True if buyers keep what is taken down for this reason.
    pub is_kept: bool,
    /// Events of the item, oldest first.
    pub history: Vec<HistoryLine>,
    /// Outcome of the report, if it is decided.
    pub outcome: Option<CaseOutcome>,
}

/// Outcome of a report.
#[derive(Clone, Debug)]
pub struct CaseOutcome {
    /// True if the item was taken down.
    pub is_down: bool,
    /// Time of the decision.
    pub at: Instant,
    /// Reason of the decision.
    pub note: Option<String>,
}

impl ReportCase {
    fn kind_word(&self) -> &'static str {
        kind_word(self.kind)
    }

    fn reason_words(&self) -> &'static str {
        reason_words(self.reason)
    }

    fn is_sold(&self) -> bool {
        matches!(self.kind, ReportKind::Unit | ReportKind::Dataset)
    }
}

/// `GET /console/reports/{id}/confirm`: the question before a decision. Form: `POST /console/reports/{id}`.
#[derive(Debug, Template)]
#[template(path = "console/decision.html")]
pub struct DecisionPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Id of the report.
    pub id: ReportId,
    /// Kind of the item.
    pub kind: ReportKind,
    /// Title of the item, or its name where it has none.
    pub title: String,
    /// Reason of the report.
    pub reason: ReportReason,
    /// Decision that is to be confirmed.
    pub decision: ReportDecision,
    /// Reason of the decision.
    pub note: String,
    /// Name of the account that owns the item.
    pub owner: Option<String>,
    /// Buyers of the item.
    pub buyers: CaseBuyers,
    /// True if buyers keep what is taken down for this reason.
    pub is_kept: bool,
}

impl DecisionPage {
    fn is_takedown(&self) -> bool {
        self.decision == ReportDecision::Uphold
    }

    fn kind_word(&self) -> &'static str {
        kind_word(self.kind)
    }

    fn reason_words(&self) -> &'static str {
        reason_words(self.reason)
    }
}
