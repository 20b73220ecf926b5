//! Texts of distinct values, which are sorted in `PostgreSQL`.

use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, OrderByExpr,
    OrderByOptions,
};

use crate::check::query::single;

/// Aggregate that joins the texts of its first argument. A list of intervals could not be sorted here.
const JOINING: &str = "string_agg";

/// Sorts what is joined with DISTINCT and without an ORDER BY.
pub(super) fn sort(expr: &mut Expr) {
    let Expr::Function(function) = expr else {
        return;
    };
    let joins = single(&function.name).is_some_and(|name| name.value.eq_ignore_ascii_case(JOINING));
    let FunctionArguments::List(list) = &mut function.args else {
        return;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value)), ..] = &list.args[..] else {
        return;
    };
    let ordered = list
        .clauses
        .iter()
        .any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)));
    if joins && !ordered && function.over.is_none() && list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
        let by = OrderByExpr {
            expr: value.clone(),
            options: OrderByOptions::default(),
            with_fill: None,
        };
        list.clauses.push(FunctionArgumentClause::OrderBy(vec![by]));
    }
}
