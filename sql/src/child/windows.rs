//! Window functions that the engine answers otherwise than `PostgreSQL`: `lead` and `lag` with IGNORE NULLS, and with a
//! limit where they look ahead; ranks, which the engine counts without a sign.
//!
//! Invariant: `lead` and `lag` see a whole partition before they answer, so no row behind the current one is missing. A
//! rank has the type that it has in `PostgreSQL`, so that what is computed from it can be negative.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::window_state::WindowAggState;
use datafusion::logical_expr::{LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;

/// Returns the engine's window functions, with the ones that this module corrects replaced.
pub(super) fn functions(all: Vec<Arc<WindowUDF>>) -> Vec<Arc<WindowUDF>> {
    let corrected = |function: Arc<WindowUDF>| match function.name() {
        "lag" | "lead" | "nth_value" => Arc::new(WindowUDF::new_from_impl(WholeWindow { inner: function })),
        "row_number" | "rank" | "dense_rank" => signed(function, DataType::Int64),
        "ntile" => signed(function, DataType::Int32),
        _ => function,
    };
    all.into_iter().map(corrected).collect()
}

fn signed(inner: Arc<WindowUDF>, kind: DataType) -> Arc<WindowUDF> {
    Arc::new(WindowUDF::new_from_impl(SignedRank { inner, kind }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WholeWindow {
    inner: Arc<WindowUDF>,
}

impl WholeWindow {
    fn shifts(&self) -> bool {
        self.inner.name() != "nth_value"
    }
}

impl WindowUDFImpl for WholeWindow {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        self.inner.expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        let position = args
            .input_exprs()
            .get(1)
            .and_then(|expr| expr.downcast_ref::<Literal>());
        let position = position.and_then(|literal| literal.value().cast_to(&DataType::Int64).ok());
        if let (false, Some(ScalarValue::Int64(Some(..=0)))) = (self.shifts(), &position) {
            let problem = "the position of nth_value() must be greater than zero".to_owned();
            return Err(DataFusionError::Execution(problem));
        }
        let whole = self.shifts() && args.ignore_nulls();
        let inner = self.inner.partition_evaluator_factory(args)?;
        Ok(if whole {
            Box::new(WholePartition { inner })
        } else {
            inner
        })
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.field(args)
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.inner.sort_options()
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(kinds)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        if self.shifts() {
            ReversedUDWF::NotSupported
        } else {
            self.inner.reverse_expr()
        }
    }

    /// Lets no limit cut the rows that are still to come: a negative distance reverses the direction, and with IGNORE
    /// NULLS the distance is not known.
    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        if self.shifts() {
            LimitEffect::Unknown
        } else {
            self.inner.inner().limit_effect(args)
        }
    }
}

/// Evaluator that is asked for a whole partition only.
#[derive(Debug)]
struct WholePartition {
    inner: Box<dyn PartitionEvaluator>,
}

impl PartitionEvaluator for WholePartition {
    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.inner.get_range(row, rows)
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.inner.evaluate_all(values, rows)
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }

    fn uses_window_frame(&self) -> bool {
        false
    }
}

/// A rank of a type with a sign.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SignedRank {
    inner: Arc<WindowUDF>,
    kind: DataType,
}

impl WindowUDFImpl for SignedRank {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        self.inner.expressions(args)
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs<'_>) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(SignedRanks {
            inner: self.inner.partition_evaluator_factory(args)?,
            kind: self.kind.clone(),
        }))
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.inner.field(args)?;
        Ok(Arc::new(field.as_ref().clone().with_data_type(self.kind.clone())))
    }

    fn sort_options(&self) -> Option<SortOptions> {
        self.inner.sort_options()
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(kinds)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        self.inner.reverse_expr()
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.inner.inner().limit_effect(args)
    }
}

/// Evaluator of ranks whose results are cast.
#[derive(Debug)]
struct SignedRanks {
    inner: Box<dyn PartitionEvaluator>,
    kind: DataType,
}

impl SignedRanks {
    fn signed(&self, ranks: &ArrayRef) -> Result<ArrayRef> {
        Ok(cast(ranks, &self.kind)?)
    }
}

impl PartitionEvaluator for SignedRanks {
    fn memoize(&mut self, state: &mut WindowAggState) -> Result<()> {
        self.inner.memoize(state)
    }

    fn get_range(&self, row: usize, rows: usize) -> Result<Range<usize>> {
        self.inner.get_range(row, rows)
    }

    fn is_causal(&self) -> bool {
        self.inner.is_causal()
    }

    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let ranks = self.inner.evaluate_all(values, rows)?;
        self.signed(&ranks)
    }

    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.inner.evaluate(values, range)?.cast_to(&self.kind)
    }

    fn evaluate_all_with_rank(&self, rows: usize, ranks: &[Range<usize>]) -> Result<ArrayRef> {
        self.signed(&self.inner.evaluate_all_with_rank(rows, ranks)?)
    }

    fn supports_bounded_execution(&self) -> bool {
        self.inner.supports_bounded_execution()
    }

    fn uses_window_frame(&self) -> bool {
        self.inner.uses_window_frame()
    }

    fn include_rank(&self) -> bool {
        self.inner.include_rank()
    }
}
