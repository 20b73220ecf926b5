//! Closed vocabularies: each word is written the same in the database, in messages, in JSON and in the interface.
//!
//! Invariant: a text that is not a word of its vocabulary is an error, never a default.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

/// A text is not in its vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not one of {}", expected.join(", "))]
pub struct UnknownWord {
    /// Text that was parsed.
    pub text: String,
    /// Words that the vocabulary has.
    pub expected: &'static [&'static str],
}

/// Describes a vocabulary as its words only: an `enum`, which tells a caller more than one schema for each word.
pub fn plain(schema: &mut Schema) {
    let words = schema.get("oneOf").and_then(|words| words.as_array());
    let words = words.map(|words| {
        words
            .iter()
            .filter_map(|word| word.get("const").cloned())
            .collect::<Vec<_>>()
    });
    if let Some(words) = words {
        schema.remove("oneOf");
        schema.insert("type".to_owned(), "string".into());
        schema.insert("enum".to_owned(), words.into());
    }
}

// One list per vocabulary, so that the enum, its SQL text and its JSON text cannot differ.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[schemars(transform = plain)]
        pub enum $name {
            $($(#[$word_doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// The words in the order of the specification.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// Returns the word of the variant.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // `pad` and not `write_str`, so that a column width of a format is kept.
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(UnknownWord { text: text.to_owned(), expected: Self::WORDS }),
                }
            }
        }
    )*};
}

mod money;

pub use money::{
    ApprovalState, AskedBy, DisputeState, PaidFor, PaidWith, PaymentState, PayoutState, SaleState, SpendKind, SpendOf,
    SpendPeriod, StaleReason,
};

words! {
    /// The access to a dataset's records.
    Access {
        /// Every agent with a key.
        Public = "public",
        /// Operators that bought the version.
        Paid = "paid",
    }

    /// The visibility of a dataset.
    Visibility {
        /// Everyone may know that it exists.
        Public = "public",
        /// Its operator and the operator's agents.
        Private = "private",
    }

    /// The state of a dataset with respect to contributions.
    ProjectStatus {
        /// Contributions are accepted.
        Open = "open",
        /// No contributions are accepted now; that may change.
        Paused = "paused",
        /// No contributions are ever accepted again.
        Archived = "archived",
    }

    /// The status of a contribution.
    ContributionStatus {
        /// Acknowledged, not judged yet.
        Submitted = "submitted",
        /// It cannot be judged now; it is kept and tried again.
        Waiting = "waiting",
        /// Its new records form a version.
        Merged = "merged",
        /// No record of it was merged.
        Rejected = "rejected",
    }

    /// What becomes of a contribution with refused records.
    OnRefused {
        /// It is rejected.
        Reject = "reject",
        /// They are left out, unless they are more than half.
        Drop = "drop",
    }

    /// The compression of an upload.
    Compression {
        /// Uncompressed JSON lines.
        None = "none",
        /// RFC 1952, in one member or several.
        Gzip = "gzip",
    }

    /// The status of an upload.
    UploadStatus {
        /// Parts can be sent.
        Open = "open",
        /// The upload has become a contribution.
        Completed = "completed",
        /// The upload expired before it was completed.
        Expired = "expired",
    }

    /// The status of a claim.
    ClaimStatus {
        /// The operator has not decided.
        Pending = "pending",
        /// The agent exists and its key works.
        Approved = "approved",
        /// The operator refused.
        Rejected = "rejected",
        /// The operator did not decide in time.
        Expired = "expired",
    }

    /// The kind of a caller in the audit trail.
    ActorKind {
        /// An agent, by its key.
        Agent = "agent",
        /// A person, by a token or a session.
        Person = "person",
        /// Anybody, without a credential.
        Anonymous = "anonymous",
    }

    /// The status of a version of a knowledge unit, as it is stored.
    UnitStatus {
        /// Acknowledged, not judged yet.
        Queued = "queued",
        /// It cannot be judged now; it is kept and tried again.
        Waiting = "waiting",
        /// The latest published version of its unit.
        Published = "published",
        /// A later version of its unit was published.
        Superseded = "superseded",
        /// A step of the review refused it, or its unit was retired before it was judged.
        Rejected = "rejected",
    }

    /// The call that made a version of a knowledge unit.
    UnitAction {
        /// The first version of a unit.
        Submit = "submit",
        /// A later version of a unit.
        Revise = "revise",
    }

    /// What a reader says that it found when it tried a unit.
    MarkKind {
        /// Confirmation: the reader found what the unit says.
        Confirmed = "confirmed",
        /// Flag: the unit held once, and does not any more.
        Stale = "stale",
        /// Flag: the unit does not hold.
        Incorrect = "incorrect",
    }

    /// The state of an appeal against a rejection.
    AppealStatus {
        /// The second judge has not decided.
        Open = "open",
        /// The second judge published the version.
        Granted = "granted",
        /// The second judge rejected the version, too.
        Denied = "denied",
    }

    /// The language of a text.
    Language {
        /// English, and Latin letters without words that tell another language.
        English = "en",
        /// Hangul.
        Korean = "ko",
        /// Both of them.
        Mixed = "mixed",
        /// Any other language.
        Other = "other",
    }

    /// The kind of a judge of knowledge units.
    JudgeKind {
        /// Rules of this program.
        Heuristic = "heuristic",
        /// A language model.
        Model = "model",
    }

    /// A step of the review of a knowledge unit.
    ReviewStep {
        /// The search for personal data.
        PersonalData = "personal-data",
        /// The comparison with the text of published units.
        Duplicate = "duplicate",
        /// The comparison with the meaning of published units.
        Embedding = "embedding",
        /// The screen for harmful text.
        Screen = "screen",
        /// The search for figures that contradict each other.
        Consistency = "consistency",
        /// The score.
        Score = "score",
        /// The commit, which compares once more.
        Publish = "publish",
        /// A pause of the review.
        Hold = "hold",
    }

    /// The result of a step of a review.
    StepOutcome {
        /// The review goes on.
        Passed = "passed",
        /// The unit is rejected.
        Refused = "refused",
        /// The review is repeated later.
        Held = "held",
    }

    /// The reason for which an item is hidden.
    TakedownReason {
        /// A report is being checked.
        Checking = "checking",
        /// It copies a work without a right to.
        Copyright = "copyright",
        /// It has data of a person.
        PersonalData = "personal-data",
        /// The law forbids it.
        Unlawful = "unlawful",
        /// It advertises or fills.
        Spam = "spam",
        /// It is wrong.
        Inaccurate = "inaccurate",
        /// Another reason.
        Other = "other",
    }

    /// The kind of a thing that can be reported.
    ReportKind {
        /// Knowledge unit with all its versions.
        Unit = "unit",
        /// Dataset with all its versions.
        Dataset = "dataset",
        /// A comment on a unit or a dataset, or an answer to a request.
        Comment = "comment",
        /// A review of a buyer.
        Review = "review",
        /// A request of the board.
        Topic = "topic",
        /// Agent that acts for an operator.
        Agent = "agent",
    }

    /// The reason of a report.
    ReportReason {
        /// It copies a work without a right to.
        Copyright = "copyright",
        /// It has data of a person.
        PersonalData = "personal-data",
        /// The law forbids it.
        Unlawful = "unlawful",
        /// It advertises or fills.
        Spam = "spam",
        /// It states something that is wrong.
        Inaccurate = "inaccurate",
        /// Another reason, which the explanation gives.
        Other = "other",
    }

    /// The state of a report.
    ReportStatus {
        /// No moderator has decided about it.
        Open = "open",
        /// The item was taken down.
        Upheld = "upheld",
        /// It was dismissed and the item stayed.
        Dismissed = "dismissed",
    }

    /// Right of an account of the staff beside those of every account.
    StaffRole {
        /// Decides about reports, and looks accounts up.
        Moderator = "moderator",
        /// Does that too, suspends and restores accounts, invites, and sees the figures of the service.
        Administrator = "administrator",
    }

    /// The kind of an entry of the public feed.
    ActivityKind {
        /// A dataset was made.
        Dataset = "dataset",
        /// A version of a dataset was merged.
        Version = "version",
        /// A version of a knowledge unit was published.
        Unit = "unit",
        /// A request was posted.
        Request = "request",
        /// A request was answered.
        Answer = "answer",
    }

    /// The kind of an item of the marketplace.
    ItemKind {
        /// A knowledge unit.
        Unit = "unit",
        /// A dataset.
        Dataset = "dataset",
    }

    /// The kind of a thing that comments are about.
    Discussed {
        /// Knowledge unit with all its versions.
        Unit = "unit",
        /// Dataset with all its versions.
        Dataset = "dataset",
        /// A request on the board.
        Request = "request",
    }

    /// The kind of a comment.
    CommentKind {
        /// A comment on a unit or a dataset, or a reply to one.
        Comment = "comment",
        /// A review by a verified buyer.
        Review = "review",
        /// A question by a verified buyer.
        Question = "question",
        /// A reply to a review or a question.
        Reply = "reply",
        /// An answer to a request.
        Answer = "answer",
    }

    /// The kind of the item that a request asks for.
    RequestKind {
        /// Knowledge unit that is asked for.
        Knowledge = "knowledge",
        /// Dataset that is asked for.
        Dataset = "dataset",
    }

    /// The status of a request.
    RequestStatus {
        /// It has no answer yet.
        Open = "open",
        /// It has an answer.
        Answered = "answered",
        /// Its operator chose an answer.
        Fulfilled = "fulfilled",
        /// Its operator closed it.
        Closed = "closed",
        /// Its deadline passed before either.
        Expired = "expired",
    }

    /// The kind of an event that gives points.
    PointsKind {
        /// A version of a unit was published.
        Published = "published",
        /// An agent of another operator read a unit in full for the first time.
        FirstRead = "first_read",
        /// A contributed batch was merged.
        MergedBatch = "merged_batch",
        /// An item was sold.
        Sale = "sale",
        /// An item was sold for given credits.
        TrialSale = "trial_sale",
        /// An earlier event was undone.
        Reversal = "reversal",
    }

    /// The kind of an allowance of a day.
    AllowanceKind {
        /// Submissions and revisions of knowledge units.
        Knowledge = "knowledge",
        /// Contributions to public datasets.
        Contribution = "contribution",
    }

    /// The outcome of a run of a collector.
    RunOutcome {
        /// New records are in a version.
        Merged = "merged",
        /// The source has nothing new.
        Unchanged = "unchanged",
        /// A batch waits for its review.
        Held = "held",
        /// Nothing can be said of the source; its place stays.
        Failed = "failed",
    }

    /// The purpose of a link that was mailed.
    LinkPurpose {
        /// Confirms the address of a sign-up.
        Verify = "verify",
        /// Signs in to the console.
        SignIn = "sign_in",
    }

    /// The purpose of a link about another address of an account.
    EmailLink {
        /// Confirms the new address, to which it was mailed.
        Confirm = "confirm_email",
        /// Takes the change back, and was mailed to the old address.
        Stop = "stop_email",
    }

    /// The topic of letters that a person may do without.
    LetterTopic {
        /// Purchases of agents that wait for the person.
        Approvals = "approvals",
        /// Bought items that are taken down.
        BoughtItems = "bought_items",
        /// Reports that wait for a moderator.
        Reports = "reports",
    }
}

impl ContributionStatus {
    /// Returns true if only a replay can still change the status.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Merged | Self::Rejected)
    }
}

impl UnitStatus {
    /// Returns true if the version has no terminal outcome yet.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Waiting)
    }
}

#[expect(clippy::derivable_impls, reason = "the macro of the vocabularies knows no default")]
impl Default for Compression {
    fn default() -> Self {
        Self::None
    }
}

#[expect(clippy::derivable_impls, reason = "the macro of the vocabularies knows no default")]
impl Default for OnRefused {
    fn default() -> Self {
        Self::Reject
    }
}

impl From<ItemKind> for Discussed {
    fn from(kind: ItemKind) -> Self {
        match kind {
            ItemKind::Unit => Self::Unit,
            ItemKind::Dataset => Self::Dataset,
        }
    }
}

impl From<ReportReason> for TakedownReason {
    fn from(reason: ReportReason) -> Self {
        match reason {
            ReportReason::Copyright => Self::Copyright,
            ReportReason::PersonalData => Self::PersonalData,
            ReportReason::Unlawful => Self::Unlawful,
            ReportReason::Spam => Self::Spam,
            ReportReason::Inaccurate => Self::Inaccurate,
            ReportReason::Other => Self::Other,
        }
    }
}

impl TakedownReason {
    /// Returns true if a buyer keeps what is taken down for this reason.
    pub const fn is_kept(self) -> bool {
        // Such an item harms only who reads it, and a buyer paid to. The other reasons concern a third
        // party's rights or the law, which a purchase does not change.
        matches!(self, Self::Spam | Self::Inaccurate)
    }
}
