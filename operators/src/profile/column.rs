//! The exact figures of one column.
//!
//! Invariant: each is a count, a smallest or largest value, an exact sum, or a function of the set of values.

use arrow::array::{
    Array, ArrayAccessor, ArrayIter, AsArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array,
    RecordBatch, StringArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;
use types::FieldType;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::codec::{SketchReader, SketchWriter};
use super::distinct::{DistinctHashes, FrequentTexts};
use super::exact::{MomentUnit, Moments};
use super::figures::JsonKinds;
use super::sample::SampledValue;
use super::{MAX_FREQUENT_BYTES, SketchDamaged, SketchField};

/// The values of a column in some rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum ColumnValues<'a> {
    Texts(&'a StringArray),
    Jsons(&'a StringArray),
    Integers(&'a Int64Array),
    Numbers(&'a Float64Array),
    Booleans(&'a BooleanArray),
    Timestamps(&'a TimestampMicrosecondArray),
    Dates(&'a Date32Array),
    Decimals(&'a Decimal128Array),
}

impl<'a> ColumnValues<'a> {
    /// Finds the column of a field.
    pub(super) fn of(field: &SketchField, rows: &'a RecordBatch) -> Result<Self, ArrowError> {
        let name = &field.name;
        let column = rows.column_by_name(name);
        let column = column.ok_or_else(|| ArrowError::SchemaError(format!("there is no column `{name}`")))?;
        let values = match (field.kind, column.data_type()) {
            (FieldType::String, _) => column.as_string_opt().map(Self::Texts),
            (FieldType::Json, _) => column.as_string_opt().map(Self::Jsons),
            (FieldType::Integer, _) => column.as_primitive_opt::<Int64Type>().map(Self::Integers),
            (FieldType::Number, _) => column.as_primitive_opt::<Float64Type>().map(Self::Numbers),
            (FieldType::Boolean, _) => column.as_boolean_opt().map(Self::Booleans),
            (FieldType::Timestamp, DataType::Timestamp(TimeUnit::Microsecond, _)) => column
                .as_primitive_opt::<TimestampMicrosecondType>()
                .map(Self::Timestamps),
            (FieldType::Date, _) => column.as_primitive_opt::<Date32Type>().map(Self::Dates),
            // Units of another scale would be other numbers.
            (FieldType::Decimal(scale), DataType::Decimal128(_, units)) if u8::try_from(*units) == Ok(scale) => {
                column.as_primitive_opt::<Decimal128Type>().map(Self::Decimals)
            }
            (FieldType::Timestamp | FieldType::Decimal(_), _) => None,
        };
        values.ok_or_else(|| {
            let (kind, found) = (field.kind.name(), column.data_type());
            ArrowError::SchemaError(format!("the column `{name}` of the type `{kind}` holds {found}"))
        })
    }

    /// Returns the value of a row as the sample has it.
    pub(super) fn sampled(&self, row: usize, keeps_text: bool) -> SampledValue {
        let units = |units: Option<i128>| units.map_or(SampledValue::Null, SampledValue::Units);
        match self {
            Self::Texts(values) => value(*values, row).map_or(SampledValue::Null, |text| SampledValue::Text {
                characters: characters(text),
                text: (keeps_text && text.len() <= MAX_FREQUENT_BYTES).then(|| text.into()),
            }),
            Self::Jsons(values) => value(*values, row).map_or(SampledValue::Null, |text| SampledValue::Text {
                characters: characters(text),
                text: None,
            }),
            Self::Numbers(values) => match value(*values, row) {
                Some(number) if number.is_finite() => SampledValue::Number(plain_zero(number)),
                _ => SampledValue::Null,
            },
            // Every row is counted, so a sample would say less.
            Self::Booleans(_) => SampledValue::Null,
            Self::Integers(values) => units(value(*values, row).map(i128::from)),
            Self::Timestamps(values) => units(value(*values, row).map(i128::from)),
            Self::Dates(values) => units(value(*values, row).map(i128::from)),
            Self::Decimals(values) => units(value(*values, row)),
        }
    }

    fn nulls(&self) -> usize {
        match self {
            Self::Texts(values) | Self::Jsons(values) => values.null_count(),
            Self::Integers(values) => values.null_count(),
            Self::Numbers(values) => values.null_count(),
            Self::Booleans(values) => values.null_count(),
            Self::Timestamps(values) => values.null_count(),
            Self::Dates(values) => values.null_count(),
            Self::Decimals(values) => values.null_count(),
        }
    }
}

fn value<A: ArrayAccessor + Copy>(values: A, row: usize) -> Option<A::Item> {
    (row < values.len() && values.is_valid(row)).then(|| values.value(row))
}

fn valid<A: ArrayAccessor>(values: A) -> impl Iterator<Item = A::Item> {
    ArrayIter::new(values).flatten()
}

fn characters(text: &str) -> u64 {
    let count = if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    };
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Returns zero without a sign, which is the same number, and any other number as it is.
fn plain_zero(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number }
}

/// The exact figures of a column.
#[derive(Debug)]
pub(super) struct ColumnSketch {
    /// Rows without a value.
    pub(super) nulls: u64,
    pub(super) figures: ColumnFigures,
}

/// The figures of the values of a column by its type.
#[derive(Debug)]
pub(super) enum ColumnFigures {
    /// Integers, decimals, times and days.
    Units(UnitFigures),
    Numbers(NumberFigures),
    Booleans {
        trues: u64,
        falses: u64,
    },
    Texts(TextFigures),
    Jsons(JsonFigures),
}

/// The figures of whole numbers of a unit.
#[derive(Debug)]
pub(super) struct UnitFigures {
    /// Smallest and largest value.
    pub(super) range: Option<(i128, i128)>,
    pub(super) negative: u64,
    pub(super) zero: u64,
    /// Sums of numbers; times and days have none.
    pub(super) moments: Option<(MomentUnit, Moments)>,
    pub(super) distinct: DistinctHashes,
}

/// The figures of doubles. All but `not_finite` and `distinct` leave out infinities and what is no number.
#[derive(Debug)]
pub(super) struct NumberFigures {
    /// Smallest and largest value.
    pub(super) range: Option<(f64, f64)>,
    pub(super) negative: u64,
    pub(super) zero: u64,
    pub(super) not_finite: u64,
    pub(super) moments: Moments,
    pub(super) distinct: DistinctHashes,
}

/// The figures of texts.
#[derive(Debug)]
pub(super) struct TextFigures {
    pub(super) empty: u64,
    pub(super) lengths: LengthFigures,
    pub(super) frequent: FrequentTexts,
    pub(super) distinct: DistinctHashes,
}

/// The figures of JSON values.
#[derive(Debug)]
pub(super) struct JsonFigures {
    pub(super) kinds: JsonKinds,
    pub(super) lengths: LengthFigures,
    pub(super) distinct: DistinctHashes,
}

/// The lengths of texts in characters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LengthFigures {
    /// Shortest and longest.
    pub(super) range: Option<(u64, u64)>,
    pub(super) sum: u128,
}

impl ColumnSketch {
    /// Creates the figures of a column without rows.
    pub(super) fn new(kind: FieldType) -> Self {
        let moments = |unit| Some((unit, Moments::new(unit)));
        let figures = match kind {
            FieldType::String => ColumnFigures::Texts(TextFigures {
                empty: 0,
                lengths: LengthFigures::default(),
                frequent: FrequentTexts::new(),
                distinct: DistinctHashes::new(),
            }),
            FieldType::Json => ColumnFigures::Jsons(JsonFigures {
                kinds: JsonKinds::default(),
                lengths: LengthFigures::default(),
                distinct: DistinctHashes::new(),
            }),
            FieldType::Number => ColumnFigures::Numbers(NumberFigures {
                range: None,
                negative: 0,
                zero: 0,
                not_finite: 0,
                moments: Moments::new(MomentUnit::Number),
                distinct: DistinctHashes::new(),
            }),
            FieldType::Boolean => ColumnFigures::Booleans { trues: 0, falses: 0 },
            FieldType::Integer => ColumnFigures::Units(UnitFigures::new(moments(MomentUnit::Decimal(0)))),
            FieldType::Decimal(scale) => ColumnFigures::Units(UnitFigures::new(moments(MomentUnit::Decimal(scale)))),
            FieldType::Timestamp | FieldType::Date => ColumnFigures::Units(UnitFigures::new(None)),
        };
        Self { nulls: 0, figures }
    }

    /// Adds values of the column. `seed` is secret, so that nobody can make values whose hashes say another number of them.
    pub(super) fn add(&mut self, values: ColumnValues<'_>, seed: u64) {
        self.nulls += u64::try_from(values.nulls()).unwrap_or(u64::MAX);
        match (&mut self.figures, values) {
            (ColumnFigures::Units(figures), ColumnValues::Integers(values)) => {
                figures.add(valid(values).map(i128::from), seed);
            }
            (ColumnFigures::Units(figures), ColumnValues::Timestamps(values)) => {
                figures.add(valid(values).map(i128::from), seed);
            }
            (ColumnFigures::Units(figures), ColumnValues::Dates(values)) => {
                figures.add(valid(values).map(i128::from), seed);
            }
            (ColumnFigures::Units(figures), ColumnValues::Decimals(values)) => figures.add(valid(values), seed),
            (ColumnFigures::Numbers(figures), ColumnValues::Numbers(values)) => {
                valid(values).for_each(|value| figures.add(value, seed));
            }
            (ColumnFigures::Booleans { trues, falses }, ColumnValues::Booleans(values)) => {
                *trues += u64::try_from(values.true_count()).unwrap_or(u64::MAX);
                *falses += u64::try_from(values.false_count()).unwrap_or(u64::MAX);
            }
            (ColumnFigures::Texts(figures), ColumnValues::Texts(values)) => {
                valid(values).for_each(|text| figures.add(text, seed));
            }
            (ColumnFigures::Jsons(figures), ColumnValues::Jsons(values)) => {
                valid(values).for_each(|text| figures.add(text, seed));
            }
            // The figures and the values are of one field.
            _ => {}
        }
    }

    /// Adds the rows of the same column of another sketch.
    pub(super) fn merge(&mut self, other: &Self) {
        self.nulls += other.nulls;
        match (&mut self.figures, &other.figures) {
            (ColumnFigures::Units(ours), ColumnFigures::Units(theirs)) => ours.merge(theirs),
            (ColumnFigures::Numbers(ours), ColumnFigures::Numbers(theirs)) => ours.merge(theirs),
            (
                ColumnFigures::Booleans { trues, falses },
                ColumnFigures::Booleans {
                    trues: more,
                    falses: others,
                },
            ) => {
                *trues += more;
                *falses += others;
            }
            (ColumnFigures::Texts(ours), ColumnFigures::Texts(theirs)) => ours.merge(theirs),
            (ColumnFigures::Jsons(ours), ColumnFigures::Jsons(theirs)) => ours.merge(theirs),
            // The contracts are equal.
            _ => {}
        }
    }

    pub(super) fn encode(&self, out: &mut SketchWriter) {
        out.number(self.nulls);
        match &self.figures {
            ColumnFigures::Units(figures) => figures.encode(out),
            ColumnFigures::Numbers(figures) => figures.encode(out),
            ColumnFigures::Booleans { trues, falses } => {
                out.number(*trues);
                out.number(*falses);
            }
            ColumnFigures::Texts(figures) => figures.encode(out),
            ColumnFigures::Jsons(figures) => figures.encode(out),
        }
    }

    pub(super) fn decode(kind: FieldType, bytes: &mut SketchReader<'_>) -> Result<Self, SketchDamaged> {
        let nulls = bytes.rows()?;
        let figures = match kind {
            FieldType::String => ColumnFigures::Texts(TextFigures::decode(bytes)?),
            FieldType::Json => ColumnFigures::Jsons(JsonFigures::decode(bytes)?),
            FieldType::Number => ColumnFigures::Numbers(NumberFigures::decode(bytes)?),
            FieldType::Boolean => ColumnFigures::Booleans {
                trues: bytes.rows()?,
                falses: bytes.rows()?,
            },
            FieldType::Integer => ColumnFigures::Units(UnitFigures::decode(Some(MomentUnit::Decimal(0)), bytes)?),
            FieldType::Decimal(scale) => {
                ColumnFigures::Units(UnitFigures::decode(Some(MomentUnit::Decimal(scale)), bytes)?)
            }
            FieldType::Timestamp | FieldType::Date => ColumnFigures::Units(UnitFigures::decode(None, bytes)?),
        };
        Ok(Self { nulls, figures })
    }
}

impl UnitFigures {
    fn new(moments: Option<(MomentUnit, Moments)>) -> Self {
        Self {
            range: None,
            negative: 0,
            zero: 0,
            moments,
            distinct: DistinctHashes::new(),
        }
    }

    fn add(&mut self, values: impl Iterator<Item = i128>, seed: u64) {
        // Sums of many values fit 128 bits, so the wide ones are touched once.
        let (mut sum, mut squares) = (0_i128, 0_u128);
        let (mut min, mut max) = self.range.unwrap_or((i128::MAX, i128::MIN));
        for value in values {
            (min, max) = (min.min(value), max.max(value));
            self.negative += u64::from(value < 0);
            self.zero += u64::from(value == 0);
            self.distinct.add(xxh3_64_with_seed(&value.to_le_bytes(), seed));
            if let Some((_, moments)) = &mut self.moments {
                let square = value.unsigned_abs().checked_mul(value.unsigned_abs());
                let both = square
                    .and_then(|square| squares.checked_add(square))
                    .zip(sum.checked_add(value));
                if let Some((squares_so_far, sum_so_far)) = both {
                    (sum, squares) = (sum_so_far, squares_so_far);
                } else {
                    moments.add_units(value);
                }
            }
        }
        if min <= max {
            self.range = Some((min, max));
        }
        if let Some((_, moments)) = &mut self.moments {
            moments.add_sums(sum, squares);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.range = joined(self.range, other.range, Ord::min, Ord::max);
        self.negative += other.negative;
        self.zero += other.zero;
        if let (Some((_, ours)), Some((_, theirs))) = (&mut self.moments, &other.moments) {
            ours.merge(theirs);
        }
        self.distinct.merge(&other.distinct);
    }

    fn encode(&self, out: &mut SketchWriter) {
        out.count(usize::from(self.range.is_some()));
        if let Some((min, max)) = self.range {
            out.signed(min);
            out.signed(max);
        }
        out.number(self.negative);
        out.number(self.zero);
        if let Some((_, moments)) = &self.moments {
            moments.encode(out);
        }
        self.distinct.encode(out);
    }

    fn decode(unit: Option<MomentUnit>, bytes: &mut SketchReader<'_>) -> Result<Self, SketchDamaged> {
        let range = match bytes.count()? {
            0 => None,
            _ => Some((bytes.signed()?, bytes.signed()?)),
        };
        let (negative, zero) = (bytes.rows()?, bytes.rows()?);
        let moments = match unit {
            Some(unit) => Some((unit, Moments::decode(unit, bytes)?)),
            None => None,
        };
        Ok(Self {
            range,
            negative,
            zero,
            moments,
            distinct: DistinctHashes::decode(bytes)?,
        })
    }
}

impl NumberFigures {
    fn add(&mut self, value: f64, seed: u64) {
        // What is no number has many bit patterns, and is one value.
        let value = if value.is_nan() { f64::NAN } else { plain_zero(value) };
        self.distinct
            .add(xxh3_64_with_seed(&value.to_bits().to_le_bytes(), seed));
        if !value.is_finite() {
            self.not_finite += 1;
            return;
        }
        let (min, max) = self.range.unwrap_or((value, value));
        self.range = Some((min.min(value), max.max(value)));
        self.negative += u64::from(value < 0.0);
        self.zero += u64::from(value == 0.0);
        self.moments.add_number(value);
    }

    fn merge(&mut self, other: &Self) {
        self.range = joined(self.range, other.range, f64::min, f64::max);
        self.negative += other.negative;
        self.zero += other.zero;
        self.not_finite += other.not_finite;
        self.moments.merge(&other.moments);
        self.distinct.merge(&other.distinct);
    }

    fn encode(&self, out: &mut SketchWriter) {
        out.count(usize::from(self.range.is_some()));
        if let Some((min, max)) = self.range {
            out.bytes(&min.to_bits().to_le_bytes());
            out.bytes(&max.to_bits().to_le_bytes());
        }
        out.number(self.negative);
        out.number(self.zero);
        out.number(self.not_finite);
        self.moments.encode(out);
        self.distinct.encode(out);
    }

    fn decode(bytes: &mut SketchReader<'_>) -> Result<Self, SketchDamaged> {
        let range = match bytes.count()? {
            0 => None,
            _ => Some((bytes.double()?, bytes.double()?)),
        };
        Ok(Self {
            range,
            negative: bytes.rows()?,
            zero: bytes.rows()?,
            not_finite: bytes.rows()?,
            moments: Moments::decode(MomentUnit::Number, bytes)?,
            distinct: DistinctHashes::decode(bytes)?,
        })
    }
}

impl TextFigures {
    fn add(&mut self, text: &str, seed: u64) {
        self.empty += u64::from(text.is_empty());
        self.lengths.add(text);
        // A text that was counted has been hashed.
        if !self.frequent.add(text) {
            self.distinct.add(xxh3_64_with_seed(text.as_bytes(), seed));
        }
    }

    fn merge(&mut self, other: &Self) {
        self.empty += other.empty;
        self.lengths.merge(other.lengths);
        self.frequent.merge(&other.frequent);
        self.distinct.merge(&other.distinct);
    }

    fn encode(&self, out: &mut SketchWriter) {
        out.number(self.empty);
        self.lengths.encode(out);
        self.frequent.encode(out);
        self.distinct.encode(out);
    }

    fn decode(bytes: &mut SketchReader<'_>) -> Result<Self, SketchDamaged> {
        Ok(Self {
            empty: bytes.rows()?,
            lengths: LengthFigures::decode(bytes)?,
            frequent: FrequentTexts::decode(bytes)?,
            distinct: DistinctHashes::decode(bytes)?,
        })
    }
}

impl JsonFigures {
    fn add(&mut self, text: &str, seed: u64) {
        let kinds = &mut self.kinds;
        let kind = match text.as_bytes().first() {
            Some(b'{') => Some(&mut kinds.object),
            Some(b'[') => Some(&mut kinds.array),
            Some(b'"') => Some(&mut kinds.string),
            Some(b't' | b'f') => Some(&mut kinds.boolean),
            Some(b'-' | b'0'..=b'9') => Some(&mut kinds.number),
            // A null of JSON is a null of the column, so nothing else begins a value.
            _ => None,
        };
        if let Some(rows) = kind {
            *rows += 1;
        }
        self.lengths.add(text);
        self.distinct.add(xxh3_64_with_seed(text.as_bytes(), seed));
    }

    fn counts(kinds: &mut JsonKinds) -> [&mut u64; 5] {
        [
            &mut kinds.object,
            &mut kinds.array,
            &mut kinds.string,
            &mut kinds.number,
            &mut kinds.boolean,
        ]
    }

    fn merge(&mut self, other: &Self) {
        let mut kinds = other.kinds;
        for (ours, theirs) in Self::counts(&mut self.kinds).into_iter().zip(Self::counts(&mut kinds)) {
            *ours += *theirs;
        }
        self.lengths.merge(other.lengths);
        self.distinct.merge(&other.distinct);
    }

    fn encode(&self, out: &mut SketchWriter) {
        let mut kinds = self.kinds;
        for rows in Self::counts(&mut kinds) {
            out.number(*rows);
        }
        self.lengths.encode(out);
        self.distinct.encode(out);
    }

    fn decode(bytes: &mut SketchReader<'_>) -> Result<Self, SketchDamaged> {
        let mut kinds = JsonKinds::default();
        for rows in Self::counts(&mut kinds) {
            *rows = bytes.rows()?;
        }
        Ok(Self {
            kinds,
            lengths: LengthFigures::decode(bytes)?,
            distinct: DistinctHashes::decode(bytes)?,
        })
    }
}

impl LengthFigures {
    fn add(&mut self, text: &str) {
        let length = characters(text);
        let (min, max) = self.range.unwrap_or((length, length));
        self.range = Some((min.min(length), max.max(length)));
        self.sum += u128::from(length);
    }

    fn merge(&mut self, other: Self) {
        self.range = joined(self.range, other.range, Ord::min, Ord::max);
        self.sum += other.sum;
    }

    fn encode(self, out: &mut SketchWriter) {
        out.count(usize::from(self.range.is_some()));
        if let Some((min, max)) = self.range {
            out.number(min);
            out.number(max);
        }
        out.wide(self.sum);
    }

    fn decode(bytes: &mut SketchReader<'_>) -> Result<Self, SketchDamaged> {
        let range = match bytes.count()? {
            0 => None,
            _ => Some((bytes.number()?, bytes.number()?)),
        };
        Ok(Self {
            range,
            sum: bytes.lengths()?,
        })
    }
}

/// Returns the smallest range with both.
fn joined<T: Copy>(
    ours: Option<(T, T)>,
    theirs: Option<(T, T)>,
    min: fn(T, T) -> T,
    max: fn(T, T) -> T,
) -> Option<(T, T)> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => Some((min(ours.0, theirs.0), max(ours.1, theirs.1))),
        (one, None) | (None, one) => one,
    }
}
