//! Filters of the templates.
#![expect(
    unreachable_pub,
    clippy::inline_always,
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "the macro makes a public struct with a method of each filter"
)]

use askama::{PrimitiveType, Result, Values, filter_fn};

use crate::number;

/// Groups the digits of a number by threes.
#[filter_fn]
pub(crate) fn grouped<N: PrimitiveType<Value = u64>>(number: N, _: &dyn Values) -> Result<String> {
    Ok(number::grouped(number.get()))
}

/// Shows a number of bytes in the largest unit that fits.
#[filter_fn]
pub(crate) fn size<N: PrimitiveType<Value = u64>>(bytes: N, _: &dyn Values) -> Result<String> {
    Ok(number::size(bytes.get()))
}
