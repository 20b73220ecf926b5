//! Rewrites of types and functions of numbers that the engine does not know, or knows by another meaning.
//!
//! Invariant: a rewritten expression has the meaning of the original one in `PostgreSQL`.

use std::mem;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, Value,
};

use super::query::single;

/// Digits of a NUMERIC without a precision, and those behind its point. The engine would give it ten.
const NUMERIC: ExactNumberInfo = ExactNumberInfo::PrecisionAndScale(75, 36);

/// Rewrites an expression. Its parts are rewritten later.
pub(super) fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::Cast { data_type, .. } => {
            // FLOAT is a double but for a precision of a single, which is REAL in the engine.
            if let DataType::Float(info) = data_type
                && !matches!(info, ExactNumberInfo::Precision(..25))
            {
                *data_type = DataType::DoublePrecision;
                return;
            }
            if let DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info) = data_type
                && *info == ExactNumberInfo::None
            {
                *info = NUMERIC;
            }
        }
        Expr::Function(function) => {
            if let Some(written) = written(function) {
                *expr = written;
            }
        }
        _ => {}
    }
}

/// Returns the operators that `mod` stands for, and gives other functions the names that the engine has for them.
fn written(function: &mut Function) -> Option<Expr> {
    let name = single(&function.name)?.value.to_ascii_lowercase();
    let FunctionArguments::List(list) = &mut function.args else {
        return None;
    };
    match (&*name, &mut list.args[..]) {
        ("sign", [_]) => {
            function.name = ObjectName::from(vec![Ident::new("signum")]);
            None
        }
        ("variance", [_]) => {
            function.name = ObjectName::from(vec![Ident::new("var_samp")]);
            None
        }
        (
            "mod" | "div",
            [
                FunctionArg::Unnamed(FunctionArgExpr::Expr(left)),
                FunctionArg::Unnamed(FunctionArgExpr::Expr(right)),
            ],
        ) => {
            let nested =
                |expr: &mut Expr| Box::new(Expr::Nested(Box::new(mem::replace(expr, Expr::value(Value::Null)))));
            let (left, right) = (nested(left), nested(right));
            if name == "mod" {
                let rest = Expr::BinaryOp {
                    left,
                    op: BinaryOperator::Modulo,
                    right,
                };
                return Some(Expr::Nested(Box::new(rest)));
            }
            let right = Box::new(Expr::Cast {
                kind: CastKind::Cast,
                expr: right,
                data_type: DataType::Numeric(NUMERIC),
                array: false,
                format: None,
            });
            let quotient = Expr::BinaryOp {
                left,
                op: BinaryOperator::Divide,
                right,
            };
            list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(quotient))];
            function.name = ObjectName::from(vec![Ident::new("trunc")]);
            None
        }
        _ => None,
    }
}
