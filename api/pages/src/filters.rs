//! Filters of the templates.
#![expect(
    unreachable_pub,
    clippy::inline_always,
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "the macro makes a public struct with a method of each filter"
)]

use askama::{PrimitiveType, Result, Values, filter_fn};
use types::Timestamp;

use crate::head;
use crate::inline::InlineCode;
use crate::number;
use crate::time::{Instant, ShownTime};

/// Instant, however often it is referred to.
pub(crate) trait AnyInstant {
    /// Returns the instant.
    fn shown(&self) -> Instant;
}

impl AnyInstant for Timestamp {
    fn shown(&self) -> Instant {
        Instant(self.micros())
    }
}

impl AnyInstant for Instant {
    fn shown(&self) -> Instant {
        *self
    }
}

impl<T: AnyInstant> AnyInstant for &T {
    fn shown(&self) -> Instant {
        T::shown(self)
    }
}

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

/// Shows tenths with their decimal point.
#[filter_fn]
pub(crate) fn decimal<N: PrimitiveType<Value = u64>>(tenths: N, _: &dyn Values) -> Result<String> {
    let tenths = tenths.get();
    Ok(format!("{}.{}", tenths / 10, tenths % 10))
}

/// Shows micro-USDC in dollars and cents, rounded down.
#[filter_fn]
pub(crate) fn dollars<N: PrimitiveType<Value = i64>>(micro: N, _: &dyn Values) -> Result<String> {
    let micro = micro.get();
    // Rounded down: a balance must never look larger than it is, and the ledger below shows it to
    // the millionth.
    Ok(format!("{}.{:02}", micro / 1_000_000, micro % 1_000_000 / 10_000))
}

/// Shows micro-USDC in USDC, to the millionth.
#[filter_fn]
pub(crate) fn usdc<N: PrimitiveType<Value = i64>>(micro: N, _: &dyn Values) -> Result<String> {
    Ok(number::usdc(micro.get()))
}

/// Shows micro-USDC with the sign of the change.
#[filter_fn]
pub(crate) fn usdc_signed<N: PrimitiveType<Value = i64>>(micro: N, _: &dyn Values) -> Result<String> {
    Ok(number::usdc_signed(micro.get()))
}

/// Shows a time as people read it near `now`, with its full value.
#[filter_fn]
pub(crate) fn ago<T: AnyInstant, N: AnyInstant>(at: T, _: &dyn Values, now: N) -> Result<ShownTime> {
    Ok(at.shown().relative(now.shown()))
}

/// Shows a time near `now` as a figure, with a small “ago”.
#[filter_fn]
pub(crate) fn since<T: AnyInstant, N: AnyInstant>(at: T, _: &dyn Values, now: N) -> Result<ShownTime> {
    Ok(at.shown().figure(now.shown()))
}

/// Shows a time in full, in UTC.
#[filter_fn]
pub(crate) fn full<T: AnyInstant>(at: T, _: &dyn Values) -> Result<ShownTime> {
    Ok(at.shown().full())
}

/// Shows the date of a time, in UTC.
#[filter_fn]
pub(crate) fn date<T: AnyInstant>(at: T, _: &dyn Values) -> Result<ShownTime> {
    Ok(at.shown().date())
}

/// Shows the beginning of a fingerprint.
#[filter_fn]
pub(crate) fn short<T: AsRef<str>>(root: T, _: &dyn Values) -> Result<String> {
    Ok(format!("{}…", root.as_ref().chars().take(16).collect::<String>()))
}

/// Shows the beginning of a text as one line, for a description.
#[filter_fn]
pub(crate) fn summed<T: AsRef<str>>(text: T, _: &dyn Values) -> Result<String> {
    Ok(head::summary(text.as_ref()))
}

/// Shows micro-USDC in dollars with at least two decimals, and no zeros behind them.
#[filter_fn]
pub(crate) fn price<N: PrimitiveType<Value = i64>>(micro: N, _: &dyn Values) -> Result<String> {
    Ok(number::price(micro.get()))
}

/// Shows what stands between backticks as code.
#[filter_fn]
pub(crate) fn inline<T: AsRef<str>>(text: T, _: &dyn Values) -> Result<InlineCode> {
    Ok(InlineCode::of(text.as_ref()))
}
