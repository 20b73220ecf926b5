//! Named crash points and injected bugs for the crash tests. They cover every instant between an acknowledgement and
//! its outcome, and every step of a compaction.
//!
//! Invariants:
//! - Without the feature `faults` every function here does nothing and [`mutate!`](crate::mutate) is no code, so a release
//!   contains neither. Arming is the one process-wide state of the product, and exists only in test builds.
//! - The product reads as if there were no bugs. What one changes stands beside it in a `mutate!`, and is longer than a
//!   line only in the module `faults` of its package, which test builds alone compile.

#[cfg(not(feature = "faults"))]
use crate::Batch;

/// A statement that an injected bug adds to the product. A package that uses it has a feature `faults`, which turns on
/// `types/faults`; without it the statement is no code.
///
/// `Bug` is [`InjectedBug`](crate::fault::InjectedBug) and needs no import. There are two forms:
///
/// - `mutate!(Bug::X => let name = value)`: from here on `name`, a variable of the product, has this value.
/// - `mutate!(Bug::X => step)`: the bug takes this step. `return …` leaves out the rest of a function; `….await?` adds
///   something to it.
///
/// ```
/// # fn is_granted(settled: bool) -> bool {
/// let granted = settled;
/// types::mutate!(Bug::GrantsFirst => let granted = true);
/// if !granted {
///     return false;
/// }
/// types::mutate!(Bug::SaleUnpaid => return false);
/// true
/// # }
/// # assert!(is_granted(true) && !is_granted(false));
/// ```
#[macro_export]
macro_rules! mutate {
    (Bug::$bug:ident => let $name:ident = $value:expr) => {
        #[cfg(feature = "faults")]
        let $name = if $crate::fault::is_injected($crate::fault::InjectedBug::$bug) {
            $value
        } else {
            $name
        };
    };
    (Bug::$bug:ident => $($step:tt)+) => {
        #[cfg(feature = "faults")]
        if $crate::fault::is_injected($crate::fault::InjectedBug::$bug) {
            $($step)+;
        }
    };
}

/// The crash points in the order that a contribution passes them, then those of a compaction, then those of uploads
/// alone.
pub const CRASH_POINTS: [&str; 34] = [
    "ack.begin",
    "ack.rows",
    "ack.commit",
    "ack.respond",
    "relay.read",
    "log.shown",
    "relay.appended",
    "consume.polled",
    "gate.enter",
    "gate.exit",
    "merge.begin",
    "merge.part",
    "merge.commit",
    "merge.indexed",
    "outcome.append",
    "outcome.appended",
    "project.begin",
    "project.commit",
    "position.commit",
    "compact.begin",
    "compact.built",
    "compact.part",
    "compact.commit",
    "upload.part",
    "upload.named",
    "upload.sealed",
    "upload.rows",
    "upload.commit",
    "stage.begin",
    "stage.part",
    "stage.end",
    "stage.linked",
    "stage.commit",
    "upload.freed",
];

/// The crash points of sign-ups, claims and connections of apps, inside and right after their transactions, and of jobs
/// that were done.
pub const ACCOUNT_POINTS: [&str; 12] = [
    "signup.rows",
    "signup.commit",
    "verify.taken",
    "claim.rows",
    "claim.commit",
    "approve.decided",
    "approve.agent",
    "approve.key",
    "consent.code",
    "token.rows",
    "token.commit",
    "job.done",
];

/// The crash points that only knowledge units pass, in their order.
pub const KNOWLEDGE_POINTS: [&str; 9] = [
    "review.gates",
    "review.asked",
    "review.judged",
    "publish.checked",
    "publish.part",
    "publish.commit",
    "publish.indexed",
    "project.unit",
    "project.points",
];

/// The crash points of a payment by x402 in the order that it passes them, then those of a payout.
pub const PAY_POINTS: [&str; 11] = [
    "pay.received",
    "pay.bound",
    "pay.verified",
    "pay.settling",
    "pay.answered",
    "pay.settled",
    "pay.served",
    "payout.picked",
    "payout.sending",
    "payout.answered",
    "payout.booked",
];

/// The crash points of a purchase that waits for a person: right after its row, then inside and right after the
/// transaction of a yes.
pub const APPROVAL_POINTS: [&str; 3] = ["approval.asked", "approval.rows", "approval.bought"];

/// The crash points of a run of a collector, in its order.
pub const COLLECTOR_POINTS: [&str; 6] = [
    "collect.begun",
    "collect.fetched",
    "collect.judged",
    "collect.submitted",
    "collect.ending",
    "collect.ended",
];

/// The crash points of the deletion of a dataset, in its order: inside and right after its transaction, then those of its
/// job.
pub const DELETION_POINTS: [&str; 6] = [
    "delete.rows",
    "delete.commit",
    "delete.ended",
    "delete.first",
    "delete.objects",
    "delete.cleared",
];

/// The crash points of a build of a profile, in its order: after a sketch was put, then inside and right after its
/// transaction.
pub const PROFILE_POINTS: [&str; 3] = ["profile.sketch", "profile.rows", "profile.commit"];

/// A bug that the tests must catch. Each removes one guard of the argument that everything
/// happens once, or of what is read or paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedBug {
    /// The 201 is sent before its transaction commits.
    AckBeforeRow,
    /// Nobody asks a table what it merged before: neither who commits, nor who publishes outcomes.
    NoGuard,
    /// Duplicates are searched before the critical section only.
    DedupOnce,
    /// The outcome is emitted before the table's commit.
    OutcomeBeforeCommit,
    /// A lost race for a commit is retried under the next number without reading the winner.
    LibraryRebase,
    /// A compacted part contains one row twice and lacks another.
    CompactionLosesRow,
    /// A compaction is committed without checking the parts it replaces.
    CompactionBlind,
    /// An upload is compared with an index that lacks versions which its commit assumes to be covered.
    UploadBlind,
    /// Readers do not compare parts and commits with their hashes.
    BlindReads,
    /// A worker of units does not look if a version was published before.
    UnitTwice,
    /// The points of a version are given again with an outcome that was applied before.
    PointsTwice,
    /// A payment that is settled is credited twice.
    SettledTwice,
    /// A sale gives its item, and no money moves.
    SaleUnpaid,
    /// The fee takes a cent of the share.
    FeeTooHigh,
    /// A balance is written that was read before the latest change of it.
    StaleBalance,
    /// A share stays on hold when it becomes payable.
    ReleasedTwice,
    /// A refund leaves the item to its buyer.
    RefundKeepsItem,
    /// Each attempt of a payout has a nonce of its own.
    PayoutNonces,
    /// The answer of a payment is given again to whoever sends its authorization.
    ReplayToAnybody,
    /// A facilitator is asked to settle before the row says so.
    SettlesUncommitted,
    /// A payment grants its item before it is settled.
    GrantsFirst,
    /// A payment is served before it is settled.
    ServesUnsettled,
    /// A settlement without an answer is taken for a refusal.
    LostIsRefused,
    /// A refusal of a later attempt is taken as proof about the first.
    RefusalIsProof,
    /// A new payment is asked for while the last one is not known.
    AsksAgain,
    /// More than a price is taken for it.
    TakesMore,
    /// A purchase counts for the operator that only names its wallet.
    UnprovedOwner,
    /// HEAD settles a payment.
    HeadSettles,
    /// The time of an authorization is judged before it is looked up.
    JudgesTimeFirst,
    /// A transfer that comes after a failure is not seen.
    LateIsIgnored,
    /// Bytes are sent that were not leased.
    SendsUnleased,
    /// The events of a payout do not have its key.
    PayoutKeyless,
    /// The fee is one of the whole price.
    FeeOnWhole,
    /// Given credits pay what is no trial sale.
    GivenOnPriced,
    /// A trial sale pays its seller.
    TrialPays,
    /// The address that is asked for decides who owns an item, and not the wallet.
    OwnerByPath,
    /// A wallet signs in by a challenge of somebody else.
    ForeignNonce,
    /// A challenge opens a door twice.
    NonceUsedAgain,
    /// A payment with a secret gets its answer again without it.
    SecretIgnored,
    /// Each call signs a receipt of its own.
    ReceiptOfEachCall,
    /// Reads through the server of the directory are charged.
    DirectoryCharged,
    /// What an app spends is held against the limits of its agent alone.
    AppUncapped,
    /// A yes pays more than the person saw.
    YesWithoutPrice,
    /// A counter is written that was read before the latest charge.
    StaleCounter,
}

impl InjectedBug {
    /// Bugs that only knowledge units pass.
    pub const OF_UNITS: [Self; 2] = [Self::UnitTwice, Self::PointsTwice];

    /// Bugs that only money passes.
    pub const OF_MONEY: [Self; 8] = [
        Self::SettledTwice,
        Self::SaleUnpaid,
        Self::FeeTooHigh,
        Self::StaleBalance,
        Self::ReleasedTwice,
        Self::RefundKeepsItem,
        Self::PayoutNonces,
        Self::ReplayToAnybody,
    ];

    /// The injected bugs that processes are started with, by their names on the command line of the crash tests. The
    /// others are planted in a thread (`turns_red`).
    pub const ALL: [(&'static str, Self); 19] = [
        ("ack-before-row", Self::AckBeforeRow),
        ("no-guard", Self::NoGuard),
        ("dedup-once", Self::DedupOnce),
        ("outcome-before-commit", Self::OutcomeBeforeCommit),
        ("library-rebase", Self::LibraryRebase),
        ("compaction-loses-row", Self::CompactionLosesRow),
        ("compaction-blind", Self::CompactionBlind),
        ("upload-blind", Self::UploadBlind),
        ("blind-reads", Self::BlindReads),
        ("unit-twice", Self::UnitTwice),
        ("points-twice", Self::PointsTwice),
        ("settled-twice", Self::SettledTwice),
        ("sale-unpaid", Self::SaleUnpaid),
        ("fee-too-high", Self::FeeTooHigh),
        ("stale-balance", Self::StaleBalance),
        ("released-twice", Self::ReleasedTwice),
        ("refund-keeps-item", Self::RefundKeepsItem),
        ("payout-nonces", Self::PayoutNonces),
        ("replay-to-anybody", Self::ReplayToAnybody),
    ];
}

#[cfg(feature = "faults")]
mod armed {
    use std::cell::Cell;
    use std::hint::black_box;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::InjectedBug;
    use crate::Batch;

    #[derive(Debug)]
    struct Armed {
        point: String,
        countdown: AtomicU64,
        after: Option<PathBuf>,
        bug: Option<InjectedBug>,
        lethal: String,
    }

    /// Beginning of a lethal text that only encoders die of.
    const OF_ENCODERS: &str = "encoder:";
    /// Beginning of a lethal text that exhausts the stack of the thread that judges it.
    const OF_STACKS: &str = "stack:";

    static ARMED: OnceLock<Armed> = OnceLock::new();

    /// Arms the process once. It kills itself at the `nth` passage (from 1) of `point`; if `after` names a file, only
    /// passages while the file exists count. `bug` enables a bug. Input that contains `lethal` aborts the process,
    /// unless `lethal` is empty. After `encoder:`, it aborts the process when it is encoded and not before. After
    /// `stack:`, it exhausts the stack.
    pub fn arm(point: String, nth: u64, after: Option<PathBuf>, bug: Option<InjectedBug>, lethal: String) {
        ARMED.get_or_init(|| Armed {
            point,
            countdown: AtomicU64::new(nth),
            after,
            bug,
            lethal,
        });
    }

    /// Aborts the process, as a stack overflow or a failed allocation would, if the text contains the armed `lethal`
    /// text.
    pub fn crash_on(text: &[u8]) {
        let lethal = lethal();
        if let Some(lethal) = lethal.strip_prefix(OF_STACKS) {
            if has(text, lethal) {
                exhaust_stack(0);
            }
        } else if !lethal.starts_with(OF_ENCODERS) {
            crash_if(text, lethal);
        }
    }

    /// Calls itself until the stack is full, which ends the process.
    fn exhaust_stack(depth: u64) -> u64 {
        let frame = black_box([depth; 128]);
        if depth == u64::MAX {
            return depth;
        }
        exhaust_stack(depth + 1) ^ frame[0]
    }

    /// Aborts the process if a row contains the armed `lethal` text of encoders.
    pub fn crash_encoder_on(batch: &Batch) {
        let lethal = lethal().strip_prefix(OF_ENCODERS).unwrap_or_default();
        for row in 0..batch.len() {
            crash_if(batch.canonical(row), lethal);
        }
    }

    fn crash_if(text: &[u8], lethal: &str) {
        if has(text, lethal) {
            std::process::abort();
        }
    }

    fn has(text: &[u8], lethal: &str) -> bool {
        let lethal = lethal.as_bytes();
        !lethal.is_empty() && text.windows(lethal.len()).any(|window| window == lethal)
    }

    /// Returns the lethal text that the process was armed with, or an empty one.
    pub fn lethal() -> &'static str {
        ARMED.get().map_or("", |armed| &armed.lethal)
    }

    /// Arms a process of a trial, which dies of nothing but `lethal`.
    pub fn arm_trial(lethal: &str) {
        // No crash point and no bug: a trial tells of its message only if nothing else can end it.
        arm(String::new(), 0, None, None, lethal.to_owned());
    }

    /// Passes a crash point and kills the process if it is armed.
    pub fn point(name: &'static str) {
        let lists: [&[&str]; 8] = [
            &super::CRASH_POINTS,
            &super::ACCOUNT_POINTS,
            &super::KNOWLEDGE_POINTS,
            &super::PAY_POINTS,
            &super::APPROVAL_POINTS,
            &super::COLLECTOR_POINTS,
            &super::DELETION_POINTS,
            &super::PROFILE_POINTS,
        ];
        let is_listed = lists.iter().any(|list| list.contains(&name));
        // The crash tests walk the lists, so a point that is in none would never be tried.
        debug_assert!(is_listed, "crash point `{name}` is not in the list");
        let Some(armed) = ARMED.get().filter(|armed| armed.point == name) else {
            return;
        };
        // Passages before the file exists do not count, so a test decides when the countdown
        // begins.
        if armed.after.as_ref().is_some_and(|after| !after.exists()) {
            return;
        }
        if armed.countdown.fetch_sub(1, Ordering::SeqCst) == 1 {
            kill_this_process();
        }
    }

    thread_local! {
        static PLANTED: Cell<Option<InjectedBug>> = const { Cell::new(None) };
    }

    /// Returns true if `bug` is enabled in this process, or planted in this thread.
    pub fn is_injected(bug: InjectedBug) -> bool {
        PLANTED.get() == Some(bug) || ARMED.get().is_some_and(|armed| armed.bug == Some(bug))
    }

    /// Runs a test with a bug planted in this thread, and returns true if the test fails. The test must do its work in
    /// this thread, as one on a runtime of a single thread does.
    pub fn turns_red(bug: InjectedBug, test: impl FnOnce()) -> bool {
        PLANTED.set(Some(bug));
        let failed = catch_unwind(AssertUnwindSafe(test)).is_err();
        PLANTED.set(None);
        failed
    }

    /// Sends SIGKILL, so that no destructor runs and nothing is flushed.
    fn kill_this_process() {
        let pid = std::process::id().to_string();
        // `unsafe` is forbidden, so the signal is sent by the `kill` command.
        let killed = std::process::Command::new("kill").args(["-KILL", &pid]).status();
        debug_assert!(killed.is_ok(), "the kill command must run");
        // SIGKILL may take a moment to arrive; nothing further must run until then.
        loop {
            std::thread::park();
        }
    }
}

#[cfg(feature = "faults")]
pub use armed::{arm, arm_trial, crash_encoder_on, crash_on, is_injected, lethal, point, turns_red};

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
#[inline]
pub const fn point(_name: &'static str) {}

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
#[inline]
pub const fn crash_on(_text: &[u8]) {}

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
#[inline]
pub const fn crash_encoder_on(_batch: &Batch) {}

/// Returns an empty text without the feature `faults`.
#[cfg(not(feature = "faults"))]
pub const fn lethal() -> &'static str {
    ""
}

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
pub const fn arm_trial(_lethal: &str) {}
