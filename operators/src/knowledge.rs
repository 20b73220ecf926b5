//! The traits of the judges of knowledge units.
//!
//! Invariant: a judge that cannot answer says so. It never guesses, and no other judge answers in its place.

mod chunk_vectors;
mod facts;
mod fingerprint;
mod normal;
mod prints;
mod published;

use std::fmt::Debug;

use async_trait::async_trait;
use types::knowledge::{Axes, UnitText};
use types::unit::Judge;
use types::vocabulary::Language;
use types::{Timestamp, UnitId};

pub use chunk_vectors::{ChunkVectors, keep_best_hits};
pub use facts::{RARE_FACT_WEIGHT, TextFact, text_facts, written_facts};
pub use fingerprint::{Fingerprint, QuantisedVector, SIGNATURE, Signature};
pub use normal::{is_east_asian, normalised};
pub use prints::UnitPrints;
pub use published::{CopiedText, CopySearch, Likeness, Neighbour, PublishedUnit, PublishedUnits};

use crate::screen::Unavailable;

/// The nearest published unit of another chain. All is zero and empty if there is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearestUnit {
    /// Version of that unit.
    pub unit: Option<UnitId>,
    /// Cosine of the two vectors, from -1 to 1.
    pub cosine: f32,
}

/// One of the four axes of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// Support of the statements by evidence.
    Accuracy,
    /// Distance from what is published, and substance of its own.
    Novelty,
    /// Ease of doing it again.
    Reproducibility,
    /// Numbers and conditions in place of general advice.
    Specificity,
}

impl Axis {
    /// The axes in the order of [`Axes::tenths`].
    pub const ALL: [Self; 4] = [Self::Accuracy, Self::Novelty, Self::Reproducibility, Self::Specificity];

    /// Returns the name in JSON and in sentences.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::Novelty => "novelty",
            Self::Reproducibility => "reproducibility",
            Self::Specificity => "specificity",
        }
    }
}

/// A judge that looks for figures of a text that contradict each other. It is a fixed rule, so it always answers. Object
/// safe.
pub trait ContradictionFinder: Debug + Send + Sync {
    /// Returns the name that answers give.
    fn judge(&self) -> Judge;

    /// Returns a sentence for each contradiction, which names both figures. The text is data.
    fn contradictions(&self, unit: &UnitText, submitted_at: Timestamp) -> Vec<String>;
}

/// The answer of a [`Scorer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScorerAnswer {
    /// Scores of the four axes.
    pub axes: Axes,
    /// One request for each axis, in the order of [`Axis::ALL`]: the change that would raise it most.
    pub fixes: [String; 4],
    /// Reasons why the score is below the mark, quoted from the text, the weightiest first; the requests of the lowest
    /// axes stand in their place if there are none.
    pub reasons: Vec<String>,
    /// Language of the text.
    pub language: Language,
    /// Remark for the entry, such as that the text was cut.
    pub remark: Option<String>,
}

/// A judge that scores a unit. Object safe.
#[async_trait]
pub trait Scorer: Debug + Send + Sync {
    /// Returns the name that answers give.
    fn judge(&self) -> Judge;

    /// Scores a unit beside the nearest published one. The text is data.
    async fn score(&self, unit: &UnitText, near: &NearestUnit) -> Result<ScorerAnswer, Unavailable>;
}

/// The answer of a [`Comparer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparerAnswer {
    /// True if the unit adds something to the other.
    pub is_distinct: bool,
    /// Sentence that says what it adds.
    pub adds: String,
}

/// A judge that decides if a unit adds something to one of like meaning. Object safe.
#[async_trait]
pub trait Comparer: Debug + Send + Sync {
    /// Returns the name that answers give.
    fn judge(&self) -> Judge;

    /// Compares a unit with the nearest published one. The text is data. Returns `None` if that unit may not be shown,
    /// so that it cannot be compared with.
    async fn compare(&self, unit: &UnitText, near: &NearestUnit) -> Result<Option<ComparerAnswer>, Unavailable>;
}

/// The part of a published unit that anybody may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitPreview {
    /// Title of the published unit.
    pub title: String,
    /// Beginning of the body.
    pub text: String,
}

/// The previews of published units, for judges that compare with them. Object safe.
#[async_trait]
pub trait Previews: Debug + Send + Sync {
    /// Returns the preview of a version, or `None` if it is not shown now.
    async fn preview(&self, unit: UnitId) -> Option<UnitPreview>;
}

/// A vector of a text, of length 1.
pub type Vector = Vec<f32>;

/// A text to embed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedText<'a> {
    /// Title of a unit, or the text of a query.
    pub title: &'a str,
    /// Body of the text; empty for a query.
    pub body: &'a str,
}

/// The part that a text has in a comparison. Models are asked differently for the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TextRole {
    /// What is found or compared: a unit or a dataset.
    Document,
    /// What is asked for.
    Query,
}

/// A maker of vectors whose cosine grows with the likeness of the texts. Object safe.
#[async_trait]
pub trait Embedder: Debug + Send + Sync {
    /// Returns the id. Vectors of embedders with other ids cannot be compared.
    fn id(&self) -> &str;

    /// Returns the name that answers give.
    fn judge(&self) -> Judge;

    /// Returns the number of dimensions.
    fn dimensions(&self) -> usize;

    /// Returns vectors of length 1 for each text, in order: of a document one or more, the first of which stands for the
    /// whole or its title; of a query one.
    async fn embed(&self, texts: &[EmbeddedText<'_>], role: TextRole) -> Result<Vec<Vec<Vector>>, Unavailable>;
}
