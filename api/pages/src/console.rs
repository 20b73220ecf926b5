//! Pages of the console: everything that a signed-in person sees of the own operator.

mod activity;
mod agents;
mod approval;
mod apps;
mod collectors;
mod contributions;
mod datasets;
mod disputes;
mod limits;
mod login;
mod moderation;
mod money;
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
pub use disputes::{
    DecideDisputePage, DisputePage, DisputeReader, DisputeView, DisputesPage, DisputesPart, OpenDisputePage,
};
pub use limits::{LimitsForm, LimitsPage};
pub use login::{AskedLogin, LoginEnd, LoginPage};
pub use moderation::{ModerationPage, ReportQueue, ReportRow, TakedownRow};
pub use money::{BoughtRow, EntryRow, FeeRow, HoldRow, MoneyPage, WaitingPurchase};
pub use overview::{Attention, OverviewPage};
pub use publish::{
    ActiveDataset, ConnectForm, DatasetWords, PublishBounds, PublishColumn, PublishDraft, PublishPage, PublishTarget,
    RefusedCell, UnfinishedUpload,
};
pub use receipt::ReceiptPage;
pub use settings::{AccountView, PayoutView, SessionRow, SettingsPage, TokenRow};
pub use units::{UnitRow, UnitsPage};

pub use crate::words::StateMark;
