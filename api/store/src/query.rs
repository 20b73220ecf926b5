//! Statements with typed arguments, and their running.
//!
//! [`sql!`] names a statement and its arguments in the order of `$1`, `$2`, …; [`Statement`] runs it. [`tx!`] writes the
//! change that a transaction makes as an async closure. [`text!`] joins pieces of a statement when it is compiled.
//!
//! Invariant: a value has one form in the database, which its [`Argument`] gives and its [`Column`](crate::row::Column)
//! reads. A number that a column may not hold is no argument: [`bigint`](crate::row::bigint) converts it, and the error
//! has the name of the column.

use std::borrow::Cow;

use oauth::ConnectionId;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{Any, AnyConnection, Decode, Executor, Row as _, SqlSafeStr, Type};
use types::vocabulary::{
    Access, ActivityKind, ActorKind, AllowanceKind, AppealStatus, ApprovalState, AskedBy, ClaimStatus, CommentKind,
    Compression, ContributionStatus, Discussed, DisputeState, ItemKind, JudgeKind, Language, LinkPurpose, MarkKind,
    PaidFor, PaidWith, PaymentState, PayoutState, PointsKind, ProjectStatus, ReportKind, ReportReason, ReportStatus,
    RequestKind, RequestStatus, ReviewStep, RunOutcome, SaleState, SpendKind, StaffRole, StaleReason, StepOutcome,
    TakedownReason, UnitAction, UnitStatus, UploadStatus, Visibility,
};
use types::{
    AgentId, ApprovalId, ClaimCodeId, ClaimId, ContributionId, DatasetId, DisputeId, LedgerEventId, LinkId, OperatorId,
    PaymentId, PointsEventId, ReportId, RequestId, SaleId, SessionId, TakedownId, Timestamp, TokenId, UnitId,
};

use crate::connections::Connections;
use crate::row::Row;
use crate::{Error, Store};

/// Makes a [`Statement`] of its text and its arguments.
macro_rules! sql {
    ($text:expr $(, $argument:expr)* $(,)?) => {
        $crate::query::Statement::new($text)$(.with($argument))*
    };
}

/// Makes the work of a transaction of `async move |cx| { … }`.
macro_rules! tx {
    (async move |$cx:ident| $body:block) => {
        move |$cx| Box::pin(async move $body)
    };
}

/// Joins constant texts to one.
macro_rules! text {
    ($($part:expr),+ $(,)?) => {{
        const PARTS: &[&str] = &[$($part),+];
        const BYTES: [u8; $crate::query::joined_length(PARTS, "")] = $crate::query::joined(PARTS, "");
        const TEXT: &str = $crate::query::utf8(&BYTES);
        TEXT
    }};
}

pub(crate) use {sql, text, tx};

/// A value that a statement takes in the place of a `$n`.
pub(crate) trait Argument {
    /// Adds the value in the form of the database.
    fn add_to(self, query: Query) -> Query;
}

type Query = sqlx::query::Query<'static, Any, AnyArguments>;

/// A connection, or a pool of them.
pub(crate) trait Session: Send {
    /// Returns what runs one statement.
    fn executor(&mut self) -> impl Executor<'_, Database = Any>;
}

impl Session for AnyConnection {
    fn executor(&mut self) -> impl Executor<'_, Database = Any> {
        self
    }
}

impl Session for &Connections {
    fn executor(&mut self) -> impl Executor<'_, Database = Any> {
        *self
    }
}

/// A statement with its arguments.
#[must_use]
pub(crate) struct Statement {
    query: Query,
}

impl Statement {
    /// Creates the statement with this text.
    pub(crate) fn new(text: impl SqlSafeStr) -> Self {
        Self {
            query: sqlx::query(text),
        }
    }

    /// Adds the next argument.
    pub(crate) fn with(self, argument: impl Argument) -> Self {
        Self {
            query: argument.add_to(self.query),
        }
    }

    /// Runs the statement and returns the number of rows that it changed.
    pub(crate) async fn run<S: Session>(self, cx: &mut S) -> Result<u64, Error> {
        Ok(cx.executor().execute(self.query).await?.rows_affected())
    }

    /// Returns the only row. No row is a defect of the statement.
    pub(crate) async fn row<S: Session>(self, cx: &mut S) -> Result<AnyRow, Error> {
        Ok(cx.executor().fetch_one(self.query).await?)
    }

    /// Returns the first row, if there is one.
    pub(crate) async fn row_if_any<S: Session>(self, cx: &mut S) -> Result<Option<AnyRow>, Error> {
        Ok(cx.executor().fetch_optional(self.query).await?)
    }

    /// Returns every row.
    pub(crate) async fn rows<S: Session>(self, cx: &mut S) -> Result<Vec<AnyRow>, Error> {
        Ok(cx.executor().fetch_all(self.query).await?)
    }

    /// Returns the only row, as its type. No row is a defect of the statement.
    pub(crate) async fn one<T: Row, S: Session>(self, cx: &mut S) -> Result<T, Error> {
        T::of(&self.row(cx).await?)
    }

    /// Returns the first row, if there is one, as its type.
    pub(crate) async fn optional<T: Row, S: Session>(self, cx: &mut S) -> Result<Option<T>, Error> {
        self.row_if_any(cx).await?.as_ref().map(T::of).transpose()
    }

    /// Returns every row, as its type.
    pub(crate) async fn all<T: Row, S: Session>(self, cx: &mut S) -> Result<Vec<T>, Error> {
        self.rows(cx).await?.iter().map(T::of).collect()
    }

    /// Returns the first column of the only row. No row is a defect of the statement.
    pub(crate) async fn scalar<T, S: Session>(self, cx: &mut S) -> Result<T, Error>
    where
        T: for<'r> Decode<'r, Any> + Type<Any>,
    {
        Ok(self.row(cx).await?.try_get(0)?)
    }

    /// Returns the first column of the first row, if there is one.
    pub(crate) async fn scalar_if_any<T, S: Session>(self, cx: &mut S) -> Result<Option<T>, Error>
    where
        T: for<'r> Decode<'r, Any> + Type<Any>,
    {
        let row = self.row_if_any(cx).await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }
}

/// Reads of one statement each, within the time limit of a call.
impl Store {
    /// Returns the only row. No row is a defect of the statement.
    pub(crate) async fn one<T: Row>(&self, statement: Statement) -> Result<T, Error> {
        self.read(statement.one(&mut self.readers())).await
    }

    /// Returns the first row, if there is one.
    pub(crate) async fn optional<T: Row>(&self, statement: Statement) -> Result<Option<T>, Error> {
        self.read(statement.optional(&mut self.readers())).await
    }

    /// Returns every row.
    pub(crate) async fn all<T: Row>(&self, statement: Statement) -> Result<Vec<T>, Error> {
        self.read(statement.all(&mut self.readers())).await
    }
}

/// Makes types arguments that the driver takes as they are.
macro_rules! plain_arguments {
    ($($type:ty)*) => {$(
        impl Argument for $type {
            fn add_to(self, query: Query) -> Query {
                query.bind(self)
            }
        }

        impl Argument for Option<$type> {
            fn add_to(self, query: Query) -> Query {
                query.bind(self)
            }
        }
    )*};
}

plain_arguments! { i64 String &str Vec<u8> &[u8] }

/// Makes types arguments by the value that is stored for them.
macro_rules! arguments {
    ($($type:ty: $value:ident => $stored:expr;)*) => {$(
        impl Argument for $type {
            fn add_to(self, query: Query) -> Query {
                let $value = self;
                query.bind($stored)
            }
        }

        impl Argument for Option<$type> {
            fn add_to(self, query: Query) -> Query {
                query.bind(self.map(|$value| $stored))
            }
        }
    )*};
}

arguments! {
    u32: number => i64::from(number);
    u16: number => i64::from(number);
    u8: number => i64::from(number);
    bool: flag => i64::from(flag);
    Timestamp: at => at.micros();
}

impl Argument for &String {
    fn add_to(self, query: Query) -> Query {
        query.bind(self.as_str())
    }
}

impl Argument for Cow<'_, str> {
    fn add_to(self, query: Query) -> Query {
        query.bind(self.as_ref())
    }
}

impl<const N: usize> Argument for [u8; N] {
    fn add_to(self, query: Query) -> Query {
        query.bind(&self[..])
    }
}

impl<const N: usize> Argument for &[u8; N] {
    fn add_to(self, query: Query) -> Query {
        query.bind(&self[..])
    }
}

impl<const N: usize> Argument for Option<[u8; N]> {
    fn add_to(self, query: Query) -> Query {
        query.bind(self.as_ref().map(<[u8; N]>::as_slice))
    }
}

/// Values that are stored as text: ids and words.
macro_rules! stored_as_text {
    ($($type:ident)*; $($word:ident)*) => {
        $(
            arguments! { $type: id => id.to_string(); }

            impl Argument for &$type {
                fn add_to(self, query: Query) -> Query {
                    query.bind(self.to_string())
                }
            }

            $crate::row::parsed_column! { $type }
        )*
        $(
            arguments! { $word: word => word.as_str(); }

            $crate::row::parsed_column! { $word }
        )*
    };
}

stored_as_text! {
    AgentId ApprovalId ClaimCodeId ClaimId ConnectionId ContributionId DatasetId DisputeId LedgerEventId LinkId OperatorId
    PaymentId PointsEventId ReportId RequestId SaleId SessionId TakedownId TokenId UnitId;
    Access ActivityKind ActorKind AllowanceKind AppealStatus ApprovalState AskedBy ClaimStatus CommentKind Compression
    ContributionStatus Discussed DisputeState ItemKind JudgeKind Language LinkPurpose MarkKind PaidFor PaidWith
    PaymentState PayoutState PointsKind ProjectStatus ReportKind ReportReason ReportStatus RequestKind RequestStatus
    ReviewStep RunOutcome SaleState SpendKind StaffRole StaleReason StepOutcome TakedownReason UnitAction UnitStatus UploadStatus
    Visibility
}

/// Returns the length of texts that are joined. Empty ones are left out.
pub(crate) const fn joined_length(parts: &[&str], separator: &str) -> usize {
    let mut length = 0;
    let mut at = 0;
    while at < parts.len() {
        if length > 0 && !parts[at].is_empty() {
            length += separator.len();
        }
        length += parts[at].len();
        at += 1;
    }
    length
}

/// Returns the bytes of texts that are joined. Empty ones are left out.
pub(crate) const fn joined<const N: usize>(parts: &[&str], separator: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let mut end = 0;
    let mut at = 0;
    while at < parts.len() {
        if end > 0 && !parts[at].is_empty() {
            end = copy(&mut bytes, end, separator);
        }
        end = copy(&mut bytes, end, parts[at]);
        at += 1;
    }
    bytes
}

const fn copy<const N: usize>(bytes: &mut [u8; N], from: usize, text: &str) -> usize {
    let text = text.as_bytes();
    let mut at = 0;
    while at < text.len() {
        bytes[from + at] = text[at];
        at += 1;
    }
    from + text.len()
}

/// Returns joined bytes as the text that they are.
pub(crate) const fn utf8(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // Unreachable: whole texts were joined.
        Err(_) => "",
    }
}
