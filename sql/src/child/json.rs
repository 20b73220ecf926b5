//! Detection of answer columns with JSON values of the table.
//!
//! Invariant: a column is JSON only if each of its values is the value of a `json` field, or null, whatever metadata
//! the engine propagates. A text of the statement is never returned as JSON.

use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan};

use super::parts::JSON;

/// Returns for each column of an unoptimized plan if it is JSON.
pub(super) fn columns(plan: &LogicalPlan) -> Vec<bool> {
    let mut columns = match plan {
        LogicalPlan::TableScan(scan) => scan
            .projected_schema
            .fields()
            .iter()
            .map(|field| field.metadata().contains_key(JSON))
            .collect(),
        LogicalPlan::Projection(projection) => of(projection.expr.iter(), &projection.input),
        LogicalPlan::Filter(filter) => columns(&filter.input),
        LogicalPlan::Sort(sort) => columns(&sort.input),
        LogicalPlan::Limit(limit) => columns(&limit.input),
        LogicalPlan::SubqueryAlias(alias) => columns(&alias.input),
        LogicalPlan::Distinct(Distinct::All(input)) => columns(input),
        LogicalPlan::Distinct(Distinct::On(on)) => of(on.select_expr.iter(), &on.input),
        // A window adds columns after those of its input, and they are not JSON.
        LogicalPlan::Window(window) => columns(&window.input),
        // An aggregate has its group columns first, and only they can be JSON.
        LogicalPlan::Aggregate(aggregate) => {
            let by = grouping_set_to_exprlist(&aggregate.group_expr).unwrap_or_default();
            of(by, &aggregate.input)
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

/// Returns for each expression over `input` if it is JSON. Only a column can be, under any alias.
fn of<'a>(expressions: impl IntoIterator<Item = &'a Expr>, input: &LogicalPlan) -> Vec<bool> {
    let json = columns(input);
    let is = |mut expression: &Expr| {
        while let Expr::Alias(alias) = expression {
            expression = &alias.expr;
        }
        match expression {
            Expr::Column(column) => input
                .schema()
                .maybe_index_of_column(column)
                .is_some_and(|index| json.get(index).copied().unwrap_or_default()),
            _ => false,
        }
    };
    expressions.into_iter().map(is).collect()
}
