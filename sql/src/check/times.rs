//! Rewrites of times and intervals before the check.
//!
//! Invariant: a rewritten expression has the meaning that it has in `PostgreSQL`.

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, Interval,
    ObjectName, TypedString, UnaryOperator, Value, ValueWithSpan,
};

use super::Refusal;
use crate::time;

/// Digits of a timestamp's fraction. The engine has more by default, and therefore ends in the year 2262.
const FRACTION_DIGITS: u64 = 6;

/// Rewrites one expression, not its parts.
pub(super) fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::AtTimeZone { timestamp, time_zone } => {
            let zone = std::mem::replace(&mut **time_zone, null());
            let time = std::mem::replace(&mut **timestamp, null());
            *expr = call("timezone", vec![zone, time]);
        }
        Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. }) => {
            if let DataType::Timestamp(digits @ None, _) = data_type {
                *digits = Some(FRACTION_DIGITS);
            }
        }
        Expr::Interval(interval) => {
            in_units(interval, false);
        }
        // The engine puts the sign before the text, where it would be that of the first unit alone.
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr: operand,
        } => {
            if let Expr::Interval(interval) = &mut **operand
                && in_units(interval, true)
            {
                *expr = std::mem::replace(&mut **operand, null());
            }
        }
        _ => {}
    }
}

/// Writes an interval as months, days and microseconds, perhaps with the other sign. Returns false if it cannot be read; it
/// stays as it is then, because the check refuses it with the text as it was written.
fn in_units(interval: &mut Interval, negated: bool) -> bool {
    let plain = said(interval).and_then(|text| time::interval::Interval::parse(&text));
    let plain = plain.and_then(|plain| if negated { plain.negated().ok() } else { Some(plain) });
    let Some(time::interval::Interval { months, days, micros }) = plain else {
        return false;
    };
    *interval.value = Expr::Value(ValueWithSpan::from(Value::SingleQuotedString(format!(
        "{months} months {days} days {micros} microseconds"
    ))));
    interval.leading_field = None;
    true
}

/// Checks the text of an interval.
pub(super) fn written(interval: &Interval) -> Result<(), Refusal> {
    match said(interval) {
        Some(text) if time::interval::Interval::parse(&text).is_none() => {
            Err(Refusal::of(interval, "write an interval as INTERVAL '1 day 02:30'"))
        }
        _ => Ok(()),
    }
}

/// Returns the text of an interval with its unit, if it is a literal.
fn said(interval: &Interval) -> Option<String> {
    let Expr::Value(value) = &*interval.value else {
        return None;
    };
    let (Value::SingleQuotedString(text) | Value::Number(text, false)) = &value.value else {
        return None;
    };
    Some(match &interval.leading_field {
        Some(unit) => format!("{text} {unit}"),
        None => text.clone(),
    })
}

fn null() -> Expr {
    Expr::Value(ValueWithSpan::from(Value::Null))
}

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let arguments = arguments
        .into_iter()
        .map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
