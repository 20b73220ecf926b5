//! Functions of lists with the meaning that they have in `PostgreSQL`: a subscript counts from 1 and never from the end,
//! an empty list has no length, and every equal entry is removed or replaced.
//!
//! Invariant: a function keeps the signature and the result type of the engine's function of the same name.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, StringArray, UInt32Array, UInt64Array,
    make_comparator, new_null_array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{SortOptions, cast, interleave, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawFieldAccessExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, GetFieldAccess, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::numeric::is_decimal;
use super::{float_text, numeric};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ArrayKind {
    Element,
    /// `= ANY`, which the engine plans as `array_has`.
    Has,
    Slice,
    Remove,
    Replace,
    Position,
    Positions,
    Length,
    Cardinality,
    Dimensions,
    Joined,
    Split,
}

/// Returns the function that replaces the engine's function, or `None` if the engine's is right.
pub(super) fn replacement(function: &Arc<ScalarUDF>) -> Option<Arc<ScalarUDF>> {
    let kind = match function.name() {
        "array_element" => ArrayKind::Element,
        "array_has" => ArrayKind::Has,
        "array_slice" => ArrayKind::Slice,
        "array_remove" => ArrayKind::Remove,
        "array_replace" => ArrayKind::Replace,
        "array_position" => ArrayKind::Position,
        "array_positions" => ArrayKind::Positions,
        "array_length" => ArrayKind::Length,
        "cardinality" => ArrayKind::Cardinality,
        "array_ndims" => ArrayKind::Dimensions,
        "array_to_string" => ArrayKind::Joined,
        "string_to_array" => ArrayKind::Split,
        _ => return None,
    };
    // A second pass of the rule finds the function replaced already.
    if function.inner().downcast_ref::<Lists>().is_some() {
        return None;
    }
    let inner = Arc::clone(function);
    Some(Arc::new(ScalarUDF::new_from_impl(Lists { kind, inner })))
}

/// A function of lists.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Lists {
    kind: ArrayKind,
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Lists {
    fn name(&self) -> &str {
        self.inner.name()
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

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.inner.return_field_from_args(args)?;
        // An entry that is not there, and the length of an empty list, are null.
        Ok(Arc::new(field.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let result = compute(self.kind, &arrays, args.return_field.data_type())?;
        Ok(if scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        } else {
            ColumnarValue::Array(result)
        })
    }
}

fn compute(kind: ArrayKind, args: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let (first, rest) = args.split_first().ok_or_else(wrong_arguments)?;
    if first.data_type().is_null() {
        return Ok(new_null_array(result, first.len()));
    }
    if kind == ArrayKind::Split {
        return Ok(cast(&split(first, rest)?, result)?);
    }
    let list = as_list(first)?;
    let computed = match (kind, rest) {
        (ArrayKind::Element, [index]) => element(&list, index)?,
        (ArrayKind::Has, [entry]) => has(&list, entry)?,
        (ArrayKind::Slice, [from, to, ..]) => slice(&list, from, to)?,
        (ArrayKind::Remove, [entry]) => remove(&list, entry)?,
        (ArrayKind::Replace, [from, to]) => replace(&list, from, to)?,
        (ArrayKind::Position, [entry]) => position(&list, entry, None)?,
        (ArrayKind::Position, [entry, start]) => position(&list, entry, Some(start))?,
        (ArrayKind::Positions, [entry]) => positions(&list, entry)?,
        (ArrayKind::Length, []) => lengths(first, None)?,
        (ArrayKind::Length, [dimension]) => lengths(first, Some(dimension))?,
        (ArrayKind::Cardinality, []) => counted(first, |list| Some(entries(list))),
        (ArrayKind::Dimensions, []) => counted(first, dimensions),
        (ArrayKind::Joined, [separator]) => joined(&list, separator, None)?,
        (ArrayKind::Joined, [separator, null]) => joined(&list, separator, Some(null))?,
        _ => return Err(wrong_arguments()),
    };
    Ok(cast(&computed, result)?)
}

fn wrong_arguments() -> DataFusionError {
    DataFusionError::Plan("the function of a list has other arguments".to_owned())
}

/// Returns a list with offsets of 32 bits.
pub(super) fn as_list(list: &ArrayRef) -> Result<ListArray> {
    if let Some(list) = list.as_list_opt::<i32>() {
        return Ok(list.clone());
    }
    let entry = match list.data_type() {
        DataType::LargeList(entry)
        | DataType::FixedSizeList(entry, _)
        | DataType::ListView(entry)
        | DataType::LargeListView(entry) => Arc::clone(entry),
        other => return Err(DataFusionError::Plan(format!("{other} is not a list"))),
    };
    Ok(cast(list, &DataType::List(entry))?.as_list::<i32>().clone())
}

/// Returns the positions of the entries of a row in the values of the list; those of a null are none.
pub(super) fn span(list: &ListArray, row: usize) -> std::ops::Range<usize> {
    if list.is_null(row) {
        return 0..0;
    }
    let at = |index: usize| usize::try_from(list.value_offsets()[index]).unwrap_or_default();
    at(row)..at(row + 1)
}

/// Returns a list with the nulls of `list` and these entries.
fn rebuilt(list: &ListArray, values: ArrayRef, lengths: Vec<usize>) -> ArrayRef {
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Arc::new(ListArray::new(field, offsets, values, list.nulls().cloned()))
}

fn whole_numbers(numbers: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(numbers, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

fn place(position: usize) -> Result<u32> {
    u32::try_from(position)
        .ok()
        .ok_or_else(|| DataFusionError::Execution("a list is too long".to_owned()))
}

fn element(list: &ListArray, index: &ArrayRef) -> Result<ArrayRef> {
    let index = whole_numbers(index)?;
    let mut places = Vec::with_capacity(list.len());
    for row in 0..list.len() {
        let span = span(list, row);
        let index = index
            .is_valid(row)
            .then(|| index.value(row))
            .filter(|index| *index >= 1);
        let place_of = index.and_then(|index| span.start.checked_add(usize::try_from(index - 1).ok()?));
        places.push(place_of.filter(|place| *place < span.end).map(place).transpose()?);
    }
    Ok(take(list.values(), &UInt32Array::from(places), None)?)
}

fn slice(list: &ListArray, from: &ArrayRef, to: &ArrayRef) -> Result<ArrayRef> {
    let (from, to) = (whole_numbers(from)?, whole_numbers(to)?);
    let (mut places, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..list.len() {
        let span = span(list, row);
        valid.push(list.is_valid(row) && from.is_valid(row) && to.is_valid(row));
        let first = usize::try_from(from.value(row).max(1) - 1).unwrap_or(usize::MAX);
        let end = usize::try_from(to.value(row).max(0))
            .unwrap_or(usize::MAX)
            .min(span.len());
        let before = places.len();
        if valid[row] && first < end {
            for index in span.start + first..span.start + end {
                places.push(place(index)?);
            }
        }
        lengths.push(places.len() - before);
    }
    let values = take(list.values(), &UInt32Array::from(places), None)?;
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::new(field, offsets, values, Some(valid.into()))))
}

/// Returns a function that compares an entry, by its place in the values, with the value of a row. Two nulls are equal.
fn same(list: &ListArray, entry: &ArrayRef) -> Result<impl Fn(usize, usize) -> bool> {
    let entry = cast(entry, list.values().data_type())?;
    let compare = make_comparator(list.values(), &entry, SortOptions::default())?;
    Ok(move |place: usize, row: usize| compare(place, row) == Ordering::Equal)
}

/// Tells if a list has an entry. Where a null decides, the result is null.
fn has(list: &ListArray, entry: &ArrayRef) -> Result<ArrayRef> {
    let same = same(list, entry)?;
    let found = (0..list.len()).map(|row| {
        if list.is_null(row) || entry.is_null(row) {
            return None;
        }
        if span(list, row).any(|index| same(index, row)) {
            return Some(true);
        }
        let unknown = span(list, row).any(|index| list.values().is_null(index));
        (!unknown).then_some(false)
    });
    Ok(Arc::new(found.collect::<BooleanArray>()))
}

fn remove(list: &ListArray, entry: &ArrayRef) -> Result<ArrayRef> {
    let same = same(list, entry)?;
    let (mut places, mut lengths) = (Vec::new(), Vec::new());
    for row in 0..list.len() {
        let before = places.len();
        for index in span(list, row).filter(|index| !same(*index, row)) {
            places.push(place(index)?);
        }
        lengths.push(places.len() - before);
    }
    let values = take(list.values(), &UInt32Array::from(places), None)?;
    Ok(rebuilt(list, values, lengths))
}

fn replace(list: &ListArray, from: &ArrayRef, to: &ArrayRef) -> Result<ArrayRef> {
    let same = same(list, from)?;
    let to = cast(to, list.values().data_type())?;
    let (mut places, mut lengths) = (Vec::new(), Vec::new());
    for row in 0..list.len() {
        let span = span(list, row);
        lengths.push(span.len());
        places.extend(span.map(|index| if same(index, row) { (1, row) } else { (0, index) }));
    }
    let values = interleave(&[list.values().as_ref(), to.as_ref()], &places)?;
    Ok(rebuilt(list, values, lengths))
}

/// Returns the position of an entry, from 1.
fn ordinal(index: usize, start: usize) -> u64 {
    (index - start) as u64 + 1
}

fn position(list: &ListArray, entry: &ArrayRef, start: Option<&ArrayRef>) -> Result<ArrayRef> {
    let same = same(list, entry)?;
    let start = start.map(whole_numbers).transpose()?;
    let found = (0..list.len()).map(|row| {
        let span = span(list, row);
        let skipped = match &start {
            Some(start) if start.is_null(row) => {
                return Err(DataFusionError::Execution(
                    "the initial position must not be null".to_owned(),
                ));
            }
            Some(start) => usize::try_from(start.value(row).saturating_sub(1)).unwrap_or_default(),
            None => 0,
        };
        let found = span.clone().skip(skipped).find(|index| same(*index, row));
        Ok(found.map(|index| ordinal(index, span.start)))
    });
    Ok(Arc::new(found.collect::<Result<UInt64Array>>()?))
}

fn positions(list: &ListArray, entry: &ArrayRef) -> Result<ArrayRef> {
    let same = same(list, entry)?;
    let (mut found, mut lengths) = (Vec::new(), Vec::new());
    for row in 0..list.len() {
        let span = span(list, row);
        let before = found.len();
        found.extend(
            span.clone()
                .filter(|index| same(*index, row))
                .map(|index| ordinal(index, span.start)),
        );
        lengths.push(found.len() - before);
    }
    Ok(rebuilt(list, Arc::new(UInt64Array::from(found)), lengths))
}

/// Returns the list of a row, or `None` if it is null or no list.
fn row_of(list: &ArrayRef, row: usize) -> Option<ArrayRef> {
    if list.is_null(row) {
        return None;
    }
    as_list(list).ok().map(|list| list.value(row))
}

fn lengths(list: &ArrayRef, dimension: Option<&ArrayRef>) -> Result<ArrayRef> {
    let dimension = dimension.map(whole_numbers).transpose()?;
    let length = |row: usize| {
        let dimension = dimension
            .as_ref()
            .map_or(Some(1), |all| all.is_valid(row).then(|| all.value(row)))?;
        let mut inner = row_of(list, row)?;
        for _ in 1..dimension {
            inner = (!inner.is_empty()).then(|| row_of(&inner, 0))??;
        }
        (dimension >= 1 && !inner.is_empty()).then_some(inner.len() as u64)
    };
    Ok(Arc::new((0..list.len()).map(length).collect::<UInt64Array>()))
}

fn counted(list: &ArrayRef, count: impl Fn(&ArrayRef) -> Option<u64>) -> ArrayRef {
    let of_row = |row: usize| row_of(list, row).and_then(|entries| count(&entries));
    Arc::new((0..list.len()).map(of_row).collect::<UInt64Array>())
}

fn entries(list: &ArrayRef) -> u64 {
    if as_list(list).is_err() {
        return list.len() as u64;
    }
    let inner = (0..list.len()).filter_map(|row| row_of(list, row));
    inner.map(|inner| entries(&inner)).sum()
}

fn dimensions(list: &ArrayRef) -> Option<u64> {
    if list.is_empty() {
        return None;
    }
    Some(1 + row_of(list, 0).and_then(|inner| dimensions(&inner)).unwrap_or_default())
}

/// Returns the entries as texts.
pub(super) fn texts(values: &ArrayRef) -> Result<StringArray> {
    let texts: ArrayRef = match values.data_type() {
        DataType::Float32 | DataType::Float64 => float_text::texts(values)?,
        kind if is_decimal(kind) => numeric::texts(values)?,
        // An array of booleans reads `t` and `f`, and a boolean `true` and `false`.
        DataType::Boolean => Arc::new(
            (values.as_boolean().iter())
                .map(|value| value.map(|value| if value { "t" } else { "f" }))
                .collect::<StringArray>(),
        ),
        _ => cast(values, &DataType::Utf8)?,
    };
    Ok(texts.as_string::<i32>().clone())
}

fn joined(list: &ListArray, separator: &ArrayRef, null: Option<&ArrayRef>) -> Result<ArrayRef> {
    // The entries of a list of lists are joined as one.
    if let Ok(inner) = as_list(list.values()) {
        let mut lengths = Vec::new();
        let mut places = Vec::new();
        for row in 0..list.len() {
            let inside: Vec<usize> = span(list, row).flat_map(|index| span(&inner, index)).collect();
            lengths.push(inside.len());
            for index in inside {
                places.push(place(index)?);
            }
        }
        let values = take(inner.values(), &UInt32Array::from(places), None)?;
        let flat = rebuilt(list, values, lengths);
        return joined(flat.as_list::<i32>(), separator, null);
    }
    let values = texts(list.values())?;
    let separator = cast(separator, &DataType::Utf8)?;
    let separator = separator.as_string::<i32>();
    let null = null.map(|null| cast(null, &DataType::Utf8)).transpose()?;
    let null = null.as_ref().map(AsArray::as_string::<i32>);
    let joined = (0..list.len()).map(|row| {
        if list.is_null(row) || separator.is_null(row) {
            return None;
        }
        let null = null.filter(|null| null.is_valid(row)).map(|null| null.value(row));
        let shown = span(list, row).filter_map(|index| {
            if values.is_null(index) {
                null
            } else {
                Some(values.value(index))
            }
        });
        Some(shown.collect::<Vec<_>>().join(separator.value(row)))
    });
    Ok(Arc::new(joined.collect::<StringArray>()))
}

fn split(text: &ArrayRef, rest: &[ArrayRef]) -> Result<ArrayRef> {
    let text_of =
        |array: &ArrayRef| -> Result<StringArray> { Ok(cast(array, &DataType::Utf8)?.as_string::<i32>().clone()) };
    let text = text_of(text)?;
    let rest = rest.iter().map(text_of).collect::<Result<Vec<_>>>()?;
    let at = |index: usize, row: usize| {
        let all = rest.get(index)?;
        all.is_valid(row).then(|| all.value(row))
    };
    let (mut parts, mut lengths, mut valid): (Vec<Option<&str>>, _, Vec<bool>) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..text.len() {
        let before = parts.len();
        valid.push(text.is_valid(row));
        let whole = text.value(row);
        if text.is_valid(row) && !whole.is_empty() {
            match at(0, row) {
                None => parts.extend(
                    whole
                        .char_indices()
                        .map(|(at, one)| Some(&whole[at..at + one.len_utf8()])),
                ),
                Some("") => parts.push(Some(whole)),
                Some(separator) => parts.extend(whole.split(separator).map(Some)),
            }
        }
        if let Some(null) = at(1, row) {
            for part in &mut parts[before..] {
                *part = part.filter(|part| *part != null);
            }
        }
        lengths.push(parts.len() - before);
    }
    let values = Arc::new(StringArray::from(parts));
    let field = Arc::new(Field::new_list_field(DataType::Utf8, true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::new(field, offsets, values, Some(valid.into()))))
}

/// Planner of subscripts. The engine plans a subscript of `array_agg` as an aggregate of its own that counts from the
/// end if the subscript is negative.
#[derive(Debug)]
pub(super) struct Subscripts;

impl ExprPlanner for Subscripts {
    fn plan_field_access(
        &self,
        access: RawFieldAccessExpr,
        _: &datafusion::common::DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let RawFieldAccessExpr { expr, field_access } = access;
        match field_access {
            GetFieldAccess::ListIndex { key } if matches!(expr, Expr::AggregateFunction(_)) && !is_positive(&key) => {
                let function = datafusion::functions_nested::extract::array_element_udf();
                let call = ScalarFunction::new_udf(function, vec![expr, *key]);
                Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
            }
            field_access => Ok(PlannerResult::Original(RawFieldAccessExpr { expr, field_access })),
        }
    }
}

fn is_positive(index: &Expr) -> bool {
    matches!(index, Expr::Literal(ScalarValue::Int64(Some(index)), _) if *index > 0)
}
