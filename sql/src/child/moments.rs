//! Variances, covariances, correlations and regressions, computed from means and from sums of squared distances to them.
//!
//! Invariant: neither a value nor its square is added where the spread is wanted, because values that are far from zero
//! would leave no digits for it. A row that left a moving frame has no effect on later results.

mod groups;
mod moving;

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature};

use self::groups::GroupMoments;
use self::moving::MovingMoments;

/// Columns of an intermediate result, in the order of [`Moments::state`].
const STATE_FIELDS: [&str; 10] = [
    "count", "sum_y", "sum_x", "first_y", "first_x", "mean_y", "mean_x", "yy", "xx", "xy",
];

/// Result of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum MomentsFunction {
    VarianceOfSample,
    Variance,
    DeviationOfSample,
    Deviation,
    CovarianceOfSample,
    Covariance,
    Correlation,
    Slope,
    Intercept,
    Count,
    R2,
    MeanX,
    MeanY,
    SumXx,
    SumYy,
    SumXy,
}

impl MomentsFunction {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "var" => Self::VarianceOfSample,
            "var_pop" => Self::Variance,
            "stddev" => Self::DeviationOfSample,
            "stddev_pop" => Self::Deviation,
            "covar_samp" => Self::CovarianceOfSample,
            "covar_pop" => Self::Covariance,
            "corr" => Self::Correlation,
            "regr_slope" => Self::Slope,
            "regr_intercept" => Self::Intercept,
            "regr_count" => Self::Count,
            "regr_r2" => Self::R2,
            "regr_avgx" => Self::MeanX,
            "regr_avgy" => Self::MeanY,
            "regr_sxx" => Self::SumXx,
            "regr_syy" => Self::SumYy,
            "regr_sxy" => Self::SumXy,
            _ => return None,
        })
    }

    /// Returns true for functions of one argument, which the engine also has for distinct values.
    const fn is_of_one(self) -> bool {
        matches!(
            self,
            Self::VarianceOfSample | Self::Variance | Self::DeviationOfSample | Self::Deviation
        )
    }
}

/// Returns the engine's functions, with those of this module replaced.
pub(super) fn functions(all: Vec<Arc<AggregateUDF>>) -> Vec<Arc<AggregateUDF>> {
    let replaced = |engine: Arc<AggregateUDF>| match MomentsFunction::of(engine.name()) {
        Some(function) => Arc::new(AggregateUDF::new_from_impl(OfMoments { function, engine })),
        None => engine,
    };
    all.into_iter().map(replaced).collect()
}

/// Means of pairs, and sums of the products of their distances to the means. A single column is the `y` of its pairs.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: f64,
    /// Of the values themselves.
    sum: ColumnPair,
    /// The first values. What is near to them has an exact distance to them.
    first: ColumnPair,
    /// Mean distances to the first values.
    mean: ColumnPair,
    /// Sums of squares of the distances to the means.
    squares: ColumnPair,
    /// Sum of the products of both distances.
    products: f64,
}

/// A number for each of the two columns.
#[derive(Clone, Copy, Debug, Default)]
struct ColumnPair {
    y: f64,
    x: f64,
}

impl ColumnPair {
    fn with(self, other: Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            y: combine(self.y, other.y),
            x: combine(self.x, other.x),
        }
    }

    fn plus(self, other: Self) -> Self {
        self.with(other, |one, other| one + other)
    }

    fn minus(self, other: Self) -> Self {
        self.with(other, |one, other| one - other)
    }

    fn times(self, by: f64) -> Self {
        Self {
            y: self.y * by,
            x: self.x * by,
        }
    }
}

impl Moments {
    /// Returns those of one pair. A value that is not finite has no distance to itself.
    fn of(y: f64, x: f64) -> Self {
        let first = ColumnPair { y, x };
        let none = first.times(0.0);
        Self {
            count: 1.0,
            sum: first,
            first,
            mean: ColumnPair::default(),
            squares: none,
            products: none.y + none.x,
        }
    }

    /// Returns those of both, as in Chan, Golub and `LeVeque`, "Updating formulae and a pairwise algorithm for computing
    /// sample variances".
    fn with(self, other: Self) -> Self {
        if self.count == 0.0 {
            return other;
        }
        if other.count == 0.0 {
            return self;
        }
        let count = self.count + other.count;
        let share = other.count / count;
        let weight = self.count * share;
        let between = other.first.minus(self.first).plus(other.mean.minus(self.mean));
        let squares = between.with(between, |one, other| one * other * weight);
        Self {
            count,
            sum: self.sum.plus(other.sum),
            first: self.first,
            mean: self.mean.plus(between.times(share)),
            squares: self.squares.plus(other.squares).plus(squares),
            products: self.products + other.products + between.y * between.x * weight,
        }
    }

    const fn state(self) -> [f64; STATE_FIELDS.len()] {
        let Self {
            count,
            sum,
            first,
            mean,
            squares,
            products,
        } = self;
        [
            count, sum.y, sum.x, first.y, first.x, mean.y, mean.x, squares.y, squares.x, products,
        ]
    }

    const fn of_state(state: [f64; STATE_FIELDS.len()]) -> Self {
        let [count, sum_y, sum_x, first_y, first_x, mean_y, mean_x, yy, xx, products] = state;
        Self {
            count,
            sum: ColumnPair { y: sum_y, x: sum_x },
            first: ColumnPair { y: first_y, x: first_x },
            mean: ColumnPair { y: mean_y, x: mean_x },
            squares: ColumnPair { y: yy, x: xx },
            products,
        }
    }

    /// Returns the result of a function, or null where `PostgreSQL` has none.
    fn result(self, function: MomentsFunction) -> Result<Option<f64>> {
        let Self {
            count,
            sum,
            squares: ColumnPair { y: yy, x: xx },
            products: xy,
            ..
        } = self;
        if function == MomentsFunction::Count {
            return Ok(Some(count));
        }
        let least = match function {
            MomentsFunction::VarianceOfSample
            | MomentsFunction::DeviationOfSample
            | MomentsFunction::CovarianceOfSample => 2.0,
            _ => 1.0,
        };
        if count < least {
            return Ok(None);
        }
        if [yy, xx, xy].iter().any(|sum| sum.is_infinite()) {
            let problem = "a number is out of the range of a double: overflow".to_owned();
            return Err(DataFusionError::Execution(problem));
        }
        let others = count - 1.0;
        Ok(match function {
            MomentsFunction::Count => Some(count),
            MomentsFunction::VarianceOfSample => Some(yy / others),
            MomentsFunction::Variance => Some(yy / count),
            MomentsFunction::DeviationOfSample => Some((yy / others).sqrt()),
            MomentsFunction::Deviation => Some((yy / count).sqrt()),
            MomentsFunction::CovarianceOfSample => Some(xy / others),
            MomentsFunction::Covariance => Some(xy / count),
            MomentsFunction::Correlation => (xx != 0.0 && yy != 0.0).then(|| {
                let product = xx * yy;
                // A product without room is taken apart.
                let root = if product.is_normal() {
                    product.sqrt()
                } else {
                    xx.sqrt() * yy.sqrt()
                };
                xy / root
            }),
            MomentsFunction::Slope => (xx != 0.0).then(|| xy / xx),
            MomentsFunction::Intercept => (xx != 0.0).then(|| (sum.y - sum.x * (xy / xx)) / count),
            MomentsFunction::R2 if xx == 0.0 => None,
            MomentsFunction::R2 if yy == 0.0 => Some(1.0),
            MomentsFunction::R2 => Some((xy / xx) * (xy / yy)),
            MomentsFunction::MeanX => Some(sum.x / count),
            MomentsFunction::MeanY => Some(sum.y / count),
            MomentsFunction::SumXx => Some(xx),
            MomentsFunction::SumYy => Some(yy),
            MomentsFunction::SumXy => Some(xy),
        })
    }

    /// As [`Self::result`], as a value of the function's type.
    fn scalar(self, function: MomentsFunction) -> Result<ScalarValue> {
        let result = self.result(function)?;
        if function == MomentsFunction::Count {
            #[expect(clippy::cast_possible_truncation, reason = "it is a number of rows")]
            let count = result.map(|count| count as i64);
            return Ok(ScalarValue::Int64(count));
        }
        // A double has one zero.
        Ok(ScalarValue::Float64(result.map(|result| result + 0.0)))
    }
}

/// Returns the values of one or two columns of arguments, by row. A row with a null is `None`.
fn pairs(values: &[ArrayRef]) -> Result<impl Iterator<Item = Option<(f64, f64)>>> {
    let column = |index: usize| values.get(index).map(AsArray::as_primitive::<Float64Type>);
    let y = column(0).ok_or_else(|| DataFusionError::Plan("an aggregate has an argument".to_owned()))?;
    let x = column(1);
    Ok((0..y.len()).map(move |row| {
        let valid = y.is_valid(row) && x.is_none_or(|x| x.is_valid(row));
        valid.then(|| (y.value(row), x.map_or(0.0, |x| x.value(row))))
    }))
}

/// Returns the intermediate results of the columns that [`STATE_FIELDS`] names.
fn states(columns: &[ArrayRef]) -> Result<impl Iterator<Item = Moments>> {
    let columns: Vec<&Float64Array> = columns.iter().map(AsArray::as_primitive).collect();
    let columns = <[&Float64Array; STATE_FIELDS.len()]>::try_from(columns);
    let columns = columns.ok();
    let columns = columns.ok_or_else(|| DataFusionError::Plan("an intermediate result has ten columns".to_owned()))?;
    Ok((0..columns[0].len()).map(move |row| Moments::of_state(columns.map(|column| column.value(row)))))
}

/// An aggregate of this module in place of the engine's.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfMoments {
    function: MomentsFunction,
    engine: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for OfMoments {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn aliases(&self) -> &[String] {
        self.engine.aliases()
    }

    fn signature(&self) -> &Signature {
        self.engine.signature()
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        self.engine.coerce_types(kinds)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(if self.function == MomentsFunction::Count {
            DataType::Int64
        } else {
            DataType::Float64
        })
    }

    fn default_value(&self, _: &DataType) -> Result<ScalarValue> {
        Moments::default().scalar(self.function)
    }

    fn is_nullable(&self) -> bool {
        self.function != MomentsFunction::Count
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if self.is_of_engine(args.is_distinct) {
            return self.engine.accumulator(args);
        }
        self.not_distinct(&args)?;
        Ok(Box::new(MomentsTotal {
            function: self.function,
            moments: Moments::default(),
        }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if self.is_of_engine(args.is_distinct) {
            return self.engine.state_fields(args);
        }
        let field =
            |part: &str| -> FieldRef { Field::new(format!("{}[{part}]", args.name), DataType::Float64, true).into() };
        Ok(STATE_FIELDS.into_iter().map(field).collect())
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct || (self.is_of_engine(true) && self.engine.groups_accumulator_supported(args))
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        if self.is_of_engine(args.is_distinct) {
            return self.engine.create_groups_accumulator(args);
        }
        Ok(Box::new(GroupMoments::new(self.function)))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.not_distinct(&args)?;
        Ok(Box::new(MovingMoments::new(self.function)))
    }
}

impl OfMoments {
    const fn is_of_engine(&self, distinct: bool) -> bool {
        distinct && self.function.is_of_one()
    }

    fn not_distinct(&self, args: &AccumulatorArgs<'_>) -> Result<()> {
        if args.is_distinct {
            let problem = format!(
                "{}(DISTINCT …) is not supported here: select distinct rows first",
                self.name()
            );
            return Err(DataFusionError::Plan(problem));
        }
        Ok(())
    }
}

/// One result over all rows.
#[derive(Debug)]
struct MomentsTotal {
    function: MomentsFunction,
    moments: Moments,
}

impl Accumulator for MomentsTotal {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for (y, x) in pairs(values)?.flatten() {
            self.moments = self.moments.with(Moments::of(y, x));
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.moments.scalar(self.function)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.moments.state().map(ScalarValue::from).into())
    }

    fn merge_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for moments in states(columns)? {
            self.moments = self.moments.with(moments);
        }
        Ok(())
    }
}
