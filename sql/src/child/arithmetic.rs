//! Planning of arithmetic with dates, times and intervals.
//!
//! Invariant: the engine sees these operators only where its result is that of `PostgreSQL`. The functions are chosen
//! while the statement is planned, because their types differ from those of the engine's operators.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable as _, Operator, binary_expr, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::temporal::{self, DIVISIBLE, INTERVAL, Kind, LOCAL, Operation, instant};

/// The planner of arithmetic. It comes before those of the engine.
#[derive(Debug)]
pub(super) struct Arithmetic;

impl ExprPlanner for Arithmetic {
    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(temporal::call(
            Operation::Part { divisible: true },
            args,
        )))
    }

    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let plus = match expr.op {
            BinaryOperator::Plus | BinaryOperator::Multiply => true,
            BinaryOperator::Minus | BinaryOperator::Divide => false,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        // An operand without a type is reported where the statement is checked as a whole.
        let (Ok(left), Ok(right)) = (expr.left.to_field(schema), expr.right.to_field(schema)) else {
            return Ok(PlannerResult::Original(expr));
        };
        let (left, right) = (&left.1, &right.1);
        let RawBinaryExpr { op, left: l, right: r } = &expr;
        let kinds = (Operand::of(l, left.data_type()), Operand::of(r, right.data_type()));
        let call = |operation| Some(temporal::call(operation, vec![l.clone(), r.clone()]));
        let swapped = |operation| Some(temporal::call(operation, vec![r.clone(), l.clone()]));
        let sum = |of: &Expr, kind: &DataType, interval: &Expr| {
            let op = if plus { Operator::Plus } else { Operator::Minus };
            Some(binary_expr(with_micros(of.clone(), kind), op, interval.clone()))
        };
        let planned = match (op, kinds) {
            (
                BinaryOperator::Minus,
                (Operand::Timestamp, Operand::Timestamp | Operand::Date) | (Operand::Date, Operand::Timestamp),
            ) => call(Operation::Difference),
            (BinaryOperator::Minus, (Operand::Timestamp, Operand::Text)) => {
                let read = read(r.clone(), left.data_type());
                Some(temporal::call(Operation::Difference, vec![l.clone(), read]))
            }
            (BinaryOperator::Minus, (Operand::Text, Operand::Timestamp)) => {
                let read = read(l.clone(), right.data_type());
                Some(temporal::call(Operation::Difference, vec![read, r.clone()]))
            }
            (BinaryOperator::Plus, (Operand::Timestamp, Operand::Text)) => {
                sum(l, left.data_type(), &as_interval(r.clone()))
            }
            (BinaryOperator::Plus, (Operand::Text, Operand::Timestamp)) => {
                sum(r, right.data_type(), &as_interval(l.clone()))
            }
            (BinaryOperator::Plus | BinaryOperator::Minus, (Operand::Timestamp | Operand::Date, Operand::Interval)) => {
                sum(l, left.data_type(), r)
            }
            (BinaryOperator::Plus, (Operand::Interval, Operand::Timestamp | Operand::Date)) => {
                sum(r, right.data_type(), l)
            }
            (BinaryOperator::Plus, (Operand::Date, Operand::Whole)) => call(Operation::ShiftedDate),
            (BinaryOperator::Plus, (Operand::Whole, Operand::Date)) => swapped(Operation::ShiftedDate),
            (BinaryOperator::Minus, (Operand::Date, Operand::Whole)) => {
                let back = Expr::Negative(Box::new(cast(r.clone(), DataType::Int64)));
                Some(temporal::call(Operation::ShiftedDate, vec![l.clone(), back]))
            }
            (
                BinaryOperator::Plus,
                (Operand::Interval, Operand::Interval | Operand::Text) | (Operand::Text, Operand::Interval),
            ) => call(Operation::Plus),
            (
                BinaryOperator::Minus,
                (Operand::Interval, Operand::Interval | Operand::Text) | (Operand::Text, Operand::Interval),
            ) => call(Operation::Minus),
            (BinaryOperator::Multiply, (Operand::Interval, Operand::Whole | Operand::Number)) => call(Operation::Times),
            (BinaryOperator::Multiply, (Operand::Whole | Operand::Number, Operand::Interval)) => call(Operation::Times),
            (BinaryOperator::Divide, (Operand::Interval, Operand::Whole | Operand::Number)) => call(Operation::Divided),
            (BinaryOperator::Divide, (Operand::Whole, Operand::Whole))
                if [left, right]
                    .iter()
                    .any(|field| field.metadata().contains_key(DIVISIBLE)) =>
            {
                let double = |of: &Expr| cast(of.clone(), DataType::Float64);
                Some(binary_expr(double(l), Operator::Divide, double(r)))
            }
            (_, (Operand::Interval, Operand::Interval)) => {
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

fn refused(problem: &str) -> DataFusionError {
    DataFusionError::Plan(problem.to_owned())
}

/// Kind of an operand.
#[derive(Clone, Copy, Debug)]
enum Operand {
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

impl Operand {
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
        DataType::Timestamp(_, None) => Kind::Local,
        _ => Kind::Instant,
    };
    temporal::call(Operation::Read { kind, lenient: false }, vec![text])
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
            Operation::Read {
                kind: Kind::Interval,
                lenient: false,
            },
            vec![expr],
        ),
        expr => expr,
    }
}
