//! HTML pages of the site and the console.
//!
//! A page is a struct of what it shows with its [`PageLayout`]; [`Page::html`] turns it into text. Handlers fill the structs and
//! send the text with [`CONTENT_SECURITY_POLICY`]; [`asset`] has the files that the text links to.
//!
//! Invariant: text that somebody else wrote is escaped wherever it stands, and no page contains a script or a style of its
//! own, so that the policy can forbid both. A page works without scripts.

mod account;
mod allowance;
mod asset;
mod board;
mod cell;
mod chart;
mod checkout;
mod chrome;
mod collectors;
mod confirm;
mod consent;
pub mod console;
mod dataset;
mod docs;
mod document;
mod entry;
mod filters;
mod find;
mod form;
mod gone;
mod head;
mod home;
mod inline;
mod kept;
mod link;
mod mark;
mod market;
mod number;
mod outline;
mod pay;
mod qr;
mod records;
mod refusal;
mod report;
mod said;
mod score;
mod secret;
mod spend;
mod sql;
mod time;
mod unit;
mod words;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use account::{AgentPage, ProfileAgent, ProfileItem, ProfilePage, RatingSummary};
pub use allowance::Allowance;
pub use asset::{CONTENT_SECURITY_POLICY, PageAsset, asset};
pub use board::{AnswerView, AskedRequest, OfferedItem, RequestPage, RequestRow, RequestsPage, WantedField};
pub use cell::TableCell;
pub use chart::{ChartForm, DayCount, GateLoss, RowFlow, SalesDay};
pub use checkout::{BuyPage, BuyerAccount, BuyingAgent, Checkout, CheckoutState, CheckoutThing, PaymentWay};
pub use chrome::{PageLayout, Person, Theme};
pub use collectors::{CollectorPage, PublicCollector, PublicCollectorsPage, RunBar};
pub use confirm::ConfirmPage;
pub use consent::{AgentChoice, ConsentBudget, ConsentPage, ScopeChoice};
pub use dataset::{
    AddedRow, AddedRows, ColumnChoice, ColumnOrder, DatasetHead, DatasetOffer, DatasetPage, DatasetPurchase,
    DatasetRecordPage, DatasetRows, DatasetRowsPage, DatasetTab, DatasetVersion, DatasetVersionPage,
    DatasetVersionsPage, GrowthPoint, LeftOutRecords, PreviewRows, ProofOfVersion, ReadableRows, RecordRow, RowsState,
    RowsStatement, ShownColumn, ShownFilter, SummaryOfVersion, VersionChoice, VersionContributor, VersionFile,
    WholeRecord,
};
pub use docs::{
    CodeSample, ConnectPart, DocsContent, DocsGroup, DocsLink, DocsPage, DocsPart, DocsStartPart, DocumentedMember,
    DocumentedStatus, ErrorCodeEntry, ErrorCodesPart, ErrorStatus, FeeExample, FeeStep, GlossaryPart, GuidePart,
    OperationGroup, OperationIndexPart, OperationLink, OperationPart, PricingPart, SampleTrial, ToolRow, ToolsPart,
    TrialAnswer, TrialField,
};
pub use document::{LicenseView, LicensesPage, TermsPage};
pub use entry::{
    CheckMailPage, InvitePage, LinkState, MailKind, SignInLinkPage, SignInPage, SignUpPage, VerifyPage, VerifyState,
};
pub use find::{FindFacet, FindHit, FindMode, FindPage, FindValue, SuggestPage, SuggestedItem};
pub use form::{FieldError, OptionChoice};
pub use gone::{GoneEnd, GonePage, GoneThing};
pub use head::LinkedData;
pub use home::{HomeDataset, HomeExample, HomePage, HomeRequest};
pub use kept::KeptFormPage;
pub use link::PageLink;
pub use mark::MarkedText;
pub use market::{BrowsePage, BrowseRow, KnowledgePage};
pub use pay::{FaucetPage, PaidPage, WalletOffer};
pub use records::{FeedPage, FeedRow, LeaderboardPage, LoggedRow, PlaceRow, TakedownsPage};
pub use refusal::ErrorPage;
pub use report::{ReportOutcomePage, ReportPage, ReportState};
pub use said::{Discussion, SaidEntry, Thread};
pub use score::MiniScore;
pub use secret::SecretPage;
pub use spend::{CreditBalance, CreditBill, SpendLine, SpendOwnerName, SpendRow};
pub use sql::{
    AnswerColumn, AnswerColumnKind, NeededCells, SqlAccess, SqlAnswer, SqlExample, SqlOutcome, SqlPage, SqlProblem,
    SqlQuestion, StatementPlace,
};
pub use time::Instant;
pub use unit::{
    NearItem, ScoreView, UnitAppeal, UnitFacts, UnitForms, UnitMark, UnitPage, UnitPrice, UnitPurchase, UnitReading,
    UnitStep, UnitVersion, UnitWords,
};
pub use words::isolate;

/// Failure to render a page: the formatter gave up. Templates themselves cannot fail.
#[derive(Debug)]
pub struct Error(askama::Error);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot render a page: {}", self.0)
    }
}

impl std::error::Error for Error {}

/// Page that can be rendered.
pub trait Page {
    /// Returns the page as an HTML document.
    fn html(&self) -> Result<String, Error>;
}

impl<T: askama::Template> Page for T {
    fn html(&self) -> Result<String, Error> {
        self.render().map_err(Error)
    }
}
