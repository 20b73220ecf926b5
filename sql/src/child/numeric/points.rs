//! Numbers with a point in a statement, beside other numbers.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Case, Cast};
use datafusion::logical_expr::{Expr, LogicalPlan, cast};

use super::{Class, alike, class, digits, results, with_point};

/// The least double above which there is not one for each integer.
const MAX_EXACT_DOUBLE: f64 = 9_007_199_254_740_992.0;
/// A double that is beyond all integers.
const BEYOND_INTEGERS: f64 = 1e19;

/// Returns true for a number with a point that is equal, as a double, to several integers.
pub(super) fn is_large(expr: &Expr) -> bool {
    with_point(expr).is_some_and(|value| (MAX_EXACT_DOUBLE..BEYOND_INTEGERS).contains(&value.abs()))
}

/// Returns true unless the expression is a number with a point that has more digits than a decimal.
pub(super) fn has_room(expr: &Expr) -> bool {
    with_point(expr).is_none_or(|value| {
        let read = digits::read(&value.to_string());
        read.is_some_and(|read| {
            value == 0.0 || digits::double(read, digits::MAX_SCALE_DIGITS).to_bits() == value.to_bits()
        })
    })
}

/// Gives the value of `lag` and `lead` and their default one type.
pub(super) fn with_default(value: &Expr, default: &Expr, schema: &DFSchema) -> Vec<Expr> {
    let both = vec![value.clone(), default.clone()];
    match (class(value, schema), class(default, schema)) {
        (Class::Whole | Class::Plain | Class::Wide, Class::Double) => {
            vec![cast(value.clone(), DataType::Float64), folded(default.clone())]
        }
        _ => results(both, schema).into_iter().map(folded).collect(),
    }
}

/// Gives the columns that JOIN … USING compares a type in which none loses digits.
pub(super) fn joined(plan: LogicalPlan, schema: &DFSchema) -> LogicalPlan {
    let LogicalPlan::Join(mut join) = plan else {
        return plan;
    };
    for (left, right) in &mut join.on {
        let mut both = alike(vec![left.clone(), right.clone()], schema).into_iter();
        if let (Some(one), Some(other)) = (both.next(), both.next()) {
            (*left, *right) = (one, other);
        }
    }
    LogicalPlan::Join(join)
}

/// Computes the cast of a literal, for functions that take only literals.
fn folded(expr: Expr) -> Expr {
    match &expr {
        Expr::Cast(Cast { expr: inner, field }) => match &**inner {
            Expr::Literal(value, metadata) => value
                .cast_to(field.data_type())
                .map_or_else(|_| expr.clone(), |value| Expr::Literal(value, metadata.clone())),
            _ => expr,
        },
        _ => expr,
    }
}

/// Makes doubles of a decimal of the statement, and of a CASE that chooses among some. Returns others as they are.
pub(super) fn as_doubles(expr: Expr) -> Result<Expr, Expr> {
    match expr {
        Expr::Literal(ScalarValue::Decimal256(Some(value), _, scale), metadata) if scale >= 0 => {
            let double = digits::double(value, scale.unsigned_abs());
            Ok(Expr::Literal(ScalarValue::Float64(Some(double)), metadata))
        }
        Expr::Case(case) => {
            let thens = case.when_then_expr.iter().map(|(_, then)| &**then);
            let mut chosen = thens.chain(case.else_expr.as_deref());
            if !chosen.all(is_literal) {
                return Err(Expr::Case(case));
            }
            let double = |then: Box<Expr>| Box::new(as_doubles(*then).unwrap_or_else(|same| same));
            let pairs = case.when_then_expr.into_iter().map(|(when, then)| (when, double(then)));
            Ok(Expr::Case(Case::new(
                case.expr,
                pairs.collect(),
                case.else_expr.map(double),
            )))
        }
        other => Err(other),
    }
}

const fn is_literal(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Literal(ScalarValue::Decimal256(Some(_), ..) | ScalarValue::Null, _)
    )
}
