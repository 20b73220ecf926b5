//! Window functions that the engine computes wrongly row by row: `lead` and `lag` with IGNORE NULLS, and with a limit
//! where they look ahead.
//!
//! Invariant: they see a whole partition before they answer, so no row behind the current one is missing.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, WindowUDF, WindowUDFImpl};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;

/// Returns the engine's window functions, with the ones that this module corrects replaced.
pub(super) fn functions(all: Vec<Arc<WindowUDF>>) -> Vec<Arc<WindowUDF>> {
    let corrected = |function: Arc<WindowUDF>| {
        if matches!(function.name(), "lag" | "lead" | "nth_value") {
            Arc::new(WindowUDF::new_from_impl(Whole { inner: function }))
        } else {
            function
        }
    };
    all.into_iter().map(corrected).collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole {
    inner: Arc<WindowUDF>,
}

impl Whole {
    fn shifts(&self) -> bool {
        self.inner.name() != "nth_value"
    }
}

impl WindowUDFImpl for Whole {
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
