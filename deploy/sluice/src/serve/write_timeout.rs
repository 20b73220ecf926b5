//! A connection with a write-stall time-out.
//!
//! Invariant: writes wait for a peer at most [`MAX_STALL`] in total. Every [`MIN_BYTES_PER_SECOND`] bytes that the peer
//! takes restore one second. Beyond that writing fails, and the connection ends.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::connections::PeerState;

/// The longest total wait for a peer that takes nothing.
const MAX_STALL: Duration = Duration::from_mins(1);
/// The bytes that restore a second: the slowest average rate, in bytes per second, that a peer may keep up for ever.
const MIN_BYTES_PER_SECOND: u64 = 16 << 10;

/// A stream whose writes time out if the peer does not read.
pub(super) struct WriteTimeout<S> {
    stream: S,
    /// State of the peer, which notes that it does not read.
    peer: Arc<PeerState>,
    /// The time that is left for waiting.
    left: Duration,
    /// The start of the current wait and the timer that ends it. `None` while no write waits.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S: AsyncWrite + Unpin> WriteTimeout<S> {
    pub(super) const fn new(stream: S, peer: Arc<PeerState>) -> Self {
        Self {
            stream,
            peer,
            left: MAX_STALL,
            waiting: None,
        }
    }

    fn write(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let written = write(Pin::new(&mut self.stream), cx);
        self.peer.stalls(written.is_pending());
        if let Poll::Ready(written) = written {
            // Only the time between a blocked write and the next one that succeeds counts: an idle connection costs
            // nothing.
            let waited = self.waiting.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
            let written = written?;
            self.left = left(self.left, waited, written as u64);
            return Poll::Ready(Ok(written));
        }
        let left = self.left;
        let (_, end) = self.waiting.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + left)))
        });
        // The timer wakes the task if the peer does not.
        ready!(end.as_mut().poll(cx));
        let problem = "the peer does not read its answer";
        Poll::Ready(Err(io::Error::new(ErrorKind::TimedOut, problem)))
    }
}

/// Returns the time that is left after a wait of `waited` that ended with `bytes` taken, at most [`MAX_STALL`].
fn left(left: Duration, waited: Duration, bytes: u64) -> Duration {
    let earned = Duration::from_micros(bytes.saturating_mul(1_000_000) / MIN_BYTES_PER_SECOND);
    left.saturating_sub(waited).saturating_add(earned).min(MAX_STALL)
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().write(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .write(cx, |stream, cx| stream.poll_write_vectored(cx, slices))
    }

    // The default would make hyper copy the head and the body into one buffer.
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A socket has nothing to flush, so a stalled peer shows in writes only.
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::task::yield_now;

    use super::*;

    const BYTES: usize = 16 << 10;

    fn timed<S: AsyncWrite + Unpin>(stream: S) -> WriteTimeout<S> {
        WriteTimeout::new(stream, Arc::new(PeerState::new(Instant::now())))
    }

    #[tokio::test]
    async fn a_peer_that_takes_nothing_more_is_not_waited_for_without_end() {
        let (ours, mut theirs) = duplex(1 << 10);
        let mut stream = WriteTimeout {
            left: Duration::from_millis(20),
            ..timed(ours)
        };
        let sending = tokio::spawn(async move { stream.write_all(&[7; BYTES]).await });
        theirs.read_exact(&mut [0; BYTES / 2]).await.unwrap();
        let sent = sending.await.unwrap();
        assert_eq!(sent.unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_peer_that_takes_its_bytes_one_by_one_gets_all() {
        let (ours, mut theirs) = duplex(1 << 10);
        let mut stream = timed(ours);
        let sending = tokio::spawn(async move {
            stream.write_all(&[7; BYTES]).await.unwrap();
            stream.left
        });
        for _ in 0..BYTES {
            assert_eq!(theirs.read_u8().await.unwrap(), 7);
            yield_now().await;
        }
        assert!(sending.await.unwrap() > Duration::ZERO);
    }

    #[test]
    fn who_takes_little_is_waited_for_less_and_who_takes_more_no_longer() {
        let seconds = Duration::from_secs;
        assert_eq!(left(MAX_STALL, seconds(20), 0), seconds(40));
        assert_eq!(
            left(seconds(40), seconds(1), MIN_BYTES_PER_SECOND / 2),
            Duration::from_millis(39_500)
        );
        assert_eq!(left(seconds(40), seconds(1), MIN_BYTES_PER_SECOND), seconds(40));
        assert_eq!(left(seconds(1), seconds(2), 0), Duration::ZERO);
        // Bytes that were taken quickly give no credit beyond the full time.
        assert_eq!(left(seconds(40), Duration::ZERO, 1 << 40), MAX_STALL);
    }
}
