//! The figures of a profile, as its document has them.
//!
//! Invariant: equal figures have equal JSON, byte for byte.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use types::contract::FieldTypeName;
use types::vocabulary::plain;

/// The detail of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(transform = plain)]
pub enum ProfileLevel {
    /// Coarse figures that give no single value away: shares in whole percent, bins without their tails.
    Public,
    /// Every figure.
    Full,
}

impl ProfileLevel {
    /// Returns the word of the level.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for ProfileLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The figures of the rows of a version. A member that is absent does not exist at the level or for the type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileFigures {
    /// Rows.
    pub records: u64,
    /// Rows in the sample: all of them up to 2,048.
    pub sampled: u64,
    /// Figures of each field, in the order of the contract.
    pub columns: Vec<ColumnProfile>,
    /// Figures of the members that the contract does not name, if it allows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<ExtraProfile>,
}

impl ProfileFigures {
    /// Leaves figures out until the JSON has at most `bytes` bytes: frequent values down to 5 and none, then quantiles,
    /// then bins. What is left of a contract of 256 fields has less than 256 KiB.
    pub fn cut_to(&mut self, bytes: usize) {
        for cut in [
            |column: &mut ColumnProfile| column.keep_frequent(5),
            |column: &mut ColumnProfile| column.keep_frequent(0),
            |column: &mut ColumnProfile| column.quantiles = None,
            ColumnProfile::remove_bins,
        ] {
            if serde_json::to_vec(self).is_ok_and(|text| text.len() <= bytes) {
                return;
            }
            self.columns.iter_mut().for_each(cut);
        }
    }
}

/// The figures of one field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ColumnProfile {
    /// Name of the field.
    pub name: String,
    /// Type of the field.
    #[serde(rename = "type")]
    pub kind: FieldTypeName,
    /// Digits after the point of a decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<u8>,
    /// Rows where the field is missing or null. Level `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nulls: Option<u64>,
    /// Percent of the rows where the field is missing or null, rounded. Level `public`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null_percent: Option<u8>,
    /// Number of different values, null aside.
    pub distinct: DistinctCount,
    /// Smallest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<ProfileValue>,
    /// Largest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<ProfileValue>,
    /// Earliest time or day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<ProfileValue>,
    /// Latest time or day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ProfileValue>,
    /// Arithmetic mean, rounded once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Standard deviation of a sample (divided by n - 1), 6 digits; from two numbers on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// Numbers below zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negative: Option<u64>,
    /// Numbers that are zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero: Option<u64>,
    /// Values that are infinite or no number; the other figures of numbers leave them out. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_finite: Option<u64>,
    /// Quantiles of the sample: values that occur in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantiles: Option<Quantiles>,
    /// Bins of numbers, times or days. At the level `public`, between the 1st and 99th hundredth of 100 values or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// Texts without a character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<u64>,
    /// Length of texts, or of the text of JSON values, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<LengthProfile>,
    /// At most 20 most frequent texts of at most 64 bytes, the most frequent first. Beyond 768 different texts those that
    /// several rows of the sample have, of the first 64 fields of texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<Vec<FrequentValue>>,
    /// Texts that `top` does not list: of all rows, or of the sample if the counts of `top` are not exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<u64>,
    /// Rows with `true`. Level `full`.
    #[serde(rename = "true", default, skip_serializing_if = "Option::is_none")]
    pub trues: Option<u64>,
    /// Rows with `false`. Level `full`.
    #[serde(rename = "false", default, skip_serializing_if = "Option::is_none")]
    pub falses: Option<u64>,
    /// Percent of the values that are `true`, rounded. Level `public`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub true_percent: Option<u8>,
    /// Kinds of JSON values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<JsonKinds>,
}

impl ColumnProfile {
    /// Returns the smallest and the largest value, or the earliest and the latest.
    pub fn range(&self) -> Option<(&ProfileValue, &ProfileValue)> {
        let least = self.min.as_ref().or(self.first.as_ref())?;
        Some((least, self.max.as_ref().or(self.last.as_ref())?))
    }

    /// Keeps the first of the frequent values, and counts the rest among the others.
    fn keep_frequent(&mut self, count: usize) {
        if let Some(top) = &mut self.top {
            let rest = top.split_off(count.min(top.len()));
            let rows: u64 = rest.iter().map(|frequent| frequent.count).sum();
            self.other = self.other.map(|other| other + rows);
        }
    }

    fn remove_bins(&mut self) {
        self.histogram = None;
        if let Some(length) = &mut self.length {
            length.histogram = None;
        }
    }
}

/// The number of different values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DistinctCount {
    /// The number, or an estimate of it (standard error 3 %).
    pub about: u64,
    /// True if it is the number.
    pub exact: bool,
}

/// A value as a record has it: decimals, times and days are text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ProfileValue {
    /// A value of the type `integer`, or a length.
    Integer(i64),
    /// A finite value of the type `number`.
    Number(f64),
    /// The text of a decimal, time or day.
    Text(String),
}

impl JsonSchema for ProfileValue {
    fn schema_name() -> Cow<'static, str> {
        "ProfileValue".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["number", "string"]})
    }
}

/// As records show the value; a number in the shortest form that is the same double.
impl fmt::Display for ProfileValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Number(value) if *value != 0.0 && !(1e-7..1e16).contains(&value.abs()) => write!(f, "{value:e}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Quantiles by the nearest rank: at least that many percent of the sample are not above the value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantiles {
    /// 1 %.
    pub p1: ProfileValue,
    /// 5 %.
    pub p5: ProfileValue,
    /// 25 %, the lower quartile.
    pub p25: ProfileValue,
    /// 50 %, the median.
    pub p50: ProfileValue,
    /// 75 %, the upper quartile.
    pub p75: ProfileValue,
    /// 95 %.
    pub p95: ProfileValue,
    /// 99 %.
    pub p99: ProfileValue,
}

/// At most 20 bins of one width, the last of which may be cut at the end of the type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Histogram {
    /// Edges in ascending order, one more than bins. A bin has its lower edge and not its upper one; the last has both.
    pub edges: Vec<ProfileValue>,
    /// Share of the sampled values in each bin, from 0 to 1: 4 digits after the point, at the level `public` 2.
    pub shares: Vec<f64>,
}

/// The length of texts in characters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LengthProfile {
    /// Characters of the shortest text. Level `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// Characters of the longest text. Level `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Arithmetic mean. Level `full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Bins of the lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
}

/// A frequent text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrequentValue {
    /// The text.
    pub value: String,
    /// Rows that have it, of all or of the sample.
    pub count: u64,
    /// True if all rows were counted.
    pub exact: bool,
}

/// The kinds of JSON values, in rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JsonKinds {
    /// Objects.
    pub object: u64,
    /// Arrays.
    pub array: u64,
    /// Strings.
    pub string: u64,
    /// Numbers.
    pub number: u64,
    /// `true` and `false`.
    pub boolean: u64,
}

/// The members that the contract does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExtraProfile {
    /// Rows that have any.
    pub records: u64,
}
