//! Filters whose conditions are evaluated in their order: a condition sees only the rows that those before it leave
//! open. The optimizer merges the filter of a subquery with the one around it, and either may protect the other.
//!
//! Invariant: the value of a condition is the same, null included.

use std::fmt::{self, Display};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{and_kleene, or_kleene};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};

use super::doubles;

/// Returns a plan whose filters evaluate their conditions in order, where the order matters.
pub(super) fn plan(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let ordered = plan.transform_up(|node| {
        let Some(filter) = node.downcast_ref::<FilterExec>() else {
            return Ok(Transformed::no(node));
        };
        let schema = filter.input().schema();
        let predicate = Arc::clone(filter.predicate()).transform_up(|expr| {
            let Some(binary) = expr.downcast_ref::<BinaryExpr>() else {
                return Ok(Transformed::no(expr));
            };
            if !matches!(binary.op(), Operator::And | Operator::Or) || !can_fail(binary.right(), &schema)? {
                return Ok(Transformed::no(expr));
            }
            let ordered: Arc<dyn PhysicalExpr> = Arc::new(InOrder {
                left: Arc::clone(binary.left()),
                and: *binary.op() == Operator::And,
                right: Arc::clone(binary.right()),
            });
            Ok(Transformed::yes(ordered))
        })?;
        if !predicate.transformed {
            return Ok(Transformed::no(node));
        }
        let built = FilterExecBuilder::from(filter).with_predicate(predicate.data).build()?;
        let built: Arc<dyn ExecutionPlan> = Arc::new(built);
        Ok(Transformed::yes(built))
    })?;
    Ok(ordered.data)
}

fn can_fail(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<bool> {
    let mut fails = false;
    expr.apply(|expr| {
        if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
            fails |= matches!(binary.op(), Operator::Divide | Operator::Modulo) && !is_other_than_zero(binary.right());
        }
        if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() {
            let safe = matches!(function.args(), [_, by] if is_other_than_zero(by));
            fails |= doubles::is_partial(function.fun().name(), safe);
        }
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            fails |= doubles::has_less_room(&cast.expr().data_type(schema)?, cast.cast_type());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(fails)
}

fn is_other_than_zero(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let literal = expr.downcast_ref::<Literal>();
    literal.is_some_and(|literal| doubles::is_other_than_zero(literal.value()))
}

/// `AND` or `OR` that evaluates its right side only where the left one does not decide.
#[derive(Debug, Eq)]
struct InOrder {
    left: Arc<dyn PhysicalExpr>,
    and: bool,
    right: Arc<dyn PhysicalExpr>,
}

// A derived comparison would move the sides.
impl PartialEq for InOrder {
    fn eq(&self, other: &Self) -> bool {
        self.and == other.and && self.left.eq(&other.left) && self.right.eq(&other.right)
    }
}

impl Hash for InOrder {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.and.hash(state);
        self.left.hash(state);
        self.right.hash(state);
    }
}

impl Display for InOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.and { "AND" } else { "OR" };
        write!(formatter, "{} {operator} {}", self.left, self.right)
    }
}

impl PhysicalExpr for InOrder {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        Ok(self.left.nullable(schema)? || self.right.nullable(schema)?)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let left = self.left.evaluate(batch)?.into_array(batch.num_rows())?;
        let left = left.as_boolean();
        let open: BooleanArray = left.iter().map(|value| Some(value != Some(!self.and))).collect();
        // The rows that are decided have a null on the right, which changes nothing.
        let right = self
            .right
            .evaluate_selection(batch, &open)?
            .into_array(batch.num_rows())?;
        let right = right.as_boolean();
        let result = if self.and {
            and_kleene(left, right)?
        } else {
            or_kleene(left, right)?
        };
        Ok(ColumnarValue::Array(Arc::new(result)))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        let sides = <[_; 2]>::try_from(children).ok();
        let [left, right] = sides.ok_or_else(|| DataFusionError::Plan("a condition has two sides".to_owned()))?;
        Ok(Arc::new(Self {
            left,
            and: self.and,
            right,
        }))
    }

    fn fmt_sql(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}
