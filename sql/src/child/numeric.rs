//! Numbers as `PostgreSQL` has them inside of a statement: sums and averages of integers, and what is computed from
//! them and from numbers with a point, are decimals and not integers or doubles.
//!
//! Invariant: the rule runs before type coercion, so that the types of all expressions above a replaced one follow from
//! its type.

mod call;
pub(super) mod digits;
mod points;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, BinaryExpr, Case, Cast, InList, InSubquery, ScalarFunction, WindowFunction,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable as _, LogicalPlan, Operator, Projection, Union, cast, lit};
use datafusion::optimizer::AnalyzerRule;

use self::call::{DecimalOperation, call};
pub(super) use self::call::{beyond, scale_of, texts};
use self::digits::{Cut, SIGNED_SCALE};
use super::set_types;

/// Sum of integers. It is a JSON number in an answer, if it fits 64 bits.
pub(super) const WHOLE: DataType = DataType::Decimal256(DECIMAL256_MAX_PRECISION, 0);
/// Number with a fraction that is computed from integers. It is a double in an answer.
pub(super) const NUMERIC: DataType = DataType::Decimal256(DECIMAL256_MAX_PRECISION, SIGNED_SCALE);
/// Number with a fraction that comes from a cast to numeric or a decimal. It is a text in an answer. This is also what
/// a cast to NUMERIC without a precision means.
pub(super) const EXACT: DataType = DataType::Decimal256(DECIMAL256_MAX_PRECISION - 1, SIGNED_SCALE);

/// Aggregates that compute with doubles only.
const OF_DOUBLES: [&str; 6] = ["stddev", "var", "corr", "covar", "regr_", "percentile_cont"];
/// Aggregates of doubles under other names.
const OTHERS_OF_DOUBLES: [&str; 3] = ["median", "approx_percentile", "quantile_cont"];
/// Functions that take a value of any type and return it.
const OF_ANY: [&str; 6] = [
    "make_array",
    "make_list",
    "arrow_typeof",
    "numeric_text",
    "to_hex",
    "maybe_null",
];

/// The analyzer rule. It runs before those of the engine.
#[derive(Debug)]
pub(super) struct AsNumeric;

impl AnalyzerRule for AsNumeric {
    fn name(&self) -> &'static str {
        "as_numeric"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            let schema = match &plan {
                // They have no inputs, and no schema that could follow.
                LogicalPlan::TableScan(_) | LogicalPlan::Values(_) => return Ok(Transformed::no(plan)),
                plan => merge_schema(&plan.inputs()),
            };
            if let LogicalPlan::Union(union) = plan {
                return of_union(union).map(Transformed::yes);
            }
            if let Some(plan) = set_types::of_one_type(&plan)? {
                return Ok(Transformed::yes(plan));
            }
            let plan = points::joined(plan, &schema);
            let names = NamePreserver::new(&plan);
            let replaced = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let replaced = expr.transform_up(|expr| replaced(expr, &schema))?;
                Ok(replaced.update_data(|expr| name.restore(expr)))
            })?;
            // The schema changes with the types of the inputs, too.
            replaced.map_data(LogicalPlan::recompute_schema)
        })?;
        Ok(plan.data)
    }
}

/// Makes doubles of the decimals in a column of a union that has doubles. The engine would make decimals of all.
fn of_union(union: Union) -> Result<LogicalPlan> {
    let inputs = union.inputs;
    let kinds = |index: usize| inputs.iter().map(move |input| input.schema().field(index).data_type());
    let columns = inputs.first().map_or(0, |first| first.schema().fields().len());
    if inputs.iter().any(|input| input.schema().fields().len() != columns) {
        // The engine says what is wrong with it.
        return Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?));
    }
    let mixed: Vec<bool> = (0..columns)
        .map(|index| kinds(index).any(DataType::is_floating) && kinds(index).any(is_decimal))
        .collect();
    let made = inputs.iter().map(|input| {
        let schema = input.schema();
        let replaces = |index: usize| mixed[index] && is_decimal(schema.field(index).data_type());
        if !(0..columns).any(replaces) {
            return Ok(Arc::clone(input));
        }
        let columns = schema.iter().enumerate().map(|(index, (qualifier, field))| {
            let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
            if replaces(index) {
                double(column).alias_qualified(qualifier.cloned(), field.name())
            } else {
                column
            }
        });
        let projection = Projection::try_new(columns.collect(), Arc::clone(input))?;
        Ok(Arc::new(LogicalPlan::Projection(projection)))
    });
    let made = made.collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(made)?))
}

pub(super) const fn is_decimal(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..)
    )
}

/// Returns true for the types that only this module makes.
fn is_wide(kind: &DataType) -> bool {
    *kind == WHOLE || *kind == NUMERIC || *kind == EXACT
}

/// The class of a number in an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Whole,
    /// A decimal that the engine can compute with.
    Plain,
    Wide,
    Double,
    /// A number with a point in the statement, which has the type of what stands beside it.
    Point,
    Other,
}

fn class(expr: &Expr, schema: &DFSchema) -> Class {
    if with_point(expr).is_some() {
        return Class::Point;
    }
    match expr.get_type(schema) {
        Ok(kind) if kind.is_integer() => Class::Whole,
        Ok(kind) if is_wide(&kind) => Class::Wide,
        Ok(kind) if is_decimal(&kind) => Class::Plain,
        Ok(kind) if kind.is_floating() => Class::Double,
        // The engine says what is wrong with an expression without a type.
        _ => Class::Other,
    }
}

/// Returns the value of a number with a point, perhaps with a sign.
fn with_point(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(value)), _) => Some(*value),
        Expr::Negative(of) => with_point(of).map(|value| -value),
        Expr::Alias(alias) => with_point(&alias.expr),
        _ => None,
    }
}

/// Makes a decimal of a number with a point, if it has room.
fn literal(expr: Expr) -> Expr {
    // The shortest digits of a double are those that were written, up to 15.
    let value = with_point(&expr).and_then(|value| digits::read(&value.to_string()));
    match value {
        Some(value) => Expr::Literal(
            ScalarValue::Decimal256(Some(value), DECIMAL256_MAX_PRECISION, SIGNED_SCALE),
            None,
        ),
        None => expr,
    }
}

/// Makes a decimal of a number with a point, with no more digits than it has, so that a column beside it stays narrow.
fn narrow_literal(expr: Expr) -> Expr {
    let text = with_point(&expr).map(|value| value.to_string()).unwrap_or_default();
    let part = text.split_once('.').map_or(0, |(_, part)| part.len());
    let value = text.replace('.', "").parse::<i128>().ok().filter(|_| text.len() < 30);
    match (value, u8::try_from(text.len()), i8::try_from(part)) {
        (Some(value), Ok(precision), Ok(scale)) => {
            Expr::Literal(ScalarValue::Decimal128(Some(value), precision.max(1), scale), None)
        }
        _ => expr,
    }
}

pub(super) fn double(expr: Expr) -> Expr {
    match points::as_doubles(expr) {
        Ok(doubles) => doubles,
        Err(expr) => call(DecimalOperation::Double, vec![expr]),
    }
}

/// Returns the product of two decimals, for which the engine has no type.
pub(super) fn product(left: Expr, right: Expr) -> Expr {
    call(DecimalOperation::Multiply, vec![left, right])
}

/// Returns the call that writes a number. As in `PostgreSQL` the text of `round(x, 2)` has two digits behind the point.
fn text(expr: Expr) -> Expr {
    let digits = match &expr {
        Expr::ScalarFunction(function) if matches!(function.name(), "numeric_round" | "numeric_truncate") => {
            function.args.get(1).cloned()
        }
        _ => None,
    };
    call(DecimalOperation::Text, std::iter::once(expr).chain(digits).collect())
}

fn replaced(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(binary) => of_operator(binary, schema),
        Expr::Between(Between {
            expr,
            negated,
            low,
            high,
        }) => {
            let mut all = alike(vec![*expr, *low, *high], schema).into_iter();
            let (Some(expr), Some(low), Some(high)) = (all.next(), all.next(), all.next()) else {
                return Err(datafusion::error::DataFusionError::Plan(
                    "BETWEEN has three operands".to_owned(),
                ));
            };
            Transformed::yes(Expr::Between(Between::new(
                Box::new(expr),
                negated,
                Box::new(low),
                Box::new(high),
            )))
        }
        Expr::InList(InList { expr, list, negated }) => {
            let mut all = vec![*expr];
            all.extend(list);
            let mut all = alike(all, schema).into_iter();
            let Some(expr) = all.next() else {
                return Err(datafusion::error::DataFusionError::Plan("IN has a list".to_owned()));
            };
            Transformed::yes(Expr::InList(InList::new(Box::new(expr), all.collect(), negated)))
        }
        Expr::InSubquery(of) => of_subquery(of, schema)?,
        Expr::Case(case) => Transformed::yes(Expr::Case(of_case(case, schema))),
        Expr::Cast(cast) => of_cast(cast, schema),
        Expr::ScalarFunction(function) => of_function(function, schema).update_data(|expr| signed(expr, schema)),
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            if is_of_doubles(func.name()) {
                params.args = doubles(params.args, schema);
            }
            Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params }))
        }
        Expr::WindowFunction(function) => {
            let WindowFunction { fun, mut params } = *function;
            if is_of_doubles(fun.name()) {
                params.args = doubles(params.args, schema);
            } else if let [value, offset, default] = &params.args[..] {
                // `lag(value, offset, default)`
                let mut both = points::with_default(value, default, schema).into_iter();
                if let (Some(value), Some(default)) = (both.next(), both.next()) {
                    params.args = vec![value, offset.clone(), default];
                }
            }
            Transformed::yes(Expr::WindowFunction(Box::new(WindowFunction { fun, params })))
        }
        other => Transformed::no(other),
    })
}

/// Gives both sides of `IN (SELECT …)` one type, as [`alike`] does. The engine would compare doubles with decimals by their
/// first digits.
fn of_subquery(of: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let InSubquery {
        expr,
        subquery,
        negated,
    } = of;
    let again = |expr, subquery| Expr::InSubquery(InSubquery::new(Box::new(expr), subquery, negated));
    let theirs = subquery
        .subquery
        .schema()
        .fields()
        .first()
        .map(|field| field.data_type());
    let ours = expr.get_type(schema)?;
    Ok(match theirs {
        Some(theirs) if theirs.is_floating() && is_decimal(&ours) => Transformed::yes(again(double(*expr), subquery)),
        Some(theirs) if is_decimal(theirs) && ours.is_floating() => {
            let plan = set_types::converted(&subquery.subquery, &[Some(DataType::Float64)])?;
            Transformed::yes(again(*expr, subquery.with_plan(Arc::new(plan))))
        }
        _ => Transformed::no(again(*expr, subquery)),
    })
}

/// Makes the lengths and places that the engine counts without a sign integers like all others: beside an integer, the engine
/// would make texts of both.
fn signed(expr: Expr, schema: &DFSchema) -> Expr {
    match expr.get_type(schema) {
        Ok(DataType::UInt64) => cast(expr, DataType::Int64),
        Ok(DataType::List(item)) if *item.data_type() == DataType::UInt64 => {
            let item = item.as_ref().clone().with_data_type(DataType::Int64);
            cast(expr, DataType::List(item.into()))
        }
        _ => expr,
    }
}

/// Writes a boolean as `concat()` does, by its first letter.
fn letter(boolean: Expr) -> Expr {
    let when = |value| Box::new(lit(value));
    let cases = vec![(when(true), Box::new(lit("t"))), (when(false), Box::new(lit("f")))];
    Expr::Case(Case::new(Some(Box::new(boolean)), cases, None))
}

fn is_of_doubles(name: &str) -> bool {
    OF_DOUBLES
        .iter()
        .chain(&OTHERS_OF_DOUBLES)
        .any(|begin| name.starts_with(begin))
}

fn of_operator(BinaryExpr { left, op, right }: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let operation = match op {
        Operator::Plus => Some(DecimalOperation::Add),
        Operator::Minus => Some(DecimalOperation::Subtract),
        Operator::Multiply => Some(DecimalOperation::Multiply),
        Operator::Divide => Some(DecimalOperation::Divide),
        Operator::Modulo => Some(DecimalOperation::Rest),
        _ => None,
    };
    let compares = matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    );
    let kinds = (class(&left, schema), class(&right, schema));
    let again = |left, right| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)));
    match (operation, kinds) {
        (Some(operation), (one, other)) => match (one, other) {
            (Class::Wide | Class::Plain, Class::Double) => Transformed::yes(again(double(*left), *right)),
            (Class::Double, Class::Wide | Class::Plain) => Transformed::yes(again(*left, double(*right))),
            (Class::Double | Class::Other, _) | (_, Class::Double | Class::Other) | (Class::Whole, Class::Whole) => {
                Transformed::no(again(*left, *right))
            }
            // The engine adds and multiplies decimals of the statement exactly, and they keep their digits.
            (Class::Plain, Class::Plain | Class::Whole) | (Class::Whole, Class::Plain)
                if !matches!(operation, DecimalOperation::Divide | DecimalOperation::Rest) =>
            {
                Transformed::no(again(*left, *right))
            }
            _ => {
                let (left, right) = (literal(*left), literal(*right));
                // A number without room for its digits stays a double.
                if with_point(&left).is_some() || with_point(&right).is_some() {
                    return Transformed::no(again(left, right));
                }
                Transformed::yes(call(operation, vec![left, right]))
            }
        },
        (None, _) if compares => {
            let mut both = alike(vec![*left, *right], schema).into_iter();
            match (both.next(), both.next()) {
                (Some(left), Some(right)) => Transformed::yes(again(left, right)),
                // There are as many as before.
                _ => Transformed::no(Expr::Literal(ScalarValue::Null, None)),
            }
        }
        (None, (one, other)) if op == Operator::StringConcat && (one == Class::Wide || other == Class::Wide) => {
            let left = if one == Class::Wide { text(*left) } else { *left };
            let right = if other == Class::Wide { text(*right) } else { *right };
            Transformed::yes(again(left, right))
        }
        _ => Transformed::no(again(*left, *right)),
    }
}

/// Gives numbers that are compared, or of which one is returned, a type in which none loses digits: doubles beside a
/// double, otherwise decimals beside a decimal or a number with a point.
fn alike(exprs: Vec<Expr>, schema: &DFSchema) -> Vec<Expr> {
    let classes: Vec<Class> = exprs.iter().map(|expr| class(expr, schema)).collect();
    let has = |class| classes.contains(&class);
    if !has(Class::Wide) && !has(Class::Plain) {
        // A double of 2⁵³ and more is equal to several integers.
        if has(Class::Whole) && !has(Class::Double) && exprs.iter().any(points::is_large) {
            return exprs.into_iter().map(literal).collect();
        }
        return exprs;
    }
    let narrow = !has(Class::Wide);
    exprs
        .into_iter()
        .zip(&classes)
        .map(|(expr, class)| match class {
            // The engine would compare a double as a decimal with 15 digits behind the point.
            Class::Wide | Class::Plain if has(Class::Double) => double(expr),
            // The engine finds no type for both.
            Class::Plain if !narrow => cast(expr, EXACT),
            Class::Point if has(Class::Double) => expr,
            Class::Point if narrow => narrow_literal(expr),
            Class::Point => literal(expr),
            _ => expr,
        })
        .collect()
}

/// As [`alike`], for values of which one is the result. Integers beside a number with a point become decimals.
fn results(exprs: Vec<Expr>, schema: &DFSchema) -> Vec<Expr> {
    let classes: Vec<Class> = exprs.iter().map(|expr| class(expr, schema)).collect();
    let has = |class| classes.contains(&class);
    if has(Class::Double) {
        return alike(exprs, schema);
    }
    if !has(Class::Wide) && !has(Class::Point) {
        return exprs;
    }
    // A number without room for its digits stays a double.
    if !exprs.iter().all(points::has_room) {
        return exprs;
    }
    let kinds = exprs.iter().filter_map(|expr| expr.get_type(schema).ok());
    let fraction = has(Class::Point) || kinds.clone().any(|kind| scale_of(&kind) > 0);
    let given = kinds
        .clone()
        .any(|kind| is_decimal(&kind) && kind != WHOLE && kind != NUMERIC);
    let kind = match (given, fraction) {
        (true, _) => EXACT,
        (false, true) => NUMERIC,
        (false, false) => WHOLE,
    };
    exprs
        .into_iter()
        .zip(&classes)
        .map(|(expr, class)| match class {
            Class::Point if kind == NUMERIC => literal(expr),
            Class::Point => cast(literal(expr), kind.clone()),
            Class::Whole | Class::Plain | Class::Wide => cast(expr, kind.clone()),
            Class::Double | Class::Other => expr,
        })
        .collect()
}

fn doubles(exprs: Vec<Expr>, schema: &DFSchema) -> Vec<Expr> {
    exprs
        .into_iter()
        .map(|expr| match class(&expr, schema) {
            Class::Wide => double(expr),
            _ => expr,
        })
        .collect()
}

fn of_case(case: Case, schema: &DFSchema) -> Case {
    let Case {
        expr,
        when_then_expr,
        else_expr,
    } = case;
    let (mut whens, mut thens): (Vec<Expr>, Vec<Expr>) =
        when_then_expr.into_iter().map(|(when, then)| (*when, *then)).unzip();
    let expr = expr.map(|expr| {
        whens.insert(0, *expr);
        whens = alike(std::mem::take(&mut whens), schema);
        Box::new(whens.remove(0))
    });
    let has_else = else_expr.is_some();
    thens.extend(else_expr.map(|otherwise| *otherwise));
    let mut thens = results(thens, schema);
    let otherwise = if has_else { thens.pop() } else { None };
    let pairs = whens
        .into_iter()
        .zip(thens)
        .map(|(when, then)| (Box::new(when), Box::new(then)));
    Case::new(expr, pairs.collect(), otherwise.map(Box::new))
}

fn of_cast(Cast { expr, field }: Cast, schema: &DFSchema) -> Transformed<Expr> {
    let from = class(&expr, schema);
    let to = field.data_type().clone();
    let again = |expr| Expr::Cast(Cast::new_from_field(Box::new(expr), field));
    match (from, &to) {
        (Class::Point, to) if is_decimal(to) || to.is_integer() => {
            let literal = literal(*expr);
            // A number without room stays a double, and the cast fails.
            Transformed::yes(again(literal))
        }
        (_, to) if *to == EXACT => Transformed::yes(call(DecimalOperation::Exact, vec![*expr])),
        (Class::Double, to) if is_decimal(to) => Transformed::yes(again(call(DecimalOperation::Exact, vec![*expr]))),
        (Class::Wide, to) if to.is_floating() => Transformed::yes(again(double(*expr))),
        (Class::Wide, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
            Transformed::yes(again(text(*expr)))
        }
        _ => Transformed::no(again(*expr)),
    }
}

fn of_function(function: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    let ScalarFunction { func, args } = function;
    let again = |args| Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&func), args));
    let name = func.name();
    let operation = match name {
        "round" => Some(DecimalOperation::Cut(Cut::Round)),
        "trunc" => Some(DecimalOperation::Cut(Cut::Truncate)),
        "floor" => Some(DecimalOperation::Cut(Cut::Floor)),
        "ceil" => Some(DecimalOperation::Cut(Cut::Ceil)),
        "abs" => Some(DecimalOperation::Absolute),
        "signum" => Some(DecimalOperation::Sign),
        _ => None,
    };
    let first = args.first().map_or(Class::Other, |first| class(first, schema));
    match (operation, first) {
        // The engine keeps the type of a decimal of the statement.
        (Some(DecimalOperation::Absolute), Class::Plain) => return Transformed::no(again(args)),
        (Some(operation), Class::Wide | Class::Plain | Class::Point) => {
            let mut args = args;
            let value = literal(args.remove(0));
            if with_point(&value).is_some() {
                args.insert(0, value);
                return Transformed::no(again(args));
            }
            args.insert(0, value);
            return Transformed::yes(call(operation, args));
        }
        // `round(count, -2)` takes a numeric in `PostgreSQL`; the engine's takes a double, which has fewer digits.
        (Some(operation @ DecimalOperation::Cut(_)), Class::Whole) if args.len() == 2 => {
            return Transformed::yes(call(operation, args));
        }
        _ => {}
    }
    match name {
        "coalesce" | "ifnull" | "nvl" | "greatest" | "least" => Transformed::yes(again(results(args, schema))),
        "nullif" => {
            let kinds: Vec<_> = args.iter().filter_map(|arg| arg.get_type(schema).ok()).collect();
            let call = again(alike(args, schema));
            Transformed::yes(match &kinds[..] {
                // The result has the type of the first argument, and the engine gives it the common one.
                [local @ DataType::Timestamp(_, None), DataType::Timestamp(_, Some(_))] => cast(call, local.clone()),
                _ => call,
            })
        }
        "concat" | "concat_ws" => {
            let args = args.into_iter().map(|arg| match class(&arg, schema) {
                Class::Wide => text(arg),
                _ if arg.get_type(schema).is_ok_and(|kind| kind == DataType::Boolean) => letter(arg),
                _ => arg,
            });
            Transformed::yes(again(args.collect()))
        }
        name if name.starts_with("array_")
            || name.starts_with("list_")
            || name.starts_with("numeric_")
            || OF_ANY.contains(&name) =>
        {
            Transformed::no(again(args))
        }
        _ => Transformed::yes(again(doubles(args, schema))),
    }
}
