//! Numbers with a point, which are numeric in `PostgreSQL` and doubles in the engine.
//!
//! Invariant: a rewritten number has all digits that were written.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    SelectItem, Statement, UnaryOperator, Value, Values, VisitMut as _, VisitorMut,
};

use super::Refusal;

/// Function that makes a numeric of the digits of a literal.
pub(crate) const LITERAL: &str = "numeric_literal";
/// Digits that a double keeps.
const DOUBLE_DIGITS: usize = 15;
/// Digits before the point, and behind it, that a numeric has room for.
const NUMERIC_DIGITS: (usize, usize) = (38, 36);

/// Makes numerics of the numbers whose digits a double drops, and refuses those beyond a double.
pub(super) fn exact(statement: &mut Statement) -> Result<(), Refusal> {
    let mut long = LongLiteral { refusal: None };
    let ControlFlow::Continue(()) = statement.visit(&mut long);
    long.refusal.map_or(Ok(()), Err)
}

struct LongLiteral {
    refusal: Option<Refusal>,
}

impl VisitorMut for LongLiteral {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let Some(text) = digits_of(expr) else {
            return ControlFlow::Continue(());
        };
        let value: f64 = text.parse().unwrap_or_default();
        if value.is_infinite() || (value == 0.0 && !is_zero(text)) {
            let rule = "it is beyond the range of a double, from 5e-324 to 1.7e308";
            self.refusal.get_or_insert_with(|| Refusal::of(text, rule));
        } else if text.contains('.') && has_room(text) && significant(text) > DOUBLE_DIGITS {
            *expr = numeric(text.to_owned());
        }
        ControlFlow::Continue(())
    }
}

/// Makes numerics of the numbers with a point among the columns of a table or a value.
pub(super) fn of_items(items: &mut [SelectItem]) {
    for item in items {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item
            && let Some(number) = number(expr)
            && digits_of(number).is_some_and(|text| text.contains('.') && has_room(text))
        {
            replace(number);
        }
    }
}

/// Makes numerics of the columns of VALUES that have numbers with a point, and nothing but numbers and nulls.
pub(super) fn of_values(values: &mut Values) {
    let columns = values
        .rows
        .iter()
        .map(|row| row.content.len())
        .min()
        .unwrap_or_default();
    for column in 0..columns {
        let mut point = false;
        let all = values.rows.iter_mut().all(|row| {
            let cell = &mut row.content[column];
            if matches!(cell, Expr::Value(value) if value.value == Value::Null) {
                return true;
            }
            let text = number(cell).and_then(|number| digits_of(number));
            point |= text.is_some_and(|text| text.contains('.'));
            text.is_some_and(has_room)
        });
        if all && point {
            for row in &mut values.rows {
                if let Some(number) = number(&mut row.content[column]) {
                    replace(number);
                }
            }
        }
    }
}

/// Returns the number of an expression without its sign and brackets.
fn number(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::Nested(inner)
        | Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr: inner,
        } => number(inner),
        Expr::Value(_) => Some(expr),
        _ => None,
    }
}

fn digits_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(text, false) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn replace(expr: &mut Expr) {
    if let Some(text) = digits_of(expr).map(str::to_owned) {
        *expr = numeric(text);
    }
}

/// Returns true if a numeric keeps all digits of a number.
fn has_room(text: &str) -> bool {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let plain = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    plain(whole) && plain(part) && whole.len() <= NUMERIC_DIGITS.0 && part.len() <= NUMERIC_DIGITS.1
}

/// Returns true if a number has no digit but zero before its exponent.
pub(crate) fn is_zero(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    !mantissa.bytes().any(|digit| matches!(digit, b'1'..=b'9'))
}

/// Returns the number of digits that count.
fn significant(text: &str) -> usize {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').len()
}

fn numeric(text: String) -> Expr {
    let digits = Expr::value(Value::SingleQuotedString(text));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(LITERAL)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(digits))],
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
