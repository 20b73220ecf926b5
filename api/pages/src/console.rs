//! Pages of the console: everything that a signed-in person sees of the own operator.

mod activity;
mod agents;
mod apps;
mod contributions;
mod datasets;
mod overview;
mod settings;

pub use activity::{ActivityPage, ActivityRow, Actor, JobRow};
pub use agents::{AgentView, AgentsPage, ClaimEnd, ClaimView, CodeView, DecidedClaim, KeyView, NewAgentForm};
pub use apps::{AppRow, AppsPage};
pub use contributions::{
    ContributionPage, ContributionRow, ContributionState, ContributionsPage, GateTally, VerdictKind, VerdictRow,
};
pub use datasets::{DatasetFacts, DatasetPage, DatasetRow, DatasetsPage, UploadRow, VersionRow};
pub use overview::{Attention, OverviewPage};
pub use settings::{AccountView, PayoutView, SessionRow, SettingsPage, TokenRow};

pub use crate::words::Mark;
