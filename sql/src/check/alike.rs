//! Names for columns that the engine would not tell apart: `x::int` beside `x::text`, `count(*)` twice, and columns of
//! two tables that have one name.
//!
//! Invariant: a statement keeps its meaning, and [`shown`] returns the name that a column has for everybody else. A
//! column that is written twice with two meanings cannot be named by a query around it, as in `PostgreSQL`.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, Join,
    JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    Statement, TableAlias, TableFactor, TableWithJoins, Value, VisitMut as _, VisitorMut,
};
use types::Contract;

use super::RECORDS_TABLE;
use super::names::normal;
use super::query::single;

/// Function that returns its first argument and has a name of its own.
pub(crate) const NAMED: &str = "named_by_type";

/// Character between the name of a column and what makes it unique.
const MARK: char = '\u{1}';

/// Returns the name of a column without what makes it unique.
pub(crate) fn shown(name: &str) -> &str {
    name.split(MARK).next().unwrap_or_default()
}

/// Returns a name of its own for a column that is shown as `name`. The number is no other's.
pub(super) fn marked(name: &str, number: usize) -> Ident {
    Ident::with_quote('"', format!("{name}{MARK}{number}"))
}

/// Returns a text with [`shown`] names.
pub(crate) fn without_marks(text: &str) -> String {
    let mut pieces = text.split(MARK);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    pieces.for_each(|piece| out.push_str(piece.trim_start_matches(|digit: char| digit.is_ascii_digit())));
    out
}

/// Gives every column of the statement a name of its own.
pub(crate) fn separate(statement: &mut Statement, contract: &Contract) {
    let fields = contract
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    let mut separator = NameSeparator {
        known: vec![(RECORDS_TABLE.to_owned(), fields)],
        marked: 0,
    };
    // Tables come first, because a query around one names its columns.
    if let Statement::Query(query) = statement {
        separator.query(query, true);
    }
    let ControlFlow::Continue(()) = statement.visit(&mut separator);
}

struct NameSeparator {
    /// Tables with the names of their columns, the innermost last.
    known: Vec<(String, Vec<String>)>,
    marked: usize,
}

impl VisitorMut for NameSeparator {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        self.items(&mut select.projection, &HashSet::new());
        ControlFlow::Continue(())
    }

    /// Names casts by their type, of which the engine's name of a cast says nothing.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Cast { data_type, .. } = expr {
            let kind = Expr::value(Value::SingleQuotedString(data_type.to_string()));
            let cast = std::mem::replace(expr, Expr::value(Value::Null));
            let argument = |expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr));
            *expr = Expr::Function(Function {
                name: ObjectName::from(vec![Ident::new(NAMED)]),
                uses_odbc_syntax: false,
                parameters: FunctionArguments::None,
                args: FunctionArguments::List(FunctionArgumentList {
                    duplicate_treatment: None,
                    args: vec![argument(cast), argument(kind)],
                    clauses: Vec::new(),
                }),
                filter: None,
                null_treatment: None,
                over: None,
                within_group: Vec::new(),
            });
        }
        ControlFlow::Continue(())
    }
}

/// Columns of a query or a table. `None` if they are not known.
type Columns = Option<Vec<String>>;
/// A column with the name of its table.
type Column = (Option<Ident>, String);
/// Name of a table, with those of its columns.
type Table = (Option<Ident>, Vec<String>);

/// Tables of a FROM clause: their names and columns, and the columns that USING merges.
#[derive(Default)]
struct NamedSources {
    tables: Vec<Table>,
    merged: HashSet<String>,
}

impl NameSeparator {
    fn query(&mut self, query: &mut Query, outermost: bool) -> Columns {
        let seen = self.known.len();
        for Cte { alias, query, .. } in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            let columns = self.query(query, false);
            if let Some(columns) = columns {
                self.known.push((normal(&alias.name), renamed(columns, alias)));
            }
        }
        let columns = self.body(&mut query.body, outermost);
        self.known.truncate(seen);
        columns
    }

    fn body(&mut self, body: &mut SetExpr, outermost: bool) -> Columns {
        match body {
            SetExpr::Select(select) => self.select(select, outermost),
            SetExpr::Query(query) => self.query(query, outermost),
            SetExpr::SetOperation { left, right, .. } => {
                let columns = self.body(left, outermost);
                self.body(right, outermost);
                columns
            }
            _ => None,
        }
    }

    fn select(&mut self, select: &mut Select, outermost: bool) -> Columns {
        let mut sources = Some(NamedSources::default());
        for from in &mut select.from {
            self.joined(from, &mut sources);
        }
        let items = select.projection.iter();
        let columns: Option<Vec<Vec<Column>>> = items.map(|item| expanded(item, sources.as_ref())).collect();
        let columns = columns?;
        let is_wildcard =
            |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for (_, name) in columns.iter().flatten() {
            *counts.entry(name).or_default() += 1;
        }
        let twice = counts.values().any(|count| *count > 1);
        if twice && select.projection.iter().any(is_wildcard) {
            let whole = outermost && {
                let of_wildcards = columns
                    .iter()
                    .zip(&select.projection)
                    .filter(|(_, item)| is_wildcard(item));
                let mut names: Vec<&str> = of_wildcards
                    .flat_map(|(columns, _)| columns)
                    .map(|(_, name)| &**name)
                    .collect();
                names.sort_unstable();
                // Columns of different tables may have one name in an answer.
                names.windows(2).all(|pair| pair[0] != pair[1])
                    || sources.as_ref().is_some_and(|all| all.tables.len() > 1)
            };
            if whole {
                let taken = columns
                    .iter()
                    .zip(&select.projection)
                    .filter(|(_, item)| is_wildcard(item));
                let taken = taken
                    .flat_map(|(columns, _)| columns)
                    .map(|(_, name)| name.clone())
                    .collect();
                self.items(&mut select.projection, &taken);
            } else {
                let items = std::mem::take(&mut select.projection);
                select.projection = items
                    .into_iter()
                    .zip(&columns)
                    .flat_map(|(item, columns)| written(item, columns))
                    .collect();
            }
        }
        self.items(&mut select.projection, &HashSet::new());
        let name = |item: &SelectItem| named(item).unwrap_or_default();
        let explicit = !select.projection.iter().any(is_wildcard);
        Some(if explicit {
            select.projection.iter().map(name).collect()
        } else {
            columns.into_iter().flatten().map(|(_, name)| name).collect()
        })
    }

    fn joined(&mut self, table: &mut TableWithJoins, sources: &mut Option<NamedSources>) {
        self.table(&mut table.relation, sources);
        for Join {
            relation,
            join_operator,
            ..
        } in &mut table.joins
        {
            self.table(relation, sources);
            let constraint = match join_operator {
                JoinOperator::Join(constraint)
                | JoinOperator::Inner(constraint)
                | JoinOperator::Left(constraint)
                | JoinOperator::LeftOuter(constraint) => constraint,
                JoinOperator::Right(JoinConstraint::On(_))
                | JoinOperator::RightOuter(JoinConstraint::On(_))
                | JoinOperator::FullOuter(JoinConstraint::On(_))
                | JoinOperator::CrossJoin(_) => continue,
                _ => {
                    *sources = None;
                    continue;
                }
            };
            match (constraint, sources.as_mut()) {
                (JoinConstraint::Using(names), Some(sources)) => {
                    sources.merged.extend(names.iter().filter_map(single).map(normal));
                }
                (JoinConstraint::Natural, _) => *sources = None,
                _ => {}
            }
        }
    }

    fn table(&mut self, table: &mut TableFactor, sources: &mut Option<NamedSources>) {
        let (name, columns) = match table {
            TableFactor::Table { name, alias, .. } => {
                let ident = single(name).cloned();
                let known = ident.as_ref().map(normal);
                let columns = self.known.iter().rev().find(|(name, _)| Some(name) == known.as_ref());
                let columns = columns.map(|(_, columns)| columns.clone());
                match alias {
                    Some(alias) => (Some(alias.name.clone()), columns.map(|columns| renamed(columns, alias))),
                    None => (ident, columns),
                }
            }
            TableFactor::Derived { subquery, alias, .. } => {
                let columns = self.query(subquery, false);
                match alias {
                    Some(alias) => (Some(alias.name.clone()), columns.map(|columns| renamed(columns, alias))),
                    None => (None, columns),
                }
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => return self.joined(table_with_joins, sources),
            _ => (None, None),
        };
        if let (Some(columns), Some(sources)) = (columns, sources.as_mut()) {
            sources.tables.push((name, columns));
        } else {
            *sources = None;
        }
    }

    /// Gives the items of a select list that have one name names of their own. `taken` are names of other columns.
    fn items(&mut self, items: &mut [SelectItem], taken: &HashSet<String>) {
        let mut texts: HashMap<String, HashSet<String>> = HashMap::new();
        for item in &*items {
            if let (Some(name), Some(text)) = (named(item), text(item)) {
                texts.entry(name).or_default().insert(text);
            }
        }
        let mut seen = HashSet::new();
        for item in items {
            let Some(name) = named(item) else {
                // An expression without a name may have the same one as another expression.
                if let SelectItem::UnnamedExpr(expr) = item {
                    let name = unmarked(expr);
                    self.mark(item, &name);
                }
                continue;
            };
            if name.contains(MARK) {
                continue;
            }
            let differs = texts.get(&name).is_some_and(|texts| texts.len() > 1);
            if differs || !seen.insert(name.clone()) || taken.contains(&name) {
                self.mark(item, &name);
            }
        }
    }

    fn mark(&mut self, item: &mut SelectItem, name: &str) {
        self.marked += 1;
        let alias = marked(name, self.marked);
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let expr = std::mem::replace(expr, Expr::value(Value::Null));
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
            SelectItem::ExprWithAlias { alias: present, .. } => *present = alias,
            _ => {}
        }
    }
}

fn renamed(mut columns: Vec<String>, alias: &TableAlias) -> Vec<String> {
    for (column, alias) in columns.iter_mut().zip(&alias.columns) {
        *column = normal(&alias.name);
    }
    columns
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

fn text(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) => Some(expr.to_string()),
        _ => None,
    }
}

/// Returns the name that an answer shows for an expression without one.
fn unmarked(expr: &Expr) -> String {
    match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => unmarked(expr),
        Expr::Identifier(name) => normal(name),
        Expr::CompoundIdentifier(parts) => parts.last().map(normal).unwrap_or_default(),
        other => other.to_string(),
    }
}

/// Returns the columns that an item stands for, each with its table.
fn expanded(item: &SelectItem, sources: Option<&NamedSources>) -> Option<Vec<Column>> {
    let of = |(table, columns): &Table| -> Vec<Column> {
        columns.iter().map(|column| (table.clone(), column.clone())).collect()
    };
    match item {
        SelectItem::Wildcard(options) => {
            let sources = sources?;
            let plain = options.opt_exclude.is_none() && options.opt_except.is_none();
            let all = sources.tables.iter().flat_map(of);
            let mut merged = HashSet::new();
            let once = all.filter(|(_, name)| !sources.merged.contains(name) || merged.insert(name.clone()));
            plain.then(|| once.collect())
        }
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options) => {
            let plain = options.opt_exclude.is_none() && options.opt_except.is_none();
            let name = normal(single(name)?);
            let is = |(table, _): &&Table| table.as_ref().map(normal).as_ref() == Some(&name);
            plain.then(|| sources?.tables.iter().find(is).map(of)).flatten()
        }
        item => Some(vec![(None, named(item).unwrap_or_default())]),
    }
}

/// Writes a wildcard out.
fn written(item: SelectItem, columns: &[Column]) -> Vec<SelectItem> {
    if !matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)) {
        return vec![item];
    }
    let column = |(table, name): &Column| {
        let parts = table.iter().cloned().chain([Ident::with_quote('"', name.clone())]);
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts.collect()))
    };
    columns.iter().map(column).collect()
}
