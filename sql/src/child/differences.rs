//! Detection of answer columns with differences of timestamps.
//!
//! Invariant: a column is a difference only if each of its values is one, or null: chosen, summed or averaged, but not
//! mixed with other intervals.

use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan};

/// Functions whose result is a difference if all of their arguments are.
const KEEPING: [&str; 14] = [
    "any_value",
    "array_agg",
    "avg",
    "coalesce",
    "first_value",
    "greatest",
    "ifnull",
    "lag",
    "last_value",
    "lead",
    "least",
    "max",
    "min",
    "sum",
];
/// Functions whose result is a difference if the first of their arguments is.
const OF_FIRST: [&str; 4] = ["lag", "lead", "nth_value", "nullif"];

/// Returns for each column of an unoptimized plan if it is a difference of timestamps.
pub(super) fn columns(plan: &LogicalPlan) -> Vec<bool> {
    let mut columns = match plan {
        LogicalPlan::Projection(projection) => of(projection.expr.iter(), &projection.input),
        LogicalPlan::Filter(filter) => columns(&filter.input),
        LogicalPlan::Sort(sort) => columns(&sort.input),
        LogicalPlan::Limit(limit) => columns(&limit.input),
        LogicalPlan::SubqueryAlias(alias) => columns(&alias.input),
        LogicalPlan::Distinct(Distinct::All(input)) => columns(input),
        LogicalPlan::Distinct(Distinct::On(on)) => of(on.select_expr.iter(), &on.input),
        LogicalPlan::Window(window) => {
            let mut all = columns(&window.input);
            all.extend(of(window.window_expr.iter(), &window.input));
            all
        }
        LogicalPlan::Aggregate(aggregate) => {
            let by = grouping_set_to_exprlist(&aggregate.group_expr).unwrap_or_default();
            let mut all = of(by, &aggregate.input);
            let aggregates = of(aggregate.aggr_expr.iter(), &aggregate.input);
            // A grouping set adds a column between the two.
            all.resize(plan.schema().fields().len().saturating_sub(aggregates.len()), false);
            all.extend(aggregates);
            all
        }
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => columns(&join.left),
            JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => columns(&join.right),
            JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                [columns(&join.left), columns(&join.right)].concat()
            }
        },
        LogicalPlan::Union(union) => {
            let mut inputs = union.inputs.iter().map(|input| columns(input));
            let first = inputs.next().unwrap_or_default();
            inputs.fold(first, |all, input| {
                all.into_iter().zip(input).map(|(left, right)| left && right).collect()
            })
        }
        _ => Vec::new(),
    };
    columns.resize(plan.schema().fields().len(), false);
    columns
}

fn of<'a>(expressions: impl IntoIterator<Item = &'a Expr>, input: &LogicalPlan) -> Vec<bool> {
    let known = columns(input);
    expressions
        .into_iter()
        .map(|expr| is_difference(expr, input, &known) == Some(true))
        .collect()
}

/// Returns `None` for null, which is a value of any kind.
fn is_difference(expr: &Expr, input: &LogicalPlan, known: &[bool]) -> Option<bool> {
    let of = |expr: &Expr| is_difference(expr, input, known);
    let all = |mut found: Box<dyn Iterator<Item = Option<bool>> + '_>| {
        found.try_fold(None, |all, one| match (all, one) {
            (_, Some(false)) => Err(()),
            (all, None) => Ok(all),
            (_, one) => Ok(one),
        })
    };
    let called = |name: &str, args: &[Expr]| {
        if OF_FIRST.contains(&name) {
            return args.first().and_then(of).unwrap_or(false);
        }
        KEEPING.contains(&name) && all(Box::new(args.iter().map(of))) == Ok(Some(true))
    };
    match expr {
        Expr::Alias(alias) => of(&alias.expr),
        Expr::Column(column) => {
            let index = input.schema().maybe_index_of_column(column);
            Some(index.is_some_and(|index| known.get(index).copied().unwrap_or_default()))
        }
        Expr::Literal(value, _) if value.is_null() => None,
        Expr::ScalarFunction(function) if function.func.name() == "difference" => Some(true),
        Expr::ScalarFunction(function) => Some(called(function.func.name(), &function.args)),
        Expr::AggregateFunction(function) => Some(called(function.func.name(), &function.params.args)),
        Expr::WindowFunction(function) => Some(called(function.fun.name(), &function.params.args)),
        Expr::Case(case) => {
            let results = case
                .when_then_expr
                .iter()
                .map(|(_, then)| &**then)
                .chain(case.else_expr.as_deref());
            Some(all(Box::new(results.map(of))) == Ok(Some(true)))
        }
        Expr::ScalarSubquery(subquery) => Some(columns(&subquery.subquery).first().copied().unwrap_or_default()),
        _ => Some(false),
    }
}
