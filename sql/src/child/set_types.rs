//! Types of the columns of INTERSECT and EXCEPT.
//!
//! Invariant: both sides have one type in each column before rows are compared, as in `PostgreSQL` (section 10.5). The engine
//! compares them by a common type and answers with that of the left side.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{Distinct, Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, cast};

use super::numeric::{double, is_decimal};

/// Returns the plan of an INTERSECT or EXCEPT with columns of one type, or `None` if `plan` is none or has them.
pub(super) fn of_one_type(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Join(Join {
        left,
        right,
        join_type,
        null_equality: NullEquality::NullEqualsNull,
        filter: None,
        ..
    }) = plan
    else {
        return Ok(None);
    };
    let (JoinType::LeftSemi | JoinType::LeftAnti, LogicalPlan::Distinct(Distinct::All(left))) = (join_type, &**left)
    else {
        return Ok(None);
    };
    let kinds = |side: &LogicalPlan| -> Vec<DataType> {
        let fields = side.schema().fields().iter();
        fields.map(|field| field.data_type().clone()).collect()
    };
    let (ours, theirs) = (kinds(left), kinds(right));
    let common: Vec<Option<DataType>> = ours
        .iter()
        .zip(&theirs)
        .map(|(one, other)| common(one, other))
        .collect();
    if common.iter().all(Option::is_none) {
        return Ok(None);
    }
    // The join is built anew, so the types that the engine has united have to be united again.
    let united = ours
        .iter()
        .zip(&theirs)
        .zip(common)
        .map(|((one, other), common)| match common {
            None if one != other => comparison_coercion(one, other),
            common => common,
        });
    let common: Vec<Option<DataType>> = united.collect();
    let (left, right) = (converted(left, &common)?, converted(right, &common)?);
    let columns = |side: &LogicalPlan| -> Vec<Column> { side.schema().columns() };
    let keys = (columns(&left), columns(&right));
    let joined = LogicalPlanBuilder::from(left).distinct()?.join_detailed(
        right,
        *join_type,
        keys,
        None,
        NullEquality::NullEqualsNull,
    )?;
    joined.build().map(Some)
}

/// Returns the type of a column whose sides have unlike types that the engine does not unite by itself.
fn common(one: &DataType, other: &DataType) -> Option<DataType> {
    let is_number = |kind: &DataType| kind.is_integer() || is_decimal(kind);
    match (one, other) {
        (zoned @ DataType::Timestamp(_, Some(_)), DataType::Timestamp(_, None) | DataType::Date32)
        | (DataType::Timestamp(_, None) | DataType::Date32, zoned @ DataType::Timestamp(_, Some(_))) => {
            Some(zoned.clone())
        }
        (local @ DataType::Timestamp(_, None), DataType::Date32)
        | (DataType::Date32, local @ DataType::Timestamp(_, None)) => Some(local.clone()),
        (one, other) if one.is_floating() && is_number(other) => Some(one.clone()),
        (one, other) if other.is_floating() && is_number(one) => Some(other.clone()),
        _ => None,
    }
}

/// Returns a plan whose columns have other types, where one is named.
pub(super) fn converted(side: &Arc<LogicalPlan>, common: &[Option<DataType>]) -> Result<LogicalPlan> {
    let columns = side.schema().iter().zip(common).map(|((qualifier, field), to)| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        let converted = match to {
            Some(to) if to != field.data_type() && is_decimal(field.data_type()) => double(column),
            Some(to) if to != field.data_type() => cast(column, to.clone()),
            _ => return column,
        };
        converted.alias_qualified(qualifier.cloned(), field.name())
    });
    let projection = Projection::try_new(columns.collect(), Arc::clone(side))?;
    Ok(LogicalPlan::Projection(projection))
}
