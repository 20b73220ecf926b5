//! Analyzer rule that compares intervals by their length, wherever a statement compares, sorts or groups them.
//!
//! Invariant: the rule runs before type coercion. Afterwards no interval is compared by the engine. A replaced
//! expression keeps its name and its type.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::functions::datetime;
use datafusion::logical_expr::expr::{
    AggregateFunction, Alias, Between, BinaryExpr, Case, InList, InSubquery, ScalarFunction, Sort, WindowFunction,
    WindowFunctionDefinition,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{grouping_set_to_exprlist, merge_schema};
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprSchemable as _, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Subquery,
    WindowFrameBound, cast, lit, when,
};
use datafusion::optimizer::AnalyzerRule;

use super::arithmetic::{as_interval, with_micros};
use super::interval_aggregates::{self, IntervalAggregate};
use super::temporal::{self, LOCAL, TemporalOperation, from_engine, instant};
use crate::time::interval::Interval;

/// Parts of a timestamp that the engine takes as `PostgreSQL` does, with fewer steps.
const PARTS_OF_ENGINE: [&str; 9] = [
    "year", "quarter", "month", "week", "day", "hour", "minute", "doy", "dow",
];
/// Parts to which the engine truncates a timestamp as `PostgreSQL` does.
const TRUNCATED_BY_ENGINE: [&str; 8] = ["year", "quarter", "month", "week", "day", "hour", "minute", "second"];

/// The analyzer rule.
#[derive(Debug)]
pub(super) struct ByLength;

impl AnalyzerRule for ByLength {
    fn name(&self) -> &'static str {
        "as_postgres"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            let plan = plan
                .map_expressions(|expr| {
                    let name = names.save(&expr);
                    let replaced = expr.transform_up(|expr| replaced(expr, &schema))?;
                    Ok(replaced.update_data(|expr| name.restore(expr)))
                })?
                .map_data(LogicalPlan::recompute_schema)?;
            let changed = plan.transformed;
            let whole = node(plan.data)?;
            Ok(Transformed::new_transformed(whole.data, changed || whole.transformed))
        })?;
        Ok(plan.data)
    }
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    // A type that cannot be found is reported by the engine.
    matches!(expr.get_type(schema), Ok(DataType::Interval(_)))
}

fn length(expr: Expr) -> Expr {
    match expr {
        Expr::ScalarFunction(function) if function.func.name() == "difference" => {
            temporal::call(TemporalOperation::Elapsed, function.args)
        }
        expr => temporal::call(TemporalOperation::Length, vec![expr]),
    }
}

/// Replaces what a plan compares as a whole.
fn node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Sort(mut sort) => {
            let input = Arc::clone(&sort.input);
            let mut changed = false;
            for by in &mut sort.expr {
                changed |= keyed(by, input.schema());
            }
            Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), changed))
        }
        LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) => {
            if !has_interval(input.schema()) {
                return Ok(Transformed::no(LogicalPlan::Distinct(Distinct::All(input))));
            }
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
            grouped(Aggregate::try_new(input, columns, Vec::new())?)
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            let input = Arc::clone(&on.input);
            let mut changed = false;
            for expr in &mut on.on_expr {
                changed |= lengthened(expr, input.schema());
            }
            for by in on.sort_expr.iter_mut().flatten() {
                changed |= keyed(by, input.schema());
            }
            Ok(Transformed::new_transformed(
                LogicalPlan::Distinct(Distinct::On(on)),
                changed,
            ))
        }
        LogicalPlan::Join(mut join) => {
            let (left, right) = (Arc::clone(&join.left), Arc::clone(&join.right));
            let mut changed = false;
            for (one, other) in &mut join.on {
                changed |= lengthened(one, left.schema());
                changed |= lengthened(other, right.schema());
            }
            Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn has_interval(schema: &DFSchema) -> bool {
    schema
        .fields()
        .iter()
        .any(|field| matches!(field.data_type(), DataType::Interval(_)))
}

/// Replaces an interval by its length. Returns true if it was one.
fn lengthened(expr: &mut Expr, schema: &DFSchema) -> bool {
    let found = is_interval(expr, schema);
    if found {
        *expr = length(std::mem::take(expr));
    }
    found
}

fn keyed(by: &mut Sort, schema: &DFSchema) -> bool {
    lengthened(&mut by.expr, schema)
}

/// Groups by the length of intervals. Each group shows one of its intervals.
fn grouped(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let input = Arc::clone(&aggregate.input);
    let by: Vec<Expr> = grouping_set_to_exprlist(&aggregate.group_expr)?
        .into_iter()
        .cloned()
        .collect();
    let intervals: Vec<bool> = by.iter().map(|expr| is_interval(expr, input.schema())).collect();
    if !intervals.contains(&true) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let group = aggregate.group_expr.into_iter().map(|expr| {
        let replaced = expr.transform_up(|expr| {
            let key = by.iter().zip(&intervals).any(|(by, interval)| *interval && *by == expr);
            Ok(if key {
                Transformed::yes(length(expr))
            } else {
                Transformed::no(expr)
            })
        });
        Ok(replaced?.data)
    });
    let group = group.collect::<Result<_>>()?;
    let mut aggregates = aggregate.aggr_expr;
    let mut shown = Vec::new();
    for (index, expr) in by.iter().enumerate().filter(|(index, _)| intervals[*index]) {
        let name = format!("__interval_{index}");
        aggregates.push(interval_aggregates::call(IntervalAggregate::Min, unaliased(expr)).alias(&name));
        shown.push((index, name));
    }
    let before = aggregate.schema;
    let inner = Aggregate::try_new(input, group, aggregates)?;
    let columns = inner.schema.columns();
    let expressions = before.iter().enumerate().map(|(index, (relation, field))| {
        let column = Expr::Column(columns[index].clone());
        let value = match shown.iter().find(|(shown, _)| *shown == index) {
            // A column that a grouping set leaves out is null.
            Some((_, name)) => temporal::call(
                TemporalOperation::Kept,
                vec![Expr::Column(name.as_str().into()), column],
            ),
            None => column,
        };
        Ok(Expr::Alias(Alias::new(value, relation.cloned(), field.name())))
    });
    let expressions = expressions.collect::<Result<_>>()?;
    let plan = Projection::try_new(expressions, Arc::new(LogicalPlan::Aggregate(inner)))?;
    Ok(Transformed::yes(LogicalPlan::Projection(plan)))
}

fn unaliased(expr: &Expr) -> Expr {
    match expr {
        Expr::Alias(alias) => unaliased(&alias.expr),
        expr => expr.clone(),
    }
}

const fn is_comparison(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

fn replaced(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            mut left,
            op,
            mut right,
        }) if is_comparison(op) => {
            let changed = alike(&mut [&mut left, &mut right], schema);
            Ok(Transformed::new_transformed(
                Expr::BinaryExpr(BinaryExpr { left, op, right }),
                changed,
            ))
        }
        Expr::Between(Between {
            mut expr,
            negated,
            mut low,
            mut high,
        }) => {
            let changed = alike(&mut [&mut expr, &mut low, &mut high], schema);
            Ok(Transformed::new_transformed(
                Expr::Between(Between {
                    expr,
                    negated,
                    low,
                    high,
                }),
                changed,
            ))
        }
        Expr::InList(InList {
            mut expr,
            mut list,
            negated,
        }) => {
            let mut all: Vec<&mut Expr> = std::iter::once(&mut *expr).chain(&mut list).collect();
            let changed = alike(&mut all, schema);
            Ok(Transformed::new_transformed(
                Expr::InList(InList { expr, list, negated }),
                changed,
            ))
        }
        Expr::InSubquery(of) => in_subquery(of, schema),
        Expr::Case(Case {
            expr: Some(mut expr),
            mut when_then_expr,
            else_expr,
        }) => {
            let mut all: Vec<&mut Expr> = std::iter::once(&mut *expr)
                .chain(when_then_expr.iter_mut().map(|(when, _)| &mut **when))
                .collect();
            let changed = alike(&mut all, schema);
            let case = Case {
                expr: Some(expr),
                when_then_expr,
                else_expr,
            };
            Ok(Transformed::new_transformed(Expr::Case(case), changed))
        }
        Expr::ScalarFunction(function) => scalar(function, schema),
        Expr::AggregateFunction(function) => Ok(aggregate(function, schema)),
        Expr::WindowFunction(function) => window(*function, schema),
        other => Ok(Transformed::no(other)),
    }
}

/// Prepares expressions that are compared with each other. Returns true if something changed.
fn alike(all: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let kinds: Vec<_> = all
        .iter()
        .map(|expr| expr.get_type(schema).unwrap_or(DataType::Null))
        .collect();
    if kinds.iter().any(|kind| matches!(kind, DataType::Interval(_))) {
        for (expr, kind) in all.iter_mut().zip(&kinds) {
            let of = std::mem::take(*expr);
            **expr = match (kind, &of) {
                (DataType::Interval(_), _) => length(of),
                (kind, Expr::Literal(..)) if kind.is_string() || kind.is_null() => length(as_interval(of)),
                _ => of,
            };
        }
        return true;
    }
    let of_times = |kind: &DataType| matches!(kind, DataType::Timestamp(..));
    let mixed = kinds.iter().any(of_times)
        && kinds.iter().any(|kind| match kind {
            DataType::Timestamp(..) => kind != &LOCAL && kind != &instant(),
            DataType::Date32 => true,
            _ => false,
        });
    if mixed {
        // Nanoseconds end in the year 2262.
        for (expr, kind) in all.iter_mut().zip(&kinds) {
            **expr = with_micros(std::mem::take(*expr), kind);
        }
    }
    mixed
}

fn in_subquery(of: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let InSubquery {
        expr,
        subquery,
        negated,
    } = of;
    let inner = subquery.subquery.schema();
    let kinds = (
        expr.get_type(schema),
        inner.fields().first().map(|field| field.data_type().clone()),
    );
    let (Ok(DataType::Interval(_)), Some(DataType::Interval(_))) = kinds else {
        return Ok(Transformed::no(Expr::InSubquery(InSubquery {
            expr,
            subquery,
            negated,
        })));
    };
    let columns = inner.columns().into_iter().map(|column| length(Expr::Column(column)));
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(Arc::clone(&subquery.subquery))
        .project(columns)?
        .build()?;
    let subquery = Subquery {
        subquery: Arc::new(plan),
        ..subquery
    };
    let expr = Box::new(length(*expr));
    Ok(Transformed::yes(Expr::InSubquery(InSubquery {
        expr,
        subquery,
        negated,
    })))
}

fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(value, _) => value
            .try_as_str()
            .flatten()
            .map(|text| text.trim_matches('\'').to_lowercase()),
        _ => None,
    }
}

fn scalar(function: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let ScalarFunction { func, mut args } = function;
    let kind = |index: usize| args.get(index).and_then(|arg| arg.get_type(schema).ok());
    let same = |func, args| Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })));
    let of_engine = |list: &[&str]| {
        let timestamp = matches!(kind(1), Some(kind) if kind == LOCAL || kind == instant());
        timestamp && args.len() == 2 && literal(&args[0]).is_some_and(|part| list.contains(&&*part))
    };
    match func.name() {
        "date_part" if of_engine(&PARTS_OF_ENGINE) => {
            let function = ScalarFunction::new_udf(datetime::date_part(), args);
            Ok(Transformed::yes(cast(Expr::ScalarFunction(function), DataType::Int64)))
        }
        "marked" if args.len() == 1 => Ok(Transformed::yes(args.remove(0))),
        // The mark has served the planner, and the engine would compare it between plans.
        "date_part" => Ok(Transformed::yes(temporal::call(
            TemporalOperation::Part {
                extract: temporal::is_extract(&func),
                divisible: false,
            },
            args,
        ))),
        "date_trunc" if of_engine(&TRUNCATED_BY_ENGINE) => {
            let function = ScalarFunction::new_udf(datetime::date_trunc(), args);
            Ok(Transformed::yes(Expr::ScalarFunction(function)))
        }
        "age" if args.len() == 1 => {
            let today = cast(
                Expr::ScalarFunction(ScalarFunction::new_udf(datetime::current_date(), vec![])),
                LOCAL,
            );
            args.insert(0, today);
            Ok(Transformed::yes(temporal::call(TemporalOperation::Age, args)))
        }
        "to_timestamp" if args.len() == 1 && kind(0).is_some_and(|kind| kind.is_numeric()) => {
            Ok(Transformed::yes(temporal::call(TemporalOperation::OfSeconds, args)))
        }
        "nullif" if (0..args.len()).any(|index| matches!(kind(index), Some(DataType::Interval(_)))) => {
            let Ok([of, other]) = <[Expr; 2]>::try_from(args) else {
                return Err(wrong("nullif() takes two arguments"));
            };
            let other = if is_interval(&other, schema) {
                other
            } else {
                as_interval(other)
            };
            let equal = length(of.clone()).eq(length(other));
            let null = lit(ScalarValue::IntervalMonthDayNano(None));
            Ok(Transformed::yes(when(equal, null).otherwise(of)?))
        }
        name @ ("greatest" | "least")
            if (0..args.len()).any(|index| matches!(kind(index), Some(DataType::Interval(_)))) =>
        {
            let greatest = name == "greatest";
            let args = args.into_iter().map(|arg| {
                if is_interval(&arg, schema) {
                    arg
                } else {
                    as_interval(arg)
                }
            });
            let operation = TemporalOperation::Extreme { greatest };
            Ok(Transformed::yes(temporal::call(operation, args.collect())))
        }
        _ => same(func, args),
    }
}

fn wrong(problem: &str) -> DataFusionError {
    DataFusionError::Plan(problem.to_owned())
}

/// Returns the aggregate of intervals in place of the engine's, or the engine's for everything else.
fn aggregate(mut function: AggregateFunction, schema: &DFSchema) -> Transformed<Expr> {
    let interval = function.params.args.first().is_some_and(|arg| is_interval(arg, schema));
    let mut changed = false;
    if let Some(replaced) = interval_aggregates::in_place_of(&function.func, interval) {
        function.func = replaced;
        changed = true;
    } else if interval && function.params.distinct && function.func.name() == "count" {
        for arg in &mut function.params.args {
            changed |= lengthened(arg, schema);
        }
    }
    for by in &mut function.params.order_by {
        changed |= keyed(by, schema);
    }
    Transformed::new_transformed(Expr::AggregateFunction(function), changed)
}

fn window(mut function: WindowFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let interval = function.params.args.first().is_some_and(|arg| is_interval(arg, schema));
    let mut changed = false;
    if let WindowFunctionDefinition::AggregateUDF(func) = &function.fun
        && let Some(replaced) = interval_aggregates::in_place_of(func, interval)
    {
        function.fun = WindowFunctionDefinition::AggregateUDF(replaced);
        changed = true;
    }
    for expr in &mut function.params.partition_by {
        changed |= lengthened(expr, schema);
    }
    let mut by_interval = false;
    for by in &mut function.params.order_by {
        by_interval |= keyed(by, schema);
    }
    if by_interval {
        let frame = &mut function.params.window_frame;
        for bound in [&mut frame.start_bound, &mut frame.end_bound] {
            if let WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) = bound {
                *distance = distance_of(distance)?;
            }
        }
    }
    let function = Expr::WindowFunction(Box::new(function));
    Ok(Transformed::new_transformed(function, changed || by_interval))
}

/// Returns the length of a distance in a frame over intervals.
fn distance_of(distance: &ScalarValue) -> Result<ScalarValue> {
    let interval = match distance {
        ScalarValue::IntervalMonthDayNano(Some(interval)) => Some(from_engine(*interval)),
        other => match other.try_as_str().flatten() {
            Some(text) => Interval::parse(text),
            // Rows and unbounded frames have no interval.
            None => return Ok(distance.clone()),
        },
    };
    let length = interval.and_then(|interval| interval.length().ok());
    let length = length.ok_or_else(|| wrong("a frame over intervals needs an interval as its distance"))?;
    Ok(ScalarValue::Int64(Some(length)))
}
