//! Check of expressions: operators, calls, casts, subqueries.
//!
//! Invariant: a function is called only if it is in the list of [`functions`], whatever the syntax of the call.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, ArrayElemTypeDef, BinaryOperator, CaseWhen, CeilFloorKind, DataType, DateTimeField, Expr,
    Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Interval,
    Subscript, TypedString, UnaryOperator, Value, WindowFrame, WindowFrameBound, WindowSpec, WindowType,
};

use super::names::normal;
use super::query::{StatementWalk, none, single};
use super::{Refusal, formats, functions, times};

const NOT_OFFERED: &str = "the expression is not supported";
const NOT_EACH: &str =
    "only `= ANY (SELECT …)` and `<> ALL (SELECT …)` are supported: use EXISTS, or compare with min() or max()";
const ONE_FORM: &str = "write texts as '…' and numbers in digits; parameters are not supported";

impl StatementWalk {
    /// Checks each expression of a list.
    pub(super) fn expressions(&mut self, expressions: &[Expr]) -> Result<(), Refusal> {
        expressions
            .iter()
            .try_for_each(|expression| self.expression(expression))
    }

    /// Checks an expression and its parts.
    pub(super) fn expression(&mut self, expression: &Expr) -> Result<(), Refusal> {
        self.nested(|walk| walk.one(expression))
    }

    fn boxed<'a>(&mut self, expressions: impl IntoIterator<Item = &'a Box<Expr>>) -> Result<(), Refusal> {
        expressions
            .into_iter()
            .try_for_each(|expression| self.expression(expression))
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each kind of expression, so that none is forgotten"
    )]
    fn one(&mut self, expression: &Expr) -> Result<(), Refusal> {
        match expression {
            Expr::Identifier(ident) => none(
                ident.value.starts_with('@').then_some(ident),
                "variables are not supported",
            ),
            Expr::CompoundIdentifier(parts) => none(
                parts.iter().find(|part| part.value.starts_with('@')),
                "variables are not supported",
            ),
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.expression(root)?;
                access_chain.iter().try_for_each(|access| self.access(access))
            }
            Expr::Nested(expr)
            | Expr::IsFalse(expr)
            | Expr::IsNotFalse(expr)
            | Expr::IsTrue(expr)
            | Expr::IsNotTrue(expr)
            | Expr::IsNull(expr)
            | Expr::IsNotNull(expr)
            | Expr::IsUnknown(expr)
            | Expr::IsNotUnknown(expr) => self.expression(expr),
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                // The parser reads too much for the right side, beyond its end.
                let runs_on = matches!(
                    **right,
                    Expr::BinaryOp {
                        op: BinaryOperator::And | BinaryOperator::Or,
                        ..
                    }
                );
                none(
                    runs_on.then_some(expression),
                    "write brackets around `… IS DISTINCT FROM …`",
                )?;
                self.boxed([left, right])
            }
            Expr::InList { expr, list, negated: _ } => {
                self.expression(expr)?;
                self.expressions(list)
            }
            Expr::InSubquery {
                expr,
                subquery,
                negated: _,
            } => {
                self.expression(expr)?;
                self.query(subquery)
            }
            Expr::Between {
                expr,
                negated: _,
                low,
                high,
            } => self.boxed([expr, low, high]),
            Expr::BinaryOp { left, op, right } => {
                binary(op)?;
                self.boxed([left, right])
            }
            Expr::UnaryOp { op, expr } => {
                unary(*op)?;
                self.expression(expr)
            }
            Expr::Like {
                negated: _,
                any,
                expr,
                pattern,
                escape_char: _,
            }
            | Expr::ILike {
                negated: _,
                any,
                expr,
                pattern,
                escape_char: _,
            } => {
                none(any.then_some("LIKE ANY"), NOT_OFFERED)?;
                self.boxed([expr, pattern])
            }
            Expr::SimilarTo { .. } => Err(Refusal::of("SIMILAR TO", "use LIKE, or ~ with ^ and $")),
            Expr::AnyOp {
                left,
                compare_op,
                right,
                is_some: _,
            } => {
                // `= ANY (SELECT …)` is rewritten to IN before, and `= ANY` of a list finds an entry. Any other
                // comparison is not supported.
                let whole = *compare_op == BinaryOperator::Eq;
                none((!whole).then(|| format!("{compare_op} ANY")), NOT_EACH)?;
                self.boxed([left, right])
            }
            Expr::AllOp {
                left,
                compare_op,
                right,
            } => {
                let whole = *compare_op == BinaryOperator::NotEq && matches!(**right, Expr::Subquery(_));
                none((!whole).then(|| format!("{compare_op} ALL")), NOT_EACH)?;
                self.boxed([left, right])
            }
            Expr::Cast {
                kind: _,
                expr,
                data_type,
                array,
                format,
            } => {
                none(array.then_some("CAST … ARRAY"), NOT_OFFERED)?;
                none(format.as_ref().map(|_| "CAST … FORMAT"), NOT_OFFERED)?;
                type_(data_type)?;
                self.expression(expr)
            }
            Expr::AtTimeZone { timestamp, time_zone } => self.boxed([timestamp, time_zone]),
            Expr::Extract { field, syntax: _, expr } => {
                date_part(field)?;
                self.expression(expr)
            }
            Expr::Ceil { expr, field } | Expr::Floor { expr, field } => {
                // `CEIL(x TO DAY)` and a scale are syntax of other dialects.
                let plain = matches!(field, CeilFloorKind::DateTimeField(DateTimeField::NoDateTime));
                none((!plain).then_some(expression), "use date_trunc, or multiply first")?;
                self.expression(expr)
            }
            Expr::Position { expr, r#in } => self.boxed([expr, r#in]),
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                special: _,
                shorthand: _,
            } => {
                self.expression(expr)?;
                self.boxed([substring_from, substring_for].into_iter().flatten())
            }
            Expr::Trim {
                trim_where: _,
                trim_what,
                expr,
                trim_characters,
            } => {
                self.expression(expr)?;
                self.boxed(trim_what)?;
                trim_characters.as_ref().map_or(Ok(()), |list| self.expressions(list))
            }
            Expr::Overlay {
                expr,
                overlay_what,
                overlay_from,
                overlay_for,
            } => {
                self.boxed([expr, overlay_what, overlay_from])?;
                self.boxed(overlay_for)
            }
            Expr::Value(value) => literal(&value.value),
            Expr::TypedString(TypedString {
                data_type,
                value,
                uses_odbc_syntax,
            }) => {
                none(uses_odbc_syntax.then_some(expression), NOT_OFFERED)?;
                type_(data_type)?;
                literal(&value.value)
            }
            Expr::Interval(
                interval @ Interval {
                    value,
                    leading_field,
                    leading_precision,
                    last_field,
                    fractional_seconds_precision,
                },
            ) => {
                let plain =
                    leading_precision.is_none() && last_field.is_none() && fractional_seconds_precision.is_none();
                none((!plain).then_some(expression), "write an interval as INTERVAL '1 day'")?;
                times::written(interval)?;
                leading_field.as_ref().map_or(Ok(()), date_part)?;
                self.expression(value)
            }
            Expr::Function(function) => self.function(function),
            Expr::Case {
                case_token: _,
                end_token: _,
                operand,
                conditions,
                else_result,
            } => {
                self.boxed(operand)?;
                for CaseWhen { condition, result } in conditions {
                    self.expression(condition)?;
                    self.expression(result)?;
                }
                self.boxed(else_result)
            }
            Expr::Exists { subquery, negated: _ } => self.query(subquery),
            Expr::Subquery(query) => self.query(query),
            Expr::Tuple(expressions) => self.expressions(expressions),
            Expr::Array(Array { elem, named: _ }) => self.expressions(elem),
            Expr::Cube(_) | Expr::Rollup(_) | Expr::GroupingSets(_) => {
                Err(Refusal::of(expression, "grouping sets are allowed in GROUP BY only"))
            }
            Expr::JsonAccess { .. } => Err(Refusal::of(expression, "json columns are text in a query")),
            Expr::Convert { .. } => Err(Refusal::of(expression, "use CAST")),
            Expr::RLike { .. } => Err(Refusal::of(expression, "use ~ or regexp_like")),
            Expr::Collate { .. } => Err(Refusal::of(
                expression,
                "collations are not supported: texts are compared by their bytes",
            )),
            Expr::Prior(_) => Err(Refusal::of(expression, "recursive queries are not supported")),
            Expr::IsNormalized { .. }
            | Expr::InUnnest { .. }
            | Expr::Prefixed { .. }
            | Expr::Struct { .. }
            | Expr::Named { .. }
            | Expr::Dictionary(_)
            | Expr::Map(_)
            | Expr::MatchAgainst { .. }
            | Expr::Wildcard(_)
            | Expr::QualifiedWildcard(..)
            | Expr::OuterJoin(_)
            | Expr::Lambda(_)
            | Expr::MemberOf(_) => Err(Refusal::of(expression, NOT_OFFERED)),
        }
    }

    fn access(&mut self, access: &AccessExpr) -> Result<(), Refusal> {
        match access {
            AccessExpr::Dot(expr) => self.expression(expr),
            AccessExpr::Subscript(Subscript::Index { index }) => self.expression(index),
            AccessExpr::Subscript(Subscript::Slice {
                lower_bound,
                upper_bound,
                stride,
            }) => {
                none(stride.as_ref(), "a slice has a first and a last position only")?;
                [lower_bound, upper_bound]
                    .into_iter()
                    .flatten()
                    .try_for_each(|bound| self.expression(bound))
            }
        }
    }

    fn function(&mut self, function: &Function) -> Result<(), Refusal> {
        let Function {
            name,
            uses_odbc_syntax,
            parameters,
            args,
            filter,
            null_treatment: _,
            over,
            within_group,
        } = function;
        none(uses_odbc_syntax.then_some(function), NOT_OFFERED)?;
        let called = single(name).map(normal);
        let called = called.unwrap_or_else(|| name.to_string());
        // A qualified name matches no function of the list and is refused.
        functions::allowed(&called)?;
        if functions::FORMAT_FUNCTIONS.contains(&&*called) {
            formats::written(function, args)?;
        }
        if !matches!(parameters, FunctionArguments::None) {
            return Err(Refusal::of(function, "a call can have one list of arguments only"));
        }
        match args {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(query) => self.query(query)?,
            FunctionArguments::List(list) => self.arguments(list)?,
        }
        // FILTER, OVER and WITHIN GROUP contain expressions, which are checked like all others.
        self.boxed(filter)?;
        match over {
            Some(WindowType::WindowSpec(window)) => self.window(window)?,
            Some(WindowType::NamedWindow(name)) => self.named(name)?,
            None => {}
        }
        self.sorted(within_group)
    }

    fn arguments(&mut self, list: &FunctionArgumentList) -> Result<(), Refusal> {
        let FunctionArgumentList {
            duplicate_treatment: _,
            args,
            clauses,
        } = list;
        for argument in args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.expression(expr)?,
                // `count(*)`.
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard | FunctionArgExpr::QualifiedWildcard(_)) => {}
                FunctionArg::Unnamed(FunctionArgExpr::WildcardWithOptions(_))
                | FunctionArg::Named { .. }
                | FunctionArg::ExprNamed { .. } => {
                    return Err(Refusal::of(argument, "arguments must be given by position"));
                }
            }
        }
        for clause in clauses {
            match clause {
                FunctionArgumentClause::IgnoreOrRespectNulls(_) => {}
                FunctionArgumentClause::OrderBy(expressions) => self.sorted(expressions)?,
                FunctionArgumentClause::Limit(_)
                | FunctionArgumentClause::OnOverflow(_)
                | FunctionArgumentClause::Having(_)
                | FunctionArgumentClause::Separator(_)
                | FunctionArgumentClause::JsonNullClause(_)
                | FunctionArgumentClause::JsonReturningClause(_) => return Err(Refusal::of(clause, NOT_OFFERED)),
            }
        }
        Ok(())
    }

    /// Checks the window of a window function.
    pub(super) fn window(&mut self, window: &WindowSpec) -> Result<(), Refusal> {
        let WindowSpec {
            window_name,
            partition_by,
            order_by,
            window_frame,
        } = window;
        none(
            window_name.as_ref().map(|name| format!("({name} …)")),
            "a window cannot extend another one: write it in full",
        )?;
        self.expressions(partition_by)?;
        self.sorted(order_by)?;
        let Some(WindowFrame {
            units: _,
            start_bound,
            end_bound,
        }) = window_frame
        else {
            return Ok(());
        };
        for bound in std::iter::once(start_bound).chain(end_bound) {
            match bound {
                WindowFrameBound::CurrentRow => {}
                WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => {
                    self.boxed(distance)?;
                }
            }
        }
        Ok(())
    }
}

fn literal(value: &Value) -> Result<(), Refusal> {
    match value {
        Value::Number(digits, false)
            if digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u64>().is_err() =>
        {
            Err(Refusal::of(
                digits,
                "write an integer of more than 64 bits as CAST('…' AS DECIMAL(38, 0))",
            ))
        }
        Value::Number(_, false) | Value::SingleQuotedString(_) | Value::Boolean(_) | Value::Null => Ok(()),
        other => Err(Refusal::of(other, ONE_FORM)),
    }
}

fn unary(operator: UnaryOperator) -> Result<(), Refusal> {
    match operator {
        UnaryOperator::Plus | UnaryOperator::Minus | UnaryOperator::Not => Ok(()),
        other => Err(Refusal::of(other, "the operator is not supported")),
    }
}

fn binary(operator: &BinaryOperator) -> Result<(), Refusal> {
    match operator {
        BinaryOperator::Plus
        | BinaryOperator::Minus
        | BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Modulo
        | BinaryOperator::StringConcat
        | BinaryOperator::Gt
        | BinaryOperator::Lt
        | BinaryOperator::GtEq
        | BinaryOperator::LtEq
        | BinaryOperator::Eq
        | BinaryOperator::NotEq
        | BinaryOperator::And
        | BinaryOperator::Or
        | BinaryOperator::BitwiseOr
        | BinaryOperator::BitwiseAnd
        | BinaryOperator::PGBitwiseXor
        | BinaryOperator::PGExp
        | BinaryOperator::AtArrow
        | BinaryOperator::ArrowAt
        | BinaryOperator::PGBitwiseShiftLeft
        | BinaryOperator::PGBitwiseShiftRight
        | BinaryOperator::PGRegexMatch
        | BinaryOperator::PGRegexIMatch
        | BinaryOperator::PGRegexNotMatch
        | BinaryOperator::PGRegexNotIMatch
        | BinaryOperator::PGLikeMatch
        | BinaryOperator::PGILikeMatch
        | BinaryOperator::PGNotLikeMatch
        | BinaryOperator::PGNotILikeMatch => Ok(()),
        other => Err(Refusal::of(other, "the operator is not supported")),
    }
}

fn type_(data_type: &DataType) -> Result<(), Refusal> {
    match data_type {
        DataType::Varchar(None)
        | DataType::CharacterVarying(None)
        | DataType::Char(None)
        | DataType::Text
        | DataType::String(None)
        | DataType::TinyInt(None)
        | DataType::SmallInt(None)
        | DataType::Int(None)
        | DataType::Int2(None)
        | DataType::Int4(None)
        | DataType::Int8(None)
        | DataType::Integer(None)
        | DataType::BigInt(None)
        | DataType::TinyIntUnsigned(None)
        | DataType::SmallIntUnsigned(None)
        | DataType::IntUnsigned(None)
        | DataType::IntegerUnsigned(None)
        | DataType::BigIntUnsigned(None)
        | DataType::Numeric(_)
        | DataType::Decimal(_)
        | DataType::Dec(_)
        | DataType::Float(_)
        | DataType::Float4
        | DataType::Float8
        | DataType::Real
        | DataType::Double(_)
        | DataType::DoublePrecision
        | DataType::Boolean
        | DataType::Bool
        | DataType::Date
        | DataType::Time(None, _)
        | DataType::Timestamp(_, _)
        | DataType::Interval {
            fields: None,
            precision: None,
        } => Ok(()),
        DataType::Array(ArrayElemTypeDef::SquareBracket(entry, None)) => type_(entry),
        other => Err(Refusal::of(
            other,
            "the types are VARCHAR, the integer types, DECIMAL, REAL, DOUBLE, BOOLEAN, DATE, TIME, TIMESTAMP and INTERVAL",
        )),
    }
}

fn date_part(field: &DateTimeField) -> Result<(), Refusal> {
    match field {
        DateTimeField::Custom(name) => Err(Refusal::of(name, "it is not a part of a date or time")),
        _ => Ok(()),
    }
}
