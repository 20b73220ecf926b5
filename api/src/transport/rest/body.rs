//! Request bodies: read up to a limit, or discarded.
//!
//! Invariant: no more of a body is in memory than is reserved for it, and no body takes longer than its pace allows.

use std::mem;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};

use crate::codes::ErrorCode;
use crate::error::ApiError;
use crate::state::bodies::BodyReservation;

/// The number of bytes that extend the time-out of a body by a second.
const BYTES_PER_SECOND: u64 = 16 << 10;
/// The smallest reservation of a body of unknown length.
const MIN_RESERVATION_BYTES: usize = 64 << 10;
/// Bytes of an unwanted body that are read before the connection is closed.
const MAX_DISCARDED_BYTES: usize = 256 << 20;
/// Time limit for reading an unwanted body.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(5);

/// The time-outs of a body: a fixed time for each pause, and for the whole body that time and a second for each
/// [`BYTES_PER_SECOND`] bytes that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadDeadline {
    begun: Instant,
    patience: Duration,
}

impl ReadDeadline {
    /// Starts the time-out.
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            begun: Instant::now(),
            patience,
        }
    }

    /// The time by which more must arrive, if `taken` bytes have arrived by `now`.
    fn until(self, taken: u64, now: Instant) -> Instant {
        let whole = self.begun + self.patience + Duration::from_secs(taken / BYTES_PER_SECOND);
        // Without the second bound, a sender of many bytes could then be silent for hours.
        whole.min(now + self.patience)
    }
}

/// Failure to receive a body.
pub(super) enum BrokenBody {
    /// The body arrived too slowly.
    TooSlow,
    /// The connection was closed early, or the data is no valid body.
    Off(String),
}

/// Returns the next bytes of a body of which `taken` bytes have arrived; `None` at its end. Skips trailers.
pub(super) async fn next(body: &mut Body, pace: ReadDeadline, taken: u64) -> Result<Option<Bytes>, BrokenBody> {
    loop {
        let frame = match timeout_at(pace.until(taken, Instant::now()), body.frame()).await {
            Ok(Some(frame)) => frame.map_err(|error| BrokenBody::Off(error.to_string()))?,
            Ok(None) => return Ok(None),
            Err(_elapsed) => return Err(BrokenBody::TooSlow),
        };
        // Frames without data are trailers, which no operation uses.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

/// Returns the value of `Content-Length`, if it is a number.
pub(super) fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads the whole body, of at most `limit` bytes. Its reservation is held as long as the bytes are.
pub(super) async fn read(
    headers: &HeaderMap,
    body: &mut Body,
    limit: usize,
    mut reservation: BodyReservation,
    patience: Duration,
) -> Result<Bytes, ApiError> {
    // A body that announces its length is refused before any of it is read.
    if let Some(length) = announced(headers) {
        let length = usize::try_from(length).ok().filter(|length| *length <= limit);
        reservation.extend_to(length.ok_or_else(|| too_large(limit))?)?;
    }
    let pace = ReadDeadline::new(patience);
    // Most bodies arrive in one piece, which is then not copied.
    let (mut first, mut whole) = (Bytes::new(), BytesMut::new());
    loop {
        let held = first.len() + whole.len();
        let more = next(body, pace, held as u64).await;
        let Some(data) = more.map_err(|broken| refused(broken, patience))? else {
            break;
        };
        let needed = held + data.len();
        if needed > limit {
            return Err(too_large(limit));
        }
        // A body of unknown length doubles its reservation, so it is copied a logarithmic number of times.
        if needed > reservation.bytes() {
            reservation.extend_to(
                needed
                    .max(2 * reservation.bytes())
                    .max(MIN_RESERVATION_BYTES)
                    .min(limit),
            )?;
        }
        if held == 0 {
            first = data;
            continue;
        }
        // Grows to the reservation in one step, so that the buffer is not reallocated for each piece.
        whole.reserve(reservation.bytes() - whole.len());
        whole.extend_from_slice(&mem::take(&mut first));
        whole.extend_from_slice(&data);
    }
    let body = if whole.is_empty() { first } else { whole.freeze() };
    Ok(reservation.holding(body))
}

/// Reads and discards the rest of a body, within [`MAX_DISCARDED_BYTES`] and [`DISCARD_TIMEOUT`]. A client that is
/// still sending then receives the refusal instead of a connection reset.
pub(super) async fn discard(body: &mut Body) {
    let reading = async {
        let mut left = MAX_DISCARDED_BYTES;
        while let Some(Ok(frame)) = body.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(length) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    if tokio::time::timeout(DISCARD_TIMEOUT, reading).await.is_err() {
        tracing::debug!("a refused body was not read to its end");
    }
}

fn refused(broken: BrokenBody, patience: Duration) -> ApiError {
    match broken {
        BrokenBody::Off(error) => ApiError::invalid("", format!("has a body that ended early: {error}")),
        BrokenBody::TooSlow => {
            let message = format!(
                "the body arrives too slowly: it has {} seconds, and one more for each {BYTES_PER_SECOND} bytes that arrived",
                patience.as_secs()
            );
            ApiError::new(ErrorCode::RequestTimeout, message)
        }
    }
}

pub(super) fn too_large(limit: usize) -> ApiError {
    ApiError::new(ErrorCode::TooLarge, format!("the body has more than {limit} bytes")).field("limitBytes", limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_may_pause_up_to_the_time_out_and_be_slow_but_not_for_ever() {
        let pace = ReadDeadline::new(Duration::from_mins(1));
        let minutes_of_credit = 600 * BYTES_PER_SECOND;
        for (now, taken, end) in [
            (0, 0, 60),
            (0, BYTES_PER_SECOND - 1, 60),
            (1, BYTES_PER_SECOND, 61),
            (70, 61 * BYTES_PER_SECOND, 121),
            (0, minutes_of_credit, 60),
            (30, minutes_of_credit, 90),
        ] {
            let now = pace.begun + Duration::from_secs(now);
            let waited = pace.until(taken, now).duration_since(pace.begun);
            assert_eq!(waited, Duration::from_secs(end), "{taken} bytes");
        }
        let pace = ReadDeadline::new(Duration::from_millis(5));
        let silent = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        let silent = next(&mut Body::from_stream(silent), pace, 0).await;
        assert!(matches!(silent, Err(BrokenBody::TooSlow)));
        let ready = next(&mut Body::from("late"), pace, 0).await;
        assert!(matches!(ready, Ok(Some(_))), "what has come is taken");
    }
}
