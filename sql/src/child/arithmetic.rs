//! Planning of arithmetic with dates, times and intervals.
//!
//! Invariant: the engine sees these operators only where its result is that of `PostgreSQL`. The functions are chosen
//! while the statement is planned, because their types differ from those of the engine's operators.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, ExprSchema as _, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable as _, Operator, binary_expr, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::numeric::WHOLE;
use super::parts::BIGINT;
use super::temporal::{self, DIVISIBLE, INTERVAL, LOCAL, OF_EXTRACT, TemporalOperation, TextKind, instant};

/// The planner of arithmetic. It comes before those of the engine.
#[derive(Debug)]
pub(super) struct Arithmetic;

impl ExprPlanner for Arithmetic {
    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(temporal::call(
            TemporalOperation::Part {
                extract: true,
                divisible: true,
            },
            args,
        )))
    }

    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let plus = match expr.op {
            BinaryOperator::Plus | BinaryOperator::Multiply => true,
            BinaryOperator::Minus | BinaryOperator::Divide | BinaryOperator::Modulo => false,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        // An operand without a type is reported where the statement is checked as a whole.
        let (Ok(left), Ok(right)) = (expr.left.to_field(schema), expr.right.to_field(schema)) else {
            return Ok(PlannerResult::Original(expr));
        };
        let (left, right) = (&left.1, &right.1);
        let RawBinaryExpr { op, left: l, right: r } = &expr;
        let kinds = (
            OperandKind::of(l, left.data_type()),
            OperandKind::of(r, right.data_type()),
        );
        let call = |operation| Some(temporal::call(operation, vec![l.clone(), r.clone()]));
        let swapped = |operation| Some(temporal::call(operation, vec![r.clone(), l.clone()]));
        let sum = |of: &Expr, kind: &DataType, interval: &Expr| {
            let op = if plus { Operator::Plus } else { Operator::Minus };
            Some(binary_expr(with_micros(of.clone(), kind), op, interval.clone()))
        };
        let planned = match (op, kinds) {
            (
                BinaryOperator::Minus,
                (OperandKind::Timestamp, OperandKind::Timestamp | OperandKind::Date)
                | (OperandKind::Date, OperandKind::Timestamp),
            ) => call(TemporalOperation::Difference),
            (BinaryOperator::Minus, (OperandKind::Timestamp, OperandKind::Text)) => {
                let read = read(r.clone(), left.data_type());
                Some(temporal::call(TemporalOperation::Difference, vec![l.clone(), read]))
            }
            (BinaryOperator::Minus, (OperandKind::Text, OperandKind::Timestamp)) => {
                let read = read(l.clone(), right.data_type());
                Some(temporal::call(TemporalOperation::Difference, vec![read, r.clone()]))
            }
            (BinaryOperator::Plus, (OperandKind::Timestamp, OperandKind::Text)) => {
                sum(l, left.data_type(), &as_interval(r.clone()))
            }
            (BinaryOperator::Plus, (OperandKind::Text, OperandKind::Timestamp)) => {
                sum(r, right.data_type(), &as_interval(l.clone()))
            }
            (
                BinaryOperator::Plus | BinaryOperator::Minus,
                (OperandKind::Timestamp | OperandKind::Date, OperandKind::Interval),
            ) => sum(l, left.data_type(), r),
            (BinaryOperator::Plus, (OperandKind::Interval, OperandKind::Timestamp | OperandKind::Date)) => {
                sum(r, right.data_type(), l)
            }
            (BinaryOperator::Plus | BinaryOperator::Minus, (OperandKind::Date, OperandKind::Whole))
                if !is_days(r, right, schema) =>
            {
                return Err(no_days());
            }
            (BinaryOperator::Plus, (OperandKind::Whole, OperandKind::Date)) if !is_days(l, left, schema) => {
                return Err(no_days());
            }
            (BinaryOperator::Plus, (OperandKind::Date, OperandKind::Whole)) => call(TemporalOperation::ShiftedDate),
            (BinaryOperator::Plus, (OperandKind::Whole, OperandKind::Date)) => swapped(TemporalOperation::ShiftedDate),
            (BinaryOperator::Minus, (OperandKind::Date, OperandKind::Whole)) => {
                let back = Expr::Negative(Box::new(cast(r.clone(), DataType::Int64)));
                Some(temporal::call(TemporalOperation::ShiftedDate, vec![l.clone(), back]))
            }
            (
                BinaryOperator::Plus,
                (OperandKind::Interval, OperandKind::Interval | OperandKind::Text)
                | (OperandKind::Text, OperandKind::Interval),
            ) => call(TemporalOperation::Plus),
            (
                BinaryOperator::Minus,
                (OperandKind::Interval, OperandKind::Interval | OperandKind::Text)
                | (OperandKind::Text, OperandKind::Interval),
            ) => call(TemporalOperation::Minus),
            (BinaryOperator::Multiply, (OperandKind::Interval, OperandKind::Whole | OperandKind::Number)) => {
                call(TemporalOperation::Times)
            }
            (BinaryOperator::Multiply, (OperandKind::Whole | OperandKind::Number, OperandKind::Interval)) => {
                call(TemporalOperation::Times)
            }
            (BinaryOperator::Divide, (OperandKind::Interval, OperandKind::Whole | OperandKind::Number)) => {
                call(TemporalOperation::Divided)
            }
            (op, (OperandKind::Whole, OperandKind::Whole)) => of_marked(op, l, r, schema),
            (_, (OperandKind::Interval, OperandKind::Interval)) => {
                return Err(refused(&format!(
                    "intervals cannot be combined by `{op}`: take their seconds with extract(epoch FROM …)"
                )));
            }
            _ => None,
        };
        Ok(match planned {
            Some(planned) => PlannerResult::Planned(planned),
            None => PlannerResult::Original(expr),
        })
    }
}

/// Returns arithmetic of whole numbers of which one carries a mark of its type, or `None` without a mark.
fn of_marked(op: &BinaryOperator, left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let mark = mark(left, schema).max(mark(right, schema))?;
    let op = match op {
        BinaryOperator::Divide => {
            let kind = if mark == NumberMark::Numeric {
                WHOLE
            } else {
                DataType::Float64
            };
            let made = |of: &Expr| cast(of.clone(), kind.clone());
            return Some(binary_expr(made(left), Operator::Divide, made(right)));
        }
        BinaryOperator::Plus => Operator::Plus,
        BinaryOperator::Minus => Operator::Minus,
        BinaryOperator::Multiply => Operator::Multiply,
        _ => Operator::Modulo,
    };
    let extract = mark == NumberMark::Numeric;
    let made = binary_expr(left.clone(), op, right.clone());
    Some(temporal::call(TemporalOperation::Marked { extract }, vec![made]))
}

fn no_days() -> DataFusionError {
    refused("an integer of 64 bits is not added to a date: cast it with ::int, as in `day + n::int`")
}

/// Type that a whole number has in `PostgreSQL`, where it is not an integer. A double is the type of both together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NumberMark {
    Numeric,
    Double,
}

/// Returns the mark of a part of a time, and of what is computed from it or chosen of it. A cast has none.
fn mark(expr: &Expr, schema: &DFSchema) -> Option<NumberMark> {
    let of = |expr: &Expr| mark(expr, schema);
    match expr {
        Expr::Column(_) => marked(expr, schema),
        Expr::ScalarFunction(function) => match function.func.name() {
            "date_part" | "marked" => marked(expr, schema),
            name if KEEPING.contains(&name) => function.args.iter().filter_map(of).max(),
            _ => None,
        },
        Expr::Alias(alias) => of(&alias.expr),
        Expr::Negative(operand) => of(operand),
        Expr::Case(case) => {
            let thens = case.when_then_expr.iter().map(|(_, then)| &**then);
            thens.chain(case.else_expr.as_deref()).filter_map(of).max()
        }
        Expr::AggregateFunction(function) if CHOOSING.contains(&function.func.name()) => {
            function.params.args.first().and_then(of)
        }
        Expr::WindowFunction(function) if CHOOSING.contains(&function.fun.name()) => {
            function.params.args.first().and_then(of)
        }
        _ => None,
    }
}

fn marked(expr: &Expr, schema: &DFSchema) -> Option<NumberMark> {
    let (_, field) = expr.to_field(schema).ok()?;
    let mark = field.metadata().get(DIVISIBLE)?;
    (*field.data_type() == DataType::Int64).then_some(if mark == OF_EXTRACT {
        NumberMark::Numeric
    } else {
        NumberMark::Double
    })
}

/// Returns true if a whole number has 32 bits in `PostgreSQL`, so that it is a number of days beside a date.
fn is_days(expr: &Expr, field: &Field, schema: &DFSchema) -> bool {
    mark(expr, schema).is_none() && (*field.data_type() != DataType::Int64 || !is_bigint(expr, schema))
}

/// Returns true if an integer is known to have 64 bits in `PostgreSQL`. The engine gives as many to all literals.
fn is_bigint(expr: &Expr, schema: &DFSchema) -> bool {
    let of = |expr: &Expr| is_bigint(expr, schema);
    match expr {
        Expr::Column(column) => schema
            .field_from_column(column)
            .is_ok_and(|field| field.metadata().contains_key(BIGINT)),
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => i32::try_from(*value).is_err(),
        Expr::Alias(alias) => of(&alias.expr),
        Expr::Negative(operand) => of(operand),
        Expr::BinaryExpr(binary) => of(&binary.left) || of(&binary.right),
        Expr::Cast(cast) => *cast.field.data_type() == DataType::Int64,
        Expr::Case(case) => {
            let thens = case.when_then_expr.iter().map(|(_, then)| &**then);
            thens.chain(case.else_expr.as_deref()).any(of)
        }
        Expr::ScalarFunction(function) => {
            KEEPING.contains(&function.func.name()) && function.args.iter().any(|argument| is_bigint(argument, schema))
        }
        Expr::AggregateFunction(function) => is_counted(function.func.name(), &function.params.args, schema),
        Expr::WindowFunction(function) => is_counted(function.fun.name(), &function.params.args, schema),
        _ => false,
    }
}

fn is_counted(name: &str, arguments: &[Expr], schema: &DFSchema) -> bool {
    COUNTING.contains(&name) || arguments.first().is_some_and(|first| is_bigint(first, schema))
}

/// Functions whose result has the type of their arguments.
const KEEPING: [&str; 7] = ["abs", "coalesce", "greatest", "ifnull", "least", "nullif", "nvl"];
/// Aggregates and window functions whose result is one of the values of their first argument.
const CHOOSING: [&str; 8] = [
    "any_value",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "max",
    "min",
    "nth_value",
];
/// Aggregates and window functions that count with 64 bits.
const COUNTING: [&str; 5] = ["count", "dense_rank", "rank", "regr_count", "row_number"];

fn refused(problem: &str) -> DataFusionError {
    DataFusionError::Plan(problem.to_owned())
}

/// Kind of an operand.
#[derive(Clone, Copy, Debug)]
enum OperandKind {
    Timestamp,
    Date,
    Interval,
    Whole,
    /// A number that may have a fraction.
    Number,
    /// A text of the statement, which takes the type of the other operand.
    Text,
    Other,
}

impl OperandKind {
    fn of(expr: &Expr, kind: &DataType) -> Self {
        match kind {
            DataType::Timestamp(..) => Self::Timestamp,
            DataType::Date32 => Self::Date,
            DataType::Interval(_) => Self::Interval,
            kind if kind.is_integer() => Self::Whole,
            kind if kind.is_numeric() => Self::Number,
            kind if kind.is_string() && matches!(expr, Expr::Literal(..)) => Self::Text,
            _ => Self::Other,
        }
    }
}

/// Reads a text of the statement as a timestamp of this type.
fn read(text: Expr, kind: &DataType) -> Expr {
    let kind = match kind {
        DataType::Timestamp(_, None) => TextKind::Local,
        _ => TextKind::Instant,
    };
    temporal::call(TemporalOperation::Read { kind, lenient: false }, vec![text])
}

/// Casts a date or a timestamp to a timestamp with microseconds.
pub(super) fn with_micros(expr: Expr, kind: &DataType) -> Expr {
    match kind {
        DataType::Date32 => cast(expr, LOCAL),
        DataType::Timestamp(_, None) if kind != &LOCAL => cast(expr, LOCAL),
        DataType::Timestamp(_, Some(_)) if kind != &instant() => cast(expr, instant()),
        _ => expr,
    }
}

/// Returns a literal text as an interval.
pub(super) fn as_interval(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(ScalarValue::Null, _) => cast(expr, INTERVAL),
        Expr::Literal(..) => temporal::call(
            TemporalOperation::Read {
                kind: TextKind::Interval,
                lenient: false,
            },
            vec![expr],
        ),
        expr => expr,
    }
}
