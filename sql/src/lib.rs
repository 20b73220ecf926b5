//! The query sandbox: one SELECT over the records of a version, in a separate process that can be killed.
//!
//! Invariants:
//! - A statement is checked against an allow list of syntax and functions ([`mod@check`]) before a process gets it,
//!   and again in the process.
//! - A process serves one query of one caller and ends. It has no environment, no secrets, no file system, no network
//!   and cannot start a process. It can read the open part files of the version, and answer.
//! - A process never outlives its deadline or its query. It is killed.
//! - A query's memory is allocated in its process, which has a limit. The caller holds an answer of at most
//!   [`MAX_ANSWER_BYTES`].
//!
//! ```text
//! caller                                 child (the same program, started with a hidden argument, kept ready)
//! check(sql)                             limits, warm engine, fence, "ready"
//! job: contract, statement, limit   ──▶  check, plan
//! descriptors of the parts          ──▶  read pages of the parts
//! answer of typed columns           ◀──  render rows, end
//! ```
//!
//! # Columns and values
//!
//! The table `records` has the fields of the contract, in their order, and [`types::contract::EXTRA_COLUMN`] if the
//! contract allows extra members. Unquoted names match fields without regard to case. A statement of the service itself may
//! also name [`types::contract::PLACE_COLUMNS`] ([`Sandbox::query_with_places`]).
//!
//! Values of an answer:
//!
//! - Integers are JSON numbers of 64 bits. Decimals are texts.
//! - A sum of integers is a JSON number, or a text if it leaves 64 bits. An average of integers, and what else has a
//!   fraction and is computed from integers and literals, is a double.
//! - Doubles are JSON numbers, or the texts `NaN`, `Infinity` and `-Infinity`.
//! - Timestamps are RFC 3339 texts, without an offset if the column has no time zone. Dates are `YYYY-MM-DD`.
//! - A difference of timestamps is an ISO 8601 text in seconds, `PT86460S`. Any other interval is a text in words.
//! - Binary values are hexadecimal texts.
//! - A field of type `json` that the query returns unchanged, under any name, has the type `Json` and its own JSON
//!   value. Inside a query, after a cast or a function, and in a UNION with texts, it is canonical JSON text.
//!
//! Arithmetic: types inside of a statement are those of `PostgreSQL`, so a sum of integers is numeric. An integer that
//! leaves its type is an error. A literal with a point is numeric beside an integer or a decimal, and a double beside a
//! double. A double that is cast to an integer is rounded to the nearest integer, and a tie to the even one; a numeric
//! is rounded away from zero.
//!
//! Times: a timestamp has microseconds. A timestamp with a time zone is an instant, shown in UTC; `AT TIME ZONE` turns
//! it into the local time of a zone, and back. Intervals are compared by their length, with 30 days a month and 24
//! hours a day.
//!
//! # Dialect
//!
//! The engine is `DataFusion`, and a statement has the meaning that it has in `PostgreSQL`. `deploy/sluice/API.md`
//! lists the syntax that is refused because the engine would answer differently. [`mod@check`] refuses it, or a rule of
//! the child's planner. Where it can be, the engine's meaning is replaced instead:
//!
//! - Operators bind as in `PostgreSQL`; `^` is the power, `#` the exclusive or.
//! - No NaN and no infinity comes from finite doubles: the statement fails. A double has one zero.
//! - A condition under AND or OR is evaluated only where those before it do not decide.
//! - A text is compared with a text only. A literal without a cast takes the type of the other side.
//! - A subscript of a list counts from 1, and an entry that is not there is null.
//! - A regular expression is one of `PostgreSQL`: `.` matches a line end, and the longest match counts.
//! - Columns may have equal names.
//!
//! Errors are in plain words and name no part of the engine.

mod answer;
pub mod check;
pub mod child;
mod error;
mod sandbox;
mod time;
mod wire;

pub use answer::{Column, MAX_ANSWER_BYTES, QueryAnswer, Unrepeatable};
pub use check::{Refusal, check};
pub use error::Error;
pub use sandbox::{Sandbox, SandboxConfig, SandboxPart, VersionRecords};
