//! The query sandbox: one SELECT over the records of a version, in a killable process of its own.
//!
//! Invariants:
//! - A statement is held against an allow list of syntax and functions ([`mod@check`]) before a process sees it, and again in it.
//! - A process serves one query of one caller and ends. It has no environment, no secrets, no file system, no network and
//!   no way to start a process; it can read the open files of the version's parts, and answer.
//! - A process never outlives its deadline, nor the query it serves: it is killed.
//! - Memory that a query takes is taken in its process, which has a limit of its own; the caller holds an answer of at
//!   most [`MAX_ANSWER_BYTES`].
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
//! The table `records` has the fields of the contract, in their order, and [`types::contract::EXTRA_COLUMN`] where the
//! contract allows extras. Names that are not quoted match fields ignoring case. In an answer, integers are JSON numbers
//! of any size, doubles are JSON numbers or the texts `NaN`, `Infinity`, `-Infinity`, decimals are texts, timestamps are RFC
//! 3339 texts (without an offset where the column has no zone), dates `YYYY-MM-DD`, binary is text in hex. A field of type
//! `json` that a query hands on as it is, under whatever name, has the type `Json` and is the value it holds; inside a
//! query, after a cast or a function, and in a UNION with texts, it is canonical JSON text. An integer or a sum of integers
//! that leaves its type is an error: cast to DECIMAL where that can happen. A number with a point is a double, also where it
//! is cast to DECIMAL; a text that is cast keeps its digits. A double that is cast to an integer is rounded, to the even one
//! of two.
//!
//! # Dialect
//!
//! The engine is `DataFusion`, and a statement means what it means in `PostgreSQL`. `deploy/sluice/API.md` lists what is
//! refused because the engine would answer it otherwise: [`mod@check`] refuses it, or a rule of the child's planner.

mod answer;
pub mod check;
pub mod child;
mod error;
mod sandbox;
mod wire;

pub use answer::{Answer, Column, MAX_ANSWER_BYTES};
pub use check::{Refusal, check};
pub use error::Error;
pub use sandbox::{Config, Part, Records, Sandbox};
