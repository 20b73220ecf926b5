//! Rewrites of a statement before the check: constructs that the engine plans wrongly become equivalent ones that it
//! plans correctly.
//!
//! Invariant: a rewritten statement has the same meaning.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, Expr, Ident, ObjectName, ObjectNamePart, Statement, Subscript, TableAlias, TableFactor,
    Value, VisitMut as _, VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Location;

use super::{RECORDS_TABLE, numbers, times};

/// Rewrites a statement. `table` has the positions of names that were spelled like the table and matched a field.
pub(super) fn rewrite(statement: &mut Statement, table: &[Location]) {
    let ControlFlow::Continue(()) = statement.visit(&mut StatementRewrite { table });
}

struct StatementRewrite<'a> {
    table: &'a [Location],
}

impl VisitorMut for StatementRewrite<'_> {
    type Break = Infallible;

    /// Replaces expressions whose engine's form has another meaning, and completes the bounds of a slice.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::CompoundFieldAccess { access_chain, .. } = expr {
            access_chain.iter_mut().for_each(bounded);
        }
        numbers::rewrite(expr);
        times::rewrite(expr);
        subquery(expr);
        ControlFlow::Continue(())
    }

    /// Restores the table's name if a field has the same name up to case. Its columns stay qualified as they were
    /// written.
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Infallible> {
        let TableFactor::Table { name, alias, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let [ObjectNamePart::Identifier(ident)] = &name.0[..] else {
            return ControlFlow::Continue(());
        };
        if self.table.contains(&ident.span.start) {
            alias.get_or_insert(TableAlias {
                explicit: true,
                name: Ident::with_quote('"', ident.value.clone()),
                columns: Vec::new(),
                at: None,
            });
            *name = ObjectName::from(vec![Ident::new(RECORDS_TABLE)]);
        }
        ControlFlow::Continue(())
    }
}

/// Completes the bounds of a slice: it begins at the first entry and ends with the last one.
fn bounded(access: &mut AccessExpr) {
    if let AccessExpr::Subscript(Subscript::Slice {
        lower_bound,
        upper_bound,
        ..
    }) = access
    {
        let number = |number: i32| Expr::value(Value::Number(number.to_string(), false));
        lower_bound.get_or_insert_with(|| number(1));
        upper_bound.get_or_insert_with(|| number(i32::MAX));
    }
}

/// Replaces `= ANY` and `<> ALL` of a subquery by IN, for which the engine handles nulls correctly.
fn subquery(expr: &mut Expr) {
    let (left, right, negated) = match expr {
        Expr::AnyOp {
            left,
            compare_op: BinaryOperator::Eq,
            right,
            ..
        } => (left, right, false),
        Expr::AllOp {
            left,
            compare_op: BinaryOperator::NotEq,
            right,
        } => (left, right, true),
        _ => return,
    };
    if let Expr::Subquery(subquery) = &mut **right {
        let subquery = subquery.clone();
        let expr_of = left.clone();
        *expr = Expr::InSubquery {
            expr: expr_of,
            subquery,
            negated,
        };
    }
}
