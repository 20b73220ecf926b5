//! Conditions that protect others: in `y <> 0 AND x / y > 2` the division is computed only where `y <> 0` is not false.
//!
//! Invariant: a guarded condition has the same value, null included. The engine evaluates both sides of AND and OR for
//! all rows, and an error in one row fails the statement.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{BinaryExpr, Case, Cast};
use datafusion::logical_expr::utils::{conjunction, disjunction};
use datafusion::logical_expr::{Expr, ExprSchemable as _, Operator, cast, lit};

use super::doubles;

/// Maximum number of nodes of the conditions that protect another one. Each protected condition copies them.
const MAX_NODES: usize = 64;

/// Guards the conditions of a filter, whose left sides stay conditions that the scan can apply.
pub(super) fn guarded(predicate: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if !can_fail(&predicate, schema)? {
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
        let before = if can_fail(&right, schema)? {
            safe(&left, op, schema)?
        } else {
            None
        };
        let Some(before) = before else {
            return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
        };
        Ok(Transformed::yes(joined(
            *left,
            op,
            dependent_on(before, op, *right, |end| end),
        )))
    })
}

/// Makes each condition of an expression that can fail depend on those before it.
pub(super) fn in_order(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if !can_fail(&expr, schema)? {
        return Ok(Transformed::no(expr));
    }
    // From the top, because an inner AND belongs to the chain of the outer one.
    expr.transform_down(|expr| {
        let expr = match expr {
            Expr::Case(case) => return lazy_case(case, schema),
            expr => expr,
        };
        let Expr::BinaryExpr(BinaryExpr {
            op: op @ (Operator::And | Operator::Or),
            ..
        }) = expr
        else {
            return Ok(Transformed::no(expr));
        };
        let within = links(&expr, op).into_iter().map(|link| in_order(link.clone(), schema));
        let mut links = within
            .map(|link| link.map(|link| link.data))
            .collect::<Result<Vec<_>>>()?;
        let Some(mut rest) = links.pop() else {
            return Ok(Transformed::no(expr));
        };
        while let Some(link) = links.pop() {
            if can_fail(&rest, schema)? && is_copied(&link) {
                rest = is_true(dependent_on(link.clone(), op, as_number(rest), as_number));
            }
            rest = joined(link, op, rest);
        }
        Ok(Transformed::new(rest, true, TreeNodeRecursion::Jump))
    })
}

/// Computes the arguments of an aggregate only where its filter is met, as `PostgreSQL` does.
pub(super) fn filtered(filter: &Expr, argument: Expr, schema: &DFSchema) -> Result<Expr> {
    if !can_fail(&argument, schema)? || !is_copied(filter) {
        return Ok(argument);
    }
    let when_then = vec![(Box::new(filter.clone()), Box::new(argument))];
    Ok(Expr::Case(Case::new(None, when_then, None)))
}

/// Keeps the conditions that a CASE returns apart: the optimizer makes AND and OR of such a CASE, whose sides are all
/// evaluated.
fn lazy_case(case: Case, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut fails = false;
    for (_, then) in &case.when_then_expr {
        fails |= can_fail(then, schema)?;
    }
    let whole = Expr::Case(case);
    if !fails || whole.get_type(schema)? != DataType::Boolean {
        return Ok(Transformed::no(whole));
    }
    let Expr::Case(mut case) = whole else {
        return Ok(Transformed::no(whole));
    };
    let ends = case.when_then_expr.iter_mut().map(|(_, then)| then);
    for end in ends.chain(&mut case.else_expr) {
        **end = as_number(std::mem::take(&mut **end));
    }
    Ok(Transformed::yes(is_true(Expr::Case(case))))
}

/// Makes 1 of true and 0 of false.
fn as_number(condition: Expr) -> Expr {
    cast(condition, DataType::Int8)
}

/// Makes a condition of what [`as_number`] returned.
fn is_true(number: Expr) -> Expr {
    number.eq(lit(1_i8))
}

/// Returns the condition `rest`, evaluated only where `before` does not decide. `end` makes its form of a literal.
fn dependent_on(before: Expr, op: Operator, rest: Expr, end: impl Fn(Expr) -> Expr) -> Expr {
    let (when, otherwise) = if op == Operator::And {
        (before.is_not_false(), lit(false))
    } else {
        (before.is_not_true(), lit(true))
    };
    Expr::Case(Case::new(
        None,
        vec![(Box::new(when), Box::new(rest))],
        Some(Box::new(end(otherwise))),
    ))
}

fn joined(left: Expr, op: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

/// Returns the conditions that one operator joins, in their order.
fn links(chain: &Expr, op: Operator) -> Vec<&Expr> {
    let mut links = Vec::new();
    let mut rest = vec![chain];
    while let Some(link) = rest.pop() {
        match link {
            Expr::BinaryExpr(of) if of.op == op => rest.extend([&*of.right, &*of.left]),
            link => links.push(link),
        }
    }
    links
}

/// Returns true if an expression is small enough for a copy, and reads no table.
fn is_copied(expr: &Expr) -> bool {
    let mut nodes = 0_usize;
    let mut reads = false;
    let walked = expr.apply(|expr| {
        nodes += 1;
        reads |= matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_));
        Ok(TreeNodeRecursion::Continue)
    });
    walked.is_ok() && nodes <= MAX_NODES && !reads
}

/// Returns the conditions of a chain that cannot fail, or `None` if there is none or they are too large.
fn safe(chain: &Expr, op: Operator, schema: &DFSchema) -> Result<Option<Expr>> {
    let mut safe = Vec::new();
    for link in links(chain, op) {
        if !can_fail(link, schema)? {
            safe.push(link.clone());
        }
    }
    let joined = if op == Operator::And {
        conjunction(safe)
    } else {
        disjunction(safe)
    };
    Ok(joined.filter(is_copied))
}

/// Returns true if an expression fails for some rows.
fn can_fail(expr: &Expr, schema: &DFSchema) -> Result<bool> {
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
            Expr::Cast(Cast { expr, field }) if !matches!(**expr, Expr::Literal(..)) => {
                let from = expr.get_type(schema);
                fails |= from.is_ok_and(|from| doubles::has_less_room(&from, field.data_type()));
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
