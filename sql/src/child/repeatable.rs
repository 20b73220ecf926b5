//! Reasons why the answer to a statement may be another one the next time, although records, `now()`, limit and program
//! are the same and one thread runs it. The files of the records may differ: a compaction writes larger ones.
//!
//! Invariant: a statement that is not known to be repeatable has a reason.

use std::collections::{BTreeSet, HashSet};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Column, ExprSchema as _};
use datafusion::error::Result;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, ExprSchemable as _, LogicalPlan, Projection, Sort};

use crate::Unrepeatable;

/// Aggregates whose result depends on the order of their rows.
const ORDER_AGGREGATES: [&str; 6] = [
    "any_value",
    "array_agg",
    "first_value",
    "last_value",
    "nth_value",
    "string_agg",
];
/// Aggregates that add doubles up in batches, whose borders follow those of files.
const DOUBLE_AGGREGATES: [&str; 22] = [
    "avg",
    "corr",
    "covar",
    "covar_pop",
    "covar_samp",
    "mean",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "var",
    "var_pop",
    "var_population",
    "var_samp",
];
/// Beginning of the names of aggregates that estimate.
const APPROXIMATE_PREFIX: &str = "approx_";
/// Functions that the system's library of mathematics computes, each to its own last digit.
const LIBRARY_FUNCTIONS: [&str; 22] = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "cot", "exp", "ln", "log",
    "log10", "log2", "pow", "power", "sin", "sinh", "tan", "tanh",
];

/// Returns why an answer may differ the next time; nothing if it cannot. `plan` is the plan of the statement as it was
/// written, `analyzed` the same with its types.
pub(super) fn reasons(plan: &LogicalPlan, analyzed: &LogicalPlan) -> Result<Vec<Unrepeatable>> {
    let mut found = BTreeSet::new();
    if !has_known_order(plan)? {
        found.insert(Unrepeatable::Order);
    }
    // The types of literals are known after the analysis only, and its rules give functions other names.
    for (plan, has_types) in [(plan, false), (analyzed, true)] {
        plan.apply_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            plan.apply_expressions(|expr| {
                expr.apply(|expr| {
                    match expr {
                        Expr::AggregateFunction(aggregate) => {
                            let name = aggregate.func.name();
                            found.extend(of_aggregate(name));
                            let terms = aggregate.params.args.first().filter(|_| has_types && name == "sum");
                            // A type that is not known is taken for the one that cannot be repeated.
                            if terms
                                .is_some_and(|terms| terms.get_type(&schema).map_or(true, |kind| kind.is_floating()))
                            {
                                found.insert(Unrepeatable::Double);
                            }
                        }
                        Expr::WindowFunction(window) => {
                            found.insert(Unrepeatable::Order);
                            found.extend(of_aggregate(window.fun.name()));
                        }
                        Expr::ScalarFunction(function) if LIBRARY_FUNCTIONS.contains(&function.name()) => {
                            found.insert(Unrepeatable::Library);
                        }
                        _ => {}
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
    }
    Ok(found.into_iter().collect())
}

fn of_aggregate(name: &str) -> Option<Unrepeatable> {
    if ORDER_AGGREGATES.contains(&name) {
        Some(Unrepeatable::Order)
    } else if name.starts_with(APPROXIMATE_PREFIX) {
        Some(Unrepeatable::Approx)
    } else {
        DOUBLE_AGGREGATES.contains(&name).then_some(Unrepeatable::Double)
    }
}

/// Tells if a statement has one order of its rows, and nothing in it depends on another one.
fn has_known_order(plan: &LogicalPlan) -> Result<bool> {
    let top = match plan {
        LogicalPlan::Limit(limit) => limit.input.as_ref(),
        other => other,
    };
    let mut is_left_open = false;
    // A LIMIT or DISTINCT ON inside picks some of its rows.
    top.apply_with_subqueries(|plan| {
        is_left_open |= matches!(plan, LogicalPlan::Limit(_) | LogicalPlan::Distinct(Distinct::On(_)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(!is_left_open && (has_one_row(top) || is_sorted(top)))
}

/// Tells if a plan has one row at most: aggregates without GROUP BY, or no table.
fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => has_one_row(&projection.input),
        LogicalPlan::Filter(filter) => has_one_row(&filter.input),
        LogicalPlan::Sort(sort) => has_one_row(&sort.input),
        LogicalPlan::Distinct(Distinct::All(input)) => has_one_row(input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(_) => true,
        _ => false,
    }
}

/// Tells if the outermost ORDER BY has every column of the answer, or every expression of GROUP BY.
fn is_sorted(plan: &LogicalPlan) -> bool {
    // A column that is only in ORDER BY is dropped after it.
    let (sort, shown) = match plan {
        LogicalPlan::Sort(sort) => (sort, sort.input.schema().columns()),
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            let LogicalPlan::Sort(sort) = &**input else {
                return false;
            };
            let columns = expr.iter().map(|expr| match unaliased(expr) {
                Expr::Column(column) => Some(column),
                _ => None,
            });
            let Some(columns) = columns.collect::<Option<Vec<_>>>() else {
                return false;
            };
            (sort, columns)
        }
        _ => return false,
    };
    let keys = SortKeys::of(sort);
    let schema = sort.input.schema();
    let covers_answer = shown.iter().all(|column| {
        let field = schema.field_from_column(column);
        // Intervals of one length are equal in the order, and are shown as they are.
        keys.has(column) && field.is_ok_and(|field| !has_interval(field.data_type()))
    });
    covers_answer || keys.cover_groups()
}

fn has_interval(kind: &DataType) -> bool {
    match kind {
        DataType::Interval(_) | DataType::Duration(_) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_interval(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_interval(field.data_type())),
        _ => false,
    }
}

fn unaliased(expr: &Expr) -> Expr {
    expr.clone().unalias_nested().data
}

/// Columns of an ORDER BY. Columns of the select list and of its input can have the same names, so they are kept apart.
struct SortKeys<'a> {
    /// Columns of the select list.
    outputs: HashSet<Column>,
    /// What these columns are, over the input of the select list.
    sources: HashSet<Expr>,
    /// Select list below the ORDER BY.
    projection: Option<&'a Projection>,
    input: &'a LogicalPlan,
}

impl<'a> SortKeys<'a> {
    fn of(sort: &'a Sort) -> Self {
        let below = match &*sort.input {
            // DISTINCT has the columns of its input.
            LogicalPlan::Distinct(Distinct::All(input)) => input.as_ref(),
            other => other,
        };
        let (projection, input) = match below {
            LogicalPlan::Projection(projection) => (Some(projection), &*projection.input),
            other => (None, other),
        };
        let mut of = Self {
            outputs: HashSet::new(),
            sources: HashSet::new(),
            projection,
            input,
        };
        for key in &sort.expr {
            if let Expr::Column(column) = unaliased(&key.expr) {
                of.sources.extend(of.source(&column));
                of.outputs.insert(column);
            }
        }
        of
    }

    /// Returns the expression of the select list that a column is; the column itself without a select list.
    fn source(&self, column: &Column) -> Option<Expr> {
        let Some(projection) = self.projection else {
            return Some(Expr::Column(column.clone()));
        };
        let index = projection.schema.maybe_index_of_column(column)?;
        projection.expr.get(index).map(unaliased)
    }

    fn has(&self, column: &Column) -> bool {
        self.outputs.contains(column) || self.source(column).is_some_and(|source| self.sources.contains(&source))
    }

    /// Tells if the rows are groups, and every expression that they are grouped by is a key.
    fn cover_groups(&self) -> bool {
        let grouped = match self.input {
            // HAVING.
            LogicalPlan::Filter(filter) => &*filter.input,
            other => other,
        };
        let LogicalPlan::Aggregate(Aggregate { group_expr, schema, .. }) = grouped else {
            return false;
        };
        let is_set = |expr: &Expr| matches!(expr, Expr::GroupingSet(_));
        let mut groups = schema.columns().into_iter().take(group_expr.len());
        let is_key = |group: Column| {
            let field = schema.field_from_column(&group);
            field.is_ok_and(|field| !has_interval(field.data_type())) && self.sources.contains(&Expr::Column(group))
        };
        !group_expr.is_empty() && !group_expr.iter().any(is_set) && groups.all(is_key)
    }
}
