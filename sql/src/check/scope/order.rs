//! Names in ORDER BY: a name alone is a column of the answer, and a name in an expression is one of the tables.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderByExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
    Visit as _, Visitor,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::{Refusal, RowsConsumer, ScopeSources, SelectScope, chooses, is_wildcard, named};
use crate::check::names::normal;

/// A query around another one, whose parts are replaced.
const AROUND: &str = "SELECT a FROM (SELECT a) AS ordered";

impl SelectScope {
    /// Gives the columns whose names stand for another column in ORDER BY a name of their own.
    pub(super) fn order_by(
        &mut self,
        query: &mut Query,
        sources: &ScopeSources,
        of: RowsConsumer,
    ) -> Result<(), Refusal> {
        let SetExpr::Select(select) = &*query.body else {
            return Ok(());
        };
        // Of other queries nobody sees the order.
        let ordered = of == RowsConsumer::Answer || chooses(query, select);
        let SetExpr::Select(select) = &mut *query.body else {
            return Ok(());
        };
        let Some(OrderByKind::Expressions(by)) = query.order_by.as_mut().map(|by| &mut by.kind) else {
            return Ok(());
        };
        let outputs: HashSet<String> = select.projection.iter().filter_map(named).collect();
        for OrderByExpr { expr, .. } in by.iter_mut() {
            if alone(expr).is_none_or(|name| !outputs.contains(&normal(name))) {
                self.expression(expr, &sources.merged)?;
            }
        }
        if !ordered || select.qualify.is_some() {
            return Ok(());
        }
        let taken = taken(by, select, sources);
        if taken.is_empty() {
            return Ok(());
        }
        // The names that queries around this one use.
        let names: Vec<Option<String>> = select.projection.iter().map(named).collect();
        if of == RowsConsumer::Table && select.projection.iter().any(is_wildcard) {
            let rule =
                "a name of this SELECT is also that of a column of its tables: write the columns in place of `*`";
            return Err(Refusal::new("ORDER BY of an expression", rule));
        }
        let mut replaced: Vec<(String, Ident)> = Vec::new();
        for item in &mut select.projection {
            let Some(name) = named(item) else { continue };
            if let SelectItem::ExprWithAlias { alias, .. } = item
                && taken.contains(&name)
            {
                *alias = self.mark(&name);
                replaced.push((name, alias.clone()));
            }
        }
        for OrderByExpr { expr, .. } in by.iter_mut() {
            let meant = alone(expr).map(normal);
            if let Some((_, marked)) = replaced.iter().find(|(name, _)| Some(name) == meant.as_ref()) {
                *expr = Expr::Identifier(marked.clone());
            }
        }
        if of == RowsConsumer::Table {
            self.around(query, &names);
        }
        Ok(())
    }

    /// Puts a query around another one that gives the columns their names.
    fn around(&mut self, query: &mut Query, names: &[Option<String>]) {
        let parsed = Parser::parse_sql(&GenericDialect {}, AROUND)
            .ok()
            .and_then(|mut all| all.pop());
        let Some(Statement::Query(mut outer)) = parsed else {
            return;
        };
        let (SetExpr::Select(inner), SetExpr::Select(select)) = (&mut *query.body, &mut *outer.body) else {
            return;
        };
        let mut items = Vec::new();
        for (item, name) in inner.projection.iter_mut().zip(names) {
            let (shown, inside) = match (&*item, name) {
                (SelectItem::ExprWithAlias { alias, .. }, Some(name)) => (name.clone(), alias.clone()),
                (SelectItem::UnnamedExpr(expr), name) => {
                    let shown = name.clone().unwrap_or_else(|| expr.to_string());
                    let inside = self.mark(&shown);
                    *item = SelectItem::ExprWithAlias {
                        expr: expr.clone(),
                        alias: inside.clone(),
                    };
                    (shown, inside)
                }
                _ => continue,
            };
            items.push(SelectItem::ExprWithAlias {
                expr: Expr::Identifier(inside),
                alias: Ident::with_quote('"', shown),
            });
        }
        select.projection = items;
        // WITH queries stay around the whole.
        outer.with = query.with.take();
        if let Some(TableFactor::Derived { subquery, .. }) = select.from.first_mut().map(|from| &mut from.relation) {
            std::mem::swap(&mut **subquery, query);
        }
        *query = *outer;
    }
}

/// Returns the name that an expression is.
fn alone(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(name) => Some(name),
        Expr::Nested(inner) => alone(inner),
        _ => None,
    }
}

/// Returns the names of columns of the SELECT list that mean a column of the tables in an expression of ORDER BY.
fn taken(by: &[OrderByExpr], select: &Select, sources: &ScopeSources) -> HashSet<String> {
    let mut used = UsedNames::default();
    for OrderByExpr { expr, .. } in by.iter().filter(|by| alone(&by.expr).is_none()) {
        let ControlFlow::Continue(()) = expr.visit(&mut used);
    }
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    let mut taken = HashSet::new();
    for item in &select.projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else {
            continue;
        };
        let name = normal(alias);
        let same = match expr {
            Expr::Identifier(column) => normal(column) == name,
            Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|column| normal(column) == name),
            _ => false,
        };
        let of_tables = match &sources.layout {
            Some(layout) => layout.iter().any(|(_, column)| *column == name),
            None => !grouped,
        };
        if !same && (used.qualified.contains(&name) || (of_tables && used.plain.contains(&name))) {
            taken.insert(name);
        }
    }
    taken
}

/// Names in expressions, without those in subqueries.
#[derive(Default)]
struct UsedNames {
    plain: HashSet<String>,
    qualified: HashSet<String>,
    depth: usize,
}

impl Visitor for UsedNames {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Infallible> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Infallible> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        match expr {
            Expr::Identifier(name) if self.depth == 0 => {
                self.plain.insert(normal(name));
            }
            Expr::CompoundIdentifier(parts) if self.depth == 0 => {
                self.qualified.extend(parts.last().map(normal));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
