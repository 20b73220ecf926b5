//! Functions and operators of regular expressions, as in `PostgreSQL` (section 9.7.3 of its manual).
//!
//! Invariant: positions and lengths count characters. A function of a null is null.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, BooleanArray, Int64Array, Int64Builder, ListBuilder, StringBuilder, StringViewArray,
    StringViewBuilder, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{BinaryExpr, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable as _, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::pattern::{Flags, Pattern, after, translate};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum RegexKind {
    /// The operators with a pattern that is no literal.
    Matches {
        ignore_case: bool,
        negated: bool,
    },
    /// `substring(… FROM …)`.
    Substring,
    Count,
    Instr,
    Like,
    Match,
    Replace,
    SplitToArray,
    Substr,
}

const REGEX_FUNCTIONS: [RegexKind; 7] = [
    RegexKind::Count,
    RegexKind::Instr,
    RegexKind::Like,
    RegexKind::Match,
    RegexKind::Replace,
    RegexKind::SplitToArray,
    RegexKind::Substr,
];

impl RegexKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Matches { .. } => "regexp_matches_operator",
            Self::Substring => "substring_of_pattern",
            Self::Count => "regexp_count",
            Self::Instr => "regexp_instr",
            Self::Like => "regexp_like",
            Self::Match => "regexp_match",
            Self::Replace => "regexp_replace",
            Self::SplitToArray => "regexp_split_to_array",
            Self::Substr => "regexp_substr",
        }
    }

    /// Returns for each argument if it is a text, or `None` if the number of arguments is wrong. `fourth` tells if the
    /// fourth argument is a text.
    fn texts(self, arguments: usize, fourth: bool) -> Option<&'static [bool]> {
        let all: &[bool] = match self {
            Self::Matches { .. } | Self::Substring => &[true, true],
            Self::Count => &[true, true, false, true],
            Self::Instr => &[true, true, false, false, false, true, false],
            Self::Like | Self::Match | Self::SplitToArray => &[true, true, true],
            Self::Replace if fourth => &[true, true, true, true],
            Self::Replace => &[true, true, true, false, false, true],
            Self::Substr => &[true, true, false, false, true, false],
        };
        let least = if self == Self::Replace { 3 } else { 2 };
        (arguments >= least).then(|| all.get(..arguments)).flatten()
    }
}

/// Returns the engine's functions with those of regular expressions replaced.
pub(super) fn functions(mut all: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    all.retain(|function| REGEX_FUNCTIONS.iter().all(|kind| kind.name() != function.name()));
    all.extend(REGEX_FUNCTIONS.iter().map(|kind| Arc::new(function(*kind))));
    all
}

fn function(kind: RegexKind) -> ScalarUDF {
    ScalarUDF::new_from_impl(RegexFunction {
        kind,
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

/// Replaces an operator of regular expressions, or returns `None` if the expression is none. A pattern that is a literal
/// is translated, so the engine's own operator matches it.
pub(super) fn operator(expr: &BinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    let (ignore_case, negated) = match expr.op {
        Operator::RegexMatch => (false, false),
        Operator::RegexIMatch => (true, false),
        Operator::RegexNotMatch => (false, true),
        Operator::RegexNotIMatch => (true, true),
        _ => return Ok(None),
    };
    // A cast of a literal is a literal to everybody.
    let mut pattern = &*expr.right;
    while let Expr::Cast(cast) = pattern {
        pattern = &cast.expr;
    }
    if let Expr::Literal(literal, _) = pattern
        && let Some(Some(text)) = literal.try_as_str()
    {
        let translated = translate(text, Flags::operator(ignore_case)).map_err(|problem| invalid(&problem))?;
        // Only compilation shows if a pattern is too large, so it is compiled here, before the first row.
        Pattern::new(text, if ignore_case { "i" } else { "" }).map_err(DataFusionError::Plan)?;
        let op = if negated {
            Operator::RegexNotMatch
        } else {
            Operator::RegexMatch
        };
        let kind = expr.right.get_type(schema)?;
        let right = Expr::Literal(ScalarValue::from(translated.text).cast_to(&kind)?, None);
        return Ok(Some(Expr::BinaryExpr(BinaryExpr::new(
            expr.left.clone(),
            op,
            Box::new(right),
        ))));
    }
    if matches!(pattern, Expr::Literal(..)) {
        return Ok(None);
    }
    let function = function(RegexKind::Matches { ignore_case, negated });
    let operands = [&expr.left, &expr.right]
        .map(|operand| text(operand, schema))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    Ok(Some(Expr::ScalarFunction(ScalarFunction::new_udf(
        function.into(),
        operands,
    ))))
}

fn text(operand: &Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(if operand.get_type(schema)? == DataType::Utf8View {
        operand.clone()
    } else {
        datafusion::logical_expr::cast(operand.clone(), DataType::Utf8View)
    })
}

fn invalid(problem: &str) -> DataFusionError {
    DataFusionError::Plan(format!("the regular expression is not valid: {problem}"))
}

/// Planner of `substring(… FROM 'pattern')`.
#[derive(Debug)]
pub(super) struct Substrings;

impl ExprPlanner for Substrings {
    fn plan_substring(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let is_text = |expr: &Expr| matches!(expr, Expr::Literal(literal, _) if literal.data_type().is_string());
        match &args[..] {
            [_, pattern] if is_text(pattern) => {
                let call = ScalarFunction::new_udf(function(RegexKind::Substring).into(), args);
                Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
            }
            _ => Ok(PlannerResult::Original(args)),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexFunction {
    kind: RegexKind,
    signature: Signature,
}

impl ScalarUDFImpl for RegexFunction {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        let fourth = kinds.len() == 4 && kinds.get(3).is_some_and(DataType::is_string);
        let texts = self.kind.texts(kinds.len(), fourth);
        let texts = texts.ok_or_else(|| DataFusionError::Plan(format!("{name}() has no {} arguments", kinds.len())))?;
        let coerced = kinds.iter().zip(texts).enumerate().map(|(index, (kind, text))| {
            let (expected, fits) = if *text {
                (DataType::Utf8View, kind.is_string())
            } else {
                (DataType::Int64, kind.is_integer())
            };
            if fits || kind.is_null() {
                return Ok(expected);
            }
            let expected = if *text {
                "a text: cast it with ::text"
            } else {
                "an integer"
            };
            Err(DataFusionError::Plan(format!(
                "argument {} of {name}() must be {expected}",
                index + 1
            )))
        });
        coerced.collect()
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.kind {
            RegexKind::Matches { .. } | RegexKind::Like => DataType::Boolean,
            RegexKind::Count | RegexKind::Instr => DataType::Int64,
            RegexKind::Match | RegexKind::SplitToArray => DataType::new_list(DataType::Utf8, true),
            RegexKind::Replace | RegexKind::Substr | RegexKind::Substring => DataType::Utf8View,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };
        let arguments = RegexArguments::new(self.kind, &args.args, rows)?;
        let result = match arguments {
            Some(arguments) => arguments.computed(rows)?,
            None => new_null_array(args.return_field.data_type(), rows),
        };
        Ok(if scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        } else {
            ColumnarValue::Array(result)
        })
    }
}

/// One argument for all rows, or one for each.
enum Argument<T> {
    One(T),
    Each(T),
}

impl<T> Argument<T> {
    fn at(&self, row: usize) -> (&T, usize) {
        match self {
            Self::One(all) => (all, 0),
            Self::Each(all) => (all, row),
        }
    }
}

/// The arguments of a call.
struct RegexArguments {
    kind: RegexKind,
    texts: Vec<Option<Argument<StringViewArray>>>,
    numbers: Vec<Option<Argument<Int64Array>>>,
}

impl RegexArguments {
    /// Reads the arguments. `None` if one of them is null in every row.
    fn new(kind: RegexKind, args: &[ColumnarValue], rows: usize) -> Result<Option<Self>> {
        let (mut texts, mut numbers) = (Vec::new(), Vec::new());
        for arg in args {
            let (one, array) = match arg {
                ColumnarValue::Scalar(value) if value.is_null() => return Ok(None),
                ColumnarValue::Scalar(value) => (true, value.to_array()?),
                ColumnarValue::Array(array) => (false, array.slice(0, rows)),
            };
            if array.data_type().is_integer() {
                let all = cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone();
                numbers.push(Some(if one { Argument::One(all) } else { Argument::Each(all) }));
                texts.push(None);
            } else {
                let all = cast(&array, &DataType::Utf8View)?.as_string_view().clone();
                texts.push(Some(if one { Argument::One(all) } else { Argument::Each(all) }));
                numbers.push(None);
            }
        }
        Ok(Some(Self { kind, texts, numbers }))
    }

    fn text(&self, index: usize, row: usize) -> Option<&str> {
        let (all, row) = self.texts.get(index)?.as_ref()?.at(row);
        all.is_valid(row).then(|| all.value(row))
    }

    /// Returns a number from 0 to the greatest place, or the default if the argument is not given.
    fn number(&self, index: usize, row: usize, name: &str, least: i64, default: usize) -> Result<usize> {
        let Some(Some(argument)) = self.numbers.get(index) else {
            return Ok(default);
        };
        let (all, row) = argument.at(row);
        let number = all.value(row);
        if number < least {
            let problem = format!(
                "the {name} of {}() must be at least {least}, not {number}",
                self.kind.name()
            );
            return Err(DataFusionError::Execution(problem));
        }
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// Returns true if an argument is null in this row.
    fn is_null(&self, row: usize) -> bool {
        let texts = self
            .texts
            .iter()
            .flatten()
            .map(|all| all.at(row))
            .any(|(all, row)| all.is_null(row));
        texts
            || self
                .numbers
                .iter()
                .flatten()
                .map(|all| all.at(row))
                .any(|(all, row)| all.is_null(row))
    }

    /// Returns the index of the flags.
    fn flags(&self) -> usize {
        match self.kind {
            RegexKind::Matches { .. } | RegexKind::Substring => usize::MAX,
            RegexKind::Like | RegexKind::Match | RegexKind::SplitToArray => 2,
            RegexKind::Count => 3,
            RegexKind::Substr => 4,
            RegexKind::Instr => 5,
            RegexKind::Replace => {
                if self.texts.len() == 4 && self.texts[3].is_some() {
                    3
                } else {
                    5
                }
            }
        }
    }

    fn computed(&self, rows: usize) -> Result<ArrayRef> {
        let mut patterns: HashMap<(String, String), Pattern> = HashMap::new();
        let mut out = ResultBuilder::of(self.kind);
        // Most calls have one pattern for all rows, so it is looked up once.
        let mut last: Option<(String, String)> = None;
        for row in 0..rows {
            if self.is_null(row) {
                out.null();
                continue;
            }
            let pattern = self.text(1, row).unwrap_or_default();
            let flags = match self.kind {
                RegexKind::Matches { ignore_case: true, .. } => "i",
                _ => self.text(self.flags(), row).unwrap_or_default(),
            };
            let known = last.as_ref().filter(|(one, other)| one == pattern && other == flags);
            if known.is_none() {
                let key = (pattern.to_owned(), flags.to_owned());
                if !patterns.contains_key(&key) {
                    let compiled = Pattern::new(pattern, flags).map_err(DataFusionError::Execution)?;
                    if compiled.global && self.kind != RegexKind::Replace {
                        let problem = format!("{}() does not have the flag `g`", self.kind.name());
                        return Err(DataFusionError::Execution(problem));
                    }
                    // A column of patterns must not fill the memory.
                    if patterns.len() > MAX_PATTERNS {
                        patterns.clear();
                    }
                    patterns.insert(key.clone(), compiled);
                }
                last = Some(key);
            }
            let Some(pattern) = last.as_ref().and_then(|key| patterns.get(key)) else {
                continue;
            };
            self.one(row, self.text(0, row).unwrap_or_default(), pattern, &mut out)?;
        }
        Ok(out.finish())
    }

    fn one(&self, row: usize, text: &str, pattern: &Pattern, out: &mut ResultBuilder) -> Result<()> {
        match (self.kind, out) {
            (RegexKind::Matches { negated, .. }, ResultBuilder::Boolean(out)) => {
                out.push(Some(pattern.is_in(text) != negated));
            }
            (RegexKind::Like, ResultBuilder::Boolean(out)) => out.push(Some(pattern.is_in(text))),
            (RegexKind::Count, ResultBuilder::Number(out)) => {
                let start = self.number(2, row, "start", 1, 1)?;
                let count = byte_of(text, start).map_or(0, |from| pattern.all(text, from).count());
                out.append_value(i64::try_from(count).unwrap_or(i64::MAX));
            }
            (RegexKind::Instr, ResultBuilder::Number(out)) => {
                let at_end = self.number(4, row, "end option", 0, 0)?;
                if at_end > 1 {
                    let problem = format!("the end option of regexp_instr() must be 0 or 1, not {at_end}");
                    return Err(DataFusionError::Execution(problem));
                }
                let found = self.nth(row, text, pattern, 6)?;
                let place = found.map(|found| if at_end == 1 { found.end } else { found.start });
                let place = place.map_or(0, |place| text[..place].chars().count() + 1);
                out.append_value(i64::try_from(place).unwrap_or(i64::MAX));
            }
            (RegexKind::Substr, ResultBuilder::Text(out)) => {
                out.append_option(self.nth(row, text, pattern, 5)?.map(|found| &text[found]));
            }
            (RegexKind::Substring, ResultBuilder::Text(out)) => {
                let found = pattern.find(text, 0);
                let part = found.and_then(|found| match pattern.groups() {
                    0 => Some(found),
                    _ => pattern.captures(text, &found).swap_remove(0),
                });
                out.append_option(part.map(|part| &text[part]));
            }
            (RegexKind::Match, ResultBuilder::List(out)) => {
                let found = pattern.find(text, 0);
                if let Some(found) = &found {
                    if pattern.groups() == 0 {
                        out.values().append_value(&text[found.clone()]);
                    }
                    for group in pattern.captures(text, found) {
                        out.values().append_option(group.map(|group| &text[group]));
                    }
                }
                out.append(found.is_some());
            }
            (RegexKind::SplitToArray, ResultBuilder::List(out)) => {
                let (mut from, mut before) = (0, 0);
                for found in pattern.all(text, 0) {
                    // An empty match at either end, or right behind another one, splits nothing.
                    if found.start < text.len() && found.end > before {
                        out.values().append_value(&text[from..found.start]);
                        from = found.end;
                    }
                    before = found.end;
                }
                out.values().append_value(&text[from..]);
                out.append(true);
            }
            (RegexKind::Replace, ResultBuilder::Text(out)) => out.append_value(self.replaced(row, text, pattern)?),
            _ => {}
        }
        Ok(())
    }

    /// Returns the match that the arguments of the row choose: where the search starts, which match, and which group.
    fn nth(&self, row: usize, text: &str, pattern: &Pattern, group: usize) -> Result<Option<Range<usize>>> {
        let start = self.number(2, row, "start", 1, 1)?;
        let which = self.number(3, row, "number of the match", 1, 1)?;
        let group = self.number(group, row, "number of the group", 0, 0)?;
        let Some(from) = byte_of(text, start) else {
            return Ok(None);
        };
        let Some(found) = pattern.all(text, from).nth(which - 1) else {
            return Ok(None);
        };
        if group == 0 {
            return Ok(Some(found));
        }
        Ok(pattern.captures(text, &found).into_iter().nth(group - 1).flatten())
    }

    fn replaced(&self, row: usize, text: &str, pattern: &Pattern) -> Result<String> {
        let replacement = self.text(2, row).unwrap_or_default();
        let start = self.number(3, row, "start", 1, 1)?;
        // Zero, as the flag `g`, replaces every match.
        let given = matches!(self.numbers.get(4), Some(Some(_)));
        let which = self.number(4, row, "number of the match", 0, usize::from(!pattern.global))?;
        let which = if given || !pattern.global { which } else { 0 };
        let mut out = String::with_capacity(text.len());
        let (mut copied, mut count) = (0, 0);
        let mut next = byte_of(text, start);
        while let Some(from) = next {
            let Some(found) = pattern.find(text, from) else {
                break;
            };
            next = after(text, &found);
            count += 1;
            if which != 0 && count != which {
                continue;
            }
            out.push_str(&text[copied..found.start]);
            replace(&mut out, text, replacement, pattern, &found);
            copied = found.end;
            if which != 0 {
                break;
            }
        }
        out.push_str(&text[copied..]);
        Ok(out)
    }
}

/// Maximum number of compiled patterns that are kept.
const MAX_PATTERNS: usize = 64;

/// Returns the byte of a character, counted from 1, or `None` if it is behind the end.
fn byte_of(text: &str, character: usize) -> Option<usize> {
    let skipped = character.saturating_sub(1);
    let mut places = text.char_indices().map(|(place, _)| place).chain([text.len()]);
    places.nth(skipped)
}

/// Writes a replacement, with `\1` for a group, `\&` for the match and `\\` for a backslash.
fn replace(out: &mut String, text: &str, replacement: &str, pattern: &Pattern, found: &Range<usize>) {
    let mut rest = replacement;
    let mut groups = None;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let next = after.chars().next();
        rest = match next {
            Some('&') => {
                out.push_str(&text[found.clone()]);
                &after[1..]
            }
            Some('\\') => {
                out.push('\\');
                &after[1..]
            }
            Some(digit @ '1'..='9') => {
                let groups = groups.get_or_insert_with(|| pattern.captures(text, found));
                let index = digit
                    .to_digit(10)
                    .and_then(|digit| usize::try_from(digit).ok())
                    .unwrap_or(1)
                    - 1;
                if let Some(Some(group)) = groups.get(index) {
                    out.push_str(&text[group.clone()]);
                }
                &after[1..]
            }
            _ => {
                out.push('\\');
                after
            }
        };
    }
    out.push_str(rest);
}

/// Builder of the result of a function.
enum ResultBuilder {
    Boolean(Vec<Option<bool>>),
    Number(Int64Builder),
    Text(StringViewBuilder),
    List(ListBuilder<StringBuilder>),
}

impl ResultBuilder {
    fn of(kind: RegexKind) -> Self {
        match kind {
            RegexKind::Matches { .. } | RegexKind::Like => Self::Boolean(Vec::new()),
            RegexKind::Count | RegexKind::Instr => Self::Number(Int64Builder::new()),
            RegexKind::Match | RegexKind::SplitToArray => Self::List(ListBuilder::new(StringBuilder::new())),
            RegexKind::Replace | RegexKind::Substr | RegexKind::Substring => Self::Text(StringViewBuilder::new()),
        }
    }

    fn null(&mut self) {
        match self {
            Self::Boolean(out) => out.push(None),
            Self::Number(out) => out.append_null(),
            Self::Text(out) => out.append_null(),
            Self::List(out) => out.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Boolean(out) => Arc::new(BooleanArray::from(out)),
            Self::Number(mut out) => Arc::new(out.finish()),
            Self::Text(mut out) => Arc::new(out.finish()),
            Self::List(mut out) => Arc::new(out.finish()),
        }
    }
}
