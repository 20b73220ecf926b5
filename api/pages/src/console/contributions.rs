//! Contributions of the operator's agents, and to the operator's datasets.

use askama::Template;

use crate::chart::{GateLoss, RowFlow};
use crate::chrome::{PageLayout, Theme};
use crate::filters;
use crate::number::{counted, grouped};
use crate::time::Instant;
use crate::words::{self, StateMark};

/// State of a contribution, as the console shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContributionState {
    /// Acknowledged, not judged yet.
    Waiting,
    /// Judged in part: it waits for the judging model or for an administrator.
    Held,
    /// Its new rows are in a version.
    Merged,
    /// A row was refused, or nothing was new.
    Rejected,
    /// No worker could process it.
    Dead,
}

impl ContributionState {
    /// States in the order of the filter.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Held, Self::Merged, Self::Rejected, Self::Dead];

    /// Returns the word of the query parameter `state`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Merged => "merged",
            Self::Rejected => "rejected",
            Self::Dead => "dead",
        }
    }

    /// Returns the state of a word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Dead => "dead letter",
            other => other.word(),
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Held => "Held",
            Self::Merged => "Merged",
            Self::Rejected => "Rejected",
            Self::Dead => "Dead letters",
        }
    }

    pub(crate) const fn mark(self) -> StateMark {
        match self {
            Self::Waiting => StateMark::Live,
            Self::Held => StateMark::Hold,
            Self::Merged => StateMark::Ok,
            Self::Rejected | Self::Dead => StateMark::Bad,
        }
    }
}

/// `GET /console/contributions`, filtered by the query parameter `state`.
#[derive(Debug, Template)]
#[template(path = "console/contributions.html")]
pub struct ContributionsPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// State that is shown; all without one.
    pub state: Option<ContributionState>,
    /// Contributions of the page, newest first.
    pub rows: Vec<ContributionRow>,
    /// Address of the next page.
    pub next: Option<String>,
    /// True if this is not the first page.
    pub is_later: bool,
}

/// Contribution in a list.
#[derive(Clone, Debug)]
pub struct ContributionRow {
    /// Id of the contribution.
    pub id: String,
    /// Slug of the dataset.
    pub dataset: String,
    /// Name of the agent.
    pub agent: String,
    /// Number of submitted records; 0 for an upload that is not decided.
    pub records: u64,
    /// State that the contribution is in.
    pub state: ContributionState,
    /// Version that it became.
    pub version: Option<u64>,
    /// Number of its records in that version.
    pub accepted: Option<u64>,
    /// Reason of a rejection or a wait.
    pub reason: Option<String>,
    /// Time of the acknowledgement.
    pub at: Instant,
}

impl ContributionRow {
    /// Returns the begin and the end of the id, which tell contributions of a list apart.
    pub(crate) fn short_id(&self) -> String {
        // The begin of a UUID of version 7 is its time (RFC 9562 section 5.7), which contributions of
        // one minute share, and the end is random.
        let ends = self.id.split_once('-').zip(self.id.rsplit_once('-'));
        match ends {
            Some(((begin, _), (_, end))) => format!("{begin}-…-{end}"),
            None => self.id.clone(),
        }
    }

    pub(crate) fn result(&self) -> String {
        match (&self.reason, self.accepted) {
            (Some(reason), _) => reason.clone(),
            // The difference are duplicates: a refused row would have rejected the whole batch.
            (None, Some(accepted)) if accepted < self.records => {
                let dropped = counted(self.records - accepted, "duplicate", "duplicates");
                format!("{} accepted, {dropped} dropped", grouped(accepted))
            }
            (None, Some(accepted)) => format!("{} accepted", grouped(accepted)),
            (None, None) => match self.state {
                ContributionState::Waiting => "in the queue".to_owned(),
                _ => String::new(),
            },
        }
    }
}

/// Counts of one gate.
#[derive(Clone, Debug)]
pub struct GateTally {
    /// Name of the gate.
    pub gate: String,
    /// Number of rows it received.
    pub rows: u64,
    /// Number of rows that passed.
    pub passed: u64,
    /// Number of rows left out as duplicates.
    pub dropped: u64,
    /// Number of refused rows.
    pub refused: u64,
    /// Number of rows that could not be judged.
    pub held: u64,
}

impl GateTally {
    pub(crate) fn check(&self) -> String {
        words::check(&self.gate)
    }
}

/// Kind of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    /// The row passed every gate.
    Pass,
    /// A duplicate: left out.
    Drop,
    /// The row rejects its batch.
    Refuse,
    /// The row is judged later.
    Hold,
}

impl VerdictKind {
    const fn class(self) -> &'static str {
        match self {
            Self::Pass => "add",
            Self::Drop | Self::Hold => "dup",
            Self::Refuse => "ref",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Pass => "passed",
            Self::Drop => "dropped",
            Self::Refuse => "refused",
            Self::Hold => "held",
        }
    }
}

/// Verdict on one row.
#[derive(Clone, Debug)]
pub struct VerdictRow {
    /// Index of the row.
    pub row: u64,
    /// Kind of the verdict.
    pub kind: VerdictKind,
    /// Gate that gave it.
    pub gate: String,
    /// Code of the rule.
    pub code: String,
    /// JSON pointer within the record.
    pub path: String,
    /// Requirement of the rule.
    pub expected: String,
    /// Description of the record at that path.
    pub found: String,
}

impl VerdictRow {
    fn check(&self) -> String {
        words::check(&self.gate)
    }
}

/// Page at `GET /console/contributions/{id}`.
#[derive(Debug, Template)]
#[template(path = "console/contribution.html")]
pub struct ContributionPage {
    /// Frame of the page.
    pub chrome: PageLayout,
    /// Contribution that the page is about.
    pub contribution: ContributionRow,
    /// Source of the records, as the agent declared it.
    pub source: Option<String>,
    /// Time of the decision.
    pub decided_at: Option<Instant>,
    /// Time at which it is judged again, where known.
    pub resumes_at: Option<Instant>,
    /// Counts of each gate, once decided.
    pub gates: Vec<GateTally>,
    /// Verdicts other than pass, first ones.
    pub verdicts: Vec<VerdictRow>,
    /// Number of verdicts that are not shown.
    pub hidden_verdicts: u64,
}

impl ContributionPage {
    fn flow(&self) -> RowFlow {
        let gates = self.gates.iter().map(|gate| GateLoss {
            name: gate.gate.clone(),
            dropped: gate.dropped,
            refused: gate.refused,
            held: gate.held,
        });
        // The first gate counts what arrived. The row's own number of records is 0 for an upload until
        // it is decided.
        let rows = self.gates.first().map_or(self.contribution.records, |gate| gate.rows);
        let flow = RowFlow {
            rows,
            gates: gates.collect(),
            waiting: 0,
            rejected: 0,
        };
        // Of a batch that is not merged no row enters the table.
        match self.contribution.state {
            ContributionState::Rejected | ContributionState::Dead => RowFlow {
                rejected: flow.passed(),
                ..flow
            },
            ContributionState::Waiting | ContributionState::Held => RowFlow {
                waiting: flow.passed(),
                ..flow
            },
            ContributionState::Merged => flow,
        }
    }

    fn next_step(&self) -> &'static str {
        match self.contribution.state {
            ContributionState::Waiting => "The workers judge it next. There is nothing to do.",
            ContributionState::Held => "The batch is kept and judged again by itself. There is nothing to do.",
            ContributionState::Merged => "Its new rows are in the version and stay there.",
            ContributionState::Rejected => {
                "No row entered the table. Let the agent change the rows named below and send the batch again."
            }
            ContributionState::Dead => {
                "No row entered the table. Workers ended on the batch; an administrator can replay it. Let the agent send \
                 the rows again in smaller batches."
            }
        }
    }
}

impl ContributionsPage {
    /// Returns the word of the filter in force; empty without one.
    fn filter(&self) -> &'static str {
        self.state.map_or("", ContributionState::word)
    }

    /// Returns the address of the first page, unless this is it.
    fn first(&self) -> Option<String> {
        let filter = self.state.map(|state| format!("?state={}", state.word()));
        let first = format!("/console/contributions{}", filter.unwrap_or_default());
        self.is_later.then_some(first)
    }
}

impl ContributionPage {
    const fn note(&self) -> &'static str {
        match self.contribution.state {
            ContributionState::Waiting => "",
            other => other.mark().class(),
        }
    }

    fn verdict_count(&self) -> String {
        let shown = u64::try_from(self.verdicts.len()).unwrap_or(u64::MAX);
        grouped(shown.saturating_add(self.hidden_verdicts))
    }
}
