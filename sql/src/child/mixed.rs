//! Refusal of operands of different kinds, which the engine would convert in silence until a row cannot be converted.
//!
//! Invariant: as in `PostgreSQL`, only a text of the statement without a cast takes the type of what it is compared
//! with. The rule runs before type coercion.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, BinaryExpr, Case, Cast, InList, InSubquery, Like, ScalarFunction, TryCast,
    WindowFunctionParams,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Expr, ExprSchemable as _, LogicalPlan, Operator, WindowFrameBound, WindowFrameUnits, cast,
};
use datafusion::optimizer::AnalyzerRule;

use super::numeric::is_decimal;

/// Functions whose first argument is a text.
const OF_TEXT: [&str; 23] = [
    "ascii",
    "bit_length",
    "btrim",
    "character_length",
    "contains",
    "ends_with",
    "find_in_set",
    "initcap",
    "left",
    "levenshtein",
    "lower",
    "ltrim",
    "octet_length",
    "overlay",
    "replace",
    "reverse",
    "right",
    "rtrim",
    "split_part",
    "starts_with",
    "strpos",
    "substr",
    "translate",
];
/// Other functions whose first argument is a text.
const ALSO_OF_TEXT: [&str; 4] = ["string_agg", "string_to_array", "substr_index", "upper"];
/// Functions of numbers, apart from those of [`super::doubles`].
const OF_NUMBERS: [&str; 16] = [
    "abs",
    "avg",
    "corr",
    "covar_pop",
    "covar_samp",
    "factorial",
    "gcd",
    "lcm",
    "median",
    "percentile_cont",
    "stddev",
    "stddev_pop",
    "sum",
    "to_hex",
    "var",
    "var_pop",
];
/// Functions whose arguments, and whose result, have one type.
const OF_ONE_TYPE: [&str; 8] = [
    "coalesce",
    "greatest",
    "ifnull",
    "least",
    "make_array",
    "nullif",
    "nvl",
    "nvl2",
];

/// The analyzer rule. It runs before those of the engine.
#[derive(Debug)]
pub(super) struct MixedTypesRule;

impl AnalyzerRule for MixedTypesRule {
    fn name(&self) -> &'static str {
        "mixed"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|plan| {
            if let LogicalPlan::TableScan(_) = plan {
                return Ok(Transformed::no(plan));
            }
            between_inputs(&plan)?;
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            let replaced = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let replaced = expr.transform_up(|expr| replaced(expr, &schema))?;
                Ok(replaced.update_data(|expr| name.restore(expr)))
            })?;
            replaced.map_data(LogicalPlan::recompute_schema)
        })?;
        Ok(plan.data)
    }
}

/// Kind of a value. Values of one kind can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Text,
    Number,
    Boolean,
    Time,
}

impl ValueKind {
    fn of(kind: &DataType) -> Option<Self> {
        if kind.is_string() {
            Some(Self::Text)
        } else if kind.is_numeric() {
            Some(Self::Number)
        } else if kind.is_temporal() {
            Some(Self::Time)
        } else {
            (*kind == DataType::Boolean).then_some(Self::Boolean)
        }
    }

    const fn said(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::Time => "a date or time",
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Self::Text => "::text",
            Self::Number => "::numeric",
            Self::Boolean => "::boolean",
            Self::Time => "::timestamp",
        }
    }
}

/// Checks the columns of a UNION and of JOIN … USING.
fn between_inputs(plan: &LogicalPlan) -> Result<()> {
    match plan {
        LogicalPlan::Union(union) => {
            let Some((first, rest)) = union.inputs.split_first() else {
                return Ok(());
            };
            for other in rest {
                for (one, other) in first.schema().fields().iter().zip(other.schema().fields()) {
                    match (ValueKind::of(one.data_type()), ValueKind::of(other.data_type())) {
                        (Some(one_kind), Some(other_kind)) if one_kind != other_kind => {
                            let problem = format!(
                                "the column `{}` of a UNION is {} in one SELECT and {} in another one: cast one of them",
                                one.name(),
                                one_kind.said(),
                                other_kind.said()
                            );
                            return Err(DataFusionError::Plan(problem));
                        }
                        _ => {}
                    }
                }
            }
            Ok(())
        }
        LogicalPlan::Join(join) => {
            for (left, right) in &join.on {
                let left_kind = left
                    .get_type(join.left.schema())
                    .ok()
                    .and_then(|kind| ValueKind::of(&kind));
                let right_kind = right
                    .get_type(join.right.schema())
                    .ok()
                    .and_then(|kind| ValueKind::of(&kind));
                if let (Some(one), Some(other)) = (left_kind, right_kind)
                    && one != other
                {
                    return Err(compared(left, one, right, other));
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns the words for an expression: a column or a literal as it is written.
fn shown(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Alias(alias) => shown(&alias.expr),
        Expr::Column(column) => Some(column.name.clone()),
        Expr::Literal(value, _) if value.data_type().is_string() => {
            value.try_as_str().flatten().map(|text| format!("'{text}'"))
        }
        Expr::Literal(value, _) => Some(value.to_string()),
        _ => None,
    }
}

/// Returns the error of two expressions of different kinds.
fn compared(left: &Expr, left_kind: ValueKind, right: &Expr, right_kind: ValueKind) -> DataFusionError {
    let named = |expr: &Expr, kind: ValueKind| {
        let kind = kind.said();
        shown(expr).map_or_else(|| kind.to_owned(), |shown| format!("`{shown}`, which is {kind},"))
    };
    let (changed, to) = if matches!(right, Expr::Literal(..)) {
        (right, left_kind)
    } else {
        (left, right_kind)
    };
    let example = shown(changed).map_or_else(String::new, |shown| format!(", such as {shown}{}", to.remedy()));
    DataFusionError::Plan(format!(
        "{} cannot be used with {} without a cast: cast one of them{example}",
        named(left, left_kind),
        named(right, right_kind),
    ))
}

/// An operand with its type.
struct ComparedOperand {
    kind: Option<ValueKind>,
    type_: Option<DataType>,
    /// A text of the statement without a cast.
    untyped: bool,
}

impl ComparedOperand {
    fn of(expr: &Expr, schema: &DFSchema) -> Self {
        let type_ = expr.get_type(schema).ok();
        Self {
            kind: type_.as_ref().and_then(ValueKind::of),
            untyped: matches!(expr, Expr::Literal(value, _) if value.data_type().is_string()),
            type_,
        }
    }
}

/// Gives the untyped texts among expressions of one type that type, and checks that all have one kind.
fn unified(exprs: &mut [&mut Expr], schema: &DFSchema) -> Result<bool> {
    let operands: Vec<ComparedOperand> = exprs.iter().map(|expr| ComparedOperand::of(expr, schema)).collect();
    let typed = |operand: &&ComparedOperand| !operand.untyped && operand.kind.is_some();
    let Some(first) = operands.iter().position(|operand| typed(&operand)) else {
        return Ok(false);
    };
    let kind = operands[first].kind;
    for (index, operand) in operands.iter().enumerate() {
        if typed(&operand)
            && operand.kind != kind
            && let (Some(one), Some(other)) = (kind, operand.kind)
        {
            return Err(compared(exprs[first], one, exprs[index], other));
        }
    }
    // A text takes the widest of the types: the first one that is no integer.
    let types = || {
        operands
            .iter()
            .filter(typed)
            .filter_map(|operand| operand.type_.as_ref())
    };
    let Some(to) = types().find(|kind| !kind.is_integer()).or_else(|| types().next()) else {
        return Ok(false);
    };
    let mut changed = false;
    for (expr, _) in exprs.iter_mut().zip(&operands).filter(|(_, operand)| operand.untyped) {
        if let Some(value) = read(expr, kind, to)? {
            **expr = value;
            changed = true;
        }
    }
    Ok(changed)
}

/// Reads an untyped text as a value of a type. `None` leaves it to the engine.
fn read(expr: &Expr, kind: Option<ValueKind>, to: &DataType) -> Result<Option<Expr>> {
    let Expr::Literal(value, metadata) = expr else {
        return Ok(None);
    };
    let Some(Some(text)) = value.try_as_str() else {
        return Ok(None);
    };
    let trimmed = text.trim();
    let read = match kind {
        Some(ValueKind::Number) if to.is_integer() => {
            let integer = trimmed.parse::<i64>().map(|integer| ScalarValue::Int64(Some(integer)));
            integer.ok().ok_or_else(|| unreadable(text, "an integer"))?
        }
        Some(ValueKind::Number) if to.is_floating() => {
            let double = trimmed
                .parse::<f64>()
                .ok()
                .ok_or_else(|| unreadable(text, "a number"))?;
            if double.is_infinite() && trimmed.contains(|digit: char| digit.is_ascii_digit()) {
                return Err(unreadable(text, "a number of the range of a double"));
            }
            ScalarValue::Float64(Some(double))
        }
        Some(ValueKind::Number) => return Ok(Some(cast(expr.clone(), to.clone()))),
        Some(ValueKind::Boolean) => {
            let lower = trimmed.to_ascii_lowercase();
            let begins = |word: &str| !lower.is_empty() && word.starts_with(&lower);
            let yes = begins("true") || begins("yes") || lower == "on" || lower == "1";
            let no = begins("false") || begins("no") || lower == "of" || lower == "off" || lower == "0";
            if !yes && !no {
                return Err(unreadable(text, "a boolean"));
            }
            ScalarValue::Boolean(Some(yes))
        }
        Some(ValueKind::Text | ValueKind::Time) | None => return Ok(None),
    };
    Ok(Some(Expr::Literal(read, metadata.clone())))
}

/// Reads a text of the statement beside a boolean.
pub(super) fn boolean(text: Expr) -> Result<Expr> {
    let read = read(&text, Some(ValueKind::Boolean), &DataType::Boolean)?;
    Ok(read.unwrap_or(text))
}

fn unreadable(text: &str, what: &str) -> DataFusionError {
    let shown: String = text.chars().take(60).collect();
    DataFusionError::Plan(format!("the text `{shown}` is not {what}"))
}

/// Checks that an expression is a text, for an operator or a function that takes one.
fn is_text(expr: &Expr, schema: &DFSchema, of: &str) -> Result<()> {
    let operand = ComparedOperand::of(expr, schema);
    match operand.kind {
        Some(kind) if kind != ValueKind::Text => {
            let shown = shown(expr).map_or_else(|| "its operand".to_owned(), |shown| format!("`{shown}`"));
            Err(DataFusionError::Plan(format!(
                "{of} takes a text, and {shown} is {}: cast it with ::text",
                kind.said()
            )))
        }
        _ => Ok(()),
    }
}

/// Checks that an expression is no text, for a function of numbers.
fn is_no_text(expr: &Expr, schema: &DFSchema, of: &str) -> Result<()> {
    let operand = ComparedOperand::of(expr, schema);
    if operand.kind == Some(ValueKind::Text) && !operand.untyped {
        let shown = shown(expr).map_or_else(|| "its operand".to_owned(), |shown| format!("`{shown}`"));
        let problem = format!("{of} takes a number, and {shown} is a text: cast it with ::numeric");
        return Err(DataFusionError::Plan(problem));
    }
    Ok(())
}

/// Gives both sides of an operator one type, or checks that they have the one that it takes. Returns true if a side was
/// changed.
fn of_operator(left: &mut Expr, op: Operator, right: &mut Expr, schema: &DFSchema) -> Result<bool> {
    Ok(match op {
        Operator::RegexMatch
        | Operator::RegexIMatch
        | Operator::RegexNotMatch
        | Operator::RegexNotIMatch
        | Operator::LikeMatch
        | Operator::ILikeMatch
        | Operator::NotLikeMatch
        | Operator::NotILikeMatch => {
            is_text(left, schema, &format!("`{op}`"))?;
            is_text(right, schema, &format!("`{op}`"))?;
            false
        }
        Operator::BitwiseAnd
        | Operator::BitwiseOr
        | Operator::BitwiseXor
        | Operator::BitwiseShiftLeft
        | Operator::BitwiseShiftRight => {
            of_whole(left, schema, op)?;
            of_whole(right, schema, op)?;
            false
        }
        op if op.supports_propagation() => unified(&mut [left, right], schema)?,
        Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo => {
            let numbers = [&*left, &*right].map(|side| ComparedOperand::of(side, schema).kind);
            // Dates and intervals are computed with, too.
            if numbers.contains(&Some(ValueKind::Time)) {
                false
            } else {
                unified(&mut [left, right], schema)?
            }
        }
        _ => false,
    })
}

fn replaced(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut expr = expr;
    let changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => of_operator(left, *op, right, schema)?,
        Expr::Like(Like { expr, pattern, .. }) => {
            is_text(expr, schema, "LIKE")?;
            is_text(pattern, schema, "LIKE")?;
            false
        }
        Expr::Between(Between { expr, low, high, .. }) => unified(&mut [&mut **expr, &mut **low, &mut **high], schema)?,
        Expr::InList(InList { expr, list, .. }) => {
            let mut all: Vec<&mut Expr> = std::iter::once(&mut **expr).chain(list.iter_mut()).collect();
            unified(&mut all, schema)?
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
            let column = subquery
                .subquery
                .schema()
                .fields()
                .first()
                .and_then(|field| ValueKind::of(field.data_type()));
            let operand = ComparedOperand::of(expr, schema);
            if let (false, Some(one), Some(other)) = (operand.untyped, operand.kind, column)
                && one != other
            {
                let problem = format!("IN compares {} with {}: cast one of them", one.said(), other.said());
                return Err(DataFusionError::Plan(problem));
            }
            false
        }
        Expr::Case(Case {
            expr,
            when_then_expr,
            else_expr,
        }) => {
            let mut changed = false;
            if expr.is_none() {
                when_then_expr
                    .iter()
                    .try_for_each(|(when, _)| is_condition(when, schema))?;
            }
            if let Some(operand) = expr {
                let whens = when_then_expr.iter_mut().map(|(when, _)| &mut **when);
                let mut all: Vec<&mut Expr> = std::iter::once(&mut **operand).chain(whens).collect();
                changed |= unified(&mut all, schema)?;
            }
            let thens = when_then_expr.iter_mut().map(|(_, then)| &mut **then);
            let mut all: Vec<&mut Expr> = thens.chain(else_expr.iter_mut().map(|expr| &mut **expr)).collect();
            changed | unified(&mut all, schema)?
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let name = func.name();
            if OF_ONE_TYPE.contains(&name) {
                let from = usize::from(name == "nvl2");
                let mut all: Vec<&mut Expr> = args.iter_mut().skip(from).collect();
                unified(&mut all, schema)?
            } else {
                of_function(name, args, schema)?;
                false
            }
        }
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            of_function(func.name(), &params.args, schema)?;
            false
        }
        Expr::WindowFunction(function) => {
            ranged(&function.params, schema)?;
            false
        }
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            let (from, to) = (ComparedOperand::of(expr, schema).kind, ValueKind::of(field.data_type()));
            if let (
                Some(from @ (ValueKind::Number | ValueKind::Time)),
                Some(to @ (ValueKind::Number | ValueKind::Time)),
            ) = (from, to)
                && from != to
            {
                let problem = format!(
                    "{} cannot be cast to {}: use to_timestamp(), or extract(epoch FROM …)",
                    from.said(),
                    to.said()
                );
                return Err(DataFusionError::Plan(problem));
            }
            false
        }
        _ => false,
    };
    Ok(if changed {
        Transformed::yes(expr)
    } else {
        Transformed::no(expr)
    })
}

/// Checks an operand of an operator on bits.
fn of_whole(expr: &Expr, schema: &DFSchema, op: Operator) -> Result<()> {
    match expr.get_type(schema) {
        Ok(kind) if kind.is_floating() || is_decimal(&kind) => Err(DataFusionError::Plan(format!(
            "`{op}` takes integers: cast its operands, such as x::bigint"
        ))),
        _ => Ok(()),
    }
}

/// Checks a condition of CASE.
fn is_condition(expr: &Expr, schema: &DFSchema) -> Result<()> {
    let operand = ComparedOperand::of(expr, schema);
    match operand.kind {
        Some(kind @ (ValueKind::Number | ValueKind::Time | ValueKind::Text)) if !operand.untyped => {
            let problem = format!("a condition after WHEN is {}: compare it, such as x > 0", kind.said());
            Err(DataFusionError::Plan(problem))
        }
        _ => Ok(()),
    }
}

/// Checks the order of a frame with RANGE and a distance. The engine takes all texts for equally near.
fn ranged(params: &WindowFunctionParams, schema: &DFSchema) -> Result<()> {
    let frame = &params.window_frame;
    let is_distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => !distance.is_null(),
        WindowFrameBound::CurrentRow => false,
    };
    let kinds = || {
        params
            .order_by
            .iter()
            .map(|by| ComparedOperand::of(&by.expr, schema).kind)
    };
    if frame.units == WindowFrameUnits::Range
        && [&frame.start_bound, &frame.end_bound].into_iter().any(is_distance)
        && kinds().any(|kind| matches!(kind, Some(ValueKind::Text | ValueKind::Boolean)))
    {
        let problem = "a frame with RANGE and a distance needs one ORDER BY column of numbers or times";
        return Err(DataFusionError::Plan(problem.to_owned()));
    }
    Ok(())
}

fn of_function(name: &str, args: &[Expr], schema: &DFSchema) -> Result<()> {
    let Some(first) = args.first() else {
        return Ok(());
    };
    let called = format!("{name}()");
    if OF_TEXT.contains(&name) || ALSO_OF_TEXT.contains(&name) {
        is_text(first, schema, &called)
    } else if OF_NUMBERS.contains(&name) || super::doubles::is_of_doubles(name) {
        args.iter().try_for_each(|arg| is_no_text(arg, schema, &called))
    } else {
        Ok(())
    }
}
