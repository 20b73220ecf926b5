//! Casts between texts and times in place of the engine's.
//!
//! Invariant: a text of the statement and a text of a column are read alike.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable as _, cast as engine_cast, lit};

use super::temporal::{self, TemporalOperation, TextKind};

const fn kind(to: &DataType) -> Option<TextKind> {
    Some(match to {
        DataType::Timestamp(_, None) => TextKind::Local,
        DataType::Timestamp(_, Some(_)) => TextKind::Instant,
        DataType::Date32 => TextKind::Date,
        DataType::Time64(_) => TextKind::Time,
        DataType::Interval(_) => TextKind::Interval,
        _ => return None,
    })
}

/// Returns true if a cast is one between a text and a time or an interval that [`cast`] replaces.
pub(super) fn is_between(expr: &Expr, to: &DataType, schema: &DFSchema) -> bool {
    let Ok(from) = expr.get_type(schema) else {
        return false;
    };
    (from.is_string() && kind(to).is_some()) || (matches!(from, DataType::Interval(_)) && to.is_string())
}

/// Returns the cast of an expression. If it is lenient, a text that cannot be read is null.
pub(super) fn cast(expr: Expr, to: &DataType, lenient: bool, schema: &DFSchema) -> Result<Expr> {
    if let (Expr::Literal(value, _), Some(kind)) = (&expr, kind(to))
        && let Some(Some(text)) = value.try_as_str()
    {
        // A value of the statement stays one, also in a list and in a condition on a column.
        let value = temporal::literal(text, kind, lenient)?;
        return Ok(if value.data_type() == *to {
            lit(value)
        } else {
            engine_cast(lit(value), to.clone())
        });
    }
    let operation = kind(to).map_or(TemporalOperation::Text, |kind| TemporalOperation::Read {
        kind,
        lenient,
    });
    let read = temporal::call(operation, vec![expr]);
    Ok(if read.get_type(schema)? == *to {
        read
    } else {
        engine_cast(read, to.clone())
    })
}
