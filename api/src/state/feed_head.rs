//! Newest number of the public feed.
//!
//! Invariant: the database is asked for it at most twice a second, for all clients of a process together.

use std::time::Duration;

use store::Store;
use tokio::sync::Mutex;
use types::Timestamp;

/// Time for which the number is remembered.
const REMEMBERED: Duration = Duration::from_millis(500);

/// The newest number of the feed, as this process knows it.
#[derive(Debug, Default)]
pub(crate) struct FeedHead(Mutex<Option<(Timestamp, i64)>>);

impl FeedHead {
    /// Returns the newest number, at most half a second old.
    pub(crate) async fn of(&self, store: &Store, now: Timestamp) -> Result<i64, store::Error> {
        // Clients at the same time wait for one query.
        let mut known = self.0.lock().await;
        if let Some((_, seq)) = known.filter(|(at, _)| now >= *at && now.since(*at) < REMEMBERED) {
            return Ok(seq);
        }
        let seq = store.feed().last().await?;
        *known = Some((now, seq));
        Ok(seq)
    }
}
