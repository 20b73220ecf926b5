//! Conversion between rows and typed values.
//!
//! Invariant: a stored value that does not parse is [`Error::Malformed`] with its column, never a default.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;
use sqlx::{Any, Decode, Row, Type};
use types::Timestamp;

use crate::Error;

/// Typed access to the columns of a row, by name.
pub(crate) trait Columns {
    /// Reads a value with the type of the driver.
    fn value<'r, T: Decode<'r, Any> + Type<Any>>(&'r self, column: &'static str) -> Result<T, Error>;

    /// Parses a text that is an id or a word.
    fn parsed<T: FromStr<Err: Display>>(&self, column: &'static str) -> Result<T, Error> {
        parse(column, self.value::<&str>(column)?)
    }

    /// Parses a text that may be null.
    fn parsed_optional<T: FromStr<Err: Display>>(&self, column: &'static str) -> Result<Option<T>, Error> {
        self.value::<Option<&str>>(column)?
            .map(|text| parse(column, text))
            .transpose()
    }

    /// Reads a count, offset or version number.
    fn number<T: TryFrom<i64>>(&self, column: &'static str) -> Result<T, Error> {
        convert(column, self.value::<i64>(column)?)
    }

    /// Reads a number that may be null.
    fn number_optional<T: TryFrom<i64>>(&self, column: &'static str) -> Result<Option<T>, Error> {
        self.value::<Option<i64>>(column)?
            .map(|number| convert(column, number))
            .transpose()
    }

    /// Reads a flag, stored as 0 or 1.
    fn flag(&self, column: &'static str) -> Result<bool, Error> {
        // `SQLite` has no booleans, so both engines store integers.
        Ok(self.value::<i64>(column)? != 0)
    }

    /// Reads an instant, stored in microseconds.
    fn time(&self, column: &'static str) -> Result<Timestamp, Error> {
        Ok(Timestamp::from_micros(self.value(column)?))
    }

    /// Reads an instant that may be null.
    fn time_optional(&self, column: &'static str) -> Result<Option<Timestamp>, Error> {
        Ok(self.value::<Option<i64>>(column)?.map(Timestamp::from_micros))
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

fn parse<T: FromStr<Err: Display>>(column: &'static str, text: &str) -> Result<T, Error> {
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
