//! Names and numbers that the engine takes otherwise than `PostgreSQL`, rewritten with the columns of all tables known:
//! names in an expression of ORDER BY, the columns of JOIN … USING, and numbers with a point.
//!
//! Invariant: a rewritten statement means to the engine what the original one means in `PostgreSQL`. A column that gets
//! another name has a mark in it, which answers and messages leave out.

mod literals;
mod order;

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Cte, Distinct, Expr, Ident, JoinConstraint, JoinOperator, Query, Select, SelectItem, SetExpr, Statement,
    TableAlias, TableFactor, TableWithJoins, VisitMut as _, VisitorMut,
};
use types::Contract;

use super::names::normal;
use super::query::single;
use super::{RECORDS_TABLE, Refusal};

pub(crate) use self::literals::{LITERAL, is_zero};

/// Rewrites a statement over a table with the fields of a contract.
pub(super) fn rewrite(statement: &mut Statement, contract: &Contract) -> Result<(), Refusal> {
    let schema = contract.schema();
    let fields = schema.fields().iter();
    let mut scope = SelectScope {
        known: vec![(
            RECORDS_TABLE.to_owned(),
            Some(fields.map(|field| field.name().clone()).collect()),
        )],
        marked: 0,
    };
    if let Statement::Query(query) = statement {
        scope.query(query, RowsConsumer::Answer)?;
    }
    literals::exact(statement)
}

/// Consumer of the rows of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowsConsumer {
    /// The answer of the statement.
    Answer,
    /// A table of another query, which names its columns.
    Table,
    /// A value of an expression.
    Value,
    /// Rows that an expression looks for.
    Rows,
}

/// Columns of a query or a table. `None` if they are not known.
type Columns = Option<Vec<String>>;
/// Columns of a FROM clause, each with the name of its table, in the order of `*`. `None` if they are not known.
type Layout = Option<Vec<(Option<Ident>, String)>>;

struct SelectScope {
    /// Tables with the names of their columns, the innermost last.
    known: Vec<(String, Columns)>,
    /// Number of marks.
    marked: usize,
}

/// Columns of a FROM clause.
struct ScopeSources {
    layout: Layout,
    /// The columns that USING and NATURAL merge, each as a column of one of its tables.
    merged: HashMap<String, Ident>,
    /// Tells that `*` has another order of columns than the engine gives it.
    reordered: bool,
}

impl SelectScope {
    fn query(&mut self, query: &mut Query, of: RowsConsumer) -> Result<Columns, Refusal> {
        let seen = self.known.len();
        for Cte { alias, query, .. } in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            let columns = self.query(query, RowsConsumer::Table)?;
            self.known
                .push((normal(&alias.name), columns.map(|columns| renamed(columns, alias))));
        }
        let columns = if let SetExpr::Select(select) = &mut *query.body {
            let (sources, columns) = self.select(select, of)?;
            self.order_by(query, &sources, of)?;
            columns
        } else {
            self.body(&mut query.body, of)?
        };
        self.known.truncate(seen);
        Ok(columns)
    }

    fn body(&mut self, body: &mut SetExpr, of: RowsConsumer) -> Result<Columns, Refusal> {
        match body {
            SetExpr::Select(select) => Ok(self.select(select, of)?.1),
            SetExpr::Query(query) => self.query(query, of),
            SetExpr::SetOperation { left, right, .. } => {
                let columns = self.body(left, of)?;
                self.body(right, of)?;
                Ok(columns)
            }
            SetExpr::Values(values) => {
                let columns = values.rows.first().map_or(0, |row| row.content.len());
                literals::of_values(values);
                Ok(Some((1..=columns).map(|index| format!("column{index}")).collect()))
            }
            _ => Ok(None),
        }
    }

    fn select(&mut self, select: &mut Select, of: RowsConsumer) -> Result<(ScopeSources, Columns), Refusal> {
        let mut sources = self.sources(&mut select.from)?;
        let from = std::mem::take(&mut select.from);
        let found = self.within(select, &sources.merged);
        select.from = from;
        found?;
        if sources.reordered && select.projection.iter().any(is_wildcard) {
            let Some(layout) = &sources.layout else {
                let rule = "the order of its columns behind JOIN … USING is not known here: write the columns";
                return Err(Refusal::of("*", rule));
            };
            let items = std::mem::take(&mut select.projection);
            select.projection = items.into_iter().flat_map(|item| written(item, layout)).collect();
        }
        if matches!(of, RowsConsumer::Table | RowsConsumer::Value) {
            literals::of_items(&mut select.projection);
        }
        if select.from.is_empty() {
            sources.layout = Some(Vec::new());
        }
        let columns = columns_of(&select.projection, sources.layout.as_ref());
        Ok((sources, columns))
    }

    /// Rewrites the expressions of a SELECT, and the subqueries in them.
    fn within(&mut self, part: &mut Select, merged: &HashMap<String, Ident>) -> Result<(), Refusal> {
        let mut within = SelectRewrite::new(self, merged);
        let ControlFlow::Continue(()) = part.visit(&mut within);
        within.refusal.map_or(Ok(()), Err)
    }

    fn expression(&mut self, expr: &mut Expr, merged: &HashMap<String, Ident>) -> Result<(), Refusal> {
        let mut within = SelectRewrite::new(self, merged);
        let ControlFlow::Continue(()) = expr.visit(&mut within);
        within.refusal.map_or(Ok(()), Err)
    }

    fn sources(&mut self, from: &mut [TableWithJoins]) -> Result<ScopeSources, Refusal> {
        let mut all = ScopeSources {
            layout: Some(Vec::new()),
            merged: HashMap::new(),
            reordered: false,
        };
        for table in from {
            let layout = self.joined(table, &mut all)?;
            all.layout = both(all.layout.take(), layout);
        }
        Ok(all)
    }

    /// Returns the columns of a table with its joins.
    fn joined(&mut self, table: &mut TableWithJoins, all: &mut ScopeSources) -> Result<Layout, Refusal> {
        let mut layout = self.table(&mut table.relation, all)?;
        for join in &mut table.joins {
            let right = self.table(&mut join.relation, all)?;
            let (constraint, only) = match &mut join.join_operator {
                JoinOperator::Join(constraint)
                | JoinOperator::Inner(constraint)
                | JoinOperator::Left(constraint)
                | JoinOperator::LeftOuter(constraint)
                | JoinOperator::Right(constraint)
                | JoinOperator::RightOuter(constraint)
                | JoinOperator::FullOuter(constraint)
                | JoinOperator::CrossJoin(constraint) => (constraint, None),
                JoinOperator::Semi(constraint)
                | JoinOperator::LeftSemi(constraint)
                | JoinOperator::Anti(constraint)
                | JoinOperator::LeftAnti(constraint) => (constraint, Some(true)),
                JoinOperator::RightSemi(constraint) | JoinOperator::RightAnti(constraint) => (constraint, Some(false)),
                _ => {
                    layout = None;
                    continue;
                }
            };
            let names = match constraint {
                JoinConstraint::On(expr) => {
                    self.expression(expr, &all.merged)?;
                    Some(Vec::new())
                }
                JoinConstraint::Using(names) => Some(names.iter().filter_map(single).map(normal).collect()),
                JoinConstraint::Natural => layout.as_ref().zip(right.as_ref()).map(|(left, right)| {
                    let shared = |name: &String| right.iter().any(|(_, other)| other == name);
                    left.iter().map(|(_, name)| name.clone()).filter(shared).collect()
                }),
                JoinConstraint::None => Some(Vec::new()),
            };
            layout = match (only, names) {
                (Some(true), _) => layout,
                (Some(false), _) => right,
                (None, Some(names)) if names.is_empty() => both(layout, right),
                (None, names) => {
                    all.reordered = true;
                    names
                        .zip(layout.zip(right))
                        .map(|(names, (left, right))| merged(&names, left, right, &mut all.merged))
                }
            };
        }
        Ok(layout)
    }

    fn table(&mut self, table: &mut TableFactor, all: &mut ScopeSources) -> Result<Layout, Refusal> {
        let (alias, name, columns) = match table {
            TableFactor::Table { name, alias, .. } => {
                let ident = single(name).cloned();
                let wanted = ident.as_ref().map(normal);
                let known = self.known.iter().rev().find(|(name, _)| Some(name) == wanted.as_ref());
                (alias, ident, known.and_then(|(_, columns)| columns.clone()))
            }
            TableFactor::Derived { subquery, alias, .. } => (alias, None, self.query(subquery, RowsConsumer::Table)?),
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => return self.joined(table_with_joins, all),
            _ => return Ok(None),
        };
        let columns = columns.map(|columns| match &alias {
            Some(alias) => renamed(columns, alias),
            None => columns,
        });
        let name = alias.as_ref().map(|alias| alias.name.clone()).or(name);
        Ok(columns.map(|columns| columns.into_iter().map(|column| (name.clone(), column)).collect()))
    }

    /// Returns the name of a column with a mark.
    fn mark(&mut self, name: &str) -> Ident {
        self.marked += 1;
        super::alike::marked(name, FIRST_MARK + self.marked)
    }
}

/// Number of the first mark of this module, which is above those of [`super::alike`].
const FIRST_MARK: usize = 1_000_000;

fn both(left: Layout, right: Layout) -> Layout {
    left.zip(right).map(|(mut left, right)| {
        left.extend(right);
        left
    })
}

/// Returns the columns of a join with merged ones, which come first.
fn merged(
    names: &[String],
    left: Vec<(Option<Ident>, String)>,
    right: Vec<(Option<Ident>, String)>,
    all: &mut HashMap<String, Ident>,
) -> Vec<(Option<Ident>, String)> {
    let mut layout = Vec::new();
    for name in names {
        if let Some((table, name)) = left.iter().find(|(_, column)| column == name) {
            if let Some(table) = table {
                all.entry(name.clone()).or_insert_with(|| table.clone());
            }
            layout.push((table.clone(), name.clone()));
        }
    }
    let rest = left.into_iter().chain(right);
    layout.extend(rest.filter(|(_, column)| !names.contains(column)));
    layout
}

fn renamed(mut columns: Vec<String>, alias: &TableAlias) -> Vec<String> {
    for (column, alias) in columns.iter_mut().zip(&alias.columns) {
        *column = normal(&alias.name);
    }
    columns
}

const fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// Writes `*` out.
fn written(item: SelectItem, layout: &[(Option<Ident>, String)]) -> Vec<SelectItem> {
    match &item {
        SelectItem::Wildcard(options)
            if options.opt_exclude.is_none()
                && options.opt_except.is_none()
                && options.opt_replace.is_none()
                && options.opt_rename.is_none()
                && options.opt_ilike.is_none() => {}
        _ => return vec![item],
    }
    let column = |(table, name): &(Option<Ident>, String)| {
        let name = Ident::with_quote('"', name.clone());
        SelectItem::UnnamedExpr(match table {
            Some(table) => Expr::CompoundIdentifier(vec![table.clone(), name]),
            None => Expr::Identifier(name),
        })
    };
    layout.iter().map(column).collect()
}

/// Returns the name of an item that a query around it can use.
fn named(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(normal(alias)),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(normal(name)),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().map(normal),
        _ => None,
    }
}

/// Returns the names of the columns of a SELECT. Those without a name are empty.
fn columns_of(items: &[SelectItem], layout: Option<&Vec<(Option<Ident>, String)>>) -> Columns {
    let mut columns = Vec::new();
    for item in items {
        match item {
            SelectItem::Wildcard(options) if options.opt_exclude.is_none() && options.opt_except.is_none() => {
                columns.extend(layout?.iter().map(|(_, name)| name.clone()));
            }
            item if is_wildcard(item) => return None,
            item => columns.push(named(item).unwrap_or_default()),
        }
    }
    Some(columns)
}

/// Rewrites the expressions of one SELECT: merged columns get the name of their table, and subqueries are queries of
/// their own.
struct SelectRewrite<'a> {
    scope: &'a mut SelectScope,
    merged: &'a HashMap<String, Ident>,
    /// Number of queries around the current place.
    depth: usize,
    scalar: bool,
    refusal: Option<Refusal>,
}

impl<'a> SelectRewrite<'a> {
    const fn new(scope: &'a mut SelectScope, merged: &'a HashMap<String, Ident>) -> Self {
        Self {
            scope,
            merged,
            depth: 0,
            scalar: false,
            refusal: None,
        }
    }
}

impl VisitorMut for SelectRewrite<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        if self.depth == 0 {
            let of = if std::mem::take(&mut self.scalar) {
                RowsConsumer::Value
            } else {
                RowsConsumer::Rows
            };
            if let Err(refusal) = self.scope.query(query, of) {
                self.refusal.get_or_insert(refusal);
            }
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        self.scalar = matches!(expr, Expr::Subquery(_));
        if let Expr::Identifier(name) = expr
            && let Some(table) = self.merged.get(&normal(name))
        {
            *expr = Expr::CompoundIdentifier(vec![table.clone(), name.clone()]);
        }
        ControlFlow::Continue(())
    }
}

/// Returns true if the order of the rows chooses some of them.
const fn chooses(query: &Query, select: &Select) -> bool {
    query.limit_clause.is_some() || matches!(select.distinct, Some(Distinct::On(_)))
}
