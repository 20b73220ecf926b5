//! Check of queries: WITH, SELECT, FROM, joins, set operations.
//!
//! Invariant: a table is `records` or an earlier WITH query. So the tree has no cycle, and its size with every WITH
//! query expanded is known here.

use datafusion::sql::sqlparser::ast::{
    Cte, Distinct, Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, LimitClause, NamedWindowDefinition,
    NamedWindowExpr, ObjectName, Offset, OrderBy, OrderByExpr, OrderByKind, OrderByOptions, Parens, Query, Select,
    SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, TableAlias,
    TableAliasColumnDef, TableFactor, TableWithJoins, Values, WildcardAdditionalOptions, With,
};

use super::names::normal;
use super::{MAX_DEPTH, MAX_GROUPING_SETS, MAX_SIZE, MAX_TABLES, RECORDS_TABLE, Refusal, ambiguous};

const ONLY_SELECT: &str = "only SELECT is allowed";
const ONLY_TABLE: &str = "the only tables are `records` and the WITH queries before this point";

/// Size of a part of a statement, with its WITH queries expanded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StatementSize {
    nodes: usize,
    tables: usize,
}

/// State of the check of one statement.
#[derive(Debug, Default)]
pub(super) struct StatementWalk {
    /// Visible WITH queries, the innermost last.
    visible: Vec<(String, StatementSize)>,
    /// Windows that expressions of the current SELECT may name.
    windows: Vec<String>,
    size: StatementSize,
    depth: usize,
}

/// Checks a statement that is a query.
pub(super) fn statement(query: &Query) -> Result<(), Refusal> {
    if matches!(*query.body, SetExpr::Values(_)) {
        return Err(Refusal::of("VALUES", ONLY_SELECT));
    }
    StatementWalk::default().query(query)
}

impl StatementWalk {
    /// Adds `size` to the size of the statement and checks the bounds.
    fn add(&mut self, size: StatementSize) -> Result<(), Refusal> {
        self.size.nodes = self.size.nodes.saturating_add(size.nodes);
        self.size.tables = self.size.tables.saturating_add(size.tables);
        if self.size.nodes > MAX_SIZE {
            let rule = format!("with its WITH queries expanded it may have at most {MAX_SIZE} expressions");
            return Err(Refusal::new("the size of the statement", rule));
        }
        if self.size.tables > MAX_TABLES {
            let rule = format!("with its WITH queries expanded it may read tables at most {MAX_TABLES} times");
            return Err(Refusal::new("the number of tables", rule));
        }
        Ok(())
    }

    /// Counts one expression or query, checks the depth, and walks its parts.
    pub(super) fn nested(&mut self, walk: impl FnOnce(&mut Self) -> Result<(), Refusal>) -> Result<(), Refusal> {
        self.add(StatementSize { nodes: 1, tables: 0 })?;
        if self.depth == MAX_DEPTH {
            let rule = format!(
                "expressions and queries may nest at most {MAX_DEPTH} deep (a long chain of operators nests: use IN)"
            );
            return Err(Refusal::new("the depth of the statement", rule));
        }
        self.depth += 1;
        walk(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// Checks a query and its parts.
    pub(super) fn query(&mut self, query: &Query) -> Result<(), Refusal> {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        none(fetch.as_ref(), "use LIMIT")?;
        none(locks.first(), "a query cannot lock rows")?;
        none(
            for_clause.as_ref(),
            "a statement cannot choose the format of its answer",
        )?;
        none(
            format_clause.as_ref().map(|_| "FORMAT"),
            "a statement cannot choose the format of its answer",
        )?;
        none(
            settings.as_ref().map(|_| "SETTINGS"),
            "a statement cannot change settings",
        )?;
        none(
            pipe_operators.first(),
            "pipe operators are not supported: write a SELECT",
        )?;
        // The WITH queries and windows of this query end with it.
        let seen = self.visible.len();
        let windows = std::mem::take(&mut self.windows);
        self.nested(|walk| {
            if let Some(with) = with {
                walk.with(with)?;
            }
            walk.body(body)?;
            if let Some(order_by) = order_by {
                ambiguous::check(body, order_by)?;
                walk.order_by(order_by)?;
            }
            if let Some(limit) = limit_clause {
                walk.limit(limit)?;
            }
            Ok(())
        })?;
        self.visible.truncate(seen);
        self.windows = windows;
        Ok(())
    }

    /// Checks that a named window exists.
    pub(super) fn named(&self, name: &Ident) -> Result<(), Refusal> {
        let rule = "no window with this name is in the WINDOW clause of this SELECT";
        let known = self.windows.contains(&normal(name));
        none((!known).then_some(name), rule)
    }

    fn with(&mut self, with: &With) -> Result<(), Refusal> {
        let With {
            with_token: _,
            recursive,
            cte_tables,
        } = with;
        if *recursive {
            return Err(Refusal::of("WITH RECURSIVE", "recursive queries are not supported"));
        }
        for cte in cte_tables {
            let Cte {
                alias,
                query,
                from,
                materialized,
                closing_paren_token: _,
            } = cte;
            none(from.as_ref(), "a WITH query cannot have a FROM clause after it")?;
            none(
                materialized.as_ref().map(|_| "MATERIALIZED"),
                "MATERIALIZED is not supported: the engine plans WITH queries",
            )?;
            let name = Self::alias(alias)?;
            if name == RECORDS_TABLE {
                return Err(Refusal::of(name, "a WITH query must not have the name of the table"));
            }
            // A WITH query counts at every use: an unused one costs nothing, one that is used twice counts twice.
            let before = std::mem::take(&mut self.size);
            self.query(query)?;
            let size = std::mem::replace(&mut self.size, before);
            self.add(StatementSize { nodes: 1, tables: 0 })?;
            self.visible.push((name, size));
        }
        Ok(())
    }

    fn body(&mut self, body: &SetExpr) -> Result<(), Refusal> {
        match body {
            SetExpr::Select(select) => self.nested(|walk| walk.select(select)),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation {
                left,
                op,
                set_quantifier,
                right,
            } => {
                // The engine plans EXCEPT ALL and INTERSECT ALL as joins, which do not count repeated rows.
                let bag = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
                none(
                    (bag && *op != SetOperator::Union).then(|| format!("{op} ALL")),
                    "only UNION supports ALL: number the rows with row_number() first",
                )?;
                self.nested(|walk| {
                    walk.body(left)?;
                    walk.body(right)
                })
            }
            SetExpr::Values(Values {
                explicit_row: _,
                value_keyword: _,
                rows,
            }) => rows.iter().try_for_each(|row| {
                let Parens { content, .. } = row;
                self.expressions(content)
            }),
            SetExpr::Table(_) => Err(Refusal::of(body, ONLY_SELECT)),
            SetExpr::Insert(statement)
            | SetExpr::Update(statement)
            | SetExpr::Delete(statement)
            | SetExpr::Merge(statement) => Err(Refusal::of(statement, ONLY_SELECT)),
        }
    }

    fn select(&mut self, select: &Select) -> Result<(), Refusal> {
        let Select {
            select_token: _,
            optimizer_hints,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        let plain = "this clause is not supported in a SELECT";
        none(optimizer_hints.first(), "hints are not supported")?;
        none(select_modifiers.as_ref(), plain)?;
        none(top.as_ref(), "use LIMIT")?;
        none(exclude.as_ref(), "use `* EXCLUDE (…)`")?;
        none(into.as_ref(), "a query cannot write")?;
        none(lateral_views.first(), plain)?;
        none(prewhere.as_ref().map(|_| "PREWHERE"), "use WHERE")?;
        none(connect_by.first(), "recursive queries are not supported")?;
        none(cluster_by.first().map(|_| "CLUSTER BY"), plain)?;
        none(distribute_by.first().map(|_| "DISTRIBUTE BY"), plain)?;
        none(sort_by.first().map(|_| "SORT BY"), "use ORDER BY")?;
        none(value_table_mode.as_ref(), plain)?;
        none(
            (*flavor != SelectFlavor::Standard).then_some("FROM before SELECT"),
            "SELECT comes first",
        )?;
        none(
            projection.is_empty().then_some("SELECT of nothing"),
            "it must have at least one expression or `*`",
        )?;
        match distinct {
            Some(Distinct::On(expressions)) => self.expressions(expressions)?,
            Some(Distinct::Distinct | Distinct::All) | None => {}
        }
        for NamedWindowDefinition(name, window) in named_window {
            match window {
                NamedWindowExpr::NamedWindow(_) => {
                    return Err(Refusal::of(
                        name,
                        "a window must have a full definition: WINDOW w AS (…)",
                    ));
                }
                NamedWindowExpr::WindowSpec(window) => self.window(window)?,
            }
        }
        let mut windows: Vec<String> = named_window.iter().map(|window| normal(&window.0)).collect();
        // After sorting, equal names are neighbours.
        windows.sort_unstable();
        let twice = windows.windows(2).find(|names| names[0] == names[1]);
        none(twice.map(|names| &names[0]), "a window can have one definition only")?;
        self.windows = windows;
        for item in projection {
            self.item(item)?;
        }
        // Only expressions of the select list may name a window. FROM, WHERE, HAVING and QUALIFY may not.
        self.windows.clear();
        for table in from {
            self.joined(table)?;
        }
        for expression in [selection, having, qualify].into_iter().flatten() {
            self.expression(expression)?;
        }
        self.group_by(group_by)
    }

    fn item(&mut self, item: &SelectItem) -> Result<(), Refusal> {
        match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, alias: _ } => self.expression(expr),
            SelectItem::ExprWithAliases { .. } => Err(Refusal::of(item, "an expression can have one alias only")),
            SelectItem::QualifiedWildcard(kind, options) => {
                if let SelectItemQualifiedWildcardKind::Expr(_) = kind {
                    return Err(Refusal::of(item, "only the name of a table can precede `.*`"));
                }
                wildcard(options)
            }
            SelectItem::Wildcard(options) => wildcard(options),
        }
    }

    fn joined(&mut self, table: &TableWithJoins) -> Result<(), Refusal> {
        let TableWithJoins { relation, joins } = table;
        self.table(relation)?;
        joins.iter().try_for_each(|join| self.join(join))
    }

    fn join(&mut self, join: &Join) -> Result<(), Refusal> {
        let Join {
            relation,
            global,
            join_operator,
        } = join;
        none(global.then_some("GLOBAL JOIN"), "distributed joins are not supported")?;
        self.table(relation)?;
        // Every join kind is named, so a new one is a compile error.
        let constraint = match join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint)
            | JoinOperator::CrossJoin(constraint)
            | JoinOperator::Semi(constraint)
            | JoinOperator::LeftSemi(constraint)
            | JoinOperator::RightSemi(constraint)
            | JoinOperator::Anti(constraint)
            | JoinOperator::LeftAnti(constraint)
            | JoinOperator::RightAnti(constraint) => constraint,
            JoinOperator::CrossApply
            | JoinOperator::OuterApply
            | JoinOperator::AsOf { .. }
            | JoinOperator::StraightJoin(_)
            | JoinOperator::ArrayJoin
            | JoinOperator::LeftArrayJoin
            | JoinOperator::InnerArrayJoin => {
                return Err(Refusal::of(
                    join,
                    "joins are INNER, LEFT, RIGHT, FULL, CROSS, SEMI or ANTI",
                ));
            }
        };
        match constraint {
            JoinConstraint::On(expression) => self.expression(expression),
            JoinConstraint::Using(_) => {
                let rule = "it would take the columns of the left table only: use ON, and coalesce() of both columns";
                none(outer(join_operator).map(|kind| format!("{kind} JOIN … USING")), rule)
            }
            JoinConstraint::Natural => {
                let kind = match join_operator {
                    JoinOperator::Join(_) | JoinOperator::Inner(_) => None,
                    _ => Some(outer(join_operator).unwrap_or("OUTER, SEMI or ANTI")),
                };
                none(
                    kind.map(|kind| format!("NATURAL {kind} JOIN")),
                    "use ON, and coalesce() of the columns that both tables have",
                )
            }
            JoinConstraint::None => Ok(()),
        }
    }

    fn table(&mut self, table: &TableFactor) -> Result<(), Refusal> {
        match table {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
            } => {
                // A table with arguments is a table function, which could read files.
                none(args.as_ref().map(|_| table), "table functions are not supported")?;
                let plain = with_hints.is_empty()
                    && version.is_none()
                    && !with_ordinality
                    && partitions.is_empty()
                    && json_path.is_none()
                    && sample.is_none()
                    && index_hints.is_empty();
                none((!plain).then_some(table), "a table can only have a name and an alias")?;
                let size = self.find(name)?;
                self.add(size)?;
                alias.as_ref().map_or(Ok(()), |alias| Self::alias(alias).map(drop))
            }
            TableFactor::Derived {
                lateral,
                subquery,
                alias,
                sample,
            } => {
                none(
                    lateral.then_some("LATERAL"),
                    "a subquery in FROM cannot refer to other tables",
                )?;
                none(sample.as_ref().map(|_| "a sample"), "samples are not supported")?;
                self.query(subquery)?;
                alias.as_ref().map_or(Ok(()), |alias| Self::alias(alias).map(drop))
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                self.nested(|walk| walk.joined(table_with_joins))?;
                alias.as_ref().map_or(Ok(()), |alias| Self::alias(alias).map(drop))
            }
            TableFactor::TableFunction { .. }
            | TableFactor::Function { .. }
            | TableFactor::UNNEST { .. }
            | TableFactor::JsonTable { .. }
            | TableFactor::OpenJsonTable { .. }
            | TableFactor::XmlTable { .. } => Err(Refusal::of(table, "table functions are not supported")),
            TableFactor::Pivot { .. }
            | TableFactor::Unpivot { .. }
            | TableFactor::MatchRecognize { .. }
            | TableFactor::SemanticView { .. } => Err(Refusal::of(table, "a table can only have a name and an alias")),
        }
    }

    /// Returns the size of the table `name`.
    fn find(&self, name: &ObjectName) -> Result<StatementSize, Refusal> {
        let [part] = &name.0[..] else {
            return Err(Refusal::of(name, ONLY_TABLE));
        };
        let name = part
            .as_ident()
            .map(normal)
            .ok_or_else(|| Refusal::of(part, ONLY_TABLE))?;
        if name == RECORDS_TABLE {
            return Ok(StatementSize { nodes: 1, tables: 1 });
        }
        // The innermost WITH query of a name hides the others.
        let found = self.visible.iter().rev().find(|(visible, _)| *visible == name);
        found
            .map(|(_, size)| *size)
            .ok_or_else(|| Refusal::of(name, ONLY_TABLE))
    }

    /// Returns the name that an alias defines.
    fn alias(alias: &TableAlias) -> Result<String, Refusal> {
        let TableAlias {
            explicit: _,
            name,
            columns,
            at,
        } = alias;
        none(at.as_ref(), "an alias can only have a name and column names")?;
        for TableAliasColumnDef { name, data_type } in columns {
            none(
                data_type.as_ref().map(|_| name),
                "the columns of an alias cannot have types",
            )?;
        }
        Ok(normal(name))
    }

    fn group_by(&mut self, group_by: &GroupByExpr) -> Result<(), Refusal> {
        let (expressions, modifiers) = match group_by {
            GroupByExpr::All(modifiers) => (&[][..], modifiers),
            GroupByExpr::Expressions(expressions, modifiers) => (&expressions[..], modifiers),
        };
        none(modifiers.first(), "use ROLLUP (…), CUBE (…) or GROUPING SETS (…)")?;
        let mut sets = 1_usize;
        for expression in expressions {
            let (lists, count) = match expression {
                Expr::Cube(lists) => (
                    lists,
                    2_usize.saturating_pow(u32::try_from(lists.len()).unwrap_or(u32::MAX)),
                ),
                Expr::Rollup(lists) => (lists, lists.len() + 1),
                Expr::GroupingSets(lists) => (lists, lists.len()),
                expression => {
                    self.expression(expression)?;
                    continue;
                }
            };
            // Several sets in one GROUP BY multiply.
            sets = sets.saturating_mul(count);
            if sets > MAX_GROUPING_SETS {
                let rule = format!("a SELECT may have {MAX_GROUPING_SETS} grouping sets");
                return Err(Refusal::of(expression, rule));
            }
            lists.iter().try_for_each(|list| self.expressions(list))?;
        }
        Ok(())
    }

    fn order_by(&mut self, order_by: &OrderBy) -> Result<(), Refusal> {
        let OrderBy { kind, interpolate } = order_by;
        none(
            interpolate.as_ref().map(|_| "INTERPOLATE"),
            "filling gaps with rows is not supported",
        )?;
        match kind {
            OrderByKind::All(OrderByOptions { .. }) => Ok(()),
            OrderByKind::Expressions(expressions) => self.sorted(expressions),
        }
    }

    /// Checks the expressions of an ORDER BY.
    pub(super) fn sorted(&mut self, expressions: &[OrderByExpr]) -> Result<(), Refusal> {
        for OrderByExpr {
            expr,
            options: _,
            with_fill,
        } in expressions
        {
            none(
                with_fill.as_ref().map(|_| "WITH FILL"),
                "filling gaps with rows is not supported",
            )?;
            self.expression(expr)?;
        }
        Ok(())
    }

    fn limit(&mut self, clause: &LimitClause) -> Result<(), Refusal> {
        let (limit, offset) = match clause {
            LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            } => {
                none(limit_by.first().map(|_| "LIMIT … BY"), "LIMIT must be a number of rows")?;
                let offset = offset.as_ref().map(|Offset { value, rows: _ }| value);
                (limit.as_ref(), offset)
            }
            LimitClause::OffsetCommaLimit { offset, limit } => (Some(limit), Some(offset)),
        };
        [limit, offset]
            .into_iter()
            .flatten()
            .try_for_each(|number| self.expression(number))
    }
}

/// Returns the keyword of a join that also returns unmatched rows of the right table.
const fn outer(join: &JoinOperator) -> Option<&'static str> {
    match join {
        JoinOperator::Right(_) | JoinOperator::RightOuter(_) => Some("RIGHT"),
        JoinOperator::FullOuter(_) => Some("FULL"),
        _ => None,
    }
}

fn wildcard(options: &WildcardAdditionalOptions) -> Result<(), Refusal> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude: _,
        opt_except: _,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    let plain = opt_ilike.is_none() && opt_replace.is_none() && opt_rename.is_none() && opt_alias.is_none();
    none(
        (!plain).then_some(options),
        "after `*` only EXCLUDE and EXCEPT are supported",
    )
}

/// Refuses `part` if it is present.
pub(super) fn none(part: Option<impl ToString>, rule: &str) -> Result<(), Refusal> {
    part.map_or(Ok(()), |part| Err(Refusal::of(part, rule)))
}

/// Returns the identifier of a name, or `None` if the name has several parts.
pub(super) fn single(name: &ObjectName) -> Option<&Ident> {
    match &name.0[..] {
        [part] => part.as_ident(),
        _ => None,
    }
}
