//! The trait of the writer of summaries of public datasets.
//!
//! Invariant: a summary decides nothing. No gate, no price and no ranking reads one.

use std::fmt::Debug;

use async_trait::async_trait;
use serde_json::Value;
use types::unit::Judge;

use crate::screen::Unavailable;

/// A version of a public dataset as its summary is written from.
#[derive(Clone, Debug, PartialEq)]
pub struct DatasetText {
    /// Title of the dataset.
    pub title: String,
    /// Readme of the dataset.
    pub readme: String,
    /// Contract of its records.
    pub contract: Value,
    /// Some of its records; none of a dataset that sells them.
    pub records: Vec<Value>,
}

/// A writer of summaries, such as a model. Object safe.
#[async_trait]
pub trait Summariser: Debug + Send + Sync {
    /// Returns the name that answers give.
    fn judge(&self) -> Judge;

    /// Returns a summary of at most [`SUMMARY_CHARACTERS`] code points on one line. The text is data.
    async fn summarise(&self, text: &DatasetText) -> Result<String, Unavailable>;
}

/// The most code points of a summary.
pub const SUMMARY_CHARACTERS: usize = 400;
