//! The metadata database: all SQL text of the product, behind one type, [`Store`].
//!
//! Invariant: every method that changes data is one transaction, and it returns only after the commit is durable. A
//! lost race is a variant of the method's result, never an [`Error`]. An error means that the result is unknown. No
//! call takes longer than [`Options::timeout`].
//!
//! Invariant: the SQL text is the portable subset of `SQLite` and `PostgreSQL`. Columns are `TEXT`, `BIGINT` or bytes;
//! flags are 0 or 1, times microseconds, money micro-USDC, JSON text; sums are cast; placeholders are `$n`; ids and
//! times come from the caller. Differences between the engines are in `engine` and in one folder of migrations each.
//!
//! `query` has the macros for statements and changes, `row` the one for types of rows.
//!
//! A transaction locks a row before it decides on its content by writing it (`UPDATE … RETURNING`), which works on
//! every engine. Uniqueness is decided by `ON CONFLICT`, limits by a conditional update or under such a lock.

mod accounts;
mod activity;
mod allowances;
mod apps;
mod audit;
mod call_keys;
mod check;
mod collectors;
mod comments;
mod community;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod connections;
mod console;
mod contributions;
mod counters;
mod dead_letters;
mod engine;
mod error;
mod jobs;
mod knowledge;
mod losses;
mod moderation;
mod money;
mod outcomes;
mod payments;
mod points;
mod profiles;
mod projects;
mod public_accounts;
mod query;
mod reading;
mod row;
mod scrub;
mod search;
mod service_keys;
mod service_state;
mod staff;
mod stamps;
mod store;
mod summaries;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(feature = "postgres")]
mod tls;
mod uploads;
mod usage;
mod vectors;
mod writer;

#[cfg(test)]
mod tests;

pub use accounts::{
    AccountClosed, Accounts, Agent, AgentCreated, AgentKey, Approval, CLOSED_NAME, Claim, ClaimCode, ClaimCodeAdded,
    Claimed, CodeRefused, EmailChange, EmailChangeAsked, EmailChanged, Invitation, InviteRequest, LinkRefused,
    LinkRequest, LinkRequested, Login, LoginAgent, LoginApproval, MAX_WRONG_CODES, MAX_WRONG_TRIES, Mail, MailLink,
    NewAgent, NewClaim, NewClaimCode, NewConsent, NewEmailChange, NewLink, NewLogin, NewOperator, NewSession,
    NewSignUp, NewToken, OpenMatters, Operator, OperatorCreated, Payout, Polled, Principal, Rejection, Session,
    SignedUp, Token, TokenAdded, TypedCode, TypedCodeRefused, WRONG_CODE_WINDOW, WalletOwner,
};
pub use activity::{Activity, Feed, Merges};
pub use allowances::Allowance;
pub use apps::{
    AppConnection, CONNECTIONS_KEPT, CONSOLE_CLIENT, CONSOLE_LASTS, CONSOLE_RESOURCE, ConnectedApp, OAuth, TOKENS_KEPT,
};
pub use audit::AuditEntry;
pub use call_keys::{CallKey, KeyUsed};
pub use check::{ContributionEntry, ProjectEntries, ProjectEntry, VersionEntry};
pub use collectors::{BegunRun, Collector, CollectorRun, Collectors, RunCounts, RunEnd, SeenCollector};
pub use comments::{Comment, Comments, EarlierText, Edited, NewComment, NewReview, Review, Reviewed, Withdrawn};
pub use community::{
    Answer, Answered, BoardRequest, Chosen, Closed, Community, Link, NewAnswer, NewItemLink, NewRequest, RequestCount,
    RequestFilter, RequestMatch,
};
pub use console::{
    Console, ContributionSum, Day, GivenMark, GivenRating, ListedContribution, ListedProject, ListedUpload,
    OpinionPlace, Selection,
};
pub use contributions::{
    Contribution, ContributionLoss, Due, Idempotency, NewContribution, Outbox, SubmitOutcome, Swept,
};
pub use counters::{Counted, Event};
pub use dead_letters::{DeadLetter, DeadLetterAdded, DeadLetterEntry, Replay, UnitReplay};
pub use error::Error;
pub use jobs::{Flow, Job, NewJob};
pub use knowledge::{
    Appeal, Appealed, Chain, FORGET_PRINTS, HourlyLimit, Knowledge, KnowledgeFault, MarkCounts, Marked, NewAppeal,
    NewMark, NewRating, NewUnit, PriceChanged, PublishedEntry, Rated, Rating, RatingCursor, Ratings, ReadUnit, Revised,
    Standing, UnembeddedVersion, Unit, UnitApplied, UnitDue, UnitOutcome, UnitRetired, UnitSubmitted, UnitSwept,
    VersionLine, WrittenMark, is_final_rejection,
};
pub use losses::{Loss, LossAccepted, LostVersion, NewLoss};
pub use moderation::{
    Decided, DecidedFilter, DecidedReport, DecisionLetters, Desk, Digest, Evidence, EvidenceBuyers, Moderation,
    NewReport, Report, ReportCount, Reported, ReporterRecord, SAME_REPORT, Takedown, TitledTakedown, UNDO_LASTS,
    Undone, Uphold, WaitingReport,
};
pub use money::{
    APPROVAL_LASTS, APPROVAL_LETTERS_A_DAY, ApprovalLetter, Approved, ArchiveProof, Balances, Bought, CheckTerms,
    ClosedDay, CountOfDay, DISPUTE_ANSWER_WINDOW, DayOfSales, DeniedApproval, Dispute, DisputeDecision, DisputeLetters,
    DisputeOpened, DisputeOpener, DisputeReplied, DisputeResolution, DisputeResolved, DisputeSide, DisputedSale,
    EgressLease, EgressLeased, Entry, EntryCursor, EntryFilter, Granted, ItemName, ItemOfSeller, ItemSums,
    LedgerMovement, LibraryFilter, LibraryOrder, ListedSale, MAX_WAITING_APPROVALS, Money, MoneyFault, MonthArchived,
    NewDeposit, NewDispute, NewGrant, NewNo, NewPayout, NewPersonAsk, NewPurchase, NewPurchaseAsk, NewYes, Offer,
    OwnedItem, Payable, PaymentReceiptText, PayoutPicked, PayoutRow, PayoutState, PersonAsked, PurchaseApproval,
    Purchased, Sale, SaleFacts, SaleState, SaleTerms, Seal, SealedMovement, Seller, Settled, Settlement, SoldFilter,
    SoldItem, SpendCapped, SpendLimits, SpendOwner, Spender, Spending, SpentCredits, StatementLine, StorageCharged,
    Treasury, WalletRefund,
};
pub use outcomes::{Applied, OutcomeRow};
pub use payments::{
    Bound, Doubtful, NewPayment, PaidFor, Payment, PaymentBound, PaymentMessage, PaymentState, Payments, WalletGift,
    WalletGiven, WalletMoved, WalletSpent, WalletTransfer, Wallets,
};
pub use points::{BATCHES_A_DAY, BatchesFilled, Points, PointsEvent, PointsSums, Ranked};
pub use profiles::{
    MAX_ASKED_PROFILES, NewProfile, ProfileAsked, ProfileCoverage, ProfileKind, ProfileLease, ProfileLimits,
    ProfileTurn, Profiles, StoredProfile,
};
pub use projects::{
    Contributor, DELETE_TABLE, NewProject, ParseCursorError, Project, ProjectChanges, ProjectCreated, ProjectCursor,
    ProjectDay, ProjectDeleted, ProjectFilter, ProjectGrowth, ProjectHead, ProjectSummary, ProjectUpdated,
    ProjectVersion,
};
pub use public_accounts::{
    AgentDay, PublicAccount, PublicAccounts, PublicAgent, PublicDataset, PublicEnd, PublicFigures, PublicUnit,
    SellerRecord,
};
pub use reading::{Egress, EgressOfMonth, EgressOfReader, LeaseTaken};
pub use search::{SearchChange, Searching, ShownUnit};
pub use service_keys::{KeyAdded, KeyEndorsement, KeyRevoked, NewServiceKey, ServiceKey};
pub use service_state::{Hold, ValidationState};
pub use staff::{AccountItem, FailingJobs, FigureDay, Staff, StaffAccount};
pub use stamps::Stamp;
pub use store::{Options, Schema, Store};
pub use summaries::{Summaries, Summary, SummaryLease, SummaryLimits};
pub use types::Resolution;
pub use types::vocabulary::{
    Access, ActivityKind, AllowanceKind, AppealStatus, ApprovalState, AskedBy, ClaimStatus, CommentKind, Compression,
    ContributionStatus, Discussed, EmailLink, ItemKind, Language, LetterTopic, LinkPurpose, MarkKind, PointsKind,
    ProjectStatus, ReportKind, ReportReason, ReportStatus, RequestKind, RequestStatus, RunOutcome, SpendKind, SpendOf,
    SpendPeriod, StaffRole, StaleReason, TakedownReason, UnitAction, UnitStatus, UnknownWord, UploadStatus, Visibility,
};
pub use uploads::{OpenUpload, Upload, UploadAbandoned, UploadBounds, UploadCompleted, UploadCreated};
pub use vectors::{NewVectors, StoredVector};
