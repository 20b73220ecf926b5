//! A value that is made at most once a minute.
//!
//! Invariants:
//! - Calls that find no value wait for the one that makes it, so that many calls cost one.
//! - A value is made again at once when its caller finds that it names what was taken down.

use std::time::Duration;

use tokio::sync::Mutex;
use types::Timestamp;

/// Time for which a value is kept.
const KEPT: Duration = Duration::from_mins(1);

/// The value of this process.
#[derive(Debug)]
pub(crate) struct TtlCell<T>(Mutex<Option<(Timestamp, T)>>);

impl<T> Default for TtlCell<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone> TtlCell<T> {
    /// Returns the value, at most a minute old, or else the one of `make`. `is_outdated` is asked of a value that was made
    /// at an instant.
    pub(crate) async fn get<E, Outdated, Made>(
        &self,
        now: Timestamp,
        is_outdated: impl FnOnce(Timestamp) -> Outdated,
        make: impl FnOnce() -> Made,
    ) -> Result<T, E>
    where
        Outdated: Future<Output = Result<bool, E>>,
        Made: Future<Output = Result<T, E>>,
    {
        let mut kept = self.0.lock().await;
        if let Some((at, value)) = kept
            .as_ref()
            // The second condition covers a clock that was set back: the value would otherwise stay for as long.
            .filter(|(at, _)| now.since(*at) < KEPT && now >= *at)
            && !is_outdated(*at).await?
        {
            return Ok(value.clone());
        }
        let made = make().await?;
        *kept = Some((now, made.clone()));
        Ok(made)
    }
}
