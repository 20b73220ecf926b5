//! Names of ORDER BY that stand for two columns of a SELECT list. The engine would take the first one.
//!
//! Invariant: as in `PostgreSQL`, a name is ambiguous only if the columns differ.

use datafusion::sql::sqlparser::ast::{Expr, OrderBy, OrderByKind, SelectItem, SetExpr};

use super::Refusal;
use super::names::normal;

/// Checks the names of an ORDER BY behind the query `body`.
pub(super) fn check(body: &SetExpr, order_by: &OrderBy) -> Result<(), Refusal> {
    let OrderByKind::Expressions(expressions) = &order_by.kind else {
        return Ok(());
    };
    let columns: Vec<(String, &Expr)> = listed(body).iter().filter_map(named).collect();
    for ordered in expressions {
        // Within an expression a name is a column of the tables.
        let Expr::Identifier(name) = &ordered.expr else {
            continue;
        };
        let wanted = normal(name);
        let mut meant = columns.iter().filter(|(column, _)| *column == wanted);
        if let Some((_, first)) = meant.next()
            && meant.any(|(_, other)| !is_same(first, other))
        {
            let rule = "it is ambiguous in ORDER BY, because two columns of the SELECT have this name: give one of them \
                        another name with AS, or order by its position";
            return Err(Refusal::of(name, rule));
        }
    }
    Ok(())
}

/// Returns the list of the SELECT that names the columns of a query.
fn listed(body: &SetExpr) -> &[SelectItem] {
    match body {
        SetExpr::Select(select) => &select.projection,
        SetExpr::Query(query) => listed(&query.body),
        SetExpr::SetOperation { left, .. } => listed(left),
        _ => &[],
    }
}

fn named(item: &SelectItem) -> Option<(String, &Expr)> {
    match item {
        SelectItem::ExprWithAlias { expr, alias } => Some((normal(alias), expr)),
        SelectItem::UnnamedExpr(expr) => match expr {
            Expr::Identifier(name) => Some((normal(name), expr)),
            Expr::CompoundIdentifier(names) => names.last().map(|name| (normal(name), expr)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true if two expressions are one column or the same text. A column without its table is the same as one with it,
/// because it would not be known in any other table.
fn is_same(one: &Expr, other: &Expr) -> bool {
    let column = |expr: &Expr| -> Option<Vec<String>> {
        match expr {
            Expr::Identifier(name) => Some(vec![normal(name)]),
            Expr::CompoundIdentifier(names) => Some(names.iter().map(normal).collect()),
            _ => None,
        }
    };
    match (column(one), column(other)) {
        (Some(one), Some(other)) => one.ends_with(&other) || other.ends_with(&one),
        _ => one == other,
    }
}
