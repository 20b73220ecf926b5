//! Arithmetic and functions of doubles as in `PostgreSQL`: no infinity and no NaN comes from finite numbers.
//!
//! Invariant: no result is a negative zero, and the table has none. The engine compares, sorts and groups doubles by
//! their bits, so two zeros would be two values.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, ArrowNativeTypeOp, AsArray as _, Datum, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::numeric::{add, div, mul, rem, sub};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable as _, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::physical_expr_common::datum::apply;

use super::numeric::is_decimal;

const OVERFLOW: &str = "a number is out of the range of a double: overflow";
const UNDERFLOW: &str = "a number is out of the range of a double: underflow";
const DIVISION: &str = "division by zero";
const OUTSIDE: &str = "the argument of a function is out of its range";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum DoubleOperation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Negate,
    /// A conversion from a text or from a double of more bits, as an operation on its result and its operand.
    Converted,
}

impl DoubleOperation {
    const fn of(operator: Operator) -> Option<Self> {
        match operator {
            Operator::Plus => Some(Self::Add),
            Operator::Minus => Some(Self::Subtract),
            Operator::Multiply => Some(Self::Multiply),
            Operator::Divide => Some(Self::Divide),
            Operator::Modulo => Some(Self::Remainder),
            _ => None,
        }
    }

    const fn sign(self) -> &'static str {
        match self {
            Self::Add => " + ",
            Self::Subtract => " - ",
            Self::Multiply => " * ",
            Self::Divide => " / ",
            Self::Remainder => " % ",
            Self::Negate | Self::Converted => "",
        }
    }
}

/// Returns the call that replaces an operator between doubles, or `None` for another expression.
pub(super) fn binary(expr: &BinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    let Some(operation) = DoubleOperation::of(expr.op) else {
        return Ok(None);
    };
    let kind = expr.left.get_type(schema)?;
    Ok((kind.is_floating() && kind == expr.right.get_type(schema)?)
        .then(|| call(operation, vec![(*expr.left).clone(), (*expr.right).clone()])))
}

/// Returns true if a cast to a double can leave its range.
pub(super) fn loses(from: &DataType, to: &DataType) -> bool {
    to.is_floating() && (from.is_string() || (*from == DataType::Float64 && *to == DataType::Float32))
}

/// Returns the call that replaces the sign of a double.
pub(super) fn negated(of: Expr) -> Expr {
    call(DoubleOperation::Negate, vec![of])
}

/// Returns the call that checks a cast to a double. `operand` is what is cast.
pub(super) fn converted(cast: Expr, operand: Expr) -> Expr {
    call(DoubleOperation::Converted, vec![cast, operand])
}

fn call(operation: DoubleOperation, operands: Vec<Expr>) -> Expr {
    let function = ScalarUDF::new_from_impl(DoubleOperator {
        operation,
        signature: Signature::any(operands.len(), Volatility::Immutable),
    });
    Expr::ScalarFunction(ScalarFunction::new_udf(function.into(), operands))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DoubleOperator {
    operation: DoubleOperation,
    signature: Signature,
}

impl ScalarUDFImpl for DoubleOperator {
    fn name(&self) -> &'static str {
        match self.operation {
            DoubleOperation::Add => "double_add",
            DoubleOperation::Subtract => "double_subtract",
            DoubleOperation::Multiply => "double_multiply",
            DoubleOperation::Divide => "double_divide",
            DoubleOperation::Remainder => "double_remainder",
            DoubleOperation::Negate => "double_negate",
            DoubleOperation::Converted => "double_converted",
        }
    }

    /// Returns the name that the engine gives the replaced operator, so the column keeps its name.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(match self.operation {
            DoubleOperation::Negate => format!("(- {})", names.concat()),
            DoubleOperation::Converted => names.into_iter().next().unwrap_or_default(),
            operation => names.join(operation.sign()),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let first = kinds.first().cloned();
        first.ok_or_else(|| DataFusionError::Plan("arithmetic has operands".to_owned()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match (self.operation, &args.args[..]) {
            (DoubleOperation::Negate, [of]) => {
                let zero = ScalarValue::new_zero(&of.data_type())?;
                apply(&ColumnarValue::Scalar(zero), of, |zero, of| sub(zero, of))
            }
            (DoubleOperation::Converted, [cast, operand]) => apply(cast, operand, finite),
            (operation, [left, right]) => apply(left, right, |left, right| computed(operation, left, right)),
            _ => Err(DataFusionError::Plan("arithmetic has one or two operands".to_owned())),
        }
    }
}

fn failure(problem: &str) -> ArrowError {
    ArrowError::ComputeError(problem.to_owned())
}

fn computed(
    operation: DoubleOperation,
    left: &dyn Datum,
    right: &dyn Datum,
) -> std::result::Result<ArrayRef, ArrowError> {
    let result = match operation {
        DoubleOperation::Add => add(left, right)?,
        DoubleOperation::Subtract => sub(left, right)?,
        DoubleOperation::Multiply => mul(left, right)?,
        DoubleOperation::Remainder => rem(left, right)?,
        DoubleOperation::Divide | DoubleOperation::Negate | DoubleOperation::Converted => div(left, right)?,
    };
    if result.data_type() == &DataType::Float32 {
        checked::<Float32Type>(operation, &result, left, right)
    } else {
        checked::<Float64Type>(operation, &result, left, right)
    }
}

/// Returns true if no value can be an error or a negative zero.
fn is_plain<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>) -> bool
where
    T::Native: Into<f64>,
{
    // Without an early exit the loop is vectorized.
    let special = values.values().iter().map(|value| {
        let value: f64 = (*value).into();
        usize::from(!value.is_finite() || value == 0.0)
    });
    special.sum::<usize>() == 0
}

/// Checks the results of an operation by its operands.
fn checked<T: ArrowPrimitiveType>(
    operation: DoubleOperation,
    result: &ArrayRef,
    left: &dyn Datum,
    right: &dyn Datum,
) -> std::result::Result<ArrayRef, ArrowError>
where
    T::Native: Into<f64> + ArrowNativeTypeOp,
{
    let values = result.as_primitive::<T>();
    if is_plain(values) {
        return Ok(Arc::clone(result));
    }
    let ((left, one), (right, other)) = (left.get(), right.get());
    let (left, right) = (left.as_primitive::<T>(), right.as_primitive::<T>());
    for row in 0..values.len() {
        let value: f64 = values.value(row).into();
        if values.is_null(row) || (value.is_finite() && value != 0.0) {
            continue;
        }
        let left: f64 = left.value(if one { 0 } else { row }).into();
        let right: f64 = right.value(if other { 0 } else { row }).into();
        if left.is_nan() || right.is_nan() {
            continue;
        }
        if matches!(operation, DoubleOperation::Divide | DoubleOperation::Remainder) && right == 0.0 {
            return Err(failure(DIVISION));
        }
        if value.is_infinite() && left.is_finite() && right.is_finite() {
            return Err(failure(OVERFLOW));
        }
        let small = match operation {
            DoubleOperation::Multiply => left != 0.0 && right != 0.0,
            DoubleOperation::Divide => left != 0.0 && right.is_finite(),
            _ => false,
        };
        if value == 0.0 && small {
            return Err(failure(UNDERFLOW));
        }
    }
    Ok(Arc::new(without_sign(values)))
}

/// Turns negative zeros into zeros.
fn without_sign<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>) -> PrimitiveArray<T>
where
    T::Native: ArrowNativeTypeOp,
{
    values.unary(|value| value.add_wrapping(T::Native::ZERO))
}

/// Checks a conversion: an infinity may come from the text of one, or from one.
fn finite(result: &dyn Datum, operand: &dyn Datum) -> std::result::Result<ArrayRef, ArrowError> {
    let ((result, _), (operand, scalar)) = (result.get(), operand.get());
    let result = result.slice(0, result.len());
    let wide = cast(&result, &DataType::Float64)?;
    let wide = wide.as_primitive::<Float64Type>();
    if is_plain(wide) {
        return Ok(result);
    }
    let texts = operand.data_type().is_string();
    let operand = cast(operand, if texts { &DataType::Utf8 } else { &DataType::Float64 })?;
    for row in 0..wide.len() {
        let value = wide.value(row);
        if wide.is_null(row) || value.is_nan() || (value.is_finite() && value != 0.0) {
            continue;
        }
        let place = if scalar { 0 } else { row };
        let (infinite, zero) = if texts {
            let text = operand
                .as_string::<i32>()
                .value(place)
                .trim()
                .trim_start_matches(['+', '-']);
            let digits = text.split(['e', 'E']).next().unwrap_or_default();
            (
                text.starts_with(['i', 'I']),
                !digits.contains(|digit: char| ('1'..='9').contains(&digit)),
            )
        } else {
            let operand = operand.as_primitive::<Float64Type>().value(place);
            (operand.is_infinite(), operand == 0.0)
        };
        if value.is_infinite() && !infinite {
            return Err(failure(OVERFLOW));
        }
        if value == 0.0 && !zero {
            return Err(failure(UNDERFLOW));
        }
    }
    Ok(positive(&result))
}

/// Turns the negative zeros of doubles into zeros. Other arrays are returned as they are.
fn positive(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => Arc::new(without_sign(values.as_primitive::<Float32Type>())),
        DataType::Float64 => Arc::new(without_sign(values.as_primitive::<Float64Type>())),
        _ => Arc::clone(values),
    }
}

/// Functions of doubles that fail for some arguments, or that may return a negative zero.
const DOUBLE_FUNCTIONS: [&str; 29] = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "cot", "degrees", "exp",
    "floor", "ln", "log", "log10", "log2", "power", "radians", "round", "signum", "sin", "sinh", "sqrt", "tan", "tanh",
    "trunc",
];
/// Functions with a check of their arguments or of their result.
const CHECKED_FUNCTIONS: [&str; 15] = [
    "acos", "acosh", "asin", "atanh", "cos", "cot", "degrees", "exp", "ln", "log", "log10", "log2", "power", "sin",
    "sqrt",
];
/// Functions whose failure a condition before them can exclude.
const PARTIAL_FUNCTIONS: [&str; 13] = [
    "acos",
    "acosh",
    "asin",
    "atanh",
    "exp",
    "ln",
    "log",
    "log10",
    "log2",
    "numeric_exact",
    "power",
    "read_time",
    "sqrt",
];

/// Returns true if a function of this name fails for some of its arguments. `safe` tells that its second argument is a
/// number other than zero.
pub(super) fn is_partial(name: &str, safe: bool) -> bool {
    let divides = matches!(name, "double_remainder" | "numeric_rest") || name.contains("divide");
    (divides && !safe) || (!divides && PARTIAL_FUNCTIONS.contains(&name))
}

/// Returns true if a cast fails for some values, such as that of a text or of a great double to an integer.
pub(super) fn has_less_room(from: &DataType, to: &DataType) -> bool {
    (from.is_string() && !to.is_string()) || (to.is_integer() && (from.is_floating() || is_decimal(from)))
}

/// Returns true for a number other than zero.
pub(super) fn is_other_than_zero(value: &ScalarValue) -> bool {
    let zero = ScalarValue::new_zero(&value.data_type());
    !value.is_null() && value.data_type().is_numeric() && zero.is_ok_and(|zero| zero != *value)
}

/// Returns true for the name of a function of doubles.
pub(super) fn is_of_doubles(name: &str) -> bool {
    DOUBLE_FUNCTIONS.contains(&name)
}

/// Returns the engine's functions, with those of doubles checked.
pub(super) fn functions(all: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let checked = |function: Arc<ScalarUDF>| {
        if DOUBLE_FUNCTIONS.contains(&function.name()) {
            Arc::new(ScalarUDF::new_from_impl(CheckedFunction { inner: function }))
        } else {
            function
        }
    };
    all.into_iter().map(checked).collect()
}

/// A function of doubles, with its arguments and its results checked.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CheckedFunction {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for CheckedFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(kinds)
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.inner.return_type(kinds)
    }

    fn return_field_from_args(
        &self,
        args: datafusion::logical_expr::ReturnFieldArgs<'_>,
    ) -> Result<datafusion::arrow::datatypes::FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let name = self.inner.name();
        let of_doubles = args.return_field.data_type().is_floating();
        let checks = of_doubles && CHECKED_FUNCTIONS.contains(&name);
        let operands = if checks {
            args.args.iter().map(doubles).collect::<Result<Vec<_>>>()?
        } else {
            Vec::new()
        };
        each(&operands, |values| before(name, values))?;
        if let (true, "round", [of]) = (of_doubles, name, &args.args[..]) {
            return rounded(of);
        }
        let result = self.inner.invoke_with_args(args)?;
        if !of_doubles {
            return Ok(result);
        }
        if checks {
            let mut all = operands;
            all.push(doubles(&result)?);
            each(&all, |values| after(name, values))?;
        }
        Ok(match result {
            ColumnarValue::Array(result) => ColumnarValue::Array(positive(&result)),
            ColumnarValue::Scalar(result) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&positive(&result.to_array()?), 0)?)
            }
        })
    }
}

/// Rounds to the nearest whole number; ties go to the even one.
fn rounded(of: &ColumnarValue) -> Result<ColumnarValue> {
    let round = |of: &ArrayRef| -> Result<ArrayRef> {
        let rounded: ArrayRef = match of.data_type() {
            DataType::Float32 => Arc::new(
                of.as_primitive::<Float32Type>()
                    .unary::<_, Float32Type>(|of| of.round_ties_even() + 0.0),
            ),
            _ => Arc::new(
                cast(of, &DataType::Float64)?
                    .as_primitive::<Float64Type>()
                    .unary::<_, Float64Type>(|of| of.round_ties_even() + 0.0),
            ),
        };
        Ok(rounded)
    };
    Ok(match of {
        ColumnarValue::Array(of) => ColumnarValue::Array(round(of)?),
        ColumnarValue::Scalar(of) => ColumnarValue::Scalar(ScalarValue::try_from_array(&round(&of.to_array()?)?, 0)?),
    })
}

/// Doubles of an argument: one, or one for each row.
type Doubles = PrimitiveArray<Float64Type>;

fn doubles(of: &ColumnarValue) -> Result<Doubles> {
    let array = match of {
        ColumnarValue::Array(of) => Arc::clone(of),
        ColumnarValue::Scalar(of) => of.to_array()?,
    };
    Ok(cast(&array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}

/// Checks the values of each row without nulls.
fn each(columns: &[Doubles], check: impl Fn(&[f64]) -> Option<&'static str>) -> Result<()> {
    let rows = columns.iter().fold(0, |rows, column| rows.max(column.len()));
    let mut values = Vec::with_capacity(columns.len());
    for row in 0..rows {
        values.clear();
        for column in columns {
            let row = if column.len() == 1 { 0 } else { row };
            if column.is_valid(row) {
                values.push(column.value(row));
            }
        }
        if values.len() == columns.len()
            && let Some(problem) = check(&values)
        {
            return Err(DataFusionError::Execution(problem.to_owned()));
        }
    }
    Ok(())
}

fn logarithm(of: f64) -> Option<&'static str> {
    if of == 0.0 {
        Some("cannot take logarithm of zero")
    } else if of < 0.0 {
        Some("cannot take logarithm of a negative number")
    } else {
        None
    }
}

/// Returns the problem of a function's arguments.
fn before(name: &str, values: &[f64]) -> Option<&'static str> {
    let outside = |is: bool| is.then_some(OUTSIDE);
    match (name, values) {
        ("sqrt", [of]) => (*of < 0.0).then_some("cannot take square root of a negative number"),
        ("ln" | "log10" | "log2" | "log", [of]) => logarithm(*of),
        ("log", [base, of]) => logarithm(*base)
            .or_else(|| logarithm(*of))
            .or_else(|| (*base).total_cmp(&1.0).is_eq().then_some(DIVISION)),
        ("acos" | "asin", [of]) => outside(of.abs() > 1.0),
        ("acosh", [of]) => outside(*of < 1.0),
        ("atanh", [of]) => outside(of.abs() > 1.0),
        ("sin" | "cos" | "cot", [of]) => outside(of.is_infinite()),
        ("power", [base, power]) => {
            if *base == 0.0 && *power < 0.0 {
                Some("zero raised to a negative power is undefined")
            } else if *base < 0.0 && power.is_finite() && power.fract() != 0.0 {
                Some("a negative number raised to a non-integer power yields a complex result")
            } else {
                None
            }
        }
        _ => None,
    }
}

/// Returns the problem of a function's result, which is the last of `values`, behind its arguments.
fn after(name: &str, values: &[f64]) -> Option<&'static str> {
    let (result, arguments) = values.split_last()?;
    if !arguments.iter().all(|of| of.is_finite()) {
        return None;
    }
    let vanishes = match (name, arguments) {
        ("exp", _) => true,
        ("power", [base, _]) => *base != 0.0,
        _ => false,
    };
    if result.is_infinite() && matches!(name, "exp" | "power" | "degrees") {
        Some(OVERFLOW)
    } else if *result == 0.0 && vanishes {
        Some(UNDERFLOW)
    } else {
        None
    }
}

/// Returns a double literal without the sign of a zero, or `None` if it has none.
pub(super) fn literal(value: &ScalarValue) -> Option<ScalarValue> {
    match value {
        ScalarValue::Float64(Some(double)) if *double == 0.0 && double.is_sign_negative() => {
            Some(ScalarValue::Float64(Some(0.0)))
        }
        ScalarValue::Float32(Some(double)) if *double == 0.0 && double.is_sign_negative() => {
            Some(ScalarValue::Float32(Some(0.0)))
        }
        _ => None,
    }
}
