//! Numbers of a statement with more digits than a double keeps, and operators for whose operands the engine has no type.

use datafusion::arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable as _, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::mixed;
use super::numeric::digits::{self, SIGNED_SCALE};
use super::numeric::{self, NUMERIC};
use crate::check::scope::LITERAL;

/// Returns the function that makes a numeric of digits.
pub(super) fn function() -> ScalarUDF {
    ScalarUDF::new_from_impl(Literal {
        signature: Signature::any(1, Volatility::Immutable),
    })
}

/// Returns true for [`function`].
pub(super) fn is(function: &ScalarUDF) -> bool {
    function.name() == LITERAL
}

/// Returns the number with these digits.
pub(super) fn value(digits: &Expr) -> Option<Expr> {
    match digits {
        Expr::Literal(text, _) => Some(Expr::Literal(read(text)?, None)),
        _ => None,
    }
}

fn read(text: &ScalarValue) -> Option<ScalarValue> {
    let value = digits::read(text.try_as_str().flatten()?)?;
    Some(ScalarValue::Decimal256(
        Some(value),
        DECIMAL256_MAX_PRECISION,
        SIGNED_SCALE,
    ))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Literal {
    signature: Signature,
}

impl ScalarUDFImpl for Literal {
    fn name(&self) -> &'static str {
        LITERAL
    }

    /// Returns the name that the engine gives a number.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let text = match args {
            [Expr::Literal(text, _)] => text.try_as_str().flatten().unwrap_or_default(),
            _ => "",
        };
        Ok(format!("Float64({})", text.parse::<f64>().unwrap_or_default()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(NUMERIC)
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Field::new(self.name(), NUMERIC, false).into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let text = match args.args.first() {
            Some(ColumnarValue::Scalar(text)) => read(text),
            _ => None,
        };
        text.map(ColumnarValue::Scalar)
            .ok_or_else(|| DataFusionError::Plan("a literal has digits".to_owned()))
    }
}

/// The planner of products whose digits behind the point are more than a type of the engine has, and of comparisons of a
/// boolean with a text of the statement.
#[derive(Debug)]
pub(super) struct ProductPlanner;

impl ExprPlanner for ProductPlanner {
    fn plan_binary_op(&self, mut expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let is_boolean = |expr: &Expr| expr.get_type(schema).is_ok_and(|kind| kind == DataType::Boolean);
        let is_text = |expr: &Expr| matches!(expr, Expr::Literal(value, _) if value.data_type().is_string());
        if matches!(expr.op, BinaryOperator::Eq | BinaryOperator::NotEq) {
            if is_boolean(&expr.left) && is_text(&expr.right) {
                expr.right = mixed::boolean(expr.right)?;
            } else if is_text(&expr.left) && is_boolean(&expr.right) {
                expr.left = mixed::boolean(expr.left)?;
            }
            return Ok(PlannerResult::Original(expr));
        }
        let scale = |expr: &Expr| expr.get_type(schema).as_ref().map_or(0, numeric::scale_of);
        let wide = expr.op == BinaryOperator::Multiply
            && scale(&expr.left).saturating_add(scale(&expr.right)) > DECIMAL256_MAX_PRECISION;
        Ok(if wide {
            PlannerResult::Planned(numeric::product(expr.left, expr.right))
        } else {
            PlannerResult::Original(expr)
        })
    }
}
