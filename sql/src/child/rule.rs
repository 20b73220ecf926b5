//! Analyzer rule that replaces or refuses expressions which the engine evaluates differently from `PostgreSQL`.
//!
//! Invariant: a replaced expression keeps its name and its type. The rule runs after type coercion and before constant
//! folding.

use std::iter;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{AggregateFunction, BinaryExpr, Cast, InList, ScalarFunction, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable as _, LogicalPlan, Operator, SortExpr, Subquery, cast};
use datafusion::optimizer::AnalyzerRule;

use super::checked::{CheckedOperation, call};
use super::{arrays, doubles, guard, membership, regex, set_types, texts, to_text};
use crate::check::alike;

/// Maximum number of nodes of an expression that is compared with each entry of a list. Each comparison copies it.
const MAX_COMPARED: usize = 64;
/// Aggregates that list the values of their first argument. `PostgreSQL` sorts them for DISTINCT.
const LISTING: [&str; 2] = ["array_agg", "string_agg"];

/// The analyzer rule. It runs after those of the engine.
#[derive(Debug)]
pub(super) struct AsPostgres;

impl AnalyzerRule for AsPostgres {
    fn name(&self) -> &'static str {
        "as_postgres"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            // Some types are known now only, such as that of a CASE.
            if let Some(plan) = set_types::of_one_type(&plan)? {
                return Ok(Transformed::yes(plan));
            }
            let schema = merge_schema(&plan.inputs());
            // The check sees the expressions as the statement has them, before the replacement.
            membership::check(&plan, &schema)?;
            // A replaced expression would change the name of its column, so the name is saved and restored.
            let names = NamePreserver::new(&plan);
            let filters = matches!(plan, LogicalPlan::Filter(_));
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let replaced = expr.transform_up(|expr| replaced(expr, &schema))?;
                let guarded = replaced.transform_data(|expr| {
                    if filters {
                        guard::guarded(expr, &schema)
                    } else {
                        guard::in_order(expr, &schema)
                    }
                })?;
                Ok(guarded.update_data(|expr| name.restore(expr)))
            })?
            .map_data(LogicalPlan::recompute_schema)
        })?;
        Ok(plan.data)
    }
}

fn replaced(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let binary = BinaryExpr { left, op, right };
            if let Some(replaced) = regex::operator(&binary, schema)? {
                return Ok(Transformed::yes(replaced));
            }
            if let Some(replaced) = doubles::binary(&binary, schema)? {
                return Ok(Transformed::yes(replaced));
            }
            let BinaryExpr { left, op, right } = binary;
            let operation = match op {
                Operator::Plus => Some(CheckedOperation::Add),
                Operator::Minus => Some(CheckedOperation::Subtract),
                Operator::Multiply => Some(CheckedOperation::Multiply),
                _ => None,
            };
            Ok(match operation {
                // Only integers wrap around, so floats and decimals keep the engine's operators.
                Some(operation) if is_whole(&left, schema)? && is_whole(&right, schema)? => {
                    Transformed::yes(call(operation, vec![*left, *right]))
                }
                _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            })
        }
        Expr::Negative(of) if is_whole(&of, schema)? => Ok(Transformed::yes(call(CheckedOperation::Negate, vec![*of]))),
        Expr::Negative(of) if of.get_type(schema)?.is_floating() => Ok(Transformed::yes(doubles::negated(*of))),
        Expr::Literal(value, metadata) => Ok(match doubles::literal(&value) {
            Some(value) => Transformed::yes(Expr::Literal(value, metadata)),
            None => Transformed::no(Expr::Literal(value, metadata)),
        }),
        Expr::Cast(Cast { expr, field })
            if field.data_type().is_string() && to_text::is_own(&expr.get_type(schema)?) =>
        {
            Ok(Transformed::yes(to_text::call(*expr, field.data_type().clone())))
        }
        Expr::TryCast(TryCast { expr, field })
            if field.data_type().is_string() && to_text::is_own(&expr.get_type(schema)?) =>
        {
            Ok(Transformed::yes(to_text::call(*expr, field.data_type().clone())))
        }
        Expr::Cast(Cast { expr, field }) if doubles::loses(&expr.get_type(schema)?, field.data_type()) => {
            let operand = (*expr).clone();
            Ok(Transformed::yes(doubles::converted(
                Expr::Cast(Cast::new_from_field(expr, field)),
                operand,
            )))
        }
        Expr::Cast(Cast { expr, field }) if field.data_type().is_list() && !is_list(&expr.get_type(schema)?) => {
            let shown = expr.schema_name();
            Err(not_offered(&format!(
                "`{shown}` is no list and cannot be cast to one: write [1, 2], or use string_to_array()"
            )))
        }
        Expr::Cast(Cast { expr, field }) if texts::is_between(&expr, field.data_type(), schema) => {
            texts::cast(*expr, field.data_type(), false, schema).map(Transformed::yes)
        }
        Expr::TryCast(TryCast { expr, field }) if texts::is_between(&expr, field.data_type(), schema) => {
            texts::cast(*expr, field.data_type(), true, schema).map(Transformed::yes)
        }
        Expr::Cast(Cast { expr, field }) if field.data_type().is_integer() => {
            let nearest = nearest(*expr, schema)?;
            Ok(nearest.update_data(|expr| Expr::Cast(Cast::new_from_field(Box::new(expr), field))))
        }
        Expr::TryCast(TryCast { expr, field }) if field.data_type().is_integer() => {
            let nearest = nearest(*expr, schema)?;
            Ok(nearest.update_data(|expr| Expr::TryCast(TryCast::new_from_field(Box::new(expr), field))))
        }
        Expr::InList(InList { expr, list, negated }) if list.iter().any(|item| !matches!(item, Expr::Literal(..))) => {
            each(&expr, list, negated).map(Transformed::yes)
        }
        Expr::ScalarFunction(function) => function_of(function, schema),
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            only_where_met(params.filter.as_deref(), &mut params.args, schema)?;
            if LISTING.contains(&func.name()) && params.distinct && params.order_by.is_empty() {
                params.order_by = ascending(&params.args, schema)?;
            }
            Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction {
                func,
                params,
            })))
        }
        Expr::WindowFunction(mut function) if function.params.filter.is_some() => {
            let params = &mut function.params;
            only_where_met(params.filter.as_deref(), &mut params.args, schema)?;
            Ok(Transformed::yes(Expr::WindowFunction(function)))
        }
        Expr::ScalarSubquery(subquery) => Ok(or_null(subquery)),
        other => Ok(Transformed::no(other)),
    }
}

/// Computes the arguments of an aggregate only where its filter is met.
fn only_where_met(filter: Option<&Expr>, arguments: &mut [Expr], schema: &DFSchema) -> Result<()> {
    if let Some(filter) = filter {
        for argument in arguments {
            let given = std::mem::replace(argument, Expr::Literal(ScalarValue::Null, None));
            *argument = guard::filtered(filter, given, schema)?;
        }
    }
    Ok(())
}

/// Returns the order in which `PostgreSQL` lists distinct values. Intervals have none that the engine can sort by.
fn ascending(arguments: &[Expr], schema: &DFSchema) -> Result<Vec<SortExpr>> {
    let Some(value) = arguments.first() else {
        return Ok(Vec::new());
    };
    Ok(match value.get_type(schema)? {
        DataType::Interval(_) => Vec::new(),
        _ => vec![value.clone().sort(true, false)],
    })
}

/// Makes a scalar subquery nullable. It is null without rows, but the engine takes the nullability of its column.
fn or_null(subquery: Subquery) -> Transformed<Expr> {
    let field = subquery.subquery.schema().fields().first().map(Arc::clone);
    let subquery = Expr::ScalarSubquery(subquery);
    match field {
        // The optimizer would otherwise drop checks for null around the subquery.
        Some(field) if !field.is_nullable() => Transformed::yes(call(CheckedOperation::MaybeNull, vec![subquery])),
        _ => Transformed::no(subquery),
    }
}

fn is_list(kind: &DataType) -> bool {
    kind.is_list() || kind.is_null()
}

fn is_whole(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    Ok(expr.get_type(schema)?.is_integer())
}

/// Rounds a value before its cast to an integer. The engine would truncate it.
fn nearest(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr.get_type(schema)? {
        DataType::Float32 | DataType::Float64 => Transformed::yes(call(CheckedOperation::Nearest, vec![expr])),
        DataType::Decimal128(precision, scale) if scale > 0 => {
            Transformed::yes(cast(expr, DataType::Decimal128(precision, 0)))
        }
        DataType::Decimal256(precision, scale) if scale > 0 => {
            Transformed::yes(cast(expr, DataType::Decimal256(precision, 0)))
        }
        _ => Transformed::no(expr),
    })
}

/// Expands an IN list with other entries than literals into comparisons. The engine evaluates such a list for the wrong
/// rows.
fn each(expr: &Expr, list: Vec<Expr>, negated: bool) -> Result<Expr> {
    let mut nodes = 0_usize;
    let mut reads = false;
    expr.apply(|expr| {
        nodes += 1;
        reads |= matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_));
        Ok(TreeNodeRecursion::Continue)
    })?;
    // Each copy of a subquery would read its tables again.
    if reads || nodes > MAX_COMPARED {
        return Err(not_offered(
            "the expression before IN is too large for a list with expressions: select it first",
        ));
    }
    let mut joined: Vec<_> = list
        .into_iter()
        .map(|item| {
            if negated {
                expr.clone().not_eq(item)
            } else {
                expr.clone().eq(item)
            }
        })
        .collect();
    // `IN` is an OR of equalities, `NOT IN` an AND of inequalities; both treat nulls as SQL demands. They are joined in
    // pairs, so that the tree of a long list stays shallow.
    while joined.len() > 1 {
        let mut rest = joined.into_iter();
        joined = iter::from_fn(|| {
            let one = rest.next()?;
            Some(match rest.next() {
                Some(other) if negated => one.and(other),
                Some(other) => one.or(other),
                None => one,
            })
        })
        .collect();
    }
    joined
        .pop()
        .ok_or_else(|| not_offered("a list after IN must have at least one entry"))
}

fn function_of(function: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Some(func) = arrays::replacement(&function.func) {
        return Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction {
            func,
            ..function
        })));
    }
    match (function.func.name(), &function.args[..]) {
        // It has given the cast its name, which is preserved.
        (alike::NAMED, [cast, _]) => Ok(Transformed::yes(cast.clone())),
        (name, [of, formats @ ..]) if name.starts_with("to_timestamp") && of.get_type(schema)?.is_string() => {
            if formats.is_empty() {
                let kind = Expr::ScalarFunction(function.clone()).get_type(schema)?;
                return texts::cast(of.clone(), &kind, false, schema).map(Transformed::yes);
            }
            match of {
                Expr::Literal(..) => Ok(Transformed::no(Expr::ScalarFunction(function))),
                _ => Err(not_offered(&format!(
                    "{name}() of a column supports no format: convert the text to RFC 3339 first"
                ))),
            }
        }
        _ => Ok(Transformed::no(Expr::ScalarFunction(function))),
    }
}

fn not_offered(problem: &str) -> DataFusionError {
    DataFusionError::Plan(problem.to_owned())
}
