//! Check of `IN (SELECT …)` with possible nulls on either side.
//!
//! Invariant: the engine plans it as a join, which distinguishes null from false in one place only: a `NOT IN` of a
//! column that is a condition of its own. Everywhere else it is allowed only if null and false have the same effect, or
//! null is impossible.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{BinaryExpr, InSubquery};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, ExprSchemable as _, LogicalPlan, Operator};

/// Checks the expressions of a plan node. `schema` has the columns of its inputs.
pub(super) fn check(plan: &LogicalPlan, schema: &DFSchema) -> Result<()> {
    if let LogicalPlan::Filter(filter) = plan {
        return split_conjunction(&filter.predicate)
            .into_iter()
            .try_for_each(|condition| alone(condition, schema));
    }
    plan.apply_expressions(|expr| exact(expr, schema).map(|()| TreeNodeRecursion::Continue))?;
    Ok(())
}

/// Checks a condition that every row must meet.
fn alone(condition: &Expr, schema: &DFSchema) -> Result<()> {
    match condition {
        Expr::InSubquery(InSubquery {
            expr,
            subquery,
            negated: true,
            // The engine has a null-aware anti join for exactly this form.
        }) if subquery.outer_ref_columns.is_empty() && !expr.column_refs().is_empty() => exact(expr, schema),
        other => met(other, schema),
    }
}

/// Checks a condition for which null and false have the same effect.
fn met(condition: &Expr, schema: &DFSchema) -> Result<()> {
    match condition {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And | Operator::Or,
            right,
        }) => {
            // AND and OR keep the property: a null of a part has the effect of false.
            met(left, schema)?;
            met(right, schema)
        }
        Expr::InSubquery(InSubquery {
            expr, negated: false, ..
        }) => exact(expr, schema),
        other => exact(other, schema),
    }
}

/// Checks an expression in which null and false differ.
fn exact(expr: &Expr, schema: &DFSchema) -> Result<()> {
    expr.apply(|expr| {
        let Expr::InSubquery(InSubquery { expr, subquery, .. }) = expr else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let columns = subquery.subquery.schema().fields();
        // A scalar subquery without rows is null, whatever its column says.
        let subquery = expr.exists(|expr| Ok(matches!(expr, Expr::ScalarSubquery(_))))?;
        if subquery || expr.nullable(schema)? || columns.iter().any(|column| column.is_nullable()) {
            let problem = "NOT IN (SELECT …) is supported as a condition of WHERE or HAVING by itself, with a column on its \
                           left and a SELECT that uses no column from outside, and IN (SELECT …) under AND and OR; where a \
                           null may be on either side use EXISTS instead";
            return Err(DataFusionError::Plan(problem.to_owned()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}
