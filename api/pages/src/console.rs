//! Pages of the console: everything that a signed-in person sees of the own operator.

mod account;
mod activity;
mod agents;
mod approval;
mod apps;
mod collectors;
mod contributions;
mod datasets;
mod decisions;
mod disputes;
mod figures;
mod invitations;
mod item_sales;
mod library;
mod limits;
mod login;
mod moderation;
mod money;
mod operators;
mod overview;
mod payout;
mod publish;
mod quota;
mod receipt;
mod settings;
mod top_up;
mod units;

pub use account::{
    AccountClosedPage, AccountForms, CloseAccountPage, EmailLinkPage, EmailLinkState, LetterChoice, OpenMatter,
};
pub use activity::{ActivityPage, ActivityRow, ChangeActor, JobRow};
pub use agents::{AgentView, AgentsPage, ClaimEnd, ClaimView, CodeView, DecidedClaim, KeyView, NewAgentForm};
pub use approval::{ApprovalChange, ApprovalPage, ShownApproval};
pub use apps::{AppRow, AppsPage};
pub use collectors::{CollectorRow, CollectorRunRow, CollectorState, CollectorsPage};
pub use contributions::{
    ContributionPage, ContributionRow, ContributionState, ContributionsPage, GateTally, VerdictKind, VerdictRow,
};
pub use datasets::{
    ConsoleDatasetPage, DatasetEditForm, DatasetFacts, DatasetRow, DatasetsPage, DeletionForm, PreviewRowsForm,
    UploadRow, VersionRow,
};
pub use decisions::{DecidedPage, DecidedRow, DownPage, DownRow, RestorePage};
pub use disputes::{
    DecideDisputePage, DisputePage, DisputeReader, DisputeView, DisputesPage, DisputesPart, OpenDisputePage,
};
pub use figures::{FailingJobRow, FigureBar, FiguresPage};
pub use invitations::{InvitationRequestRow, InvitationRow, InvitationsPage};
pub use item_sales::{ItemDay, ItemSales};
pub use library::{
    LibraryChoice, LibraryContent, LibraryDataset, LibraryItem, LibraryNote, LibraryPage, LibraryPaid, LibraryReader,
    LibraryText, LibraryThing,
};
pub use limits::{LimitsForm, LimitsPage};
pub use login::{AskedLogin, LoginEnd, LoginPage};
pub use moderation::{
    CaseBuyers, CaseOutcome, CaseOwner, DecisionPage, HistoryLine, MAX_REASON_CHARS, MIN_REASON_CHARS, ModerationPage,
    ModerationTab, ModerationTabs, OverlapRow, OwnTakedown, QueuedReport, ReportCase, ReportDecision,
    ReportDecisionForm, ReportsPage, TextPiece, reason_words,
};
pub use money::{
    EarnedMoney, FeeRow, HoldRow, MoneyPage, SalesList, SoldRow, SpendingKind, SpendingList, SpendingRow, SpentMoney,
    WaitingPurchase,
};
pub use operators::{AccountAgent, AccountItemRow, AccountPage, AccountRow, AccountsPage, SuspensionForm};
pub use overview::{Attention, EventGroup, FirstSteps, GoodToKnow, OverviewPage};
pub use payout::{PayoutRow, PayoutView};
pub use publish::{
    ActiveDataset, ConnectForm, DatasetWords, PublishBounds, PublishColumn, PublishDraft, PublishPage, PublishTarget,
    RefusedCell, UnfinishedUpload,
};
pub use quota::{CountLimit, EgressShare, MonthOfEgress, QuotaPage, StoredDataset};
pub use receipt::ReceiptPage;
pub use settings::{AccountView, SessionRow, SettingsPage, TokenRow};
pub use top_up::{TopUpPage, TopUpWay};
pub use units::{ConsoleUnitPage, OwnUnit, UnitPriceForm, UnitRow, UnitsPage};

pub use crate::words::StateMark;
