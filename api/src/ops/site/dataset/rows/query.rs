//! What a reader chose of the rows of a dataset, in an address or by the form of the viewer.
//!
//! Invariant: a form may say a thing in a longer way; the browser is sent to the shortest address of the same.

use pages::{ColumnOrder, FieldError, ShownFilter};
use schemars::JsonSchema;
use serde::Deserialize;
use types::{Field, FieldType};

use super::PAGE_ROWS;
use super::columns::ShownColumns;
use crate::call::schema::LINE;
use crate::error::ApiError;
use crate::ops::page_kit::sentence;
use crate::ops::site::dataset::select::{AskedRows, FilterOperator, RowFilter};
use crate::rules::reading::MAX_EXACT_INTEGER;

/// Most characters of a value in a filter.
const MAX_VALUE_CHARS: usize = 200;

/// What a reader chose, in an address or by a form.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RowsQuery {
    /// Slug of the dataset.
    #[schemars(length(max = 80))]
    pub(super) slug: String,
    /// Version; the newest that the reader may read if absent.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    pub(super) version: Option<u64>,
    /// Version in the place of `version`, as the field for other versions sends it; empty for none.
    #[schemars(regex(pattern = "^[0-9]{0,15}$"))]
    other: Option<String>,
    /// Number of rows before the first.
    #[serde(default)]
    #[schemars(range(min = 0, max = MAX_EXACT_INTEGER))]
    offset: u64,
    /// Number of one record to show whole, from 1.
    #[schemars(range(min = 1, max = MAX_EXACT_INTEGER))]
    pub(super) row: Option<u64>,
    /// Column by which the rows are ordered.
    #[schemars(length(max = 200))]
    sort: Option<String>,
    /// Direction of the order: `asc` or `desc`.
    #[schemars(length(max = 10), regex(pattern = LINE))]
    dir: Option<String>,
    /// Column and direction in the place of `sort` and `dir`, as the head of a column sends them.
    #[schemars(length(max = 200))]
    by: Option<String>,
    /// Number of the filter to leave out, or 0 for the order, as their buttons send it.
    #[schemars(range(min = 0, max = 3))]
    without: Option<usize>,
    /// Token of the form, without which nothing is filtered or ordered.
    #[schemars(length(max = 100), regex(pattern = LINE))]
    pub(super) run: Option<String>,
    /// Columns, by name; a range as `(0-23)`.
    #[serde(default)]
    #[schemars(length(max = 300))]
    pub(super) cols: Vec<String>,
    /// Column of the first filter.
    #[schemars(length(max = 200))]
    f1: Option<String>,
    /// Comparison of the first filter.
    #[schemars(length(max = 20), regex(pattern = LINE))]
    o1: Option<String>,
    /// Value of the first filter.
    #[schemars(length(max = 2_000))]
    v1: Option<String>,
    /// Column of the second filter.
    #[schemars(length(max = 200))]
    f2: Option<String>,
    /// Comparison of the second filter.
    #[schemars(length(max = 20), regex(pattern = LINE))]
    o2: Option<String>,
    /// Value of the second filter.
    #[schemars(length(max = 2_000))]
    v2: Option<String>,
    /// Column of the third filter.
    #[schemars(length(max = 200))]
    f3: Option<String>,
    /// Comparison of the third filter.
    #[schemars(length(max = 20), regex(pattern = LINE))]
    o3: Option<String>,
    /// Value of the third filter.
    #[schemars(length(max = 2_000))]
    v3: Option<String>,
}

/// A filter as an address has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TypedFilter {
    column: String,
    operator: String,
    value: String,
}

impl RowsQuery {
    /// Returns the filters that name a column, with their numbers.
    fn filters(&self) -> Vec<TypedFilter> {
        let members = [
            (1, &self.f1, &self.o1, &self.v1),
            (2, &self.f2, &self.o2, &self.v2),
            (3, &self.f3, &self.o3, &self.v3),
        ];
        let named = members.into_iter().filter(|(number, column, ..)| {
            // The fields of the next filter are sent empty by every form.
            column.as_ref().is_some_and(|column| !column.is_empty()) && self.without != Some(*number)
        });
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        named
            .map(|(_, column, operator, value)| TypedFilter {
                column: text(column),
                operator: text(operator),
                value: text(value),
            })
            .collect()
    }

    /// Returns the column of the order and the word of its direction.
    fn order(&self) -> Option<(String, String)> {
        if self.without == Some(0) {
            return None;
        }
        // A name has no space in it.
        if let Some((column, direction)) = self.by.as_deref().and_then(|by| by.rsplit_once(' ')) {
            return Some((column.to_owned(), direction.to_owned()));
        }
        let column = self.sort.clone().filter(|column| !column.is_empty())?;
        Some((column, self.dir.clone().unwrap_or_else(|| "asc".to_owned())))
    }

    /// Returns the shortest address of the same, if a form asked in a longer way.
    pub(super) fn shorter(&self, columns: &ShownColumns) -> Option<String> {
        let all = [&self.f1, &self.f2, &self.f3];
        let named = all.iter().map(|column| column.as_ref().map(String::is_empty));
        // Filters stand in a row from the first on, and none is empty.
        let is_gapless = named
            .collect::<Vec<_>>()
            .windows(2)
            .all(|pair| pair[0].is_some() || pair[1].is_none());
        let is_long = self.by.is_some()
            || self.without.is_some()
            || self.other.is_some()
            || !is_gapless
            || all.iter().any(|column| column.as_ref().is_some_and(String::is_empty))
            || self.cols.len() > 1
            || (columns.is_usual && !self.cols.is_empty())
            || (self.run.is_some() && !self.is_statement());
        is_long.then(|| self.address(columns, self.run.as_deref()))
    }

    /// Returns true if the rows are to be filtered or ordered.
    fn is_statement(&self) -> bool {
        self.order().is_some() || !self.filters().is_empty()
    }

    /// Returns the shortest address of what is asked for. It has the token only if that is needed.
    pub(super) fn address(&self, columns: &ShownColumns, token: Option<&str>) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let other = self.other.as_deref().and_then(|number| number.parse::<u64>().ok());
        let other = other.filter(|number| *number > 0);
        if let Some(version) = other.or(self.version) {
            query.append_pair("version", &version.to_string());
        }
        if let Some(row) = self.row {
            query.append_pair("row", &row.to_string());
        }
        // A place in one version is none in another.
        if self.offset > 0 && other.is_none() {
            query.append_pair("offset", &self.offset.to_string());
        }
        if let Some((column, direction)) = self.order() {
            query.append_pair("sort", &column);
            query.append_pair("dir", &direction);
        }
        for (number, filter) in (1..).zip(self.filters()) {
            query.append_pair(&format!("f{number}"), &filter.column);
            query.append_pair(&format!("o{number}"), &filter.operator);
            if !filter.value.is_empty() {
                query.append_pair(&format!("v{number}"), &filter.value);
            }
        }
        if !columns.is_usual {
            query.append_pair("cols", &columns.word);
        }
        if let Some(token) = token.filter(|_| self.is_statement()) {
            query.append_pair("run", token);
        }
        let query = query.finish();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("/projects/{}/rows{mark}{query}", self.slug)
    }
}

/// Filter that is not understood, with what is wrong.
#[derive(Default)]
pub(super) struct TypedInVain {
    pub(super) filter: Option<ShownFilter>,
    pub(super) errors: Vec<FieldError>,
}

impl RowsQuery {
    /// Reads what is asked for. A filter that is not understood is `typed` and filters nothing.
    pub(super) fn asked(
        &self,
        columns: &[Field],
        shown: Vec<usize>,
        typed: &mut TypedInVain,
    ) -> Result<AskedRows, ApiError> {
        let place = |name: &str| columns.iter().position(|field| field.name == name);
        let mut filters = Vec::new();
        for (number, filter) in (1..).zip(self.filters()) {
            let read = || {
                let column = place(&filter.column).ok_or("there is no such column")?;
                let operator = FilterOperator::of(&filter.operator).ok_or("there is no such comparison")?;
                if filter.value.chars().count() > MAX_VALUE_CHARS {
                    return Err(format!("a value has at most {MAX_VALUE_CHARS} characters"));
                }
                RowFilter::new(column, &columns[column], operator, &filter.value)
            };
            match read() {
                Ok(filter) => filters.push(filter),
                Err(problem) => {
                    typed
                        .errors
                        .push(FieldError::new(format!("v{number}"), sentence(&problem)));
                    typed.filter = Some(ShownFilter {
                        column: filter.column,
                        operator: filter.operator,
                        words: "",
                        has_value: true,
                        value: filter.value.chars().take(MAX_VALUE_CHARS).collect(),
                    });
                }
            }
        }
        let order = match self.order() {
            None => None,
            Some((column, direction)) => {
                let column = place(&column).filter(|at| columns[*at].kind != FieldType::Json);
                let column = column.ok_or_else(|| ApiError::invalid("/sort", "must be a column that has an order"))?;
                let direction = match direction.as_str() {
                    "asc" => ColumnOrder::Ascending,
                    "desc" => ColumnOrder::Descending,
                    _ => return Err(ApiError::invalid("/dir", "must be `asc` or `desc`")),
                };
                Some((column, direction))
            }
        };
        Ok(AskedRows {
            columns: shown,
            filters,
            order,
            offset: self.offset,
            limit: PAGE_ROWS,
        })
    }
}
