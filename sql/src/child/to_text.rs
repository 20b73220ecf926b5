//! Casts of doubles and of lists to texts, in place of the engine's.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::{float_text, list_text};

/// Returns true for a type whose cast to a text [`call`] replaces.
pub(super) fn is_own(kind: &DataType) -> bool {
    kind.is_floating() || kind.is_list()
}

/// Returns the call that replaces a cast to the text type `kind`.
pub(super) fn call(value: Expr, kind: DataType) -> Expr {
    let function = ScalarUDF::new_from_impl(ToText {
        kind,
        signature: Signature::any(1, Volatility::Immutable),
    });
    Expr::ScalarFunction(ScalarFunction::new_udf(function.into(), vec![value]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToText {
    kind: DataType,
    signature: Signature,
}

impl ToText {
    fn texts(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let texts = if values.data_type().is_list() {
            list_text::texts(values)?
        } else {
            float_text::texts(values)?
        };
        Ok(cast(&texts, &self.kind)?)
    }
}

impl ScalarUDFImpl for ToText {
    fn name(&self) -> &'static str {
        "to_text"
    }

    /// Returns the name of its argument, as a cast does.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| arg.schema_name().to_string()).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.kind.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &args.args[..] {
            [ColumnarValue::Array(values)] => Ok(ColumnarValue::Array(self.texts(values)?)),
            [ColumnarValue::Scalar(value)] => {
                let text = self.texts(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&text, 0)?))
            }
            _ => Err(DataFusionError::Plan("a cast has one operand".to_owned())),
        }
    }
}
