//! Checked arithmetic in place of the engine's operators, which wrap around and truncate.
//!
//! Invariant: a result outside of its type is an error.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray as _};
use datafusion::arrow::compute::kernels::numeric::{add, mul, neg, sub};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum::apply;

use crate::check::alike::NAMED;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CheckedOperation {
    Add,
    Subtract,
    Multiply,
    Negate,
    /// Rounds a float to the nearest integer; ties go to the even one.
    Nearest,
    /// Returns its operand, and may return null whatever the operand says of itself.
    MaybeNull,
}

/// Returns the call of an operation. All operands have the same type.
pub(super) fn call(operation: CheckedOperation, operands: Vec<Expr>) -> Expr {
    let function = ScalarUDF::new_from_impl(CheckedOperator {
        operation,
        signature: Signature::any(operands.len(), Volatility::Immutable),
    });
    Expr::ScalarFunction(ScalarFunction::new_udf(function.into(), operands))
}

/// Returns the function that gives an expression the name of a type.
pub(super) fn named_by_type() -> ScalarUDF {
    ScalarUDF::new_from_impl(NamedArgument {
        signature: Signature::any(2, Volatility::Immutable),
    })
}

/// A function that returns its first argument.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NamedArgument {
    signature: Signature,
}

impl ScalarUDFImpl for NamedArgument {
    fn name(&self) -> &'static str {
        NAMED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let first = arguments.first().cloned();
        first.ok_or_else(|| DataFusionError::Plan("a cast has an operand".to_owned()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let first = args.args.into_iter().next();
        first.ok_or_else(|| DataFusionError::Plan("a cast has an operand".to_owned()))
    }
}

/// An operation as a function of the engine.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedOperator {
    operation: CheckedOperation,
    signature: Signature,
}

impl ScalarUDFImpl for CheckedOperator {
    fn name(&self) -> &'static str {
        match self.operation {
            CheckedOperation::Add => "checked_add",
            CheckedOperation::Subtract => "checked_subtract",
            CheckedOperation::Multiply => "checked_multiply",
            CheckedOperation::Negate => "checked_negate",
            CheckedOperation::Nearest => "nearest",
            CheckedOperation::MaybeNull => "maybe_null",
        }
    }

    /// Returns the name that the engine gives the replaced operator, so the column keeps its name.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(match self.operation {
            CheckedOperation::Add => names.join(" + "),
            CheckedOperation::Subtract => names.join(" - "),
            CheckedOperation::Multiply => names.join(" * "),
            CheckedOperation::Negate => format!("(- {})", names.concat()),
            CheckedOperation::Nearest | CheckedOperation::MaybeNull => names.concat(),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        // Type coercion has given all operands the same type.
        let first = arguments.first().cloned();
        first.ok_or_else(|| DataFusionError::Plan("arithmetic has operands".to_owned()))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let kinds: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        // The result of arithmetic is null if an operand is, and only then.
        let nullable =
            self.operation == CheckedOperation::MaybeNull || args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Field::new(self.name(), self.return_type(&kinds)?, nullable).into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match (self.operation, &args.args[..]) {
            (CheckedOperation::Add, [left, right]) => apply(left, right, add),
            (CheckedOperation::Subtract, [left, right]) => apply(left, right, sub),
            (CheckedOperation::Multiply, [left, right]) => apply(left, right, mul),
            (CheckedOperation::Negate, [of]) => each(of, |of| Ok(neg(of)?)),
            (CheckedOperation::Nearest, [of]) => each(of, nearest),
            (CheckedOperation::MaybeNull, [of]) => Ok(of.clone()),
            _ => Err(DataFusionError::Plan("arithmetic has one or two operands".to_owned())),
        }
    }
}

fn each(of: &ColumnarValue, operation: impl Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<ColumnarValue> {
    Ok(match of {
        ColumnarValue::Array(of) => ColumnarValue::Array(operation(of)?),
        // A scalar is computed as an array of one, so both cases have the same arithmetic.
        ColumnarValue::Scalar(of) => {
            let result = operation(&of.to_array()?)?;
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        }
    })
}

fn nearest(of: &ArrayRef) -> Result<ArrayRef> {
    match of.data_type() {
        DataType::Float32 => Ok(Arc::new(
            of.as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(f32::round_ties_even),
        )),
        DataType::Float64 => Ok(Arc::new(
            of.as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(f64::round_ties_even),
        )),
        other => Err(DataFusionError::Plan(format!("{other} is not a float"))),
    }
}
