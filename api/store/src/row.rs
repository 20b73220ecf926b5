//! Conversion between rows and typed values.
//!
//! Invariant: a stored value that does not parse is [`Error::Malformed`] with its column, never a default.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;
use sqlx::{Any, Decode, Row as _, Type, ValueRef as _};
use types::money::MicroUsdc;
use types::{Timestamp, Version};

use crate::Error;

/// Declares a type of rows: a struct whose fields say which columns they are of.
///
/// A field has the column of its name, or the one that is given behind `=`, with its expression if it has another:
/// `"agents.name AS agent_name"`. A function behind `=>` reads a field that is no [`Column`]; it gets the row and what is
/// given behind `=`, such as the names of two columns. [`Row::COLUMNS`] is the list for a `SELECT`.
macro_rules! row {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[$field_meta:meta])*
                $field_visibility:vis $field:ident: $type:ty $(= $column:expr)? $(=> $read:path)?,
            )*
        }
    ) => {
        $(#[$meta])*
        $visibility struct $name {
            $($(#[$field_meta])* $field_visibility $field: $type,)*
        }

        impl $crate::row::Row for $name {
            const COLUMNS: &'static str = {
                const PARTS: &[&str] = &[$($crate::row::column!($field $($column)?)),*];
                const BYTES: [u8; $crate::query::joined_length(PARTS, ", ")] = $crate::query::joined(PARTS, ", ");
                $crate::query::utf8(&BYTES)
            };

            fn of(row: &sqlx::any::AnyRow) -> Result<Self, $crate::Error> {
                Ok(Self {
                    $($field: $crate::row::read_column!(row, $crate::row::column!($field $($column)?) $(, $read)?),)*
                })
            }
        }
    };
}

/// The column of a field of [`row!`].
macro_rules! column {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $column:expr) => {
        $column
    };
}

/// The value of a field of [`row!`].
macro_rules! read_column {
    ($row:ident, $column:expr) => {
        $crate::row::Columns::get($row, const { $crate::row::name_of($column) })?
    };
    ($row:ident, $column:expr, $read:path) => {
        $read($row, $column)?
    };
}

/// Makes types columns that are texts which they parse.
macro_rules! parsed_column {
    ($($type:ident)*) => {$(
        impl $crate::row::Column for $type {
            type Stored<'r> = &'r str;

            fn of(column: &'static str, stored: &str) -> Result<Self, $crate::Error> {
                $crate::row::parse(column, stored)
            }
        }
    )*};
}

pub(crate) use {column, parsed_column, read_column, row};

/// A type of rows.
pub(crate) trait Row: Sized {
    /// The columns, separated by commas.
    const COLUMNS: &'static str;

    /// Reads a row.
    fn of(row: &AnyRow) -> Result<Self, Error>;
}

/// A type of values in columns.
pub(crate) trait Column: Sized {
    /// The value as the driver has it.
    type Stored<'r>: Decode<'r, Any> + Type<Any>;

    /// Converts a value of this column.
    fn of(column: &'static str, stored: Self::Stored<'_>) -> Result<Self, Error>;
}

impl<T: Column> Column for Option<T> {
    type Stored<'r> = Option<T::Stored<'r>>;

    fn of(column: &'static str, stored: Option<T::Stored<'_>>) -> Result<Self, Error> {
        stored.map(|stored| T::of(column, stored)).transpose()
    }
}

impl Column for String {
    type Stored<'r> = Self;

    fn of(_: &'static str, stored: Self) -> Result<Self, Error> {
        Ok(stored)
    }
}

impl Column for i64 {
    type Stored<'r> = Self;

    fn of(_: &'static str, stored: Self) -> Result<Self, Error> {
        Ok(stored)
    }
}

impl Column for Vec<u8> {
    type Stored<'r> = Self;

    fn of(_: &'static str, stored: Self) -> Result<Self, Error> {
        Ok(stored)
    }
}

impl<const N: usize> Column for [u8; N] {
    type Stored<'r> = Vec<u8>;

    fn of(column: &'static str, stored: Vec<u8>) -> Result<Self, Error> {
        bytes(column, stored)
    }
}

/// Makes types columns that are numbers in their range.
macro_rules! number_column {
    ($($type:ident)*) => {$(
        impl Column for $type {
            type Stored<'r> = i64;

            fn of(column: &'static str, stored: i64) -> Result<Self, Error> {
                convert(column, stored)
            }
        }
    )*};
}

number_column! { u8 u16 u32 u64 usize i32 }

impl Column for Version {
    type Stored<'r> = i64;

    fn of(column: &'static str, stored: i64) -> Result<Self, Error> {
        convert(column, stored).map(Self)
    }
}

impl Column for MicroUsdc {
    type Stored<'r> = i64;

    fn of(_: &'static str, stored: i64) -> Result<Self, Error> {
        Ok(Self(stored))
    }
}

impl Column for bool {
    type Stored<'r> = i64;

    fn of(_: &'static str, stored: i64) -> Result<Self, Error> {
        // `SQLite` has no booleans, so both engines store integers.
        Ok(stored != 0)
    }
}

impl Column for Timestamp {
    type Stored<'r> = i64;

    fn of(_: &'static str, stored: i64) -> Result<Self, Error> {
        Ok(Self::from_micros(stored))
    }
}

/// Typed access to the columns of a row, by name.
pub(crate) trait Columns {
    /// Reads a value with the type of the driver.
    fn value<'r, T: Decode<'r, Any> + Type<Any>>(&'r self, column: &'static str) -> Result<T, Error>;

    /// Reads a value.
    fn get<T: Column>(&self, column: &'static str) -> Result<T, Error> {
        T::of(column, self.value(column)?)
    }

    /// Parses a text, of a type that is stored as another elsewhere.
    fn parsed<T: FromStr<Err: Display>>(&self, column: &'static str) -> Result<T, Error> {
        parse(column, self.value::<&str>(column)?)
    }
}

impl Columns for AnyRow {
    fn value<'r, T: Decode<'r, Any> + Type<Any>>(&'r self, column: &'static str) -> Result<T, Error> {
        self.try_get(column).map_err(|error| Error::Malformed {
            column,
            problem: error.to_string(),
        })
    }
}

/// Returns the name by which a row has a column: what follows `AS`, or the table.
pub(crate) const fn name_of(column: &'static str) -> &'static str {
    let bytes = column.as_bytes();
    let mut at = bytes.len();
    while at > 0 && bytes[at - 1] != b' ' && bytes[at - 1] != b'.' {
        at -= 1;
    }
    column.split_at(at).1
}

/// Reads a value that is stored as JSON.
pub(crate) fn json_column<T: DeserializeOwned>(row: &AnyRow, column: &'static str) -> Result<T, Error> {
    json(column, row.value(column)?)
}

/// Reads two columns, `"first, second"`, that have a value together.
pub(crate) fn pair<A: Column, B: Column>(row: &AnyRow, columns: &'static str) -> Result<Option<(A, B)>, Error> {
    let (first, second) = columns.split_once(", ").unwrap_or((columns, columns));
    Ok(Columns::get::<Option<A>>(row, first)?.zip(Columns::get(row, second)?))
}

/// Gives a field that its statement does not read, whose column is `""`.
#[expect(clippy::unnecessary_wraps, reason = "a function that reads a field")]
pub(crate) const fn absent<T>(_: &AnyRow, _: &'static str) -> Result<Option<T>, Error> {
    Ok(None)
}

/// Reads a row within a row.
pub(crate) fn nested<T: Row>(row: &AnyRow, _: &'static str) -> Result<T, Error> {
    T::of(row)
}

/// Reads a text, which is empty where there is none.
pub(crate) fn or_empty(row: &AnyRow, column: &'static str) -> Result<String, Error> {
    Ok(Columns::get::<Option<String>>(row, column)?.unwrap_or_default())
}

/// Returns true if the column has a value.
pub(crate) fn is_set(row: &AnyRow, column: &'static str) -> Result<bool, Error> {
    let column = name_of(column);
    let value = row.try_get_raw(column).map_err(|error| Error::Malformed {
        column,
        problem: error.to_string(),
    })?;
    Ok(!value.is_null())
}

/// Converts a number to the type of the database.
pub(crate) fn bigint(column: &'static str, value: u64) -> Result<i64, Error> {
    i64::try_from(value).map_err(|_error| Error::Range { column, value })
}

/// Checks that every engine can store these texts: `PostgreSQL` has no U+0000 in text.
pub(crate) fn texts(given: &[(&'static str, &str)]) -> Result<(), Error> {
    match given.iter().find(|(_, text)| text.contains('\0')) {
        Some((column, _)) => Err(Error::Text { column }),
        None => Ok(()),
    }
}

/// Makes a text storable that must not be refused: U+0000, which `PostgreSQL` cannot store, becomes U+FFFD.
pub(crate) fn replace_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        // Nearly every text is stored as it is, without a copy.
        Cow::Borrowed(text)
    }
}

/// Converts stored bytes to an array of their fixed length.
pub(crate) fn bytes<const N: usize>(column: &'static str, stored: Vec<u8>) -> Result<[u8; N], Error> {
    stored.try_into().map_err(|stored: Vec<u8>| Error::Malformed {
        column,
        problem: format!("it has {} bytes instead of {N}", stored.len()),
    })
}

/// Returns the number of bytes in the type of the database.
pub(crate) fn length(bytes: &[u8]) -> i64 {
    i64::try_from(bytes.len()).unwrap_or(i64::MAX)
}

/// Parses a value that is stored as JSON.
pub(crate) fn json<T: DeserializeOwned>(column: &'static str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::Malformed {
        column,
        problem: error.to_string(),
    })
}

/// Returns a value as JSON, as it is stored.
pub(crate) fn json_text<T: Serialize + ?Sized>(column: &'static str, value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Malformed {
        column,
        problem: error.to_string(),
    })
}

pub(crate) fn parse<T: FromStr<Err: Display>>(column: &'static str, text: &str) -> Result<T, Error> {
    text.parse().map_err(|error: T::Err| Error::Malformed {
        column,
        problem: error.to_string(),
    })
}

fn convert<T: TryFrom<i64>>(column: &'static str, number: i64) -> Result<T, Error> {
    T::try_from(number).map_err(|_error| Error::Malformed {
        column,
        problem: format!("{number} is out of range"),
    })
}
