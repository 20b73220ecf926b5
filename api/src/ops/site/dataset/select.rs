//! Statement of a viewer: the one SELECT that filters and orders the rows of a page.
//!
//! Invariants:
//! - A name in the statement is one of the columns, quoted. A value is a text in quotes, or was parsed as its column's type.
//! - Every order ends with the place of the row in its version, so no row is on two pages, or on none.

use std::fmt::Write as _;

use pages::ColumnOrder;
use types::contract::PLACE_COLUMNS;
use types::{Date, Field, FieldType, Timestamp, decimal};

/// Comparison of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FilterOperator {
    Is,
    IsNot,
    Less,
    Greater,
    Contains,
    IsNull,
    IsNotNull,
}

/// The comparisons: their words in an address, and for people.
pub(super) const OPERATORS: &[(&str, &str)] = &[
    ("is", "is"),
    ("not", "is not"),
    ("less", "is less than"),
    ("greater", "is greater than"),
    ("has", "contains"),
    ("null", "is null"),
    ("some", "is not null"),
];

impl FilterOperator {
    /// Returns the comparison of a word in an address.
    pub(super) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "is" => Self::Is,
            "not" => Self::IsNot,
            "less" => Self::Less,
            "greater" => Self::Greater,
            "has" => Self::Contains,
            "null" => Self::IsNull,
            "some" => Self::IsNotNull,
            _ => return None,
        })
    }

    /// Returns the word in an address, and the words for people.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        let place = match self {
            Self::Is => 0,
            Self::IsNot => 1,
            Self::Less => 2,
            Self::Greater => 3,
            Self::Contains => 4,
            Self::IsNull => 5,
            Self::IsNotNull => 6,
        };
        OPERATORS[place]
    }

    /// Returns true if the comparison has a value.
    pub(super) const fn has_value(self) -> bool {
        !matches!(self, Self::IsNull | Self::IsNotNull)
    }
}

/// Filter of rows by a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowFilter {
    /// Index of the column.
    pub(super) column: usize,
    /// Comparison.
    pub(super) operator: FilterOperator,
    /// Value as the reader typed it; empty where the comparison has none.
    pub(super) value: String,
    /// The filter as a condition.
    condition: String,
}

impl RowFilter {
    /// Creates the filter of a column by a value. The error is a sentence for its field.
    pub(super) fn new(column: usize, field: &Field, operator: FilterOperator, value: &str) -> Result<Self, String> {
        let condition = condition(field, operator, value)?;
        Ok(Self {
            column,
            operator,
            value: if operator.has_value() {
                value.to_owned()
            } else {
                String::new()
            },
            condition,
        })
    }
}

/// Returns a filter as a condition.
fn condition(field: &Field, operator: FilterOperator, value: &str) -> Result<String, String> {
    let name = name(&field.name);
    let kind = field.kind;
    Ok(match operator {
        FilterOperator::IsNull => format!("{name} IS NULL"),
        FilterOperator::IsNotNull => format!("{name} IS NOT NULL"),
        FilterOperator::Contains => match kind {
            FieldType::String | FieldType::Json => format!("{name} LIKE {}", text(&format!("%{}%", literally(value)))),
            _ => return Err("“contains” is for columns of texts or JSON".to_owned()),
        },
        _ if kind == FieldType::Json => {
            return Err("a column of JSON is compared by “contains”, “is null” or “is not null”".to_owned());
        }
        // Rows without a value are not the value.
        FilterOperator::Is => format!("{name} = {}", literal(kind, value)?),
        FilterOperator::IsNot => format!("({name} IS DISTINCT FROM {})", literal(kind, value)?),
        FilterOperator::Less | FilterOperator::Greater if kind == FieldType::Boolean => {
            return Err("a column of true and false is compared by “is” and “is not”".to_owned());
        }
        FilterOperator::Less => format!("{name} < {}", literal(kind, value)?),
        FilterOperator::Greater => format!("{name} > {}", literal(kind, value)?),
    })
}

/// Returns a name in quotes.
fn name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns a text in quotes.
fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns a text as a pattern of LIKE that matches it alone.
fn literally(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '\\' | '%' | '_') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// Returns a value as a literal of a column's type.
fn literal(kind: FieldType, value: &str) -> Result<String, String> {
    let value = if kind == FieldType::String { value } else { value.trim() };
    Ok(match kind {
        FieldType::String | FieldType::Json => text(value),
        FieldType::Integer => {
            let number: i64 = value
                .parse()
                .map_err(|_error| "the column has whole numbers of 64 bits, such as -12".to_owned())?;
            format!("CAST('{number}' AS BIGINT)")
        }
        FieldType::Number => {
            let number: f64 = value.parse().map_err(|_error| NUMBER.to_owned())?;
            if !number.is_finite() {
                return Err(NUMBER.to_owned());
            }
            // In the shortest form that is the same double.
            format!("CAST('{number:e}' AS DOUBLE PRECISION)")
        }
        FieldType::Boolean => match value {
            "true" => "TRUE".to_owned(),
            "false" => "FALSE".to_owned(),
            _ => return Err("the column has true and false".to_owned()),
        },
        FieldType::Timestamp => {
            let at = instant(value).ok_or("the column has times in UTC, such as 2026-05-01 08:00")?;
            format!("CAST('{at}' AS TIMESTAMPTZ)")
        }
        FieldType::Date => {
            let day: Date = value
                .parse()
                .map_err(|_error| "the column has days, such as 2026-05-01".to_owned())?;
            format!("CAST('{day}' AS DATE)")
        }
        FieldType::Decimal(scale) => {
            let units = decimal::parse(value.as_bytes(), scale).map_err(|_error| {
                format!("the column has decimals with at most {scale} digits after the point, such as -12.5")
            })?;
            let digits = decimal::MAX_DIGITS;
            format!("CAST('{}' AS DECIMAL({digits}, {scale}))", decimal::text(units, scale))
        }
    })
}

/// Says which values a column of numbers has.
const NUMBER: &str = "the column has numbers, such as -12.5";

/// Reads an instant as people write it: RFC 3339, or a day with or without a time, in UTC.
fn instant(value: &str) -> Option<Timestamp> {
    let at = value.replacen(' ', "T", 1);
    let forms = [
        at.clone(),
        format!("{at}Z"),
        format!("{at}:00Z"),
        format!("{at}T00:00:00Z"),
    ];
    forms.iter().find_map(|form| form.parse().ok())
}

/// Rows that a page asks for.
#[derive(Clone, Debug)]
pub(super) struct AskedRows {
    /// Indexes of the columns.
    pub(super) columns: Vec<usize>,
    /// Filters, all of which hold for a row.
    pub(super) filters: Vec<RowFilter>,
    /// Column by which the rows are ordered; the order of the version without one.
    pub(super) order: Option<(usize, ColumnOrder)>,
    /// Number of rows before the first.
    pub(super) offset: u64,
    /// Greatest number of rows.
    pub(super) limit: u32,
}

impl AskedRows {
    /// Returns true if a page of the version has other rows, or the same in another order.
    pub(super) fn needs_statement(&self) -> bool {
        !self.filters.is_empty() || self.order.is_some()
    }

    /// Returns the statement. Its columns are those that were asked for, then the version of the record and its index in it,
    /// then the number of rows of all pages if there are filters.
    pub(super) fn statement(&self, fields: &[Field]) -> String {
        let mut columns = self.names(fields);
        let places = PLACE_COLUMNS.map(name);
        columns.extend(places.iter().cloned());
        let condition = self.condition().map_or_else(String::new, |clause| format!(" {clause}"));
        if !condition.is_empty() {
            columns.push(format!("(SELECT count(*) FROM records{condition})"));
        }
        let mut order: Vec<String> = self.order(fields).into_iter().collect();
        order.extend(places);
        let mut sql = format!("SELECT {} FROM records{condition}", columns.join(", "));
        write!(sql, " ORDER BY {} OFFSET {}", order.join(", "), self.offset).ok();
        sql
    }

    /// Returns the statement as a person asks it: the same rows, of all pages, without what tells their places. All columns
    /// need no names.
    pub(super) fn question(&self, fields: &[Field]) -> String {
        let columns = if self.columns.len() == fields.len() {
            "*".to_owned()
        } else {
            self.names(fields).join(", ")
        };
        let mut sql = format!("SELECT {columns}\nFROM records");
        let order = self.order(fields).map(|order| format!("ORDER BY {order}"));
        for clause in self.condition().into_iter().chain(order) {
            write!(sql, "\n{clause}").ok();
        }
        sql
    }

    fn names(&self, fields: &[Field]) -> Vec<String> {
        let fields = self.columns.iter().filter_map(|column| fields.get(*column));
        fields.map(|field| name(&field.name)).collect()
    }

    /// Returns the filters as a clause, if there are any.
    fn condition(&self) -> Option<String> {
        let conditions: Vec<_> = self.filters.iter().map(|filter| filter.condition.as_str()).collect();
        (!conditions.is_empty()).then(|| format!("WHERE {}", conditions.join(" AND ")))
    }

    fn order(&self, fields: &[Field]) -> Option<String> {
        let (at, direction) = self.order?;
        let word = match direction {
            ColumnOrder::Ascending => "ASC",
            ColumnOrder::Descending => "DESC",
        };
        Some(format!("{} {word} NULLS LAST", name(&fields.get(at)?.name)))
    }
}

#[cfg(test)]
mod tests;
