//! Conditions that protect others: in `y <> 0 AND x / y > 2` the division is computed only where `y <> 0` is not false.
//!
//! Invariant: a guarded condition has the same value, null included. The engine evaluates both sides of AND and OR for
//! all rows, and an error in one row fails the statement.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{BinaryExpr, Case, Cast};
use datafusion::logical_expr::utils::{conjunction, disjunction};
use datafusion::logical_expr::{Expr, ExprSchemable as _, Operator, lit};

use super::doubles;

/// Maximum number of nodes of the conditions that protect another one. Each protected condition copies them.
const MAX_NODES: usize = 64;

/// Guards the conditions of a filter.
pub(super) fn guarded(predicate: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if !may_fail(&predicate, schema)? {
        return Ok(Transformed::no(predicate));
    }
    predicate.transform_up(|expr| {
        let Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::And | Operator::Or),
            right,
        }) = expr
        else {
            return Ok(Transformed::no(expr));
        };
        let before = if may_fail(&right, schema)? {
            safe(&left, op, schema)?
        } else {
            None
        };
        let Some(before) = before else {
            return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
        };
        let (when, otherwise) = if op == Operator::And {
            (before.is_not_false(), lit(false))
        } else {
            (before.is_not_true(), lit(true))
        };
        let case = Expr::Case(Case::new(
            None,
            vec![(Box::new(when), right)],
            Some(Box::new(otherwise)),
        ));
        Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(
            left,
            op,
            Box::new(case),
        ))))
    })
}

/// Returns the conditions of a chain that cannot fail, or `None` if there is none or they are too large.
fn safe(chain: &Expr, op: Operator, schema: &DFSchema) -> Result<Option<Expr>> {
    let mut links = Vec::new();
    let mut rest = vec![chain];
    while let Some(link) = rest.pop() {
        match link {
            Expr::BinaryExpr(of) if of.op == op => rest.extend([&*of.right, &*of.left]),
            link => {
                if !may_fail(link, schema)? {
                    links.push(link.clone());
                }
            }
        }
    }
    let joined = if op == Operator::And {
        conjunction(links)
    } else {
        disjunction(links)
    };
    let Some(joined) = joined else {
        return Ok(None);
    };
    let mut nodes = 0_usize;
    let mut reads = false;
    joined.apply(|expr| {
        nodes += 1;
        reads |= matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok((nodes <= MAX_NODES && !reads).then_some(joined))
}

/// Returns true if an expression fails for some rows.
fn may_fail(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let mut fails = false;
    let mut reads = false;
    expr.apply(|expr| {
        match expr {
            Expr::BinaryExpr(BinaryExpr {
                op: Operator::Divide | Operator::Modulo,
                right,
                ..
            }) => fails |= !is_other_than_zero(right),
            Expr::ScalarFunction(function) => {
                let divides = matches!(&function.args[..], [_, by] if is_other_than_zero(by));
                fails |= doubles::is_partial(function.func.name(), divides);
            }
            Expr::Cast(Cast { expr, field })
                if !field.data_type().is_string() && !matches!(**expr, Expr::Literal(..)) =>
            {
                fails |= expr.get_type(schema).is_ok_and(|kind| kind.is_string());
            }
            Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) => reads = true,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    // A subquery is planned as a join only where it stands by itself.
    Ok(fails && !reads)
}

/// Returns true for a literal number other than zero.
fn is_other_than_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => is_other_than_zero(&cast.expr),
        Expr::Literal(value, _) => doubles::is_other_than_zero(value),
        _ => false,
    }
}
