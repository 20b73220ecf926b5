//! Changes to a statement before it is checked: what the engine plans wrongly, written in a way that it plans rightly.
//!
//! Invariant: a changed statement means what it meant before.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, ObjectNamePart, Statement, TableAlias, TableFactor, VisitMut as _,
    VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Location;

use super::TABLE;

/// Changes a statement; `table` tells where names that may be the table's were spelled as a field.
pub(super) fn rewrite(statement: &mut Statement, table: &[Location]) {
    let ControlFlow::Continue(()) = statement.visit(&mut Rewrite { table });
}

struct Rewrite<'a> {
    table: &'a [Location],
}

impl VisitorMut for Rewrite<'_> {
    type Break = Infallible;

    /// Writes `= ANY` and `<> ALL` of a subquery as IN, for which the engine knows nulls.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
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
            _ => return ControlFlow::Continue(()),
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
        ControlFlow::Continue(())
    }

    /// Gives the table its name back where a field has it too but for case; its columns are qualified as they were spelled.
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
            *name = ObjectName::from(vec![Ident::new(TABLE)]);
        }
        ControlFlow::Continue(())
    }
}
