//! Pages of the console: everything that a signed-in person sees of the own operator.

mod activity;
mod agents;
mod approval;
mod apps;
mod collectors;
mod contributions;
mod datasets;
mod decisions;
mod figures;
mod invitations;
mod limits;
mod login;
mod moderation;
mod money;
mod operators;
mod overview;
mod publish;
mod receipt;
mod settings;
mod units;

pub use activity::{ActivityPage, ActivityRow, ChangeActor, JobRow};
pub use agents::{AgentView, AgentsPage, ClaimEnd, ClaimView, CodeView, DecidedClaim, KeyView, NewAgentForm};
pub use approval::{ApprovalChange, ApprovalPage, ShownApproval};
pub use apps::{AppRow, AppsPage};
pub use collectors::{CollectorRow, CollectorRunRow, CollectorState, CollectorsPage};
pub use contributions::{
    ContributionPage, ContributionRow, ContributionState, ContributionsPage, GateTally, VerdictKind, VerdictRow,
};
pub use datasets::{
    ConsoleDatasetPage, DatasetFacts, DatasetRow, DatasetsPage, DeletionForm, PreviewRowsForm, UploadRow, VersionRow,
};
pub use decisions::{DecidedPage, DecidedRow, DownPage, DownRow, RestorePage};
pub use figures::{FailingJobRow, FigureBar, FiguresPage};
pub use invitations::{InvitationRequestRow, InvitationRow, InvitationsPage};
pub use limits::{LimitsForm, LimitsPage};
pub use login::{AskedLogin, LoginEnd, LoginPage};
pub use moderation::{
    CaseBuyers, CaseOutcome, CaseOwner, DecisionPage, HistoryLine, MAX_REASON_CHARS, MIN_REASON_CHARS, ModerationPage,
    ModerationTab, ModerationTabs, OverlapRow, OwnTakedown, QueuedReport, ReportCase, ReportDecision,
    ReportDecisionForm, ReportsPage, TextPiece, reason_words,
};
pub use money::{BoughtRow, EntryRow, FeeRow, HoldRow, MoneyPage, WaitingPurchase};
pub use operators::{AccountAgent, AccountItemRow, AccountPage, AccountRow, AccountsPage, SuspensionForm};
pub use overview::{Attention, OverviewPage};
pub use publish::{
    ActiveDataset, ConnectForm, DatasetWords, PublishBounds, PublishColumn, PublishDraft, PublishPage, PublishTarget,
    RefusedCell, UnfinishedUpload,
};
pub use receipt::ReceiptPage;
pub use settings::{AccountView, PayoutView, SessionRow, SettingsPage, TokenRow};
pub use units::{UnitRow, UnitsPage};

pub use crate::words::StateMark;
